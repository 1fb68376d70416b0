/* SPDX-License-Identifier: Apache-2.0 */
/* measured_program.c - see measured_program.h. */
#include "measured_program.h"

#include <inttypes.h>
#include <string.h>

#include "plan/text/parse.h"
#include "plan/strip_device_rules.h"
#include "sim/engine/simulate.h"

/* How the run was made. */
static enum status find_options(const struct trace *trace, struct program_options *out,
                                struct diag *diag)
{
    const struct trace_stat *depth = trace_find_stat(trace, RUN_STAT_DEPTH);
    bool dataflow = trace->info.driver == RUN_DRIVER_DATAFLOW;
    if (depth && !(depth->value >= 1 && depth->value <= PLAN_MAX_DEPTH))
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 ": found depth %g, expected 1 to %d",
                          trace->run, depth->value, PLAN_MAX_DEPTH);
    if (trace->info.ranks < 1 || trace->info.ranks > PLAN_MAX_RANKS)
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 ": found %d ranks, expected 1 to %d",
                          trace->run, trace->info.ranks, PLAN_MAX_RANKS);
    if (trace->info.iterations_wanted < 1 || trace->info.iterations_wanted > PLAN_MAX_ITERATIONS)
        return diag_error(diag, STATUS_INPUT,
                          "run %" PRId64 ": found %" PRId64 " iterations, expected 1 to %d",
                          trace->run, trace->info.iterations_wanted, PLAN_MAX_ITERATIONS);
    *out = (struct program_options){
        .driver = dataflow ? DRIVER_DATAFLOW : DRIVER_CLOCK,
        .iterations = trace->info.iterations_wanted,
        .ranks = trace->info.ranks,
        .max_depth = depth && dataflow ? (int)depth->value : 0,
    };
    return STATUS_OK;
}

static enum status measured_program_read_plan(struct measured_program *measured,
                                              const struct trace *trace, struct diag *diag)
{
    const char *text = trace->info.plan_text;
    const char *name = arena_printf(&measured->arena, "plan of run %" PRId64, trace->run);
    if (!name)
        return diag_no_memory(diag);
    return plan_parse(name, text, strlen(text), &measured->kept, diag);
}

/* The plan has been read. */
static enum status measured_program_build(struct measured_program *measured,
                                          const struct trace *trace, struct diag *diag)
{
    bool cuda = strncmp(trace->info.device, "cuda", strlen("cuda")) == 0;
    measured->plan = measured->kept;
    if (measured->plan.form != FORM_PIPELINE || trace->info.driver == RUN_DRIVER_NONE)
        return diag_error(diag, STATUS_INPUT, "run %" PRId64 ": %s is not of the pipeline form",
                          trace->run, trace->info.plan_name);
    if (!plan_strip_device_rules(&measured->plan, &measured->arena, cuda, NULL))
        return diag_no_memory(diag);
    return program_build(&measured->plan, &measured->options, &measured->program, diag);
}

enum status measured_program_open(struct measured_program *measured, const struct trace *trace,
                                  struct diag *diag)
{
    arena_init(&measured->arena, 0);
    enum status status = find_options(trace, &measured->options, diag);
    if (status == STATUS_OK)
        status = measured_program_read_plan(measured, trace, diag);
    if (status != STATUS_OK) {
        arena_fini(&measured->arena);
        return status;
    }
    measured->program = NULL;
    status = measured_program_build(measured, trace, diag);
    if (status != STATUS_OK)
        measured_program_close(measured);
    return status;
}

void measured_program_close(struct measured_program *measured)
{
    program_close(measured->program);
    plan_fini(&measured->kept);
    arena_fini(&measured->arena);
}
