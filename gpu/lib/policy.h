/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - the policy of a program, inside a pipeline; private to the public library (gpu/lib/swpipe_policy.h). */
#ifndef SWPIPE_POLICY_IMPL_H
#define SWPIPE_POLICY_IMPL_H

#include "gpu/exec/run.h"
#include "swpipe_policy.h"

struct engine;
struct swpipe;

/* Take it from the configuration. STATUS_USAGE, STATUS_INPUT: it could have no effect. */
enum status policy_take(struct swpipe *pipe, const struct swpipe_policy *given);

/* The policy as a run asks for it, in words of the plan. */
struct policy_words {
    struct run_chooser chooser;
    struct engine *engine;
    struct swpipe_ready *ready; /* [rank * threads] */
};
/* *out: NULL without a policy. STATUS_SYSTEM: no memory. */
enum status policy_words_open(struct policy_words *words, struct engine *engine,
                              const struct run_chooser **out, struct diag *diag);
void policy_words_fini(struct policy_words *words);

#endif
