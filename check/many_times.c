/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_times.c - see many_times.h; the argument is in doc/checker.md.
 *
 *     level    -1      0  1  2  ... n-1     n
 *     thread   front   the iterations       behind
 *
 * The conditions: all threads repeat equally often, and what they do are pushes, records, waits and flags of an iteration. The records
 * of an event are on one stream. Members call a communicator equally often in each iteration, and in front. What two
 * threads use, they use in the order of levels.
 */
#include "many_times.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct times_flag {
    int level; /* of who sets it; -2: nobody yet */
    int *clock;
};

struct times_thread {
    const struct host_thread *of;
    int *clock; /* per thread: operations that are known to be done */
    size_t at;
    bool behind; /* without a repeat: it has awaited what comes behind repeats */
};

struct times {
    const struct plan *plan; /* with few iterations */
    struct arena *arena;
    struct times_thread *threads;
    struct times_flag *flags;
    size_t things;       /* of a rank: streams, events and communicators */
    int *uses;           /* per thing of each rank and thread: 1 + its last use; 0: none */
    int *levels;         /* likewise: the level of that */
    int *befores;        /* likewise: 1 + its last use at a lower level */
    int *counts;         /* per communicator, rank and peer, and whether in an iteration: calls */
    int *record_streams; /* per rank and event: 1 + the stream; 0: none */
    bool fits;
};

static bool times_is_plain(const struct host_op *op)
{
    static const enum op_kind kinds[] = {OP_HOST,   OP_COMPUTE, OP_LAUNCH,    OP_COPY,
                                         OP_GROUP,  OP_RECORD,  OP_WAIT,      OP_SYNC,
                                         OP_SIGNAL, OP_AWAIT,   OP_COLLECTIVE};
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        known |= op->kind == kinds[i];
    if (!known || op->has_branches || host_op_process_group(op) || host_op_is_external(op))
        return false;
    return op->kind == OP_LAUNCH                           ? !op->is_graph && op->body_count == 0
           : op->kind == OP_SIGNAL || op->kind == OP_AWAIT ? !op->flag_use.given
                                                           : true;
}

/* Of the thread's next operation. */
static int times_level(const struct times_thread *thread)
{
    const struct repeat *repeat = thread->of->repeat_count > 0 ? thread->of->repeats : NULL;
    if (!repeat)
        return thread->behind ? MANY_TIMES_LEAST : -1;
    if (thread->at < repeat->first)
        return -1;
    const size_t level = (thread->at - repeat->first) / repeat->length;
    return level < MANY_TIMES_LEAST ? (int)level : MANY_TIMES_LEAST;
}

/* ---- what the threads use -------------------------------------------------------------------------- */

/* The thread uses a thing of the rank: others that used it at lower levels must be known to be over. */
static void times_use(struct times *times, size_t thread, int rank, size_t thing)
{
    const size_t threads = times->plan->thread_count;
    const struct times_thread *own = &times->threads[thread];
    const size_t row = ((size_t)rank * times->things + thing) * threads;
    const int level = times_level(own);
    for (size_t t = 0; t < threads; t++) {
        const size_t of = row + t;
        const int before = times->levels[of] < level ? times->uses[of] : times->befores[of];
        /* Seen before, though at a higher level: the orders of two runs would differ. */
        const bool later = times->uses[of] > 0 && times->levels[of] > level;
        times->fits = times->fits && (t == thread || (!later && own->clock[t] >= before));
    }
    const size_t of = row + thread;
    if (times->levels[of] < level)
        times->befores[of] = times->uses[of];
    times->levels[of] = level;
    times->uses[of] = 1 + (int)own->at;
}

static void times_use_stream(struct times *times, size_t thread, int rank, int stream)
{
    if (stream >= 0)
        times_use(times, thread, rank, (size_t)stream);
}

static void times_use_event(struct times *times, size_t thread, int rank, const struct host_op *op)
{
    const struct plan *plan = times->plan;
    int *stream = &times->record_streams[(size_t)rank * plan->events.count + (size_t)op->object];
    if (op->kind == OP_RECORD) {
        times->fits = times->fits && (*stream == 0 || *stream == 1 + op->stream);
        *stream = 1 + op->stream;
    }
    times_use(times, thread, rank, plan->streams.count + (size_t)op->object);
}

/* A call: of a collective the peer is the rank itself. Sends count upwards, receives of the same channel downwards. */
static void times_count(struct times *times, int comm, int rank, int peer, bool inside, int by)
{
    const size_t ranks = (size_t)times->plan->ranks;
    times->counts[(((size_t)comm * ranks + (size_t)rank) * ranks + (size_t)peer) * 2 + inside] +=
        by;
}

static void times_call(struct times *times, size_t thread, const struct host_op *op, int rank)
{
    const struct plan *plan = times->plan;
    const struct times_thread *own = &times->threads[thread];
    const int level = times_level(own);
    const bool inside = level >= 0 && level < MANY_TIMES_LEAST;
    if (op->kind == OP_COLLECTIVE && level < MANY_TIMES_LEAST)
        times_count(times, op->comm, rank, rank, inside, 1);
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const struct p2p_part *part = &op->parts[i];
        const int comm = part->comm >= 0 ? part->comm : op->comm;
        const int of = p2p_part_rank(op, part, own->of->rank);
        times_use(times, thread, of, plan->streams.count + plan->events.count + (size_t)comm);
        times_use_stream(times, thread, of, part->stream >= 0 ? part->stream : op->stream);
        if (level == MANY_TIMES_LEAST)
            continue;
        if (part->is_collective)
            times_count(times, comm, of, of, inside, 1);
        else if (part->peer == of)
            times->fits = false;
        else
            times_count(times, comm, part->send ? of : part->peer, part->send ? part->peer : of,
                        inside, part->send ? 1 : -1);
    }
}

static void times_op(struct times *times, size_t thread, const struct host_op *op)
{
    const struct plan *plan = times->plan;
    const int home = times->threads[thread].of->rank, rank = host_op_rank(op, home);
    if (host_op_has_stream(op) || op->stream >= 0)
        times_use_stream(times, thread, rank, op->stream);
    if (host_op_syncs(op, SYNC_DEVICE))
        for (int s = 0; s < (int)plan->streams.count; s++)
            times_use_stream(times, thread, rank, s);
    if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0)
        times_use_event(times, thread, op->object_rank > 0 ? op->object_rank - 1 : rank, op);
    if (op->kind == OP_COLLECTIVE)
        times_use(times, thread, rank, plan->streams.count + plan->events.count + (size_t)op->comm);
    if (op_uses_comm(op->kind))
        times_call(times, thread, op, rank);
}

static bool times_has_rings(const struct plan *plan, const struct index_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (plan->buffers[list->items[i]].instances > 1)
            return true;
    return false;
}

/* False: it waits. */
static bool times_step(struct times *times, size_t thread)
{
    const struct plan *plan = times->plan;
    struct times_thread *own = &times->threads[thread];
    const struct host_op *op = &own->of->ops[own->at];
    const int level = times_level(own);
    struct times_flag *flag =
        op_operand(op->kind) == OPERAND_FLAG ? &times->flags[op->object] : NULL;
    if (op->kind == OP_AWAIT && flag->level == -2)
        return false;
    times->fits = times->fits && times_is_plain(op) && !times_has_rings(plan, host_op_reads(op)) &&
                  !times_has_rings(plan, host_op_writes(op));
    for (size_t i = 0; i < host_op_part_count(op); i++)
        times->fits = times->fits && !times_has_rings(plan, &op->parts[i].reads) &&
                      !times_has_rings(plan, &op->parts[i].writes);
    if (!times->fits)
        return true;
    own->clock[thread] = 1 + (int)own->at;
    if (op->kind == OP_AWAIT) {
        own->behind |= flag->level == MANY_TIMES_LEAST;
        times->fits = flag->level <= times_level(own);
        for (size_t t = 0; t < plan->thread_count; t++)
            if (own->clock[t] < flag->clock[t])
                own->clock[t] = flag->clock[t];
    } else if (op->kind == OP_SIGNAL) {
        times->fits = flag->level == -2;
        flag->level = level;
        flag->clock = ARENA_ARRAY(times->arena, plan->thread_count, int);
        if (flag->clock)
            memcpy(flag->clock, own->clock, plan->thread_count * sizeof *own->clock);
        times->fits = times->fits && flag->clock;
    } else
        times_op(times, thread, op);
    return true;
}

/* The threads without the device, in one of their orders: flags order them in all. */
static void times_run(struct times *times)
{
    for (bool more = true; more && times->fits;) {
        more = false;
        for (size_t t = 0; t < times->plan->thread_count; t++)
            while (times->fits && times->threads[t].at < times->threads[t].of->op_count &&
                   times_step(times, t)) {
                times->threads[t].at++;
                more = true;
            }
    }
    for (size_t t = 0; t < times->plan->thread_count; t++)
        times->fits = times->fits && times->threads[t].at == times->threads[t].of->op_count;
}

/* Members call equally often; a channel has a receive for each send. */
static bool times_calls_match(const struct times *times)
{
    const struct plan *plan = times->plan;
    const size_t ranks = (size_t)plan->ranks;
    for (size_t c = 0; c < plan->comm_count; c++)
        for (size_t i = 0; i < ranks * ranks * 2; i++) {
            const int *counts = &times->counts[c * ranks * ranks * 2];
            const size_t rank = i / 2 / ranks, peer = i / 2 % ranks, inside = i % 2;
            const struct comm *comm = &plan->comms[c];
            bool first = true;
            int members = 0;
            if (rank != peer && counts[i] != 0)
                return false;
            if (rank != 0 || peer != 0)
                continue;
            for (size_t m = 0; m < (comm->members ? comm->member_count : ranks); m++) {
                const size_t member = comm->members ? (size_t)comm->members[m] : m;
                const int calls = counts[(member * ranks + member) * 2 + inside];
                if (!first && calls != members)
                    return false;
                members = calls;
                first = false;
            }
        }
    return true;
}

/* ---- the plan itself ------------------------------------------------------------------------------------ */

static bool times_machine_fits(const struct plan *plan)
{
    const struct machine_spec *m = &plan->machine;
    bool fits = m->sm_slots == 0 && !m->share_device && m->hw_queues == 0 && m->launch_queue == 0 &&
                !m->first_use_blocks && !m->launch_order_implicit && !m->lazy_load &&
                !m->launch_blocking && !m->alloc_may_sync && !machine_has_memory(m) &&
                plan->form == FORM_THREADS && plan->graph_count == 0;
    const struct stream_spec *legacy = plan_legacy_stream(plan);
    for (int s = 0; fits && legacy && s < (int)plan->streams.count; s++) {
        const struct stream_spec *spec = plan_stream_spec(plan, s);
        fits = spec == legacy || (spec && !spec->blocking);
    }
    return fits;
}

/* The thread with MANY_TIMES_LEAST iterations. False: no memory. */
static bool times_cut_thread(struct arena *arena, struct host_thread *thread)
{
    if (thread->repeat_count == 0)
        return true;
    const struct repeat *old = &thread->repeats[0];
    struct repeat *repeat = ARENA_NEW(arena, struct repeat);
    const size_t length = old->length * MANY_TIMES_LEAST;
    const size_t behind = old->first + old->length * (size_t)old->times;
    const size_t rest = thread->op_count - behind;
    struct host_op *ops = ARENA_ARRAY(arena, old->first + length + rest + 1, struct host_op);
    if (!repeat || !ops)
        return false;
    memcpy(ops, thread->ops, (old->first + length) * sizeof *ops);
    memcpy(ops + old->first + length, thread->ops + behind, rest * sizeof *ops);
    *repeat = (struct repeat){old->first, old->length, MANY_TIMES_LEAST};
    thread->ops = ops;
    thread->op_count = old->first + length + rest;
    thread->repeats = repeat;
    return true;
}

static bool times_cut(const struct plan *plan, struct plan *out)
{
    out->threads = ARENA_ARRAY(&out->arena, plan->thread_count + 1, struct host_thread);
    for (size_t t = 0; out->threads && t < plan->thread_count; t++) {
        out->threads[t] = plan->threads[t];
        if (!times_cut_thread(&out->arena, &out->threads[t]))
            return false;
    }
    return out->threads != NULL;
}

/* All threads that repeat do so equally often. */
static bool times_repeats_fit(const struct plan *plan)
{
    const int most = plan_repeats(plan);
    for (size_t t = 0; t < plan->thread_count; t++) {
        const struct host_thread *thread = &plan->threads[t];
        if (thread->folded || thread->repeat_count > 1 ||
            (thread->repeat_count == 1 && thread->repeats[0].times != most))
            return false;
    }
    return most >= MANY_TIMES_LEAST;
}

static bool times_begin(struct times *times)
{
    const struct plan *plan = times->plan;
    const size_t ranks = (size_t)plan->ranks, threads = plan->thread_count;
    times->things = plan->streams.count + plan->events.count + plan->comm_count;
    const size_t rows = ranks * times->things * threads + 1;
    const size_t calls = plan->comm_count * ranks * ranks * 2 + 1;
    times->threads = ARENA_ARRAY(times->arena, threads + 1, struct times_thread);
    times->flags = ARENA_ARRAY(times->arena, plan->flags.count + 1, struct times_flag);
    times->uses = ARENA_ARRAY(times->arena, rows, int);
    times->levels = ARENA_ARRAY(times->arena, rows, int);
    times->befores = ARENA_ARRAY(times->arena, rows, int);
    times->counts = ARENA_ARRAY(times->arena, calls, int);
    times->record_streams = ARENA_ARRAY(times->arena, ranks * plan->events.count + 1, int);
    int *clocks = ARENA_ARRAY(times->arena, threads * threads + 1, int);
    if (!times->threads || !times->flags || !times->uses || !times->levels || !times->befores ||
        !times->counts || !times->record_streams || !clocks)
        return false;
    memset(times->uses, 0, rows * sizeof *times->uses);
    memset(times->befores, 0, rows * sizeof *times->befores);
    memset(times->counts, 0, calls * sizeof *times->counts);
    memset(times->record_streams, 0, ranks * plan->events.count * sizeof *times->record_streams);
    memset(clocks, 0, threads * threads * sizeof *clocks);
    for (size_t i = 0; i < rows; i++)
        times->levels[i] = -2;
    for (size_t f = 0; f < plan->flags.count; f++)
        times->flags[f] = (struct times_flag){-2, NULL};
    for (size_t t = 0; t < threads; t++)
        times->threads[t] =
            (struct times_thread){.of = &plan->threads[t], .clock = clocks + t * threads};
    return true;
}

bool many_times_plan(const struct plan *plan, struct plan *out, bool *no_memory)
{
    *no_memory = false;
    if (!times_machine_fits(plan) || !times_repeats_fit(plan))
        return false;
    struct arena arena;
    struct times times = {.plan = out, .arena = &arena, .fits = true};
    *out = *plan;
    arena_init(&out->arena, 0);
    arena_init(&arena, 0);
    *no_memory = !times_cut(plan, out) || !times_begin(&times);
    if (!*no_memory)
        times_run(&times);
    const bool fits = !*no_memory && times.fits && times_calls_match(&times);
    *no_memory |= arena.failed;
    arena_fini(&arena);
    if (!fits)
        arena_fini(&out->arena);
    return fits;
}
