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

#include <string.h>

#include "base/array.h"
#include "base/table.h"

/* Numbers in all clocks: 64 MiB. With more the plan is verified for its own number of iterations. */
enum { MOST_CLOCKS = 1 << 24, NOBODY = -2 };

struct times_flag {
    int level; /* of who sets it; NOBODY: nobody yet */
    int *clock;
    size_t waiting; /* 1 + a thread that awaits it; 0: none */
    size_t user;    /* 1 + a thread that uses it */
};

/* Threads that flags connect, directly or through others, are a team: others know nothing of each other. */
struct times_thread {
    const struct host_thread *of;
    int *clock; /* per thread of the team: operations that are known to be done */
    size_t team, team_size, place;
    size_t at;
    size_t next; /* 1 + the next one that awaits the same flag, or that may go on */
    bool behind; /* without a repeat: it has awaited what comes behind repeats */
};

/* A stream, an event or a communicator of a rank. */
struct times_thing {
    int rank;
    size_t number;
    size_t first;      /* 1 + its first use */
    int record_stream; /* of an event: 1 + the stream; 0: none */
};

/* Of a thing by one thread. */
struct times_use {
    size_t thread, next; /* 1 + the next use of the thing */
    int last, level;     /* 1 + the last operation, and its level */
    int before;          /* 1 + the last operation at a lower level; 0: none */
};

/* Calls of a communicator: of collectives the peer is the rank itself. */
struct times_channel {
    int comm, rank, peer, inside; /* `inside`: in an iteration */
    int calls;
};

struct times {
    const struct plan *plan; /* with few iterations */
    struct arena *arena;
    struct times_thread *threads;
    struct times_flag *flags;
    struct table things_found, channels_found;
    struct times_thing *things;
    struct times_use *uses;
    struct times_channel *channels;
    size_t thing_count, thing_cap, use_count, use_cap, channel_count, channel_cap;
    size_t ready; /* 1 + a thread that may go on */
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

static struct times_thing *times_thing_of(struct times *times, int rank, size_t number)
{
    const uint64_t hash = table_hash_number((uint64_t)rank << 32 ^ number);
    const uint32_t found =
        TABLE_FIND(&times->things_found, hash, i,
                   times->things[i].rank == rank && times->things[i].number == number);
    if (found != TABLE_NONE)
        return &times->things[found];
    if (!ARENA_GROW(times->arena, times->things, times->thing_count, times->thing_cap) ||
        !table_add_in(&times->things_found, times->arena, hash, times->thing_count))
        return NULL;
    times->things[times->thing_count] = (struct times_thing){.rank = rank, .number = number};
    return &times->things[times->thing_count++];
}

/* Operations of another thread that this one knows to be done. */
static int times_knows(const struct times *times, const struct times_thread *own, size_t thread)
{
    const struct times_thread *other = &times->threads[thread];
    return other->team == own->team ? own->clock[other->place] : 0;
}

/* The thread uses a thing: others that used it at lower levels must be known to be over. */
static void times_use(struct times *times, size_t thread, struct times_thing *thing)
{
    const struct times_thread *own = &times->threads[thread];
    const int level = times_level(own);
    struct times_use *mine = NULL;
    for (size_t i = thing ? thing->first : 0; i; i = times->uses[i - 1].next) {
        struct times_use *use = &times->uses[i - 1];
        if (use->thread == thread) {
            mine = use;
            continue;
        }
        /* Seen before, though at a higher level: the orders of two runs would differ. */
        const int before = use->level < level ? use->last : use->before;
        times->fits =
            times->fits && use->level <= level && times_knows(times, own, use->thread) >= before;
    }
    if (!mine) {
        times->fits = times->fits && thing &&
                      ARENA_GROW(times->arena, times->uses, times->use_count, times->use_cap);
        if (!times->fits)
            return;
        mine = &times->uses[times->use_count++];
        *mine = (struct times_use){.thread = thread, .next = thing->first, .level = NOBODY};
        thing->first = times->use_count;
    }
    if (mine->level < level)
        mine->before = mine->last;
    mine->level = level;
    mine->last = 1 + (int)own->at;
}

static struct times_thing *times_thing_of_comm(struct times *times, int rank, int comm)
{
    const struct plan *plan = times->plan;
    return times_thing_of(times, rank, plan->streams.count + plan->events.count + (size_t)comm);
}

static void times_use_stream(struct times *times, size_t thread, int rank, int stream)
{
    if (stream >= 0)
        times_use(times, thread, times_thing_of(times, rank, (size_t)stream));
}

static void times_use_event(struct times *times, size_t thread, int rank, const struct host_op *op)
{
    const struct plan *plan = times->plan;
    struct times_thing *event =
        times_thing_of(times, rank, plan->streams.count + (size_t)op->object);
    if (event && op->kind == OP_RECORD) {
        times->fits =
            times->fits && (event->record_stream == 0 || event->record_stream == 1 + op->stream);
        event->record_stream = 1 + op->stream;
    }
    times_use(times, thread, event);
}

static struct times_channel *times_channel_of(struct times *times, int comm, int rank, int peer,
                                              bool inside, bool makes)
{
    const int key[4] = {comm, rank, peer, inside};
    const uint64_t hash = hash_bytes(key, sizeof key);
    const uint32_t found =
        TABLE_FIND(&times->channels_found, hash, i,
                   times->channels[i].comm == comm && times->channels[i].rank == rank &&
                       times->channels[i].peer == peer && times->channels[i].inside == (int)inside);
    if (found != TABLE_NONE)
        return &times->channels[found];
    if (!makes ||
        !ARENA_GROW(times->arena, times->channels, times->channel_count, times->channel_cap) ||
        !table_add_in(&times->channels_found, times->arena, hash, times->channel_count))
        return NULL;
    times->channels[times->channel_count] = (struct times_channel){comm, rank, peer, inside, 0};
    return &times->channels[times->channel_count++];
}

/* Sends count upwards, receives of the same channel downwards. */
static void times_count(struct times *times, int comm, int rank, int peer, bool inside, int by)
{
    struct times_channel *channel = times_channel_of(times, comm, rank, peer, inside, true);
    times->fits = times->fits && channel;
    if (channel)
        channel->calls += by;
}

static void times_call(struct times *times, size_t thread, const struct host_op *op, int rank)
{
    const struct times_thread *own = &times->threads[thread];
    const int level = times_level(own);
    const bool inside = level >= 0 && level < MANY_TIMES_LEAST;
    if (op->kind == OP_COLLECTIVE && level < MANY_TIMES_LEAST)
        times_count(times, op->comm, rank, rank, inside, 1);
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const struct p2p_part *part = &op->parts[i];
        const int comm = part->comm >= 0 ? part->comm : op->comm;
        const int of = p2p_part_rank(op, part, own->of->rank);
        times_use(times, thread, times_thing_of_comm(times, of, comm));
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
        times_use(times, thread, times_thing_of_comm(times, rank, op->comm));
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
    if (op->kind == OP_AWAIT && flag->level == NOBODY) {
        own->next = flag->waiting;
        flag->waiting = 1 + thread;
        return false;
    }
    times->fits = times->fits && times_is_plain(op) && !times_has_rings(plan, host_op_reads(op)) &&
                  !times_has_rings(plan, host_op_writes(op));
    for (size_t i = 0; i < host_op_part_count(op); i++)
        times->fits = times->fits && !times_has_rings(plan, &op->parts[i].reads) &&
                      !times_has_rings(plan, &op->parts[i].writes);
    if (!times->fits)
        return true;
    own->clock[own->place] = 1 + (int)own->at;
    if (op->kind == OP_AWAIT) {
        own->behind |= flag->level == MANY_TIMES_LEAST;
        times->fits = flag->level <= times_level(own);
        for (size_t t = 0; t < own->team_size; t++)
            if (own->clock[t] < flag->clock[t])
                own->clock[t] = flag->clock[t];
    } else if (op->kind == OP_SIGNAL) {
        times->fits = flag->level == NOBODY;
        flag->level = level;
        flag->clock = ARENA_ARRAY(times->arena, own->team_size, int);
        if (flag->clock)
            memcpy(flag->clock, own->clock, own->team_size * sizeof *own->clock);
        times->fits = times->fits && flag->clock;
        for (size_t t; (t = flag->waiting) > 0; times->ready = t) {
            flag->waiting = times->threads[t - 1].next;
            times->threads[t - 1].next = times->ready;
        }
    } else
        times_op(times, thread, op);
    return true;
}

/* The threads without the device, in one of their orders: flags order them in all. */
static void times_run(struct times *times)
{
    while (times->ready > 0 && times->fits) {
        const size_t t = times->ready - 1;
        struct times_thread *own = &times->threads[t];
        times->ready = own->next;
        while (times->fits && own->at < own->of->op_count && times_step(times, t))
            own->at++;
    }
    for (size_t t = 0; t < times->plan->thread_count; t++)
        times->fits = times->fits && times->threads[t].at == times->threads[t].of->op_count;
}

/* Members call equally often; a channel has a receive for each send. */
static bool times_calls_match(struct times *times)
{
    const struct plan *plan = times->plan;
    for (size_t i = 0; i < times->channel_count; i++)
        if (times->channels[i].rank != times->channels[i].peer && times->channels[i].calls != 0)
            return false;
    for (size_t c = 0; c < plan->comm_count * 2; c++) {
        const struct comm *comm = &plan->comms[c / 2];
        const size_t members = comm->members ? comm->member_count : (size_t)plan->ranks;
        int first = 0;
        for (size_t m = 0; m < members; m++) {
            const int rank = comm->members ? comm->members[m] : (int)m;
            const struct times_channel *own =
                times_channel_of(times, (int)(c / 2), rank, rank, c % 2, false);
            const int calls = own ? own->calls : 0;
            if (m > 0 && calls != first)
                return false;
            first = calls;
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

/* The thread that stands for the team of this one. */
static size_t times_team(struct times_thread *threads, size_t thread)
{
    while (threads[thread].team != thread)
        thread = threads[thread].team = threads[threads[thread].team].team;
    return thread;
}

/* Threads that use one flag are of one team. */
static void times_find_teams(struct times *times)
{
    const size_t count = times->plan->thread_count;
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < times->threads[t].of->op_count; i++) {
            const struct host_op *op = &times->threads[t].of->ops[i];
            if (op_operand(op->kind) != OPERAND_FLAG || op->object < 0)
                continue;
            struct times_flag *flag = &times->flags[op->object];
            if (flag->user == 0)
                flag->user = 1 + t;
            times->threads[times_team(times->threads, t)].team =
                times_team(times->threads, flag->user - 1);
        }
    for (size_t t = 0; t < count; t++)
        times->threads[t].place = times->threads[times_team(times->threads, t)].team_size++;
    for (size_t t = 0; t < count; t++) {
        struct times_thread *own = &times->threads[t];
        own->team = times_team(times->threads, t);
        own->team_size = times->threads[own->team].team_size;
    }
}

/* Each thread of a team has a clock, and so has each flag that it sets. */
static bool times_make_clocks(struct times *times)
{
    const size_t count = times->plan->thread_count;
    size_t numbers = 0, next = 0;
    for (size_t t = 0; t < count; t++)
        numbers += times->threads[t].team_size;
    for (size_t f = 0; f < times->plan->flags.count; f++)
        numbers += times->flags[f].user ? times->threads[times->flags[f].user - 1].team_size : 0;
    times->fits = numbers <= MOST_CLOCKS;
    int *clocks = times->fits ? ARENA_ARRAY(times->arena, numbers + 1, int) : NULL;
    if (!times->fits || !clocks)
        return !times->fits;
    memset(clocks, 0, (numbers + 1) * sizeof *clocks);
    for (size_t t = 0; t < count; t++) {
        times->threads[t].clock = clocks + next;
        next += times->threads[t].team_size;
    }
    return true;
}

static bool times_begin(struct times *times)
{
    const struct plan *plan = times->plan;
    times->threads = ARENA_ARRAY(times->arena, plan->thread_count + 1, struct times_thread);
    times->flags = ARENA_ARRAY(times->arena, plan->flags.count + 1, struct times_flag);
    if (!times->threads || !times->flags)
        return false;
    for (size_t f = 0; f < plan->flags.count; f++)
        times->flags[f] = (struct times_flag){.level = NOBODY};
    for (size_t t = plan->thread_count; t-- > 0;) {
        times->threads[t] =
            (struct times_thread){.of = &plan->threads[t], .team = t, .next = times->ready};
        times->ready = 1 + t;
    }
    times_find_teams(times);
    return times_make_clocks(times);
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
