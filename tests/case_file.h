/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_file.h - text cases: plans, and what is expected of each.
 *
 *     --- title            a case begins
 *     the plan
 *     === expectation      one line each; what they may say is the test's own
 *
 * Lines between the last expectation and the next title are comments.
 */
#ifndef SWSIM_CASE_FILE_H
#define SWSIM_CASE_FILE_H

#include <stddef.h>

struct text_case {
    const char *file; /* without folders */
    int line;         /* of the title */
    char title[256];
    char text[16384];
    size_t length;
    char expected[16][512];
    size_t expected_count;
};

/* Call `run` for each case of the file tests/cases/`name`, in order. A file that cannot be read, is empty or has
   a case too big is a failed case. */
void case_file_run(const char *name, void (*run)(const struct text_case *test));

#endif
