/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_values.c - values in memory by which streams wait for each other; see recorded_internal.h.
 *
 * A place that one stream writes, each time a greater value, is a row of flags: a wait for at least some value ends with
 * the first write of so much, whatever the times. Then the write is a callback that sets a flag, and the wait one that
 * awaits it. Which value is there at first, and that nothing else writes it, is assumed, and told. A wait of another kind,
 * one that no such write ends, and all waits at places where several streams write, or values fall, are told as not
 * modelled and left out.
 */
#include <stdlib.h>

#include "recorded_internal.h"

#include "base/array.h"
#include "base/sort.h"

enum { AT_LEAST = 0, KIND = 7, NO_BARRIER = 1 }; /* flags of waits and writes */

static const char *recorded_values_name_of(bool writes)
{
    return writes ? "cuStreamWriteValue" : "cuStreamWaitValue";
}

static bool values_add(const struct walk *walk, const struct recorded_value *value)
{
    struct recorded_process *process = walk->process;
    if (!ARENA_GROW(walk->job->arena, process->values, process->value_count, process->value_cap))
        return false;
    process->values[process->value_count++] = *value;
    return true;
}

/* A wait reads memory that is written meanwhile: that is no access. */
bool walk_take_value(const struct walk *walk, bool writes)
{
    const uint64_t *word = walk->item->word;
    struct recorded_stream *stream = walk_stream(walk, word[0]);
    struct recorded_op op = walk_op(walk, OP_CALLBACK);
    if (!stream)
        return false;
    if (stream->capture >= 0)
        return walk_unmodelled(walk, arena_printf(walk->job->arena, "%s in a capture",
                                                  recorded_values_name_of(writes)));
    const struct recorded_value value = {.writes = writes,
                                         .address = word[1],
                                         .bytes = word[2],
                                         .value = word[3],
                                         .flags = word[4],
                                         .stream = (size_t)(stream - walk->process->streams),
                                         .signal = -1};
    if (!values_add(walk, &value))
        return false;
    op.op.name = writes ? "write of a value" : "wait for a value";
    op.value = walk->process->value_count;
    return (!writes || recorded_memory_access(walk->job, walk->process, &op, value.address,
                                              value.bytes, true, -1)) &&
           walk_push(walk, stream, &op);
}

/* ---- pairs --------------------------------------------------------------------------------------- */

static int recorded_values_by_place(const void *left, const void *right)
{
    const struct recorded_value *a = *(struct recorded_value *const *)left,
                                *b = *(struct recorded_value *const *)right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a > b) - (a < b); /* in the order of their pushes */
}

/* The uses of one place. */
struct recorded_values_place {
    struct recorded_value **items;
    size_t count;
};

/* A wait for at least a value compares the signed difference: that of numbers without the first bit is clear. */
static bool recorded_values_is_small(const struct recorded_value *value)
{
    return (value->bytes == 4 && value->value <= INT32_MAX) ||
           (value->bytes == 8 && value->value <= INT64_MAX);
}

/* True if it is a write that only adds to the one before, in the order of one stream. */
static bool value_follows(const struct recorded_process *process,
                          const struct recorded_value *write, const struct recorded_value *before)
{
    return (write->flags & NO_BARRIER) == 0 && !process->streams[write->stream].unordered &&
           (!before || (before->stream == write->stream && before->value < write->value));
}

static bool values_grow(const struct recorded_process *process,
                        const struct recorded_values_place *place)
{
    const struct recorded_value *before = NULL;
    for (size_t i = 0; i < place->count; i++) {
        const struct recorded_value *at = place->items[i];
        if (!recorded_values_is_small(at) || at->bytes != place->items[0]->bytes ||
            (at->writes && !value_follows(process, at, before)))
            return false;
        before = at->writes ? at : before;
    }
    return true;
}

/* NULL: none ends it. A wait for 0 ends where there is any value. */
static struct recorded_value *find_write(const struct recorded_values_place *place,
                                         const struct recorded_value *wait)
{
    if ((wait->flags & KIND) != AT_LEAST || wait->value == 0)
        return NULL;
    for (size_t i = 0; i < place->count; i++)
        if (place->items[i]->writes && place->items[i]->value >= wait->value)
            return place->items[i];
    return NULL;
}

static bool recorded_values_name_signal(struct recorded_job *job,
                                        const struct recorded_process *process,
                                        struct recorded_value *write)
{
    const char *name = arena_printf(job->arena, "r%d.value%zu", process->first_rank,
                                    (size_t)(write - process->values) + 1);
    if (write->signal < 0)
        write->signal = name ? names_intern(&job->plan->flags, job->arena, name) : -1;
    return write->signal >= 0;
}

static bool values_pair(struct recorded_job *job, struct recorded_process *process,
                        const struct recorded_values_place *place)
{
    const struct walk walk = {.job = job, .process = process};
    const bool good = values_grow(process, place);
    bool awaited = false;
    for (size_t i = 0; i < place->count; i++) {
        struct recorded_value *wait = place->items[i];
        struct recorded_value *write = good && !wait->writes ? find_write(place, wait) : NULL;
        if (wait->writes)
            continue;
        if (write ? !recorded_values_name_signal(job, process, write)
                  : !walk_unmodelled(&walk, recorded_values_name_of(false)))
            return false;
        wait->signal = write ? write->signal : -1;
        awaited = awaited || write;
    }
    job->awaited_values += awaited;
    return true;
}

bool recorded_values_pair(struct recorded_job *job, struct recorded_process *process)
{
    const size_t count = process->value_count;
    struct recorded_value **all = ARENA_ARRAY(job->arena, count + 1, struct recorded_value *);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++)
        all[i] = &process->values[i];
    SORT(all, count, recorded_values_by_place);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && all[end]->address == all[i]->address;)
            end++;
        if (!values_pair(job, process, &(struct recorded_values_place){all + i, end - i}))
            return false;
    }
    return true;
}

bool recorded_values_say(struct recorded_job *job)
{
    const size_t count = job->awaited_values;
    return count == 0 ||
           plan_add_unrecorded(
               job->plan,
               arena_printf(job->arena, "values at %zu place%s in memory", count,
                            count == 1 ? "" : "s"),
               "taken to be too small for the streams that wait, until a stream writes it");
}
