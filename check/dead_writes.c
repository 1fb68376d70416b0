/* SPDX-License-Identifier: Apache-2.0 */
/* dead_writes.c - see dead_writes.h. */
#include "dead_writes.h"

#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/table.h"
#include "one_run.h"

enum { SUBJECT = 320 };

/* The last write to a buffer, until it is read. */
struct dead_last {
    int op; /* program->ops; -1: none */
    int64_t iteration;
};

struct dead_finder {
    const struct program *program;
    struct dead_last *last; /* per program->buffers */
    bool *read;             /* the same: true if anything reads it */
    struct arena *arena;
    struct dead_writes *out;
    struct table known; /* of out->items */
};

/* ---- pairs ----------------------------------------------------------------------------------- */

static struct dead_access dead_access_of(const struct dead_finder *finder, int op,
                                         int64_t iteration)
{
    const struct program *p = finder->program;
    char text[SUBJECT];
    if (p->tasks > 0) {
        const struct task *task = &p->plan->pipeline.tasks[p->ops[op].task];
        return (struct dead_access){task->name, task->mark};
    }
    program_op_subject(p, &p->ops[op], iteration, text, sizeof text);
    return (struct dead_access){arena_strdup(finder->arena, text), p->ops[op].mark};
}

static bool dead_same_mark(struct mark a, struct mark b)
{
    return a.line == b.line && a.col == b.col;
}

static bool dead_is_same(const struct dead_write *a, const struct dead_write *b)
{
    return dead_same_mark(a->lost.mark, b->lost.mark) &&
           dead_same_mark(a->over.mark, b->over.mark) && strcmp(a->buffer, b->buffer) == 0;
}

static uint64_t dead_hash(const struct dead_write *write)
{
    const uint64_t words[] = {(uint64_t)write->lost.mark.line << 32 | write->lost.mark.col,
                              (uint64_t)write->over.mark.line << 32 | write->over.mark.col};
    return hash_bytes(words, sizeof words) ^ table_hash_name(write->buffer);
}

static void dead_add(struct dead_finder *finder, int buffer, int op, int64_t iteration)
{
    const struct dead_last *last = &finder->last[buffer];
    const struct program *p = finder->program;
    const struct buffer_desc *desc = &p->buffers[buffer];
    struct dead_write found = {.buffer = p->tasks > 0 ? p->plan->buffers[desc->plan_buffer].name
                                                      : desc->name,
                               .read = finder->read[buffer],
                               .may_be_read = p->ops[op].kind == OP_LAUNCH && p->ops[op].at > 0,
                               .lost = dead_access_of(finder, last->op, last->iteration),
                               .over = dead_access_of(finder, op, iteration)};
    struct dead_writes *out = finder->out;
    const uint64_t hash = dead_hash(&found);
    if (TABLE_FIND(&finder->known, hash, i, dead_is_same(&out->items[i], &found)) != TABLE_NONE)
        return;
    found.buffer = arena_strdup(finder->arena, found.buffer);
    if (ARENA_GROW(finder->arena, out->items, out->count, out->cap) &&
        table_add_in(&finder->known, finder->arena, hash, out->count))
        out->items[out->count++] = found;
}

static void dead_write_comes(struct dead_finder *finder, int buffer, int op, int64_t iteration)
{
    if (finder->last[buffer].op >= 0)
        dead_add(finder, buffer, op, iteration);
    finder->last[buffer] = (struct dead_last){op, iteration};
}

/* An operation reads before it writes. */
static void dead_step(struct dead_finder *finder, int op, int64_t iteration)
{
    const struct program *p = finder->program;
    ASSERT_INDEX(op, p->op_count);
    const struct access *accesses = &p->accesses[p->ops[op].access_first];
    for (int k = 0; k < p->ops[op].access_count; k++)
        if (!accesses[k].write)
            finder->last[accesses[k].buffer].op = -1;
    for (int k = 0; k < p->ops[op].access_count; k++)
        if (accesses[k].write)
            dead_write_comes(finder, accesses[k].buffer, op, iteration);
}

/* ---- host programs --------------------------------------------------------------------------- */

static void dead_look(void *arg, const struct effect *effect)
{
    struct dead_finder *finder = arg;
    if (effect->op < 0 || effect->kind == EFFECT_FINISH)
        return;
    const struct op *op = &finder->program->ops[effect->op];
    if (effect->kind == EFFECT_START || !op_pushes(op->kind))
        dead_step(finder, effect->op, effect->iteration);
}

static enum status dead_in_run(struct dead_finder *finder, const struct verify_options *options,
                               struct diag *diag)
{
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    struct one_run run;
    enum status status = one_run_observe(finder->program, &watch, dead_look, finder, &run, diag);
    if (status != STATUS_OK)
        return status;
    finder->out->one_order = run.alone && run.done;
    one_run_fini(&run);
    return STATUS_OK;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static void dead_task(struct dead_finder *finder, int rank, int task, int64_t iteration)
{
    const struct body *body = &finder->program->bodies[rank * finder->program->tasks + task];
    for (int i = 0; i < body->count; i++)
        dead_step(finder, body->first + i, iteration);
}

/* Each iteration has its own instance of these. */
static void dead_begin_iteration(struct dead_finder *finder)
{
    for (int b = 0; b < finder->program->buffer_count; b++)
        if (finder->program->buffers[b].scope == SCOPE_ITERATION)
            finder->last[b].op = -1;
}

/* Two iterations show how one follows the other. */
static enum status dead_in_serial(struct dead_finder *finder, struct diag *diag)
{
    const struct program *p = finder->program;
    int *order = ARENA_ARRAY(finder->arena, (size_t)p->tasks, int);
    if (!order)
        return diag_no_memory(diag);
    for (int task = 0; task < p->tasks; task++)
        order[p->serial_place[task]] = task;
    for (int64_t iteration = 0; iteration < 2; iteration++) {
        dead_begin_iteration(finder);
        for (int rank = 0; rank < p->ranks; rank++)
            for (int k = 0; k < p->tasks; k++)
                dead_task(finder, rank, order[k], iteration);
    }
    finder->out->one_order = true;
    return STATUS_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Of all operations; without two writes to a buffer there is nothing to look for. */
static bool dead_count(struct dead_finder *finder)
{
    const struct program *p = finder->program;
    int *writes = ARENA_ARRAY(finder->arena, (size_t)p->buffer_count, int);
    finder->last = ARENA_ARRAY(finder->arena, (size_t)p->buffer_count, struct dead_last);
    finder->read = ARENA_ARRAY(finder->arena, (size_t)p->buffer_count, bool);
    bool any = false;
    if (!writes || !finder->last || !finder->read)
        return false;
    for (int b = 0; b < p->buffer_count; b++)
        finder->last[b].op = -1;
    for (size_t i = 0; i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].access_count; k++) {
            const struct access *access = &p->accesses[p->ops[i].access_first + k];
            if (access->write)
                any |= ++writes[access->buffer] > 1;
            else
                finder->read[access->buffer] = true;
        }
    return any;
}

/* Ranks that do the same lose the same writes. */
static bool dead_shows_in_one_rank(const struct plan *plan)
{
    bool alike = plan->form == FORM_PIPELINE && plan->pipeline.override_count == 0 &&
                 !plan->pipeline.batches;
    for (size_t c = 0; c < plan->comm_count; c++)
        alike &= !plan->comms[c].members;
    return alike;
}

enum status dead_writes_find(const struct plan *plan, const struct verify_options *options,
                             struct arena *arena, struct dead_writes *out, struct diag *diag)
{
    struct program_options built = options->program;
    struct program *program;
    *out = (struct dead_writes){0};
    if (plan->form == FORM_PROGRAMS) /* what an action writes, its list says */
        return STATUS_OK;
    built.no_knowledge = true;
    built.any_size = plan->form == FORM_PIPELINE;
    if (dead_shows_in_one_rank(plan))
        built.ranks = 1;
    enum status status = program_build(plan, &built, &program, diag);
    if (status != STATUS_OK)
        return status;
    struct dead_finder finder = {.program = program, .arena = arena, .out = out};
    if (dead_count(&finder) || (plan->form == FORM_PIPELINE && finder.last))
        status = plan->form == FORM_PIPELINE ? dead_in_serial(&finder, diag)
                                             : dead_in_run(&finder, options, diag);
    program_close(program);
    return status == STATUS_OK && arena->failed ? diag_no_memory(diag) : status;
}
