/* SPDX-License-Identifier: Apache-2.0 */
/* action_times.c - see action_times.h. */
#include "action_times.h"

#include <string.h>

#include "options.h"

#include "plan/units.h"

/* One of F=1ms, B=2ms, ... */
static enum status set_time(struct app *app, const char *key, const char *value, void *context)
{
    struct plan *plan = context;
    value = value ? value : "";
    const char *what = NULL;
    int64_t ns;
    int kind = 0;
    while (kind < ACTION_IDLE && strcmp(action_text((enum action_kind)kind), key) != 0)
        kind++;
    if (kind == ACTION_IDLE)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--times: found '%s', expected an action such as F, I, B or W", key);
    if (!units_parse_time(value, &ns, &what))
        return diag_error(&app->diag, STATUS_USAGE, "--times %s: found '%s', %s", key, value, what);
    plan->programs.times[kind] = (struct action_time){true, ns};
    return STATUS_OK;
}

enum status action_times_set(struct app *app, const char *text, struct plan *plan)
{
    if (plan->form != FORM_PROGRAMS)
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s: found --times, but only rank programs have actions", plan->file);
    return options_each(app, text, set_time, plan);
}
