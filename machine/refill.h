/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refill.h - whether a drained pipeline can be filled again.
 *
 * A drain resets a rank: its driver counts iterations and tickets anew and clears its slots. When all
 * agents are at their end, all else is as at the start, except the messages between ranks: a send
 * that finished on credit (`eager_messages`, `eager_bytes`) without a receive leaves its message in
 * the channel, and the first receive after a refill gets it.
 */
#ifndef SWSIM_REFILL_H
#define SWSIM_REFILL_H

#include "machine_internal.h"

/* After a step of a pipeline: a message left by the last step is a violation of PROPERTY_DRAIN;
   effect->met names its send. */
void refill_check(struct work_state *work);

#endif
