/* SPDX-License-Identifier: Apache-2.0 */
/* tapes.c - see tapes.h. */
#include "tapes.h"

#include <string.h>

#include "trace/job/bytes.h"
#include "base/array.h"

struct tapes_reading {
    struct arena *arena;
    struct tapes *tapes;
    struct diag *diag;
    const char *path;
};

static enum status damaged(const struct tapes_reading *reading, const char *what)
{
    return diag_error(reading->diag, STATUS_INPUT, "%s: the recording is damaged: %s",
                      reading->path, what);
}

/* The words that an item of a kind has at least. */
static size_t least_words(unsigned kind)
{
    static const unsigned char least[] = {
#define X(name, words, ...) words,
        RECORDING_LIST(X)
#undef X
    };
    return least[kind];
}

static enum status find_thread(struct tapes_reading *reading, uint32_t number,
                               struct tape_thread **out)
{
    struct tapes *tapes = reading->tapes;
    if (number == 0 || number > 1000000)
        return damaged(reading, "a chunk belongs to no thread");
    while (tapes->thread_count < number) {
        if (!ARENA_GROW(reading->arena, tapes->threads, tapes->thread_count, tapes->thread_cap))
            return diag_no_memory(reading->diag);
        tapes->threads[tapes->thread_count++] = (struct tape_thread){0};
    }
    *out = &tapes->threads[number - 1];
    return STATUS_OK;
}

static enum status add_items(struct tapes_reading *reading, const struct recording_chunk *chunk,
                             struct tape_thread *thread)
{
    const char *at = (const char *)(chunk + 1), *end = at + chunk->used;
    while (at < end) {
        const struct recording_item *item = (const struct recording_item *)(const void *)at;
        if ((size_t)(end - at) < sizeof *item ||
            (size_t)(end - at) < sizeof *item + 8 * (size_t)item->words)
            return damaged(reading, "an item is cut off");
        if (item->kind >= RECORDING_KINDS || item->words < least_words(item->kind))
            return damaged(reading, "an item of no kind, or with too few words");
        if (item->at_ns < 0 || item->at_ns > INT64_MAX / 2)
            return damaged(reading, "an item has no time");
        if (!ARENA_GROW(reading->arena, thread->items, thread->count, thread->cap))
            return diag_no_memory(reading->diag);
        thread->items[thread->count++] = item;
        if (item->kind == RECORDING_PROCESS) {
            struct tapes *tapes = reading->tapes;
            tapes->pid = (int64_t)item->word[0];
            tapes->rank = (int64_t)(item->word[1] - 1);
            tapes->size = (int64_t)item->word[2];
            tapes->wall_ns = item->word[3] > 0 && item->word[3] < INT64_MAX / 2
                                 ? (int64_t)item->word[3] - item->at_ns
                                 : 0;
            tapes->touches = item->words > 4 && item->word[4] != 0;
        }
        at += sizeof *item + 8 * (size_t)item->words;
    }
    return STATUS_OK;
}

static enum status tapes_add_chunk(struct tapes_reading *reading,
                                   const struct recording_chunk *chunk)
{
    struct tape_thread *thread = NULL;
    if (memcmp(chunk->magic, RECORDING_MAGIC, sizeof chunk->magic) != 0)
        return damaged(reading, "a chunk has no head");
    if (chunk->version != RECORDING_VERSION)
        return diag_error(reading->diag, STATUS_INPUT,
                          "%s: a recording of version %u; this program reads version %d",
                          reading->path, chunk->version, RECORDING_VERSION);
    if (chunk->used > RECORDING_CHUNK - sizeof *chunk)
        return damaged(reading, "a chunk holds more than it can");
    enum status status = find_thread(reading, chunk->thread, &thread);
    return status == STATUS_OK ? add_items(reading, chunk, thread) : status;
}

/* A chunk that a process had asked for and not begun is all zeros. */
static bool is_unused(const struct recording_chunk *chunk)
{
    return chunk->magic[0] == 0 && chunk->used == 0;
}

/* The next chunk of the file; NULL with STATUS_OK at its end. */
static enum status read_chunk(struct tapes_reading *reading, struct bytes *bytes,
                              struct recording_chunk **out)
{
    char *buffer = arena_alloc(reading->arena, RECORDING_CHUNK);
    size_t have = 0, got = 1;
    *out = NULL;
    if (!buffer)
        return diag_no_memory(reading->diag);
    while (have < RECORDING_CHUNK && got > 0) {
        enum status status =
            bytes_read(bytes, buffer + have, RECORDING_CHUNK - have, &got, reading->diag);
        if (status != STATUS_OK)
            return status;
        have += got;
    }
    if (have > 0 && have < RECORDING_CHUNK)
        return damaged(reading, "its end is missing");
    if (have > 0)
        *out = (struct recording_chunk *)(void *)buffer;
    return STATUS_OK;
}

enum status tapes_read(struct bytes *bytes, struct arena *arena, struct tapes *out,
                       struct diag *diag)
{
    struct tapes_reading reading = {arena, out, diag, bytes_name(bytes)};
    struct recording_chunk *chunk = NULL;
    enum status status;
    *out = (struct tapes){.path = bytes_name(bytes), .rank = -1};
    do {
        status = read_chunk(&reading, bytes, &chunk);
        if (status == STATUS_OK && chunk && !is_unused(chunk))
            status = tapes_add_chunk(&reading, chunk);
    } while (status == STATUS_OK && chunk);
    return status == STATUS_OK && out->thread_count == 0 ? damaged(&reading, "it is empty")
                                                         : status;
}

enum status tapes_read_file(const char *path, struct arena *arena, struct tapes *out,
                            struct diag *diag)
{
    struct bytes *bytes;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = tapes_read(bytes, arena, out, diag);
    bytes_close(bytes);
    out->path = path;
    return status;
}

int64_t tapes_end_ns(const struct tape_thread *thread, size_t item)
{
    const struct recording_item *at = thread->items[item];
    if (at->took_ns < UINT32_MAX)
        return at->at_ns + at->took_ns;
    return item + 1 < thread->count ? thread->items[item + 1]->at_ns : INT64_MAX;
}

const struct recording_item *tapes_next(struct tapes *tapes, size_t *out)
{
    const struct tape_thread *next = NULL;
    int64_t next_ns = 0;
    for (size_t i = 0; i < tapes->thread_count; i++) {
        const struct tape_thread *thread = &tapes->threads[i];
        if (thread->read == thread->count)
            continue;
        const int64_t end_ns = tapes_end_ns(thread, thread->read);
        if (!next || end_ns < next_ns) {
            next = thread;
            next_ns = end_ns;
            *out = i;
        }
    }
    return next ? next->items[tapes->threads[*out].read++] : NULL;
}

char *tapes_text(const struct recording_item *item, struct arena *arena)
{
    return arena_strndup(arena, (const char *)(item->word + 1), 8 * (size_t)(item->words - 1));
}
