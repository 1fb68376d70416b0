/* SPDX-License-Identifier: Apache-2.0 */
/* tune_view.c - see tune_view.h. */
#include "tune_view.h"

#include <stdlib.h>

#include "base/assert_index.h"
#include "base/hash.h"
#include "sim/engine/simulate.h"

/* ---- shared objects -------------------------------------------------------------------------- */

static bool tune_view_is_shared(const struct plan *plan, int buffer)
{
    ASSERT_INDEX(buffer, plan->buffer_count);
    return plan->buffers[buffer].scope == SCOPE_SHARED;
}

bool tune_by_stream(const struct plan *given)
{
    struct tune_access unused;
    for (int rank = 0; rank < given->ranks; rank++)
        for (size_t t = 0; t < given->pipeline.task_count; t++)
            if (tune_access(given, false, rank, (int)t, 0, &unused))
                return false;
    return true;
}

bool tune_access(const struct plan *given, bool by_stream, int rank, int task, size_t k,
                 struct tune_access *out)
{
    const struct task *t = plan_task(given, rank, task);
    if (by_stream) {
        *out = (struct tune_access){.object = t->stream, .read = true, .write = true};
        return k == 0;
    }
    for (size_t i = 0; i < t->reads.count + t->writes.count; i++) {
        bool read = i < t->reads.count;
        int buffer = read ? t->reads.items[i] : t->writes.items[i - t->reads.count];
        if (!tune_view_is_shared(given, buffer) || k-- > 0)
            continue;
        *out = (struct tune_access){.object = buffer, .read = read, .write = !read};
        return true;
    }
    return false;
}

/* ---- watching a run -------------------------------------------------------------------------- */

struct watcher {
    const struct plan *given;
    const struct program *program;
    bool by_stream;
    uint64_t *writes; /* per rank and object: a hash of its writes so far, in their order */
    size_t objects;
    uint64_t reads; /* a sum, for reads between two writes have no order */
};

static void tune_view_note(struct watcher *w, int rank, int task, int64_t iteration)
{
    struct tune_access access;
    for (size_t k = 0; tune_access(w->given, w->by_stream, rank, task, k, &access); k++) {
        uint64_t *object = &w->writes[(size_t)rank * w->objects + (size_t)access.object];
        uint64_t access_hash =
            hash_three((uint64_t)access.object, (uint64_t)task, (uint64_t)iteration);
        if (access.read)
            w->reads += hash_three(*object, access_hash, (uint64_t)rank);
        if (access.write)
            *object = hash_three(*object, access_hash, 1);
    }
}

/* A task touches its buffers when its device work starts, or in its CPU part if that is all it has. */
static bool tune_view_watch(void *context, int64_t time_ns, struct transition transition,
                            const struct effect *effect)
{
    struct watcher *w = context;
    (void)time_ns;
    if (effect->op < 0 || w->program->ops[effect->op].task < 0)
        return true;
    const struct op *op = &w->program->ops[effect->op];
    int rank = w->program->agents[transition.agent].rank;
    bool host = effect->kind == EFFECT_HOST && !effect->takes && op_is_cpu_work(op->kind) &&
                plan_task(w->given, rank, op->task)->work.kind == WORK_HOST;
    if (effect->kind == EFFECT_START || host)
        tune_view_note(w, rank, op->task, effect->iteration);
    return true;
}

static enum status tune_view_run(struct watcher *w, bool *complete, struct diag *diag)
{
    struct timing timing;
    struct simulation_result result;
    const struct simulate_observer observer = {.context = w, .step = tune_view_watch};
    const struct simulate_options options = {.observer = &observer};
    enum status status = timing_init(&timing, w->program, NULL, 0, diag);
    if (status != STATUS_OK)
        return status;
    status = simulate_run(w->program, &timing, &options, &result, diag);
    timing_fini(&timing);
    if (status != STATUS_OK)
        return status;
    *complete = result.blocked_count == 0;
    simulation_fini(&result);
    return STATUS_OK;
}

enum status tune_view(const struct plan *given, const struct plan *plan, enum driver driver,
                      int64_t iterations, uint64_t *out, bool *complete, struct diag *diag)
{
    const struct program_options options = {
        .driver = driver, .iterations = iterations, .no_knowledge = true};
    struct program *program;
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status;
    struct watcher w = {.given = given, .program = program, .by_stream = tune_by_stream(given)};
    w.objects = w.by_stream ? given->streams.count : given->buffer_count;
    size_t count = (size_t)given->ranks * w.objects;
    w.writes = calloc(count + 1, sizeof *w.writes);
    status = w.writes ? tune_view_run(&w, complete, diag) : diag_no_memory(diag);
    if (status == STATUS_OK)
        *out = hash_three(hash_bytes(w.writes, count * sizeof *w.writes), w.reads, count);
    free(w.writes);
    program_close(program);
    return status;
}
