/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe.h - software pipelines for streams and communicators, as a C library.
 *
 * A plan file lists the tasks of an iteration with their dependences, streams, stages and thread groups.
 * This library runs it, with a C function for each task or with the work the plan describes:
 *
 *     static int forward(struct swpipe_context *context, void *model) { ... }
 *
 *     struct swpipe_task tasks[] = {{"H2D", copy_batch, &model}, {"Forward", forward, &model}};
 *     struct swpipe_config config = {.plan_file = "train.yaml", .tasks = tasks, .task_count = 2};
 *     struct swpipe *pipe;
 *     if (swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_fill(pipe, &source) == SWPIPE_OK)
 *         while (swpipe_progress(pipe, &source, &iteration) == SWPIPE_OK)
 *             ...
 *     swpipe_close(pipe);
 *
 * The programming interface is that of the SWPipeline reference (PipelinePlan, SWPipeline,
 * DataFlowPipeline, TaskProfiler). Clock-driven and data-flow pipelines have the same calls; the driver
 * is one member of the configuration. doc/semantics.md defines what a plan means; `swsim verify`
 * proves its properties.
 *
 * The steps of a task, in this order, on the worker thread of its thread group: the CPU parts of its
 * dependences are awaited, its stream waits for their device work, its turn comes if it is globally
 * ordered, its locks are taken; its function is called, which computes on the host and pushes device
 * work to the task's stream; the turn ends, the task's event is recorded, its waiters are woken.
 *
 * Ranks. A pipeline on the host device holds all ranks of the plan in this process: functions are
 * called for each of them (swpipe_rank), sources are asked for each of them. With a group (swpipe_group.h) each
 * process has one rank. On the cuda device a process always has one rank: without a group, the only one.
 *
 * Threads. A pipeline belongs to one thread at a time. A call that is made while another one is under way, by its
 * source, a hook, a task or another thread, is SWPIPE_USAGE and changes nothing, not even swpipe_error; swpipe_close then
 * does nothing. These may be called by any thread at any time between open and close, also while a call is under way: swpipe_depth,
 * swpipe_task_count, swpipe_rank_count, swpipe_task_name, swpipe_in_flight, swpipe_result, swpipe_graph_launches, swpipe_error
 * and swpipe_comm_is_lost.
 * Functions run on the library's threads, or all on the caller's (enum swpipe_threads); one task of one rank never runs
 * twice at the same time. The values of an iteration may be used by all its tasks at the same time.
 *
 * Exceptions. A function, a hook, a source and whatever else of the program the library calls returns to it. An exception of
 * C++ or another language must be caught in it and be made a failure (swpipe_fail); one that leaves it, a longjmp out of it
 * and pthread_exit in it would go through C code that holds locks, and end the process or leave it hanging.
 *
 * fork(2). A pipeline belongs to the process that opened it. In a child its calls are SWPIPE_USAGE and say so, swpipe_close
 * does nothing, and the child may open pipelines of its own (on cuda only if the parent has not used CUDA, as CUDA says).
 *
 * NULL. Without a pipeline a call returns SWPIPE_USAGE or NULL; one that returns a number returns -1, or 0 if the number
 * counts what has happened; swpipe_close does nothing. Without a context a call of a function returns -1 or NULL and
 * does nothing.
 *
 * Errors. Every call returns a status; swpipe_error describes the last one that was not OK or END. When a
 * task fails, everything stops: no later instance starts, every waiter wakes at
 * once, the first error is the one reported. swpipe_drain then cleans up, and the pipeline can be
 * filled again.
 */
#ifndef SWPIPE_H
#define SWPIPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "swpipe_build.h"
#include "swpipe_collectives.h"
#include "swpipe_group.h"
#include "swpipe_own.h"
#include "swpipe_policy.h"
#include "swpipe_status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct swpipe;
struct swpipe_context;

enum swpipe_driver { SWPIPE_CLOCK, SWPIPE_DATAFLOW };
enum swpipe_device { SWPIPE_HOST, SWPIPE_CUDA };

/* The threads that call functions. With SWPIPE_CALLER the library starts no workers: the thread that calls swpipe_fill,
   swpipe_progress and the others calls all functions within these calls. It takes the steps of each thread group in turn, as
   far as they can go, so a function never waits for another one, and the order is one of those that the proof covers.
   Functions of two thread groups never run at the same time, and none runs between two calls. */
enum swpipe_threads { SWPIPE_WORKERS, SWPIPE_CALLER };

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The function of a task. It returns 0; any other value means that it failed, and swpipe_fail gives the reason. */
typedef int swpipe_function(struct swpipe_context *context, void *arg);

/* The state outside its context that a task reads and writes, so that the task can be short-cut. `capture` is called
   after the function and returns a copy of the state, or NULL when memory is exhausted. `restore` puts a copy back and
   returns 0; any other value fails the task. `release` frees a copy. */
struct swpipe_io {
    void *(*capture)(void *arg);
    int (*restore)(const void *saved, void *arg);
    void (*release)(void *saved, void *arg);
    void *arg;
};

struct swpipe_task {
    const char *name;          /* as in the plan */
    swpipe_function *function; /* NULL: the work the plan describes */
    void *arg;
    const struct swpipe_io *io; /* [io_count]; may be NULL */
    size_t io_count;
};

/* Graphs: a steady period of the clock-driven pipeline is captured, and from then on given to the device by
   one launch. That takes functions that do nothing but give work to the device, the same for every iteration
   but for the buffers of the plan (swpipe_buffer), and are named as `device_only`. They are called while a
   period is captured, and for later ones not at all; what they give to the device (arguments of swpipe_launch,
   addresses, values) must stay valid as long as the pipeline is filled, and they cannot use swpipe_alloc. A
   pipeline with other functions, short-cuts, functions that are recorded, or a plan that does not allow it
   (swrun(1), GRAPHS) has no graphs. */
enum swpipe_graph {
    SWPIPE_GRAPH_OFF,
    SWPIPE_GRAPH_AUTO,   /* graphs if they are possible */
    SWPIPE_GRAPH_REQUIRE /* SWPIPE_USAGE, with the reason, if they are not possible */
};

/* An iteration that has been retired on a rank of this process. */
struct swpipe_retired {
    int64_t iteration;
    int rank;
    void *batch;
    void *result; /* of swpipe_set_result; NULL: none was set */
};

/* Functions of the user beside those of tasks; each may be NULL. */
struct swpipe_hooks {
    /* On a thread that runs functions of tasks, before the first and after the last. `group` is the thread's group
       in the plan; the rank's GPU is the thread's current one. With SWPIPE_CALLER they are called on the calling thread, once for
       each group. `started` returns 0; any other value fails the pipeline. */
    int (*started)(void *arg, int rank, const char *group);
    void (*stopped)(void *arg, int rank, const char *group);
    /* On the calling thread, when an iteration is retired: its values are still there. Its device work is done under
       `retire: device`; under the default, `retire: submit`, it has only been submitted. */
    void (*retired)(void *arg, const struct swpipe_retired *retired);
    /* On the calling thread, exactly once for each batch of a source, whatever becomes of its iteration: as its
       values are freed, when its device work is done or aborted, or when no iteration begins with it. */
    void (*release)(void *arg, int rank, void *batch);
    void *arg;
};

/* GPU `number`, from 0, as the member `gpu` of swpipe_config. */
#define SWPIPE_GPU(number) ((number) + 1)

/* ---- open and close -------------------------------------------------------------------------- */

/* Sets two variables of the environment for cuda, unless they are set: NCCL_RUNTIME_CONNECT=0, as otherwise the first
   collective on a communicator waits for the other ranks in the calling thread, which no plan says; and
   CUDA_DEVICE_MAX_CONNECTIONS=32, as otherwise more than 8 streams wait for each other. The call belongs at the start of
   main, before threads and before the first use of CUDA. Returns the number of variables that were set; -1: memory is
   exhausted. No other call changes the environment, and each leaves the last error of CUDA on the calling thread as it
   was. */
int swpipe_set_environment(void);

/* Zero is the default of every member. Strings and arrays are needed during swpipe_open only. */
struct swpipe_config {
    const char *plan_file;           /* a path, or with plan_text the name that messages use */
    const char *plan_text;           /* the plan itself */
    const struct swpipe_task *tasks; /* those that are functions; the others do the plan's work */
    size_t task_count;
    enum swpipe_driver
        driver; /* takes the place of the plan's; if that differs the message function is told */
    enum swpipe_device device;
    int ranks;     /* instead of the plan's; at most 65536 */
    int max_depth; /* data-flow only: iterations in flight, instead of the plan's; at most 255 */
    int64_t
        wait_timeout_ns; /* the longest wait of a task for another one, or for its turn; 0: 30 s; -1: no limit */
    int64_t spin_ns; /* a waiting thread spins for so long before it sleeps; 0: 50 us where a
                                    core is free for it; -1: not at all */
    int64_t
        progress_timeout_ns; /* the longest wait of a call for an iteration, or at the end for the device; 0: 60 s; -1: no limit */
    enum swpipe_graph graph;
    enum swpipe_threads threads;
    const char *const *
        device_only; /* names of tasks with device-only functions; without graphs these are like others */
    size_t device_only_count;
    struct swpipe_group *group; /* the other ranks are other processes; NULL: all ranks are here */
    struct swpipe_hooks hooks;
    struct swpipe_own own; /* streams, communicators and memory of the program */
    int gpu; /* cuda: SWPIPE_GPU(n); 0: the caller's current one. Every call leaves the caller's current GPU as it
                was, and makes no context on it. (A build with a CUDA before 12 calls cudaSetDevice
                for both.) Not run on a GPU. The host device has none and takes no notice */
    int64_t
        proof_limit_ns; /* the time for the proof at open; 0: 20 ms; -1: no proof, and only plans that must hang by a
                                   Corollary are refused */
    /* Receives lines of text. During swpipe_open: warnings about the plan's names, the properties that are not proved or
       about which no task declares anything, and the steps to a violation. Later it is called once if
       results are handed out before the device has finished them, and, by swpipe_close too, for memory of a GPU that
       cannot be freed because a kernel does not end. NULL: the lines are dropped. */
    void (*message)(void *arg, const char *text);
    void *message_arg;
    struct swpipe_policy policy; /* data-flow: chooses among the tasks that are ready */
    void *reserved[8];           /* for later members; NULL, else SWPIPE_USAGE */
};

/* *out is set unless memory is exhausted, so that swpipe_error can say what was wrong. The program closes *out whatever
   the status is. A plan that must hang is refused, SWPIPE_INPUT: one thread that waits for itself (the reference's
   Corollaries, which the error names), and any deadlock in every interleaving. A proof by structure takes
   microseconds; for the rest there is a limit. swpipe_verify works on a refused pipeline, too. */
enum swpipe_status swpipe_open(const struct swpipe_config *config, struct swpipe **out);
/* Stop what is in flight and free the pipeline. NULL is allowed. */
void swpipe_close(struct swpipe *pipe);
/* The number of periods, over all ranks, that were given to the device by one launch since the pipeline was opened. */
int64_t swpipe_graph_launches(const struct swpipe *pipe);
/* How many iterations can be in flight under this driver, how many tasks an iteration has, how many ranks the plan has;
   -1: the pipeline did not open. */
int swpipe_depth(const struct swpipe *pipe);
int swpipe_task_count(const struct swpipe *pipe);
int swpipe_rank_count(const struct swpipe *pipe);
/* The name of task 0 to swpipe_task_count - 1; NULL: there is no such task. */
const char *swpipe_task_name(const struct swpipe *pipe, int task);
/* The number of iterations admitted and not yet retired on this process's first rank; 0 if no run is under way. */
int swpipe_in_flight(const struct swpipe *pipe);
/* The result that swpipe_set_result gave for the iteration that swpipe_progress retired last on a rank of this process;
   NULL: it gave none. What the device computes in it is there under `retire: device`; under the default, `retire: submit`, it
   may still be computed. The pointer is the function's: what it points to must outlive the iteration. A value of the iteration
   (swpipe_set, swpipe_alloc) does not, it is freed by then; the hook `retired` is called before that. */
void *swpipe_result(const struct swpipe *pipe, int rank);
/* The description of the last failure; "" if there was none, never NULL. The text is valid until the next call that
   fails. A thread that did not make the failed call gets a copy, which is valid until this thread asks again. */
const char *swpipe_error(const struct swpipe *pipe);

/* ---- the plan -------------------------------------------------------------------------------- */

/* The verdict of libswsim (swsim.h) on the plan under this driver. Texts are valid until the next question or close. */
struct swpipe_answer {
    int holds; /* verify: 1 proved, 0 violated, -1 undecided; predict: 0 the run hangs, else 1 */
    const char *
        text; /* for people: the verdict, steps to a violation and repair; the figures and stalls */
    const char *json;   /* what `swsim verify --json` or `predict --json` prints */
    const char *repair; /* the repaired plan; "": there is none */
};
/* Prove the plan or refute it, for at most `limit_ns` (0: as long as it takes; negative: SWPIPE_USAGE). The work of
   functions is what the plan declares of their tasks. Also after a failed open. */
enum swpipe_status swpipe_verify(struct swpipe *pipe, int64_t limit_ns, struct swpipe_answer *out);
/* Simulate 1000 iterations with the plan's times. */
enum swpipe_status swpipe_predict(struct swpipe *pipe, struct swpipe_answer *out);

/* ---- data ------------------------------------------------------------------------------------ */

/* Where batches come from. `next` is called by the thread that fills or progresses, for one iteration after the other, and
   for each of them once for every rank in this process. It returns 1 and sets *batch, or 0 if there is no more; any other
   value fails the pipeline. All ranks, of a process and of a group,
   end when the data of one does: with the first iteration that it has no batch for. Batches that others had for that
   iteration are released unused. */
struct swpipe_source {
    int (*next)(void *arg, int rank, void **batch);
    void *arg;
};

/* ---- pipelined ------------------------------------------------------------------------------- */

/* Fetch batches, start the workers and submit until the pipeline is full. */
enum swpipe_status swpipe_fill(struct swpipe *pipe, const struct swpipe_source *source);
/* Retire the oldest iteration, set *iteration to its number (`iteration` may be NULL), and submit what now has
   room. The device work of the retired iteration is done under `retire: device`; else it has only been submitted, and memory
   of the program's own that iterations use in turn must not be used again before it is done. `source` NULL: take in nothing
   more from now on.
   END: all iterations have been retired, the pipeline is empty and may be filled again. */
enum swpipe_status swpipe_progress(struct swpipe *pipe, const struct swpipe_source *source,
                                   int64_t *iteration);
/* Retire what is in flight, stop the workers and empty the pipeline, also after a failure. Short-cuts
   stay. */
enum swpipe_status swpipe_drain(struct swpipe *pipe);
/* Fill, and progress to the end. *seconds (`seconds` may be NULL) is the time until all device work was done. */
enum swpipe_status swpipe_run(struct swpipe *pipe, const struct swpipe_source *source,
                              double *seconds);

/* ---- serial: one task after another, on one stream ------------------------------------------- */

/* Run all iterations, up to the first for which a rank has no batch; the batches that other ranks had for it are released
   unused. */
enum swpipe_status swpipe_run_serial(struct swpipe *pipe, const struct swpipe_source *source,
                                     double *seconds);
/* One iteration, finished on the device when this returns; nothing stays in flight. `batches`: one for
   every rank in this process; NULL: they have none. Not while the pipeline is filled. */
enum swpipe_status swpipe_run_one_serial(struct swpipe *pipe, void *const *batches,
                                         int64_t iteration);

/* ---- traces ---------------------------------------------------------------------------------- */

/* From now on runs are added to a trace store, a file that `swsim runs`, `render`, `predict --profile`
   and `compare` read. `file` "": they are recorded into no file, for swpipe_recorded and swpipe_format_stats; NULL: they are
   recorded no more. A run lasts from a fill to the end of the data, or from the first serial iteration to the next call that
   is not one. Not while the pipeline is filled. A store keeps the device's
   times of each task, the host spans of each worker, waits with their causes, and every step; at the end of
   a run, its steps are replayed through the machine that `swsim verify` explores. The device part of a
   function begins with the first swpipe_launch, swpipe_work or swpipe_stream in it, and ends with the
   last work it pushed. A store that cannot be written fails the run, SWPIPE_SYSTEM; that of serial
   iterations is complete, and its failure told, with swpipe_drain. swpipe_profile is not recorded. */
enum swpipe_status swpipe_record(struct swpipe *pipe, const char *file);

/* The outcome of a recorded run. */
struct swpipe_recorded {
    int64_t run; /* in the store; -1: in none */
    int64_t iterations, steps;
    int legal; /* 1: the plan allows what happened; 0: it does not; -1: it cannot be said, because
                        the run failed */
    const char *why; /* why it was not legal; "": it was legal, or this is not known */
    double seconds,
        iteration_seconds; /* of the run; of an iteration in the steady state, 0: too few iterations */
};
/* The outcome of the recorded run that ended last; *out is valid until the next one ends. SWPIPE_USAGE: no recorded run has
   ended; swpipe_error stays what it was. */
enum swpipe_status swpipe_recorded(struct swpipe *pipe, struct swpipe_recorded *out);

/* ---- short-cuts ------------------------------------------------------------------------------ */

/* From its next execution on the task's results are kept: the values it sets in its context, the
   plan's buffers it writes, what its io captures. Later executions restore them and leave the function
   out; waits, turns and events stay. Memory of swpipe_alloc and buffers are copied in stream order; `clone` and `capture` are
   called when the function has returned, before its device work is done: what that writes is not in their copies, unless the
   function waits for it (swpipe_sync). Not while the pipeline is filled. All ranks must do the same. */
enum swpipe_status swpipe_enable_shortcut(struct swpipe *pipe, const char *task);
/* `task` NULL: of all tasks. Results that were kept are forgotten. */
enum swpipe_status swpipe_disable_shortcut(struct swpipe *pipe, const char *task);

/* Exposed time: how much shorter an iteration would be if a task took no time. */
struct swpipe_exposed {
    const char *task;
    double seconds; /* max(0, baseline - median with the task short-cut); -1: skipped */
};
struct swpipe_profile {
    double baseline_seconds;            /* of a serial iteration: median of the rounds */
    const struct swpipe_exposed *tasks; /* topological order; the pipeline's */
    size_t task_count;
};
struct swpipe_profile_options {
    int warmup, measure, rounds; /* iterations, iterations a round, rounds; 0: 3, 10, 3 */
    const char *const *skip;     /* tasks that cannot be left out */
    size_t skip_count;
};
/* Measure serial iterations with `batches`, then with each task short-cut in turn. The iterations of a
   round follow each other without waiting for the device in between, only at the end. Short-cuts that
   were on stay on throughout. `options` may be NULL. *out is valid until the next profile or close. */
enum swpipe_status swpipe_profile(struct swpipe *pipe, void *const *batches,
                                  const struct swpipe_profile_options *options,
                                  struct swpipe_profile *out);
/* One profile for each of `count` sets of batches, for data with different times; out: [count]. */
enum swpipe_status swpipe_profile_many(struct swpipe *pipe, void *const *const *batches,
                                       size_t count, const struct swpipe_profile_options *options,
                                       struct swpipe_profile *out);

/* ---- tables ---------------------------------------------------------------------------------- */

/* Each returns a text that the caller frees with free(3), or NULL: swpipe_error has the reason. */
/* Which iteration each task works on, period by period. `periods` 0: enough to see the steady state;
   negative: SWPIPE_USAGE. A short-cut task has "." in each. Data-flow has no periods, and the table says so. */
char *swpipe_format_schedule(struct swpipe *pipe, int periods);
/* The least depth that can hold the stages; the enqueue order and what it may stall. */
char *swpipe_format_stage_analysis(struct swpipe *pipe);
/* Exposed time of each task, and its share of the baseline. */
char *swpipe_format_profile(struct swpipe *pipe, const struct swpipe_profile *profile);
/* Calls and times of each task in the last recorded run, over all ranks: the time on the device, in all and of one call, and
   on the host, in all and without waits. */
char *swpipe_format_stats(struct swpipe *pipe);
/* A line that says what this pipeline is, and its schedule. */
char *swpipe_format(struct swpipe *pipe);

/* The same texts, written to `out`. */
enum swpipe_status swpipe_print_schedule(struct swpipe *pipe, int periods, FILE *out);
enum swpipe_status swpipe_print_stage_analysis(struct swpipe *pipe, FILE *out);
enum swpipe_status swpipe_print_profile(struct swpipe *pipe, const struct swpipe_profile *profile,
                                        FILE *out);
enum swpipe_status swpipe_print_stats(struct swpipe *pipe, FILE *out);
enum swpipe_status swpipe_print(struct swpipe *pipe, FILE *out);

/* ---- inside a task --------------------------------------------------------------------------- */

/* A context is valid until its function returns. A function in stream order (swpipe_launch) has no context: what it needs
   comes with its argument. */

int64_t swpipe_iteration(const struct swpipe_context *context);
int swpipe_rank(const struct swpipe_context *context);
void *swpipe_batch(const struct swpipe_context *context);
/* Set the result of this iteration, for swpipe_result and the hook `retired`. Its memory stays the user's, and must live
   until then: see swpipe_result. A loss that the
   device computes needs `retire: device` in the plan, or it is read before it is there; the message function is told. */
void swpipe_set_result(struct swpipe_context *context, void *result);
/* Give the reason why the task fails. It returns -1, for `return swpipe_fail(...)`. */
int swpipe_fail(struct swpipe_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Values by name, seen by all tasks of the iteration. A kind says how to copy a value (for short-cuts;
   NULL: the pointer itself is shared) and how to free it (NULL: not at all). A value is freed when it
   is unset or replaced, and else with its iteration: by the first swpipe_progress that finds it retired and its device work
   done, whatever the plan's `retire`. So it may be the argument of swpipe_launch, and values are held for at most as many
   iterations as swpipe_predict says are in flight. `release` cannot use the iteration: swpipe_set,
   swpipe_get, swpipe_unset and swpipe_alloc refuse it there (-1, NULL) and say why as swpipe_fail does. */
struct swpipe_kind {
    void *(*clone)(const void *value, void *arg); /* returns NULL: memory is exhausted */
    void (*release)(void *value, void *arg);
    void *arg;
};
/* Returns 0, or -1 when memory is exhausted: then `value` is still the caller's. `name` is copied. */
int swpipe_set(struct swpipe_context *context, const char *name, void *value,
               const struct swpipe_kind *kind);
/* The value of this name; NULL: it is not set. */
void *swpipe_get(struct swpipe_context *context, const char *name);
/* Free the value early. Nothing happens if the name is not set. */
void swpipe_unset(struct swpipe_context *context, const char *name);

/* Device memory by name: a value that swpipe_get finds and that is freed by swpipe_unset or with its iteration. It is used
   again as soon as the device is done with it. The address is for device work; on the host device that is what
   swpipe_launch starts. NULL: the device has no memory left. On cuda a block that is new comes from a memory pool
   of the GPU and waits for no work of it (not run on a GPU). A GPU without pools has cudaMalloc, which may wait for all
   work, also for a collective whose peers wait for this task: the proof does not know that. It happens in the first
   iterations only, because blocks are used again; an allocator of the program's own (swpipe_own.h) avoids it. */
void *swpipe_alloc(struct swpipe_context *context, const char *name, size_t bytes);
/* A buffer of the plan: this iteration's instance, with what its last user left in it, and its size in *bytes (`bytes` may be NULL). A rank has one
   instance of a buffer of scope shared while the pipeline is filled, zero at first: what has to outlive a fill, as weights
   do, is memory of the program's own. NULL: the plan has no buffer of this name. */
void *swpipe_buffer(struct swpipe_context *context, const char *name, size_t *bytes);

/* The task's stream: a cudaStream_t; NULL on the host device. Copies, too, are pushed to it (cudaMemcpyAsync); on the
   host device a copy is a memcpy in a function of swpipe_launch. */
void *swpipe_stream(struct swpipe_context *context);
/* Run a host function in stream order: how device work is written for the host device; on cuda what
   cudaLaunchHostFunc does. `arg` must live until the function has run, as a value of the iteration does. Returns 0, or -1: the task fails. */
int swpipe_launch(struct swpipe_context *context, void (*function)(void *arg), void *arg);
/* Push the work the plan describes for this task: on the plan's buffers and memory of the library, not on data of the
   program. Returns 0, or -1: the task fails. */
int swpipe_work(struct swpipe_context *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
