/* visited.c - see visited.h. */
#include "visited.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

enum { CHUNK_BYTES = 1 << 20, FIRST_TABLE = 1 << 10, MAX_NODES = UINT32_MAX - 2 };

struct node {
    const unsigned char *at;
    uint32_t length;
    uint32_t parent;
    uint32_t
        tag; /* upper half of the hash: most differing states are told apart without their bytes */
    uint32_t step; /* 2 * agent + choice */
};

struct visited {
    size_t limit_bytes, used_bytes;
    uint32_t *table; /* id + 1, 0 empty */
    size_t table_size;
    struct node *nodes;
    size_t count, cap;
    unsigned char **chunks;
    size_t chunk_count, chunk_cap, chunk_used, chunk_size;
};

struct visited *visited_open(size_t limit_bytes)
{
    struct visited *visited = calloc(1, sizeof *visited);
    if (!visited)
        return NULL;
    visited->limit_bytes = limit_bytes;
    visited->table_size = FIRST_TABLE;
    visited->table = calloc(FIRST_TABLE, sizeof *visited->table);
    if (!visited->table) {
        free(visited);
        return NULL;
    }
    visited->used_bytes = FIRST_TABLE * sizeof *visited->table;
    return visited;
}

void visited_close(struct visited *visited)
{
    if (!visited)
        return;
    for (size_t i = 0; i < visited->chunk_count; i++)
        free(visited->chunks[i]);
    free(visited->chunks);
    free(visited->nodes);
    free(visited->table);
    free(visited);
}

static enum status charge(struct visited *visited, size_t bytes)
{
    if (visited->used_bytes + bytes > visited->limit_bytes)
        return STATUS_LIMIT;
    visited->used_bytes += bytes;
    return STATUS_OK;
}

static enum status grow_table(struct visited *visited)
{
    size_t size = 2 * visited->table_size;
    enum status status = charge(visited, visited->table_size * sizeof *visited->table);
    if (status != STATUS_OK)
        return status;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return STATUS_SYSTEM;
    for (size_t id = 0; id < visited->count; id++) {
        const struct node *node = &visited->nodes[id];
        size_t at = (size_t)hash_bytes(node->at, node->length) & (size - 1);
        while (table[at])
            at = (at + 1) & (size - 1);
        table[at] = (uint32_t)id + 1;
    }
    free(visited->table);
    visited->table = table;
    visited->table_size = size;
    return STATUS_OK;
}

static enum status grow_nodes(struct visited *visited)
{
    size_t cap = visited->cap ? 2 * visited->cap : 256;
    enum status status = charge(visited, (cap - visited->cap) * sizeof *visited->nodes);
    if (status != STATUS_OK)
        return status;
    struct node *nodes = realloc(visited->nodes, cap * sizeof *nodes);
    if (!nodes)
        return STATUS_SYSTEM;
    visited->nodes = nodes;
    visited->cap = cap;
    return STATUS_OK;
}

static enum status new_chunk(struct visited *visited, size_t length)
{
    size_t size = length > CHUNK_BYTES ? length : CHUNK_BYTES;
    if (visited->chunk_count == visited->chunk_cap) {
        size_t cap = visited->chunk_cap ? 2 * visited->chunk_cap : 16;
        unsigned char **chunks = realloc(visited->chunks, cap * sizeof *chunks);
        if (!chunks)
            return STATUS_SYSTEM;
        visited->chunks = chunks;
        visited->chunk_cap = cap;
    }
    enum status status = charge(visited, size);
    if (status != STATUS_OK)
        return status;
    unsigned char *chunk = malloc(size);
    if (!chunk)
        return STATUS_SYSTEM;
    visited->chunks[visited->chunk_count++] = chunk;
    visited->chunk_used = 0;
    visited->chunk_size = size;
    return STATUS_OK;
}

static enum status make_room(struct visited *visited, size_t length)
{
    enum status status = STATUS_OK;
    if (visited->count >= MAX_NODES)
        return STATUS_LIMIT;
    if (2 * (visited->count + 1) > visited->table_size)
        status = grow_table(visited);
    if (status == STATUS_OK && visited->count == visited->cap)
        status = grow_nodes(visited);
    if (status == STATUS_OK &&
        (visited->chunk_count == 0 || visited->chunk_size - visited->chunk_used < length))
        status = new_chunk(visited, length);
    return status;
}

enum status visited_insert(struct visited *visited, const unsigned char *packed, size_t length,
                           uint32_t parent, struct transition by, uint32_t *id, bool *is_new)
{
    uint64_t hash = hash_bytes(packed, length);
    uint32_t tag = (uint32_t)(hash >> 32);
    enum status status = make_room(visited, length);
    size_t at = (size_t)hash & (visited->table_size - 1);
    for (; visited->table[at]; at = (at + 1) & (visited->table_size - 1)) {
        const struct node *node = &visited->nodes[visited->table[at] - 1];
        if (node->tag == tag && node->length == length && memcmp(node->at, packed, length) == 0) {
            *id = visited->table[at] - 1;
            *is_new = false;
            return STATUS_OK;
        }
    }
    if (status != STATUS_OK)
        return status;
    unsigned char *copy = visited->chunks[visited->chunk_count - 1] + visited->chunk_used;
    memcpy(copy, packed, length);
    visited->chunk_used += length;
    visited->nodes[visited->count] =
        (struct node){.at = copy,
                      .length = (uint32_t)length,
                      .parent = parent,
                      .tag = tag,
                      .step = 2 * (uint32_t)by.agent + (uint32_t)by.choice};
    visited->table[at] = (uint32_t)++visited->count;
    *id = (uint32_t)visited->count - 1;
    *is_new = true;
    return STATUS_OK;
}

uint32_t visited_count(const struct visited *visited)
{
    return (uint32_t)visited->count;
}

size_t visited_bytes(const struct visited *visited)
{
    return visited->used_bytes;
}

const unsigned char *visited_state(const struct visited *visited, uint32_t id)
{
    return visited->nodes[id].at;
}

uint32_t visited_parent(const struct visited *visited, uint32_t id)
{
    return visited->nodes[id].parent;
}

struct transition visited_transition(const struct visited *visited, uint32_t id)
{
    uint32_t step = visited->nodes[id].step;
    return (struct transition){(int)(step / 2), (int)(step % 2)};
}
