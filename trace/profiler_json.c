/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler_json.c - see profiler_json.h.
 *
 * The head is written as text: HolisticTraceAnalysis searches the lines of a file for `"rank": N`, with a space.
 */
#include "profiler_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/assert_index.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/keyed_hash.h"
#include "base/status.h"
#include "base/table.h"
#include "machine/lower/rank_programs.h"
#include "plan/group_names.h"
#include "plan/plan.h"
#include "plan/text/parse.h"

#include "trace.h"

/* ---- names of work --------------------------------------------------------------------------- */

/*
 * What the work of a run is: copy, collective, message or kernel, by its name.
 *
 * Spans have names only. The plan that a run keeps says what each name is; where it has no such name, as in runs
 * that a profiler recorded, the names of CUDA's own copies and of NCCL's kernels do.
 */

enum { NAME_TEXT = 512 };

enum profiler_class {
    WORK_CLASS_KERNEL,
    WORK_CLASS_COPY,
    WORK_CLASS_COLLECTIVE,
    WORK_CLASS_MESSAGE
};

struct named_work {
    const char *name; /* NULL: an empty place */
    enum profiler_class class;
    enum direction direction; /* COPY */
    bool pageable;
    enum collective_kind collective; /* COLLECTIVE */
    const char *comm;                /* COLLECTIVE, MESSAGE; NULL: not known */
    bool is_one,
        send; /* MESSAGE: it is one, not several together, and goes to `peer`, or comes from it */
    int peer;
    int64_t bytes; /* 0: not known */
};

struct work_names {
    struct named_work *items;
    size_t cap;
    struct table table; /* of the items; empty: no plan */
};

/* ---- the table ------------------------------------------------------------------------------- */

/* Without the "(3)" that operations of a repeat have behind their names. */
static size_t bare_length(const char *name)
{
    const size_t length = strlen(name);
    size_t at = length;
    if (length < 3 || name[length - 1] != ')')
        return length;
    at--;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return at > 1 && at < length - 1 && name[at - 1] == '(' ? at - 1 : length;
}

static uint32_t work_names_number(const struct work_names *names, const char *name, size_t length)
{
    return TABLE_FIND(&names->table, keyed_hash(name, length), i,
                      strncmp(names->items[i].name, name, length) == 0 &&
                          names->items[i].name[length] == 0);
}

/* The first of a name counts. */
static bool profiler_json_add_work(struct work_names *names, struct arena *arena,
                                   const struct named_work *work)
{
    const size_t length = strlen(work->name);
    if (work_names_number(names, work->name, length) != TABLE_NONE)
        return true;
    if (!ARENA_GROW(arena, names->items, names->table.count, names->cap) ||
        !table_add_in(&names->table, arena, keyed_hash(work->name, length), names->table.count))
        return false;
    struct named_work *item = &names->items[names->table.count - 1];
    *item = *work;
    item->name = arena_strdup(arena, work->name);
    item->comm = work->comm ? arena_strdup(arena, work->comm) : NULL;
    return item->name && (item->comm || !work->comm);
}

/* ---- from plans ------------------------------------------------------------------------------ */

static const char *profiler_json_comm_name(const struct plan *plan, int comm)
{
    return comm >= 0 ? plan->comms[comm].name : NULL;
}

static enum profiler_class profiler_json_class_of(enum work_kind kind)
{
    switch (kind) {
    case WORK_COPY: return WORK_CLASS_COPY;
    case WORK_COLLECTIVE: return WORK_CLASS_COLLECTIVE;
    case WORK_SEND:
    case WORK_RECV: return WORK_CLASS_MESSAGE;
    case WORK_NONE:
    case WORK_GEMM:
    case WORK_GATHER:
    case WORK_AXPY:
    case WORK_SPIN:
    case WORK_HOST: break;
    }
    return WORK_CLASS_KERNEL;
}

static bool profiler_json_add_tasks(struct work_names *names, struct arena *arena,
                                    const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    bool ok = true;
    for (size_t i = 0; i < pipeline->task_count && ok; i++) {
        const struct work *work = &pipeline->tasks[i].work;
        ok = profiler_json_add_work(
            names, arena,
            &(struct named_work){.name = pipeline->tasks[i].name,
                                 .class = profiler_json_class_of(work->kind),
                                 .direction = work->direction,
                                 .pageable = work->pageable,
                                 .collective = work->collective,
                                 .comm = profiler_json_comm_name(plan, work->comm),
                                 .is_one = work->kind == WORK_SEND || work->kind == WORK_RECV,
                                 .send = work->kind == WORK_SEND,
                                 .peer = work->peer,
                                 .bytes = work->bytes});
    }
    return ok;
}

/* The work of a message has the message's name, unless its group has one. */
static bool profiler_json_add_message(struct work_names *names, struct arena *arena,
                                      const struct host_op *group, struct named_work *work)
{
    const struct p2p_part *part = &group->parts[0];
    char name[NAME_TEXT];
    work->class = WORK_CLASS_MESSAGE;
    work->is_one = group->part_count == 1 && !part->is_collective;
    if (work->is_one) {
        work->send = part->send;
        work->peer = part->peer;
        work->bytes = part->bytes;
        if (!group->name)
            work->name =
                group_message_name(part->send, part->tag, part->peer, false, name, sizeof name);
    }
    return profiler_json_add_work(names, arena, work);
}

static bool profiler_json_add_op(struct work_names *names, struct arena *arena,
                                 const struct plan *plan, const struct host_op *op)
{
    const struct work own = host_op_work(op);
    struct named_work work = {.name = op->name ? op->name : op_key(op->kind),
                              .class = WORK_CLASS_KERNEL,
                              .direction = own.direction,
                              .pageable = own.pageable,
                              .collective = own.collective,
                              .comm = profiler_json_comm_name(plan, op->comm),
                              .bytes = own.bytes};
    if (op->kind == OP_COPY)
        work.class = WORK_CLASS_COPY;
    else if (op->kind == OP_COLLECTIVE)
        work.class = WORK_CLASS_COLLECTIVE;
    else if (op->kind == OP_GROUP)
        return profiler_json_add_message(names, arena, op, &work);
    else if (op->kind != OP_LAUNCH)
        return true;
    return profiler_json_add_work(names, arena, &work);
}

static bool profiler_json_add_threads(struct work_names *names, struct arena *arena,
                                      const struct plan *plan)
{
    bool ok = true;
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count && ok; i++)
            ok = profiler_json_add_op(names, arena, plan, &plan->threads[t].ops[i]);
    return ok;
}

static enum status profiler_json_add_plan(struct work_names *names, struct arena *arena,
                                          const struct plan *plan, struct diag *diag)
{
    struct plan lowered;
    bool ok;
    if (plan->form == FORM_PROGRAMS) {
        enum status status = rank_programs_lower(plan, false, &lowered, diag);
        if (status != STATUS_OK)
            return status;
        ok = profiler_json_add_threads(names, arena, &lowered);
        plan_fini(&lowered);
    } else {
        ok = plan->form == FORM_PIPELINE ? profiler_json_add_tasks(names, arena, plan)
                                         : profiler_json_add_threads(names, arena, plan);
    }
    return ok ? STATUS_OK : diag_no_memory(diag);
}

/* Read the plan of the run, if it has one, with all memory from `arena`. STATUS_INPUT where its text is no plan. */
static enum status work_names_read(const struct run_info *info, struct arena *arena,
                                   struct work_names *out, struct diag *diag)
{
    struct plan plan;
    struct work_names names = {0};
    enum status status = STATUS_OK;
    if (info->plan_text && *info->plan_text) {
        status =
            plan_parse("plan of the run", info->plan_text, strlen(info->plan_text), &plan, diag);
        if (status != STATUS_OK)
            return status;
        status = profiler_json_add_plan(&names, arena, &plan, diag);
        plan_fini(&plan);
    }
    if (status == STATUS_OK)
        *out = names;
    return status;
}

/* ---- to names -------------------------------------------------------------------------------- */

static bool profiler_json_begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static struct named_work profiler_json_by_name(const char *name)
{
    struct named_work work = {.name = name, .class = WORK_CLASS_KERNEL};
    if (profiler_json_begins(name, "Memcpy"))
        work.class = WORK_CLASS_COPY;
    else if (profiler_json_begins(name, "ncclDevKernel") ||
             profiler_json_begins(name, "ncclKernel"))
        work.class = WORK_CLASS_COLLECTIVE;
    else if (profiler_json_begins(name, "send ") || profiler_json_begins(name, "receive "))
        work.class = WORK_CLASS_MESSAGE;
    return work;
}

/* ---- preparation ----------------------------------------------------------------------------- */

enum {
    FIRST_STREAM = 7, /* PyTorch's own stream; HolisticTraceAnalysis takes 0 for none */
    STEPS_ROW = 0,    /* of a host; its threads follow */
    /* HolisticTraceAnalysis with pandas 3 keeps places in the file in a column as wide as the largest correlation. */
    FIRST_CORRELATION = 100000
};

/* A span as the end of a launch. */
struct profiler_call {
    int from;         /* the span of the thread; -1: none */
    int place, count; /* among the launches of that span */
};

struct profiler_writer {
    const struct trace *trace;
    const struct profiler_json_options *options;
    struct arena arena;
    struct json json;
    FILE *out;
    struct work_names names;
    struct profiler_call *calls; /* per span */
    int *rows;                   /* per agent: its tid */
    int ranks;
    bool filled; /* an event has been written */
};

static inline const struct trace_agent *profiler_agent_of(const struct profiler_writer *writer,
                                                          int span)
{
    ASSERT_INDEX(span, writer->trace->span_count);
    return &writer->trace->agents[writer->trace->spans[span].agent];
}

/* The process of a rank's host. */
static inline int profiler_host_pid(const struct profiler_writer *writer, int rank)
{
    return writer->ranks + rank;
}

static bool profiler_json_is_shown(const struct profiler_writer *writer,
                                   const struct trace_agent *agent)
{
    const struct profiler_json_options *options = writer->options;
    return (!options->one_rank || agent->rank == options->rank) &&
           (!options->hide_threads || agent->kind == TRACE_STREAM);
}

/* Streams and threads of each rank are numbered in the order of the agents. */
static bool number_rows(struct profiler_writer *writer)
{
    const struct trace *trace = writer->trace;
    for (size_t a = 0; a < trace->agent_count; a++)
        if (trace->agents[a].rank >= writer->ranks)
            writer->ranks = trace->agents[a].rank + 1;
    int *streams = ARENA_ARRAY(&writer->arena, (size_t)writer->ranks, int);
    int *threads = ARENA_ARRAY(&writer->arena, (size_t)writer->ranks, int);
    writer->rows = ARENA_ARRAY(&writer->arena, trace->agent_count, int);
    if (!streams || !threads || !writer->rows)
        return false;
    for (size_t a = 0; a < trace->agent_count; a++) {
        const struct trace_agent *agent = &trace->agents[a];
        writer->rows[a] = agent->kind == TRACE_STREAM ? FIRST_STREAM + streams[agent->rank]++
                                                      : STEPS_ROW + 1 + threads[agent->rank]++;
    }
    return true;
}

static bool find_calls(struct profiler_writer *writer)
{
    const struct trace *trace = writer->trace;
    int *counts = ARENA_ARRAY(&writer->arena, trace->span_count, int);
    writer->calls = ARENA_ARRAY(&writer->arena, trace->span_count, struct profiler_call);
    if (!counts || !writer->calls)
        return false;
    for (size_t i = 0; i < trace->span_count; i++)
        writer->calls[i].from = -1;
    for (size_t i = 0; i < trace->edge_count; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        if (edge->kind == EDGE_LAUNCH)
            writer->calls[edge->to] = (struct profiler_call){edge->from, counts[edge->from]++, 0};
    }
    for (size_t i = 0; i < trace->span_count; i++)
        if (writer->calls[i].from >= 0)
            writer->calls[i].count = counts[writer->calls[i].from];
    return true;
}

static int correlation_of(int span)
{
    return FIRST_CORRELATION + span;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int pid_of(const struct profiler_writer *writer, const struct trace_agent *agent)
{
    return agent->kind == TRACE_STREAM ? agent->rank : profiler_host_pid(writer, agent->rank);
}

static void profiler_begin_event(struct profiler_writer *writer, const char *phase,
                                 const char *category, const char *name)
{
    fputs(writer->filled ? "," : "", writer->out);
    writer->filled = true;
    json_begin_object(&writer->json);
    json_put_string(&writer->json, "ph", phase);
    if (category)
        json_put_string(&writer->json, "cat", category);
    json_put_string(&writer->json, "name", name);
}

static void profiler_put_row(struct profiler_writer *writer, int pid, int tid)
{
    json_put_int(&writer->json, "pid", pid);
    json_put_int(&writer->json, "tid", tid);
}

static void profiler_put_time(struct profiler_writer *writer, int64_t start_ns, int64_t end_ns)
{
    json_put_thousandths(&writer->json, "ts", start_ns);
    json_put_thousandths(&writer->json, "dur", end_ns - start_ns);
}

static void profiler_end_event(struct profiler_writer *writer)
{
    json_end_object(&writer->json);
}

static void put_span_row(struct profiler_writer *writer, const struct trace_span *span)
{
    const struct trace_agent *agent = &writer->trace->agents[span->agent];
    profiler_put_row(writer, pid_of(writer, agent), writer->rows[span->agent]);
}

/* ---- names of processes and rows ------------------------------------------------------------- */

static void profiler_json_write_name(struct profiler_writer *writer, const char *kind, int pid,
                                     int tid, const char *name)
{
    profiler_begin_event(writer, "M", NULL, kind);
    profiler_put_row(writer, pid, tid);
    json_begin_object_at(&writer->json, "args");
    json_put_string(&writer->json, "name", name);
    json_end_object(&writer->json);
    profiler_end_event(writer);
}

static void write_order(struct profiler_writer *writer, const char *kind, int pid, int tid,
                        int order)
{
    profiler_begin_event(writer, "M", NULL, kind);
    profiler_put_row(writer, pid, tid);
    json_begin_object_at(&writer->json, "args");
    json_put_int(&writer->json, "sort_index", order);
    json_end_object(&writer->json);
    profiler_end_event(writer);
}

static bool has_agents(const struct profiler_writer *writer, int rank, bool streams)
{
    for (size_t a = 0; a < writer->trace->agent_count; a++) {
        const struct trace_agent *agent = &writer->trace->agents[a];
        if (agent->rank == rank && (agent->kind == TRACE_STREAM) == streams &&
            profiler_json_is_shown(writer, agent))
            return true;
    }
    return false;
}

static void profiler_json_write_processes(struct profiler_writer *writer)
{
    char name[64];
    for (int rank = 0; rank < writer->ranks; rank++) {
        if (has_agents(writer, rank, false)) {
            snprintf(name, sizeof name, "rank %d host", rank);
            profiler_json_write_name(writer, "process_name", profiler_host_pid(writer, rank), 0,
                                     name);
            write_order(writer, "process_sort_index", profiler_host_pid(writer, rank), 0, 2 * rank);
            profiler_json_write_name(writer, "thread_name", profiler_host_pid(writer, rank),
                                     STEPS_ROW, "iterations");
        }
        if (has_agents(writer, rank, true)) {
            snprintf(name, sizeof name, "rank %d device", rank);
            profiler_json_write_name(writer, "process_name", rank, 0, name);
            write_order(writer, "process_sort_index", rank, 0, 2 * rank + 1);
        }
    }
}

static void profiler_json_write_rows(struct profiler_writer *writer)
{
    char name[NAME_TEXT];
    for (size_t a = 0; a < writer->trace->agent_count; a++) {
        const struct trace_agent *agent = &writer->trace->agents[a];
        const int pid = pid_of(writer, agent), tid = writer->rows[a];
        if (!profiler_json_is_shown(writer, agent))
            continue;
        if (agent->kind == TRACE_STREAM)
            snprintf(name, sizeof name, "stream %d %s", tid, agent->name);
        else
            snprintf(name, sizeof name, "%s", agent->name);
        profiler_json_write_name(writer, "thread_name", pid, tid, name);
        write_order(writer, "thread_sort_index", pid, tid, agent->position);
    }
}

/* ---- work of streams ------------------------------------------------------------------------- */

static const char *kernel_of(const struct named_work *work)
{
    if (work->class == WORK_CLASS_MESSAGE)
        return "ncclDevKernel_SendRecv";
    switch (work->collective) {
    case COLLECTIVE_ALL_TO_ALL: return "ncclDevKernel_SendRecv";
    case COLLECTIVE_ALL_GATHER: return "ncclDevKernel_AllGather";
    case COLLECTIVE_REDUCE_SCATTER: return "ncclDevKernel_ReduceScatter";
    case COLLECTIVE_BROADCAST: return "ncclDevKernel_Broadcast";
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BARRIER: break;
    }
    return "ncclDevKernel_AllReduce";
}

static const char *copy_of(const struct named_work *work)
{
    switch (work->direction) {
    case DIRECTION_H2D:
        return work->pageable ? "Memcpy HtoD (Pageable -> Device)"
                              : "Memcpy HtoD (Pinned -> Device)";
    case DIRECTION_D2H:
        return work->pageable ? "Memcpy DtoH (Device -> Pageable)"
                              : "Memcpy DtoH (Device -> Pinned)";
    case DIRECTION_D2D: break;
    }
    return "Memcpy DtoD (Device -> Device)";
}

/* Names that a profiler wrote stay as they are. */
static void name_work(const struct named_work *work, const char *task, char out[NAME_TEXT])
{
    const bool profiled = strncmp(task, "nccl", 4) == 0 || strncmp(task, "Memcpy", 6) == 0;
    if (work->class == WORK_CLASS_KERNEL || profiled)
        snprintf(out, NAME_TEXT, "%s", task);
    else
        snprintf(out, NAME_TEXT, "%s (%s)",
                 work->class == WORK_CLASS_COPY ? copy_of(work) : kernel_of(work), task);
}

static void put_work_args(struct profiler_writer *writer, const struct named_work *work, int span)
{
    struct json *json = &writer->json;
    ASSERT_INDEX(span, writer->trace->span_count);
    const struct trace_span *row = &writer->trace->spans[span];
    json_begin_object_at(json, "args");
    json_put_int(json, "device", profiler_agent_of(writer, span)->rank);
    json_put_int(json, "stream", writer->rows[row->agent]);
    json_put_int(json, "correlation", correlation_of(span));
    if (row->task)
        json_put_string(json, "task", row->task);
    if (row->iteration >= 0)
        json_put_int(json, "iteration", row->iteration);
    if (work->bytes > 0 && work->class != WORK_CLASS_KERNEL)
        json_put_int(json, "bytes", work->bytes);
    if (work->comm)
        json_put_string(json, "Process Group Name", work->comm);
    if (work->is_one) { /* as PyTorch says it: no kernel name tells a message from an all-to-all */
        json_put_string(json, "Collective name", work->send ? "send" : "recv");
        json_put_int(json, work->send ? "Dst Rank" : "Src Rank", work->peer);
    }
    if (row->cause)
        json_put_string(json, "slowed by", row->cause);
    json_end_object(json);
}

static void write_flow(struct profiler_writer *writer, const char *category, int64_t id,
                       const char *phase, int span, int64_t at_ns)
{
    profiler_begin_event(writer, phase, category, category);
    json_put_int(&writer->json, "id", id);
    ASSERT_INDEX(span, writer->trace->span_count);
    put_span_row(writer, &writer->trace->spans[span]);
    json_put_thousandths(&writer->json, "ts", at_ns);
    if (*phase == 'f')
        json_put_string(&writer->json, "bp", "e");
    profiler_end_event(writer);
}

/* Where the n-th of the calls of a thread's work begins. */
static int64_t call_start(const struct trace_span *host, const struct profiler_call *call,
                          int place)
{
    return host->start_ns + (host->end_ns - host->start_ns) / call->count * place;
}

static void write_call(struct profiler_writer *writer, const struct named_work *work, int span)
{
    const struct profiler_call *call = &writer->calls[span];
    const struct trace_span *host = &writer->trace->spans[call->from];
    const int64_t start_ns = call_start(host, call, call->place);
    const int64_t end_ns =
        call->place + 1 == call->count ? host->end_ns : call_start(host, call, call->place + 1);
    profiler_begin_event(writer, "X", "cuda_runtime",
                         work->class == WORK_CLASS_COPY ? "cudaMemcpyAsync" : "cudaLaunchKernel");
    put_span_row(writer, host);
    profiler_put_time(writer, start_ns, end_ns);
    json_begin_object_at(&writer->json, "args");
    json_put_int(&writer->json, "correlation", correlation_of(span));
    json_end_object(&writer->json);
    profiler_end_event(writer);
    write_flow(writer, "ac2g", correlation_of(span), "s", call->from, start_ns);
    write_flow(writer, "ac2g", correlation_of(span), "f", span,
               writer->trace->spans[span].start_ns);
}

static void write_work(struct profiler_writer *writer, int span)
{
    char name[NAME_TEXT];
    ASSERT_INDEX(span, writer->trace->span_count);
    const struct trace_span *row = &writer->trace->spans[span];
    const char *task = row->task ? row->task : "work";
    /* The work of this name, without its iteration "(3)". */
    const uint32_t found = work_names_number(&writer->names, task, bare_length(task));
    const struct named_work work =
        found != TABLE_NONE ? writer->names.items[found] : profiler_json_by_name(task);
    name_work(&work, task, name);
    profiler_begin_event(writer, "X", work.class == WORK_CLASS_COPY ? "gpu_memcpy" : "kernel",
                         name);
    put_span_row(writer, row);
    profiler_put_time(writer, row->start_ns, row->end_ns);
    put_work_args(writer, &work, span);
    profiler_end_event(writer);
    if (writer->calls[span].from >= 0 && !writer->options->hide_threads)
        write_call(writer, &work, span);
}

/* ---- work of threads, waits ------------------------------------------------------------------ */

/* A call that a profiler recorded, "cudaStreamSynchronize"; no task of ours. */
static bool profiler_json_is_call(const char *task)
{
    return strncmp(task, "cuda", 4) == 0 || strncmp(task, "hip", 3) == 0;
}

static void put_host_args(struct profiler_writer *writer, const struct trace_span *span)
{
    if (span->iteration < 0)
        return;
    json_begin_object_at(&writer->json, "args");
    json_put_int(&writer->json, "iteration", span->iteration);
    json_end_object(&writer->json);
}

static void write_host_work(struct profiler_writer *writer, const struct trace_span *span)
{
    profiler_begin_event(writer, "X", "user_annotation", span->task ? span->task : "work");
    put_span_row(writer, span);
    profiler_put_time(writer, span->start_ns, span->end_ns);
    put_host_args(writer, span);
    profiler_end_event(writer);
}

static void write_wait(struct profiler_writer *writer, const struct trace_span *span)
{
    const bool call = span->task && profiler_json_is_call(span->task);
    profiler_begin_event(writer, "X", call ? "cuda_runtime" : "wait",
                         call          ? span->task
                         : span->cause ? span->cause
                                       : "wait");
    put_span_row(writer, span);
    profiler_put_time(writer, span->start_ns, span->end_ns);
    put_host_args(writer, span);
    profiler_end_event(writer);
}

static void profiler_json_write_spans(struct profiler_writer *writer)
{
    for (size_t i = 0; i < writer->trace->span_count; i++) {
        const struct trace_span *span = &writer->trace->spans[i];
        if (!profiler_json_is_shown(writer, &writer->trace->agents[span->agent]))
            continue;
        switch (span->kind) {
        case SPAN_DEVICE: write_work(writer, (int)i); break;
        case SPAN_WAIT: write_wait(writer, span); break;
        case SPAN_PASS: write_host_work(writer, span); break;
        case SPAN_HOST:
            if (!span->task || !profiler_json_is_call(span->task))
                write_host_work(writer, span);
            break;
        }
    }
}

static void profiler_json_write_dependences(struct profiler_writer *writer)
{
    const struct trace *trace = writer->trace;
    for (size_t i = 0; i < trace->edge_count; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        if (edge->kind != EDGE_DEPENDENCE ||
            !profiler_json_is_shown(writer, profiler_agent_of(writer, edge->from)) ||
            !profiler_json_is_shown(writer, profiler_agent_of(writer, edge->to)))
            continue;
        write_flow(writer, "dependence", (int64_t)i, "s", edge->from,
                   trace->spans[edge->from].start_ns);
        write_flow(writer, "dependence", (int64_t)i, "f", edge->to,
                   trace->spans[edge->to].start_ns);
    }
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* Steps of the profiler, which do not overlap, and a counter of the iterations in flight. */

static bool has_launches(const struct profiler_writer *writer, int rank)
{
    for (size_t i = 0; i < writer->trace->span_count; i++)
        if (writer->calls[i].from >= 0 && profiler_agent_of(writer, (int)i)->rank == rank)
            return true;
    return false;
}

/* The last work of a thread of this rank. */
static int64_t host_end(const struct profiler_writer *writer, int rank)
{
    int64_t end_ns = 0;
    for (size_t i = 0; i < writer->trace->span_count; i++) {
        const struct trace_agent *agent = profiler_agent_of(writer, (int)i);
        if (agent->rank == rank && agent->kind != TRACE_STREAM &&
            writer->trace->spans[i].end_ns > end_ns)
            end_ns = writer->trace->spans[i].end_ns;
    }
    return end_ns;
}

/* When threads begin the first work of each of these iterations. */
static bool find_starts(struct profiler_writer *writer, const struct trace_iteration *first,
                        size_t count, int64_t *starts)
{
    for (size_t i = 0; i < count; i++)
        starts[i] = INT64_MAX;
    for (size_t i = 0; i < writer->trace->span_count; i++) {
        const struct trace_span *span = &writer->trace->spans[i];
        const int64_t place = span->iteration - first->number;
        if (profiler_agent_of(writer, (int)i)->rank == first->rank && span->kind == SPAN_HOST &&
            place >= 0 && place < (int64_t)count && span->start_ns < starts[place])
            starts[place] = span->start_ns;
    }
    for (size_t i = 0; i < count; i++)
        if (starts[i] == INT64_MAX)
            return false;
    return true;
}

/* Iterations overlap; steps do not. */
static enum status profiler_json_write_steps(struct profiler_writer *writer,
                                             const struct trace_iteration *first, size_t count,
                                             struct diag *diag)
{
    int64_t *starts = ARENA_ARRAY(&writer->arena, count, int64_t);
    if (!starts)
        return diag_no_memory(diag);
    if (!find_starts(writer, first, count, starts))
        return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        int64_t end_ns = i + 1 < count ? starts[i + 1] : host_end(writer, first->rank);
        char name[64];
        snprintf(name, sizeof name, "ProfilerStep#%" PRId64, first[i].number);
        profiler_begin_event(writer, "X", "user_annotation", name);
        profiler_put_row(writer, profiler_host_pid(writer, first[i].rank), STEPS_ROW);
        profiler_put_time(writer, starts[i], end_ns > starts[i] ? end_ns : starts[i]);
        profiler_end_event(writer);
    }
    return STATUS_OK;
}

/* Iterations begin and retire in the order of their numbers. */
static void write_counts(struct profiler_writer *writer, const struct trace_iteration *first,
                         size_t count)
{
    size_t begun = 0, retired = 0;
    while (retired < count) {
        const bool begins =
            begun < count && (begun == retired || first[begun].start_ns < first[retired].retire_ns);
        const int64_t at_ns = begins ? first[begun].start_ns : first[retired].retire_ns;
        begun += begins;
        retired += !begins;
        profiler_begin_event(writer, "C", NULL, "iterations in flight");
        json_put_int(&writer->json, "pid", profiler_host_pid(writer, first->rank));
        json_put_thousandths(&writer->json, "ts", at_ns);
        json_begin_object_at(&writer->json, "args");
        json_put_int(&writer->json, "iterations", (int64_t)(begun - retired));
        json_end_object(&writer->json);
        profiler_end_event(writer);
    }
}

/* The iterations from `at` on that are neighbours of one rank: where only a part of a run was loaded, its first and
   its last iteration stand alone. */
static size_t neighbours(const struct trace *trace, size_t at)
{
    size_t count = 1;
    ASSERT_INDEX(at, trace->iteration_count);
    while (at + count < trace->iteration_count &&
           trace->iterations[at + count].rank == trace->iterations[at].rank &&
           trace->iterations[at + count].number == trace->iterations[at].number + (int64_t)count)
        count++;
    return count;
}

static size_t iterations_of(const struct trace *trace, int rank)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->iteration_count; i++)
        count += trace->iterations[i].rank == rank;
    return count;
}

static enum status profiler_write_iterations(struct profiler_writer *writer, struct diag *diag)
{
    const struct trace *trace = writer->trace;
    int64_t first_ns, last_ns;
    size_t count;
    enum status status = STATUS_OK;
    trace_range(trace, &first_ns, &last_ns);
    for (size_t i = 0; i < trace->iteration_count && status == STATUS_OK; i += count) {
        const struct trace_iteration *first = &trace->iterations[i];
        count = neighbours(trace, i);
        if ((writer->options->one_rank && first->rank != writer->options->rank) ||
            writer->options->hide_threads || first[count - 1].retire_ns < first_ns ||
            first->start_ns > last_ns)
            continue;
        if (has_launches(writer, first->rank))
            status = profiler_json_write_steps(writer, first, count, diag);
        if (count == iterations_of(trace, first->rank))
            write_counts(writer, first, count);
    }
    return status;
}

/* ---- all together ---------------------------------------------------------------------------- */

static int64_t base_time_ns(const struct trace *trace)
{
    const struct trace_stat *start = trace_find_stat(trace, RUN_STAT_START);
    return start && start->value > 0 && start->value < 9e18 ? (int64_t)start->value : 0;
}

static void profiler_json_write_head(struct profiler_writer *writer)
{
    const struct trace *trace = writer->trace;
    fputs("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\",", writer->out);
    if (writer->options->one_rank || writer->ranks == 1)
        fprintf(writer->out,
                "\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},",
                writer->options->one_rank ? writer->options->rank : 0, writer->ranks);
    fprintf(writer->out, "\n\"baseTimeNanoseconds\": %" PRId64 ",\n\"traceEvents\": [\n",
            base_time_ns(trace));
}

static enum status profiler_json_write_all(struct profiler_writer *writer, struct diag *diag)
{
    profiler_json_write_head(writer);
    profiler_json_write_processes(writer);
    profiler_json_write_rows(writer);
    enum status status = profiler_write_iterations(writer, diag);
    profiler_json_write_spans(writer);
    if (!writer->options->no_dependences)
        profiler_json_write_dependences(writer);
    fputs("]}\n", writer->out);
    return status;
}

static enum status profiler_json_prepare(struct profiler_writer *writer, struct diag *diag)
{
    enum status status =
        work_names_read(&writer->trace->info, &writer->arena, &writer->names, diag);
    if (status != STATUS_OK)
        return status;
    if (!number_rows(writer) || !find_calls(writer))
        return diag_no_memory(diag);
    if (writer->options->one_rank && !has_agents(writer, writer->options->rank, true))
        return diag_error(diag, STATUS_INPUT, "the run has no rank %d with streams",
                          writer->options->rank);
    return STATUS_OK;
}

enum status profiler_json_write(const struct trace *trace,
                                const struct profiler_json_options *options, FILE *out,
                                struct diag *diag)
{
    struct profiler_writer writer = {.trace = trace, .options = options, .out = out};
    if (trace->info.kind == RUN_WITNESS)
        return diag_error(diag, STATUS_INPUT,
                          "a counterexample has steps and no times: draw it as .svg");
    if (trace->span_count == 0)
        return diag_error(diag, STATUS_INPUT, "nothing to write: the run has no work");
    arena_init(&writer.arena, 0);
    json_open(&writer.json, out);
    enum status status = profiler_json_prepare(&writer, diag);
    if (status == STATUS_OK)
        status = profiler_json_write_all(&writer, diag);
    arena_fini(&writer.arena);
    return status;
}
