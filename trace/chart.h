/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chart.h - one step of rank programs, ready to be drawn: passes, messages and memory of each rank over time.
 *
 * Times are nanoseconds from the start of the step. All memory is the arena's of who makes a chart.
 */
#ifndef SWSIM_CHART_H
#define SWSIM_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHART_KIND_LIST(X)                                                                         \
    X(F, "forward")                                                                                \
    X(B, "backward")                                                                               \
    X(I, "backward for inputs")                                                                    \
    X(W, "backward for weights")                                                                   \
    X(OVERLAP, "forward and backward at once")                                                     \
    X(OPTIMIZER, "optimizer")
enum chart_kind {
#define X(name, words) CHART_##name,
    CHART_KIND_LIST(X)
#undef X
        CHART_KINDS
};

struct chart_pass {
    enum chart_kind kind;
    int chunk, microbatch; /* which of the rank's stages; of an overlap those of its forward part */
    int other_chunk, other_microbatch; /* of an overlap those of its backward part */
    int64_t start_ns, end_ns;
};

/* From now on a rank holds so much; the first one is at 0. */
struct chart_level {
    int64_t time_ns, bytes;
};

struct chart_rank {
    struct chart_pass *passes; /* in order of their starts */
    size_t count;
    struct chart_level *levels;
    size_t level_count;
};

/* From the end of the pass that it comes from until it has arrived. */
struct chart_message {
    int from, to;
    int64_t start_ns, end_ns;
};

struct chart {
    const char *title, *origin; /* origin: "measured on host"; NULL: a prediction for the picture */
    const char *channel; /* of the messages, as `p2p: {fifo}` names it; NULL: none, or not known */
    int rank_count, chunks, microbatches;
    bool copies; /* of the model: they are the chunks */
    struct chart_rank *ranks;
    struct chart_message *messages;
    size_t message_count;
    int64_t end_ns;
    double bubble;       /* of the rank with the longest span */
    int64_t limit_bytes; /* of every rank; 0: none, or they differ */
    int64_t
        activation; /* bytes that stand for one activation, as the plan gives none; 0: bytes are bytes */
    int64_t unit_ns; /* what a pass lasts, as the plan gives no times; 0: times are times */
};

/* What stands beneath the title: "8 ranks, 32 microbatches, a step of 117 times F, bubble 5.9%, ..."; the bubble has what
   decides it behind it, the channel of messages. Returns `out`. */
enum { CHART_CAPTION = 320 };
const char *chart_caption(const struct chart *chart, char out[CHART_CAPTION]);

/* The idle share of the span of the rank with the longest one. */
double chart_bubble(const struct chart *chart);

#endif
