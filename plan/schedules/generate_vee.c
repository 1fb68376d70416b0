/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_vee.c - see generate_internal.h: two chunks a rank, each kind of pass in the order of the microbatches.
 *
 * Sources: Qi et al. 2024 (ZB-V) and PyTorch's torch.distributed.pipelining for its exact order; DeepSeek-AI 2024
 * (DualPipe, DualPipeV).
 */
#include <assert.h>

#include "generate_internal.h"

/* Two chunks a rank, going down the ranks and up again; each kind of pass takes the microbatches in
   order. */
struct vee {
    struct list_builder *b;
    int stage[2];
    int microbatches;                       /* of each chunk */
    int forward[2], backward[2], weight[2]; /* next microbatch of each pass on each chunk */
};

static struct vee vee_begin(struct list_builder *b)
{
    return (struct vee){.b = b, .microbatches = b->m, .stage = {b->rank, 2 * b->p - 1 - b->rank}};
}

/* Passes beyond the last microbatch stand for idle time and are left out. */
static void vee_push(struct vee *vee, enum action_kind kind, int chunk)
{
    int *next = kind == ACTION_F   ? &vee->forward[chunk]
                : kind == ACTION_W ? &vee->weight[chunk]
                                   : &vee->backward[chunk];
    int microbatch = (*next)++;
    if (microbatch < vee->microbatches)
        generate_push(vee->b, kind, vee->stage[chunk], microbatch);
}

static void vee_push_split(struct vee *vee, int chunk)
{
    vee_push(vee, ACTION_I, chunk);
    vee_push(vee, ACTION_W, chunk);
}

void generate_zbv(struct list_builder *b)
{
    struct vee vee = vee_begin(b);
    int n = b->m < 2 * b->p - 1 ? 2 * b->p - 1 : b->m;
    for (int i = 0; i < 2 * (b->p - b->rank) - 1; i++)
        vee_push(&vee, ACTION_F, 0);
    for (int i = 0; i < b->rank; i++) {
        vee_push(&vee, ACTION_F, 1);
        vee_push(&vee, ACTION_F, 0);
    }
    for (int i = 0; i < b->p - b->rank; i++) {
        vee_push(&vee, ACTION_F, 1);
        vee_push_split(&vee, 1);
    }
    while (vee.forward[1] < vee.forward[0] || vee.forward[0] < n) {
        if (vee.forward[0] < n)
            vee_push(&vee, ACTION_F, 0);
        vee_push_split(&vee, 0);
        vee_push(&vee, ACTION_F, 1);
        vee_push_split(&vee, 1);
    }
    for (int i = 0; i < b->rank; i++) {
        vee_push(&vee, ACTION_I, 0);
        vee_push(&vee, ACTION_I, 1);
    }
    for (int i = 0; i < b->p - b->rank; i++)
        vee_push_split(&vee, 0);
    for (int chunk = 1; chunk >= 0; chunk--)
        while (vee.weight[chunk] < b->m)
            vee_push(&vee, ACTION_W, chunk);
}

/* A forward of one chunk and a full backward of the other. */
static void vee_push_overlap(struct vee *vee, int forward_chunk)
{
    int backward_chunk = 1 - forward_chunk;
    generate_push_overlap(vee->b,
                          (struct action){.kind = ACTION_F,
                                          .stage = vee->stage[forward_chunk],
                                          .microbatch = vee->forward[forward_chunk]++},
                          (struct action){.kind = ACTION_B,
                                          .stage = vee->stage[backward_chunk],
                                          .microbatch = vee->backward[backward_chunk]++});
}

/* Weight passes owed, oldest first. It is a queue over both chunks, unlike the counters of a vee.
 */
struct owed {
    struct action *items;
    size_t head, count;
};

static void owe_input(struct vee *vee, struct owed *owed, int chunk)
{
    owed->items[owed->count++] = (struct action){
        .kind = ACTION_W, .stage = vee->stage[chunk], .microbatch = vee->backward[chunk]};
    vee_push(vee, ACTION_I, chunk);
}

static void pay_weight(struct vee *vee, struct owed *owed)
{
    assert(owed->head < owed->count);
    const struct action *weight = &owed->items[owed->head++];
    generate_push(vee->b, ACTION_W, weight->stage, weight->microbatch);
}

/* DualPipe's list of a rank that `below` other ranks are behind on the way to the tip, and `above` before it. */
struct dual {
    int above, below;
    int pairs; /* overlapped, of each kind, while forwards are left */
};

static void dual_fill(struct vee *vee, struct owed *owed, const struct dual *dual)
{
    for (int i = 0; i < 2 * dual->below; i++)
        vee_push(vee, ACTION_F, 0);
    for (int i = 0; i <= dual->above; i++) {
        vee_push(vee, ACTION_F, 0);
        vee_push(vee, ACTION_F, 1);
    }
    for (int i = 0; i < dual->below; i++) {
        owe_input(vee, owed, 1);
        pay_weight(vee, owed);
        vee_push(vee, ACTION_F, 1);
    }
}

static void dual_steady(struct vee *vee, const struct dual *dual)
{
    for (int i = 0; i < dual->pairs; i++) {
        if (i == 0 && dual->below == 0) { /* at the tip overlapping would cost a bubble */
            vee_push(vee, ACTION_F, 0);
            vee_push(vee, ACTION_B, 1);
        } else {
            vee_push_overlap(vee, 0);
        }
        vee_push_overlap(vee, 1);
    }
    for (int i = 0; i < dual->below; i++) {
        vee_push(vee, ACTION_B, 1);
        vee_push_overlap(vee, 1);
    }
}

/* Backwards only; half-way through they are split, so that weight passes fill the gaps that follow. */
static void dual_drain(struct vee *vee, struct owed *owed, const struct dual *dual)
{
    int half = (dual->above + 1) / 2;
    for (int i = 0; i <= dual->above; i++)
        for (int chunk = 1; chunk >= 0; chunk--) {
            bool split = i > half || (i == half && (dual->above % 2 == 1 || chunk == 0));
            if (split)
                owe_input(vee, owed, chunk);
            else
                vee_push(vee, ACTION_B, chunk);
        }
    for (int i = 0; i < dual->below; i++) {
        pay_weight(vee, owed);
        owe_input(vee, owed, 0);
    }
    while (owed->head < owed->count)
        pay_weight(vee, owed);
}

static void build_dual(struct list_builder *b, struct vee *vee, const struct dual *dual)
{
    struct owed owed = {.items = ARENA_ARRAY(b->arena, 2 * (size_t)b->m, struct action)};
    if (!owed.items) {
        b->failed = true;
        return;
    }
    dual_fill(vee, &owed, dual);
    dual_steady(vee, dual);
    dual_drain(vee, &owed, dual);
}

void generate_dualpipe_v(struct list_builder *b)
{
    struct vee vee = vee_begin(b);
    build_dual(b, &vee,
               &(struct dual){.above = b->rank,
                              .below = b->p - b->rank - 1,
                              .pairs = b->m - 2 * b->p + b->rank + 1});
}

/* Two copies of the model, one down the ranks and one up; half of the microbatches go through each. The first half of
   the ranks is nearer to the begin of the first copy. */
void generate_dualpipe(struct list_builder *b)
{
    struct vee vee = vee_begin(b);
    int half = b->p / 2, mirror = b->p - 1 - b->rank;
    int above = b->rank < mirror ? b->rank : mirror;
    int first = b->rank < half ? 0 : 1;
    vee.stage[first] = b->rank;
    vee.stage[1 - first] = b->p + mirror;
    vee.microbatches = b->m / 2;
    build_dual(b, &vee,
               &(struct dual){.above = above,
                              .below = half - above - 1,
                              .pairs = vee.microbatches - b->p + above + 1});
}
