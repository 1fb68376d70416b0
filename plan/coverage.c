/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - see coverage.h. */
#include "coverage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert_index.h"

static void mark_made(const struct plan *plan, const struct index_list *writes, bool *outside)
{
    for (size_t i = 0; i < writes->count; i++)
        outside[writes->items[i]] = plan->buffers[writes->items[i]].input;
}

static void mark_made_by(const struct plan *plan, const struct host_op *ops, size_t count,
                         bool *outside)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        mark_made(plan, host_op_writes(op), outside);
        for (size_t k = 0; k < host_op_part_count(op); k++)
            mark_made(plan, &op->parts[k].writes, outside);
        if (op_allocates(op->kind))
            outside[op->object] = plan->buffers[op->object].input;
        if (host_op_may_have_body(op->kind))
            mark_made_by(plan, op->body, op->body_count, outside);
    }
}

void coverage_inputs(const struct plan *plan, bool *outside)
{
    for (size_t b = 0; b < plan->buffer_count; b++)
        outside[b] = plan->buffers[b].input ||
                     (!plan->inputs_given && buffer_period(&plan->buffers[b]) == 1);
    if (plan->form != FORM_THREADS || plan->inputs_given)
        return;
    for (size_t i = 0; i < plan->thread_count; i++)
        mark_made_by(plan, plan->threads[i].ops, plan->threads[i].op_count, outside);
    for (size_t i = 0; i < plan->graph_count; i++)
        mark_made_by(plan, plan->graphs[i].ops, plan->graphs[i].op_count, outside);
}

static bool has_accesses(const struct index_list *reads, const struct index_list *writes)
{
    return reads->count > 0 || writes->count > 0;
}

/* Work of the CPU alone accesses nothing that others share, unless it says so. */
static bool has_device_part(const struct task *task)
{
    return task->work.kind != WORK_HOST;
}

/* A task counts once, with what any rank declares of it. */
static bool task_declares(const struct plan *plan, size_t task)
{
    const struct pipeline *pipeline = &plan->pipeline;
    ASSERT_INDEX(task, pipeline->task_count);
    bool any = has_accesses(&pipeline->tasks[task].reads, &pipeline->tasks[task].writes);
    for (size_t i = 0; i < pipeline->override_count && !any; i++) {
        const struct task *tasks = pipeline->overrides[i].tasks;
        any = tasks && has_accesses(&tasks[task].reads, &tasks[task].writes);
    }
    return any;
}

static bool op_declares(const struct host_op *op)
{
    bool declares = has_accesses(host_op_reads(op), host_op_writes(op));
    for (size_t i = 0; i < host_op_part_count(op); i++)
        declares |= has_accesses(&op->parts[i].reads, &op->parts[i].writes);
    return declares;
}

/* Device work and computations have accesses; other host operations may say so. The launch of a graph accesses what
   the graph's operations do, a kernel with steps what its steps do. */
static bool op_is_counted(const struct host_op *op)
{
    return op_declares(op) || op->kind == OP_COMPUTE ||
           (op_is_device_work(op->kind) && !host_op_is_graph(op) && host_op_body_count(op) == 0);
}

static void coverage_count_ops(const struct host_op *ops, size_t count, struct coverage *out)
{
    for (size_t i = 0; i < count; i++) {
        out->all += op_is_counted(&ops[i]);
        out->declared += op_declares(&ops[i]);
        if (host_op_may_have_body(ops[i].kind))
            coverage_count_ops(ops[i].body, ops[i].body_count, out);
    }
}

static void count_actions(const struct programs *programs, int ranks, struct coverage *out)
{
    for (int rank = 0; programs->ranks && rank < ranks; rank++)
        for (size_t i = 0; i < programs->ranks[rank].count; i++)
            out->all += programs->ranks[rank].actions[i].kind != ACTION_IDLE;
    out->declared = out->all;
}

static bool any_shared(const struct plan *plan)
{
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].scope == SCOPE_SHARED)
            return true;
    return false;
}

/* True if a host program reads what none of its operations writes, unless `inputs:` says what comes from outside. */
static enum status find_unwritten(const struct plan *plan, bool *any, struct diag *diag)
{
    bool *outside = calloc(plan->buffer_count + 1, sizeof *outside);
    if (!outside)
        return diag_no_memory(diag);
    coverage_inputs(plan, outside);
    *any = false;
    for (size_t b = 0; b < plan->buffer_count; b++)
        *any |= outside[b] && !plan->buffers[b].input;
    free(outside);
    return STATUS_OK;
}

enum status coverage_find(const struct plan *plan, struct coverage *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    *out = (struct coverage){.unit = "tasks",
                             .buffers = (int64_t)plan->buffer_count,
                             .unrecorded = plan->unrecorded,
                             .unrecorded_count = plan->unrecorded_count};
    switch (plan->form) {
    case FORM_PIPELINE:
        for (size_t t = 0; t < plan->pipeline.task_count; t++) {
            bool declares = task_declares(plan, t);
            out->all += declares || has_device_part(&plan->pipeline.tasks[t]);
            out->declared += declares;
        }
        out->assumes_shared = !plan->inputs_given && any_shared(plan);
        break;
    case FORM_THREADS:
        out->unit = "operations";
        for (size_t i = 0; i < plan->thread_count; i++)
            coverage_count_ops(plan->threads[i].ops, plan->threads[i].op_count, out);
        for (size_t i = 0; i < plan->graph_count; i++)
            coverage_count_ops(plan->graphs[i].ops, plan->graphs[i].op_count, out);
        status = find_unwritten(plan, &out->assumes_unwritten, diag);
        break;
    case FORM_PROGRAMS:
        out->unit = "actions";
        count_actions(&plan->programs, plan->ranks, out);
        break;
    }
    return status;
}

const char *coverage_unrecorded(const struct unrecorded *entry, char text[COVERAGE_TEXT])
{
    snprintf(text, COVERAGE_TEXT, "%s: %s", entry->what, entry->why);
    return text;
}

void coverage_warn(const struct plan *plan, struct diag *diag)
{
    char text[COVERAGE_TEXT];
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        diag_warn(diag, "%s: not covered: %s", plan->name,
                  coverage_unrecorded(&plan->unrecorded[i], text));
}

/* ---- what declares nothing ------------------------------------------------------------------- */

enum { TOLD_MOST = 8 };

/* `told` counts them all. */
static void coverage_tell_one(const struct plan *plan, struct mark mark, const char *kind,
                              const char *name, int64_t *told, struct diag *diag)
{
    if ((*told)++ < TOLD_MOST)
        diag_error_at(diag, plan->file, plan->text, mark,
                      "%s%s%s declares neither reads nor writes", kind, name ? " " : "",
                      name ? name : "");
}

/* All iterations of a repeat stand at one place. */
static void coverage_tell_ops(const struct plan *plan, const struct host_op *ops, size_t count,
                              int64_t *told, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        const char *name = op->name                     ? op->name
                           : host_op_part_count(op) > 0 ? op->parts[0].tag
                                                        : NULL;
        if (op_is_counted(op) && !op_declares(op))
            coverage_tell_one(plan, op->mark, op_key(op->kind), name, told, diag);
        if (host_op_may_have_body(op->kind))
            coverage_tell_ops(plan, op->body, op->body_count, told, diag);
    }
}

/* The first iteration of a repeat says it for all. */
static void coverage_tell_thread(const struct plan *plan, const struct host_thread *thread,
                                 int64_t *told, struct diag *diag)
{
    size_t at = 0;
    for (size_t r = 0; r < thread->repeat_count; r++) {
        const struct repeat *repeat = &thread->repeats[r];
        const size_t end = repeat->first + repeat->length;
        coverage_tell_ops(plan, &thread->ops[at], end - at, told, diag);
        at = repeat->first + repeat->length * (size_t)repeat->times;
    }
    coverage_tell_ops(plan, &thread->ops[at], thread->op_count - at, told, diag);
}

enum status coverage_tell_undeclared(const struct plan *plan, const struct coverage *coverage,
                                     struct diag *diag)
{
    const struct pipeline *pipeline = &plan->pipeline;
    int64_t told = 0;
    if (coverage->declared == coverage->all)
        return STATUS_OK;
    for (size_t t = 0; t < pipeline->task_count; t++)
        if (!task_declares(plan, t) && has_device_part(&pipeline->tasks[t]))
            coverage_tell_one(plan, pipeline->tasks[t].mark, "task", pipeline->tasks[t].name, &told,
                              diag);
    for (size_t i = 0; i < plan->thread_count; i++)
        coverage_tell_thread(plan, &plan->threads[i], &told, diag);
    for (size_t i = 0; i < plan->graph_count; i++)
        coverage_tell_ops(plan, plan->graphs[i].ops, plan->graphs[i].op_count, &told, diag);
    if (told > TOLD_MOST)
        diag_note(diag, "%s: and %" PRId64 " more", plan->file, told - TOLD_MOST);
    diag_note(diag,
              "%s: %" PRId64 " of %" PRId64 " %s declare what they access, all were asked for: add "
              "reads and writes",
              plan->file, coverage->declared, coverage->all, coverage->unit);
    return STATUS_VIOLATED;
}

bool coverage_is_nothing(const struct coverage *coverage)
{
    return coverage->all > 0 && coverage->declared == 0;
}

bool coverage_is_partial(const struct coverage *coverage)
{
    return coverage->declared > 0 && coverage->declared < coverage->all;
}

void coverage_write(const struct coverage *coverage, unsigned not_asked, struct json *json)
{
    json_begin_object_at(json, "coverage");
    json_put_string(json, "unit", coverage->unit);
    json_put_int(json, "all", coverage->all);
    json_put_int(json, "with_accesses", coverage->declared);
    json_put_int(json, "buffers", coverage->buffers);
    json_begin_array_at(json, "not_asked");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (not_asked & 1u << p)
            json_string(json, property_key((enum property)p));
    json_end_array(json);
    json_begin_array_at(json, "assumed");
    if (coverage->all > 0)
        json_string(json, "work accesses only the buffers that it names");
    if (coverage->assumes_shared)
        json_string(json, "shared buffers hold values before the first iteration");
    if (coverage->assumes_unwritten)
        json_string(json, "buffers that no operation writes hold values from the start");
    json_end_array(json);
    json_end_object(json);
}
