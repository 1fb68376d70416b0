/* SPDX-License-Identifier: Apache-2.0 */
/* generate_found.c - see generate_internal.h: the problem that a search solves, and what it found. */
#include <inttypes.h>

#include "bubble_channel.h"
#include "bubble_kept.h"
#include "bubble_search.h"
#include "comms.h"
#include "found_limits.h"
#include "generate_internal.h"
#include "costs.h"
#include "parallel.h"

enum { WHOLE = 100, HALF = 50, FITTINGS = 8 };

/* Where a plan gives no times at all, every pass takes one; a backward that is given whole has two equal halves. */
static struct pass_times times_of(const struct stage_cost *cost)
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
static int left_of(const struct stage_cost *cost)
{
    int64_t whole = cost->of[COST_ACTIVATION], left = cost->of[COST_LEFT];
    if (whole <= 0)
        return HALF;
    double percent = WHOLE * (double)left / (double)whole;
    return left < whole ? (int)percent + (percent > (int)percent) : WHOLE;
}

static enum status fill_stages(const struct plan *costs, int stages, struct arena *arena,
                               struct pass_times *times, int *left_percent, struct diag *diag)
{
    struct stage_cost *rows = NULL;
    enum status status = costs ? costs_resolve(costs, stages, arena, &rows, diag) : STATUS_OK;
    for (int stage = 0; status == STATUS_OK && stage < stages; stage++) {
        times[stage] = rows ? times_of(&rows[stage]) : (struct pass_times){1, 1, 1};
        left_percent[stage] = rows ? left_of(&rows[stage]) : HALF;
    }
    return status;
}

static int64_t message_time(const struct plan *costs, int from, int to, bool forward)
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

static enum status fill_problem(const struct generate_spec *spec, enum found_kind kind,
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
    enum status status = fill_stages(costs, stages, arena, times, left_percent, diag);
    if (status != STATUS_OK)
        return status;
    for (int stage = 0; stage < stages; stage++)
        rank_of[stage] = kind == FOUND_VEE && stage >= spec->ranks ? stages - 1 - stage : stage;
    for (int stage = stages - 1; stage >= 0; stage--) {
        int twin = stages - 1 - stage; /* on the same rank in V shape */
        later_ns[stage] = times[stage].f_ns + times[stage].i_ns;
        if (again == spec->microbatches)
            later_ns[stage] += times[stage].f_ns;
        if (kind == FOUND_VEE && twin > stage)
            later_ns[stage] += later_ns[twin];
    }
    for (int stage = 0; stage + 1 < stages; stage++) {
        up_ns[stage] = message_time(costs, rank_of[stage], rank_of[stage + 1], true);
        down_ns[stage] = message_time(costs, rank_of[stage + 1], rank_of[stage], false);
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

static void set_marks(struct rank_program *ranks, int count, struct mark mark)
{
    for (int rank = 0; rank < count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            ranks[rank].actions[i].mark = mark;
}

/* *ranks NULL: there is no such order. */
static enum status solve(const struct bubble_problem *problem, const struct rank_program *known,
                         struct arena *arena, struct rank_program **ranks,
                         struct bubble_figures *figures, struct diag *diag)
{
    if (bubble_kept_find(problem, known != NULL, arena, ranks, figures))
        return STATUS_OK;
    if (bubble_search(problem, known, arena, ranks, figures) != STATUS_OK)
        return diag_no_memory(diag);
    if (*ranks)
        bubble_kept_add(problem, known != NULL, *ranks, figures);
    return STATUS_OK;
}

/* ---- under the channel of the plan ----------------------------------------------------------- */

/* A choice between lists. */
struct choice {
    const struct bubble_problem *problem;
    enum fifo_rule fifo;
    struct arena *arena;
    struct rank_program *best;
    struct bubble_figures figures; /* of the best */
};

/* The shorter span; of equal ones, the shorter time in all. */
static bool is_better(const struct bubble_figures *a, const struct bubble_figures *b)
{
    return a->span_ns != b->span_ns ? a->span_ns < b->span_ns : a->makespan_ns < b->makespan_ns;
}

static enum status consider(struct choice *choice, struct rank_program *lists, struct diag *diag)
{
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
static enum status consider_slower(struct choice *choice, const struct rank_program *known,
                                   int64_t add_ns, struct diag *diag)
{
    struct bubble_problem slower = *choice->problem;
    struct rank_program *made = NULL;
    struct bubble_figures figures;
    size_t stages = (size_t)slower.stages;
    int64_t *up_ns = ARENA_ARRAY(choice->arena, stages, int64_t);
    int64_t *down_ns = ARENA_ARRAY(choice->arena, stages, int64_t);
    if (!up_ns || !down_ns)
        return diag_no_memory(diag);
    for (int stage = 0; stage + 1 < slower.stages; stage++) {
        bool moves = slower.rank_of[stage] != slower.rank_of[stage + 1];
        up_ns[stage] = slower.up_ns[stage] + (moves ? add_ns : 0);
        down_ns[stage] = slower.down_ns[stage] + (moves ? add_ns : 0);
    }
    slower.up_ns = up_ns;
    slower.down_ns = down_ns;
    enum status status = solve(&slower, known, choice->arena, &made, &figures, diag);
    return status == STATUS_OK && made ? consider(choice, made, diag) : status;
}

/* The best under the plan's channel of what was found, of what rules make, and of what is found for slower messages. */
static enum status choose(struct choice *choice, struct rank_program *made,
                          const struct bubble_figures *free, const struct known_lists *known,
                          struct diag *diag)
{
    const struct bubble_problem *problem = choice->problem;
    const struct rank_program *begin = known->begins ? known->lists[0] : NULL;
    enum status status = consider(choice, made, diag);
    for (size_t i = 0; status == STATUS_OK && i < known->count; i++)
        if (bubble_channel_fits(problem, known->lists[i]))
            status = consider(choice, known->lists[i], diag);
    int64_t message_ns = problem->stages > 1 ? problem->up_ns[0] : 0;
    int64_t pass_ns = problem->times[0].f_ns;
    const int64_t more_ns[] = {message_ns, pass_ns / 4};
    for (size_t i = 0; i < sizeof more_ns / sizeof *more_ns; i++)
        if (status == STATUS_OK && choice->best && choice->figures.span_ns > free->span_ns &&
            more_ns[i] > 0)
            status = consider_slower(choice, begin, more_ns[i], diag);
    return status;
}

/* Is the order for a plan whose messages go one by one? `swsim generate` finds one for free channels. */
static bool has_channel(const struct plan *costs)
{
    return costs && costs->programs.generate.given && !costs->programs.batch &&
           costs->programs.metadata == METADATA_NONE && !costs->programs.eager_messages &&
           !costs->programs.eager_bytes && !costs->comm_count;
}

/* The best within the limits of the problem; *ranks NULL: there is none. */
static enum status find_best(const struct bubble_problem *problem, const struct plan *costs,
                             const struct known_lists *known, struct arena *arena,
                             struct rank_program **ranks, struct bubble_figures *figures,
                             struct diag *diag)
{
    const struct rank_program *begin = known->begins ? known->lists[0] : NULL;
    struct choice choice = {.problem = problem, .arena = arena};
    enum status status = solve(problem, begin, arena, ranks, figures, diag);
    if (status == STATUS_OK && *ranks && has_channel(costs)) {
        choice.fifo = costs->programs.fifo;
        status = choose(&choice, *ranks, figures, known, diag);
    }
    if (status == STATUS_OK && choice.best) {
        *ranks = choice.best;
        *figures = choice.figures;
    }
    return status;
}

/* Fewer activations until messages have room beside them, too. *ranks NULL: the memory is too small. */
static enum status find_fitting(const struct bubble_problem *problem, struct found_limits *limits,
                                const struct known_lists *known, struct arena *arena,
                                struct rank_program **ranks, struct bubble_figures *figures,
                                struct diag *diag)
{
    bool fits = false;
    for (int tries = 0; tries < FITTINGS && !fits && found_limits_hold(limits); tries++) {
        enum status status = find_best(problem, limits->costs, known, arena, ranks, figures, diag);
        if (status != STATUS_OK || !*ranks)
            return status;
        status = found_limits_lower(limits, problem, *ranks, &fits, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (!fits)
        *ranks = NULL;
    return STATUS_OK;
}

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

enum status generate_found(const struct generate_spec *spec, enum found_kind kind,
                           const struct plan *costs, const struct known_lists *known,
                           struct arena *arena, struct rank_program **ranks,
                           struct generate_figures *figures, struct diag *diag)
{
    struct bubble_problem problem;
    struct bubble_figures found;
    struct found_limits limits;
    struct rank_program *made = NULL;
    enum status status = fill_problem(spec, kind, costs, arena, &problem, diag);
    if (status == STATUS_OK)
        status = found_limits_make(spec, costs, problem.rank_of, arena, &limits, diag);
    if (status != STATUS_OK)
        return status;
    problem.limits = limits.of;
    status = find_fitting(&problem, &limits, known, arena, &made, &found, diag);
    /* Too small a memory is told by the verdict: with the schedule's own number there is something to judge. */
    if (status == STATUS_OK && !made && limits.by_bytes && spec->memory != GENERATE_FIT) {
        found_limits_own(&limits, spec);
        status = find_best(&problem, costs, known, arena, &made, &found, diag);
    }
    if (status == STATUS_OK && !made)
        status = refuse_memory(spec, diag);
    if (status != STATUS_OK)
        return status;
    set_marks(made, spec->ranks, spec->mark);
    *ranks = made;
    *figures = (struct generate_figures){.found = true,
                                         .span_ns = found.span_ns,
                                         .makespan_ns = found.makespan_ns,
                                         .bound_ns = bubble_bound(&problem),
                                         .work_ns = most_work(&problem)};
    found_limits_range(&limits, &figures->least_limit, &figures->most_limit);
    return STATUS_OK;
}
