/* SPDX-License-Identifier: Apache-2.0 */
/* simulator.c - see simulator.h. */
#include "simulator.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/maxplus/recurrence.h"

/* From so many replications on lanes are faster than one after the other. */
enum { ENOUGH = 3 };

struct simulator {
    const struct program *program;
    const struct timing *timing;
    enum engine wanted;
    struct recurrence *recurrence; /* NULL: none, or none wanted */
};

const char *engine_key(enum engine engine)
{
    static const char *const keys[] = {
#define X(name, key) key,
        ENGINE_LIST(X)
#undef X
    };
    return keys[engine];
}

enum status simulator_open(const struct program *program, const struct timing *timing,
                           enum engine wanted, struct simulator **out, struct diag *diag)
{
    char why[EVENT_GRAPH_WHY] = "";
    struct simulator *simulator = calloc(1, sizeof *simulator);
    if (!simulator)
        return diag_no_memory(diag);
    *simulator = (struct simulator){program, timing, wanted, NULL};
    enum status status = simulate_check(program, timing, diag);
    if (status == STATUS_OK && wanted != ENGINE_EVENT)
        status = recurrence_build(program, timing, &simulator->recurrence, why, diag);
    if (status == STATUS_OK && *why && wanted != ENGINE_AUTO)
        status = diag_error(diag, STATUS_USAGE, "%s: found --engine %s, which does not apply: %s",
                            program->plan->name, engine_key(wanted), why);
    if (status == STATUS_OK)
        *out = simulator;
    else
        simulator_close(simulator);
    return status;
}

void simulator_close(struct simulator *simulator)
{
    if (!simulator)
        return;
    recurrence_close(simulator->recurrence);
    free(simulator);
}

enum engine simulator_engine(const struct simulator *simulator, int replications)
{
    if (!simulator->recurrence)
        return ENGINE_EVENT;
    if (simulator->wanted == ENGINE_AUTO)
        return replications >= ENOUGH ? ENGINE_BATCHED : ENGINE_RECURRENCE;
    return simulator->wanted;
}

int simulator_lanes(const struct simulator *simulator)
{
    return simulator_engine(simulator, RANDOM_LANES) == ENGINE_BATCHED ? RANDOM_LANES : 1;
}

/* Is anything asked that only the machine can tell? */
static bool wants_steps(const struct simulate_options *options)
{
    const struct simulate_observer *observer = options->observer;
    return observer && (observer->span || observer->work || observer->step || observer->iteration);
}

static enum status run_lanes(const struct simulator *simulator,
                             const struct simulate_options *options, int count,
                             struct simulation_result *out, struct diag *diag)
{
    struct simulation_result all[RANDOM_LANES];
    enum status status = recurrence_run_lanes(simulator->recurrence, options, all, diag);
    for (int l = 0; status == STATUS_OK && l < RANDOM_LANES; l++)
        if (l < count)
            out[l] = all[l];
        else
            simulation_fini(&all[l]);
    return status;
}

static enum status run_one(const struct simulator *simulator,
                           const struct simulate_options *options, struct simulation_result *out,
                           struct diag *diag)
{
    return simulator->recurrence && !wants_steps(options)
               ? recurrence_run(simulator->recurrence, options, out, diag)
               : simulate_run(simulator->program, simulator->timing, options, out, diag);
}

enum status simulator_run(const struct simulator *simulator, const struct simulate_options *options,
                          int count, struct simulation_result *out, struct diag *diag)
{
    assert(count >= 1 && count <= simulator_lanes(simulator));
    if (!wants_steps(options) && simulator_engine(simulator, count) == ENGINE_BATCHED)
        return run_lanes(simulator, options, count, out, diag);
    enum status status = run_one(simulator, options, out, diag);
    if (status != STATUS_OK || count == 1)
        return status;
    const struct simulate_options others = {.seed = options->seed,
                                            .replication = options->replication + 1,
                                            .interrupted = options->interrupted,
                                            .forgetful = options->forgetful};
    status = simulator_run(simulator, &others, count - 1, out + 1, diag);
    if (status != STATUS_OK)
        simulation_fini(out);
    return status;
}
