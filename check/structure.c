/*
 * structure.c - see structure.h; the proofs are in doc/checker.md, "Data-flow by structure".
 *
 * Lemma (order).    Every task is fired, submitted and starts in iteration order.
 * Theorem (life).   With at most one ordered task and one task that communicates, no locks, no host
 *                   synchronisation and no device limits, nobody blocks for ever and ranks agree.
 * Theorem (order).  X(i) happens before Y(i + g) whenever g is at least the length of a shortest
 * path X -> Y in the graph of on -> task of length d   for every dependence of distance d, T -> T
 * of length 1       by the lemma, any -> any of length D   when retiring waits for the device (D =
 * max_depth). Accesses on one stream are ordered anyway.
 */
#include "check/structure.h"

#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 20 };

/* ---- life ------------------------------------------------------------------------------------ */

static bool machine_is_plain(const struct machine_spec *machine)
{
    return machine->sm_slots == 0 && machine->hw_queues == 0 && !machine->first_use_blocks &&
           !machine->launch_order_implicit && !machine->lazy_load && machine->launch_queue == 0;
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

/* Ranks may differ in how long things take, not in what they do. */
static bool ranks_are_alike(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    for (size_t i = 0; i < pipeline->override_count; i++) {
        const struct rank_override *override = &pipeline->overrides[i];
        for (int t = 0; override->tasks && t < p->tasks; t++) {
            const struct task *a = &pipeline->tasks[t], *b = &override->tasks[t];
            if (a->stream != b->stream || a->group != b->group ||
                a->globally_ordered != b->globally_ordered || a->work.kind != b->work.kind ||
                a->work.comm != b->work.comm || a->work.pageable != b->work.pageable ||
                a->host_sync != b->host_sync || !same_list(&a->holds, &b->holds) ||
                !same_list(&a->reads, &b->reads) || !same_list(&a->writes, &b->writes))
                return false;
        }
    }
    return true;
}

/* Tasks that hold nothing another thread may want; at most one of them ordered, at most one that
   communicates, and that by a collective of all ranks. */
static bool tasks_are_plain(const struct program *p)
{
    int ordered = 0, communicating = 0;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = &p->plan->pipeline.tasks[t];
        ordered += task->globally_ordered;
        if (task->holds.count || task->host_sync != HOST_SYNC_NONE ||
            task->work.kind == WORK_SEND || task->work.kind == WORK_RECV ||
            (task->work.kind == WORK_COPY && task->work.pageable))
            return false;
        if (task->work.kind == WORK_COLLECTIVE) {
            communicating++;
            if (p->comms[task->work.comm].count != p->ranks)
                return false;
        }
    }
    return ordered <= 1 && communicating <= 1;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* All shortest paths (Floyd, Warshall 1962); tasks x tasks, row = from. */
static int *shortest_gaps(const struct program *p)
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
            int *known = &gap[edge.task * n + task];
            /* an elided wait orders nothing across streams, and within one it is not needed */
            *known = edge.distance < *known ? edge.distance : *known;
        }
    for (int via = 0; via < n; via++)
        for (int from = 0; from < n; from++)
            for (int to = 0; to < n; to++) {
                int detour = gap[from * n + via] + gap[via * n + to];
                if (detour < gap[from * n + to])
                    gap[from * n + to] = detour;
            }
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

/* Accesses of one stream are ordered; host work is not in a stream, but in its thread. */
static bool same_place(const struct task *a, const struct task *b)
{
    bool a_host = a->work.kind == WORK_HOST, b_host = b->work.kind == WORK_HOST;
    if (a_host || b_host)
        return a_host && b_host && a->group == b->group;
    return a->stream == b->stream;
}

/* Host work is ordered behind device work only by the driver, which saw the device finish: a CPU signal
   tells that work was submitted, not that it is done. */
static int ordering_gap(const struct program *p, const int *gap, int from, int to)
{
    const struct task *tasks = p->plan->pipeline.tasks;
    if (tasks[to].work.kind == WORK_HOST && tasks[from].work.kind != WORK_HOST)
        return p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth : FAR;
    return gap[from * p->tasks + to];
}

/* Iteration buffers: X(i) and Y(i) must be ordered. Shared ones: X(i) and Y(j) for all i and j,
   which is so when the two gaps leave no distance between them. */
static bool is_ordered(const struct program *p, const int *gap, int x, int y, int buffer)
{
    int there = ordering_gap(p, gap, x, y), back = ordering_gap(p, gap, y, x);
    if (p->plan->buffers[buffer].scope == SCOPE_ITERATION)
        return there <= 0 || back <= 0;
    return there + back <= 1;
}

static bool accesses_are_ordered(const struct program *p, const int *gap)
{
    const struct task *tasks = p->plan->pipeline.tasks;
    for (int buffer = 0; buffer < (int)p->plan->buffer_count; buffer++)
        for (int x = 0; x < p->tasks; x++)
            for (int y = x + 1; y < p->tasks; y++)
                if (conflicts(&tasks[x], &tasks[y], buffer) && !same_place(&tasks[x], &tasks[y]) &&
                    !is_ordered(p, gap, x, y, buffer))
                    return false;
    return true;
}

enum status structure_proves(const struct program *program, unsigned *proved, struct diag *diag)
{
    *proved = 0;
    if (program->driver != DRIVER_DATAFLOW || !machine_is_plain(&program->plan->machine) ||
        !rules_are_plain(program) || !tasks_are_plain(program) || !ranks_are_alike(program))
        return STATUS_OK;
    const struct pipeline *pipeline = &program->plan->pipeline;
    *proved = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_LIFETIME |
              1u << PROPERTY_SLOT | 1u << PROPERTY_DRAIN;
    int64_t memory = program->plan->machine.memory_bytes;
    int64_t most = program->shared_bytes + program->depth * program->iteration_bytes;
    if (pipeline->retire == RETIRE_DEVICE && (memory == 0 || most <= memory))
        *proved |= 1u << PROPERTY_BOUND;
    int *gap = shortest_gaps(program);
    if (!gap)
        return diag_no_memory(diag);
    if (accesses_are_ordered(program, gap))
        *proved |= 1u << PROPERTY_RACE;
    free(gap);
    return STATUS_OK;
}
