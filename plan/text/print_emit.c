/* SPDX-License-Identifier: Apache-2.0 */
/* print_emit.c - nodes of the canonical text as libyaml events; see print_internal.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print_internal.h"
#include "base/units.h"

/* ---- events ---------------------------------------------------------------------------------- */

void emit(struct printer *printer, int made, yaml_event_t *event)
{
    if (printer->failed) {
        if (made)
            yaml_event_delete(event);
        return;
    }
    printer->failed = !made || !yaml_emitter_emit(&printer->emitter, event);
}

void open_map(struct printer *printer, enum print_layout layout)
{
    yaml_event_t event;
    int made = yaml_mapping_start_event_initialize(
        &event, NULL, NULL, 1, layout == FLOW ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
    emit(printer, made, &event);
}

void close_map(struct printer *printer)
{
    yaml_event_t event;
    emit(printer, yaml_mapping_end_event_initialize(&event), &event);
}

void open_list(struct printer *printer, enum print_layout layout)
{
    yaml_event_t event;
    int made = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                    layout == FLOW ? YAML_FLOW_SEQUENCE_STYLE
                                                                   : YAML_BLOCK_SEQUENCE_STYLE);
    emit(printer, made, &event);
}

void close_list(struct printer *printer)
{
    yaml_event_t event;
    emit(printer, yaml_sequence_end_event_initialize(&event), &event);
}

void put_scalar(struct printer *printer, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    if (!text) { /* it was made in an arena that is full */
        printer->failed = true;
        return;
    }
    int made = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                            (int)strlen(text), 1, 1, style);
    emit(printer, made, &event);
}

void put_word(struct printer *printer, const char *text)
{
    put_scalar(printer, text, YAML_ANY_SCALAR_STYLE);
}

/* Would a YAML reader take this plain text for something else than a text? */
static bool looks_typed(const char *text)
{
    static const char *const words[] = {"~",     "null",  "Null",  "NULL", "true", "True", "TRUE",
                                        "false", "False", "FALSE", "yes",  "no",   "on",   "off"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    char *end;
    strtod(text, &end);
    return *end == '\0';
}

void put_text(struct printer *printer, const char *text)
{
    put_scalar(printer, text,
               text && looks_typed(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
}

void put_number(struct printer *printer, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    put_word(printer, text);
}

void put_time(struct printer *printer, int64_t ns)
{
    char text[UNITS_TEXT];
    units_print_time(ns, text);
    put_word(printer, text);
}

void put_bytes(struct printer *printer, int64_t bytes)
{
    char text[UNITS_TEXT];
    units_print_bytes(bytes, text);
    put_word(printer, text);
}

/* ---- key and value, left out where it is the default ----------------------------------------- */

void put_pair_word(struct printer *printer, const char *key, const char *word)
{
    put_word(printer, key);
    put_word(printer, word);
}

void put_pair_text(struct printer *printer, const char *key, const char *text)
{
    if (!text)
        return;
    put_word(printer, key);
    put_text(printer, text);
}

void put_pair_number(struct printer *printer, const char *key, int64_t number, int64_t otherwise)
{
    if (number == otherwise)
        return;
    put_word(printer, key);
    put_number(printer, number);
}

void put_pair_bool(struct printer *printer, const char *key, bool value, bool otherwise)
{
    if (value != otherwise)
        put_pair_word(printer, key, value ? "true" : "false");
}

void put_pair_time(struct printer *printer, const char *key, int64_t ns, int64_t otherwise)
{
    if (ns == otherwise)
        return;
    put_word(printer, key);
    put_time(printer, ns);
}

void put_pair_bytes(struct printer *printer, const char *key, int64_t bytes, int64_t otherwise)
{
    if (bytes == otherwise)
        return;
    put_word(printer, key);
    put_bytes(printer, bytes);
}

void put_pair_rate(struct printer *printer, const char *key, int64_t bytes_per_s)
{
    char text[UNITS_TEXT];
    units_print_rate(bytes_per_s, text);
    put_pair_word(printer, key, text);
}

void put_pair_keyword(struct printer *printer, const char *key, const char *const *words,
                      unsigned value, unsigned otherwise)
{
    if (value != otherwise)
        put_pair_word(printer, key, words[value]);
}

/* An index into a table of names. */
void put_pair_name(struct printer *printer, const char *key, const struct names *names, int index,
                   int otherwise)
{
    if (index != otherwise)
        put_pair_text(printer, key, names->items[index]);
}

bool same_dist(struct printer *printer, const struct dist *a, const struct dist *b)
{
    const char *text = dist_print(a, &printer->scratch);
    const char *other = dist_print(b, &printer->scratch);
    return text && other && strcmp(text, other) == 0;
}

void put_pair_dist(struct printer *printer, const char *key, const struct dist *dist,
                   const struct dist *otherwise)
{
    if (same_dist(printer, dist, otherwise))
        return;
    put_word(printer, key);
    put_word(printer, dist_print(dist, &printer->scratch));
}

static bool same_share(const struct share *a, const struct share *b)
{
    return a->given == b->given && (!a->given || a->millionths == b->millionths);
}

bool same_shares(const struct shares *a, const struct shares *b)
{
    return same_share(&a->sm, &b->sm) && same_share(&a->link, &b->link) &&
           same_share(&a->core, &b->core);
}

void put_pair_share(struct printer *printer, const char *key, const struct share *share)
{
    char text[UNITS_TEXT];
    if (!share->given)
        return;
    units_print_share(share->millionths, text);
    put_pair_word(printer, key, text);
}

void put_pair_shares(struct printer *printer, const char *key, const struct shares *shares,
                     const struct shares *otherwise)
{
    if (same_shares(shares, otherwise))
        return;
    put_word(printer, key);
    open_map(printer, FLOW);
    put_pair_share(printer, "sm", &shares->sm);
    put_pair_share(printer, "link", &shares->link);
    put_pair_share(printer, "core", &shares->core);
    close_map(printer);
}

bool same_list(const struct index_list *a, const struct index_list *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

/* Of another rank: r1.x. */
static const char *buffer_name(struct printer *printer, const struct index_list *list, size_t i)
{
    const char *name = printer->plan->buffers[list->items[i]].name;
    return list->ranks && list->ranks[i] > 0
               ? arena_printf(&printer->scratch, "r%d.%s", list->ranks[i] - 1, name)
               : name;
}

void put_pair_buffers(struct printer *printer, const char *key, const struct index_list *list,
                      const struct index_list *otherwise)
{
    if (same_list(list, otherwise))
        return;
    put_word(printer, key);
    open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        put_text(printer, buffer_name(printer, list, i));
    close_list(printer);
}

void put_pair_locks(struct printer *printer, const char *key, const struct index_list *list,
                    const struct index_list *otherwise)
{
    if (same_list(list, otherwise))
        return;
    put_word(printer, key);
    open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++)
        put_text(printer, printer->plan->locks.items[list->items[i]]);
    close_list(printer);
}
