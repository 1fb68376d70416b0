/* profiled.c - see profiled.h. */
#include "profiled.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

/* The colon before RUN; a name with a colon in it is a name if such a file is there. NULL: no RUN. */
static const char *find_run(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    bool digits = colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
    return digits && access(spec, F_OK) != 0 ? colon : NULL;
}

enum status profiled_read(struct app *app, const char *spec, const struct plan *plan, int ranks,
                          struct profile *out)
{
    const char *colon = find_run(spec), *path = spec;
    int64_t run = STORE_LATEST;
    enum status status = STATUS_OK;
    if (colon) {
        path = arena_strndup(&app->arena, spec, (size_t)(colon - spec));
        status = path ? options_integer(app, "--profile", colon + 1, 0, INT64_MAX, &run)
                      : diag_no_memory(&app->diag);
    }
    struct store *store = NULL;
    if (status == STATUS_OK)
        status = store_open(path, false, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = profile_read(store, run, plan, ranks, out, &app->diag);
    enum status closed = store_close(store, &app->diag);
    if (status == STATUS_OK && closed != STATUS_OK) {
        profile_fini(out);
        status = closed;
    }
    if (status == STATUS_OK && !app->quiet)
        profile_note(out, path, &app->diag);
    return status;
}
