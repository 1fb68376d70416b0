/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - how the recorder's functions are written: each calls the real one and notes the call.
 *
 * Built without CUDA's headers: the types here have the layouts of those, from CUDA 11 on. A program compiled for a
 * default stream of each thread calls the functions that end in _ptsz and _ptds.
 */
#ifndef SWSIM_CALLS_H
#define SWSIM_CALLS_H

#include "real.h"
#include "tape.h"

typedef void *handle;
typedef uint64_t word;
enum { LEGACY = 1, PER_THREAD = 2, MOST = RECORDING_MAX_WORDS };

/* calls.c: the call went well. A launch has the addresses of its arguments, `driver`: `kernel` is a CUfunction. */
void calls_end(const struct tape_call *call, enum recording_kind kind, size_t count,
               const word *words);
void calls_end_launch(const struct tape_call *call, int result, word stream, const void *kernel,
                      void **args, bool driver);

/* Defines a function of CUDA or NCCL: the real one, with what is done before it and behind it. `before` and what stands
   behind it see the parameters, `none`, which is what the stream NULL means, and behind the call `call` and `result`. */
#define AROUND(name, none_is, PARAMS, ARGS, KIND, before, ...)                                     \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const word none = none_is;                                                                 \
        before;                                                                                    \
        const struct tape_call call = tape_begin(RECORDING_##KIND);                                \
        const int result = real ARGS;                                                              \
        (void)none;                                                                                \
        __VA_ARGS__;                                                                               \
        return result;                                                                             \
    }
#define NOTHING ((void)0)
/* The same of a function with a stream, whose variant _ptsz or _ptds takes the default stream for that of the thread. */
#define AROUND_STREAM(name, ...)                                                                   \
    AROUND(name, LEGACY, __VA_ARGS__)                                                              \
    AROUND(name##_ptsz, PER_THREAD, __VA_ARGS__)
#define AROUND_DEFAULT(name, ...)                                                                  \
    AROUND(name, LEGACY, __VA_ARGS__)                                                              \
    AROUND(name##_ptds, PER_THREAD, __VA_ARGS__)

/* A call that returns success becomes one item, of the words given. */
#define ITEM(KIND, ...)                                                                            \
    if (result == 0)                                                                               \
        calls_end(&call, RECORDING_##KIND, WORDS(__VA_ARGS__));                                    \
    else                                                                                           \
        tape_drop(&call)
#define CALL(name, PARAMS, ARGS, KIND, ...)                                                        \
    AROUND(name, LEGACY, PARAMS, ARGS, KIND, NOTHING, ITEM(KIND, __VA_ARGS__))
#define ON_STREAM(name, PARAMS, ARGS, KIND, ...)                                                   \
    AROUND_STREAM(name, PARAMS, ARGS, KIND, NOTHING, ITEM(KIND, __VA_ARGS__))
#define ON_DEFAULT(name, PARAMS, ARGS, KIND, ...)                                                  \
    AROUND_DEFAULT(name, PARAMS, ARGS, KIND, NOTHING, ITEM(KIND, __VA_ARGS__))
#define ON(stream) ((stream) ? WORD_OF(stream) : none)

/* A function that notes no call: what stands behind it is done where it went well. */
#define AFTER(name, PARAMS, ARGS, ...)                                                             \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const int result = real ARGS;                                                              \
        if (result == 0)                                                                           \
            __VA_ARGS__;                                                                           \
        return result;                                                                             \
    }

/* The end of a query: words[0] is 1 if the answer was yes. Returns what the program is told. */
int calls_end_query(const struct tape_call *call, int result, enum recording_kind kind,
                    size_t count, const word *words);
#define QUERY(name, none_is, PARAMS, ARGS, KIND, ...)                                              \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const word none = none_is;                                                                 \
        const struct tape_call call = tape_begin(RECORDING_##KIND);                                \
        const int result = real ARGS;                                                              \
        (void)none;                                                                                \
        return calls_end_query(&call, result, RECORDING_##KIND, WORDS(result == 0, __VA_ARGS__));  \
    }
#define QUERY_STREAM(name)                                                                         \
    QUERY(name, LEGACY, (handle stream), (stream), QUERY_STREAM, ON(stream))                       \
    QUERY(name##_ptsz, PER_THREAD, (handle stream), (stream), QUERY_STREAM, ON(stream))
#define QUERY_EVENT(name) QUERY(name, 0, (handle event), (event), QUERY_EVENT, WORD_OF(event))

/* An item UNMODELLED: instead of the call's own, or beside that of a program's call which has gone well. */
void calls_end_unmodelled(const struct tape_call *call, int result, const char *name);
void calls_note_unmodelled(const struct tape_call *call, const char *what);

/* cudaLaunchAttribute and CUlaunchAttribute */
struct launch_attribute {
    unsigned kind;
    int value[17]; /* from the second on: 64 bytes */
};
/* A launch that its stream does not order as a launch, or that records an event, is told. */
void calls_note_attributes(const struct tape_call *call, int result, const char *name,
                           const struct launch_attribute *list, size_t count);

/* calls.c: host functions. What is given to CUDA in place of the program's own; NULL: nothing is recorded. */
typedef void host_function(void *arg);
typedef void stream_callback(handle stream, int status, void *arg);
struct host_call;
struct host_call *calls_host_begin(host_function *function, stream_callback *callback, void *arg);
word calls_host_number(const struct host_call *host);
void calls_host_function(void *host);
void calls_host_callback(handle stream, int status, void *host);
void calls_host_end(const struct tape_call *call, int result, word stream, word number,
                    struct host_call *host);
/* A stream is about to be captured. */
void calls_note_capture(void);
/* A graph may call a function again and again: it is kept where its stream is being captured, which `*query`, found by
   its name, tells. */
typedef int is_capturing(handle stream, int *state);
void calls_host_keep(struct host_call *host, word stream, is_capturing **query, const char *name);

#define HOST_CALL(name, none_is, query_is)                                                         \
    int name(handle stream, host_function *function, void *arg);                                   \
    int name(handle stream, host_function *function, void *arg)                                    \
    {                                                                                              \
        REAL(name, (handle, host_function *, void *))                                              \
        const word none = none_is;                                                                 \
        static is_capturing *query;                                                                \
        struct host_call *host = calls_host_begin(function, NULL, arg);                            \
        const word number = calls_host_number(host);                                               \
        const struct tape_call call = tape_begin(RECORDING_HOST_CALL);                             \
        calls_host_keep(host, ON(stream), &query, #query_is);                                      \
        const int result =                                                                         \
            host ? real(stream, calls_host_function, host) : real(stream, function, arg);          \
        calls_host_end(&call, result, ON(stream), number, host);                                   \
        return result;                                                                             \
    }
#define CALLBACK(name, none_is)                                                                    \
    int name(handle stream, stream_callback *callback, void *arg, unsigned flags);                 \
    int name(handle stream, stream_callback *callback, void *arg, unsigned flags)                  \
    {                                                                                              \
        REAL(name, (handle, stream_callback *, void *, unsigned))                                  \
        const word none = none_is;                                                                 \
        struct host_call *host = calls_host_begin(NULL, callback, arg);                            \
        const word number = calls_host_number(host);                                               \
        const struct tape_call call = tape_begin(RECORDING_HOST_CALL);                             \
        const int result = host ? real(stream, calls_host_callback, host, flags)                   \
                                : real(stream, callback, arg, flags);                              \
        calls_host_end(&call, result, ON(stream), number, host);                                   \
        return result;                                                                             \
    }

#define CAPTURE(name)                                                                              \
    AROUND_STREAM(name, (handle stream, int mode), (stream, mode), CAPTURE, calls_note_capture(),  \
                  ITEM(CAPTURE, ON(stream)))
/* Into a graph that there is, behind some of its nodes. */
#define CAPTURE_TO_GRAPH(name)                                                                     \
    AROUND_STREAM(name,                                                                            \
                  (handle stream, handle graph, const void *nodes, const void *edges,              \
                   size_t count, int mode),                                                        \
                  (stream, graph, nodes, edges, count, mode), CAPTURE, calls_note_capture(),       \
                  ITEM(CAPTURE, ON(stream), WORD_OF(graph), count))
/* A capture that fails is over, too: its graph is 0. */
#define CAPTURE_END(name)                                                                          \
    AROUND_STREAM(name, (handle stream, handle * out), (stream, out), CAPTURE_END, NOTHING,        \
                  tape_end(&call, RECORDING_CAPTURE_END,                                           \
                           WORDS(ON(stream), result == 0 ? WORD_OF(*out) : 0)))

#endif
