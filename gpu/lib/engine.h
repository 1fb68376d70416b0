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

#include <pthread.h>

#include "group.h"
#include "gpu/exec/run.h"
#include "swpipe.h"
#include "swpipe_policy.h"

struct engine;
struct swpipe;

/* ---- context.c ------------------------------------------------------------------------------- */

/*
 * What the tasks of one iteration share: its batch, values by name, device memory by name.
 *
 *     iteration  1 --- n  value          owned by its kind
 *                |         `-- memory    a block of the rank's pool
 *                `---- n  thing          freed with the iteration; without a name
 *     pool       free blocks, each with the event behind which it may be used again
 *
 * An iteration is used by all its tasks, on their threads: values are looked up and changed under its
 * lock. A pool has one lock for all iterations of a rank.
 */

struct block {
    struct block *next;
    struct device_buffer *buffer;
    size_t bytes;
    struct device_event *event; /* use it when this has happened */
};

struct pool {
    pthread_mutex_t lock;
    struct device *device;
    struct block *free;
};

struct named_value {
    struct named_value *next;
    char *name;
    void *content;
    const struct swpipe_kind *kind; /* NULL: content is the user's */
    struct block *memory;           /* then content is its address */
    int setter;                     /* task */
};

struct kept_thing {
    struct kept_thing *next;
    void *content;
    void (*release)(void *content);
};

struct iteration {
    pthread_mutex_t lock;
    struct pool *pool;
    int rank;
    int64_t number;
    void *batch;
    const struct swpipe_hooks *owner; /* its `release` is owed the batch; NULL: nothing is */
    void *result;
    struct named_value *values;
    struct kept_thing *things;
};

bool pool_init(struct pool *pool, struct device *device);
/* Before its device is closed, which is idle or has been aborted. */
void pool_fini(struct pool *pool);

bool iteration_init(struct iteration *iteration, int rank, struct pool *pool);
void iteration_fini(struct iteration *iteration);
/* Free all values. The device has finished the iteration's work, or has been aborted. */
void iteration_clear(struct iteration *iteration);

/* Replace or add; false when memory is exhausted, then `content` is still the caller's. `stream` is that
   of the task that does it: memory that is replaced may be used again behind its work. */
bool iteration_set(struct iteration *iteration, const char *name, void *content,
                   const struct swpipe_kind *kind, int setter, struct device_stream *stream);
/* True if this thread executes the release of a value of it. The lock is held then: nothing here may be called. */
bool iteration_is_releasing(const struct iteration *iteration);
/* Release `content` when the iteration is cleared; false when memory is exhausted, then it is still the caller's. */
bool iteration_keep(struct iteration *iteration, void *content, void (*release)(void *content));
void *iteration_get(struct iteration *iteration, const char *name);
void iteration_unset(struct iteration *iteration, const char *name, struct device_stream *stream);

/* Device memory that work on `stream` may use; NULL when there is none, with the reason in diag. */
struct block *iteration_alloc(struct iteration *iteration, const char *name, size_t bytes,
                              int setter, struct device_stream *stream, struct diag *diag);

/* ---- recording.c ----------------------------------------------------------------------------- */

/*
 * Runs of a pipeline are recorded in a trace store.
 *
 * A recorded run is an engine with a journal (gpu/record/journal.h), from its opening to its closing: fill to
 * the end of the data, or a sequence of serial iterations. Its number of iterations is known at its
 * end only. Where a task is a function its log has one entry for all device work of the function
 * (gpu/exec/called.c); the stored plan describes functions as known: no residency slots, no lazy loading
 * (recording_plan). A short-cut collective or message, which puts kept results back, meets no peer: it is
 * plain device work. A run that is still collecting such results is neither, and cannot be judged. The run of a group
 * is recorded in rank 0's process (group.h).
 *
 *     recording_open    after run_open, before the threads start
 *     recording_stop    all threads have ended, the device is idle or aborted
 *     recording_close   the run is closed: replay, figures, the end of the run in the store
 */

struct recording_recording {
    struct journal *journal;       /* NULL: this run is not recorded */
    struct group_recording shared; /* with a group */
    struct runtime_options options;
    char *plan_text, *device;
    int64_t *ends; /* [ranks] */
    int64_t start_ns, duration_ns;
    bool complete;
};

/* The outcome of the last one. */
struct recorded {
    bool is;        /* there was one */
    bool elsewhere; /* its figures are in the process of rank 0 */
    struct runtime_result result;
    char why[512]; /* it was not legal; "" */
};

/* The worker of a task: the plan, a function of which nothing is known, a copy of kept results. */
enum done_by { BY_PLAN, BY_FUNCTION, BY_COPY };

/* `plan` with the tasks that are functions ([task]) described as such; shares its memory and `arena`'s. False:
   memory. */
bool recording_plan(const struct plan *plan, const enum done_by *by, struct arena *arena,
                    struct plan *out);

enum status recording_open(struct recording_recording *recording, struct engine *engine,
                           bool serial, const char *path, struct diag *diag);
void recording_stop(struct recording_recording *recording, struct engine *engine);
/* After run_close. What came of it goes to *out, and what was there before is freed. STATUS_SYSTEM: the
   store could not be written. That a run was not legal is no failure. */
enum status recording_close(struct recording_recording *recording, struct recorded *out,
                            struct diag *diag);

void recorded_fini(struct recorded *recorded);

/* ---- the engine ------------------------------------------------------------------------------ */

/* The policy as a run asks for it, in words of the plan. */
struct policy_words {
    struct run_chooser chooser;
    struct engine *engine;
    struct swpipe_ready *ready; /* [rank * threads] */
};

struct engine {
    struct swpipe *pipe;
    struct arena arena;
    struct plan plan;  /* with what is known of functions (recording_plan) */
    bool *is_function; /* by task: not the plan, but a function or a copy does it */
    struct variant variant;
    struct program *program;
    struct run_functions functions;
    struct policy_words policy;
    struct run run;
    bool has_variant, has_run, has_threads;
    struct recording_recording recording;
    struct group_watch watch;     /* with a group */
    struct iteration *iterations; /* [rank here][places] */
    int *task_stream;             /* [rank][task]: that its event is recorded in; -1: none */
    int places;                   /* iterations of a rank that can be in flight */
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

/* Find out whether every rank of the group has a batch for iteration `number`, or one has `ended`. False: why the run
   stopped is in `diag`. */
bool engine_agree(struct engine *engine, int64_t number, bool ended, bool *all, struct diag *diag);

/* The stream a task of a rank works on. */
struct device_stream *engine_stream(const struct engine *engine, int rank, int task);
static inline struct device_stream *context_stream(const struct swpipe_context *context)
{
    return engine_stream(context->engine, context->self->rank, context->task);
}

#endif
