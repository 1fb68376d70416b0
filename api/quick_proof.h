/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quick_proof.h - what can be said of a plan at once: what is proved by structure, in microseconds, and what a short
 * search finds.
 */
#ifndef SWSIM_QUICK_PROOF_H
#define SWSIM_QUICK_PROOF_H

#include <stdio.h>

#include "base/diag.h"
#include "plan/plan.h"
#include "machine/program.h"

enum quick_outcome {
    QUICK_PROVED,
    QUICK_MUST_HANG, /* every run does */
    QUICK_VIOLATED,  /* something else is violated, or it hangs in some interleavings */
    QUICK_UNDECIDED  /* the time was not enough */
};

enum { QUICK_SENTENCE = 512 };

struct quick_proof {
    enum quick_outcome outcome;
    char sentence[QUICK_SENTENCE]; /* what is violated, or not known; "": proved */
};

/* Judge the plan under `options` for at most `limit_ns`. The story of a violation is written to `story`, as swsim
   verify tells it; nothing is if there is none. */
enum status quick_proof_make(const struct plan *plan, const struct program_options *options,
                             int64_t limit_ns, struct quick_proof *out, FILE *story,
                             struct diag *diag);

#endif
