/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - see crossing.h. */
#include "crossing.h"
#include "base/assert_index.h"

struct crossing_finder {
    const struct pipeline *pipeline;
    bool *
        behind; /* per task: true if it depends on the task that was asked about, within the iteration */
    int *stack;    /* room for all tasks */
    int *first_of; /* per task its first dependence on it, as a list through `next`; -1 ends it */
    int *next;     /* per dependence */
};

static bool crossing_reads(const struct crossing_finder *finder, int task, int buffer)
{
    ASSERT_INDEX(task, finder->pipeline->task_count);
    return index_list_has(&finder->pipeline->tasks[task].reads, buffer);
}

static bool crossing_writes(const struct crossing_finder *finder, int task, int buffer)
{
    ASSERT_INDEX(task, finder->pipeline->task_count);
    return index_list_has(&finder->pipeline->tasks[task].writes, buffer);
}

/* Mark what depends on the task. */
static void crossing_follow(struct crossing_finder *finder, int task)
{
    int count = 0;
    for (size_t t = 0; t < finder->pipeline->task_count; t++)
        finder->behind[t] = false;
    finder->stack[count++] = task;
    while (count > 0)
        for (int d = finder->first_of[finder->stack[--count]]; d >= 0; d = finder->next[d]) {
            const int to = finder->pipeline->deps[d].task;
            if (!finder->behind[to])
                finder->stack[count++] = to;
            finder->behind[to] = true;
        }
}

/* True if the task comes after a writer of the buffer. */
static bool crossing_is_written(struct crossing_finder *finder, int task, int buffer)
{
    for (int t = 0; t < (int)finder->pipeline->task_count; t++)
        if (t != task && crossing_writes(finder, t, buffer)) {
            crossing_follow(finder, t);
            if (finder->behind[task])
                return true;
        }
    return false;
}

/* A task that reads what only tasks behind it, or itself, write. */
static struct crossing crossing_by_read(struct crossing_finder *finder, int buffer)
{
    const int tasks = (int)finder->pipeline->task_count;
    for (int reader = 0; reader < tasks; reader++) {
        if (!crossing_reads(finder, reader, buffer) || crossing_is_written(finder, reader, buffer))
            continue;
        crossing_follow(finder, reader);
        for (int writer = 0; writer < tasks; writer++)
            if (crossing_writes(finder, writer, buffer) &&
                (writer == reader || finder->behind[writer]))
                return (struct crossing){reader, writer};
    }
    return (struct crossing){-1, -1};
}

/* A dependence between iterations of two tasks that use the buffer, one of which writes it. */
static struct crossing crossing_by_dependence(const struct crossing_finder *finder, int buffer)
{
    for (size_t i = 0; i < finder->pipeline->dep_count; i++) {
        const struct dep *dep = &finder->pipeline->deps[i];
        const bool a = crossing_writes(finder, dep->task, buffer);
        const bool b = crossing_writes(finder, dep->on, buffer);
        if (dep->distance > 0 && dep->task != dep->on && (a || b) &&
            (a || crossing_reads(finder, dep->task, buffer)) &&
            (b || crossing_reads(finder, dep->on, buffer)))
            return (struct crossing){dep->task, dep->on};
    }
    return (struct crossing){-1, -1};
}

static bool crossing_prepare(struct crossing_finder *finder, struct arena *arena)
{
    const struct pipeline *pipeline = finder->pipeline;
    finder->behind = ARENA_ARRAY(arena, pipeline->task_count, bool);
    finder->stack = ARENA_ARRAY(arena, pipeline->task_count + 1, int);
    finder->first_of = ARENA_ARRAY(arena, pipeline->task_count, int);
    finder->next = ARENA_ARRAY(arena, pipeline->dep_count, int);
    if (!finder->behind || !finder->stack || !finder->first_of || !finder->next)
        return false;
    for (size_t t = 0; t < pipeline->task_count; t++)
        finder->first_of[t] = -1;
    for (int i = 0; i < (int)pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        if (dep->distance > 0)
            continue;
        finder->next[i] = finder->first_of[dep->on];
        finder->first_of[dep->on] = i;
    }
    return true;
}

struct crossing *crossings_find(const struct plan *plan, struct arena *arena)
{
    struct crossing_finder finder = {.pipeline = &plan->pipeline};
    struct crossing *found = ARENA_ARRAY(arena, plan->buffer_count, struct crossing);
    bool declares = false;
    for (size_t b = 0; found && b < plan->buffer_count; b++) {
        found[b] = (struct crossing){-1, -1};
        declares |= plan->buffers[b].declared;
    }
    if (!found || plan->form != FORM_PIPELINE || !declares)
        return found;
    if (!crossing_prepare(&finder, arena))
        return NULL;
    for (int b = 0; b < (int)plan->buffer_count; b++) {
        if (plan->buffers[b].declared)
            continue;
        found[b] = crossing_by_read(&finder, b);
        if (found[b].first < 0)
            found[b] = crossing_by_dependence(&finder, b);
    }
    return found;
}
