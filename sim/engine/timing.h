/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timing.h - how long each operation of a program takes, one draw at a time.
 *
 * Made once for a program and read by any number of simulations. The mean and the distribution come
 * from the plan; rules, as given by `--jitter TASK=DIST`, replace the distribution of a task's
 * device part (of its CPU part where it has no other). The random number of a draw depends on the task's
 * name, the part, rank, iteration, seed and replication. Operations of host programs have no
 * iteration: there the n-th operation of one name on a rank takes number n.
 *
 * A duration is the quantile (quantile.h) of one random word; a spike has a word of its own. Rarely a
 * word of 32 bits does not say enough, and has another behind it. Many draws come a run at a time: the
 * same numbers, cheaper.
 *
 * The program, the rules and their distributions must outlive the timing; a timing must outlive its
 * copies.
 */
#ifndef SWSIM_TIMING_H
#define SWSIM_TIMING_H

#include "base/diag.h"
#include "machine/program.h"
#include "quantile.h"
#include "random.h"

struct jitter_rule {
    const char *task; /* a task, a kernel or another operation by name; "*": all */
    struct dist dist;
};

struct op_time {
    int64_t mean_ns;
    int draw; /* the number of this operation among those that vary; -1: it takes the mean always */
    uint16_t rank;
    bool host;
    bool timed; /* it takes time, be it 0 */
};

/* The distribution of an operation's time. */
struct op_variation {
    const struct dist *dist;
    const struct quantile *quantile;
    uint64_t name;       /* random_name of the task */
    uint32_t occurrence; /* host programs; pipeline form: 0 */
    int op;
};

struct timing {
    const struct program *program;
    struct op_time *ops; /* beside program->ops */
    struct op_variation
        *variation;             /* in the order of the operations; a copy's are the original's */
    int draw_count;             /* operations that vary */
    struct quantile *quantiles; /* one a distribution; NULL in a copy */
    int quantile_count;
    bool copied;
};

/* Of several rules for one task the last one holds. STATUS_USAGE when a rule names nothing. */
enum status timing_init(struct timing *timing, const struct program *program,
                        const struct jitter_rule *rules, size_t rule_count, struct diag *diag);
void timing_fini(struct timing *timing);

/* A copy in which `task` (pipeline form) takes no time, neither on the CPU nor on the device. */
enum status timing_without(struct timing *out, const struct timing *timing, int task,
                           struct diag *diag);

/* Another time for the device part of a task, or for its CPU part where it has no other. */
struct time_rule {
    const char *task;
    double factor;  /* times as long, or, where it is negative, */
    int64_t set_ns; /* so long */
};

/* Apply them in their order. STATUS_USAGE when one names nothing that takes time. */
enum status timing_change(struct timing *timing, const struct time_rule *rules, size_t rule_count,
                          struct diag *diag);

/* The mean duration of an operation, spikes included. */
int64_t timing_mean(const struct timing *timing, int op);

/* How long an operation takes; of one that varies, for all iterations of a run (random_words). */
int64_t timing_draw(const struct timing *timing, int op, int64_t iteration, uint64_t seed,
                    uint32_t replication);
void timing_draw_run(const struct timing *timing, int op, int64_t iteration, uint64_t seed,
                     uint32_t replication, int64_t out_ns[RANDOM_RUN]);

#endif
