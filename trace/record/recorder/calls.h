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

/* Defines a function of CUDA or NCCL that calls the real one. A call that returns success becomes one item, of the
   words given. */
#define CALL(name, PARAMS, ARGS, KIND, ...)                                                        \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const struct tape_call call = tape_begin(RECORDING_##KIND);                                \
        const int result = real ARGS;                                                              \
        if (result == 0)                                                                           \
            calls_end(&call, RECORDING_##KIND, WORDS(__VA_ARGS__));                                \
        else                                                                                       \
            tape_drop(&call);                                                                      \
        return result;                                                                             \
    }

/* The same for a function with a stream. The _ptsz and _ptds variants take the default stream for that of the thread. */
#define VARIANT(name, none_is, PARAMS, ARGS, KIND, ...)                                            \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const word none = none_is;                                                                 \
        const struct tape_call call = tape_begin(RECORDING_##KIND);                                \
        const int result = real ARGS;                                                              \
        (void)none;                                                                                \
        if (result == 0)                                                                           \
            calls_end(&call, RECORDING_##KIND, WORDS(__VA_ARGS__));                                \
        else                                                                                       \
            tape_drop(&call);                                                                      \
        return result;                                                                             \
    }
#define ON_STREAM(name, PARAMS, ARGS, KIND, ...)                                                   \
    VARIANT(name, LEGACY, PARAMS, ARGS, KIND, __VA_ARGS__)                                         \
    VARIANT(name##_ptsz, PER_THREAD, PARAMS, ARGS, KIND, __VA_ARGS__)
#define ON_DEFAULT(name, PARAMS, ARGS, KIND, ...)                                                  \
    VARIANT(name, LEGACY, PARAMS, ARGS, KIND, __VA_ARGS__)                                         \
    VARIANT(name##_ptds, PER_THREAD, PARAMS, ARGS, KIND, __VA_ARGS__)
#define ON(stream) ((stream) ? WORD_OF(stream) : none)

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

#define CAPTURE(name, none_is)                                                                     \
    int name(handle stream, int mode);                                                             \
    int name(handle stream, int mode)                                                              \
    {                                                                                              \
        REAL(name, (handle, int))                                                                  \
        const word none = none_is;                                                                 \
        calls_note_capture();                                                                      \
        const struct tape_call call = tape_begin(RECORDING_CAPTURE);                               \
        const int result = real(stream, mode);                                                     \
        if (result == 0)                                                                           \
            tape_end(&call, RECORDING_CAPTURE, WORDS(ON(stream)));                                 \
        else                                                                                       \
            tape_drop(&call);                                                                      \
        return result;                                                                             \
    }
/* Into a graph that there is, behind some of its nodes. */
#define CAPTURE_TO_GRAPH(name, none_is)                                                            \
    int name(handle stream, handle graph, const void *nodes, const void *edges, size_t count,      \
             int mode);                                                                            \
    int name(handle stream, handle graph, const void *nodes, const void *edges, size_t count,      \
             int mode)                                                                             \
    {                                                                                              \
        REAL(name, (handle, handle, const void *, const void *, size_t, int))                      \
        const word none = none_is;                                                                 \
        calls_note_capture();                                                                      \
        const struct tape_call call = tape_begin(RECORDING_CAPTURE);                               \
        const int result = real(stream, graph, nodes, edges, count, mode);                         \
        if (result == 0)                                                                           \
            tape_end(&call, RECORDING_CAPTURE, WORDS(ON(stream), WORD_OF(graph), count));          \
        else                                                                                       \
            tape_drop(&call);                                                                      \
        return result;                                                                             \
    }
/* A capture that fails is over, too: its graph is 0. */
#define CAPTURE_END(name, none_is)                                                                 \
    int name(handle stream, handle *out);                                                          \
    int name(handle stream, handle *out)                                                           \
    {                                                                                              \
        REAL(name, (handle, handle *))                                                             \
        const word none = none_is;                                                                 \
        const struct tape_call call = tape_begin(RECORDING_CAPTURE_END);                           \
        const int result = real(stream, out);                                                      \
        tape_end(&call, RECORDING_CAPTURE_END,                                                     \
                 WORDS(ON(stream), result == 0 ? WORD_OF(*out) : 0));                              \
        return result;                                                                             \
    }

#endif
