/* SPDX-License-Identifier: Apache-2.0 */
/* unexplained.c - see unexplained.h. */
#include "unexplained.h"

enum status refuse_unexplained(const struct plan *plan, bool opaque, struct diag *diag)
{
    if (!plan_is_unexplained(plan) || opaque)
        return STATUS_OK;
    diag_error(diag, STATUS_LIMIT,
               "%s: the job was idle without a cause in its trace for %.0f%% of its idle time "
               "(unexplained), more than 10%%: a prediction would not be that of the job",
               plan->file, plan->unexplained.millionths / 1e4);
    diag_note(diag, "--opaque takes it all the same; 'swsim import --opaque' makes that time "
                    "part of the plan");
    return STATUS_LIMIT;
}
