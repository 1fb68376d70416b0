/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_writer.h - what the journal writes down: spans, edges, iterations and steps in the trace store, and
 * the figures of the run.
 *
 * One thread at a time. Without a store only figures are kept. A store that cannot be written is
 * remembered in `status` and gets nothing more. Memory: the ends of iterations (ends.h), and
 * the spans of those that were not over long ago.
 *
 * A communicator has one operation of a rank at a time, whichever stream each is on. A stream may come to one while its
 * communicator is busy, and the device stamps that moment. The operation starts, as the machine has it
 * (doc/semantics.md, section 3), when the one before it has ended; so it is stored:
 *
 *     stream main       |== GradDist 7 ==|
 *     stream data_dist      ^ stamp      |== InputDistStart 9 ==|
 */
#ifndef SWSIM_TRACE_WRITER_H
#define SWSIM_TRACE_WRITER_H

#include "ends.h"
#include "journal.h"
#include "op_stats.h"

struct trace_writer {
    const struct program *program;
    int64_t base_ns;     /* when the run started, on the clock of its entries */
    struct store *store; /* NULL: none */
    int64_t run;
    int64_t *agents; /* the store's numbers of program->agents */
    char **names;    /* of program->agents; NULL: not yet asked for */
    int64_t steps;   /* stored */
    enum status status;
    struct diag diag;
    struct known_span {
        int rank, task;
        int age; /* passes: edges that end here are added at 1 */
        int64_t iteration, span;
    } * known; /* the spans of tasks that dependence edges may still begin or end at */
    size_t known_count, known_cap;
    int64_t newest;            /* iteration of a known span */
    struct known_span *recent; /* [rank][task][max_distance + 1]: scratch of trace_writer_commit */

    /* figures */
    int64_t *busy_ns;                         /* [stream] */
    int64_t *device_ns, *host_ns, *instances; /* [task], of the lowest rank */
    struct op_stats op_stats;
    int64_t finished; /* device operations */
    int64_t tasks;    /* of those, that are the work of a task */
    /* [rank]: iterations first, first + 1, ... that are not stored yet: a retired one may have work on the
       device whose end has not been read */
    struct trace_iterations {
        struct open_iteration {
            int64_t admitted_ns, over_ns;
            int64_t unfinished; /* operations read that are on the device */
            int64_t retired;    /* the pass that read its retirement, counted from 1; 0: none */
        } * open;
        size_t count, cap;
        int64_t first;
    } * iterations;
    struct ends
        ends; /* of the lowest rank: when iterations were retired and finished on the device */
    int64_t *retired; /* [rank]: how many iterations */
    /* [comm][rank]: when the last operation ended on the communicator, by spans and by steps */
    int64_t *comm_span_ends, *comm_step_ends;
    int64_t passes; /* ended */
    const struct runtime_options *options;
    int64_t told; /* iterations that options->retired has been called for */
    int64_t last_admitted_ns;
};

/* `cores` carry the run, on the host device; 0: not known. */
enum status trace_writer_open(struct trace_writer *trace, const struct program *program,
                              const struct runtime_options *options, const char *device,
                              int64_t base_ns, int cores, struct diag *diag);
/* Commits. `finished` says how the run ended, `iterations` how many there were to be where the options
   did not know, else 0. Frees in any case. */
enum status trace_writer_end(struct trace_writer *trace, enum run_finished finished,
                             int64_t iterations, int64_t duration_ns, struct diag *diag);
void trace_writer_close(struct trace_writer *trace);

/* The span of a thread's operation; returns the span of the push that edges begin at, -1: none. */
int64_t trace_writer_host(struct trace_writer *trace, int thread, const struct log_entry *entry);
/* The stream's execution of an entry's operation, those of a communicator in the order of their pushes; `from` is the
   span that trace_writer_host returned. */
void trace_writer_device(struct trace_writer *trace, const struct log_entry *entry, int64_t from);
/* The end of a pass: what there is becomes durable. Dependence edges of a pass follow with the next one,
   because what a task needed may have been read later than the task itself. */
void trace_writer_commit(struct trace_writer *trace);
/* Rows since then, as well. */
void trace_writer_flush(struct trace_writer *trace);
void trace_writer_step(struct trace_writer *trace, const struct replay_step *step);

/* Figures of the run; the arrays live in result->arena. False: memory. */
bool trace_writer_figures(struct trace_writer *trace, struct runtime_result *result);

#endif
