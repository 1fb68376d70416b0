/*
 * journal.h - who did what, when: logged by the threads of a run, read by a writer of its own.
 *
 *     thread --> log: chunk -> chunk -> chunk --> writer --> ledger (trace store, figures), replay
 *                     (filled)            ^
 *                        `--- recycled ---'
 *
 * A log belongs to one thread at a time; logging takes no lock but for a new chunk. The stamp of a
 * device operation lies in its entry, so a chunk is recycled when the writer has read it and all its
 * stamps are valid. The writer commits at least every JOURNAL_PASS_MS, so what finished before a crash
 * is in the store. It takes no lock of the run.
 *
 * journal_open .. journal_stop: the run. journal_stop joins the writer after a last pass, when no
 * thread logs any more and the device is idle or aborted; it must come before the device is closed.
 * journal_end then replays what is left, marks the run as ended and closes the store; journal_close
 * frees.
 *
 * Where each rank is a process, their journals only send what they read to the one who started them
 * (gpu/ranks.h). He opens a journal that collects: it has no logs and no thread, journal_take is given
 * what was sent, journal_pass is called now and then, and journal_end judges it as it would its own.
 */
#ifndef SWSIM_JOURNAL_H
#define SWSIM_JOURNAL_H

#include "gpu/device.h"
#include "gpu/replay.h"
#include "gpu/runtime.h"
#include "trace/store.h"

enum { JOURNAL_PASS_MS = 50 };

enum log_kind {
    LOG_OP,      /* an operation of program->ops */
    LOG_TAKE,    /* a worker took an instance of task `op` */
    LOG_ENQUEUE, /* a driver enqueued a period or admitted an iteration */
    LOG_RETIRE   /* a driver retired an iteration, admitted at stamp.start_ns */
};

struct log_entry {
    enum log_kind kind;
    int op; /* program->ops; TAKE: a task; else -1 */
    int64_t iteration;
    int64_t begin_ns, at_ns, end_ns; /* came to it, did it, went on */
    struct stamp stamp;              /* of what it pushed; number -1: nothing */
};

struct journal;
struct log;

struct journal_config {
    const struct program *program;
    const struct runtime_options *options;
    struct device_world *world;
    struct device *const *devices; /* [program->ranks], NULL: that rank is elsewhere; must outlive
                                      journal_stop */
    struct rendezvous *rendezvous; /* what is logged goes to its hub's owner; NULL: it stays here */
};

/* Opens the store, where there is one, and starts the writer. */
enum status journal_open(const struct journal_config *config, struct journal **out,
                         struct diag *diag);
/* One that collects; the run started at start_ns. */
enum status journal_open_collecting(const struct program *program,
                                    const struct runtime_options *options, const char *device,
                                    int64_t start_ns, struct journal **out, struct diag *diag);
/* What a journal elsewhere sent. Records of one process in the order it sent them. */
void journal_take(struct journal *journal, const void *records, size_t bytes);
/* What was taken becomes durable. */
void journal_pass(struct journal *journal, int64_t now_ns);

/* The log of a program thread. */
struct log *journal_log(struct journal *journal, int thread);

/* An entry to be filled; it counts once committed. NULL when memory is exhausted: journal_status then
   says so. */
struct log_entry *log_next(struct log *log);
void log_commit(struct log *log);
/* Let the writer catch up when it is far behind; called where no lock is held. */
void journal_throttle(struct journal *journal);

/* Device operations seen finished so far. */
int64_t journal_finished(const struct journal *journal);
/* STATUS_OK, or what keeps the journal from being written; `diag` gets the reason, once. */
enum status journal_status(struct journal *journal, struct diag *diag);

/* Nothing more will be logged. */
void journal_stop(struct journal *journal);

struct journal_end {
    bool complete; /* everything was done */
    bool torn;     /* part of the log is missing: there is nothing to replay */
    bool interrupted;
    const int64_t *ends; /* [rank], pipeline form: iterations that were to be done in the end */
    int64_t duration_ns;
};
/* Fill figures, legality and words of `result` from what was logged. STATUS_VIOLATED: not legal. */
enum status journal_end(struct journal *journal, const struct journal_end *end,
                        struct runtime_result *result, struct diag *diag);
void journal_close(struct journal *journal);

#endif
