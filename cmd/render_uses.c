/* SPDX-License-Identifier: Apache-2.0 */
/* render_uses.c - see render_uses.h. */
#include "render_uses.h"

enum {
#define X(name, words) name = 1 << RENDER_##name,
    RENDER_KIND_LIST(X)
#undef X
        RUNS = TIMELINE | PAGE | JSON | RUN_SCHEDULE,
    SCHEDULES = RUN_SCHEDULE | PLAN_SCHEDULE,
    DRAWN = TIMELINE | WITNESS | SCHEDULES | GRAPH
};

/* Those that mean something to every picture are not in it. */
static const struct {
    const char *option;
    int kinds;
} uses[] = {
    {"run", RUNS | WITNESS},
    {"rank", TIMELINE | PAGE | JSON},
    {"stream", TIMELINE | PAGE},
    {"time", RUNS},
    {"iterations", RUNS},
    {"from", RUNS},
    {"to", RUNS},
    {"all", RUNS | WITNESS | GRAPH},
    {"arrows", TIMELINE | JSON | SCHEDULES},
    {"width", TIMELINE | SCHEDULES},
    {"font-size", DRAWN},
    {"theme", DRAWN | PAGE},
    {"bw", DRAWN | PAGE},
    {"as", TIMELINE | SCHEDULES},
    {"times", PLAN_SCHEDULE},
    {"p2p", PLAN_SCHEDULE},
    {"palette", SCHEDULES},
    {"title", TIMELINE | WITNESS | PAGE | SCHEDULES},
    {"no-threads", TIMELINE | PAGE | JSON},
};

static const char *const words[RENDER_KINDS] = {
#define X(name, words) words,
    RENDER_KIND_LIST(X)
#undef X
};

enum status render_uses_check(struct app *app, const struct arguments *arguments,
                              enum render_kind kind, const char *file)
{
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (options_given(arguments, uses[i].option) && !(uses[i].kinds & 1 << kind))
            return diag_error(&app->diag, STATUS_USAGE, "%s: found --%s, which has no effect on %s",
                              file, uses[i].option, words[kind]);
    return STATUS_OK;
}
