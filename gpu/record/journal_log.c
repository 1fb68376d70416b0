/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_log.c - the logs of a journal: lists of chunks with one producer and one consumer.
 *
 * The producer publishes an entry by storing `written`, a further chunk by storing `next` before that. The
 * consumer reads entries in order; a chunk that is full, read and without open entries goes back to the pool.
 */
#include "journal_impl.h"

#include "gpu/device/device_impl.h"

#include <assert.h>
#include <stdlib.h>

/* ---- chunks ---------------------------------------------------------------------------------- */

int64_t journal_most_chunks(const struct journal *journal)
{
    int limit = journal->config.options->log_chunks;
    return limit ? limit : JOURNAL_CHUNKS;
}

/* The one before it, if any, is full. */
static struct chunk *get_chunk(struct journal *journal, const struct chunk *before)
{
    pthread_mutex_lock(&journal->lock);
    struct chunk *chunk = journal->pool;
    if (chunk)
        journal->pool = atomic_load(&chunk->next);
    assert(journal->unread <= journal->unread_most);
    if (before && ++journal->unread > journal->unread_most)
        journal->unread_most = journal->unread;
    pthread_mutex_unlock(&journal->lock);
    if (!chunk)
        chunk = malloc(sizeof *chunk);
    if (chunk) {
        atomic_init(&chunk->next, NULL);
        chunk->read = chunk->open = 0;
    }
    return chunk;
}

void journal_put_chunk(struct journal *journal, struct chunk *chunk)
{
    assert(chunk->read == CHUNK_ENTRIES && chunk->open == 0); /* nothing points into it */
    pthread_mutex_lock(&journal->lock);
    atomic_store(&chunk->next, journal->pool);
    journal->pool = chunk;
    pthread_mutex_unlock(&journal->lock);
}

void journal_count_read(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (journal->unread-- == journal->ahead + 1)
        pthread_cond_broadcast(&journal->come);
    pthread_mutex_unlock(&journal->lock);
}

#ifdef SWSIM_CHECKS
/* The entries of a chunk that wait for their stamps. */
static size_t count_open(const struct journal *journal, const struct chunk *chunk)
{
    size_t count = 0;
    for (size_t i = 0; i < journal->open_count; i++)
        count += journal->open[i].chunk == chunk;
    return count;
}

/* The chunks from the oldest that is not spent to the one with the next entry: all but that one are read, and each knows how
   many of its entries are open. Called by the writer, behind a pass. */
static void check_log(const struct journal *journal, struct log *log)
{
    assert(log->read == log->until && log->until <= atomic_load(&log->written));
    assert(!log->reading == !log->at);
    for (struct chunk *chunk = log->reading; chunk; chunk = atomic_load(&chunk->next)) {
        assert(chunk->read <= CHUNK_ENTRIES && chunk->open <= chunk->read);
        assert(chunk->open == count_open(journal, chunk));
        if (chunk == log->at)
            return;
        assert(chunk->read == CHUNK_ENTRIES);
    }
    assert(!log->at);
}

void journal_check(struct journal *journal)
{
    for (int t = 0; t < journal->config.program->thread_count; t++)
        check_log(journal, &journal->logs[t]);
    pthread_mutex_lock(&journal->lock);
    assert(journal->unread >= -(int64_t)journal->config.program->thread_count);
    for (struct chunk *chunk = journal->pool; chunk; chunk = atomic_load(&chunk->next))
        assert(chunk->open == 0);
    pthread_mutex_unlock(&journal->lock);
}
#endif

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
    struct chunk *chunk = get_chunk(log->journal, log->writing);
    if (!chunk) {
        pthread_mutex_lock(&log->journal->lock);
        log->journal->no_memory = log->journal->reported = true;
        pthread_mutex_unlock(&log->journal->lock);
        return false;
    }
    if (log->writing)
        atomic_store_explicit(&log->writing->next, chunk, memory_order_release);
    else
        atomic_store_explicit(&log->first, chunk, memory_order_release);
    log->writing = chunk;
    log->room += CHUNK_ENTRIES;
    return true;
}

struct log_entry *log_next(struct log *log)
{
    size_t written = atomic_load_explicit(&log->written, memory_order_relaxed);
    if (written == log->room && !add_chunk(log))
        return NULL;
    return &log->writing->entries[written % CHUNK_ENTRIES];
}

void log_commit(struct log *log)
{
    size_t written = atomic_load_explicit(&log->written, memory_order_relaxed);
    assert(written < log->room && log->writing); /* log_next has made room */
    atomic_store_explicit(&log->written, written + 1, memory_order_release);
}

static bool is_too_far(const struct journal *journal)
{
    return (journal->unread > journal->ahead || journal->hold) && !journal->stop &&
           !journal->status && !journal->no_memory;
}

/* The writer waits for no thread of the run, so this ends with its next commit, however slow the disk is, or
   with its failure. Chunks that are read, but hold operations under way, do not count: these may need the
   thread that would wait here. */
void journal_throttle(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (is_too_far(journal)) {
        int64_t begin_ns = device_clock_ns();
        atomic_store(&journal->wanted, true);
        pthread_cond_signal(&journal->wake);
        while (is_too_far(journal))
            pthread_cond_wait(&journal->come, &journal->lock);
        journal->held_ns += device_clock_ns() - begin_ns;
    }
    pthread_mutex_unlock(&journal->lock);
}
