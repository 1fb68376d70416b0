/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - see program.h: a plan's program is built here, by the parts that lower.h declares.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/sort.h"
#include "base/work_limit.h"
#include "machine/conflicts.h"
#include "machine/machine_internal.h"
#include "machine/program.h"
#include "plan/schedules/parallel.h"

#include "lower.h"
#include "rank_programs.h"

/* ---- layout ---------------------------------------------------------------------------------- */

/* Computes the layout of a state; the drawing is in machine_internal.h. */

static int program_take(int *at, int64_t cells, bool *too_big)
{
    int start = *at;
    if (cells > INT32_MAX / 4 - *at)
        *too_big = true;
    else
        *at += (int)cells;
    return start;
}

static bool allocate_tables(struct program *program)
{
    struct layout *at = &program->at;
    struct arena *arena = &program->arena;
    at->threads = ARENA_ARRAY(arena, (size_t)program->thread_count, int);
    at->row_entries = ARENA_ARRAY(arena, (size_t)program->thread_count, int);
    at->streams = ARENA_ARRAY(arena, (size_t)program->stream_count, int);
    at->row_items = ARENA_ARRAY(arena, (size_t)program->stream_count, int);
    at->channels = ARENA_ARRAY(arena, (size_t)program->channel_count, int);
    at->hw_queues = ARENA_ARRAY(arena, (size_t)program->hw_queue_count, int);
    at->row_queues = ARENA_ARRAY(arena, (size_t)program->queue_count, int);
    at->row_channels = ARENA_ARRAY(arena, (size_t)program->channel_count, int);
    at->column = ARENA_ARRAY(arena, (size_t)program->agent_count, int);
    at->column_row = ARENA_ARRAY(arena, (size_t)program->agent_count, int);
    at->column_ticks = ARENA_ARRAY(arena, (size_t)program->agent_count + 1, int);
    return !arena->failed;
}

/* True if it allocates or frees a buffer. */
static bool uses_memory(const struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++)
        if (op_operand(program->ops[i].kind) == OPERAND_BUFFER)
            return true;
    return false;
}

static void lay_out_cells(struct program *program, bool *too_big)
{
    struct layout *at = &program->at;
    int next = 1;
    int64_t ranks = program->ranks, instances = program->slots;
    at->ranks = program_take(&next, ranks * RANK_CELLS, too_big);
    at->windows =
        program_take(&next, program->tasks ? ranks * program->window * WINDOW_CELLS : 0, too_big);
    at->fired = program_take(&next, ranks * program->tasks * program->window, too_big);
    for (int t = 0; t < program->thread_count; t++)
        at->threads[t] = program_take(
            &next, THREAD_CELLS + (int64_t)program->threads[t].queue_cap * ENTRY_CELLS, too_big);
    for (int s = 0; s < program->stream_count; s++)
        at->streams[s] = program_take(
            &next, STREAM_CELLS + (int64_t)program->streams[s].cap * ITEM_CELLS, too_big);
    at->members = program_take(&next, (int64_t)program->member_count * MEMBER_CELLS, too_big);
    for (int c = 0; c < program->channel_count; c++)
        at->channels[c] =
            program_take(&next, 1 + (int64_t)program->channels[c].cap * MESSAGE_CELLS, too_big);
    for (int h = 0; h < program->hw_queue_count; h++)
        at->hw_queues[h] = program_take(&next, 1 + program->hw_cap, too_big);
    at->events = program_take(&next, program->event_families * instances * EVENT_CELLS, too_big);
    at->flags = program_take(&next, program->flag_families * instances * FLAG_CELLS, too_big);
    at->queues = program_take(&next, program->queue_count, too_big);
    at->locks = program_take(&next, program->lock_count, too_big);
    bool loads = program->plan->machine.lazy_load;
    at->kernels = program_take(&next, loads ? ranks * program->kernel_count : 0, too_big);
    at->buffers = program_take(
        &next, uses_memory(program) ? program->buffer_count * (int64_t)BUFFER_CELLS : 0, too_big);
    at->recorded = program_take(&next, program->recorded_count, too_big);
    at->awaited = program_take(&next, program->awaited_count, too_big);
    at->loose = program_take(&next, 1, too_big);
    bool faults = program->options.faults;
    at->aborted = program_take(&next, program->can_abort ? program->member_count : 0, too_big);
    at->faults = program_take(&next, faults ? 1 + 2 * ranks : 0, too_big);
    at->made = program_take(&next, program->options.serial ? ranks * program->tasks : 0, too_big);
    at->cells = next;
}

/* The columns of a row: the agents that access buffers. */
static void lay_out_columns(struct program *program)
{
    struct layout *at = &program->at;
    for (int agent = 0; agent < program->agent_count; agent++)
        at->column[agent] = -1;
    for (int i = 0; i < program->record_count; i++)
        if (at->column[program->records[i].agent] < 0)
            at->column[program->records[i].agent] = at->columns++;
}

/* For each column the ticks that it can take before they are numbered anew, which takes time: more than there can be
   afterwards, one an access that is remembered. As few bytes a tick as these allow. */
static void size_columns(struct program *program, bool *too_big)
{
    enum { MORE = 16, MANY = 64 };
    struct layout *at = &program->at;
    int *live = at->column_ticks, most = 0, next = 0;
    for (int i = 0; i < program->record_count; i++) {
        int *count = &live[at->column[program->records[i].agent]];
        int period = program->buffers[program->records[i].buffer].period;
        program_take(count, i < program->shared_records ? max_int(period, 1) : program->window,
                     too_big);
        most = *count > most ? *count : most;
    }
    at->tick_bytes = most + MORE <= INT8_MAX ? 1 : most + MANY <= INT16_MAX ? 2 : 4;
    for (int column = 0; column <= at->columns; column++) {
        int64_t ticks = 2 * (int64_t)live[column] + MANY;
        int64_t limit = at->tick_bytes == 1   ? INT8_MAX
                        : at->tick_bytes == 2 ? INT16_MAX
                                              : INT32_MAX;
        live[column] = program_take(&next, ticks < limit ? ticks : limit, too_big);
    }
}

/* An agent's accesses are known by its own row first. */
static void find_column_rows(struct program *program)
{
    struct layout *at = &program->at;
    for (int agent = 0; agent < program->agent_count; agent++) {
        const struct agent *desc = &program->agents[agent];
        if (at->column[agent] >= 0)
            at->column_row[at->column[agent]] =
                (desc->kind == AGENT_STREAM ? at->row_streams : at->row_threads) + desc->index;
    }
}

static void lay_out_rows(struct program *program, bool *too_big)
{
    struct layout *at = &program->at;
    int next = 0;
    int in_word = (int)sizeof(uint64_t) / at->tick_bytes;
    at->row_words = program->options.clocks ? 0 : (at->columns + in_word - 1) / in_word;
    int64_t ranks = program->ranks, instances = program->slots;
    at->row_threads = program_take(&next, program->thread_count, too_big);
    at->row_streams = program_take(&next, program->stream_count, too_big);
    for (int s = 0; s < program->stream_count; s++)
        at->row_items[s] = program_take(&next, program->streams[s].cap, too_big);
    at->row_events = program_take(&next, program->event_families * instances, too_big);
    at->row_flags = program_take(&next, program->flag_families * instances, too_big);
    at->row_locks = program_take(&next, program->lock_count, too_big);
    at->row_tickets = program_take(&next, ranks, too_big);
    at->row_done = program_take(&next, ranks * program->window, too_big);
    at->row_admit = program_take(&next, ranks * program->window, too_big);
    for (int t = 0; t < program->thread_count; t++)
        at->row_entries[t] = program_take(&next, program->threads[t].queue_cap, too_big);
    for (int q = 0; q < program->queue_count; q++)
        at->row_queues[q] = program_take(&next, program->queue_caps[q], too_big);
    for (int c = 0; c < program->channel_count; c++)
        at->row_channels[c] = program_take(&next, program->channels[c].cap, too_big);
    at->rows = next;
    if (at->row_words)
        find_column_rows(program);
}

/* Behind the cells: rows, the last accesses, and the room behind the state. */
static void lay_out_bytes(struct program *program)
{
    struct layout *at = &program->at;
    const size_t line = 64; /* searches keep states in whole ones */
    size_t records = (size_t)program->shared_records + (size_t)program->ring_records +
                     (size_t)program->period_records * (size_t)program->window;
    at->rows_at = ((size_t)at->cells * sizeof(int32_t) + 7) / 8 * 8;
    at->last_at = at->rows_at + (size_t)at->rows * (size_t)at->row_words * sizeof(uint64_t);
    at->bytes = at->last_at + (at->row_words ? records * (size_t)at->tick_bytes : 0);
    at->room_at = (at->bytes + line - 1) / line * line;
    at->block =
        at->room_at + (at->row_words ? (size_t)at->column_ticks[at->columns] * sizeof(int32_t) : 0);
}

/* After lowering: where a state keeps what. */
static enum status program_lay_out(struct program *program, struct diag *diag)
{
    if (!allocate_tables(program))
        return diag_no_memory(diag);
    for (size_t i = 0; i < program->op_count; i++)
        program->has_lifetimes |= program->ops[i].kind == OP_FREE;
    bool too_big = false;
    lay_out_cells(program, &too_big);
    if (program->record_count > 0 && !program->options.no_knowledge) {
        lay_out_columns(program);
        size_columns(program, &too_big);
        lay_out_rows(program, &too_big);
    }
    lay_out_bytes(program);
    program->fits = !too_big && program->at.bytes <= (size_t)1 << 31;
    bool any_size = program->options.any_size || program->straight;
    program->options.any_size = false;
    return any_size ? STATUS_OK : program_fits(program, diag);
}

enum status program_fits(const struct program *program, struct diag *diag)
{
    if (program->fits)
        return STATUS_OK;
    return diag_error(
        diag, STATUS_INPUT,
        "%s: one state of this plan would take more than 2 GiB: expected a smaller plan",
        program->plan->file);
}

const char *driver_key(enum driver driver)
{
    static const char *const keys[] = {"none", "clock", "dataflow"};
    return keys[driver];
}

/* ---- looking up ------------------------------------------------------------------------------- */

int program_member(const struct program *program, int comm, int rank)
{
    const struct comm_desc *desc = &program->comms[comm];
    if (rank < desc->count && desc->members[rank] == rank)
        return rank; /* members are ascending, and often all ranks */
    const int low = SORT_FIRST(i, 0, desc->count, desc->members[i] >= rank);
    return low < desc->count && desc->members[low] == rank ? low : -1;
}

bool program_turns_come(const struct program *program)
{
    if (program->ordered_tasks[0] == 0)
        return true;
    for (int task = 0; task < program->tasks; task++)
        for (int k = 0; k < program->depends[task].count; k++) {
            const struct edge edge = program->depends[task].items[k];
            if (program_turn_key(program, edge.task) - (int64_t)program->tasks * edge.distance >=
                program_turn_key(program, task))
                return false;
        }
    return program->last_turn_stage < program->depth;
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
    crosses |=
        (op_syncs(op->kind) || op->kind == OP_QUERY) && op->device >= 0 && op->device != rank;
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
        status = lower_failed(lowering);
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
    enum status status =
        rank_programs_open(plan, options->clocks, options->few, &program->arena, lowered, ranks,
                           options->straight ? &program->straight : NULL, diag);
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

/* In a pipeline the first rank stands for all, in groups one of the first pipeline for those at the same place of the others. */
static enum status find_stood_for(const struct plan *plan, struct program *program,
                                  struct diag *diag)
{
    if (program->options.stands_for == 0)
        return STATUS_OK;
    program->stood_for = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->stood_for)
        return diag_no_memory(diag);
    for (int own = 0; own < program->ranks; own++)
        program->stood_for[own] = parallel_rank(&plan->programs.parallel, program->ranks, 0, own);
    return STATUS_OK;
}

/* With --enable-checks: the tables of a program refer to what is there. */
static void program_check(const struct program *program)
{
#ifdef SWSIM_CHECKS
    for (size_t i = 0; i < program->body_count; i++) {
        const struct body *body = &program->bodies[i];
        assert(body->first >= 0 && body->count >= 0);
        assert((size_t)body->first + (size_t)body->count <= program->op_count);
    }
    for (int c = 0; c < program->comm_count; c++) {
        const struct comm_desc *comm = &program->comms[c];
        assert(comm->first_member + comm->count <= program->member_count);
        for (int i = 1; i < comm->count; i++)
            assert(comm->members[i - 1] < comm->members[i]);
    }
    for (int i = 0; i < program->channel_count; i++)
        assert(program->channels[i].comm >= 0 && program->channels[i].comm < program->comm_count);
    for (int i = 0; i < program->record_count && program->records; i++) {
        assert(program->records[i].buffer >= 0 &&
               program->records[i].buffer < program->buffer_count);
        assert(program->records[i].agent >= 0 && program->records[i].agent < program->agent_count);
    }
#else
    (void)program;
#endif
}

/* The limit is for building only. */
static void take_off_limit(struct program *program)
{
    program->options.limit = NULL;
    program->options.interrupted = NULL;
    program->arena.limit = NULL;
    if (program->owned_plan)
        program->owned_plan->arena.limit = NULL;
    if (program->lists)
        program->lists->arena.limit = NULL;
}

enum status program_build(const struct plan *plan, const struct program_options *options,
                          struct program **out, struct diag *diag)
{
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        return diag_no_memory(diag);
    struct work_limit limit;
    if (options->limit)
        limit = *options->limit;
    else
        work_limit_init(&limit, 0, &(struct search_watch){.interrupted = options->interrupted});
    arena_init(&program->arena, 0);
    program->arena.limit = &limit;
    struct lowering lowering = {.program = program, .diag = diag};
    enum status status = as_threads(plan, options, program, &lowering.plan, &lowering.ranks, diag);
    if (status == STATUS_OK)
        status = fill_options(program, lowering.plan, options, diag);
    if (status == STATUS_OK)
        status = lower(&lowering);
    if (status == STATUS_OK)
        status = find_stood_for(plan, program, diag);
    rank_programs_close(lowering.ranks);
    status = work_limit_end(&limit, status, plan->file, "the program of this plan", diag);
    if (status != STATUS_OK) {
        program_close(program);
        return status;
    }
    take_off_limit(program);
    program_check(program);
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
