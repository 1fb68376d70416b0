/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - see diff.h. */
#include "diff.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/printable.h"
#include "base/text_stream.h"

enum { MAX_CELLS = 4 << 20, HEADING = 80 };

struct line {
    const char *text;
    size_t length;
};

struct lines {
    struct line *items;
    size_t count;
};

/* One line of the result: ' ', '-' or '+', and where it stands in both texts. */
struct change {
    char sign;
    struct line line;
    size_t before, after; /* lines in front of it in each text */
};

struct script {
    struct change *items;
    size_t count;
};

static bool diff_split(const char *text, struct arena *arena, struct lines *out)
{
    size_t count = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : at + strlen(at))
        count++;
    *out = (struct lines){ARENA_ARRAY(arena, count + 1, struct line), 0};
    if (!out->items)
        return false;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        out->items[out->count++] = (struct line){at, length};
        at += length + (at[length] == '\n');
    }
    return true;
}

static bool diff_same(const struct line *a, const struct line *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static void diff_emit(struct script *script, char sign, const struct line *line, size_t before,
                      size_t after)
{
    script->items[script->count++] = (struct change){sign, *line, before, after};
}

/* length[i][k]: of the longest common subsequence of a from i and b from k. NULL: too large. */
static uint32_t *diff_measure(const struct line *a, size_t rows, const struct line *b,
                              size_t columns, struct arena *arena)
{
    if ((rows + 1) > MAX_CELLS / (columns + 1))
        return NULL;
    uint32_t *length = ARENA_ARRAY(arena, (rows + 1) * (columns + 1), uint32_t);
    for (size_t i = rows; length && i-- > 0;)
        for (size_t k = columns; k-- > 0;) {
            uint32_t *cell = &length[i * (columns + 1) + k];
            uint32_t down = cell[columns + 1], right = cell[1];
            *cell = diff_same(&a[i], &b[k]) ? cell[columns + 2] + 1 : down > right ? down : right;
        }
    return length;
}

/* The lines between the common beginning and end. */
static void diff_compare(const struct lines *a, const struct lines *b, size_t head, size_t tail,
                         struct arena *arena, struct script *script)
{
    size_t i = head, k = head, a_end = a->count - tail, b_end = b->count - tail;
    size_t width = b_end - head + 1;
    const uint32_t *length =
        diff_measure(a->items + head, a_end - head, b->items + head, b_end - head, arena);
    while (i < a_end || k < b_end) {
        if (length && i < a_end && k < b_end && diff_same(&a->items[i], &b->items[k])) {
            diff_emit(script, ' ', &a->items[i], i, k);
            i++;
            k++;
        } else if (i < a_end && (!length || k == b_end ||
                                 length[(i + 1 - head) * width + k - head] >=
                                     length[(i - head) * width + k + 1 - head])) {
            diff_emit(script, '-', &a->items[i], i, k);
            i++;
        } else {
            diff_emit(script, '+', &b->items[k], i, k);
            k++;
        }
    }
}

static bool make_script(const struct lines *a, const struct lines *b, struct arena *arena,
                        struct script *script)
{
    size_t shorter = a->count < b->count ? a->count : b->count, head = 0, tail = 0;
    while (head < shorter && diff_same(&a->items[head], &b->items[head]))
        head++;
    while (tail < shorter - head &&
           diff_same(&a->items[a->count - 1 - tail], &b->items[b->count - 1 - tail]))
        tail++;
    *script = (struct script){ARENA_ARRAY(arena, a->count + b->count + 1, struct change), 0};
    if (!script->items)
        return false;
    for (size_t i = 0; i < head; i++)
        diff_emit(script, ' ', &a->items[i], i, i);
    diff_compare(a, b, head, tail, arena, script);
    for (size_t i = 0; i < tail; i++)
        diff_emit(script, ' ', &a->items[a->count - tail + i], a->count - tail + i,
                  b->count - tail + i);
    return !arena->failed;
}

/* ---- hunks ----------------------------------------------------------------------------------- */

static size_t indent(const struct line *line)
{
    size_t spaces = 0;
    while (spaces < line->length && line->text[spaces] == ' ')
        spaces++;
    return spaces;
}

/* The keys above line `at` of less and less indentation: "threads: r0.train:". */
static void heading(const struct lines *lines, size_t at, char *out)
{
    *out = '\0';
    if (at >= lines->count)
        return;
    size_t depth =
        indent(&lines->items[at]) + (lines->items[at].text[indent(&lines->items[at])] == '-');
    for (size_t i = at; i-- > 0 && depth > 0;) {
        const struct line *line = &lines->items[i];
        size_t spaces = indent(line);
        if (spaces >= depth || line->length == 0 || line->text[line->length - 1] != ':')
            continue;
        char rest[HEADING];
        memcpy(rest, out, HEADING);
        snprintf(out, HEADING, "%.*s%s%.*s",
                 printable_fit(line->text + spaces,
                               (int)(line->length - spaces < 38 ? line->length - spaces : 38)),
                 line->text + spaces, *rest ? " " : "", printable_fit(rest, 40), rest);
        depth = spaces;
    }
}

static void write_hunk(const struct script *script, size_t first, size_t end,
                       const struct lines *before, FILE *out)
{
    size_t removed = 0, added = 0;
    for (size_t i = first; i < end; i++) {
        removed += script->items[i].sign != '+';
        added += script->items[i].sign != '-';
    }
    ASSERT_INDEX(first, script->count);
    const struct change *at = &script->items[first];
    char under[HEADING];
    heading(before, at->before, under);
    fprintf(out, "@@ -%zu,%zu +%zu,%zu @@%s%s\n", at->before + (removed > 0), removed,
            at->after + (added > 0), added, *under ? " " : "", under);
    for (size_t i = first; i < end; i++)
        fprintf(out, "%c%.*s\n", script->items[i].sign, (int)script->items[i].line.length,
                script->items[i].line.text);
}

static void write_hunks(const struct script *script, size_t context, const struct lines *before,
                        FILE *out)
{
    for (size_t i = 0; i < script->count;) {
        if (script->items[i].sign == ' ') {
            i++;
            continue;
        }
        size_t first = i > context ? i - context : 0, last = i;
        for (size_t k = i; k < script->count && k <= last + 2 * context; k++)
            last = script->items[k].sign != ' ' ? k : last;
        size_t end = last + 1 + context < script->count ? last + 1 + context : script->count;
        write_hunk(script, first, end, before, out);
        i = end;
    }
}

const char *diff_unified(const char *before, const char *after, int context, struct arena *arena)
{
    struct lines a, b;
    struct script script;
    struct text_stream stream;
    if (!text_open(&stream))
        return NULL;
    bool made = diff_split(before, arena, &a) && diff_split(after, arena, &b) &&
                make_script(&a, &b, arena, &script);
    if (made)
        write_hunks(&script, (size_t)context, &a, stream.out);
    char *text = text_close(&stream, made, NULL);
    const char *kept = text ? arena_strdup(arena, text) : NULL;
    free(text);
    return kept;
}
