/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_stats.h - how often what was done, and how long it took: calls and times by name, over all ranks.
 *
 *     name            ncalls  time (ms)  mean (ms)  host (ms)
 *     --------------  ------  ---------  ---------  ---------
 *     backward_chunk    3200      18298       5.72         41
 *     forward_chunk     3200       7798       2.44         38
 *     send               100         43       0.43         12
 *     send_meta          100         16       0.16          4
 *
 * Source: the statistics of hfai's CudaTimer. A name is a task of a pipeline; in rank programs the kind
 * of an action, with hfai's words (forward_chunk, backward_chunk, send, recv, sendrecv, and send_meta, recv_meta,
 * sendrecv_meta for the metadata before them, whose time is also part of send, recv, sendrecv; backward_input
 * and backward_weight where backward is split, overlap_f_b for both at once); in host programs what the operation is called. The
 * time is that of the device, from the start on the stream to the end, with the wait for peers; host time is what the
 * threads spent computing and in the calls that push. Memory: the names, once.
 */
#ifndef SWSIM_OP_STATS_H
#define SWSIM_OP_STATS_H

#include <stdio.h>

#include "machine/program.h"
#include "result.h"

struct op_stats {
    struct arena arena;
    const struct program *program;
    struct runtime_stat *stats; /* [count], by name */
    size_t count;
    int *rows; /* [program->op_count]: the row of an operation, -1: it has none */
};

/* False: memory. Ended with op_stats_close in any case. */
bool op_stats_open(struct op_stats *op_stats, const struct program *program);
void op_stats_close(struct op_stats *op_stats);

void op_stats_host(struct op_stats *op_stats, int op, int64_t ns);
void op_stats_device(struct op_stats *op_stats, int op, int64_t ns);

/* Lists the operations that were done, by name, in result->stats. False: out of memory. */
bool op_stats_list(const struct op_stats *op_stats, struct runtime_result *result);

void op_stats_print(const struct runtime_stat *stats, size_t count, FILE *out);

#endif
