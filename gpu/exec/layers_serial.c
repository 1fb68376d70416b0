/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers_serial.c - see layers_internal.h: the whole model on this thread, one microbatch after another in the order of
 * their numbers. It knows no stages, slots or messages.
 */
#include "layers_internal.h"

#include <stdlib.h>

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

static enum status run_copy(struct bench *bench, int copy, const atomic_int *stop,
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

void serial_close(const struct layer_run *layers, struct serial *serial)
{
    for (int copy = 0; serial && copy < layers->copies; copy++) {
        free(serial[copy].gradients);
        free(serial[copy].losses);
    }
    free(serial);
}

/* Each replica gets the sum of the gradients of all, added up in their order. */
static void reduce(const struct layer_run *layers, size_t count, struct serial *serial)
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

enum status serial_open(const struct layer_run *layers, const atomic_int *stop, struct serial **out,
                        struct diag *diag)
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
                     ? run_copy(&bench, copy, stop, &serial[copy], diag)
                     : diag_no_memory(diag);
    }
    if (!status && layers->reduced)
        reduce(layers, (size_t)bench.count * layers->weights, serial);
    bench_close(&bench);
    if (status)
        serial_close(layers, serial);
    else
        *out = serial;
    return status;
}
