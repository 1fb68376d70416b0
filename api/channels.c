/* SPDX-License-Identifier: Apache-2.0 */
/* channels.c - see channels.h. */
#include "channels.h"

#include <math.h>
#include <string.h>

#include "improve/found.h"
#include "plan/coverage.h"
#include "base/json.h"
#include "plan/keywords.h"
#include "base/units.h"

static const struct channel_row channels[CHANNELS] = {
    {.fifo = FIFO_RANK, .who = "PyTorch's schedules: batch_isend_irecv, a message each"},
    {.fifo = FIFO_RANK, .batch = true, .who = "the same, neighbouring messages in one batch"},
    {.fifo = FIFO_PAIR, .who = "isend and irecv without a batch; Megatron: overlap_p2p_comm"},
    {.fifo = FIFO_PAIR, .batch = true, .who = "a batch for each peer"},
    {.fifo = FIFO_EDGE, .who = "Megatron: the same on two ranks"},
    {.fifo = FIFO_DIRECTION, .who = "a process group forward, one backward"},
};

static enum status refuse_others(const struct plan *plan, struct diag *diag)
{
    if (plan->form == FORM_PROGRAMS)
        return STATUS_OK;
    return diag_error(diag, STATUS_USAGE,
                      "%s: found --p2p, but only rank programs have channels of messages",
                      plan->file);
}

bool channels_parse(const char *word, int *out)
{
    for (int i = 0; keywords_fifo[i]; i++)
        if (strcmp(keywords_fifo[i], word) == 0) {
            *out = i;
            return true;
        }
    *out = CHANNELS_ALL;
    return strcmp(word, "all") == 0;
}

enum status channels_choose(struct plan *plan, int choice, struct diag *diag)
{
    if (choice == CHANNELS_NOT_GIVEN)
        return STATUS_OK;
    enum status status = refuse_others(plan, diag);
    if (status == STATUS_OK && choice != CHANNELS_ALL)
        plan->programs.fifo = (enum fifo_rule)choice;
    return status;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static enum status channels_judge(const struct plan *plan, const struct verify_options *options,
                                  struct channel_row *row, struct diag *diag)
{
    struct verify_report report;
    struct verify_options quick = *options;
    quick.quick = true;
    quick.program.driver = DRIVER_NONE;
    enum status status = verify_plan(plan, &quick, &report, diag);
    if (status != STATUS_OK)
        return status;
    row->verdict = report.verdict;
    row->violated = report.verdict == VERDICT_VIOLATED ? property_key(report.first) : NULL;
    verify_fini(&report);
    return STATUS_OK;
}

static enum status channels_measure(const struct plan *plan, const struct predict_options *options,
                                    struct channel_row *row, struct diag *diag)
{
    struct prediction prediction;
    struct predict_options one = *options;
    one.program.driver = DRIVER_NONE;
    one.exposed = EXPOSED_NEVER;
    enum status status = predict(plan, &one, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    const struct pipeline_figures *figures = prediction.pipeline;
    const struct rank_figures *longest = &figures->ranks[figures->longest];
    row->hangs = prediction.blocked_count > 0;
    row->makespan_ns = row->hangs ? NAN : prediction.makespan_ns;
    row->span_ns = row->hangs ? NAN : (double)(longest->last_ns - longest->first_ns);
    row->rate = 1 - (double)longest->busy_ns / row->span_ns;
    prediction_fini(&prediction);
    return STATUS_OK;
}

static enum status make_row(const struct plan *plan, const struct verify_options *verify,
                            const struct predict_options *predict, struct found_memo *memo,
                            struct channel_row *row, struct diag *diag)
{
    struct plan under = *plan; /* everything else is shared */
    struct arena arena;
    under.programs.fifo = row->fifo;
    under.programs.batch = row->batch;
    arena_init(&arena, 0);
    enum status status = found_resolve_with(&under, &arena, memo, NULL, diag);
    if (status == STATUS_OK)
        status = channels_judge(&under, verify, row, diag);
    if (status == STATUS_OK)
        status = channels_measure(&under, predict, row, diag);
    arena_fini(&arena);
    return status;
}

enum status channels_compare(const struct plan *plan, const struct verify_options *verify,
                             const struct predict_options *predict,
                             struct channel_row rows[CHANNELS], struct diag *diag)
{
    struct found_memo memo = {0};
    enum status status = refuse_others(plan, diag);
    if (status == STATUS_OK)
        status = found_memo_open(&memo, diag);
    for (int i = 0; status == STATUS_OK && i < CHANNELS; i++) {
        rows[i] = channels[i];
        status = make_row(plan, verify, predict, &memo, &rows[i], diag);
    }
    found_memo_close(&memo);
    if (status == STATUS_OK)
        coverage_warn(plan, diag);
    return status;
}

enum verdict channels_verdict(const struct channel_row rows[CHANNELS])
{
    enum verdict worst = VERDICT_PROVED;
    for (int i = 0; i < CHANNELS; i++)
        if (rows[i].violated)
            return VERDICT_VIOLATED;
        else if (rows[i].verdict == VERDICT_UNDECIDED)
            worst = VERDICT_UNDECIDED;
    return worst;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void channels_print_row(const struct plan *plan, const struct channel_row *row, FILE *out)
{
    char total[UNITS_TEXT] = "hangs", span[UNITS_TEXT] = "-", rate[UNITS_TEXT] = "-";
    bool own = row->fifo == plan->programs.fifo && row->batch == plan->programs.batch;
    if (!row->hangs) {
        units_show_time(row->makespan_ns, total);
        units_show_time(row->span_ns, span);
        if (!isnan(row->rate))
            snprintf(rate, sizeof rate, "%.2f%%", 100 * row->rate);
    }
    fprintf(out, "%c %-10s %-6s %-11s %9s  %9s  %7s  %s\n", own ? '*' : ' ',
            keywords_fifo[row->fifo], row->batch ? "batch" : "",
            row->violated ? row->violated : verdict_key(row->verdict), total, span, rate, row->who);
}

void channels_print(const struct plan *plan, const struct channel_row rows[CHANNELS], FILE *out)
{
    fprintf(out, "%s\n\n  %-10s %-6s %-11s %9s  %9s  %7s  %s\n", plan->name, "channel", "",
            "verdict", "total", "span", "bubble", "in the field");
    for (int i = 0; i < CHANNELS; i++)
        channels_print_row(plan, &rows[i], out);
}

static void channels_write_row(const struct channel_row *row, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "fifo", keywords_fifo[row->fifo]);
    json_put_bool(json, "batch", row->batch);
    json_put_string(json, "verdict", verdict_key(row->verdict));
    if (row->violated)
        json_put_string(json, "violated", row->violated);
    json_put_bool(json, "hangs", row->hangs);
    json_put_double(json, "makespan_ns", row->makespan_ns);
    json_put_double(json, "span_ns", row->span_ns);
    json_put_double(json, "bubble_rate", row->rate);
    json_end_object(json);
}

void channels_write(const struct plan *plan, const struct channel_row rows[CHANNELS],
                    struct json *json)
{
    json_begin_document(json, DOCUMENT_CHANNELS);
    json_put_string(json, "plan", plan->name);
    json_begin_array_at(json, "p2p");
    for (int i = 0; i < CHANNELS; i++)
        channels_write_row(&rows[i], json);
    json_end_array(json);
    json_end_object(json);
}
