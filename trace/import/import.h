/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - files of profilers as one job, and the job as a plan: the public face of the room.
 *
 * The content of a file says what it is: a trace, a dump of a hang, or a recording of swsim record. Several files, those of a folder, and several processes in
 * one file are ranks of one job, in the order of the ranks that they name, else of the arguments.
 */
#ifndef SWSIM_IMPORT_H
#define SWSIM_IMPORT_H

#include <stdio.h>

#include "evidence.h"
#include "flight.h"
#include "host_calls.h"
#include "trace/job/job.h"
#include "pipeline_form.h"
#include "trace/record/reader/recorded.h"

/* Ranks from `first` to `last`. */
struct rank_range {
    int64_t first, last;
};

/* The kind of plan made from a trace. */
enum import_form { IMPORT_HOST, IMPORT_PIPELINE };

struct import_options {
    enum import_form kind;
    const struct rank_range
        *ranks;        /* only these; a rank that no file names has the number of its place */
    size_t rank_count; /* of `ranks`; 0: all ranks */
    bool steps_given, detail_given, repeat_given, launch_queue_given;
    int64_t first_step, last_step;
    struct host_calls_options form;
    struct pipeline_form_options pipeline;
    struct flight_options flight;
    struct recorded_options recorded;
};

struct imported {
    struct job job;            /* of dumps and recordings: without ranks */
    struct flight_job dumps;   /* of traces: without ranks */
    struct evidence *evidence; /* one a rank */
    struct plan plan;
    int **tasks; /* of a pipeline: per rank and work its task, -1: none; else NULL. In job.arena */
};

/* Ended by import_fini on success. STATUS_INPUT for a file that is no trace, is damaged, or does not belong to
   the others; STATUS_SYSTEM for one that cannot be read; STATUS_USAGE for an option without effect on such files. */
enum status import_files(const char *const *paths, size_t count,
                         const struct import_options *options, struct imported *out,
                         struct diag *diag);
void import_fini(struct imported *imported);
/* Frees the lists of calls and works, most of the memory, without which nothing is recorded or reported. */
void import_forget(struct imported *imported);

/* The ledger and the warnings of the validator, of dumps their calls: for people; as members of an object of JSON. */
void import_report(const struct imported *imported, FILE *out);
struct json;
void import_report_json(const struct imported *imported, struct json *json);

#endif
