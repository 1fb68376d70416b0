/* SPDX-License-Identifier: Apache-2.0 */
/* report_step.c - a prediction's step in one line; see report_internal.h. */
#include <math.h>
#include <stdlib.h>

#include "arrivals.h"
#include "report_internal.h"
#include "trace/step_bar.h"

/* Short ones, as passes are written. */
static const char *const kind_words[CHART_KINDS] = {
    [CHART_F] = "F", [CHART_B] = "B",         [CHART_I] = "I",
    [CHART_W] = "W", [CHART_OVERLAP] = "F+B", [CHART_OPTIMIZER] = "optimizer"};

static const char *pass_words(const struct program *p, const struct op *op)
{
    enum chart_kind kind = CHART_OPTIMIZER;
    if (op->listed && !arrivals_kind(p->plan->listed[op->listed - 1].kind, &kind))
        return "others";
    return kind_words[op->listed && arrivals_second(p->plan, op->listed) ? CHART_OVERLAP : kind];
}

/* Mean times of the work on these streams, by name. */
static void add_work(const struct prediction *prediction, const bool *streams, struct step_bar *bar)
{
    const struct program *p = prediction->program;
    for (size_t i = 0; i < p->op_count; i++) {
        const struct op *op = &p->ops[i];
        const struct op_time *time = &prediction->timing.ops[i];
        if (op->stream < 0 || !streams[op->stream] || !time->timed || time->mean_ns == 0)
            continue;
        step_bar_add(bar, p->tasks ? p->plan->pipeline.tasks[op->task].name : pass_words(p, op),
                     (double)time->mean_ns);
    }
}

/* Each rank has one stream of computation; the bar is the mean of the ranks. */
static double choose_streams(const struct prediction *prediction, bool *streams)
{
    const struct program *p = prediction->program;
    double busy = 0;
    int ranks = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        int stream = prediction_compute_stream(prediction, rank);
        if (stream < 0)
            continue;
        streams[stream] = true;
        busy += report_share(prediction, prediction->streams[stream].busy_ns);
        ranks++;
    }
    return ranks ? busy / ranks : 0;
}

enum status report_print_step(const struct prediction *prediction, bool color, FILE *out,
                              struct diag *diag)
{
    const struct program *p = prediction->program;
    struct step_bar bar = {.count = 0};
    if ((!p->tasks && !prediction->pipeline) || prediction->total_ns == 0)
        return STATUS_OK;
    bool *streams = calloc((size_t)p->stream_count + 1, sizeof *streams);
    if (!streams)
        return diag_no_memory(diag);
    double busy = choose_streams(prediction, streams);
    add_work(prediction, streams, &bar);
    free(streams);
    if (bar.count == 0)
        return STATUS_OK;
    step_bar_scale(&bar, busy);
    fputs("  step        ", out);
    step_bar_print(&bar, color, out);
    fprintf(out, "  %s%s\n", p->streams[prediction_compute_stream(prediction, 0)].name,
            p->ranks > 1 ? ", mean of the ranks" : "");
    return STATUS_OK;
}
