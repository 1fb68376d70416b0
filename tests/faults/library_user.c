/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_user.c - a program that calls libswsim and libswpipe, for t_injected: `libraries VERB PLAN [FILE]`.
 *
 * The library's answer goes to the standard output, an error in one sentence to the other: exit code 2, as the
 * commands have it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "swpipe.h"
#include "swsim.h"

enum { FAILED = 2 };

static int fail(const char *reason)
{
    fprintf(stderr, "libraries: error: %s\n", reason && *reason ? reason : "memory is exhausted");
    return FAILED;
}

/* The errors of a plan have the library's name; that memory is exhausted is said without it. */
static int repeat(const char *errors)
{
    if (!strstr(errors, ": error: "))
        return fail(errors);
    fputs(errors, stderr);
    return FAILED;
}

static int answered(int code)
{
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    return written || code ? code : fail("the answer cannot be written");
}

/* ---- libswsim -------------------------------------------------------------------------------- */

static enum swsim_status ask(const struct swsim_plan *plan, const char *verb, const char *file,
                             struct swsim_result **out)
{
    const struct swsim_options options = {.iterations = strcmp(verb, "predict") ? 0 : 20,
                                          .candidates = 20};
    if (strcmp(verb, "verify") == 0)
        return swsim_verify(plan, &options, out);
    if (strcmp(verb, "predict") == 0)
        return swsim_predict(plan, &options, out);
    if (strcmp(verb, "tune") == 0)
        return swsim_tune(plan, &options, out);
    return swsim_render(plan, &options, file, out);
}

static int judge(const char *verb, const char *path, const char *file)
{
    struct swsim_plan *plan = NULL;
    struct swsim_result *result = NULL;
    int code = 0;
    if (swsim_read(path, &plan) != SWSIM_OK)
        code = plan ? repeat(swsim_plan_error(plan)) : fail(NULL);
    else if (ask(plan, verb, file, &result) != SWSIM_OK)
        code = fail(result ? swsim_error(result) : NULL);
    else
        printf("%s\n%s", swsim_json(result), swsim_better_plan(result));
    swsim_free(result);
    swsim_close(plan);
    return code;
}

/* ---- libswpipe ------------------------------------------------------------------------------- */

static int next(void *left, int rank, void **batch)
{
    int *iterations = left;
    (void)rank;
    *batch = NULL;
    return (*iterations)-- > 0;
}

static int run(const char *path, const char *store)
{
    int iterations = 5;
    const struct swpipe_config config = {.plan_file = path};
    const struct swpipe_source source = {next, &iterations};
    struct swpipe_recorded recorded;
    struct swpipe *pipe = NULL;
    bool ok = swpipe_open(&config, &pipe) == SWPIPE_OK &&
              (!store || swpipe_record(pipe, store) == SWPIPE_OK) &&
              swpipe_run(pipe, &source, NULL) == SWPIPE_OK;
    int code = ok ? 0 : fail(pipe ? swpipe_error(pipe) : NULL);
    if (ok && store && swpipe_recorded(pipe, &recorded) == SWPIPE_OK)
        printf("  legal %d\n", recorded.legal);
    if (ok)
        printf("  results there\n");
    swpipe_close(pipe);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fail("found no verb and plan, expected: libraries VERB PLAN [FILE]");
    const char *file = argc > 3 ? argv[3] : NULL;
    return answered(strcmp(argv[1], "run") == 0 ? run(argv[2], file)
                                                : judge(argv[1], argv[2], file));
}
