/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_run.c - see recorded_internal.h. */
#include "recorded_internal.h"

#include <stdio.h>
#include <time.h>

#include "plan/group_names.h"
#include "plan/ops.h"
#include "plan/text/print.h"
#include "trace/trace.h"

enum { WORDS = 320 };

/* A thread, or the operations of a graph, under way. */
struct recorded_run_telling {
    struct recorded_job *job;
    const struct recorded_process *process;
    struct trace *trace;
    int64_t shift_ns;  /* from the process' clock to the run's */
    int home;          /* rank of the thread */
    const char *name;  /* of the thread; NULL: it is none of the plan's */
    const char *graph; /* that is launched; NULL: none */
};

/* The parts of the first communicator and device: the operation of the plan that has the group's time. */
static bool is_of_first(const struct recorded_op *group, const struct p2p_part *part,
                        bool collectives)
{
    return part->comm == group->op.parts[0].comm && part->device == group->op.parts[0].device &&
           part->is_collective == collectives;
}

static size_t count_first(const struct recorded_op *group, bool collectives)
{
    size_t count = 0;
    for (size_t i = 0; i < group->op.part_count; i++)
        count += is_of_first(group, &group->op.parts[i], collectives);
    return count;
}

/* NULL: no memory. */
static const char *collectives_name(const struct recorded_run_telling *telling,
                                    const struct recorded_op *group)
{
    const bool single = count_first(group, true) == 1;
    const char *name = "";
    for (size_t i = 0; name && i < group->op.part_count; i++) {
        struct p2p_part part = group->op.parts[i];
        if (!is_of_first(group, &part, true))
            continue;
        if (part.root >= 0)
            part.root = recorded_comm_rank(telling->job, part.comm, part.root);
        name = single ? part.tag : group_add_collective(telling->trace->arena, name, &part);
    }
    return name;
}

static const char *messages_name(const struct recorded_run_telling *telling,
                                 const struct recorded_op *group)
{
    char name[WORDS];
    for (size_t i = 0; i < group->op.part_count; i++) {
        const struct p2p_part *part = &group->op.parts[i];
        const int peer = recorded_comm_rank(telling->job, part->comm, part->peer);
        if (is_of_first(group, part, false) && peer >= 0)
            return arena_strdup(telling->trace->arena,
                                group_message_name(part->send, part->tag, peer,
                                                   count_first(group, false) > 1, name,
                                                   sizeof name));
    }
    return op_key(OP_GROUP);
}

/* As the plan's prediction names it, beside which the run is shown. NULL: no memory. */
static const char *recorded_run_name_of(const struct recorded_run_telling *telling,
                                        const struct recorded_op *op)
{
    if (op->op.kind != OP_GROUP || op->op.part_count == 0)
        return op->op.name ? op->op.name : op_key(op->op.kind);
    return count_first(op, true) > 0 ? collectives_name(telling, op) : messages_name(telling, op);
}

static int recorded_run_agent_of(const struct recorded_run_telling *telling, int rank,
                                 enum trace_agent_kind kind, const char *name, int position)
{
    const int found = trace_find_agent(telling->trace, rank, kind, name);
    return found >= 0 ? found : trace_add_agent(telling->trace, rank, kind, name, position);
}

static int recorded_run_add_span(const struct recorded_run_telling *telling, int agent,
                                 struct trace_span span)
{
    span.agent = agent;
    span.iteration = -1;
    span.start_ns += telling->shift_ns;
    span.end_ns += telling->shift_ns;
    return agent < 0 ? -1 : trace_add_span(telling->trace, &span);
}

/* ---- devices ---------------------------------------------------------------------------------- */

/* In a graph a stream is one of the graph, as in the machine. */
static int stream_agent(const struct recorded_run_telling *telling, const struct recorded_op *op)
{
    const char *stream = telling->job->plan->streams.items[op->op.stream];
    char name[WORDS];
    if (telling->graph)
        snprintf(name, sizeof name, "%s.%s", telling->graph, stream);
    return recorded_run_agent_of(telling, recorded_rank(telling->process, op->device), TRACE_STREAM,
                                 telling->graph ? name : stream, op->op.stream);
}

static bool recorded_run_add_peer_wait(const struct recorded_run_telling *telling,
                                       const struct recorded_op *op, const char *name,
                                       int64_t from_ns, int64_t to_ns)
{
    char text[WORDS];
    if (to_ns <= from_ns)
        return true;
    snprintf(text, sizeof text, "other ranks in %s (by the least time over the ranks)", name);
    return recorded_run_add_span(
               telling, stream_agent(telling, op),
               (struct trace_span){
                   .kind = SPAN_WAIT, .start_ns = from_ns, .end_ns = to_ns, .cause = text}) >= 0;
}

/* `launch`: the span of the call; -1: none. */
static bool recorded_run_add_work(const struct recorded_run_telling *telling,
                                  const struct recorded_op *op, int64_t start_ns, int64_t end_ns,
                                  int launch)
{
    const int64_t meets_ns = op->device_time.meets_ns;
    const int64_t begin_ns =
        meets_ns > 0 && meets_ns < end_ns - start_ns ? end_ns - meets_ns : start_ns;
    const char *name = recorded_run_name_of(telling, op);
    if (!name)
        return false;
    const int span = recorded_run_add_span(
        telling, stream_agent(telling, op),
        (struct trace_span){
            .kind = SPAN_DEVICE, .task = name, .start_ns = begin_ns, .end_ns = end_ns});
    return span >= 0 && recorded_run_add_peer_wait(telling, op, name, start_ns, begin_ns) &&
           (launch < 0 || trace_add_edge(telling->trace, launch, span, EDGE_LAUNCH) >= 0);
}

/* The operations of the graph that is launched, where as many were measured; else the launch is one operation. */
static bool add_graph(const struct recorded_run_telling *telling, const struct recorded_op *op,
                      int launch)
{
    const struct recorded_process *process = telling->process;
    const struct recorded_graph *graph = NULL;
    const struct recorded_span *spans;
    const size_t count = recorded_times_find(process, op->push, &spans);
    size_t pushes = 0, at = 0;
    for (size_t i = 0; i < process->graph_count; i++)
        if (process->graphs[i].index == op->op.graph)
            graph = &process->graphs[i];
    for (size_t i = 0; graph && i < graph->ops.count; i++)
        pushes += graph->ops.items[i].device_time.pushes;
    if (pushes != count)
        return recorded_run_add_work(telling, op, op->device_time.start_ns, op->device_time.end_ns,
                                     launch);
    struct recorded_run_telling inside = *telling;
    inside.graph = op->op.name;
    for (size_t i = 0; i < graph->ops.count; i++) {
        const struct recorded_op *node = &graph->ops.items[i];
        if (!node->device_time.pushes)
            continue;
        if (!recorded_run_add_work(&inside, node, spans[at].start_ns, spans[at].end_ns, launch))
            return false;
        at++;
    }
    return true;
}

/* ---- threads ---------------------------------------------------------------------------------- */

static int recorded_run_add_call(const struct recorded_run_telling *telling,
                                 const struct recorded_op *op, int thread)
{
    const bool waits = op->op.kind == OP_SYNC;
    const int agent =
        recorded_run_agent_of(telling, telling->home, TRACE_THREAD, telling->name, thread);
    const char *name = waits ? NULL : recorded_run_name_of(telling, op);
    if (!waits && !name)
        return -1;
    return recorded_run_add_span(telling, agent,
                                 (struct trace_span){.kind = waits ? SPAN_WAIT : SPAN_HOST,
                                                     .task = name,
                                                     .start_ns = op->begin_ns,
                                                     .end_ns = op->end_ns,
                                                     .cause = waits ? "device" : NULL});
}

static bool recorded_run_add_op(const struct recorded_run_telling *telling,
                                const struct recorded_op *op, int thread)
{
    const struct recorded_device_time *time = &op->device_time;
    int call = -1;
    if (!time->pushes && op->op.kind != OP_SYNC)
        return true;
    if (telling->name && (call = recorded_run_add_call(telling, op, thread)) < 0)
        return false;
    if (!time->known)
        return true;
    return host_op_is_graph(&op->op)
               ? add_graph(telling, op, call)
               : recorded_run_add_work(telling, op, time->start_ns, time->end_ns, call);
}

static bool add_process(struct recorded_job *job, const struct recorded_process *process)
{
    struct recorded_run_telling telling = {.job = job,
                                           .process = process,
                                           .trace = job->options->run,
                                           .shift_ns = process->tapes.wall_ns - job->begin_ns};
    for (size_t t = 0; t < process->tapes.thread_count; t++) {
        const struct recorded_thread *thread = &process->threads[t];
        telling.home = thread->home;
        telling.name = thread->name;
        for (size_t i = 0; i < thread->ops.count; i++)
            if (!recorded_run_add_op(&telling, &thread->ops.items[i], (int)t))
                return false;
    }
    return true;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static enum status recorded_run_add_info(struct recorded_job *job)
{
    struct trace *trace = job->options->run;
    int64_t start_ns;
    const char *text;
    enum status status = plan_text_in(job->plan, trace->arena, &text, job->diag);
    if (status != STATUS_OK)
        return status;
    struct run_info info = {.kind = RUN_MEASURED,
                            .plan_name = job->plan->name,
                            .plan_text = text,
                            .device = "cuda, recorded by CUPTI",
                            .driver = RUN_DRIVER_NONE,
                            .ranks = job->plan->ranks,
                            .created_unix_s = (int64_t)time(NULL),
                            .finished = RUN_FINISHED,
                            .note = RUN_NOTE_IMPORTED};
    trace_range(trace, &start_ns, &info.duration_ns);
    for (size_t i = 0; i < job->process_count; i++)
        if (!job->processes[i].ended)
            info.finished = RUN_INTERRUPTED;
    return trace_set_info(trace, &info) &&
                   trace_add_stat(trace, RUN_STAT_START, (double)job->begin_ns) >= 0
               ? STATUS_OK
               : diag_no_memory(job->diag);
}

enum status recorded_run(struct recorded_job *job)
{
    if (!job->timed)
        return diag_error(job->diag, STATUS_INPUT,
                          "%s: no operation of a device has a measured time, so there is no run to "
                          "store (swsim record needs libcupti for them)",
                          job->processes[0].tapes.path);
    for (size_t i = 0; i < job->process_count; i++)
        if (!add_process(job, &job->processes[i]))
            return diag_no_memory(job->diag);
    return recorded_run_add_info(job);
}
