/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - see layers.h: the model, the memory of the ranks, and the messages between them.
 *
 * Places in the memory of a rank are counted in numbers (f32) from its start:
 *
 *     weights | x of microbatches | wanted | gradients of weights, reduced ones | losses | the rest
 *     '-------------------- written before the run --------------------'
 *                                          '----------- read at its end -----------'
 */
#include "layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/hash.h"

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

static int layers_stage(const struct layer_run *layers, int rank, int stage);
static struct dense model_step(const struct layer_run *layers, enum dense_kind kind, bool last);

static inline bool *layers_present(const struct layer_run *layers, int copy, int microbatch)
{
    return &layers->present[(size_t)copy * (size_t)layers->plan->microbatches + (size_t)microbatch];
}

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

/* ---- what each pass keeps ---------------------------------------------------------------------- */

/*
 * The passes of a rank run one after another on one stream, so the places they keep things in can be assigned by their
 * order in the list: F takes one, the pass that uses it last gives it back.
 */

/* The slots of a stage and microbatch while its list is read, each + 1; 0: none. */
struct layers_passes_cell {
    int kept, left, held;
};

struct note {
    struct layer_run *layers;
    struct layers_passes_cell *cells; /* [stage][microbatch] */
    int *turn;                        /* [stage]: the microbatch whose gradients are added next */
    bool no_memory;
};

/* ---- slots ----------------------------------------------------------------------------------- */

static void layers_passes_give_back(struct slots *slots, int *slot)
{
    if (*slot)
        slots->unused[slots->unused_count++] = *slot - 1;
    *slot = 0;
}

/* The slot of a cell, taken if it has none. */
static int layers_passes_keep(struct slots *slots, int *slot)
{
    if (!*slot)
        *slot = (slots->unused_count ? slots->unused[--slots->unused_count] : slots->count++) + 1;
    return *slot - 1;
}

static int layers_passes_find(struct slots *slots, const int *slot)
{
    slots->absent = slots->absent || !*slot;
    return *slot ? *slot - 1 : NO_SLOT;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static struct layers_passes_cell *layers_passes_cell_of(const struct note *note,
                                                        const struct pass *pass)
{
    return &note->cells[(size_t)pass->stage * (size_t)note->layers->plan->microbatches +
                        (size_t)pass->microbatch];
}

/* From this microbatch on, the first one that the lists have. */
static int next_turn(const struct layer_run *layers, int copy, int microbatch)
{
    while (microbatch < layers->plan->microbatches && !*layers_present(layers, copy, microbatch))
        microbatch++;
    return microbatch;
}

static bool layers_passes_add_turn(struct layer_run *layers, int slot)
{
    if (!ARENA_GROW(&layers->arena, layers->turns, layers->turn_count, layers->turn_cap))
        return false;
    layers->turns[layers->turn_count++] = slot;
    return true;
}

/* The sum is now without the microbatches from `turn` on: add those that are held. */
static void add_held(struct note *note, struct pass *pass)
{
    struct layer_run *layers = note->layers;
    struct stage_memory *stage = &layers->stages[pass->stage];
    int *turn = &note->turn[pass->stage];
    for (*turn = next_turn(layers, stage->copy, *turn + 1); *turn < layers->plan->microbatches;
         *turn = next_turn(layers, stage->copy, *turn + 1)) {
        struct layers_passes_cell *cell =
            layers_passes_cell_of(note, &(struct pass){.stage = pass->stage, .microbatch = *turn});
        if (!cell->held)
            return;
        note->no_memory = note->no_memory || !layers_passes_add_turn(layers, cell->held - 1);
        layers_passes_give_back(&stage->held, &cell->held);
    }
}

/* A microbatch that had its turn already is added at once: the list is wrong, and it shows. */
static void note_weights(struct note *note, struct pass *pass)
{
    struct stage_memory *stage = &note->layers->stages[pass->stage];
    int turn = note->turn[pass->stage];
    pass->first_turn = note->layers->turn_count;
    pass->held = NO_SLOT;
    if (pass->microbatch > turn)
        pass->held = layers_passes_keep(&stage->held, &layers_passes_cell_of(note, pass)->held);
    else if (pass->microbatch == turn)
        add_held(note, pass);
    pass->turns = note->layers->turn_count - pass->first_turn;
}

static void layers_passes_note_pass(struct note *note, struct pass *pass)
{
    struct stage_memory *stage = &note->layers->stages[pass->stage];
    struct layers_passes_cell *cell = layers_passes_cell_of(note, pass);
    bool again = note->layers->plan->again[pass->microbatch];
    bool keeps = !again && note->layers->trained[stage->copy];
    pass->kept = pass->left = pass->held = NO_SLOT;
    pass->again = again && (pass->kind == ACTION_I || pass->kind == ACTION_B);
    if (pass->kind == ACTION_F)
        pass->kept = keeps ? layers_passes_keep(&stage->kept, &cell->kept) : NO_SLOT;
    else
        pass->kept = pass->again ? layers_passes_keep(&stage->kept, &cell->kept)
                                 : layers_passes_find(&stage->kept, &cell->kept);
    if (pass->kind == ACTION_I || pass->kind == ACTION_B)
        pass->left = layers_passes_keep(&stage->left, &cell->left);
    else if (pass->kind == ACTION_W)
        pass->left = layers_passes_find(&stage->left, &cell->left);
    if (pass->kind == ACTION_F || pass->kind == ACTION_I)
        return;
    note_weights(note, pass);
    layers_passes_give_back(&stage->kept, &cell->kept);
    layers_passes_give_back(&stage->left, &cell->left);
}

/* ---- all passes ------------------------------------------------------------------------------ */

static bool layers_passes_is_pass(enum action_kind kind)
{
    return kind == ACTION_F || kind == ACTION_I || kind == ACTION_W || kind == ACTION_B;
}

/* Which microbatches there are, and what is done with them: in each replica the same. */
static void note_present(struct layer_run *layers, const struct plan *lowered)
{
    for (size_t i = 0; i < lowered->listed_count; i++) {
        const struct listed_action *listed = &lowered->listed[i];
        for (int s = listed->stage; layers_passes_is_pass(listed->kind) && s < layers->stage_count;
             s += layers->plan->stages) {
            int copy = layers->stages[s].copy;
            *layers_present(layers, copy, listed->microbatch) = true;
            layers->trained[copy] = layers->trained[copy] || listed->kind != ACTION_F;
        }
    }
}

static struct pass *layers_passes_add_pass(struct layer_run *layers, size_t op, int stage,
                                           const struct listed_action *listed)
{
    if (!ARENA_GROW(&layers->arena, layers->passes, layers->pass_count, layers->pass_cap))
        return NULL;
    struct pass *pass = &layers->passes[layers->pass_count++];
    *pass = (struct pass){.kind = listed->kind, .stage = stage, .microbatch = listed->microbatch};
    layers->of_op[op].count++;
    return pass;
}

/* The passes of one kernel: one, or those of a composite. */
static enum status layers_passes_note_op(struct note *note, const struct program *p, size_t op,
                                         int rank, struct diag *diag)
{
    struct layer_run *layers = note->layers;
    const struct plan *lowered = p->plan;
    ASSERT_INDEX(op, p->op_count);
    size_t first = p->ops[op].listed - 1;
    layers->of_op[op].first = (uint32_t)layers->pass_count;
    for (size_t i = first;
         i < lowered->listed_count && lowered->listed[i].row == lowered->listed[first].row &&
         lowered->listed[i].column == lowered->listed[first].column;
         i++) {
        const struct listed_action *listed = &lowered->listed[i];
        if (!layers_passes_is_pass(listed->kind))
            break;
        struct pass *pass =
            layers_passes_add_pass(layers, op, layers_stage(layers, rank, listed->stage), listed);
        if (!pass)
            return diag_no_memory(diag);
        layers_passes_note_pass(note, pass);
    }
    return note->no_memory ? diag_no_memory(diag) : STATUS_OK;
}

/* A collective of one replica leaves gradients as they are. */
static enum status note_collective(struct note *note, const struct program *p, size_t op, int rank,
                                   struct diag *diag)
{
    struct layer_run *layers = note->layers;
    ASSERT_INDEX(op, p->op_count);
    const struct listed_action *listed = &p->plan->listed[p->ops[op].listed - 1];
    if (listed->kind != ACTION_REDUCE_GRAD || layers->plan->replicas == 1)
        return STATUS_OK;
    if (p->ops[op].given->work->collective != COLLECTIVE_ALL_REDUCE)
        return diag_error(diag, STATUS_INPUT,
                          "arithmetic: found gradients that are sharded, expected REDUCE_GRAD "
                          "without UNSHARD");
    layers->of_op[op].first = (uint32_t)layers->pass_count;
    layers->reduced = true;
    return layers_passes_add_pass(layers, op, layers_stage(layers, rank, listed->stage), listed)
               ? STATUS_OK
               : diag_no_memory(diag);
}

static enum status layers_passes_note_all(struct note *note, const struct program *p,
                                          struct diag *diag)
{
    struct layer_run *layers = note->layers;
    enum status status = STATUS_OK;
    note_present(layers, p->plan);
    for (int s = 0; s < layers->stage_count; s++)
        note->turn[s] = next_turn(layers, layers->stages[s].copy, 0);
    for (size_t b = 0; b < p->body_count && !status; b++)
        for (int i = 0; i < p->bodies[b].count && !status; i++) {
            size_t op = (size_t)(p->bodies[b].first + i);
            int rank = p->threads[p->bodies[b].thread].rank;
            if (p->ops[op].kind == OP_LAUNCH && p->ops[op].listed)
                status = layers_passes_note_op(note, p, op, rank, diag);
            if (p->ops[op].kind == OP_COLLECTIVE && p->ops[op].listed)
                status = note_collective(note, p, op, rank, diag);
        }
    return status;
}

/* The passes of all ranks in the order of their lists. */
static enum status passes_note(struct layer_run *layers, const struct program *program,
                               struct diag *diag)
{
    size_t stages = (size_t)layers->stage_count, microbatches = (size_t)layers->plan->microbatches;
    struct note note = {.layers = layers,
                        .cells = calloc(stages * microbatches + 1, sizeof *note.cells),
                        .turn = calloc(stages + 1, sizeof *note.turn)};
    enum status status = STATUS_OK;
    for (size_t s = 0; s < stages && !status; s++) {
        struct stage_memory *stage = &layers->stages[s];
        stage->kept.unused = ARENA_ARRAY(&layers->arena, microbatches, int);
        stage->left.unused = ARENA_ARRAY(&layers->arena, microbatches, int);
        stage->held.unused = ARENA_ARRAY(&layers->arena, microbatches, int);
    }
    if (!note.cells || !note.turn || layers->arena.failed)
        status = diag_no_memory(diag);
    if (!status)
        status = layers_passes_note_all(&note, program, diag);
    free(note.cells);
    free(note.turn);
    return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The steps of a pass being written. */
struct layers_passes_writer {
    struct layer_run *layers;
    const struct stage_memory *stage;
    const struct pass *pass;
    struct device_buffer *memory;
    bool no_memory;
};

static void layers_passes_write_step(struct layers_passes_writer *writer, struct dense dense,
                                     size_t a, size_t b, size_t c, size_t d)
{
    struct layer_run *layers = writer->layers;
    const size_t at[DENSE_OPERANDS] = {a, b, c, d};
    if (!ARENA_GROW(&layers->arena, layers->steps, layers->step_count, layers->step_cap)) {
        writer->no_memory = true;
        return;
    }
    struct device_dense_step *step = &layers->steps[layers->step_count++];
    step->dense = dense;
    for (int i = 0; i < DENSE_OPERANDS; i++)
        step->refs[i] = (struct device_ref){writer->memory, at[i] * sizeof(float)};
}

static size_t slot_at(const struct slots *slots, int slot, size_t size)
{
    return slots->at + (size_t)(slot == NO_SLOT ? slots->count : slot) * size;
}

static size_t tensor_at(const struct layers_passes_writer *writer, size_t first)
{
    return first + (size_t)writer->pass->microbatch * writer->layers->tensor;
}

/* Layer by layer: x w + b, then what f makes of it; the last one is the stage's output. */
static size_t before_at(const struct layers_passes_writer *writer, size_t kept, int layer)
{
    return kept + (size_t)layer * writer->layers->tensor;
}

static size_t input_at(const struct layers_passes_writer *writer, size_t kept, int layer)
{
    if (layer == 0)
        return tensor_at(writer, writer->stage->x);
    return kept + (size_t)(writer->stage->layers + layer - 1) * writer->layers->tensor;
}

static bool layers_passes_is_last(const struct layers_passes_writer *writer, int layer)
{
    return writer->stage->last && layer == writer->stage->layers - 1;
}

static size_t weights_at(const struct layers_passes_writer *writer, int layer)
{
    return writer->stage->weights + (size_t)layer * writer->layers->weights;
}

static void layers_passes_write_forward(struct layers_passes_writer *writer, size_t kept, size_t y)
{
    for (int l = 0; l < writer->stage->layers; l++)
        layers_passes_write_step(
            writer, model_step(writer->layers, DENSE_FORWARD, layers_passes_is_last(writer, l)),
            input_at(writer, kept, l), weights_at(writer, l), before_at(writer, kept, l),
            l == writer->stage->layers - 1 ? y : input_at(writer, kept, l + 1));
}

static void write_loss(struct layers_passes_writer *writer)
{
    const struct stage_memory *stage = writer->stage;
    layers_passes_write_step(writer, model_step(writer->layers, DENSE_LOSS, true),
                             tensor_at(writer, stage->y), tensor_at(writer, stage->wanted),
                             stage->losses + (size_t)writer->pass->microbatch, 0);
}

/* The gradient of the stage's output: brought to it, or that of the loss. */
static size_t write_output_gradient(struct layers_passes_writer *writer)
{
    const struct stage_memory *stage = writer->stage;
    if (!stage->last)
        return tensor_at(writer, stage->gy);
    layers_passes_write_step(writer, model_step(writer->layers, DENSE_LOSS_GRADIENT, true),
                             tensor_at(writer, stage->y), tensor_at(writer, stage->wanted),
                             stage->scratch, 0);
    return stage->scratch;
}

static void write_input_pass(struct layers_passes_writer *writer, size_t kept, size_t left)
{
    const struct stage_memory *stage = writer->stage;
    size_t gradient = write_output_gradient(writer), tensor = writer->layers->tensor;
    for (int l = stage->layers - 1; l >= 0; l--) {
        size_t inner = left + (size_t)l * tensor;
        layers_passes_write_step(
            writer,
            model_step(writer->layers, DENSE_ACTIVATION_GRADIENT, layers_passes_is_last(writer, l)),
            gradient, before_at(writer, kept, l), inner, 0);
        if (l == 0 && stage->first)
            return; /* nobody wants the gradient of the model's input */
        gradient = l ? stage->scratch + (size_t)(1 + l % 2) * tensor : tensor_at(writer, stage->gx);
        layers_passes_write_step(writer, model_step(writer->layers, DENSE_INPUT_GRADIENT, false),
                                 inner, weights_at(writer, l), gradient, 0);
    }
}

static void write_weight_pass(struct layers_passes_writer *writer, size_t kept, size_t left)
{
    const struct stage_memory *stage = writer->stage;
    const struct pass *pass = writer->pass;
    const struct layer_run *layers = writer->layers;
    size_t size = passes_weights_size(layers, stage);
    size_t to = pass->held == NO_SLOT ? stage->gradients : slot_at(&stage->held, pass->held, size);
    struct dense add = model_step(layers, DENSE_ADD, false);
    add.in = (int64_t)size;
    for (int l = 0; l < stage->layers; l++) {
        struct dense dense = model_step(layers, DENSE_WEIGHT_GRADIENT, false);
        dense.add = pass->held == NO_SLOT;
        layers_passes_write_step(writer, dense, input_at(writer, kept, l),
                                 left + (size_t)l * layers->tensor,
                                 to + (size_t)l * layers->weights, 0);
    }
    for (size_t i = 0; i < pass->turns; i++)
        layers_passes_write_step(writer, add,
                                 slot_at(&stage->held, layers->turns[pass->first_turn + i], size),
                                 0, stage->gradients, 0);
}

/* The sum of the gradients of all replicas, added in their order. */
static void write_sum(struct layers_passes_writer *writer)
{
    const struct layer_run *layers = writer->layers;
    size_t size = passes_weights_size(layers, writer->stage);
    struct dense add = model_step(layers, DENSE_ADD, false);
    add.in = (int64_t)size;
    for (int replica = 0; replica < layers->plan->replicas; replica++)
        layers_passes_write_step(writer, add, writer->stage->gathered + (size_t)replica * size, 0,
                                 writer->stage->reduced, 0);
}

static void write_pass(struct layers_passes_writer *writer)
{
    const struct pass *pass = writer->pass;
    const struct stage_memory *stage = writer->stage;
    size_t kept = slot_at(&stage->kept, pass->kept, passes_kept_size(writer->layers, stage));
    size_t left = slot_at(&stage->left, pass->left, passes_left_size(writer->layers, stage));
    if (pass->kind == ACTION_F)
        layers_passes_write_forward(writer, pass->kept == NO_SLOT ? stage->again : kept,
                                    tensor_at(writer, stage->y));
    if (pass->kind == ACTION_F && stage->last)
        write_loss(writer);
    if (pass->again)
        layers_passes_write_forward(writer, kept, stage->scratch);
    if (pass->kind == ACTION_I || pass->kind == ACTION_B)
        write_input_pass(writer, kept, left);
    if (pass->kind == ACTION_W || pass->kind == ACTION_B)
        write_weight_pass(writer, kept, left);
}

/* The steps of those whose ranks are here, once all has its place. */
static enum status passes_expand(struct layer_run *layers, struct run *run, struct diag *diag)
{
    for (size_t i = 0; i < layers->pass_count; i++) {
        struct pass *pass = &layers->passes[i];
        const struct stage_memory *stage = &layers->stages[pass->stage];
        if (!run_has(run, stage->rank))
            continue;
        struct layers_passes_writer writer = {.layers = layers,
                                              .stage = stage,
                                              .pass = pass,
                                              .memory = layers->ranks[stage->rank].memory};
        pass->first_step = layers->step_count;
        if (pass->kind == ACTION_REDUCE_GRAD)
            write_sum(&writer);
        else
            write_pass(&writer);
        pass->last_step = layers->step_count;
        if (writer.no_memory)
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

struct device_dense layers_steps(const struct run *run, const struct op *op)
{
    const struct layer_run *layers = run->layers;
    const struct pass_range *range = &layers->of_op[op - run->program->ops];
    if (range->count == 0)
        return (struct device_dense){NULL, 0};
    const struct pass *first = &layers->passes[range->first], *last = first + range->count - 1;
    return (struct device_dense){layers->steps + first->first_step,
                                 last->last_step - first->first_step};
}

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
/* The first weights of a layer; the input and the wanted output of a microbatch. */
static void model_weights(const struct layer_run *layers, int layer, float *out)
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

static void model_input(const struct layer_run *layers, int copy, int microbatch, float *out)
{
    for (size_t i = 0; i < layers->tensor; i++)
        out[i] = layers_number(layers, OF_INPUT, sample(copy, microbatch), i);
}

static void model_wanted(const struct layer_run *layers, int copy, int microbatch, float *out)
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

/* A step of the model's kind, without its operands; `last`: of the model, which is linear. */
static struct dense model_step(const struct layer_run *layers, enum dense_kind kind, bool last)
{
    const struct arithmetic *plan = layers->plan;
    return (struct dense){.kind = kind,
                          .activation = last ? LAYER_FUNCTION_NONE : plan->activation,
                          .loss = plan->loss,
                          .rows = plan->batch,
                          .in = plan->width,
                          .out = plan->width};
}

static int model_layer_count(const struct layer_run *layers)
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
    ASSERT_INDEX(other, layers->stage_count);
    ASSERT_INDEX(stage, layers->stage_count);
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

/* The stage of this number that is on this rank, with those of its replica; -1: it is on another. */
static int layers_stage(const struct layer_run *layers, int rank, int stage)
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

/*
 * What the ranks have computed is compared with the serial result.
 *
 * The serial result is that of the whole model on this thread, one microbatch after another in the order of their numbers. It
 * knows no stages, slots or messages.
 */

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
    ASSERT_INDEX(s, layers->stage_count);
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
    ASSERT_INDEX(s, layers->stage_count);
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
