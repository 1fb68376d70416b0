/* SPDX-License-Identifier: Apache-2.0 */
/* trace_writer.c - see trace_writer.h. */
#include "trace_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

enum { NAME = 160, SHORT_WAIT_NS = 1000 };

/* ---- open and close -------------------------------------------------------------------------- */

static enum status trace_writer_begin_run(struct trace_writer *trace,
                                          const struct runtime_options *options, const char *device,
                                          struct diag *diag)
{
    static const enum run_driver drivers[] = {[DRIVER_NONE] = RUN_DRIVER_NONE,
                                              [DRIVER_CLOCK] = RUN_DRIVER_CLOCK,
                                              [DRIVER_DATAFLOW] = RUN_DRIVER_DATAFLOW};
    const struct program *p = trace->program;
    const struct run_info info = {
        .kind = RUN_MEASURED,
        .plan_name = p->plan->name,
        .plan_text = options->plan_text,
        .device = device,
        .driver = drivers[p->driver],
        .ranks = p->ranks,
        .iterations_wanted = p->tasks && options->iterations >= 0 ? p->options.iterations : 0,
        .created_unix_s = (int64_t)time(NULL),
        .note = options->serial ? RUN_NOTE_SERIAL : NULL,
    };
    return store_begin_run(trace->store, &info, &trace->run, diag);
}

static enum status trace_writer_add_agent(struct trace_writer *trace, int agent, struct diag *diag)
{
    const struct program *p = trace->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    struct trace_agent row = {.rank = desc->rank, .position = desc->index};
    if (desc->kind == AGENT_STREAM) {
        row.kind = TRACE_STREAM;
        row.name = p->streams[desc->index].name;
    } else if (desc->kind == AGENT_THREAD) {
        bool driver = p->threads[desc->index].kind == THREAD_DRIVER;
        row.kind = driver ? TRACE_DRIVER : TRACE_THREAD;
        row.name = p->threads[desc->index].name;
    } else {
        return STATUS_OK;
    }
    return store_add_agent(trace->store, trace->run, &row, &trace->agents[agent], diag);
}

/* Of each communicator and rank, before all times. */
static int64_t *comm_times(const struct program *p)
{
    size_t count = (size_t)p->comm_count * (size_t)p->ranks;
    int64_t *times = malloc((count + 1) * sizeof *times);
    for (size_t i = 0; times && i < count; i++)
        times[i] = INT64_MIN;
    return times;
}

/* True if a rank computes it as long as it takes. A task with a `time` sleeps for what is left of that. */
static bool computes(const struct task *task)
{
    switch (task->work.kind) {
    case WORK_COPY:
    case WORK_COLLECTIVE:
    case WORK_SEND:
    case WORK_RECV:
    case WORK_GEMM:
    case WORK_GATHER:
    case WORK_AXPY: return task->time_ns == 0;
    case WORK_NONE:
    case WORK_SPIN:
    case WORK_HOST: break;
    }
    return false;
}

static bool wants_core(const struct trace_writer *trace, int task)
{
    const bool *is_function = trace->options->is_function;
    bool wants = true;
    if (is_function && is_function[task])
        return true;
    for (int rank = 0; rank < trace->program->ranks; rank++)
        wants = wants && computes(plan_task(trace->program->plan, rank, task));
    return wants;
}

static enum status add_cores(struct trace_writer *trace, int cores, struct diag *diag)
{
    const struct program *p = trace->program;
    enum status status = store_add_stat(trace->store, trace->run, RUN_STAT_CORES, cores, diag);
    for (int t = 0; t < p->tasks && !status; t++) {
        if (!wants_core(trace, t))
            continue;
        char *key;
        if (asprintf(&key, "%s" RUN_STAT_CORE_SHARE, p->plan->pipeline.tasks[t].name) < 0)
            return diag_no_memory(diag);
        status = store_add_stat(trace->store, trace->run, key, 1, diag);
        free(key);
    }
    return status;
}

static enum status trace_writer_allocate(struct trace_writer *trace, struct diag *diag)
{
    const struct program *p = trace->program;
    size_t places = (size_t)(p->ranks * p->tasks) * (size_t)(p->max_distance + 1);
    size_t tasks = (size_t)p->tasks + 1;
    trace->agents = calloc((size_t)p->agent_count, sizeof *trace->agents);
    trace->names = calloc((size_t)p->agent_count, sizeof *trace->names);
    trace->recent = calloc(places + 1, sizeof *trace->recent);
    trace->busy_ns = calloc((size_t)p->stream_count + 1, sizeof *trace->busy_ns);
    trace->device_ns = calloc(tasks, sizeof *trace->device_ns);
    trace->host_ns = calloc(tasks, sizeof *trace->host_ns);
    trace->instances = calloc(tasks, sizeof *trace->instances);
    trace->retired = calloc((size_t)p->ranks, sizeof *trace->retired);
    trace->iterations = calloc((size_t)p->ranks, sizeof *trace->iterations);
    trace->comm_span_ends = comm_times(p);
    trace->comm_step_ends = comm_times(p);
    if (!trace->agents || !trace->names || !trace->recent || !trace->busy_ns || !trace->device_ns ||
        !trace->host_ns || !trace->instances || !trace->retired || !trace->iterations ||
        !trace->comm_span_ends || !trace->comm_step_ends || !op_stats_open(&trace->op_stats, p))
        return diag_no_memory(diag);
    return STATUS_OK;
}

static int64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

enum status trace_writer_open(struct trace_writer *trace, const struct program *program,
                              const struct runtime_options *options, const char *device,
                              int64_t base_ns, int cores, struct diag *diag)
{
    *trace = (struct trace_writer){
        .program = program, .options = options, .base_ns = base_ns, .run = -1};
    diag_init(&trace->diag);
    enum status status = trace_writer_allocate(trace, diag);
    if (status || !options->db)
        return status;
    status = store_open(options->db, true, &trace->store, diag);
    if (!status && options->durable)
        status = store_make_durable(trace->store, diag);
    if (!status)
        status = trace_writer_begin_run(trace, options, device, diag);
    if (!status)
        status = store_add_stat(trace->store, trace->run, RUN_STAT_START, (double)unix_ns(), diag);
    if (!status && cores > 0 && options->device == DEVICE_KIND_HOST)
        status = add_cores(trace, cores, diag);
    for (int agent = 0; agent < program->agent_count && !status; agent++)
        status = trace_writer_add_agent(trace, agent, diag);
    return status ? status : store_flush(trace->store, diag);
}

void trace_writer_close(struct trace_writer *trace)
{
    struct diag unheard; /* the store's failure was reported when it happened */
    diag_init(&unheard);
    store_close(trace->store, &unheard);
    diag_fini(&unheard);
    diag_fini(&trace->diag);
    op_stats_close(&trace->op_stats);
    for (int agent = 0; trace->names && agent < trace->program->agent_count; agent++)
        free(trace->names[agent]);
    free(trace->names);
    free(trace->agents);
    free(trace->recent);
    free(trace->known);
    free(trace->busy_ns);
    free(trace->device_ns);
    free(trace->host_ns);
    free(trace->instances);
    for (int rank = 0; trace->iterations && rank < trace->program->ranks; rank++)
        free(trace->iterations[rank].open);
    free(trace->iterations);
    ends_free(&trace->ends);
    free(trace->retired);
    free(trace->comm_span_ends);
    free(trace->comm_step_ends);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void trace_writer_fail(struct trace_writer *trace, enum status status)
{
    if (trace->status == STATUS_OK)
        trace->status = status;
}

static void trace_writer_no_memory(struct trace_writer *trace)
{
    trace_writer_fail(trace, diag_no_memory(&trace->diag));
}

/* After its first failure the trace writer writes nothing more. */
static bool writes(const struct trace_writer *trace)
{
    return trace->store && trace->status == STATUS_OK;
}

/* Stored times count from the start of the run. */
static int64_t trace_writer_add_span(struct trace_writer *trace, int agent,
                                     const struct trace_span *span)
{
    int64_t id = -1;
    struct trace_span row = *span;
    row.start_ns -= trace->base_ns;
    row.end_ns -= trace->base_ns;
    if (writes(trace))
        trace_writer_fail(trace, store_add_span(trace->store, trace->run, trace->agents[agent],
                                                &row, &id, &trace->diag));
    return id;
}

static void trace_writer_add_edge(struct trace_writer *trace, int64_t from, int64_t to,
                                  enum edge_kind kind)
{
    if (writes(trace) && from >= 0 && to >= 0)
        trace_writer_fail(trace,
                          store_add_edge(trace->store, trace->run, from, to, kind, &trace->diag));
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *op_name(const struct program *p, const struct op *op, char *buf)
{
    if (op->task >= 0)
        return p->plan->pipeline.tasks[op->task].name;
    return program_op_label(p, op, 0, buf, NAME);
}

/* Host programs have no iterations. */
static int64_t trace_writer_iteration_of(const struct program *p, int64_t iteration)
{
    return p->tasks ? iteration : -1;
}

/* The cause of a long operation's wait; NULL: it did not wait. */
static const char *trace_writer_cause_of(const struct program *p, const struct op *op,
                                         int64_t iteration, char *buf)
{
    if (!op_takes(op->kind) && op_waits(op->kind) == WAITS_NEVER)
        return NULL;
    const char *object = program_object_name(p, op);
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT:
    case OPERAND_FLAG:
        if (op->kind != OP_SYNC && p->tasks && op->distance >= 0)
            snprintf(buf, NAME, "%s(%" PRId64 ")",
                     p->plan->pipeline.tasks[op->object % p->tasks].name, iteration - op->distance);
        else if (op->kind == OP_SYNC && op->sync == SYNC_STREAM)
            snprintf(buf, NAME, "stream %s", p->streams[op->stream].name);
        else
            snprintf(buf, NAME, "%s", object ? object : "the device");
        return buf;
    case OPERAND_LOCK: snprintf(buf, NAME, "lock %s", object); return buf;
    case OPERAND_QUEUE: snprintf(buf, NAME, "queue %s", object); return buf;
    case OPERAND_TURN: return "its turn";
    case OPERAND_NONE:
    case OPERAND_SUBMISSION:
    case OPERAND_COMM:
    case OPERAND_BARRIER:
    case OPERAND_BUFFER: break;
    }
    return NULL;
}

/* ---- what threads did ------------------------------------------------------------------------ */

/* The span that stands for (task, iteration) in dependence edges. */
static void stand_for(struct trace_writer *trace, int rank, int task, int64_t iteration,
                      int64_t span)
{
    if (span < 0 || task < 0 || trace->program->tasks == 0)
        return;
    if (!ARRAY_GROW(trace->known, trace->known_count, trace->known_cap)) {
        trace_writer_no_memory(trace);
        return;
    }
    trace->known[trace->known_count++] = (struct known_span){rank, task, 0, iteration, span};
    if (iteration > trace->newest)
        trace->newest = iteration;
}

static int64_t host_op(struct trace_writer *trace, int thread, const struct log_entry *entry)
{
    const struct program *p = trace->program;
    const struct op *op = &p->ops[entry->op];
    ASSERT_INDEX(thread, p->thread_count);
    int rank = p->threads[thread].rank, agent = program_thread_agent(p, thread);
    char name[NAME], cause[NAME];
    struct trace_span span = {.kind = SPAN_HOST,
                              .iteration = trace_writer_iteration_of(p, entry->iteration),
                              .start_ns = entry->begin_ns,
                              .end_ns = entry->end_ns};
    if (rank == 0 && op->task >= 0 && (op_is_cpu_work(op->kind) || entry->kind == LOG_CALL))
        trace->host_ns[op->task] += entry->end_ns - entry->begin_ns;
    op_stats_host(&trace->op_stats, entry->op, entry->end_ns - entry->begin_ns);
    if (op_is_work(op->kind)) {
        span.task = op_name(p, op, name);
        int64_t id = trace_writer_add_span(trace, agent, &span);
        if (op_is_cpu_work(op->kind) && op->given->work->kind == WORK_HOST)
            stand_for(trace, rank, op->task, entry->iteration, id);
        return id;
    }
    span.cause = op_pushes(op->kind) ? NULL : trace_writer_cause_of(p, op, entry->iteration, cause);
    span.kind = SPAN_WAIT;
    if (span.cause && span.end_ns - span.start_ns > SHORT_WAIT_NS)
        trace_writer_add_span(trace, agent, &span);
    return -1;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* The iteration of a rank, which is not stored yet; NULL: memory is exhausted. */
static struct open_iteration *open_iteration(struct trace_writer *trace, int rank,
                                             int64_t iteration)
{
    struct trace_iterations *all = &trace->iterations[rank];
    size_t place = (size_t)(iteration - all->first);
    if (!ARRAY_GROW(all->open, place, all->cap)) {
        trace_writer_no_memory(trace);
        return NULL;
    }
    for (; all->count <= place; all->count++)
        all->open[all->count] = (struct open_iteration){0};
    return &all->open[place];
}

/* NULL: it is stored, or there are none, or memory is exhausted. No rank has more in flight than
   PLAN_MAX_IN_FLIGHT: an iteration that is further ahead is none. */
static struct open_iteration *iteration_at(struct trace_writer *trace, int rank, int64_t iteration)
{
    int64_t first = trace->iterations[rank].first;
    if (trace->program->tasks == 0 || iteration < first || iteration - first > PLAN_MAX_IN_FLIGHT)
        return NULL;
    return open_iteration(trace, rank, iteration);
}

/* One less; work of the iteration lasted until then. */
static void trace_writer_note_over(struct trace_writer *trace, int rank, int64_t iteration,
                                   int64_t at_ns)
{
    struct open_iteration *open = iteration_at(trace, rank, iteration);
    if (!open)
        return;
    open->unfinished--;
    if (at_ns > open->over_ns)
        open->over_ns = at_ns;
}

static void store_iteration(struct trace_writer *trace, int rank, int64_t iteration,
                            const struct open_iteration *open)
{
    const struct trace_iteration row = {rank, iteration, open->admitted_ns - trace->base_ns,
                                        open->over_ns - trace->base_ns};
    if (rank == 0 && !ends_add(&trace->ends, open->over_ns))
        trace_writer_no_memory(trace);
    if (rank == 0)
        trace->last_admitted_ns = open->admitted_ns;
    if (writes(trace))
        trace_writer_fail(trace, store_add_iteration(trace->store, trace->run, &row, &trace->diag));
}

/* Entries that other threads logged before the retirement were read in the next pass at the latest. */
static bool trace_writer_is_over(const struct trace_writer *trace,
                                 const struct open_iteration *open)
{
    return open->retired && open->retired <= trace->passes && open->unfinished <= 0;
}

/* Store the iterations that are over; `retired`: all that are retired. */
static void store_iterations(struct trace_writer *trace, bool retired)
{
    for (int rank = 0; rank < trace->program->ranks; rank++) {
        struct trace_iterations *all = &trace->iterations[rank];
        size_t stored = 0;
        while (stored < all->count && (retired ? all->open[stored].retired > 0
                                               : trace_writer_is_over(trace, &all->open[stored]))) {
            store_iteration(trace, rank, all->first + (int64_t)stored, &all->open[stored]);
            stored++;
        }
        if (stored == 0)
            continue;
        assert(stored <= all->count && all->count <= all->cap);
        all->count -= stored;
        all->first += (int64_t)stored;
        memmove(all->open, all->open + stored, all->count * sizeof *all->open);
    }
}

static void trace_writer_retire(struct trace_writer *trace, int thread,
                                const struct log_entry *entry)
{
    ASSERT_INDEX(thread, trace->program->thread_count);
    int rank = trace->program->threads[thread].rank;
    char cause[NAME];
    const struct trace_span span = {.kind = SPAN_WAIT,
                                    .iteration = entry->iteration,
                                    .start_ns = entry->begin_ns,
                                    .end_ns = entry->at_ns,
                                    .cause = cause};
    trace->retired[rank]++;
    trace_writer_note_over(trace, rank, entry->iteration, entry->at_ns);
    struct open_iteration *open = iteration_at(trace, rank, entry->iteration);
    if (open) {
        open->admitted_ns = entry->stamp.start_ns;
        open->retired = trace->passes + 1;
    }
    snprintf(cause, sizeof cause, "iteration %" PRId64, entry->iteration);
    if (span.end_ns - span.start_ns > SHORT_WAIT_NS)
        trace_writer_add_span(trace, program_thread_agent(trace->program, thread), &span);
}

int64_t trace_writer_host(struct trace_writer *trace, int thread, const struct log_entry *entry)
{
    switch (entry->kind) {
    case LOG_OP:
    case LOG_CALL:
        if (entry->stamp.number >= 0) {
            /* The iteration has one more operation on the device. */
            struct open_iteration *open =
                iteration_at(trace, trace->program->threads[thread].rank, entry->iteration);
            if (open)
                open->unfinished++;
        }
        return host_op(trace, thread, entry);
    case LOG_RETIRE: trace_writer_retire(trace, thread, entry); break;
    case LOG_TAKE:
    case LOG_NO:
    case LOG_END:
    case LOG_ENQUEUE: break;
    }
    return -1;
}

/* ---- what streams did ------------------------------------------------------------------------ */

/* The place of the operation's communicator and rank; NULL: it uses none. */
static int64_t *comm_end(const struct program *p, int64_t *ends, const struct op *op)
{
    size_t rank = (size_t)p->streams[op->stream].rank;
    return op_uses_comm(op->kind) ? &ends[(size_t)op->comm * (size_t)p->ranks + rank] : NULL;
}

/* When an operation started that is over now. The end of the one before it may be known too late: a function's device
   work includes more than its operation on the communicator. */
static int64_t started_ns(struct trace_writer *trace, const struct log_entry *entry)
{
    const struct program *p = trace->program;
    assert(log_is_over(entry));
    int64_t *end_ns = comm_end(p, trace->comm_span_ends, &p->ops[entry->op]);
    int64_t start_ns = log_started_ns(entry), over_ns = entry->stamp.end_ns;
    if (!end_ns)
        return start_ns;
    int64_t free_ns = *end_ns < over_ns ? *end_ns : over_ns;
    *end_ns = over_ns;
    return free_ns > start_ns ? free_ns : start_ns;
}

void trace_writer_device(struct trace_writer *trace, const struct log_entry *entry, int64_t from)
{
    const struct program *p = trace->program;
    const struct op *op = &p->ops[entry->op];
    char name[NAME], cause[NAME];
    struct trace_span span = {.kind = SPAN_DEVICE,
                              .iteration = trace_writer_iteration_of(p, entry->iteration),
                              .start_ns = started_ns(trace, entry),
                              .end_ns = entry->stamp.end_ns};
    int agent = program_stream_agent(p, op->stream);
    trace->finished++;
    trace_writer_note_over(trace, p->streams[op->stream].rank, entry->iteration, span.end_ns);
    if (op_is_stream_work(op->kind)) {
        int64_t dur_ns = span.end_ns - span.start_ns;
        int rank = trace->program->streams[op->stream].rank;
        trace->busy_ns[op->stream] += dur_ns;
        trace->tasks++;
        if (rank == 0 && op->task >= 0) {
            trace->device_ns[op->task] += dur_ns;
            trace->instances[op->task]++;
        }
        op_stats_device(&trace->op_stats, entry->op, span.end_ns - span.start_ns);
        span.task = op_name(p, op, name);
        int64_t id = trace_writer_add_span(trace, agent, &span);
        trace_writer_add_edge(trace, from, id, EDGE_LAUNCH);
        stand_for(trace, p->streams[op->stream].rank, op->task, entry->iteration, id);
    } else if (op->kind == OP_WAIT && span.end_ns - span.start_ns > SHORT_WAIT_NS) {
        span.kind = SPAN_WAIT;
        span.cause = trace_writer_cause_of(p, op, entry->iteration, cause);
        trace_writer_add_span(trace, agent, &span);
    }
}

/* ---- the end of a pass ----------------------------------------------------------------------- */

static struct known_span *recent(struct trace_writer *trace, int rank, int task, int64_t iteration)
{
    int64_t ring = trace->program->max_distance + 1;
    return &trace->recent[(rank * trace->program->tasks + task) * ring + iteration % ring];
}

/* Edges from what a task needed; a dependence that is not over yet was no dependence of this run. */
static void trace_writer_add_dependences(struct trace_writer *trace, const struct known_span *to)
{
    const struct edge_list *depends = &trace->program->depends[to->task];
    for (int i = 0; i < depends->count; i++) {
        int64_t wanted = to->iteration - depends->items[i].distance;
        if (wanted < 0)
            continue;
        const struct known_span *from = recent(trace, to->rank, depends->items[i].task, wanted);
        if (from->span > 0 && from->iteration == wanted)
            trace_writer_add_edge(trace, from->span, to->span, EDGE_DEPENDENCE);
    }
}

static int compare_iterations(const void *a, const void *b)
{
    const struct known_span *left = a, *right = b;
    return compare_i64(left->iteration, right->iteration);
}

/* Iteration by iteration: what an edge begins at is one of the last max_distance + 1. */
static void trace_writer_add_edges(struct trace_writer *trace)
{
    struct known_span *known = trace->known;
    size_t count = trace->known_count;
    SORT(known, count, compare_iterations);
    for (size_t first = 0, last; first < count; first = last) {
        for (last = first; last < count && known[last].iteration == known[first].iteration; last++)
            *recent(trace, known[last].rank, known[last].task, known[last].iteration) = known[last];
        for (size_t i = first; i < last; i++)
            if (known[i].age++ == 1)
                trace_writer_add_dependences(trace, &known[i]);
    }
}

/* Forget what no edge can begin at any more: an iteration in flight needs at most max_distance back. */
static void forget_spans(struct trace_writer *trace)
{
    int64_t oldest = trace->newest - trace->program->window;
    size_t kept = 0;
    for (size_t i = 0; i < trace->known_count; i++)
        if (trace->known[i].age < 2 && trace->known[i].iteration < oldest)
            oldest = trace->known[i].iteration;
    oldest -= trace->program->max_distance;
    for (size_t i = 0; i < trace->known_count; i++)
        if (trace->known[i].iteration >= oldest)
            trace->known[kept++] = trace->known[i];
    trace->known_count = kept;
}

void trace_writer_flush(struct trace_writer *trace)
{
    if (writes(trace))
        trace_writer_fail(trace, store_flush(trace->store, &trace->diag));
}

void trace_writer_commit(struct trace_writer *trace)
{
    trace_writer_add_edges(trace);
    forget_spans(trace);
    store_iterations(trace, false);
    trace->passes++;
    trace_writer_flush(trace);
    /* Announces the iterations that are stored on all ranks. */
    const struct runtime_options *options = trace->options;
    int64_t stored = INT64_MAX;
    for (int rank = 0; rank < trace->program->ranks; rank++)
        if (trace->iterations[rank].first < stored)
            stored = trace->iterations[rank].first;
    while (options->retired && trace->status == STATUS_OK && trace->told < stored)
        options->retired(options->retired_arg, trace->told++);
}

/* A step is one of many of its agent. */
static const char *agent_name(struct trace_writer *trace, int agent)
{
    char name[NAME];
    if (!trace->names[agent])
        trace->names[agent] = strdup(program_agent_name(trace->program, agent, name, sizeof name));
    return trace->names[agent];
}

static const char *trace_writer_step_text(const struct program *p, const struct replay_step *step)
{
    static const char *const texts[] = {
        [REPLAY_TAKE] = "take", [REPLAY_ENQUEUE] = "enqueue", [REPLAY_RETIRE] = "retire",
        [REPLAY_END] = "end",   [REPLAY_START] = "start",     [REPLAY_FINISH] = "finish",
    };
    return step->kind == REPLAY_OP ? op_key(p->ops[step->op].kind) : texts[step->kind];
}

/* The same for a step: here they come in the order of the machine, which lets nothing start too early. */
static int64_t step_ns(struct trace_writer *trace, const struct replay_step *step)
{
    const struct program *p = trace->program;
    bool ends = step->kind == REPLAY_FINISH;
    if (!ends && step->kind != REPLAY_START)
        return step->key_ns;
    int64_t *end_ns = comm_end(p, trace->comm_step_ends, &p->ops[step->op]);
    if (end_ns && ends && step->key_ns < INT64_MAX) /* of one that is not over no time is known */
        *end_ns = step->key_ns;
    return end_ns && *end_ns > step->key_ns ? *end_ns : step->key_ns;
}

void trace_writer_step(struct trace_writer *trace, const struct replay_step *step)
{
    const struct program *p = trace->program;
    const char *agent = agent_name(trace, step->agent);
    char name[NAME];
    if (!agent)
        trace_writer_no_memory(trace);
    if (!writes(trace))
        return;
    const struct trace_step row = {
        .seq = trace->steps++,
        .rank = p->agents[step->agent].rank,
        .agent = agent,
        .op = trace_writer_step_text(p, step),
        .task = step->op >= 0     ? op_name(p, &p->ops[step->op], name)
                : step->task >= 0 ? p->plan->pipeline.tasks[step->task].name
                                  : NULL,
        .iteration = trace_writer_iteration_of(p, step->iteration),
        .time_ns = step_ns(trace, step) - trace->base_ns,
    };
    trace_writer_fail(trace, store_add_step(trace->store, trace->run, &row, &trace->diag));
}

/* ---- figures --------------------------------------------------------------------------------- */

static int64_t serial_time(const struct trace_writer *trace)
{
    int64_t iterations = trace->ends.total, sum_ns = 0;
    for (int task = 0; task < trace->program->tasks && iterations > 0; task++) {
        int64_t instances = trace->instances[task] ? trace->instances[task] : iterations;
        sum_ns += (trace->device_ns[task] + trace->host_ns[task]) / instances;
    }
    return sum_ns;
}

static void store_figures(struct trace_writer *trace, const struct runtime_result *result)
{
    const struct {
        const char *key;
        double value;
    } figures[] = {{"iteration_ns", result->iteration.mean_ns},
                   {"iteration_p99_ns", result->iteration.p99_ns},
                   {"fill_ns", (double)result->fill_ns},
                   {"drain_ns", (double)result->drain_ns},
                   {"serial_ns", (double)result->serial_ns},
                   {RUN_STAT_DEPTH, trace->program->tasks ? trace->program->depth : 0}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures && writes(trace); i++)
        if (figures[i].value > 0)
            trace_writer_fail(trace, store_add_stat(trace->store, trace->run, figures[i].key,
                                                    figures[i].value, &trace->diag));
}

bool trace_writer_figures(struct trace_writer *trace, struct runtime_result *result)
{
    const struct program *p = trace->program;
    store_iterations(trace, true);
    result->run = trace->run;
    result->tasks = trace->tasks;
    result->streams =
        ARENA_ARRAY(&result->arena, (size_t)p->stream_count + 1, struct runtime_stream);
    if (!result->streams || !ends_times(&trace->ends, p->depth, &result->iteration) ||
        !op_stats_list(&trace->op_stats, result))
        return false;
    for (int s = 0; s < p->stream_count; s++) {
        const char *name = arena_strdup(&result->arena, p->streams[s].name);
        if (!name)
            return false;
        result->streams[result->stream_count++] =
            (struct runtime_stream){p->streams[s].rank, name, trace->busy_ns[s]};
    }
    result->iterations = p->tasks ? INT64_MAX : 0;
    for (int rank = 0; rank < p->ranks && p->tasks; rank++) {
        if (trace->retired[rank] < result->iterations)
            result->iterations = trace->retired[rank];
        if (trace->retired[rank] > result->most_iterations)
            result->most_iterations = trace->retired[rank];
    }
    if (trace->ends.total > 0) {
        result->fill_ns = trace->ends.first_ns - trace->base_ns;
        result->drain_ns = trace->ends.last_ns - trace->last_admitted_ns;
    }
    result->serial_ns = serial_time(trace);
    store_figures(trace, result);
    return true;
}

enum status trace_writer_end(struct trace_writer *trace, enum run_finished finished,
                             int64_t iterations, int64_t duration_ns, struct diag *diag)
{
    store_iterations(trace, true);
    trace_writer_commit(trace); /* the last pass's edges */
    enum status status = trace->status;
    diag_take(diag, &trace->diag);
    if (status == STATUS_OK && trace->store && iterations > 0)
        status = store_set_iterations(trace->store, trace->run, iterations, diag);
    if (status == STATUS_OK && trace->store)
        status = store_end_run(trace->store, trace->run, finished, duration_ns, diag);
    enum status closed = store_close(trace->store, diag);
    trace->store = NULL;
    return status ? status : closed;
}
