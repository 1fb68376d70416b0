/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble_channel.h - how long lists of passes take where messages share channels (`p2p: {fifo}`).
 *
 * bubble.h lets every message start when its content is there. Here it waits for those before it on its channel, and for
 * its other end, as in the machine; a test compares the two. Messages one by one and without buffers: batches,
 * eager messages and those of metadata are not followed.
 */
#ifndef SWSIM_BUBBLE_CHANNEL_H
#define SWSIM_BUBBLE_CHANNEL_H

#include "bubble.h"

/* Lists with messages, each pass and message taking what the problem says. False: they hang, or there is no memory. */
bool bubble_channel_evaluate(const struct bubble_problem *problem, enum fifo_rule fifo,
                             const struct rank_program *lists, struct bubble_figures *out);

/* The most activations that a rank holds at one time, rounded up. */
int bubble_channel_held(const struct bubble_problem *problem, const struct rank_program *list);

/* Does no rank of these lists hold more activations than the problem allows? */
bool bubble_channel_fits(const struct bubble_problem *problem, const struct rank_program *lists);

#endif
