/* diag.c - see diag.h. */
#include "diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LIMIT = 20, MAX_SOURCE_LINE = 400 };

void diag_init(struct diag *diag)
{
    *diag = (struct diag){0};
}

void diag_fini(struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++) {
        free(diag->messages[i].file);
        free(diag->messages[i].text);
        free(diag->messages[i].source);
    }
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

/* The line `mark` points into, cut to a printable length. */
static char *copy_source_line(const char *source, struct mark mark)
{
    if (!source || mark.line == 0)
        return NULL;
    for (uint32_t line = 1; line < mark.line; line++) {
        source = strchr(source, '\n');
        if (!source)
            return NULL;
        source++;
    }
    size_t length = strcspn(source, "\r\n");
    return strndup(source, length < MAX_SOURCE_LINE ? length : MAX_SOURCE_LINE);
}

static void add(struct diag *diag, enum severity severity, const char *file, const char *source,
                struct mark mark, const char *format, va_list args)
{
    size_t limit = diag->limit ? diag->limit : DEFAULT_LIMIT;
    if (severity == SEVERITY_ERROR && ++diag->errors > limit)
        return;
    if (diag->count == diag->cap) {
        size_t cap = diag->cap ? 2 * diag->cap : 8;
        struct diag_message *grown = realloc(diag->messages, cap * sizeof *grown);
        if (!grown) {
            diag->out_of_memory = true;
            return;
        }
        diag->messages = grown;
        diag->cap = cap;
    }
    struct diag_message message = {.severity = severity, .mark = mark};
    message.text = format_text(format, args);
    message.file = file ? strdup(file) : NULL;
    message.source = copy_source_line(source, mark);
    if (!message.text || (file && !message.file)) {
        free(message.text);
        free(message.file);
        free(message.source);
        diag->out_of_memory = true;
        return;
    }
    diag->messages[diag->count++] = message;
}

enum status diag_error(struct diag *diag, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(diag, SEVERITY_ERROR, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
    return status;
}

void diag_warn(struct diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(diag, SEVERITY_WARNING, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
}

void diag_note(struct diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(diag, SEVERITY_NOTE, NULL, NULL, (struct mark){0, 0}, format, args);
    va_end(args);
}

enum status diag_error_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(diag, SEVERITY_ERROR, file, source, mark, format, args);
    va_end(args);
    return STATUS_INPUT;
}

void diag_warn_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(diag, SEVERITY_WARNING, file, source, mark, format, args);
    va_end(args);
}

enum status diag_no_memory(struct diag *diag)
{
    diag->out_of_memory = true;
    return STATUS_SYSTEM;
}

/* A line of input may hold anything: control characters must not reach a terminal. */
static void print_source(const char *source, FILE *out)
{
    fputs("  ", out);
    for (; *source; source++) {
        unsigned char byte = (unsigned char)*source;
        fputc((byte < 0x20 && byte != '\t') || byte == 0x7f ? '.' : byte, out);
    }
    fputs("\n  ", out);
}

static void print_caret(const struct diag_message *message, FILE *out)
{
    print_source(message->source, out);
    for (uint32_t col = 1; col < message->mark.col && message->source[col - 1]; col++)
        fputc(message->source[col - 1] == '\t' ? '\t' : ' ', out);
    fputs("^\n", out);
}

void diag_print(const struct diag *diag, const char *program, bool color, FILE *out)
{
    static const char *const words[] = {"error", "warning", "note"};
    static const char *const colors[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m"};
    for (size_t i = 0; i < diag->count; i++) {
        const struct diag_message *message = &diag->messages[i];
        fprintf(out, "%s: ", program);
        if (message->file)
            fprintf(out, "%s:", message->file);
        if (message->mark.line)
            fprintf(out, "%u:%u:", message->mark.line, message->mark.col);
        if (message->file || message->mark.line)
            fputc(' ', out);
        fprintf(out, "%s%s:%s %s\n", color ? colors[message->severity] : "",
                words[message->severity], color ? "\033[0m" : "", message->text);
        if (message->source && message->mark.col)
            print_caret(message, out);
    }
    size_t limit = diag->limit ? diag->limit : DEFAULT_LIMIT;
    if (diag->errors > limit)
        fprintf(out, "%s: %zu more errors\n", program, diag->errors - limit);
    if (diag->out_of_memory)
        fprintf(out, "%s: error: out of memory\n", program);
}
