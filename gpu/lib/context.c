/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - see engine.h. */
#include "engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the pool -------------------------------------------------------------------------------- */

bool pool_init(struct pool *pool, struct device *device)
{
    *pool = (struct pool){.device = device};
    return pthread_mutex_init(&pool->lock, NULL) == 0;
}

static void block_free(struct block *block)
{
    if (!block)
        return;
    device_free(block->buffer);
    if (block->event)
        device_event_close(block->event);
    free(block);
}

void pool_fini(struct pool *pool)
{
    for (struct block *block = pool->free, *next; block; block = next) {
        next = block->next;
        block_free(block);
    }
    pthread_mutex_destroy(&pool->lock);
}

static struct block *block_new(struct pool *pool, size_t bytes, struct diag *diag)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block) {
        diag_no_memory(diag);
        return NULL;
    }
    block->bytes = bytes;
    if (device_event_open(pool->device, &block->event, diag) != STATUS_OK ||
        device_alloc_beside(pool->device, bytes, &block->buffer, diag) != STATUS_OK) {
        block_free(block);
        return NULL;
    }
    return block;
}

/* The smallest free block that is big enough and not more than twice as big. */
static struct block *pool_find(struct pool *pool, size_t bytes)
{
    struct block **best = NULL;
    pthread_mutex_lock(&pool->lock);
    for (struct block **link = &pool->free; *link; link = &(*link)->next)
        if ((*link)->bytes >= bytes && (*link)->bytes / 2 <= bytes &&
            (!best || (*link)->bytes < (*best)->bytes))
            best = link;
    struct block *block = best ? *best : NULL;
    if (block)
        *best = block->next;
    assert(!block || (block->bytes >= bytes && block->bytes / 2 <= bytes));
    pthread_mutex_unlock(&pool->lock);
    return block;
}

/* The next owner of the block waits for all work of `stream` so far; NULL: for nothing. */
static void pool_give(struct pool *pool, struct block *block, struct device_stream *stream)
{
    assert(block->buffer && block->event);
    struct diag ignored; /* a failed stream reports its failure to its waiters */
    diag_init(&ignored);
    bool usable = !stream || device_record(stream, block->event, NULL, &ignored) == STATUS_OK;
    diag_fini(&ignored);
    if (!usable) {
        block_free(block);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    block->next = pool->free;
    pool->free = block;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- values ---------------------------------------------------------------------------------- */

bool iteration_init(struct iteration *iteration, int rank, struct pool *pool)
{
    *iteration = (struct iteration){.rank = rank, .pool = pool, .number = -1};
    return pthread_mutex_init(&iteration->lock, NULL) == 0;
}

void iteration_fini(struct iteration *iteration)
{
    iteration_clear(iteration);
    pthread_mutex_destroy(&iteration->lock);
}

/* Of which this thread is in the release of a value, with the lock held. */
static _Thread_local const struct iteration *releasing;

bool iteration_is_releasing(const struct iteration *iteration)
{
    return releasing == iteration;
}

/* The content of a value is gone; the value itself stays. */
static void empty_value(struct iteration *iteration, struct named_value *value,
                        struct device_stream *stream)
{
    assert(!value->memory || !value->kind); /* one of the two owns the content */
    if (value->memory)
        pool_give(iteration->pool, value->memory, stream);
    else if (value->kind && value->kind->release) {
        const struct iteration *before = releasing;
        releasing = iteration;
        value->kind->release(value->content, value->kind->arg);
        releasing = before;
    }
    value->memory = NULL;
    value->content = NULL;
    value->kind = NULL;
}

static void free_value(struct iteration *iteration, struct named_value *value,
                       struct device_stream *stream)
{
    empty_value(iteration, value, stream);
    free(value->name);
    free(value);
}

static struct named_value **context_find_value(struct iteration *iteration, const char *name)
{
    struct named_value **link = &iteration->values;
    while (*link && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

/* The value of this name, empty; NULL when memory is exhausted. With the lock held. */
static struct named_value *place_value(struct iteration *iteration, const char *name,
                                       struct device_stream *stream)
{
    struct named_value **link = context_find_value(iteration, name), *value = *link;
    if (value) {
        empty_value(iteration, value, stream);
        return value;
    }
    value = calloc(1, sizeof *value);
    char *copy = strdup(name);
    if (!value || !copy) {
        free(value);
        free(copy);
        return NULL;
    }
    value->name = copy;
    *link = value;
    return value;
}

bool iteration_set(struct iteration *iteration, const char *name, void *content,
                   const struct swpipe_kind *kind, int setter, struct device_stream *stream)
{
    pthread_mutex_lock(&iteration->lock);
    struct named_value *value = place_value(iteration, name, stream);
    if (value) {
        value->content = content;
        value->kind = kind;
        value->setter = setter;
    }
    pthread_mutex_unlock(&iteration->lock);
    return value;
}

bool iteration_keep(struct iteration *iteration, void *content, void (*release)(void *content))
{
    struct kept_thing *thing = iteration_is_releasing(iteration) ? NULL : malloc(sizeof *thing);
    if (!thing)
        return false;
    pthread_mutex_lock(&iteration->lock);
    *thing = (struct kept_thing){iteration->things, content, release};
    iteration->things = thing;
    pthread_mutex_unlock(&iteration->lock);
    return true;
}

void *iteration_get(struct iteration *iteration, const char *name)
{
    pthread_mutex_lock(&iteration->lock);
    const struct named_value *value = *context_find_value(iteration, name);
    void *content = value ? value->content : NULL;
    pthread_mutex_unlock(&iteration->lock);
    return content;
}

void iteration_unset(struct iteration *iteration, const char *name, struct device_stream *stream)
{
    pthread_mutex_lock(&iteration->lock);
    struct named_value **link = context_find_value(iteration, name), *value = *link;
    if (value) {
        *link = value->next;
        free_value(iteration, value, stream);
    }
    pthread_mutex_unlock(&iteration->lock);
}

void iteration_clear(struct iteration *iteration)
{
    assert(!iteration_is_releasing(iteration));
    for (struct named_value *value = iteration->values, *next; value; value = next) {
        next = value->next;
        free_value(iteration, value, NULL);
    }
    iteration->values = NULL;
    for (struct kept_thing *thing = iteration->things, *next; thing; thing = next) {
        next = thing->next;
        thing->release(thing->content);
        free(thing);
    }
    iteration->things = NULL;
    if (iteration->owner)
        iteration->owner->release(iteration->owner->arg, iteration->rank, iteration->batch);
    iteration->owner = NULL;
    iteration->batch = iteration->result = NULL;
}

struct block *iteration_alloc(struct iteration *iteration, const char *name, size_t bytes,
                              int setter, struct device_stream *stream, struct diag *diag)
{
    struct pool *pool = iteration->pool;
    struct block *block = pool_find(pool, bytes);
    if (!block)
        block = block_new(pool, bytes, diag);
    else if (device_wait(stream, block->event, NULL, diag) != STATUS_OK) {
        block_free(block);
        block = NULL;
    }
    if (!block)
        return NULL;
    pthread_mutex_lock(&iteration->lock);
    struct named_value *value = place_value(iteration, name, stream);
    if (value) {
        value->memory = block;
        value->content = device_address(block->buffer);
        value->setter = setter;
    }
    pthread_mutex_unlock(&iteration->lock);
    if (value)
        return block;
    block_free(block);
    diag_no_memory(diag);
    return NULL;
}
