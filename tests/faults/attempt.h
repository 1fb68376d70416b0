/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt.h - one command, started with the preloaded library in a folder of its own, and all that it leaves.
 *
 * Used by t_injected.c. A failure in here is a defect of the test, not of the command: it is said on
 * standard error and ends the test.
 */
#ifndef SWSIM_TESTS_ATTEMPT_H
#define SWSIM_TESTS_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject.h"

enum { ATTEMPT_MAX_FILES = 16, ATTEMPT_MAX_ARGS = 24 };

struct attempt_file {
    char *name, *data;
    size_t bytes;
};

/* The files of the folder, without the command's output. */
struct attempt_files {
    struct attempt_file items[ATTEMPT_MAX_FILES];
    int count;
};

struct attempt {
    int code;             /* exit code; -1: a signal ended it */
    int signal;           /* 0: none */
    bool hung, survivors; /* the time was over; processes that it started were still there */
    char *out, *err;      /* standard output and error */
    struct attempt_files files;
    uint64_t calls[INJECT_KINDS], failed;
    struct inject_stack *stacks; /* of all calls, if asked for */
    size_t stack_count;
};

struct attempt_place {
    char *base, *folder; /* folder: where commands run, in base */
    const char *library; /* to preload */
    bool stacks;         /* ask for them */
};

void attempt_place_open(struct attempt_place *place, const char *library);
void attempt_place_close(struct attempt_place *place);
char *attempt_path(const struct attempt_place *place, const char *name);

/* The folder gets these files and no others. */
void attempt_put(const struct attempt_place *place, const struct attempt_files *files);
void attempt_add(struct attempt_files *files, const char *name, const char *data, size_t bytes);
/* The whole file, with a zero behind it. */
char *attempt_read(const char *path, size_t *bytes);

/* Run argv; `fault` is the value of SWSIM_INJECT. The calling functions of the fault are in the file
   attempt_path(place, "trace") afterwards. */
void attempt_run(const struct attempt_place *place, char *const *argv, const char *fault,
                 double limit_s, struct attempt *out);
void attempt_free(struct attempt *attempt);
void attempt_free_files(struct attempt_files *files);

#endif
