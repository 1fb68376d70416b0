/* SPDX-License-Identifier: Apache-2.0 */
/* harness.c - see harness.h. */
#include "harness.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "improve/found.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "tap.h"

/* ---- the environment ------------------------------------------------------------------------- */

uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

bool env_is_long(void)
{
    return env_number("SWSIM_LONG", 0) != 0;
}

uint64_t env_seed(void)
{
    uint64_t seed = env_number("SWSIM_SEED", (uint64_t)time(NULL) * 100000);
    tap_note("SWSIM_SEED=%" PRIu64, seed);
    return seed;
}

/* The thread sanitizer makes a search by one thread, in which it can find nothing, thirty times slower. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
enum { SANITIZED = 5 };
#else
enum { SANITIZED = 1 };
#endif

int env_plans(int quick, int many)
{
    return (int)env_number("SWSIM_PLANS",
                           (uint64_t)((env_is_long() ? many : quick) + SANITIZED - 1) / SANITIZED);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The next of several buffers, so that a call may take more than one path. */
static char *next_path(void)
{
    static char paths[8][PATH_CAP];
    static unsigned turn;
    return paths[turn++ % 8];
}

static const char *path_below(const char *folder, const char *name)
{
    char *path = next_path();
    snprintf(path, PATH_CAP, "%s/%s", folder, name);
    return path;
}

const char *path_source(const char *name)
{
    const char *srcdir = getenv("srcdir");
    return path_below(srcdir ? srcdir : ".", name);
}

const char *path_shared(const char *name)
{
    const char *shared = getenv("SWSIM_SHARED");
    return path_below(shared && *shared ? shared : path_source("../shared"), name);
}

static char temp_folder[] = "/tmp/swsim-test.XXXXXX";
static pid_t temp_owner;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

/* Not by a child process that exits. */
static void remove_folder(void)
{
    if (getpid() == temp_owner)
        nftw(temp_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *path_temp(const char *name)
{
    const char *kept = getenv("SWSIM_TEMP");
    if (kept && *kept)
        return path_below(kept, name);
    if (!temp_owner) {
        temp_owner = getpid();
        if (!mkdtemp(temp_folder) || atexit(remove_folder) != 0) {
            puts("Bail out! no temporary folder");
            abort();
        }
    }
    return path_below(temp_folder, name);
}

bool has_shared(const char *path)
{
    if (access(path, R_OK) == 0)
        return true;
    tap_note("%s", path);
    tap_skip("a file of SWSIM_SHARED is not here");
    return false;
}

static glob_t files_at(const char *pattern)
{
    glob_t files = {0};
    if (glob(pattern, 0, NULL, &files) != 0)
        files.gl_pathc = 0;
    return files;
}

glob_t files_source(const char *pattern)
{
    glob_t files = files_at(path_source(pattern));
    if (files.gl_pathc == 0)
        tap_ok(0, "there are files like %s", path_source(pattern));
    return files;
}

glob_t files_shared(const char *pattern)
{
    glob_t files = files_at(path_shared(pattern));
    if (files.gl_pathc == 0)
        has_shared(path_shared(pattern));
    return files;
}

char *file_text(const char *path)
{
    char *text = NULL;
    size_t cap = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &cap, '\0', file) < 0) {
        free(text);
        text = calloc(1, 1);
    }
    if (file)
        fclose(file);
    return text;
}

/* ---- messages -------------------------------------------------------------------------------- */

bool diag_says(const struct diag *diag, const char *text)
{
    for (size_t i = 0; i < diag->count; i++)
        if (strstr(diag->messages[i].text, text))
            return true;
    return false;
}

const char *diag_first(const struct diag *diag)
{
    return diag->count ? diag->messages[0].text : "(no message)";
}

void diag_tell(const struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++)
        tap_note("%u:%u: %s", diag->messages[i].mark.line, diag->messages[i].mark.col,
                 diag->messages[i].text);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* One case more where the status is not what the test needs. Ends the diag. */
static bool succeeded(enum status status, const char *what, struct diag *diag)
{
    if (status != STATUS_OK) {
        tap_ok(0, "%s", what);
        diag_tell(diag);
    }
    diag_fini(diag);
    return status == STATUS_OK;
}

bool plan_of_text(const char *text, struct plan *plan)
{
    struct diag diag;
    diag_init(&diag);
    return succeeded(plan_parse("test.yaml", text, strlen(text), plan, &diag),
                     "the test's plan is good", &diag);
}

bool plan_of_file(const char *path, struct plan *plan)
{
    struct diag diag;
    diag_init(&diag);
    return succeeded(plan_read(path, plan, &diag), path, &diag);
}

static enum status check_drivers(plan_check *check, void *context, const struct plan *plan,
                                 struct diag *diag)
{
    if (plan->form != FORM_PIPELINE)
        return check(context, plan, DRIVER_NONE, diag);
    enum status status = check(context, plan, DRIVER_CLOCK, diag);
    return status == STATUS_OK ? check(context, plan, DRIVER_DATAFLOW, diag) : status;
}

bool plan_try(const char *text, plan_check *check, void *context)
{
    struct diag diag;
    struct plan plan;
    diag_init(&diag);
    enum status status =
        text ? plan_parse("random.yaml", text, strlen(text), &plan, &diag) : diag_no_memory(&diag);
    if (status == STATUS_OK) {
        status = found_resolve(&plan, &plan.arena, &diag);
        if (status == STATUS_OK)
            status = check_drivers(check, context, &plan, &diag);
        plan_fini(&plan);
    }
    if (status != STATUS_OK)
        diag_tell(&diag);
    diag_fini(&diag);
    return status == STATUS_OK;
}

char *text_of_plan(const struct plan *plan)
{
    char *text = NULL;
    size_t length;
    struct diag diag;
    FILE *out = open_memstream(&text, &length);
    diag_init(&diag);
    enum status status = out ? plan_print(plan, out, &diag) : diag_no_memory(&diag);
    if (out)
        fclose(out);
    if (succeeded(status, "the plan is printed", &diag))
        return text;
    free(text);
    return NULL;
}
