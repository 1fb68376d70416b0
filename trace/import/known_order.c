/* SPDX-License-Identifier: Apache-2.0 */
/* known_order.c - see known_order.h: one pass over launches, waits, touches and works in the order of their times. */
#include "known_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

/* At one time a launch comes before its work. */
enum known_kind { KNOWN_WAITED, KNOWN_LAUNCH, KNOWN_TOUCH, KNOWN_BEGIN };

struct known_event {
    int64_t time_ns;
    enum known_kind kind;
    int index; /* of a call, a touch or a work */
};

struct known_pass {
    struct known_order *order;
    const struct evidence *evidence;
    int *threads; /* per thread and stream: so many works are over for it */
};

static int by_known_time(const void *left, const void *right)
{
    const struct known_event *a = left, *b = right;
    return compare_then(
        compare_i64(a->time_ns, b->time_ns),
        compare_then(compare_int((int)a->kind, (int)b->kind), compare_int(a->index, b->index)));
}

static void known_raise(int *to, const int *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* What is known when a work is over. */
static void known_add_work(const struct known_order *order, int *to, int work)
{
    const size_t streams = order->rank->stream_count;
    const int stream = order->rank->works[work].stream, behind = order->place[work] + 1;
    known_raise(to, &order->over[(size_t)work * streams], streams);
    to[stream] = behind > to[stream] ? behind : to[stream];
}

/* A wait for the device is one for all that was launched before it and ended within it. */
static void known_wait_for_device(const struct known_order *order, const struct job_call *call,
                                  int *to)
{
    const struct job_rank *rank = order->rank;
    for (size_t s = 0; s < rank->stream_count; s++)
        for (int i = to[s]; i < rank->streams[s].count; i++) {
            const int work = rank->by_stream[rank->streams[s].first + i];
            const int launch = rank->works[work].call;
            if (launch < 0 || rank->calls[launch].start_ns >= call->start_ns ||
                rank->works[work].end_ns > call->end_ns + SLACK_NS)
                break;
            known_add_work(order, to, work);
        }
}

static void known_begin(struct known_pass *pass, int work)
{
    struct known_order *order = pass->order;
    const struct job_rank *rank = order->rank;
    const struct evidence *evidence = pass->evidence;
    int *over = &order->over[(size_t)work * rank->stream_count];
    if (order->place[work] > 0)
        known_add_work(order, over,
                       rank->by_stream[rank->streams[rank->works[work].stream].first +
                                       order->place[work] - 1]);
    const size_t first = SORT_FIRST(i, 0, evidence->edge_count, evidence->edges[i].work >= work);
    for (size_t i = first; i < evidence->edge_count && evidence->edges[i].work == work; i++)
        if (evidence->edges[i].word != IDLE_RESIDENCY)
            known_add_work(order, over, evidence->edges[i].source);
}

static void known_take(struct known_pass *pass, const struct known_event *event)
{
    struct known_order *order = pass->order;
    const struct job_rank *rank = order->rank;
    const size_t streams = rank->stream_count;
    if (event->kind == KNOWN_BEGIN) {
        known_begin(pass, event->index);
        return;
    }
    const int thread = event->kind == KNOWN_TOUCH ? rank->touches[event->index].thread
                                                  : rank->calls[event->index].thread;
    int *known = &pass->threads[(size_t)thread * streams];
    if (event->kind == KNOWN_TOUCH) {
        memcpy(&order->passed[(size_t)event->index * streams], known, streams * sizeof *known);
        return;
    }
    const struct job_call *call = &rank->calls[event->index];
    for (int i = 0; event->kind == KNOWN_LAUNCH && i < call->work_count; i++)
        known_raise(&order->over[(size_t)rank->pushed[call->first_work + i] * streams], known,
                    streams);
    const int waited = pass->evidence->waits[event->index].work;
    if (event->kind == KNOWN_LAUNCH || waited < 0)
        return;
    known_add_work(order, known, waited);
    if (call->kind == CALL_SYNC_DEVICE)
        known_wait_for_device(order, call, known);
}

static size_t list_known_events(const struct job_rank *rank, const struct evidence *evidence,
                                struct known_event *events)
{
    size_t count = 0;
    for (int i = 0; i < (int)rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        if (call->work_count > 0)
            events[count++] = (struct known_event){call->start_ns, KNOWN_LAUNCH, i};
        if (evidence->waits[i].work >= 0)
            events[count++] = (struct known_event){call->end_ns, KNOWN_WAITED, i};
    }
    for (int i = 0; i < (int)rank->touch_count; i++)
        events[count++] = (struct known_event){rank->touches[i].time_ns, KNOWN_TOUCH, i};
    for (int i = 0; i < (int)rank->work_count; i++)
        events[count++] = (struct known_event){rank->works[i].start_ns, KNOWN_BEGIN, i};
    SORT(events, count, by_known_time);
    return count;
}

bool known_order_find(const struct job_rank *rank, const struct evidence *evidence,
                      struct arena *arena, struct known_order *out)
{
    const size_t streams = rank->stream_count;
    const size_t most = 2 * rank->call_count + rank->touch_count + rank->work_count + 1;
    struct known_event *events = malloc(most * sizeof *events);
    struct known_pass pass = {.order = out, .evidence = evidence};
    *out = (struct known_order){.rank = rank};
    pass.threads = calloc((rank->threads.count + 1) * (streams + 1), sizeof *pass.threads);
    out->place = ARENA_ARRAY(arena, rank->work_count + 1, int);
    out->over = ARENA_ARRAY(arena, (rank->work_count + 1) * (streams + 1), int);
    out->passed = ARENA_ARRAY(arena, (rank->touch_count + 1) * (streams + 1), int);
    const bool ok = events && pass.threads && out->place && out->over && out->passed;
    for (size_t s = 0; ok && s < streams; s++)
        for (int i = 0; i < rank->streams[s].count; i++)
            out->place[rank->by_stream[rank->streams[s].first + i]] = i;
    const size_t count = ok ? list_known_events(rank, evidence, events) : 0;
    for (size_t i = 0; i < count; i++)
        known_take(&pass, &events[i]);
    free(events);
    free(pass.threads);
    return ok;
}
