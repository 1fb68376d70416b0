/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_queries.c - queries of events and streams: which of their answers another run could have otherwise.
 *
 * A yes (cudaSuccess) is a wait of the plan. Another run could have a no in its place (cudaErrorNotReady), unless the thread had
 * observed the work to be complete (recorded_order.c). A no could be a yes in another run. It counts together with the yes that
 * a loop of queries ends with; it counts on its own where the thread never gets that yes, or waits instead: then the program
 * has gone the way of the no.
 *
 * A loop that does nothing but query, from the no to the yes of the same query, is told apart: both answers, and what the
 * program does behind them, were seen. Such a loop is a wait unless the program gives up at some time. A program that may
 * give up can leave the same recording, so the plan tells of the loop, and only the user can say that the program never
 * gives up. A yes to the first query is no loop, even where the same thread loops before and after it: a call does not show
 * from which place of the program it comes.
 */
#include "recorded_internal.h"

#include "base/array.h"

static struct recorded_poller *find_poller(const struct walk *walk,
                                           struct recorded_pollers *pollers)
{
    for (size_t i = 0; i < pollers->count; i++)
        if (pollers->items[i].thread == walk->number)
            return &pollers->items[i];
    return NULL;
}

static struct recorded_poller *need_poller(const struct walk *walk,
                                           struct recorded_pollers *pollers)
{
    struct recorded_poller *found = find_poller(walk, pollers);
    if (found)
        return found;
    if (!ARENA_GROW(walk->job->arena, pollers->items, pollers->count, pollers->cap))
        return NULL;
    pollers->items[pollers->count] = (struct recorded_poller){.thread = walk->number};
    return &pollers->items[pollers->count++];
}

/* The loop ends without a yes: its no counts on its own. */
static void end_loop(const struct walk *walk, struct recorded_poller *poller)
{
    walk->job->not_ready_answers += poller->not_ready;
    poller->not_ready = false;
}

static void recorded_queries_give_up(const struct walk *walk, struct recorded_pollers *pollers)
{
    struct recorded_poller *poller = find_poller(walk, pollers);
    if (poller)
        end_loop(walk, poller);
}

/* ---- what a thread has observed ------------------------------------------------------------------ */

bool walk_observe_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait)
{
    if (by_wait)
        recorded_queries_give_up(walk, &stream->pollers);
    return walk_order_observe_stream(walk, stream, by_wait);
}

bool walk_observe_event(const struct walk *walk, struct recorded_event *event, bool by_wait)
{
    if (by_wait)
        recorded_queries_give_up(walk, &event->pollers);
    return walk_order_observe_event(walk, event, by_wait);
}

bool walk_observe_device(const struct walk *walk, int device)
{
    struct recorded_process *process = walk->process;
    for (size_t i = 0; i < process->stream_count; i++)
        if (process->streams[i].device == device && process->streams[i].pushes > 0 &&
            !walk_observe_stream(walk, &process->streams[i], true))
            return false;
    return true;
}

/* True if the answer can only be yes: nothing was recorded, or the thread has observed the record. */
static bool is_certain_event(const struct walk *walk, const struct recorded_event *event,
                             bool by_wait)
{
    return (event->records == 0 || event->capture >= 0) ||
           (!by_wait && event->synced_by == (int64_t)walk->number &&
            event->synced == event->records && walk_order_is_behind(walk, &event->recorded)) ||
           walk_has_observed_record(walk, event, by_wait);
}

static bool is_certain_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait)
{
    return stream->pushes == 0 || (walk_order_is_behind(walk, &stream->used) &&
                                   walk_has_observed(walk, stream, stream->pushes, by_wait));
}

/* ---- answers ------------------------------------------------------------------------------------- */

static bool take_no(const struct walk *walk, struct recorded_pollers *pollers, uint64_t records)
{
    struct recorded_poller *poller = need_poller(walk, pollers);
    if (!poller)
        return false;
    if (poller->records != records)
        end_loop(walk, poller);
    poller->place = poller->not_ready ? poller->place : walk->thread->place;
    poller->not_ready = true;
    poller->records = records;
    return true;
}

/* What a yes is: no run has a no; the end of a loop; another run could have a no. `waited`: by waits alone
   it was certain, so the program had no need to loop. */
enum meaning { YES_CERTAIN, YES_LOOP, YES_OPEN };
static enum meaning take_yes(const struct walk *walk, struct recorded_pollers *pollers,
                             uint64_t records, bool certain, bool waited)
{
    struct recorded_poller *poller = find_poller(walk, pollers);
    const bool ends = poller && poller->not_ready && poller->records == records && !waited;
    if (poller) {
        poller->not_ready = poller->not_ready && !ends;
        end_loop(walk, poller);
    }
    if (!ends)
        return certain ? YES_CERTAIN : YES_OPEN;
    return walk->thread->acted < poller->place ? YES_LOOP : YES_OPEN;
}

static void count_yes(const struct walk *walk, enum meaning meaning)
{
    walk->job->loops += meaning == YES_LOOP;
    walk->job->ready_answers += meaning == YES_OPEN;
}

static bool orders_nothing(const struct walk *walk, enum meaning meaning)
{
    return meaning == YES_OPEN && walk->job->options->queries == RECORDED_QUERIES_NONE;
}

/* True if the plan has no wait for the answer. The thread has observed it all the same: an allocator that was told so gives the
   memory to others (recorded_tenants.c). */
static bool is_left_out(const struct walk *walk, enum meaning meaning)
{
    return meaning != YES_LOOP && walk->job->options->without_luck;
}

/* Another run may have a no where what is queried changes behind the query without an order. */
static void check_certain(const struct walk *walk, struct recorded_use *certain)
{
    if (walk_order_is_behind(walk, certain))
        return;
    walk->job->ready_answers++;
    *certain = (struct recorded_use){0};
}

static void use_stream(const struct walk *walk, struct recorded_stream *stream)
{
    stream->unordered = stream->unordered || !walk_order_is_behind(walk, &stream->used);
    stream->used = walk_order_here(walk);
}

/* A thread that pushes behind a no has gone its way. */
bool walk_count_push(const struct walk *walk, struct recorded_stream *stream)
{
    use_stream(walk, stream);
    check_certain(walk, &stream->certain);
    recorded_queries_give_up(walk, &stream->pollers);
    stream->pushes++;
    return walk_frontier_push(walk, stream);
}

bool walk_note_record(const struct walk *walk, struct recorded_event *event,
                      struct recorded_stream *stream)
{
    use_stream(walk, stream);
    check_certain(walk, &event->certain);
    return walk_frontier_push(walk, stream) && walk_frontier_record(walk, event, stream);
}

/* ---- the walk's item ----------------------------------------------------------------------------- */

static bool take_done(const struct walk *walk, struct recorded_event *event, enum meaning *all)
{
    if (walk->job->options->queries != RECORDED_QUERIES_NONE && event->records > 0 &&
        event->capture < 0 && !walk_order_follow_record(walk, &event->recorded))
        return false;
    const enum meaning own =
        take_yes(walk, &event->pollers, event->records, is_certain_event(walk, event, false),
                 is_certain_event(walk, event, true));
    if (own == YES_CERTAIN)
        event->certain = walk_order_here(walk);
    *all = own > *all ? own : *all;
    return orders_nothing(walk, own) ||
           ((is_left_out(walk, own) || walk_await_event(walk, event)) &&
            walk_observe_event(walk, event, false));
}

bool walk_take_query_event(const struct walk *walk)
{
    enum meaning all = YES_CERTAIN;
    for (int i = 1; i < walk->item->words; i++) {
        struct recorded_event *event = walk_event(walk, walk->item->word[i]);
        if (!event)
            return false;
        if (walk->item->word[0] != 0 && !take_done(walk, event, &all))
            return false;
        /* Of several it is the first that may not be done. */
        if (walk->item->word[0] == 0 &&
            (!is_certain_event(walk, event, false) || i + 1 == walk->item->words))
            return take_no(walk, &event->pollers, event->records);
    }
    count_yes(walk, all);
    return true;
}

bool walk_take_query_stream(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    if (!stream)
        return false;
    if (walk->item->word[0] == 0)
        return take_no(walk, &stream->pollers, 0);
    const enum meaning meaning =
        take_yes(walk, &stream->pollers, 0, is_certain_stream(walk, stream, false),
                 is_certain_stream(walk, stream, true));
    if (meaning == YES_CERTAIN)
        stream->certain = walk_order_here(walk);
    count_yes(walk, meaning);
    return orders_nothing(walk, meaning) ||
           ((is_left_out(walk, meaning) || walk_await_stream(walk, stream)) &&
            walk_observe_stream(walk, stream, false));
}

/* ---- what the plan says of it ------------------------------------------------------------------ */

static void count_not_ready(struct recorded_job *job, const struct recorded_pollers *pollers)
{
    for (size_t i = 0; i < pollers->count; i++)
        job->not_ready_answers += pollers->items[i].not_ready;
}

void recorded_queries_end(struct recorded_job *job, const struct recorded_process *process)
{
    for (size_t i = 0; i < process->stream_count; i++)
        count_not_ready(job, &process->streams[i].pollers);
    for (size_t i = 0; i < process->event_count; i++)
        count_not_ready(job, &process->events[i].pollers);
}

static bool say_loops(struct recorded_job *job)
{
    const size_t count = job->options->queries == RECORDED_QUERIES_SEEN ||
                                 job->options->queries == RECORDED_QUERIES_NONE
                             ? job->loops
                             : 0;
    return count == 0 ||
           plan_add_unrecorded(
               job->plan,
               arena_printf(job->arena, "%zu loop%s of queries", count, count == 1 ? "" : "s"),
               "the program may give up before the answer is yes; if it never does, import with "
               "--queries=loops");
}

bool recorded_queries_say(struct recorded_job *job)
{
    const bool waits = job->options->queries == RECORDED_QUERIES_WAIT;
    const size_t ready_answers = waits ? 0 : job->ready_answers,
                 all = ready_answers + job->not_ready_answers;
    const char *why = ready_answers > 0
                          ? "where work is not done yet the program may go another way; "
                            "if it asks until it is, import with --queries=wait"
                          : "where work is done by then the program may go another way";
    return (all == 0 || plan_add_unrecorded(job->plan,
                                            arena_printf(job->arena, "other answers of %zu quer%s",
                                                         all, all == 1 ? "y" : "ies"),
                                            why)) &&
           say_loops(job);
}
