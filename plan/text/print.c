/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - see print.h: a plan as a stream of libyaml events. The emitter decides about quoting
 * and line breaks; the tables of keys decide what is printed (fields.c).
 */
#include "print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "text_internal.h"
#include "base/system_words.h"
#include "base/text_stream.h"
#include "base/units.h"

enum { UNLIMITED = -1, INDENT = 2 };

/* ---- events ---------------------------------------------------------------------------------- */

static void print_emit(struct printer *printer, int made, yaml_event_t *event)
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
    print_emit(printer, made, &event);
}

void close_map(struct printer *printer)
{
    yaml_event_t event;
    print_emit(printer, yaml_mapping_end_event_initialize(&event), &event);
}

void open_list(struct printer *printer, enum print_layout layout)
{
    yaml_event_t event;
    int made = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                    layout == FLOW ? YAML_FLOW_SEQUENCE_STYLE
                                                                   : YAML_BLOCK_SEQUENCE_STYLE);
    print_emit(printer, made, &event);
}

void close_list(struct printer *printer)
{
    yaml_event_t event;
    print_emit(printer, yaml_sequence_end_event_initialize(&event), &event);
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
    print_emit(printer, made, &event);
}

void put_word(struct printer *printer, const char *text)
{
    put_scalar(printer, text, YAML_ANY_SCALAR_STYLE);
}

/* True if a YAML reader would take this plain text for something else than a text. */
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

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_document(struct printer *printer)
{
    yaml_event_t event;
    print_emit(printer, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    print_emit(printer, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    print_sections(printer);
    print_emit(printer, yaml_document_end_event_initialize(&event, 1), &event);
    print_emit(printer, yaml_stream_end_event_initialize(&event), &event);
}

static int write_bytes(void *data, unsigned char *buffer, size_t size)
{
    struct printer *printer = data;
    errno = 0;
    if (fwrite(buffer, 1, size, printer->out) == size)
        return 1;
    printer->write_errno = errno ? errno : EIO;
    return 0;
}

static bool open_emitter(struct printer *printer)
{
    if (!yaml_emitter_initialize(&printer->emitter))
        return false;
    arena_init(&printer->scratch, 0);
    yaml_emitter_set_output(&printer->emitter, write_bytes, printer);
    yaml_emitter_set_encoding(&printer->emitter, YAML_UTF8_ENCODING);
    yaml_emitter_set_unicode(&printer->emitter, 1);
    yaml_emitter_set_width(&printer->emitter, UNLIMITED);
    yaml_emitter_set_indent(&printer->emitter, INDENT);
    return true;
}

static void close_emitter(struct printer *printer)
{
    yaml_emitter_delete(&printer->emitter);
    arena_fini(&printer->scratch);
}

static enum status print_to(const struct plan *plan, bool kept, FILE *out, struct diag *diag)
{
    struct printer printer = {.plan = plan, .out = out, .kept = kept};
    printer.default_stream = names_find(&plan->streams, PLAN_IMPLICIT_STREAM);
    printer.default_group = names_find(&plan->groups, PLAN_IMPLICIT_GROUP);
    if (!open_emitter(&printer))
        return diag_no_memory(diag);
    print_document(&printer);
    close_emitter(&printer);
    if (!printer.failed && fflush(out) != 0) {
        printer.failed = true;
        printer.write_errno = errno;
    }
    if (!printer.failed)
        return STATUS_OK;
    return printer.write_errno ? diag_error(diag, STATUS_SYSTEM, "cannot write the plan: %s",
                                            system_words(printer.write_errno))
                               : diag_no_memory(diag);
}

/* Its own emitter and stream; texts go to the arena of the other. */
const char *print_aside(struct printer *of, const struct host_thread *thread, bool relative)
{
    struct printer printer = {.plan = of->plan,
                              .default_stream = of->default_stream,
                              .default_group = of->default_group,
                              .relative = relative,
                              .home = thread->rank};
    struct text_stream stream;
    yaml_event_t event;
    if (!text_open(&stream))
        return NULL;
    printer.out = stream.out;
    if (!open_emitter(&printer)) {
        free(text_close(&stream, false, NULL));
        return NULL;
    }
    print_emit(&printer, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    print_emit(&printer, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    print_thread(&printer, thread);
    print_emit(&printer, yaml_document_end_event_initialize(&event, 1), &event);
    print_emit(&printer, yaml_stream_end_event_initialize(&event), &event);
    close_emitter(&printer);
    char *text = text_close(&stream, !printer.failed, NULL);
    const char *kept = text ? arena_strdup(&of->scratch, text) : NULL;
    free(text);
    return kept;
}

enum status plan_print(const struct plan *plan, FILE *out, struct diag *diag)
{
    return print_to(plan, false, out, diag);
}

static enum status print_text_of(const struct plan *plan, bool kept, char **out, struct diag *diag)
{
    struct text_stream stream;
    *out = NULL;
    if (!text_open(&stream))
        return diag_no_memory(diag);
    enum status status = print_to(plan, kept, stream.out, diag);
    *out = text_close(&stream, status == STATUS_OK, NULL);
    return status == STATUS_OK && !*out ? diag_no_memory(diag) : status;
}

enum status plan_text(const struct plan *plan, char **out, struct diag *diag)
{
    return print_text_of(plan, false, out, diag);
}

static enum status text_in(const struct plan *plan, bool with_found, struct arena *arena,
                           const char **out, struct diag *diag)
{
    char *text;
    enum status status = print_text_of(plan, with_found, &text, diag);
    const char *kept = status == STATUS_OK ? arena_strdup(arena, text) : NULL;
    free(text);
    if (status == STATUS_OK && !kept)
        return diag_no_memory(diag);
    if (kept)
        *out = kept;
    return status;
}

enum status plan_text_in(const struct plan *plan, struct arena *arena, const char **out,
                         struct diag *diag)
{
    return text_in(plan, false, arena, out, diag);
}

enum status plan_kept_text_in(const struct plan *plan, struct arena *arena, const char **out,
                              struct diag *diag)
{
    return text_in(plan, true, arena, out, diag);
}

enum status plan_copy(const struct plan *plan, const char *name, struct plan *out,
                      const char **text, struct diag *diag)
{
    char *printed;
    enum status status = plan_text(plan, &printed, diag);
    if (status == STATUS_OK)
        status = plan_parse(name, printed, strlen(printed), out, diag);
    if (status == STATUS_OK && !(*text = arena_strdup(&out->arena, printed))) {
        plan_fini(out);
        status = diag_no_memory(diag);
    }
    free(printed);
    return status;
}
