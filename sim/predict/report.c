/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the figures of a prediction for people; see report.h. */
#include "report_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/columns.h"
#include "base/sort.h"
#include "base/text_stream.h"
#include "base/units.h"
#include "plan/schedules/costs.h"

enum { NAME = 160, MAX_PARTS = 12 };

double report_share(const struct prediction *prediction, int64_t ns)
{
    return prediction->total_ns ? (double)ns / (double)prediction->total_ns : 0;
}

const char *report_show(double ns, char out[UNITS_TEXT])
{
    if (isnan(ns))
        snprintf(out, UNITS_TEXT, "-");
    else
        units_show_time(ns, out);
    return out;
}

double report_steady_ns(const struct steady *steady)
{
    return steady->kind == STEADY_EXACT ? (double)steady->num_ns / (double)steady->den : NAN;
}

/* The work a task pushes, on the first rank; NULL: it has no device part. */
static const struct op_time *task_time(const struct prediction *prediction, int task)
{
    const struct program *p = prediction->program;
    ASSERT_INDEX(task, p->body_count);
    const struct body *body = &p->bodies[task];
    for (int i = body->first; i < body->first + body->count; i++)
        if (p->ops[i].stream >= 0 && prediction->timing.ops[i].timed)
            return &prediction->timing.ops[i];
    return NULL;
}

/* ---- text: figures --------------------------------------------------------------------------- */

static int64_t report_most_iterations(const struct program *p)
{
    int64_t most = 0;
    for (int rank = 0; rank < p->ranks; rank++)
        most = max_i64(most, p->ends[rank]);
    return most;
}

static bool has_no_data(const struct program *p)
{
    return p->tasks && report_most_iterations(p) == 0;
}

bool report_is_untimed(const struct prediction *prediction)
{
    return prediction->total_ns == 0 && !has_no_data(prediction->program);
}

void report_print_untimed(const struct prediction *prediction, FILE *out)
{
    const unsigned kinds = prediction->program->plan->action_kinds;
    const char *const first = "--times=", *before = first;
    fputs(": no work of the plan has a time; give it one with ", out);
    for (int c = COST_F; c <= COST_B; c++)
        if (kinds >> action_of_cost((enum cost)c) & 1) {
            fprintf(out, "%s%s=1ms", before, cost_key((enum cost)c));
            before = ",";
        }
    if (before == first)
        fputs("the key time", out);
}

static void report_print_head(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    fputs(p->plan->name, out);
    if (p->tasks)
        fprintf(out, ", %s driver", driver_key(p->driver));
    if (program_all_ranks(prediction->program) > 1)
        fprintf(out, ", %d ranks", program_all_ranks(prediction->program));
    if (p->tasks) {
        int64_t most = report_most_iterations(p);
        fprintf(out, ", %" PRId64 " iteration%s", most, most == 1 ? "" : "s");
    }
    if (p->repeats)
        fprintf(out, ", %d iteration%s", p->repeats, p->repeats == 1 ? "" : "s");
    if (prediction->replications > 1)
        fprintf(out, ", mean of %d replications", prediction->replications);
    if (prediction->timing.draw_count > 0)
        fprintf(out, ", seed %" PRIu64, prediction->seed);
    fputs("\n\n", out);
}

static void print_iteration(const struct prediction *prediction, FILE *out)
{
    const struct iteration_figures *figures = &prediction->iteration;
    char mean[UNITS_TEXT], half[UNITS_TEXT], p50[UNITS_TEXT], p95[UNITS_TEXT], p99[UNITS_TEXT];
    double half_ns = (figures->mean_in.high - figures->mean_in.low) / 2;
    fprintf(out, "  iteration   %s", report_show(figures->mean, mean));
    if (half_ns >= 0.5)
        fprintf(out, " +- %s", report_show(half_ns, half));
    fprintf(out, "   p50 %s   p95 %s   p99 %s\n", report_show(figures->p50, p50),
            report_show(figures->p95, p95), report_show(figures->p99, p99));
    if (figures->doubt != DOUBT_NONE && !prediction->blocked_count &&
        (prediction->timing.draw_count > 0 || figures->doubt == DOUBT_FEW))
        fprintf(out, "              (%s)\n", doubt_words(figures->doubt));
    if (prediction->iteration.mean > 0)
        fprintf(out, "  throughput  %.4g iterations/s\n", prediction->throughput_per_s);
}

/* One part of a circle; launches in a row share a word, and parts in a row their rank. */
static void report_print_part(const struct prediction *prediction, const struct steady_part *part,
                              const struct steady_part *last, FILE *out)
{
    const struct program *p = prediction->program;
    bool same_rank = last && last->rank == part->rank;
    bool host = part->kind == EVENT_HOST;
    bool goes_on = host && last && last->kind == EVENT_HOST && same_rank;
    if (last)
        fputs(goes_on ? ", " : " -> ", out);
    if (program_all_ranks(prediction->program) > 1 && !same_rank && part->rank >= 0)
        fprintf(out, "rank %d ", part->rank);
    if (part->kind == EVENT_DRIVER)
        fputs("driver", out);
    else
        fprintf(out, "%s%s", host && !goes_on ? "launch of " : "",
                p->plan->pipeline.tasks[part->task].name);
}

/* "and A -> B": the parts behind the last whole turn. */
static void print_rest(const struct prediction *prediction, int turn, FILE *out)
{
    const struct steady *steady = &prediction->steady;
    const int first = turn ? steady->part_count / turn * turn : 0;
    for (int i = first; i < steady->part_count; i++) {
        fputs(i == first ? " and " : "", out);
        report_print_part(prediction, &steady->parts[i], i > first ? &steady->parts[i - 1] : NULL,
                          out);
    }
}

/* The critical cycle or the circle of waits: one turn of it, up to MAX_PARTS parts, and what follows the last whole turn. */
void report_print_parts(const struct prediction *prediction, FILE *out)
{
    const struct steady *steady = &prediction->steady;
    int turn = steady_turn(steady), shown = min_int(turn, MAX_PARTS);
    for (int i = 0; i < shown; i++)
        report_print_part(prediction, &steady->parts[i], i ? &steady->parts[i - 1] : NULL, out);
    if (shown < turn)
        fprintf(out, " -> ... (%d in all)", turn);
    if (turn < steady->part_count)
        fprintf(out, ", %d times", steady->part_count / turn);
    print_rest(prediction, turn, out);
    if (steady->iterations > 1)
        fprintf(out, ", over %" PRId64 " iterations", steady->iterations);
    fputs("\n", out);
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
    case STEADY_EXACT: fputs(report_show(report_steady_ns(steady), time), out); break;
    }
    if (steady->kind == STEADY_EXACT && prediction->timing.draw_count > 0)
        fputs(" without jitter", out);
    if (steady->kind == STEADY_EXACT && steady->way == STEADY_BY_RECURRENT_STATE)
        fputs(", as the run repeats itself", out);
    if (steady->kind == STEADY_EXACT)
        fputs(steady->part_count ? ", limited by " : "", out);
    report_print_parts(prediction, out);
    if (!isnan(prediction->jitter_penalty))
        fprintf(out, "  jitter      makes it %.1f%% longer\n", 100 * prediction->jitter_penalty);
}

/* The most that any run may have in flight on a rank, which is what the checker bounds; then what this one has, `bytes`. */
static void print_in_flight(const struct prediction *prediction, const char *bytes, FILE *out)
{
    const struct program *p = prediction->program;
    char most[UNITS_TEXT];
    units_show_bytes((double)program_bytes(p, p->most_in_flight), most);
    fprintf(out,
            "\n  in flight   at most %" PRId64 " iteration%s, %s a rank; in this run %" PRId64
            ", %s",
            (int64_t)p->most_in_flight, p->most_in_flight == 1 ? "" : "s", most,
            prediction->in_flight_max, bytes);
    if (!isnan(prediction->in_flight_mean))
        fprintf(out, ", %.1f on average", prediction->in_flight_mean);
}

static void report_print_totals(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    char total[UNITS_TEXT], fill[UNITS_TEXT], drain[UNITS_TEXT], bytes[UNITS_TEXT];
    fprintf(out, "  total       %s", report_show(prediction->makespan_ns, total));
    if (p->tasks)
        fprintf(out, "   fill %s   drain %s", report_show(prediction->fill_ns, fill),
                report_show(prediction->drain_ns, drain));
    else if (p->repeats)
        fprintf(out, "   fill %s", report_show(prediction->fill_ns, fill));
    int compute = prediction_compute_stream(prediction, 0);
    if (prediction->blocked_count)
        fputs(": a deadlock", out);
    else if (report_is_untimed(prediction))
        report_print_untimed(prediction, out);
    else if (has_no_data(p))
        fputs(": no rank has data for an iteration", out);
    if (compute >= 0 && !isnan(prediction->bubble))
        fprintf(out, "\n  bubble      %.1f%% of stream %s", 100 * prediction->bubble,
                p->streams[compute].name);
    report_print_span(prediction, out);
    units_show_bytes((double)prediction->in_flight_bytes_max, bytes);
    if (p->tasks)
        print_in_flight(prediction, bytes, out);
    else if (prediction->in_flight_bytes_max)
        fprintf(out, "\n  allocated   %s a rank at most", bytes);
    fputs("\n", out);
    if (p->plan->machine.cores > 0)
        fprintf(out, "  cores       %d carr%s the work of all ranks\n", p->plan->machine.cores,
                p->plan->machine.cores == 1 ? "ies" : "y");
}

/* ---- text: exposed time, deadlock ------------------------------------------------------------ */

static void print_exposed(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    int width = 4;
    char serial[UNITS_TEXT];
    if (!prediction->exposed_ns || !prediction->serial_exposed_ns)
        return;
    for (int t = 0; t < p->tasks; t++)
        columns_widen(&width, p->plan->pipeline.tasks[t].name);
    fprintf(out, "\n  %-*s  %9s  %9s  %9s  %9s\n", width, "task", "device", "exposed", "serial",
            "slack");
    for (int t = 0; t < p->tasks; t++) {
        const struct op_time *time = task_time(prediction, t);
        char device[UNITS_TEXT], exposed[UNITS_TEXT], slack[UNITS_TEXT];
        bool known = prediction->slack_ns && prediction->slack_ns[t] >= 0;
        const char *name = p->plan->pipeline.tasks[t].name;
        fprintf(out, "  %s%*s  %9s  %9s  %9s  %9s\n", name, columns_fill(name, width), "",
                report_show(time ? (double)time->mean_ns : NAN, device),
                report_show(prediction->exposed_ns[t], exposed),
                report_show(prediction->serial_exposed_ns[t], serial),
                report_show(known ? (double)prediction->slack_ns[t] : NAN, slack));
    }
    fprintf(out,
            "  exposed: how much shorter an iteration would be if the task took no time\n"
            "  serial: the same with one iteration at a time, which takes %s\n"
            "  slack: how much longer the task could take without lengthening the iteration%s\n",
            report_show(prediction->serial_ns, serial),
            prediction->slack_ns ? "" : " (-: not known)");
}

static void report_print_blocked(const struct prediction *prediction, FILE *out)
{
    char name[NAME], time[UNITS_TEXT];
    if (!prediction->blocked_count)
        return;
    fprintf(out, "  DEADLOCK after %s", report_show(prediction->makespan_ns, time));
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

static void print_overrun(const struct prediction *prediction, FILE *out)
{
    const struct program *p = prediction->program;
    const struct time_overrun *overrun = &prediction->overrun;
    char name[NAME], taken[UNITS_TEXT], limit[UNITS_TEXT], at[UNITS_TEXT];
    if (overrun->limit_ns == 0)
        return;
    const struct op *op = &p->ops[overrun->op];
    fprintf(out, "  TIMEOUT     %s of communicator %s takes ",
            program_op_subject(p, op, overrun->iteration, name, sizeof name),
            p->comms[op->comm].name);
    fprintf(out, overrun->taken_ns < 0 ? "for ever" : "%s",
            report_show((double)overrun->taken_ns, taken));
    fprintf(out, " on rank %d, its watchdog ends the job after %s, at %s\n", overrun->rank,
            report_show((double)overrun->limit_ns, limit),
            report_show((double)(overrun->called_ns + overrun->limit_ns), at));
}

static void print_violations(const struct prediction *prediction, FILE *out)
{
    const unsigned broken = prediction->violated & ~(1u << PROPERTY_DEADLOCK);
    const char *comma = "";
    if (!broken)
        return;
    fputs("  VIOLATED    ", out);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (broken & 1u << p) {
            fprintf(out, "%s%s", comma, property_key((enum property)p));
            comma = ", ";
        }
    fputs(": this run broke it; 'swsim verify' shows how\n", out);
}

enum status report_print(const struct prediction *prediction, bool quiet, bool color, FILE *out,
                         struct diag *diag)
{
    enum status status = STATUS_OK;
    report_print_head(prediction, out);
    print_violations(prediction, out);
    print_overrun(prediction, out);
    report_print_blocked(prediction, out);
    if (!isnan(prediction->iteration.mean))
        print_iteration(prediction, out);
    print_steady(prediction, out);
    report_print_totals(prediction, out);
    if (!quiet) {
        status = report_print_step(prediction, color, out, diag);
        report_print_pipeline(prediction, out);
    }
    if (status == STATUS_OK && !quiet)
        status = report_print_streams(prediction, out, diag);
    if (!quiet) {
        report_print_slowdowns(prediction, out);
        print_exposed(prediction, out);
    }
    if (prediction->critical_path)
        critical_path_print(prediction->program, prediction->critical_path, out);
    if (quiet)
        return status;
    char time[UNITS_TEXT];
    fprintf(out, "\n  %" PRId64 " task%s simulated in %s\n", prediction->tasks,
            units_plural((size_t)prediction->tasks), report_show(1e9 * prediction->seconds, time));
    return status;
}

/* ---- under a second driver ------------------------------------------------------------------- */

/* The report as text, which the caller frees; NULL: it failed. */
static char *report_text(const struct prediction *prediction, bool quiet, bool color,
                         struct diag *diag)
{
    struct text_stream stream;
    if (!text_open(&stream)) {
        diag_no_memory(diag);
        return NULL;
    }
    const enum status status = report_print(prediction, quiet, color, stream.out, diag);
    char *text = text_close(&stream, status == STATUS_OK, NULL);
    if (!text && status == STATUS_OK)
        diag_no_memory(diag);
    return text;
}

enum status report_print_second(const struct prediction *prediction, const struct prediction *base,
                                bool quiet, bool color, FILE *out, struct diag *diag)
{
    char *first = report_text(base, quiet, color, diag),
         *second = report_text(prediction, quiet, color, diag);
    size_t same = 0;
    for (char *part = second, *next; first && part && *part; part = next) {
        next = strstr(part, "\n\n");
        next = next ? next + 2 : part + strlen(part);
        const char kept = *next;
        *next = '\0';
        if (strstr(first, part) && !strstr(part, " tasks simulated in "))
            same++;
        else
            fputs(part, out);
        *next = kept;
    }
    if (same > 0)
        fputs("\n  all else is as under the clock driver\n", out);
    const enum status status = first && second ? STATUS_OK : STATUS_SYSTEM;
    if (status == STATUS_OK)
        report_difference(prediction, base, out);
    free(first);
    free(second);
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
                report_show(prediction->makespan_ns, mean));
        return;
    }
    double most = (double)prediction->in_flight_bytes_max;
    units_show_bytes(most, bytes);
    const double shared = (double)prediction->program->shared_bytes;
    units_show_bytes(shared + (most - shared) * prediction->in_flight_mean /
                                  (double)prediction->in_flight_max,
                     average);
    fprintf(out, "%10" PRId64 "  %10s  %10s  %10s  %10s  %12.4g  %10s  %10s  %6.1f%%\n", value,
            report_show(figures->mean, mean), report_show(half_width(&figures->mean_in), half),
            report_show(figures->p99, p99), report_show(prediction->fill_ns, fill),
            prediction->throughput_per_s, bytes, average, 100 * prediction->bubble);
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
                report_show(fabs(difference), ns), report_show(half_width(&in), half),
                difference > 0 ? "longer" : "shorter", driver_key(base->program->driver));
}

/* ---- what if --------------------------------------------------------------------------------- */

enum { WHAT_COLUMNS = 12, CHANGE_COLUMNS = 19 }; /* what is supposed, at least */

static int what_columns(const struct report_row *row)
{
    return row->what_columns > WHAT_COLUMNS ? row->what_columns : WHAT_COLUMNS;
}

/* True if the same operations limit both. */
static bool have_same_limit(const struct steady *a, const struct steady *b)
{
    bool same =
        a->kind == b->kind && a->part_count == b->part_count && a->iterations == b->iterations;
    for (int i = 0; same && i < a->part_count; i++)
        same = a->parts[i].kind == b->parts[i].kind && a->parts[i].rank == b->parts[i].rank &&
               a->parts[i].task == b->parts[i].task;
    return same;
}

/* Of a plan without iterations. */
static void print_total(const struct prediction *prediction, const struct report_row *row,
                        FILE *out)
{
    char total[UNITS_TEXT], longer[UNITS_TEXT];
    const char *what = row->what_if ? row->what_if : "(as it is)";
    fprintf(out, "  %s%*s  %10s", what, columns_fill(what, what_columns(row)), "",
            report_show(prediction->makespan_ns, total));
    if (prediction->blocked_count) {
        fputs("  DEADLOCK\n", out);
    } else if (row->base) {
        const double difference = prediction->makespan_ns - row->base->makespan_ns;
        fprintf(out, "  %10s", report_show(difference, longer));
        if (row->base->makespan_ns > 0)
            fprintf(out, "  %7.1f%%\n", 100 * difference / row->base->makespan_ns);
        else
            fputs("         -\n", out);
    } else {
        if (report_is_untimed(prediction))
            report_print_untimed(prediction, out);
        fputc('\n', out);
    }
}

void report_what_if_line(const struct prediction *prediction, const struct report_row *row,
                         FILE *out)
{
    char mean[UNITS_TEXT], text[2 * UNITS_TEXT + 8] = "", longer[UNITS_TEXT], half[UNITS_TEXT];
    if (!row->base) {
        if (prediction_has_iterations(prediction))
            fprintf(out, "  %-*s  %10s  %*s  %12s  %s\n", what_columns(row), "what if", "iteration",
                    CHANGE_COLUMNS, "change", "iterations/s", "limited by");
        else
            fprintf(out, "  %-*s  %10s  %10s  %8s\n", what_columns(row), "what if", "total",
                    "change", "share");
    }
    if (!prediction_has_iterations(prediction)) {
        print_total(prediction, row, out);
        return;
    }
    if (row->base) {
        struct interval in;
        double difference = prediction_difference(row->base, prediction, &in);
        const double width = half_width(&in);
        snprintf(text, sizeof text, "%s%s%s", report_show(difference, longer),
                 width == 0 ? "" : " +- ", width == 0 ? "" : report_show(width, half));
    }
    const char *what = row->what_if ? row->what_if : "(as it is)";
    fprintf(out, "  %s%*s  %10s  %*s  %12.4g  ", what, columns_fill(what, what_columns(row)), "",
            report_show(prediction->iteration.mean, mean), CHANGE_COLUMNS, text,
            prediction->throughput_per_s);
    if (prediction->blocked_count)
        fputs("DEADLOCK\n", out);
    else if (prediction->steady.kind != STEADY_EXACT || !prediction->steady.part_count)
        fputs("-\n", out);
    else if (row->base && have_same_limit(&prediction->steady, &row->base->steady))
        fputs("the same\n", out);
    else
        report_print_parts(prediction, out);
}
