/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - see generate.h.
 *
 * Most schedules are one pattern with four numbers a rank (`struct generate_pattern`): the order in which
 * microbatches visit the chunks, how many forwards warm up, and whether the backward is split and
 * how far its weight part lags:
 *
 *     F x warm, then pairs (F, backward) while forwards are left, then the other backwards
 *
 * GPipe is that pattern with nothing but warm-up. The looped breadth-first has a list of its own; the others are in
 * files of their own (generate_internal.h).
 *
 * Sources: PipeDream (1F1B); Megatron-LM's interleaved schedule; Lamy-Poirier 2022 (breadth-first);
 * Qi et al. 2023 and 2024 (zero bubble, ZB-V); DeepSeek-AI 2024 (DualPipe); PyTorch's
 * torch.distributed.pipelining for the exact order of ZB1P, ZB-V and DualPipeV.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "plan/keywords.h"

#include "generate_internal.h"

static void generate_own_push(struct list_builder *b, struct action action)
{
    assert(b->count < b->cap);
    action.mark = b->mark;
    b->actions[b->count++] = action;
}

/* PyTorch cuts the microbatches into equal rounds: of at least p, or one of all. */
static int equal_round(int ranks, int microbatches)
{
    return microbatches / max_int(1, microbatches / ranks);
}

void generate_push(struct list_builder *b, enum action_kind kind, int stage, int microbatch)
{
    generate_own_push(b, (struct action){.kind = kind, .stage = stage, .microbatch = microbatch});
}

/* A forward and a full backward, executed together. */
void generate_push_overlap(struct list_builder *b, struct action forward, struct action backward)
{
    struct action *parts = ARENA_ARRAY(b->arena, ACTION_PARTS, struct action);
    if (!parts) {
        b->failed = true;
        return;
    }
    parts[0] = forward;
    parts[1] = backward;
    parts[0].mark = parts[1].mark = b->mark;
    generate_own_push(b, (struct action){.kind = ACTION_OVERLAP_F_B,
                                         .stage = forward.stage,
                                         .microbatch = -1,
                                         .parts = parts});
}

/* ---- warm-up, steady pairs, cool-down -------------------------------------------------------- */

struct generate_visit {
    int chunk, microbatch;
};

/* The k-th forward of a rank: group after group; in a group chunk after chunk, each with all the
   group's microbatches. The last group may be smaller. */
static struct generate_visit visit_at(const struct list_builder *b, int group, int k)
{
    int first = k / (group * b->v) * group;
    int size = min_int(group, b->m - first);
    int within = k % (group * b->v);
    return (struct generate_visit){.chunk = within / size, .microbatch = first + within % size};
}

struct action generate_pass(const struct list_builder *b, enum action_kind kind, int group, int k)
{
    struct generate_visit visit = visit_at(b, group, k);
    int chunk = kind == ACTION_F ? visit.chunk : b->v - 1 - visit.chunk;
    return (struct action){
        .kind = kind, .stage = chunk * b->p + b->rank, .microbatch = visit.microbatch};
}

static void push_visit(struct list_builder *b, enum action_kind kind, int group, int k)
{
    generate_own_push(b, generate_pass(b, kind, group, k));
}

static void push_backward(struct list_builder *b, const struct generate_pattern *pattern, int k)
{
    push_visit(b, pattern->split ? ACTION_I : ACTION_B, pattern->group, k);
    if (pattern->split && k >= pattern->lag)
        push_visit(b, ACTION_W, pattern->group, k - pattern->lag);
}

static void build_pattern(struct list_builder *b, struct generate_pattern pattern)
{
    int total = b->v * b->m;
    int warm = min_int(pattern.warm, total);
    for (int k = 0; k < warm; k++)
        push_visit(b, ACTION_F, pattern.group, k);
    for (int k = 0; k < total; k++) {
        bool pair = warm + k < total;
        if (pair && pattern.overlap) {
            generate_push_overlap(b, generate_pass(b, ACTION_F, pattern.group, warm + k),
                                  generate_pass(b, ACTION_B, pattern.group, k));
            continue;
        }
        if (pair)
            push_visit(b, ACTION_F, pattern.group, warm + k);
        push_backward(b, &pattern, k);
    }
    if (!pattern.split)
        return;
    for (int k = max_int(0, total - pattern.lag); k < total; k++)
        push_visit(b, ACTION_W, pattern.group, k);
}

static void build_gpipe(struct list_builder *b)
{
    build_pattern(b, (struct generate_pattern){.warm = b->m, .group = b->m});
}

static struct generate_pattern pattern_1f1b(const struct list_builder *b)
{
    return (struct generate_pattern){.warm = b->p - b->rank - 1, .group = b->m};
}

static void build_1f1b(struct list_builder *b)
{
    build_pattern(b, pattern_1f1b(b));
}

static void build_forward_only(struct list_builder *b)
{
    for (int k = 0; k < b->v * b->m; k++)
        push_visit(b, ACTION_F, b->group, k);
}

static struct generate_pattern pattern_interleaved(const struct list_builder *b)
{
    int warm = 2 * (b->p - b->rank - 1) + (b->v - 1) * b->group + b->moe_overlap;
    return (struct generate_pattern){.warm = warm, .group = b->group, .overlap = b->moe_overlap};
}

static void build_interleaved(struct list_builder *b)
{
    build_pattern(b, pattern_interleaved(b));
}

static void build_interleaved_zero_bubble(struct list_builder *b)
{
    int group = equal_round(b->p, b->m);
    int warm = (b->p - b->rank - 1) + (b->v - 1) * group;
    build_pattern(
        b, (struct generate_pattern){.warm = warm, .group = group, .split = true, .lag = b->rank});
}

static void build_zb_h1(struct list_builder *b)
{
    build_pattern(b, (struct generate_pattern){
                         .warm = b->p - b->rank - 1, .group = b->m, .split = true, .lag = b->rank});
}

static void build_zb_h2(struct list_builder *b)
{
    build_pattern(
        b, (struct generate_pattern){
               .warm = 2 * (b->p - b->rank) - 2, .group = b->m, .split = true, .lag = 2 * b->rank});
}

/* ---- lists of their own ---------------------------------------------------------------------- */

static void build_gpipe_reverse(struct list_builder *b)
{
    for (int i = 0; i < b->m; i++)
        generate_push(b, ACTION_F, b->rank, i);
    for (int i = b->m - 1; i >= 0; i--)
        generate_push(b, ACTION_B, b->rank, i);
}

static void build_looped_bfs(struct list_builder *b)
{
    for (int chunk = 0; chunk < b->v; chunk++)
        for (int i = 0; i < b->m; i++)
            generate_push(b, ACTION_F, chunk * b->p + b->rank, i);
    for (int chunk = b->v - 1; chunk >= 0; chunk--)
        for (int i = b->m - 1; i >= 0; i--)
            generate_push(b, ACTION_B, chunk * b->p + b->rank, i);
}

/* ---- stages in a V --------------------------------------------------------------------------- */

/*
 * Two chunks a rank, each kind of pass in the order of the microbatches.
 *
 * Sources: Qi et al. 2024 (ZB-V) and PyTorch's torch.distributed.pipelining for its exact order; DeepSeek-AI 2024
 * (DualPipe, DualPipeV).
 */

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

static void generate_zbv(struct list_builder *b)
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

static void generate_dualpipe_v(struct list_builder *b)
{
    struct vee vee = vee_begin(b);
    build_dual(b, &vee,
               &(struct dual){.above = b->rank,
                              .below = b->p - b->rank - 1,
                              .pairs = b->m - 2 * b->p + b->rank + 1});
}

/* Two copies of the model, one down the ranks and one up; half of the microbatches go through each. The first half of
   the ranks is nearer to the begin of the first copy. */
static void generate_dualpipe(struct list_builder *b)
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

/* ---- the schedules and their conditions ------------------------------------------------------ */

/* Parameters that not all schedules take. */
enum { GROUP = 1, MOE_OVERLAP = 2, MEMORY = 4, MEGATRON = 8 };

enum chunk_rule { ONE_CHUNK, ANY_CHUNKS, TWO_CHUNKS };

/* The group a schedule without one given uses. */
static int generate_group_of(const struct generate_spec *spec)
{
    if (!spec->group && spec->megatron)
        return spec->chunks > 1 ? spec->ranks : spec->microbatches;
    return spec->group ? spec->group : equal_round(spec->ranks, spec->microbatches);
}

/* The condition of a schedule on the number of microbatches, in words; NULL: it holds. */
typedef const char *microbatch_rule(const struct generate_spec *spec);

static const char *rule_rounds(const struct generate_spec *spec)
{
    int rounds = max_int(1, spec->microbatches / spec->ranks);
    return spec->microbatches % rounds
               ? "microbatches divisible by microbatches / ranks rounded down"
               : NULL;
}

static const char *rule_interleaved(const struct generate_spec *spec)
{
    int group = generate_group_of(spec), left = spec->microbatches % group;
    if (!spec->group && !spec->megatron)
        return rule_rounds(spec);
    if (group > spec->microbatches)
        return "at least one full group of microbatches";
    if (group < min_int(spec->ranks, spec->microbatches))
        return "a group of at least `ranks` microbatches, or of all";
    if (left != 0 && left < spec->ranks)
        return "microbatches divisible by the group, or at least `ranks` of them left over";
    return NULL;
}

static const char *rule_dualpipe_v(const struct generate_spec *spec)
{
    return spec->microbatches < 2 * spec->ranks ? "at least 2 x ranks microbatches" : NULL;
}

static const char *rule_dualpipe(const struct generate_spec *spec)
{
    bool even = spec->ranks % 2 == 0 && spec->microbatches % 2 == 0;
    return even ? rule_dualpipe_v(spec) : "an even number of each";
}

static int memory_once(int ranks)
{
    return ranks;
}

static int memory_twice(int ranks)
{
    return 2 * ranks;
}

/* Both of a rank's chunks hold activations. */
static int memory_half(int ranks)
{
    return 2 * ((ranks + 2) / 2);
}

static int memory_third(int ranks)
{
    return 2 * ((ranks + 4) / 3);
}

static const struct generator {
    const char *name, *about;
    enum chunk_rule chunks;
    unsigned takes; /* which of the parameters that are not for all */
    microbatch_rule *rule;
    void (*build)(struct list_builder *b); /* NULL: the schedule is found */
    int (*memory)(int ranks);              /* found: activations of a stage, unless given */
} generators[] = {
    {"gpipe", "all forwards, then all backwards in the same order", ONE_CHUNK, 0, NULL, build_gpipe,
     NULL},
    {"gpipe_reverse", "all forwards, then all backwards, last microbatch first", ONE_CHUNK, 0, NULL,
     build_gpipe_reverse, NULL},
    {"1f1b", "one forward, one backward (PipeDream-Flush)", ONE_CHUNK, MEGATRON, NULL, build_1f1b,
     NULL},
    {"interleaved_1f1b", "1F1B over several chunks a rank (Megatron-LM)", ANY_CHUNKS,
     GROUP | MOE_OVERLAP | MEGATRON, rule_interleaved, build_interleaved, NULL},
    {"looped_bfs", "chunk by chunk, each with all microbatches", ANY_CHUNKS, 0, NULL,
     build_looped_bfs, NULL},
    {"interleaved_zero_bubble", "interleaved with the weight gradients delayed (PyTorch's ZB1P)",
     ANY_CHUNKS, 0, rule_rounds, build_interleaved_zero_bubble, NULL},
    {"forward_only", "forwards alone, as for evaluation; over several chunks in groups", ANY_CHUNKS,
     GROUP | MEGATRON, rule_interleaved, build_forward_only, NULL},
    {"zb_h1", "zero bubble with the memory of 1F1B", ONE_CHUNK, 0, NULL, build_zb_h1, NULL},
    {"zb_h2", "zero bubble with twice the memory of 1F1B", ONE_CHUNK, 0, NULL, build_zb_h2, NULL},
    {"zbv", "zero bubble on two chunks a rank in V shape", TWO_CHUNKS, 0, NULL, generate_zbv, NULL},
    {"dualpipe_v", "overlapped forward and backward on two chunks a rank in V shape", TWO_CHUNKS, 0,
     rule_dualpipe_v, generate_dualpipe_v, NULL},
    {"dualpipe", "forward beside backward, two copies of the model in opposite directions",
     TWO_CHUNKS, 0, rule_dualpipe, generate_dualpipe, NULL},
    {"zb_1p", "zero bubble found from costs, with the memory of 1F1B", ONE_CHUNK, MEMORY, NULL,
     NULL, memory_once},
    {"zb_2p", "zero bubble found from costs, with twice the memory of 1F1B", ONE_CHUNK, MEMORY,
     NULL, NULL, memory_twice},
    {"zbv_auto", "zero bubble in V shape found from costs, with the memory of 1F1B", TWO_CHUNKS,
     MEMORY, NULL, NULL, memory_twice},
    {"v_half", "zero bubble in V shape found from costs, with half the memory of 1F1B", TWO_CHUNKS,
     MEMORY, NULL, NULL, memory_half},
    {"v_min", "zero bubble in V shape found from costs, a third of the memory of 1F1B", TWO_CHUNKS,
     MEMORY, NULL, NULL, memory_third},
};

enum { GENERATORS = sizeof generators / sizeof generators[0] };

const char *generate_name(size_t index)
{
    return index < GENERATORS ? generators[index].name : NULL;
}

const char *generate_about(size_t index)
{
    return index < GENERATORS ? generators[index].about : NULL;
}

bool generate_is_found(const char *schedule)
{
    for (size_t i = 0; schedule && i < GENERATORS; i++)
        if (strcmp(generators[i].name, schedule) == 0)
            return generators[i].memory != NULL;
    return false;
}

const char *generate_rule_like(const char *schedule)
{
    for (size_t i = 0; schedule && i < GENERATORS; i++)
        if (strcmp(generators[i].name, schedule) == 0)
            return generators[i].chunks == TWO_CHUNKS ? "zbv" : "zb_h1";
    return schedule;
}

int generate_memory(const struct generate_spec *spec)
{
    for (size_t i = 0; spec->memory <= 0 && i < GENERATORS; i++)
        if (strcmp(generators[i].name, spec->schedule) == 0 && generators[i].memory)
            return generators[i].memory(spec->ranks);
    return spec->memory;
}

static enum status refuse_unknown(const struct generate_spec *spec, struct diag *diag)
{
    char known[512] = "";
    for (size_t i = 0; i < GENERATORS; i++) {
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, generators[i].name, sizeof known - strlen(known) - 1);
    }
    return diag_error_at(diag, NULL, NULL, spec->mark, "found schedule %s, expected one of %s",
                         spec->schedule ? spec->schedule : "(none)", known);
}

static enum status find_generator(const struct generate_spec *spec, const struct generator **out,
                                  struct diag *diag)
{
    for (size_t i = 0; spec->schedule && i < GENERATORS; i++)
        if (strcmp(generators[i].name, spec->schedule) == 0) {
            *out = &generators[i];
            return STATUS_OK;
        }
    return refuse_unknown(spec, diag);
}

static enum status check_range(const struct generate_spec *spec, const char *what, int64_t found,
                               int low, int high, struct diag *diag)
{
    if (found >= low && found <= high)
        return STATUS_OK;
    if (low == high)
        return diag_error_at(diag, NULL, NULL, spec->mark, "%s: found %" PRId64 " %s, expected %d",
                             spec->schedule, found, what, low);
    return diag_error_at(diag, NULL, NULL, spec->mark,
                         "%s: found %" PRId64 " %s, expected %d to %d", spec->schedule, found, what,
                         low, high);
}

static enum status check_chunks(const struct generate_spec *spec, enum chunk_rule rule,
                                struct diag *diag)
{
    static const int low[] = {1, 1, 2}, high[] = {1, PLAN_MAX_MODEL_STAGES, 2};
    return check_range(spec, "chunks", spec->chunks, low[rule], high[rule], diag);
}

/* Parameters that not all schedules have. */
static enum status check_taken(const struct generate_spec *spec, const struct generator *generator,
                               struct diag *diag)
{
    bool grouped = generator->takes & GROUP;
    if (spec->group < 0 || (spec->group && !grouped))
        return diag_error_at(diag, NULL, NULL, spec->mark, "%s: found a group of %d, expected %s",
                             spec->schedule, spec->group,
                             grouped ? "a positive number" : "none: it has no groups");
    if (spec->moe_overlap && !(generator->takes & MOE_OVERLAP))
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found moe_overlap, expected it for interleaved_1f1b only",
                             spec->schedule);
    if (spec->memory && !(generator->takes & MEMORY))
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found memory, expected it for schedules that are found from "
                             "costs: zb_1p, zb_2p, zbv_auto, v_half, v_min",
                             spec->schedule);
    return STATUS_OK;
}

/* Megatron overlaps messages where a rank has several chunks, and interleaves only then. */
static enum status check_megatron(const struct generate_spec *spec,
                                  const struct generator *generator, struct diag *diag)
{
    bool overlaps = spec->megatron == MEGATRON_OVERLAP || spec->megatron == MEGATRON_FLUSH;
    const char *wanted = NULL;
    if (spec->megatron && !(generator->takes & MEGATRON))
        wanted = "it for 1f1b, interleaved_1f1b or forward_only";
    else if (spec->chunks == 1 && overlaps)
        wanted = "batch or odd_even: Megatron overlaps messages where a rank has several chunks";
    else if (spec->megatron && spec->chunks == 1 && generator->build == build_interleaved)
        wanted = "at least 2 chunks: Megatron's schedule of one is 1f1b";
    else if (spec->megatron && spec->chunks > 1 && spec->ranks == 1)
        wanted = "at least 2 ranks";
    if (!wanted)
        return STATUS_OK;
    return diag_error_at(diag, NULL, NULL, spec->mark, "%s: found megatron: %s, expected %s",
                         spec->schedule, keywords_megatron[spec->megatron], wanted);
}

/* Check that `spec` (chunks filled in) meets the conditions of its schedule. */
static enum status check_spec(const struct generate_spec *spec, const struct generator *generator,
                              struct diag *diag)
{
    enum status status = check_range(spec, "ranks", spec->ranks, 1, PLAN_MAX_RANKS, diag);
    if (status == STATUS_OK)
        status =
            check_range(spec, "microbatches", spec->microbatches, 1, PLAN_MAX_MICROBATCHES, diag);
    if (status == STATUS_OK)
        status = check_chunks(spec, generator->chunks, diag);
    if (status == STATUS_OK)
        status = check_range(spec, "stages (ranks x chunks)", (int64_t)spec->ranks * spec->chunks,
                             1, PLAN_MAX_MODEL_STAGES, diag);
    if (status == STATUS_OK)
        status = check_range(spec, "passes (stages x microbatches)",
                             (int64_t)spec->ranks * spec->chunks * spec->microbatches, 1,
                             PLAN_MAX_PASSES, diag);
    if (status == STATUS_OK)
        status = check_taken(spec, generator, diag);
    if (status == STATUS_OK)
        status = check_megatron(spec, generator, diag);
    const char *rule = status == STATUS_OK && generator->rule ? generator->rule(spec) : NULL;
    if (rule)
        status = diag_error_at(diag, NULL, NULL, spec->mark,
                               "%s: found %d ranks and %d microbatches, expected %s",
                               spec->schedule, spec->ranks, spec->microbatches, rule);
    return status;
}

/* Room for the longest list that a rank may have. */
static size_t most_actions(const struct generate_spec *spec)
{
    return (spec->megatron ? 2 * MEGATRON_MOST : 3) * (size_t)spec->chunks *
           (size_t)spec->microbatches;
}

/* `room` is for most_actions. */
static bool build_rank(const struct generate_spec *spec, const struct generator *generator,
                       int rank, struct action *room, struct arena *arena, struct rank_program *out)
{
    struct list_builder b = {.arena = arena,
                             .p = spec->ranks,
                             .v = spec->chunks,
                             .m = spec->microbatches,
                             .rank = rank,
                             .group = generate_group_of(spec),
                             .moe_overlap = spec->moe_overlap,
                             .actions = room,
                             .cap = most_actions(spec),
                             .mark = spec->mark};
    struct generate_pattern pattern = {0};
    if (spec->megatron) {
        pattern = generator->build == build_1f1b ? pattern_1f1b(&b) : pattern_interleaved(&b);
        generate_megatron(&b, &pattern, spec->megatron, generator->build == build_forward_only);
    } else {
        generator->build(&b);
    }
    out->count = b.count;
    out->actions = ARENA_ARRAY(arena, b.count, struct action);
    if (!out->actions || b.failed)
        return false;
    memcpy(out->actions, room, b.count * sizeof *room);
    return true;
}

void generate_channel(const struct generate_spec *spec, enum fifo_rule *fifo, bool *batch)
{
    bool pairs = spec->given && spec->megatron > MEGATRON_BATCH;
    *batch = spec->given && spec->megatron == MEGATRON_BATCH;
    *fifo = !pairs ? FIFO_RANK : spec->ranks == 2 ? FIFO_EDGE : FIFO_PAIR;
}

int generate_copies(const struct generate_spec *spec)
{
    return spec->schedule && strcmp(spec->schedule, "dualpipe") == 0 ? 2 : 1;
}

static enum status build_lists(const struct generate_spec *spec, const struct generator *generator,
                               struct arena *arena, struct rank_program **ranks, struct diag *diag)
{
    struct rank_program *made = ARENA_ARRAY(arena, (size_t)spec->ranks, struct rank_program);
    struct action *room = malloc(most_actions(spec) * sizeof *room);
    bool good = made && room;
    for (int rank = 0; good && rank < spec->ranks; rank++)
        good = build_rank(spec, generator, rank, room, arena, &made[rank]);
    free(room);
    if (!good)
        return diag_no_memory(diag);
    *ranks = made;
    return STATUS_OK;
}

/* The generator of `spec`, and `spec` with its chunks. */
static enum status fill_spec(const struct generate_spec *spec, const struct generator **generator,
                             struct generate_spec *filled, struct diag *diag)
{
    enum status status = find_generator(spec, generator, diag);
    if (status != STATUS_OK)
        return status;
    *filled = *spec;
    if (filled->chunks == 0)
        filled->chunks = (*generator)->chunks == TWO_CHUNKS ? 2 : 1;
    return check_spec(filled, *generator, diag);
}

enum status generate_check(const struct generate_spec *spec, struct generate_spec *filled,
                           struct diag *diag)
{
    const struct generator *generator = NULL;
    return fill_spec(spec, &generator, filled, diag);
}

/* The lists that a search has left in `spec`. */
static enum status copy_found(const struct generate_spec *spec, struct arena *arena,
                              struct rank_program **ranks, struct diag *diag)
{
    if (!spec->found)
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found no lists, expected those that a search has found: "
                             "'swsim generate' writes them",
                             spec->schedule);
    struct rank_program *copy = ARENA_ARRAY(arena, (size_t)spec->ranks, struct rank_program);
    if (!copy)
        return diag_no_memory(diag);
    memcpy(copy, spec->found, (size_t)spec->ranks * sizeof *copy);
    *ranks = copy;
    return STATUS_OK;
}

enum status generate_program(const struct generate_spec *spec, struct arena *arena,
                             struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    const struct generator *generator = NULL;
    struct generate_spec filled;
    enum status status = fill_spec(spec, &generator, &filled, diag);
    if (status != STATUS_OK)
        return status;
    status = generator->build ? build_lists(&filled, generator, arena, ranks, diag)
                              : copy_found(&filled, arena, ranks, diag);
    if (status == STATUS_OK)
        *rank_count = filled.ranks;
    return status;
}
