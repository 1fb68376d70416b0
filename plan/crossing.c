/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.c - see crossing.h. */
#include "crossing.h"

/* A task that uses a buffer. */
struct crossing_use {
    int task;
    bool reads, writes;
    bool written; /* a writer comes before it */
};

struct crossing_finder {
    const struct pipeline *pipeline;
    struct crossing_use *uses; /* those of buffer b: uses[first_use[b] .. first_use[b + 1]) */
    int *first_use;
    int *place;  /* per task, in a topological order of the dependences within the iteration */
    int *behind; /* per task: the search that found it */
    int search;  /* searches so far */
    int *writer; /* per task: 1 + the buffer that it writes, of those looked at so far the last */
    int met;     /* writers of `buffer` that the search has found */
    int buffer;
    int *stack;     /* room for all tasks */
    int *first_dep; /* per task its first dependence on it, as a list through `next`; -1 ends it */
    int *next;      /* per dependence */
};

/* ---- what depends on what ---------------------------------------------------------------------- */

/* Mark what depends on the task directly, and put it on the stack of `count`, unless it comes behind the place `last`. */
static int crossing_mark(struct crossing_finder *finder, int task, int last, int count)
{
    for (int d = finder->first_dep[task]; d >= 0; d = finder->next[d]) {
        const int to = finder->pipeline->deps[d].task;
        if (finder->behind[to] == finder->search || finder->place[to] > last)
            continue;
        finder->behind[to] = finder->search;
        finder->met += finder->writer[to] == finder->buffer + 1;
        finder->stack[count++] = to;
    }
    return count;
}

static void crossing_follow(struct crossing_finder *finder, int last, int count)
{
    while (count > 0) {
        count--;
        count = crossing_mark(finder, finder->stack[count], last, count);
    }
}

/* Kahn's order (Topological sorting of large networks, CACM 5, 1962). What stands in a cycle comes last. */
static void crossing_place(struct crossing_finder *finder, int *waits)
{
    const struct pipeline *pipeline = finder->pipeline;
    const int tasks = (int)pipeline->task_count;
    int count = 0, placed = 0;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        waits[pipeline->deps[i].task] += pipeline->deps[i].distance == 0;
    for (int t = 0; t < tasks; t++) {
        finder->place[t] = tasks;
        if (waits[t] == 0)
            finder->stack[count++] = t;
    }
    while (count > 0) {
        const int task = finder->stack[--count];
        finder->place[task] = placed++;
        for (int d = finder->first_dep[task]; d >= 0; d = finder->next[d])
            if (--waits[pipeline->deps[d].task] == 0)
                finder->stack[count++] = pipeline->deps[d].task;
    }
}

/* ---- the two signs ----------------------------------------------------------------------------- */

/* The first writer among the uses that is the reader, or was found behind it; -1: none. */
static int crossing_writer(const struct crossing_finder *finder, int reader)
{
    for (int u = finder->first_use[finder->buffer]; u < finder->first_use[finder->buffer + 1];
         u++) {
        const int task = finder->uses[u].task;
        if (finder->uses[u].writes && (task == reader || finder->behind[task] == finder->search))
            return task;
    }
    return -1;
}

/* A task that reads what only tasks behind it, or itself, write. Two searches in all: one from the writers, and one from the
   readers that no writer comes before, which need not go twice where no writer was found. */
static struct crossing crossing_by_read(struct crossing_finder *finder, int buffer)
{
    const int first = finder->first_use[buffer], end = finder->first_use[buffer + 1];
    int last = 0, count = 0;
    finder->buffer = buffer;
    finder->search++;
    for (int u = first; u < end; u++) {
        const struct crossing_use *use = &finder->uses[u];
        last = finder->place[use->task] > last ? finder->place[use->task] : last;
        if (use->writes)
            finder->writer[use->task] = buffer + 1;
    }
    for (int u = first; u < end; u++)
        if (finder->uses[u].writes)
            count = crossing_mark(finder, finder->uses[u].task, last, count);
    crossing_follow(finder, last, count);
    for (int u = first; u < end; u++)
        finder->uses[u].written = finder->behind[finder->uses[u].task] == finder->search;
    finder->search++;
    finder->met = 0;
    for (int u = first; u < end; u++) {
        const struct crossing_use *use = &finder->uses[u];
        if (!use->reads || use->written)
            continue;
        crossing_follow(finder, last, crossing_mark(finder, use->task, last, 0));
        if (use->writes || finder->met > 0)
            return (struct crossing){use->task, crossing_writer(finder, use->task)};
    }
    return (struct crossing){-1, -1};
}

/* A dependence between iterations of two tasks that use a buffer, one of which writes it. */
static void crossing_by_dependence(const struct dep *dep, const struct task *tasks,
                                   struct crossing *found)
{
    const struct task *task = &tasks[dep->task], *on = &tasks[dep->on];
    for (int writes = 0; writes < 2; writes++) {
        const struct index_list *list = writes ? &task->writes : &task->reads;
        for (size_t i = 0; i < list->count; i++) {
            const int buffer = list->items[i];
            if (found[buffer].first < 0 && (index_list_has(&on->writes, buffer) ||
                                            (writes && index_list_has(&on->reads, buffer))))
                found[buffer] = (struct crossing){dep->task, dep->on};
        }
    }
}

/* ---- all buffers ------------------------------------------------------------------------------- */

/* Add the buffers of a list to those that the task uses. `end`: per buffer, where its next use stands. */
static void crossing_add_uses(struct crossing_finder *finder, int task, bool writes, int *end)
{
    const struct task *of = &finder->pipeline->tasks[task];
    const struct index_list *list = writes ? &of->writes : &of->reads;
    for (size_t i = 0; i < list->count; i++) {
        const int buffer = list->items[i];
        struct crossing_use *use = &finder->uses[end[buffer]];
        if (end[buffer] > finder->first_use[buffer] && use[-1].task == task)
            use--;
        else
            end[buffer]++;
        use->task = task;
        use->reads |= !writes;
        use->writes |= writes;
    }
}

/* The uses of each buffer in the order of tasks. A task that reads and writes a buffer has room for two. */
static bool crossing_list_uses(struct crossing_finder *finder, size_t buffers, struct arena *arena)
{
    const struct pipeline *pipeline = finder->pipeline;
    size_t all = 0;
    for (size_t t = 0; t < pipeline->task_count; t++)
        all += pipeline->tasks[t].reads.count + pipeline->tasks[t].writes.count;
    int *room = ARENA_ARRAY(arena, buffers + 1, int);
    finder->first_use = ARENA_ARRAY(arena, buffers + 1, int);
    finder->uses = ARENA_ARRAY(arena, all + 1, struct crossing_use);
    if (!room || !finder->first_use || !finder->uses)
        return false;
    for (size_t t = 0; t < pipeline->task_count; t++)
        for (int writes = 0; writes < 2; writes++) {
            const struct task *of = &pipeline->tasks[t];
            const struct index_list *list = writes ? &of->writes : &of->reads;
            for (size_t i = 0; i < list->count; i++)
                room[list->items[i]]++;
        }
    for (size_t b = 0; b < buffers; b++) {
        finder->first_use[b + 1] = finder->first_use[b] + room[b];
        room[b] = finder->first_use[b];
    }
    for (int t = 0; t < (int)pipeline->task_count; t++)
        for (int writes = 0; writes < 2; writes++)
            crossing_add_uses(finder, t, writes, room);
    return true;
}

static bool crossing_prepare(struct crossing_finder *finder, size_t buffers, struct arena *arena)
{
    const struct pipeline *pipeline = finder->pipeline;
    const size_t tasks = pipeline->task_count;
    int *waits = ARENA_ARRAY(arena, tasks + 1, int);
    finder->behind = ARENA_ARRAY(arena, tasks + 1, int);
    finder->writer = ARENA_ARRAY(arena, tasks + 1, int);
    finder->place = ARENA_ARRAY(arena, tasks + 1, int);
    finder->stack = ARENA_ARRAY(arena, tasks + 1, int);
    finder->first_dep = ARENA_ARRAY(arena, tasks + 1, int);
    finder->next = ARENA_ARRAY(arena, pipeline->dep_count + 1, int);
    if (!waits || !finder->behind || !finder->writer || !finder->place || !finder->stack ||
        !finder->first_dep || !finder->next || !crossing_list_uses(finder, buffers, arena))
        return false;
    for (size_t t = 0; t < tasks; t++)
        finder->first_dep[t] = -1;
    for (int i = 0; i < (int)pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        if (dep->distance > 0)
            continue;
        finder->next[i] = finder->first_dep[dep->on];
        finder->first_dep[dep->on] = i;
    }
    crossing_place(finder, waits);
    return true;
}

struct crossing *crossings_find(const struct plan *plan, struct arena *arena)
{
    const struct pipeline *pipeline = &plan->pipeline;
    struct crossing_finder finder = {.pipeline = pipeline};
    struct crossing *found = ARENA_ARRAY(arena, plan->buffer_count, struct crossing);
    bool declares = false;
    for (size_t b = 0; found && b < plan->buffer_count; b++) {
        found[b] = (struct crossing){-1, -1};
        declares |= plan->buffers[b].declared;
    }
    if (!found || plan->form != FORM_PIPELINE || !declares)
        return found;
    if (!crossing_prepare(&finder, plan->buffer_count, arena))
        return NULL;
    for (int b = 0; b < (int)plan->buffer_count; b++)
        if (!plan->buffers[b].declared)
            found[b] = crossing_by_read(&finder, b);
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        if (dep->distance > 0 && dep->task != dep->on)
            crossing_by_dependence(dep, pipeline->tasks, found);
    }
    for (size_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].declared)
            found[b] = (struct crossing){-1, -1};
    return found;
}
