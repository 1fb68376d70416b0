/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - see kineto.h: the object around the events, and the job that it tells of. */
#include "kineto.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "host_work.h"
#include "json_reader.h"
#include "processes.h"

#include "plan/operator_times.h"
#include "plan/schedules/actions.h"
#include "trace/job/call_names.h"
#include "trace/job/job.h"
#include "base/array.h"
#include "base/units.h"

enum { TEXT = 512, SHAPES_TEXT = 4096 };

/* Categories, in the spelling of each generation. */
#define CATEGORY_LIST(X)                                                                           \
    X(KERNEL, "kernel", "Kernel")                                                                  \
    X(COPY, "gpu_memcpy", "Memcpy")                                                                \
    X(MEMSET, "gpu_memset", "Memset")                                                              \
    X(RUNTIME, "cuda_runtime", "Runtime")                                                          \
    X(DRIVER, "cuda_driver", "Driver")                                                             \
    X(HIP_RUNTIME, "hip_runtime", "HIP")                                                           \
    X(PRIVATE, "privateuse1_runtime", "privateuse1_driver")                                        \
    X(SYNC, "cuda_sync", "hip_sync")                                                               \
    X(ANNOTATION, "user_annotation", "UserAnnotation")                                             \
    X(MARK, "gpu_user_annotation", "gpu_user_annotation")                                          \
    X(OPERATOR, "cpu_op", "Operator")                                                              \
    X(PYTHON, "python_function", "python_function")

enum category {
#define X(name, ...) CATEGORY_##name,
    CATEGORY_LIST(X)
#undef X
        CATEGORY_OTHER,
    CATEGORY_UNKNOWN /* not read yet */
};

#define NO_TIME INT64_MIN /* of an event without one */

/* Of the events that last some time: "X", "B", "E". */
enum kineto_phase { PHASE_OTHER, PHASE_COMPLETE, PHASE_BEGIN, PHASE_END };

/* A text of the event, cut off where it is longer. */
struct text {
    char bytes[TEXT];
};

struct kineto_event {
    enum category category;
    enum kineto_phase phase;
    struct text name, pid, tid, group;
    struct text collective; /* "Collective name" */
    struct text ranks;      /* "Process Group Ranks": "[0, 2, ...]" */
    int64_t start_ns, duration_ns;
    int64_t correlation, stream, device, bytes, source_stream, record; /* of args; -1: not there */
    int64_t peer;   /* its number in the process group */
    int64_t number; /* "Record function id" */
    bool waits;
};

struct kineto {
    struct json_reader reader;
    struct job *job;
    struct job_rank *rank;
    struct diag *diag;
    int64_t base_ns; /* baseTimeNanoseconds */
    uint32_t place;  /* of the event */
    bool has_events;
    const char *device;  /* a kind whose work is not read; NULL: none is seen */
    const char *backend; /* over which ranks meet, where it is not gloo; NULL */
    struct names
        act_threads; /* of rank->acts and operators, until all threads with calls are known */
    struct job_reversed reversed;
    struct text worked_tid; /* of the operator that was kept last, and its end */
    int64_t worked_end_ns;
    int worked_thread;
    /* Of the event that is read, where shapes are wanted: "[2,3];[];" and "float;Scalar;". */
    bool has_dims;
    char dims[SHAPES_TEXT], types[SHAPES_TEXT];
};

/* So many may be open at once, of all threads. */
enum { OPEN_MOST = 4096 };

struct open_events {
    struct kineto_event *items;
    size_t count, cap;
};

/*
 * Events of Chrome's format that are written as a begin ("B") and an end ("E").
 *
 * An end closes the last event of its thread (pid and tid) that is open, and need not repeat its name. The two are then
 * one complete event, with the members of the begin. Ends in a trace that began later are left out.
 */

/* Opens an event. STATUS_INPUT beyond OPEN_MOST. `file` is for the message. */
static enum status open_events_begin(struct open_events *open, const struct kineto_event *event,
                                     const char *file, struct diag *diag)
{
    if (open->count == OPEN_MOST)
        return diag_error(diag, STATUS_INPUT,
                          "%s: more than %d events begin (\"B\") and have no end (\"E\")", file,
                          OPEN_MOST);
    if (!ARRAY_GROW(open->items, open->count, open->cap))
        return diag_no_memory(diag);
    open->items[open->count++] = *event;
    return STATUS_OK;
}

static bool of_one_thread(const struct kineto_event *a, const struct kineto_event *b)
{
    return strcmp(a->pid.bytes, b->pid.bytes) == 0 && strcmp(a->tid.bytes, b->tid.bytes) == 0;
}

/* The event that `end` closes, complete, in *out; false: none is open. */
static bool open_events_end(struct open_events *open, const struct kineto_event *end,
                            struct kineto_event *out)
{
    size_t at = open->count;
    while (at > 0 && !of_one_thread(&open->items[at - 1], end))
        at--;
    if (at == 0)
        return false;
    *out = open->items[at - 1];
    memmove(&open->items[at - 1], &open->items[at], (open->count - at) * sizeof *open->items);
    open->count--;
    out->phase = PHASE_COMPLETE;
    if (end->start_ns == NO_TIME ||
        __builtin_sub_overflow(end->start_ns, out->start_ns, &out->duration_ns))
        out->start_ns = NO_TIME;
    return true;
}

/*
 * An event is read member by member, whatever the order of its members. `args` of
 * categories without use are passed over if the category stands before them, as it does in what Kineto writes.
 */

static const char *const category_words[][2] = {
#define X(name, now, before) {now, before},
    CATEGORY_LIST(X)
#undef X
};

/* ---- members --------------------------------------------------------------------------------- */

static enum category category_of(const struct json_reader *reader)
{
    for (int i = 0; i < CATEGORY_OTHER; i++)
        if (json_text_is(reader, category_words[i][0]) ||
            json_text_is(reader, category_words[i][1]))
            return (enum category)i;
    return CATEGORY_OTHER;
}

static bool kineto_begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* How the categories of events, or the names of processes, of a device begin that is not read. */
static const struct other_device {
    const char *begins, *name;
} other_devices[] = {
    {"mtia", "MTIA"},          {"MTIA", "MTIA"},
    {"xpu", "an Intel XPU"},   {"XPU", "an Intel XPU"},
    {"hpu", "a Gaudi HPU"},    {"HPU", "a Gaudi HPU"},
    {"npu", "an Ascend NPU"},  {"Ascend", "an Ascend NPU"},
    {"NPU", "an Ascend NPU"},  {"/device:TPU", "a TPU"},
    {"TPU", "a TPU"},          {"tpu", "a TPU"},
    {"neuron", "AWS Neuron"},  {"Neuron", "AWS Neuron"},
    {"/device:XPU", "an XPU"}, {"AIU", "an IBM AIU"},
};

static void kineto_note_device(struct kineto *kineto, const char *name)
{
    for (size_t i = 0; !kineto->device && i < sizeof other_devices / sizeof *other_devices; i++)
        if (kineto_begins(name, other_devices[i].begins))
            kineto->device = other_devices[i].name;
}

static bool names_process(const struct kineto_event *event)
{
    return event->phase == PHASE_OTHER && strcmp(event->name.bytes, "process_name") == 0;
}

/* Annotations of ProcessGroups: "nccl:all_reduce". */
static void kineto_note_backend(struct kineto *kineto, const char *name)
{
    static const char *const backends[] = {"nccl", "rccl", "hccl", "xccl", "mpi", "ucc"};
    for (size_t i = 0; !kineto->backend && i < sizeof backends / sizeof *backends; i++)
        if (kineto_begins(name, backends[i]) && name[strlen(backends[i])] == ':')
            kineto->backend = backends[i];
}

/* True if it is an operator of torch.distributed. */
static bool kineto_is_distributed(const struct kineto_event *event)
{
    return event->category == CATEGORY_OPERATOR && kineto_begins(event->name.bytes, "c10d::");
}

static bool has_useful_args(const struct kineto *kineto, const struct kineto_event *event)
{
    const enum category category = event->category;
    return kineto_is_distributed(event) || names_process(event) ||
           (category == CATEGORY_OPERATOR &&
            (kineto->job->wants_operators || kineto->job->wants_shapes)) ||
           (category != CATEGORY_OTHER && category != CATEGORY_ANNOTATION &&
            category != CATEGORY_MARK && category != CATEGORY_OPERATOR &&
            category != CATEGORY_PYTHON);
}

/* "Concrete Inputs": the third of a message is its other rank; the last but one of a collective says whether it is
   asynchronous. */
static bool read_inputs(struct kineto *kineto, struct kineto_event *event)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY)
        return json_skip_rest(reader, token);
    bool before = false, last = false; /* "False" */
    int place = 0;
    for (token = json_next(reader); token != JSON_ARRAY_END; token = json_next(reader), place++) {
        if (token == JSON_STRING && place == 2)
            decimal_scaled(reader->text, reader->length, 0, &event->peer);
        before = last;
        last = token == JSON_STRING && json_text_is(reader, "False");
        if (!json_skip_rest(reader, token))
            return false;
    }
    event->waits = before;
    return true;
}

/* "Process Group Ranks": the text "[0, 2]", or a list, of which the same text is made. */
static bool kineto_read_ranks(struct kineto *kineto, struct text *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY) {
        if (token == JSON_STRING)
            json_copy_text(reader, out->bytes, TEXT);
        return json_skip_rest(reader, token);
    }
    size_t length = 0;
    for (token = json_next(reader); token == JSON_NUMBER; token = json_next(reader)) {
        if (length + reader->length + 4 < TEXT)
            length += (size_t)snprintf(out->bytes + length, TEXT - length, "%s%.*s",
                                       length ? ", " : "[", (int)reader->length, reader->text);
    }
    if (length)
        snprintf(out->bytes + length, TEXT - length, "]");
    return token == JSON_ARRAY_END || json_skip_rest(reader, token);
}

/* The value as a text without blanks: lists in brackets, whose items end with ';' on the first level and have ',' between them
   below it. */
static bool kineto_read_lists(struct kineto *kineto, char *out, size_t room)
{
    struct json_reader *reader = &kineto->reader;
    size_t used = 0;
    int depth = 0;
    bool first = true;
    enum json_token token;
    do {
        token = json_next(reader);
        const bool ends = token == JSON_ARRAY_END;
        if (token == JSON_FAILED || token == JSON_DONE || token == JSON_OBJECT)
            return token == JSON_OBJECT && json_skip_rest(reader, token);
        if (!ends && depth > 1 && !first && used + 1 < room)
            out[used++] = ',';
        depth += (token == JSON_ARRAY) - ends;
        first = token == JSON_ARRAY;
        if (used + reader->length + 3 > room)
            continue;
        if ((token == JSON_ARRAY && depth > 1) || (ends && depth > 0))
            out[used++] = ends ? ']' : '[';
        else if (token == JSON_STRING || token == JSON_NUMBER) {
            memcpy(out + used, reader->text, reader->length);
            used += reader->length;
        }
        if (depth == 1 && token != JSON_ARRAY)
            out[used++] = ';';
    } while (depth > 0);
    out[used] = 0;
    return true;
}

static bool read_args(struct kineto *kineto, struct kineto_event *event)
{
    const struct {
        const char *key;
        int64_t *value;
    } numbers[] = {
        {"correlation", &event->correlation},
        {"stream", &event->stream},
        {"device", &event->device},
        {"bytes", &event->bytes},
        {"wait_on_stream", &event->source_stream},
        {"wait_on_cuda_event_record_corr_id", &event->record},
        {"Dst Rank", &event->peer},
        {"Src Rank", &event->peer},
        {"Record function id", &event->number},
    };
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_OBJECT)
        return json_skip_rest(reader, token);
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        size_t i = 0;
        while (i < sizeof numbers / sizeof *numbers && !json_text_is(reader, numbers[i].key))
            i++;
        if (i < sizeof numbers / sizeof *numbers)
            json_take_number(reader, 0, numbers[i].value);
        else if (kineto->job->wants_shapes &&
                 (json_text_is(reader, "Input Dims") || json_text_is(reader, "Input dims")))
            kineto->has_dims = kineto_read_lists(kineto, kineto->dims, sizeof kineto->dims);
        else if (kineto->job->wants_shapes && json_text_is(reader, "Input type"))
            kineto_read_lists(kineto, kineto->types, sizeof kineto->types);
        else if (json_text_is(reader, "Concrete Inputs") && kineto_is_distributed(event))
            read_inputs(kineto, event);
        else if (json_text_is(reader, "name") && names_process(event))
            json_take_text(reader, event->group.bytes, TEXT);
        else if (json_text_is(reader, "Process Group Name"))
            json_take_text(reader, event->group.bytes, TEXT);
        else if (json_text_is(reader, "Process Group Ranks"))
            kineto_read_ranks(kineto, &event->ranks);
        else if (json_text_is(reader, "Collective name"))
            json_take_text(reader, event->collective.bytes, TEXT);
        else
            json_skip(reader);
    }
    return token == JSON_OBJECT_END;
}

static enum kineto_phase phase_of(const struct json_reader *reader)
{
    return json_text_is(reader, "X")   ? PHASE_COMPLETE
           : json_text_is(reader, "B") ? PHASE_BEGIN
           : json_text_is(reader, "E") ? PHASE_END
                                       : PHASE_OTHER;
}

static bool read_member(struct kineto *kineto, struct kineto_event *event)
{
    struct json_reader *reader = &kineto->reader;
    if (json_text_is(reader, "ts"))
        return json_take_number(reader, 3, &event->start_ns);
    if (json_text_is(reader, "dur"))
        return json_take_number(reader, 3, &event->duration_ns);
    if (json_text_is(reader, "name"))
        return json_take_text(reader, event->name.bytes, TEXT);
    if (json_text_is(reader, "pid"))
        return json_take_text(reader, event->pid.bytes, TEXT);
    if (json_text_is(reader, "tid"))
        return json_take_text(reader, event->tid.bytes, TEXT);
    if (json_text_is(reader, "args") && has_useful_args(kineto, event))
        return read_args(kineto, event);
    const bool cat = json_text_is(reader, "cat");
    if (!cat && !json_text_is(reader, "ph"))
        return json_skip(reader);
    enum json_token token = json_next(reader);
    if (token == JSON_STRING && cat) {
        struct text word;
        event->category = category_of(reader);
        if (event->category == CATEGORY_OTHER) {
            json_copy_text(reader, word.bytes, TEXT);
            kineto_note_device(kineto, word.bytes);
        }
    }
    if (token == JSON_STRING && !cat)
        event->phase = phase_of(reader);
    return json_skip_rest(reader, token);
}

static void begin_event(struct kineto_event *event)
{
    event->category = CATEGORY_UNKNOWN;
    event->phase = PHASE_OTHER;
    event->name.bytes[0] = event->pid.bytes[0] = event->tid.bytes[0] = event->group.bytes[0] = 0;
    event->collective.bytes[0] = event->ranks.bytes[0] = 0;
    event->start_ns = NO_TIME;
    event->duration_ns = 0;
    event->correlation = event->stream = event->device = event->bytes = -1;
    event->source_stream = event->record = event->peer = event->number = -1;
    event->waits = false;
}

/* The members of an event behind its '{', in any order; STATUS_OK, or the reader's status. */
static enum status kineto_read_event(struct kineto *kineto, struct kineto_event *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token;
    begin_event(out);
    kineto->has_dims = false;
    kineto->types[0] = 0;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader))
        if (!read_member(kineto, out))
            break;
    return token == JSON_OBJECT_END ? STATUS_OK : reader->status;
}

/* The category of an event decides what becomes of it. */

enum { THREAD_TEXT = 64, SHORT = PLAN_MAX_NAME };

/* ---- what becomes of an event ---------------------------------------------------------------- */

static int kineto_intern(struct kineto *kineto, const char *name)
{
    return job_intern(kineto->job, name);
}

static int kineto_intern_thread(struct kineto *kineto, const struct kineto_event *event,
                                struct names *threads)
{
    char name[2 * TEXT];
    snprintf(name, sizeof name, "%.*s/%.*s", THREAD_TEXT, event->pid.bytes, THREAD_TEXT,
             event->tid.bytes);
    return names_intern(threads, &kineto->job->arena, name);
}

static int kineto_thread_of(struct kineto *kineto, const struct kineto_event *event)
{
    return kineto_intern_thread(kineto, event, &kineto->rank->threads);
}

/* The row of the device that the event stands in. */
static int kineto_row_of(struct kineto *kineto, const struct kineto_event *event)
{
    char name[THREAD_TEXT + 1];
    snprintf(name, sizeof name, "%.*s", THREAD_TEXT, event->pid.bytes);
    return names_intern(&kineto->rank->rows, &kineto->job->arena, name);
}

/* The rank of a number in a process group, by the list of its members; -1: a list that is cut off does not tell.
   Where no list is, or all that it shows are as in the group of all ranks, the number is the rank. */
static int64_t rank_of_member(const char *list, int64_t number)
{
    bool same = true;
    const char *at = *list == '[' ? list + 1 : "";
    for (int64_t i = 0; isdigit((unsigned char)*at); i++) {
        char *end;
        const int64_t rank = strtoll(at, &end, 10);
        if (*end != ',' && *end != ']')
            break;
        if (i == number)
            return rank;
        same = same && rank == i;
        at = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
    }
    return same ? number : -1;
}

/* Events of a device have its streams as their threads: 7, or "stream 7"; -1: none is told. */
static int64_t row_stream(const struct kineto_event *event)
{
    const char *digits = strpbrk(event->tid.bytes, "0123456789");
    const bool negative = digits && digits > event->tid.bytes && digits[-1] == '-';
    return digits && !negative ? strtoll(digits, NULL, 10) : -1;
}

static bool keep_work(struct kineto *kineto, const struct kineto_event *event,
                      enum work_class class)
{
    char name[SHORT];
    struct job_work work = {.class = class,
                            .stream =
                                job_stream(kineto->rank, event->device,
                                           event->stream >= 0 ? event->stream : row_stream(event)),
                            .row = kineto_row_of(kineto, event),
                            .place = kineto->place,
                            .bytes = event->bytes > 0 ? event->bytes : 0,
                            .correlation = event->correlation,
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns,
                            .call = -1,
                            .group = -1};
    if (class == CLASS_COPY) {
        work.direction = copy_direction(event->name.bytes);
        work.pageable = copy_is_pageable(event->name.bytes);
    }
    enum collective_kind collective = work.collective;
    if (class == CLASS_KERNEL)
        work.is_collective = kernel_is_collective(event->name.bytes, &collective);
    work.collective = collective;
    if (work.is_collective) {
        /* A kernel that sends to one rank or receives from it, by the record of torch.distributed. */
        const int64_t peer = rank_of_member(event->ranks.bytes, event->peer);
        work.send = strcmp(event->collective.bytes, "send") == 0;
        work.is_message = event->peer >= 0 && peer >= 0 && peer <= INT_MAX &&
                          (work.send || strcmp(event->collective.bytes, "recv") == 0);
        work.peer = work.is_message ? (int)peer : -1;
        work.peer_is_member = work.is_message && event->ranks.bytes[0] == 0;
    }
    if (event->group.bytes[0])
        work.group = kineto_intern(kineto, event->group.bytes);
    work.name = kineto_intern(kineto, kernel_short_name(event->name.bytes, name, sizeof name));
    return work.name >= 0 && work.stream >= 0 && work.row >= 0 && job_add_work(kineto->rank, &work);
}

static bool keep_call(struct kineto *kineto, const struct kineto_event *event)
{
    struct job_call call = {.place = kineto->place,
                            .correlation = event->correlation,
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns,
                            .sync = -1};
    if (!call_kind_of(event->name.bytes, &call.kind))
        return true;
    call.name = kineto_intern(kineto, event->name.bytes);
    call.thread = kineto_thread_of(kineto, event);
    return call.name >= 0 && call.thread >= 0 && job_add_call(kineto->rank, &call);
}

static bool keep_sync(struct kineto *kineto, const struct kineto_event *event)
{
    enum { NO_STREAM = -1, ALL_STREAMS = 0x7fffffff };
    const struct job_sync sync = {
        .correlation = event->correlation,
        .stream = event->stream > ALL_STREAMS ? NO_STREAM : event->stream,
        .source_stream = event->source_stream > ALL_STREAMS ? NO_STREAM : event->source_stream,
        .is_event = strstr(event->name.bytes, "Event") != NULL,
        .record = event->record,
        .row = kineto_row_of(kineto, event)};
    return sync.row >= 0 && job_add_sync(kineto->rank, &sync);
}

static bool keep_range(struct kineto *kineto, const struct kineto_event *event)
{
    struct job_range range = {.start_ns = event->start_ns,
                              .end_ns = event->start_ns + event->duration_ns};
    range.name = kineto_intern(kineto, event->name.bytes);
    range.thread = kineto_thread_of(kineto, event);
    return range.name >= 0 && range.thread >= 0 && job_add_range(kineto->rank, &range);
}

static bool keep_gloo(struct kineto *kineto, const struct kineto_event *event, enum gloo_kind kind)
{
    const bool message = strstr(event->name.bytes, "send") || strstr(event->name.bytes, "recv");
    struct job_gloo_event gloo = {.kind = kind,
                                  .waits = event->waits && !message,
                                  .peer = message ? event->peer : -1,
                                  .start_ns = event->start_ns,
                                  .end_ns = event->start_ns + event->duration_ns};
    gloo.name = kineto_intern(kineto, event->name.bytes);
    gloo.thread = kineto_thread_of(kineto, event);
    return gloo.name >= 0 && gloo.thread >= 0 && job_add_gloo_event(kineto->rank, &gloo);
}

/* Where operators of a thread begin and end: of nested ones the outer one. A trace with work of a device needs none. */
static bool keep_operator(struct kineto *kineto, const struct kineto_event *event)
{
    const bool same = strcmp(kineto->worked_tid.bytes, event->tid.bytes) == 0;
    if (kineto->rank->call_count > 0 || kineto->rank->work_count > 0 ||
        (same && event->start_ns < kineto->worked_end_ns))
        return true;
    if (!same) {
        kineto->worked_tid = event->tid;
        kineto->worked_thread = kineto_thread_of(kineto, event);
    }
    kineto->worked_end_ns = event->start_ns + event->duration_ns;
    const struct job_gloo_event gloo = {.kind = GLOO_OTHER,
                                        .thread = kineto->worked_thread,
                                        .peer = -1,
                                        .start_ns = event->start_ns,
                                        .end_ns = kineto->worked_end_ns};
    return kineto->worked_thread >= 0 && job_add_gloo_event(kineto->rank, &gloo);
}

/* True if it is a function of the program: "train.py(41): step", and none of PyTorch's or Python's. */
static bool is_program_line(const char *name)
{
    return strstr(name, ".py(") && !kineto_begins(name, "torch/") && !kineto_begins(name, "<") &&
           !strstr(name, "/torch/") && !strstr(name, "site-packages") &&
           !strstr(name, "dist-packages") && !strstr(name, "lib/python");
}

static bool keep_act(struct kineto *kineto, const struct kineto_event *event)
{
    const bool python = event->category == CATEGORY_PYTHON;
    struct job_act act = {.is_line = python && is_program_line(event->name.bytes),
                          .start_ns = event->start_ns,
                          .end_ns = event->start_ns + event->duration_ns};
    if (event->duration_ns < ACT_LEAST_NS || (python && !act.is_line))
        return true;
    act.name = kineto_intern(kineto, event->name.bytes);
    act.thread = kineto_intern_thread(kineto, event, &kineto->act_threads);
    return act.name >= 0 && act.thread >= 0 && job_add_act(kineto->rank, &act);
}

/* The shapes as operator_times.h has them. */
static void kineto_shapes(const struct kineto *kineto, char out[SHAPES_TEXT])
{
    static const struct {
        const char *profiler, *own;
    } kinds[] = {
        {"float", "f32"},      {"c10::BFloat16", "bf16"}, {"c10::Half", "f16"}, {"double", "f64"},
        {"long int", "i64"},   {"long", "i64"},           {"int", "i32"},       {"short", "i16"},
        {"signed char", "i8"}, {"unsigned char", "u8"},   {"bool", "b8"},
    };
    const char *dims = kineto->dims, *types = kineto->types;
    size_t used = 0;
    out[0] = 0;
    while (*dims) {
        const size_t length = strcspn(dims, ";"), type_length = strcspn(types, ";");
        const char *kind = "?";
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (type_length == strlen(kinds[i].profiler) &&
                memcmp(types, kinds[i].profiler, type_length) == 0)
                kind = kinds[i].own;
        /* "[2,3]", or "[[2,3],[4]]" of a list, whose types are not told */
        const bool is_list = length > 1 && dims[1] == '[';
        for (size_t at = is_list; at + is_list < length && used + 16 < SHAPES_TEXT;) {
            const size_t end = at + strcspn(dims + at, "]") + 1;
            if (end - at > 2) {
                used += (size_t)snprintf(out + used, SHAPES_TEXT - used, "%s%s", used ? " " : "",
                                         is_list ? "" : kind);
                for (; at < end && used + 1 < SHAPES_TEXT; at++)
                    out[used++] = dims[at] == ',' ? 'x' : dims[at];
                out[used] = 0;
            }
            at = end + (dims[end] == ',');
        }
        dims += length + (dims[length] == ';');
        types += type_length + (types[type_length] == ';');
    }
    if (used > OPERATOR_SHAPES)
        snprintf(out, SHAPES_TEXT, "#%08lx", crc32(0, (const unsigned char *)out, (unsigned)used));
}

static bool keep_accessing(struct kineto *kineto, const struct kineto_event *event)
{
    char shapes[SHAPES_TEXT];
    struct job_operator operator= {.number = event->number,
                                   .start_ns = event->start_ns,
                                   .end_ns = event->start_ns + event->duration_ns};
    if (kineto->job->wants_shapes ? !kineto->has_dims
                                  : !kineto->job->wants_operators || event->number <= 0)
        return true;
    if (kineto->has_dims) {
        kineto_shapes(kineto, shapes);
        if (!(operator.shapes = arena_strdup(&kineto->job->arena, shapes)))
            return false;
    }
    operator.name = kineto_intern(kineto, event->name.bytes);
    operator.thread = kineto_intern_thread(kineto, event, &kineto->act_threads);
    return operator.name >= 0 && operator.thread >= 0 && job_add_operator(kineto->rank, &operator);
}

/* The thread of an act, as a thread of the rank; -1: it does nothing else. */
static int settled_thread(const struct kineto *kineto, int thread)
{
    return names_find(&kineto->rank->threads, kineto->act_threads.items[thread]);
}

/* Acts and operators of threads that do nothing else are left out. */
static void settle_acts(struct kineto *kineto)
{
    struct job_rank *rank = kineto->rank;
    size_t kept = 0;
    for (size_t i = 0; i < rank->act_count; i++) {
        struct job_act act = rank->acts[i];
        act.thread = settled_thread(kineto, act.thread);
        if (act.thread >= 0)
            rank->acts[kept++] = act;
    }
    rank->act_count = kept;
    kept = 0;
    for (size_t i = 0; i < rank->operator_count; i++) {
        struct job_operator operator= rank->operators[i];
        operator.thread = settled_thread(kineto, operator.thread);
        if (operator.thread >= 0)
            rank->operators[kept++] = operator;
    }
    rank->operator_count = kept;
}

static bool keep_annotation(struct kineto *kineto, const struct kineto_event *event)
{
    kineto_note_backend(kineto, event->name.bytes);
    return (!kineto_begins(event->name.bytes, "gloo:") || keep_gloo(kineto, event, GLOO_DONE)) &&
           keep_range(kineto, event);
}

static bool keep_mark(struct kineto *kineto, const struct kineto_event *event)
{
    struct job_mark mark = {.row = kineto_row_of(kineto, event),
                            .name = kineto_intern(kineto, event->name.bytes),
                            .stream = row_stream(event),
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns};
    return mark.row >= 0 && mark.name >= 0 && job_add_mark(kineto->rank, &mark);
}

/* Older files have annotations among the operators: PyTorch's own have a # in their names
   (enumerate(DataLoader)#..., Optimizer.step#...), which no operator has. */
static bool keep_event(struct kineto *kineto, const struct kineto_event *event)
{
    int64_t number;
    switch (event->category) {
    case CATEGORY_KERNEL: return keep_work(kineto, event, CLASS_KERNEL);
    case CATEGORY_COPY: return keep_work(kineto, event, CLASS_COPY);
    case CATEGORY_MEMSET: return keep_work(kineto, event, CLASS_MEMSET);
    case CATEGORY_RUNTIME:
    case CATEGORY_DRIVER:
    case CATEGORY_HIP_RUNTIME:
    case CATEGORY_PRIVATE: return keep_call(kineto, event);
    case CATEGORY_SYNC: return keep_sync(kineto, event);
    case CATEGORY_ANNOTATION: return keep_annotation(kineto, event);
    case CATEGORY_MARK: return keep_mark(kineto, event);
    case CATEGORY_PYTHON:
        return keep_act(kineto, event) &&
               (!kineto_begins(event->name.bytes, "<built-in method wait of ") ||
                keep_gloo(kineto, event, GLOO_WAIT));
    case CATEGORY_OPERATOR:
        if (!keep_accessing(kineto, event))
            return false;
        if (kineto_is_distributed(event))
            return keep_gloo(kineto, event, GLOO_CALLED);
        return range_is_step(event->name.bytes, &number) || strchr(event->name.bytes, '#')
                   ? keep_range(kineto, event)
                   : keep_act(kineto, event) && keep_operator(kineto, event);
    case CATEGORY_OTHER:
    case CATEGORY_UNKNOWN: return true;
    }
    return true;
}

static enum status refuse_times(struct kineto *kineto, const struct kineto_event *event)
{
    return diag_error(kineto->diag, STATUS_INPUT,
                      "%s: '%.60s' begins or ends at an impossible time", kineto->rank->file,
                      event->name.bytes);
}

/* Annotations of the device are kept where they name a pass. */
static bool names_pass(const struct kineto_event *event)
{
    struct arena arena;
    struct action pass;
    arena_init(&arena, 0);
    const bool named = pass_name_read(event->name.bytes, &arena, &pass);
    arena_fini(&arena);
    return named;
}

/* Adds a complete event to the rank, if its category is of use. One that ends before it begins is counted and left
   out; STATUS_INPUT for times that cannot be. */
static enum status kineto_take_event(struct kineto *kineto, const struct kineto_event *event)
{
    if (event->phase != PHASE_COMPLETE || event->category >= CATEGORY_OTHER ||
        (event->category == CATEGORY_MARK && !names_pass(event)))
        return STATUS_OK;
    int64_t end_ns;
    kineto->place++;
    if (event->duration_ns < 0 || event->start_ns == NO_TIME) {
        job_leave_out(&kineto->reversed, event->name.bytes);
        return STATUS_OK;
    }
    if (__builtin_add_overflow(event->start_ns, event->duration_ns, &end_ns) ||
        !job_times_are_sane(event->start_ns, end_ns))
        return refuse_times(kineto, event);
    return keep_event(kineto, event) ? STATUS_OK : diag_no_memory(kineto->diag);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* An event as it is read: "X" is complete, "B" waits for its "E". */
static enum status take_phase(struct kineto *kineto, struct open_events *open,
                              const struct kineto_event *event)
{
    struct kineto_event whole;
    if (names_process(event))
        kineto_note_device(kineto, event->group.bytes);
    if (event->phase == PHASE_BEGIN)
        return open_events_begin(open, event, kineto->rank->file, kineto->diag);
    if (event->phase != PHASE_END)
        return kineto_take_event(kineto, event);
    return open_events_end(open, event, &whole) ? kineto_take_event(kineto, &whole) : STATUS_OK;
}

static enum status kineto_read_list(struct kineto *kineto, struct open_events *open)
{
    struct json_reader *reader = &kineto->reader;
    struct kineto_event event;
    enum json_token token;
    kineto->has_events = true;
    while ((token = json_next(reader)) == JSON_OBJECT) {
        enum status status = kineto_read_event(kineto, &event);
        if (status == STATUS_OK)
            status = take_phase(kineto, open, &event);
        if (status != STATUS_OK)
            return status;
    }
    return token == JSON_ARRAY_END ? STATUS_OK : json_refuse(reader, "an event of the trace, '{'");
}

static enum status read_events(struct kineto *kineto)
{
    struct open_events open = {0};
    const enum status status = kineto_read_list(kineto, &open);
    if (status == STATUS_OK && open.count > 0)
        diag_warn(kineto->diag, "%s: left out: %zu event%s without an end", kineto->rank->file,
                  open.count, units_plural(open.count));
    free(open.items);
    return status == STATUS_OK
               ? job_check_reversed(&kineto->reversed, kineto->place - kineto->reversed.count,
                                    kineto->rank->file, kineto->diag)
               : status;
}

/* The file is a list of events, whose ']' may be missing where the program that wrote it has ended early. */
static enum status read_bare_list(struct kineto *kineto)
{
    kineto->reader.end_is_optional = true;
    const enum status status = read_events(kineto);
    if (status == STATUS_OK && kineto->reader.has_no_end)
        diag_warn(kineto->diag,
                  "%s: its list of events has no end (']'): later events may be missing",
                  kineto->rank->file);
    return status;
}

/* A list of ranks; of anything else nothing is taken. False: no memory. */
static bool read_members(struct kineto *kineto, struct job_members *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    bool ok = true;
    if (token != JSON_ARRAY) {
        json_skip_rest(reader, token);
        return true;
    }
    while ((token = json_next(reader)) == JSON_NUMBER) {
        ok = ok && ARENA_GROW(&kineto->job->arena, out->ranks, out->count, out->cap);
        if (ok && decimal_scaled(reader->text, reader->length, 0, &out->ranks[out->count]))
            out->count++;
    }
    if (token != JSON_ARRAY_END)
        json_skip_rest(reader, token);
    return ok;
}

static bool keep_group(struct kineto *kineto, const char *name, const struct job_members *members)
{
    struct job_rank *rank = kineto->rank;
    const int at = names_intern(&rank->groups, &kineto->job->arena, name);
    while (at >= 0 && rank->members_count <= (size_t)at) {
        if (!ARENA_GROW(&kineto->job->arena, rank->members, rank->members_count, rank->members_cap))
            return false;
        rank->members[rank->members_count++] = (struct job_members){0};
    }
    if (at >= 0)
        rank->members[at] = *members;
    return at >= 0;
}

/* A process group of distributedInfo. */
static enum status read_group(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    struct text name = {{0}};
    struct job_members members = {0};
    int64_t size = 0;
    bool ok = true;
    enum json_token token;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader))
        if (json_text_is(reader, "pg_name"))
            json_take_text(reader, name.bytes, TEXT);
        else if (json_text_is(reader, "pg_size"))
            json_take_number(reader, 0, &size);
        else if (json_text_is(reader, "ranks"))
            ok = read_members(kineto, &members) && ok;
        else
            json_skip(reader);
    if (!ok || (size > 0 && !keep_group(kineto, name.bytes, &members)))
        return diag_no_memory(kineto->diag);
    return reader->status;
}

static enum status read_groups(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY)
        return json_skip_rest(reader, token) ? STATUS_OK : reader->status;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (token = json_next(reader)) == JSON_OBJECT)
        status = read_group(kineto);
    return status != STATUS_OK || token == JSON_ARRAY_END || json_skip_rest(reader, token)
               ? status
               : reader->status;
}

static enum status read_distributed(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_OBJECT)
        return json_skip_rest(reader, token) ? STATUS_OK : reader->status;
    enum status status = STATUS_OK;
    for (token = json_next(reader); status == STATUS_OK && token == JSON_KEY;
         token = json_next(reader))
        if (json_text_is(reader, "rank"))
            json_take_number(reader, 0, &kineto->rank->number);
        else if (json_text_is(reader, "world_size"))
            json_take_number(reader, 0, &kineto->rank->world);
        else if (json_text_is(reader, "pg_config"))
            status = read_groups(kineto);
        else
            json_skip(reader);
    return status != STATUS_OK ? status : reader->status;
}

static enum status read_top(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        enum status status = STATUS_OK;
        if (json_text_is(reader, "traceEvents"))
            status = json_next(reader) == JSON_ARRAY
                         ? read_events(kineto)
                         : json_refuse(reader, "a list of events behind \"traceEvents\"");
        else if (json_text_is(reader, "baseTimeNanoseconds"))
            json_take_number(reader, 0, &kineto->base_ns);
        else if (json_text_is(reader, "distributedInfo"))
            status = read_distributed(kineto);
        else
            json_skip(reader);
        if (status != STATUS_OK)
            return status;
    }
    return reader->status;
}

static enum status kineto_read_file(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    enum status status = token == JSON_OBJECT  ? read_top(kineto)
                         : token == JSON_ARRAY ? read_bare_list(kineto)
                                               : json_refuse(reader, "a trace, '{' or '['");
    if (status == STATUS_OK && json_next(reader) != JSON_DONE)
        status = reader->status;
    if (status == STATUS_OK && !kineto->has_events)
        status = diag_error(kineto->diag, STATUS_INPUT,
                            "%s: not a trace: it has no \"traceEvents\"", kineto->rank->file);
    return status;
}

/* Names the way of each message, "0.1to2"; what a rank without a number sends stays a collective of its group. */
static bool name_messages(struct job *job, struct job_rank *rank)
{
    for (size_t i = 0; i < rank->work_count; i++) {
        struct job_work *work = &rank->works[i];
        if (!work->is_message)
            continue;
        /* The members of a group are listed in distributedInfo, maybe behind the events. */
        const char *name = work->group >= 0 ? job->names.items[work->group] : NULL;
        for (size_t g = 0; work->peer_is_member && name && g < rank->members_count; g++)
            if (strcmp(rank->groups.items[g], name) == 0 &&
                (size_t)work->peer < rank->members[g].count)
                work->peer = (int)rank->members[g].ranks[work->peer];
        work->is_message = rank->number >= 0 && rank->number != work->peer;
        if (!work->is_message)
            continue;
        const long long own = (long long)rank->number, other = work->peer;
        const char *way = arena_printf(&job->arena, "%s.%lldto%lld",
                                       work->group >= 0 ? job->names.items[work->group] : "nccl",
                                       work->send ? own : other, work->send ? other : own);
        work->group = way ? job_intern(job, way) : -1;
        if (work->group < 0)
            return false;
    }
    return true;
}

/* A device whose work is not read, or ranks on CPUs that meet over another backend than gloo: nothing could be proved. */
static enum status check_readable(const struct kineto *kineto, const struct job_rank *rank)
{
    if (kineto->device)
        return diag_error(kineto->diag, STATUS_INPUT,
                          "%s: it is a trace of %s, whose work is not read: expected work of GPUs "
                          "of NVIDIA or AMD, or of CPUs",
                          rank->file, kineto->device);
    if (!kineto->backend || !host_work_is_all(rank))
        return STATUS_OK;
    const bool gpu = strcmp(kineto->backend, "nccl") == 0 || strcmp(kineto->backend, "rccl") == 0;
    return diag_error(kineto->diag, STATUS_INPUT, "%s: its ranks communicate over %s%s", rank->file,
                      kineto->backend,
                      gpu ? ", and no work of a GPU is recorded in it: profile with "
                            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
                          : ", whose operations are not read: expected gloo or NCCL");
}

enum status kineto_read(struct bytes *bytes, struct job *job, struct diag *diag)
{
    struct kineto kineto = {.job = job, .diag = diag};
    const size_t first = job->rank_count;
    kineto.rank = job_add_rank(job, bytes_name(bytes));
    if (!kineto.rank)
        return diag_no_memory(diag);
    enum status status = json_reader_open(&kineto.reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = kineto_read_file(&kineto);
    json_reader_close(&kineto.reader);
    settle_acts(&kineto);
    /* It may stand behind the events. */
    if (status == STATUS_OK && kineto.base_ns > 0 && job_times_are_sane(0, kineto.base_ns))
        job_shift(kineto.rank, -kineto.base_ns);
    if (status == STATUS_OK)
        status = processes_split(job, job->rank_count - 1, diag);
    for (size_t r = first; status == STATUS_OK && r < job->rank_count; r++) {
        status = name_messages(job, &job->ranks[r]) ? check_readable(&kineto, &job->ranks[r])
                                                    : diag_no_memory(diag);
        if (status == STATUS_OK && host_work_is_all(&job->ranks[r]))
            status = host_work_make(job, &job->ranks[r], diag);
    }
    return status;
}
