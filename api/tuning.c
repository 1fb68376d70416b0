/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.c - see tuning.h. */
#include "tuning.h"

#include <inttypes.h>
#include <math.h>

#include "improve/diff.h"
#include "improve/tune_host.h"
#include "plan/coverage.h"
#include "base/units.h"

enum { CONTEXT = 3, MAX_PARTS = 12 };

/* ---- the work -------------------------------------------------------------------------------- */

enum status tuning_check(const struct tune *tune, struct diag *diag)
{
    const char *name = tune->given.name;
    if (tune->verdict != VERDICT_PROVED)
        diag_warn(diag, "%s is %s as given: only proved plans are kept", name,
                  verdict_key(tune->verdict));
    coverage_warn(&tune->given, diag);
    if (tune->options->memory_bytes >= 0 && tune->iteration_bytes + tune->shared_bytes == 0)
        diag_warn(diag, "%s gives no buffer a size: --memory limits nothing", name);
    if (tune->has_view || tune->options->allow_stale)
        return STATUS_OK;
    diag_error(diag, STATUS_VIOLATED, "%s hangs: its results are unknown", tune->given.name);
    diag_note(diag, "'swsim verify --fix=FILE' repairs it; --allow-stale accepts other results");
    return STATUS_VIOLATED;
}

/* The search proves plans in memory; this is the proof of the printed plan. */
static enum status check_result(const struct tuning *o, struct diag *diag)
{
    if (!o->better || o->after.verdict == VERDICT_PROVED)
        return STATUS_OK;
    return diag_error(diag, STATUS_LIMIT, "%s: the tuned plan is %s when read again", o->name,
                      verdict_key(o->after.verdict));
}

static enum status tuning_compare(struct tune *tune, struct arena *arena, struct tuning *o,
                                  struct diag *diag)
{
    o->changes = tune_describe(tune, arena);
    o->diff = diff_unified(o->before.text, o->after.text, CONTEXT, arena);
    return o->changes && o->diff ? check_result(o, diag) : diag_no_memory(diag);
}

enum status tuning_make(struct tune *tune, struct arena *arena, struct tuning *out,
                        struct diag *diag)
{
    struct tuning o = {.name = tune->given.name,
                       .driver = tune->options->driver,
                       .seed = tune->options->seed,
                       .exact = tune->exact};
    enum status status = tune_search(tune, diag);
    if (status != STATUS_OK)
        return status;
    o.counts = tune->counts;
    o.better = tune_found(tune);
    o.interrupted = tune_is_interrupted(tune);
    o.unfit = !o.better && tune->first_score.unfit;
    if (tune_is_interrupted(tune))
        diag_warn(diag, "%s: interrupted: this is the best candidate so far", tune->given.name);
    status = tune_examine(tune, tune->first, &o.before, diag);
    if (status != STATUS_OK)
        return status;
    status = tune_examine(tune, tune->best, &o.after, diag);
    if (status != STATUS_OK) {
        tune_result_fini(&o.before);
        return status;
    }
    status = tuning_compare(tune, arena, &o, diag);
    if (status == STATUS_OK)
        *out = o;
    else
        tuning_fini(&o);
    return status;
}

enum status tuning_make_host(const struct plan *plan, const struct tune_options *options,
                             struct arena *arena, struct tuning *out, struct diag *diag)
{
    struct tune_host found;
    coverage_warn(plan, diag);
    enum status status = tune_host(plan, options, arena, &found, diag);
    if (status != STATUS_OK)
        return status;
    if (found.interrupted)
        diag_warn(diag, "%s: interrupted: this is the best candidate so far", plan->name);
    *out =
        (struct tuning){.name = found.before.plan.name,
                        .driver = DRIVER_NONE,
                        .seed = options->seed,
                        .counts = found.counts,
                        .before = found.before,
                        .after = found.after,
                        .changes = found.changes,
                        .diff = diff_unified(found.before.text, found.after.text, CONTEXT, arena),
                        .better = found.better,
                        .interrupted = found.interrupted,
                        .unfit = found.unfit};
    if (out->diff)
        return STATUS_OK;
    tuning_fini(out);
    return diag_no_memory(diag);
}

void tuning_fini(struct tuning *tuning)
{
    tune_result_fini(&tuning->before);
    tune_result_fini(&tuning->after);
}

/* ---- as text --------------------------------------------------------------------------------- */

static const char *tuning_show_time(double ns, char out[UNITS_TEXT])
{
    if (!isfinite(ns))
        return "unknown";
    units_show_time(ns, out);
    return out;
}

static const char *tuning_show_bytes(int64_t bytes, char out[UNITS_TEXT])
{
    units_show_bytes((double)bytes, out);
    return out;
}

/* The tasks of the critical cycle, which limits the period, in order of time. */
static void tuning_print_cycle(const char *what, const struct tune_result *result, FILE *out)
{
    const struct steady *steady = &result->steady;
    if (steady->kind != STEADY_EXACT || steady->part_count == 0)
        return;
    fprintf(out, "  %-18s", what);
    const int turn = steady_turn(steady);
    for (int i = 0; i < turn && i < MAX_PARTS; i++) {
        const struct steady_part *part = &steady->parts[i];
        const char *name =
            part->kind == EVENT_DRIVER ? "driver" : result->plan.pipeline.tasks[part->task].name;
        fprintf(out, "%s%s%s", i ? " -> " : "", part->kind == EVENT_HOST ? "launch of " : "", name);
    }
    fprintf(out, "%s\n", turn > MAX_PARTS ? " -> ..." : "");
}

static void print_table(const struct tuning *o, FILE *out)
{
    const struct tune_result *a = &o->before, *b = &o->after;
    char x[UNITS_TEXT], y[UNITS_TEXT];
    fprintf(out, "  %-18s%-12s%s\n", "", "before", "after");
    fprintf(out, "  %-18s%-12s%s", "verdict", verdict_key(a->verdict), verdict_key(b->verdict));
    fprintf(out, "\n  %-18s%-12s%s",
            o->driver == DRIVER_NONE ? "total"
            : o->exact               ? "iteration"
                                     : "iteration, about",
            tuning_show_time(a->period_ns, x), tuning_show_time(b->period_ns, y));
    if (o->better && a->period_ns > b->period_ns)
        fprintf(out, "  (%.1f%% less)", 100 * (1 - b->period_ns / a->period_ns));
    fputc('\n', out);
    if (o->driver == DRIVER_NONE) {
        fprintf(out, "  %-18s%-12d%d\n", "new streams", a->streams, b->streams);
        return;
    }
    fprintf(out, "  %-18s%-12d%d\n", "depth", a->depth, b->depth);
    fprintf(out, "  %-18s%-12d%d\n", "in flight at most", a->in_flight, b->in_flight);
    fprintf(out, "  %-18s%-12s%s\n", "  bytes of a rank", tuning_show_bytes(a->bytes, x),
            tuning_show_bytes(b->bytes, y));
    fprintf(out, "  %-18s%-12d%d\n", "streams", a->streams, b->streams);
    fprintf(out, "  %-18s%-12d%d\n", "thread groups", a->groups, b->groups);
    tuning_print_cycle("limited by", a, out);
    if (o->better)
        tuning_print_cycle("after that by", b, out);
}

void tuning_print(const struct tuning *o, bool quiet, FILE *out)
{
    const struct tune_counts *counts = &o->counts;
    fputs(o->name, out);
    if (o->driver != DRIVER_NONE)
        fprintf(out, ", %s driver", driver_key(o->driver));
    fputs("\n\n", out);
    print_table(o, out);
    fprintf(out, "  %-18s%" PRIu64 " candidate%s: %" PRIu64 " proved, %" PRIu64 " predicted",
            "tried", counts->tried, units_plural(counts->tried), counts->proved, counts->predicted);
    if (counts->stale)
        fprintf(out, ", %" PRIu64 " faster %s other results", counts->stale,
                counts->stale == 1 ? "one has" : "ones have");
    fputc('\n', out);
    if (!o->better) {
        fprintf(out, "\n%s\n",
                o->unfit ? "no candidate is proved and within the limits"
                         : "no candidate is better than the plan");
        return;
    }
    fprintf(out, "\nchanges\n");
    for (const char **change = o->changes; *change; change++)
        fprintf(out, "  %s\n", *change);
    if (!quiet)
        fprintf(out, "\n--- %s\n+++ tuned.yaml\n%s", o->name, o->diff);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_result(struct json *json, const char *key, const struct tune_result *result)
{
    json_begin_object_at(json, key);
    json_put_string(json, "verdict", verdict_key(result->verdict));
    json_put_double(json, "period_ns", result->period_ns);
    json_put_int(json, "depth", result->depth);
    json_put_int(json, "in_flight_max", result->in_flight);
    json_put_int(json, "bytes", result->bytes);
    json_put_int(json, "streams", result->streams);
    json_put_int(json, "thread_groups", result->groups);
    json_begin_array_at(json, "critical_cycle");
    for (int i = 0; result->steady.kind == STEADY_EXACT && i < result->steady.part_count; i++) {
        const struct steady_part *part = &result->steady.parts[i];
        json_string(json, part->kind == EVENT_DRIVER
                              ? "driver"
                              : result->plan.pipeline.tasks[part->task].name);
    }
    json_end_array(json);
    json_end_object(json);
}

void tuning_write(const struct tuning *o, struct json *json)
{
    json_begin_document(json, DOCUMENT_TUNING);
    json_put_string(json, "plan", o->name);
    json_put_string(json, "driver", driver_key(o->driver));
    json_put_int(json, "seed", (int64_t)o->seed);
    json_put_bool(json, "exact", o->exact);
    json_put_bool(json, "better", o->better);
    json_put_bool(json, "interrupted", o->interrupted);
    json_put_int(json, "candidates", (int64_t)o->counts.tried);
    json_put_int(json, "proved", (int64_t)o->counts.proved);
    json_put_int(json, "predicted", (int64_t)o->counts.predicted);
    json_put_int(json, "stale", (int64_t)o->counts.stale);
    write_result(json, "before", &o->before);
    write_result(json, "after", &o->after);
    json_begin_array_at(json, "changes");
    for (const char **change = o->changes; *change; change++)
        json_string(json, *change);
    json_end_array(json);
    json_put_string(json, "diff", o->diff);
    json_end_object(json);
}
