/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c - see recorded.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sort.h"
#include "plan/group_names.h"
#include "plan/ops.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "trace/job/host_form.h"
#include "trace/trace.h"

#include "recorded_internal.h"

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

/* Fills options->run, a trace like those of our own runs, behind recorded_write. A span for each operation of a device, from
   CUPTI's records, on its stream; one for each call that pushes or waits, on its thread. Streams, threads and operations have
   the names of the plan. A rank waits in an operation of several ranks for those that come later: all but the least time over
   the ranks. There are no iterations. STATUS_INPUT: no operation has a measured time. */
static enum status recorded_run(struct recorded_job *job)
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

/* Ranks that are told have their order; others that of their process numbers. */
static int recorded_by_rank(const void *left, const void *right)
{
    const struct tapes *a = &((const struct recorded_process *)left)->tapes,
                       *b = &((const struct recorded_process *)right)->tapes;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return strcmp(a->path, b->path); /* one process, program after program */
}

/* A file of which only the path is given is open while it is read. */
struct source {
    const char *const *paths; /* NULL: the files are open */
    struct bytes *const *files;
    size_t count;
};

static enum status recorded_read_all(struct recorded_job *job, const struct source *source)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < source->count; i++) {
        struct tapes *tapes = &job->processes[i].tapes;
        job->processes[i] = (struct recorded_process){0};
        status = source->paths ? tapes_read_file(source->paths[i], job->arena, tapes, job->diag)
                               : tapes_read(source->files[i], job->arena, tapes, job->diag);
    }
    job->process_count = source->count;
    if (status == STATUS_OK)
        SORT(job->processes, source->count, recorded_by_rank);
    for (size_t i = 0; status == STATUS_OK && i < source->count; i++)
        status = recorded_walk(job, &job->processes[i]);
    return status;
}

/* A program may do what a plan has no words for. The parser of plans finds it. */
static enum status recorded_refuse(const char *path, const struct diag *why, struct diag *diag)
{
    for (size_t i = 0; i < why->count; i++)
        if (why->messages[i].severity == SEVERITY_ERROR)
            return diag_error(
                diag, STATUS_INPUT, "%s: a plan cannot express what was recorded: %s (%s)", path,
                why->messages[i].text, why->messages[i].source ? why->messages[i].source : "");
    return diag_no_memory(diag);
}

static enum status recorded_check_words(const struct plan *plan, const char *path,
                                        struct diag *diag)
{
    struct plan again;
    struct diag why;
    char *text = NULL;
    diag_init(&why);
    enum status status = plan_text(plan, &text, &why);
    if (status == STATUS_OK)
        status = plan_parse(path, text, strlen(text), &again, &why);
    if (status == STATUS_OK)
        plan_fini(&again);
    else
        status = recorded_refuse(path, &why, diag);
    diag_fini(&why);
    free(text);
    return status;
}

static enum status read_threads(struct recorded_job *job, const struct source *source)
{
    job->processes = ARENA_ARRAY(job->arena, source->count, struct recorded_process);
    enum status status =
        job->processes ? recorded_read_all(job, source) : diag_no_memory(job->diag);
    return status == STATUS_OK && !recorded_write(job) ? diag_no_memory(job->diag) : status;
}

/* What only the whole plan tells. */
static enum status recorded_finish(struct recorded_job *job)
{
    const char *path = job->processes[0].tapes.path;
    if (job->plan->thread_count == 0)
        return diag_error(job->diag, STATUS_INPUT, "%s: no thread pushes work or waits for any",
                          path);
    if (job->options->folds && !job->options->run &&
        !recorded_fold(job->plan, job->options->without_luck, &job->folded))
        return diag_no_memory(job->diag);
    const enum status status = recorded_check_words(job->plan, path, job->diag);
    return status == STATUS_OK && job->options->run ? recorded_run(job) : status;
}

static enum status recorded_make_plan_by(const struct source *source,
                                         const struct recorded_options *options, bool by_tensors,
                                         struct plan *out, bool *folded, struct diag *diag)
{
    struct job threads;
    struct plan plan;
    job_init(&threads);
    plan_init(&plan);
    struct recorded_job job = {.out = &threads,
                               .plan = &threads.plan,
                               .arena = &threads.plan.arena,
                               .diag = diag,
                               .options = options,
                               .by_tensors = by_tensors};
    enum status status = read_threads(&job, source);
    if (status == STATUS_OK)
        status = host_form(&threads, &plan, diag);
    job.plan = &plan;
    job.arena = &plan.arena;
    if (status == STATUS_OK)
        status = recorded_finish(&job);
    *folded = job.folded;
    if (status == STATUS_OK)
        *out = plan;
    else
        plan_fini(&plan);
    job_fini(&threads);
    return status;
}

/* Addresses are given out again and again, tensors once: where no steps are folded the plan has addresses, which makes it
   have fewer states. Without luck the order of two tensors may be that of an answer which the plan leaves out. */
static enum status recorded_make_plan(const struct source *source,
                                      const struct recorded_options *options, struct plan *out,
                                      struct diag *diag)
{
    const bool by_tensors = options->folds && !options->run;
    bool folded;
    const enum status status =
        recorded_make_plan_by(source, options, by_tensors, out, &folded, diag);
    if (status != STATUS_OK || !by_tensors || folded || options->without_luck)
        return status;
    plan_fini(out);
    return recorded_make_plan_by(source, options, false, out, &folded, diag);
}

enum status recorded_plan(const char *const *paths, size_t count,
                          const struct recorded_options *options, struct plan *out,
                          struct diag *diag)
{
    return recorded_make_plan(&(struct source){paths, NULL, count}, options, out, diag);
}

enum status recorded_plan_of(struct bytes *const *files, size_t count,
                             const struct recorded_options *options, struct plan *out,
                             struct diag *diag)
{
    return recorded_make_plan(&(struct source){NULL, files, count}, options, out, diag);
}
