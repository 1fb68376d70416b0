/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swsim.h - a C library that proves, predicts, tunes and draws plans, and lists and draws stored runs.
 *
 *     struct swsim_plan *plan;
 *     struct swsim_result *result = NULL;
 *     if (swsim_read("train.yaml", &plan) == SWSIM_OK &&
 *         swsim_verify(plan, NULL, &result) == SWSIM_OK)
 *         puts(swsim_text(result));
 *     else
 *         fprintf(stderr, "%s\n", result ? swsim_error(result) : swsim_plan_error(plan));
 *     swsim_free(result);
 *     swsim_close(plan);
 *
 * The functions are the verbs of swsim(1). A result has the output of its verb twice: as text for people, and as JSON, one
 * object a line for each driver or run. Both are byte for byte what the command prints, without and with --json.
 * doc/semantics.md says what a plan means.
 *
 * Ownership. The caller owns plans, stores and results, and gives each back once: with swsim_close, swsim_store_close and
 * swsim_free, which allow NULL. A text belongs to the plan, store or result that returned it, and lives as long.
 *
 * Errors. A function returns a status and sets *out whatever the status is, so that swsim_plan_error, swsim_store_error
 * or swsim_error can say what was wrong; *out is NULL only where memory is exhausted. `out` NULL is SWSIM_USAGE. The
 * library prints nothing and ends no process.
 *
 * Threads. A plan is never changed, so threads may share it. A result and a store belong to one thread at a time. Nothing else is
 * shared. swsim_interrupt may be called by any thread, and by a signal handler.
 *
 * Versions. swsim_abi is the number of the soname; it changes when programs must be compiled again. Later options take
 * the place of reserved members, so that a zero keeps its meaning.
 *
 * Processes. A picture is laid out by Graphviz in a child process, so that its failures stay there.
 */
#ifndef SWSIM_LIBRARY_H
#define SWSIM_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct swsim_plan;
struct swsim_result;
struct swsim_store;

enum swsim_status {
    SWSIM_OK,
    SWSIM_LIMIT, /* interrupted, or a limit was reached, before there was an answer */
    SWSIM_USAGE, /* this cannot be asked of this plan */
    SWSIM_INPUT, /* the plan is wrong */
    SWSIM_SYSTEM /* memory, threads, files */
};
/* "ok", "limit", "usage", "input", "system" */
const char *swsim_status_name(enum swsim_status status);

/* The release, "0.1.0", and the number of its binary interface, that of the soname. */
const char *swsim_version(void);
int swsim_abi(void);

/* ---- plans ----------------------------------------------------------------------------------- */

/* Read a plan from a file of any kind that swsim reads, or from a text. Messages call the text `name`, whose suffix tells
   a schedule (.csv) from YAML and JSON. */
enum swsim_status swsim_read(const char *path, struct swsim_plan **out);
enum swsim_status swsim_parse(const char *name, const char *text, struct swsim_plan **out);
void swsim_close(struct swsim_plan *plan);
/* The plan's name; "" if it could not be read. */
const char *swsim_plan_name(const struct swsim_plan *plan);
/* The errors that kept the plan from being read, one after the other, with file, line, column and caret; "": it was read. */
const char *swsim_plan_error(const struct swsim_plan *plan);
/* All questions to this plan, those under way and later ones, end as soon as they can: undecided, or with the results so
   far. */
void swsim_interrupt(struct swsim_plan *plan);

/* ---- questions ------------------------------------------------------------------------------- */

enum swsim_driver {
    SWSIM_DRIVER_OF_PLAN, /* else, as for the commands: both, or for swsim_tune clock */
    SWSIM_DRIVER_CLOCK,
    SWSIM_DRIVER_DATAFLOW,
    SWSIM_DRIVER_BOTH
};

/* Zero is the default of every member, and NULL in place of the options stands for all defaults. A text is written as the
   command's option of the same name takes it, and an error in it is told as the command tells it. A question takes no
   notice of members that belong to others; a member that does not apply to the plan's form is SWSIM_USAGE. */
struct swsim_options {
    enum swsim_driver driver; /* of the pipeline form */
    int ranks, max_depth;     /* these take the place of the plan's */
    int threads;              /* of a search, of a prediction: 1; at most 256 */
    int64_t iterations;       /* of the pipeline form; verify: any number; predict: 1000 */
    /* verify */
    int faults;             /* 1: prove failure safety, too */
    int no_fix;             /* 1: look for no repair */
    int whole_story;        /* 1: a line for every step; 0: steps that belong together share one */
    int64_t limit_states;   /* beyond so many states the verdict is undecided; 0: any number */
    int64_t limit_bytes;    /* the same for memory; 0: 2 GiB */
    int64_t limit_ns;       /* the same for time; 0: any */
    const char *properties; /* prove these alone: "deadlock,race" */
    /* predict and tune */
    int64_t seed;         /* 1 */
    int64_t replications; /* 1 */
    int opaque; /* 1: accept an imported plan even if much of its idle time is unexplained */
    const char *jitter; /* predict: "H2D=lognormal(cv=0.3);*=gamma(cv=0.2)", between semicolons */
    const char
        *profile; /* measured times, those of a serial run in a trace store: "FILE" or "FILE:RUN" */
    /* rank programs */
    const char *times; /* of actions instead of the plan's: "F=1ms,B=2ms"; predict, tune, render */
    const char *
        p2p; /* verify, predict, render: another channel of messages, "group", "pair", "direction", "edge";
                          "all" (not render): a table of them in place of the verb's output */
    /* tune */
    int64_t memory_bytes; /* of a rank: any number */
    int64_t candidates;   /* to try: 10000, 1000 where they are simulated */
    int allow_stale;      /* 1: reads may see other writes than in the given plan */
    const char *keep;     /* "stream,group": what stays as it is */
    const char *
        axes; /* rank programs: "schedule=1f1b,zb_h1;microbatches=8,16", an axis between semicolons, named as
                             the command's options are: schedule, microbatches, size, chunks, group, held, balance,
                             checkpoint, p2p */
    int samples;   /* rank programs: of a microbatch; the model's, else 1 */
    int half_size; /* samples at which passes have half their best speed: 0 */
    /* render */
    const char *title; /* the plan's name */
    /* predict and tune */
    int cores; /* for the work of all ranks: the plan's, else those of the profile's machine */
    int reserved_int;  /* 0; else SWSIM_USAGE, for an option that this version does not know */
    void *reserved[7]; /* likewise */
};

/* Prove the plan or refute it. The result has a verdict, the steps that lead to a violation, and its repair. */
enum swsim_status swsim_verify(const struct swsim_plan *plan, const struct swsim_options *options,
                               struct swsim_result **out);
/* Simulate it: how long an iteration takes, and what every stream waits for. */
enum swsim_status swsim_predict(const struct swsim_plan *plan, const struct swsim_options *options,
                                struct swsim_result **out);
/* Search for a better plan. For a pipeline the result's plan is the best one that is proved, or the given one. For rank
   programs all schedules are tried: the text is the frontier of time against memory, the result's plan is the fastest. */
enum swsim_status swsim_tune(const struct swsim_plan *plan, const struct swsim_options *options,
                             struct swsim_result **out);
/* Draw the plan into a file, .svg, .png, .pdf or .dot: the schedule of rank programs, the graph of any other plan. The
   result has no text. */
enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out);

/* ---- stored runs ----------------------------------------------------------------------------- */

/* A trace store, as swrun, swpipe_record and `swsim predict --db` write them. */
enum swsim_status swsim_store_open(const char *path, struct swsim_store **out);
void swsim_store_close(struct swsim_store *store);
/* The error that kept the store from being opened; "": it is open. */
const char *swsim_store_error(const struct swsim_store *store);
/* The runs of a store, oldest first: a table, and a JSON object for each, with its number. */
enum swsim_status swsim_runs(struct swsim_store *store, struct swsim_result **out);
#define SWSIM_LATEST (-1)
/* The idle time of each stream of a run, by cause. SWSIM_LATEST is the newest run that has a ledger. SWSIM_INPUT: the run
   has no ledger, or no run has one. */
enum swsim_status swsim_ledger(struct swsim_store *store, int64_t run, struct swsim_result **out);
/* Draw a run into a file, as `swsim render` does: .svg, .png, .pdf or .dot with its first iterations, .html and .json
   with all. Of the options only `title` counts. The result has no text. */
enum swsim_status swsim_draw_run(struct swsim_store *store, int64_t run,
                                 const struct swsim_options *options, const char *path,
                                 struct swsim_result **out);

/* ---- results --------------------------------------------------------------------------------- */

enum swsim_verdict { SWSIM_PROVED, SWSIM_VIOLATED, SWSIM_UNDECIDED };

/* The worst verdict of the drivers. swsim_predict: VIOLATED if the simulated run hangs or breaks a property.
   swsim_tune: VIOLATED if neither the plan nor a candidate is proved and within the limits. UNDECIDED if the status was
   not SWSIM_OK. PROVED for results that answer no such question: of runs and pictures. */
enum swsim_verdict swsim_verdict(const struct swsim_result *result);
/* The output as text, and as JSON; never NULL: "" if there is none. */
const char *swsim_text(const struct swsim_result *result);
const char *swsim_json(const struct swsim_result *result);
/* The repaired or tuned plan, with its author's text around the change where that is possible; "": none was found. */
const char *swsim_better_plan(const struct swsim_result *result);
/* Errors, warnings and notes, with their places in the plan. */
const char *swsim_messages(const struct swsim_result *result);
/* The first error in one line; "". NULL in place of a result: memory is exhausted. */
const char *swsim_error(const struct swsim_result *result);
void swsim_free(struct swsim_result *result);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
