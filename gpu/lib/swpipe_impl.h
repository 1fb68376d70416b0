/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_impl.h - the pipeline object of the public library; private to its files.
 */
#ifndef SWPIPE_IMPL_H
#define SWPIPE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "plan/plan.h"
#include "engine.h"
#include "swpipe_own.h"

struct swsim_result;

/* What is the program's own. */
struct own_thing {
    const char *name; /* the plan's memory */
    void *handle;
    atomic_bool lost; /* a communicator that was aborted */
};

struct own {
    struct own_thing *streams, *comms;
    size_t stream_count, comm_count;
    struct swpipe_allocator memory;
    struct device_own device;
    struct swpipe_event *events;
};

/* One thing kept. */
struct kept {
    char *name; /* of a value, NULL: a buffer of the plan */
    int buffer; /* program->buffers */
    void *content;
    const struct swpipe_kind *kind;
    struct device_buffer *copy; /* device memory */
    size_t bytes;
};

/* A task's results, kept and put back instead of running it. After one execution is kept: the values that the task set in
   its context, copied by their kinds; device memory that it allocated there and the plan's buffers that it writes, copied
   on the device in stream order; what its declared io captured. Putting results back costs a copy of each and no host
   work. There is a shortcut for each rank and task; only the task's worker touches it while the pipeline runs. */
struct shortcut {
    bool on, saved;
    struct kept *kept;
    size_t count, cap;
    void **captured; /* beside the task's io */
};

enum { PIPE_ERROR = 1024 }; /* bytes of a description */

enum pipe_state {
    PIPE_IDLE,   /* nothing in flight */
    PIPE_FILLED, /* between fill and the end of the data */
    PIPE_ENDED,  /* idle, and progress says END once more */
    PIPE_BROKEN  /* something failed: drain */
};

struct swpipe {
    pid_t process; /* that opened it: its forks have none of its threads */
    struct plan plan;
    bool has_plan;
    struct swpipe_task *tasks; /* [plan's tasks]; without a function: the plan's work */
    enum driver driver;
    enum device_kind device;
    bool on_caller; /* functions are called on its thread */
    int ranks, max_depth;
    atomic_int depth; /* of the pipelined program */
    /* Asked by any thread, in words that the calls leave behind: engines come and go. */
    atomic_int in_flight;
    _Atomic int64_t graph_launches;
    _Atomic(void *) *results;    /* [ranks], of the iteration retired last */
    int first_rank, local_ranks; /* those in this process */
    struct swpipe_group *group;  /* NULL: all are */
    struct swpipe_hooks hooks;
    struct own own;
    struct swpipe_policy policy;
    void (*message)(void *arg, const char *text); /* NULL: nobody wants to know */
    void *message_arg;
    bool told_early;             /* that results may be handed out before they are there */
    int gpu;                     /* as struct device_config */
    struct device_caller caller; /* as it was before the call that is under way */
    bool open;                   /* swpipe_open went well */
    atomic_bool entered;         /* a call is under way: another one is refused */
    int64_t spin_ns;             /* as run_config */
    enum runtime_graph graph;
    bool *device_only;            /* [plan's tasks] */
    int64_t past_launches;        /* of engines that are closed */
    int64_t wait_ns, progress_ns; /* 0, DEVICE_FOREVER: no limit */

    struct device_world *world; /* opened when it is first needed, and after an abort */
    struct device **devices;    /* [ranks]; those of this process are opened */
    struct pool *pools;         /* [ranks] */
    int device_count;           /* opened */
    struct engine pipelined, serial;
    enum pipe_state state;
    struct timespec idle_at;    /* all device work of the run that ended last was done */
    struct shortcut *shortcuts; /* [rank * tasks + task] */

    char *db;                 /* runs from now on go there; NULL: nowhere */
    struct recorded recorded; /* the last run that did */

    struct swpipe_exposed *exposed; /* of the last profile */
    bool
        loose; /* a serial iteration is over when it is submitted: several in a row are timed as one */
    struct swsim_result *answer; /* of the last question; NULL: none was asked */
    struct diag diag;            /* of the last call */
    /* Of the last call that failed, and the thread that made it: the others get a copy (swpipe_error). */
    char error[PIPE_ERROR];
    pthread_t failed_on;
};

/* Check what the caller says and take it over; configure.c. `config` NULL: STATUS_USAGE. */
enum status swpipe_configure(struct swpipe *pipe, const struct swpipe_config *config);
/* The plan's task of this name, -1: none. */
int swpipe_find_task(const struct swpipe *pipe, const char *name);
/* STATUS_INPUT: it has none of this name. `where`: "", or what names it, "skip: ". */
enum status swpipe_no_task(struct swpipe *pipe, const char *where, const char *name);
/* STATUS_USAGE for one that could not be opened. */
enum status swpipe_must_be_open(struct swpipe *pipe);
/* Close the serial engine; the next serial iteration opens a new one. */
enum status swpipe_close_serial(struct swpipe *pipe);
enum swpipe_status status_for_caller(enum status status);
/* Begin a call; swpipe_finish ends it. False: there is no pipeline, or one of its calls is under way, in which this one
   was made: it is SWPIPE_USAGE, and nothing is changed. */
bool pipe_enter(struct swpipe *pipe);
/* End a call: the status for the caller, its words for swpipe_error. */
enum swpipe_status swpipe_finish(struct swpipe *pipe, enum status status);

/* ---- own.c ---------------------------------------------------------------------------------- */

/* STATUS_INPUT: the plan has no such thing, or the device cannot use it. Handles themselves are looked at when they are
   used first. */
enum status own_open(struct swpipe *pipe, const struct swpipe_own *given);
/* For the configuration of a world; NULL: the program has nothing of its own. */
const struct device_own *own_for_device(struct own *own);
/* Before a run. STATUS_USAGE: a failure has taken a communicator. */
enum status own_check(struct swpipe *pipe);
/* Events live as long as the devices are open, and are opened again with them. */
enum status own_open_events(struct swpipe *pipe);
void own_close_events(struct swpipe *pipe);
/* Those that the program has not closed. */
void own_forget_events(struct swpipe *pipe);

/* ---- shortcut.c ----------------------------------------------------------------------------- */

/* After the task's function: 0, or -1 with the reason in the context. */
int shortcut_save(struct shortcut *shortcut, struct swpipe_context *context,
                  const struct swpipe_task *task);
int shortcut_restore(const struct shortcut *shortcut, struct swpipe_context *context,
                     const struct swpipe_task *task);
/* Forget what was kept. */
void shortcut_forget(struct shortcut *shortcut, const struct swpipe_task *task);

/* ---- proof_at_open.c ------------------------------------------------------------------------ */

/* STATUS_INPUT, described: the plan must hang under the pipeline's driver. Everything else that is not proved goes to
   the configuration's message function. */
enum status proof_at_open(struct swpipe *pipe, const struct swpipe_config *config);

#endif
