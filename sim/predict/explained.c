/* SPDX-License-Identifier: Apache-2.0 */
/* explained.c - see explained.h. */
#include "explained.h"

#include <inttypes.h>

#include "sim/engine/observe.h"
#include "trace/trace.h"
#include "profile.h"
#include "measured_program.h"
#include "base/assert_index.h"

enum { TEXT = 320 };

struct measured_stalls {
    struct trace *trace;
    const struct program *program;
    struct diag *diag;
};

bool stalls_known(const struct run_info *info)
{
    return info->kind == RUN_MEASURED && info->finished == RUN_FINISHED &&
           info->driver != RUN_DRIVER_NONE && !profile_is_serial(info) && info->plan_text &&
           *info->plan_text;
}

/* An observe_watcher. */
static bool add_stall(void *context, int stream, int64_t start_ns, int64_t end_ns,
                      const struct stall *stall)
{
    struct measured_stalls *stalls = context;
    ASSERT_INDEX(stream, stalls->program->stream_count);
    const struct stream_desc *desc = &stalls->program->streams[stream];
    char cause[TEXT], held[TEXT];
    const struct trace_span span = {
        .agent = trace_find_agent(stalls->trace, desc->rank, TRACE_STREAM, desc->name),
        .kind = SPAN_WAIT,
        .iteration = -1,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .cause = stall_describe(stalls->program, desc->rank, stall, cause, sizeof cause),
    };
    const struct trace_idle line = {
        .agent = span.agent,
        .cause = stall_key(stall->cause),
        .word = LEDGER_BY_MODEL,
        .waits_for = stall_waits_for(stalls->program, desc->rank, stall, held, sizeof held),
        .words = span.cause,
        .idle_ns = end_ns - start_ns,
    };
    if (span.agent < 0 ||
        (trace_add_span(stalls->trace, &span) >= 0 && trace_add_idle(stalls->trace, &line)))
        return true;
    diag_no_memory(stalls->diag);
    return false;
}

enum status stalls_add(struct trace *trace, struct diag *diag)
{
    struct measured_program measured;
    struct observed observed;
    if (trace->step_count == 0)
        return STATUS_OK;
    enum status status = measured_program_open(&measured, trace, diag);
    if (status != STATUS_OK)
        return status;
    struct measured_stalls stalls = {trace, measured.program, diag};
    if (!trace_drop_waits(trace, TRACE_STREAM))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status = observe(measured.program, trace, add_stall, &stalls, &observed, diag);
    if (status == STATUS_OK) {
        observed_fini(&observed);
        status = trace_sort(trace) ? STATUS_OK : diag_no_memory(diag);
    }
    measured_program_close(&measured);
    return status;
}

enum status explained_load(struct store *store, int64_t run, struct arena *arena, struct trace *out,
                           struct diag *diag)
{
    enum status status = store_load(store, run, STORE_ALL, STORE_ALL, arena, out, diag);
    if (status != STATUS_OK)
        return status;
    if (stalls_known(&out->info)) {
        status = store_load_steps(store, out, diag);
        return status == STATUS_OK ? stalls_add(out, diag) : status;
    }
    if (!store_has_ledgers(store))
        diag_note(diag,
                  "run %" PRId64 ": why its streams were idle is not known: the store has an older "
                  "schema, without ledgers",
                  out->run);
    return STATUS_OK;
}
