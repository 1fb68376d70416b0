/* SPDX-License-Identifier: Apache-2.0 */
/* report_tables.c - several predictions for people, a line each; see report.h. */
#include "report_internal.h"

#include <inttypes.h>
#include <math.h>

#include "base/columns.h"

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
    units_show_bytes(most * prediction->in_flight_mean / (double)prediction->in_flight_max,
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

enum { ITERATION_COLUMNS = 24, TOTAL_COLUMNS = 32 }; /* of what is supposed */

static void print_what_if_head(const struct prediction *prediction, FILE *out)
{
    if (prediction_has_iterations(prediction))
        fprintf(out, "  %-*s  %10s  %22s  %12s  %s\n", ITERATION_COLUMNS, "what if", "iteration",
                "longer by", "iterations/s", "limited by");
    else
        fprintf(out, "  %-*s  %10s  %10s  %8s\n", TOTAL_COLUMNS, "what if", "total", "longer by",
                "share");
}

static void print_limit(const struct prediction *prediction, FILE *out)
{
    if (prediction->steady.kind == STEADY_EXACT && prediction->steady.part_count)
        report_print_parts(prediction, out);
    else
        fputs("-\n", out);
}

/* Of a plan without iterations. */
static void print_total(const struct prediction *prediction, const struct report_row *row,
                        FILE *out)
{
    char total[UNITS_TEXT], longer[UNITS_TEXT];
    const char *what = row->what_if ? row->what_if : "(as it is)";
    fprintf(out, "  %s%*s  %10s", what, columns_fill(what, TOTAL_COLUMNS), "",
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
        fputs(report_is_untimed(prediction) ? ": " REPORT_UNTIMED "\n" : "\n", out);
    }
}

void report_what_if_line(const struct prediction *prediction, const struct report_row *row,
                         FILE *out)
{
    char mean[UNITS_TEXT], text[2 * UNITS_TEXT + 8] = "", longer[UNITS_TEXT], half[UNITS_TEXT];
    if (!row->base)
        print_what_if_head(prediction, out);
    if (!prediction_has_iterations(prediction)) {
        print_total(prediction, row, out);
        return;
    }
    if (row->base) {
        struct interval in;
        double difference = prediction_difference(row->base, prediction, &in);
        snprintf(text, sizeof text, "%s +- %s", report_show(difference, longer),
                 report_show(half_width(&in), half));
    }
    const char *what = row->what_if ? row->what_if : "(as it is)";
    fprintf(out, "  %s%*s  %10s  %22s  %12.4g  ", what, columns_fill(what, ITERATION_COLUMNS), "",
            report_show(prediction->iteration.mean, mean), text, prediction->throughput_per_s);
    if (prediction->blocked_count)
        fputs("DEADLOCK\n", out);
    else
        print_limit(prediction, out);
}
