/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers_passes.c - see layers_internal.h.
 *
 * The passes of a rank run one after another on one stream, so the places they keep things in can be assigned by their
 * order in the list: F takes one, the pass that uses it last gives it back.
 */
#include "layers_internal.h"
#include "base/array.h"

#include <stdlib.h>

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

enum status passes_note(struct layer_run *layers, const struct program *program, struct diag *diag)
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

enum status passes_expand(struct layer_run *layers, struct run *run, struct diag *diag)
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
