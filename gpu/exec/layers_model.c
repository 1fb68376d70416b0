/* SPDX-License-Identifier: Apache-2.0 */
/* layers_model.c - see layers_internal.h: numbers made from the seed and their place, so every process makes the same. */
#include "layers_internal.h"

#include <math.h>

#include "base/hash.h"

enum { OF_WEIGHT = 1, OF_INPUT, OF_WANTED };

static uint64_t bits_of(const struct layer_run *layers, uint64_t what, uint64_t group,
                        uint64_t index)
{
    uint64_t hash = hash_mix((uint64_t)layers->plan->seed + UINT64_C(0x9e3779b97f4a7c15) * what);
    return hash_mix(hash_mix(hash ^ group) ^ index);
}

/* From -1 to 1, of 24 random bits: sums of such numbers depend on their order. */
static float number(const struct layer_run *layers, uint64_t what, uint64_t group, uint64_t index)
{
    int32_t bits = (int32_t)(bits_of(layers, what, group, index) >> 40);
    return (float)(bits - (1 << 23)) / (float)(1 << 23);
}

/* Activations neither die out nor explode (He et al. 2015). */
void model_weights(const struct layer_run *layers, int layer, float *out)
{
    size_t width = (size_t)layers->plan->width;
    float gain = layers->plan->activation == LAYER_FUNCTION_NONE ? 3.0F : 6.0F;
    float scale = sqrtf(gain / (float)width);
    for (size_t i = 0; i < width * width; i++)
        out[i] = scale * number(layers, OF_WEIGHT, (uint64_t)layer, i);
    for (size_t i = width * width; i < layers->weights; i++)
        out[i] = 0.125F * number(layers, OF_WEIGHT, (uint64_t)layer, i);
}

static uint64_t sample(int copy, int microbatch)
{
    return (uint64_t)copy << 32 | (uint32_t)microbatch;
}

void model_input(const struct layer_run *layers, int copy, int microbatch, float *out)
{
    for (size_t i = 0; i < layers->tensor; i++)
        out[i] = number(layers, OF_INPUT, sample(copy, microbatch), i);
}

void model_wanted(const struct layer_run *layers, int copy, int microbatch, float *out)
{
    size_t width = (size_t)layers->plan->width;
    for (size_t i = 0; i < layers->tensor; i++) {
        size_t row = i / width;
        uint64_t bits = bits_of(layers, OF_WANTED, sample(copy, microbatch), row);
        out[i] = layers->plan->loss == LOSS_MSE
                     ? number(layers, OF_WANTED, sample(copy, microbatch), i)
                     : (float)(bits % width == i % width);
    }
}

struct dense model_step(const struct layer_run *layers, enum dense_kind kind, bool last)
{
    const struct arithmetic *plan = layers->plan;
    return (struct dense){.kind = kind,
                          .activation = last ? LAYER_FUNCTION_NONE : plan->activation,
                          .loss = plan->loss,
                          .rows = plan->batch,
                          .in = plan->width,
                          .out = plan->width};
}

int model_layer_count(const struct layer_run *layers)
{
    const struct stage_memory *last = &layers->stages[layers->plan->length - 1];
    return last->first_layer + last->layers;
}
