/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straight.h - rank programs that leave no choice, as a graph of steps instead of operations.
 *
 * A rank has one thread, which pushes all its work at once and then waits for the device; what remains is the order of
 * each stream, waits for steps of other streams of the rank, and messages that begin together. These are the edges of a
 * graph: it has an order if and only if the programs come to their end, and the longest path to a step is its date
 * (doc/checker.md, "Lists that leave no choice"). The graph is made by the lowering (machine/lower/rank_straight.c); all
 * memory is the program's.
 */
#ifndef SWSIM_STRAIGHT_H
#define SWSIM_STRAIGHT_H

#include <stdint.h>

/* A pass, or a group of messages. */
struct straight_step {
    int64_t end_ns;
    uint32_t time; /* of the graph's times */
    uint32_t first_wait,
        first_message; /* its waits and messages are those before the next step's */
    uint32_t action;   /* in the list of its rank, the first of several */
};

struct straight_message {
    uint32_t action; /* in the list of its rank */
    uint32_t step;   /* with the other end */
    uint32_t stream; /* of that step */
};

/* As program->streams. Its steps are neighbours, in their order. */
struct straight_stream {
    int rank, plan_stream;
    uint32_t first, end; /* steps */
    int pushes;          /* with those of records and waits */
    int64_t busy_ns;
    int64_t peer_ns;        /* messages waited for their other ends */
    int64_t *dependence_ns; /* per stream of its rank: waited for its steps */
};

struct straight {
    struct straight_stream *streams;
    int stream_count;
    int *rank_first; /* per rank: of its streams; then the end */
    struct straight_step *steps;
    struct straight_message *messages;
    uint32_t *waits;   /* steps */
    int64_t *times_ns; /* different ones */
    uint32_t step_count, message_count, wait_count;
    uint64_t machine_steps; /* of a run */
    int64_t end_ns;
};

static inline int64_t straight_time(const struct straight *graph, const struct straight_step *step)
{
    return graph->times_ns[step->time];
}

#endif
