/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_fold.c - the steps of a recording as one step that is repeated.
 *
 * The marks of a rank's optimizer (PLAN_STEP) divide the thread that sets them. Where a rank has no marks, the thread is
 * divided that does most of its operations in rounds: the names, lines and streams of its operations come again and again. A
 * round begins where the least memory is in use across the cut, or behind a wait for another thread; both are tried. Another
 * thread of the rank is in a step from its first wait for something that a thread did in that step. Steps do the same where
 * all threads of all ranks do the same operations with the same memory in one order, in the same step set what they await, and
 * look at what they recorded as many operations ago. An allocator may hand out memory in turns, so several steps can be one
 * iteration.
 *
 *     step       0  1  2  3  4  5  6  7  8  9      two in turns: 4 iterations from step 1 on
 *     memory     a  b  c  b  c  b  c  b  c  a
 *
 * Nothing of what the plan says is lost. Before that, these go, for they have no effect:
 *
 *     - flags that nobody awaits, records that nobody looks at before the next one of their event, waits for what was awaited before;
 *     - waits of a thread that only waits and signals, where it waits for more before it signals next, or signals no more: what
 *       it awaits then comes, unless another thread or a stream does not come to its end.
 */
#include "recorded_internal.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/repeats.h"
#include "base/sort.h"
#include "trace/job/repeated.h"

/* Steps of one iteration at most; iterations at least. */
enum { MOST_IN_TURNS = 16, LEAST_TIMES = 3 };
/* Ways to divide threads into rounds: by which threads, and where a round begins. */
enum { MOST_DIVIDED = 3, MOST_BEGINS = 16 };

struct fold_flag {
    size_t list, at;       /* where it is set */
    int sets, awaits, own; /* `own`: awaits in the step in which it is set */
    bool other;            /* it is used otherwise */
};

/* An event of a rank. */
struct fold_event {
    size_t list; /* the only one that uses it */
    int stream;  /* the only one that it is recorded in; -1: none yet */
    bool used, shared, several, looked_at;
    size_t recorder;   /* the only list that records it; SIZE_MAX: none, or several do */
    size_t first_seen; /* there: nobody looks at the records in front of this one */
    bool seen_behind;  /* seen from behind: the next operation on it looks at it */
};

/* A place in a round where it may begin, and what speaks against it: buffers that are in use across it. */
struct round_begin {
    size_t place, crossed;
    bool awaits; /* the operation in front of it waits for another thread */
};

struct fold_list {
    struct host_thread *thread;
    struct host_op *ops;
    size_t count;
    struct stretch rounds;      /* most of its operations; times 0: there are no rounds */
    struct round_begin *begins; /* of `rounds`, the best first */
    size_t *bounds;             /* steps + 1: where they begin, and the end of the last */
    size_t *
        versions; /* per operation that looks at an event of this list alone: 1 + the place of its record; 0: none */
    bool *known; /* per operation: it awaits what has been awaited */
};

struct step_folding {
    struct plan *plan;
    struct arena *arena;
    struct fold_list *lists;
    size_t count;
    struct fold_flag *flags;   /* plan->flags */
    struct fold_event *events; /* plan->events of each rank */
    struct step_memories memories;
    struct names owned; /* buffers of the run, behind the others */
    size_t buffer_cap, steps;
    struct step_run run;
    bool by_rounds;
    const struct host_op *differs; /* the first that is not as before, behind the run */
    size_t differs_list;
};

static bool is_plain_flag(const struct host_op *op, enum op_kind kind)
{
    return op->kind == kind && !op->flag_use.given;
}

static bool looks_at_event(const struct host_op *op)
{
    return op_operand(op->kind) == OPERAND_EVENT && op->kind != OP_RECORD && op->object >= 0;
}

static struct fold_event *fold_event_of(const struct step_folding *folding, size_t list,
                                        const struct host_op *op)
{
    const int home = host_op_rank(op, folding->lists[list].thread->rank);
    const int rank = op->object_rank > 0 ? op->object_rank - 1 : home;
    return &folding->events[(size_t)rank * folding->plan->events.count + (size_t)op->object];
}

/* ---- who uses flags and events ------------------------------------------------------------------ */

static void fold_use_others(struct step_folding *folding, const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (op_operand(ops[i].kind) == OPERAND_FLAG && ops[i].object >= 0)
            folding->flags[ops[i].object].other = true;
        for (int r = 0; op_operand(ops[i].kind) == OPERAND_EVENT && ops[i].object >= 0 &&
                        r < folding->plan->ranks;
             r++) {
            struct fold_event *event =
                &folding->events[(size_t)r * folding->plan->events.count + (size_t)ops[i].object];
            event->shared = event->several = event->looked_at = true;
            event->recorder = SIZE_MAX;
            event->first_seen = 0;
        }
    }
}

static void fold_use_flag(struct step_folding *folding, size_t list, size_t at)
{
    const struct host_op *op = &folding->lists[list].ops[at];
    struct fold_flag *flag = &folding->flags[op->object];
    if (is_plain_flag(op, OP_SIGNAL)) {
        flag->list = list;
        flag->at = at;
        flag->sets++;
    } else if (is_plain_flag(op, OP_AWAIT))
        flag->awaits++;
    else
        flag->other = true;
}

static void fold_use_event(struct step_folding *folding, size_t list, size_t at)
{
    const struct host_op *op = &folding->lists[list].ops[at];
    struct fold_event *event = fold_event_of(folding, list, op);
    event->shared |= (event->used && event->list != list) || op->device > 0 || op->object_rank > 0;
    event->used = true;
    event->list = list;
    event->looked_at |= looks_at_event(op);
    if (op->kind != OP_RECORD)
        return;
    event->several |= event->stream >= 0 && event->stream != op->stream;
    if (event->recorder != list && event->stream >= 0)
        event->first_seen = 0;
    event->recorder = event->first_seen == 0 ? SIZE_MAX : list;
    event->stream = op->stream;
}

static void fold_use(struct step_folding *folding)
{
    const struct plan *plan = folding->plan;
    for (size_t f = 0; f < plan->flags.count; f++)
        folding->flags[f] = (struct fold_flag){0};
    for (size_t e = 0; e < (size_t)plan->ranks * plan->events.count; e++)
        folding->events[e] =
            (struct fold_event){.stream = -1, .recorder = SIZE_MAX, .first_seen = SIZE_MAX};
    for (size_t l = 0; l < folding->count; l++)
        for (size_t i = 0; i < folding->lists[l].count; i++) {
            const struct host_op *op = &folding->lists[l].ops[i];
            if (op_operand(op->kind) == OPERAND_FLAG && op->object >= 0)
                fold_use_flag(folding, l, i);
            if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0)
                fold_use_event(folding, l, i);
            fold_use_others(folding, op->body, host_op_body_count(op));
        }
    for (size_t g = 0; g < plan->graph_count; g++)
        fold_use_others(folding, plan->graphs[g].ops, plan->graphs[g].op_count);
}

/* ---- what has no effect --------------------------------------------------------------------------- */

static bool fold_is_awaited(const struct step_folding *folding, const struct host_op *op)
{
    const struct fold_flag *flag = &folding->flags[op->object];
    return flag->other || flag->awaits > 0 || flag->sets > 1;
}

/* Operations are asked from behind. */
static bool is_unseen_op(const struct step_folding *folding, size_t l, const struct host_op *op)
{
    struct fold_event *event =
        op->kind == OP_RECORD && !op->external ? fold_event_of(folding, l, op) : NULL;
    const bool seen = event && (event->shared || event->seen_behind);
    if (event)
        event->seen_behind = false;
    else if (looks_at_event(op))
        fold_event_of(folding, l, op)->seen_behind = true;
    return (is_plain_flag(op, OP_SIGNAL) && !fold_is_awaited(folding, op)) ||
           (event && (!seen || !event->looked_at ||
                      (size_t)(op - folding->lists[l].ops) < event->first_seen));
}

/* Who looks at an event and knows the first `known` operations of the list that records it sees the last record among them,
   or a later one. */
static void fold_see_record(const struct step_folding *folding, struct fold_event *event,
                            int object, size_t known)
{
    const struct host_op *ops =
        event->recorder == SIZE_MAX ? NULL : folding->lists[event->recorder].ops;
    size_t at = ops ? known : 0;
    while (at > 0 && !(ops[at - 1].kind == OP_RECORD && ops[at - 1].object == object))
        at--;
    if (event->first_seen > (at > 0 ? at - 1 : 0))
        event->first_seen = at > 0 ? at - 1 : 0;
}

/* Between signals of a thread with nothing between it does not wait: all of them are set when one is. */
static bool find_known(struct step_folding *folding, size_t l)
{
    struct fold_list *list = &folding->lists[l];
    size_t *seen =
        ARENA_ARRAY(folding->arena, folding->count + 1, size_t); /* operations of lists */
    list->known = ARENA_ARRAY(folding->arena, list->count + 1, bool);
    if (!seen || !list->known)
        return false;
    memset(seen, 0, folding->count * sizeof *seen);
    for (size_t i = 0; i < list->count; i++) {
        list->known[i] = false;
        if (looks_at_event(&list->ops[i])) {
            struct fold_event *event = fold_event_of(folding, l, &list->ops[i]);
            fold_see_record(folding, event, list->ops[i].object,
                            event->recorder == l          ? i
                            : event->recorder == SIZE_MAX ? 0
                                                          : seen[event->recorder]);
        }
        if (!is_plain_flag(&list->ops[i], OP_AWAIT))
            continue;
        const struct fold_flag *flag = &folding->flags[list->ops[i].object];
        const struct host_op *ops = folding->lists[flag->list].ops;
        size_t first = flag->at;
        if (flag->other || flag->sets != 1)
            continue;
        while (first > 0 && is_plain_flag(&ops[first - 1], OP_SIGNAL))
            first--;
        list->known[i] = seen[flag->list] > first;
        if (seen[flag->list] < flag->at + 1)
            seen[flag->list] = flag->at + 1;
    }
    return true;
}

/* A wait of a thread that only waits, seen from behind: true if it waits for more later, and before it signals. */
struct fold_later {
    bool *awaits;  /* per list: for what it does, with no wait for a device between */
    bool *events;  /* plan->streams: for a record on it */
    bool *streams; /* plan->streams: for all of it */
    bool device;
    bool signals;
};

static bool waits_later(const struct step_folding *folding, size_t list, const struct host_op *op,
                        struct fold_later *later)
{
    bool *seen = &later->device;
    if (op->kind == OP_SYNC && !later->signals)
        return true;
    if (op->kind == OP_AWAIT) {
        const struct fold_flag *flag = &folding->flags[op->object];
        if (flag->other || flag->sets != 1 || !later->signals)
            return !flag->other && flag->sets == 1;
        seen = &later->awaits[flag->list];
    } else if (host_op_syncs(op, SYNC_EVENT)) {
        const struct fold_event *event = fold_event_of(folding, list, op);
        if (event->several || event->stream < 0 || op->object_rank > 0)
            return false;
        seen = &later->events[event->stream]; /* a later record is complete later */
    } else if (host_op_syncs(op, SYNC_STREAM))
        seen = &later->streams[op->stream];
    const bool was = *seen;
    *seen = true;
    if (op->kind == OP_SYNC && !was)
        memset(later->awaits, 0, folding->count * sizeof *later->awaits);
    return was;
}

static bool only_waits(const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_plain_flag(&ops[i], OP_AWAIT) && !is_plain_flag(&ops[i], OP_SIGNAL) &&
            ops[i].kind != OP_SYNC)
            return false;
    return true;
}

static void fold_forget(const struct step_folding *folding, struct fold_later *later)
{
    const struct plan *plan = folding->plan;
    memset(later->awaits, 0, folding->count * sizeof *later->awaits);
    memset(later->events, 0, plan->streams.count * sizeof *later->events);
    memset(later->streams, 0, plan->streams.count * sizeof *later->streams);
    later->device = later->signals = false;
}

/* Leaves out what has no effect; true if that is anything. */
static bool fold_trim(struct step_folding *folding, size_t l, struct fold_later *later)
{
    struct fold_list *list = &folding->lists[l];
    const bool waits = only_waits(list->ops, list->count);
    size_t kept = list->count;
    fold_forget(folding, later);
    for (size_t i = list->count; i-- > 0;) {
        const struct host_op *op = &list->ops[i];
        const bool goes = is_unseen_op(folding, l, op) || list->known[i] ||
                          (waits && op->kind != OP_SIGNAL && waits_later(folding, l, op, later));
        if (!goes && op->kind == OP_SIGNAL) {
            fold_forget(folding, later);
            later->signals = true;
        }
        if (!goes)
            list->ops[--kept] = *op;
    }
    memmove(list->ops, list->ops + kept, (list->count - kept) * sizeof *list->ops);
    list->count -= kept;
    return kept > 0;
}

static bool fold_trim_all(struct step_folding *folding)
{
    const struct plan *plan = folding->plan;
    struct fold_later later = {.awaits = ARENA_ARRAY(folding->arena, folding->count + 1, bool),
                               .events = ARENA_ARRAY(folding->arena, plan->streams.count + 1, bool),
                               .streams =
                                   ARENA_ARRAY(folding->arena, plan->streams.count + 1, bool)};
    bool more = later.awaits && later.events && later.streams;
    if (!more)
        return false;
    while (more) {
        more = false;
        fold_use(folding);
        for (size_t l = 0; l < folding->count; l++)
            if (!find_known(folding, l))
                return false;
        for (size_t l = 0; l < folding->count; l++)
            more |= fold_trim(folding, l, &later);
    }
    return true;
}

/* ---- where steps begin ---------------------------------------------------------------------------- */

static bool is_mark(const struct host_op *op)
{
    return op->kind == OP_HOST && op->time_ns == 0 && op->name && strcmp(op->name, PLAN_STEP) == 0;
}

static size_t count_marks(const struct fold_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += is_mark(&list->ops[i]);
    return count;
}

/* Of each rank the first list with marks. */
static bool find_marks(struct step_folding *folding)
{
    bool *found = ARENA_ARRAY(folding->arena, (size_t)folding->plan->ranks, bool);
    size_t least = SIZE_MAX, ranks = 0;
    if (!found)
        return false;
    memset(found, 0, (size_t)folding->plan->ranks * sizeof *found);
    for (size_t l = 0; l < folding->count; l++) {
        struct fold_list *list = &folding->lists[l];
        const size_t marks = count_marks(list);
        if (marks == 0 || found[list->thread->rank])
            continue;
        found[list->thread->rank] = true;
        ranks++;
        least = marks < least ? marks : least;
        list->bounds = ARENA_ARRAY(folding->arena, marks + 1, size_t);
        for (size_t i = 0, next = 0; list->bounds && i < list->count; i++)
            if (is_mark(&list->ops[i]))
                list->bounds[next++] = i + 1;
        if (!list->bounds)
            return false;
    }
    folding->steps = ranks == (size_t)folding->plan->ranks ? least - 1 : 0;
    return true;
}

/* Operations with different keys are never the same step of two rounds. */
static uint64_t round_key(const struct host_op *op)
{
    const uint64_t words[4] = {(uint64_t)op->kind << 32 | (uint32_t)op->device,
                               (uint64_t)(uint32_t)op->stream << 32 | (uint32_t)op->comm,
                               op->name ? hash_bytes(op->name, strlen(op->name)) : 0,
                               op->at ? hash_bytes(op->at, strlen(op->at)) : 0};
    return hash_words(words, 4);
}

/* The first and the last operation of a list that accesses a buffer. */
struct round_use {
    size_t list, first, last;
};

static void use_in_round(struct round_use *uses, size_t l, size_t at,
                         const struct index_list *accesses)
{
    for (size_t i = 0; i < accesses->count; i++) {
        struct round_use *use = &uses[accesses->items[i]];
        if (use->list != l)
            *use = (struct round_use){l, at, at};
        use->last = at;
    }
}

/* Counts the buffers that an operation is the first to access at all places up to their last access: as a difference to the
   place before, which sum_crossed adds up. What is in use for a round or longer is in use at all. */
static void cross_round(const struct fold_list *list, const struct round_use *uses, size_t at,
                        const struct index_list *accesses)
{
    const struct stretch *rounds = &list->rounds;
    const size_t length = rounds->length, end = rounds->first + length * rounds->times;
    for (size_t i = 0; i < accesses->count; i++) {
        const struct round_use *use = &uses[accesses->items[i]];
        if (use->first != at || at < rounds->first || use->last - at >= length)
            continue;
        const size_t behind = min_size(use->last + 1, end);
        if (behind <= at + 1)
            continue;
        const size_t from = (at + 1 - rounds->first) % length, to = from + (behind - at - 1);
        list->begins[from].crossed++;
        if (to > length)
            list->begins[0].crossed++;
        if (to != length)
            list->begins[to % length].crossed--;
    }
}

static void sum_crossed(const struct fold_list *list)
{
    for (size_t i = 1; i < list->rounds.length; i++)
        list->begins[i].crossed += list->begins[i - 1].crossed;
}

static int compare_begins(const void *left, const void *right)
{
    const struct round_begin *a = left, *b = right;
    return compare_then(compare_size(a->crossed, b->crossed),
                        compare_then(b->awaits - a->awaits, compare_size(a->place, b->place)));
}

static bool find_begins(struct step_folding *folding, size_t l, struct round_use *uses)
{
    struct fold_list *list = &folding->lists[l];
    const struct host_op *ops = list->ops;
    list->begins = ARENA_ARRAY(folding->arena, list->rounds.length, struct round_begin);
    if (!list->begins)
        return false;
    for (size_t i = 0; i < list->rounds.length; i++) {
        const size_t at = list->rounds.first + i;
        list->begins[i] = (struct round_begin){
            .place = i, .awaits = at > 0 && is_plain_flag(&ops[at - 1], OP_AWAIT)};
    }
    for (size_t i = 0; i < list->count; i++) {
        use_in_round(uses, l, i, host_op_reads(&ops[i]));
        use_in_round(uses, l, i, host_op_writes(&ops[i]));
    }
    for (size_t i = 0; i < list->count; i++) {
        cross_round(list, uses, i, host_op_reads(&ops[i]));
        cross_round(list, uses, i, host_op_writes(&ops[i]));
    }
    sum_crossed(list);
    SORT(list->begins, list->rounds.length, compare_begins);
    return true;
}

static bool find_rounds(struct step_folding *folding)
{
    const size_t buffers = folding->plan->buffer_count;
    struct round_use *uses = ARENA_ARRAY(folding->arena, buffers + 1, struct round_use);
    for (size_t i = 0; uses && i < buffers; i++)
        uses[i].list = SIZE_MAX;
    for (size_t l = 0; uses && l < folding->count; l++) {
        struct fold_list *list = &folding->lists[l];
        uint64_t *keys = ARENA_ARRAY(folding->arena, list->count + 1, uint64_t);
        for (size_t i = 0; keys && i < list->count; i++)
            keys[i] = round_key(&list->ops[i]);
        if (!keys || !repeats_most(keys, list->count, LEAST_TIMES, &list->rounds))
            return false;
        if (2 * list->rounds.times * list->rounds.length <= list->count)
            list->rounds.times = 0;
        else if (!find_begins(folding, l, uses))
            return false;
    }
    return uses != NULL;
}

/* The begin of that key, if it crosses as little as the n-th one; else the n-th. SIZE_MAX: there are fewer. */
static size_t choose_begin(const struct fold_list *list, size_t n, uint64_t key)
{
    const struct stretch *rounds = &list->rounds;
    if (n >= rounds->length)
        return SIZE_MAX;
    for (size_t i = 0; i < rounds->length && list->begins[i].crossed <= list->begins[n].crossed;
         i++)
        if (round_key(&list->ops[rounds->first + list->begins[i].place]) == key)
            return list->begins[i].place;
    return list->begins[n].place;
}

/* Divides of each rank the list that is the n-th with rounds; *divides: there are as many, and places to begin. */
static bool divide_by_rounds(struct step_folding *folding, size_t n, size_t begin, bool *divides)
{
    const size_t ranks = (size_t)folding->plan->ranks;
    size_t *before = ARENA_ARRAY(folding->arena, ranks, size_t), divided = 0;
    if (!before)
        return false;
    uint64_t key = 0; /* of the first one's begin: ranks begin at one line, if they can */
    memset(before, 0, ranks * sizeof *before);
    folding->steps = SIZE_MAX;
    for (size_t l = 0; l < folding->count; l++) {
        struct fold_list *list = &folding->lists[l];
        const struct stretch *rounds = &list->rounds;
        list->bounds = NULL;
        const size_t first = rounds->times > 0 && before[list->thread->rank]++ == n
                                 ? choose_begin(list, begin, key)
                                 : SIZE_MAX;
        if (first == SIZE_MAX)
            continue;
        const size_t steps = rounds->times - (first > 0);
        key = divided > 0 ? key : round_key(&list->ops[rounds->first + first]);
        list->bounds = ARENA_ARRAY(folding->arena, steps + 1, size_t);
        if (!list->bounds)
            return false;
        for (size_t k = 0; k <= steps; k++)
            list->bounds[k] = rounds->first + first + k * rounds->length;
        folding->steps = min_size(folding->steps, steps);
        divided++;
    }
    *divides = divided == ranks && folding->steps >= LEAST_TIMES;
    return true;
}

/* True if a bound was found that was not known, or was further behind. */
static bool follow_bounds(struct step_folding *folding, size_t l)
{
    struct fold_list *list = &folding->lists[l];
    bool more = false;
    for (size_t i = 0; i < list->count; i++) {
        if (!is_plain_flag(&list->ops[i], OP_AWAIT))
            continue;
        const struct fold_flag *flag = &folding->flags[list->ops[i].object];
        const struct fold_list *other = &folding->lists[flag->list];
        if (flag->sets != 1 || other == list || !other->bounds)
            continue;
        size_t k = SORT_FIRST(n, 0, folding->steps + 1, other->bounds[n] > flag->at);
        for (; k > 0 && list->bounds[k - 1] > i; k--) { /* those before are no further behind */
            list->bounds[k - 1] = i;
            more = true;
        }
    }
    return more;
}

static bool find_step_bounds(struct step_folding *folding)
{
    bool *marked = ARENA_ARRAY(folding->arena, folding->count + 1, bool);
    for (size_t l = 0; marked && l < folding->count; l++) {
        struct fold_list *list = &folding->lists[l];
        marked[l] = list->bounds != NULL;
        if (marked[l])
            continue;
        list->bounds = ARENA_ARRAY(folding->arena, folding->steps + 1, size_t);
        for (size_t k = 0; list->bounds && k <= folding->steps; k++)
            list->bounds[k] = list->count;
        if (!list->bounds)
            return false;
    }
    for (bool more = marked != NULL; more;) {
        more = false;
        for (size_t l = 0; l < folding->count; l++)
            more |= !marked[l] && follow_bounds(folding, l);
    }
    return marked != NULL;
}

/* The step of an operation; SIZE_MAX: none. */
static size_t fold_step_of(const struct step_folding *folding, const struct fold_list *list,
                           size_t at)
{
    const size_t behind = SORT_FIRST(k, 0, folding->steps + 1, list->bounds[k] > at);
    assert(behind == 0 || list->bounds[behind - 1] <= at);
    return behind == 0 || behind > folding->steps ? SIZE_MAX : behind - 1;
}

static bool fold_has_version(const struct step_folding *folding, size_t l, const struct host_op *op)
{
    return op_operand(op->kind) == OPERAND_EVENT && op->object >= 0 && !op_asks(op->kind) &&
           !fold_event_of(folding, l, op)->shared && !host_op_is_external(op);
}

static bool find_versions(struct step_folding *folding, size_t l)
{
    struct fold_list *list = &folding->lists[l];
    size_t *last = ARENA_ARRAY(folding->arena, folding->plan->events.count + 1, size_t);
    list->versions = ARENA_ARRAY(folding->arena, list->count + 1, size_t);
    if (!last || !list->versions)
        return false;
    memset(last, 0, folding->plan->events.count * sizeof *last);
    for (size_t i = 0; i < list->count; i++) {
        const struct host_op *op = &list->ops[i];
        const bool own = fold_has_version(folding, l, op);
        if (own && op->kind == OP_RECORD)
            last[op->object] = i + 1;
        list->versions[i] = own ? last[op->object] : 0;
        struct fold_flag *flag = is_plain_flag(op, OP_AWAIT) ? &folding->flags[op->object] : NULL;
        if (flag && flag->sets == 1) {
            const size_t step = fold_step_of(folding, list, i);
            flag->own += step != SIZE_MAX &&
                         step == fold_step_of(folding, &folding->lists[flag->list], flag->at);
        }
    }
    return true;
}

/* ---- memory of a step alone ------------------------------------------------------------------------ */

typedef void owned_visit(struct step_memories *memories, int home, const struct host_op *op,
                         size_t step);

static void owned_visit_all(struct step_folding *folding, owned_visit *visit)
{
    const struct plan *plan = folding->plan;
    for (size_t l = 0; l < folding->count; l++)
        for (size_t i = 0; i < folding->lists[l].count; i++)
            visit(&folding->memories, folding->lists[l].thread->rank, &folding->lists[l].ops[i],
                  fold_step_of(folding, &folding->lists[l], i));
    for (size_t g = 0; g < plan->graph_count; g++)
        for (size_t i = 0; i < plan->graphs[g].op_count; i++)
            for (int rank = 0; rank < plan->ranks; rank++)
                visit(&folding->memories, rank, &plan->graphs[g].ops[i], STEP_NONE);
}

/* ---- which steps do the same ------------------------------------------------------------------------ */

/* Where they stand in their lists; `a` in step `a_step` of its. */
struct fold_pair {
    size_t list, a, b, a_step, b_step;
    int rank; /* of what they access */
};

static bool fold_same_list(const struct step_folding *folding, const struct fold_pair *at,
                           const struct index_list *a, const struct index_list *b)
{
    return step_memory_same(&folding->memories, at->rank, a, at->a_step, b, at->b_step);
}

static bool fold_same_part(const struct step_folding *folding, const struct fold_pair *at,
                           const struct p2p_part *a, const struct p2p_part *b)
{
    return a->is_collective == b->is_collective && a->send == b->send && a->peer == b->peer &&
           a->collective == b->collective && a->root == b->root && a->comm == b->comm &&
           a->stream == b->stream && a->device == b->device && a->bytes == b->bytes &&
           a->elements == b->elements && a->element == b->element && equal_text(a->tag, b->tag) &&
           fold_same_list(folding, at, &a->reads, &b->reads) &&
           fold_same_list(folding, at, &a->writes, &b->writes);
}

static bool fold_same_details(const struct host_op *a, const struct host_op *b)
{
    const struct host_details *left = host_op_details(a), *right = host_op_details(b);
    return left->cost.bytes == right->cost.bytes && left->cost.flops == right->cost.flops &&
           left->cost.rate == right->cost.rate && equal_text(left->cost.shapes, right->cost.shapes);
}

/* What the members say that depend on the kind. */
static bool fold_same_kind(const struct step_folding *folding, const struct fold_pair *at,
                           const struct host_op *a, const struct host_op *b)
{
    bool same = host_op_part_count(a) == host_op_part_count(b) && host_op_body_count(a) == 0 &&
                host_op_body_count(b) == 0 && !host_op_process_group(a) &&
                !host_op_process_group(b) && host_op_bytes(a) == host_op_bytes(b);
    for (size_t i = 0; same && i < host_op_part_count(a); i++) {
        struct fold_pair part = *at;
        part.rank = p2p_part_rank(a, &a->parts[i], folding->lists[at->list].thread->rank);
        same = fold_same_part(folding, &part, &a->parts[i], &b->parts[i]);
    }
    if (!same || op_asks(a->kind) || a->has_branches || b->has_branches)
        return false;
    if (a->kind == OP_LAUNCH)
        return a->is_graph == b->is_graph && a->graph == b->graph;
    if (a->kind == OP_COPY)
        return a->direction == b->direction && a->pageable == b->pageable;
    if (a->kind == OP_COLLECTIVE)
        return a->collective == b->collective && a->root == b->root;
    if (a->kind == OP_SYNC)
        return a->sync == b->sync;
    if (a->kind == OP_RECORD || a->kind == OP_WAIT)
        return a->external == b->external;
    if (a->kind == OP_SIGNAL || a->kind == OP_AWAIT)
        return !a->flag_use.given && !b->flag_use.given;
    return a->kind == OP_HOST || a->kind == OP_COMPUTE || a->kind == OP_GROUP ||
           a->kind == OP_LOCK || a->kind == OP_UNLOCK;
}

static bool fold_same_flag(const struct step_folding *folding, const struct fold_pair *at)
{
    const struct host_op *ops = folding->lists[at->list].ops;
    const struct fold_flag *a = &folding->flags[ops[at->a].object],
                           *b = &folding->flags[ops[at->b].object];
    const struct fold_list *setter = &folding->lists[a->list];
    return !a->other && !b->other && a->sets == 1 && b->sets == 1 && a->list == b->list &&
           a->awaits == a->own && b->awaits == b->own && a->own == b->own &&
           fold_step_of(folding, setter, a->at) == at->a_step &&
           fold_step_of(folding, setter, b->at) == at->b_step &&
           a->at - setter->bounds[at->a_step] == b->at - setter->bounds[at->b_step];
}

static bool fold_same_object(const struct step_folding *folding, const struct fold_pair *at)
{
    const struct fold_list *list = &folding->lists[at->list];
    const struct host_op *a = &list->ops[at->a], *b = &list->ops[at->b];
    if (op_operand(a->kind) == OPERAND_FLAG)
        return fold_same_flag(folding, at);
    if (a->object < 0 || b->object < 0 || op_operand(a->kind) != OPERAND_EVENT ||
        !fold_has_version(folding, at->list, a) || !fold_has_version(folding, at->list, b))
        return a->object == b->object;
    const size_t version = list->versions[at->a], other = list->versions[at->b];
    return version == 0 || other == 0 ? version == other : at->a - version == at->b - other;
}

static bool fold_same_op(const struct step_folding *folding, const struct fold_pair *at)
{
    const struct fold_list *list = &folding->lists[at->list];
    const struct host_op *a = &list->ops[at->a], *b = &list->ops[at->b];
    return a->kind == b->kind && a->stream == b->stream && a->comm == b->comm &&
           a->object_rank == b->object_rank && a->device == b->device && a->sm == b->sm &&
           a->time_ns == b->time_ns && a->host_time_ns == b->host_time_ns &&
           fold_same_kind(folding, at, a, b) && fold_same_object(folding, at) &&
           equal_text(a->name, b->name) && equal_text(a->at, b->at) &&
           fold_same_list(folding, at, host_op_reads(a), host_op_reads(b)) &&
           fold_same_list(folding, at, host_op_writes(a), host_op_writes(b)) &&
           fold_same_details(a, b);
}

static bool fold_same_steps(void *owner, size_t a, size_t b)
{
    struct step_folding *folding = owner;
    for (size_t l = 0; l < folding->count; l++) {
        const struct fold_list *list = &folding->lists[l];
        const size_t count = list->bounds[a + 1] - list->bounds[a];
        const size_t other = list->bounds[b + 1] - list->bounds[b];
        for (size_t i = 0; i < count || i < other; i++) {
            struct fold_pair at = {l, list->bounds[a] + i, list->bounds[b] + i, a, b, 0};
            if (i < count)
                at.rank = host_op_rank(&list->ops[at.a], list->thread->rank);
            if (i < count && i < other && fold_same_op(folding, &at))
                continue;
            folding->differs = &list->ops[i < other ? at.b : at.a];
            folding->differs_list = l;
            return false;
        }
    }
    return true;
}

/* ---- the repeated step ---------------------------------------------------------------------------------- */

static size_t run_begin(const struct step_folding *folding, const struct fold_list *list)
{
    return list->bounds[folding->run.from];
}

static size_t run_length(const struct step_folding *folding, const struct fold_list *list)
{
    return list->bounds[folding->run.from + folding->run.turns] - run_begin(folding, list);
}

/* What is recorded in the run is looked at before it is recorded again. */
static bool looks_in_time(const struct step_folding *folding, const struct fold_list *list)
{
    const size_t begin = run_begin(folding, list), length = run_length(folding, list);
    const size_t end = begin + folding->run.times * length;
    for (size_t i = begin; i < list->count; i++) {
        const size_t version = list->versions[i];
        const size_t latest = i < end ? i : end;
        if (version > begin && version <= end && version + length <= latest)
            return false;
        if (version > 0 && version <= begin && i < end && version + length <= i)
            return false;
    }
    return true;
}

static bool names_differ(const struct step_folding *folding, const struct fold_list *list)
{
    const size_t begin = run_begin(folding, list), length = run_length(folding, list);
    for (size_t i = begin + length; i < begin + folding->run.times * length; i++)
        if (op_operand(list->ops[i].kind) == OPERAND_EVENT &&
            list->ops[i].object != list->ops[begin + (i - begin) % length].object)
            return true;
    return false;
}

/* Where iterations name their events differently, what is recorded at each place of the iteration has a name of its own,
   also if it is recorded in the iteration that would be in front of the first. */
static bool rename_records(const struct step_folding *folding, const struct fold_list *list)
{
    struct plan *plan = folding->plan;
    const size_t begin = run_begin(folding, list), length = run_length(folding, list);
    const size_t end = begin + folding->run.times * length;
    if (length == 0 || !names_differ(folding, list))
        return true;
    int *names = ARENA_ARRAY(folding->arena, length, int);
    bool *looked_at =
        ARENA_ARRAY(folding->arena, list->count + 1, bool); /* 1 + place of a record */
    if (!names || !looked_at)
        return false;
    memset(looked_at, 0, (list->count + 1) * sizeof *looked_at);
    for (size_t i = 0; i < length; i++) {
        const struct host_op *op = &list->ops[begin + i];
        const char *name =
            list->versions[begin + i] == begin + i + 1
                ? arena_printf(&plan->arena, "%s.%zu", plan->events.items[op->object], i)
                : "";
        names[i] = name && *name ? names_intern(&plan->events, &plan->arena, name) : -1;
        if (!name || (*name && names[i] < 0))
            return false;
    }
    for (size_t i = begin; i < end; i++)
        looked_at[list->versions[i]] = true;
    for (size_t i = 0; i < list->count; i++) {
        const size_t version = list->versions[i], record = version - 1;
        if (version > 0 && record < end && (record >= begin || looked_at[version]))
            list->ops[i].object = names[(record + length - begin) % length];
    }
    return true;
}

static int owned_name_buffer(void *owner, const char *name)
{
    struct step_folding *folding = owner;
    struct plan *plan = folding->plan;
    const size_t known = folding->owned.count;
    const int owned = names_intern(&folding->owned, folding->arena, name);
    if ((size_t)owned == known) {
        if (!ARENA_GROW(&plan->arena, plan->buffers, plan->buffer_count, folding->buffer_cap))
            return -1;
        plan->buffers[plan->buffer_count++] = (struct buffer){.name = name};
    }
    return owned < 0 ? -1 : (int)folding->memories.buffer_count + owned;
}

/* The first iteration's memory gets the names of all. */
static bool owned_rename(struct step_folding *folding, struct fold_list *list)
{
    const struct step_names names = {.plan = folding->plan,
                                     .from = folding->run.from,
                                     .turns = folding->run.turns,
                                     .buffer = owned_name_buffer,
                                     .owner = folding};
    for (size_t i = 0; i < run_length(folding, list); i++)
        if (!step_memory_rename(&folding->memories, &names, list->thread->rank,
                                &list->ops[run_begin(folding, list) + i]))
            return false;
    return true;
}

/* The flag that stands for this one in the first iteration. */
static int first_flag(const struct step_folding *folding, int flag)
{
    const struct fold_list *setter = &folding->lists[folding->flags[flag].list];
    const size_t begin = run_begin(folding, setter);
    return setter->ops[begin + (folding->flags[flag].at - begin) % run_length(folding, setter)]
        .object;
}

static bool fold_write(struct step_folding *folding, struct fold_list *list)
{
    struct plan *plan = folding->plan;
    struct host_thread *thread = list->thread;
    const bool folds = folding->run.times > 0;
    const size_t begin = folds ? run_begin(folding, list) : 0;
    const size_t length = folds ? run_length(folding, list) : 0;
    struct host_op *ops = ARENA_ARRAY(&plan->arena, list->count + 1, struct host_op);
    if (!ops)
        return false;
    memcpy(ops, list->ops, list->count * sizeof *ops);
    for (size_t i = begin; length > 0 && i < begin + folding->run.times * length; i++) {
        /* What it reads that nobody changes is the same in all. */
        const struct host_op *first = &list->ops[begin + (i - begin) % length];
        ops[i].accesses = first->accesses;
        if (host_op_part_count(&ops[i]) > 0)
            ops[i].parts = first->parts;
        ops[i].iteration = 1 + (int)((i - begin) / length);
        if (op_operand(ops[i].kind) != OPERAND_FLAG)
            continue;
        ops[i].object = step_flag(plan, plan->flags.items[first_flag(folding, ops[i].object)],
                                  (i - begin) / length);
        if (ops[i].object < 0)
            return false;
    }
    thread->ops = ops;
    thread->op_count = list->count;
    if (length == 0)
        return true;
    thread->repeats = ARENA_NEW(&plan->arena, struct repeat);
    thread->repeat_count = thread->repeats != NULL;
    if (thread->repeats)
        *thread->repeats = (struct repeat){begin, length, (int)folding->run.times};
    return thread->repeats != NULL;
}

/* ---- all of it -------------------------------------------------------------------------------------- */

/* The buffers of a rank's operations. */
static void fold_mark_list(bool *marks, const struct index_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        marks[list->items[i]] = true;
}

static void fold_mark(bool *marks, const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fold_mark_list(marks, host_op_writes(&ops[i]));
        fold_mark_list(marks, host_op_reads(&ops[i]));
        for (size_t k = 0; k < host_op_part_count(&ops[i]); k++) {
            fold_mark_list(marks, &ops[i].parts[k].writes);
            fold_mark_list(marks, &ops[i].parts[k].reads);
        }
        if (op_operand(ops[i].kind) == OPERAND_BUFFER)
            marks[ops[i].object] = true;
        fold_mark(marks, ops[i].body, host_op_body_count(&ops[i]));
    }
}

static bool fold_begin(struct step_folding *folding)
{
    struct plan *plan = folding->plan;
    folding->count = plan->thread_count;
    folding->buffer_cap = plan->buffer_count;
    folding->lists = ARENA_ARRAY(folding->arena, folding->count + 1, struct fold_list);
    folding->flags = ARENA_ARRAY(folding->arena, plan->flags.count + 1, struct fold_flag);
    folding->events = ARENA_ARRAY(folding->arena, (size_t)plan->ranks * plan->events.count + 1,
                                  struct fold_event);
    if (!folding->lists || !folding->flags || !folding->events)
        return false;
    for (size_t l = 0; l < folding->count; l++) {
        struct host_thread *thread = &plan->threads[l];
        struct host_op *ops = ARENA_ARRAY(folding->arena, thread->op_count + 1, struct host_op);
        if (!ops)
            return false;
        memcpy(ops, thread->ops, thread->op_count * sizeof *ops);
        folding->lists[l] =
            (struct fold_list){.thread = thread, .ops = ops, .count = thread->op_count};
    }
    return true;
}

/* Of the lists that are divided into steps. */
static bool fold_find_run(struct step_folding *folding)
{
    for (size_t f = 0; f < folding->plan->flags.count; f++)
        folding->flags[f].own = 0;
    if (!find_step_bounds(folding) ||
        !step_memory_init(&folding->memories, folding->arena, folding->plan, 0,
                          folding->plan->ranks, folding->steps))
        return false;
    owned_visit_all(folding, step_memory_use);
    owned_visit_all(folding, step_memory_number);
    for (size_t l = 0; l < folding->count; l++)
        if (!find_versions(folding, l))
            return false;
    folding->run =
        step_run_find(folding->steps, MOST_IN_TURNS, LEAST_TIMES, fold_same_steps, folding);
    for (size_t l = 0; folding->run.times > 0 && l < folding->count; l++)
        if (!looks_in_time(folding, &folding->lists[l]))
            folding->run.times = 0;
    return true;
}

static bool fold_find_rounds(struct step_folding *folding)
{
    folding->by_rounds = true;
    if (!find_rounds(folding))
        return false;
    for (size_t n = 0; n < MOST_DIVIDED; n++)
        for (size_t begin = 0; begin < MOST_BEGINS; begin++) {
            bool divides;
            if (!divide_by_rounds(folding, n, begin, &divides) ||
                (divides && !fold_find_run(folding)))
                return false;
            if (folding->run.times > 0)
                return true;
            if (!divides)
                break;
        }
    return true;
}

static bool fold_analyse(struct step_folding *folding)
{
    if (!fold_begin(folding) || !fold_trim_all(folding) || !find_marks(folding))
        return false;
    return folding->steps < LEAST_TIMES ? fold_find_rounds(folding) : fold_find_run(folding);
}

/* "step 7 differs in aten.mm at train.py:9 of r0.main"; the first mark ends step 1. */
static const char *fold_difference(const struct step_folding *folding, size_t step)
{
    const struct host_op *op = folding->differs;
    const struct host_thread *thread = folding->lists[folding->differs_list].thread;
    if (!op)
        return "";
    return arena_printf(&folding->plan->arena, "; step %zu differs in %s%s%s of r%d.%s", step + 2,
                        op->name ? op->name : op_key(op->kind), op->at ? " at " : "",
                        op->at ? op->at : "", thread->rank, thread->name);
}

/* Which steps are written once, and what the next one does otherwise. */
static const char *fold_words(struct step_folding *folding)
{
    struct arena *arena = &folding->plan->arena;
    const size_t behind = folding->run.from + folding->run.turns * folding->run.times;
    if (folding->run.times == 0 && folding->by_rounds)
        return "";
    if (folding->run.times == 0) {
        const size_t middle = folding->steps / 2;
        const bool asked = folding->steps >= LEAST_TIMES;
        const char *where = asked && !fold_same_steps(folding, middle - 1, middle)
                                ? fold_difference(folding, middle)
                                : "";
        return asked && where ? arena_printf(arena, "; no steps are alike%s", where) : where;
    }
    const struct step_run *run = &folding->run;
    if (folding->by_rounds)
        return arena_printf(arena, "; %zu rounds are alike and written once, no step is marked",
                            run->turns * run->times);
    const bool differs = run->end + run->turns < folding->steps &&
                         !fold_same_steps(folding, run->end, run->end + run->turns);
    const char *where = differs ? fold_difference(folding, behind) : "";
    const char *turns =
        folding->run.turns == 1
            ? ""
            : arena_printf(arena, ", with memory in turns of %zu", folding->run.turns);
    return where && turns ? arena_printf(arena, "; steps %zu to %zu are alike and written once%s%s",
                                         folding->run.from + 2, behind + 1, turns, where)
                          : NULL;
}

/* A plan names as inputs only what its operations use. */
static bool fold_forget_inputs(const struct step_folding *folding)
{
    struct plan *plan = folding->plan;
    bool *used = ARENA_ARRAY(folding->arena, plan->buffer_count + 1, bool);
    if (!used)
        return false;
    memset(used, 0, (plan->buffer_count + 1) * sizeof *used);
    for (size_t t = 0; t < plan->thread_count; t++)
        fold_mark(used, plan->threads[t].ops, plan->threads[t].op_count);
    for (size_t g = 0; g < plan->graph_count; g++)
        fold_mark(used, plan->graphs[g].ops, plan->graphs[g].op_count);
    for (size_t i = 0; i < plan->buffer_count; i++)
        plan->buffers[i].input &= used[i];
    return true;
}

static bool fold_write_all(struct step_folding *folding)
{
    struct plan *plan = folding->plan;
    for (size_t l = 0; l < folding->count; l++)
        if (!fold_write(folding, &folding->lists[l]))
            return false;
    plan->thread_count = 0;
    for (size_t l = 0; l < folding->count; l++)
        if (plan->threads[l].op_count > 0)
            plan->threads[plan->thread_count++] = plan->threads[l];
    return fold_forget_inputs(folding);
}

bool recorded_fold(struct plan *plan, bool always, bool *folds)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct step_folding folding = {.plan = plan, .arena = &arena};
    bool good = fold_analyse(&folding);
    *folds = folding.run.times > 0;
    if (good) {
        const char *words = fold_words(&folding);
        plan->about = words ? arena_printf(&plan->arena, "%s%s", plan->about, words) : NULL;
        good = plan->about != NULL;
    }
    for (size_t l = 0; good && folding.run.times > 0 && l < folding.count; l++)
        good = rename_records(&folding, &folding.lists[l]) &&
               owned_rename(&folding, &folding.lists[l]);
    if (good && (folding.run.times > 0 || always))
        good = fold_write_all(&folding);
    arena_fini(&arena);
    return good;
}
