/* report.c - see report.h. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/units.h"

enum { NAME = 160, MAX_ROWS = 24, BAR = 20, MAX_PARTS = 12, SLOWED = 8 };

static double share(const struct prediction *prediction, int64_t ns)
{
    return prediction->total_ns ? (double)ns / (double)prediction->total_ns : 0;
}

/* The work a task pushes, on the first rank; NULL: it has no device part. */
static const struct op_time *task_time(const struct prediction *prediction, int task)
{
    const struct program *p = prediction->program;
    const struct body *body = &p->bodies[task];
    for (int i = body->first; i < body->first + body->count; i++)
        if (p->ops[i].stream >= 0 && prediction->timing.ops[i].name != 0)
            return &prediction->timing.ops[i];
    return NULL;
}

/* ---- text: figures --------------------------------------------------------------------------- */

static const char *show(double ns, char out[UNITS_TEXT])
{
    if (isnan(ns))
        snprintf(out, UNITS_TEXT, "-");
    else
        units_show_time(ns, out);
    return out;
}

static void print_head(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    fputs(p->plan->name, out);
    if (p->tasks)
        fprintf(out, ", %s driver", driver_key(p->driver));
    if (p->ranks > 1)
        fprintf(out, ", %d ranks", p->ranks);
    if (p->tasks) {
        int64_t most = 0;
        for (int rank = 0; rank < p->ranks; rank++)
            most = p->ends[rank] > most ? p->ends[rank] : most;
        fprintf(out, ", %" PRId64 " iteration%s", most, most == 1 ? "" : "s");
    }
    if (prediction->replications > 1)
        fprintf(out, ", mean of %d replications", prediction->replications);
    if (prediction->timing.varies)
        fprintf(out, ", seed %" PRIu64, prediction->seed);
    fputs("\n\n", out);
}

static void print_iteration(const struct prediction *prediction, FILE *out)
{
    const struct iteration_figures *figures = &prediction->iteration;
    char mean[UNITS_TEXT], half[UNITS_TEXT], p50[UNITS_TEXT], p95[UNITS_TEXT], p99[UNITS_TEXT];
    double half_ns = (figures->mean_in.high - figures->mean_in.low) / 2;
    fprintf(out, "  iteration   %s", show(figures->mean, mean));
    if (half_ns >= 0.5)
        fprintf(out, " +- %s", show(half_ns, half));
    fprintf(out, "   p50 %s   p95 %s   p99 %s\n", show(figures->p50, p50), show(figures->p95, p95),
            show(figures->p99, p99));
    if (figures->doubt != DOUBT_NONE && !prediction->blocked_count &&
        (prediction->timing.varies || figures->doubt == DOUBT_FEW))
        fprintf(out, "              (%s)\n", doubt_words(figures->doubt));
    if (prediction->iteration.mean > 0)
        fprintf(out, "  throughput  %.4g iterations/s\n", prediction->throughput_per_s);
}

/* One part of a circle; launches in a row share a word, and parts in a row their rank. */
static void print_part(const struct prediction *prediction, const struct steady_part *part,
                       const struct steady_part *last, FILE *out)
{
    const struct program *p = prediction->program;
    bool same_rank = last && last->rank == part->rank;
    bool host = part->kind == EVENT_HOST;
    bool goes_on = host && last && last->kind == EVENT_HOST && same_rank;
    if (last)
        fputs(goes_on ? ", " : " -> ", out);
    if (p->ranks > 1 && !same_rank && part->rank >= 0)
        fprintf(out, "rank %d ", part->rank);
    if (part->kind == EVENT_DRIVER)
        fputs("driver", out);
    else
        fprintf(out, "%s%s", host && !goes_on ? "launch of " : "",
                p->plan->pipeline.tasks[part->task].name);
}

/* The critical cycle, or who waits in a circle, up to MAX_PARTS of them. */
static void print_parts(const struct prediction *prediction, FILE *out)
{
    const struct steady *steady = &prediction->steady;
    int shown = steady->part_count < MAX_PARTS ? steady->part_count : MAX_PARTS;
    for (int i = 0; i < shown; i++)
        print_part(prediction, &steady->parts[i], i ? &steady->parts[i - 1] : NULL, out);
    if (shown < steady->part_count)
        fprintf(out, " -> ... (%d in all)", steady->part_count);
    if (steady->iterations > 1)
        fprintf(out, ", over %" PRId64 " iterations", steady->iterations);
    fputs("\n", out);
}

static double steady_ns(const struct steady *steady)
{
    return steady->kind == STEADY_EXACT ? (double)steady->num_ns / (double)steady->den : NAN;
}

static void print_steady(const struct prediction *prediction, FILE *out)
{
    const struct steady *steady = &prediction->steady;
    char time[UNITS_TEXT];
    if (prediction->program->tasks == 0)
        return;
    fputs("  exact       ", out);
    switch (steady->kind) {
    case STEADY_UNKNOWN: fprintf(out, "not known: %s\n", steady->why); return;
    case STEADY_DEADLOCK: fputs("deadlock, each waiting for the one before: ", out); break;
    case STEADY_EXACT: fputs(show(steady_ns(steady), time), out); break;
    }
    if (steady->kind == STEADY_EXACT && prediction->timing.varies)
        fputs(" without jitter", out);
    if (steady->kind == STEADY_EXACT && steady->way == STEADY_BY_RECURRENT_STATE)
        fputs(", as the run repeats itself", out);
    if (steady->kind == STEADY_EXACT)
        fputs(steady->part_count ? ", limited by " : "", out);
    print_parts(prediction, out);
    if (!isnan(prediction->jitter_penalty))
        fprintf(out, "  jitter      makes it %.1f%% longer\n", 100 * prediction->jitter_penalty);
}

static void print_totals(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    char total[UNITS_TEXT], fill[UNITS_TEXT], drain[UNITS_TEXT], bytes[UNITS_TEXT];
    fprintf(out, "  total       %s", show(prediction->makespan_ns, total));
    if (p->tasks)
        fprintf(out, "   fill %s   drain %s", show(prediction->fill_ns, fill),
                show(prediction->drain_ns, drain));
    int compute = prediction_compute_stream(prediction, 0);
    if (prediction->total_ns == 0)
        fprintf(out, ": the plan says of nothing how long it takes");
    if (compute >= 0 && !isnan(prediction->bubble))
        fprintf(out, "\n  bubble      %.1f%% of stream %s", 100 * prediction->bubble,
                p->streams[compute].name);
    units_show_bytes((double)prediction->in_flight_bytes_max, bytes);
    if (p->tasks)
        fprintf(out,
                "\n  in flight   %" PRId64
                " iteration%s, %s a rank at most, %.1f%% of that on average",
                prediction->in_flight_max, prediction->in_flight_max == 1 ? "" : "s", bytes,
                100 * prediction->in_flight_mean / (double)prediction->in_flight_max);
    else if (prediction->in_flight_bytes_max)
        fprintf(out, "\n  allocated   %s a rank at most", bytes);
    fputs("\n", out);
}

/* ---- text: the stall account ----------------------------------------------------------------- */

/* Streams that one row stands for: of one name and much the same account. */
struct row {
    int stream;   /* the first of them */
    int count;    /* how many */
    bool average; /* of all streams of the name, alike or not */
    struct stream_account sum;
};

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

/* Which rows there are; with `average` one for each name. Returns their number. */
static int find_rows(const struct prediction *prediction, bool average, struct row *rows)
{
    const struct program *p = prediction->program;
    int count = 0;
    for (int s = 0; s < p->stream_count; s++) {
        int r = 0;
        for (; r < count; r++)
            if (strcmp(p->streams[rows[r].stream].name, p->streams[s].name) == 0 &&
                (average || much_the_same(prediction, &prediction->streams[rows[r].stream],
                                          &prediction->streams[s])))
                break;
        if (r == count)
            rows[count++] = (struct row){.stream = s, .average = average};
        rows[r].count++;
        rows[r].sum.busy_ns += prediction->streams[s].busy_ns;
        for (int i = 0; i < RESOURCE_COUNT; i++)
            rows[r].sum.slowed_ns[i] += prediction->streams[s].slowed_ns[i];
        for (int i = 0; i < STALL_COUNT; i++)
            rows[r].sum.stall_ns[i] += prediction->streams[s].stall_ns[i];
    }
    return count;
}

static int compare_blames(const void *a, const void *b)
{
    const struct blame *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (int)x->stall.cause - (int)y->stall.cause;
}

/* The causes of a row, largest first: split by whom they name, or of an average only by cause. */
static int list_causes(const struct prediction *prediction, const struct row *row,
                       struct blame *out)
{
    const struct stream_account *account = &prediction->streams[row->stream];
    int count = 0;
    if (row->average && row->count > 1)
        for (int i = 0; i < STALL_COUNT; i++)
            out[count++] = (struct blame){{(enum stall_cause)i, STALL_NOBODY},
                                          row->sum.stall_ns[i] / row->count};
    else
        for (int i = 0; i < account->blame_count; i++)
            out[count++] = account->blames[i];
    qsort(out, (size_t)count, sizeof *out, compare_blames);
    return count;
}

static void print_causes(const struct prediction *prediction, const struct row *row,
                         struct blame *causes, int indent, FILE *out)
{
    int count = list_causes(prediction, row, causes), shown = 0;
    int rank = prediction->program->streams[row->stream].rank;
    int64_t rest = 0;
    char text[2 * NAME];
    for (int i = 0; i < count; i++) {
        if (share(prediction, causes[i].ns) < 0.0005) {
            rest += causes[i].ns;
            continue;
        }
        bool plain = row->average && row->count > 1;
        stall_describe(prediction->program, rank, &causes[i].stall, text, sizeof text);
        fprintf(out, "%*s%5.1f%%  %s\n", shown++ ? indent : 0, "",
                100 * share(prediction, causes[i].ns),
                plain ? stall_words(causes[i].stall.cause) : text);
    }
    if (share(prediction, rest) >= 0.0005)
        fprintf(out, "%*s%5.1f%%  causes below 0.05%% each\n", shown++ ? indent : 0, "",
                100 * share(prediction, rest));
    if (!shown)
        fputc('\n', out);
}

static void row_name(const struct prediction *prediction, const struct row *row, int same_name,
                     char *buf, size_t cap)
{
    const struct stream_desc *stream = &prediction->program->streams[row->stream];
    if (prediction->program->ranks == 1 || row->count == same_name)
        snprintf(buf, cap, "%s", stream->name);
    else if (row->count == 1)
        snprintf(buf, cap, "%s, rank %d", stream->name, stream->rank);
    else
        snprintf(buf, cap, "%s, rank %d + %d alike", stream->name, stream->rank, row->count - 1);
}

static int streams_named(const struct program *p, const char *name)
{
    int count = 0;
    for (int s = 0; s < p->stream_count; s++)
        count += strcmp(p->streams[s].name, name) == 0;
    return count;
}

static void print_row(const struct prediction *prediction, const struct row *row, int width,
                      struct blame *causes, FILE *out)
{
    const struct program *p = prediction->program;
    char name[2 * NAME], bar[BAR + 1];
    double busy = share(prediction, row->sum.busy_ns) / row->count;
    int filled = (int)lround(busy * BAR);
    memset(bar, '#', (size_t)filled);
    memset(bar + filled, '.', (size_t)(BAR - filled));
    bar[BAR] = '\0';
    row_name(prediction, row, streams_named(p, p->streams[row->stream].name), name, sizeof name);
    fprintf(out, "  %-*s  %5.1f%%  ", width, name, 100 * busy);
    if (prediction->slowdowns)
        fprintf(out, "%5.1f%%  ", 100 * share(prediction, slowed_ns(&row->sum)) / row->count);
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

static void print_rows(const struct prediction *prediction, struct row *rows, struct blame *causes,
                       FILE *out)
{
    const struct program *p = prediction->program;
    char name[2 * NAME];
    int count = find_rows(prediction, false, rows), width = (int)strlen("stream");
    bool average = count > MAX_ROWS;
    if (average) {
        memset(rows, 0, (size_t)p->stream_count * sizeof *rows);
        count = find_rows(prediction, true, rows);
    }
    for (int r = 0; r < count; r++) {
        row_name(prediction, &rows[r], streams_named(p, p->streams[rows[r].stream].name), name,
                 sizeof name);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    fprintf(out, "\n  %-*s  %6s  %s%-*s  idle for%s\n", width, "stream", "busy",
            prediction->slowdowns ? "slowed  " : "", BAR, "",
            average ? " (means over the ranks; --json has each)" : "");
    for (int r = 0; r < count; r++)
        print_row(prediction, &rows[r], width, causes, out);
}

static enum status print_streams(const struct prediction *prediction, FILE *out, struct diag *diag)
{
    size_t streams = (size_t)prediction->program->stream_count;
    struct row *rows = calloc(streams + 1, sizeof *rows);
    struct blame *causes = calloc((size_t)most_blames(prediction) + 1, sizeof *causes);
    enum status status = rows && causes ? STATUS_OK : diag_no_memory(diag);
    if (status == STATUS_OK && streams > 0)
        print_rows(prediction, rows, causes, out);
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

static void print_slowdowns(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    int count = prediction->slowdowns ? sharing_subject_count(p) : 0, width = 4, slowed = 0;
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(sharing_subject_name(p, i));
        bool shown = all_slowed_ns(&prediction->slowdowns[i]) > 0;
        width = shown && length > width ? length : width;
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
        char alone[UNITS_TEXT], here[UNITS_TEXT], text[NAME];
        if (all_slowed_ns(slowdown) == 0)
            continue;
        double runs = (double)slowdown->runs;
        fprintf(out, "  %-*s  %9s  %9s  ", width, sharing_subject_name(p, i),
                show((double)slowdown->work_ns / runs, alone),
                show((double)(slowdown->work_ns + all_slowed_ns(slowdown)) / runs, here));
        fprintf(out, "%s\n",
                sharing_describe(slowdown->slowed_ns, slowdown->runs, text, sizeof text));
    }
}

/* ---- text: exposed time, deadlock ------------------------------------------------------------ */

static void print_exposed(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    int width = 4;
    char serial[UNITS_TEXT];
    if (!prediction->exposed_ns || !prediction->serial_exposed_ns)
        return;
    for (int t = 0; t < p->tasks; t++) {
        int length = (int)strlen(p->plan->pipeline.tasks[t].name);
        width = length > width ? length : width;
    }
    fprintf(out, "\n  %-*s  %9s  %9s  %9s  %9s\n", width, "task", "device", "exposed", "serial",
            "slack");
    for (int t = 0; t < p->tasks; t++) {
        const struct op_time *time = task_time(prediction, t);
        char device[UNITS_TEXT], exposed[UNITS_TEXT], slack[UNITS_TEXT];
        bool has_slack = prediction->slack_ns && prediction->slack_ns[t] >= 0;
        fprintf(out, "  %-*s  %9s  %9s  %9s  %9s\n", width, p->plan->pipeline.tasks[t].name,
                show(time ? (double)time->mean_ns : NAN, device),
                show(prediction->exposed_ns[t], exposed),
                show(prediction->serial_exposed_ns[t], serial),
                show(has_slack ? (double)prediction->slack_ns[t] : NAN, slack));
    }
    fprintf(out,
            "  exposed: by so much is an iteration shorter if the task takes no time; serial: the\n"
            "  same with one iteration at a time, which takes %s%s\n",
            show(prediction->serial_ns, serial),
            prediction->slack_ns ? "; slack: so much longer may\n  the task take before an "
                                   "iteration does, on average"
                                 : "");
}

static void print_blocked(const struct prediction *prediction, FILE *out)
{
    char name[NAME], time[UNITS_TEXT];
    if (!prediction->blocked_count)
        return;
    fprintf(out, "  DEADLOCK after %s", show(prediction->makespan_ns, time));
    if (prediction->replications > 1)
        fprintf(out, ", first in replication %d", prediction->blocked_replication);
    fputs("\n", out);
    for (size_t i = 0; i < prediction->blocked_count; i++)
        fprintf(out, "    %s %s\n",
                program_agent_name(prediction->program, prediction->blocked[i].agent, name,
                                   sizeof name),
                prediction->blocked[i].waits_for);
    fputs("\n", out);
}

enum status report_print(const struct prediction *prediction, bool quiet, FILE *out,
                         struct diag *diag)
{
    print_head(prediction, out);
    print_blocked(prediction, out);
    if (!isnan(prediction->iteration.mean))
        print_iteration(prediction, out);
    print_steady(prediction, out);
    print_totals(prediction, out);
    enum status status = quiet ? STATUS_OK : print_streams(prediction, out, diag);
    if (!quiet) {
        print_slowdowns(prediction, out);
        print_exposed(prediction, out);
    }
    if (prediction->critical_path)
        critical_path_print(prediction->program, prediction->critical_path, out);
    if (quiet)
        return status;
    char time[UNITS_TEXT];
    fprintf(out, "\n  %" PRId64 " tasks simulated in %s, engine %s\n", prediction->tasks,
            show(1e9 * prediction->seconds, time), engine_key(prediction->engine));
    return status;
}

/* ---- a sweep --------------------------------------------------------------------------------- */

void report_sweep_head(const char *key, FILE *out)
{
    fprintf(out, "%10s  %10s  %10s  %10s  %10s  %12s  %10s  %10s  %7s\n", key, "iteration", "+-",
            "p99", "fill", "iterations/s", "in flight", "on average", "stall");
}

static double half_width(const struct interval *in)
{
    return (in->high - in->low) / 2;
}

void report_sweep_line(const struct prediction *prediction, int64_t value, FILE *out)
{
    const struct iteration_figures *figures = &prediction->iteration;
    char mean[UNITS_TEXT], half[UNITS_TEXT], p99[UNITS_TEXT], fill[UNITS_TEXT], bytes[UNITS_TEXT];
    char average[UNITS_TEXT];
    if (prediction->blocked_count) {
        fprintf(out, "%10" PRId64 "  DEADLOCK after %s\n", value,
                show(prediction->makespan_ns, mean));
        return;
    }
    double most = (double)prediction->in_flight_bytes_max;
    units_show_bytes(most, bytes);
    units_show_bytes(most * prediction->in_flight_mean / (double)prediction->in_flight_max,
                     average);
    fprintf(out, "%10" PRId64 "  %10s  %10s  %10s  %10s  %12.4g  %10s  %10s  %6.1f%%\n", value,
            show(figures->mean, mean), show(half_width(&figures->mean_in), half),
            show(figures->p99, p99), show(prediction->fill_ns, fill), prediction->throughput_per_s,
            bytes, average, 100 * prediction->bubble);
}

void report_difference(const struct prediction *prediction, const struct prediction *base,
                       FILE *out)
{
    struct interval in;
    double difference = prediction_difference(base, prediction, &in);
    char ns[UNITS_TEXT], half[UNITS_TEXT];
    if (isnan(difference))
        return;
    if (difference == 0)
        fprintf(out, "\n  an iteration is as long as with the %s driver\n",
                driver_key(base->program->driver));
    else
        fprintf(out,
                "\n  with the same random numbers an iteration is %s +- %s %s than with the %s "
                "driver\n",
                show(fabs(difference), ns), show(half_width(&in), half),
                difference > 0 ? "longer" : "shorter", driver_key(base->program->driver));
}

/* ---- what if --------------------------------------------------------------------------------- */

void report_what_if_head(FILE *out)
{
    fprintf(out, "  %-24s  %10s  %22s  %12s  %s\n", "what if", "iteration", "longer by",
            "iterations/s", "limited by");
}

static void print_limit(const struct prediction *prediction, FILE *out)
{
    if (prediction->steady.kind == STEADY_EXACT && prediction->steady.part_count)
        print_parts(prediction, out);
    else
        fputs("-\n", out);
}

void report_what_if_line(const struct prediction *prediction, const struct report_row *row,
                         FILE *out)
{
    char mean[UNITS_TEXT], text[2 * UNITS_TEXT + 8] = "", longer[UNITS_TEXT], half[UNITS_TEXT];
    if (row->base) {
        struct interval in;
        double difference = prediction_difference(row->base, prediction, &in);
        snprintf(text, sizeof text, "%s +- %s", show(difference, longer),
                 show(half_width(&in), half));
    }
    fprintf(out, "  %-24s  %10s  %22s  %12.4g  ", row->what_if ? row->what_if : "(as it is)",
            show(prediction->iteration.mean, mean), text, prediction->throughput_per_s);
    if (prediction->blocked_count)
        fputs("DEADLOCK\n", out);
    else
        print_limit(prediction, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_interval(const char *key, const struct interval *in, struct json *json)
{
    json_key(json, key);
    json_begin_array(json);
    json_double(json, in->low);
    json_double(json, in->high);
    json_end_array(json);
}

static void write_iteration(const struct iteration_figures *figures, struct json *json)
{
    json_key(json, "iteration_ns");
    json_begin_object(json);
    json_put_double(json, "mean", figures->mean);
    json_put_double(json, "p50", figures->p50);
    json_put_double(json, "p95", figures->p95);
    json_put_double(json, "p99", figures->p99);
    write_interval("ci95", &figures->mean_in, json);
    write_interval("p50_ci95", &figures->p50_in, json);
    write_interval("p95_ci95", &figures->p95_in, json);
    write_interval("p99_ci95", &figures->p99_in, json);
    json_put_int(json, "counted", figures->count);
    json_put_int(json, "warm_up", figures->warm_up);
    json_put_string(json, "doubt",
                    figures->doubt == DOUBT_NONE ? NULL : doubt_words(figures->doubt));
    json_end_object(json);
}

static void write_account(const struct prediction *prediction, const struct stream_account *account,
                          int count, struct json *json)
{
    json_begin_object(json);
    json_put_double(json, "busy", share(prediction, account->busy_ns) / count);
    if (prediction->slowdowns) {
        json_key(json, "slowed");
        json_begin_object(json);
        for (int i = 0; i < RESOURCE_COUNT; i++)
            json_put_double(json, resource_key((enum resource)i),
                            share(prediction, account->slowed_ns[i]) / count);
        json_end_object(json);
    }
    json_key(json, "stall");
    json_begin_object(json);
    for (int i = 0; i < STALL_COUNT; i++)
        json_put_double(json, stall_key((enum stall_cause)i),
                        share(prediction, account->stall_ns[i]) / count);
    json_end_object(json);
}

/* The part of the dependence stalls each task (or stream, thread) is waited for. */
static void write_dependences(const struct prediction *prediction, int stream, struct json *json)
{
    const struct stream_account *account = &prediction->streams[stream];
    const struct program *p = prediction->program;
    json_key(json, "dependence_on");
    json_begin_object(json);
    for (int i = 0; i < account->blame_count; i++) {
        const struct stall *stall = &account->blames[i].stall;
        char name[NAME] = "others";
        if (stall->cause != STALL_DEPENDENCE)
            continue;
        if (stall->who >= 0)
            snprintf(name, sizeof name, "%s", p->plan->pipeline.tasks[stall->who].name);
        else if (stall->who != STALL_NOBODY)
            program_agent_name(p, ~stall->who, name, sizeof name);
        json_put_double(json, name, share(prediction, account->blames[i].ns));
    }
    json_end_object(json);
}

/* One object for each stream name: the mean over the ranks that have it. */
static void write_streams(const struct prediction *prediction, const struct row *rows, int count,
                          struct json *json)
{
    const struct program *p = prediction->program;
    json_key(json, "streams");
    json_begin_object(json);
    for (int r = 0; r < count; r++) {
        json_key(json, p->streams[rows[r].stream].name);
        write_account(prediction, &rows[r].sum, rows[r].count, json);
        if (p->ranks == 1)
            write_dependences(prediction, rows[r].stream, json);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_ranks(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_key(json, "ranks");
    json_begin_array(json);
    for (int rank = 0; rank < p->ranks; rank++) {
        json_begin_object(json);
        json_put_int(json, "rank", rank);
        json_key(json, "streams");
        json_begin_object(json);
        for (int s = 0; s < p->stream_count; s++) {
            if (p->streams[s].rank != rank)
                continue;
            json_key(json, p->streams[s].name);
            write_account(prediction, &prediction->streams[s], 1, json);
            write_dependences(prediction, s, json);
            json_end_object(json);
        }
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_exposed(const struct prediction *prediction, const char *key,
                          const double *exposed_ns, struct json *json)
{
    json_key(json, key);
    if (!exposed_ns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int t = 0; t < prediction->program->tasks; t++)
        json_put_double(json, prediction->program->plan->pipeline.tasks[t].name, exposed_ns[t]);
    json_end_object(json);
}

static void write_slack(const struct prediction *prediction, struct json *json)
{
    json_key(json, "slack_ns");
    if (!prediction->slack_ns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int t = 0; t < prediction->program->tasks; t++) {
        const char *name = prediction->program->plan->pipeline.tasks[t].name;
        if (prediction->slack_ns[t] >= 0)
            json_put_int(json, name, prediction->slack_ns[t]);
    }
    json_end_object(json);
}

/* Sums over all runs, in whole nanoseconds; null where nobody can slow anybody down. */
static void write_slowdowns(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_key(json, "slowed");
    if (!prediction->slowdowns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int i = 0; i < sharing_subject_count(p); i++) {
        const struct slowdown *slowdown = &prediction->slowdowns[i];
        if (slowdown->runs == 0)
            continue;
        json_key(json, sharing_subject_name(p, i));
        json_begin_object(json);
        json_put_int(json, "runs", slowdown->runs);
        json_put_int(json, "alone_ns", slowdown->work_ns);
        for (int r = 0; r < RESOURCE_COUNT; r++)
            json_put_int(json, resource_key((enum resource)r), slowdown->slowed_ns[r]);
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_blocked(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_put_bool(json, "deadlock", prediction->blocked_count > 0);
    if (prediction->blocked_count == 0)
        return;
    json_key(json, "blocked");
    json_begin_array(json);
    for (size_t i = 0; i < prediction->blocked_count; i++) {
        const struct blocked *blocked = &prediction->blocked[i];
        char name[NAME];
        json_begin_object(json);
        int rank = p->agents[blocked->agent].rank;
        json_put_int(json, "rank", rank);
        json_put_string(json, "agent", agent_on_rank(p, rank, blocked->agent, name, sizeof name));
        json_put_string(json, "waits_for", blocked->waits_for);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_part(const struct prediction *prediction, const struct steady_part *part,
                       struct json *json)
{
    static const char *const kinds[] = {"driver", "host", "device"};
    const struct task *tasks = prediction->program->plan->pipeline.tasks;
    json_begin_object(json);
    json_put_string(json, "part", kinds[part->kind]);
    json_put_string(json, "task", part->task < 0 ? NULL : tasks[part->task].name);
    json_key(json, "rank");
    if (part->rank < 0)
        json_null(json);
    else
        json_int(json, part->rank);
    json_put_int(json, "ns", part->ns);
    json_end_object(json);
}

/* The tasks of the cycle in its order, each once in a row. */
static void write_critical_cycle(const struct prediction *prediction, struct json *json)
{
    const struct steady *steady = &prediction->steady;
    json_key(json, "critical_cycle");
    if (steady->kind == STEADY_UNKNOWN) {
        json_null(json);
        return;
    }
    int last = -1;
    json_begin_array(json);
    for (int i = 0; i < steady->part_count; i++) {
        int task = steady->parts[i].task;
        if (task >= 0 && task != last)
            json_string(json, prediction->program->plan->pipeline.tasks[task].name);
        last = task >= 0 ? task : last;
    }
    json_end_array(json);
}

/* The ratio is the exact figure, `steady_exact_ns` the nearest whole number. */
static void write_steady(const struct prediction *prediction, struct json *json)
{
    static const char *const ways[] = {"event_graph", "causes", "run"};
    const struct steady *steady = &prediction->steady;
    bool exact = steady->kind == STEADY_EXACT;
    json_put_double(json, "steady_exact_ns", round(steady_ns(steady)));
    json_key(json, "steady_exact_ratio");
    if (exact) {
        json_begin_array(json);
        json_int(json, steady->num_ns);
        json_int(json, steady->den);
        json_end_array(json);
    } else {
        json_null(json);
    }
    json_put_string(json, "steady_exact_way", exact ? ways[steady->way] : NULL);
    json_put_string(json, "steady_exact_why",
                    exact                             ? NULL
                    : steady->kind == STEADY_DEADLOCK ? "deadlock"
                                                      : steady->why);
    write_critical_cycle(prediction, json);
    json_key(json, "critical_parts");
    if (steady->kind == STEADY_UNKNOWN) {
        json_null(json);
        return;
    }
    json_begin_array(json);
    for (int i = 0; i < steady->part_count; i++)
        write_part(prediction, &steady->parts[i], json);
    json_end_array(json);
}

/* What was in flight on rank 0 from each time on. */
static void write_in_flight(const struct prediction *prediction, struct json *json)
{
    if (!prediction->in_flight)
        return;
    json_key(json, "in_flight");
    json_begin_array(json);
    for (int i = 0; i < prediction->in_flight->count; i++) {
        const struct in_flight_point *point = &prediction->in_flight->points[i];
        json_begin_object(json);
        json_put_int(json, "time_ns", point->time_ns);
        if (prediction->program->tasks)
            json_put_int(json, "iterations", point->iterations);
        json_put_int(json, "bytes", point->bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_body(const struct prediction *prediction, const struct row *rows, int row_count,
                       struct json *json)
{
    const struct program *p = prediction->program;
    int64_t most = p->tasks ? 0 : 1;
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        most = p->ends[rank] > most ? p->ends[rank] : most;
    json_put_string(json, "plan", p->plan->name);
    json_put_string(json, "driver", driver_key(p->driver));
    json_put_int(json, "seed", (int64_t)prediction->seed);
    json_put_int(json, "iterations", most);
    json_put_int(json, "replications", prediction->replications);
    json_put_string(json, "engine", engine_key(prediction->engine));
    json_put_int(json, "tasks_simulated", prediction->tasks);
    json_put_double(json, "seconds", prediction->seconds);
    json_put_double(json, "cpu_seconds", prediction->cpu_seconds);
    write_iteration(&prediction->iteration, json);
    json_put_double(json, "throughput_per_s", prediction->throughput_per_s);
    json_put_double(json, "fill_ns", prediction->fill_ns);
    json_put_double(json, "drain_ns", prediction->drain_ns);
    json_put_double(json, "makespan_ns", prediction->makespan_ns);
    write_steady(prediction, json);
    json_put_double(json, "jitter_penalty", prediction->jitter_penalty);
    json_put_double(json, "bubble", prediction->bubble);
    write_streams(prediction, rows, row_count, json);
    if (p->ranks > 1)
        write_ranks(prediction, json);
    write_slowdowns(prediction, json);
    write_exposed(prediction, "exposed_ns", prediction->exposed_ns, json);
    write_exposed(prediction, "serial_exposed_ns", prediction->serial_exposed_ns, json);
    json_put_double(json, "serial_ns", prediction->serial_ns);
    write_slack(prediction, json);
    if (prediction->critical_path) {
        json_key(json, "critical_path");
        critical_path_write(prediction->program, prediction->critical_path, json);
    }
    write_in_flight(prediction, json);
    json_put_int(json, "in_flight_bytes_max", prediction->in_flight_bytes_max);
    json_put_int(json, "in_flight_max", prediction->in_flight_max);
    json_put_double(json, "in_flight_mean", prediction->in_flight_mean);
    write_blocked(prediction, json);
}

/* By how much longer than the base an iteration is with the same random numbers. */
static void write_change(const struct prediction *prediction, const struct report_row *row,
                         struct json *json)
{
    if (!row->what_if && !row->base)
        return;
    if (row->what_if)
        json_put_string(json, "what_if", row->what_if);
    if (!row->base)
        return;
    struct interval in;
    json_put_string(json, "compared_with", driver_key(row->base->program->driver));
    json_put_double(json, "difference_ns", prediction_difference(row->base, prediction, &in));
    write_interval("difference_ci95", &in, json);
}

enum status report_write(const struct prediction *prediction, const struct report_row *row,
                         struct json *json, struct diag *diag)
{
    struct row *rows = calloc((size_t)prediction->program->stream_count + 1, sizeof *rows);
    if (!rows)
        return diag_no_memory(diag);
    int count = find_rows(prediction, true, rows);
    json_begin_object(json);
    if (row->swept)
        json_put_int(json, row->swept, row->value);
    write_change(prediction, row, json);
    write_body(prediction, rows, count, json);
    json_end_object(json);
    free(rows);
    return STATUS_OK;
}
