/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_at_open.h - the proof that swpipe_open asks for; private to the public library.
 */
#ifndef SWPIPE_PROOF_AT_OPEN_H
#define SWPIPE_PROOF_AT_OPEN_H

#include "swpipe_impl.h"

/* STATUS_INPUT, described: the plan must hang under the pipeline's driver. Everything else that is not proved goes to
   the configuration's message function. */
enum status proof_at_open(struct swpipe *pipe, const struct swpipe_config *config);

#endif
