/*
 * journal.c - see journal.h: the thread that reads the logs.
 *
 * An entry with a stamp is kept in `open` until the stamp is valid.
 *
 * A pass: look how far each log has come, collect the device's stamps, read so far. In that order all
 * stamps of operations that an entry says to be over are valid when it is read.
 */
#include "journal_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    REPLAY_STEPS = 1 << 20,     /* pending, about 75 MB: then the replay goes along with the run */
    REPLAY_LAG_NS = 1000000000, /* behind the clock, so that late steps are in their place */
    WRITER_NICE = 10,
    HOST_TOLERANCE_NS = 0,
    CUDA_TOLERANCE_NS = 50000 /* the device's clock is another one */
};

static void on_step(void *arg, const struct replay_step *step, const char *text)
{
    (void)text;
    trace_writer_step(arg, step);
}

/* ---- the writer: a pass ---------------------------------------------------------------------- */

void journal_keep_open(struct journal *journal, const struct open_entry *kept)
{
    if (journal->open_count == journal->open_cap) {
        size_t cap = journal->open_cap ? 2 * journal->open_cap : 256;
        struct open_entry *open = realloc(journal->open, cap * sizeof *open);
        if (!open) {
            pthread_mutex_lock(&journal->lock);
            journal->no_memory = true;
            pthread_mutex_unlock(&journal->lock);
            return;
        }
        journal->open = open;
        journal->open_cap = cap;
    }
    journal->open[journal->open_count++] = *kept;
    if (kept->chunk)
        kept->chunk->open++;
}

int64_t journal_enter(struct journal *journal, int thread, const struct log_entry *entry)
{
    int64_t span = trace_writer_host(&journal->trace, thread, entry);
    if (journal->replay)
        journal_replay_host(journal, thread, entry);
    return span;
}

void journal_enter_end(struct journal *journal, const struct open_entry *open)
{
    trace_writer_device(&journal->trace, open->entry, open->span);
    if (journal->replay)
        journal_replay_device(journal, open->entry);
}

static void read_entry(struct journal *journal, struct log *log, struct chunk *chunk)
{
    const struct log_entry *entry = &chunk->entries[chunk->read++];
    bool stamped = entry->stamp.number >= 0;
    struct open_entry open = {.entry = entry, .chunk = chunk, .span = -1, .thread = log->thread};
    open.sequence = journal->sequences[log->thread];
    if (journal->ship)
        journal_ship_entry(journal, log->thread, open.sequence, entry);
    else
        open.span = journal_enter(journal, log->thread, entry);
    journal->sequences[log->thread] += stamped;
    if (stamped)
        journal_keep_open(journal, &open);
}

static bool is_spent(const struct chunk *chunk)
{
    return chunk->read == CHUNK_ENTRIES && chunk->open == 0;
}

/* Read what is published; chunks stay in the list until they are spent. A chunk that has a successor
   is full: so that is looked at first. */
static void read_log(struct journal *journal, struct log *log)
{
    if (!log->reading)
        log->reading = atomic_load_explicit(&log->first, memory_order_acquire);
    struct chunk *chunk = log->reading;
    while (chunk) {
        struct chunk *next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        size_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);
        bool unread = chunk->read < CHUNK_ENTRIES;
        while (chunk->read < count)
            read_entry(journal, log, chunk);
        if (unread && chunk->read == CHUNK_ENTRIES)
            journal_count_read(journal);
        chunk = next;
    }
}

/* The chunk a producer is at is never spent: it gets its successor first. */
static void recycle(struct journal *journal, struct log *log)
{
    while (log->reading && is_spent(log->reading)) {
        struct chunk *next = atomic_load_explicit(&log->reading->next, memory_order_acquire);
        if (!next)
            return;
        journal_put_chunk(journal, log->reading);
        log->reading = next;
    }
}

static void close_entries(struct journal *journal)
{
    size_t left = 0;
    for (size_t i = 0; i < journal->open_count; i++) {
        struct open_entry *open = &journal->open[i];
        if (!log_is_over(open->entry)) {
            journal->open[left++] = *open;
            continue;
        }
        if (journal->ship)
            journal_ship_stamp(journal, open, RECORD_FINISHED);
        else
            journal_enter_end(journal, open);
        journal->shipped += journal->ship != NULL;
        open->chunk->open--;
    }
    journal->open_count = left;
    atomic_store(&journal->finished, journal->trace.finished + journal->shipped);
}

static void publish_status(struct journal *journal)
{
    const struct trace_writer *trace = &journal->trace;
    pthread_mutex_lock(&journal->lock);
    if (journal->status == STATUS_OK && trace->status != STATUS_OK) {
        journal->status = trace->status;
        journal->reason = trace->diag.count ? strdup(trace->diag.messages[0].text) : NULL;
    }
    if (journal->status == STATUS_OK && (journal->no_memory || journal->replay_memory))
        journal->status = STATUS_SYSTEM;
    if (journal->status == STATUS_OK && journal->ship_failed) {
        journal->status = STATUS_SYSTEM;
        journal->reason = strdup("the log cannot be sent to the launcher of the ranks");
    }
    if (journal->status)
        pthread_cond_broadcast(&journal->wake); /* no thread waits for a writer that has stopped */
    bool tell = journal->status && journal->config.failed && !journal->told;
    journal->told = journal->told || tell;
    pthread_mutex_unlock(&journal->lock);
    if (tell)
        journal->config.failed(journal->config.arg, journal->status,
                               journal->reason ? journal->reason : "out of memory");
}

/* The first read is before the stamps are collected: what an entry of it says to be over has a valid
   stamp afterwards. */
static void pass(struct journal *journal)
{
    const struct program *p = journal->config.program;
    for (int t = 0; t < p->thread_count; t++)
        read_log(journal, &journal->logs[t]);
    for (int rank = 0; rank < p->ranks; rank++) /* a failed device: its stamps stay invalid */
        if (journal->config.devices[rank])
            (void)device_collect(journal->config.devices[rank], NULL);
    close_entries(journal);
    for (int t = 0; t < p->thread_count; t++)
        recycle(journal, &journal->logs[t]);
    if (journal->ship) {
        journal_send_records(journal);
        publish_status(journal);
        return;
    }
    trace_writer_commit(&journal->trace);
    publish_status(journal);
    if (journal->replay && replay_pending(journal->replay) > REPLAY_STEPS)
        replay_advance(journal->replay, device_now(journal->config.world) - REPLAY_LAG_NS,
                       INT64_MAX);
}

static void *write_journal(void *arg)
{
    struct journal *journal = arg;
    bool stop = false;
    pthread_setname_np(pthread_self(), "journal");
    /* lower priority than the run; a refusal does not matter */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WRITER_NICE);
    while (!stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += JOURNAL_PASS_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&journal->lock);
        if (!journal->stop)
            pthread_cond_timedwait(&journal->wake, &journal->lock, &until);
        stop = journal->stop;
        pthread_mutex_unlock(&journal->lock);
        pass(journal);
    }
    return NULL;
}

/* ---- open and stop --------------------------------------------------------------------------- */

static enum status start_writer(struct journal *journal, struct diag *diag)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&journal->writer, NULL, write_journal, journal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", strerror(failed));
    journal->started = true;
    return STATUS_OK;
}

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
    journal->replay =
        replay_open(p, journal->config.apart_ns + (host ? HOST_TOLERANCE_NS : CUDA_TOLERANCE_NS),
                    options->db ? on_step : NULL, &journal->trace);
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
    pthread_mutex_init(&journal->lock, NULL); /* with default attributes these cannot fail */
    pthread_cond_init(&journal->wake, NULL);
    return journal;
}

enum status journal_open_books(struct journal *journal, const char *device, int64_t start_ns,
                               struct diag *diag)
{
    enum status status = trace_writer_open(&journal->trace, journal->config.program,
                                           journal->config.options, device, start_ns, diag);
    return status ? status : prepare_replay(journal, diag);
}

static enum status open_ship(struct journal *journal, struct diag *diag)
{
    journal->ship = calloc(SHIP_RECORDS, sizeof *journal->ship);
    return journal->ship ? STATUS_OK : diag_no_memory(diag);
}

enum status journal_open(const struct journal_config *config, struct journal **out,
                         struct diag *diag)
{
    struct journal *journal = journal_new(config, diag);
    if (!journal)
        return STATUS_SYSTEM;
    enum status status = prepare_logs(journal, diag);
    if (!status && config->rendezvous)
        status = open_ship(journal, diag);
    else if (!status)
        status = journal_open_books(journal, device_description(config->devices[0]),
                                    device_now(config->world), diag);
    if (!status)
        status = start_writer(journal, diag);
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
    publish_status(journal);
    if (journal->replay && replay_pending(journal->replay) > REPLAY_STEPS)
        replay_advance(journal->replay, now_ns - REPLAY_LAG_NS, INT64_MAX);
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
    if (status)
        diag_error(diag, status, "%s", journal->reason ? journal->reason : "out of memory");
    pthread_mutex_unlock(&journal->lock);
    return status;
}

/* ---- the result ------------------------------------------------------------------------------ */

enum status journal_end(struct journal *journal, const struct journal_end *end,
                        struct runtime_result *result, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (journal->ship)
        return STATUS_OK; /* the figures are made where the log went */
    if (!trace_writer_figures(&journal->trace, result))
        status = diag_no_memory(diag);
    if (journal->replay && !status && !end->torn)
        status = journal_judge(journal, end, result, diag);
    bool finished = end->complete && !end->interrupted;
    result->log_bytes = (int64_t)(journal->unread_most * sizeof(struct chunk));
    enum status stored =
        trace_writer_end(&journal->trace, finished ? RUN_FINISHED : RUN_INTERRUPTED,
                         end->iterations, end->duration_ns, diag);
    return stored ? stored : status;
}
