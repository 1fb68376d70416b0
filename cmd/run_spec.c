/* SPDX-License-Identifier: Apache-2.0 */
/* run_spec.c - see run_spec.h. */
#include "run_spec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/system_words.h"

enum status run_spec_is_store(struct app *app, const char *path, bool *out)
{
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic] = {0};
    *out = false;
    if (strcmp(path, "-") == 0)
        return STATUS_OK;
    if (access(path, F_OK) == 0 && !input_is_ordinary(path))
        return STATUS_OK; /* looking at a pipe would take out of it; whatever reads it says more */
    FILE *file = fopen(path, "rb");
    if (!file)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot open %s: %s", path,
                          system_words(errno));
    size_t length = fread(head, 1, sizeof head, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    *out = length == sizeof head && memcmp(head, magic, sizeof magic) == 0;
    return !error ? STATUS_OK
                  : diag_error(&app->diag, STATUS_SYSTEM, "cannot read %s: %s", path,
                               system_words(error));
}
