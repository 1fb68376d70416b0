/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boxes.c - copies and fills of rectangles and boxes, of CUDA's runtime and its driver. See calls.h.
 *
 * A box is slices of rows; a copy from or to an array has no address and is no item but UNMODELLED.
 */
#include "calls.h"

struct position {
    size_t x, y, z;
};
struct boxes_pitched {
    char *address;
    size_t pitch, width, height;
};
struct boxes_extent {
    size_t width, height, depth;
};

struct boxes_place {
    word address, pitch, slice; /* bytes from row to row, and from slice to slice */
};

enum { HOST_TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS }; /* as cudaMemcpyKind */

static void end_copy(const struct tape_call *call, word stream, const struct boxes_place *to,
                     const struct boxes_place *from, const struct boxes_extent *size,
                     word direction, bool waits)
{
    calls_end(call, RECORDING_COPY_2D,
              WORDS(stream, to->address, to->pitch, from->address, from->pitch, size->width,
                    size->height, direction, waits, to->slice, from->slice, size->depth));
}

/* ---- the runtime ------------------------------------------------------------------------------- */

/* cudaMemcpy3DParms and cudaMemcpy3DPeerParms */
struct boxes_end {
    handle array;
    struct position at;
    struct boxes_pitched memory;
};
struct box_copy {
    struct boxes_end from, to;
    struct boxes_extent size;
    int direction;
};
struct end_on_device {
    struct boxes_end end;
    int device;
};
struct peer_copy {
    struct end_on_device from, to;
    struct boxes_extent size;
};

static struct boxes_place boxes_place_of(const struct boxes_end *end)
{
    const size_t slice = end->memory.pitch * end->memory.height;
    return (struct boxes_place){WORD_OF(end->memory.address) + end->at.z * slice +
                                    end->at.y * end->memory.pitch + end->at.x,
                                end->memory.pitch, slice};
}

static void end_box(const struct tape_call *call, int result, const char *name, word stream,
                    const struct boxes_end *to, const struct boxes_end *from,
                    const struct boxes_extent *size, word direction, bool waits)
{
    if (result != 0 || to->array || from->array) {
        calls_end_unmodelled(call, result, name);
        return;
    }
    const struct boxes_place first = boxes_place_of(to), second = boxes_place_of(from);
    end_copy(call, stream, &first, &second, size, direction, waits);
}

AROUND_DEFAULT(cudaMemcpy3D, (const struct box_copy *copy), (copy), COPY_2D, NOTHING,
               end_box(&call, result, "cudaMemcpy3D", none, &copy->to, &copy->from, &copy->size,
                       (word)copy->direction, true))
AROUND_STREAM(cudaMemcpy3DAsync, (const struct box_copy *copy, handle stream), (copy, stream),
              COPY_2D, NOTHING,
              end_box(&call, result, "cudaMemcpy3DAsync", ON(stream), &copy->to, &copy->from,
                      &copy->size, (word)copy->direction, false))
AROUND_DEFAULT(cudaMemcpy3DPeer, (const struct peer_copy *copy), (copy), COPY_2D, NOTHING,
               end_box(&call, result, "cudaMemcpy3DPeer", none, &copy->to.end, &copy->from.end,
                       &copy->size, BY_ADDRESS, false))
AROUND_STREAM(cudaMemcpy3DPeerAsync, (const struct peer_copy *copy, handle stream), (copy, stream),
              COPY_2D, NOTHING,
              end_box(&call, result, "cudaMemcpy3DPeerAsync", ON(stream), &copy->to.end,
                      &copy->from.end, &copy->size, BY_ADDRESS, false))

ON_DEFAULT(cudaMemcpy2D,
           (handle to, size_t pitch, const void *from, size_t source, size_t width, size_t height,
            int direction),
           (to, pitch, from, source, width, height, direction), COPY_2D, none, WORD_OF(to), pitch,
           WORD_OF(from), source, width, height, (word)direction, 1)
ON_STREAM(cudaMemcpy2DAsync,
          (handle to, size_t pitch, const void *from, size_t source, size_t width, size_t height,
           int direction, handle stream),
          (to, pitch, from, source, width, height, direction, stream), COPY_2D, ON(stream),
          WORD_OF(to), pitch, WORD_OF(from), source, width, height, (word)direction, 0)

ON_DEFAULT(cudaMemset2D, (handle to, size_t pitch, int value, size_t width, size_t height),
           (to, pitch, value, width, height), FILL, none, WORD_OF(to), pitch, width, height)
ON_STREAM(cudaMemset2DAsync,
          (handle to, size_t pitch, int value, size_t width, size_t height, handle stream),
          (to, pitch, value, width, height, stream), FILL, ON(stream), WORD_OF(to), pitch, width,
          height)
ON_DEFAULT(cudaMemset3D, (struct boxes_pitched to, int value, struct boxes_extent size),
           (to, value, size), FILL, none, WORD_OF(to.address), to.pitch, size.width, size.height,
           to.pitch *to.height, size.depth)
ON_STREAM(cudaMemset3DAsync,
          (struct boxes_pitched to, int value, struct boxes_extent size, handle stream),
          (to, value, size, stream), FILL, ON(stream), WORD_OF(to.address), to.pitch, size.width,
          size.height, to.pitch *to.height, size.depth)

/* ---- the driver -------------------------------------------------------------------------------- */

enum { TYPE_HOST = 1, TYPE_DEVICE, TYPE_ARRAY, TYPE_UNIFIED };

/* CUDA_MEMCPY2D_v2, and CUDA_MEMCPY3D_v2, which is that of CUDA_MEMCPY3D_PEER, too */
struct rectangle_end {
    size_t x, y;
    unsigned type;
    handle host;
    word device;
    handle array;
    size_t pitch;
};
struct rectangle_copy {
    struct rectangle_end from, to;
    size_t width, height;
};
struct driver_end {
    size_t x, y, z, level;
    unsigned type;
    handle host;
    word device;
    handle array, context;
    size_t pitch, height;
};
struct driver_copy {
    struct driver_end from, to;
    struct boxes_extent size;
};

static struct driver_end boxes_end_of(const struct rectangle_end *end)
{
    return (struct driver_end){.x = end->x,
                               .y = end->y,
                               .type = end->type,
                               .host = end->host,
                               .device = end->device,
                               .array = end->array,
                               .pitch = end->pitch};
}

static struct boxes_place boxes_place_in(const struct driver_end *end)
{
    const word slice = end->pitch * end->height;
    return (struct boxes_place){(end->type == TYPE_HOST ? WORD_OF(end->host) : end->device) +
                                    end->z * slice + end->y * end->pitch + end->x,
                                end->pitch, slice};
}

static word boxes_direction_of(const struct driver_copy *copy)
{
    if (copy->from.type == TYPE_UNIFIED || copy->to.type == TYPE_UNIFIED)
        return BY_ADDRESS;
    if (copy->from.type == TYPE_HOST)
        return copy->to.type == TYPE_HOST ? HOST_TO_HOST : TO_DEVICE;
    return copy->to.type == TYPE_HOST ? TO_HOST : ON_DEVICE;
}

static void end_driver_box(const struct tape_call *call, int result, const char *name, word stream,
                           const struct driver_copy *copy, bool waits)
{
    if (result != 0 || copy->from.type == TYPE_ARRAY || copy->to.type == TYPE_ARRAY) {
        calls_end_unmodelled(call, result, name);
        return;
    }
    const struct boxes_place to = boxes_place_in(&copy->to), from = boxes_place_in(&copy->from);
    end_copy(call, stream, &to, &from, &copy->size, boxes_direction_of(copy), waits);
}

static void end_rectangle(const struct tape_call *call, int result, const char *name, word stream,
                          const struct rectangle_copy *copy, bool waits)
{
    const struct driver_copy box = {
        boxes_end_of(&copy->from), boxes_end_of(&copy->to), {copy->width, copy->height, 1}};
    end_driver_box(call, result, name, stream, &box, waits);
}

#define DRIVER(name, type, END, waits)                                                             \
    AROUND_DEFAULT(name, (const struct type *copy), (copy), COPY_2D, NOTHING,                      \
                   END(&call, result, #name, none, copy, waits))
#define DRIVER_ASYNC(name, type, END)                                                              \
    AROUND_STREAM(name, (const struct type *copy, handle stream), (copy, stream), COPY_2D,         \
                  NOTHING, END(&call, result, #name, ON(stream), copy, false))
DRIVER(cuMemcpy2D_v2, rectangle_copy, end_rectangle, true)
DRIVER(cuMemcpy2DUnaligned_v2, rectangle_copy, end_rectangle, true)
DRIVER_ASYNC(cuMemcpy2DAsync_v2, rectangle_copy, end_rectangle)
DRIVER(cuMemcpy3D_v2, driver_copy, end_driver_box, true)
DRIVER_ASYNC(cuMemcpy3DAsync_v2, driver_copy, end_driver_box)
DRIVER(cuMemcpy3DPeer, driver_copy, end_driver_box, false)
DRIVER_ASYNC(cuMemcpy3DPeerAsync, driver_copy, end_driver_box)

/* A width in values of so many bytes */
#define FILLS(name, type, size)                                                                    \
    ON_DEFAULT(cuMemset##name##_v2,                                                                \
               (word to, size_t pitch, type value, size_t width, size_t height),                   \
               (to, pitch, value, width, height), FILL, none, to, pitch, width *size, height)      \
    ON_STREAM(cuMemset##name##Async,                                                               \
              (word to, size_t pitch, type value, size_t width, size_t height, handle stream),     \
              (to, pitch, value, width, height, stream), FILL, ON(stream), to, pitch, width *size, \
              height)
FILLS(D2D8, unsigned char, 1)
FILLS(D2D16, unsigned short, 2)
FILLS(D2D32, unsigned, 4)

/*
 * Many copies in one call, of CUDA's runtime and its driver. See calls.h.
 *
 * "The batch as a whole executes in stream order but copies within a batch are not guaranteed to execute in any specific
 * order" (cudaMemcpyBatchAsync). Sources that may be read out of the stream's order, and more copies than an item can say,
 * are UNMODELLED. Until CUDA 13 the stream comes behind a place for the index of a copy that fails.
 */

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
