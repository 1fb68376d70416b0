/*
 * structure.c - see structure.h; the proofs are in doc/checker.md, "Proved by structure".
 *
 * Lemma (order).    Every task is handed out, submitted and starts in iteration order; under the clock
 *                   every thread takes its instances in the order (period, place in the enqueue
 *                   order), the key of an instance.
 * Theorem (life).   If collectives are issued in one order on all ranks and no agent holds a resource
 *                   while it waits for a later instance, no agent blocks for ever and ranks agree.
 * Theorem (order).  X(i) happens before Y(i + g) whenever g is at least the length of a shortest path
 *                   X -> Y in the graph of
 *                       on -> task   of length d, for every dependence of distance d
 *                       T -> T       of length 1, by the lemma
 *                       any -> any   of length depth, when retiring waits for the device
 *                       X -> Y       clock: on one thread and one stream, from their keys
 *                   Accesses on one stream are ordered anyway.
 */
#include "structure.h"

#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 20 };

/* ---- life ------------------------------------------------------------------------------------ */

static bool is_clock(const struct program *p)
{
    return p->driver == DRIVER_CLOCK;
}

static bool rules_are_plain(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    return p->slots_safe && pipeline->forget_done == FORGET_NEVER &&
           pipeline->ticket_at == TICKET_AT_ITERATION && pipeline->slot_reset == SLOT_RESET_ADMIT &&
           pipeline->retired_dep == RETIRED_DEP_WAIT && !pipeline->batches;
}

static bool same_list(const struct index_list *a, const struct index_list *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

/* The tasks of rank 0, which stand for those of all ranks. */
static const struct task *all_tasks(const struct program *p)
{
    return plan_task(p->plan, 0, 0);
}

/* Do the two match as a collective, and block in the same way? */
static bool same_work(const struct work *a, const struct work *b)
{
    return a->kind == b->kind && a->comm == b->comm && a->collective == b->collective &&
           (a->kind != WORK_COLLECTIVE || a->bytes == b->bytes) && a->pageable == b->pageable;
}

static bool same_task(const struct task *a, const struct task *b)
{
    return a->stage == b->stage && a->stream == b->stream && a->group == b->group &&
           a->globally_ordered == b->globally_ordered && a->sm == b->sm &&
           a->host_sync == b->host_sync && same_work(&a->work, &b->work) &&
           same_list(&a->holds, &b->holds) && same_list(&a->reads, &b->reads) &&
           same_list(&a->writes, &b->writes);
}

/* Ranks may differ in durations only. */
static bool ranks_are_alike(const struct program *p)
{
    for (int rank = 1; rank < p->ranks; rank++) {
        for (int t = 0; t < p->tasks; t++)
            if (!same_task(plan_task(p->plan, rank, t), plan_task(p->plan, 0, t)))
                return false;
        if (memcmp(p->order[rank], p->order[0], (size_t)p->tasks * sizeof **p->order) != 0)
            return false;
    }
    return true;
}

/* The collectives and the global order of the tasks of a rank. */
struct traffic {
    int ordered, communicating;
    bool by_ticket, by_thread; /* all communicating tasks are ordered, are on one thread */
};

static struct traffic count_traffic(const struct program *p)
{
    struct traffic traffic = {.by_ticket = true, .by_thread = true};
    int group = -1;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = plan_task(p->plan, 0, t);
        traffic.ordered += task->globally_ordered;
        if (task->work.kind != WORK_COLLECTIVE)
            continue;
        traffic.communicating++;
        traffic.by_ticket &= task->globally_ordered;
        traffic.by_thread &= group < 0 || group == task->group;
        group = task->group;
    }
    return traffic;
}

/* Are collectives issued in one order on all ranks, and tickets taken in the order of the queues?
   Under data-flow two tasks may be fired in any order. */
static bool traffic_is_plain(const struct program *p)
{
    struct traffic traffic = count_traffic(p);
    if (traffic.communicating > 1 && p->plan->machine.sm_slots > 0)
        return false; /* two at once may hold slots that each other's peers need */
    if (is_clock(p))
        return traffic.communicating <= 1 || traffic.by_ticket || traffic.by_thread;
    return traffic.ordered <= 1 && traffic.communicating <= 1;
}

/* No thread waits for a peer, and no thread waits for a lock while it holds another. */
static bool tasks_are_plain(const struct program *p)
{
    int slots = p->plan->machine.sm_slots;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = plan_task(p->plan, 0, t);
        if (task->holds.count > 1 || task->work.kind == WORK_SEND || task->work.kind == WORK_RECV ||
            (slots > 0 && task->sm > slots) ||
            (task->work.kind == WORK_COLLECTIVE && p->comms[task->work.comm].count != p->ranks))
            return false;
    }
    return !p->plan->machine.first_use_blocks;
}

/* Clock: the place of every task in the enqueue order. */
static void find_places(const struct program *p, int *place)
{
    for (int k = 0; k < p->tasks; k++)
        place[p->order[0][k]] = k;
}

/* The least g with key(from, i) < key(to, i + g). */
static int key_gap(const struct program *p, const int *place, int from, int to)
{
    const struct task *tasks = all_tasks(p);
    return tasks[from].stage - tasks[to].stage + (place[from] >= place[to]);
}

/* Clock: are the dependences of each instance handed out before it? */
static bool dependences_come_first(const struct program *p, const int *place)
{
    for (int task = 0; task < p->tasks; task++)
        for (int k = 0; k < p->depends[task].count; k++) {
            struct edge edge = p->depends[task].items[k];
            if (edge.distance < key_gap(p, place, edge.task, task))
                return false;
        }
    return true;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void shorten(int *known, int length)
{
    *known = length < *known ? length : *known;
}

/* Clock: one thread pushes X(i) before Y(j) to their stream if its key is less. No edge has a negative
   length: a path must not lead through an iteration behind the end of the data. */
static void add_key_gaps(const struct program *p, const int *place, int *gap)
{
    const struct task *tasks = all_tasks(p);
    for (int x = 0; x < p->tasks; x++)
        for (int y = 0; y < p->tasks; y++) {
            int least = key_gap(p, place, x, y);
            if (tasks[x].group == tasks[y].group && tasks[x].stream == tasks[y].stream &&
                tasks[x].work.kind != WORK_HOST && tasks[y].work.kind != WORK_HOST)
                shorten(&gap[x * p->tasks + y], least > 0 ? least : 0);
        }
}

/* All shortest paths (Floyd, Warshall 1962); tasks x tasks, row = from. No cycle is shorter than 1:
   under the clock the length of an edge is at least the distance of the keys of its ends, under
   data-flow dependences within an iteration have no cycle. */
static int *shortest_gaps(const struct program *p, const int *place)
{
    int n = p->tasks;
    int *gap = malloc((size_t)n * (size_t)n * sizeof *gap);
    if (!gap)
        return NULL;
    int any = p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth : FAR;
    for (int i = 0; i < n * n; i++)
        gap[i] = i % n == i / n ? 1 : any;
    for (int task = 0; task < n; task++)
        for (int k = 0; k < p->depends[task].count; k++) {
            struct edge edge = p->depends[task].items[k];
            /* an elided wait is within one stream, which orders its tasks anyway */
            shorten(&gap[edge.task * n + task], edge.distance);
        }
    if (is_clock(p))
        add_key_gaps(p, place, gap);
    for (int via = 0; via < n; via++)
        for (int from = 0; from < n; from++)
            for (int to = 0; to < n; to++)
                shorten(&gap[from * n + to], gap[from * n + via] + gap[via * n + to]);
    return gap;
}

static bool touches(const struct index_list *list, int buffer)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == buffer)
            return true;
    return false;
}

static bool conflicts(const struct task *a, const struct task *b, int buffer)
{
    bool a_writes = touches(&a->writes, buffer), b_writes = touches(&b->writes, buffer);
    bool a_touches = a_writes || touches(&a->reads, buffer);
    bool b_touches = b_writes || touches(&b->reads, buffer);
    return (a_writes && b_touches) || (b_writes && a_touches);
}

/* Accesses of one stream are ordered; host work belongs to its thread instead. */
static bool same_place(const struct task *a, const struct task *b)
{
    bool a_host = a->work.kind == WORK_HOST, b_host = b->work.kind == WORK_HOST;
    if (a_host || b_host)
        return a_host && b_host && a->group == b->group;
    return a->stream == b->stream;
}

/* Host work is ordered behind device work only by the driver, which saw the device finish: a CPU signal
   means that work was submitted, not that it is done. */
static int ordering_gap(const struct program *p, const int *gap, int from, int to)
{
    const struct task *tasks = all_tasks(p);
    if (tasks[to].work.kind == WORK_HOST && tasks[from].work.kind != WORK_HOST)
        return p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth : FAR;
    return gap[from * p->tasks + to];
}

/* Iteration buffers: X(i) and Y(i) must be ordered. Shared ones: X(i) and Y(j) for all i and j,
   hence the two gaps together must cover every distance. */
static bool is_ordered(const struct program *p, const int *gap, int x, int y, int buffer)
{
    int there = ordering_gap(p, gap, x, y), back = ordering_gap(p, gap, y, x);
    if (p->plan->buffers[buffer].scope == SCOPE_ITERATION)
        return there <= 0 || back <= 0;
    return there + back <= 1;
}

static bool accesses_are_ordered(const struct program *p, const int *gap)
{
    const struct task *tasks = all_tasks(p);
    for (int buffer = 0; buffer < (int)p->plan->buffer_count; buffer++)
        for (int x = 0; x < p->tasks; x++)
            for (int y = x + 1; y < p->tasks; y++)
                if (conflicts(&tasks[x], &tasks[y], buffer) && !same_place(&tasks[x], &tasks[y]) &&
                    !is_ordered(p, gap, x, y, buffer))
                    return false;
    return true;
}

/* The properties that the theorem of life proves; races are not among them. */
static unsigned life(const struct program *p)
{
    unsigned proved = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_LIFETIME |
                      1u << PROPERTY_SLOT | 1u << PROPERTY_DRAIN;
    int64_t memory = p->plan->machine.memory_bytes;
    int64_t most = p->shared_bytes + p->depth * p->iteration_bytes;
    if (p->plan->pipeline.retire == RETIRE_DEVICE && (memory == 0 || most <= memory))
        proved |= 1u << PROPERTY_BOUND;
    return proved;
}

enum status structure_proves(const struct program *program, unsigned *proved, struct diag *diag)
{
    *proved = 0;
    if (program->tasks == 0 || !rules_are_plain(program) || !ranks_are_alike(program) ||
        !tasks_are_plain(program) || !traffic_is_plain(program))
        return STATUS_OK;
    int *place = malloc((size_t)program->tasks * sizeof *place);
    if (!place)
        return diag_no_memory(diag);
    find_places(program, place);
    if (is_clock(program) && !dependences_come_first(program, place)) {
        free(place);
        return STATUS_OK;
    }
    int *gap = shortest_gaps(program, place);
    free(place);
    if (!gap)
        return diag_no_memory(diag);
    *proved = life(program);
    if (accesses_are_ordered(program, gap))
        *proved |= 1u << PROPERTY_RACE;
    free(gap);
    return STATUS_OK;
}
