/* SPDX-License-Identifier: Apache-2.0 */
/* tape_lines.c - see tape_lines.h. */
#include "tape_lines.h"

#include <stdlib.h>
#include <string.h>

#include "trace/record/recorder/recording.h"
#include "targets.h"

static const char *const kinds[] = {
#define X(name, ...) #name,
    RECORDING_LIST(X)
#undef X
};

static unsigned read_kind(const char *word)
{
    for (unsigned i = 0; i < RECORDING_KINDS; i++)
        if (strcmp(word, kinds[i]) == 0)
            return i;
    return (unsigned)strtoul(word, NULL, 0);
}

struct line {
    unsigned long thread;
    unsigned kind, words;
    uint32_t took_ns;
    int64_t at_ns;
    uint64_t word[64];
};

/* The characters behind the number of a TEXT. */
static void read_text(const char *text, struct line *line)
{
    const size_t length = text ? strnlen(text, 8 * 62) : 0;
    memcpy(line->word + 1, text ? text : "", length);
    line->words = (unsigned)(2 + length / 8);
}

static int read_line(char *text, struct line *out)
{
    char *rest = NULL;
    const char *thread = strtok_r(text, " ", &rest), *at = strtok_r(NULL, " ", &rest),
               *took = strtok_r(NULL, " ", &rest), *kind = strtok_r(NULL, " ", &rest);
    *out = (struct line){0};
    if (!kind)
        return 0;
    out->thread = strtoul(thread, NULL, 0) % TAPE_LINES_THREADS;
    out->at_ns = strtoll(at, NULL, 0);
    out->took_ns = *took == '-' ? UINT32_MAX : (uint32_t)strtoul(took, NULL, 0);
    out->kind = read_kind(kind);
    const char *word = strtok_r(NULL, " ", &rest);
    for (; word && out->words < 64; word = strtok_r(NULL, " ", &rest)) {
        out->word[out->words++] = strtoull(word, NULL, 0);
        if (out->kind == RECORDING_TEXT) {
            read_text(rest, out);
            break;
        }
    }
    return 1;
}

static void add(struct recording_chunk *chunk, const struct line *line)
{
    const size_t bytes = sizeof(struct recording_item) + 8 * (size_t)line->words;
    struct recording_item *item =
        (struct recording_item *)(void *)((char *)(chunk + 1) + chunk->used);
    if (chunk->used + bytes > RECORDING_CHUNK - sizeof *chunk)
        return;
    item->kind = (uint16_t)line->kind;
    item->words = (uint16_t)line->words;
    item->took_ns = line->took_ns;
    item->at_ns = line->at_ns;
    memcpy(item->word, line->word, 8 * (size_t)line->words);
    chunk->used += bytes;
}

void *tape_lines(const uint8_t *data, size_t length, size_t *size)
{
    char *text = fuzz_text(data, length), *rest = NULL;
    char *file = calloc(TAPE_LINES_THREADS, RECORDING_CHUNK);
    struct line line;
    FUZZ_EXPECT(file);
    *size = RECORDING_CHUNK;
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        if (!read_line(at, &line))
            continue;
        struct recording_chunk *chunk =
            (struct recording_chunk *)(void *)(file + line.thread * RECORDING_CHUNK);
        if (*size < (line.thread + 1) * RECORDING_CHUNK)
            *size = (line.thread + 1) * RECORDING_CHUNK;
        if (chunk->used == 0)
            *chunk = (struct recording_chunk){.magic = RECORDING_MAGIC,
                                              .version = RECORDING_VERSION,
                                              .thread = (uint32_t)line.thread + 1};
        add(chunk, &line);
    }
    free(text);
    return file;
}
