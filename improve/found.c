/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.c - see found.h: the problem that a search solves, what each rank may hold, and which lists are the best.
 *
 * A search (bubble.h) knows times and a number of activations a rank, and no channels or bytes. Where the plan has
 * channels that messages share, the order that was found is compared under them with the lists of rules and with orders
 * found for slower messages. Where the plan has bytes, a rank whose lists need more than its memory may hold fewer
 * activations in the next search.
 */
#include "found.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bubble.h"
#include "plan/schedules/comms.h"
#include "plan/schedules/costs.h"
#include "plan/schedules/parallel.h"
#include "plan/schedules/rank_memory.h"

enum { WHOLE = 100, HALF = 50, FITTINGS = 8 };

/* Lists of schedules that are made by rules, for the same ranks and chunks: what is found is as good as each that keeps
   within the memory. The search begins with the first one if `begins`. */
struct known_lists {
    struct rank_program *lists[3];
    size_t count;
    bool begins;
};

/* ---- what each rank may hold -----------------------------------------------------------------
 *
 * `generate: {memory: N}` says it for all ranks; without it, the schedule. Neither may be more than `machine: {memory}`
 * has room for beside weights and state of the rank's own stages; `memory: fit` is as many as that. An activation is as
 * large as that of the rank's largest stage. The memory of messages is known when there are lists: lower_limits. */

struct found_limits {
    const struct plan *costs;
    int ranks;
    bool by_bytes;             /* machine: {memory} counts: it is given, and no number is */
    int *of;                   /* per rank: activations of a stage */
    int64_t *activation_bytes; /* per rank, at least 1; NULL unless by_bytes */
};

/* As if the machine's memory were not given. */
static void set_own_limits(struct found_limits *limits, const struct generate_spec *spec)
{
    for (int rank = 0; rank < limits->ranks; rank++)
        limits->of[rank] = spec->memory == GENERATE_FIT ? spec->microbatches * spec->chunks
                                                        : generate_memory(spec);
}

/* Of the rank with the least, and with the most. */
static void limits_range(const struct found_limits *limits, int *least, int *most)
{
    *least = *most = limits->of[0];
    for (int rank = 1; rank < limits->ranks; rank++) {
        *least = limits->of[rank] < *least ? limits->of[rank] : *least;
        *most = limits->of[rank] > *most ? limits->of[rank] : *most;
    }
}

/* True if every rank may hold one activation at least. */
static bool limits_hold(const struct found_limits *limits)
{
    int least, most;
    limits_range(limits, &least, &most);
    return least > 0;
}

/* The bytes that a stage keeps of a microbatch between its passes. */
static int64_t kept_bytes(const struct plan *costs, const struct stage_cost *stage)
{
    bool never = costs->programs.stages.checkpoint == CHECKPOINT_NEVER;
    return stage->of[never ? COST_ACTIVATION : COST_INPUT];
}

/* Less than one: weights and state leave no room. */
static void limit_rank(struct found_limits *limits, int rank, const int *rank_of,
                       const struct stage_cost *rows, int stages)
{
    int64_t memory = machine_memory(&limits->costs->machine, rank), left_bytes = memory, each = 1;
    for (int stage = 0; stage < stages; stage++) {
        if (rank_of[stage] != rank)
            continue;
        int64_t kept = kept_bytes(limits->costs, &rows[stage]);
        left_bytes -= rows[stage].of[COST_WEIGHTS] + rows[stage].of[COST_STATE];
        each = kept > each ? kept : each;
    }
    limits->activation_bytes[rank] = each;
    if (memory && left_bytes / each < limits->of[rank])
        limits->of[rank] = left_bytes > 0 ? (int)(left_bytes / each) : 0;
}

static enum status limit_by_bytes(struct found_limits *limits, const struct generate_spec *spec,
                                  const int *rank_of, struct arena *arena, struct diag *diag)
{
    int stages = spec->ranks * spec->chunks;
    struct stage_cost *rows;
    limits->activation_bytes = ARENA_ARRAY(arena, (size_t)spec->ranks, int64_t);
    if (!limits->activation_bytes)
        return diag_no_memory(diag);
    enum status status = costs_resolve(limits->costs, stages, arena, &rows, diag);
    for (int rank = 0; status == STATUS_OK && rank < spec->ranks; rank++)
        limit_rank(limits, rank, rank_of, rows, stages);
    return status;
}

/* `rank_of`: per stage. `costs` may be NULL, and outlives *out; the arrays are in `arena`. */
static enum status make_limits(const struct generate_spec *spec, const struct plan *costs,
                               const int *rank_of, struct arena *arena, struct found_limits *out,
                               struct diag *diag)
{
    bool by_bytes = costs && spec->memory <= 0 && machine_has_memory(&costs->machine);
    *out = (struct found_limits){.costs = costs,
                                 .ranks = spec->ranks,
                                 .by_bytes = by_bytes,
                                 .of = ARENA_ARRAY(arena, (size_t)spec->ranks, int)};
    if (!out->of)
        return diag_no_memory(diag);
    if (spec->memory == GENERATE_FIT && !by_bytes)
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found memory: fit, expected machine: {memory} beside it",
                             spec->schedule);
    set_own_limits(out, spec);
    return by_bytes ? limit_by_bytes(out, spec, rank_of, arena, diag) : STATUS_OK;
}

static enum status weigh_lists(const struct found_limits *limits, const struct rank_program *lists,
                               struct arena *arena, struct rank_memory **ranks, struct diag *diag)
{
    struct rank_program *with = ARENA_ARRAY(arena, (size_t)limits->ranks, struct rank_program);
    if (!with)
        return diag_no_memory(diag);
    for (int rank = 0; rank < limits->ranks; rank++)
        with[rank] = lists[rank];
    enum status status = comms_add(arena, with, limits->ranks, 1, diag);
    return status == STATUS_OK ? rank_memory_of_lists(limits->costs, with, arena, ranks, diag)
                               : status;
}

/* True in *fits: the lists keep to the bytes. Else the ranks that do not may hold less from now on. */
static enum status lower_limits(struct found_limits *limits, const struct bubble_problem *problem,
                                const struct rank_program *lists, bool *fits, struct diag *diag)
{
    struct arena scratch;
    struct rank_memory *ranks;
    *fits = true;
    if (!limits->by_bytes)
        return STATUS_OK;
    arena_init(&scratch, 0);
    enum status status = weigh_lists(limits, lists, &scratch, &ranks, diag);
    for (int rank = 0; status == STATUS_OK && rank < limits->ranks; rank++) {
        int64_t memory = machine_memory(&limits->costs->machine, rank);
        int64_t excess = ranks[rank].most - memory;
        if (!memory || excess <= 0)
            continue;
        int64_t held = bubble_channel_held(problem, &lists[rank]);
        int64_t less = held - excess / limits->activation_bytes[rank] - 1;
        /* Much of the excess may be what I leaves or computes again: that shrinks with each step, too. */
        limits->of[rank] = (int)(less > held / 2 ? less : held / 2);
        *fits = false;
    }
    arena_fini(&scratch);
    return status;
}

/* ---- the problem ----------------------------------------------------------------------------- */

/* Where a plan gives no times at all, every pass takes one; a backward that is given whole has two equal halves. */
static struct pass_times found_times_of(const struct stage_cost *cost)
{
    bool split = cost->given[COST_I] || cost->given[COST_W];
    if (!split && !cost->given[COST_F] && !cost->given[COST_B])
        return (struct pass_times){1, 1, 1};
    int64_t exchange_ns = cost->of[COST_DISPATCH] + cost->of[COST_COMBINE];
    return (struct pass_times){
        .f_ns = cost->of[COST_F] + exchange_ns,
        .i_ns = (split ? cost->of[COST_I] : cost->of[COST_B] / 2) + exchange_ns,
        .w_ns = split ? cost->of[COST_W] : cost->of[COST_B] - cost->of[COST_B] / 2,
    };
}

/* Where a plan says nothing of activations, I leaves half of one for W. */
static int found_left_of(const struct stage_cost *cost)
{
    int64_t whole = cost->of[COST_ACTIVATION], left = cost->of[COST_LEFT];
    if (whole <= 0)
        return HALF;
    double percent = WHOLE * (double)left / (double)whole;
    return left < whole ? (int)percent + (percent > (int)percent) : WHOLE;
}

static enum status found_fill_stages(const struct plan *costs, int stages, struct arena *arena,
                                     struct pass_times *times, int *left_percent, struct diag *diag)
{
    struct stage_cost *rows = NULL;
    enum status status = costs ? costs_resolve(costs, stages, arena, &rows, diag) : STATUS_OK;
    for (int stage = 0; status == STATUS_OK && stage < stages; stage++) {
        times[stage] = rows ? found_times_of(&rows[stage]) : (struct pass_times){1, 1, 1};
        left_percent[stage] = rows ? found_left_of(&rows[stage]) : HALF;
    }
    return status;
}

static int64_t found_message_time(const struct plan *costs, int from, int to, bool forward)
{
    if (!costs || from == to)
        return 0;
    struct message_cost cost =
        costs_message(costs, from, to, parallel_apart(costs, 0, from, to), forward);
    return cost.latency_ns + cost.transfer_ns;
}

/* Microbatches whose I computes F once more. */
static int again_of(const struct plan *costs, int microbatches)
{
    int count = 0;
    while (costs && count < microbatches && costs_checkpointed(costs, count, microbatches))
        count++;
    return count;
}

static enum status fill_problem(const struct generate_spec *spec, bool vee,
                                const struct plan *costs, struct arena *arena,
                                struct bubble_problem *out, struct diag *diag)
{
    int stages = spec->ranks * spec->chunks, again = again_of(costs, spec->microbatches);
    int *rank_of = ARENA_ARRAY(arena, (size_t)stages, int);
    struct pass_times *times = ARENA_ARRAY(arena, (size_t)stages, struct pass_times);
    int *left_percent = ARENA_ARRAY(arena, (size_t)stages, int);
    int64_t *up_ns = ARENA_ARRAY(arena, (size_t)stages, int64_t);
    int64_t *down_ns = ARENA_ARRAY(arena, (size_t)stages, int64_t);
    int64_t *later_ns = ARENA_ARRAY(arena, (size_t)stages, int64_t);
    if (!rank_of || !times || !left_percent || !up_ns || !down_ns || !later_ns)
        return diag_no_memory(diag);
    enum status status = found_fill_stages(costs, stages, arena, times, left_percent, diag);
    if (status != STATUS_OK)
        return status;
    for (int stage = 0; stage < stages; stage++)
        rank_of[stage] = vee && stage >= spec->ranks ? stages - 1 - stage : stage;
    for (int stage = stages - 1; stage >= 0; stage--) {
        int twin = stages - 1 - stage; /* on the same rank in V shape */
        later_ns[stage] = times[stage].f_ns + times[stage].i_ns;
        if (again == spec->microbatches)
            later_ns[stage] += times[stage].f_ns;
        if (vee && twin > stage)
            later_ns[stage] += later_ns[twin];
    }
    for (int stage = 0; stage + 1 < stages; stage++) {
        up_ns[stage] = found_message_time(costs, rank_of[stage], rank_of[stage + 1], true);
        down_ns[stage] = found_message_time(costs, rank_of[stage + 1], rank_of[stage], false);
    }
    *out = (struct bubble_problem){
        .ranks = spec->ranks,
        .stages = stages,
        .microbatches = spec->microbatches,
        .rank_of = rank_of,
        .times = times,
        .later_ns = later_ns,
        .up_ns = up_ns,
        .down_ns = down_ns,
        .left_percent = left_percent,
        .again = again,
    };
    return STATUS_OK;
}

static int64_t most_work(const struct bubble_problem *problem)
{
    int64_t most_ns = 0;
    for (int rank = 0; rank < problem->ranks; rank++) {
        int64_t work_ns = 0;
        for (int stage = 0; stage < problem->stages; stage++)
            if (problem->rank_of[stage] == rank)
                work_ns += problem->microbatches *
                               (problem->times[stage].f_ns + problem->times[stage].i_ns +
                                problem->times[stage].w_ns) +
                           problem->again * problem->times[stage].f_ns;
        most_ns = work_ns > most_ns ? work_ns : most_ns;
    }
    return most_ns;
}

/* ---- searches ------------------------------------------------------------------------------- */

static struct rank_program *copy_lists(const struct rank_program *from, int count,
                                       struct arena *arena)
{
    struct rank_program *lists = ARENA_ARRAY(arena, (size_t)count, struct rank_program);
    for (int rank = 0; lists && rank < count; rank++) {
        lists[rank].count = from[rank].count;
        lists[rank].actions = ARENA_ARRAY(arena, from[rank].count, struct action);
        if (!lists[rank].actions)
            return NULL;
        memcpy(lists[rank].actions, from[rank].actions,
               from[rank].count * sizeof *from[rank].actions);
    }
    return lists;
}

/* The answer to a problem, which is said as words: all that a search looks at. */
struct found_answer {
    struct arena arena;
    int64_t *words; /* NULL: no answer */
    size_t word_count;
    struct rank_program *ranks;
    struct bubble_figures figures;
};

static int64_t *found_words_of(const struct bubble_problem *problem, bool known,
                               struct arena *arena, size_t *count)
{
    enum { HEAD_WORDS = 5, STAGE_WORDS = 8 };
    *count = HEAD_WORDS + (size_t)problem->ranks + STAGE_WORDS * (size_t)problem->stages;
    int64_t *words = ARENA_ARRAY(arena, *count, int64_t), *to = words;
    if (!words)
        return NULL;
    *to++ = problem->ranks;
    *to++ = problem->stages;
    *to++ = problem->microbatches;
    *to++ = known; /* the problem says which lists these are */
    *to++ = problem->again;
    for (int rank = 0; rank < problem->ranks; rank++)
        *to++ = problem->limits[rank];
    for (int stage = 0; stage < problem->stages; stage++) {
        const struct pass_times *times = &problem->times[stage];
        *to++ = problem->rank_of[stage];
        *to++ = times->f_ns;
        *to++ = times->i_ns;
        *to++ = times->w_ns;
        *to++ = problem->later_ns[stage];
        *to++ = stage + 1 < problem->stages ? problem->up_ns[stage] : 0;
        *to++ = stage + 1 < problem->stages ? problem->down_ns[stage] : 0;
        *to++ = problem->left_percent[stage];
    }
    assert(to == words + *count);
    return words;
}

/* Without memory nothing is remembered. */
static void found_remember(struct found_memo *memo, const struct bubble_problem *problem,
                           bool known, const struct rank_program *ranks,
                           const struct bubble_figures *figures)
{
    struct found_answer *answer = &memo->answers[memo->next++ % FOUND_MEMO];
    arena_fini(&answer->arena);
    *answer = (struct found_answer){.figures = *figures};
    arena_init(&answer->arena, 0);
    answer->ranks = copy_lists(ranks, problem->ranks, &answer->arena);
    if (answer->ranks)
        answer->words = found_words_of(problem, known, &answer->arena, &answer->word_count);
}

static const struct found_answer *recall(const struct found_memo *memo, const int64_t *words,
                                         size_t count)
{
    for (int i = 0; i < FOUND_MEMO; i++) {
        const struct found_answer *answer = &memo->answers[i];
        if (answer->words && answer->word_count == count &&
            memcmp(answer->words, words, count * sizeof *words) == 0)
            return answer;
    }
    return NULL;
}

/* What each search for a plan needs; `memo` may be NULL. */
struct found_finder {
    const struct plan *costs;
    struct arena *arena; /* of the search alone */
    struct found_memo *memo;
    struct diag *diag;
};

/* *ranks NULL: there is no such order. */
static enum status found_solve(const struct found_finder *finder,
                               const struct bubble_problem *problem,
                               const struct rank_program *known, struct rank_program **ranks,
                               struct bubble_figures *figures)
{
    if (finder->memo) {
        size_t count;
        const int64_t *words = found_words_of(problem, known != NULL, finder->arena, &count);
        const struct found_answer *answer = words ? recall(finder->memo, words, count) : NULL;
        *ranks = answer ? copy_lists(answer->ranks, problem->ranks, finder->arena) : NULL;
        if (*ranks) {
            *figures = answer->figures;
            return STATUS_OK;
        }
    }
    if (bubble_search(problem, known, finder->arena, ranks, figures) != STATUS_OK)
        return diag_no_memory(finder->diag);
    if (*ranks && finder->memo)
        found_remember(finder->memo, problem, known != NULL, *ranks, figures);
    return STATUS_OK;
}

enum status found_memo_open(struct found_memo *memo, struct diag *diag)
{
    *memo = (struct found_memo){.answers = calloc(FOUND_MEMO, sizeof *memo->answers)};
    return memo->answers ? STATUS_OK : diag_no_memory(diag);
}

void found_memo_close(struct found_memo *memo)
{
    for (int i = 0; memo->answers && i < FOUND_MEMO; i++)
        arena_fini(&memo->answers[i].arena);
    free(memo->answers);
    *memo = (struct found_memo){0};
}

/* ---- under the channel of the plan ----------------------------------------------------------- */

/* A choice between lists. */
struct found_choice {
    const struct found_finder *finder;
    const struct bubble_problem *problem;
    enum fifo_rule fifo;
    struct rank_program *best;
    struct bubble_figures figures; /* of the best */
};

/* The shorter span; of equal ones, the shorter time in all. */
static bool is_better(const struct bubble_figures *a, const struct bubble_figures *b)
{
    return a->span_ns != b->span_ns ? a->span_ns < b->span_ns : a->makespan_ns < b->makespan_ns;
}

static enum status found_consider(struct found_choice *choice, struct rank_program *lists)
{
    struct diag *diag = choice->finder->diag;
    int ranks = choice->problem->ranks;
    struct bubble_figures figures;
    struct arena scratch;
    arena_init(&scratch, 0);
    struct rank_program *with = ARENA_ARRAY(&scratch, (size_t)ranks, struct rank_program);
    enum status status = with ? STATUS_OK : diag_no_memory(diag);
    for (int rank = 0; with && rank < ranks; rank++)
        with[rank] = lists[rank];
    if (status == STATUS_OK)
        status = comms_add(&scratch, with, ranks, 1, diag);
    if (status == STATUS_OK &&
        bubble_channel_evaluate(choice->problem, choice->fifo, with, &figures) &&
        (!choice->best || is_better(&figures, &choice->figures))) {
        choice->best = lists;
        choice->figures = figures;
    }
    arena_fini(&scratch);
    return status;
}

/* An order found for slower messages leaves room between passes: where messages hold each other up, it may be better. */
static enum status consider_slower(struct found_choice *choice, const struct rank_program *known,
                                   int64_t add_ns)
{
    struct arena *arena = choice->finder->arena;
    struct bubble_problem slower = *choice->problem;
    struct rank_program *made = NULL;
    struct bubble_figures figures;
    size_t stages = (size_t)slower.stages;
    int64_t *up_ns = ARENA_ARRAY(arena, stages, int64_t);
    int64_t *down_ns = ARENA_ARRAY(arena, stages, int64_t);
    if (!up_ns || !down_ns)
        return diag_no_memory(choice->finder->diag);
    for (int stage = 0; stage + 1 < slower.stages; stage++) {
        bool moves = slower.rank_of[stage] != slower.rank_of[stage + 1];
        up_ns[stage] = slower.up_ns[stage] + (moves ? add_ns : 0);
        down_ns[stage] = slower.down_ns[stage] + (moves ? add_ns : 0);
    }
    slower.up_ns = up_ns;
    slower.down_ns = down_ns;
    enum status status = found_solve(choice->finder, &slower, known, &made, &figures);
    return status == STATUS_OK && made ? found_consider(choice, made) : status;
}

/* The best under the plan's channel of what was found, of what rules make, and of what is found for slower messages. */
static enum status found_choose(struct found_choice *choice, struct rank_program *made,
                                const struct bubble_figures *free, const struct known_lists *known)
{
    const struct bubble_problem *problem = choice->problem;
    const struct rank_program *begin = known->begins ? known->lists[0] : NULL;
    enum status status = found_consider(choice, made);
    for (size_t i = 0; status == STATUS_OK && i < known->count; i++)
        if (bubble_channel_fits(problem, known->lists[i]))
            status = found_consider(choice, known->lists[i]);
    int64_t message_ns = problem->stages > 1 ? problem->up_ns[0] : 0;
    int64_t pass_ns = problem->times[0].f_ns;
    const int64_t more_ns[] = {message_ns, pass_ns / 4};
    for (size_t i = 0; i < sizeof more_ns / sizeof *more_ns; i++)
        if (status == STATUS_OK && choice->best && choice->figures.span_ns > free->span_ns &&
            more_ns[i] > 0)
            status = consider_slower(choice, begin, more_ns[i]);
    return status;
}

/* True if the order is for a plan whose messages go one by one. */
static bool has_channel(const struct plan *costs)
{
    return costs && costs->programs.generate.given && !costs->programs.batch &&
           costs->programs.metadata == METADATA_NONE && !costs->programs.eager_messages &&
           !costs->programs.eager_bytes && !costs->comm_count;
}

/* The best within the limits of the problem; *ranks NULL: there is none. */
static enum status find_best(const struct found_finder *finder,
                             const struct bubble_problem *problem, const struct known_lists *known,
                             struct rank_program **ranks, struct bubble_figures *figures)
{
    const struct rank_program *begin = known->begins ? known->lists[0] : NULL;
    struct found_choice choice = {.finder = finder, .problem = problem};
    enum status status = found_solve(finder, problem, begin, ranks, figures);
    if (status == STATUS_OK && *ranks && has_channel(finder->costs)) {
        choice.fifo = finder->costs->programs.fifo;
        status = found_choose(&choice, *ranks, figures, known);
    }
    if (status == STATUS_OK && choice.best) {
        *ranks = choice.best;
        *figures = choice.figures;
    }
    return status;
}

/* Fewer activations until messages have room beside them, too. *ranks NULL: the memory is too small. */
static enum status find_fitting(const struct found_finder *finder,
                                const struct bubble_problem *problem, struct found_limits *limits,
                                const struct known_lists *known, struct rank_program **ranks,
                                struct bubble_figures *figures)
{
    bool fits = false;
    for (int tries = 0; tries < FITTINGS && !fits && limits_hold(limits); tries++) {
        enum status status = find_best(finder, problem, known, ranks, figures);
        if (status != STATUS_OK || !*ranks)
            return status;
        status = lower_limits(limits, problem, *ranks, &fits, finder->diag);
        if (status != STATUS_OK)
            return status;
    }
    if (!fits)
        *ranks = NULL;
    return STATUS_OK;
}

/* ---- the schedules --------------------------------------------------------------------------- */

static enum status refuse_memory(const struct generate_spec *spec, struct diag *diag)
{
    if (spec->memory == GENERATE_FIT)
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found memory: fit, but no order that was tried fits into "
                             "machine.memory",
                             spec->schedule);
    return diag_error_at(diag, NULL, NULL, spec->mark,
                         "%s: found memory for %d activations, expected more: no order of %d "
                         "stages a rank that was tried needs as few",
                         spec->schedule, generate_memory(spec), spec->chunks);
}

/* Lists of the rule `name` for the ranks and chunks of `spec`. */
static enum status add_known(const struct generate_spec *spec, const char *name,
                             struct known_lists *known, struct arena *arena, struct diag *diag)
{
    struct generate_spec rule = *spec;
    int ranks;
    rule.schedule = name;
    rule.memory = 0;
    return generate_program(&rule, arena, &known->lists[known->count++], &ranks, diag);
}

/* 1F1B with a backward in two halves, W at once. */
static bool split_backwards(struct rank_program *ranks, int count, struct arena *arena)
{
    for (int rank = 0; rank < count; rank++) {
        struct rank_program *list = &ranks[rank], split = {0};
        split.actions = ARENA_ARRAY(arena, 2 * list->count + 1, struct action);
        if (!split.actions)
            return false;
        for (size_t i = 0; i < list->count; i++) {
            struct action *to = &split.actions[split.count++];
            *to = list->actions[i];
            if (to->kind != ACTION_B)
                continue;
            to->kind = ACTION_I;
            split.actions[split.count] = *to;
            split.actions[split.count++].kind = ACTION_W;
        }
        *list = split;
    }
    return true;
}

/* In V shape the search begins with ZB-V. */
static enum status list_known(const struct generate_spec *spec, bool vee, struct known_lists *known,
                              struct arena *arena, struct diag *diag)
{
    *known = (struct known_lists){.begins = vee};
    if (vee)
        return add_known(spec, "zbv", known, arena, diag);
    enum status status = add_known(spec, "zb_h1", known, arena, diag);
    if (status == STATUS_OK)
        status = add_known(spec, "zb_h2", known, arena, diag);
    if (status == STATUS_OK)
        status = add_known(spec, "1f1b", known, arena, diag);
    if (status == STATUS_OK && !split_backwards(known->lists[2], spec->ranks, arena))
        status = diag_no_memory(diag);
    return status;
}

/* `spec` says its chunks; the lists are in the finder's arena. */
static enum status found_find_lists(const struct found_finder *finder,
                                    const struct generate_spec *spec, struct rank_program **ranks,
                                    struct found_figures *figures)
{
    struct known_lists known;
    struct bubble_problem problem;
    struct bubble_figures found;
    struct found_limits limits;
    struct rank_program *made = NULL;
    bool vee = spec->chunks > 1;
    enum status status = list_known(spec, vee, &known, finder->arena, finder->diag);
    if (status == STATUS_OK)
        status = fill_problem(spec, vee, finder->costs, finder->arena, &problem, finder->diag);
    if (status == STATUS_OK)
        status =
            make_limits(spec, finder->costs, problem.rank_of, finder->arena, &limits, finder->diag);
    if (status != STATUS_OK)
        return status;
    problem.limits = limits.of;
    status = find_fitting(finder, &problem, &limits, &known, &made, &found);
    /* Too small a memory is told by the verdict: with the schedule's own number there is something to judge. */
    if (status == STATUS_OK && !made && limits.by_bytes && spec->memory != GENERATE_FIT) {
        set_own_limits(&limits, spec);
        status = find_best(finder, &problem, &known, &made, &found);
    }
    if (status == STATUS_OK && !made)
        status = refuse_memory(spec, finder->diag);
    if (status != STATUS_OK)
        return status;
    *ranks = made;
    *figures = (struct found_figures){.span_ns = found.span_ns,
                                      .makespan_ns = found.makespan_ns,
                                      .bound_ns = bubble_bound(&problem),
                                      .work_ns = most_work(&problem)};
    assert(figures->bound_ns <= figures->span_ns || has_channel(finder->costs));
    limits_range(&limits, &figures->least_limit, &figures->most_limit);
    return STATUS_OK;
}

#ifdef SWSIM_CHECKS
/* On each rank F, I and W of every microbatch of its stages, in this order. */
static bool lists_check(const struct generate_spec *spec, const struct rank_program *lists)
{
    size_t passes = (size_t)spec->chunks * (size_t)spec->microbatches;
    for (int rank = 0; rank < spec->ranks; rank++) {
        size_t counts[ACTION_W + 1] = {0};
        if (lists[rank].count != 3 * passes)
            return false;
        for (size_t i = 0; i < lists[rank].count; i++) {
            enum action_kind kind = lists[rank].actions[i].kind;
            if (kind != ACTION_F && kind != ACTION_I && kind != ACTION_W)
                return false;
            counts[kind]++;
            if (counts[ACTION_I] > counts[ACTION_F] || counts[ACTION_W] > counts[ACTION_I])
                return false;
        }
        if (counts[ACTION_F] != passes || counts[ACTION_W] != passes)
            return false;
    }
    return true;
}
#endif

static enum status found_own_search(const struct generate_spec *spec, const struct plan *costs,
                                    struct arena *arena, struct found_memo *memo,
                                    struct rank_program **ranks, struct found_figures *figures,
                                    struct diag *diag)
{
    struct generate_spec filled;
    struct found_figures made;
    struct rank_program *lists = NULL;
    struct arena scratch;
    const struct found_finder finder = {costs, &scratch, memo, diag};
    arena_init(&scratch, 0);
    enum status status = generate_check(spec, &filled, diag);
    if (status == STATUS_OK)
        status = found_find_lists(&finder, &filled, &lists, &made);
    if (status == STATUS_OK) {
#ifdef SWSIM_CHECKS
        assert(lists_check(&filled, lists));
#endif
        struct rank_program *kept = copy_lists(lists, spec->ranks, arena);
        if (kept) {
            for (int rank = 0; rank < spec->ranks; rank++)
                for (size_t i = 0; i < kept[rank].count; i++)
                    kept[rank].actions[i].mark = spec->mark;
            *ranks = kept;
        } else {
            status = diag_no_memory(diag);
        }
    }
    arena_fini(&scratch);
    if (status == STATUS_OK && figures)
        *figures = made;
    return status;
}

enum status found_search(const struct generate_spec *spec, const struct plan *costs,
                         struct arena *arena, struct rank_program **ranks,
                         struct found_figures *figures, struct diag *diag)
{
    return found_own_search(spec, costs, arena, NULL, ranks, figures, diag);
}

/* ---- plans ----------------------------------------------------------------------------------- */

bool found_is_wanted(const struct plan *plan)
{
    const struct generate_spec *spec = &plan->programs.generate;
    return plan->form == FORM_PROGRAMS && spec->given && generate_is_found(spec->schedule) &&
           !spec->found_given;
}

/* Messages of the search know the position but not the file. */
static void found_name_file(struct diag *diag, size_t first, const char *file)
{
    for (size_t i = first; file && i < diag->count; i++) {
        if (diag->messages[i].file)
            continue;
        diag->messages[i].file = strdup(file);
        diag->out_of_memory |= !diag->messages[i].file;
    }
}

enum status found_resolve_with(struct plan *plan, struct arena *arena, struct found_memo *memo,
                               struct found_figures *figures, struct diag *diag)
{
    size_t first = diag->count;
    if (!found_is_wanted(plan))
        return STATUS_OK;
    enum status status = found_own_search(&plan->programs.generate, plan, arena, memo,
                                          &plan->programs.generate.found, figures, diag);
    if (status != STATUS_OK)
        found_name_file(diag, first, plan->file);
    return status;
}

enum status found_resolve(struct plan *plan, struct arena *arena, struct diag *diag)
{
    return found_resolve_with(plan, arena, NULL, NULL, diag);
}
