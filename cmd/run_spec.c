/* SPDX-License-Identifier: Apache-2.0 */
/* run_spec.c - see run_spec.h. */
#include "run_spec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

/* The colon before RUN; NULL: no RUN. */
static const char *find_run(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    bool digits = colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
    return digits && access(spec, F_OK) != 0 ? colon : NULL;
}

bool run_spec_has_run(const char *spec)
{
    return find_run(spec) != NULL;
}

enum status run_spec_parse(struct app *app, const char *option, const char *spec,
                           const char **out_path, int64_t *out_run)
{
    const char *colon = find_run(spec);
    *out_path = spec;
    *out_run = STORE_LATEST;
    if (!colon)
        return STATUS_OK;
    *out_path = arena_strndup(&app->arena, spec, (size_t)(colon - spec));
    return *out_path ? options_integer(app, option, colon + 1, 0, INT64_MAX, out_run)
                     : diag_no_memory(&app->diag);
}

enum status run_spec_is_store(struct app *app, const char *path, bool *out)
{
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic] = {0};
    *out = false;
    if (strcmp(path, "-") == 0)
        return STATUS_OK;
    FILE *file = fopen(path, "rb");
    if (!file)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot open %s: %s", path, strerror(errno));
    size_t length = fread(head, 1, sizeof head, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    *out = length == sizeof head && memcmp(head, magic, sizeof magic) == 0;
    return !error
               ? STATUS_OK
               : diag_error(&app->diag, STATUS_SYSTEM, "cannot read %s: %s", path, strerror(error));
}
