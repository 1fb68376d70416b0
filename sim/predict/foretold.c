/* SPDX-License-Identifier: Apache-2.0 */
/* foretold.c - see foretold.h. */
#include "foretold.h"

#include "span_words.h"
#include "trace/trace.h"

enum { NAME = 320 };

struct foreteller {
    struct trace *trace;
    const struct program *program;
    struct diag *diag;
    int *agents; /* the trace's number of each stream */
};

static bool foretold_no_memory(struct foreteller *teller)
{
    diag_no_memory(teller->diag);
    return false;
}

static bool foretold_add_wait(struct foreteller *teller, const struct simulate_span *span,
                              struct trace_span *row)
{
    const struct program *p = teller->program;
    char words[NAME], held[NAME];
    const int rank = p->agents[span->agent].rank;
    row->kind = SPAN_WAIT;
    row->cause = stall_describe(p, rank, &span->stall, words, sizeof words);
    const struct trace_idle line = {
        .agent = row->agent,
        .cause = stall_key(span->stall.cause),
        .word = LEDGER_BY_MODEL,
        .waits_for = stall_waits_for(p, rank, &span->stall, held, sizeof held),
        .words = row->cause,
        .idle_ns = row->end_ns - row->start_ns,
    };
    return trace_add_span(teller->trace, row) >= 0 && trace_add_idle(teller->trace, &line);
}

static bool foretold_add_span(void *context, const struct simulate_span *span)
{
    struct foreteller *teller = context;
    const struct program *p = teller->program;
    char name[NAME];
    if (p->agents[span->agent].kind != AGENT_STREAM)
        return true;
    struct trace_span row = {
        .agent = teller->agents[p->agents[span->agent].index],
        .kind = SPAN_DEVICE,
        .iteration = span_iteration(p, span),
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
    };
    if (span->kind == SIMULATE_STALL)
        return foretold_add_wait(teller, span, &row) || foretold_no_memory(teller);
    row.task = span_task(p, span, name, sizeof name);
    return trace_add_span(teller->trace, &row) >= 0 || foretold_no_memory(teller);
}

static bool add_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                          int64_t finished_ns)
{
    struct foreteller *teller = context;
    const struct trace_iteration row = {rank, number, admitted_ns, finished_ns};
    return trace_add_iteration(teller->trace, &row) >= 0 || foretold_no_memory(teller);
}

static enum status foretold_begin(void *context, const struct program *program, struct diag *diag)
{
    struct foreteller *teller = context;
    teller->program = program;
    teller->agents = ARENA_ARRAY(teller->trace->arena, (size_t)program->stream_count + 1, int);
    for (int s = 0; teller->agents && s < program->stream_count; s++) {
        teller->agents[s] = trace_add_agent(teller->trace, program->streams[s].rank, TRACE_STREAM,
                                            program->streams[s].name, s);
        if (teller->agents[s] < 0)
            return diag_no_memory(diag);
    }
    return teller->agents ? STATUS_OK : diag_no_memory(diag);
}

static enum status foretold_finish(struct trace *trace, const struct plan *plan,
                                   const struct prediction *prediction, struct diag *diag)
{
    if (prediction->blocked_count)
        return diag_error(diag, STATUS_INPUT,
                          "%s: the predicted run comes to a deadlock, and has nothing to compare "
                          "('swsim verify' shows how)",
                          plan->name);
    const struct run_info info = {.kind = RUN_SIMULATED,
                                  .plan_name = plan->name,
                                  .device = "",
                                  .driver = RUN_DRIVER_NONE,
                                  .ranks = prediction->program->ranks,
                                  .duration_ns = prediction->total_ns,
                                  .finished = RUN_FINISHED};
    return trace_set_info(trace, &info) && trace_sort(trace) ? STATUS_OK : diag_no_memory(diag);
}

enum status foretell(const struct plan *plan, const struct program_options *options, uint64_t seed,
                     struct arena *arena, struct trace *out, bool *varies, struct diag *diag)
{
    struct prediction prediction;
    trace_init(out, arena);
    struct foreteller teller = {.trace = out, .diag = diag};
    const struct simulate_observer observer = {
        .context = &teller, .span = foretold_add_span, .iteration = add_iteration};
    const struct predict_options wanted = {.program = *options,
                                           .seed = seed,
                                           .replications = 1,
                                           .threads = 1,
                                           .exposed = EXPOSED_NEVER,
                                           .observer = &observer,
                                           .begin = foretold_begin};
    /* the observer's context is that of `begin`, too */
    enum status status = predict(plan, &wanted, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    status = foretold_finish(out, plan, &prediction, diag);
    *varies = prediction.timing.draw_count > 0;
    prediction_fini(&prediction);
    return status;
}

/* Another run of the same plan. */
static enum status foretold_add_run(const struct plan *plan, const struct program_options *options,
                                    uint64_t seed, int runs, struct arena *arena,
                                    struct run_account *sum, struct diag *diag)
{
    struct trace trace;
    struct run_account further;
    bool varies;
    enum status status = foretell(plan, options, seed, arena, &trace, &varies, diag);
    if (status == STATUS_OK)
        status = account_make(&trace, sum->by_steps, &further, diag);
    if (status == STATUS_OK && !account_add(sum, runs, &further, arena))
        status = diag_no_memory(diag);
    return status;
}

enum status foretell_more(const struct plan *plan, const struct program_options *options,
                          uint64_t seed, int replications, struct arena *arena,
                          struct run_account *sum, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 1; status == STATUS_OK && i < replications; i++)
        status = foretold_add_run(plan, options, seed + (uint64_t)i, i, arena, sum, diag);
    return status;
}
