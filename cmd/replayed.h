/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replayed.h - the outcome of a replayed witness: whether the device did what the checker predicted.
 */
#ifndef SWSIM_REPLAYED_H
#define SWSIM_REPLAYED_H

#include <stdio.h>

#include "base/json.h"
#include "gpu/exec/runtime.h"
#include "trace/store.h"

struct replayed {
    const char *path; /* the store */
    int64_t run;      /* in it */
    const struct run_info *info;
    const struct trace_witness *witness;
    const struct runtime_result *result;
};

/*             NAME, key in JSON */
#define REPLAYED_LIST(X)                                                                           \
    X(SAME_HANG, "same_hang")   /* it hangs, with the waits of the witness */                      \
    X(OTHER_HANG, "other_hang") /* it hangs, but elsewhere */                                      \
    X(NO_HANG, "no_hang")       /* it should hang and did not */                                   \
    X(HAPPENED, "happened")     /* every step was taken, and the violation is in the trace */      \
    X(UNSEEN, "unseen")         /* every step was taken, but the violation is not in the trace */  \
    X(STRAYED, "strayed")       /* a step of the witness could not be taken */                     \
    X(ILLEGAL, "illegal")       /* the machine does not allow the run */                           \
    X(INTERRUPTED, "interrupted")

enum replayed_outcome {
#define X(name, key) REPLAYED_##name,
    REPLAYED_LIST(X)
#undef X
};

enum replayed_outcome replayed_outcome(const struct replayed *replayed);
/* True if the device did what the checker predicted. */
bool replayed_confirms(enum replayed_outcome outcome);

void replayed_print(const struct replayed *replayed, FILE *out);
/* One JSON object; its keys are a contract. */
void replayed_write(const struct replayed *replayed, struct json *json);

#endif
