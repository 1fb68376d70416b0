/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - see calls.h. */
#include "calls.h"

#include <stdlib.h>

#include "names.h"
#include "threads.h"
#include "touch.h"

void calls_end(const struct call *call, enum recording_kind kind, size_t count, const word *words)
{
    tape_end(call, kind, count, words);
    if (call->outer)
        touch_see(kind, words);
}

void calls_end_launch(const struct call *call, int result, word stream, const void *kernel,
                      void **args, bool driver)
{
    word words[MOST];
    if (result != 0 || !call->outer) {
        tape_drop(call);
        return;
    }
    words[0] = stream;
    const size_t count = 1 + names_launch(kernel, args, driver, words + 1, MOST - 1);
    tape_end(call, RECORDING_LAUNCH, count, words);
}

void calls_note_unseen(const char *name)
{
    tape_put(RECORDING_UNSEEN, WORDS(tape_text(name)));
}

/* ---- host functions --------------------------------------------------------------------------- */

struct host_call {
    host_function *function;
    stream_callback *callback;
    void *arg;
    word number;
};
static bool captured;

static void begin_host(word number)
{
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
    if (!__atomic_load_n(&captured, __ATOMIC_ACQUIRE))
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
        *host = (struct host_call){function, callback, arg, tape_number()};
    return host;
}

void calls_host_end(const struct call *call, int result, word stream, word number,
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

void calls_keep_host_functions(void)
{
    __atomic_store_n(&captured, true, __ATOMIC_RELEASE);
}
