/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_queries.c - queries of events and streams: which of their answers another run could have otherwise.
 *
 * A yes is a wait of the plan, and could have been a no, unless the thread knew: from a wait, or from a yes before. A
 * no could have been a yes; it is told by the yes that a loop of queries ends with, and counts itself where the thread
 * never gets that, or learns by a wait instead: then the program has gone the way of the no.
 *
 * recorded_known.c says what a thread knows.
 *
 * A loop that does nothing but ask, from the no to the yes of the same query, is told apart: both answers, and what the program
 * does behind them, were seen. It is a wait unless the program gives up some time; one that does so may leave the same
 * recording, so this is told, and only the user can say that it does not. A yes to the first question is no loop, even where
 * the same thread loops before and after it: a call does not show from which place of the program it comes.
 */
#include "recorded_walk.h"

static struct recorded_asker *find_asker(const struct walk *walk, struct recorded_askers *askers)
{
    for (size_t i = 0; i < askers->count; i++)
        if (askers->items[i].thread == walk->number)
            return &askers->items[i];
    return NULL;
}

static struct recorded_asker *need_asker(const struct walk *walk, struct recorded_askers *askers)
{
    struct recorded_asker *found = find_asker(walk, askers);
    if (found)
        return found;
    if (!arena_grow(walk->job->arena, (void **)&askers->items, askers->count, &askers->cap,
                    sizeof *askers->items))
        return NULL;
    askers->items[askers->count] = (struct recorded_asker){.thread = walk->number};
    return &askers->items[askers->count++];
}

/* A no that nothing tells. */
static void settle(const struct walk *walk, struct recorded_asker *asker)
{
    walk->job->noes += asker->asked;
    asker->asked = false;
}

static void forget(const struct walk *walk, struct recorded_askers *askers)
{
    struct recorded_asker *asker = find_asker(walk, askers);
    if (asker)
        settle(walk, asker);
}

/* ---- what a thread knows ------------------------------------------------------------------------- */

bool walk_learn_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait)
{
    if (by_wait)
        forget(walk, &stream->askers);
    return walk_known_stream(walk, stream, by_wait);
}

bool walk_learn_event(const struct walk *walk, struct recorded_event *event, bool by_wait)
{
    if (by_wait)
        forget(walk, &event->askers);
    return walk_known_event(walk, event, by_wait);
}

bool walk_learn_device(const struct walk *walk, int device)
{
    struct recorded_process *process = walk->process;
    for (size_t i = 0; i < process->stream_count; i++)
        if (process->streams[i].device == device && process->streams[i].pushes > 0 &&
            !walk_learn_stream(walk, &process->streams[i], true))
            return false;
    return true;
}

static bool is_empty(const struct recorded_event *event)
{
    return event->records == 0 || event->capture >= 0;
}

/* There was nothing to ask for, or the thread has had the answer. */
static bool knows_event(const struct walk *walk, const struct recorded_event *event, bool by_wait)
{
    return is_empty(event) ||
           (!by_wait && event->synced_by == (int64_t)walk->number &&
            event->synced == event->records && walk_order_is_behind(walk, &event->recorded)) ||
           walk_knows_record(walk, event, by_wait);
}

static bool knows_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait)
{
    return stream->pushes == 0 || (walk_order_is_behind(walk, &stream->used) &&
                                   walk_knows(walk, stream, stream->pushes, by_wait));
}

/* ---- answers ------------------------------------------------------------------------------------- */

static bool say_no(const struct walk *walk, struct recorded_askers *askers, uint64_t records)
{
    struct recorded_asker *asker = need_asker(walk, askers);
    if (!asker)
        return false;
    if (asker->records != records)
        settle(walk, asker);
    asker->place = asker->asked ? asker->place : walk->thread->place;
    asker->asked = true;
    asker->records = records;
    return true;
}

/* The meaning of a yes: what the thread knew, or the end of a loop, or what could have been otherwise. `waited`: it had no need
   to ask. */
enum meaning { CLEAR, LOOP, OPEN };
static enum meaning take_yes(const struct walk *walk, struct recorded_askers *askers,
                             uint64_t records, bool known, bool waited)
{
    struct recorded_asker *asker = find_asker(walk, askers);
    const bool ends = asker && asker->asked && asker->records == records && !waited;
    if (asker) {
        asker->asked = asker->asked && !ends;
        settle(walk, asker);
    }
    if (!ends)
        return known ? CLEAR : OPEN;
    return walk->thread->did < asker->place ? LOOP : OPEN;
}

static void count(const struct walk *walk, enum meaning meaning)
{
    walk->job->loops += meaning == LOOP;
    walk->job->yeses += meaning == OPEN;
}

/* The answer was clear; so it is in another run where nothing that changes it comes without an order. */
static void look(const struct walk *walk, struct recorded_use *looked)
{
    *looked = walk_order_here(walk);
}

static void check_looked(const struct walk *walk, struct recorded_use *looked)
{
    walk->job->yeses += !walk_order_is_behind(walk, looked);
    if (!walk_order_is_behind(walk, looked))
        *looked = (struct recorded_use){0};
}

static void use(const struct walk *walk, struct recorded_stream *stream)
{
    stream->tangled = stream->tangled || !walk_order_is_behind(walk, &stream->used);
    stream->used = walk_order_here(walk);
}

/* A thread that pushes behind a no has gone its way. */
bool walk_count_push(const struct walk *walk, struct recorded_stream *stream)
{
    use(walk, stream);
    check_looked(walk, &stream->looked);
    forget(walk, &stream->askers);
    stream->pushes++;
    return walk_known_action(walk, stream);
}

bool walk_note_record(const struct walk *walk, struct recorded_event *event,
                      struct recorded_stream *stream)
{
    use(walk, stream);
    check_looked(walk, &event->looked);
    return walk_known_action(walk, stream) && walk_known_record(walk, event, stream);
}

/* ---- the walk's item ----------------------------------------------------------------------------- */

static bool take_done(const struct walk *walk, struct recorded_event *event, enum meaning *all)
{
    const enum meaning own =
        take_yes(walk, &event->askers, event->records, knows_event(walk, event, false),
                 knows_event(walk, event, true));
    if (own == CLEAR)
        look(walk, &event->looked);
    *all = own > *all ? own : *all;
    return walk_await_event(walk, event) && walk_learn_event(walk, event, false);
}

bool walk_take_query_event(const struct walk *walk)
{
    enum meaning all = CLEAR;
    for (int i = 1; i < walk->item->words; i++) {
        struct recorded_event *event = walk_event(walk, walk->item->word[i]);
        if (!event)
            return false;
        if (walk->item->word[0] != 0 && !take_done(walk, event, &all))
            return false;
        /* Of several it is the first that may not be done. */
        if (walk->item->word[0] == 0 &&
            (!knows_event(walk, event, false) || i + 1 == walk->item->words))
            return say_no(walk, &event->askers, event->records);
    }
    count(walk, all);
    return true;
}

bool walk_take_query_stream(const struct walk *walk)
{
    struct recorded_stream *stream = walk_stream(walk, walk->item->word[1]);
    if (!stream)
        return false;
    if (walk->item->word[0] == 0)
        return say_no(walk, &stream->askers, 0);
    const enum meaning meaning =
        take_yes(walk, &stream->askers, 0, knows_stream(walk, stream, false),
                 knows_stream(walk, stream, true));
    if (meaning == CLEAR)
        look(walk, &stream->looked);
    count(walk, meaning);
    return walk_await_stream(walk, stream) && walk_learn_stream(walk, stream, false);
}

/* ---- the verdict --------------------------------------------------------------------------------- */

static void count_asked(struct recorded_job *job, const struct recorded_askers *askers)
{
    for (size_t i = 0; i < askers->count; i++)
        job->noes += askers->items[i].asked;
}

void recorded_queries_end(struct recorded_job *job, const struct recorded_process *process)
{
    for (size_t i = 0; i < process->stream_count; i++)
        count_asked(job, &process->streams[i].askers);
    for (size_t i = 0; i < process->event_count; i++)
        count_asked(job, &process->events[i].askers);
}

static bool say_loops(struct recorded_job *job)
{
    const size_t count = job->options->queries == RECORDED_QUERIES_SEEN ? job->loops : 0;
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
    const size_t yeses = waits ? 0 : job->yeses, all = yeses + job->noes;
    const char *why = yeses > 0 ? "where work is not done yet the program may go another way; "
                                  "if it asks until it is, import with --queries=wait"
                                : "where work is done by then the program may go another way";
    return (all == 0 || plan_add_unrecorded(job->plan,
                                            arena_printf(job->arena, "other answers of %zu quer%s",
                                                         all, all == 1 ? "y" : "ies"),
                                            why)) &&
           say_loops(job);
}
