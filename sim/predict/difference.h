/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference.h - what one run did otherwise than another, stream by stream, from their accounts.
 *
 * Streams of the two runs belong together that share the most work by name of task, whatever they are called; one without
 * work belongs to that of its name. The
 * stream with the most work is the main one. Since work and idle time of a stream make a whole step, the changes of
 * the main stream's rows add up to the difference between the steps, but for what `left_ns` says (ranks that do not
 * all have the stream). The rows of other streams do not add to that: they run beside it.
 *
 * Where the causes of one run are the simulator's and those of the other a trace's, idle time is held together by
 * cause alone, else by cause and by the task waited for.
 */
#ifndef SWSIM_DIFFERENCE_H
#define SWSIM_DIFFERENCE_H

#include "account.h"

#define DIFFERENCE_LEAST 0.2

struct difference_row {
    const char *name;      /* of the task; the words of the cause */
    const char *cause;     /* key; NULL: a task */
    const char *waits_for; /* task or resource; NULL: none */
    double before_ns, after_ns, before_count, after_count;
    double
        itself_ns; /* by how much the task waited for takes longer, on any stream; 0: not at all, or no task */
};

struct difference_stream {
    const struct account_stream *before, *after; /* one may be NULL */
    struct difference_row *rows;                 /* the greatest change first */
    size_t row_count;
};

struct difference {
    double before_ns, after_ns; /* of a step, or of the whole run */
    bool by_steps, coarse;      /* coarse: idle time is held together by cause alone */
    double left_ns;             /* that the rows of streams[0] do not explain */
    double uncaused_ns;         /* of what they explain: idle time without a known cause */
    struct difference_stream *streams;
    size_t stream_count;
};

/* The difference lives in `arena`, and the accounts must live as long. STATUS_INPUT for runs that share
   less than DIFFERENCE_LEAST of the work of the shorter one: nothing could be told of them. */
enum status difference_make(const struct run_account *before, const struct run_account *after,
                            struct arena *arena, struct difference *out, struct diag *diag);

static inline double difference_change(const struct difference_row *row)
{
    return row->after_ns - row->before_ns;
}

/* The thing that a stream waits for, in words that fit any run: "a resource". */
const char *difference_cause_words(const char *cause);

#endif
