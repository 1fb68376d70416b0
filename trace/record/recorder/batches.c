/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.c - many copies in one call, of CUDA's runtime and its driver. See calls.h.
 *
 * "The batch as a whole executes in stream order but copies within a batch are not guaranteed to execute in any specific
 * order" (cudaMemcpyBatchAsync). Sources that may be read out of the stream's order, and more copies than an item can say,
 * are UNMODELLED. Until CUDA 13 the stream comes behind a place for the index of a copy that fails.
 */
#include "calls.h"

enum { IN_STREAM_ORDER = 1, MOST_COPIES = (MOST - 1) / 3, NO_FAILED_INDEX = 13000 };

/* cudaMemcpyAttributes and CUmemcpyAttributes */
struct attributes {
    int order;
    struct {
        int kind, id;
    } from, to;
    unsigned flags;
};

struct batches_batch {
    const handle *to, *from;
    const size_t *bytes;
    size_t count;
    const struct attributes *attributes;
    size_t attribute_count;
};

static bool is_in_order(const struct batches_batch *batch)
{
    for (size_t i = 0; i < batch->attribute_count; i++)
        if (batch->attributes[i].order != IN_STREAM_ORDER)
            return false;
    return true;
}

static void end_batch(const struct tape_call *call, int result, word stream,
                      const struct batches_batch *batch)
{
    word words[MOST];
    if (result == 0 && (batch->count > MOST_COPIES || !is_in_order(batch))) {
        calls_end_unmodelled(call, result,
                             batch->count > MOST_COPIES
                                 ? "cudaMemcpyBatchAsync of more than 170 copies"
                                 : "cudaMemcpyBatchAsync that reads out of the stream's order");
        return;
    }
    if (result != 0) {
        tape_drop(call);
        return;
    }
    words[0] = stream;
    for (size_t i = 0; i < batch->count; i++) {
        words[3 * i + 1] = WORD_OF(batch->to[i]);
        words[3 * i + 2] = WORD_OF(batch->from[i]);
        words[3 * i + 3] = batch->bytes[i];
    }
    calls_end(call, RECORDING_COPY_BATCH, 1 + 3 * batch->count, words);
}

static bool has_failed_index(void)
{
    static int (*ask)(int *);
    int version = 0;
    return real_find(&ask, "cudaRuntimeGetVersion") && ask(&version) == 0 &&
           version < NO_FAILED_INDEX;
}

/* `h`: the stream, or in front of it the place for an index. */
#define BATCH(name, has_index)                                                                     \
    AROUND_STREAM(                                                                                 \
        name,                                                                                      \
        (const handle *to, const handle *from, const size_t *bytes, size_t count,                  \
         const struct attributes *attributes, const size_t *first, size_t attribute_count,         \
         handle h, handle i),                                                                      \
        (to, from, bytes, count, attributes, first, attribute_count, h, i), COPY_BATCH, NOTHING,   \
        const handle stream = has_index ? i : h;                                                   \
        end_batch(&call, result, ON(stream),                                                       \
                  &(struct batches_batch){to, from, bytes, count, attributes, attribute_count}))
BATCH(cudaMemcpyBatchAsync, has_failed_index())
BATCH(cuMemcpyBatchAsync, true)
BATCH(cuMemcpyBatchAsync_v2, false)
