/* SPDX-License-Identifier: Apache-2.0 */
/* render_choice.c - see render_choice.h. */
#include "render_choice.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "plan/plan.h"

#include "options.h"
#include "base/list_key.h"

/* ---- from here to there ---------------------------------------------------------------------- */

/* The texts on both sides of ".."; false: there is none. */
static bool render_choice_split(struct app *app, const char *text, const char **from,
                                const char **to)
{
    const char *dots = strstr(text, "..");
    if (!dots)
        return false;
    *from = arena_strndup(&app->arena, text, (size_t)(dots - text));
    *to = dots + 2;
    return *from != NULL;
}

static enum status refuse_range(struct app *app, const char *option, const char *text,
                                const char *example)
{
    return diag_error(&app->diag, STATUS_USAGE, "%s: found '%s', expected a range such as %s",
                      option, text, example);
}

enum status render_choice_time(struct app *app, const char *text, struct render_choice *choice)
{
    const char *from, *to, *what;
    choice->has_time = true;
    choice->from_ns = 0;
    choice->to_ns = INT64_MAX;
    bool read = render_choice_split(app, text, &from, &to) && (*from || *to) &&
                (!*from || units_parse_time(from, &choice->from_ns, &what)) &&
                (!*to || units_parse_time(to, &choice->to_ns, &what)) &&
                choice->from_ns < choice->to_ns;
    return read ? STATUS_OK : refuse_range(app, "--time", text, "10ms..25ms");
}

enum status render_choice_iterations(struct app *app, const char *text,
                                     struct render_choice *choice)
{
    const char *from, *to;
    enum status status = STATUS_OK;
    if (!render_choice_split(app, text, &from, &to))
        from = to = text;
    if (!*from && !*to)
        return refuse_range(app, "--iterations", text, "10..14");
    if (*from)
        status = option_number(app_reader(app), "--iterations", from, 0, INT64_MAX, &choice->from);
    if (status == STATUS_OK && *to)
        status = option_number(app_reader(app), "--iterations", to, 0, INT64_MAX, &choice->to);
    if (status == STATUS_OK && *from && *to && choice->from > choice->to)
        return refuse_range(app, "--iterations", text, "10..14");
    return status;
}

/* ---- ranks and streams ----------------------------------------------------------------------- */

/* The next "3" or "0-3" of a list; false: it is not well-formed. */
static bool next_ranks(const char **text, long *low, long *high)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *low = *high = strtol(*text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *high = strtol(end + 1, &end, 10);
    bool ends = *end == ',' || *end == '\0';
    *text = *end == ',' ? end + 1 : end;
    return ends && *low <= *high && *high < PLAN_MAX_RANKS;
}

enum status render_choice_ranks(struct app *app, const char *text, int *only)
{
    const char *at = text;
    long low, high, first = -1, last = -1;
    do {
        if (!next_ranks(&at, &low, &high))
            return diag_error(&app->diag, STATUS_USAGE,
                              "--rank: found '%s', expected ranks from 0 to %d such as 0-3,8", text,
                              PLAN_MAX_RANKS - 1);
        first = first < 0 ? low : first;
        last = high;
    } while (*at);
    *only = first == last ? (int)first : -1;
    return STATUS_OK;
}

static bool has_rank(const char *text, int rank)
{
    long low, high;
    while (*text && next_ranks(&text, &low, &high))
        if (rank >= low && rank <= high)
            return true;
    return false;
}

/* True if the name is one of the list "NAME,NAM*". */
static bool render_choice_has_name(const char *list, const char *name)
{
    char pattern[256];
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length < sizeof pattern) {
            memcpy(pattern, list, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, name, 0) == 0)
                return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}

bool render_choice_shows(void *choice, const struct trace_agent *agent)
{
    const struct render_choice *it = choice;
    return (agent->kind == TRACE_STREAM || !it->no_threads) &&
           (!it->ranks || has_rank(it->ranks, agent->rank)) &&
           (!it->streams || render_choice_has_name(it->streams, agent->name));
}

/* ---- options and kinds of pictures ----------------------------------------------------------- */

enum {
#define X(name, words) name = 1 << RENDER_##name,
    RENDER_KIND_LIST(X)
#undef X
        RUNS = TIMELINE | PAGE | JSON | RUN_SCHEDULE | RUN_PAGE,
    SCHEDULES = RUN_SCHEDULE | PLAN_SCHEDULE,
    SCHEDULE_PAGES = RUN_PAGE | PLAN_PAGE,
    DRAWN = TIMELINE | WITNESS | SCHEDULES | GRAPH | GRAPH_PAGE,
    PAGES = PAGE | SCHEDULE_PAGES | WITNESS_PAGE
};

/* Those that mean something to every picture are not in it. */
static const struct {
    const char *option;
    int kinds;
} uses[] = {
    {"run", RUNS | WITNESS | WITNESS_PAGE},
    {"rank", TIMELINE | PAGE | JSON},
    {"stream", TIMELINE | PAGE},
    {"time", RUNS},
    {"iterations", RUNS},
    {"from", RUNS},
    {"to", RUNS},
    {"all", RUNS | WITNESS | GRAPH | GRAPH_PAGE},
    {"arrows", TIMELINE | JSON | SCHEDULES},
    {"width", TIMELINE | SCHEDULES},
    {"font-size", DRAWN},
    {"theme", DRAWN | PAGES},
    {"bw", DRAWN | PAGES},
    {"as", TIMELINE | PAGE | SCHEDULES | SCHEDULE_PAGES},
    {"times", PLAN_SCHEDULE | PLAN_PAGE},
    {"p2p", PLAN_SCHEDULE | PLAN_PAGE},
    {"palette", SCHEDULES | SCHEDULE_PAGES},
    {"title", TIMELINE | WITNESS | PAGES | SCHEDULES},
    {"no-threads", TIMELINE | PAGE | JSON},
};

static const char *const words[RENDER_KINDS] = {RENDER_KIND_LIST(LIST_KEY)};

enum status render_uses_check(struct app *app, const struct arguments *arguments,
                              enum render_kind kind, const char *file)
{
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (options_given(arguments, uses[i].option) && !(uses[i].kinds & 1 << kind))
            return diag_error(&app->diag, STATUS_USAGE, "%s: found --%s, which has no effect on %s",
                              file, uses[i].option, words[kind]);
    return STATUS_OK;
}
