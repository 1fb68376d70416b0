/* SPDX-License-Identifier: Apache-2.0 */
/* layers_judge.c - see layers_internal.h: what the ranks have computed beside the serial result. */
#include "layers_internal.h"

#include <string.h>

struct judge {
    struct run *run;
    const struct serial *serial;
    struct runtime_arithmetic *out;
};

static struct device_stream *any_stream(const struct run *run, int rank)
{
    for (int s = 0; s < run->program->stream_count; s++)
        if (run->program->streams[s].rank == rank)
            return run->streams[s].handle;
    return NULL;
}

/* Copy a rank's results to host memory, which the caller frees. */
static enum status fetch(const struct run *run, int rank, struct device_buffer **out,
                         struct diag *diag)
{
    const struct rank_memory *memory = &run->layers->ranks[rank];
    size_t bytes = (memory->unread - memory->read) * sizeof(float);
    enum status status = device_alloc(run->ranks[rank].device, MEMORY_PINNED, bytes, out, diag);
    if (status)
        return status;
    const struct device_op op = {.kind = DEVICE_OP_COPY,
                                 .copy = {DIRECTION_D2H,
                                          {memory->memory, memory->read * sizeof(float)},
                                          {*out, 0},
                                          (int64_t)bytes}};
    status = device_push(any_stream(run, rank), &op, NULL, diag);
    return status ? status : device_stream_sync(any_stream(run, rank), DEVICE_FOREVER, diag);
}

static bool same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Keep the first difference of all. */
static void differ(struct runtime_arithmetic *out, const struct runtime_difference *difference)
{
    if (out->different++ == 0)
        out->first = *difference;
}

static void compare_layer(struct judge *judge, int s, int layer, const float *found,
                          const float *expected)
{
    const struct layer_run *layers = judge->run->layers;
    size_t width = (size_t)layers->plan->width;
    for (size_t i = 0; i < layers->weights; i++)
        if (!same_bits(found + i, expected + i))
            differ(judge->out,
                   &(struct runtime_difference){.rank = layers->stages[s].rank,
                                                .stage = s % layers->plan->stages,
                                                .layer = layer,
                                                .microbatch = -1,
                                                .row = i < width * width ? (int)(i / width) : -1,
                                                .column = (int)(i % width),
                                                .found = found[i],
                                                .expected = expected[i]});
}

static void compare_losses(struct judge *judge, int s, const float *found)
{
    const struct layer_run *layers = judge->run->layers;
    const struct stage_memory *stage = &layers->stages[s];
    const float *expected = judge->serial[stage->copy].losses;
    for (int m = 0; m < layers->plan->microbatches; m++) {
        if (!*layers_present(layers, stage->copy, m))
            continue;
        judge->out->losses++;
        judge->out->loss_sum += (double)found[m];
        if (!same_bits(found + m, expected + m))
            differ(judge->out, &(struct runtime_difference){.rank = stage->rank,
                                                            .stage = s % layers->plan->stages,
                                                            .layer = stage->layers - 1,
                                                            .microbatch = m,
                                                            .found = found[m],
                                                            .expected = expected[m]});
    }
}

static void compare_stage(struct judge *judge, int s, const float *numbers)
{
    const struct layer_run *layers = judge->run->layers;
    const struct stage_memory *stage = &layers->stages[s];
    size_t read = layers->ranks[stage->rank].read;
    size_t gradients = layers->reduced ? stage->reduced : stage->gradients;
    for (int l = 0; l < stage->layers && layers->trained[stage->copy]; l++) {
        size_t at = (size_t)l * layers->weights;
        compare_layer(judge, s, l, numbers + (gradients - read) + at,
                      judge->serial[stage->copy].gradients +
                          (size_t)stage->first_layer * layers->weights + at);
        judge->out->gradients += (int64_t)layers->weights;
    }
    if (stage->last)
        compare_losses(judge, s, numbers + (stage->losses - read));
}

static enum status compare_rank(struct judge *judge, int rank, struct diag *diag)
{
    const struct layer_run *layers = judge->run->layers;
    struct device_buffer *host = NULL;
    if (!layers->ranks[rank].memory)
        return STATUS_OK;
    enum status status = fetch(judge->run, rank, &host, diag);
    for (int s = 0; s < layers->stage_count && !status; s++)
        if (layers->stages[s].rank == rank)
            compare_stage(judge, s, device_host_pointer(host));
    device_free(host);
    return status;
}

enum status layers_judge(struct run *run, struct runtime_arithmetic *out, struct diag *diag)
{
    struct serial *serial = NULL;
    struct runtime_arithmetic made = {.equal = ANSWER_UNKNOWN};
    enum status status = serial_open(run->layers, run->config.stop, &serial, diag);
    struct judge judge = {run, serial, &made};
    if (status)
        return status;
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !status; rank++)
        status = compare_rank(&judge, rank, diag);
    serial_close(run->layers, serial);
    made.equal = made.different ? ANSWER_NO : ANSWER_YES;
    if (!status)
        *out = made;
    return status;
}
