/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - see calls.h. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubt.h"
#include "names.h"
#include "ops.h"
#include "threads.h"
#include "touch.h"

void calls_end(const struct tape_call *call, enum recording_kind kind, size_t count,
               const word *words)
{
    tape_end(call, kind, count, words);
    if (!call->outer)
        return;
    touch_see(kind, count, words);
    doubt_see(kind, count, words);
}

enum { NOT_READY = 600 }; /* of runtime and driver */

int calls_end_query(const struct tape_call *call, int result, enum recording_kind kind,
                    size_t count, const word *words)
{
    if (result == 0 && call->outer && doubt_answer(kind, count, words)) {
        word no[MOST] = {0};
        memcpy(no + 1, words + 1, (count - 1) * sizeof *no);
        tape_end_no(call, kind, count, no);
        return NOT_READY;
    }
    if (result == 0)
        tape_end(call, kind, count, words);
    else if (result == NOT_READY)
        tape_end_no(call, kind, count, words);
    else
        tape_drop(call);
    return result;
}

void calls_end_launch(const struct tape_call *call, int result, word stream, const void *kernel,
                      void **args, bool driver)
{
    word words[MOST];
    if (result != 0 || !call->outer || ops_take_launch(stream)) {
        tape_drop(call);
        return;
    }
    words[0] = stream;
    const size_t count = 1 + names_launch(kernel, args, driver, words + 1, MOST - 1);
    calls_end(call, RECORDING_LAUNCH, count, words);
}

/* The words of a text, with its end. */
static size_t calls_put_text(const char *text, word words[MOST])
{
    const size_t most = (MOST - 1) * sizeof *words, length = strlen(text);
    const size_t kept = length < most ? length : most;
    const size_t count = 1 + kept / sizeof *words;
    words[count - 1] = 0;
    memcpy(words, text, kept);
    return count;
}

void calls_end_unmodelled(const struct tape_call *call, int result, const char *name)
{
    word words[MOST];
    doubt_know_all();
    if (result == 0 && call->outer)
        tape_end(call, RECORDING_UNMODELLED, calls_put_text(name, words), words);
    else
        tape_drop(call);
}

void calls_note_unmodelled(const struct tape_call *call, const char *what)
{
    word words[MOST];
    doubt_know_all();
    if (call->outer)
        tape_put(RECORDING_UNMODELLED, calls_put_text(what, words), words);
}

/* ---- launches with attributes ------------------------------------------------------------------- */

enum { SERIALIZATION = 6, PROGRAMMATIC_EVENT = 7, COMPLETION_EVENT = 12, UPDATABLE_NODE = 13 };
enum { LAST_ATTRIBUTE = 16 };

/* NULL: it changes nothing that an item says. */
static const char *attribute_effect(const struct launch_attribute *attribute)
{
    switch (attribute->kind) {
    case SERIALIZATION: return attribute->value[1] ? "programmatic stream serialization" : NULL;
    case PROGRAMMATIC_EVENT: return "a programmatic event";
    case COMPLETION_EVENT: return "a launch completion event";
    case UPDATABLE_NODE: return attribute->value[1] ? "a node that devices update" : NULL;
    default: return attribute->kind > LAST_ATTRIBUTE ? "an attribute that is not known" : NULL;
    }
}

void calls_note_attributes(const struct tape_call *call, int result, const char *name,
                           const struct launch_attribute *list, size_t count)
{
    char text[128];
    for (size_t i = 0; result == 0 && call->outer && i < count; i++) {
        const char *effect = attribute_effect(&list[i]);
        if (!effect)
            continue;
        snprintf(text, sizeof text, "%s with %s", name, effect);
        calls_note_unmodelled(call, text);
    }
}

/* ---- host functions --------------------------------------------------------------------------- */

struct host_call {
    host_function *function;
    stream_callback *callback;
    void *arg;
    word number;
    bool kept; /* a graph may call it again and again */
};
static bool captured; /* some stream has been */

static void begin_host(word number)
{
    doubt_know_all();
    tape_put(RECORDING_HOST_BEGIN, 1, &number);
    threads_host_call(1);
}

static void end_host(word number)
{
    threads_host_call(-1);
    tape_put(RECORDING_HOST_END, 1, &number);
}

void calls_host_function(void *arg)
{
    const struct host_call host = *(struct host_call *)arg;
    if (!host.kept)
        free(arg);
    begin_host(host.number);
    host.function(host.arg);
    end_host(host.number);
}

void calls_host_callback(handle stream, int status, void *arg)
{
    const struct host_call host = *(struct host_call *)arg;
    free(arg);
    begin_host(host.number);
    host.callback(stream, status, host.arg);
    end_host(host.number);
}

struct host_call *calls_host_begin(host_function *function, stream_callback *callback, void *arg)
{
    struct host_call *host = tape_on() && !tape_in_call() ? malloc(sizeof *host) : NULL;
    if (host)
        *host = (struct host_call){function, callback, arg, tape_number(), false};
    return host;
}

/* Without an answer it is kept. */
void calls_host_keep(struct host_call *host, word stream, is_capturing **query, const char *name)
{
    enum { NOT_CAPTURED = 0 };
    int state = NOT_CAPTURED;
    if (host && __atomic_load_n(&captured, __ATOMIC_ACQUIRE))
        host->kept = !real_find(query, name) || (*query)((handle)(uintptr_t)stream, &state) != 0 ||
                     state != NOT_CAPTURED;
}

void calls_host_end(const struct tape_call *call, int result, word stream, word number,
                    struct host_call *host)
{
    if (result == 0 && host)
        tape_end(call, RECORDING_HOST_CALL, WORDS(stream, number));
    else
        tape_drop(call);
    if (result != 0)
        free(host);
}

word calls_host_number(const struct host_call *host)
{
    return host ? host->number : 0;
}

void calls_note_capture(void)
{
    __atomic_store_n(&captured, true, __ATOMIC_RELEASE);
}
