/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swsim.h - plans proved, predicted, tuned and drawn, and stored runs listed and drawn, as a C library.
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
 * The functions are the verbs of swsim(1). A result has their output twice, as text for people and as JSON, byte for
 * byte what `swsim verify`, `predict`, `tune` and `runs` print, with and without --json: one JSON object a line, a line
 * a driver or a run. doc/semantics.md says what a plan means.
 *
 * Ownership. A plan and a result are the caller's, who gives each back once, swsim_close and swsim_free; NULL is
 * allowed. Texts belong to what they were asked of.
 *
 * Errors. A function returns a status. Its result is made with every status, so that it can be asked for its
 * error, but is NULL where memory is exhausted. Without a place for the result the status is SWSIM_USAGE. The library
 * prints nothing, and ends no process.
 *
 * Threads. A plan is never changed, so threads may share it. A result and a store belong to one thread at a time. Nothing else is
 * shared. swsim_interrupt may be called by any thread, and by a signal handler.
 *
 * Versions. swsim_abi is the number of the soname; it changes where a program has to be compiled again. Later members of
 * the options take the place of reserved ones, so that what was zero keeps its meaning.
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

/* From a file of any kind that swsim reads, or from a text; `name` is the one that messages use, and its suffix tells a
   schedule (.csv) from YAML and JSON. */
enum swsim_status swsim_read(const char *path, struct swsim_plan **out);
enum swsim_status swsim_parse(const char *name, const char *text, struct swsim_plan **out);
void swsim_close(struct swsim_plan *plan);
/* Its name; "" if it could not be read. */
const char *swsim_plan_name(const struct swsim_plan *plan);
/* The errors that kept it from being read, with file, line, column and caret, one after the other; "". */
const char *swsim_plan_error(const struct swsim_plan *plan);
/* Questions to this plan, under way and later ones, end as soon as they can: undecided, or with the results so far. */
void swsim_interrupt(struct swsim_plan *plan);

/* ---- questions ------------------------------------------------------------------------------- */

enum swsim_driver {
    SWSIM_DRIVER_OF_PLAN, /* else, as for the commands: both, or for swsim_tune clock */
    SWSIM_DRIVER_CLOCK,
    SWSIM_DRIVER_DATAFLOW,
    SWSIM_DRIVER_BOTH
};

/* Zero is the default of every member, and of all of them NULL in place of the options. Texts are written as the
   command's option of the same name takes them, and what is wrong with one is told as the command tells it. An option
   that a question does not know is not looked at; one that the plan's form does not know is SWSIM_USAGE. */
struct swsim_options {
    enum swsim_driver driver; /* of the pipeline form */
    int ranks, max_depth;     /* instead of the plan's */
    int threads;              /* of a search, of a prediction: 1; at most 256 */
    int64_t iterations;       /* of the pipeline form; verify: any number; predict: 1000 */
    /* verify */
    int faults;             /* failure safety, too */
    int no_fix;             /* look for no repair */
    int whole_story;        /* every step in the text, not a line for those that belong together */
    int64_t limit_states;   /* undecided beyond: any number, */
    int64_t limit_bytes;    /* 2 GiB, */
    int64_t limit_ns;       /* any time */
    const char *properties; /* these alone: "deadlock,race" */
    /* predict and tune */
    int64_t seed;         /* 1 */
    int64_t replications; /* 1 */
    int opaque;           /* take also an imported plan with much unexplained idle time */
    const char *jitter;   /* predict: "H2D=lognormal(cv=0.3);*=gamma(cv=0.2)", between semicolons */
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
    int allow_stale;      /* reads may see other writes than before */
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

/* Prove the plan or refute it. The result has a verdict, the story of a violation and its repair. */
enum swsim_status swsim_verify(const struct swsim_plan *plan, const struct swsim_options *options,
                               struct swsim_result **out);
/* Simulate it: how long an iteration takes, and what every stream waits for. */
enum swsim_status swsim_predict(const struct swsim_plan *plan, const struct swsim_options *options,
                                struct swsim_result **out);
/* Search a better plan. Of the pipeline form: the result's plan is the best that is proved, or the given one. Of rank
   programs: all schedules, the frontier of time against memory; the result's plan is the fastest. */
enum swsim_status swsim_tune(const struct swsim_plan *plan, const struct swsim_options *options,
                             struct swsim_result **out);
/* Draw the plan into a file, .svg, .png, .pdf or .dot: a graph, of rank programs the schedule. The result has no text. */
enum swsim_status swsim_render(const struct swsim_plan *plan, const struct swsim_options *options,
                               const char *path, struct swsim_result **out);

/* ---- stored runs ----------------------------------------------------------------------------- */

/* A trace store, as swrun, swpipe_record and `swsim predict --db` write them. */
enum swsim_status swsim_store_open(const char *path, struct swsim_store **out);
void swsim_store_close(struct swsim_store *store);
/* The error that kept it from being opened; "". */
const char *swsim_store_error(const struct swsim_store *store);
/* Its runs, oldest first: a table, and a JSON object each with its number. */
enum swsim_status swsim_runs(struct swsim_store *store, struct swsim_result **out);
#define SWSIM_LATEST (-1)
/* The idle time of each stream of a run, SWSIM_LATEST: the newest that has a ledger, by cause. SWSIM_INPUT: the run, or
   every one, has none. */
enum swsim_status swsim_ledger(struct swsim_store *store, int64_t run, struct swsim_result **out);
/* Draw a run into a file, as `swsim render` does: .svg, .png, .pdf or .dot with its first iterations, .html and .json
   with all. Of the options `title` is looked at. The result has no text. */
enum swsim_status swsim_draw_run(struct swsim_store *store, int64_t run,
                                 const struct swsim_options *options, const char *path,
                                 struct swsim_result **out);

/* ---- results --------------------------------------------------------------------------------- */

enum swsim_verdict { SWSIM_PROVED, SWSIM_VIOLATED, SWSIM_UNDECIDED };

/* The worst of the drivers: of swsim_verify; of swsim_predict VIOLATED where the simulated run hangs or breaks a
   property; of swsim_tune where neither the plan nor a candidate is proved and within the limits. UNDECIDED where the
   status was not SWSIM_OK; PROVED where there is no question: of runs, of pictures. */
enum swsim_verdict swsim_verdict(const struct swsim_result *result);
/* Never NULL: "" where there is nothing. */
const char *swsim_text(const struct swsim_result *result);
const char *swsim_json(const struct swsim_result *result);
/* The repaired or tuned plan: as its author wrote it, with the change, where that is possible. "" where nothing was
   found. */
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
