/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - what most C tests need: the environment, files, messages, plans from text.
 *
 *     SWSIM_LONG=1     ask for more random plans and longer runs; set but empty means not set
 *     SWSIM_SEED=N     the first seed of random plans; else the time, or 1, as the test says
 *     SWSIM_PLANS=N    the number of random plans
 *     SWSIM_TEMP=DIR   write temporary files there and keep them
 *     SWSIM_SHARED=DIR data that is not part of the project; else ../shared beside the source tree
 *
 * Nothing here fails silently: what a test cannot do without is a failed case, what is absent a skipped one.
 */
#ifndef SWSIM_HARNESS_H
#define SWSIM_HARNESS_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>

#include "machine/program.h"
#include "plan/plan.h"

/* ---- the environment */

bool env_is_long(void);
uint64_t env_number(const char *name, uint64_t otherwise);

/* SWSIM_SEED; a new one for each run otherwise. Told in a comment. */
uint64_t env_seed(void);

/* SWSIM_PLANS; else one of the two, by SWSIM_LONG, of which a build with the thread sanitizer takes a fifth. */
int env_plans(int quick, int many);

/* ---- files */

enum { PATH_CAP = 4096 };

/* A path below the source tree, below SWSIM_SHARED, in a folder that is removed when the
   program exits. Each is valid until the eighth call after. */
const char *path_source(const char *name);
const char *path_shared(const char *name);
const char *path_temp(const char *name);

/* Is the file there? A skipped case otherwise. */
bool has_shared(const char *path);

/* The files that match the pattern below the source tree or SWSIM_SHARED, in order; none is a failed case
   there and a skipped one here. The caller hands them to globfree. */
glob_t files_source(const char *pattern);
glob_t files_shared(const char *pattern);

/* A whole file as a string, "" if it cannot be read. The caller frees it. */
char *file_text(const char *path);

/* ---- messages */

bool diag_says(const struct diag *diag, const char *text);
/* The first message; "(no message)" where there is none. */
const char *diag_first(const struct diag *diag);
/* All of them as comments. */
void diag_tell(const struct diag *diag);

/* ---- plans; a failed case and false where a plan is not good. The caller ends with plan_fini. */

bool plan_of_text(const char *text, struct plan *plan);
bool plan_of_file(const char *path, struct plan *plan);

/* Read a plan and check it under each driver that its form has; NULL is out of memory. A failure is told in comments;
   false, but no failed case. */
typedef enum status plan_check(void *context, const struct plan *plan, enum driver driver,
                               struct diag *diag);
bool plan_try(const char *text, plan_check *check, void *context);

/* The plan as the product prints it; NULL after a failed case. The caller frees it. */
char *text_of_plan(const struct plan *plan);

#endif
