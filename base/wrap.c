/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.c - see wrap.h. A line is kept until it is complete; escape sequences take no column. */
#include "wrap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "columns.h"
#include "printable.h"

struct wrap {
    FILE *out;
    int width;
    char *line;
    size_t count, cap;
};

/* Step over one character or escape sequence; its columns. */
static int wrap_step(const char **at)
{
    unsigned code;
    if (**at == '\033' && (*at)[1] == '[') {
        *at += 2 + strcspn(*at + 2, "m");
        *at += **at == 'm';
        return 0;
    }
    *at += printable_decode(*at, &code);
    return columns_of_character(code);
}

/* Where the lines that continue this one begin: at the last column of the first half, or a little further in. */
static int hang_of(const char *line, int width)
{
    const int first = (int)strspn(line, " ");
    int column = first, spaces = 0, hang = first > width / 2 ? first + 2 : first + 4;
    for (const char *at = line + first; *at && column <= width / 2;) {
        if (*at != ' ' && spaces > 1)
            hang = column;
        spaces = *at == ' ' ? spaces + 1 : 0;
        column += wrap_step(&at);
    }
    return hang;
}

static bool stays(const char *line)
{
    const char first = line[strspn(line, " ")];
    return first == '{' || first == '+' || first == '-' || first == '@';
}

static void wrap_put(const struct wrap *wrap, const char *line)
{
    const int hang = hang_of(line, wrap->width);
    bool whole = stays(line) || hang >= wrap->width;
    while (*line) {
        const char *at = line, *gap = NULL; /* the last space that a line may end at */
        int column = line == wrap->line ? 0 : hang;
        bool words = false;
        while (*at && (whole || column <= wrap->width || !gap)) {
            if (*at == ' ' && words)
                gap = at;
            words |= *at != ' ';
            column += wrap_step(&at);
        }
        if (column <= wrap->width || whole || !gap) {
            fputs(line, wrap->out);
            return;
        }
        while (gap > line && gap[-1] == ' ')
            gap--;
        fprintf(wrap->out, "%.*s\n%*s", (int)(gap - line), line, hang, "");
        line = gap + strspn(gap, " ");
    }
}

static bool wrap_flush(struct wrap *wrap)
{
    if (!ARRAY_GROW(wrap->line, wrap->count, wrap->cap))
        return false;
    wrap->line[wrap->count] = '\0';
    wrap_put(wrap, wrap->line);
    wrap->count = 0;
    return true;
}

/* 0 is how such a function says that it failed. */
static ssize_t wrap_write(void *cookie, const char *data, size_t bytes)
{
    struct wrap *wrap = cookie;
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n' && !wrap_flush(wrap))
            return 0;
        if (data[i] == '\n') {
            fputc('\n', wrap->out);
            continue;
        }
        if (!ARRAY_GROW(wrap->line, wrap->count, wrap->cap))
            return 0;
        wrap->line[wrap->count++] = data[i];
    }
    return fflush(wrap->out) == 0 ? (ssize_t)bytes : 0;
}

static int wrap_close(void *cookie)
{
    struct wrap *wrap = cookie;
    bool good = wrap_flush(wrap);
    good = fclose(wrap->out) == 0 && good;
    free(wrap->line);
    free(wrap);
    return good ? 0 : EOF;
}

FILE *wrap_open(FILE *out, int width)
{
    struct wrap *wrap = malloc(sizeof *wrap);
    if (!wrap)
        return NULL;
    *wrap = (struct wrap){.out = out, .width = width};
    FILE *stream =
        fopencookie(wrap, "w", (cookie_io_functions_t){.write = wrap_write, .close = wrap_close});
    if (!stream)
        free(wrap);
    else
        setvbuf(stream, NULL, _IOLBF, BUFSIZ);
    return stream;
}
