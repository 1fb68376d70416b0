/* SPDX-License-Identifier: Apache-2.0 */
/* frontier.c - see frontier.h: which candidates there are, how each is judged, which are the frontier. */
#include "frontier.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontier_axes.h"
#include "frontier_costs.h"
#include "found.h"

#include "plan/schedules/generate.h"
#include "plan/keywords.h"
#include "plan/schedules/rank_memory.h"
#include "machine/lower/rank_programs.h"
#include "sim/predict/predict.h"
#include "base/sort.h"

enum { STATES = 20000, CANDIDATE_BYTES = 256 << 20 };

const char *fate_key(enum fate fate)
{
#define X(name, key) key,
    static const char *const keys[] = {FATE_LIST(X)};
#undef X
    return keys[fate];
}

bool fate_is_tried(enum fate fate)
{
    return fate > FATE_IMPOSSIBLE;
}

size_t frontier_unjudged(const struct frontier *f)
{
    return f->fates[FATE_UNTRIED] + f->fates[FATE_REFUSED] + f->fates[FATE_UNDECIDED];
}

/* The memory of a rank that counts: --memory, else the plan's. If the plan gives no bytes of stages, activations are counted
   in units of their own, and the bytes of its machine bound nothing. */
static bool choose_memory(struct frontier *f)
{
    int64_t given = f->options->memory_bytes;
    f->machine = f->plan->machine;
    if (given < 0 && f->has_bytes)
        return true;
    f->machine.memory = (struct cost_list){.items = ARENA_ARRAY(f->arena, 1, int64_t), .count = 1};
    if (f->machine.memory.items)
        f->machine.memory.items[0] = given > 0 ? given : 0;
    return f->machine.memory.items != NULL;
}

enum status frontier_open(const struct plan *plan, const struct frontier_options *options,
                          struct arena *arena, struct frontier *out, struct diag *diag)
{
    struct frontier made = {.plan = plan, .options = options, .arena = arena};
    struct plan like = complete_lists_like(plan);
    struct rank_program *lists;
    enum status status = complete_lists_fill(&like, arena, &lists, &made.ranks, diag);
    if (status != STATUS_OK)
        return status;
    struct frontier_shape shape = frontier_shape_of(lists, made.ranks);
    if (shape.stages < made.ranks || shape.microbatches == 0)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found %d stages on %d ranks, expected one a rank at least",
                          plan->name, shape.stages, made.ranks);
    made.chunks = shape.stages / made.ranks;
    made.stages = shape.stages / complete_lists_copies(plan);
    made.microbatches = shape.microbatches;
    made.trains = shape.backward;
    made.size = options->samples                         ? options->samples
                : plan->programs.stages.model.microbatch ? plan->programs.stages.model.microbatch
                                                         : 1;
    made.has_times =
        plan->programs.times[ACTION_F].given || frontier_has_cost(&plan->programs.stages, COST_F);
    made.has_bytes = frontier_has_bytes(&plan->programs.stages);
    status = choose_memory(&made) ? frontier_list(&made, diag) : diag_no_memory(diag);
    if (status == STATUS_OK)
        *out = made;
    return status;
}

/* ---- the plan of a candidate ----------------------------------------------------------------- */

int frontier_microbatches(const struct frontier *f, const struct candidate *candidate)
{
    int64_t samples = (int64_t)candidate->at[AXIS_MICROBATCHES] * f->size;
    int size = candidate->at[AXIS_SIZE];
    return samples % size == 0 ? (int)(samples / size) : 0;
}

int frontier_held(const struct candidate *candidate)
{
    return candidate->at[AXIS_HELD] == HELD_FIT ? candidate->held_most : candidate->at[AXIS_HELD];
}

/* Parameters that only one schedule has stay with that one. */
static struct generate_spec frontier_spec_of(const struct frontier *f,
                                             const struct candidate *candidate)
{
    const struct generate_spec *given = &f->plan->programs.generate;
    const char *schedule = generate_name((size_t)candidate->at[AXIS_SCHEDULE]);
    struct generate_spec spec = {.mark = given->mark};
    if (given->given && strcmp(given->schedule, schedule) == 0)
        spec = *given;
    spec.given = true;
    spec.found = NULL;
    spec.found_given = false;
    spec.schedule = schedule;
    spec.ranks = f->ranks;
    spec.chunks = candidate->at[AXIS_CHUNKS];
    spec.microbatches = frontier_microbatches(f, candidate);
    spec.group = candidate->at[AXIS_GROUP];
    spec.memory = candidate->at[AXIS_HELD] == HELD_FIT ? GENERATE_FIT : candidate->at[AXIS_HELD];
    return spec;
}

enum status frontier_plan(const struct frontier *f, const struct candidate *candidate,
                          struct arena *arena, struct plan *out, struct diag *diag)
{
    struct plan made = *f->plan;
    struct programs *programs = &made.programs;
    if (!programs->generate.found_given)
        programs->generate.found = NULL;
    programs->stages.balance = (enum balance_kind)candidate->at[AXIS_BALANCE];
    programs->stages.checkpoint = (enum checkpoint)candidate->at[AXIS_CHECKPOINT];
    programs->fifo = (enum fifo_rule)candidate->at[AXIS_CHANNEL];
    if (candidate->at[AXIS_SCHEDULE] != FRONTIER_AS_GIVEN) {
        programs->generate = frontier_spec_of(f, candidate);
        programs->ranks = NULL;
        programs->copies = 0; /* the schedule says it */
        programs->has_comms = programs->fragment = false;
        made.expect = made.expect_dataflow = (struct expectation){0};
    }
    if (f->has_bytes)
        made.machine.memory = f->machine.memory;
    int stages = f->ranks * candidate->at[AXIS_CHUNKS] / complete_lists_copies(&made);
    const struct frontier_sizes sizes = {f->size, candidate->at[AXIS_SIZE], f->options->half_size};
    if (!frontier_fill_costs(programs, !f->has_times, f->has_bytes ? 0 : FRONTIER_ACTIVATION,
                             arena) ||
        !frontier_scale_costs(programs, &sizes, arena) ||
        !frontier_divide_costs(programs, f->stages, stages, arena))
        return diag_no_memory(diag);
    *out = made;
    return STATUS_OK;
}

/* ---- a candidate ----------------------------------------------------------------------------- */

/* If the values are refused (the schedule cannot have them, or they are too large), the candidate has this fate and the
   message is not wanted. Other failures are passed up. */
static enum status fate_of_refusal(enum status status, enum fate fate, struct candidate *candidate)
{
    if (status != STATUS_INPUT && status != STATUS_LIMIT)
        return status;
    candidate->fate = fate;
    return STATUS_OK;
}

/* The plan is judged as it is printed: lists in the place of `generate:` may mean another plan, as `balance: found`
   looks at both. Lists that are found stand beside it. */
static enum status check_possible(const struct frontier *f, struct plan *plan, struct arena *arena,
                                  struct found_memo *memo, struct candidate *candidate,
                                  struct diag *diag)
{
    struct rank_program *lists;
    struct found_figures figures;
    int count;
    bool found = found_is_wanted(plan);
    enum status status = found_resolve_with(plan, arena, memo, &figures, diag);
    if (status == STATUS_OK && found && candidate->at[AXIS_HELD] == HELD_FIT) {
        candidate->held_least = figures.least_limit;
        candidate->held_most = figures.most_limit;
    }
    if (status == STATUS_OK)
        status = complete_lists_fill(plan, arena, &lists, &count, diag);
    if (status != STATUS_OK)
        return fate_of_refusal(status, FATE_IMPOSSIBLE, candidate);
    if (frontier_shape_of(lists, count).backward != f->trains)
        candidate->fate = FATE_IMPOSSIBLE;
    return STATUS_OK;
}

static enum status weigh(const struct frontier *f, const struct plan *plan, struct arena *arena,
                         struct candidate *candidate, struct diag *diag)
{
    struct rank_memory *ranks;
    int count;
    enum status status = rank_memory_find(plan, arena, &ranks, &count, diag);
    if (status != STATUS_OK)
        return fate_of_refusal(status, FATE_REFUSED, candidate);
    for (int r = 0; r < count; r++) {
        int64_t bytes = f->has_bytes ? ranks[r].most : ranks[r].most_activations;
        int64_t memory = machine_memory(&f->machine, r), left = memory ? memory - bytes : INT64_MAX;
        candidate->bytes = bytes > candidate->bytes ? bytes : candidate->bytes;
        candidate->left_bytes = left < candidate->left_bytes ? left : candidate->left_bytes;
    }
    if (candidate->left_bytes < 0)
        candidate->fate = FATE_HEAVY;
    return STATUS_OK;
}

static enum status frontier_prove(const struct plan *plan, const atomic_bool *interrupted,
                                  struct candidate *candidate, struct diag *diag)
{
    const struct verify_options options = {
        .program = {.driver = DRIVER_NONE, .iterations = -1},
        .quick = true,
        .limits = {.states = STATES, .mem_bytes = CANDIDATE_BYTES},
        .interrupted = interrupted};
    struct verify_report report;
    enum status status = verify_plan(plan, &options, &report, diag);
    if (status != STATUS_OK)
        return fate_of_refusal(status, FATE_REFUSED, candidate);
    switch (report.verdict) {
    case VERDICT_PROVED: candidate->fate = FATE_PROVED; break;
    case VERDICT_UNDECIDED: candidate->fate = FATE_UNDECIDED; break;
    case VERDICT_VIOLATED: candidate->fate = FATE_VIOLATED; candidate->violated = report.first;
    }
    verify_fini(&report);
    return STATUS_OK;
}

static enum status frontier_measure(const struct plan *plan, struct candidate *candidate,
                                    struct diag *diag)
{
    const struct predict_options options = {.program = {.driver = DRIVER_NONE, .iterations = 1},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER};
    struct prediction prediction;
    enum status status = predict(plan, &options, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    const struct rank_figures *longest = &prediction.pipeline->ranks[prediction.pipeline->longest];
    double span_ns = (double)(longest->last_ns - longest->first_ns);
    candidate->step_ns = prediction.makespan_ns;
    candidate->microbatch_ns = prediction.makespan_ns / candidate->at[AXIS_MICROBATCHES];
    candidate->bubble = 1 - (double)longest->busy_ns / span_ns;
    prediction_fini(&prediction);
    return STATUS_OK;
}

/* Its time and memory, unless that is more than there is. */
static enum status frontier_load(const struct frontier *f, struct candidate *candidate,
                                 struct arena *arena, struct found_memo *memo, struct plan *plan,
                                 struct diag *diag)
{
    candidate->fate = FATE_UNTRIED;
    candidate->bytes = 0;
    candidate->left_bytes = INT64_MAX;
    enum status status = frontier_plan(f, candidate, arena, plan, diag);
    if (status == STATUS_OK)
        status = check_possible(f, plan, arena, memo, candidate, diag);
    if (status == STATUS_OK && candidate->fate == FATE_UNTRIED)
        status = weigh(f, plan, arena, candidate, diag);
    return status;
}

static enum status frontier_judge(const struct frontier *f, struct candidate *candidate,
                                  struct arena *arena, struct found_memo *memo, struct diag *diag)
{
    struct plan plan;
    enum status status = STATUS_OK;
    candidate->step_ns = candidate->microbatch_ns = candidate->bubble = NAN;
    if (frontier_microbatches(f, candidate) == 0)
        candidate->fate = FATE_IMPOSSIBLE;
    else
        status = frontier_load(f, candidate, arena, memo, &plan, diag);
    if (status == STATUS_OK && candidate->fate == FATE_UNTRIED)
        status = frontier_prove(&plan, f->options->interrupted, candidate, diag);
    if (status == STATUS_OK && candidate->fate == FATE_PROVED)
        status = frontier_measure(&plan, candidate, diag);
    assert(status != STATUS_OK || candidate->fate != FATE_UNTRIED);
    return status;
}

static enum status try_one(const struct frontier *f, struct candidate *candidate, bool given,
                           struct found_memo *memo, struct diag *diag)
{
    struct arena arena;
    struct diag said;
    arena_init(&arena, 0);
    diag_init(&said);
    enum status status = frontier_judge(f, candidate, &arena, memo, &said);
    if (given && (candidate->fate == FATE_IMPOSSIBLE || candidate->fate == FATE_REFUSED))
        status = STATUS_INPUT;
    if (status != STATUS_OK)
        diag_take(diag, &said);
    diag_fini(&said);
    arena_fini(&arena);
    return status;
}

enum status frontier_try(struct frontier *f, size_t first, size_t step, struct diag *diag)
{
    const struct frontier_options *options = f->options;
    struct found_memo memo;
    enum status status = found_memo_open(&memo, diag);
    for (size_t i = first; status == STATUS_OK && i < f->count; i += step) {
        if (options->interrupted && atomic_load(options->interrupted))
            break;
        if (options->progress)
            options->progress(options->progress_arg, i, f->count);
        status = try_one(f, &f->candidates[i], i == 0, &memo, diag);
    }
    found_memo_close(&memo);
    return status;
}

/* ---- the frontier ---------------------------------------------------------------------------- */

/* Proved ones before the others, the fastest first, of equally fast ones that with less memory, of equals
   the one listed first. */
static int frontier_by_time(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->fate != y->fate)
        return x->fate > y->fate ? -1 : 1;
    if (x->fate == FATE_PROVED && x->microbatch_ns != y->microbatch_ns)
        return x->microbatch_ns < y->microbatch_ns ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return memcmp(x->at, y->at, sizeof x->at) < 0 ? -1 : 1;
}

static int by_memory(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->frontier != y->frontier)
        return x->frontier ? -1 : 1;
    if (x->frontier)
        return x->bytes < y->bytes ? -1 : 1;
    return frontier_by_time(a, b);
}

void frontier_sort(struct frontier *f)
{
    int64_t least = INT64_MAX;
    SORT(f->candidates, f->count, frontier_by_time);
    memset(f->fates, 0, sizeof f->fates);
    for (size_t i = 0; i < f->count; i++) {
        struct candidate *candidate = &f->candidates[i];
        f->fates[candidate->fate]++;
        candidate->frontier = candidate->fate == FATE_PROVED && candidate->bytes < least;
        if (candidate->frontier)
            least = candidate->bytes;
    }
    assert(least < INT64_MAX || f->fates[FATE_PROVED] == 0);
    SORT(f->candidates, f->count, by_memory);
}
