/* SPDX-License-Identifier: Apache-2.0 */
/* tape.c - see tape.h. Chunks are mapped memory of the file; a thread takes the next one under the lock. */
#include "tape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device_times.h"
#include "launched.h"
#include "ops.h"
#include "threads.h"
#include "touch.h"
#include "unseen.h"
#include "words.h"

enum {
    KNOWN = 64,
    ASKED = 128,
    ITEM_MAX = sizeof(struct recording_item) + 8 * RECORDING_MAX_WORDS
};

/* Found in the program's own TLS, without a call. */
static __thread struct tape {
    struct recording_chunk *chunk;
    uint32_t thread;               /* from 1 on; 0: none yet */
    uint64_t chunks, items, quiet; /* items that say of locks alone */
    int depth;
    bool broken;                    /* no chunk could be had */
    uint32_t where, told;           /* the line that calls come from, and that of the last item */
    struct tape_place known[KNOWN]; /* of other threads, by their numbers, but by locks */
    struct {
        uint64_t object, version; /* of a stream: the items of the thread up to the answer */
    } noes[ASKED];                /* answers that were no */
} tape __attribute__((tls_model("initial-exec")));

static struct {
    atomic_flag lock; /* no mutex: those are recorded */
    int fd;           /* -1: none yet */
    pid_t process;    /* that made it: a child by vfork has this memory, too */
    bool failed;
    off_t end;
    atomic_uint threads;
    atomic_ullong numbers;
    pthread_key_t at_exit;
} file = {.lock = ATOMIC_FLAG_INIT, .fd = -1};
static const char *path; /* NULL: this process is not recorded */

/* How often an event of this place has been recorded, and events by graphs. */
static atomic_ullong versions[4096], graph_launches;

static int64_t tape_now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void tape_fail(const char *what)
{
    char text[PATH_MAX + 200];
    const int length =
        snprintf(text, sizeof text, "swsim record: %s.%d: %s: %s; nothing more is recorded\n", path,
                 (int)getpid(), what, words_own_words_of(errno));
    if (!file.failed && write(STDERR_FILENO, text, (size_t)length) < 0)
        file.failed = true;
    if (!file.failed) {
        /* For swsim record, which cannot tell a recording that was cut from one of a process that was killed. */
        char name[PATH_MAX];
        const char *slash = strrchr(path, '/');
        snprintf(name, sizeof name, "%.*s/" RECORDING_CUT, slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    file.failed = true;
}

/* A process that has become another program has a file already. */
static int make_file(void)
{
    enum { PROGRAMS = 1000 };
    char name[PATH_MAX];
    int fd;
    snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
    for (int i = 2; (fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 &&
                    errno == EEXIST && i < PROGRAMS;
         i++)
        snprintf(name, sizeof name, "%s.%d.%d", path, (int)getpid(), i);
    return fd;
}

/* The lock is held. Far from the numbers that programs expect their files to have. */
static void tape_open_file(void)
{
    const int fd = make_file();
    file.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 400);
    file.process = getpid();
    if (fd >= 0 && file.fd >= 0)
        close(fd);
    else if (fd >= 0)
        file.fd = fd;
    else
        tape_fail("cannot be made");
}

/* The lock is held. NULL: there is none. */
static struct recording_chunk *map_chunk(void)
{
    if (file.fd < 0 && !file.failed)
        tape_open_file();
    if (file.failed)
        return NULL;
    errno = posix_fallocate(file.fd, file.end, RECORDING_CHUNK);
    if (errno) {
        tape_fail("cannot be written");
        return NULL;
    }
    void *chunk = mmap(NULL, RECORDING_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       file.fd, file.end);
    if (chunk == MAP_FAILED) {
        tape_fail("cannot be mapped");
        return NULL;
    }
    file.end += RECORDING_CHUNK;
    return chunk;
}

static bool next_chunk(void)
{
    if (tape.chunk)
        munmap(tape.chunk, RECORDING_CHUNK);
    while (atomic_flag_test_and_set(&file.lock))
        sched_yield();
    tape.chunk = map_chunk();
    atomic_flag_clear(&file.lock);
    tape.broken = !tape.chunk;
    if (tape.broken)
        return false;
    *tape.chunk = (struct recording_chunk){.magic = RECORDING_MAGIC,
                                           .version = RECORDING_VERSION,
                                           .thread = tape.thread,
                                           .number = tape.chunks++};
    return true;
}

static struct recording_item *write_item(enum recording_kind kind, int64_t at_ns, int64_t took_ns,
                                         size_t count, const uint64_t *words)
{
    const size_t bytes = sizeof(struct recording_item) + 8 * count;
    if (tape.chunk->used + bytes > RECORDING_CHUNK - sizeof *tape.chunk && !next_chunk())
        return NULL;
    char *at = (char *)(tape.chunk + 1) + tape.chunk->used;
    struct recording_item *item = (struct recording_item *)(void *)at;
    item->kind = (uint16_t)kind;
    item->words = (uint16_t)count;
    item->took_ns = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    item->at_ns = at_ns;
    memcpy(item->word, words, 8 * count);
    tape.items++;
    tape.quiet += kind == RECORDING_LOCK || kind == RECORDING_UNLOCK || kind == RECORDING_SIGNAL;
    __atomic_store_n(&tape.chunk->used, tape.chunk->used + bytes, __ATOMIC_RELEASE);
    return item;
}

static void write_after(int64_t now, const struct tape_place *place)
{
    if (place->count > 0)
        write_item(RECORDING_AFTER, now, 0,
                   WORDS(place->thread, place->count, (uint64_t)place->way, place->object));
}

/* The first item of a thread. */
static bool tape_begin_thread(void)
{
    if (tape.broken || !path)
        return false;
    tape.thread = 1 + atomic_fetch_add(&file.threads, 1);
    if (!next_chunk())
        return false;
    pthread_setspecific(file.at_exit, &tape);
    const int64_t now = tape_now_ns(CLOCK_MONOTONIC);
    if (tape.thread == 1) {
        const struct launched job = launched_as();
        if (job.odd) {
            char text[200];
            const int length =
                snprintf(text, sizeof text,
                         "swsim record: environment variable %s is no number that a launcher "
                         "sets; process %d is recorded without a rank\n",
                         job.odd, (int)getpid());
            (void)!write(STDERR_FILENO, text, (size_t)length);
        }
        write_item(RECORDING_PROCESS, now, 0,
                   WORDS((uint64_t)getpid(), job.rank, job.size,
                         (uint64_t)tape_now_ns(CLOCK_REALTIME), touch_on()));
    }
    write_item(RECORDING_THREAD, now, 0, WORDS((uint64_t)syscall(SYS_gettid)));
    for (int i = 0; i < KNOWN; i++)
        write_after(now, &tape.known[i]);
    return true;
}

static bool ready(void)
{
    return tape.chunk || tape_begin_thread();
}

void tape_where(uint32_t text)
{
    tape.where = text;
}

/* What stands in front of the item of a call. */
static void tell_where(int64_t now)
{
    threads_tell_locks();
    if (tape.where != tape.told)
        write_item(RECORDING_WHERE, now, 0, WORDS(ops_word(tape.where)));
    tape.told = tape.where;
}

struct tape_call tape_begin(enum recording_kind kind)
{
    struct tape_call call = {.outer = tape.depth++ == 0 && path && !threads_are_internal()};
    if (call.outer) {
        ops_before(kind);
        call.number = device_times_begin(kind);
        call.at_ns = tape_now_ns(CLOCK_MONOTONIC);
    }
    return call;
}

void tape_drop(const struct tape_call *call)
{
    device_times_end(call->number);
    tape.depth--;
}

static atomic_ullong *tape_versions_of(uint64_t event)
{
    return &versions[(event * 0x9e3779b97f4a7c15U) >> 52];
}

/* Answers that were no are old for an event that is recorded anew, and one that was yes is no longer no. */
static void tape_count_version(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (kind == RECORDING_RECORD || kind == RECORDING_EVENT_END)
        atomic_fetch_add(tape_versions_of(words[0]), 1);
    if (kind == RECORDING_GRAPH_LAUNCH)
        atomic_fetch_add(&graph_launches, 1);
    for (size_t i = 1; kind == RECORDING_QUERY_EVENT && words[0] && i < count; i++)
        atomic_fetch_add(tape_versions_of(words[i]), 1);
}

void tape_end(const struct tape_call *call, enum recording_kind kind, size_t count,
              const uint64_t *words)
{
    const int64_t took_ns = call->outer ? tape_now_ns(CLOCK_MONOTONIC) - call->at_ns : 0;
    device_times_end(call->number);
    if (call->outer && ready()) {
        tell_where(call->at_ns);
        device_times_put(kind, call->number);
        write_item(kind, call->at_ns, took_ns, count, words);
    }
    tape_count_version(kind, count, words);
    tape.depth--;
}

static uint64_t tape_version(enum recording_kind kind, uint64_t object)
{
    return kind == RECORDING_QUERY_EVENT
               ? atomic_load(tape_versions_of(object)) + atomic_load(&graph_launches)
               : tape.items - tape.quiet;
}

void tape_end_no(const struct tape_call *call, enum recording_kind kind, size_t count,
                 const uint64_t *words)
{
    const size_t place = words[1] / 16 % ASKED;
    const bool is_told = tape.noes[place].object == words[1] &&
                         tape.noes[place].version == tape_version(kind, words[1]);
    if (!call->outer || is_told) {
        tape_drop(call);
        return;
    }
    tape_end(call, kind, count, words);
    tape.noes[place].object = words[1];
    tape.noes[place].version = tape_version(kind, words[1]);
}

struct recording_item *tape_open(const struct tape_call *call, enum recording_kind kind,
                                 size_t count, const uint64_t *words)
{
    if (!call->outer || !ready())
        return NULL;
    tell_where(call->at_ns);
    device_times_put(kind, call->number);
    return write_item(kind, call->at_ns, UINT32_MAX, count, words);
}

void tape_close(const struct tape_call *call, struct recording_item *item, bool good)
{
    const int64_t took_ns = item ? tape_now_ns(CLOCK_MONOTONIC) - call->at_ns : 0;
    if (item)
        item->took_ns = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    if (item && !good)
        item->kind = RECORDING_NONE;
    device_times_end(call->number);
    tape.depth--;
}

void tape_put(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (ready())
        write_item(kind, tape_now_ns(CLOCK_MONOTONIC), 0, count, words);
}

void tape_put_call(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (!ready())
        return;
    tell_where(tape_now_ns(CLOCK_MONOTONIC));
    write_item(kind, tape_now_ns(CLOCK_MONOTONIC), 0, count, words);
}

uint64_t tape_number(void)
{
    return atomic_fetch_add(&file.numbers, 1) + 1;
}

uint64_t tape_text(const char *text)
{
    const uint64_t number = tape_number();
    tape_text_of(number, text);
    return number;
}

void tape_text_of(uint64_t number, const char *text)
{
    uint64_t words[RECORDING_MAX_WORDS] = {number};
    const size_t most = sizeof words - 16, length = strlen(text);
    memcpy(words + 1, text, length < most ? length : most);
    tape_put(RECORDING_TEXT, 2 + (length < most ? length : most) / 8, words);
}

bool tape_on(void)
{
    return path != NULL;
}

bool tape_in_call(void)
{
    return tape.depth > 0;
}

struct tape_place tape_here(void)
{
    return (struct tape_place){.thread = tape.thread, .count = tape.items};
}

struct tape_place tape_unpack(unsigned long long packed)
{
    return (struct tape_place){.thread = (uint32_t)(packed >> 40),
                               .count = packed & ((UINT64_C(1) << 40) - 1)};
}

unsigned long long tape_pack(struct tape_place place)
{
    return (unsigned long long)place.thread << 40 | place.count;
}

/* A thread without calls writes it, too: others may learn of it from this one. What a lock tells is worth something by itself
   only where nothing else has told it. */
void tape_after(struct tape_place place)
{
    struct tape_place *known = &tape.known[place.thread % KNOWN];
    const bool by_lock = place.way == RECORDING_LOCKED;
    if (place.count == 0 || place.thread == tape.thread ||
        (known->thread == place.thread && known->count >= place.count))
        return;
    if (!by_lock)
        *known = place;
    if (tape.chunk || (by_lock && ready()))
        write_after(tape_now_ns(CLOCK_MONOTONIC), &place);
    else
        ready(); /* its first items are all that it knows */
}

/* ---- processes -------------------------------------------------------------------------------- */

/* The chunks stay those of the parent. */
static void begin_child(void)
{
    if (tape.chunk)
        munmap(tape.chunk, RECORDING_CHUNK);
    memset(&tape, 0, sizeof tape);
    if (file.fd >= 0)
        close(file.fd);
    atomic_flag_clear(&file.lock);
    file.fd = -1;
    file.failed = false;
    file.end = 0;
    atomic_store(&file.threads, 0);
    threads_begin_child();
    ops_begin_child();
}

static void tape_end_thread(void *at)
{
    struct tape *mine = at;
    if (mine->chunk)
        munmap(mine->chunk, RECORDING_CHUNK);
    mine->chunk = NULL;
    mine->broken = true;
}

/* Behind what other parts of the recorder write at the end. */
__attribute__((destructor(101))) static void end_process(void)
{
    if (file.fd < 0 || file.failed || file.process != getpid())
        return;
    unseen_note();
    if (!file.failed)
        tape_put(RECORDING_END, 0, &(uint64_t){0});
}

/* Those who leave without exit's handlers have ended by themselves, too. */
#define EXIT(name)                                                                                 \
    void name(int code);                                                                           \
    void name(int code)                                                                            \
    {                                                                                              \
        device_times_close();                                                                      \
        end_process();                                                                             \
        syscall(SYS_exit_group, code);                                                             \
        __builtin_unreachable();                                                                   \
    }
EXIT(_exit)
EXIT(_Exit)

__attribute__((constructor)) static void begin_process(void)
{
    const char *wanted = getenv("SWSIM_RECORD");
    if (!wanted || !*wanted || pthread_key_create(&file.at_exit, tape_end_thread))
        return;
    pthread_atfork(NULL, NULL, begin_child);
    at_quick_exit(end_process);
    path = strdup(wanted);
}
