/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.h - the actions that PyTorch's runtime adds to a schedule of passes, version by version.
 *
 * Beside the messages (comms.h) these are UNSHARD and RESHARD of stages with sharded parameters, the reduction of a
 * stage's gradients after its last pass, and waits for what was started. The lists are those that
 * `_PipelineScheduleRuntime` of torch.distributed.pipelining makes of the same passes and dumps as compute_comms,
 * action for action (tests/partners/t_schedules.py). New lists are made in the caller's arena. Messages in diag carry
 * the position of an action, but no file.
 */
#ifndef SWSIM_PYTORCH_H
#define SWSIM_PYTORCH_H

#include "comms.h"

/* 2.9 takes composites apart and leaves unsharded what is in use at the end. 2.15 reshards it, reduces gradients, and
   waits for sends and reductions. */
#define PYTORCH_LIST(X) X(NONE, "none") X(2_9, "2.9") X(2_15, "2.15")
enum pytorch_version {
#define X(name, text) PYTORCH_##name,
    PYTORCH_LIST(X)
#undef X
};

/* Where receives stand: at once when their message is sent; as late as can be, the lower of two ranks before it sends
   to the other (`defer_pp_recv`); in the order in which passes end. */
#define RECEIVES_LIST(X) X(EARLY, "early") X(DEFERRED, "deferred") X(TIMED, "timed")
enum receives {
#define X(name, text) RECEIVES_##name,
    RECEIVES_LIST(X)
#undef X
};

struct pytorch_options {
    enum pytorch_version version; /* NONE: messages alone */
    enum receives receives;
    const struct plan
        *plan;  /* for RECEIVES_TIMED: what passes and messages take; NULL: as pass_time.h says */
    int copies; /* of the model */
};

/* Complete compute-only lists; idle cells are left out. */
enum status pytorch_complete(struct arena *arena, struct rank_program *ranks, int rank_count,
                             const struct pytorch_options *options, struct diag *diag);

#endif
