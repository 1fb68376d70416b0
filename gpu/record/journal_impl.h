/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_impl.h - a journal from inside; private to
 *
 *     journal_pass.c     the writer thread and its passes
 *     journal.c          chunks, and the threads that fill them; open, stop, end
 *     journal_wire.c     logs that go to another process, and the journal that collects them
 *     journal_replay.c   what a log means to the machine; the verdict
 */
#ifndef SWSIM_JOURNAL_IMPL_H
#define SWSIM_JOURNAL_IMPL_H

#include <pthread.h>

#include "journal.h"
#include "trace_writer.h"

enum { CHUNK_ENTRIES = 64 };

struct chunk {
    struct log_entry entries[CHUNK_ENTRIES];
    _Atomic(struct chunk *) next;
    size_t read, open; /* of the consumer */
};

struct log {
    struct journal *journal;
    int thread;
    struct chunk *writing; /* of the producer; NULL: nothing yet */
    size_t room;           /* of the producer: entries that its chunks so far have room for */
    atomic_size_t written; /* entries published */
    _Atomic(struct chunk *) first;
    struct chunk *reading; /* of the consumer: the oldest that is not spent */
    struct chunk *at;      /* of the consumer: the one with the next entry */
    size_t read, until;    /* of the consumer: entries read, and those that this pass reads */
};

/* An entry without a valid stamp yet. */
struct open_entry {
    const struct log_entry *entry;
    struct chunk *chunk; /* NULL: the entry is one of its own, from malloc */
    int64_t span;
    int thread;
    int64_t sequence; /* among the entries of the thread that have a stamp */
    bool start_added; /* to the replay */
    bool over;        /* its stamp was valid when the pass looked */
};

/* A process sends these records of its log to another: an entry, the stamp of an earlier entry, or (`number`) by how
   much its device's stamps may be off by now. */
enum record_kind { RECORD_ENTRY, RECORD_FINISHED, RECORD_STARTED, RECORD_CLOCK };
struct log_record {
    int32_t what, thread, kind, op;
    int64_t sequence, iteration, begin_ns, at_ns, end_ns;
    int64_t number, pushed_from_ns, pushed_by_ns, start_ns, stamp_end_ns;
    int64_t
        since; /* the number of `since`, -1: none; when it ended, where the operation has started */
};
enum { SHIP_RECORDS = 256 };

struct journal {
    struct journal_config config;
    struct log *logs; /* [thread_count] */
    struct trace_writer trace;
    struct replay *replay; /* NULL: not wanted */
    int64_t tolerance_ns;  /* of its clocks, without what devices have seen ... */
    int64_t
        clock_error_ns; /* ... by which their stamps may be off; 0: the host's clock is theirs */
    struct open_entry *open;
    size_t open_count, open_cap;
    bool replay_memory;      /* the replay's memory ran out */
    bool replay_left;        /* too many steps wait for one that is not over: no more are added */
    int64_t replay_moved_ns; /* when the replay last took a step */
    double entry_ns;         /* of the writer, for an entry; 0: not known */
    int64_t *sequences;      /* [thread_count] */
    struct log_record *ship; /* [SHIP_RECORDS]: to be sent; NULL: everything stays here */
    size_t ship_count;
    int64_t shipped; /* finished operations sent */
    bool ship_failed;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;  /* the writer shall stop, or begin a pass */
    pthread_cond_t come;  /* the writer has come further */
    struct chunk *pool;
    int64_t unread, unread_most; /* full chunks that the writer is not through with */
    int64_t ahead;               /* as many as there may be */
    bool hold;                   /* the replay is too far behind */
    int64_t held_ns;             /* threads waited for the writer, in all */
    bool stop, no_memory;
    bool told; /* config.failed has been called */
    bool
        reported; /* that memory ran out: by journal_status, config.failed or the thread without a log */
    enum status status; /* of the trace, copied for others to see */
    char *reason;
    pthread_t writer;
    bool started;
    atomic_bool wanted; /* a thread waits */
    _Atomic int64_t finished;
};

/* ---- journal.c ----------------------------------------------------------------------------------- */

/* As many full chunks as there may be at most. */
int64_t journal_most_chunks(const struct journal *journal);
/* A chunk goes back to the pool; the writer has read all of a chunk. */
void journal_put_chunk(struct journal *journal, struct chunk *chunk);
void journal_count_read(struct journal *journal);
void journal_free_chunks(struct chunk *chunk);
/* With checks: what is true of chunks and open entries behind a pass. */
#ifdef SWSIM_CHECKS
void journal_check(struct journal *journal);
#else
static inline void journal_check(struct journal *journal)
{
    (void)journal;
}
#endif

struct journal *journal_new(const struct journal_config *config, struct diag *diag);
/* Open the store, the figures and the replay. `cores` carry the run; 0: not known. */
enum status journal_open_books(struct journal *journal, const char *device, int64_t start_ns,
                               int cores, struct diag *diag);

/* ---- journal_pass.c ------------------------------------------------------------------------------ */

enum status journal_start_writer(struct journal *journal, struct diag *diag);
/* Enter an entry into the store, the figures and the replay; returns its span. The same for its end. */
int64_t journal_enter(struct journal *journal, int thread, const struct log_entry *entry);
void journal_enter_end(struct journal *journal, const struct open_entry *open);
/* Keep an entry until its stamp is valid. */
void journal_keep_open(struct journal *journal, const struct open_entry *kept);
/* The status of trace and replay, for others to see. */
void journal_publish(struct journal *journal);

/* ---- journal_wire.c ------------------------------------------------------------------------------ */

void journal_ship_entry(struct journal *journal, int thread, int64_t sequence,
                        const struct log_entry *entry);
void journal_ship_stamp(struct journal *journal, const struct open_entry *open,
                        enum record_kind what);
void journal_send_records(struct journal *journal);
/* Update how far the clocks of the devices here are off, and send it where the journal is another process's. */
void journal_know_clocks(struct journal *journal);
/* The last records: which open entries have started. */
void journal_ship_started(struct journal *journal);

/* ---- journal_replay.c ---------------------------------------------------------------------------- */

void journal_replay_host(struct journal *journal, int thread, const struct log_entry *entry);
/* The start of an operation that is not over, once the device has told it. */
void journal_replay_start(struct journal *journal, struct open_entry *open);
void journal_replay_device(struct journal *journal, const struct open_entry *open);
/* Take steps that are old enough: until the time until_ns of device_clock_ns, or a thread waits for a pass; and
   for a while in any case where many are pending. It is now_ns in the run. */
void journal_replay_along(struct journal *journal, int64_t now_ns, int64_t until_ns);
/* True if the replay is so far behind that the run has to wait. */
bool journal_replay_holds(struct journal *journal);
/* Replay what is left and say whether the run was legal: as journal_end. */
enum status journal_judge(struct journal *journal, const struct journal_end *end,
                          struct runtime_result *result, struct diag *diag);

#endif
