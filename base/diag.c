/* SPDX-License-Identifier: Apache-2.0 */
/* diag.c - see diag.h. */
#include "diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "array.h"
#include "columns.h"
#include "printable.h"
#include "system_words.h"
#include "units.h"

enum { DEFAULT_LIMIT = 20, MAX_SOURCE_LINE = 400, AROUND = 80 };

void diag_init(struct diag *diag)
{
    *diag = (struct diag){0};
}

static void diag_drop(struct diag_message *message)
{
    free(message->file);
    free(message->text);
    free(message->source);
}

void diag_fini(struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++)
        diag_drop(&diag->messages[i]);
    free(diag->messages);
    *diag = (struct diag){0};
}

static char *format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return NULL;
    char *text = malloc((size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

static const char *to_character(const char *at)
{
    while ((*at & 0xc0) == 0x80)
        at++;
    return at;
}

/* Of a long line, the piece around the place; *col is then the place in it. */
static char *copy_piece(const char *line, size_t length, uint32_t *col)
{
    static const char cut[] = "...";
    size_t place = *col < length ? *col : length, before = place > AROUND ? place - AROUND : 0;
    const char *from = to_character(line + before);
    const char *end =
        line + length - from > 2 * AROUND ? to_character(from + 2 * AROUND) : line + length;
    char *copy = NULL;
    size_t room = (size_t)(end - from) + 2 * sizeof cut;
    copy = malloc(room);
    if (!copy)
        return NULL;
    snprintf(copy, room, "%s%.*s%s", from > line ? cut : "", (int)(end - from), from,
             end < line + length ? cut : "");
    if (from > line)
        *col = (uint32_t)(place - (size_t)(from - line) + strlen(cut));
    return copy;
}

/* The line `mark` points into, cut to a printable length. */
static char *copy_source_line(const char *source, struct mark mark, uint32_t *col)
{
    *col = mark.col;
    if (!source || mark.line == 0)
        return NULL;
    for (uint32_t line = 1; line < mark.line; line++) {
        source = strchr(source, '\n');
        if (!source)
            return NULL;
        source++;
    }
    size_t length = strcspn(source, "\r\n");
    return length <= MAX_SOURCE_LINE ? strndup(source, length) : copy_piece(source, length, col);
}

static size_t limit_of(const struct diag *diag)
{
    return diag->limit ? diag->limit : DEFAULT_LIMIT;
}

static bool diag_make_room(struct diag *diag)
{
    if (ARRAY_GROW(diag->messages, diag->count, diag->cap))
        return true;
    diag->out_of_memory = true;
    return false;
}

/* True if `b` stands in front of `a` in the same file. */
static bool stands_behind(const struct diag_message *a, const struct diag_message *b)
{
    return a->file && b->file && a->severity == b->severity && strcmp(a->file, b->file) == 0 &&
           b->mark.line &&
           (a->mark.line > b->mark.line ||
            (a->mark.line == b->mark.line && a->mark.col > b->mark.col));
}

/* Put a message behind the others, but those about one file in the order of its lines. */
static void diag_put(struct diag *diag, const struct diag_message *message)
{
    size_t at = diag->count++;
    for (; at > 0 && stands_behind(&diag->messages[at - 1], message); at--)
        diag->messages[at] = diag->messages[at - 1];
    diag->messages[at] = *message;
}

static bool diag_is_told(const struct diag *diag, const struct diag_message *message)
{
    bool placeless = message->severity == SEVERITY_ERROR && !message->file && !message->mark.line;
    for (size_t i = 0; placeless && i < diag->count; i++)
        if (diag->messages[i].severity == SEVERITY_ERROR &&
            strcmp(diag->messages[i].text, message->text) == 0)
            return true;
    return false;
}

static void diag_add(struct diag *diag, enum severity severity, const char *file,
                     const char *source, struct mark mark, const char *format, va_list args)
{
    if (severity == SEVERITY_ERROR && ++diag->errors > limit_of(diag))
        return;
    if (!diag_make_room(diag))
        return;
    struct diag_message message = {.severity = severity, .mark = mark};
    message.text = format_text(format, args);
    message.file = file ? strdup(file) : NULL;
    message.source = copy_source_line(source, mark, &message.source_col);
    if (!message.text || (file && !message.file)) {
        diag_drop(&message);
        diag->out_of_memory = true;
    } else if (diag_is_told(diag, &message)) {
        diag_drop(&message);
        diag->errors--;
    } else {
        diag_put(diag, &message);
    }
}

enum status diag_error(struct diag *diag, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diag, SEVERITY_ERROR, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
    return status;
}

void diag_warn(struct diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diag, SEVERITY_WARNING, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
}

void diag_note(struct diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diag, SEVERITY_NOTE, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
}

enum status diag_verror_at(struct diag *diag, const char *file, const char *source,
                           struct mark mark, const char *format, va_list args)
{
    diag_add(diag, SEVERITY_ERROR, file, source, mark, format, args);
    return STATUS_INPUT;
}

enum status diag_error_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum status status = diag_verror_at(diag, file, source, mark, format, args);
    va_end(args);
    return status;
}

void diag_warn_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diag, SEVERITY_WARNING, file, source, mark, format, args);
    va_end(args);
}

static void diag_take_message(struct diag *into, struct diag_message *message)
{
    bool error = message->severity == SEVERITY_ERROR;
    if (diag_is_told(into, message)) {
        diag_drop(message);
        return;
    }
    into->errors += error;
    if ((error && into->errors > limit_of(into)) || !diag_make_room(into))
        diag_drop(message);
    else
        diag_put(into, message);
}

void diag_soften(struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++)
        if (diag->messages[i].severity == SEVERITY_ERROR)
            diag->messages[i].severity = SEVERITY_NOTE;
    diag->errors = 0;
}

void diag_take(struct diag *into, struct diag *from)
{
    for (size_t i = 0; i < from->count; i++) {
        from->errors -= from->messages[i].severity == SEVERITY_ERROR;
        diag_take_message(into, &from->messages[i]);
    }
    into->errors += from->errors; /* those that were not kept */
    into->too_many |= from->too_many;
    into->out_of_memory |= from->out_of_memory;
    from->count = 0;
    diag_fini(from);
}

bool diag_has_error(const struct diag *diag)
{
    return diag->errors > 0 || diag->out_of_memory;
}

enum status diag_no_memory(struct diag *diag)
{
    diag->out_of_memory = true;
    return STATUS_SYSTEM;
}

enum status diag_flush(struct diag *diag, FILE *out, const char *what)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return STATUS_OK;
    int error = errno ? errno : EIO;
    if (out != stdout)
        return diag_error(diag, STATUS_SYSTEM, "cannot write %s: %s", what, system_words(error));
    if (!diag->stdout_errno)
        diag->stdout_errno = error;
    return STATUS_SYSTEM;
}

/* One dot for a character that is not seen, so that the caret stands where it should. */
static void print_source(const char *source, FILE *out)
{
    unsigned code;
    fputs("  ", out);
    for (size_t bytes; *source; source += bytes) {
        bytes = printable_decode(source, &code);
        if (*source != '\t' && printable_acts(code))
            fputc('.', out);
        else
            fwrite(source, 1, bytes, out);
    }
    fputs("\n  ", out);
}

static void print_caret(const struct diag_message *message, FILE *out)
{
    const char *at = message->source;
    unsigned code;
    print_source(at, out);
    for (uint32_t col = 1; col < message->source_col && *at; col++) {
        const size_t bytes = printable_decode(at, &code);
        fprintf(out, "%*s", *at == '\t' || printable_acts(code) ? 1 : columns_of_character(code),
                *at == '\t' ? "\t" : "");
        at += bytes;
    }
    fputs("^\n", out);
}

static void print_place(const struct diag_message *message, FILE *out)
{
    if (message->file) {
        printable_put(message->file, false, out);
        fputc(':', out);
    }
    if (message->mark.line)
        fprintf(out, "%u:%u:", message->mark.line, message->mark.col);
    if (message->file || message->mark.line)
        fputc(' ', out);
}

void diag_first_error(const struct diag *diag, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s",
             diag->out_of_memory ? "out of memory" : "something failed and did not say what");
    for (size_t i = 0; i < diag->count; i++) {
        const struct diag_message *message = &diag->messages[i];
        if (message->severity != SEVERITY_ERROR)
            continue;
        if (message->file && message->mark.line)
            snprintf(text, bytes, "%s:%u:%u: %s", message->file, message->mark.line,
                     message->mark.col, message->text);
        else
            snprintf(text, bytes, "%s", message->text);
        return;
    }
}

/* How much there was tells a machine that is too small from a limit of the process. */
static void print_out_of_memory(const char *program, FILE *out)
{
    struct rusage usage;
    char most[UNITS_TEXT];
    getrusage(RUSAGE_SELF, &usage);
    units_show_bytes(1024.0 * (double)usage.ru_maxrss, most);
    fprintf(out, "%s: error: out of memory: the system gave %s and refused more\n", program, most);
}

void diag_print(const struct diag *diag, const char *program, bool color, FILE *out)
{
    static const char *const words[] = {"error", "warning", "note"};
    static const char *const colors[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m"};
    for (size_t i = 0; i < diag->count; i++) {
        const struct diag_message *message = &diag->messages[i];
        fprintf(out, "%s: ", program);
        print_place(message, out);
        fprintf(out, "%s%s:%s ", color ? colors[message->severity] : "", words[message->severity],
                color ? "\033[0m" : "");
        printable_put(message->text, false, out);
        fputc('\n', out);
        if (message->source && message->mark.col)
            print_caret(message, out);
    }
    if (diag->errors > limit_of(diag))
        fprintf(out, "%s: %zu more error%s%s\n", program, diag->errors - limit_of(diag),
                units_plural(diag->errors - limit_of(diag)),
                diag->too_many ? "; the rest is not read after so many errors" : "");
    if (diag->out_of_memory)
        print_out_of_memory(program, out);
}
