/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_pipeline.c - the pipeline form in canonical text.
 *
 * Whether a property of a task is printed is decided by comparing with the task it would be
 * without: one with all defaults, or for a rank's override the task as the other ranks have it.
 */
#include <string.h>

#include "plan/keywords.h"
#include "print_internal.h"

/* ---- work ------------------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_work(const struct work *a, const struct work *b)
{
    return a->kind == b->kind && a->direction == b->direction && a->pageable == b->pageable &&
           a->collective == b->collective && a->comm == b->comm && a->root == b->root &&
           a->peer == b->peer && same_text(a->tag, b->tag) && a->bytes == b->bytes &&
           a->m == b->m && a->n == b->n && a->k == b->k && a->rows == b->rows && a->dim == b->dim &&
           a->elements == b->elements && a->dtype == b->dtype && a->time_ns == b->time_ns;
}

static void put_message_work(struct printer *printer, const struct work *work)
{
    put_pair_text(printer, work_key(work->kind), work->tag);
    put_pair_number(printer, "peer", work->peer, -1);
    put_pair_text(printer, "comm", printer->plan->comms[work->comm].name);
    put_pair_bytes(printer, "bytes", work->bytes, 0);
}

static void put_kernel_work(struct printer *printer, const struct work *work)
{
    put_word(printer, work_key(work->kind));
    open_map(printer, FLOW);
    put_pair_number(printer, "m", work->m, 0);
    put_pair_number(printer, "n", work->n, 0);
    put_pair_number(printer, "k", work->k, 0);
    put_pair_number(printer, "rows", work->rows, 0);
    put_pair_number(printer, "dim", work->dim, 0);
    put_pair_number(printer, "elements", work->elements, 0);
    if (work->kind != WORK_AXPY)
        put_pair_word(printer, "dtype", dtype_key(work->dtype));
    close_map(printer);
}

void put_work(struct printer *printer, const struct work *work)
{
    put_word(printer, "work");
    open_map(printer, FLOW);
    switch (work->kind) {
    case WORK_NONE: break;
    case WORK_COPY:
        put_pair_word(printer, "copy", direction_key(work->direction));
        put_word(printer, "bytes");
        put_bytes(printer, work->bytes);
        put_pair_bool(printer, "pageable", work->pageable, false);
        break;
    case WORK_COLLECTIVE:
        put_pair_word(printer, "collective", collective_key(work->collective));
        put_pair_text(printer, "comm", printer->plan->comms[work->comm].name);
        put_pair_number(printer, "root", work->root, -1);
        put_pair_bytes(printer, "bytes", work->bytes, 0);
        break;
    case WORK_SEND:
    case WORK_RECV: put_message_work(printer, work); break;
    case WORK_GEMM:
    case WORK_GATHER:
    case WORK_AXPY: put_kernel_work(printer, work); break;
    case WORK_SPIN:
    case WORK_HOST: put_pair_time(printer, work_key(work->kind), work->time_ns, -1); break;
    }
    close_map(printer);
}

/* ---- pipeline form --------------------------------------------------------------------------- */

static bool same_task(struct printer *printer, const struct task *a, const struct task *b)
{
    return a->stage == b->stage && a->stream == b->stream && a->group == b->group &&
           a->globally_ordered == b->globally_ordered && a->time_ns == b->time_ns &&
           a->host_time_ns == b->host_time_ns && a->host_after_ns == b->host_after_ns &&
           same_dist(printer, &a->jitter, &b->jitter) &&
           same_dist(printer, &a->host_jitter, &b->host_jitter) && a->sm == b->sm &&
           same_shares(&a->shares, &b->shares) && same_work(&a->work, &b->work) &&
           same_list(&a->reads, &b->reads) && same_list(&a->writes, &b->writes) &&
           a->host_sync == b->host_sync && a->sync_after == b->sync_after &&
           same_list(&a->holds, &b->holds);
}

/* The members that differ from `base`. */
static void put_task(struct printer *printer, const struct task *task, const struct task *base)
{
    const struct plan *plan = printer->plan;
    put_text(printer, task->name);
    open_map(printer, BLOCK);
    put_pair_number(printer, "stage", task->stage, base->stage);
    put_pair_name(printer, "stream", &plan->streams, task->stream, base->stream);
    put_pair_name(printer, "thread_group", &plan->groups, task->group, base->group);
    put_pair_bool(printer, "globally_ordered", task->globally_ordered, base->globally_ordered);
    put_pair_time(printer, "time", task->time_ns, base->time_ns);
    put_pair_time(printer, "host_time", task->host_time_ns, base->host_time_ns);
    put_pair_time(printer, "host_after", task->host_after_ns, base->host_after_ns);
    put_pair_dist(printer, "jitter", &task->jitter, &base->jitter);
    put_pair_dist(printer, "host_jitter", &task->host_jitter, &base->host_jitter);
    put_pair_number(printer, "sm", task->sm, base->sm);
    put_pair_shares(printer, "shares", &task->shares, &base->shares);
    put_pair_buffers(printer, "reads", &task->reads, &base->reads);
    put_pair_buffers(printer, "writes", &task->writes, &base->writes);
    if (!same_work(&task->work, &base->work))
        put_work(printer, &task->work);
    put_pair_keyword(printer, "host_sync", keywords_host_sync, task->host_sync, base->host_sync);
    put_pair_keyword(printer, "sync_after", keywords_host_sync, task->sync_after, base->sync_after);
    put_pair_locks(printer, "holds", &task->holds, &base->holds);
    close_map(printer);
}

static void print_schedule(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    struct task usual = {.stage = -1};
    usual.stream = printer->default_stream;
    usual.group = printer->default_group;
    usual.work = (struct work){.comm = -1, .peer = -1, .root = -1};
    put_word(printer, "schedule");
    open_map(printer, BLOCK);
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        put_task(printer, &plan->pipeline.tasks[t], &usual);
    close_map(printer);
}

static void put_order(struct printer *printer, const struct order_spec *order)
{
    put_word(printer, "enqueue_order");
    if (order->kind != ORDER_EXPLICIT) {
        put_word(printer, keywords_order[order->kind]);
        return;
    }
    open_list(printer, FLOW);
    for (size_t i = 0; i < order->tasks.count; i++)
        put_text(printer, printer->plan->pipeline.tasks[order->tasks.items[i]].name);
    close_list(printer);
}

static void print_deps(struct printer *printer, const char *key, size_t first, size_t end)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    if (first == end)
        return;
    put_word(printer, key);
    open_list(printer, BLOCK);
    for (size_t i = first; i < end; i++) {
        const struct dep *dep = &pipeline->deps[i];
        open_list(printer, FLOW);
        put_text(printer, pipeline->tasks[dep->task].name);
        put_text(printer, pipeline->tasks[dep->on].name);
        if (dep->distance > 1)
            put_number(printer, dep->distance);
        close_list(printer);
    }
    close_list(printer);
}

static void put_override(struct printer *printer, const struct rank_override *override)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    put_number(printer, override->rank);
    open_map(printer, BLOCK);
    if (override->tasks) {
        put_word(printer, "schedule");
        open_map(printer, BLOCK);
        for (size_t t = 0; t < pipeline->task_count; t++)
            if (!same_task(printer, &override->tasks[t], &pipeline->tasks[t]))
                put_task(printer, &override->tasks[t], &pipeline->tasks[t]);
        close_map(printer);
    }
    if (override->has_order)
        put_order(printer, &override->order);
    close_map(printer);
}

static void print_overrides(struct printer *printer)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    if (pipeline->override_count == 0)
        return;
    put_word(printer, "rank_overrides");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < pipeline->override_count; i++)
        put_override(printer, &pipeline->overrides[i]);
    close_map(printer);
}

static void print_pipeline_knobs(struct printer *printer)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    if (pipeline->driver_given)
        put_pair_word(printer, "driver", keywords_driver[pipeline->driver]);
    put_pair_number(printer, "pipeline_depth", pipeline->depth_given ? pipeline->depth : 0, 0);
    put_pair_number(printer, "max_depth", pipeline->max_depth_given ? pipeline->max_depth : 0, 0);
    put_pair_number(printer, "max_in_flight", pipeline->max_in_flight, 0);
    put_pair_number(printer, "num_slots", pipeline->num_slots_given ? pipeline->num_slots : 0, 0);
    if (pipeline->order_given)
        put_order(printer, &pipeline->order);
    put_pair_keyword(printer, "retire", keywords_retire, pipeline->retire, RETIRE_SUBMIT);
    put_pair_bool(printer, "elide_same_stream", pipeline->elide_same_stream, false);
    put_pair_keyword(printer, "ticket_at", keywords_ticket_at, pipeline->ticket_at,
                     TICKET_AT_ITERATION);
    put_pair_keyword(printer, "forget_done", keywords_forget, pipeline->forget_done, FORGET_NEVER);
    put_pair_keyword(printer, "retired_dep", keywords_retired_dep, pipeline->retired_dep,
                     RETIRED_DEP_WAIT);
    put_pair_keyword(printer, "slot_reset", keywords_slot_reset, pipeline->slot_reset,
                     SLOT_RESET_ADMIT);
    if (!pipeline->batches)
        return;
    put_word(printer, "batches");
    open_list(printer, FLOW);
    for (size_t i = 0; i < pipeline->batch_count; i++)
        put_number(printer, pipeline->batches[i]);
    close_list(printer);
}

void print_pipeline(struct printer *printer)
{
    const struct pipeline *pipeline = &printer->plan->pipeline;
    put_pair_number(printer, "ranks", printer->plan->ranks, 1);
    print_pipeline_knobs(printer);
    print_machine(printer);
    print_comms(printer);
    print_streams(printer);
    print_schedule(printer);
    print_deps(printer, "intra_iter_deps", 0, pipeline->intra_count);
    print_deps(printer, "inter_iter_deps", pipeline->intra_count, pipeline->dep_count);
    print_overrides(printer);
    print_buffers(printer);
    print_inputs(printer);
    print_staleness(printer);
}
