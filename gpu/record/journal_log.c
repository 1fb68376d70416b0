/*
 * journal_log.c - the logs of a journal: lists of chunks with one producer and one consumer.
 *
 * The producer publishes an entry by storing the chunk's `count`, a further chunk by storing `next`. The
 * consumer reads entries in order; a chunk that is full, read and without open entries goes back to the pool.
 */
#include "journal_impl.h"

#include <stdlib.h>

/* ---- chunks ---------------------------------------------------------------------------------- */

static size_t chunk_limit(const struct journal *journal)
{
    int limit = journal->config.options->log_chunks;
    return limit ? (size_t)limit : JOURNAL_CHUNKS;
}

static struct chunk *get_chunk(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    struct chunk *chunk = journal->pool;
    if (chunk)
        journal->pool = atomic_load(&chunk->next);
    if (++journal->unread > journal->unread_most)
        journal->unread_most = journal->unread;
    pthread_mutex_unlock(&journal->lock);
    if (!chunk)
        chunk = malloc(sizeof *chunk);
    if (chunk) {
        atomic_init(&chunk->count, 0);
        atomic_init(&chunk->next, NULL);
        chunk->read = chunk->open = 0;
    }
    return chunk;
}

void journal_put_chunk(struct journal *journal, struct chunk *chunk)
{
    pthread_mutex_lock(&journal->lock);
    atomic_store(&chunk->next, journal->pool);
    journal->pool = chunk;
    pthread_mutex_unlock(&journal->lock);
}

/* The writer has read all of a chunk. */
void journal_count_read(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (journal->unread-- == chunk_limit(journal) + 1)
        pthread_cond_broadcast(&journal->wake);
    pthread_mutex_unlock(&journal->lock);
}

void journal_free_chunks(struct chunk *chunk)
{
    while (chunk) {
        struct chunk *next = atomic_load(&chunk->next);
        free(chunk);
        chunk = next;
    }
}

/* ---- producers ------------------------------------------------------------------------------- */

struct log *journal_log(struct journal *journal, int thread)
{
    return &journal->logs[thread];
}

static bool add_chunk(struct log *log)
{
    struct chunk *chunk = get_chunk(log->journal);
    if (!chunk) {
        pthread_mutex_lock(&log->journal->lock);
        log->journal->no_memory = true;
        pthread_mutex_unlock(&log->journal->lock);
        return false;
    }
    if (log->writing)
        atomic_store_explicit(&log->writing->next, chunk, memory_order_release);
    else
        atomic_store_explicit(&log->first, chunk, memory_order_release);
    log->writing = chunk;
    return true;
}

struct log_entry *log_next(struct log *log)
{
    struct chunk *chunk = log->writing;
    size_t count =
        chunk ? atomic_load_explicit(&chunk->count, memory_order_relaxed) : CHUNK_ENTRIES;
    if (count == CHUNK_ENTRIES) {
        if (!add_chunk(log))
            return NULL;
        count = 0;
    }
    return &log->writing->entries[count];
}

void log_commit(struct log *log)
{
    size_t count = atomic_load_explicit(&log->writing->count, memory_order_relaxed);
    atomic_store_explicit(&log->writing->count, count + 1, memory_order_release);
}

/* The writer waits for no thread of the run, so this ends with its next commit, however slow the disk is, or
   with its failure. Chunks that are read, but hold operations under way, do not count: these may need the
   thread that would wait here. */
void journal_throttle(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    while (journal->unread > chunk_limit(journal) && !journal->stop && !journal->status &&
           !journal->no_memory)
        pthread_cond_wait(&journal->wake, &journal->lock);
    pthread_mutex_unlock(&journal->lock);
}
