/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_open.c - see kineto_open.h. One list of all threads: few events are open at once. */
#include "kineto_open.h"

#include <stdlib.h>
#include <string.h>

enum status open_events_begin(struct open_events *open, const struct event *event, const char *file,
                              struct diag *diag)
{
    if (open->count == OPEN_MOST)
        return diag_error(diag, STATUS_INPUT,
                          "%s: more than %d events begin (\"B\") and have no end (\"E\")", file,
                          OPEN_MOST);
    if (open->count == open->cap) {
        const size_t cap = open->cap ? 2 * open->cap : 16;
        void *items = realloc(open->items, cap * sizeof *open->items);
        if (!items)
            return diag_no_memory(diag);
        open->items = items;
        open->cap = cap;
    }
    open->items[open->count++] = *event;
    return STATUS_OK;
}

static bool of_one_thread(const struct event *a, const struct event *b)
{
    return strcmp(a->pid.bytes, b->pid.bytes) == 0 && strcmp(a->tid.bytes, b->tid.bytes) == 0;
}

bool open_events_end(struct open_events *open, const struct event *end, struct event *out)
{
    size_t at = open->count;
    while (at > 0 && !of_one_thread(&open->items[at - 1], end))
        at--;
    if (at == 0)
        return false;
    *out = open->items[at - 1];
    memmove(&open->items[at - 1], &open->items[at], (open->count - at) * sizeof *open->items);
    open->count--;
    out->phase = PHASE_COMPLETE;
    out->has_start &= end->has_start;
    if (__builtin_sub_overflow(end->start_ns, out->start_ns, &out->duration_ns))
        out->has_start = false;
    return true;
}

void open_events_fini(struct open_events *open)
{
    free(open->items);
}
