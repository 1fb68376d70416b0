/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_key.c - see timeline_view.h: names, and the legend. */
#include <string.h>

#include "timeline_view.h"

/* Sizes in points. */
enum {
    ROW = 17,
    FONT = 9,
    SWATCH = 10,
    MANY_TASKS = 24, /* then the legend leaves out those whose boxes are narrower than this: */
    LEAST_SEEN = 2
};

const struct wait_look timeline_waits[WAIT_LOOKS] = {
    {"dependence", "#fde8c0", "waiting for other work"},
    {"host", "#fbdcd8", "waiting for the host"},
    {"peer", "#e3d9f0", "waiting for other ranks"},
    {"resource", "#d8ecdd", "waiting for a resource"},
    {"unexplained", "#f0a8a0", "idle without a known cause"},
    {"", "#e6e9f4", "waiting"},
    {"", "#fdefed", "a thread waits"},
};

int timeline_look(const struct trace *trace, const struct trace_span *span)
{
    const struct trace_idle *line = trace_find_idle(trace, span->agent, span->cause);
    int look = 0;
    if (trace->agents[span->agent].kind != TRACE_STREAM)
        return THREAD_WAIT;
    while (look < OTHER_WAIT && (!line || strcmp(line->cause, timeline_waits[look].cause) != 0))
        look++;
    return look;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* "InputDistWait" is IDW, "all_to_all" is ata; NULL where that is too short. */
static const char *shorten(struct arena *arena, const char *name)
{
    char initials[8];
    size_t count = 0;
    bool starts_word = true;
    for (const char *c = name; *c; c++) {
        bool upper = *c >= 'A' && *c <= 'Z', lower = *c >= 'a' && *c <= 'z';
        bool digit = *c >= '0' && *c <= '9';
        if (upper || digit || (starts_word && lower)) {
            if (count + 1 >= sizeof initials)
                return NULL;
            initials[count++] = *c;
        }
        starts_word = !upper && !lower && !digit;
    }
    initials[count] = '\0';
    return count >= 2 && count + 2 <= strlen(name) ? arena_strdup(arena, initials) : NULL;
}

bool timeline_names(struct timeline_key *key, const struct trace *trace)
{
    size_t before = key->colors.count;
    const struct task_note *old = key->notes;
    if (!colors_add_run(&key->colors, trace))
        return false;
    key->notes = ARENA_ARRAY(key->arena, key->colors.count + 1, struct task_note);
    for (size_t i = 0; key->notes && i < key->colors.count; i++)
        key->notes[i] =
            i < before
                ? old[i]
                : (struct task_note){.short_name = shorten(key->arena, key->colors.items[i].name)};
    return !key->arena->failed;
}

/* ---- the legend ------------------------------------------------------------------------------ */

/* An entry: a swatch and its words; a new row where it does not fit. */
struct legend {
    const struct view *view;
    double x_pt, y_pt;
};

static void lay_entry(struct legend *legend, const char *text, const char *fill, const char *border)
{
    const struct view *view = legend->view;
    const double width = SWATCH + 5 + draw_text_width(text ? text : "", FONT) + 14;
    if (legend->x_pt + width > view->right_pt && legend->x_pt > view->left_pt) {
        legend->x_pt = view->left_pt;
        legend->y_pt += ROW;
    }
    if (view->drawing) {
        draw_box(view->drawing, &(struct draw_box){.x_pt = legend->x_pt,
                                                   .y_pt = legend->y_pt + (ROW - SWATCH) / 2.0,
                                                   .width_pt = SWATCH,
                                                   .height_pt = SWATCH,
                                                   .fill = fill,
                                                   .border = border});
        draw_line(view->drawing, legend->x_pt + SWATCH + 5, legend->y_pt + ROW / 2.0, text,
                  "#222222", FONT);
    }
    legend->x_pt += width;
}

static void lay_waits(struct legend *legend, const struct timeline_key *key)
{
    for (int i = 0; i < WAIT_LOOKS; i++) {
        if (!key->waits[i])
            continue;
        lay_entry(legend, key->grey ? "waiting" : timeline_waits[i].words, timeline_waits[i].fill,
                  NULL);
        if (key->grey)
            return;
    }
}

double timeline_legend(const struct view *view, double y)
{
    const struct timeline_key *key = view->key;
    struct legend legend = {view, view->left_pt, y};
    size_t unseen = 0, shown = 0;
    for (size_t i = 0; i < key->colors.count; i++)
        shown += key->notes[i].widest_pt > 0;
    lay_waits(&legend, key);
    for (size_t i = 0; i < key->colors.count; i++) {
        const struct named_color *task = &key->colors.items[i];
        const struct task_note *note = &key->notes[i];
        const char *text = task->name;
        if (note->widest_pt <= 0)
            continue;
        if (shown > MANY_TASKS && note->widest_pt < LEAST_SEEN) {
            unseen++;
            continue;
        }
        if (note->short_used)
            text = arena_printf(view->arena, "%s (%s)", task->name, note->short_name);
        lay_entry(&legend, text, draw_fill(task->color), draw_border(task->color));
    }
    if (unseen)
        lay_entry(&legend, arena_printf(view->arena, "and %zu more, too short to be seen", unseen),
                  "#ffffff", NULL);
    if (key->merged)
        lay_entry(&legend, "narrow work is merged: heights are shares of the time", "#ffffff",
                  "#9c9c9c");
    return legend.y_pt + ROW - y;
}
