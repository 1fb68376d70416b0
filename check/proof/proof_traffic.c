/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_traffic.c - whether the collectives of a pipeline come through under data-flow.
 *
 * They do where all of them are called in one order. Else they must be forward:
 *
 *     forward WEIGHT          (T, i) waits on the device for nothing with a number above WEIGHT * i + its own
 *     level NUMBER            of each task in order; -1: it never waits for a collective
 *     call TASK               of each task that communicates, by level
 *     path ...                of each communicator: between its tasks, in the order of their numbers, as above
 *     path ...                for each stream, from each of its tasks to each other one: the order of submission
 *
 * doc/checker.md, "Proved by structure", has the theorem.
 */
#include "structure.h"

/* Data-flow: each of these tasks is submitted before the next is taken, and the last before the first of the next
   iteration. */
static bool read_chain(struct structure *s, int count)
{
    for (int k = 0; count > 1 && k < count; k++) {
        int64_t length;
        if (!structure_read_path(s, s->list[k], s->list[(k + 1) % count], true, &length))
            return false;
        if (length > (k + 1 == count))
            return certificate_refuse(s->c, "task %d need not be submitted before task %d",
                                      s->list[k], s->list[(k + 1) % count]);
    }
    return true;
}

enum { ALL = -1, NO_LEVEL = -1, SPARE_ITERATIONS = 2 };

/* True if the task communicates, by this communicator. */
static bool is_called(const struct structure *s, int task, int comm)
{
    int member = comm == ALL ? 0 : s->p->comms[comm].members[0];
    return structure_calls(s, task) &&
           (comm == ALL || plan_task(s->p->plan, member, task)->work.comm == comm);
}

/* The tasks of a communicator, by their numbers, come in this order. */
static bool proof_traffic_read_calls(struct structure *s, int comm, int *count)
{
    *count = 0;
    for (int k = 0; k < s->p->tasks; k++)
        if (is_called(s, s->order[k], comm))
            s->list[(*count)++] = s->order[k];
    return read_chain(s, *count);
}

/* ---- forward ----------------------------------------------------------------------------------- */

/* True if a worker waits for nothing that the device does, but for room in a stream. */
static bool proof_traffic_host_runs_ahead(const struct program *p)
{
    bool ahead = true;
    for (size_t i = 0; i < p->op_count; i++)
        ahead &= op_runs_ahead(p->ops[i].kind);
    return ahead && !p->plan->machine.launch_order_implicit;
}

static bool retires_on_device(const struct program *p)
{
    return p->plan->pipeline.retire == RETIRE_DEVICE;
}

/* True if a full stream holds all iterations that have a context, and two more where the host runs ahead. */
static bool is_roomy(const struct program *p, int64_t *pushes)
{
    const int64_t iterations = p->depth + (retires_on_device(p) ? 0 : SPARE_ITERATIONS);
    bool roomy = true;
    for (size_t i = 0; i < p->op_count; i++)
        if (op_pushes(p->ops[i].kind))
            pushes[p->ops[i].stream]++;
    for (int i = 0; i < p->stream_count; i++)
        roomy &= p->streams[i].hw_queue < 0 && p->streams[i].cap >= pushes[i] * iterations;
    return roomy;
}

/* On the device (to, j) waits for (from, i) only if j - i is `length` at least. Tasks without a level wait for none that has
   one. */
static bool is_level(struct structure *s, int from, int to, int64_t length)
{
    return s->level[from] == NO_LEVEL ||
           (s->level[to] != NO_LEVEL && s->level[to] + s->weight * length >= s->level[from]) ||
           certificate_refuse(s->c, "task %d may wait for task %d, whose level is higher", to,
                              from);
}

/* The tasks that communicate, by level; and nothing that waits for one is so late that a full stream could hold it. */
static bool levels_are_forward(struct structure *s)
{
    const int64_t late = retires_on_device(s->p) ? s->p->depth : 1 + SPARE_ITERATIONS;
    int64_t first = NO_LEVEL, last = NO_LEVEL;
    bool good = true;
    for (int t = 0, task; good && t < s->p->tasks; t++) {
        if (!structure_calls(s, t))
            continue;
        good = certificate_index(s->c, "call", s->p->tasks, &task) && structure_calls(s, task) &&
               s->level[task] > last;
        last = good ? s->level[task] : last;
        first = first == NO_LEVEL ? last : first;
    }
    good = good && first != NO_LEVEL && last - first < s->weight;
    for (int t = 0; good && t < s->p->tasks; t++)
        good = s->level[t] - first < s->weight * late;
    return good || certificate_refuse(s->c, "the levels of collectives are not in order");
}

/* Of two tasks of a stream, (to, j) is behind (from, i) only if it need not be submitted before. */
static bool read_stream(struct structure *s, int stream)
{
    int count = 0;
    for (int t = 0; t < s->p->tasks; t++)
        if (s->tasks[t].stream == stream)
            s->list[count++] = t;
    for (int y = 0; y < count; y++)
        for (int x = 0; x < count; x++) {
            int64_t length;
            if (x != y && (!structure_read_path(s, s->list[y], s->list[x], true, &length) ||
                           !is_level(s, s->list[x], s->list[y], 1 - length)))
                return false;
        }
    return true;
}

static bool read_comm(struct structure *s, int comm)
{
    int count;
    if (!proof_traffic_read_calls(s, comm, &count))
        return false;
    for (int k = 0; count > 1 && k < count; k++)
        if (!is_level(s, s->list[k], s->list[(k + 1) % count], k + 1 == count))
            return false;
    return true;
}

static bool read_waits(struct structure *s)
{
    const struct program *p = s->p;
    for (int t = 0; t < p->tasks; t++)
        for (int k = 0; k < p->depends[t].count; k++)
            if (!is_level(s, p->depends[t].items[k].task, t, p->depends[t].items[k].distance))
                return false;
    for (int comm = 0; comm < p->comm_count; comm++)
        if (!read_comm(s, comm))
            return false;
    for (int stream = 0; stream < (int)p->plan->streams.count; stream++)
        if (!read_stream(s, stream))
            return false;
    return true;
}

static bool read_forward(struct structure *s)
{
    int64_t *pushes = ARENA_ARRAY(&s->c->arena, (size_t)s->p->stream_count + 1, int64_t);
    if (!pushes || !proof_traffic_host_runs_ahead(s->p) || !is_roomy(s->p, pushes))
        return certificate_refuse(s->c, "a thread may wait for the device");
    certificate_number(s->c, NULL, 1, PLAN_MAX_TASKS * PLAN_MAX_DEPTH, &s->weight);
    for (int t = 0; t < s->p->tasks && certificate_expect(s->c, "level"); t++)
        certificate_number(s->c, NULL, NO_LEVEL, CERTIFICATE_MOST, &s->level[t]);
    return !s->c->refused && levels_are_forward(s) && read_waits(s);
}

/* ---- the whole --------------------------------------------------------------------------------- */

bool structure_read_traffic(struct structure *s)
{
    const struct program *p = s->p;
    const bool by_turn = program_fires_by_turn(p);
    bool all_ordered = by_turn;
    int ordered = 0, count;
    for (int t = 0; t < p->tasks; t++)
        all_ordered &= !structure_calls(s, t) || p->ticket_position[t] >= 0;
    if (by_turn && !program_turns_come(p))
        return certificate_refuse(s->c, "a turn may not come");
    if (all_ordered)
        return true;
    for (int t = 0; t < p->tasks; t++)
        if (p->ticket_position[t] >= 0) {
            s->list[p->ticket_position[t]] = t;
            ordered++;
        }
    if (!by_turn && !read_chain(s, ordered))
        return false;
    if (certificate_accept(s->c, "forward"))
        return by_turn && ordered > 0 && p->last_turn_stage > 0
                   ? certificate_refuse(s->c, "turns may come behind those of later iterations")
                   : read_forward(s);
    return proof_traffic_read_calls(s, ALL, &count);
}
