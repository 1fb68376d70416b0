/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - see program.h: a plan's program is built here, by the parts that lower.h declares.
 */
#include "machine/program.h"

#include <stdlib.h>

#include "lower.h"
#include "machine/conflicts.h"
#include "rank_programs.h"

/* Of a short text: rank programs are as long as their lists, which have a limit of their own. */
enum { MAX_PROGRAM_BYTES = 1 << 30 };

const char *driver_key(enum driver driver)
{
    static const char *const keys[] = {"none", "clock", "dataflow"};
    return keys[driver];
}

/* ---- looking up ------------------------------------------------------------------------------- */

int program_member(const struct program *program, int comm, int rank)
{
    const struct comm_desc *desc = &program->comms[comm];
    int low = 0, high = desc->count; /* members are ascending, and often all ranks */
    if (rank < high && desc->members[rank] == rank)
        return rank;
    while (low < high) {
        int middle = (low + high) / 2;
        if (desc->members[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < desc->count && desc->members[low] == rank ? low : -1;
}

int program_thread_agent(const struct program *program, int thread)
{
    (void)program;
    return 1 + thread;
}

int program_stream_agent(const struct program *program, int stream)
{
    return 1 + program->thread_count + stream;
}

int program_comm_agent(const struct program *program, int comm)
{
    return 1 + program->thread_count + program->stream_count + comm;
}

bool program_op_crosses(const struct program *program, const struct op *op, int rank)
{
    bool crosses = op->stream >= 0 && program->streams[op->stream].rank != rank;
    if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0 && op->sync != SYNC_LOAD)
        crosses |= program->event_rank[op->object] != rank;
    crosses |= op->device >= 0 && op->device != rank;
    if (op_operand(op->kind) == OPERAND_BUFFER)
        crosses |= program->buffers[op->object].rank != rank;
    for (int k = 0; k < op->access_count; k++)
        crosses |= program->buffers[program->accesses[op->access_first + k].buffer].rank != rank;
    return crosses;
}

/* ---- building -------------------------------------------------------------------------------- */

static enum status fill_options(struct program *program, const struct plan *plan,
                                const struct program_options *options, struct diag *diag)
{
    program->options = *options;
    program->plan = plan;
    program->ranks = options->ranks ? options->ranks : plan->ranks;
    program->driver = plan->form == FORM_PIPELINE ? options->driver : DRIVER_NONE;
    if (plan->form == FORM_PIPELINE && options->driver == DRIVER_NONE)
        program->driver = DRIVER_CLOCK;
    if (plan->form != FORM_PIPELINE && options->ranks && options->ranks != plan->ranks)
        return diag_error(
            diag, STATUS_USAGE,
            "%s: found --ranks %d for a plan that names its %d ranks one by one; only a "
            "pipeline plan can be run on another number of ranks",
            plan->file, options->ranks, plan->ranks);
    if (program->ranks < 1 || program->ranks > PLAN_MAX_RANKS)
        return diag_error(diag, STATUS_USAGE, "%s: found %d ranks, expected 1 to %d", plan->file,
                          program->ranks, PLAN_MAX_RANKS);
    if (!options->max_depth)
        program->options.max_depth = plan->pipeline.max_depth;
    return STATUS_OK;
}

static enum status lower(struct lowering *lowering)
{
    enum status status = lower_comms(lowering);
    if (status == STATUS_OK)
        status = lower_objects(lowering);
    if (status == STATUS_OK)
        status = lowering->plan->form == FORM_PIPELINE ? lower_pipeline(lowering)
                                                       : lower_threads(lowering);
    if (status == STATUS_OK && lowering->failed)
        status = diag_no_memory(lowering->diag);
    if (lowering->program->lists && lowering->ranks)
        rank_programs_take_lists(lowering->ranks, lowering->program->lists);
    rank_programs_close(lowering->ranks); /* its lists take much memory */
    lowering->ranks = NULL;
    if (status == STATUS_OK)
        status = lower_derive(lowering);
    if (status == STATUS_OK)
        status = program_find_conflicts(lowering->program, lowering->diag);
    return status == STATUS_OK ? program_lay_out(lowering->program, lowering->diag) : status;
}

/* Rank programs first become host programs; the program then owns that plan. */
static enum status as_threads(const struct plan *plan, const struct program_options *options,
                              struct program *program, const struct plan **out,
                              struct rank_programs **ranks, struct diag *diag)
{
    if (plan->form != FORM_PROGRAMS) {
        *out = plan;
        return STATUS_OK;
    }
    struct plan *lowered = calloc(1, sizeof *lowered);
    if (!lowered)
        return diag_no_memory(diag);
    enum status status = rank_programs_open(plan, options->clocks, lowered, ranks, diag);
    if (status != STATUS_OK) {
        free(lowered);
        return status;
    }
    program->owned_plan = lowered;
    program->lists = options->keep_lists ? calloc(1, sizeof *program->lists) : NULL;
    if (options->keep_lists && !program->lists)
        return diag_no_memory(diag);
    program->untracked = lowered->buffer_count == 0 && !options->clocks;
    *out = lowered;
    return STATUS_OK;
}

enum status program_build(const struct plan *plan, const struct program_options *options,
                          struct program **out, struct diag *diag)
{
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        return diag_no_memory(diag);
    arena_init(&program->arena, plan->form == FORM_PROGRAMS ? 0 : MAX_PROGRAM_BYTES);
    struct lowering lowering = {.program = program, .diag = diag};
    enum status status = as_threads(plan, options, program, &lowering.plan, &lowering.ranks, diag);
    if (status == STATUS_OK)
        status = fill_options(program, lowering.plan, options, diag);
    if (status == STATUS_OK)
        status = lower(&lowering);
    rank_programs_close(lowering.ranks);
    if (status != STATUS_OK) {
        program_close(program);
        return status;
    }
    *out = program;
    return STATUS_OK;
}

void program_close(struct program *program)
{
    if (!program)
        return;
    if (program->owned_plan) {
        plan_fini(program->owned_plan);
        free(program->owned_plan);
    }
    if (program->lists)
        complete_lists_fini(program->lists);
    free(program->lists);
    arena_fini(&program->arena);
    free(program);
}
