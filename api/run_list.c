/* SPDX-License-Identifier: Apache-2.0 */
/* run_list.c - see run_list.h. */
#include "run_list.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/sort.h"
#include "base/units.h"
#include "sim/predict/explained.h"

/* ---- all runs -------------------------------------------------------------------------------- */

static void run_list_write_run(const struct store_run *run, void *context)
{
    struct json *json = context;
    const struct run_info *info = &run->info;
    json_begin_document(json, DOCUMENT_RUN);
    json_put_int(json, "run", run->id);
    json_put_string(json, "plan", info->plan_name);
    json_put_string(json, "kind", run_kind_text(info->kind));
    json_put_string(json, "driver", run_driver_text(info->driver));
    json_put_string(json, "device", info->device);
    json_put_int(json, "ranks", info->ranks);
    json_put_int(json, "seed", (int64_t)info->seed);
    json_put_int(json, "iterations", run->iterations);
    json_put_int(json, "spans", run->spans);
    json_put_int(json, "created_unix_s", info->created_unix_s);
    json_put_int(json, "duration_ns", info->duration_ns);
    json_put_string(json, "state", run_finished_text(info->finished));
    json_put_string(json, "note", info->note);
    json_end_object(json);
}

struct run_list_list {
    FILE *out;
    size_t count;
};

/* The description of the host device is the same on every machine; that of a GPU names it. */
static bool run_list_is_host(const char *device)
{
    return strncmp(device, "host:", strlen("host:")) == 0;
}

/* The device and the end of a run behind its columns: "(host, interrupted)", "(cuda: NVIDIA H100 80GB HBM3, ...)". A witness
   never ran, so it has no end. */
static void run_list_print_aside(const struct run_info *info, FILE *out)
{
    const char *device = info->device && *info->device ? info->device : "";
    const bool ended = info->kind == RUN_WITNESS || info->finished == RUN_FINISHED;
    const char *state = ended ? "" : run_finished_text(info->finished);
    if (*device || *state)
        fprintf(out, " (%.*s%s%s)", run_list_is_host(device) ? (int)strcspn(device, ":") : INT_MAX,
                device, *device && *state ? ", " : "", state);
}

/* The table's head is printed with its first row. */
static void run_list_print_run(const struct store_run *run, void *context)
{
    struct run_list_list *list = context;
    const struct run_info *info = &run->info;
    char duration[UNITS_TEXT + 32], created[32] = "-";
    const bool witness = info->kind == RUN_WITNESS;
    struct tm when;
    time_t seconds = (time_t)info->created_unix_s;
    if (gmtime_r(&seconds, &when))
        strftime(created, sizeof created, "%Y-%m-%d %H:%M", &when);
    if (witness)
        snprintf(duration, sizeof duration, "%" PRId64 " step%s", info->duration_ns,
                 units_plural((size_t)info->duration_ns));
    else
        units_show_time((double)info->duration_ns, duration);
    if (list->count++ == 0)
        fprintf(list->out, "%4s  %-16s  %-9s  %-8s  %5s  %10s  %8s  %s\n", "Run", "Created (UTC)",
                "Kind", "Driver", "Ranks", "Iterations", "Duration", "Plan");
    fprintf(list->out, "%4" PRId64 "  %-16s  %-9s  %-8s  %5d  %10" PRId64 "  %8s  %s%s%s", run->id,
            created, run_kind_text(info->kind), run_driver_text(info->driver), info->ranks,
            run->iterations, duration, info->plan_name, witness && info->note ? ", " : "",
            witness && info->note ? info->note : "");
    run_list_print_aside(info, list->out);
    fputc('\n', list->out);
}

enum status run_list_print(struct store *store, FILE *out, size_t *count, struct diag *diag)
{
    struct run_list_list list = {.out = out};
    enum status status = store_list_runs(store, run_list_print_run, &list, diag);
    *count = list.count;
    return status;
}

enum status run_list_write(struct store *store, struct json *json, struct diag *diag)
{
    return store_list_runs(store, run_list_write_run, json, diag);
}

/* ---- the ledger of a run --------------------------------------------------------------------- */

static int64_t idle_of(const struct trace *trace, int agent)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->idle_count; i++)
        sum += trace->idles[i].agent == agent ? trace->idles[i].idle_ns : 0;
    return sum;
}

static int64_t busy_of(const struct trace *trace, int agent)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].agent == agent && trace->spans[i].kind == SPAN_DEVICE)
            sum += trace->spans[i].end_ns - trace->spans[i].start_ns;
    return sum;
}

static int by_agent_and_time(const void *left, const void *right)
{
    const struct trace_idle *a = left, *b = right;
    return compare_then(compare_int(a->agent, b->agent), compare_i64(b->idle_ns, a->idle_ns));
}

static void run_list_print_stream(const struct trace *trace, int agent, FILE *out)
{
    char busy[UNITS_TEXT], idle[UNITS_TEXT];
    units_show_time((double)busy_of(trace, agent), busy);
    units_show_time((double)idle_of(trace, agent), idle);
    fprintf(out, "rank %d stream %s: busy %s, idle %s\n", trace->agents[agent].rank,
            trace->agents[agent].name, busy, idle);
}

void run_ledger_print(const struct trace *trace, FILE *out)
{
    int agent = -1;
    for (size_t i = 0; i < trace->idle_count; i++) {
        const struct trace_idle *line = &trace->idles[i];
        char idle[UNITS_TEXT];
        if (line->agent != agent)
            run_list_print_stream(trace, line->agent, out);
        agent = line->agent;
        units_show_time((double)line->idle_ns, idle);
        fprintf(out, "  %10s  %-12s  by %-10s  %s\n", idle, line->cause, line->word, line->words);
    }
}

void run_ledger_write(const struct trace *trace, struct json *json)
{
    json_begin_document(json, DOCUMENT_LEDGER);
    json_put_int(json, "run", trace->run);
    json_begin_array_at(json, "ledger");
    for (size_t i = 0; i < trace->idle_count; i++) {
        const struct trace_idle *line = &trace->idles[i];
        json_begin_object(json);
        json_put_int(json, "rank", trace->agents[line->agent].rank);
        json_put_string(json, "stream", trace->agents[line->agent].name);
        json_put_string(json, "cause", line->cause);
        json_put_string(json, "word", line->word);
        json_put_string(json, "waits_for", line->waits_for);
        json_put_string(json, "words", line->words);
        json_put_int(json, "idle_ns", line->idle_ns);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* The runs of a store that may have a ledger, oldest first. */
struct explained_runs {
    const struct store *store;
    int64_t *ids;
    size_t count, cap;
    bool no_memory;
};

static void note_run(const struct store_run *run, void *context)
{
    struct explained_runs *runs = context;
    if (runs->no_memory || run->info.kind == RUN_WITNESS ||
        (!stalls_known(&run->info) && !store_has_ledgers(runs->store)))
        return;
    runs->no_memory = !ARRAY_GROW(runs->ids, runs->count, runs->cap);
    if (!runs->no_memory)
        runs->ids[runs->count++] = run->id;
}

/* The newest run with a ledger; without a line where there is none. */
static enum status load_newest(struct store *store, struct arena *arena, struct trace *out,
                               struct diag *diag)
{
    struct explained_runs runs = {.store = store};
    enum status status = store_list_runs(store, note_run, &runs, diag);
    if (status == STATUS_OK && runs.no_memory)
        status = diag_no_memory(diag);
    *out = (struct trace){0};
    while (status == STATUS_OK && out->idle_count == 0 && runs.count > 0)
        status = explained_load(store, runs.ids[--runs.count], arena, out, diag);
    free(runs.ids);
    return status;
}

enum status run_ledger_load(struct store *store, int64_t run, struct arena *arena,
                            struct trace *out, struct diag *diag)
{
    enum status status = run == STORE_LATEST ? load_newest(store, arena, out, diag)
                                             : explained_load(store, run, arena, out, diag);
    if (status != STATUS_OK)
        return status;
    if (out->idle_count == 0)
        return run == STORE_LATEST
                   ? diag_error(diag, STATUS_INPUT,
                                "no run has a ledger of why its streams were idle")
                   : diag_error(diag, STATUS_INPUT,
                                "run %" PRId64 " has no ledger of why its streams were idle", run);
    qsort(out->idles, out->idle_count, sizeof *out->idles, by_agent_and_time);
    return STATUS_OK;
}
