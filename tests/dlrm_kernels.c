/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlrm_kernels.c - the kernels of doc/examples/dlrm on emulated CUDA: not a GPU.
 *
 * Each reaches the memory of its arguments, which must be the device's, or pinned, and large enough, and goes through
 * its threads. The work of a thread is the example's own (kernels.h).
 */
#include "doc/examples/dlrm/kernels.h"
#include "tests/cuda_emulation/emulation.h"

/* Make a pointer one that the host can follow; `good` becomes false where it leads nowhere. */
#define REACH(pointer, count)                                                                      \
    ((pointer) = memory_reach(gpu, (pointer), (size_t)(count) * sizeof *(pointer), __func__),      \
     good = good && ((pointer) || (count) == 0))

#define BEGIN(name)                                                                                \
    static cudaError_t run_##name(int gpu, const void *arguments, int threads)                     \
    {                                                                                              \
        struct name k = *(const struct name *)arguments;                                           \
        bool good = true;

#define END(name)                                                                                  \
    for (int i = 0; good && i < threads; i++)                                                      \
        name##_one(&k, i);                                                                         \
    return good ? cudaSuccess : cudaErrorIllegalAddress;                                           \
    }

BEGIN(move_row)
REACH(k.moves, threads);
REACH(k.cache, TABLES *SLOTS);
REACH(k.tables, TABLES *ROWS);
END(move_row)

BEGIN(look_up)
int bags = threads / DIM;
REACH(k.rows, TABLES *k.stride);
REACH(k.offsets, bags + 1);
REACH(k.answers, threads);
if (good)
    REACH(k.slots, k.offsets[bags]);
END(look_up)

BEGIN(pool)
REACH(k.answered, k.ranks *threads);
REACH(k.pooled, threads);
END(pool)

BEGIN(adagrad)
int bags = k.ranks * TABLES * k.count;
REACH(k.rows, TABLES *k.stride);
REACH(k.offsets, bags + 1);
REACH(k.bag_of, threads);
REACH(k.slots, threads);
REACH(k.gradients, bags *DIM);
END(adagrad)

BEGIN(relu)
REACH(k.y, threads);
END(relu)

BEGIN(relu_back)
REACH(k.y, threads);
REACH(k.gradient, threads);
END(relu_back)

BEGIN(sgd)
REACH(k.weights, threads);
REACH(k.gradients, threads);
END(sgd)

BEGIN(interact)
REACH(k.bottom, k.count *DIM);
REACH(k.pooled, TABLES *k.count *DIM);
REACH(k.out, threads);
END(interact)

BEGIN(interact_back)
REACH(k.bottom, k.count *DIM);
REACH(k.pooled, TABLES *k.count *DIM);
REACH(k.gradient, k.count *TOP_IN);
REACH(k.bottom_gradient, k.count *DIM);
REACH(k.turned, k.ranks *TABLES *k.count *DIM);
END(interact_back)

BEGIN(bce)
REACH(k.scores, threads);
REACH(k.labels, threads);
REACH(k.losses, threads);
REACH(k.gradient, threads);
END(bce)

BEGIN(total)
REACH(k.numbers, k.count);
REACH(k.sum, threads);
END(total)

/* each<NAME, NAME_one>: the length of a name stands before it. */
#define ROW(length, name)                                                                          \
    {                                                                                              \
        "4eachI" length #name "X", sizeof(struct name), run_##name                                 \
    }

const struct kernel_of_program kernels_of_program[] = {
    ROW("8", move_row),       ROW("7", look_up),   ROW("4", pool),  ROW("7", adagrad),
    ROW("4", relu),           ROW("9", relu_back), ROW("3", sgd),   ROW("8", interact),
    ROW("13", interact_back), ROW("3", bce),       ROW("5", total), {NULL, 0, NULL}};
