/* replace_file.c - see replace_file.h. */
#include "replace_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status system_error(struct app *app, const char *what, const char *path)
{
    return diag_error(&app->diag, STATUS_SYSTEM, "cannot %s %s: %s", what, path, strerror(errno));
}

/* Does the file hold this text and no more? */
static bool holds(FILE *file, const char *text)
{
    for (int byte; (byte = fgetc(file)) != EOF; text++)
        if (!*text || byte != (unsigned char)*text)
            return false;
    return !*text && !ferror(file);
}

static enum status check(struct app *app, const char *path, const char *known, struct stat *about)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return system_error(app, "open", path);
    bool asked = fstat(fileno(file), about) == 0, same = asked && holds(file, known);
    fclose(file);
    if (!asked)
        return system_error(app, "open", path);
    if (!S_ISREG(about->st_mode))
        return diag_error(&app->diag, STATUS_USAGE, "%s was not changed: it is no ordinary file",
                          path);
    return same ? STATUS_OK
                : diag_error(&app->diag, STATUS_INPUT,
                             "%s was not changed: it is no longer the file that was read", path);
}

static bool write_all(int file, const char *text, mode_t mode)
{
    size_t left = strlen(text);
    for (ssize_t done; left > 0; left -= (size_t)done, text += done)
        if ((done = write(file, text, left)) < 0)
            return false;
    return fchmod(file, mode & 07777) == 0 && fsync(file) == 0;
}

static enum status replace(struct app *app, const char *path, const char *text, mode_t mode)
{
    char *beside = arena_printf(&app->arena, "%s.XXXXXX", path);
    if (!beside)
        return diag_no_memory(&app->diag);
    int file = mkstemp(beside);
    if (file < 0)
        return system_error(app, "create", beside);
    bool written = write_all(file, text, mode);
    if (close(file) == 0 && written && rename(beside, path) == 0)
        return STATUS_OK;
    enum status status = system_error(app, "write", path);
    unlink(beside);
    return status;
}

enum status replace_file(struct app *app, const char *path, const char *known, const char *text)
{
    struct stat about;
    if (strcmp(path, "-") == 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "standard input cannot be changed: --fix=FILE writes the repaired plan");
    char *real = realpath(path, NULL);
    if (!real)
        return system_error(app, "open", path);
    enum status status = check(app, path, known, &about);
    if (status == STATUS_OK)
        status = replace(app, real, text, about.st_mode);
    free(real);
    return status;
}
