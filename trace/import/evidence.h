/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.h - why each work of a rank began when it did: by the trace's own word, or by inference.
 *
 * Work can begin when the work before it on its stream has ended, when it has been launched, and when
 * the events that its stream waits for have happened. The latest of these is its cause, if the work
 * begins within EXPLAINED_NS of it. A wait is explained, in this order of trust, by
 *
 *     id           a row of the trace names the record that a wait waits for
 *     call order   a wait belongs to the last work that its thread pushed to another stream before it
 *     time         work of another stream, pushed before, ended just before this work began
 *     residency    likewise, but it was pushed afterwards: it left the device free
 *
 * The first work of a device may wait for what was pushed before the trace began, which is no part of it.
 * A wait that the times contradict (its source ends after the work has begun) is dropped and counted.
 * The ledger adds up, for each stream, the idle time by cause; trailing idle time is not part of it.
 */
#ifndef SWSIM_EVIDENCE_H
#define SWSIM_EVIDENCE_H

#include "trace/job/job.h"

enum {
    EXPLAINED_NS = 15 * 1000,
    LAUNCHED_NS = 50 * 1000, /* from the end of a launch to a work that nothing else delays */
    SLACK_NS = 2 * 1000,
    BACKWARDS_NS = 50 * 1000 /* no two clocks of a trace differ by so much */
};

/*    NAME, key, in words; in a trace store (trace/schema.h): the cause, whose word it is */
#define IDLE_LIST(X)                                                                               \
    X(LAUNCH, "launch", "not launched yet, by the id of the launch", "host", "id")                 \
    X(ORDER, "order", "between one work and the next", "order", "time")                            \
    X(EVENT_ID, "event_id", "an event, by its id", "dependence", "id")                             \
    X(EVENT_CALL, "event_call", "an event, by the order of calls", "dependence", "call order")     \
    X(EVENT_TIME, "event_time", "other work of the device, by time", "dependence", "time")         \
    X(RESIDENCY, "residency", "room on the device, by time", "resource", "time")                   \
    X(BEFORE, "before", "work from before the trace begins, by time", "resource", "time")          \
    X(NOTHING, "unexplained", "nothing in the trace explains it", "unexplained", "nothing")

enum idle {
#define X(name, key, words, cause, word) IDLE_##name,
    IDLE_LIST(X)
#undef X
        IDLE_COUNT
};

const char *idle_key(enum idle idle);
const char *idle_words(enum idle idle);
const char *idle_cause(enum idle idle);
const char *idle_word(enum idle idle);

/* `work` begins after `source` has ended: a stream waits for an event. */
struct edge_found {
    int work, source;
    enum idle word; /* EVENT_ID, EVENT_CALL, EVENT_TIME or RESIDENCY */
};

/* True if no work or call of the trace is the cause. */
static inline bool evidence_is_unknown(enum idle cause)
{
    return cause == IDLE_NOTHING || cause == IDLE_BEFORE;
}

/* The known causes of a work's start. */
struct reason {
    enum idle cause;
    int source;             /* the work waited for; -1: none is known */
    int64_t from_ns;        /* when the work before it on its stream had ended */
    int64_t ready_ns;       /* when that cause was over */
    int64_t other_ready_ns; /* when all but its launch was over */
};

/* A part of the idle time in front of a work. */
struct idle_piece {
    enum idle cause;
    int64_t start_ns, end_ns;
};
enum { IDLE_PIECES = 3 };

/* The work whose end releases a waiting call: the last of it to end. */
struct host_wait {
    int stream; /* of a stream's sync; -1: no stream, or none can be told */
    int work;   /* -1: nothing was left to wait for */
};

struct ledger {
    int64_t idle_ns[IDLE_COUNT];
    int64_t busy_ns;
    int64_t
        overlap_ns; /* of works that begin before the one in front of them on their stream ends */
};

struct evidence {
    struct reason *reasons;   /* per work */
    struct edge_found *edges; /* by work */
    size_t edge_count, edge_cap;
    struct host_wait *waits; /* per call */
    struct ledger *streams;  /* per stream */
    struct ledger total;
    int64_t dark_ns; /* the device was idle, and nothing tells why */
    int64_t
        latency_ns; /* from the beginning of a launch to its work, where nothing else is in the way */
    /* early: begun before their launch; backwards: over BACKWARDS_NS before it; overlapped: over SLACK_NS before
       the end of the one in front of them on their stream */
    size_t unlaunched, contradicted, early, backwards, overlapped, records_missing, records_unknown,
        still_running, groups_missing, duplicated;
};

/* Of one rank, after job_finish; ended by evidence_fini, also after a failure. */
enum status evidence_find(const struct job_rank *rank, struct evidence *out, struct diag *diag);
void evidence_fini(struct evidence *evidence);

/* The idle time in front of `work`, by cause, as the ledger has it; returns how many pieces there are. */
int evidence_idle(const struct job_rank *rank, const struct evidence *evidence, int work,
                  struct idle_piece out[IDLE_PIECES]);

int64_t ledger_idle(const struct ledger *ledger);
void ledger_add(struct ledger *to, const struct ledger *from);
/* The part of the idle time of a stream that nothing explains, in millionths; overlaps, which a stream in order cannot
   have, count as such time. */
int ledger_unexplained(const struct ledger *ledger);
/* The part of the rank's time in which its device was idle and nothing tells why, or in which operations of one stream
   overlap, in millionths. `opaque`: idle time is explained. */
int evidence_unexplained(const struct job_rank *rank, const struct evidence *evidence, bool opaque);

#endif
