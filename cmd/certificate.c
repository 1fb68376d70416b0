/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - see certificate.h. */
#include "certificate.h"

#include <stdlib.h>
#include <string.h>

#include "check/certify.h"

static unsigned proved_properties(const struct verify_report *report)
{
    unsigned proved = 0;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (report->outcome[p] == OUTCOME_PROVED)
            proved |= 1u << p;
    return proved;
}

/* "race, value" in the arena. */
static const char *property_list(struct app *app, unsigned properties)
{
    const char *list = "";
    for (int p = 0; p < PROPERTY_COUNT && list; p++)
        if (properties & 1u << p)
            list = arena_printf(&app->arena, "%s%s%s", list, *list ? ", " : "",
                                property_key((enum property)p));
    return list ? list : "";
}

static void tell_missing(struct app *app, const struct verify_report *report, unsigned missing,
                         const struct certified *certified)
{
    const char *driver = report->driver == DRIVER_NONE ? "" : driver_key(report->driver);
    if (missing)
        diag_note(&app->diag, "%s%s%s: no certificate for %s%s%s", report->file,
                  *driver ? ", driver " : "", driver, property_list(app, missing),
                  *certified->why_not ? ": " : "", certified->why_not);
}

static enum status write_one(struct app *app, const struct plan *plan,
                             const struct verify_options *options,
                             const struct verify_report *report, FILE *out)
{
    struct search_watch watch = {.until_ns = options->limits.until_ns,
                                 .interrupted = options->interrupted};
    struct program_options program = options->program;
    unsigned proved = proved_properties(report);
    struct certified certified;
    program.driver = report->driver;
    enum status status =
        certify_plan(plan, &program, proved, CERTIFY_STATES, &watch, &certified, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (certified.text)
        fputs(certified.text, out);
    tell_missing(app, report, proved & ~certified.covers, &certified);
    free(certified.text);
    return STATUS_OK;
}

enum status certificate_save(struct app *app, const struct plan *plan,
                             const struct verify_options *options,
                             const struct verify_report *reports, int count, const char *path)
{
    for (int i = 0; i < count; i++)
        if (reports[i].verdict != VERDICT_PROVED) {
            diag_note(&app->diag, "%s was not written: %s is %s", path, plan->file,
                      verdict_key(reports[i].verdict));
            return STATUS_OK;
        }
    struct text_stream all;
    size_t bytes = 0;
    if (!text_open(&all))
        return diag_no_memory(&app->diag);
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++)
        status = write_one(app, plan, options, &reports[i], all.out);
    char *text = text_close(&all, status == STATUS_OK, &bytes);
    if (status == STATUS_OK && !text)
        status = diag_no_memory(&app->diag);
    else if (status == STATUS_OK && bytes == 0)
        diag_note(&app->diag, "%s was not written: there is no certificate", path);
    else if (status == STATUS_OK)
        status = app_write_file(app, path, text);
    free(text);
    return status;
}
