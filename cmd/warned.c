/* warned.c - see warned.h. */
#include "warned.h"

enum status warned_find(struct app *app, const struct plan *plan, struct warnings *out)
{
    enum status status = warnings_find(plan, &app->arena, out, &app->diag);
    if (status != STATUS_OK || app->quiet)
        return status;
    for (size_t i = 0; i < out->count; i++)
        diag_warn_at(&app->diag, plan->file, plan->text, out->items[i].mark, "%s",
                     out->items[i].text);
    return STATUS_OK;
}
