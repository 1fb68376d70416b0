/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - the steps of a run with their times: logged by its threads, read by a writer thread.
 *
 *     thread --> log: chunk -> chunk -> chunk --> writer --> trace writer (trace store, figures), replay
 *                     (filled)            ^
 *                        `--- recycled ---'
 *
 * A log belongs to one thread at a time; logging takes no lock but for a new chunk. The stamp of a
 * device operation lies in its entry, so a chunk is recycled when the writer has read it and all its
 * stamps are valid. It takes no lock of the run.
 *
 * Lag. Every JOURNAL_PASS_MS a pass of the writer reads what was logged when the pass began, and commits.
 * An iteration is stored in the pass after the one that read its retirement, once the device has finished
 * it. With a store, journal_throttle lets threads be no further ahead of the writer than it reads in
 * JOURNAL_PASS_MS, at the rate of its last passes: so what was done JOURNAL_LAG_MS ago is in the store,
 * however fast the run is. The time that threads are held up is in the result; nothing is left out.
 *
 * Memory. Chunks that are full and not read are at most JOURNAL_CHUNKS. The replay goes along with the
 * run while the writer is idle; when it is a quarter of a million steps behind, threads are held up.
 * Unfinished device operations are in memory, too; their number is up to the run.
 *
 * journal_open .. journal_stop: the run. journal_stop joins the writer after a last pass, when no
 * thread logs any more and the device is idle or aborted; it must come before the device is closed.
 * journal_end then replays what is left, marks the run as ended and closes the store; journal_close
 * frees.
 *
 * Where each rank is a process, its journal only sends the entries to the launcher (gpu/exec/ranks.h). The
 * launcher opens a journal that collects: it has no logs and no thread, journal_take gets the sent records,
 * journal_pass is called now and then, and journal_end judges the run as it would its own.
 */
#ifndef SWSIM_JOURNAL_H
#define SWSIM_JOURNAL_H

#include "gpu/device/device.h"
#include "replay.h"
#include "result.h"
#include "trace/store.h"

enum {
    JOURNAL_PASS_MS = 50,
    JOURNAL_LAG_MS = 250,      /* two passes and their commits, and as much to spare */
    JOURNAL_FIRST_CHUNKS = 64, /* with a store, as long as the rate is not known */
    JOURNAL_CHUNKS = 4096      /* 27 MiB */
};

enum log_kind {
    LOG_OP,      /* an operation of program->ops */
    LOG_TAKE,    /* a worker took an instance of task `op` */
    LOG_ENQUEUE, /* a driver enqueued a period; `iteration` counts the iterations admitted by then */
    LOG_RETIRE,  /* a driver retired an iteration, admitted at stamp.start_ns */
    LOG_END,     /* a driver heard that there are no more than `iteration` iterations */
    LOG_CALL,    /* a function of the user, in place of operation `op`, which is device work */
    LOG_NO       /* an operation with branches: the answer was no, or it was not done */
};
static inline bool log_is_of_op(enum log_kind kind)
{
    return kind == LOG_OP || kind == LOG_CALL || kind == LOG_NO;
}

struct log_entry {
    enum log_kind kind;
    int op; /* program->ops; TAKE: a task; else -1 */
    int64_t iteration;
    int64_t begin_ns, at_ns, end_ns; /* came to it, did it, went on */
    struct stamp stamp;              /* of what it pushed; number -1: nothing */
    struct stamp since;              /* of a mark pushed before, behind which the work began that
                                        `stamp` is the end of (functions of the user); number -1: none */
};

/* The pushed operation is over, and its start is known. */
static inline bool log_is_over(const struct log_entry *entry)
{
    return entry->stamp.valid && (entry->since.number < 0 || entry->since.valid);
}
static inline bool log_has_started(const struct log_entry *entry)
{
    return entry->since.number >= 0 ? entry->since.valid : entry->stamp.started;
}
/* When it was pushed, or as much of it as this is: the pushes of a function are spread over its time. */
static inline int64_t log_pushed_from_ns(const struct log_entry *entry)
{
    return entry->since.number < 0 ? entry->stamp.pushed_from_ns : entry->since.pushed_from_ns;
}
static inline int64_t log_started_ns(const struct log_entry *entry)
{
    return entry->since.number < 0 ? entry->stamp.start_ns : entry->since.end_ns;
}

struct journal;
struct log;

struct journal_config {
    const struct program *program;
    const struct runtime_options *options;
    struct device_world *world;
    struct device *const *devices; /* [program->ranks], NULL: that rank is elsewhere; must outlive
                                      journal_stop */
    struct rendezvous
        *rendezvous; /* what is logged goes to its broker's owner; NULL: it stays here */
    void (*failed)(void *arg, enum status status,
                   const char *why); /* called once, by the writer, when
                                      the journal cannot be kept; NULL: see journal_status */
    void *arg;
};

/* Opens the store, where there is one, and starts the writer. */
enum status journal_open(const struct journal_config *config, struct journal **out,
                         struct diag *diag);
/* One that collects; the run started at start_ns. */
enum status journal_open_collecting(const struct program *program,
                                    const struct runtime_options *options, const char *device,
                                    int64_t start_ns, struct journal **out, struct diag *diag);
/* Takes the records of a journal elsewhere; those of one process in the order it sent them. */
void journal_take(struct journal *journal, const void *records, size_t bytes);
/* Makes the records taken so far durable. */
void journal_pass(struct journal *journal, int64_t now_ns);

/* The log of a program thread. */
struct log *journal_log(struct journal *journal, int thread);

/* An entry to be filled; it counts once committed. NULL when memory is exhausted: journal_status then
   says so. */
struct log_entry *log_next(struct log *log);
void log_commit(struct log *log);
/* Wait for the writer when it is too far behind; called where no lock is held and no step is under way. */
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
    int64_t iterations;  /* how many that are, for the store, if the options did not say; else 0 */
    int64_t duration_ns;
};
/* Fill figures, legality and words of `result` from what was logged. STATUS_VIOLATED: not legal. */
enum status journal_end(struct journal *journal, const struct journal_end *end,
                        struct runtime_result *result, struct diag *diag);
void journal_close(struct journal *journal);

#endif
