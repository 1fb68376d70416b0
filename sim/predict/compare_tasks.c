/* SPDX-License-Identifier: Apache-2.0 */
/* compare_tasks.c - see compare_tasks.h. */
#include "compare_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "foretold.h"

static struct compared_task *find_task(struct compared_stream *stream, const char *name)
{
    for (size_t i = 0; i < stream->task_count; i++)
        if (strcmp(stream->tasks[i].name, name) == 0)
            return &stream->tasks[i];
    return NULL;
}

/* The parts of both accounts: at most as many as they have together. */
static bool add_parts(struct compared_stream *stream, const struct account_parts *parts,
                      bool measured, struct arena *arena)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct account_part *part = &parts->items[i];
        struct compared_task *task = find_task(stream, part->name);
        if (!task) {
            const char *name = arena_strdup(arena, part->name);
            if (!name)
                return false;
            task = &stream->tasks[stream->task_count++];
            *task = (struct compared_task){.name = name};
        }
        *(measured ? &task->measured_ns : &task->predicted_ns) += part->ns;
        *(measured ? &task->measured_count : &task->predicted_count) += part->count;
    }
    return true;
}

static void mark_meetings(struct comparison *out, const struct plan *plan)
{
    for (size_t s = 0; s < out->stream_count; s++)
        for (size_t t = 0; t < plan->pipeline.task_count; t++) {
            const struct task *task = &plan->pipeline.tasks[t];
            struct compared_task *found = find_task(&out->streams[s], task->name);
            if (found)
                found->meets = task->work.comm >= 0;
        }
}

static const struct account_stream *find_stream(const struct run_account *account, const char *name)
{
    for (size_t i = 0; i < account->stream_count; i++)
        if (strcmp(account->streams[i].name, name) == 0)
            return &account->streams[i];
    return NULL;
}

static double longer_of(const struct compared_task *task)
{
    return task->measured_ns > task->predicted_ns ? task->measured_ns : task->predicted_ns;
}

static int by_time(const void *left, const void *right)
{
    const double a = longer_of(left), b = longer_of(right);
    return (a < b) - (a > b);
}

static bool add_stream(struct compared_stream *stream, const struct run_account *measured,
                       const struct run_account *predicted, struct arena *arena)
{
    static const struct account_parts none = {0};
    const struct account_stream *before = find_stream(measured, stream->name);
    const struct account_stream *after = find_stream(predicted, stream->name);
    const struct account_parts *a = before ? &before->tasks : &none;
    const struct account_parts *b = after ? &after->tasks : &none;
    stream->tasks = ARENA_ARRAY(arena, a->count + b->count + 1, struct compared_task);
    if (!stream->tasks || !add_parts(stream, a, true, arena) || !add_parts(stream, b, false, arena))
        return false;
    if (stream->task_count > 0)
        qsort(stream->tasks, stream->task_count, sizeof *stream->tasks, by_time);
    return true;
}

/* Without a name in common there is nothing to compare. */
static void drop_unlike(struct comparison *out)
{
    bool alike = false;
    for (size_t s = 0; s < out->stream_count; s++)
        for (size_t i = 0; i < out->streams[s].task_count; i++)
            alike |= out->streams[s].tasks[i].measured_count > 0 &&
                     out->streams[s].tasks[i].predicted_count > 0;
    for (size_t s = 0; s < out->stream_count && !alike; s++)
        out->streams[s].task_count = 0;
}

enum status compare_tasks(struct trace *measured, const struct plan *plan,
                          const struct program_options *options, uint64_t seed, struct arena *arena,
                          struct comparison *out, struct diag *diag)
{
    struct trace predicted;
    struct run_account before, after;
    bool varies;
    enum status status = foretell(plan, options, seed, measured->arena, &predicted, &varies, diag);
    const bool by_steps =
        status == STATUS_OK && account_has_steps(measured) && account_has_steps(&predicted);
    if (status == STATUS_OK)
        status = account_make(measured, by_steps, &before, diag);
    if (status == STATUS_OK)
        status = account_make(&predicted, by_steps, &after, diag);
    out->by_steps = by_steps;
    for (size_t i = 0; status == STATUS_OK && i < out->stream_count; i++)
        if (!add_stream(&out->streams[i], &before, &after, arena))
            status = diag_no_memory(diag);
    drop_unlike(out);
    mark_meetings(out, plan);
    return status;
}
