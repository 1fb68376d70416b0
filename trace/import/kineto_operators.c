/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_operators.c - see kineto_operators.h.
 *
 * Work of the device has the correlation of its launch, and the launch has a thread and a time. Launches are sorted by thread and
 * time, with the time of their work summed up, so that an operator is two binary searches. On the host an operator takes the
 * time up to the next one of its thread that launches work, so that Python's time between them is in it; a millisecond
 * between them and more is something else, as a loader or a wait.
 */
#include "kineto_operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "json_reader.h"

#include "base/array.h"
#include "base/sort.h"

enum { SHAPES_TEXT = 4096, MOST_GAP_NS = 1000000 };

struct profiled_operator {
    uint64_t thread;
    int64_t start_ns, end_ns;
    const char *name, *shapes;
    int64_t work_ns; /* of what is launched in it */
};

struct profiled_launch {
    uint64_t thread;
    int64_t start_ns, correlation;
    int64_t work_ns, before_ns; /* its own; that of all in front of it */
};

struct profiled_work {
    int64_t correlation, ns;
};

struct profiled {
    struct json_reader reader;
    struct arena *arena;
    struct profiled_operator *operators;
    size_t operator_count, operator_cap;
    struct profiled_launch *launches;
    size_t launch_count, launch_cap;
    struct profiled_work *works;
    size_t work_count, work_cap;
    bool no_memory;
};

/* An event, as far as it is read: members come in any order. */
struct profiled_event {
    char category[32], name[OPERATOR_NAME];
    char dims[SHAPES_TEXT],
        types[SHAPES_TEXT]; /* as in the schema: "[2,3];[];" and "float;Scalar;" */
    bool has_dims;
    uint64_t thread;
    int64_t start_ns, duration_ns, correlation;
};

/* ---- reading ------------------------------------------------------------------------------------- */

static bool profiled_text(struct profiled *profiled, char *out, size_t room)
{
    const enum json_token token = json_next(&profiled->reader);
    if (token == JSON_STRING || token == JSON_NUMBER)
        snprintf(out, room, "%.*s", (int)profiled->reader.length, profiled->reader.text);
    return json_skip_rest(&profiled->reader, token);
}

static bool profiled_number(struct profiled *profiled, int places, int64_t *out)
{
    const enum json_token token = json_next(&profiled->reader);
    if (token == JSON_STRING || token == JSON_NUMBER)
        decimal_scaled(profiled->reader.text, profiled->reader.length, places, out);
    return json_skip_rest(&profiled->reader, token);
}

/* The value as a text without blanks: lists in brackets, whose items end with ';' on the first level and have ',' between them
   below it. */
static bool profiled_list(struct profiled *profiled, char *out, size_t room)
{
    struct json_reader *reader = &profiled->reader;
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

static bool profiled_args(struct profiled *profiled, struct profiled_event *event)
{
    struct json_reader *reader = &profiled->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_OBJECT)
        return json_skip_rest(reader, token);
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        if (json_text_is(reader, "correlation"))
            profiled_number(profiled, 0, &event->correlation);
        else if (json_text_is(reader, "Input Dims") || json_text_is(reader, "Input dims")) {
            event->has_dims = true;
            profiled_list(profiled, event->dims, sizeof event->dims);
        } else if (json_text_is(reader, "Input type"))
            profiled_list(profiled, event->types, sizeof event->types);
        else
            json_skip(reader);
    }
    return token == JSON_OBJECT_END;
}

/* The shapes as operator_times.h has them. */
static void profiled_shapes(const struct profiled_event *event, char out[SHAPES_TEXT])
{
    static const struct {
        const char *profiler, *own;
    } kinds[] = {
        {"float", "f32"},      {"c10::BFloat16", "bf16"}, {"c10::Half", "f16"}, {"double", "f64"},
        {"long int", "i64"},   {"long", "i64"},           {"int", "i32"},       {"short", "i16"},
        {"signed char", "i8"}, {"unsigned char", "u8"},   {"bool", "b8"},
    };
    const char *dims = event->dims, *types = event->types;
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

static bool profiled_keep_operator(struct profiled *profiled, const struct profiled_event *event)
{
    char shapes[SHAPES_TEXT];
    if (!event->has_dims)
        return true;
    profiled_shapes(event, shapes);
    struct profiled_operator operator= {event->thread,
                                        event->start_ns,
                                        event->start_ns + event->duration_ns,
                                        arena_strdup(profiled->arena, event->name),
                                        arena_strdup(profiled->arena, shapes),
                                        0};
    if (!operator.name || !operator.shapes || !ARRAY_GROW(
            profiled->operators, profiled->operator_count, profiled->operator_cap))
        return false;
    profiled->operators[profiled->operator_count++] = operator;
    return true;
}

static bool profiled_is(const struct profiled_event *event, const char *now, const char *before)
{
    return strcmp(event->category, now) == 0 || strcmp(event->category, before) == 0;
}

static bool profiled_keep(struct profiled *profiled, const struct profiled_event *event)
{
    if (event->duration_ns < 0)
        return true;
    if (profiled_is(event, "cpu_op", "Operator"))
        return profiled_keep_operator(profiled, event);
    if (event->correlation < 0)
        return true;
    if (profiled_is(event, "cuda_runtime", "Runtime") ||
        profiled_is(event, "cuda_driver", "Driver")) {
        if (!ARRAY_GROW(profiled->launches, profiled->launch_count, profiled->launch_cap))
            return false;
        profiled->launches[profiled->launch_count++] =
            (struct profiled_launch){event->thread, event->start_ns, event->correlation, 0, 0};
    } else if (profiled_is(event, "kernel", "Kernel") ||
               profiled_is(event, "gpu_memcpy", "Memcpy") ||
               profiled_is(event, "gpu_memset", "Memset")) {
        if (!ARRAY_GROW(profiled->works, profiled->work_count, profiled->work_cap))
            return false;
        profiled->works[profiled->work_count++] =
            (struct profiled_work){event->correlation, event->duration_ns};
    }
    return true;
}

static bool profiled_event(struct profiled *profiled)
{
    struct json_reader *reader = &profiled->reader;
    struct profiled_event event = {.duration_ns = -1, .correlation = -1};
    char tid[64] = "";
    enum json_token token;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        if (json_text_is(reader, "ts"))
            profiled_number(profiled, 3, &event.start_ns);
        else if (json_text_is(reader, "dur"))
            profiled_number(profiled, 3, &event.duration_ns);
        else if (json_text_is(reader, "name"))
            profiled_text(profiled, event.name, sizeof event.name);
        else if (json_text_is(reader, "cat"))
            profiled_text(profiled, event.category, sizeof event.category);
        else if (json_text_is(reader, "tid"))
            profiled_text(profiled, tid, sizeof tid);
        else if (json_text_is(reader, "args"))
            profiled_args(profiled, &event);
        else
            json_skip(reader);
    }
    event.thread = table_hash_name(tid);
    profiled->no_memory |= token == JSON_OBJECT_END && !profiled_keep(profiled, &event);
    return token == JSON_OBJECT_END && !profiled->no_memory;
}

static enum status profiled_events(struct profiled *profiled)
{
    struct json_reader *reader = &profiled->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_OBJECT)
        return json_refuse(reader, "a trace of PyTorch's profiler");
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        if (!json_text_is(reader, "traceEvents")) {
            json_skip(reader);
            continue;
        }
        if (json_next(reader) != JSON_ARRAY)
            return json_refuse(reader, "a list of events");
        for (token = json_next(reader); token == JSON_OBJECT; token = json_next(reader))
            if (!profiled_event(profiled))
                break;
        if (token != JSON_ARRAY_END)
            break;
    }
    return token == JSON_OBJECT_END ? STATUS_OK
           : profiled->no_memory    ? diag_no_memory(reader->diag)
           : reader->status         ? reader->status
                                    : json_refuse(reader, "events that are objects");
}

/* ---- joining ------------------------------------------------------------------------------------- */

static int compare_correlations(const void *left, const void *right)
{
    const struct profiled_launch *a = left, *b = right;
    return compare_i64(a->correlation, b->correlation);
}

static int compare_launch_times(const void *left, const void *right)
{
    const struct profiled_launch *a = left, *b = right;
    return compare_then(compare_u64(a->thread, b->thread), compare_i64(a->start_ns, b->start_ns));
}

static void profiled_join_works(struct profiled *profiled)
{
    struct profiled_launch *launches = profiled->launches;
    const size_t count = profiled->launch_count;
    SORT(launches, count, compare_correlations);
    for (size_t w = 0; w < profiled->work_count; w++) {
        const struct profiled_work *work = &profiled->works[w];
        const size_t at = SORT_FIRST(i, 0, count, launches[i].correlation >= work->correlation);
        if (at < count && launches[at].correlation == work->correlation)
            launches[at].work_ns += work->ns;
    }
    SORT(launches, count, compare_launch_times);
    for (size_t i = 1; i < count; i++)
        launches[i].before_ns = launches[i - 1].before_ns + launches[i - 1].work_ns;
}

/* The first launch of the thread that is not before `ns`. */
static size_t profiled_first(const struct profiled *profiled, uint64_t thread, int64_t ns)
{
    const struct profiled_launch *launches = profiled->launches;
    return SORT_FIRST(i, 0, profiled->launch_count,
                      launches[i].thread > thread ||
                          (launches[i].thread == thread && launches[i].start_ns >= ns));
}

static int compare_operators(const void *left, const void *right)
{
    const struct profiled_operator *a = left, *b = right;
    return compare_then(compare_u64(a->thread, b->thread), compare_i64(a->start_ns, b->start_ns));
}

/* Keeps those that launch work, by thread and time. */
static void profiled_join_operators(struct profiled *profiled)
{
    const struct profiled_launch *launches = profiled->launches;
    size_t kept = 0;
    for (size_t i = 0; i < profiled->operator_count; i++) {
        struct profiled_operator *operator= & profiled->operators[i];
        const size_t first = profiled_first(profiled, operator->thread, operator->start_ns),
                     last = profiled_first(profiled, operator->thread, operator->end_ns);
        if (last <= first)
            continue;
        operator->work_ns = launches[last - 1]
            .before_ns + launches[last - 1]
            .work_ns - launches[first]
            .before_ns;
        if (operator->work_ns> 0)
            profiled->operators[kept++] = *operator;
    }
    profiled->operator_count = kept;
    SORT(profiled->operators, kept, compare_operators);
}

static bool profiled_add_all(const struct profiled *profiled, struct operator_times *times)
{
    const struct profiled_operator *operators = profiled->operators;
    const size_t count = profiled->operator_count;
    for (size_t i = 0; i < count; i++) {
        const struct profiled_operator *now = &operators[i];
        const size_t next =
            SORT_FIRST(n, i + 1, count,
                       operators[n].thread > now->thread || operators[n].start_ns >= now->end_ns);
        const bool is_near = next < count && operators[next].thread == now->thread &&
                             operators[next].start_ns - now->end_ns < MOST_GAP_NS;
        const int64_t host_ns = (is_near ? operators[next].start_ns : now->end_ns) - now->start_ns;
        if (!operator_times_add(times, profiled->arena, now->name, now->shapes,
                                (double)now->work_ns, (double)host_ns))
            return false;
    }
    return true;
}

enum status kineto_operators_read(struct bytes *bytes, struct arena *arena,
                                  struct operator_times *times, struct diag *diag)
{
    struct profiled profiled = {.arena = arena};
    enum status status = json_reader_open(&profiled.reader, bytes, diag);
    if (status == STATUS_OK) {
        status = profiled_events(&profiled);
        json_reader_close(&profiled.reader);
    }
    if (status == STATUS_OK && profiled.operator_count == 0)
        status = diag_error(diag, STATUS_INPUT,
                            "%s: its operators have no shapes: profile with record_shapes=True",
                            bytes_name(bytes));
    else if (status == STATUS_OK && profiled.work_count == 0)
        status = diag_error(diag, STATUS_INPUT,
                            "%s: no work of a GPU is in it: profile with ProfilerActivity.CUDA",
                            bytes_name(bytes));
    if (status == STATUS_OK) {
        profiled_join_works(&profiled);
        profiled_join_operators(&profiled);
        if (!profiled_add_all(&profiled, times))
            status = diag_no_memory(diag);
    }
    free(profiled.operators);
    free(profiled.launches);
    free(profiled.works);
    return status;
}
