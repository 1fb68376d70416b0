/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - see swsim_ops.h. Texts are never forgotten. */
#include "ops.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "swsim_ops.h"
#include "tape.h"
#include "threads.h"

enum {
    TEXT_BUCKETS = 4096,
    MOST_PAIRS = (RECORDING_MAX_WORDS - 2) / 2,
    LEGACY_STREAM = 1,
    MOST_TEXT = 150,
    MOST_TEXTS = 1 << 16
};

/* ---- texts ------------------------------------------------------------------------------------------- */

struct ops_text {
    struct ops_text *next;
    uint32_t number;
    atomic_bool written;
    char text[];
};
static struct ops_text *_Atomic texts[TEXT_BUCKETS];
static struct ops_text *_Atomic numbered[MOST_TEXTS];
static atomic_uint text_count;

static struct ops_text *ops_find_text(struct ops_text *at, const char *text)
{
    while (at && strcmp(at->text, text) != 0)
        at = at->next;
    return at;
}

/* Two threads that bring the same text at a time may get two numbers. */
uint32_t swsim_text(const char *whole)
{
    char text[MOST_TEXT + 1];
    uint32_t hash = 2166136261U;
    if (!tape_on())
        return 0;
    snprintf(text, sizeof text, "%s", whole);
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619U;
    struct ops_text *_Atomic *bucket = &texts[hash % TEXT_BUCKETS];
    struct ops_text *head = atomic_load(bucket), *found = ops_find_text(head, text);
    if (found)
        return found->number;
    struct ops_text *new = malloc(sizeof *new + strlen(text) + 1);
    if (!new)
        return 0;
    strcpy(new->text, text);
    new->number = atomic_fetch_add(&text_count, 1) + 1;
    if (new->number >= MOST_TEXTS) {
        free(new);
        return 0;
    }
    atomic_init(&new->written, false);
    atomic_store(&numbered[new->number], new);
    new->next = head;
    while (!atomic_compare_exchange_weak(bucket, &new->next, new))
        ;
    return new->number;
}

/* Numbers that tape_number does not come to. Of a process whose operators launch nothing there is no file. */
uint64_t ops_word(uint32_t text)
{
    struct ops_text *found = text < MOST_TEXTS ? atomic_load(&numbered[text]) : NULL;
    if (!found)
        return 0;
    if (!atomic_load(&found->written))
        tape_text_of(UINT64_C(1) << 40 | text, found->text);
    atomic_store(&found->written, true);
    return UINT64_C(1) << 40 | text;
}

void swsim_where(uint32_t text)
{
    tape_where(text);
}

/* ---- operations ---------------------------------------------------------------------------------------- */

/* A thread's outermost bracket. */
struct ops_bracket {
    int depth;
    uint32_t what;
    uint64_t stream;          /* of its launches */
    size_t launches, waiting; /* all; those that no item has yet */
    size_t count, cap;
    struct swsim_access *accesses; /* known at its begin */
};
static __thread struct ops_bracket *bracket __attribute__((tls_model("initial-exec")));

/* Of the thread's next operation. */
static __thread struct ops_work {
    uint64_t operations;
    unsigned rate;
} work __attribute__((tls_model("initial-exec")));

void swsim_work(uint64_t operations, unsigned rate)
{
    work.operations += operations;
    work.rate = rate < RECORDING_RATES ? rate : RECORDING_RATE_F32;
}

void swsim_step(void)
{
    if (tape_on())
        tape_put(RECORDING_STEP, 0, &(uint64_t){0});
}

static void ops_put_work(void)
{
    if (work.operations > 0)
        tape_put(RECORDING_WORK, WORDS(work.operations, work.rate));
    work.operations = 0;
}

/* Many accesses are several operations, one behind the other. */
static void ops_put(uint64_t stream, uint32_t what, const struct swsim_access *accesses,
                    size_t count)
{
    uint64_t words[RECORDING_MAX_WORDS] = {stream, ops_word(what)};
    ops_put_work();
    do {
        const size_t piece = count < MOST_PAIRS ? count : MOST_PAIRS;
        memcpy(words + 2, accesses, piece * sizeof *accesses);
        tape_put_call(RECORDING_OPERATOR, 2 + 2 * piece, words);
        accesses += piece;
        count -= piece;
    } while (count > 0);
}

void swsim_op(const void *stream, uint32_t what, const struct swsim_access *accesses, size_t count)
{
    const uint64_t on = stream ? WORD_OF(stream) : LEGACY_STREAM;
    if (!threads_are_left_out() && !ops_take_launch(on))
        ops_put(on, what, accesses, count);
}

static bool ops_add(struct ops_bracket *own, const struct swsim_access *accesses, size_t count)
{
    if (own->count + count > own->cap) {
        const size_t cap = 2 * (own->count + count) + 64;
        struct swsim_access *grown = realloc(own->accesses, cap * sizeof *grown);
        if (!grown)
            return false;
        own->accesses = grown;
        own->cap = cap;
    }
    memcpy(own->accesses + own->count, accesses, count * sizeof *accesses);
    own->count += count;
    return true;
}

void swsim_op_begin(uint32_t what, const struct swsim_access *accesses, size_t count)
{
    if (!bracket)
        bracket = calloc(1, sizeof *bracket);
    if (!bracket || bracket->depth++ > 0)
        return;
    bracket->what = what;
    bracket->launches = bracket->waiting = bracket->count = 0;
    if (tape_on())
        ops_add(bracket, accesses, count);
}

static void ops_flush(void)
{
    if (bracket->waiting > 0)
        ops_put(bracket->stream, bracket->what, bracket->accesses, bracket->count);
    bracket->waiting = 0;
}

size_t swsim_op_end(const struct swsim_access *accesses, size_t count)
{
    if (!bracket || bracket->depth == 0 || --bracket->depth > 0)
        return 0;
    if (bracket->waiting > 0 && ops_add(bracket, accesses, count))
        ops_flush();
    return bracket->launches;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

void swsim_tensors(unsigned what, const uint64_t *addresses, size_t count)
{
    enum { MOST = RECORDING_MAX_WORDS - 1 };
    uint64_t words[RECORDING_MAX_WORDS] = {what};
    for (size_t at = 0, piece; tape_on() && what < RECORDING_TENSORS && at < count; at += piece) {
        piece = count - at < MOST ? count - at : MOST;
        memcpy(words + 1, addresses + at, piece * sizeof *addresses);
        tape_put(RECORDING_TENSORS_ARE, 1 + piece, words);
    }
}

/* c10::Device. */
struct ops_device {
    int8_t type, index;
};
enum { OPS_DEVICE_CUDA = 1 };

/* PyTorch's allocators tell its profiler of each tensor's memory, through functions that the program's libraries get from
   here; `bytes` is negative where the tensor is gone. */
typedef void ops_told(void *address, int64_t bytes, size_t allocated, size_t reserved,
                      struct ops_device device);
typedef void ops_refused(int64_t bytes, size_t allocated, size_t reserved,
                         struct ops_device device);
#define OPS_TOLD    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define OPS_REFUSED "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
ops_told ops_tell_tensor __asm__(OPS_TOLD);
ops_refused ops_tell_refused __asm__(OPS_REFUSED);

void ops_tell_tensor(void *address, int64_t bytes, size_t allocated, size_t reserved,
                     struct ops_device device)
{
    static ops_told *real;
    if (tape_on() && device.type == OPS_DEVICE_CUDA && bytes > 0)
        tape_put_call(RECORDING_TENSOR,
                      WORDS(WORD_OF(address), (uint64_t)bytes, (uint64_t)device.index, reserved,
                            bracket && bracket->depth > 0 ? ops_word(bracket->what) : 0));
    else if (tape_on() && device.type == OPS_DEVICE_CUDA)
        tape_put_call(RECORDING_TENSOR_END, WORDS(WORD_OF(address)));
    if (real_find_in(&real, OPS_TOLD, "libc10.so") && real != ops_tell_tensor)
        real(address, bytes, allocated, reserved, device);
}

void ops_tell_refused(int64_t bytes, size_t allocated, size_t reserved, struct ops_device device)
{
    static ops_refused *real;
    if (tape_on() && device.type == OPS_DEVICE_CUDA)
        tape_put_call(RECORDING_TENSOR_REFUSED, WORDS((uint64_t)bytes, (uint64_t)device.index));
    if (real_find_in(&real, OPS_REFUSED, "libc10.so") && real != ops_tell_refused)
        real(bytes, allocated, reserved, device);
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

/* Kernels on another stream than the first are told one stream after the other. */
bool ops_take_launch(uint64_t stream)
{
    if (!bracket || bracket->depth == 0)
        return false;
    if (bracket->waiting > 0 && bracket->stream != stream)
        ops_flush();
    bracket->stream = stream;
    bracket->launches++;
    bracket->waiting++;
    return true;
}

/* Memory and answers of queries are in no stream's order. */
void ops_before(enum recording_kind kind)
{
    if (bracket && bracket->depth > 0 && bracket->waiting > 0 && kind != RECORDING_LAUNCH &&
        kind != RECORDING_ALLOC && kind != RECORDING_QUERY_EVENT && kind != RECORDING_QUERY_STREAM)
        ops_flush();
}

void ops_begin_child(void)
{
    if (bracket)
        bracket->depth = 0;
    /* it has a file of its own */
    for (uint32_t i = 1; i < MOST_TEXTS && atomic_load(&numbered[i]); i++)
        atomic_store(&atomic_load(&numbered[i])->written, false);
}
