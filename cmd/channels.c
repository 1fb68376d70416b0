/* SPDX-License-Identifier: Apache-2.0 */
/* channels.c - see channels.h. */
#include "channels.h"

#include <math.h>

#include "plan/coverage.h"
#include "plan/json.h"
#include "plan/keywords.h"
#include "plan/units.h"

/* The verdict and the figures of the plan under one channel. */
struct channel_row {
    enum fifo_rule fifo;
    bool batch;
    const char *who; /* does it so */
    enum verdict verdict;
    const char *violated; /* a property; NULL: none */
    bool hangs;
    double makespan_ns, span_ns, rate; /* NAN: it hangs */
};

static const struct channel_row channels[] = {
    {.fifo = FIFO_RANK, .who = "PyTorch's schedules: batch_isend_irecv, a message each"},
    {.fifo = FIFO_RANK, .batch = true, .who = "the same, neighbouring messages in one batch"},
    {.fifo = FIFO_PAIR, .who = "isend and irecv without a batch; Megatron: overlap_p2p_comm"},
    {.fifo = FIFO_PAIR, .batch = true, .who = "a batch for each peer"},
    {.fifo = FIFO_EDGE, .who = "Megatron: the same on two ranks"},
    {.fifo = FIFO_DIRECTION, .who = "a process group forward, one backward"},
};

enum { CHANNELS = sizeof channels / sizeof channels[0] };

static enum status refuse_others(struct app *app, const struct plan *plan)
{
    if (plan->form == FORM_PROGRAMS)
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE,
                      "%s: found --p2p, but only rank programs have channels of messages",
                      plan->file);
}

enum status channels_choose(struct app *app, struct plan *plan, int choice)
{
    if (choice == CHANNELS_NOT_GIVEN)
        return STATUS_OK;
    enum status status = refuse_others(app, plan);
    if (status == STATUS_OK && choice != CHANNELS_ALL)
        plan->programs.fifo = (enum fifo_rule)choice;
    return status;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static enum status judge(struct app *app, const struct plan *plan,
                         const struct verify_options *options, struct channel_row *row)
{
    struct verify_report report;
    struct verify_options quick = *options;
    quick.quick = true;
    quick.program.driver = DRIVER_NONE;
    enum status status = verify_plan(plan, &quick, &report, &app->diag);
    if (status != STATUS_OK)
        return status;
    row->verdict = report.verdict;
    row->violated = report.verdict == VERDICT_VIOLATED ? property_key(report.first) : NULL;
    verify_fini(&report);
    return STATUS_OK;
}

static enum status measure(struct app *app, const struct plan *plan,
                           const struct predict_options *options, struct channel_row *row)
{
    struct prediction prediction;
    struct predict_options one = *options;
    one.program.driver = DRIVER_NONE;
    one.exposed = EXPOSED_NEVER;
    enum status status = predict(plan, &one, &prediction, &app->diag);
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

static enum status make_row(struct app *app, const struct plan *plan,
                            const struct verify_options *verify,
                            const struct predict_options *predict, struct channel_row *row)
{
    struct plan under = *plan; /* everything else is shared */
    under.programs.fifo = row->fifo;
    under.programs.batch = row->batch;
    enum status status = judge(app, &under, verify, row);
    return status == STATUS_OK ? measure(app, &under, predict, row) : status;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_row(const struct plan *plan, const struct channel_row *row)
{
    char total[UNITS_TEXT] = "hangs", span[UNITS_TEXT] = "-", rate[UNITS_TEXT] = "-";
    bool own = row->fifo == plan->programs.fifo && row->batch == plan->programs.batch;
    if (!row->hangs) {
        units_show_time(row->makespan_ns, total);
        units_show_time(row->span_ns, span);
        if (!isnan(row->rate))
            snprintf(rate, sizeof rate, "%.2f%%", 100 * row->rate);
    }
    printf("%c %-10s %-6s %-11s %9s  %9s  %7s  %s\n", own ? '*' : ' ', keywords_fifo[row->fifo],
           row->batch ? "batch" : "", row->violated ? row->violated : verdict_key(row->verdict),
           total, span, rate, row->who);
}

static void print_table(const struct plan *plan, const struct channel_row *rows)
{
    printf("%s\n\n  %-10s %-6s %-11s %9s  %9s  %7s  %s\n", plan->name, "channel", "", "verdict",
           "total", "span", "bubble", "in the field");
    for (int i = 0; i < CHANNELS; i++)
        print_row(plan, &rows[i]);
}

static void write_row(const struct channel_row *row, struct json *json)
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

static enum status write_table(struct app *app, const struct plan *plan,
                               const struct channel_row *rows)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_CHANNELS);
    json_put_string(&json, "plan", plan->name);
    json_key(&json, "p2p");
    json_begin_array(&json);
    for (int i = 0; i < CHANNELS; i++)
        write_row(&rows[i], &json);
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

enum status channels_compare(struct app *app, const struct plan *plan,
                             const struct verify_options *verify,
                             const struct predict_options *predict)
{
    struct channel_row rows[CHANNELS];
    enum status status = refuse_others(app, plan), worst = STATUS_OK;
    for (int i = 0; status == STATUS_OK && i < CHANNELS; i++) {
        rows[i] = channels[i];
        status = make_row(app, plan, verify, predict, &rows[i]);
        if (status == STATUS_OK && rows[i].violated)
            worst = STATUS_VIOLATED;
        else if (status == STATUS_OK && rows[i].verdict == VERDICT_UNDECIDED)
            worst = app_worse(worst, STATUS_LIMIT);
    }
    if (status != STATUS_OK || app->silent)
        return status;
    coverage_warn(plan, &app->diag);
    if (!app->json)
        print_table(plan, rows);
    else
        status = write_table(app, plan, rows);
    return app_worse(worst, status);
}
