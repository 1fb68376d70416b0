/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers_judge.c - see layers_internal.h: what the ranks have computed is compared with the serial result.
 *
 * The serial result is that of the whole model on this thread, one microbatch after another in the order of their numbers. It
 * knows no stages, slots or messages.
 */
#include "layers_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the serial result ----------------------------------------------------------------------- */

/* [copy]: the gradients of all layers, and the losses of the microbatches. */
struct serial {
    float *gradients, *losses;
};

struct bench {
    const struct layer_run *layers;
    int count; /* layers of the model */
    float *weights, *gradients;
    float *before,
        *after; /* of each layer: x w + b, and what f makes of it; before the first of `after` the input */
    float *wanted, *outer, *inner; /* gradients of a layer's output, of its x w + b */
};

static float *layer_of(const struct bench *bench, float *first, int layer)
{
    return first + (size_t)layer * bench->layers->weights;
}

static float *tensor_of(const struct bench *bench, float *first, int number)
{
    return first + (size_t)number * bench->layers->tensor;
}

static void step(const struct bench *bench, enum dense_kind kind, int layer, const float *a,
                 const float *b, float *c, float *d)
{
    struct dense dense = model_step(bench->layers, kind, layer == bench->count - 1);
    dense.a = a;
    dense.b = b;
    dense.c = c;
    dense.d = d;
    dense.add = kind == DENSE_WEIGHT_GRADIENT;
    dense_compute(&dense, NULL);
}

static void forward(const struct bench *bench, float *loss)
{
    for (int l = 0; l < bench->count; l++)
        step(bench, DENSE_FORWARD, l, tensor_of(bench, bench->after, l),
             layer_of(bench, bench->weights, l), tensor_of(bench, bench->before, l),
             tensor_of(bench, bench->after, l + 1));
    step(bench, DENSE_LOSS, bench->count - 1, tensor_of(bench, bench->after, bench->count),
         bench->wanted, loss, NULL);
}

static void backward(const struct bench *bench)
{
    step(bench, DENSE_LOSS_GRADIENT, bench->count - 1, tensor_of(bench, bench->after, bench->count),
         bench->wanted, bench->outer, NULL);
    for (int l = bench->count - 1; l >= 0; l--) {
        step(bench, DENSE_ACTIVATION_GRADIENT, l, bench->outer, tensor_of(bench, bench->before, l),
             bench->inner, NULL);
        step(bench, DENSE_WEIGHT_GRADIENT, l, tensor_of(bench, bench->after, l), bench->inner,
             layer_of(bench, bench->gradients, l), NULL);
        step(bench, DENSE_INPUT_GRADIENT, l, bench->inner, layer_of(bench, bench->weights, l),
             bench->outer, NULL);
    }
}

static enum status layers_judge_run_copy(struct bench *bench, int copy, const atomic_int *stop,
                                         struct serial *serial, struct diag *diag)
{
    const struct layer_run *layers = bench->layers;
    bench->gradients = serial->gradients;
    for (int m = 0; m < layers->plan->microbatches; m++) {
        if (stop && atomic_load(stop) != RUNTIME_GO)
            return diag_error(diag, STATUS_VIOLATED,
                              "interrupted: the serial result was not finished");
        if (!*layers_present(layers, copy, m))
            continue;
        model_input(layers, copy, m, bench->after);
        model_wanted(layers, copy, m, bench->wanted);
        forward(bench, &serial->losses[m]);
        if (layers->trained[copy])
            backward(bench);
    }
    return STATUS_OK;
}

static float *numbers(size_t count, size_t size)
{
    return calloc(count * size + 1, sizeof(float));
}

static enum status bench_open(struct bench *bench, const struct layer_run *layers,
                              struct diag *diag)
{
    size_t count = (size_t)model_layer_count(layers), tensor = layers->tensor;
    *bench = (struct bench){.layers = layers,
                            .count = (int)count,
                            .weights = numbers(count, layers->weights),
                            .before = numbers(count, tensor),
                            .after = numbers(count + 1, tensor),
                            .wanted = numbers(1, tensor),
                            .outer = numbers(1, tensor),
                            .inner = numbers(1, tensor)};
    if (!bench->weights || !bench->before || !bench->after || !bench->wanted || !bench->outer ||
        !bench->inner)
        return diag_no_memory(diag);
    for (int l = 0; l < bench->count; l++)
        model_weights(layers, l, layer_of(bench, bench->weights, l));
    return STATUS_OK;
}

static void bench_close(struct bench *bench)
{
    free(bench->weights);
    free(bench->before);
    free(bench->after);
    free(bench->wanted);
    free(bench->outer);
    free(bench->inner);
}

static void serial_close(const struct layer_run *layers, struct serial *serial)
{
    for (int copy = 0; serial && copy < layers->copies; copy++) {
        free(serial[copy].gradients);
        free(serial[copy].losses);
    }
    free(serial);
}

/* Each replica gets the sum of the gradients of all, added up in their order. */
static void layers_judge_reduce(const struct layer_run *layers, size_t count, struct serial *serial)
{
    int own = layers->copies / layers->plan->replicas; /* copies of a replica */
    for (int copy = 0; copy < own; copy++)
        for (size_t i = 0; i < count; i++) {
            float sum = 0;
            for (int c = copy; c < layers->copies; c += own)
                sum = sum + serial[c].gradients[i];
            for (int c = copy; c < layers->copies; c += own)
                serial[c].gradients[i] = sum;
        }
}

static enum status serial_open(const struct layer_run *layers, const atomic_int *stop,
                               struct serial **out, struct diag *diag)
{
    struct bench bench;
    struct serial *serial = calloc((size_t)layers->copies, sizeof *serial);
    enum status status = bench_open(&bench, layers, diag);
    if (!serial && !status)
        status = diag_no_memory(diag);
    for (int copy = 0; copy < layers->copies && !status; copy++) {
        serial[copy].gradients = numbers((size_t)bench.count, layers->weights);
        serial[copy].losses = numbers((size_t)layers->plan->microbatches, 1);
        status = serial[copy].gradients && serial[copy].losses
                     ? layers_judge_run_copy(&bench, copy, stop, &serial[copy], diag)
                     : diag_no_memory(diag);
    }
    if (!status && layers->reduced)
        layers_judge_reduce(layers, (size_t)bench.count * layers->weights, serial);
    bench_close(&bench);
    if (status)
        serial_close(layers, serial);
    else
        *out = serial;
    return status;
}

/* ---- the comparison -------------------------------------------------------------------------- */

struct judge {
    struct run *run;
    const struct serial *serial;
    struct runtime_arithmetic *out;
};

static bool same_bits(const float *a, const float *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Keep the first difference of all. */
static void layers_judge_differ(struct runtime_arithmetic *out,
                                const struct runtime_difference *difference)
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
            layers_judge_differ(judge->out, &(struct runtime_difference){
                                                .rank = layers->stages[s].rank,
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
        if (judge->out->losses < ARITHMETIC_LOSSES)
            judge->out->each_loss[judge->out->losses] = found[m];
        judge->out->losses++;
        judge->out->loss_sum += (double)found[m];
        if (!same_bits(found + m, expected + m))
            layers_judge_differ(judge->out,
                                &(struct runtime_difference){.rank = stage->rank,
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
    const struct layers_rank_memory *memory = &layers->ranks[rank];
    size_t bytes = (memory->unread - memory->read) * sizeof(float);
    if (!memory->memory)
        return STATUS_OK;
    float *numbers = malloc(bytes + 1);
    if (!numbers)
        return diag_no_memory(diag);
    enum status status = data_fetch(
        judge->run, rank, (struct device_ref){memory->memory, memory->read * sizeof(float)}, bytes,
        numbers, diag);
    for (int s = 0; s < layers->stage_count && !status; s++)
        if (layers->stages[s].rank == rank)
            compare_stage(judge, s, numbers);
    free(numbers);
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
