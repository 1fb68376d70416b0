/*
 * refill.h - can a drained pipeline be filled again?
 *
 * A drain gives back what belongs to a rank: its driver counts iterations and tickets anew and
 * clears its slots. When nobody has anything left to do, everything else stands as at the start by
 * itself, but for one thing: what is between ranks. A send that was taken for done on credit
 * (`eager_messages`, `eager_bytes`) and met no receive leaves its message in the channel, and the
 * first receive after a refill gets it.
 */
#ifndef SWSIM_REFILL_H
#define SWSIM_REFILL_H

#include "machine_internal.h"

/* After a step of a pipeline: if it was the last one and left a message behind, that is a violation
   of PROPERTY_DRAIN; effect->other_op and other_iteration tell which send it was. */
void refill_check(struct work_state *work);

#endif
