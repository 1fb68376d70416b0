/* SPDX-License-Identifier: Apache-2.0 */
/* warned.c - see warned.h. */
#include "warned.h"

void warned_tell(struct app *app, const struct plan *plan, const struct warnings *warnings)
{
    for (size_t i = 0; i < warnings->count && !app->quiet; i++)
        diag_warn_at(&app->diag, plan->file, plan->text, warnings->items[i].mark, "%s",
                     warnings->items[i].text);
}

enum status warned_find(struct app *app, const struct plan *plan, struct warnings *out)
{
    enum status status = warnings_find(plan, &app->arena, out, &app->diag);
    if (status == STATUS_OK)
        warned_tell(app, plan, out);
    return status;
}
