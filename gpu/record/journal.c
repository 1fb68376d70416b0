/*
 * journal.c - see journal.h: logs and the thread that reads them.
 *
 * A log is a list of chunks with one producer and one consumer. The producer publishes an entry by
 * storing the chunk's `count`, a further chunk by storing `next`. The consumer reads entries in order
 * and keeps those with a stamp in `open` until the stamp is valid; a chunk that is full, read and
 * without open entries goes back to the pool.
 *
 * A pass: look how far each log has come, collect the device's stamps, read so far. Because of that
 * order the stamps of everything an entry says to be over are valid when it is read.
 */
#include "journal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace_writer.h"
#include "rank_report.h"

enum {
    CHUNK_ENTRIES = 256,
    REPLAY_STEPS = 1 << 20,     /* pending, about 75 MB: then the replay goes along with the run */
    REPLAY_SLICE = 1 << 16,     /* steps between two looks at whether to stop */
    REPLAY_LAG_NS = 1000000000, /* behind the clock, so that late steps are in their place */
    WRITER_NICE = 10,
    HOST_TOLERANCE_NS = 0,
    CUDA_TOLERANCE_NS = 50000 /* the device's clock is another one */
};

struct chunk {
    struct log_entry entries[CHUNK_ENTRIES];
    atomic_size_t count; /* published */
    _Atomic(struct chunk *) next;
    size_t read, open; /* of the consumer */
};

struct log {
    struct journal *journal;
    int thread;
    struct chunk *writing; /* of the producer; NULL: nothing yet */
    _Atomic(struct chunk *) first;
    struct chunk *reading; /* of the consumer */
};

/* An entry without a valid stamp yet. */
struct open_entry {
    const struct log_entry *entry;
    struct chunk *chunk; /* NULL: the entry is one of its own, from malloc */
    int64_t span;
    int thread;
    int64_t sequence; /* among the entries of the thread that have a stamp */
};

/* What one process sends another of its log: an entry, or what became of one with a stamp. */
enum record_kind { RECORD_ENTRY, RECORD_FINISHED, RECORD_STARTED };
struct log_record {
    int32_t what, thread, kind, op;
    int64_t sequence, iteration, begin_ns, at_ns, end_ns;
    int64_t number, start_ns, stamp_end_ns;
};
enum { SHIP_RECORDS = 256 };

struct journal {
    struct journal_config config;
    struct log *logs; /* [thread_count] */
    struct trace_writer trace;
    struct replay *replay; /* NULL: not wanted */
    struct open_entry *open;
    size_t open_count, open_cap;
    bool replay_memory;      /* the replay's memory ran out */
    int64_t *sequences;      /* [thread_count] */
    struct log_record *ship; /* [SHIP_RECORDS]: to be sent; NULL: everything stays here */
    size_t ship_count;
    int64_t shipped; /* finished operations sent */
    bool ship_failed;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;  /* the writer shall stop; the pool has grown */
    struct chunk *pool;
    size_t unread, unread_most; /* chunks given to producers that the writer is not through with */
    bool stop, no_memory;
    bool told;          /* config.failed has been called */
    enum status status; /* of the trace, copied for others to see */
    char *reason;
    pthread_t writer;
    bool started;
    _Atomic int64_t finished;
};

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

static void put_chunk(struct journal *journal, struct chunk *chunk)
{
    pthread_mutex_lock(&journal->lock);
    atomic_store(&chunk->next, journal->pool);
    journal->pool = chunk;
    pthread_mutex_unlock(&journal->lock);
}

/* The writer has read all of a chunk. */
static void count_read(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (journal->unread-- == chunk_limit(journal) + 1)
        pthread_cond_broadcast(&journal->wake);
    pthread_mutex_unlock(&journal->lock);
}

static void free_chunks(struct chunk *chunk)
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

/* ---- the writer: replay ---------------------------------------------------------------------- */

static void add_step(struct journal *journal, const struct replay_step *step)
{
    if (!replay_add(journal->replay, step))
        journal->replay_memory = true;
}

/* What the host alone decides has an exact time; of a push or a wait on the device only the call is
   known, and that it most likely took effect at its end. */
static void replay_host(struct journal *journal, int thread, const struct log_entry *entry)
{
    static const enum replay_kind kinds[] = {[LOG_OP] = REPLAY_OP,
                                             [LOG_TAKE] = REPLAY_TAKE,
                                             [LOG_ENQUEUE] = REPLAY_ENQUEUE,
                                             [LOG_RETIRE] = REPLAY_RETIRE,
                                             [LOG_CALL] = REPLAY_OP};
    const struct program *p = journal->config.program;
    bool is_op = entry->kind == LOG_OP || entry->kind == LOG_CALL;
    bool pushed = is_op && entry->stamp.number >= 0;
    bool marked = pushed && entry->since.number >= 0;
    enum op_kind op = is_op ? p->ops[entry->op].kind : OP_TAKE;
    bool call = pushed || op == OP_SYNC || op == OP_HOST;
    add_step(journal, &(struct replay_step){
                          .kind = kinds[entry->kind],
                          .agent = program_thread_agent(p, thread),
                          .op = is_op ? entry->op : -1,
                          .task = entry->kind == LOG_TAKE ? entry->op : -1,
                          .iteration = entry->iteration,
                          .lo_ns = call ? entry->begin_ns : entry->at_ns,
                          .hi_ns = entry->at_ns,
                          .key_ns = entry->at_ns,
                          .number = pushed ? entry->stamp.number : -1,
                          .span = marked ? entry->stamp.number - entry->since.number : 0,
                      });
}

/* Records, waits and allocations are no steps of a stream in the machine. The start of an operation may be
   taken later than it was, as long as it runs: no other agent can see the difference. */
static void replay_device(struct journal *journal, const struct log_entry *entry)
{
    const struct program *p = journal->config.program;
    const struct op *op = &p->ops[entry->op];
    struct replay_step step = {.kind = REPLAY_START,
                               .agent = program_stream_agent(p, op->stream),
                               .op = entry->op,
                               .task = -1,
                               .iteration = entry->iteration,
                               .lo_ns = log_started_ns(entry),
                               .hi_ns = entry->stamp.end_ns,
                               .key_ns = log_started_ns(entry),
                               .number = entry->stamp.number};
    if (op->kind == OP_RECORD || op->kind == OP_WAIT || op->kind == OP_ALLOC)
        return;
    add_step(journal, &step);
    step.kind = REPLAY_FINISH;
    step.lo_ns = step.key_ns = step.hi_ns;
    add_step(journal, &step);
}

/* What the device never finished may have started, and others may have finished because it had. Some
   devices say when it started; then that is a step like any other. */
static void replay_unfinished(struct journal *journal)
{
    const struct program *p = journal->config.program;
    for (size_t i = 0; i < journal->open_count; i++) {
        const struct log_entry *entry = journal->open[i].entry;
        const struct op *op = &p->ops[entry->op];
        if (op->kind == OP_RECORD || op->kind == OP_WAIT || op->kind == OP_ALLOC)
            continue;
        bool marked = entry->since.number >= 0;
        bool started = marked ? entry->since.valid : entry->stamp.started;
        if (!started && journal->config.options->device == DEVICE_KIND_HOST)
            continue; /* this device would have said so */
        add_step(journal,
                 &(struct replay_step){.kind = REPLAY_START,
                                       .agent = program_stream_agent(p, op->stream),
                                       .op = entry->op,
                                       .task = -1,
                                       .iteration = entry->iteration,
                                       .lo_ns = started ? log_started_ns(entry) : entry->begin_ns,
                                       .hi_ns = INT64_MAX,
                                       .key_ns = started ? log_started_ns(entry) : INT64_MAX,
                                       .number = entry->stamp.number,
                                       .optional = !started});
    }
}

static void on_step(void *arg, const struct replay_step *step, const char *text)
{
    (void)text;
    trace_writer_step(arg, step);
}

/* ---- the writer: to another process ----------------------------------------------------------- */

static void send_records(struct journal *journal)
{
    if (journal->ship_count == 0)
        return;
    if (!rank_report_send(journal->config.rendezvous, REPORT_LOG, 0, journal->ship,
                          journal->ship_count * sizeof *journal->ship))
        journal->ship_failed = true;
    journal->ship_count = 0;
}

static void ship(struct journal *journal, const struct log_record *record)
{
    if (journal->ship_count == SHIP_RECORDS)
        send_records(journal);
    journal->ship[journal->ship_count++] = *record;
}

static void ship_entry(struct journal *journal, int thread, int64_t sequence,
                       const struct log_entry *entry)
{
    ship(journal,
         &(struct log_record){.what = RECORD_ENTRY,
                              .thread = thread,
                              .kind = (int32_t)entry->kind,
                              .op = entry->op,
                              .sequence = sequence,
                              .iteration = entry->iteration,
                              .begin_ns = entry->begin_ns,
                              .at_ns = entry->at_ns,
                              .end_ns = entry->end_ns,
                              .number = entry->stamp.number,
                              .start_ns = entry->kind == LOG_RETIRE ? entry->stamp.start_ns : 0});
}

static void ship_stamp(struct journal *journal, const struct open_entry *open,
                       enum record_kind what)
{
    ship(journal, &(struct log_record){
                      .what = (int32_t)what,
                      .thread = open->thread,
                      .sequence = open->sequence,
                      .start_ns = open->entry->stamp.start_ns,
                      .stamp_end_ns = what == RECORD_FINISHED ? open->entry->stamp.end_ns : 0});
}

/* ---- the writer: a pass ---------------------------------------------------------------------- */

/* Keep an entry until its stamp is valid. */
static void keep_open(struct journal *journal, const struct open_entry *kept)
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

/* An entry goes into the books; returns its span. */
static int64_t enter(struct journal *journal, int thread, const struct log_entry *entry)
{
    int64_t span = trace_writer_host(&journal->trace, thread, entry);
    if (journal->replay)
        replay_host(journal, thread, entry);
    return span;
}

static void enter_end(struct journal *journal, const struct open_entry *open)
{
    trace_writer_device(&journal->trace, open->entry, open->span);
    if (journal->replay)
        replay_device(journal, open->entry);
}

static void read_entry(struct journal *journal, struct log *log, struct chunk *chunk)
{
    const struct log_entry *entry = &chunk->entries[chunk->read++];
    bool stamped = entry->stamp.number >= 0;
    struct open_entry open = {.entry = entry, .chunk = chunk, .span = -1, .thread = log->thread};
    open.sequence = journal->sequences[log->thread];
    if (journal->ship)
        ship_entry(journal, log->thread, open.sequence, entry);
    else
        open.span = enter(journal, log->thread, entry);
    journal->sequences[log->thread] += stamped;
    if (stamped)
        keep_open(journal, &open);
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
            count_read(journal);
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
        put_chunk(journal, log->reading);
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
            ship_stamp(journal, open, RECORD_FINISHED);
        else
            enter_end(journal, open);
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
        send_records(journal);
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

/* The writer's last word: of what is still open, what has started. */
static void ship_started(struct journal *journal)
{
    for (size_t i = 0; journal->ship && i < journal->open_count; i++)
        if (journal->open[i].entry->stamp.started)
            ship_stamp(journal, &journal->open[i], RECORD_STARTED);
    if (journal->ship)
        send_records(journal);
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

static struct journal *journal_new(const struct journal_config *config, struct diag *diag)
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

static enum status open_books(struct journal *journal, const char *device, int64_t start_ns,
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
        status = open_books(journal, device_description(config->devices[0]),
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
        ship_started(journal);
    }
    journal->started = false;
}

/* ---- one that collects ----------------------------------------------------------------------- */

enum status journal_open_collecting(const struct program *program,
                                    const struct runtime_options *options, const char *device,
                                    int64_t start_ns, int64_t apart_ns, struct journal **out,
                                    struct diag *diag)
{
    struct journal *journal = journal_new(
        &(struct journal_config){.program = program, .options = options, .apart_ns = apart_ns},
        diag);
    if (!journal)
        return STATUS_SYSTEM;
    enum status status = open_books(journal, device, start_ns, diag);
    if (status) {
        journal_close(journal);
        return status;
    }
    *out = journal;
    return STATUS_OK;
}

/* An entry outlives the mail it came in when it has a stamp. */
static void take_entry(struct journal *journal, const struct log_record *record)
{
    struct log_entry entry = {.kind = (enum log_kind)record->kind,
                              .op = record->op,
                              .iteration = record->iteration,
                              .begin_ns = record->begin_ns,
                              .at_ns = record->at_ns,
                              .end_ns = record->end_ns,
                              .stamp = {.number = record->number, .start_ns = record->start_ns},
                              .since = {.number = -1}};
    struct open_entry open = {.thread = record->thread, .sequence = record->sequence};
    open.span = enter(journal, record->thread, &entry);
    if (record->number < 0)
        return;
    struct log_entry *kept = malloc(sizeof *kept);
    if (!kept) {
        journal->no_memory = true;
        return;
    }
    *kept = entry;
    open.entry = kept;
    keep_open(journal, &open);
}

static void take_stamp(struct journal *journal, const struct log_record *record)
{
    for (size_t i = 0; i < journal->open_count; i++) {
        struct open_entry *open = &journal->open[i];
        if (open->thread != record->thread || open->sequence != record->sequence)
            continue;
        struct log_entry *entry = (struct log_entry *)(uintptr_t)open->entry; /* our own */
        entry->stamp.start_ns = record->start_ns;
        entry->stamp.end_ns = record->stamp_end_ns;
        entry->stamp.started = true;
        if (record->what == RECORD_STARTED)
            return;
        enter_end(journal, open);
        free(entry);
        memmove(open, open + 1, (--journal->open_count - i) * sizeof *open);
        return;
    }
}

/* What a process sent is from the same program, but not taken on trust where it is an index. */
static bool makes_sense(const struct journal *journal, const struct log_record *record)
{
    const struct program *p = journal->config.program;
    if (record->thread < 0 || record->thread >= p->thread_count)
        return false;
    if (record->what != RECORD_ENTRY)
        return true;
    int64_t ops = record->kind == LOG_OP     ? (int64_t)p->op_count
                  : record->kind == LOG_TAKE ? p->tasks
                                             : 0;
    return record->kind >= LOG_OP && record->kind <= LOG_RETIRE &&
           (record->op < 0 ? ops == 0 : record->op < ops);
}

void journal_take(struct journal *journal, const void *records, size_t bytes)
{
    struct log_record record;
    for (size_t at = 0; at + sizeof record <= bytes; at += sizeof record) {
        memcpy(&record, (const char *)records + at, sizeof record);
        if (!makes_sense(journal, &record))
            continue;
        if (record.what == RECORD_ENTRY)
            take_entry(journal, &record);
        else
            take_stamp(journal, &record);
    }
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
        free_chunks(log->reading ? log->reading : atomic_load(&log->first));
    }
    free_chunks(journal->pool);
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

/* ---- what came of it ------------------------------------------------------------------------- */

static bool copy_violations(const struct journal *journal, struct runtime_result *result)
{
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        const char *text = replay_violation(journal->replay, (enum property)property);
        result->violations[property] = text ? arena_strdup(&result->arena, text) : NULL;
        if (text && !result->violations[property])
            return false;
    }
    return true;
}

/* The blocked agents, in the words of the machine. */
static bool tell_blocked(const struct journal *journal, struct runtime_result *result)
{
    const struct program *p = journal->config.program;
    char name[160], wait[320];
    result->blocked = ARENA_ARRAY(&result->arena, (size_t)p->agent_count, struct runtime_blocked);
    if (!result->blocked)
        return false;
    for (int agent = 0; agent < p->agent_count; agent++) {
        struct wait why;
        machine_why(p, replay_state(journal->replay), agent, &why);
        if (why.cause == CAUSE_NONE || why.cause == CAUSE_EMPTY)
            continue;
        machine_describe_wait(p, replay_state(journal->replay), agent, wait, sizeof wait);
        program_agent_name(p, agent, name, sizeof name);
        struct runtime_blocked *blocked = &result->blocked[result->blocked_count++];
        *blocked =
            (struct runtime_blocked){p->agents[agent].rank, arena_strdup(&result->arena, name),
                                     arena_strdup(&result->arena, wait)};
        if (!blocked->agent || !blocked->waits_for)
            return false;
    }
    return true;
}

static enum status judge(struct journal *journal, const struct journal_end *end,
                         struct runtime_result *result, struct diag *diag)
{
    const struct program *p = journal->config.program;
    const struct runtime_options *options = journal->config.options;
    for (int rank = 0; rank < p->ranks && p->tasks; rank++)
        if (end->ends[rank] != p->ends[rank])
            replay_end_data(journal->replay, rank, end->ends[rank]);
    replay_unfinished(journal);
    while (replay_advance(journal->replay, INT64_MAX, REPLAY_SLICE))
        if (options->stop && atomic_load(options->stop) == RUNTIME_ABORT) {
            diag_note(diag, "interrupted before the replay was through");
            return STATUS_OK;
        }
    if (journal->replay_memory)
        return diag_no_memory(diag);
    bool legal = replay_finish(journal->replay, end->complete);
    bool torn =
        !end->complete && !result->hung; /* some ends of what was under way are not logged */
    result->legal = legal ? ANSWER_YES : torn ? ANSWER_UNKNOWN : ANSWER_NO;
    result->steps = replay_taken(journal->replay);
    if (!copy_violations(journal, result))
        return diag_no_memory(diag);
    if (result->legal == ANSWER_NO)
        return diag_error(diag, STATUS_VIOLATED, "the run was not legal: %s",
                          replay_reason(journal->replay));
    if (!result->hung)
        return STATUS_OK;
    if (!replay_settle(journal->replay))
        diag_note(diag,
                  "the machine could go on from here: the device, or the timeout, is to blame");
    return tell_blocked(journal, result) ? STATUS_OK : diag_no_memory(diag);
}

enum status journal_end(struct journal *journal, const struct journal_end *end,
                        struct runtime_result *result, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (journal->ship)
        return STATUS_OK; /* the figures are made where the log went */
    if (!trace_writer_figures(&journal->trace, result))
        status = diag_no_memory(diag);
    if (journal->replay && !status && !end->torn)
        status = judge(journal, end, result, diag);
    bool finished = end->complete && !end->interrupted;
    result->log_bytes = (int64_t)(journal->unread_most * sizeof(struct chunk));
    enum status stored =
        trace_writer_end(&journal->trace, finished ? RUN_FINISHED : RUN_INTERRUPTED,
                         end->iterations, end->duration_ns, diag);
    return stored ? stored : status;
}
