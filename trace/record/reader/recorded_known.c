/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_known.c - what a thread knows to be done: so many of a stream's first pushes.
 *
 *     thread A   push to s   record e in s             push to t        wait for all of t    unlock
 *     stream t                              wait for e
 *     thread B                                                                                  lock   knows s up to e
 *
 * A wait, or a yes, tells of the stream's work and of what that came behind: of other streams, by events, or by the order
 * of the legacy stream. What a thread knows goes to those that are seen to come after it.
 *
 * A record is a push here, too: where all in front of an event is known to be done, the stream has yet to come to its record.
 *
 * The number of a push means something only where all of the stream's pushes came in an order that was seen; else the next
 * run may have others. So nothing is known of a stream whose order is not, nor learned from it, nor by a wait that may come
 * before the record that it found.
 */
#include "recorded_walk.h"

#include <string.h>

bool walk_known_begin(struct recorded_job *job, struct recorded_process *process)
{
    const size_t count = process->tapes.thread_count;
    for (size_t i = 0; i < count; i++) {
        process->threads[i].heard = ARENA_ARRAY(job->arena, count, size_t);
        if (!process->threads[i].heard)
            return false;
        memset(process->threads[i].heard, 0, count * sizeof *process->threads[i].heard);
    }
    return true;
}

/* ---- what the work of a stream came behind ------------------------------------------------------ */

/* The first place of a stream that is not below. */
static size_t find_place(const struct recorded_behind *list, size_t stream)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->items[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const struct recorded_behind *list, size_t stream, uint64_t pushes)
{
    const size_t place = find_place(list, stream);
    return place < list->count && list->items[place].stream == stream &&
           list->items[place].pushes >= pushes;
}

bool walk_known_behind(const struct recorded_stream *stream, size_t other, uint64_t pushes)
{
    return !stream->tangled && has(&stream->behind, other, pushes);
}

/* A stream that has ended is not added: a program that makes them again and again has no long lists. */
static bool add(const struct walk *walk, struct recorded_behind *list, size_t stream,
                uint64_t pushes)
{
    const size_t place = find_place(list, stream);
    if (place < list->count && list->items[place].stream == stream) {
        if (pushes > list->items[place].pushes)
            list->items[place].pushes = pushes;
        return true;
    }
    if (!walk->process->streams[stream].live || pushes == 0)
        return true;
    if (!arena_grow(walk->job->arena, (void **)&list->items, list->count, &list->cap,
                    sizeof *list->items))
        return false;
    memmove(&list->items[place + 1], &list->items[place],
            (list->count - place) * sizeof *list->items);
    list->items[place].stream = stream;
    list->items[place].pushes = pushes;
    list->count++;
    return true;
}

/* The first pushes of a stream, and what they came behind. */
static bool add_all(const struct walk *walk, struct recorded_behind *list, size_t stream,
                    uint64_t pushes, const struct recorded_behind *behind)
{
    if (has(list, stream, pushes))
        return true;
    for (size_t i = 0; i < behind->count; i++)
        if (!add(walk, list, behind->items[i].stream, behind->items[i].pushes))
            return false;
    return add(walk, list, stream, pushes);
}

static void drop_ended(const struct recorded_process *process, struct recorded_behind *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (process->streams[list->items[i].stream].live)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static size_t index_of(const struct walk *walk, const struct recorded_stream *stream)
{
    return (size_t)(stream - walk->process->streams);
}

/* Did all of its work so far come in front of this, in every run? */
static bool is_ordered(const struct walk *walk, const struct recorded_stream *stream)
{
    return stream->capture < 0 && !stream->tangled && walk_order_is_behind(walk, &stream->used);
}

bool walk_known_action(const struct walk *walk, struct recorded_stream *stream)
{
    const struct recorded_process *process = walk->process;
    for (size_t i = 0; stream->blocking && stream->capture < 0 && i < process->stream_count; i++) {
        const struct recorded_stream *other = &process->streams[i];
        if (other != stream && other->device == stream->device && other->pushes > 0 &&
            recorded_comes_before(other, stream) && is_ordered(walk, other) &&
            !add_all(walk, &stream->behind, i, other->pushes, &other->behind))
            return false;
    }
    return true;
}

bool walk_known_record(const struct walk *walk, struct recorded_event *event,
                       struct recorded_stream *stream)
{
    event->stream = index_of(walk, stream);
    event->pushes = event->implied = stream->pushes;
    event->behind.count = 0;
    if (stream->tangled || stream->capture >= 0)
        return true;
    drop_ended(walk->process, &stream->behind);
    for (size_t i = 0; i < stream->behind.count; i++)
        if (!add(walk, &event->behind, stream->behind.items[i].stream,
                 stream->behind.items[i].pushes))
            return false;
    return true;
}

/* Is what the event was recorded behind the same in every run, where it is used now? */
static bool is_plain(const struct walk *walk, const struct recorded_event *event)
{
    return event->records > 0 && event->capture < 0 &&
           walk_order_is_behind(walk, &event->recorded) &&
           !walk->process->streams[event->stream].tangled;
}

bool walk_known_wait(const struct walk *walk, struct recorded_stream *stream,
                     const struct recorded_event *event)
{
    return stream->capture >= 0 || stream->tangled || !is_plain(walk, event) ||
           &walk->process->streams[event->stream] == stream ||
           add_all(walk, &stream->behind, event->stream, event->implied, &event->behind);
}

/* ---- what a thread knows ------------------------------------------------------------------------- */

static struct recorded_known *find(const struct walk *walk, const struct recorded_stream *stream)
{
    for (size_t i = 0; i < stream->known_count; i++)
        if (stream->known[i].thread == walk->number)
            return &stream->known[i];
    return NULL;
}

static struct recorded_known *need(const struct walk *walk, struct recorded_stream *stream)
{
    struct recorded_known *found = find(walk, stream);
    if (found)
        return found;
    if (!arena_grow(walk->job->arena, (void **)&stream->known, stream->known_count,
                    &stream->known_cap, sizeof *stream->known))
        return NULL;
    stream->known[stream->known_count] = (struct recorded_known){.thread = walk->number};
    return &stream->known[stream->known_count++];
}

static bool remember(const struct walk *walk, const struct recorded_lesson *lesson)
{
    struct recorded_thread *thread = walk->thread;
    if (!arena_grow(walk->job->arena, (void **)&thread->lessons, thread->lesson_count,
                    &thread->lesson_cap, sizeof *thread->lessons))
        return false;
    thread->lessons[thread->lesson_count] = *lesson;
    thread->lessons[thread->lesson_count++].place = thread->place;
    return true;
}

/* Nothing new is not remembered. */
static bool learn(const struct walk *walk, size_t stream, uint64_t pushes, bool by_wait)
{
    const struct recorded_lesson lesson = {.stream = stream, .pushes = pushes, .by_wait = by_wait};
    struct recorded_known *known = need(walk, &walk->process->streams[stream]);
    if (!known)
        return false;
    if (known->pushes >= pushes && (!by_wait || known->waited >= pushes))
        return true;
    known->pushes = known->pushes < pushes ? pushes : known->pushes;
    known->waited = by_wait && known->waited < pushes ? pushes : known->waited;
    return remember(walk, &lesson);
}

static bool learn_all(const struct walk *walk, size_t stream, uint64_t pushes,
                      const struct recorded_behind *behind, bool by_wait)
{
    for (size_t i = 0; i < behind->count; i++)
        if (!learn(walk, behind->items[i].stream, behind->items[i].pushes, by_wait))
            return false;
    return learn(walk, stream, pushes, by_wait);
}

bool walk_known_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait)
{
    return !is_ordered(walk, stream) ||
           learn_all(walk, index_of(walk, stream), stream->pushes, &stream->behind, by_wait);
}

bool walk_known_event(const struct walk *walk, struct recorded_event *event, bool by_wait)
{
    return !is_plain(walk, event) ||
           learn_all(walk, event->stream, event->implied, &event->behind, by_wait);
}

bool walk_known_hear(const struct walk *walk, size_t other, uint64_t count)
{
    const struct recorded_thread *from = &walk->process->threads[other];
    size_t *heard = &walk->thread->heard[other];
    for (; *heard < from->lesson_count && from->lessons[*heard].place <= count; ++*heard) {
        const struct recorded_lesson lesson = from->lessons[*heard];
        if (!learn(walk, lesson.stream, lesson.pushes, lesson.by_wait))
            return false;
    }
    return true;
}

bool walk_knows(const struct walk *walk, const struct recorded_stream *stream, uint64_t pushes,
                bool by_wait)
{
    const struct recorded_known *known = find(walk, stream);
    return !stream->tangled && known && (by_wait ? known->waited : known->pushes) >= pushes;
}

bool walk_knows_record(const struct walk *walk, const struct recorded_event *event, bool by_wait)
{
    return walk_order_is_behind(walk, &event->recorded) &&
           walk_knows(walk, &walk->process->streams[event->stream], event->pushes, by_wait);
}
