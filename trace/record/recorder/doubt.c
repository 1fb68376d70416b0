/* SPDX-License-Identifier: Apache-2.0 */
/* doubt.c - see doubt.h. The table is without locks; an event that finds no room is not doubted. */
#include "doubt.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { TABLE = 1 << 14, PLACES = 8 };

static struct doubt_event {
    atomic_ullong handle;  /* 0: a free place */
    atomic_ullong record;  /* the number of its last one */
    atomic_ullong doubted; /* that of which the program was told no */
    atomic_bool by_graph;  /* launches of a graph record it, when nobody sees it */
} events[TABLE];
static atomic_ullong records, known; /* all up to this one may be known to be done */
static bool wanted;

__attribute__((constructor)) static void doubt_begin(void)
{
    const char *asked = getenv("SWSIM_RECORD_ASK_TWICE");
    wanted = asked && *asked;
}

static struct doubt_event *doubt_find(uint64_t handle, bool add)
{
    size_t at = (size_t)(handle * 0x9e3779b97f4a7c15U >> 50);
    for (int i = 0; i < PLACES; i++, at = (at + 1) % TABLE) {
        unsigned long long there = atomic_load(&events[at].handle);
        if (there == handle ||
            (add && there == 0 &&
             (atomic_compare_exchange_strong(&events[at].handle, &there, handle) ||
              there == handle)))
            return &events[at];
    }
    return NULL;
}

static void know(uint64_t record)
{
    unsigned long long before = atomic_load(&known);
    while (before < record && !atomic_compare_exchange_weak(&known, &before, record))
        ;
}

void doubt_know_all(void)
{
    know(atomic_load(&records));
}

static void know_event(uint64_t handle)
{
    const struct doubt_event *event = doubt_find(handle, false);
    if (event && !atomic_load(&event->by_graph))
        know(atomic_load(&event->record));
    else
        doubt_know_all();
}

static void see_record(uint64_t handle, bool external)
{
    struct doubt_event *event = doubt_find(handle, true);
    if (event && external)
        atomic_store(&event->by_graph, true);
    if (event)
        atomic_store(&event->record, atomic_fetch_add(&records, 1) + 1);
}

static void doubt_forget(uint64_t handle)
{
    struct doubt_event *event = doubt_find(handle, false);
    if (!event)
        return;
    atomic_store(&event->record, 0);
    atomic_store(&event->by_graph, false);
    atomic_store(&event->handle, 0);
}

void doubt_see(enum recording_kind kind, size_t count, const uint64_t *words)
{
    (void)count;
    if (!wanted)
        return;
    switch (kind) {
    case RECORDING_RECORD: see_record(words[0], (words[2] & 1) != 0); break;
    case RECORDING_EVENT_END: doubt_forget(words[0]); break;
    case RECORDING_SYNC_EVENT: know_event(words[0]); break;
    case RECORDING_SYNC_STREAM:
    case RECORDING_SYNC_DEVICE:
    case RECORDING_FREE:
    case RECORDING_UNMAP:
    case RECORDING_COPY:
    case RECORDING_COPY_2D:
    case RECORDING_COPY_BATCH:
    case RECORDING_RESET: doubt_know_all(); break;
    default: break;
    }
}

bool doubt_answer(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (!wanted)
        return false;
    if (kind != RECORDING_QUERY_EVENT) {
        doubt_know_all();
        return false;
    }
    bool doubts = false;
    for (size_t i = 1; i < count; i++) {
        struct doubt_event *event = doubt_find(words[i], false);
        const uint64_t record =
            event && !atomic_load(&event->by_graph) ? atomic_load(&event->record) : 0;
        if (record > atomic_load(&known) && atomic_exchange(&event->doubted, record) != record)
            doubts = true;
    }
    for (size_t i = 1; i < count && !doubts; i++)
        know_event(words[i]);
    return doubts;
}
