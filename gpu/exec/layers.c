/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - see layers.h and layers_internal.h: the model, the memory of the ranks, and the messages between them. */
#include "layers_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- the model: numbers made from the seed and their place, so every process makes the same -- */

enum { OF_WEIGHT = 1, OF_INPUT, OF_WANTED };

static uint64_t bits_of(const struct layer_run *layers, uint64_t what, uint64_t group,
                        uint64_t index)
{
    uint64_t hash = hash_mix((uint64_t)layers->plan->seed + UINT64_C(0x9e3779b97f4a7c15) * what);
    return hash_mix(hash_mix(hash ^ group) ^ index);
}

/* From -1 to 1, of 24 random bits: sums of such numbers depend on their order. */
static float layers_number(const struct layer_run *layers, uint64_t what, uint64_t group,
                           uint64_t index)
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
        out[i] = scale * layers_number(layers, OF_WEIGHT, (uint64_t)layer, i);
    for (size_t i = width * width; i < layers->weights; i++)
        out[i] = 0.125F * layers_number(layers, OF_WEIGHT, (uint64_t)layer, i);
}

static uint64_t sample(int copy, int microbatch)
{
    return (uint64_t)copy << 32 | (uint32_t)microbatch;
}

void model_input(const struct layer_run *layers, int copy, int microbatch, float *out)
{
    for (size_t i = 0; i < layers->tensor; i++)
        out[i] = layers_number(layers, OF_INPUT, sample(copy, microbatch), i);
}

void model_wanted(const struct layer_run *layers, int copy, int microbatch, float *out)
{
    size_t width = (size_t)layers->plan->width;
    for (size_t i = 0; i < layers->tensor; i++) {
        size_t row = i / width;
        uint64_t bits = bits_of(layers, OF_WANTED, sample(copy, microbatch), row);
        out[i] = layers->plan->loss == LOSS_MSE
                     ? layers_number(layers, OF_WANTED, sample(copy, microbatch), i)
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

/* ---- stages ---------------------------------------------------------------------------------- */

static enum status open_stages(struct layer_run *layers, struct diag *diag)
{
    const struct arithmetic *plan = layers->plan;
    layers->stages = ARENA_ARRAY(&layers->arena, (size_t)layers->stage_count, struct stage_memory);
    if (!layers->stages)
        return diag_no_memory(diag);
    for (int s = 0; s < layers->stage_count; s++) {
        struct stage_memory *stage = &layers->stages[s];
        int place = s % plan->stages % plan->length;
        *stage = (struct stage_memory){.rank = plan->rank_of[s],
                                       .layers = plan->layers[s % plan->stages],
                                       .copy = s / plan->length,
                                       .first_layer =
                                           place ? stage[-1].first_layer + stage[-1].layers : 0,
                                       .first = place == 0,
                                       .last = place == plan->length - 1};
        if (stage->rank < 0)
            return diag_error(diag, STATUS_INPUT,
                              "arithmetic: stage %d is on no rank, expected all up to %d", s,
                              plan->stages - 1);
    }
    return STATUS_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The next `count` things of `size` numbers each in the memory of a rank. */
static size_t layers_place(struct layer_run *layers, int rank, size_t count, size_t size)
{
    size_t at = layers->ranks[rank].numbers;
    layers->ranks[rank].numbers += count * size;
    return at;
}

static void place_slots(struct layer_run *layers, int rank, struct slots *slots, size_t size)
{
    slots->at = layers_place(layers, rank, (size_t)slots->count + slots->absent, size);
}

static bool same_rank(const struct layer_run *layers, int stage, int other)
{
    return layers->stages[stage].rank == layers->stages[other].rank;
}

/* Buffers written before the run, then buffers read at its end. */
static void place_model(struct layer_run *layers, int microbatches)
{
    int stages = layers->stage_count;
    for (int s = 0; s < stages; s++) {
        struct stage_memory *stage = &layers->stages[s];
        size_t data = (size_t)microbatches;
        stage->weights = layers_place(layers, stage->rank, 1, passes_weights_size(layers, stage));
        if (stage->first)
            stage->x = layers_place(layers, stage->rank, data, layers->tensor);
        if (stage->last)
            stage->wanted = layers_place(layers, stage->rank, data, layers->tensor);
    }
    for (int s = 0; s < stages; s++) {
        struct layers_rank_memory *rank = &layers->ranks[layers->stages[s].rank];
        struct stage_memory *stage = &layers->stages[s];
        rank->read = rank->read ? rank->read : rank->numbers;
        stage->gradients = layers_place(layers, stage->rank, 1, passes_weights_size(layers, stage));
        stage->reduced =
            layers_place(layers, stage->rank, layers->reduced, passes_weights_size(layers, stage));
        rank->written = rank->numbers;
    }
    for (int s = 0; s < stages; s++) {
        struct stage_memory *stage = &layers->stages[s];
        if (stage->last)
            stage->losses = layers_place(layers, stage->rank, (size_t)microbatches, 1);
        layers->ranks[stage->rank].unread = layers->ranks[stage->rank].numbers;
    }
}

/* Neighbours on one rank share what they hand on. */
static void place_tensors(struct layer_run *layers, int microbatches)
{
    size_t data = (size_t)microbatches;
    for (int s = 0; s < layers->stage_count; s++) {
        struct stage_memory *stage = &layers->stages[s];
        bool joined = !stage->first && same_rank(layers, s, s - 1);
        if (!stage->first)
            stage->x =
                joined ? stage[-1].y : layers_place(layers, stage->rank, data, layers->tensor);
        if (!stage->first)
            stage->gx = layers_place(layers, stage->rank, data, layers->tensor);
        if (joined)
            stage[-1].gy = stage->gx;
        stage->y = layers_place(layers, stage->rank, data, layers->tensor);
        if (!stage->last && !same_rank(layers, s, s + 1))
            stage->gy = layers_place(layers, stage->rank, data, layers->tensor);
    }
}

static void place_slots_of(struct layer_run *layers, struct stage_memory *stage)
{
    size_t kept = passes_kept_size(layers, stage);
    stage->again = layers_place(layers, stage->rank, 1, kept);
    stage->scratch = layers_place(layers, stage->rank, 3, layers->tensor);
    if (layers->reduced)
        stage->gathered = layers_place(layers, stage->rank, (size_t)layers->plan->replicas,
                                       passes_weights_size(layers, stage));
    place_slots(layers, stage->rank, &stage->kept, kept);
    place_slots(layers, stage->rank, &stage->left, passes_left_size(layers, stage));
    place_slots(layers, stage->rank, &stage->held, passes_weights_size(layers, stage));
}

static enum status too_big(double bytes, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT,
                      "arithmetic: the layers take %.0f MiB in this process, expected at most %lld",
                      bytes / (1 << 20), (long long)(LAYERS_MAX_BYTES >> 20));
}

/* A bound from below, before anything as big as the plan is allocated. */
static enum status check_tensors(const struct layer_run *layers, struct diag *diag)
{
    double cells = (double)layers->stage_count * layers->plan->microbatches;
    double bytes = cells * (sizeof(float) * (double)layers->tensor + 3 * sizeof(int));
    return bytes <= (double)LAYERS_MAX_BYTES ? STATUS_OK : too_big(bytes, diag);
}

static enum status layers_check_memory(const struct layer_run *layers, const struct run *run,
                                       struct diag *diag)
{
    double bytes = 0;
    for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++)
        bytes += (double)layers->ranks[rank].numbers * sizeof(float);
    return bytes <= (double)LAYERS_MAX_BYTES ? STATUS_OK : too_big(bytes, diag);
}

/* ---- before the run -------------------------------------------------------------------------- */

/* The weights of the rank's stages, the data of the first and the last one. Gradients begin at 0. */
static void write_model(const struct layer_run *layers, int rank, float *to)
{
    memset(to, 0, layers->ranks[rank].written * sizeof *to);
    for (int s = 0; s < layers->stage_count; s++) {
        const struct stage_memory *stage = &layers->stages[s];
        if (stage->rank != rank)
            continue;
        for (int l = 0; l < stage->layers; l++)
            model_weights(layers, stage->first_layer + l,
                          to + stage->weights + (size_t)l * layers->weights);
        for (int m = 0; m < layers->plan->microbatches; m++) {
            size_t offset = (size_t)m * layers->tensor;
            if (stage->first)
                model_input(layers, stage->copy, m, to + stage->x + offset);
            if (stage->last)
                model_wanted(layers, stage->copy, m, to + stage->wanted + offset);
        }
    }
}

static struct device_stream *layers_stream_of(const struct run *run, int rank)
{
    for (int s = 0; s < run->program->stream_count; s++)
        if (run->program->streams[s].rank == rank)
            return run->streams[s].handle;
    return NULL;
}

enum { OPEN_PUSHES = 2 };

static enum status fill_memory(const struct run *run, int rank, struct device_buffer *host,
                               struct diag *diag)
{
    const struct layers_rank_memory *memory = &run->layers->ranks[rank];
    struct device_stream *stream = layers_stream_of(run, rank);
    uint32_t bits = 0x7fc00000; /* not a number */
    float nothing;
    memcpy(&nothing, &bits, sizeof nothing);
    const struct device_op ops[OPEN_PUSHES] = {
        {.kind = DEVICE_OP_FILL,
         .fill = {{memory->memory, 0}, (int64_t)memory->numbers, DTYPE_F32, (double)nothing}},
        {.kind = DEVICE_OP_COPY,
         .copy = {DIRECTION_H2D,
                  {host, 0},
                  {memory->memory, 0},
                  (int64_t)(memory->written * sizeof(float))}}};
    enum status status = STATUS_OK;
    for (int i = 0; i < OPEN_PUSHES && !status; i++)
        status = device_push(stream, &ops[i], NULL, diag);
    return status ? status : device_stream_sync(stream, DEVICE_FOREVER, diag);
}

static enum status layers_open_rank(struct run *run, int rank, struct diag *diag)
{
    struct layers_rank_memory *memory = &run->layers->ranks[rank];
    struct device *device = run->ranks[rank].device;
    struct device_buffer *host = NULL;
    if (memory->numbers == 0 || !layers_stream_of(run, rank))
        return STATUS_OK;
    enum status status =
        device_alloc(device, MEMORY_DEVICE, memory->numbers * sizeof(float), &memory->memory, diag);
    if (!status)
        status = device_alloc(device, MEMORY_PINNED, memory->written * sizeof(float), &host, diag);
    if (status)
        return status;
    write_model(run->layers, rank, device_host_pointer(host));
    status = fill_memory(run, rank, host, diag);
    device_free(host);
    return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

static enum status layers_open_tables(struct layer_run *layers, const struct program *p,
                                      struct diag *diag)
{
    size_t copies = (size_t)layers->copies, microbatches = (size_t)layers->plan->microbatches;
    layers->present = ARENA_ARRAY(&layers->arena, copies * microbatches, bool);
    layers->trained = ARENA_ARRAY(&layers->arena, copies, bool);
    layers->of_op = ARENA_ARRAY(&layers->arena, p->op_count, struct pass_range);
    layers->ranks = ARENA_ARRAY(&layers->arena, (size_t)p->ranks, struct layers_rank_memory);
    return layers->arena.failed ? diag_no_memory(diag) : STATUS_OK;
}

static enum status layers_open_all(struct run *run, struct layer_run *layers, struct diag *diag)
{
    enum status status = check_tensors(layers, diag);
    if (!status)
        status = open_stages(layers, diag);
    if (!status)
        status = layers_open_tables(layers, run->program, diag);
    if (!status)
        status = passes_note(layers, run->program, diag);
    if (status)
        return status;
    place_model(layers, layers->plan->microbatches);
    place_tensors(layers, layers->plan->microbatches);
    for (int s = 0; s < layers->stage_count; s++)
        place_slots_of(layers, &layers->stages[s]);
    status = layers_check_memory(layers, run, diag);
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !status; rank++)
        status = layers_open_rank(run, rank, diag);
    return status ? status : passes_expand(layers, run, diag);
}

enum status layers_open(struct run *run, struct diag *diag)
{
    const struct arithmetic *plan = &run->program->plan->programs.arithmetic;
    if (!plan->given || plan->stages == 0)
        return STATUS_OK;
    struct layer_run *layers = calloc(1, sizeof *layers);
    if (!layers)
        return diag_no_memory(diag);
    run->layers = layers;
    arena_init(&layers->arena, (size_t)LAYERS_MAX_BYTES);
    size_t width = (size_t)plan->width;
    layers->plan = plan;
    layers->copies = plan->replicas * (plan->stages / plan->length);
    layers->stage_count = plan->replicas * plan->stages;
    layers->tensor = width * (size_t)plan->batch;
    layers->weights = width * width + width;
    return layers_open_all(run, layers, diag);
}

void layers_close(struct run *run)
{
    struct layer_run *layers = run->layers;
    if (!layers)
        return;
    for (int rank = 0; layers->ranks && rank < run->program->ranks; rank++)
        device_free(layers->ranks[rank].memory);
    arena_fini(&layers->arena);
    free(layers);
    run->layers = NULL;
}

int layers_pushes(const struct run *run)
{
    return run->layers ? OPEN_PUSHES : 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

int layers_stage(const struct layer_run *layers, int rank, int stage)
{
    while (stage < layers->stage_count && layers->plan->rank_of[stage] != rank)
        stage += layers->plan->stages;
    return stage < layers->stage_count ? stage : -1;
}

bool layers_message(const struct run *run, const struct part *part, struct device_ref *ref,
                    int64_t *bytes)
{
    const struct layer_run *layers = run->layers;
    if (!layers || !part->listed)
        return false;
    const struct listed_action *message = &run->program->plan->listed[part->listed - 1];
    const struct channel *channel = &run->program->channels[part->channel];
    int s = layers_stage(layers, part->send ? channel->from : channel->to, message->stage);
    const struct stage_memory *stage = &layers->stages[s];
    size_t at = message->kind == ACTION_SEND_F   ? stage->y
                : message->kind == ACTION_RECV_F ? stage->x
                : message->kind == ACTION_SEND_B ? stage->gx
                                                 : stage->gy;
    at += (size_t)message->microbatch * layers->tensor;
    *ref = (struct device_ref){layers->ranks[stage->rank].memory, at * sizeof(float)};
    *bytes = (int64_t)(layers->tensor * sizeof(float));
    return true;
}

bool layers_gather(const struct run *run, const struct op *op, struct device_collective *collective)
{
    const struct layer_run *layers = run->layers;
    if (!layers || layers->of_op[op - run->program->ops].count == 0)
        return false;
    const struct pass *pass = &layers->passes[layers->of_op[op - run->program->ops].first];
    const struct stage_memory *stage = &layers->stages[pass->stage];
    struct device_buffer *memory = layers->ranks[stage->rank].memory;
    size_t bytes = passes_weights_size(layers, stage) * sizeof(float);
    collective->kind = COLLECTIVE_ALL_GATHER;
    collective->bytes = (int64_t)bytes * layers->plan->replicas;
    collective->send = (struct device_ref){memory, stage->gradients * sizeof(float)};
    collective->recv = (struct device_ref){memory, stage->gathered * sizeof(float)};
    return true;
}
