/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_axes.c - see frontier_axes.h. */
#include "frontier_axes.h"

#include <string.h>

#include "frontier_costs.h"

#include "plan/schedules/generate.h"
#include "plan/keywords.h"

enum { MOST_CANDIDATES = 100000 };

const char *axis_key(enum axis axis)
{
#define X(name, key) key,
    static const char *const keys[] = {AXIS_LIST(X)};
#undef X
    return keys[axis];
}

static const char *frontier_axes_word_at(const char *const *words, int value)
{
    for (int i = 0; words[i]; i++)
        if (i == value)
            return words[i];
    return NULL;
}

const char *axis_word(enum axis axis, int value)
{
    switch (axis) {
    case AXIS_SCHEDULE:
        return value == FRONTIER_AS_GIVEN ? "as given" : generate_name((size_t)value);
    case AXIS_BALANCE:
        return value == BALANCE_LISTED ? "listed" : frontier_axes_word_at(keywords_balance, value);
    case AXIS_CHECKPOINT: return frontier_axes_word_at(keywords_checkpoint, value);
    case AXIS_CHANNEL: return frontier_axes_word_at(keywords_fifo, value);
    case AXIS_HELD: return value == HELD_FIT ? "fit" : NULL;
    case AXIS_MICROBATCHES:
    case AXIS_SIZE:
    case AXIS_CHUNKS:
    case AXIS_GROUP:
    case AXES: break;
    }
    return NULL;
}

bool axis_has_words(enum axis axis)
{
    return axis_word(axis, 0) != NULL;
}

/* ---- the given plan -------------------------------------------------------------------------- */

static void frontier_axes_look_at(struct frontier_shape *shape, const struct action *action)
{
    if (action->stage >= shape->stages)
        shape->stages = action->stage + 1;
    if (action->microbatch >= shape->microbatches)
        shape->microbatches = action->microbatch + 1;
    shape->backward |= action->kind == ACTION_B || action->kind == ACTION_I;
    for (int i = 0; action->parts && i < ACTION_PARTS; i++)
        frontier_axes_look_at(shape, &action->parts[i]);
}

struct frontier_shape frontier_shape_of(const struct rank_program *ranks, int count)
{
    struct frontier_shape shape = {0};
    for (int r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].count; i++)
            frontier_axes_look_at(&shape, &ranks[r].actions[i]);
    return shape;
}

static int find_schedule(const char *name)
{
    for (size_t i = 0; name && generate_name(i); i++)
        if (strcmp(generate_name(i), name) == 0)
            return (int)i;
    return FRONTIER_AS_GIVEN;
}

static void put_given(const struct frontier *f, struct candidate *out)
{
    const struct programs *programs = &f->plan->programs;
    const struct generate_spec *spec = &programs->generate;
    out->at[AXIS_SCHEDULE] = spec->given ? find_schedule(spec->schedule) : FRONTIER_AS_GIVEN;
    out->at[AXIS_MICROBATCHES] = f->microbatches;
    out->at[AXIS_SIZE] = f->size;
    out->at[AXIS_CHUNKS] = f->chunks;
    out->at[AXIS_GROUP] = spec->given ? spec->group : 0;
    out->at[AXIS_HELD] = spec->given ? spec->memory : 0;
    out->at[AXIS_BALANCE] = (int)programs->stages.balance;
    out->at[AXIS_CHECKPOINT] = (int)programs->stages.checkpoint;
    out->at[AXIS_CHANNEL] = (int)programs->fifo;
}

/* ---- the axes -------------------------------------------------------------------------------- */

static void frontier_axes_add_value(struct axis_values *values, int value)
{
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i] == value)
            return;
    if (values->count < AXIS_MOST)
        values->items[values->count++] = value;
}

static void add_words(struct axis_values *values, enum axis axis)
{
    for (int value = 0; axis_word(axis, value); value++)
        if (axis != AXIS_BALANCE || value != BALANCE_LISTED)
            frontier_axes_add_value(values, value);
}

/* The default values of an axis; the user's own go before. */
static void fill_axis(const struct frontier *f, enum axis axis, int given,
                      struct axis_values *values)
{
    const struct stage_spec *stages = &f->plan->programs.stages;
    if (axis == AXIS_SCHEDULE) {
        add_words(values, axis);
        return;
    }
    frontier_axes_add_value(values, given);
    if (axis == AXIS_CHUNKS) {
        frontier_axes_add_value(values, 1);
        frontier_axes_add_value(values, 2);
    }
    if (axis == AXIS_HELD) {
        frontier_axes_add_value(values, 0);
        if (machine_has_memory(&f->machine) && f->has_bytes)
            frontier_axes_add_value(values, HELD_FIT);
    }
    if (axis == AXIS_BALANCE && (stages->layers.count || stages->model.layers))
        add_words(values, axis);
    if (axis == AXIS_CHECKPOINT && frontier_has_cost(stages, COST_INPUT))
        add_words(values, axis);
}

/* A schedule without a group, or one that is not found, must be tried, too. */
static struct axis_values axis_of(const struct frontier *f, enum axis axis)
{
    struct axis_values values = f->options->axes[axis];
    if (values.count == 0)
        fill_axis(f, axis, f->candidates[0].at[axis], &values);
    else if (axis == AXIS_GROUP || axis == AXIS_HELD)
        frontier_axes_add_value(&values, 0);
    return values;
}

/* Only such a schedule can hold as many activations as wanted. */
static bool is_found(const struct candidate *candidate)
{
    int schedule = candidate->at[AXIS_SCHEDULE];
    return schedule != FRONTIER_AS_GIVEN && generate_is_found(generate_name((size_t)schedule));
}

static bool equal_choice(const struct candidate *a, const struct candidate *b)
{
    return memcmp(a->at, b->at, sizeof a->at) == 0;
}

/* The given plan, then all combinations. */
bool frontier_is_given(const struct frontier *f, const struct candidate *candidate)
{
    return equal_choice(candidate, &f->given);
}

enum status frontier_list(struct frontier *f, struct diag *diag)
{
    struct axis_values axes[AXES];
    struct candidate first = {.fate = FATE_UNTRIED};
    size_t count = 1;
    put_given(f, &first);
    f->given = first;
    f->candidates = &first;
    for (int a = 0; a < AXES; a++) {
        axes[a] = axis_of(f, (enum axis)a);
        count *= axes[a].count;
        if (count > MOST_CANDIDATES)
            return diag_error(diag, STATUS_USAGE, "more than %d candidates: give fewer values",
                              MOST_CANDIDATES);
    }
    f->candidates = ARENA_ARRAY(f->arena, count + 1, struct candidate);
    if (!f->candidates)
        return diag_no_memory(diag);
    f->candidates[f->count++] = first;
    for (size_t n = 0; n < count; n++) {
        struct candidate *next = &f->candidates[f->count];
        size_t rest = n;
        for (int a = AXES - 1; a >= 0; rest /= axes[a--].count)
            next->at[a] = axes[a].items[rest % axes[a].count];
        if (!equal_choice(next, &first) && (next->at[AXIS_HELD] == 0 || is_found(next)))
            f->count++;
    }
    return STATUS_OK;
}
