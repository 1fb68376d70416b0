/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "record.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "span_words.h"

#include "plan/text/print.h"
#include "trace/trace.h"
#include "base/assert_index.h"

enum { NAME = 160 };

/* ---- spans and edges ------------------------------------------------------------------------- */

static struct record_recorded *record_place(const struct recorder *recorder,
                                            struct record_recorded *ring, int rank, int task,
                                            int64_t iteration)
{
    int index = rank * recorder->program->tasks + task;
    return &ring[(size_t)index * (size_t)recorder->ring + (size_t)(iteration % recorder->ring)];
}

static bool record_add_edge(struct recorder *recorder, const struct record_recorded *from,
                            int64_t iteration, int64_t to_span, enum edge_kind kind)
{
    if (from->iteration != iteration)
        return true; /* it has no such part */
    return store_add_edge(recorder->store, recorder->run, from->span, to_span, kind,
                          recorder->diag) == STATUS_OK;
}

/* Device work was launched by its CPU part and needed what it depends on. */
static bool record_add_edges(struct recorder *recorder, int rank, int task, int64_t iteration,
                             int64_t span)
{
    ASSERT_INDEX(task, recorder->program->tasks);
    const struct edge_list *depends = &recorder->program->depends[task];
    if (!record_add_edge(recorder, record_place(recorder, recorder->host, rank, task, iteration),
                         iteration, span, EDGE_LAUNCH))
        return false;
    for (int i = 0; i < depends->count; i++) {
        int64_t wanted = iteration - depends->items[i].distance;
        int on = depends->items[i].task;
        if (wanted >= 0 &&
            !record_add_edge(recorder, record_place(recorder, recorder->device, rank, on, wanted),
                             wanted, span, EDGE_DEPENDENCE))
            return false;
    }
    return true;
}

/* The reason a stream waited for, or that slowed its work; NULL: none. */
static const char *span_cause(const struct program *p, const struct simulate_span *span,
                              char cause[2 * NAME])
{
    if (span->kind == SIMULATE_STALL)
        return stall_describe(p, p->agents[span->agent].rank, &span->stall, cause, 2 * NAME);
    if (!span->slowed_ns)
        return NULL;
    return *sharing_describe(span->slowed_ns, 1, cause, 2 * NAME) ? cause : NULL;
}

static bool note_idle(struct recorder *recorder, const struct simulate_span *span)
{
    const int stream = recorder->program->agents[span->agent].index;
    if (stream_account_blame(&recorder->idle[stream], &span->stall, span->end_ns - span->start_ns))
        return true;
    diag_no_memory(recorder->diag);
    return false;
}

static bool record_span(void *context, const struct simulate_span *span)
{
    static const enum span_kind kinds[] = {
        [SIMULATE_DEVICE] = SPAN_DEVICE, [SIMULATE_HOST] = SPAN_HOST, [SIMULATE_STALL] = SPAN_WAIT};
    struct recorder *recorder = context;
    const struct program *p = recorder->program;
    int rank = p->agents[span->agent].rank;
    char name[NAME], cause[2 * NAME];
    int64_t id;
    const struct trace_span row = {
        .kind = kinds[span->kind],
        .task = span_task(p, span, name, sizeof name),
        .iteration = span_iteration(p, span),
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .cause = span_cause(p, span, cause),
    };
    if (store_add_span(recorder->store, recorder->run, recorder->agents[span->agent], &row, &id,
                       recorder->diag) != STATUS_OK)
        return false;
    if (span->kind == SIMULATE_STALL)
        return note_idle(recorder, span);
    int task = span->op >= 0 ? p->ops[span->op].task : -1;
    if (task < 0 || p->tasks == 0)
        return true;
    bool device = span->kind == SIMULATE_DEVICE;
    *record_place(recorder, device ? recorder->device : recorder->host, rank, task,
                  span->iteration) = (struct record_recorded){span->iteration, id};
    return !device || record_add_edges(recorder, rank, task, span->iteration, id);
}

static bool record_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                             int64_t finished_ns)
{
    struct recorder *recorder = context;
    const struct trace_iteration row = {rank, number, admitted_ns, finished_ns};
    return store_add_iteration(recorder->store, recorder->run, &row, recorder->diag) == STATUS_OK;
}

/* ---- begin and end --------------------------------------------------------------------------- */

void recorder_init(struct recorder *recorder, struct store *store, const struct plan *plan,
                   uint64_t seed, struct diag *diag)
{
    *recorder = (struct recorder){
        .store = store,
        .plan = plan,
        .seed = seed,
        .diag = diag,
        .run = -1,
        .observer = {.context = recorder, .span = record_span, .iteration = record_iteration},
    };
}

void recorder_fini(struct recorder *recorder)
{
    for (int s = 0; recorder->idle && s < recorder->stream_count; s++)
        stream_account_free(&recorder->idle[s]);
    free(recorder->idle);
    free(recorder->agents);
    free(recorder->device);
    free(recorder->host);
    recorder->idle = NULL;
    recorder->agents = NULL;
    recorder->device = recorder->host = NULL;
}

const struct simulate_observer *recorder_observer(const struct recorder *recorder)
{
    return &recorder->observer;
}

static enum status record_begin_run(struct recorder *recorder)
{
    static const enum run_driver drivers[] = {[DRIVER_NONE] = RUN_DRIVER_NONE,
                                              [DRIVER_CLOCK] = RUN_DRIVER_CLOCK,
                                              [DRIVER_DATAFLOW] = RUN_DRIVER_DATAFLOW};
    const struct program *p = recorder->program;
    struct arena arena;
    const char *text = "";
    arena_init(&arena, 0);
    enum status status = plan_kept_text_in(recorder->plan, &arena, &text, recorder->diag);
    const struct run_info info = {
        .kind = RUN_SIMULATED,
        .plan_name = recorder->plan->name,
        .plan_text = text,
        .device = "",
        .driver = drivers[p->driver],
        .ranks = p->ranks,
        .seed = recorder->seed,
        .iterations_wanted = p->tasks ? p->options.iterations : 0,
        .created_unix_s = (int64_t)time(NULL),
    };
    if (status == STATUS_OK)
        status = store_begin_run(recorder->store, &info, &recorder->run, recorder->diag);
    arena_fini(&arena);
    return status;
}

static enum status record_add_agent(struct recorder *recorder, int agent)
{
    const struct program *p = recorder->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    struct trace_agent row = {.rank = desc->rank, .position = desc->index};
    if (desc->kind == AGENT_STREAM) {
        row.kind = TRACE_STREAM;
        row.name = p->streams[desc->index].name;
    } else if (desc->kind == AGENT_THREAD && p->threads[desc->index].kind != THREAD_DRIVER) {
        row.kind = TRACE_THREAD;
        row.name = p->threads[desc->index].name;
    } else {
        return STATUS_OK; /* what takes no time has no lane */
    }
    return store_add_agent(recorder->store, recorder->run, &row, &recorder->agents[agent],
                           recorder->diag);
}

static enum status record_allocate(struct recorder *recorder)
{
    const struct program *p = recorder->program;
    recorder->ring = p->window + p->max_distance + 1;
    size_t places = (size_t)p->ranks * (size_t)p->tasks * (size_t)recorder->ring + 1;
    recorder->agents = calloc((size_t)p->agent_count, sizeof *recorder->agents);
    recorder->device = calloc(places, sizeof *recorder->device);
    recorder->host = calloc(places, sizeof *recorder->host);
    recorder->stream_count = p->stream_count;
    recorder->idle = calloc((size_t)p->stream_count + 1, sizeof *recorder->idle);
    if (!recorder->agents || !recorder->device || !recorder->host || !recorder->idle)
        return diag_no_memory(recorder->diag);
    for (size_t i = 0; i < places; i++)
        recorder->device[i].iteration = recorder->host[i].iteration = -1;
    return STATUS_OK;
}

enum status recorder_begin(void *context, const struct program *program, struct diag *diag)
{
    struct recorder *recorder = context;
    (void)diag; /* the recorder's own is the same */
    recorder->program = program;
    enum status status = record_allocate(recorder);
    if (status == STATUS_OK)
        status = record_begin_run(recorder);
    for (int agent = 0; status == STATUS_OK && agent < program->agent_count; agent++)
        status = record_add_agent(recorder, agent);
    return status;
}

static enum status add_figures(struct recorder *recorder, const struct prediction *prediction)
{
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"iteration_ns", prediction->iteration.mean},
        {"iteration_p99_ns", prediction->iteration.p99},
        {"fill_ns", prediction->fill_ns},
        {"drain_ns", prediction->drain_ns},
        {"bubble", prediction->bubble},
        {"in_flight_bytes_max", (double)prediction->in_flight_bytes_max},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof figures / sizeof *figures; i++)
        if (!isnan(figures[i].value))
            status = store_add_stat(recorder->store, recorder->run, figures[i].key,
                                    figures[i].value, recorder->diag);
    return status;
}

static enum status record_add_line(struct recorder *recorder, int stream, const struct blame *blame)
{
    const struct program *p = recorder->program;
    char words[2 * NAME], held[2 * NAME];
    ASSERT_INDEX(stream, p->stream_count);
    const int rank = p->streams[stream].rank;
    const struct trace_idle line = {
        .cause = stall_key(blame->stall.cause),
        .word = LEDGER_BY_MODEL,
        .waits_for = stall_waits_for(p, rank, &blame->stall, held, sizeof held),
        .words = stall_describe(p, rank, &blame->stall, words, sizeof words),
        .idle_ns = blame->ns,
    };
    return store_add_idle(recorder->store, recorder->run,
                          recorder->agents[program_stream_agent(p, stream)], &line, recorder->diag);
}

static enum status add_ledger(struct recorder *recorder)
{
    enum status status = STATUS_OK;
    for (int s = 0; status == STATUS_OK && s < recorder->program->stream_count; s++) {
        struct stream_account *idle = &recorder->idle[s];
        stream_account_finish(idle);
        for (int i = 0; status == STATUS_OK && i < idle->blame_count; i++)
            status = record_add_line(recorder, s, &idle->blames[i]);
    }
    return status;
}

enum status recorder_end(struct recorder *recorder, const struct prediction *prediction)
{
    if (recorder->run < 0)
        return STATUS_OK;
    if (!prediction)
        return store_end_run(recorder->store, recorder->run, RUN_INTERRUPTED, 0, recorder->diag);
    enum status status = add_figures(recorder, prediction);
    if (status == STATUS_OK)
        status = add_ledger(recorder);
    if (status != STATUS_OK)
        return status;
    return store_end_run(recorder->store, recorder->run, RUN_FINISHED,
                         prediction->total_ns / prediction->replications, recorder->diag);
}
