/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - streams, events and waits of the device that is not there. See none.h. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "none.h"

enum none_entry_kind {
    NONE_KERNEL,
    NONE_BOX,
    NONE_RECORD,
    NONE_WAIT,
    NONE_JOIN, /* waits for the first `version` entries of another stream */
    NONE_WORK,
    NONE_HOST
};

struct none_entry {
    enum none_entry_kind kind;
    struct none_event *event; /* held */
    struct none_stream *other;
    uint64_t version;
    struct none_box box;
    void *staged; /* the source's bytes, freed behind the copy */
    struct none_work work;
    void *arg; /* in a queue the instance */
    void (*function)(void *);
};

/* An event of a capture: behind which node of it the event is. */
struct none_node {
    struct none_entry entry;
};

struct none_graph {
    int references;
    uint64_t id;
    bool over, broken;
    int device;
    struct none_stream *origin;
    struct none_node **nodes;
    size_t count, cap;
};

struct none_event {
    int references;
    bool timed;
    uint64_t records, done;
    struct none_stream *stream; /* of the last record; NULL: none */
    uint64_t position;          /* the record's, among the stream's entries */
    int64_t done_ns;
    struct none_graph *capture; /* of the last record; held; NULL: none */
    void *node;                 /* that the record comes behind; NULL: none */
};

/* What a wait of the host for the first `at` entries of a stream implies. */
struct none_implied {
    uint64_t at, position;
    struct none_stream *other;
};

struct none_stream {
    struct none_stream *next; /* in the list of all */
    int device, priority;
    bool blocking, legacy, closed, busy, moving; /* moving: the clerk executes its first entry */
    uint64_t number;
    struct none_entry *entries; /* a ring */
    size_t first, count, cap;
    uint64_t pushed, done, known; /* known: a wait of the host implies that so many are done */
    int64_t done_ns;              /* the last entry */
    struct none_implied *implied;
    size_t implied_first, implied_count, implied_cap;
    struct none_graph *capture; /* held */
    void *node;                 /* the last one of this stream in the capture */
    struct none_stream *next_busy;
};

/*
 * Streams that are captured, and the graphs that become of them. See none.h.
 *
 * A launched graph has its nodes in the order of the capture, one behind the other: one of the orders that CUDA allows.
 */

static uint64_t captures; /* so far; by the lock */
static struct none_stream *captured[64];

static int none_append_locked(struct none_stream *stream, struct none_entry *entry);

struct none_graph *none_graph_new(void)
{
    struct none_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->references = 1;
    return graph;
}

void none_graph_keep(struct none_graph *graph)
{
    __atomic_add_fetch(&graph->references, 1, __ATOMIC_RELAXED);
}

void none_graph_release(struct none_graph *graph)
{
    if (__atomic_sub_fetch(&graph->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < graph->count; i++)
        free(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
}

static void set_captured(struct none_stream *stream, struct none_graph *graph)
{
    const size_t most = sizeof captured / sizeof *captured;
    size_t place = most;
    for (size_t i = 0; i < most; i++)
        if (captured[i] == (graph ? NULL : stream))
            place = i;
    if (place == most)
        none_missing("a capture of more than 64 streams", "a larger table of them");
    captured[place] = graph ? stream : NULL;
    if (graph)
        none_graph_keep(graph);
    else
        none_graph_release(stream->capture);
    stream->capture = graph;
    stream->node = NULL;
}

int none_capture_begin(const void *handle, struct none_graph *into, int mode)
{
    (void)mode;
    if ((uintptr_t)handle <= 2)
        return NONE_CAPTURE_IMPLICIT;
    struct none_graph *graph = into ? into : none_graph_new();
    if (!graph)
        return NONE_NO_MEMORY;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    const int result = stream->capture ? NONE_ILLEGAL_STATE : NONE_OK;
    if (result == NONE_OK) {
        graph->id = ++captures;
        graph->origin = stream;
        graph->device = stream->device;
        graph->over = graph->broken = false;
        set_captured(stream, graph);
    }
    if (!into)
        none_graph_release(graph);
    none_unlock();
    return result;
}

/* A stream that joined and does not end in front of the end of the first stream is not looked for: programs that forget
   it are told by verify. */
int none_capture_end(const void *handle, struct none_graph **out)
{
    *out = NULL;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    struct none_graph *graph = stream->capture;
    int result = graph && graph->origin == stream ? NONE_OK : NONE_ILLEGAL_STATE;
    if (result == NONE_OK) {
        none_graph_keep(graph);
        for (size_t i = 0; i < sizeof captured / sizeof *captured; i++)
            if (captured[i] && captured[i]->capture == graph)
                set_captured(captured[i], NULL);
        graph->over = true;
        if (graph->broken)
            result = NONE_CAPTURE_INVALIDATED;
    }
    if (result == NONE_OK)
        *out = graph;
    none_unlock();
    return result;
}

int none_capture_state(const void *handle, uint64_t *id, struct none_graph **graph,
                       void *const **nodes, size_t *count)
{
    if (!none_lock())
        return 0;
    struct none_stream *stream = none_stream_of_locked(handle);
    const struct none_graph *capture = stream->capture;
    *id = capture ? capture->id : 0;
    *graph = stream->capture;
    *nodes = &stream->node;
    *count = stream->node != NULL;
    none_unlock();
    return capture ? 1 + capture->broken : 0;
}

static int none_graph_add_locked(struct none_stream *stream, const struct none_entry *entry)
{
    struct none_graph *graph = stream->capture;
    struct none_node *node = malloc(sizeof *node);
    if (graph->count == graph->cap) {
        const size_t cap = 2 * graph->cap + 16;
        struct none_node **grown = realloc(graph->nodes, cap * sizeof(struct none_node *));
        if (!grown)
            none_missing("a graph", "there is no memory");
        graph->nodes = grown;
        graph->cap = cap;
    }
    if (!node)
        none_missing("a graph", "there is no memory");
    node->entry = *entry;
    graph->nodes[graph->count++] = node;
    stream->node = node;
    return NONE_OK;
}

static int none_graph_join_locked(struct none_stream *stream, struct none_event *event)
{
    if (event->capture->over)
        return NONE_CAPTURE_ISOLATION;
    if (stream->capture && stream->capture != event->capture)
        return NONE_CAPTURE_ISOLATION;
    if (!stream->capture)
        set_captured(stream, event->capture);
    if (!stream->node)
        stream->node = event->node;
    return NONE_OK;
}

/* What a call that waits does to captures: the error, or NONE_OK. */
static int none_capture_forbids_locked(const struct none_stream *stream)
{
    if (stream && !stream->capture)
        return NONE_OK;
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++)
        if (captured[i] && (!stream || captured[i] == stream)) {
            captured[i]->capture->broken = true;
            return NONE_CAPTURE_FORBIDS;
        }
    return NONE_OK;
}

int none_graph_launch(struct none_graph *graph, const void *handle)
{
    int result = NONE_OK;
    if (!graph)
        return NONE_INVALID_VALUE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    for (size_t i = 0; i < graph->count && result == NONE_OK; i++) {
        struct none_entry entry = graph->nodes[i]->entry;
        if (entry.kind == NONE_RECORD) { /* external: this launch's own */
            entry.version = ++entry.event->records;
            entry.event->stream = stream;
            entry.event->position = stream->pushed + 1;
        }
        if (entry.kind == NONE_WAIT && entry.event->records == 0)
            continue;
        if (entry.kind == NONE_WAIT)
            entry = (struct none_entry){
                .kind = NONE_JOIN, .other = entry.event->stream, .version = entry.event->position};
        if (entry.event)
            entry.event->references++;
        if (entry.kind == NONE_HOST)
            none_start_clerk_locked();
        result = none_append_locked(stream, &entry);
    }
    none_unlock();
    return result;
}

size_t none_graph_nodes(const struct none_graph *graph, void **out, size_t room)
{
    for (size_t i = 0; out && i < graph->count && i < room; i++)
        out[i] = graph->nodes[i];
    return graph->count;
}

int none_exchange_capture_mode(int mode)
{
    static __thread int own; /* global */
    const int before = own;
    own = mode;
    return before;
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry is done, or there is a new one */
    pid_t owner;            /* the process that has used the device; 0: none */
    struct none_stream *legacy[NONE_MOST_DEVICES];
    struct none_stream *all;  /* but for these */
    struct none_stream *busy; /* have entries */
    uint64_t numbers;
    bool has_clerk;
    bool (*pump)(void); /* NULL: none */
    uint64_t moves;     /* entries done so far */
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static __thread struct {
    int device;
    struct none_stream *own[NONE_MOST_DEVICES]; /* the default stream of the thread */
    const struct none_event *asked;             /* by the last call */
    int times;
} none_thread;

/* ---- the process ---------------------------------------------------------------------------------- */

void none_say(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "swsim: process %d: %s\n", (int)getpid(), text);
}

_Noreturn void none_missing(const char *function, const char *what)
{
    none_say("%s is not emulated by --device=none: %s; the recording ends here", function,
             what ? what : "what it does to streams and memory would have to be written");
    abort();
}

static int64_t none_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool none_lock(void)
{
    const pid_t own = getpid();
    pid_t none = 0;
    if (__atomic_load_n(&engine.owner, __ATOMIC_ACQUIRE) != own &&
        !__atomic_compare_exchange_n(&engine.owner, &none, own, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        none != own)
        return false;
    pthread_mutex_lock(&engine.lock);
    return true;
}

void none_lock_anyhow(void)
{
    pthread_mutex_lock(&engine.lock);
}

void none_unlock(void)
{
    pthread_mutex_unlock(&engine.lock);
}

/* The lock of a child is free, and what its parent has pushed is the parent's. */
static void none_begin_child(void)
{
    engine.has_clerk = false;
    none_unlock();
}

__attribute__((constructor)) static void none_begin(void)
{
    pthread_atfork(none_lock_anyhow, none_unlock, none_begin_child);
}

/* Woken by this process, and by the clock for what others do. */
static void pause_for_locked(int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&engine.changed, &engine.lock, &until);
}

void none_pause_locked(void)
{
    static __thread int64_t wait_ns;
    static __thread uint64_t moves;
    wait_ns = moves == engine.moves && wait_ns < 500000 ? 2 * wait_ns + 10000 : 10000;
    moves = engine.moves;
    pause_for_locked(wait_ns);
}

int none_device(void)
{
    return none_thread.device;
}

int none_set_device(int device)
{
    if (device < 0 || device >= none_devices())
        return NONE_INVALID_DEVICE;
    none_thread.device = device;
    return NONE_OK;
}

/* ---- streams -------------------------------------------------------------------------------------- */

static struct none_stream *none_stream_make_locked(bool blocking, int priority)
{
    struct none_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = none_thread.device;
    stream->blocking = blocking;
    stream->priority = priority;
    stream->number = ++engine.numbers;
    stream->next = engine.all;
    engine.all = stream;
    return stream;
}

struct none_stream *none_stream_new(bool blocking, int priority)
{
    if (!none_lock())
        return NULL;
    struct none_stream *stream = none_stream_make_locked(blocking, priority);
    none_unlock();
    return stream;
}

/* What is known of its entries outlives it: events may name it. */
void none_stream_close(struct none_stream *stream)
{
    if (!none_lock())
        return;
    stream->closed = true;
    none_unlock();
}

static struct none_stream *none_legacy_locked(int device)
{
    if (!engine.legacy[device]) {
        struct none_stream *stream = calloc(1, sizeof *stream);
        if (!stream)
            none_missing("a stream", "there is no memory");
        stream->device = device;
        stream->legacy = stream->blocking = true;
        stream->number = ++engine.numbers;
        engine.legacy[device] = stream;
    }
    return engine.legacy[device];
}

struct none_stream *none_stream_of_locked(const void *handle)
{
    if ((uintptr_t)handle <= 1)
        return none_legacy_locked(none_thread.device);
    if ((uintptr_t)handle > 2)
        return (struct none_stream *)(uintptr_t)handle;
    struct none_stream **own = &none_thread.own[none_thread.device];
    if (!*own)
        *own = none_stream_make_locked(true, 0);
    if (!*own)
        none_missing("a stream", "there is no memory");
    return *own;
}

int none_stream_priority(const struct none_stream *stream)
{
    return stream->priority;
}
bool none_stream_is_blocking(const struct none_stream *stream)
{
    return stream->blocking;
}
int none_stream_device(const struct none_stream *stream)
{
    return stream->device;
}
uint64_t none_stream_number(const struct none_stream *stream)
{
    return stream->number;
}
struct none_graph *none_stream_capture(const struct none_stream *stream)
{
    return stream->capture;
}

/* ---- what waits imply ------------------------------------------------------------------------------- */

static void imply_locked(struct none_stream *stream, struct none_stream *other, uint64_t position)
{
    if (stream->implied_first + stream->implied_count == stream->implied_cap) {
        memmove(stream->implied, stream->implied + stream->implied_first,
                stream->implied_count * sizeof *stream->implied);
        stream->implied_first = 0;
        if (2 * stream->implied_count >= stream->implied_cap) {
            const size_t cap = 2 * stream->implied_cap + 16;
            struct none_implied *grown = realloc(stream->implied, cap * sizeof *grown);
            if (!grown)
                none_missing("a wait", "there is no memory");
            stream->implied = grown;
            stream->implied_cap = cap;
        }
    }
    stream->implied[stream->implied_first + stream->implied_count++] =
        (struct none_implied){stream->pushed, position, other};
}

/* A wait of the host is over: so many entries of the stream are done, and all that they wait for. */
static void know_locked(struct none_stream *stream, uint64_t position)
{
    struct none_implied *todo = malloc(sizeof *todo);
    size_t count = 1, cap = 1;
    if (todo)
        todo[0] = (struct none_implied){0, position, stream};
    while (todo && count > 0) {
        const struct none_implied now = todo[--count];
        struct none_stream *at = now.other;
        at->known = now.position > at->known ? now.position : at->known;
        for (; at->implied_count > 0 && at->implied[at->implied_first].at <= at->known;
             at->implied_first++, at->implied_count--) {
            const struct none_implied *next = &at->implied[at->implied_first];
            if (next->position <= next->other->known)
                continue;
            if (count == cap) {
                struct none_implied *grown = realloc(todo, 2 * cap * sizeof *todo);
                if (!grown)
                    none_missing("a wait", "there is no memory");
                todo = grown;
                cap *= 2;
            }
            todo[count++] = *next;
        }
    }
    free(todo);
}

/* ---- the queues ------------------------------------------------------------------------------------- */

static void none_event_release_locked(struct none_event *event)
{
    if (event && --event->references == 0) {
        if (event->capture)
            none_graph_release(event->capture);
        free(event);
    }
}

static void none_box_do_locked(const struct none_box *box)
{
    for (size_t z = 0; z < box->depth; z++)
        for (size_t y = 0; y < box->height; y++) {
            char *to = box->to + z * box->to_slice + y * box->to_pitch;
            if (box->from)
                none_move_locked(to, box->from + z * box->from_slice + y * box->from_pitch,
                                 box->width);
            else if (box->value == 0)
                none_clear_locked(to, box->width);
            else
                for (size_t x = 0; x + (size_t)box->unit <= box->width; x += (size_t)box->unit)
                    memcpy(to + x, &box->value, (size_t)box->unit);
        }
}

/* False: later again. */
static bool none_entry_do_locked(struct none_stream *stream, struct none_entry *entry)
{
    switch (entry->kind) {
    case NONE_KERNEL: return true;
    case NONE_BOX:
        none_box_do_locked(&entry->box);
        free(entry->staged);
        return true;
    case NONE_RECORD:
        if (entry->event->done < entry->version) {
            entry->event->done = entry->version;
            entry->event->done_ns = none_now_ns();
        }
        none_event_release_locked(entry->event);
        return true;
    case NONE_WAIT: break; /* a graph's: its launch makes a join of it */
    case NONE_JOIN: return entry->other->done >= entry->version;
    case NONE_WORK: return entry->work.step(entry->arg);
    case NONE_HOST: stream->moving = true; return false; /* the clerk's */
    }
    return true;
}

static void none_pop_locked(struct none_stream *stream)
{
    assert(stream->count > 0 && stream->done < stream->pushed);
    stream->first = (stream->first + 1) % stream->cap;
    stream->count--;
    stream->done++;
    stream->done_ns = none_now_ns();
    engine.moves++;
}

static bool none_drive_one_locked(struct none_stream *stream)
{
    bool moved = false;
    while (stream->count > 0 && !stream->moving &&
           none_entry_do_locked(stream, &stream->entries[stream->first])) {
        none_pop_locked(stream);
        moved = true;
    }
    return moved;
}

/* True if there is more to do. */
static bool none_pump_locked(void)
{
    return engine.pump && engine.pump();
}

void none_set_pump_locked(bool (*pump)(void))
{
    engine.pump = pump;
}

static void none_drive_locked(void)
{
    bool moved, any = false;
    do {
        moved = false;
        for (struct none_stream *at = engine.busy; at; at = at->next_busy)
            moved |= none_drive_one_locked(at);
        any |= moved;
    } while (moved);
    for (struct none_stream **at = &engine.busy; *at;) {
        if ((*at)->count == 0) {
            (*at)->busy = false;
            *at = (*at)->next_busy;
        } else
            at = &(*at)->next_busy;
    }
    if (any)
        pthread_cond_broadcast(&engine.changed);
}

static struct none_stream *with_host_function_locked(void)
{
    for (struct none_stream *at = engine.busy; at; at = at->next_busy)
        if (at->moving)
            return at;
    return NULL;
}

/* Moves the queues on where nobody else does, and executes functions of the host. */
static void *none_clerk(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&engine.lock);
    for (;;) {
        none_drive_locked();
        const bool more = none_pump_locked();
        struct none_stream *stream = with_host_function_locked();
        if (stream) {
            const struct none_entry entry = stream->entries[stream->first];
            none_unlock();
            entry.function(entry.arg);
            pthread_mutex_lock(&engine.lock);
            stream->moving = false;
            none_pop_locked(stream);
            pthread_cond_broadcast(&engine.changed);
        } else if (engine.busy || more)
            none_pause_locked();
        else
            pthread_cond_wait(&engine.changed, &engine.lock);
    }
    return NULL;
}

void none_start_clerk_locked(void)
{
    pthread_t thread;
    if (engine.has_clerk)
        return;
    const int error = pthread_create(&thread, NULL, none_clerk, NULL);
    if (error)
        none_missing("a thread", strerror(error));
    pthread_detach(thread);
    engine.has_clerk = true;
}

static void none_ring_push_locked(struct none_stream *stream, const struct none_entry *entry)
{
    if (stream->count == stream->cap) {
        const size_t cap = stream->cap ? 2 * stream->cap : 16;
        struct none_entry *grown = malloc(cap * sizeof *grown);
        if (!grown)
            none_missing("a push", "there is no memory");
        for (size_t i = 0; i < stream->count; i++)
            grown[i] = stream->entries[(stream->first + i) % stream->cap];
        free(stream->entries);
        stream->entries = grown;
        stream->first = 0;
        stream->cap = cap;
    }
    assert(stream->count < stream->cap && stream->count < stream->pushed - stream->done);
    stream->entries[(stream->first + stream->count++) % stream->cap] = *entry;
    if (!stream->busy) {
        stream->busy = true;
        stream->next_busy = engine.busy;
        engine.busy = stream;
    }
    pthread_cond_broadcast(&engine.changed);
}

/* An entry that nothing is in front of is done at once. */
static void none_enqueue_locked(struct none_stream *stream, struct none_entry *entry)
{
    stream->pushed++;
    if (stream->count > 0 || entry->kind == NONE_HOST) {
        none_ring_push_locked(stream, entry);
        return;
    }
    if (none_entry_do_locked(stream, entry)) {
        stream->done++;
        if (entry->kind != NONE_KERNEL)
            stream->done_ns = none_now_ns();
        engine.moves++;
    } else
        none_ring_push_locked(stream, entry);
}

static void none_join_locked(struct none_stream *stream, struct none_stream *other)
{
    struct none_entry join = {.kind = NONE_JOIN, .other = other, .version = other->pushed};
    if (other == stream || other->device != stream->device || other->pushed == 0 ||
        other->pushed <= other->known)
        return;
    none_enqueue_locked(stream, &join);
    imply_locked(stream, other, other->pushed);
}

/* The legacy default stream comes behind all blocking ones of its device, and they behind it. */
static void none_keep_legacy_order_locked(struct none_stream *stream)
{
    if (stream->legacy) {
        for (struct none_stream *at = engine.all; at; at = at->next)
            if (at->blocking && !at->capture)
                none_join_locked(stream, at);
    } else if (stream->blocking && engine.legacy[stream->device])
        none_join_locked(stream, engine.legacy[stream->device]);
}

/* To the end of the queue, or into the graph; takes the entry. */
static int none_append_locked(struct none_stream *stream, struct none_entry *entry)
{
    none_thread.asked = NULL;
    if (stream->capture)
        return none_graph_add_locked(stream, entry);
    none_keep_legacy_order_locked(stream);
    if (entry->kind == NONE_WORK)
        entry->arg = entry->work.start(entry->arg);
    none_enqueue_locked(stream, entry);
    if (engine.busy)
        none_drive_locked();
    return NONE_OK;
}

static int none_append(const void *handle, struct none_entry *entry)
{
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    const int result = none_append_locked(none_stream_of_locked(handle), entry);
    none_unlock();
    return result;
}

/* ---- waits ------------------------------------------------------------------------------------------ */

static void none_await_locked(struct none_stream *stream, uint64_t position)
{
    none_thread.asked = NULL;
    none_drive_locked();
    while (stream->done < position) {
        none_pause_locked();
        none_drive_locked();
    }
    know_locked(stream, position);
}

int none_stream_sync(const void *handle)
{
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    int result = none_capture_forbids_locked(stream);
    if (result == NONE_OK) {
        if (stream->blocking)
            none_keep_legacy_order_locked(stream);
        none_await_locked(stream, stream->pushed);
    }
    none_unlock();
    return result;
}

/* A program that asks and does nothing else waits: see NONE_PATIENCE. */
static bool has_patience_locked(const void *asked, int64_t done_ns)
{
    none_thread.times = none_thread.asked == asked ? none_thread.times + 1 : 0;
    none_thread.asked = asked;
    return none_thread.times < NONE_PATIENCE && none_now_ns() - done_ns < NONE_LAZY_NS;
}

int none_stream_query(const void *handle)
{
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    int result = none_capture_forbids_locked(stream);
    none_drive_locked();
    if (result == NONE_OK && stream->known < stream->pushed &&
        (stream->done < stream->pushed ||
         has_patience_locked((const void *)stream, stream->done_ns)))
        result = NONE_NOT_READY;
    if (result == NONE_OK)
        know_locked(stream, stream->pushed);
    none_unlock();
    return result;
}

int none_device_sync(void)
{
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    int result = none_capture_forbids_locked(NULL);
    if (result == NONE_OK) {
        none_await_locked(none_legacy_locked(none_thread.device),
                          none_legacy_locked(none_thread.device)->pushed);
        for (struct none_stream *at = engine.all; at; at = at->next)
            if (at->device == none_thread.device)
                none_await_locked(at, at->pushed);
    }
    none_unlock();
    return result;
}

/* ---- events ----------------------------------------------------------------------------------------- */

struct none_event *none_event_new(bool timed)
{
    struct none_event *event = calloc(1, sizeof *event);
    if (event)
        *event = (struct none_event){.references = 1, .timed = timed};
    return event;
}

void none_event_close(struct none_event *event)
{
    if (!none_lock())
        return;
    none_event_release_locked(event);
    none_unlock();
}

int none_event_record(struct none_event *event, const void *handle, bool external)
{
    if (!event)
        return NONE_INVALID_HANDLE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    int result = NONE_OK;
    if (stream->capture && !external) {
        if (event->capture)
            none_graph_release(event->capture);
        event->capture = stream->capture;
        event->node = stream->node;
        none_graph_keep(stream->capture);
    } else {
        struct none_entry entry = {.kind = NONE_RECORD, .event = event};
        if (!stream->capture) {
            if (event->capture)
                none_graph_release(event->capture);
            event->capture = NULL;
            none_keep_legacy_order_locked(stream);
            event->records++;
            event->stream = stream;
            event->position = stream->pushed + 1;
        }
        entry.version = event->records;
        event->references++;
        result = none_append_locked(stream, &entry);
    }
    none_unlock();
    return result;
}

int none_event_wait(const void *handle, struct none_event *event, bool external)
{
    if (!event)
        return NONE_INVALID_HANDLE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    int result = NONE_OK;
    if (event->capture && !external)
        result = none_graph_join_locked(stream, event);
    else if (stream->capture && !external)
        result = event->records == 0 ? NONE_OK : NONE_CAPTURE_ISOLATION;
    else if (event->records > 0 || stream->capture) {
        /* For this record: a later one, of another stream, may be done before it. */
        struct none_entry entry = {
            .kind = NONE_JOIN, .other = event->stream, .version = event->position};
        if (stream->capture) {
            entry = (struct none_entry){.kind = NONE_WAIT, .event = event};
            event->references++;
        }
        none_keep_legacy_order_locked(stream);
        if (!stream->capture && event->stream != stream)
            imply_locked(stream, event->stream, event->position);
        result = none_append_locked(stream, &entry);
    }
    none_unlock();
    return result;
}

int none_event_sync(struct none_event *event)
{
    if (!event)
        return NONE_INVALID_HANDLE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    int result = event->capture ? NONE_CAPTURE_FORBIDS : NONE_OK;
    const uint64_t version = event->records, position = event->position;
    const struct none_stream *stream = event->stream;
    none_thread.asked = NULL;
    none_drive_locked();
    while (result == NONE_OK && version > 0 && stream->done < position) {
        none_pause_locked();
        none_drive_locked();
    }
    if (result == NONE_OK && version > 0 && event->records == version)
        know_locked(event->stream, event->position);
    none_unlock();
    return result;
}

static int none_event_state_locked(struct none_event *event)
{
    if (event->capture)
        return NONE_CAPTURE_FORBIDS;
    if (event->records == 0 || event->position <= event->stream->known)
        return NONE_OK;
    return event->done < event->records || has_patience_locked(event, event->done_ns)
               ? NONE_NOT_READY
               : NONE_OK;
}

int none_event_query(struct none_event *event)
{
    if (!event)
        return NONE_INVALID_HANDLE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    none_drive_locked();
    const int result = none_event_state_locked(event);
    if (result == NONE_OK && event->records > 0)
        know_locked(event->stream, event->position);
    none_unlock();
    return result;
}

/* A kernel takes no time here: the figure is one that no program divides by zero with. */
int none_event_elapsed(struct none_event *from, struct none_event *to, float *ms)
{
    if (!from || !to || !from->timed || !to->timed)
        return NONE_INVALID_HANDLE;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    int result = from->records == 0 || to->records == 0 ? NONE_INVALID_HANDLE : NONE_OK;
    none_drive_locked();
    if (result == NONE_OK)
        result = none_event_state_locked(to);
    if (result == NONE_OK)
        result = none_event_state_locked(from);
    if (result == NONE_OK) {
        *ms = (float)(to->done_ns - from->done_ns) * 1e-6F;
        if (*ms < 1e-3F && *ms > -1e-3F)
            *ms = 1e-3F;
    }
    none_unlock();
    return result;
}

/* ---- work ------------------------------------------------------------------------------------------- */

/* What the host waits for: bytes that come into or go out of memory that it may free or use at once. */
int none_copy(const struct none_box *box, const void *handle, bool sync)
{
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    struct none_stream *stream = none_stream_of_locked(handle);
    struct none_entry entry = {.kind = NONE_BOX, .box = *box};
    struct none_block block;
    const bool pageable_from = !none_find_locked(box->from, &block);
    const bool pageable_to = !none_find_locked(box->to, &block);
    if (pageable_from && !sync && !stream->capture) {
        const size_t bytes = box->width * box->height * box->depth;
        char *at = entry.staged = malloc(bytes ? bytes : 1);
        if (!at) {
            none_unlock();
            return NONE_NO_MEMORY;
        }
        for (size_t z = 0; z < box->depth; z++)
            for (size_t y = 0; y < box->height; y++, at += box->width)
                memcpy(at, box->from + z * box->from_slice + y * box->from_pitch, box->width);
        entry.box.from = entry.staged;
        entry.box.from_pitch = box->width;
        entry.box.from_slice = box->width * box->height;
    }
    const int result = none_append_locked(stream, &entry);
    if (result == NONE_OK && (sync || pageable_to) && !stream->capture)
        none_await_locked(stream, stream->pushed);
    none_unlock();
    return result;
}

int none_fill(const struct none_box *box, const void *handle)
{
    struct none_entry entry = {.kind = NONE_BOX, .box = *box};
    entry.box.from = NULL;
    return none_append(handle, &entry);
}

int none_push(const void *handle, const struct none_work *work, void *arg)
{
    struct none_entry entry = {.kind = NONE_WORK, .work = *work, .arg = arg};
    return none_append(handle, &entry);
}

int none_push_kernel(const void *handle)
{
    struct none_entry entry = {.kind = NONE_KERNEL};
    return none_append(handle, &entry);
}

int none_push_host(const void *handle, void (*function)(void *), void *arg)
{
    struct none_entry entry = {.kind = NONE_HOST, .function = function, .arg = arg};
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    none_start_clerk_locked();
    const int result = none_append_locked(none_stream_of_locked(handle), &entry);
    none_unlock();
    return result;
}
