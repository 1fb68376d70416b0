/*
 * orbit.c - see orbit.h. The run is watched; whenever rank 0 has retired an iteration and all of that
 * instant is done, a snapshot is compared with one earlier snapshot, which is replaced after 1, 2, 4, ...
 * of them (Brent 1980): so there are never more than two, and steps back to that one are all that is kept.
 */
#include "orbit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enabling_steps.h"
#include "sim/engine/sharing.h"
#include "sim/engine/simulate.h"

enum { NONE = -1 };

/* So far away is the end of the data that it makes no difference. */
static const int64_t FAR = INT64_C(1) << 30;

/* What the future depends on, and where in the run that was. */
struct snapshot {
    struct state *state; /* canonical */
    int64_t *busy_ns;    /* per agent: since when it has been able to step; -1: it is not */
    int64_t time_ns, step, iteration;
};

struct orbit {
    const struct program *program; /* as `steps` has it */
    struct enabling_steps *steps;
    struct snapshot earlier, now;
    int64_t compared, until_replaced; /* snapshots since `earlier`; so many until the next */
    int64_t now_ns;                   /* of the last step */
    bool retired;                     /* rank 0, since the last snapshot */
    bool found, gave_up, failed, deadlock;
    char shared[EVENT_GRAPH_WHY / 2]; /* what streams share; "": nothing */
};

/* ---- snapshots ------------------------------------------------------------------------------- */

static bool snapshot_open(struct snapshot *snapshot, const struct program *p)
{
    snapshot->state = machine_state(p);
    snapshot->busy_ns = calloc((size_t)p->agent_count, sizeof *snapshot->busy_ns);
    snapshot->step = NONE;
    return snapshot->state && snapshot->busy_ns;
}

static void snapshot_close(struct snapshot *snapshot)
{
    machine_free(snapshot->state);
    free(snapshot->busy_ns);
}

static void snapshot_take(struct orbit *orbit, struct snapshot *out)
{
    const struct program *p = orbit->program;
    out->time_ns = orbit->now_ns;
    out->step = enabling_steps_count(orbit->steps);
    out->iteration = machine_oldest(p, enabling_steps_state(orbit->steps), 0);
    machine_copy(p, out->state, enabling_steps_state(orbit->steps));
    machine_canonical(p, out->state);
    for (int rank = 0; rank < p->ranks; rank++)
        machine_end_data(p, out->state, rank, FAR);
    for (int agent = 0; agent < p->agent_count; agent++) {
        int64_t since_ns = enabling_steps_enabled_since(orbit->steps, agent);
        out->busy_ns[agent] = since_ns < 0 ? NONE : orbit->now_ns - since_ns;
    }
}

static bool same(const struct program *p, const struct snapshot *a, const struct snapshot *b)
{
    return a->step >= 0 && a->time_ns < b->time_ns &&
           memcmp(a->busy_ns, b->busy_ns, (size_t)p->agent_count * sizeof *a->busy_ns) == 0 &&
           memcmp(a->state->cells, b->state->cells, p->at.bytes) == 0;
}

static void exchange(struct orbit *orbit)
{
    struct snapshot snapshot = orbit->earlier;
    orbit->earlier = orbit->now;
    orbit->now = snapshot;
    orbit->compared = 0;
    orbit->until_replaced *= 2;
    enabling_steps_forget(orbit->steps, orbit->earlier.step);
}

/* ---- watching -------------------------------------------------------------------------------- */

/* The end of the data is not in sight yet: nobody has asked for an iteration there is not. */
static bool goes_on(const struct orbit *orbit)
{
    const struct program *p = orbit->program;
    const struct state *state = enabling_steps_state(orbit->steps);
    for (int rank = 0; rank < p->ranks; rank++)
        if (machine_admitted(p, state, rank) >= p->ends[rank])
            return false;
    return true;
}

/* All of an instant is done. */
static void look(struct orbit *orbit)
{
    const struct program *p = orbit->program;
    orbit->retired = false;
    if (!goes_on(orbit) || orbit->now.iteration > ORBIT_MOST_ITERATIONS ||
        enabling_steps_count(orbit->steps) * p->agent_count > ORBIT_MOST_LOOKS) {
        orbit->gave_up = true;
        return;
    }
    snapshot_take(orbit, &orbit->now);
    orbit->found = same(p, &orbit->earlier, &orbit->now);
    if (!orbit->found && ++orbit->compared == orbit->until_replaced)
        exchange(orbit);
}

static bool watch(void *context, int64_t time_ns, struct transition transition,
                  const struct effect *effect)
{
    struct orbit *orbit = context;
    (void)effect;
    if (time_ns > orbit->now_ns && orbit->retired)
        look(orbit);
    if (orbit->found || orbit->gave_up)
        return false;
    orbit->now_ns = time_ns;
    int64_t oldest = machine_oldest(orbit->program, enabling_steps_state(orbit->steps), 0);
    orbit->failed = !enabling_steps_take(orbit->steps, time_ns, transition);
    orbit->retired |=
        machine_oldest(orbit->program, enabling_steps_state(orbit->steps), 0) > oldest;
    return !orbit->failed;
}

/* ---- the critical cycle ---------------------------------------------------------------------- */

/* The step that let this one of the repetition happen, in the repetition; *wraps: it was of the one
   before. */
static int64_t cause_of(const struct orbit *orbit, int64_t number, bool *wraps)
{
    const struct enabled_step *step = enabling_steps_step(orbit->steps, number);
    *wraps = step->from < orbit->earlier.step;
    return *wraps ? enabling_steps_enabled_by(orbit->steps, step->agent) : step->from;
}

static struct steady_part part_of(const struct program *p, const struct enabled_step *step)
{
    const struct agent *who = &p->agents[step->agent];
    struct steady_part part = {EVENT_DEVICE, who->rank, NONE, step->time_ns - step->enabled_ns};
    if (step->op >= 0)
        part.task = p->ops[step->op].task;
    else
        part.kind = EVENT_DRIVER;
    if (who->kind == AGENT_THREAD && step->op >= 0)
        part.kind = EVENT_HOST;
    if (who->kind == AGENT_COMM && p->comms[who->index].count == 1)
        part.rank = p->comms[who->index].members[0];
    return part;
}

/* Parts in a row that are the same are one; what takes no time is left out, but for the driver. */
static void add_part(struct steady *steady, const struct steady_part *part)
{
    struct steady_part *last = steady->part_count ? &steady->parts[steady->part_count - 1] : NULL;
    if (part->ns == 0 && part->kind != EVENT_DRIVER)
        return;
    if (last && last->kind == part->kind && last->rank == part->rank && last->task == part->task)
        last->ns += part->ns;
    else
        steady->parts[steady->part_count++] = *part;
}

/* From the last step back until a step comes again: those from there on are the cycle, latest first.
   Returns their number. Their time is that of the repetitions they span. */
static int list_cycle(const struct orbit *orbit, int64_t *out, int64_t *place, int64_t *repetitions)
{
    int64_t number = orbit->now.step - 1, ns = 0;
    int count = 0, first;
    bool wraps;
    for (; place[number - orbit->earlier.step] == 0; number = cause_of(orbit, number, &wraps)) {
        out[count++] = number;
        place[number - orbit->earlier.step] = count;
    }
    first = (int)place[number - orbit->earlier.step] - 1;
    *repetitions = 0;
    for (int i = first; i < count; i++) {
        const struct enabled_step *step = enabling_steps_step(orbit->steps, out[i]);
        ns += step->time_ns - step->enabled_ns;
        cause_of(orbit, out[i], &wraps);
        *repetitions += wraps;
        out[i - first] = out[i];
    }
    assert(ns == *repetitions * (orbit->now.time_ns - orbit->earlier.time_ns));
    (void)ns;
    return count - first;
}

/* In words a cycle begins at a driver if one is on it, else early in the repetition. */
static int first_of(const struct orbit *orbit, const int64_t *cycle, int count)
{
    int first = 0;
    for (int i = 0; i < count; i++) {
        bool after_driver = enabling_steps_step(orbit->steps, cycle[(i + 1) % count])->op < 0;
        if (enabling_steps_step(orbit->steps, cycle[i])->op < 0 && !after_driver)
            return i;
        first = cycle[i] < cycle[first] ? i : first;
    }
    return first;
}

static bool list_parts(const struct orbit *orbit, struct steady *steady)
{
    size_t steps = (size_t)(orbit->now.step - orbit->earlier.step);
    int64_t *cycle = calloc(steps, sizeof *cycle), *place = calloc(steps, sizeof *place);
    steady->parts = calloc(steps, sizeof *steady->parts);
    bool good = cycle && place && steady->parts;
    if (good) {
        int64_t repetitions;
        int count = list_cycle(orbit, cycle, place, &repetitions);
        int first = first_of(orbit, cycle, count);
        steady->iterations = repetitions * (orbit->now.iteration - orbit->earlier.iteration);
        for (int i = 0; i < count; i++) {
            const int64_t number = cycle[(first + count - i) % count];
            const struct steady_part part =
                part_of(orbit->program, enabling_steps_step(orbit->steps, number));
            add_part(steady, &part);
        }
    }
    free(cycle);
    free(place);
    return good;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A rank that shares no communicator with rank 0, not even through others, so that they drift apart. */
static int first_stranger(const struct program *p)
{
    int rank = 1;
    while (rank < p->ranks && p->fellows[rank] == p->fellows[0])
        rank++;
    return rank;
}

static enum status say_why(const struct orbit *orbit, struct steady *steady)
{
    const struct program *p = orbit->program;
    int64_t iterations = machine_oldest(p, enabling_steps_state(orbit->steps), 0);
    int stranger = first_stranger(p);
    if (*orbit->shared)
        snprintf(steady->why, sizeof steady->why,
                 "streams share %s: how long work takes depends on what else runs", orbit->shared);
    else if (orbit->deadlock)
        snprintf(steady->why, sizeof steady->why, "the run comes to a deadlock");
    else if (stranger < p->ranks)
        snprintf(steady->why, sizeof steady->why, "ranks 0 and %d never wait for each other",
                 stranger);
    else
        snprintf(steady->why, sizeof steady->why,
                 "the run does not repeat itself within %" PRId64 " iterations", iterations);
    return STATUS_OK;
}

static enum status describe(const struct orbit *orbit, struct steady *steady, struct diag *diag)
{
    if (!orbit->found)
        return say_why(orbit, steady);
    int64_t ns = orbit->now.time_ns - orbit->earlier.time_ns;
    int64_t iterations = orbit->now.iteration - orbit->earlier.iteration;
    int64_t divisor = common_divisor(ns, iterations);
    steady->kind = STEADY_EXACT;
    steady->way = STEADY_BY_RUN;
    steady->num_ns = ns / divisor;
    steady->den = iterations / divisor;
    return list_parts(orbit, steady) ? STATUS_OK : diag_no_memory(diag);
}

/* Without luck: everything takes its mean. */
static enum status means_of(struct timing *out, const struct timing *timing, struct diag *diag)
{
    enum status status = timing_without(out, timing, NONE, diag); /* a copy */
    for (size_t i = 0; status == STATUS_OK && i < timing->program->op_count; i++) {
        out->ops[i].mean_ns = timing_mean(timing, (int)i);
        out->ops[i].dist = NULL;
    }
    if (status == STATUS_OK)
        out->varies = false;
    return status;
}

static enum status run(struct orbit *orbit, const struct program *program,
                       const struct timing *timing, struct diag *diag)
{
    struct timing means;
    struct simulation_result result;
    const struct simulate_observer observer = {.context = orbit, .step = watch};
    const struct simulate_options options = {.observer = &observer};
    enum status status = means_of(&means, timing, diag);
    if (status != STATUS_OK)
        return status;
    status = simulate_run(program, &means, &options, &result, diag);
    timing_fini(&means);
    if (status == STATUS_OK) {
        orbit->deadlock = result.blocked_count > 0;
        simulation_fini(&result);
    }
    if (orbit->failed)
        return diag_no_memory(diag);
    return orbit->found || orbit->gave_up ? STATUS_OK : status; /* it was stopped from here */
}

/* What streams share, if that may slow somebody down. */
static enum status find_sharing(struct orbit *orbit, const struct program *p, struct diag *diag)
{
    struct arena scratch;
    arena_init(&scratch, 0);
    const char *shared = sharing_why(p, &scratch);
    if (shared)
        snprintf(orbit->shared, sizeof orbit->shared, "%s", shared);
    enum status status = scratch.failed ? diag_no_memory(diag) : STATUS_OK;
    arena_fini(&scratch);
    return status;
}

static enum status find(struct orbit *orbit, const struct program *endless,
                        const struct timing *timing, struct steady *out, struct diag *diag)
{
    orbit->steps = enabling_steps_open(endless, false);
    if (!orbit->steps)
        return diag_no_memory(diag);
    orbit->program = enabling_steps_program(orbit->steps);
    if (!snapshot_open(&orbit->earlier, orbit->program) ||
        !snapshot_open(&orbit->now, orbit->program))
        return diag_no_memory(diag);
    enum status status = find_sharing(orbit, endless, diag);
    if (status == STATUS_OK && !*orbit->shared && first_stranger(endless) == endless->ranks)
        status = run(orbit, endless, timing, diag);
    return status == STATUS_OK ? describe(orbit, out, diag) : status;
}

enum status orbit_find(const struct program *program, const struct timing *timing,
                       struct steady *out, struct diag *diag)
{
    struct steady steady = {.kind = STEADY_UNKNOWN};
    struct orbit orbit = {.until_replaced = 1};
    struct program endless = *program; /* with more data than are looked at */
    endless.ends = calloc((size_t)program->ranks, sizeof *endless.ends);
    if (!endless.ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < program->ranks; rank++)
        endless.ends[rank] = 2 * ORBIT_MOST_ITERATIONS + 2 * (int64_t)program->window;
    enum status status = find(&orbit, &endless, timing, &steady, diag);
    snapshot_close(&orbit.earlier);
    snapshot_close(&orbit.now);
    enabling_steps_close(orbit.steps);
    free(endless.ends);
    if (status == STATUS_OK)
        *out = steady;
    else
        steady_fini(&steady);
    return status;
}
