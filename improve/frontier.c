/* SPDX-License-Identifier: Apache-2.0 */
/* frontier.c - see frontier.h: which candidates there are, how each is judged, which are the frontier. */
#include "frontier.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontier_costs.h"
#include "found.h"

#include "plan/schedules/generate.h"
#include "plan/keywords.h"
#include "plan/schedules/rank_memory.h"
#include "sim/predict/predict.h"
#include "base/sort.h"
#include "base/list_key.h"
#include "plan/schedules/complete_lists.h"

/* ---- frontier axes --------------------------------------------------------------------------- */

/* The candidates of a frontier: the given plan, and every combination of the values of its axes. */

/* The extent of lists of actions. */
struct frontier_shape {
    int stages, microbatches;
    bool backward;
};

enum { MOST_CANDIDATES = 100000 };

const char *axis_key(enum axis axis)
{
    static const char *const keys[] = {AXIS_LIST(LIST_KEY)};
    return keys[axis];
}

static const char *frontier_axes_word_at(const char *const *words, int value)
{
    for (int i = 0; words[i]; i++)
        if (i == value)
            return words[i];
    return NULL;
}

const char *axis_word(enum axis axis, int value)
{
    switch (axis) {
    case AXIS_SCHEDULE:
        return value == FRONTIER_AS_GIVEN ? "as given" : generate_name((size_t)value);
    case AXIS_BALANCE:
        return value == BALANCE_LISTED ? "listed" : frontier_axes_word_at(keywords_balance, value);
    case AXIS_CHECKPOINT: return frontier_axes_word_at(keywords_checkpoint, value);
    case AXIS_CHANNEL: return frontier_axes_word_at(keywords_fifo, value);
    case AXIS_HELD: return value == HELD_FIT ? "fit" : NULL;
    case AXIS_MICROBATCHES:
    case AXIS_SIZE:
    case AXIS_CHUNKS:
    case AXIS_GROUP:
    case AXES: break;
    }
    return NULL;
}

bool axis_has_words(enum axis axis)
{
    return axis_word(axis, 0) != NULL;
}

/* ---- the given plan -------------------------------------------------------------------------- */

static void frontier_axes_look_at(struct frontier_shape *shape, const struct action *action)
{
    if (action->stage >= shape->stages)
        shape->stages = action->stage + 1;
    if (action->microbatch >= shape->microbatches)
        shape->microbatches = action->microbatch + 1;
    shape->backward |= action->kind == ACTION_B || action->kind == ACTION_I;
    for (int i = 0; action->parts && i < ACTION_PARTS; i++)
        frontier_axes_look_at(shape, &action->parts[i]);
}

static struct frontier_shape frontier_shape_of(const struct rank_program *ranks, int count)
{
    struct frontier_shape shape = {0};
    for (int r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].count; i++)
            frontier_axes_look_at(&shape, &ranks[r].actions[i]);
    return shape;
}

static int find_schedule(const char *name)
{
    for (size_t i = 0; name && generate_name(i); i++)
        if (strcmp(generate_name(i), name) == 0)
            return (int)i;
    return FRONTIER_AS_GIVEN;
}

static void put_given(const struct frontier *f, struct candidate *out)
{
    const struct programs *programs = &f->plan->programs;
    const struct generate_spec *spec = &programs->generate;
    out->at[AXIS_SCHEDULE] = spec->given ? find_schedule(spec->schedule) : FRONTIER_AS_GIVEN;
    out->at[AXIS_MICROBATCHES] = f->microbatches;
    out->at[AXIS_SIZE] = f->size;
    out->at[AXIS_CHUNKS] = f->chunks;
    out->at[AXIS_GROUP] = spec->given ? spec->group : 0;
    out->at[AXIS_HELD] = spec->given ? spec->memory : 0;
    out->at[AXIS_BALANCE] = (int)programs->stages.balance;
    out->at[AXIS_CHECKPOINT] = (int)programs->stages.checkpoint;
    out->at[AXIS_CHANNEL] = (int)programs->fifo;
}

/* ---- the axes -------------------------------------------------------------------------------- */

static void frontier_axes_add_value(struct axis_values *values, int value)
{
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i] == value)
            return;
    if (values->count < AXIS_MOST)
        values->items[values->count++] = value;
}

static void add_words(struct axis_values *values, enum axis axis)
{
    for (int value = 0; axis_word(axis, value); value++)
        if (axis != AXIS_BALANCE || value != BALANCE_LISTED)
            frontier_axes_add_value(values, value);
}

/* The default values of an axis; the user's own go before. */
static void fill_axis(const struct frontier *f, enum axis axis, int given,
                      struct axis_values *values)
{
    const struct stage_spec *stages = &f->plan->programs.stages;
    if (axis == AXIS_SCHEDULE) {
        add_words(values, axis);
        return;
    }
    frontier_axes_add_value(values, given);
    if (axis == AXIS_CHUNKS) {
        frontier_axes_add_value(values, 1);
        frontier_axes_add_value(values, 2);
    }
    if (axis == AXIS_HELD) {
        frontier_axes_add_value(values, 0);
        if (machine_has_memory(&f->machine) && f->has_bytes)
            frontier_axes_add_value(values, HELD_FIT);
    }
    if (axis == AXIS_BALANCE && (stages->layers.count || stages->model.layers))
        add_words(values, axis);
    if (axis == AXIS_CHECKPOINT && frontier_has_cost(stages, COST_INPUT))
        add_words(values, axis);
}

/* A schedule without a group, or one that is not found, must be tried, too. */
static struct axis_values axis_of(const struct frontier *f, enum axis axis)
{
    struct axis_values values = f->options->axes[axis];
    if (values.count == 0)
        fill_axis(f, axis, f->candidates[0].at[axis], &values);
    else if (axis == AXIS_GROUP || axis == AXIS_HELD)
        frontier_axes_add_value(&values, 0);
    return values;
}

/* Only such a schedule can hold as many activations as wanted. */
static bool is_found(const struct candidate *candidate)
{
    int schedule = candidate->at[AXIS_SCHEDULE];
    return schedule != FRONTIER_AS_GIVEN && generate_is_found(generate_name((size_t)schedule));
}

static bool equal_choice(const struct candidate *a, const struct candidate *b)
{
    return memcmp(a->at, b->at, sizeof a->at) == 0;
}

/* The given plan, then all combinations. */
bool frontier_is_given(const struct frontier *f, const struct candidate *candidate)
{
    return equal_choice(candidate, &f->given);
}

/* Fill in f->candidates; what the given plan is stands in *f. */
static enum status frontier_list(struct frontier *f, struct diag *diag)
{
    struct axis_values axes[AXES];
    struct candidate first = {.fate = FATE_UNTRIED};
    size_t count = 1;
    put_given(f, &first);
    f->given = first;
    f->candidates = &first;
    for (int a = 0; a < AXES; a++) {
        axes[a] = axis_of(f, (enum axis)a);
        count *= axes[a].count;
        if (count > MOST_CANDIDATES)
            return diag_error(diag, STATUS_USAGE, "more than %d candidates: give fewer values",
                              MOST_CANDIDATES);
    }
    f->candidates = ARENA_ARRAY(f->arena, count + 1, struct candidate);
    if (!f->candidates)
        return diag_no_memory(diag);
    f->candidates[f->count++] = first;
    for (size_t n = 0; n < count; n++) {
        struct candidate *next = &f->candidates[f->count];
        size_t rest = n;
        for (int a = AXES - 1; a >= 0; rest /= axes[a--].count)
            next->at[a] = axes[a].items[rest % axes[a].count];
        if (!equal_choice(next, &first) && (next->at[AXIS_HELD] == 0 || is_found(next)))
            f->count++;
    }
    return STATUS_OK;
}

enum { STATES = 20000, CANDIDATE_BYTES = 256 << 20 };

const char *fate_key(enum frontier_fate fate)
{
    static const char *const keys[] = {FATE_LIST(LIST_KEY)};
    return keys[fate];
}

bool fate_is_tried(enum frontier_fate fate)
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
static enum status fate_of_refusal(enum status status, enum frontier_fate fate,
                                   struct candidate *candidate)
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
