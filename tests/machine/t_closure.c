/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_closure.c - TorchRec's pipelines are proved for any number of iterations, however their tasks are
 * spread over threads.
 *
 * Every plan of plans/reference, on two ranks where it has collectives, under the clock and under
 * data-flow with max_depth 2 to 8, with the tasks in one, two and three thread groups. For each the
 * verdict is "proved" and the search is small: at most MOST_STATES states under the clock, and under
 * data-flow none at all (structure) or at most that. Time is not tested here. `serial` is left out: the rows
 * that semi_sync reads are as old as the threads of its tasks let them be.
 *
 * The groups are those a person would choose (by stream, by stage, in turn) and some at random;
 * SWSIM_LONG=1 tries every way to spread the tasks over at most three groups.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { MAX_TASKS = 16, MAX_GROUPS = 3, RANDOM = 4, MOST_STATES = 5000 };

/* The group of each task. */
struct spread {
    int count; /* groups, at least those that are used */
    int group[MAX_TASKS];
};

struct tally {
    int proved, by_structure, refused;
    uint64_t states; /* the biggest search */
};

static void complain(struct tally *tally, const struct plan *plan, const struct spread *spread,
                     const struct verify_report *report, int max_depth)
{
    char groups[4 * MAX_TASKS + 1] = "";
    size_t at = 0;
    for (size_t t = 0; t < plan->pipeline.task_count && at < sizeof groups - 4; t++)
        at += (size_t)snprintf(groups + at, sizeof groups - at, " %d", spread->group[t]);
    if (tally->refused++ < 10)
        tap_note("%s, %s, max_depth %d, groups%s: %s, %" PRIu64 " states", plan->file,
                 driver_key(report->driver), max_depth, groups, verdict_key(report->verdict),
                 report->states);
}

static void try_one(struct tally *tally, const struct plan *plan, const struct spread *spread,
                    enum driver driver, int max_depth)
{
    struct verify_options options = {
        .program = {.driver = driver, .iterations = -1, .max_depth = max_depth},
        .any_witness = true,
        .properties =
            ((1u << PROPERTY_COUNT) - 1) & ~(1u << PROPERTY_FAULTS) & ~(1u << PROPERTY_SERIAL),
        .limits = {.states = MOST_STATES}};
    struct verify_report report;
    struct diag diag;
    diag_init(&diag);
    if (verify_plan(plan, &options, &report, &diag) != STATUS_OK) {
        tally->refused++;
        diag_print(&diag, "t_closure", false, stderr);
        diag_fini(&diag);
        return;
    }
    if (report.verdict == VERDICT_PROVED)
        tally->proved++;
    else
        complain(tally, plan, spread, &report, max_depth);
    tally->by_structure += report.verdict == VERDICT_PROVED && report.states == 0;
    tally->states = report.states > tally->states ? report.states : tally->states;
    verify_fini(&report);
    diag_fini(&diag);
}

static void try_spread(struct tally *clock, struct tally *dataflow, struct plan *plan,
                       const struct spread *spread)
{
    static const char *const names[MAX_GROUPS] = {"first", "second", "third"};
    struct pipeline *pipeline = &plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        pipeline->tasks[t].group =
            names_intern(&plan->groups, &plan->arena, names[spread->group[t]]);
        for (size_t i = 0; i < pipeline->override_count; i++)
            if (pipeline->overrides[i].tasks)
                pipeline->overrides[i].tasks[t].group = pipeline->tasks[t].group;
    }
    try_one(clock, plan, spread, DRIVER_CLOCK, 0);
    for (int max_depth = 2; max_depth <= 8; max_depth++)
        try_one(dataflow, plan, spread, DRIVER_DATAFLOW, max_depth);
}

static int group_of(const struct plan *plan, int task, int way, int groups)
{
    const struct task *which = &plan->pipeline.tasks[task];
    switch (way) {
    case 0: return which->stream % groups;
    case 1: return which->stage % groups;
    case 2: return task % groups;
    default: return (int)(hash_mix((uint64_t)(way * 1000 + task)) % (uint64_t)groups);
    }
}

static void try_usual(struct tally *clock, struct tally *dataflow, struct plan *plan)
{
    for (int groups = 1; groups <= MAX_GROUPS; groups++)
        for (int way = 0; way < (groups == 1 ? 1 : 3 + RANDOM); way++) {
            struct spread spread = {.count = groups};
            for (int t = 0; t < (int)plan->pipeline.task_count; t++)
                spread.group[t] = group_of(plan, t, way, groups);
            try_spread(clock, dataflow, plan, &spread);
        }
}

/* All of them: task by task, a group that is used already or the next one. */
static void try_all(struct tally *clock, struct tally *dataflow, struct plan *plan,
                    struct spread *spread, int task)
{
    if (task == (int)plan->pipeline.task_count) {
        try_spread(clock, dataflow, plan, spread);
        return;
    }
    int used = spread->count;
    for (int group = 0; group <= used && group < MAX_GROUPS; group++) {
        spread->group[task] = group;
        spread->count = group == used ? used + 1 : used;
        try_all(clock, dataflow, plan, spread, task + 1);
    }
    spread->count = used;
}

static bool has_collective(const struct plan *plan)
{
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        if (plan->pipeline.tasks[t].work.kind == WORK_COLLECTIVE)
            return true;
    return false;
}

static void check_file(const char *path, bool all)
{
    struct tally clock = {0}, dataflow = {0};
    struct plan plan;
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!plan_of_file(path, &plan))
        return;
    bool fits =
        plan.pipeline.task_count <= MAX_TASKS && (!has_collective(&plan) || plan.ranks == 2);
    tap_ok(fits, "%s: %zu tasks, %d ranks", base, plan.pipeline.task_count, plan.ranks);
    struct spread spread = {0};
    if (fits && all)
        try_all(&clock, &dataflow, &plan, &spread, 0);
    else if (fits)
        try_usual(&clock, &dataflow, &plan);
    tap_ok(clock.proved > 0 && clock.refused == 0,
           "%s, clock: %d of %d proved, %" PRIu64 " states at most", base, clock.proved,
           clock.proved + clock.refused, clock.states);
    tap_ok(dataflow.proved > 0 && dataflow.refused == 0,
           "%s, data-flow: %d of %d proved, %d by structure, %" PRIu64 " states at most", base,
           dataflow.proved, dataflow.proved + dataflow.refused, dataflow.by_structure,
           dataflow.states);
    plan_fini(&plan);
}

int main(void)
{
    glob_t files = files_source("plans/reference/*.yaml");
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i], env_is_long());
    tap_ok(files.gl_pathc >= 11, "%zu plans", files.gl_pathc);
    globfree(&files);
    return tap_done();
}
