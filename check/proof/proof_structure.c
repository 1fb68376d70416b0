/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_structure.c - numbers and paths of a pipeline, for any number of iterations.
 *
 *     task NUMBER                 of each task in order; that of (task, i) is NUMBER + i times the number of tasks
 *     path COUNT HOP...           data-flow: from each task with a ticket to the next, then of those that communicate, in the
 *                                 order of their numbers
 *     pair BUFFER TASK TASK       of each two tasks that conflict on a buffer: a path there, a path back
 *
 * A hop leads from (X, i) to (Y, i + length), which comes later in every run:
 *
 *     on Y DISTANCE    Y depends on X                               the distance
 *     again            Y is X                                       1
 *     retired Y        the driver has retired i; the first hop      depth; clock: less the stage of Y
 *     queue Y          clock: one thread and one stream             from their stages and places
 *     fired Y G        data-flow: the same                          G
 *
 * or `none` stands for a path that is not there. doc/checker.md, "Proved by structure", has the theorems whose conditions are
 * looked at here.
 */
#include "structure.h"

#include <string.h>

#include "base/assert_index.h"

/* ---- the conditions that need no certificate ----------------------------------------------------- */

static bool proof_structure_rules_are_plain(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    const struct machine_spec *machine = &p->plan->machine;
    return p->slots_safe && pipeline->forget_done == FORGET_NEVER &&
           pipeline->ticket_at != TICKET_AT_FIRE && pipeline->slot_reset == SLOT_RESET_ADMIT &&
           pipeline->retired_dep == RETIRED_DEP_WAIT && !pipeline->batches &&
           !plan_legacy_stream(p->plan) && !machine->launch_lock && !machine->launch_blocking &&
           !machine->share_device && !machine->first_use_blocks;
}

static bool proof_structure_tasks_are_plain(const struct structure *s)
{
    const struct program *p = s->p;
    int slots = p->plan->machine.sm_slots, callers = 0;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = &s->tasks[t];
        callers += structure_calls(s, t);
        if (task->holds.count > 1 || task->work.kind == WORK_SEND || task->work.kind == WORK_RECV ||
            (slots > 0 && task->sm > slots))
            return false;
        for (int rank = 1; rank < p->ranks; rank++)
            if (!plan_same_task(plan_task(p->plan, rank, t), task) ||
                p->order[rank][t] != p->order[0][t])
                return false;
    }
    return slots == 0 || callers <= 1;
}

/* All members of a communicator use it in the same tasks. */
static bool proof_structure_members_agree(const struct structure *s, int *uses)
{
    const struct program *p = s->p;
    bool agree = true;
    for (int t = 0; t < p->tasks; t++) {
        for (int rank = 0; structure_calls(s, t) && rank < p->ranks; rank++)
            uses[plan_task(p->plan, rank, t)->work.comm]++;
        for (int rank = 0; structure_calls(s, t) && rank < p->ranks; rank++) {
            int comm = plan_task(p->plan, rank, t)->work.comm;
            agree &= uses[comm] == 0 || uses[comm] == p->comms[comm].count;
            uses[comm] = 0;
        }
    }
    return agree;
}

/* ---- numbers ----------------------------------------------------------------------------------- */

/* Under the clock a number is a key: everything of a period lies before everything of the next, and in it queues and tickets
   come in the order of the numbers. Under data-flow it is a place in the iteration, of its own. */
static bool proof_structure_read_numbers(struct structure *s)
{
    for (int t = 0; t < s->p->tasks; t++)
        s->order[t] = -1;
    for (int t = 0; t < s->p->tasks; t++) {
        int64_t key = (int64_t)s->p->tasks * s->tasks[t].stage + s->place[t];
        bool clock = structure_is_clock(s);
        if (!certificate_number(s->c, "task", clock ? key : 0, clock ? key : s->p->tasks - 1,
                                &s->number[t]))
            return false;
        int *place = &s->order[s->number[t] % s->p->tasks];
        if (*place >= 0)
            return certificate_refuse(s->c, "tasks %d and %d have one number", *place, t);
        *place = t;
    }
    return true;
}

static bool dependences_are_smaller(struct structure *s)
{
    for (int t = 0; t < s->p->tasks; t++)
        for (int k = 0; k < s->p->depends[t].count; k++) {
            struct edge edge = s->p->depends[t].items[k];
            if (s->number[edge.task] - (int64_t)s->p->tasks * edge.distance >= s->number[t])
                return certificate_refuse(
                    s->c,
                    "the number of task %d is not larger than that of %d, on which it depends", t,
                    edge.task);
        }
    return true;
}

/* Clock: all ranks call collectives in the order of their numbers. */
static bool clock_calls_in_order(struct structure *s)
{
    int callers = 0, group = -1;
    bool by_ticket = true, by_thread = true;
    for (int t = 0; t < s->p->tasks; t++) {
        if (!structure_calls(s, t))
            continue;
        callers++;
        by_ticket &= s->tasks[t].globally_ordered;
        by_thread &= group < 0 || group == s->tasks[t].group;
        group = s->tasks[t].group;
    }
    return callers <= 1 || by_ticket || by_thread ||
           certificate_refuse(s->c, "threads may call collectives in different orders");
}

/* ---- accesses ---------------------------------------------------------------------------------- */

/* Accesses on one stream are ordered; those of host work on one thread. */
static bool proof_structure_same_place(const struct structure *s, int a, int b)
{
    if (structure_is_host(s, a) || structure_is_host(s, b))
        return structure_is_host(s, a) && structure_is_host(s, b) &&
               s->tasks[a].group == s->tasks[b].group;
    return s->tasks[a].stream == s->tasks[b].stream;
}

enum { READS = 1, WRITES = 2 };

/* The tasks that access a buffer, and how. */
struct touched {
    int buffer, count, *tasks, *ways; /* ways: per task */
};

/* Reads of a buffer with `staleness` may lag by so many iterations if one other task writes it. */
static int lag_of(const struct structure *s, const struct touched *by)
{
    int writers = 0;
    for (int i = 0; i < by->count; i++)
        writers += by->ways[by->tasks[i]] >= WRITES;
    return writers == 1 ? s->p->plan->buffers[by->buffer].staleness : 0;
}

/* The order of `a` and the writes of `b` is that of a serial run, behind which reads by `a` may lag; the gaps lead from a to b
   and back. */
static bool is_serial(const struct structure *s, int period, int lag, int a, int b, int64_t there,
                      int64_t back)
{
    ASSERT_INDEX(a, s->p->tasks);
    ASSERT_INDEX(b, s->p->tasks);
    int later = s->p->serial_place[b] < s->p->serial_place[a];
    if (period == 0)
        return later ? back <= 0 : there <= 0;
    return there <= (int64_t)later * period && back <= (int64_t)(1 - later + lag) * period;
}

static bool read_pair(struct structure *s, const struct touched *by, int lag, int first, int second)
{
    const int buffer = by->buffer;
    const int period = buffer_period(&s->p->plan->buffers[buffer]);
    const bool writes = by->ways[second] & WRITES;
    int64_t told, there, back;
    if (!certificate_number(s->c, "pair", buffer, buffer, &told) ||
        !certificate_number(s->c, NULL, first, first, &told) ||
        !certificate_number(s->c, NULL, second, second, &told) ||
        !structure_read_path(s, first, second, false, &there) ||
        !structure_read_path(s, second, first, false, &back))
        return false;
    s->fed[second] |= by->ways[first] & WRITES && there <= 0;
    s->fed[first] |= writes && back <= 0;
    bool ordered = buffer_gaps_order(period, there, back);
    if (s->proves & 1u << PROPERTY_RACE && !ordered &&
        !proof_structure_same_place(s, first, second))
        return certificate_refuse(s->c, "tasks %d and %d may race on buffer %d", first, second,
                                  buffer);
    bool serial = writes ? is_serial(s, period, lag, first, second, there, back)
                         : is_serial(s, period, lag, second, first, back, there);
    return serial || !(s->proves & 1u << PROPERTY_SERIAL) ||
           certificate_refuse(s->c, "tasks %d and %d need not be in serial order", first, second);
}

static bool proof_structure_read_buffer(struct structure *s, const struct touched *by)
{
    const int lag = lag_of(s, by), *tasks = by->tasks;
    memset(s->fed, 0, (size_t)s->p->tasks * sizeof *s->fed);
    for (int i = 0; i < by->count; i++)
        for (int k = i + 1; k < by->count; k++)
            if ((by->ways[tasks[i]] | by->ways[tasks[k]]) & WRITES &&
                !read_pair(s, by, lag, tasks[i], tasks[k]))
                return false;
    bool initialised = s->p->buffers[by->buffer].initialised;
    for (int i = 0; i < by->count && s->proves & 1u << PROPERTY_VALUE; i++)
        if (by->ways[tasks[i]] & READS && !initialised && !s->fed[tasks[i]])
            return certificate_refuse(s->c, "task %d may read buffer %d before it is written",
                                      tasks[i], by->buffer);
    return true;
}

static bool proof_structure_read_buffers(struct structure *s)
{
    const struct program *p = s->p;
    struct arena *arena = &s->c->arena;
    size_t most = 0, count = 0;
    for (int t = 0; t < p->tasks; t++)
        most += s->tasks[t].reads.count + s->tasks[t].writes.count;
    int *keys = ARENA_ARRAY(arena, most + 1, int), *task = ARENA_ARRAY(arena, most + 1, int);
    int *way = ARENA_ARRAY(arena, most + 1, int);
    struct touched by = {.ways = ARENA_ARRAY(arena, (size_t)p->tasks, int), .tasks = s->list};
    for (int t = 0; !arena->failed && t < p->tasks; t++)
        for (int w = READS; w <= WRITES; w++) {
            const struct index_list *list = w == READS ? &s->tasks[t].reads : &s->tasks[t].writes;
            for (size_t i = 0; i < list->count; i++, count++) {
                keys[count] = list->items[i];
                task[count] = t;
                way[count] = w;
            }
        }
    const struct lists_lists lists = lists_by(arena, keys, count, (int)p->plan->buffer_count);
    bool good = !arena->failed;
    for (; good && by.buffer < (int)p->plan->buffer_count; by.buffer++) {
        by.count = 0;
        for (int i = lists.first[by.buffer]; i < lists.first[by.buffer + 1]; i++) {
            int t = task[lists.items[i]];
            if (by.count == 0 || by.tasks[by.count - 1] != t) {
                by.tasks[by.count++] = t;
                by.ways[t] = 0;
            }
            by.ways[t] |= way[lists.items[i]];
        }
        good = by.count == 0 || proof_structure_read_buffer(s, &by);
    }
    return good;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static bool proof_structure_is_bounded(const struct program *p)
{
    int64_t memory = machine_same_memory(&p->plan->machine);
    int64_t bytes = p->shared_bytes + p->most_in_flight * p->iteration_bytes;
    int allowed = p->plan->pipeline.max_in_flight;
    return (memory == 0 || bytes <= memory) && (allowed == 0 || p->most_in_flight <= allowed);
}

static bool proof_structure_judge(struct structure *s)
{
    const unsigned accesses = 1u << PROPERTY_RACE | 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL;
    if (!proof_structure_rules_are_plain(s->p) || !proof_structure_tasks_are_plain(s) ||
        !proof_structure_members_agree(s, s->list))
        return certificate_refuse(s->c, "the plan is not of the kind that structure proves");
    for (int k = 0; k < s->p->tasks; k++)
        s->place[s->p->order[0][k]] = k;
    bool alive = proof_structure_read_numbers(s) && dependences_are_smaller(s) &&
                 (structure_is_clock(s) ? clock_calls_in_order(s) : structure_read_traffic(s));
    return alive && (!(s->proves & accesses) || proof_structure_read_buffers(s));
}

unsigned proof_structure_covers(const struct program *p)
{
    if (p->tasks == 0)
        return 0;
    unsigned never =
        1u << PROPERTY_FAULTS | (proof_structure_is_bounded(p) ? 0 : 1u << PROPERTY_BOUND);
    return ((1u << PROPERTY_COUNT) - 1) & ~never;
}

bool proof_structure(const struct program *p, struct certificate *c, unsigned proves)
{
    struct structure s = {.p = p, .tasks = plan_tasks(p->plan, 0), .c = c, .proves = proves};
    size_t room = (size_t)p->tasks + (size_t)p->comm_count + p->plan->groups.count;
    s.place = ARENA_ARRAY(&c->arena, room, int);
    s.order = ARENA_ARRAY(&c->arena, room, int);
    s.list = ARENA_ARRAY(&c->arena, room, int);
    s.number = ARENA_ARRAY(&c->arena, room, int64_t);
    s.level = ARENA_ARRAY(&c->arena, room, int64_t);
    s.fed = ARENA_ARRAY(&c->arena, room, bool);
    return !c->arena.failed && proof_structure_judge(&s);
}
