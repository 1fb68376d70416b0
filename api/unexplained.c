/* SPDX-License-Identifier: Apache-2.0 */
/* unexplained.c - see unexplained.h. */
#include "unexplained.h"

enum status refuse_unexplained(const struct plan *plan, bool opaque, struct diag *diag)
{
    if (!plan_is_unexplained(plan) || opaque)
        return STATUS_OK;
    diag_error(
        diag, STATUS_LIMIT,
        "%s: the job's device was idle for %.0f%% of its time without a cause in its trace "
        "(unexplained), more than 5%%: a prediction would not be that of the job; 'swsim import "
        "--opaque' makes that time part of the plan",
        plan->file, plan->unexplained.millionths / 1e4);
    return STATUS_LIMIT;
}
