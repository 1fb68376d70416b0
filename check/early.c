/* SPDX-License-Identifier: Apache-2.0 */
/* early.c - see early.h. */
#include "early.h"

enum { PATIENCE_STEPS = 200000 };

void early_begin(struct early *early, const struct program *program, unsigned asked,
                 void (*found)(void *arg, const struct verify_report *so_far), void *found_arg)
{
    *early =
        (struct early){.program = program, .asked = asked, .found = found, .found_arg = found_arg};
}

/* False: memory was exhausted; where that lasts it is reported at the end. */
static bool early_tell(const struct early *early, enum property property,
                       const struct search_path *path)
{
    const struct program *p = early->program;
    struct verify_report report = {.plan = p->plan->name,
                                   .file = p->plan->file,
                                   .driver = p->driver,
                                   .verdict = VERDICT_VIOLATED,
                                   .first = property};
    struct diag unused;
    arena_init(&report.arena, 0);
    diag_init(&unused);
    bool told = explain_path(p, property, path, &report.arena, &report.stories[property],
                             &unused) == STATUS_OK;
    if (told)
        early->found(early->found_arg, &report);
    diag_fini(&unused);
    arena_fini(&report.arena);
    return told;
}

void early_look(void *arg, const struct search_result *so_far)
{
    struct early *early = arg;
    const struct search_result *result = early->result ? early->result : so_far;
    unsigned found = result->found & early->asked;
    if (!early->found || early->told || !found)
        return;
    if (!early->seen || result != so_far)
        early->from = result == so_far ? so_far->transitions : 0;
    early->seen = true;
    if (so_far->transitions < early->from + PATIENCE_STEPS)
        return;
    int first = 0;
    while (!(found & 1u << first))
        first++;
    early->told = early_tell(early, (enum property)first, &result->witness[first]);
}
