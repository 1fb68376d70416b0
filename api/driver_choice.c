/* SPDX-License-Identifier: Apache-2.0 */
/* driver_choice.c - see driver_choice.h. */
#include "driver_choice.h"

int driver_choose(const struct plan *plan, int given, int usual, struct diag *diag)
{
    static const char *const choices[] = {"clock", "dataflow", "both"};
    const struct pipeline *pipeline = &plan->pipeline;
    if (plan->form != FORM_PIPELINE || !pipeline->driver_given)
        return given == DRIVER_NOT_GIVEN ? usual : given;
    int named = pipeline->driver == PLAN_DRIVER_CLOCK ? CLOCK_ONLY : DATAFLOW_ONLY;
    if (given == DRIVER_NOT_GIVEN || given == named)
        return named;
    diag_note(diag, "%s: the plan names driver %s; --driver=%s overrides it", plan->file,
              choices[named], choices[given]);
    return given;
}
