/* SPDX-License-Identifier: Apache-2.0 */
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
 *                       X -> Y       by way of the driver, if it knows of X when it has retired its iteration:
 *                                    of length depth; clock: depth less the stage of Y
 *                       X -> Y       clock: on one thread and one stream, from their keys
 *                   Accesses on one stream are ordered anyway.
 */
#include "structure.h"

#include <stdlib.h>
#include <string.h>

#include "gaps.h"
#include "traffic.h"
#include "base/sort.h"

enum { LOOK_EVERY = 64 };

/* ---- life ------------------------------------------------------------------------------------ */

static bool structure_own_is_clock(const struct program *p)
{
    return p->driver == DRIVER_CLOCK;
}

static bool structure_rules_are_plain(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    return p->slots_safe && pipeline->forget_done == FORGET_NEVER &&
           pipeline->ticket_at != TICKET_AT_FIRE && pipeline->slot_reset == SLOT_RESET_ADMIT &&
           pipeline->retired_dep == RETIRED_DEP_WAIT && !pipeline->batches &&
           !plan_legacy_stream(p->plan) && !p->plan->machine.launch_lock &&
           !p->plan->machine.launch_blocking && !p->plan->machine.share_device;
}

/* The tasks of rank 0, which stand for those of all ranks. */
static const struct task *all_tasks(const struct program *p)
{
    return plan_task(p->plan, 0, 0);
}

/* Ranks may differ in durations and communicators only. */
static bool structure_ranks_are_alike(const struct program *p)
{
    for (int rank = 1; rank < p->ranks; rank++) {
        for (int t = 0; t < p->tasks; t++)
            if (!plan_same_task(plan_task(p->plan, rank, t), plan_task(p->plan, 0, t)))
                return false;
        if (memcmp(p->order[rank], p->order[0], (size_t)p->tasks * sizeof **p->order) != 0)
            return false;
    }
    return true;
}

/* No thread waits for a peer, and no thread waits for a lock while it holds another. */
static bool structure_tasks_are_plain(const struct program *p)
{
    int slots = p->plan->machine.sm_slots;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = plan_task(p->plan, 0, t);
        if (task->holds.count > 1 || task->work.kind == WORK_SEND || task->work.kind == WORK_RECV ||
            (slots > 0 && task->sm > slots))
            return false;
    }
    return !p->plan->machine.first_use_blocks;
}

/* Clock: the place of every task in the enqueue order. */
static void structure_find_places(const struct program *p, int *place)
{
    for (int k = 0; k < p->tasks; k++)
        place[p->order[0][k]] = k;
}

/* Under the clock, true if the dependences of each instance are handed out before it. */
static bool dependences_come_first(const struct program *p, const int *place)
{
    for (int task = 0; task < p->tasks; task++)
        for (int k = 0; k < p->depends[task].count; k++) {
            struct edge edge = p->depends[task].items[k];
            if (edge.distance < gaps_of_keys(p, place, edge.task, task))
                return false;
        }
    return true;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* A task that touches a buffer. */
struct touch {
    int buffer, task;
    bool writes;
};

static int compare_touches(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;
    return compare_then(compare_int(x->buffer, y->buffer), compare_int(x->task, y->task));
}

static size_t list_touches(const struct task *tasks, int count, struct touch *touches)
{
    size_t listed = 0;
    for (int t = 0; t < count; t++)
        for (int writes = 0; writes < 2; writes++) {
            const struct index_list *list = writes ? &tasks[t].writes : &tasks[t].reads;
            for (size_t i = 0; i < list->count; i++, listed++)
                if (touches)
                    touches[listed] = (struct touch){list->items[i], t, writes};
        }
    return listed;
}

/* Accesses of one stream are ordered; host work belongs to its thread instead. */
static bool structure_same_place(const struct task *a, const struct task *b)
{
    bool a_host = a->work.kind == WORK_HOST, b_host = b->work.kind == WORK_HOST;
    if (a_host || b_host)
        return a_host && b_host && a->group == b->group;
    return a->stream == b->stream;
}

/* Host work is ordered behind device work only by the driver, which saw the device finish: a CPU signal
   means that work was submitted, not that it is done. Otherwise a bound that is at most `enough` will do. */
static enum status ordering_gap(struct gaps *gaps, int from, int to, int enough, int *out)
{
    const struct task *tasks = all_tasks(gaps->program);
    *out = GAP_FAR;
    if (tasks[to].work.kind != WORK_HOST || tasks[from].work.kind == WORK_HOST)
        return gaps_between(gaps, from, to, enough, out);
    return gaps_driver_sees(gaps, from) ? gaps_by_driver(gaps, to, out) : STATUS_OK;
}

#define RACE   (1u << PROPERTY_RACE)
#define VALUE  (1u << PROPERTY_VALUE)
#define SERIAL (1u << PROPERTY_SERIAL)

/* The touches of one buffer. */
struct touches {
    const struct buffer *buffer;
    const struct touch *items;
    size_t count;
};

/* Iteration buffers: X(i) and Y(i) must be ordered. Shared ones: X(i) and Y(j) for all i and j that use one instance,
   hence the two gaps together must cover every distance of such. */
static bool pair_is_ordered(const struct gaps *gaps, int period, int a, int b, int there, int back)
{
    const struct task *tasks = all_tasks(gaps->program);
    if (structure_same_place(&tasks[a], &tasks[b]))
        return true;
    return buffer_gaps_order(period, there, back);
}

/* The most iterations by which reads by `reader` may lag. One writer only: then a read sees what it has
   left some iterations ago. */
static int allowed_lag(const struct touches *touches, int reader)
{
    int writer = -1;
    for (size_t i = 0; touches->buffer->staleness > 0 && i < touches->count; i++) {
        if (!touches->items[i].writes)
            continue;
        if (touches->items[i].task == reader || (writer >= 0 && touches->items[i].task != writer))
            return 0;
        writer = touches->items[i].task;
    }
    return touches->buffer->staleness;
}

/* True if the accesses of `a` and the writes of `b` are in the order of a serial run. `there` is the gap from a to b,
   `back` that from b to a. Let b be before a in an iteration of a serial run (else: one later). Then b(i) comes before
   a(i), or at least before a(i + lag), and a(i) before b(i + 1): where there are several instances, before the next
   that uses the same. */
static bool pair_is_serial(const struct gaps *gaps, const struct touches *touches,
                           const struct touch *a, const struct touch *b, int there, int back)
{
    const int *place = gaps->program->serial_place;
    int later = place[b->task] < place[a->task];
    int lag = a->writes ? 0 : allowed_lag(touches, a->task);
    int period = buffer_period(touches->buffer);
    if (period == 0)
        return later ? back <= 0 : there <= 0;
    return there <= later * period && back <= (1 - later + lag) * period;
}

/* The gap in iterations after which accesses by `to` are behind those by `from`, or a bound of it that is at most `enough`. On one
   thread and one stream the order of the queue is that of the accesses. */
static enum status access_gap(struct gaps *gaps, int from, int to, int enough, int *out,
                              struct diag *diag)
{
    const struct task *tasks = all_tasks(gaps->program);
    if (ordering_gap(gaps, from, to, enough, out) != STATUS_OK)
        return diag_no_memory(diag);
    if (*out <= max_int(enough, 0) || !structure_same_place(&tasks[from], &tasks[to]))
        return STATUS_OK;
    int queued;
    enum status status = gaps_in_queue(gaps, from, to, &queued, diag);
    if (status == STATUS_OK && queued < *out)
        *out = queued;
    return status;
}

/* ---- neighbours in a serial run ------------------------------------------------------------------

   Most buffers are accessed in the order of a serial run. Then it is enough to look at neighbours: of each write the one
   before it, and the reads between. Order is transitive, so it holds for all others, too, in time linear in the accesses
   where dependences show it. */

/* Find out whether an access (from, i) is before (to, i + most). */
static enum status is_before(struct gaps *gaps, int from, int to, int most, bool *before,
                             struct diag *diag)
{
    const struct task *tasks = all_tasks(gaps->program);
    bool by_driver = tasks[to].work.kind == WORK_HOST && tasks[from].work.kind != WORK_HOST;
    int gap;
    *before =
        from == to || (!by_driver && gaps_at_once(gaps->program, gaps->place, from, to) <= most);
    if (*before)
        return STATUS_OK;
    enum status status = access_gap(gaps, from, to, most, &gap, diag);
    *before = status == STATUS_OK && gap <= most;
    return status;
}

/* The tasks that touch a buffer, each once, in the order of a serial run. */
struct in_turn {
    int place, task;
    bool writes;
};

static int compare_turns(const void *a, const void *b)
{
    const struct in_turn *x = a, *y = b;
    return compare_int(x->place, y->place);
}

static size_t structure_list_turns(const struct program *p, const struct touches *touches,
                                   struct in_turn *turns)
{
    size_t count = 0;
    for (size_t i = 0; i < touches->count; i++) {
        const struct touch *touch = &touches->items[i];
        if (count && turns[count - 1].task == touch->task)
            turns[count - 1].writes |= touch->writes;
        else
            turns[count++] =
                (struct in_turn){p->serial_place[touch->task], touch->task, touch->writes};
    }
    SORT(turns, count, compare_turns);
    return count;
}

/* Turn by turn: behind the last write, and a write also behind the reads since. A shared buffer has a second round, a period
   later, up to the first write. */
static enum status judge_turns(struct gaps *gaps, struct search_watch *watch,
                               const struct in_turn *turns, size_t count, int period, bool *serial,
                               struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t writer = SIZE_MAX, since = 0; /* the last write, and the first access behind it */
    *serial = true;
    for (size_t k = 0; k < (period ? 2 * count : count) && *serial && !status; k++) {
        const struct in_turn *turn = &turns[k % count];
        if (k % LOOK_EVERY == LOOK_EVERY - 1 && watch_own_watch_look(watch))
            *serial = false; /* nor do the pairs get far */
        for (size_t r = writer == SIZE_MAX ? since : writer;
             r < (turn->writes         ? k
                  : writer == SIZE_MAX ? since
                                       : writer + 1) &&
             *serial && !status;
             r++)
            status = is_before(gaps, turns[r % count].task, turn->task,
                               ((int)(k / count) - (int)(r / count)) * period, serial, diag);
        if (turn->writes && k >= count)
            break; /* from here on all is as in the first round */
        if (turn->writes)
            writer = k;
    }
    return status;
}

/* Find out whether all accesses are in the order of a serial run. If so no two race. False also where a search must
   tell. */
static enum status judge_neighbours(struct gaps *gaps, struct search_watch *watch,
                                    const struct touches *touches, bool *serial, struct diag *diag)
{
    *serial = false;
    if (touches->buffer->staleness > 0)
        return STATUS_OK;
    struct in_turn *turns = malloc(touches->count * sizeof *turns);
    if (!turns)
        return diag_no_memory(diag);
    size_t count = structure_list_turns(gaps->program, touches, turns);
    enum status status =
        judge_turns(gaps, watch, turns, count, buffer_period(touches->buffer), serial, diag);
    free(turns);
    return status;
}

/* Two tasks that touch one buffer, at least one of them with a write. */
static enum status judge_pair(struct gaps *gaps, const struct touches *touches,
                              const struct touch *a, const struct touch *b, unsigned *proved,
                              struct diag *diag)
{
    int there, back;
    enum status status = access_gap(gaps, a->task, b->task, 0, &there, diag);
    if (status == STATUS_OK)
        status = access_gap(gaps, b->task, a->task, 0, &back, diag);
    if (status != STATUS_OK)
        return status;
    if (!pair_is_ordered(gaps, buffer_period(touches->buffer), a->task, b->task, there, back))
        *proved &= ~RACE;
    if (b->writes ? !pair_is_serial(gaps, touches, a, b, there, back)
                  : !pair_is_serial(gaps, touches, b, a, back, there))
        *proved &= ~SERIAL;
    return STATUS_OK;
}

static enum status judge_pairs(struct gaps *gaps, struct search_watch *watch,
                               const struct touches *touches, unsigned *proved, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < touches->count && !status && *proved & (RACE | SERIAL); i++) {
        if (i % LOOK_EVERY == LOOK_EVERY - 1 && watch_own_watch_look(watch))
            *proved = 0;
        for (size_t k = i + 1; k < touches->count && !status; k++) {
            const struct touch *a = &touches->items[i], *b = &touches->items[k];
            if (a->task != b->task && (a->writes || b->writes))
                status = judge_pair(gaps, touches, a, b, proved, diag);
        }
    }
    return status;
}

/* Find out whether there is a writer W with W(i) before the read (i) for all i. */
static enum status find_writer(struct gaps *gaps, const struct touches *touches, int reader,
                               bool *found, struct diag *diag)
{
    *found = false;
    for (size_t i = 0; i < touches->count && !*found; i++) {
        int writer = touches->items[i].task;
        if (!touches->items[i].writes || writer == reader)
            continue;
        enum status status = is_before(gaps, writer, reader, 0, found, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status judge_reads(struct gaps *gaps, const struct touches *touches, unsigned *proved,
                               struct diag *diag)
{
    enum status status = STATUS_OK;
    bool found = gaps->program->buffers[touches->items->buffer].initialised;
    if (found)
        return STATUS_OK;
    for (size_t i = 0; i < touches->count && !status && *proved & VALUE; i++) {
        if (touches->items[i].writes)
            continue;
        status = find_writer(gaps, touches, touches->items[i].task, &found, diag);
        if (!found)
            *proved &= ~VALUE;
    }
    return status;
}

static enum status judge_buffers(struct gaps *gaps, struct search_watch *watch,
                                 struct touch *touches, size_t count, unsigned *proved,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;
    SORT(touches, count, compare_touches);
    for (size_t first = 0, end; first < count && !status && *proved; first = end) {
        for (end = first; end < count && touches[end].buffer == touches[first].buffer;)
            end++;
        const struct touches one = {&gaps->program->plan->buffers[touches[first].buffer],
                                    touches + first, end - first};
        bool serial = false;
        if (*proved & SERIAL)
            status = judge_neighbours(gaps, watch, &one, &serial, diag);
        if (!status && !serial)
            status = judge_pairs(gaps, watch, &one, proved, diag);
        if (!status)
            status = judge_reads(gaps, &one, proved, diag);
    }
    return status;
}

/* Of the properties of accesses those that hold. */
static enum status accesses_prove(const struct program *p, const int *place,
                                  struct search_watch *watch, unsigned *proved, struct diag *diag)
{
    size_t count = list_touches(all_tasks(p), p->tasks, NULL);
    *proved = RACE | VALUE | SERIAL;
    if (count == 0)
        return STATUS_OK;
    struct touch *touches = malloc(count * sizeof *touches);
    struct gaps gaps;
    bool opened = gaps_open(&gaps, p, place, GAPS_OF_WORK);
    enum status status = touches && opened ? STATUS_OK : diag_no_memory(diag);
    if (!status) {
        list_touches(all_tasks(p), p->tasks, touches);
        status = judge_buffers(&gaps, watch, touches, count, proved, diag);
    }
    gaps_close(&gaps);
    free(touches);
    return status;
}

/* The properties that the theorem of life proves; races are not among them. */
static unsigned life(const struct program *p)
{
    unsigned proved = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_LIFETIME |
                      1u << PROPERTY_SLOT | 1u << PROPERTY_DRAIN;
    int64_t memory = machine_same_memory(&p->plan->machine);
    int64_t bytes = p->shared_bytes + p->most_in_flight * p->iteration_bytes;
    int allowed = p->plan->pipeline.max_in_flight;
    if ((memory == 0 || bytes <= memory) && (allowed == 0 || p->most_in_flight <= allowed))
        proved |= 1u << PROPERTY_BOUND;
    return proved;
}

enum status structure_proves(const struct program *program, struct search_watch *watch,
                             unsigned *proved, struct diag *diag)
{
    *proved = 0;
    if (program->tasks == 0 || !structure_rules_are_plain(program) ||
        !structure_ranks_are_alike(program) || !structure_tasks_are_plain(program))
        return STATUS_OK;
    bool plain;
    enum status status = traffic_is_plain(program, watch, &plain, diag);
    if (status != STATUS_OK || !plain)
        return status;
    int *place = malloc((size_t)program->tasks * sizeof *place);
    if (!place)
        return diag_no_memory(diag);
    structure_find_places(program, place);
    if (!structure_own_is_clock(program) || dependences_come_first(program, place)) {
        unsigned orders;
        status = accesses_prove(program, place, watch, &orders, diag);
        if (!status)
            *proved = life(program) | orders;
    }
    free(place);
    return status;
}
