/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_pass.c - the writer of a journal: its thread, and what a pass reads.
 *
 * An entry with a stamp is kept in `open` until the stamp is valid.
 *
 * A pass: look how far each log has come, collect the device's stamps, read so far and no further. In that
 * order all stamps of operations that an entry says to be over are valid when it is read; and what was
 * logged before an entry of this pass, on whatever thread, is read in the next pass at the latest.
 *
 * Pace. The time of a pass and the entries that it read give the rate; threads may be as many chunks ahead
 * as the writer reads at this rate in JOURNAL_PASS_MS. A thread that has to wait asks for a pass at once.
 * Between two passes the store is free for GAP, so that another program can add its own run.
 */
#include "journal_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/device_impl.h"
#include "base/array.h"
#include "base/quiet_thread.h"
#include "base/sort.h"
#include "base/system_words.h"

enum { WRITER_NICE = 10, PACE_ENTRIES = 256 /* fewer say little about the rate */ };
#define PASS_NS (JOURNAL_PASS_MS * INT64_C(1000000))
#define GAP_NS  INT64_C(3000000)

/* ---- entries --------------------------------------------------------------------------------- */

void journal_keep_open(struct journal *journal, const struct open_entry *kept)
{
    if (!ARRAY_GROW(journal->open, journal->open_count, journal->open_cap)) {
        pthread_mutex_lock(&journal->lock);
        journal->no_memory = true;
        pthread_mutex_unlock(&journal->lock);
        return;
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
        journal_replay_device(journal, open);
}

static void read_entry(struct journal *journal, struct log *log, struct chunk *chunk)
{
    assert(chunk && chunk->read < CHUNK_ENTRIES);
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

/* Read what the pass is to read; chunks stay in the list until they are spent. */
static size_t read_log(struct journal *journal, struct log *log)
{
    assert(log->read <= log->until);
    size_t count = log->until - log->read;
    while (log->read < log->until) {
        /* The chunk of the next entry. */
        if (!log->at)
            log->reading = log->at = atomic_load_explicit(&log->first, memory_order_acquire);
        else if (log->at->read == CHUNK_ENTRIES)
            log->at = atomic_load_explicit(&log->at->next, memory_order_acquire);
        struct chunk *chunk = log->at;
        read_entry(journal, log, chunk);
        log->read++;
        if (chunk->read == CHUNK_ENTRIES)
            journal_count_read(journal);
    }
    return count;
}

static int compare_pushes(const void *a, const void *b)
{
    const struct open_entry *left = a, *right = b;
    return compare_i64(left->entry->stamp.number, right->entry->stamp.number);
}

static void close_entries(struct journal *journal)
{
    size_t left = 0;
    /* Entries in the order of their pushes. Stamps become valid meanwhile, and one that is valid has valid ones before it
       on its stream, and on its communicator but for functions, whose end may be stamped late: the last is asked first. */
    SORT(journal->open, journal->open_count, compare_pushes);
    for (size_t i = journal->open_count; i-- > 0;)
        journal->open[i].over = log_is_over(journal->open[i].entry);
    for (size_t i = 0; i < journal->open_count; i++) {
        struct open_entry *open = &journal->open[i];
        if (!open->over) {
            if (journal->replay)
                journal_replay_start(journal, open);
            journal->open[left++] = *open;
            continue;
        }
        if (journal->ship)
            journal_ship_stamp(journal, open, RECORD_FINISHED);
        else
            journal_enter_end(journal, open);
        journal->shipped += journal->ship != NULL;
        assert(open->chunk &&
               open->chunk->open > 0); /* of a journal that collects no entry is closed here */
        open->chunk->open--;
    }
    journal->open_count = left;
    atomic_store(&journal->finished, journal->trace.finished + journal->shipped);
}

/* ---- a pass ---------------------------------------------------------------------------------- */

void journal_publish(struct journal *journal)
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
        pthread_cond_broadcast(&journal->come); /* no thread waits for a writer that has stopped */
    bool tell = journal->status && journal->config.failed && !journal->told;
    journal->told = journal->told || tell;
    journal->reported = journal->reported || tell;
    pthread_mutex_unlock(&journal->lock);
    if (tell)
        journal->config.failed(journal->config.arg, journal->status,
                               journal->reason ? journal->reason : "out of memory");
}

static void read_logs(struct journal *journal, size_t *out_entries)
{
    const struct program *p = journal->config.program;
    for (int t = 0; t < p->thread_count; t++)
        journal->logs[t].until =
            atomic_load_explicit(&journal->logs[t].written, memory_order_acquire);
    for (int rank = 0; rank < p->ranks; rank++) /* a failed device: its stamps stay invalid */
        if (journal->config.devices[rank])
            (void)device_collect(journal->config.devices[rank], NULL);
    journal_know_clocks(journal);
    *out_entries = 0;
    for (int t = 0; t < p->thread_count; t++)
        *out_entries += read_log(journal, &journal->logs[t]);
    close_entries(journal);
    for (int t = 0; t < p->thread_count; t++) {
        /* The chunk that the next entry is read from is never spent: without entries to come it stays. */
        struct log *log = &journal->logs[t];
        while (log->reading && log->reading != log->at && log->reading->open == 0) {
            struct chunk *next = atomic_load_explicit(&log->reading->next, memory_order_acquire);
            journal_put_chunk(journal, log->reading);
            log->reading = next;
        }
    }
    journal_check(journal);
}

/* ---- pace ------------------------------------------------------------------------------------ */

/* Without a store nothing is promised but memory. */
static int64_t chunks_ahead(const struct journal *journal)
{
    int64_t most = journal_most_chunks(journal);
    if (!journal->config.options->db || journal->entry_ns <= 0)
        return most;
    double ahead = (double)PASS_NS / journal->entry_ns / CHUNK_ENTRIES;
    return ahead >= (double)most ? most : (int64_t)ahead + 1;
}

static void set_pace(struct journal *journal, size_t entries, int64_t dur_ns)
{
    double entry_ns = entries ? (double)dur_ns / (double)entries : 0;
    bool first = journal->entry_ns <= 0;
    if (entries >= PACE_ENTRIES)
        journal->entry_ns = first ? entry_ns : (journal->entry_ns + entry_ns) / 2;
    pthread_mutex_lock(&journal->lock);
    journal->ahead = chunks_ahead(journal);
    journal->hold = journal_replay_holds(journal);
    pthread_cond_broadcast(&journal->come);
    pthread_mutex_unlock(&journal->lock);
}

/* Until it is time for a pass, or one is wanted. Returns whether the writer shall stop. */
static bool await_pass(struct journal *journal, int64_t next_ns)
{
    if (journal->config.options->db && !journal->ship)
        nanosleep(&(struct timespec){.tv_nsec = GAP_NS}, NULL);
    const struct timespec until = {.tv_sec = next_ns / 1000000000, .tv_nsec = next_ns % 1000000000};
    int error = 0;
    pthread_mutex_lock(&journal->lock);
    while (!journal->stop && !atomic_load(&journal->wanted) && !error)
        error = pthread_cond_timedwait(&journal->wake, &journal->lock, &until);
    atomic_store(&journal->wanted, false);
    bool stop = journal->stop;
    pthread_mutex_unlock(&journal->lock);
    return stop;
}

static void *write_journal(void *arg)
{
    struct journal *journal = arg;
    int64_t next_ns = device_clock_ns() + PASS_NS;
    pthread_setname_np(pthread_self(), "journal");
    /* lower priority than the run, where no time is promised; a refusal does not matter */
    if (!journal->config.options->db)
        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WRITER_NICE);
    for (bool stop = false; !stop;) {
        size_t entries;
        stop = await_pass(journal, next_ns);
        int64_t begin_ns = device_clock_ns(), known_ns = device_now(journal->config.world);
        read_logs(journal, &entries);
        if (journal->ship)
            journal_send_records(journal);
        else
            trace_writer_commit(&journal->trace);
        journal_publish(journal);
        int64_t end_ns = device_clock_ns();
        next_ns = begin_ns + PASS_NS;
        if (!stop && journal->replay)
            journal_replay_along(journal, known_ns, next_ns); /* read was what was logged by then */
        trace_writer_flush(&journal->trace);
        set_pace(journal, entries, end_ns - begin_ns);
    }
    return NULL;
}

enum status journal_start_writer(struct journal *journal, struct diag *diag)
{
    int failed = quiet_thread_start(&journal->writer, write_journal, journal);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed));
    journal->started = true;
    return STATUS_OK;
}
