/* SPDX-License-Identifier: Apache-2.0 */
/* profiled.c - see profiled.h. */
#include "profiled.h"

#include <math.h>

#include "improve/found.h"
#include "trace/store.h"

enum status profiled_read(struct option_reader reader, const char *spec, const struct plan *plan,
                          int ranks, bool quiet, struct profile *out)
{
    const char *path;
    int64_t run;
    enum status status = option_run(reader, "--profile", spec, &path, &run);
    struct store *store = NULL;
    if (status == STATUS_OK)
        status = store_open(path, false, &store, reader.diag);
    if (status != STATUS_OK)
        return status;
    status = profile_read(store, run, plan, ranks, out, reader.diag);
    enum status closed = store_close(store, reader.diag);
    if (status == STATUS_OK) {
        status = closed;
        if (status == STATUS_OK) /* with the measured times */
            status = found_resolve(&out->plan, &out->arena, reader.diag);
        if (status != STATUS_OK)
            profile_fini(out);
    }
    if (status == STATUS_OK && !quiet)
        profile_note(out, path, reader.diag);
    return status;
}

static void profiled_set_time(struct task *task, enum profile_kind kind, int64_t ns)
{
    if (kind == PROFILE_HOST) {
        plan_set_host_time(task, ns);
        task->host_jitter = (struct dist){0};
        if (task->work.kind == WORK_HOST)
            task->work.time_ns = 0; /* it is in the measured time */
    } else {
        task->time_ns = ns;
        task->jitter = (struct dist){0};
    }
}

/* The mean of a part on the rank where it is longest; parts are in the order of kind, task, rank. */
static double slowest(const struct profile *profile, size_t first, size_t *next)
{
    const struct profile_part *parts = profile->parts;
    double longest = 0;
    size_t i = first;
    while (i < profile->part_count && parts[i].kind == parts[first].kind &&
           parts[i].task == parts[first].task) {
        longest = fmax(longest, parts[i].mean_ns);
        i++;
    }
    *next = i;
    return longest;
}

/* The cores of the run's machine; a task that slept there on every rank wants none. */
static void set_cores(const struct profile *profile, struct plan *plan)
{
    struct pipeline *pipeline = &plan->pipeline;
    if (profile->cores == 0)
        return;
    plan->machine.cores = profile->cores;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        pipeline->tasks[t].shares.core = plan_task(&profile->plan, 0, (int)t)->shares.core;
        for (size_t o = 0; o < pipeline->override_count; o++)
            if (pipeline->overrides[o].tasks) {
                const struct task *own =
                    plan_task(&profile->plan, pipeline->overrides[o].rank, (int)t);
                pipeline->overrides[o].tasks[t].shares.core = own->shares.core;
            }
    }
}

enum status profiled_set_times(struct option_reader reader, const char *spec, bool quiet,
                               struct plan *plan)
{
    struct profile profile;
    struct pipeline *pipeline = &plan->pipeline;
    enum status status = profiled_read(reader, spec, plan, 0, quiet, &profile);
    if (status != STATUS_OK)
        return status;
    set_cores(&profile, plan);
    for (size_t i = 0, next; i < profile.part_count; i = next) {
        int64_t ns = llround(slowest(&profile, i, &next));
        profiled_set_time(&pipeline->tasks[profile.parts[i].task], profile.parts[i].kind, ns);
        for (size_t o = 0; o < pipeline->override_count; o++)
            if (pipeline->overrides[o].tasks)
                profiled_set_time(&pipeline->overrides[o].tasks[profile.parts[i].task],
                                  profile.parts[i].kind, ns);
    }
    profile_fini(&profile);
    return STATUS_OK;
}
