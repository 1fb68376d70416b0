/* SPDX-License-Identifier: Apache-2.0 */
/* replace_file.c - see replace_file.h. */
#include "replace_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "base/output.h"
#include "base/system_words.h"

static enum status system_error(struct app *app, const char *what, const char *path)
{
    return diag_error(&app->diag, STATUS_SYSTEM, "cannot %s %s: %s", what, path,
                      system_words(errno));
}

/* Does the file hold this text and no more? */
static bool holds(FILE *file, const char *text)
{
    for (int byte; (byte = fgetc(file)) != EOF; text++)
        if (!*text || byte != (unsigned char)*text)
            return false;
    return !*text && !ferror(file);
}

static enum status check(struct app *app, const char *path, const char *known)
{
    struct stat about;
    FILE *file = input_open_stream(path, &app->diag);
    if (!file)
        return STATUS_SYSTEM;
    bool asked = fstat(fileno(file), &about) == 0, same = asked && holds(file, known);
    bool failed = !asked || ferror(file);
    int error = errno;
    fclose(file);
    errno = error;
    if (failed)
        return system_error(app, "read", path);
    if (!S_ISREG(about.st_mode))
        return diag_error(&app->diag, STATUS_USAGE, "%s was not changed: it is no ordinary file",
                          path);
    return same ? STATUS_OK
                : diag_error(&app->diag, STATUS_INPUT,
                             "%s was not changed: it is no longer the file that was read", path);
}

enum status replace_file(struct app *app, const char *path, const char *known, const char *text)
{
    if (strcmp(path, "-") == 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "standard input cannot be changed: --fix=FILE writes the repaired plan");
    enum status status = check(app, path, known);
    return status == STATUS_OK ? output_write(path, text, strlen(text), &app->diag) : status;
}
