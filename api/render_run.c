/* SPDX-License-Identifier: Apache-2.0 */
/* render_run.c - see render_run.h. */
#include "render_run.h"

#include "sim/predict/explained.h"

enum { MAX_STEPS = 400000 /* that a picture takes through the machine */ };

/* The steps explain why streams were idle; a later part of a long run would need too many of them. */
static enum status add_stalls(struct store *store, struct trace *trace, struct diag *diag)
{
    int64_t first_ns, last_ns;
    enum status status = store_load_first_steps(store, trace, MAX_STEPS, diag);
    if (status != STATUS_OK || trace->step_count == 0)
        return status;
    trace_range(trace, &first_ns, &last_ns);
    if (trace->step_count == MAX_STEPS && trace->steps[MAX_STEPS - 1].time_ns < last_ns) {
        diag_note(diag,
                  "why streams were idle is not shown: that is found from the first %d steps of a "
                  "run, and these end before",
                  MAX_STEPS);
        return STATUS_OK;
    }
    return stalls_add(trace, diag);
}

enum status render_run_load(struct store *store, int64_t run, const struct run_part *part,
                            struct arena *arena, struct trace *out, struct diag *diag)
{
    enum status status =
        part->has_time ? store_load_time(store, run, part->from_ns, part->to_ns, arena, out, diag)
                       : store_load(store, run, part->from, part->to, arena, out, diag);
    if (status == STATUS_OK && out->info.kind == RUN_WITNESS)
        return store_load_steps(store, out, diag);
    if (status == STATUS_OK && stalls_known(&out->info))
        return add_stalls(store, out, diag);
    return status;
}
