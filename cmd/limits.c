/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - see limits.h. */
#include "limits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/quiet_thread.h"
#include "base/stopwatch.h"
#include "base/system_words.h"
#include "base/units.h"

enum { LOOK_NS = 5000000 };
static const int64_t ANSWER_NS = 700000000;

/* Until the process ends. */
static struct limits {
    const struct app *app;
    size_t mem_bytes;
    int64_t time_ns, until_ns;
    FILE *statm;
} limits;

/* 0: not to be had. */
static size_t used_bytes(void)
{
    uint64_t all, resident;
    rewind(limits.statm);
    const bool read = fscanf(limits.statm, "%" SCNu64 " %" SCNu64, &all, &resident) == 2;
    return read ? (size_t)resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Whatever is told goes past the diag of the app, which is the main thread's. */
static void tell(struct diag *diag)
{
    diag_print(diag, limits.app->program, app_color(limits.app, stderr), stderr);
    fflush(stderr);
}

static void tell_and_end(const char *what)
{
    struct diag diag;
    diag_init(&diag);
    diag_error(&diag, STATUS_LIMIT, "%s before there was an answer", what);
    if (limits.app->json && ftrylockfile(stdout) == 0) { /* no one writes to it now */
        json_write_errors(&diag, stdout);
        fflush(stdout);
    }
    tell(&diag);
    _exit(status_exit_code(STATUS_LIMIT));
}

/* True if the verb is going to tell what it has. */
static bool ask_for_end(const char *what)
{
    struct diag diag;
    if (!interrupts_send())
        return false;
    diag_init(&diag);
    diag_note(&diag, "%s", what);
    tell(&diag);
    diag_fini(&diag);
    return true;
}

static void *look(void *unused)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    char text[UNITS_TEXT], what[UNITS_TEXT + 64];
    (void)unused;
    for (int64_t end_ns = 0;;) {
        nanosleep(&pause, NULL);
        const int64_t now_ns = stopwatch_now_ns();
        const bool late = limits.until_ns && now_ns > limits.until_ns;
        const size_t used = limits.mem_bytes ? used_bytes() : 0;
        if (!late && used <= limits.mem_bytes)
            continue;
        if (end_ns == 0) {
            if (late)
                units_show_time((double)limits.time_ns, text);
            else
                units_show_bytes((double)limits.mem_bytes, text);
            snprintf(what, sizeof what, "the %s limit of %s was reached", late ? "time" : "memory",
                     text);
            end_ns = ask_for_end(what) ? now_ns + ANSWER_NS : now_ns;
        }
        if (now_ns >= end_ns || used / 5 * 4 > limits.mem_bytes)
            tell_and_end(what);
    }
    return NULL;
}

enum status limits_read(struct option_reader reader, const char *key, const char *value,
                        size_t *mem_bytes, int64_t *time_ns, bool *known)
{
    int64_t number = 0;
    const char *what = NULL;
    const bool mem = strcmp(key, "mem") == 0;
    *known = mem || strcmp(key, "time") == 0;
    if (!*known)
        return STATUS_OK;
    const char *text = value ? value : "";
    if (!(mem ? units_parse_bytes(text, &number, &what) : units_parse_time(text, &number, &what)))
        return diag_error(reader.diag, STATUS_USAGE, "--limit %s: found '%s', %s", key, text, what);
    if (mem)
        *mem_bytes = (size_t)number;
    else
        *time_ns = number ? number : 1;
    return STATUS_OK;
}

static enum status read_one(struct option_reader reader, const char *key, const char *value,
                            void *context)
{
    bool known;
    struct limits *out = context;
    enum status status = limits_read(reader, key, value, &out->mem_bytes, &out->time_ns, &known);
    if (status != STATUS_OK || known)
        return status;
    return diag_error(reader.diag, STATUS_USAGE,
                      "--limit: found '%s', expected mem=SIZE or time=DURATION", key);
}

enum status limits_begin(struct app *app, const char *list)
{
    pthread_t thread;
    if (!list)
        return STATUS_OK;
    enum status status = option_each(app_reader(app), list, read_one, &limits);
    if (status != STATUS_OK)
        return status;
    limits.app = app;
    limits.until_ns = limits.time_ns ? stopwatch_until(limits.time_ns) : 0;
    if (limits.mem_bytes && !(limits.statm = fopen("/proc/self/statm", "re")))
        return diag_error(&app->diag, STATUS_SYSTEM,
                          "--limit mem: cannot read /proc/self/statm: %s", system_words(errno));
    if (limits.statm)
        setvbuf(limits.statm, NULL, _IONBF, 0);
    const int error = quiet_thread_start(&thread, look, NULL);
    if (error)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot start a thread: %s",
                          system_words(error));
    pthread_detach(thread);
    return STATUS_OK;
}
