/* SPDX-License-Identifier: Apache-2.0 */
/* profile_tasks.c - see profile_tasks.h. */
#include "profile_tasks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"

static int compare_times(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* A part of a task that takes `mean_ns` with such a distribution. False without memory. */
static bool add_part(struct profile *profile, const struct profile_part *key, int64_t mean_ns,
                     const struct dist *jitter)
{
    const size_t count = jitter->kind == DIST_EMPIRICAL ? jitter->factor_count : 1;
    int64_t *ns = ARENA_ARRAY(&profile->arena, count, int64_t);
    if (!ns)
        return false;
    ns[0] = mean_ns;
    for (size_t i = 0; i < count && jitter->kind == DIST_EMPIRICAL; i++)
        ns[i] = llround(jitter->factors[i] * (double)mean_ns);
    qsort(ns, count, sizeof *ns, compare_times);
    struct profile_part *part = &profile->parts[profile->part_count++];
    *part = *key;
    part->mean_ns = (double)mean_ns;
    part->ns = ns;
    part->count = count;
    return true;
}

/* The CPU or device part of a task as a rank of the run had it. */
static bool take_part(struct profile *profile, const struct plan *measured,
                      const struct profile_part *key, int task)
{
    const struct task *own = plan_task(measured, key->rank, task);
    const bool host = own->work.kind == WORK_HOST;
    const int64_t work_ns = own->work.time_ns;
    if (key->kind == PROFILE_HOST)
        return add_part(profile, key, own->host_time_ns + own->host_after_ns + (host ? work_ns : 0),
                        &own->host_jitter);
    return host || add_part(profile, key, own->time_ns + work_ns, &own->jitter);
}

static bool take_parts(struct profile *profile, const struct plan *measured)
{
    const size_t tasks = profile->plan.pipeline.task_count;
    profile->parts = ARENA_ARRAY(
        &profile->arena, PROFILE_KINDS * tasks * (size_t)profile->ranks + 1, struct profile_part);
    if (!profile->parts)
        return false;
    for (int kind = 0; kind < PROFILE_KINDS; kind++)
        for (size_t t = 0; t < tasks; t++) {
            const int task = plan_find_task(measured, profile->plan.pipeline.tasks[t].name);
            profile->drawn += kind == 0 && task >= 0;
            for (int rank = 0; task >= 0 && rank < profile->ranks; rank++) {
                const struct profile_part key = {
                    .kind = (enum profile_kind)kind, .task = (int)t, .rank = rank};
                if (!take_part(profile, measured, &key, task))
                    return false;
            }
        }
    profile->operations = tasks;
    return true;
}

static int64_t count_steps(const struct trace *trace)
{
    int64_t count = 0;
    for (size_t i = 0; i < trace->iteration_count; i++)
        count += trace->iterations[i].rank == trace->iterations[0].rank;
    return count;
}

enum status profile_take_tasks(struct profile *profile, const struct trace *trace,
                               struct diag *diag)
{
    const char *text = trace->info.plan_text;
    struct plan measured;
    enum status status = plan_parse("the run's plan", text, strlen(text), &measured, diag);
    if (status != STATUS_OK)
        return status;
    profile->iterations = count_steps(trace);
    if (measured.form != FORM_PIPELINE)
        status = diag_error(diag, STATUS_INPUT,
                            "run %" PRId64 " of %s was imported as host programs: 'swsim import "
                            "--form=pipeline --db FILE' adds one with tasks",
                            trace->run, trace->info.plan_name);
    else if (!take_parts(profile, &measured))
        status = diag_no_memory(diag);
    else if (profile->drawn == 0)
        status = diag_error(diag, STATUS_INPUT, "run %" PRId64 " measured none of the tasks of %s",
                            trace->run, profile->plan.name);
    plan_fini(&measured);
    return status;
}
