/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers_internal.h - shared by the files about layers.
 *
 *     layers.c          the shape of the model, weights and data; memory of the ranks, messages
 *     layers_passes.c   what each pass keeps and holds, by the order of the lists; its steps
 *     layers_judge.c    the serial result, and the comparison with it
 *
 * Places in the memory of a rank are counted in numbers (f32) from its start:
 *
 *     weights | x of microbatches | wanted | gradients of weights, reduced ones | losses | the rest
 *     '-------------------- written before the run --------------------'
 *                                          '----------- read at its end -----------'
 */
#ifndef SWSIM_LAYERS_INTERNAL_H
#define SWSIM_LAYERS_INTERNAL_H

#include "layers.h"

enum { NO_SLOT = -1 };

/* Places of one size of a stage, taken and given back as the list goes on. */
struct slots {
    size_t at;   /* of the first */
    int count;   /* the most that were in use */
    bool absent; /* a pass wants one that was never taken: it gets one that nothing writes */
    int *unused; /* [unused_count] */
    int unused_count;
};

struct stage_memory {
    int rank, layers;
    int copy, first_layer; /* which of the model it has; replicas have copies of their own */
    bool first, last;      /* of its copy */
    size_t weights, gradients;
    size_t reduced, gathered; /* of all replicas: the sum; one after the other */
    size_t x, y, gx, gy; /* of microbatch 0: input, output, their gradients; the others follow */
    size_t wanted, losses;
    size_t again, scratch; /* what F leaves that is computed once more; three tensors */
    struct slots kept, left, held;
};

/* A pass as its list has it, or a REDUCE_GRAD. Slots are those it uses. */
struct pass {
    enum action_kind kind;
    int stage, microbatch;
    bool again;                   /* I, B: computes F first */
    int kept, left;               /* slots */
    int held;                     /* W, B: its weight gradients go there; NO_SLOT: to the sum */
    size_t first_turn, turns;     /* W, B: what is added behind it: layers->turns */
    size_t first_step, last_step; /* layers->steps */
};

struct pass_range {
    uint32_t first, count; /* layers->passes */
};

struct layers_rank_memory {
    struct device_buffer *memory;
    size_t numbers;
    size_t written;      /* before the run, from 0 */
    size_t read, unread; /* at its end, from `read` to before `unread` */
};

struct layer_run {
    const struct arithmetic *plan;
    struct arena arena;
    int copies;             /* of all replicas: a replica's follow those of the one before */
    int stage_count;        /* likewise */
    bool reduced;           /* the lists reduce gradients: those of all replicas are added up */
    size_t tensor, weights; /* numbers of a tensor, of a layer's weights and biases */
    struct stage_memory *stages;
    bool *present; /* [copy][microbatch]: some pass of it is in the lists */
    bool *trained; /* [copy]: some pass is backward */
    struct pass *passes;
    size_t pass_count, pass_cap;
    int *turns; /* held slots */
    size_t turn_count, turn_cap;
    struct device_dense_step *steps;
    size_t step_count, step_cap;
    struct pass_range *of_op; /* [program->op_count] */
    struct layers_rank_memory *ranks;
};

static inline bool *layers_present(const struct layer_run *layers, int copy, int microbatch)
{
    return &layers->present[(size_t)copy * (size_t)layers->plan->microbatches + (size_t)microbatch];
}

/* The stage of this number that is on this rank, with those of its replica; -1: it is on another. */
int layers_stage(const struct layer_run *layers, int rank, int stage);

/* ---- layers_passes.c ------------------------------------------------------------------------- */

/* The passes of all ranks in the order of their lists. */
enum status passes_note(struct layer_run *layers, const struct program *program, struct diag *diag);
/* The steps of those whose ranks are here, once all has its place. */
enum status passes_expand(struct layer_run *layers, struct run *run, struct diag *diag);
/* Of what F keeps of a microbatch, and I for W. */
static inline size_t passes_kept_size(const struct layer_run *layers,
                                      const struct stage_memory *stage)
{
    return (2 * (size_t)stage->layers - 1) * layers->tensor;
}
static inline size_t passes_left_size(const struct layer_run *layers,
                                      const struct stage_memory *stage)
{
    return (size_t)stage->layers * layers->tensor;
}
static inline size_t passes_weights_size(const struct layer_run *layers,
                                         const struct stage_memory *stage)
{
    return (size_t)stage->layers * layers->weights;
}

/* ---- layers.c -------------------------------------------------------------------------------- */

/* The first weights of a layer; the input and the wanted output of a microbatch. */
void model_weights(const struct layer_run *layers, int layer, float *out);
void model_input(const struct layer_run *layers, int copy, int microbatch, float *out);
void model_wanted(const struct layer_run *layers, int copy, int microbatch, float *out);
/* A step of the model's kind, without its operands; `last`: of the model, which is linear. */
struct dense model_step(const struct layer_run *layers, enum dense_kind kind, bool last);
int model_layer_count(const struct layer_run *layers);

#endif
