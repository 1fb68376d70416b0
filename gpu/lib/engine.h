/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - a run that its caller drives, with the contexts of its iterations; private to the public
 * library (gpu/lib/swpipe.h).
 *
 *     swpipe --- engine (pipelined) --- run: streams, workers, queues --- device, shared by both
 *           `--- engine (serial)
 *
 * A pipeline has one engine for the plan as it is and one for its serial variant; only one is open at a
 * time, because a communicator is opened once. Opening one makes a run and starts its workers (engine.c); filling
 * and retiring are the drivers' steps, which the calling thread takes (turns.c).
 */
#ifndef SWPIPE_ENGINE_H
#define SWPIPE_ENGINE_H

#include "context.h"
#include "group.h"
#include "recording.h"
#include "gpu/exec/run.h"
#include "swpipe_policy.h"

struct engine;
struct swpipe;

/* The policy as a run asks for it, in words of the plan. */
struct policy_words {
    struct run_chooser chooser;
    struct engine *engine;
    struct swpipe_ready *ready; /* [rank * threads] */
};

struct engine {
    struct swpipe *pipe;
    struct arena arena;
    struct plan plan;  /* with what is known of functions (gpu/lib/recording.h) */
    bool *is_function; /* by task: not the plan, but a function or a copy does it */
    struct variant variant;
    struct program *program;
    struct run_functions functions;
    struct policy_words policy;
    struct run run;
    bool has_variant, has_run, has_threads;
    struct recording_recording recording;
    struct group_watch watch;     /* with a group */
    struct iteration *iterations; /* [rank here][window] */
    int iteration_count;          /* initialised */
    /* turns.c */
    struct feed *feeds; /* [rank here]: its batches and results */
    size_t ahead;       /* iterations that a rank's batches and results are kept for */
    bool yields;        /* ranks may have to go on beyond their turns */
    int64_t retired;    /* iterations that all ranks here have retired, or had not */
};

/* The argument of a task function: the context as seen by one call. */
struct swpipe_context {
    struct engine *engine;
    struct run_thread *self;
    struct iteration *iteration;
    int task;
    char why[256]; /* it failed; "": it did not say */
};

/* The first message, or that memory is exhausted: words for a failure of the caller's own. */
static inline const char *diag_first_text(const struct diag *diag)
{
    return diag->count ? diag->messages[0].text : "out of memory";
}

/* Not open: all zero. A failed open leaves it to engine_close, too. */
enum status engine_open(struct engine *engine, struct swpipe *pipe, bool serial, struct diag *diag);
/* Stop what runs, join, close, complete the trace. *usable: the device may be used on, which is not so
   after an abort. STATUS_SYSTEM: the trace could not be written. */
enum status engine_close(struct engine *engine, bool *usable, struct diag *diag);
static inline bool engine_is_open(const struct engine *engine)
{
    return engine->program;
}

/* The ranks of this process: [first, end). */
int engine_first_rank(const struct engine *engine);
int engine_end_rank(const struct engine *engine);
struct run_thread *engine_driver(const struct engine *engine, int rank);
struct iteration *engine_iteration(const struct engine *engine, int rank, int64_t iteration);
/* The moment at which a wait that begins now has taken too long. */
int64_t engine_deadline(const struct engine *engine, int64_t limit_ns);

/* ---- turns.c --------------------------------------------------------------------------------- */

/* Places for batches; turns_close takes what an open that failed has left, too. */
enum status turns_open(struct engine *engine, bool serial, struct diag *diag);
void turns_close(struct engine *engine);

/* Ask the source for a batch: 1, 0: there is none, -1: it failed, or answered something else. */
int engine_next(const struct swpipe_source *source, int rank, void **batch);
/* Submit what there is room for on all ranks, asking `source` (NULL: the data ends here) for batches.
   STATUS_VIOLATED: a task or the source failed. STATUS_LIMIT: the room took too long to come. */
enum status engine_advance(struct engine *engine, const struct swpipe_source *source,
                           int64_t limit_ns, struct diag *diag);
/* Retire the oldest iteration of all ranks; *iteration is its number, -1: there is none left. `source` is asked where
   ranks need what another one hands out later. STATUS_LIMIT: it took too long. */
enum status engine_retire(struct engine *engine, const struct swpipe_source *source,
                          int64_t limit_ns, int64_t *iteration, struct diag *diag);
/* One iteration of a serial engine. */
enum status engine_single(struct engine *engine, void *const *batches, int64_t number,
                          int64_t limit_ns, struct diag *diag);
/* Wait until the device has nothing left to do. STATUS_LIMIT: it took too long. */
enum status engine_sync(struct engine *engine, int64_t limit_ns, struct diag *diag);

/* Has every rank of the group a batch for iteration `number`, or has one `ended`? False: why the run stopped is in `diag`. */
bool engine_agree(struct engine *engine, int64_t number, bool ended, bool *all, struct diag *diag);

/* The stream a task of a rank works on. */
struct device_stream *engine_stream(const struct engine *engine, int rank, int task);
static inline struct device_stream *context_stream(const struct swpipe_context *context)
{
    return engine_stream(context->engine, context->self->rank, context->task);
}

#endif
