/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_internal.h - the parts of a report that its texts and its JSON share; private to report*.c.
 */
#ifndef SWSIM_REPORT_INTERNAL_H
#define SWSIM_REPORT_INTERNAL_H

#include "base/units.h"
#include "report.h"

/* A part of the whole time. */
double report_share(const struct prediction *prediction, int64_t ns);

/* The time for people, "-" if it is not known. Returns out. */
const char *report_show(double ns, char out[UNITS_TEXT]);

/* True if nothing in it takes time, as far as the plan says; and then ": " and what to do. */
bool report_is_untimed(const struct prediction *prediction);
void report_print_untimed(const struct prediction *prediction, FILE *out);

/* NAN if it is not exact. */
double report_steady_ns(const struct steady *steady);

/* The rest of a line: the parts of the critical cycle. */
void report_print_parts(const struct prediction *prediction, FILE *out);

/* Streams that one row stands for: of one name and much the same account. */
struct report_stream_row {
    int stream;   /* the first of them */
    int count;    /* how many */
    bool average; /* of all streams of the name, alike or not */
    struct stream_account sum;
};

/* The rows of a prediction, one for each name. Returns their number. */
int report_rows(const struct prediction *prediction, struct report_stream_row *rows);

enum status report_print_streams(const struct prediction *prediction, FILE *out, struct diag *diag);
/* A step in one line: what the computing streams were busy with; nothing of host programs. */
enum status report_print_step(const struct prediction *prediction, bool color, FILE *out,
                              struct diag *diag);
void report_print_slowdowns(const struct prediction *prediction, FILE *out);

/* report_pipeline.c: the ranks of rank programs; nothing of other plans. */
void report_print_span(const struct prediction *prediction, FILE *out);
void report_print_pipeline(const struct prediction *prediction, FILE *out);
void report_write_pipeline(const struct prediction *prediction, struct json *json);

#endif
