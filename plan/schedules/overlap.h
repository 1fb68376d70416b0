/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.h - how long passes with layers of experts take, alone and executed together.
 *
 * Before its experts a pass sends its tokens to them (dispatch), behind them back (combine): two all-to-alls, forward
 * and backward alike. Alone it waits for both. A forward and a backward pass together run one's all-to-alls beside the
 * other's computation.
 */
#ifndef SWSIM_OVERLAP_H
#define SWSIM_OVERLAP_H

#include "costs.h"

/* Nanoseconds: what a pass computes, half of it before its experts (backward: behind them), and its all-to-alls. */
struct exchanging {
    int64_t compute_ns, dispatch_ns, combine_ns;
};

int64_t overlap_alone(const struct exchanging *pass);
int64_t overlap_together(const struct exchanging *forward, const struct exchanging *backward);

#endif
