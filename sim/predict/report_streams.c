/* SPDX-License-Identifier: Apache-2.0 */
/* report_streams.c - a prediction's streams for people: the stall account, what slowed what. */
#include "report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/columns.h"
#include "machine/straight.h"
#include "arrivals.h"
#include "trace/step_bar.h"
#include "plan/schedules/complete_lists.h"

enum { NAME = 160, MAX_ROWS = 24, BAR = 20, SLOWED = 8 };

/* ---- text: the stall account ----------------------------------------------------------------- */

static int64_t slowed_ns(const struct stream_account *account)
{
    int64_t sum = 0;
    for (int i = 0; i < RESOURCE_COUNT; i++)
        sum += account->slowed_ns[i];
    return sum;
}

static bool much_the_same(const struct prediction *prediction, const struct stream_account *a,
                          const struct stream_account *b)
{
    double tolerance = 0.0005 * (double)prediction->total_ns;
    if (fabs((double)(a->busy_ns - b->busy_ns)) > tolerance ||
        fabs((double)(slowed_ns(a) - slowed_ns(b))) > tolerance)
        return false;
    for (int i = 0; i < STALL_COUNT; i++)
        if (fabs((double)(a->stall_ns[i] - b->stall_ns[i])) > tolerance)
            return false;
    return true;
}

/* The rows up to `most` of them, and the first beyond. */
static int list_rows(const struct prediction *prediction, bool average, int most,
                     struct report_stream_row *rows)
{
    const struct program *p = prediction->program;
    int count = 0;
    for (int s = 0; s < p->stream_count && count <= most; s++) {
        int r = 0;
        for (; r < count; r++)
            if (strcmp(p->streams[rows[r].stream].name, p->streams[s].name) == 0 &&
                (average || much_the_same(prediction, &prediction->streams[rows[r].stream],
                                          &prediction->streams[s])))
                break;
        if (r == count)
            rows[count++] = (struct report_stream_row){.stream = s, .average = average};
        rows[r].count++;
        rows[r].sum.busy_ns += prediction->streams[s].busy_ns;
        for (int i = 0; i < RESOURCE_COUNT; i++)
            rows[r].sum.slowed_ns[i] += prediction->streams[s].slowed_ns[i];
        for (int i = 0; i < STALL_COUNT; i++)
            rows[r].sum.stall_ns[i] += prediction->streams[s].stall_ns[i];
    }
    return count;
}

int report_rows(const struct prediction *prediction, struct report_stream_row *rows)
{
    return list_rows(prediction, true, prediction->program->stream_count, rows);
}

static int report_streams_compare_blames(const void *a, const void *b)
{
    const struct blame *x = a, *y = b;
    return compare_then(compare_i64(y->ns, x->ns), compare_int(x->stall.cause, y->stall.cause));
}

/* The causes of a row, largest first: split by what they name, or of an average only by cause. */
static int list_causes(const struct prediction *prediction, const struct report_stream_row *row,
                       struct blame *out)
{
    const struct stream_account *account = &prediction->streams[row->stream];
    int count = 0;
    if (row->average && row->count > 1)
        for (int i = 0; i < STALL_COUNT; i++)
            out[count++] = (struct blame){{(enum stall_cause)i, STALL_ON_NONE},
                                          row->sum.stall_ns[i] / row->count};
    else
        for (int i = 0; i < account->blame_count; i++)
            out[count++] = account->blames[i];
    SORT(out, (size_t)count, report_streams_compare_blames);
    return count;
}

static void print_causes(const struct prediction *prediction, const struct report_stream_row *row,
                         struct blame *causes, int indent, FILE *out)
{
    int count = list_causes(prediction, row, causes), shown = 0;
    int rank = prediction->program->streams[row->stream].rank;
    int64_t rest = 0;
    char text[2 * NAME];
    for (int i = 0; i < count; i++) {
        if (report_share(prediction, causes[i].ns) < 0.0005) {
            rest += causes[i].ns;
            continue;
        }
        bool plain = row->average && row->count > 1;
        stall_describe(prediction->program, rank, &causes[i].stall, text, sizeof text);
        fprintf(out, "%*s%5.1f%%  %s\n", shown++ ? indent : 0, "",
                100 * report_share(prediction, causes[i].ns),
                plain ? stall_words(causes[i].stall.cause) : text);
    }
    if (report_share(prediction, rest) >= 0.0005)
        fprintf(out, "%*s%5.1f%%  causes below 0.05%% each\n", shown++ ? indent : 0, "",
                100 * report_share(prediction, rest));
    if (!shown)
        fputc('\n', out);
}

static void report_streams_row_name(const struct prediction *prediction,
                                    const struct report_stream_row *row, int same_name, char *buf,
                                    size_t cap)
{
    const struct program *p = prediction->program;
    const struct stream_desc *stream = &p->streams[row->stream];
    const int count = row->count * (program_all_ranks(p) / p->ranks),
              rank = program_stood_for(p, stream->rank);
    if (program_all_ranks(p) == 1 || row->count == same_name)
        snprintf(buf, cap, "%s", stream->name);
    else if (count == 1)
        snprintf(buf, cap, "%s, rank %d", stream->name, rank);
    else
        snprintf(buf, cap, "%s, rank %d + %d alike", stream->name, rank, count - 1);
}

static int streams_named(const struct program *p, const char *name)
{
    int count = 0;
    for (int s = 0; s < p->stream_count; s++)
        count += strcmp(p->streams[s].name, name) == 0;
    return count;
}

static void report_streams_print_row(const struct prediction *prediction,
                                     const struct report_stream_row *row, int width,
                                     struct blame *causes, FILE *out)
{
    const struct program *p = prediction->program;
    char name[2 * NAME], bar[BAR + 1];
    double busy = report_share(prediction, row->sum.busy_ns) / row->count;
    int filled = (int)lround(busy * BAR);
    memset(bar, '#', (size_t)filled);
    memset(bar + filled, '.', (size_t)(BAR - filled));
    bar[BAR] = '\0';
    report_streams_row_name(prediction, row, streams_named(p, p->streams[row->stream].name), name,
                            sizeof name);
    fprintf(out, "  %s%*s  %5.1f%%  ", name, columns_fill(name, width), "", 100 * busy);
    if (prediction->slowdowns)
        fprintf(out, "%5.1f%%  ",
                100 * report_share(prediction, slowed_ns(&row->sum)) / row->count);
    fprintf(out, "%s  ", bar);
    print_causes(prediction, row, causes, width + BAR + 13 + (prediction->slowdowns ? SLOWED : 0),
                 out);
}

static int most_blames(const struct prediction *prediction)
{
    int most = STALL_COUNT;
    for (int s = 0; s < prediction->program->stream_count; s++)
        if (prediction->streams[s].blame_count > most)
            most = prediction->streams[s].blame_count;
    return most;
}

static void report_streams_print_rows(const struct prediction *prediction,
                                      struct report_stream_row *rows, struct blame *causes,
                                      FILE *out)
{
    const struct program *p = prediction->program;
    char name[2 * NAME];
    int count = list_rows(prediction, false, MAX_ROWS, rows), width = (int)strlen("stream");
    bool average = count > MAX_ROWS;
    if (average) {
        memset(rows, 0, (size_t)p->stream_count * sizeof *rows);
        count = report_rows(prediction, rows);
    }
    for (int r = 0; r < count; r++) {
        report_streams_row_name(prediction, &rows[r],
                                streams_named(p, p->streams[rows[r].stream].name), name,
                                sizeof name);
        columns_widen(&width, name);
    }
    fprintf(out, "\n  %-*s  %6s  %s%-*s  idle for%s\n", width, "stream", "busy",
            prediction->slowdowns ? "slowed  " : "", BAR, "",
            average ? " (means over the ranks; --json has each)" : "");
    for (int r = 0; r < count; r++)
        report_streams_print_row(prediction, &rows[r], width, causes, out);
}

enum status report_print_streams(const struct prediction *prediction, FILE *out, struct diag *diag)
{
    size_t streams = (size_t)prediction->program->stream_count;
    struct report_stream_row *rows = calloc(streams + 1, sizeof *rows);
    struct blame *causes = calloc((size_t)most_blames(prediction) + 1, sizeof *causes);
    enum status status = rows && causes ? STATUS_OK : diag_no_memory(diag);
    if (status == STATUS_OK && streams > 0)
        report_streams_print_rows(prediction, rows, causes, out);
    free(rows);
    free(causes);
    return status;
}

/* ---- text: what slowed what ------------------------------------------------------------------ */

static int64_t all_slowed_ns(const struct slowdown *slowdown)
{
    int64_t sum = 0;
    for (int i = 0; i < RESOURCE_COUNT; i++)
        sum += slowdown->slowed_ns[i];
    return sum;
}

void report_print_slowdowns(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    int count = prediction->slowdowns ? sharing_subject_count(p) : 0, width = 4, slowed = 0;
    for (int i = 0; i < count; i++) {
        char name[2 * NAME];
        bool shown = all_slowed_ns(&prediction->slowdowns[i]) > 0;
        if (shown)
            columns_widen(&width, sharing_subject_name(p, i, name, sizeof name));
        slowed += shown;
    }
    if (!prediction->slowdowns)
        return;
    if (!slowed) {
        fputs("\n  streams share the device, but nothing was slowed by that\n", out);
        return;
    }
    fprintf(out, "\n  %-*s  %9s  %9s  slowed by sharing the device\n", width,
            p->tasks ? "task" : "work", "alone", "here");
    for (int i = 0; i < count; i++) {
        const struct slowdown *slowdown = &prediction->slowdowns[i];
        char alone[UNITS_TEXT], here[UNITS_TEXT], text[NAME], name[2 * NAME];
        if (all_slowed_ns(slowdown) == 0)
            continue;
        double runs = (double)slowdown->runs;
        (void)sharing_subject_name(p, i, name, sizeof name);
        fprintf(out, "  %s%*s  %9s  %9s  ", name, columns_fill(name, width), "",
                report_show((double)slowdown->work_ns / runs, alone),
                report_show((double)(slowdown->work_ns + all_slowed_ns(slowdown)) / runs, here));
        fprintf(out, "%s\n",
                sharing_describe(slowdown->slowed_ns, slowdown->runs, text, sizeof text));
    }
}

/* ---- a step in one line ---------------------------------------------------------------------- */

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

/* The same of programs that leave no choice. */
static void add_straight_work(const struct program *p, const bool *streams, struct step_bar *bar)
{
    const struct straight *graph = p->straight;
    for (int s = 0; s < graph->stream_count; s++) {
        const struct action *actions = p->lists->ranks[graph->streams[s].rank].actions;
        const uint32_t end = streams[s] ? graph->streams[s].end : 0;
        for (uint32_t i = graph->streams[s].first; i < end; i++) {
            const struct action *action = &actions[graph->steps[i].action], *parts;
            const bool both = comms_parts(action, &parts) == ACTION_PARTS &&
                              parts[0].kind == ACTION_F && parts[1].kind != ACTION_F;
            enum chart_kind kind = CHART_F;
            const bool pass = arrivals_kind(parts->kind, &kind);
            const int64_t time_ns = straight_time(graph, &graph->steps[i]);
            if (time_ns > 0)
                step_bar_add(bar, pass ? kind_words[both ? CHART_OVERLAP : kind] : "others",
                             (double)time_ns);
        }
    }
}

/* Mean times of the work on these streams, by name. */
static void report_streams_add_work(const struct prediction *prediction, const bool *streams,
                                    struct step_bar *bar)
{
    const struct program *p = prediction->program;
    if (p->straight)
        add_straight_work(p, streams, bar);
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
    report_streams_add_work(prediction, streams, &bar);
    free(streams);
    if (bar.count == 0)
        return STATUS_OK;
    step_bar_scale(&bar, busy);
    fputs("  step        ", out);
    step_bar_print(&bar, color, out);
    fprintf(out, "  %s%s\n", p->streams[prediction_compute_stream(prediction, 0)].name,
            program_all_ranks(prediction->program) > 1 ? ", mean of the ranks" : "");
    return STATUS_OK;
}
