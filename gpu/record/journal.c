/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - see journal.h: chunks and the threads that fill them; open, stop and end.
 *
 * A log is a list of chunks with one producer and one consumer. The producer publishes an entry by storing `written`, a
 * further chunk by storing `next` before that. The consumer reads entries in order; a chunk that is full, read and without
 * open entries goes back to the pool.
 */
#include "journal_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "gpu/device/device_impl.h"

enum { HOST_TOLERANCE_NS = 0, CUDA_TOLERANCE_NS = 50000 /* the device's clock is another one */ };

static void on_step(void *arg, const struct replay_step *step)
{
    trace_writer_step(arg, step);
}

/* ---- open and stop --------------------------------------------------------------------------- */

static enum status prepare_logs(struct journal *journal, struct diag *diag)
{
    const struct program *p = journal->config.program;
    journal->sequences = calloc((size_t)p->thread_count + 1, sizeof *journal->sequences);
    journal->logs = calloc((size_t)p->thread_count + 1, sizeof *journal->logs);
    if (!journal->logs || !journal->sequences)
        return diag_no_memory(diag);
    for (int t = 0; t < p->thread_count; t++) {
        journal->logs[t].journal = journal;
        journal->logs[t].thread = t;
    }
    return STATUS_OK;
}

static enum status prepare_replay(struct journal *journal, struct diag *diag)
{
    const struct program *p = journal->config.program;
    const struct runtime_options *options = journal->config.options;
    bool host = options->device == DEVICE_KIND_HOST;
    if (!options->replay)
        return STATUS_OK;
    journal->tolerance_ns = host ? HOST_TOLERANCE_NS : CUDA_TOLERANCE_NS;
    journal->replay =
        replay_open(p, journal->tolerance_ns, options->db ? on_step : NULL, &journal->trace);
    return journal->replay ? STATUS_OK : diag_no_memory(diag);
}

struct journal *journal_new(const struct journal_config *config, struct diag *diag)
{
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal) {
        diag_no_memory(diag);
        return NULL;
    }
    journal->config = *config;
    journal->ahead = journal_most_chunks(journal);
    if (config->options->db && journal->ahead > JOURNAL_FIRST_CHUNKS)
        journal->ahead = JOURNAL_FIRST_CHUNKS;
    pthread_condattr_t clock; /* of these none can fail */
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->wake, &clock);
    pthread_cond_init(&journal->come, NULL);
    pthread_condattr_destroy(&clock);
    return journal;
}

enum status journal_open_books(struct journal *journal, const char *device, int64_t start_ns,
                               int cores, struct diag *diag)
{
    enum status status = trace_writer_open(&journal->trace, journal->config.program,
                                           journal->config.options, device, start_ns, cores, diag);
    return status ? status : prepare_replay(journal, diag);
}

enum status journal_open(const struct journal_config *config, struct journal **out,
                         struct diag *diag)
{
    struct journal *journal = journal_new(config, diag);
    if (!journal)
        return STATUS_SYSTEM;
    enum status status = prepare_logs(journal, diag);
    if (!status && config->rendezvous) {
        journal->ship = calloc(SHIP_RECORDS, sizeof *journal->ship);
        status = journal->ship ? STATUS_OK : diag_no_memory(diag);
    } else if (!status)
        status = journal_open_books(journal, device_description(config->devices[0]),
                                    device_now(config->world), processors_count(), diag);
    if (!status)
        status = journal_start_writer(journal, diag);
    if (status) {
        journal_close(journal);
        return status;
    }
    *out = journal;
    return STATUS_OK;
}

void journal_stop(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->stop = true;
    pthread_cond_broadcast(&journal->wake);
    pthread_cond_broadcast(&journal->come);
    pthread_mutex_unlock(&journal->lock);
    if (journal->started) {
        pthread_join(journal->writer, NULL);
        journal_ship_started(journal);
    }
    journal->started = false;
}

void journal_pass(struct journal *journal, int64_t now_ns)
{
    trace_writer_commit(&journal->trace);
    journal_publish(journal);
    if (journal->replay)
        journal_replay_along(journal, now_ns, 0);
    trace_writer_flush(&journal->trace);
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    journal_stop(journal);
    for (int t = 0; journal->logs && t < journal->config.program->thread_count; t++) {
        struct log *log = &journal->logs[t];
        journal_free_chunks(log->reading ? log->reading : atomic_load(&log->first));
    }
    journal_free_chunks(journal->pool);
    replay_close(journal->replay);
    trace_writer_close(&journal->trace);
    pthread_cond_destroy(&journal->wake);
    pthread_cond_destroy(&journal->come);
    pthread_mutex_destroy(&journal->lock);
    for (size_t i = 0; i < journal->open_count; i++)
        if (!journal->open[i].chunk)
            free((void *)(uintptr_t)journal->open[i].entry);
    free(journal->reason);
    free(journal->ship);
    free(journal->sequences);
    free(journal->open);
    free(journal->logs);
    free(journal);
}

int64_t journal_finished(const struct journal *journal)
{
    return atomic_load(&journal->finished);
}

enum status journal_status(struct journal *journal, struct diag *diag)
{
    pthread_mutex_lock(&journal->lock);
    enum status status = journal->no_memory ? STATUS_SYSTEM : journal->status;
    journal->reported = journal->reported || status;
    if (status)
        diag_error(diag, status, "%s", journal->reason ? journal->reason : "out of memory");
    pthread_mutex_unlock(&journal->lock);
    return status;
}

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

static bool journal_add_chunk(struct log *log)
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
    if (written == log->room && !journal_add_chunk(log))
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

/* ---- the result ------------------------------------------------------------------------------ */

/* A log with gaps is no good one wherever it went, replayed or not. */
static enum status say_gaps(const struct journal *journal, struct diag *diag)
{
    if (!journal->no_memory && !(journal->ship && journal->status))
        return STATUS_OK;
    return journal->reported ? STATUS_SYSTEM
                             : diag_error(diag, STATUS_SYSTEM, "%s",
                                          journal->reason ? journal->reason : "out of memory");
}

enum status journal_end(struct journal *journal, const struct journal_end *end,
                        struct runtime_result *result, struct diag *diag)
{
    enum status status = STATUS_OK;
    assert(!journal->started && "the writer has not finished");
    result->log_bytes = journal->unread_most * (int64_t)sizeof(struct chunk);
    result->held_ns += journal->held_ns;
    result->clock_error_ns = journal->clock_error_ns;
    if (journal->ship)
        return say_gaps(journal, diag); /* the figures are made where the log went */
    if (!trace_writer_figures(&journal->trace, result))
        status = diag_no_memory(diag);
    if (journal->replay && !status && !end->torn)
        status = journal_judge(journal, end, result, diag);
    else if (!status)
        status = say_gaps(journal, diag);
    bool finished = end->complete && !end->interrupted;
    enum status stored =
        trace_writer_end(&journal->trace, finished ? RUN_FINISHED : RUN_INTERRUPTED,
                         end->iterations, end->duration_ns, diag);
    return stored ? stored : status;
}
