/* generate_found.c - see generate_internal.h: the problem that a search solves, and what it found. */
#include "bubble_kept.h"
#include "bubble_search.h"
#include "generate_internal.h"

enum { WHOLE = 100, HALF = 50 };

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

static enum status fill_problem(const struct generate_spec *spec, enum found_kind kind,
                                const struct plan *costs, struct arena *arena,
                                struct bubble_problem *out, struct diag *diag)
{
    int stages = spec->ranks * spec->chunks;
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
        .limit = spec->memory,
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
                work_ns += problem->times[stage].f_ns + problem->times[stage].i_ns +
                           problem->times[stage].w_ns;
        most_ns = work_ns > most_ns ? work_ns : most_ns;
    }
    return most_ns * problem->microbatches;
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

enum status generate_found(const struct generate_spec *spec, enum found_kind kind,
                           const struct plan *costs, const struct rank_program *known,
                           struct arena *arena, struct rank_program **ranks,
                           struct generate_figures *figures, struct diag *diag)
{
    struct bubble_problem problem;
    struct bubble_figures found;
    struct rank_program *made = NULL;
    enum status status = fill_problem(spec, kind, costs, arena, &problem, diag);
    if (status == STATUS_OK)
        status = solve(&problem, known, arena, &made, &found, diag);
    if (status != STATUS_OK)
        return status;
    if (!made)
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found memory for %d activations, expected more: no order of %d "
                             "stages a rank that was tried needs as few",
                             spec->schedule, spec->memory, spec->chunks);
    set_marks(made, spec->ranks, spec->mark);
    *ranks = made;
    *figures = (struct generate_figures){.found = true,
                                         .span_ns = found.span_ns,
                                         .makespan_ns = found.makespan_ns,
                                         .bound_ns = bubble_bound(&problem),
                                         .work_ns = most_work(&problem)};
    return STATUS_OK;
}
