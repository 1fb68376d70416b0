/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing.c - see sharing.h.
 *
 *     pools[place][slot]   what all that runs in the place wants of it, in millionths
 *     legs[seat]           what the work of a stream wants, or of a thread; chained to the other legs of its item
 *     items[agent]         the work left, at which rate it goes, and what limits it
 *
 *     place   0 .. ranks - 1 the device of each rank   ranks the host, with all ranks
 *     seat    the streams, and behind them the threads
 *     slot    0 SMs   1 link   2.. copy engines        last the cores, of the host alone
 *
 *     items   [ comm A ]--> leg s1 (rank 0) --> leg s5 (rank 1)
 *             [ stream s2 ]--> leg s2 (rank 0)
 *     active  rank 0: s2 s1      rank 1: s5        their rates may depend on a change in a place of the rank
 *
 * The rate of an item is room / wanted of the pool that is shortest, what it has and what is wanted of it; so
 * all arithmetic is on whole numbers of 128 bits: the longest work (2^53 ns), in 2^-32 ns, times the most that
 * can be wanted (2^21 seats times 2^20) is at most 2^126, and so is it times the room, which is less where it is used.
 */
#include "sharing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"
#include "base/units.h"
#include "events.h"
#include "base/list_key.h"

__extension__ typedef __int128 wide;

enum {
    SLOT_SM,
    SLOT_LINK,
    SLOT_ENGINE,
    ENGINES = 3,
    SLOT_CORE = SLOT_ENGINE + ENGINES,
    SLOT_COUNT
};
enum { FRACTION_BITS = 32, NONE = -1 };

struct leg {
    int item; /* the agent whose work it is; NONE: none, or it waits for its peers */
    int next; /* leg of the item; NONE */
    int op;
    int at; /* among the active ones of its rank */
    int wants[SLOT_COUNT];
    int held, most;                  /* residency slots of a greedy kernel; most 0: another */
    int64_t lost_ns[RESOURCE_COUNT]; /* by the work that ended last */
};

/* The room of a pool and the demand on it: at least as much, where nothing is slowed the same. */
struct ratio {
    int64_t room, wanted;
};

struct shared_item {
    int leg;           /* the first; NONE: it does not run */
    int scarce;        /* the slot that is shortest */
    struct ratio rate; /* of that slot */
    int64_t started_ns, work_ns;
    int64_t since_ns; /* the rest holds at this time */
    wide left;        /* of the work */
    wide lost[RESOURCE_COUNT];
};

struct sharing {
    const struct program *program;
    int64_t *pools; /* per place and slot */
    struct leg *legs;
    struct shared_item *items;
    int *active; /* seats, those of a rank at active_first */
    int *active_first, *active_count;
    bool *changed; /* per place: its pools, since they were last settled */
    int *changed_places, changed_count;
    int64_t *streams; /* per stream and resource: ns */
    struct slowdown *slowdowns;
    int unnamed[OP_COUNT]; /* the subject of work without a name */
};

const char *resource_key(enum resource resource)
{
    static const char *const keys[] = {RESOURCE_LIST(LIST_KEY)};
    return keys[resource];
}

const char *resource_words(enum resource resource)
{
    static const char *const all_words[] = {
#define X(name, key, words) words,
        RESOURCE_LIST(X)
#undef X
    };
    return all_words[resource];
}

static enum resource resource_of(int slot)
{
    return slot == SLOT_SM     ? RESOURCE_SM
           : slot == SLOT_LINK ? RESOURCE_LINK
           : slot == SLOT_CORE ? RESOURCE_CORE
                               : RESOURCE_COPY_ENGINE;
}

/* ---- places ---------------------------------------------------------------------------------- */

static int place_count(const struct program *p)
{
    return p->ranks + 1;
}

/* Where the slot that work of this rank wants is. */
static int sharing_place_of(const struct program *p, int rank, int slot)
{
    return slot == SLOT_CORE ? p->ranks : rank;
}

/* The room of a slot, in millionths. */
static int64_t room_of(const struct program *p, int slot)
{
    return slot == SLOT_CORE ? (int64_t)SHARE_WHOLE * p->plan->machine.cores : SHARE_WHOLE;
}

/* ---- what work wants ------------------------------------------------------------------------- */

static const struct shares *usual_shares(const struct program *p, const struct op *op)
{
    const struct shares *shares = p->plan->machine.shares;
    if (!op_is_device_work(op->kind))
        return NULL;
    return &shares[op->kind == OP_COPY         ? SHARED_WORK_COPY
                   : op->kind == OP_COLLECTIVE ? SHARED_WORK_COLLECTIVE
                   : op->kind == OP_GROUP      ? SHARED_WORK_P2P
                                               : SHARED_WORK_KERNEL];
}

static int sharing_share_of(const struct share *own, const struct share *usual, int otherwise)
{
    return own && own->given ? own->millionths : usual->given ? usual->millionths : otherwise;
}

/* A task states one share of a core for both of its parts; other CPU work states none. */
static int cpu_share(const struct program *p, int rank, const struct op *op)
{
    const struct share *own =
        p->tasks && op->task >= 0 ? &plan_task(p->plan, rank, op->task)->shares.core : NULL;
    return own && own->given ? own->millionths : SHARE_WHOLE;
}

static void find_wants(const struct program *p, int rank, const struct op *op,
                       int wants[SLOT_COUNT])
{
    memset(wants, 0, SLOT_COUNT * sizeof *wants);
    if (op_is_cpu_work(op->kind) && p->plan->machine.cores > 0)
        wants[SLOT_CORE] = cpu_share(p, rank, op);
    const struct shares *usual = usual_shares(p, op), *own;
    if (!usual)
        return;
    own = op->given->shares;
    wants[SLOT_SM] = sharing_share_of(own ? &own->sm : NULL, &usual->sm, 0);
    wants[SLOT_LINK] = sharing_share_of(own ? &own->link : NULL, &usual->link, 0);
    if (p->plan->machine.cores > 0)
        wants[SLOT_CORE] = sharing_share_of(own ? &own->core : NULL, &usual->core, SHARE_WHOLE);
    int engines = p->plan->machine.copy_engines;
    /* Copies of one direction share an engine: H2D the first, D2H the second, D2D the third, where there are so many; else
       the last. */
    if (op->kind == OP_COPY && engines > 0)
        wants[SLOT_ENGINE + min_int((int)op->given->work->direction, engines - 1)] = SHARE_WHOLE;
}

/* Of each stream the most any of its work wants: it does one thing at a time. */
static int64_t *most_wanted(const struct program *p, struct arena *scratch)
{
    int64_t *most = ARENA_ARRAY(scratch, (size_t)p->stream_count * SLOT_COUNT, int64_t);
    for (size_t i = 0; most && i < p->op_count; i++) {
        int wants[SLOT_COUNT], stream = p->ops[i].stream;
        if (!op_is_device_work(p->ops[i].kind))
            continue;
        find_wants(p, p->streams[stream].rank, &p->ops[i], wants);
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            int64_t *of = &most[stream * SLOT_COUNT + slot];
            *of = max_i64(*of, wants[slot]);
        }
    }
    return most;
}

static bool has_cpu_work(const struct program *p)
{
    for (size_t i = 0; i < p->op_count; i++)
        if (op_is_cpu_work(p->ops[i].kind) && p->ops[i].time_ns > 0)
            return true;
    return false;
}

/* All threads want at most so much of the cores: one each, where there is CPU work at all. Drivers have none. */
static int64_t most_of_threads(const struct program *p)
{
    int64_t most = 0;
    if (p->plan->machine.cores == 0 || !has_cpu_work(p))
        return 0;
    for (int t = 0; t < p->thread_count; t++)
        most += p->threads[t].kind == THREAD_DRIVER ? 0 : SHARE_WHOLE;
    return most;
}

const char *sharing_why(const struct program *p, struct arena *scratch)
{
    if (p->has_greedy)
        return resource_words(RESOURCE_SM);
    const int64_t *most = most_wanted(p, scratch);
    int64_t *sums = ARENA_ARRAY(scratch, (size_t)place_count(p) * SLOT_COUNT, int64_t);
    for (int s = 0; most && sums && s < p->stream_count; s++)
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            sums[sharing_place_of(p, p->streams[s].rank, slot) * SLOT_COUNT + slot] +=
                most[s * SLOT_COUNT + slot];
    if (sums)
        sums[p->ranks * SLOT_COUNT + SLOT_CORE] += most_of_threads(p);
    for (int i = 0; most && sums && i < place_count(p) * SLOT_COUNT; i++)
        if (sums[i] > room_of(p, i % SLOT_COUNT))
            return resource_words(resource_of(i % SLOT_COUNT));
    return NULL;
}

static bool task_has_cpu_part(const struct task *task)
{
    return task->work.kind == WORK_HOST || task->host_time_ns + task->host_after_ns > 0;
}

static bool has_cpu_part(const struct plan *plan, size_t t)
{
    const struct pipeline *pipeline = &plan->pipeline;
    ASSERT_INDEX(t, pipeline->task_count);
    bool has = task_has_cpu_part(&pipeline->tasks[t]);
    for (size_t i = 0; i < pipeline->override_count; i++)
        has |= pipeline->overrides[i].tasks && task_has_cpu_part(&pipeline->overrides[i].tasks[t]);
    return has;
}

/* Even where each task has a stream of its own on every rank, and a thread for its CPU part, there may be a core for
   each. */
static bool cores_may_lack(const struct plan *plan)
{
    int64_t most = 0;
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        most += has_cpu_part(plan, t) ? 2 : 1;
    return plan->machine.cores > 0 && plan->machine.cores < most * plan->ranks;
}

static bool says_something(const struct shares *shares)
{
    return shares->sm.given || shares->link.given;
}

static bool tasks_ask(const struct task *tasks, size_t count)
{
    bool asked = false;
    for (size_t t = 0; tasks && t < count; t++)
        asked |= says_something(&tasks[t].shares);
    return asked;
}

bool sharing_asked(const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    bool asked = plan->machine.copy_engines > 0 || cores_may_lack(plan) ||
                 tasks_ask(pipeline->tasks, pipeline->task_count);
    for (int kind = 0; kind < SHARED_WORK_COUNT; kind++)
        asked |= says_something(&plan->machine.shares[kind]);
    for (size_t i = 0; i < pipeline->override_count; i++)
        asked |= tasks_ask(pipeline->overrides[i].tasks, pipeline->task_count);
    return asked;
}

/* ---- subjects -------------------------------------------------------------------------------- */

/* Of device work, and as many of CPU parts. */
static int part_count(const struct program *p)
{
    return p->tasks ? p->tasks : (int)p->names.count + OP_COUNT;
}

int sharing_subject_count(const struct program *p)
{
    return 2 * part_count(p);
}

static const char *sharing_part_name(const struct program *p, int part)
{
    int names = (int)p->names.count;
    ASSERT_INDEX(part, part_count(p));
    if (p->tasks)
        return p->plan->pipeline.tasks[part].name;
    return part < names ? p->names.items[part] : op_key((enum op_kind)(part - names));
}

const char *sharing_subject_name(const struct program *p, int subject, char *buf, size_t cap)
{
    bool cpu = subject >= part_count(p);
    snprintf(buf, cap, "%s%s", cpu ? "CPU part of " : "",
             sharing_part_name(p, cpu ? subject - part_count(p) : subject));
    return buf;
}

static int sharing_part_of(const struct sharing *sharing, const struct op *op)
{
    const struct program *p = sharing->program;
    if (p->tasks)
        return op->task;
    if (op->name >= 0)
        return op->name;
    return op->part_count > 0 ? p->parts[op->part_first].tag : sharing->unnamed[op->kind];
}

static int sharing_subject_of(const struct sharing *sharing, const struct op *op)
{
    return sharing_part_of(sharing, op) +
           (op_is_cpu_work(op->kind) ? part_count(sharing->program) : 0);
}

/* A resource without a name goes by its kind, together with those named so. */
static void name_unnamed(struct sharing *sharing)
{
    const struct program *p = sharing->program;
    for (int kind = 0; kind < OP_COUNT; kind++) {
        int named = names_find(&p->names, op_key((enum op_kind)kind));
        sharing->unnamed[kind] = named >= 0 ? named : (int)p->names.count + kind;
    }
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int seat_count(const struct program *p)
{
    return p->stream_count + p->thread_count;
}

static int rank_of_seat(const struct program *p, int seat)
{
    return seat < p->stream_count ? p->streams[seat].rank : p->threads[seat - p->stream_count].rank;
}

static int thread_seat(const struct program *p, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    return p->stream_count + p->agents[agent].index;
}

static bool sharing_allocate(struct sharing *sharing)
{
    const struct program *p = sharing->program;
    size_t ranks = (size_t)p->ranks, streams = (size_t)p->stream_count;
    size_t places = (size_t)place_count(p), seats = (size_t)seat_count(p);
    sharing->pools = calloc(places * SLOT_COUNT, sizeof *sharing->pools);
    sharing->legs = calloc(seats, sizeof *sharing->legs);
    sharing->items = calloc((size_t)p->agent_count, sizeof *sharing->items);
    sharing->active = calloc(seats, sizeof *sharing->active);
    sharing->active_first = calloc(ranks + 1, sizeof *sharing->active_first);
    sharing->active_count = calloc(ranks, sizeof *sharing->active_count);
    sharing->changed = calloc(places, sizeof *sharing->changed);
    sharing->changed_places = calloc(places, sizeof *sharing->changed_places);
    sharing->streams = calloc(streams * RESOURCE_COUNT, sizeof *sharing->streams);
    sharing->slowdowns = calloc((size_t)sharing_subject_count(p), sizeof *sharing->slowdowns);
    return sharing->pools && sharing->legs && sharing->items && sharing->active &&
           sharing->active_first && sharing->active_count && sharing->changed &&
           sharing->changed_places && sharing->streams && sharing->slowdowns;
}

static bool sharing_open_for(const struct program *program, struct sharing **out)
{
    struct sharing *sharing = calloc(1, sizeof *sharing);
    if (!sharing)
        return false;
    sharing->program = program;
    name_unnamed(sharing);
    if (!sharing_allocate(sharing)) {
        sharing_close(sharing);
        return false;
    }
    for (int seat = 0; seat < seat_count(program); seat++) {
        sharing->active_first[rank_of_seat(program, seat) + 1]++;
        sharing->legs[seat].item = NONE;
    }
    for (int rank = 0; rank < program->ranks; rank++)
        sharing->active_first[rank + 1] += sharing->active_first[rank];
    for (int agent = 0; agent < program->agent_count; agent++)
        sharing->items[agent].leg = NONE;
    *out = sharing;
    return true;
}

bool sharing_open(const struct program *program, struct sharing **out)
{
    struct arena scratch;
    arena_init(&scratch, 0);
    bool bites = sharing_why(program, &scratch) != NULL, failed = scratch.failed;
    arena_fini(&scratch);
    *out = NULL;
    return !failed && (!bites || sharing_open_for(program, out));
}

void sharing_close(struct sharing *sharing)
{
    if (!sharing)
        return;
    free(sharing->pools);
    free(sharing->legs);
    free(sharing->items);
    free(sharing->active);
    free(sharing->active_first);
    free(sharing->active_count);
    free(sharing->changed);
    free(sharing->changed_places);
    free(sharing->streams);
    free(sharing->slowdowns);
    free(sharing);
}

/* ---- pools and legs -------------------------------------------------------------------------- */

static int64_t *pool_of(const struct sharing *sharing, int rank, int slot)
{
    return &sharing->pools[sharing_place_of(sharing->program, rank, slot) * SLOT_COUNT + slot];
}

/* Rates in this place may be others. */
static void change_place(struct sharing *sharing, int place)
{
    if (!sharing->changed[place])
        sharing->changed_places[sharing->changed_count++] = place;
    sharing->changed[place] = true;
}

/* The leg's demand is added to the pools of its rank, or, by sign, taken away again. */
static void change_pools(struct sharing *sharing, int seat, int sign)
{
    int rank = rank_of_seat(sharing->program, seat);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        int64_t by = sign * (int64_t)sharing->legs[seat].wants[slot];
        if (by == 0)
            continue;
        *pool_of(sharing, rank, slot) += by;
        assert(*pool_of(sharing, rank, slot) >= 0);
        change_place(sharing, sharing_place_of(sharing->program, rank, slot));
    }
}

/* The last one of the list takes its place. */
static void deactivate(struct sharing *sharing, int seat)
{
    int rank = rank_of_seat(sharing->program, seat);
    int *list = &sharing->active[sharing->active_first[rank]];
    assert(list[sharing->legs[seat].at] == seat);
    int last = list[--sharing->active_count[rank]];
    list[sharing->legs[seat].at] = last;
    sharing->legs[last].at = sharing->legs[seat].at;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* To the nearest whole number, halves up; nothing here is negative. */
static wide sharing_divide(wide dividend, wide divisor)
{
    return (dividend + divisor / 2) / divisor;
}

static const struct ratio full_rate = {SHARE_WHOLE, SHARE_WHOLE};

/* True if `a` is slower than `b`. */
static bool is_slower(struct ratio a, struct ratio b)
{
    return (wide)a.room * b.wanted < (wide)b.room * a.wanted;
}

static bool is_slowed(struct ratio rate)
{
    return rate.wanted > rate.room;
}

/* The item has gone on until now, at the rate it had. */
static void sharing_advance(struct shared_item *item, int64_t now_ns)
{
    assert(now_ns >= item->since_ns);
    wide time = (wide)(now_ns - item->since_ns) << FRACTION_BITS;
    bool slowed = is_slowed(item->rate); /* or all of the time is work: no division */
    wide done = slowed ? sharing_divide(time * item->rate.room, item->rate.wanted) : time;
    item->left -= done < item->left ? done : item->left;
    item->lost[resource_of(item->scarce)] += time - done;
    item->since_ns = now_ns;
}

static int64_t due(const struct shared_item *item)
{
    wide time = is_slowed(item->rate)
                    ? sharing_divide(item->left * item->rate.wanted, item->rate.room)
                    : item->left;
    return item->since_ns + (int64_t)sharing_divide(time, (wide)1 << FRACTION_BITS);
}

/* That of the pool that is shortest for the item, of equal ones the first; of a greedy kernel the part of its slots that it
   has, if that is less. full_rate: none is short. */
static struct ratio find_rate(const struct sharing *sharing, const struct shared_item *item,
                              int *scarce)
{
    const struct program *p = sharing->program;
    struct ratio rate = full_rate;
    *scarce = SLOT_COUNT;
    for (int seat = item->leg; seat != NONE; seat = sharing->legs[seat].next)
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            struct ratio here = {room_of(p, slot), 0};
            if (sharing->legs[seat].wants[slot] == 0)
                continue;
            here.wanted = *pool_of(sharing, rank_of_seat(p, seat), slot);
            bool same = !is_slower(here, rate) && !is_slower(rate, here);
            if (same ? slot >= *scarce : !is_slower(here, rate))
                continue;
            rate = here;
            *scarce = slot;
        }
    for (int seat = item->leg; seat != NONE; seat = sharing->legs[seat].next) {
        const struct leg *leg = &sharing->legs[seat];
        const struct ratio has = {leg->held, leg->most};
        if (leg->most == 0 || !is_slower(has, rate))
            continue;
        rate = has;
        *scarce = SLOT_SM;
    }
    return is_slowed(rate) ? rate : full_rate;
}

static void reconsider(struct sharing *sharing, int agent, int64_t now_ns, struct events *events)
{
    struct shared_item *item = &sharing->items[agent];
    int scarce;
    struct ratio rate = find_rate(sharing, item, &scarce);
    bool retimed = is_slower(rate, item->rate) || is_slower(item->rate, rate);
    if (!retimed && (!is_slowed(rate) || scarce == item->scarce))
        return;
    sharing_advance(item, now_ns);
    item->rate = rate;
    item->scarce = is_slowed(rate) ? scarce : SLOT_SM;
    if (retimed)
        events_retime(events, agent, due(item));
}

#ifdef SWSIM_CHECKS
/* True if each pool holds what the legs in its place want, and each item the legs that are its own. */
static bool sharing_check(const struct sharing *sharing)
{
    const struct program *p = sharing->program;
    for (int rank = 0; rank < p->ranks; rank++)
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            int64_t sum = 0;
            for (int seat = 0; seat < seat_count(p); seat++)
                if (sharing_place_of(p, rank_of_seat(p, seat), slot) ==
                    sharing_place_of(p, rank, slot))
                    sum += sharing->legs[seat].wants[slot];
            if (sum != *pool_of(sharing, rank, slot))
                return false;
        }
    for (int agent = 0; agent < p->agent_count; agent++)
        for (int seat = sharing->items[agent].leg; seat != NONE; seat = sharing->legs[seat].next)
            if (sharing->legs[seat].item != agent)
                return false;
    return true;
}
#endif

void sharing_settle(struct sharing *sharing, int64_t now_ns, struct events *events)
{
    const struct program *p = sharing->program;
#ifdef SWSIM_CHECKS
    assert(sharing_check(sharing));
#endif
    for (int i = 0; i < sharing->changed_count; i++) {
        int place = sharing->changed_places[i];
        const bool host = place == p->ranks; /* of all ranks; else of one */
        sharing->changed[place] = false;
        for (int rank = host ? 0 : place; rank < (host ? p->ranks : place + 1); rank++) {
            const int *list = &sharing->active[sharing->active_first[rank]];
            for (int k = 0; k < sharing->active_count[rank]; k++)
                reconsider(sharing, sharing->legs[list[k]].item, now_ns, events);
        }
    }
    sharing->changed_count = 0;
}

void sharing_hold(struct sharing *sharing, int op)
{
    ASSERT_INDEX(op, sharing->program->op_count);
    const struct op *held = &sharing->program->ops[op];
    struct leg *leg = &sharing->legs[held->stream];
    find_wants(sharing->program, sharing->program->streams[held->stream].rank, held, leg->wants);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        leg->wants[slot] = slot == SLOT_SM ? leg->wants[slot] : 0;
    change_pools(sharing, held->stream, 1);
}

void sharing_start(struct sharing *sharing, int agent, int op, int64_t work_ns, int64_t now_ns)
{
    const struct program *p = sharing->program;
    const struct op *started = &p->ops[op];
    const int seat = op_is_cpu_work(started->kind) ? thread_seat(p, agent) : started->stream;
    struct shared_item *item = &sharing->items[agent];
    struct leg *leg = &sharing->legs[seat];
    if (item->leg == NONE)
        *item = (struct shared_item){.leg = NONE,
                                     .rate = full_rate,
                                     .started_ns = now_ns,
                                     .work_ns = work_ns,
                                     .since_ns = now_ns,
                                     .left = (wide)work_ns << FRACTION_BITS};
    assert(leg->item == NONE && item->work_ns == work_ns);
    change_pools(sharing, seat, -1); /* what it held; nothing, if it did not wait */
    leg->item = agent;
    leg->next = item->leg;
    leg->op = op;
    item->leg = seat;
    leg->most = op_is_greedy(started) ? started->sm_most : 0;
    leg->held = leg->most;
    find_wants(p, rank_of_seat(p, seat), started, leg->wants);
    change_pools(sharing, seat, 1);
    int rank = rank_of_seat(sharing->program, seat);
    int at = sharing->active_count[rank]++;
    sharing->legs[seat].at = at;
    sharing->active[sharing->active_first[rank] + at] = seat;
}

void sharing_slots(struct sharing *sharing, int stream, int held)
{
    struct leg *leg = &sharing->legs[stream];
    assert(leg->item != NONE && held > 0 && held <= leg->most);
    if (leg->held != held)
        change_place(sharing, sharing->program->streams[stream].rank);
    leg->held = held;
}

/* The losses, in whole nanoseconds that add up to how much longer it took. */
static void round_lost(const struct shared_item *item, int64_t took_ns,
                       int64_t out_ns[RESOURCE_COUNT])
{
    int64_t all_ns = took_ns - item->work_ns, told_ns = 0;
    wide lost = 0, total = 0;
    assert(all_ns >= 0);
    for (int r = 0; r < RESOURCE_COUNT; r++)
        total += item->lost[r];
    if (total == 0) { /* never slowed */
        memset(out_ns, 0, RESOURCE_COUNT * sizeof *out_ns);
        return;
    }
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        lost += item->lost[r];
        int64_t until_ns = (int64_t)sharing_divide(lost, (wide)1 << FRACTION_BITS);
        if (lost == total || until_ns > all_ns)
            until_ns = all_ns;
        out_ns[r] = until_ns - told_ns;
        told_ns = until_ns;
    }
}

static void end_leg(struct sharing *sharing, int seat, int64_t work_ns,
                    const int64_t lost_ns[RESOURCE_COUNT])
{
    struct leg *leg = &sharing->legs[seat];
    const struct op *op = &sharing->program->ops[leg->op];
    struct slowdown *slowdown = &sharing->slowdowns[sharing_subject_of(sharing, op)];
    slowdown->runs++;
    slowdown->work_ns += work_ns;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        slowdown->slowed_ns[r] += lost_ns[r];
        if (seat < sharing->program->stream_count)
            sharing->streams[seat * RESOURCE_COUNT + r] += lost_ns[r];
        leg->lost_ns[r] = lost_ns[r];
    }
    change_pools(sharing, seat, -1);
    deactivate(sharing, seat);
    leg->item = NONE;
    memset(leg->wants, 0, sizeof leg->wants);
}

void sharing_finish(struct sharing *sharing, int agent, int64_t now_ns)
{
    struct shared_item *item = &sharing->items[agent];
    int64_t lost_ns[RESOURCE_COUNT];
    if (item->leg == NONE)
        return;
    sharing_advance(item, now_ns);
    round_lost(item, now_ns - item->started_ns, lost_ns);
    for (int seat = item->leg; seat != NONE; seat = sharing->legs[seat].next)
        end_leg(sharing, seat, item->work_ns, lost_ns);
    item->leg = NONE;
}

/* ---- accounts -------------------------------------------------------------------------------- */

const int64_t *sharing_of_stream(const struct sharing *sharing, int stream)
{
    return &sharing->streams[stream * RESOURCE_COUNT];
}

const int64_t *sharing_last(const struct sharing *sharing, int agent)
{
    ASSERT_INDEX(agent, sharing->program->agent_count);
    const struct agent *desc = &sharing->program->agents[agent];
    bool thread = desc->kind == AGENT_THREAD;
    return sharing->legs[thread ? thread_seat(sharing->program, agent) : desc->index].lost_ns;
}

const char *sharing_describe(const int64_t slowed_ns[RESOURCE_COUNT], int64_t runs, char *buf,
                             size_t cap)
{
    size_t length = 0;
    *buf = '\0';
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        char time[UNITS_TEXT];
        if (slowed_ns[r] == 0 || length >= cap)
            continue;
        units_show_time((double)slowed_ns[r] / (double)runs, time);
        length += (size_t)snprintf(buf + length, cap - length, "%s%s by %s", length ? ", " : "",
                                   time, resource_words((enum resource)r));
    }
    return buf;
}

struct slowdown *sharing_take(struct sharing *sharing)
{
    struct slowdown *taken = sharing->slowdowns;
    sharing->slowdowns = NULL;
    return taken;
}
