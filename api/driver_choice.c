/* SPDX-License-Identifier: Apache-2.0 */
/* driver_choice.c - see driver_choice.h. */
#include "driver_choice.h"

#include <assert.h>
#include <string.h>

/* As given, else the plan's, else `usual`. */
static int chosen(const struct plan *plan, int given, int usual)
{
    const struct pipeline *pipeline = &plan->pipeline;
    if (given != DRIVER_NOT_GIVEN)
        return given;
    if (plan->form != FORM_PIPELINE || !pipeline->driver_given)
        return usual;
    return pipeline->driver == PLAN_DRIVER_CLOCK ? CLOCK_ONLY : DATAFLOW_ONLY;
}

int driver_choose(const struct plan *plan, int given, int usual, struct diag *diag)
{
    static const char *const choices[] = {"clock", "dataflow", "both"};
    int named = chosen(plan, DRIVER_NOT_GIVEN, given);
    assert(given == DRIVER_NOT_GIVEN || (given >= 0 && given <= BOTH_DRIVERS));
    if (given != DRIVER_NOT_GIVEN && given != named)
        diag_note(diag, "%s: the plan names driver %s; --driver=%s overrides it", plan->file,
                  choices[named], choices[given]);
    return chosen(plan, given, usual);
}

static bool is_of_pipelines(const char *option)
{
    static const char *const options[] = {"driver",  "iterations", "max-depth",
                                          "exposed", "serial",     "progress"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(option, options[i]) == 0)
            return true;
    return false;
}

enum status driver_check_options(const struct plan *plan, const char *const *given, size_t count,
                                 int driver, int usual, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (plan->form != FORM_PIPELINE && is_of_pipelines(given[i]))
            return diag_error(diag, STATUS_USAGE,
                              "%s: found --%s, but only plans of the pipeline form have that",
                              plan->file, given[i]);
        if (strcmp(given[i], "max-depth") == 0 && chosen(plan, driver, usual) == CLOCK_ONLY)
            return diag_error(diag, STATUS_USAGE,
                              "%s: found --max-depth for the clock driver; only data-flow has it",
                              plan->file);
    }
    return STATUS_OK;
}
