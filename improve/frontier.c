/* frontier.c - see frontier.h: which candidates there are, how each is judged, which are the frontier. */
#include "frontier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontier_costs.h"

#include "plan/generate.h"
#include "plan/keywords.h"
#include "plan/rank_memory.h"
#include "plan/rank_programs.h"
#include "sim/predict/predict.h"

enum { STATES = 20000, CANDIDATE_BYTES = 256 << 20, MOST_CANDIDATES = 100000 };

const char *axis_key(enum axis axis)
{
#define X(name, key) key,
    static const char *const keys[] = {AXIS_LIST(X)};
#undef X
    return keys[axis];
}

const char *fate_key(enum fate fate)
{
#define X(name, key) key,
    static const char *const keys[] = {FATE_LIST(X)};
#undef X
    return keys[fate];
}

static const char *word_at(const char *const *words, int value)
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
    case AXIS_BALANCE: return value == BALANCE_LISTED ? "listed" : word_at(keywords_balance, value);
    case AXIS_CHECKPOINT: return word_at(keywords_checkpoint, value);
    case AXIS_CHANNEL: return word_at(keywords_fifo, value);
    case AXIS_MICROBATCHES:
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

/* The extent of lists of actions. */
struct shape {
    int stages, microbatches;
    bool backward;
};

static void look_at(struct shape *shape, const struct action *action)
{
    if (action->stage >= shape->stages)
        shape->stages = action->stage + 1;
    if (action->microbatch >= shape->microbatches)
        shape->microbatches = action->microbatch + 1;
    shape->backward |= action->kind == ACTION_B || action->kind == ACTION_I;
    for (size_t i = 0; i < action->part_count; i++)
        look_at(shape, &action->parts[i]);
}

static struct shape shape_of(const struct rank_program *ranks, int count)
{
    struct shape shape = {0};
    for (int r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].count; i++)
            look_at(&shape, &ranks[r].actions[i]);
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
    out->at[AXIS_CHUNKS] = f->chunks;
    out->at[AXIS_GROUP] = spec->given ? spec->group : 0;
    out->at[AXIS_BALANCE] = (int)programs->stages.balance;
    out->at[AXIS_CHECKPOINT] = (int)programs->stages.checkpoint;
    out->at[AXIS_CHANNEL] = (int)programs->fifo;
}

/* ---- the axes -------------------------------------------------------------------------------- */

static void add_value(struct axis_values *values, int value)
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
            add_value(values, value);
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
    add_value(values, given);
    if (axis == AXIS_CHUNKS) {
        add_value(values, 1);
        add_value(values, 2);
    }
    if (axis == AXIS_BALANCE && (stages->layers.count || stages->model.layers))
        add_words(values, axis);
    if (axis == AXIS_CHECKPOINT && frontier_has_cost(stages, COST_INPUT))
        add_words(values, axis);
}

/* A schedule without a group must be tried, too. */
static struct axis_values axis_of(const struct frontier *f, enum axis axis)
{
    struct axis_values values = f->options->axes[axis];
    if (values.count == 0)
        fill_axis(f, axis, f->candidates[0].at[axis], &values);
    else if (axis == AXIS_GROUP)
        add_value(&values, 0);
    return values;
}

static bool equal_choice(const struct candidate *a, const struct candidate *b)
{
    return memcmp(a->at, b->at, sizeof a->at) == 0;
}

/* The given plan, then all combinations. */
static enum status list_candidates(struct frontier *f, struct diag *diag)
{
    struct axis_values axes[AXES];
    struct candidate first = {.fate = FATE_UNTRIED};
    size_t count = 1;
    put_given(f, &first);
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
        if (!equal_choice(next, &first))
            f->count++;
    }
    return STATUS_OK;
}

enum status frontier_open(const struct plan *plan, const struct frontier_options *options,
                          struct arena *arena, struct frontier *out, struct diag *diag)
{
    struct frontier made = {.plan = plan, .options = options, .arena = arena};
    struct rank_program *lists;
    enum status status = rank_programs_complete(plan, arena, &lists, &made.ranks, diag);
    if (status != STATUS_OK)
        return status;
    struct shape shape = shape_of(lists, made.ranks);
    if (shape.stages < made.ranks || shape.microbatches == 0)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found %d stages on %d ranks, expected one a rank at least",
                          plan->name, shape.stages, made.ranks);
    made.chunks = shape.stages / made.ranks;
    made.stages = shape.stages / rank_programs_copies(plan);
    made.microbatches = shape.microbatches;
    made.trains = shape.backward;
    made.has_times =
        plan->programs.times[ACTION_F].given || frontier_has_cost(&plan->programs.stages, COST_F);
    made.has_bytes = frontier_has_bytes(&plan->programs.stages);
    status = list_candidates(&made, diag);
    if (status == STATUS_OK)
        *out = made;
    return status;
}

/* ---- the plan of a candidate ----------------------------------------------------------------- */

/* Parameters that only one schedule has stay with that one. */
static struct generate_spec spec_of(const struct frontier *f, const struct candidate *candidate)
{
    const struct generate_spec *given = &f->plan->programs.generate;
    const char *schedule = generate_name((size_t)candidate->at[AXIS_SCHEDULE]);
    struct generate_spec spec = {.mark = given->mark};
    if (given->given && strcmp(given->schedule, schedule) == 0)
        spec = *given;
    spec.given = true;
    spec.schedule = schedule;
    spec.ranks = f->ranks;
    spec.chunks = candidate->at[AXIS_CHUNKS];
    spec.microbatches = candidate->at[AXIS_MICROBATCHES];
    spec.group = candidate->at[AXIS_GROUP];
    return spec;
}

enum status frontier_plan(const struct frontier *f, const struct candidate *candidate,
                          struct arena *arena, struct plan *out, struct diag *diag)
{
    struct plan made = *f->plan;
    struct programs *programs = &made.programs;
    programs->stages.balance = (enum balance_kind)candidate->at[AXIS_BALANCE];
    programs->stages.checkpoint = (enum checkpoint)candidate->at[AXIS_CHECKPOINT];
    programs->fifo = (enum fifo_rule)candidate->at[AXIS_CHANNEL];
    if (candidate->at[AXIS_SCHEDULE] != FRONTIER_AS_GIVEN) {
        programs->generate = spec_of(f, candidate);
        programs->ranks = NULL;
        programs->has_comms = programs->fragment = false;
        made.expect = made.expect_dataflow = (struct expectation){0};
    }
    int stages = f->ranks * candidate->at[AXIS_CHUNKS] / rank_programs_copies(&made);
    if (!frontier_fill_costs(programs, !f->has_times, f->has_bytes ? 0 : FRONTIER_ACTIVATION,
                             arena) ||
        !frontier_divide_costs(programs, f->stages, stages, arena))
        return diag_no_memory(diag);
    *out = made;
    return STATUS_OK;
}

/* ---- a candidate ----------------------------------------------------------------------------- */

/* One question may answer that the plan makes no sense; the words are not wanted then. */
static enum status or_impossible(enum status status, struct candidate *candidate)
{
    if (status != STATUS_INPUT && status != STATUS_LIMIT)
        return status;
    candidate->fate = FATE_IMPOSSIBLE;
    return STATUS_OK;
}

/* Complete the lists once: some schedules take long to find. */
static enum status check_possible(const struct frontier *f, struct plan *plan, struct arena *arena,
                                  struct candidate *candidate, struct diag *diag)
{
    struct programs *programs = &plan->programs;
    struct rank_program *lists;
    int count;
    enum status status = rank_programs_complete(plan, arena, &lists, &count, diag);
    if (status != STATUS_OK)
        return or_impossible(status, candidate);
    if (shape_of(lists, count).backward != f->trains)
        candidate->fate = FATE_IMPOSSIBLE;
    programs->copies = rank_programs_copies(plan);
    programs->generate.given = false;
    programs->ranks = lists;
    programs->has_comms = true;
    plan->ranks = count;
    return STATUS_OK;
}

static enum status weigh(const struct frontier *f, const struct plan *plan, struct arena *arena,
                         struct candidate *candidate, struct diag *diag)
{
    struct rank_memory *ranks;
    int count;
    enum status status = rank_memory_find(plan, arena, &ranks, &count, diag);
    if (status != STATUS_OK)
        return or_impossible(status, candidate);
    for (int r = 0; r < count; r++) {
        int64_t bytes = f->has_bytes ? ranks[r].most : ranks[r].most_activations;
        candidate->bytes = bytes > candidate->bytes ? bytes : candidate->bytes;
    }
    if (f->options->memory_bytes >= 0 && candidate->bytes > f->options->memory_bytes)
        candidate->fate = FATE_HEAVY;
    return STATUS_OK;
}

static enum status prove(const struct plan *plan, const atomic_bool *interrupted,
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
        return or_impossible(status, candidate);
    switch (report.verdict) {
    case VERDICT_PROVED: candidate->fate = FATE_PROVED; break;
    case VERDICT_UNDECIDED: candidate->fate = FATE_UNDECIDED; break;
    case VERDICT_VIOLATED: candidate->fate = FATE_VIOLATED; candidate->violated = report.first;
    }
    verify_fini(&report);
    return STATUS_OK;
}

static enum status measure(const struct plan *plan, struct candidate *candidate, struct diag *diag)
{
    const struct predict_options options = {.program = {.driver = DRIVER_NONE, .iterations = 1},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .engine = ENGINE_AUTO,
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

static enum status judge(const struct frontier *f, struct candidate *candidate, struct arena *arena,
                         struct diag *diag)
{
    struct plan plan;
    candidate->step_ns = candidate->microbatch_ns = candidate->bubble = NAN;
    enum status status = frontier_plan(f, candidate, arena, &plan, diag);
    if (status == STATUS_OK)
        status = check_possible(f, &plan, arena, candidate, diag);
    if (status == STATUS_OK && candidate->fate == FATE_UNTRIED)
        status = weigh(f, &plan, arena, candidate, diag);
    if (status == STATUS_OK && candidate->fate == FATE_UNTRIED)
        status = prove(&plan, f->options->interrupted, candidate, diag);
    if (status == STATUS_OK && candidate->fate == FATE_PROVED)
        status = measure(&plan, candidate, diag);
    return status;
}

static enum status try_one(const struct frontier *f, struct candidate *candidate, bool given,
                           struct diag *diag)
{
    struct arena arena;
    struct diag said;
    arena_init(&arena, 0);
    diag_init(&said);
    enum status status = judge(f, candidate, &arena, &said);
    bool senseless = given && candidate->fate == FATE_IMPOSSIBLE;
    if (status != STATUS_OK || senseless)
        diag_take(diag, &said);
    diag_fini(&said);
    arena_fini(&arena);
    return senseless ? STATUS_INPUT : status;
}

enum status frontier_try(struct frontier *f, size_t first, size_t step, struct diag *diag)
{
    const struct frontier_options *options = f->options;
    enum status status = STATUS_OK;
    for (size_t i = first; status == STATUS_OK && i < f->count; i += step) {
        if (options->interrupted && atomic_load(options->interrupted))
            break;
        if (options->progress)
            options->progress(options->progress_arg, i, f->count);
        status = try_one(f, &f->candidates[i], i == 0, diag);
    }
    return status;
}

/* ---- the frontier ---------------------------------------------------------------------------- */

/* Proved ones before the others, the fastest first, of equally fast ones that with less memory, of equals
   the one listed first. */
static int by_time(const void *a, const void *b)
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
    return by_time(a, b);
}

void frontier_sort(struct frontier *f)
{
    int64_t least = INT64_MAX;
    qsort(f->candidates, f->count, sizeof *f->candidates, by_time);
    memset(f->fates, 0, sizeof f->fates);
    for (size_t i = 0; i < f->count; i++) {
        struct candidate *candidate = &f->candidates[i];
        f->fates[candidate->fate]++;
        candidate->frontier = candidate->fate == FATE_PROVED && candidate->bytes < least;
        if (candidate->frontier)
            least = candidate->bytes;
    }
    qsort(f->candidates, f->count, sizeof *f->candidates, by_memory);
}
