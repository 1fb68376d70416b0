/* SPDX-License-Identifier: Apache-2.0 */
/* option_texts.c - see option_texts.h. */
#include "option_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "improve/frontier.h"
#include "improve/frontier_costs.h"
#include "improve/tune.h"
#include "base/nearest.h"
#include "base/units.h"
#include "sim/predict/predict.h"
#include "trace/store.h"

/* ---- lists and numbers ----------------------------------------------------------------------- */

enum status option_each(struct option_reader reader, const char *list, option_use *use,
                        void *context)
{
    char *copy = arena_strdup(reader.arena, list), *rest = NULL;
    enum status status = copy ? STATUS_OK : diag_no_memory(reader.diag);
    bool empty = true;
    for (char *item = copy ? strtok_r(copy, ",", &rest) : NULL; item && status == STATUS_OK;
         item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (value)
            *value++ = '\0';
        status = use(reader, item, value, context);
        empty = false;
    }
    return status == STATUS_OK && empty
               ? diag_error(reader.diag, STATUS_USAGE,
                            "found '%s', expected items with commas between them", list)
               : status;
}

/* digit+ [ "e" digit+ ], as 1000 or 1e3. */
static bool scan_integer(const char *text, long long *out)
{
    enum { MOST_ZEROS = 18 };
    char *end;
    bool number = *text == '-' || (*text >= '0' && *text <= '9');
    errno = 0;
    *out = strtoll(text, &end, 10);
    number = number && end != text;
    if (!number || *end != 'e' || end[1] < '0' || end[1] > '9')
        return number && !*end && !errno;
    long zeros = strtol(end + 1, &end, 10);
    if (zeros > MOST_ZEROS)
        return false;
    while (zeros-- > 0)
        if (__builtin_mul_overflow(*out, 10, out))
            return false;
    return !*end && !errno;
}

enum status option_number(struct option_reader reader, const char *what, const char *text,
                          int64_t min, int64_t max, int64_t *out)
{
    long long value;
    if (!scan_integer(text, &value) || value < min || value > max)
        return diag_error(reader.diag, STATUS_USAGE,
                          "%s: found '%s', expected a whole number from %lld to %lld", what, text,
                          (long long)min, (long long)max);
    *out = value;
    return STATUS_OK;
}

/* ---- sets of words --------------------------------------------------------------------------- */

static enum status add_property(struct option_reader reader, const char *key, const char *value,
                                void *context)
{
    unsigned *properties = context;
    struct nearest nearest = {.found = key};
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!value && strcmp(property_key((enum property)p), key) == 0) {
            *properties |= 1u << p;
            return STATUS_OK;
        }
        nearest_try(&nearest, property_key((enum property)p));
    }
    return diag_error(reader.diag, STATUS_USAGE, "--property: unknown property '%s'%s", key,
                      nearest_hint(&nearest, '\'', reader.arena));
}

enum status option_properties(struct option_reader reader, const char *text, unsigned *out)
{
    return option_each(reader, text, add_property, out);
}

static enum status add_kept(struct option_reader reader, const char *item, const char *value,
                            void *kept)
{
    for (int k = 0; k < TUNE_KNOBS; k++)
        if (!value && strcmp(tune_knob_key((enum tune_knob)k), item) == 0) {
            *(unsigned *)kept |= 1u << k;
            return STATUS_OK;
        }
    return diag_error(reader.diag, STATUS_USAGE,
                      "--keep: found '%s', expected stage, stream, group, order or depth", item);
}

enum status option_kept(struct option_reader reader, const char *text, unsigned *out)
{
    return option_each(reader, text, add_kept, out);
}

/* ---- times ----------------------------------------------------------------------------------- */

enum status option_jitter(struct option_reader reader, const char *text, struct jitter_rule *out)
{
    const char *what, *equals = strchr(text, '=');
    size_t where;
    if (!equals || equals == text)
        return diag_error(reader.diag, STATUS_USAGE,
                          "--jitter: found '%s', expected TASK=DISTRIBUTION", text);
    out->task = arena_strndup(reader.arena, text, (size_t)(equals - text));
    if (!out->task)
        return diag_no_memory(reader.diag);
    if (!dist_parse(equals + 1, reader.arena, &out->dist, &what, &where))
        return diag_error(reader.diag, STATUS_USAGE, "--jitter %s: at character %zu: %s", out->task,
                          where + 1, what);
    return STATUS_OK;
}

/* A time of `times:` stands behind those of stages, layers and a model: where the plan has any, a pass gets one of its
   stages. */
static enum status option_texts_put_time(struct option_reader reader, enum action_kind kind,
                                         int64_t ns, struct plan *plan)
{
    struct stage_spec *spec = &plan->programs.stages;
    enum cost cost;
    bool staged = false;
    plan->programs.times[kind] = (struct action_time){true, ns};
    for (int c = COST_F; c <= COST_B; c++)
        staged |= frontier_has_cost(spec, (enum cost)c);
    if (!staged || !action_cost(kind, &cost))
        return STATUS_OK;
    int64_t *item = ARENA_ARRAY(reader.arena, 1, int64_t);
    if (!item)
        return diag_no_memory(reader.diag);
    *item = ns;
    spec->stages.of[cost] = (struct cost_list){.items = item, .count = 1};
    return STATUS_OK;
}

/* One of F=1ms, B=2ms, ... */
static enum status option_texts_set_time(struct option_reader reader, const char *key,
                                         const char *value, void *context)
{
    struct plan *plan = context;
    value = value ? value : "";
    const char *what = NULL;
    int64_t ns;
    int kind = 0;
    while (kind < ACTION_IDLE && strcmp(action_text((enum action_kind)kind), key) != 0)
        kind++;
    if (kind == ACTION_IDLE)
        return diag_error(reader.diag, STATUS_USAGE,
                          "--times: found '%s', expected an action such as F, I, B or W", key);
    if (!units_parse_time(value, &ns, &what))
        return diag_error(reader.diag, STATUS_USAGE, "--times %s: found '%s', %s", key, value,
                          what);
    return option_texts_put_time(reader, (enum action_kind)kind, ns, plan);
}

enum status option_times(struct option_reader reader, const char *text, struct plan *plan)
{
    if (plan->form != FORM_PROGRAMS)
        return diag_error(reader.diag, STATUS_USAGE,
                          "%s: found --times, but only rank programs have actions", plan->file);
    return option_each(reader, text, option_texts_set_time, plan);
}

/* ---- axes ------------------------------------------------------------------------------------ */

struct axis_line {
    enum axis axis;
    struct axis_values *values;
};

static enum status option_texts_add_value(struct option_reader reader, const struct axis_line *line,
                                          int value)
{
    if (line->values->count == AXIS_MOST)
        return diag_error(reader.diag, STATUS_USAGE, "--%s: found more than %d values",
                          axis_key(line->axis), AXIS_MOST);
    line->values->items[line->values->count++] = value;
    return STATUS_OK;
}

/* Layers of each stage are no word. */
static const char *option_texts_word_of(enum axis axis, int value)
{
    return axis == AXIS_BALANCE && value == BALANCE_LISTED ? NULL : axis_word(axis, value);
}

/* "all, even or found"; no memory: fewer. */
static const char *option_texts_words_of(enum axis axis, struct arena *arena)
{
    const char *text = "all";
    for (int value = 0; option_texts_word_of(axis, value); value++) {
        const char *more = arena_printf(arena, "%s%s%s", text,
                                        option_texts_word_of(axis, value + 1) ? ", " : " or ",
                                        option_texts_word_of(axis, value));
        text = more ? more : text;
    }
    return text;
}

static enum status option_texts_add_word(struct option_reader reader, const struct axis_line *line,
                                         const char *word)
{
    struct nearest nearest = {.found = word};
    enum status status = STATUS_OK;
    bool all = strcmp(word, "all") == 0, known = all;
    for (int value = 0; status == STATUS_OK && option_texts_word_of(line->axis, value); value++) {
        const char *name = option_texts_word_of(line->axis, value);
        nearest_try(&nearest, name);
        if (!all && strcmp(name, word) != 0)
            continue;
        known = true;
        status = option_texts_add_value(reader, line, value);
    }
    if (known)
        return status;
    return diag_error(reader.diag, STATUS_USAGE, "--%s: found '%s', expected %s%s",
                      axis_key(line->axis), word, option_texts_words_of(line->axis, reader.arena),
                      nearest_hint(&nearest, '\'', reader.arena));
}

static enum status option_texts_add_item(struct option_reader reader, const char *item,
                                         const char *value, void *context)
{
    const struct axis_line *line = context;
    char what[32];
    int64_t number;
    snprintf(what, sizeof what, "--%s", axis_key(line->axis));
    if (value)
        return diag_error(reader.diag, STATUS_USAGE, "%s: found '%s=', expected values alone", what,
                          item);
    if (axis_has_words(line->axis))
        return option_texts_add_word(reader, line, item);
    if (line->axis == AXIS_HELD && strcmp(item, axis_word(AXIS_HELD, HELD_FIT)) == 0)
        return option_texts_add_value(reader, line, HELD_FIT);
    enum status status = option_number(reader, what, item, 1, PLAN_MAX_MICROBATCHES, &number);
    return status == STATUS_OK ? option_texts_add_value(reader, line, (int)number) : status;
}

enum status option_axis(struct option_reader reader, int axis, const char *text,
                        struct axis_values *out)
{
    struct axis_line line = {(enum axis)axis, out};
    out->count = 0;
    return option_each(reader, text, option_texts_add_item, &line);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The colon before RUN; NULL: no RUN. */
static const char *option_texts_find_run(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    bool digits = colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
    return digits && access(spec, F_OK) != 0 ? colon : NULL;
}

bool option_has_run(const char *spec)
{
    return option_texts_find_run(spec) != NULL;
}

enum status option_run(struct option_reader reader, const char *option, const char *spec,
                       const char **out_path, int64_t *out_run)
{
    const char *colon = option_texts_find_run(spec);
    *out_path = spec;
    *out_run = STORE_LATEST;
    if (!colon)
        return STATUS_OK;
    *out_path = arena_strndup(reader.arena, spec, (size_t)(colon - spec));
    return *out_path ? option_number(reader, option, colon + 1, 0, INT64_MAX, out_run)
                     : diag_no_memory(reader.diag);
}
