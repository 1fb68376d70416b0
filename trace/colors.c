/* SPDX-License-Identifier: Apache-2.0 */
/* colors.c - see colors.h. */
#include "colors.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"
#include "plan/text/parse.h"
#include "plan/plan.h"

#include "draw.h"

/* Clearly different ones come first in the list of draw.h; they are used up before the others. */
enum { CLEAR = DRAW_COLORS / 2 };

/* Colours of names follow from this hash: it stays as it is. */
static size_t colors_hash_of(const char *name)
{
    size_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash ^ hash >> 29;
}

void colors_init(struct colors *colors, struct arena *arena)
{
    *colors = (struct colors){.arena = arena};
}

int colors_find(const struct colors *colors, const char *name)
{
    const uint32_t found = TABLE_FIND(&colors->names, table_hash_text(name), i,
                                      strcmp(colors->items[i].name, name) == 0);
    return found != TABLE_NONE ? (int)found : -1;
}

int colors_add(struct colors *colors, const char *name)
{
    int found = colors_find(colors, name);
    if (found >= 0)
        return found;
    if (!ARENA_GROW(colors->arena, colors->items, colors->count, colors->cap) ||
        !table_add_in(&colors->names, colors->arena, table_hash_text(name), colors->count))
        return -1;
    colors->items[colors->count] = (struct named_color){.name = name, .group = (int)colors->count};
    return (int)colors->count++;
}

static int colors_compare_names(const void *left, const void *right, void *context)
{
    const struct colors *colors = context;
    return strcmp(colors->items[*(const int *)left].name, colors->items[*(const int *)right].name);
}

void colors_settle(struct colors *colors)
{
    size_t count = colors->count - colors->settled;
    int *order = ARENA_ARRAY(colors->arena, count + 1, int);
    for (size_t i = 0; order && i < count; i++)
        order[i] = (int)(colors->settled + i);
    if (order)
        SORT_BY(order, count, colors_compare_names, colors);
    for (size_t i = 0; order && i < count; i++) {
        struct named_color *item = &colors->items[order[i]];
        if (item->group != order[i])
            continue;
        /* The least used colour, of equal ones the first behind that which the name wants; clear ones before others. */
        int wanted = (int)(colors_hash_of(item->name) % CLEAR), best = wanted;
        for (int step = 0; step < DRAW_COLORS; step++) {
            int color = step / CLEAR * CLEAR + (wanted + step) % CLEAR;
            if (colors->used[color] < colors->used[best])
                best = color;
        }
        item->color = best;
        colors->used[item->color]++;
    }
    colors->settled = colors->count;
}

int colors_group(const struct colors *colors, const char *name)
{
    int found = colors_find(colors, name);
    return found >= 0 ? colors->items[found].group : -1;
}

/* "0F3" is "F", and "send F0@1 to rank 1", a message of rank programs, is "send F"; NULL: there are no digits, or
   nothing else. */
static const char *without_digits(struct arena *arena, const char *name)
{
    char *out = strpbrk(name, "0123456789") ? arena_strdup(arena, name) : NULL, *end = out;
    for (const char *c = out; c && *c && *c != '@'; c++)
        if (*c < '0' || *c > '9')
            *end++ = *c;
    if (end)
        *end = '\0';
    return out && *out ? out : NULL;
}

static void colors_add_copy(struct colors *colors, const char *name)
{
    const char *copy =
        name && colors_find(colors, name) < 0 ? arena_strdup(colors->arena, name) : NULL;
    if (copy)
        (void)colors_add(colors, copy);
}

/* A plan that cannot be read any more has no names to give. */
static void colors_add_plan(struct colors *colors, const struct run_info *info)
{
    struct diag unheard;
    struct plan plan;
    if (!info->plan_text || !*info->plan_text)
        return;
    diag_init(&unheard);
    if (plan_parse("the plan of the run", info->plan_text, strlen(info->plan_text), &plan,
                   &unheard) == STATUS_OK) {
        for (size_t i = 0; plan.form == FORM_PIPELINE && i < plan.pipeline.task_count; i++)
            colors_add_copy(colors, plan.pipeline.tasks[i].name);
        for (size_t i = 0; plan.form == FORM_THREADS && i < plan.thread_count; i++)
            for (size_t k = 0; k < plan.threads[i].op_count; k++)
                colors_add_copy(colors, plan.threads[i].ops[k].name);
        plan_fini(&plan);
    }
    diag_fini(&unheard);
}

bool colors_add_run(struct colors *colors, const struct trace *trace)
{
    colors_add_plan(colors, &trace->info);
    colors_settle(colors);
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].task && trace->spans[i].kind != SPAN_WAIT &&
            colors_add(colors, trace->spans[i].task) < 0)
            return false;
    /* More names than anyone can tell apart. */
    enum { MOST = 3 * DRAW_COLORS };
    size_t count = colors->count;
    for (size_t i = colors->settled; count - colors->settled > MOST && i < count; i++) {
        const char *stem = without_digits(colors->arena, colors->items[i].name);
        int group = stem ? colors_add(colors, stem) : -1;
        if (group >= 0)
            colors->items[i].group = group;
    }
    colors_settle(colors);
    return !colors->arena->failed;
}
