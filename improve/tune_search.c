/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_search.c - see tune.h: the local search.
 *
 * Starts. Tasks that touch the same shared buffer cannot drift apart without one of them seeing
 * another view, so they form a block and keep their distance. The blocks, in an order that respects
 * the dependences within an iteration, are cut into 1, 2, 3... stages in every way:
 *
 *     H2D | InputDistStart  InputDistWait | {ZeroGrad Forward Backward OptimizerStep}
 *       0            1                                        2
 *
 * with every rule of the enqueue order. The best few of them and the given plan are climbed from.
 *
 * Climbing. All moves are numbered; a walk over all numbers by a stride drawn from the seed (and
 * coprime to their count) tries each once without a table. The first one that is better is taken,
 * and the walk starts anew; when none is, the top is reached.
 *
 * Restarts. The best so far (or one of the other tops) is disturbed by a few moves at random into
 * something that is still proved, however slow, and climbed from again (iterated local search:
 * Lourenco, Martin, Stuetzle 2003).
 *
 * Last, every choice without an effect is taken back.
 */
#include "tune.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/integers.h"
#include "plan/order.h"
#include "tune_view.h"
#include "base/sort.h"

enum { TOPS = 4, RULES = ORDER_EXPLICIT };

/* The best candidates that are different, best first. */
struct tops {
    int *cells[TOPS];
    struct tune_score scores[TOPS];
    int count;
};

struct tune_climb {
    struct tune *tune;
    struct diag *diag;
    int *block;    /* per task: the least task of its block */
    int *position; /* per task: of its block, in the order they are cut in */
    int *offset;   /* per task: stages behind the first of its block, as given */
    int *place;    /* per task: in the topological order */
    int *last;     /* per task: the place of the last task of its block */
    int blocks;
    int *current, *candidate, *order; /* cells, cells, tasks */
    struct tune_score current_score;
    struct tops tops;
    uint64_t random; /* state of the generator */
};

static int *climb_row(const struct tune_climb *s, int *cells, enum tune_row which)
{
    return cells + tune_at(s->tune, which);
}

static void climb_copy(const struct tune_climb *s, int *to, const int *from)
{
    memcpy(to, from, s->tune->cells * sizeof *to);
}

static void climb_set_rule(const struct tune_climb *s, int *cells, int rule)
{
    cells[tune_rule_at(s->tune)] = rule;
    memset(climb_row(s, cells, TUNE_ORDER), 0, s->tune->tasks * sizeof *cells);
}

/* ---- moves from a candidate to its neighbours, numbered --------------------------------------- */

/* The first stage is 0. False: there are too many. */
static bool settle_stages(const struct tune_climb *s, int *cells)
{
    int *stage = climb_row(s, cells, TUNE_STAGE), least = stage[0], most = stage[0];
    for (size_t t = 1; t < s->tune->tasks; t++) {
        least = min_int(least, stage[t]);
        most = max_int(most, stage[t]);
    }
    for (size_t t = 0; t < s->tune->tasks; t++)
        stage[t] -= least;
    return most - least <= PLAN_MAX_STAGE;
}

/*                 NAME            knob    how many there are */
#define MOVE_LIST(X)                                                                               \
    X(TASK_STAGE, STAGE, 2 * n)       /* one task a stage up or down */                            \
    X(BLOCK_STAGE, STAGE, 2 * n)      /* the block of a task */                                    \
    X(STREAM_STAGE, STAGE, 2 * n)     /* all tasks on a task's stream */                           \
    X(REST_STAGE, STAGE, 2 * n)       /* the blocks of a task and of all behind it */              \
    X(STREAM, STREAM, n *streams)     /* a task to a stream */                                     \
    X(GROUP, GROUP, n *groups)        /* a task to a thread group */                               \
    X(STREAM_GROUP, GROUP, n *groups) /* all tasks on a task's stream */                           \
    X(RULE, ORDER, RULES)             /* another rule */                                           \
    X(ORDER, ORDER, n *n)             /* a task to a place in the enqueue order */                 \
    X(DEPTH, DEPTH, 2)                /* max_depth, one more or less */

enum move {
#define X(name, knob, count) MOVE_##name,
    MOVE_LIST(X)
#undef X
        MOVES
};

/* How many of a kind, or 0 if they make no difference or may not be made. */
static size_t count_moves(const struct tune *tune, enum move move)
{
    size_t n = tune->tasks, streams = (size_t)tune->streams, groups = (size_t)tune->groups;
    bool dataflow = tune->options->driver == DRIVER_DATAFLOW;
    static const enum tune_knob knobs[] = {
#define X(name, knob, count) TUNE_KNOB_##knob,
        MOVE_LIST(X)
#undef X
    };
    const size_t counts[] = {
#define X(name, knob, count) count,
        MOVE_LIST(X)
#undef X
    };
    if (!tune_may(tune, knobs[move]) || (dataflow && knobs[move] == TUNE_KNOB_STAGE) ||
        (!dataflow && knobs[move] == TUNE_KNOB_DEPTH))
        return 0;
    return counts[move];
}

/* True if a stage move of `task` takes `other` along. */
static bool goes_along(struct tune_climb *s, enum move move, size_t task, size_t other)
{
    const int *stream = climb_row(s, s->candidate, TUNE_STREAM);
    switch (move) {
    case MOVE_BLOCK_STAGE: return s->block[task] == s->block[other];
    case MOVE_STREAM_STAGE:
    case MOVE_STREAM_GROUP: return stream[task] == stream[other];
    case MOVE_REST_STAGE: return s->last[other] >= s->place[task];
    default: return task == other;
    }
}

static void shift_stages(struct tune_climb *s, enum move move, size_t number)
{
    for (size_t t = 0; t < s->tune->tasks; t++)
        if (goes_along(s, move, number / 2, t))
            climb_row(s, s->candidate, TUNE_STAGE)[t] += number % 2 ? 1 : -1;
}

/* Spare streams and groups are alike: only the first that is free is worth a try. */
static int first_free(struct tune_climb *s, enum tune_row which, int count, int wanted)
{
    const int *items = climb_row(s, s->candidate, which);
    for (int i = count - TUNE_SPARES; i < wanted; i++) {
        bool used = false;
        for (size_t t = 0; t < s->tune->tasks; t++)
            used |= items[t] == i;
        if (!used)
            return i;
    }
    return wanted;
}

static void set_places(struct tune_climb *s, enum move move, size_t number)
{
    enum tune_row which = move == MOVE_STREAM ? TUNE_STREAM : TUNE_GROUP;
    int count = which == TUNE_STREAM ? s->tune->streams : s->tune->groups;
    int to = first_free(s, which, count, (int)(number % (size_t)count));
    for (size_t t = 0; t < s->tune->tasks; t++)
        if (goes_along(s, move, number / (size_t)count, t))
            climb_row(s, s->candidate, which)[t] = to;
}

static enum status move_in_order(struct tune_climb *s, size_t from, size_t to)
{
    enum status status = tune_order(s->tune, s->candidate, s->order, s->diag);
    if (status != STATUS_OK)
        return status;
    int task = s->order[from];
    if (from < to)
        memmove(&s->order[from], &s->order[from + 1], (to - from) * sizeof task);
    else
        memmove(&s->order[to + 1], &s->order[to], (from - to) * sizeof task);
    s->order[to] = task;
    s->candidate[tune_rule_at(s->tune)] = ORDER_EXPLICIT;
    memcpy(climb_row(s, s->candidate, TUNE_ORDER), s->order, s->tune->tasks * sizeof task);
    return STATUS_OK;
}

/* Change s->candidate by move `number` of its kind. *possible: that is still a plan. */
static enum status make_move(struct tune_climb *s, enum move move, size_t number, bool *possible)
{
    size_t n = s->tune->tasks;
    int *depth = &s->candidate[tune_depth_at(s->tune)];
    enum status status = STATUS_OK;
    *possible = true;
    switch (move) {
    case MOVE_TASK_STAGE:
    case MOVE_BLOCK_STAGE:
    case MOVE_STREAM_STAGE:
    case MOVE_REST_STAGE:
        shift_stages(s, move, number);
        *possible = settle_stages(s, s->candidate);
        break;
    case MOVE_STREAM:
    case MOVE_GROUP:
    case MOVE_STREAM_GROUP: set_places(s, move, number); break;
    case MOVE_RULE: climb_set_rule(s, s->candidate, (int)number); break;
    case MOVE_ORDER:
        if (number / n != number % n)
            status = move_in_order(s, number / n, number % n);
        break;
    default: *depth += number ? 1 : -1; *possible = *depth >= 1 && *depth <= PLAN_MAX_DEPTH;
    }
    return status;
}

/* How many moves there are. */
static size_t moves_count(const struct tune_climb *s)
{
    size_t all = 0;
    for (int move = 0; move < MOVES; move++)
        all += count_moves(s->tune, (enum move)move);
    return all;
}

/* Change s->candidate by move `number` of all. *possible: the result is still a plan. */
static enum status moves_make(struct tune_climb *s, size_t number, bool *possible)
{
    int move = 0;
    for (; number >= count_moves(s->tune, (enum move)move); move++)
        number -= count_moves(s->tune, (enum move)move);
    return make_move(s, (enum move)move, number, possible);
}

/* ---- the search ------------------------------------------------------------------------------ */

enum { DISTURB = 3, PATIENCE = 400, STARTS_SHARE = 3 };

/* ---- random numbers -------------------------------------------------------------------------- */

/* Splitmix64 (Steele, Lea, Flood 2014), reduced by a multiplication. */
static size_t tune_search_draw(struct tune_climb *s, size_t below)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(((unsigned __int128)hash_mix(s->random) * below) >> 64);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Put it among the tops if it is good enough. */
static void offer(struct tune_climb *s, const int *cells, const struct tune_score *score)
{
    struct tops *tops = &s->tops;
    int at = tops->count;
    for (int i = 0; i < tops->count; i++)
        if (memcmp(tops->cells[i], cells, s->tune->cells * sizeof *cells) == 0)
            return;
    while (at > 0 && tune_is_better(score, &tops->scores[at - 1]))
        at--;
    if (at == TOPS)
        return;
    tops->count += tops->count < TOPS;
    int *last = tops->cells[tops->count - 1];
    for (int i = tops->count - 1; i > at; i--) {
        tops->cells[i] = tops->cells[i - 1];
        tops->scores[i] = tops->scores[i - 1];
    }
    tops->cells[at] = last;
    tops->scores[at] = *score;
    climb_copy(s, last, cells);
}

static void tune_search_keep_best(struct tune_climb *s, const int *cells,
                                  const struct tune_score *score)
{
    struct tune *tune = s->tune;
    offer(s, cells, score);
    if (!tune_is_better(score, &tune->best_score))
        return;
    climb_copy(s, tune->best, cells);
    tune->best_score = *score;
}

static void tune_search_tell(const struct tune_climb *s)
{
    const struct tune *tune = s->tune;
    const struct tune_progress progress = {tune->counts.tried, tune->best_score.period_ps / 1e3};
    if (tune->options->progress && tune->counts.tried % 16 == 0)
        tune->options->progress(tune->options->progress_arg, &progress);
}

/* Judge s->candidate; one that is better than `bar` becomes the current one. */
static enum status tune_search_try_candidate(struct tune_climb *s, const struct tune_score *bar,
                                             bool *kept)
{
    struct tune_score score;
    enum status status = tune_judge(s->tune, s->candidate, bar, &score, kept, s->diag);
    tune_search_tell(s);
    if (status == STATUS_OK && *kept) {
        climb_copy(s, s->current, s->candidate);
        s->current_score = score;
        tune_search_keep_best(s, s->current, &score);
    }
    return status;
}

/* Worse than any candidate. */
static const struct tune_score worst = {.unfit = true};

/* ---- blocks and starts ----------------------------------------------------------------------- */

static bool conflicts(const struct tune *tune, bool by_stream, int a, int b)
{
    struct tune_access x, y;
    int ranks = tune->given.pipeline.override_count ? tune->given.ranks : 1;
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; tune_access(&tune->given, by_stream, rank, a, i, &x); i++)
            for (size_t k = 0; tune_access(&tune->given, by_stream, rank, b, k, &y); k++)
                if (x.object == y.object && (x.write || y.write))
                    return true;
    return false;
}

static void find_blocks(struct tune_climb *s)
{
    struct tune *tune = s->tune;
    bool by_stream = tune_by_stream(&tune->given);
    for (int t = 0; t < (int)tune->tasks; t++)
        s->block[t] = t;
    if (tune->options->allow_stale)
        return;
    for (int t = 0; t < (int)tune->tasks; t++)
        for (int on = 0; on < t; on++)
            if (s->block[t] != s->block[on] && conflicts(tune, by_stream, t, on)) {
                int from = max_int(s->block[t], s->block[on]);
                int to = s->block[t] + s->block[on] - from;
                for (int i = 0; i <= t; i++)
                    s->block[i] = s->block[i] == from ? to : s->block[i];
            }
}

/* Blocks stand in the order of their last task, behind all blocks they depend on. */
static void order_blocks(struct tune_climb *s)
{
    const int *stage = climb_row(s, s->tune->first, TUNE_STAGE);
    size_t n = s->tune->tasks;
    for (size_t t = 0; t < n; t++) {
        int least = stage[t];
        s->last[t] = s->place[t];
        for (size_t i = 0; i < n; i++) {
            if (s->block[i] != s->block[t])
                continue;
            least = min_int(least, stage[i]);
            s->last[t] = max_int(s->last[t], s->place[i]);
        }
        s->offset[t] = stage[t] - least;
    }
    for (size_t t = 0; t < n; t++) {
        s->blocks += s->block[t] == (int)t;
        for (size_t i = 0; i < n; i++)
            s->position[t] += s->block[i] == (int)i && s->last[i] < s->last[t];
    }
}

/* Every block one stage later for each cut at or before it. */
static void make_start(struct tune_climb *s, const int *cuts, int cut_count, int rule)
{
    int *stage = climb_row(s, s->candidate, TUNE_STAGE);
    climb_copy(s, s->candidate, s->tune->first);
    for (size_t t = 0; t < s->tune->tasks; t++) {
        stage[t] = s->offset[t];
        for (int c = 0; c < cut_count; c++)
            stage[t] += cuts[c] <= s->position[t];
    }
    if (rule < RULES)
        climb_set_rule(s, s->candidate, rule);
}

/* The next way to choose `count` cuts, ascending, out of 1 .. blocks - 1; false: that was the last. */
static bool next_cuts(int *cuts, int count, int blocks)
{
    int c = count - 1;
    while (c >= 0 && cuts[c] == blocks - (count - c))
        c--;
    if (c < 0)
        return false;
    cuts[c]++;
    for (int i = c + 1; i < count; i++)
        cuts[i] = cuts[i - 1] + 1;
    return true;
}

/* One way to cut, with every rule and with the given order. */
static enum status try_start(struct tune_climb *s, const int *cuts, int count)
{
    enum status status = STATUS_OK;
    bool kept;
    for (int rule = 0; rule <= RULES && status == STATUS_OK; rule++) {
        bool given = rule == RULES;
        if (!given && !tune_may(s->tune, TUNE_KNOB_ORDER))
            continue;
        make_start(s, cuts, count, rule);
        status = tune_search_try_candidate(s, &worst, &kept);
    }
    return status;
}

static enum status try_starts(struct tune_climb *s)
{
    struct tune *tune = s->tune;
    int cuts[PLAN_MAX_STAGE + 1], blocks = s->blocks;
    if (tune->options->driver != DRIVER_CLOCK || !tune_may(tune, TUNE_KNOB_STAGE))
        return STATUS_OK;
    for (int count = 0; count < tune->depth_limit && count < blocks; count++) {
        for (int c = 0; c < count; c++)
            cuts[c] = c + 1;
        do {
            enum status status = try_start(s, cuts, count);
            if (status != STATUS_OK || tune_is_spent(tune) ||
                tune->counts.tried >= tune->budget / STARTS_SHARE)
                return status;
        } while (next_cuts(cuts, count, blocks));
    }
    return STATUS_OK;
}

/* ---- climbing -------------------------------------------------------------------------------- */

/* To the top from s->current. */
static enum status tune_search_climb(struct tune_climb *s)
{
    size_t all = moves_count(s), stride, at;
    bool possible, kept;
    if (all == 0)
        return STATUS_OK;
    do
        stride = 1 + tune_search_draw(s, all);
    while (integers_gcd((int64_t)stride, (int64_t)all) != 1);
    at = tune_search_draw(s, all);
    for (size_t tried = 0; tried < all && !tune_is_spent(s->tune);
         tried++, at = (at + stride) % all) {
        climb_copy(s, s->candidate, s->current);
        enum status status = moves_make(s, at, &possible);
        if (status == STATUS_OK && possible)
            status = tune_search_try_candidate(s, &s->current_score, &kept);
        if (status != STATUS_OK)
            return status;
        if (possible && kept)
            tried = 0;
    }
    return STATUS_OK;
}

/* From one of the tops, some moves away; *kept: to something new that is proved. */
static enum status disturb(struct tune_climb *s, bool *kept)
{
    size_t all = moves_count(s), steps = 1 + tune_search_draw(s, DISTURB);
    bool possible = true;
    *kept = false;
    climb_copy(
        s, s->candidate,
        s->tops.cells[tune_search_draw(s, 2) ? 0 : tune_search_draw(s, (size_t)s->tops.count)]);
    for (size_t i = 0; i < steps && possible; i++) {
        enum status status = moves_make(s, tune_search_draw(s, all), &possible);
        if (status != STATUS_OK)
            return status;
    }
    return possible ? tune_search_try_candidate(s, &worst, kept) : STATUS_OK;
}

/* Until the budget is spent, or nothing new can be found. */
static enum status restart(struct tune_climb *s)
{
    enum status status = STATUS_OK;
    size_t patience = moves_count(s) + PATIENCE;
    for (size_t idle = 0; status == STATUS_OK && idle < patience && !tune_is_spent(s->tune);
         idle++) {
        uint64_t tried = s->tune->counts.tried;
        bool kept;
        status = disturb(s, &kept);
        if (status == STATUS_OK && kept)
            status = tune_search_climb(s);
        if (s->tune->counts.tried > tried)
            idle = 0;
    }
    return status;
}

/* The given plan and the best starts; tops change while they are climbed from. */
static enum status climb_tops(struct tune_climb *s)
{
    int count = s->tops.count;
    size_t bytes = s->tune->cells * sizeof(int);
    int *from = malloc((size_t)TOPS * bytes);
    struct tune_score scores[TOPS];
    enum status status = from ? STATUS_OK : diag_no_memory(s->diag);
    for (int i = 0; from && i < count; i++) {
        climb_copy(s, from + (size_t)i * s->tune->cells, s->tops.cells[i]);
        scores[i] = s->tops.scores[i];
    }
    climb_copy(s, s->current, s->tune->first);
    s->current_score = s->tune->first_score;
    if (status == STATUS_OK)
        status = tune_search_climb(s);
    for (int i = 0; status == STATUS_OK && i < count; i++) {
        climb_copy(s, s->current, from + (size_t)i * s->tune->cells);
        s->current_score = scores[i];
        status = tune_search_climb(s);
    }
    free(from);
    return status;
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* Choice `which` of the best as it was given: a cell of the first three rows, the order, max_depth. */
static void tune_search_take_back(struct tune_climb *s, size_t which)
{
    const struct tune *tune = s->tune;
    size_t order = tune_at(tune, TUNE_ORDER);
    climb_copy(s, s->candidate, tune->best);
    if (which < order)
        s->candidate[which] = tune->first[which];
    else if (which == order)
        memcpy(&s->candidate[order], &tune->first[order], (tune->tasks + 1) * sizeof(int));
    else if (which == order + 1)
        s->candidate[tune_depth_at(tune)] = tune->first[tune_depth_at(tune)];
    else
        climb_set_rule(s, s->candidate, (int)(which - order - 2));
}

/* The budget for it is its own: it must not be missing when it is needed. */
static enum status simplify(struct tune_climb *s)
{
    struct tune *tune = s->tune;
    size_t count = tune_at(tune, TUNE_ORDER) + 2 + (tune_may(tune, TUNE_KNOB_ORDER) ? RULES : 0);
    enum status status = STATUS_OK;
    for (size_t which = 0; which < count && status == STATUS_OK; which++) {
        bool kept = false;
        tune_search_take_back(s, which);
        if (tune->budget == tune->counts.tried)
            tune->budget++;
        if (memcmp(s->candidate, tune->best, tune->cells * sizeof(int)) != 0)
            status = tune_search_try_candidate(s, &tune->best_score, &kept);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status tune_search_allocate(struct tune_climb *s)
{
    size_t tasks = s->tune->tasks, cells = s->tune->cells;
    int *memory = calloc(6 * tasks + (2 + TOPS) * cells, sizeof *memory);
    if (!memory)
        return diag_no_memory(s->diag);
    s->block = memory;
    s->position = memory + tasks;
    s->offset = memory + 2 * tasks;
    s->place = memory + 3 * tasks;
    s->last = memory + 4 * tasks;
    s->order = memory + 5 * tasks;
    s->current = memory + 6 * tasks;
    s->candidate = s->current + cells;
    for (int i = 0; i < TOPS; i++)
        s->tops.cells[i] = s->candidate + (size_t)(i + 1) * cells;
    return STATUS_OK;
}

enum status tune_search(struct tune *tune, struct diag *diag)
{
    struct tune_climb s = {.tune = tune, .diag = diag, .random = tune->options->seed};
    enum status status = tune_search_allocate(&s);
    if (status == STATUS_OK)
        status = order_topological(&tune->given, s.order, diag);
    if (status == STATUS_OK) {
        for (size_t k = 0; k < tune->tasks; k++)
            s.place[s.order[k]] = (int)k;
        find_blocks(&s);
        order_blocks(&s);
        if (!tune->first_score.unfit)
            offer(&s, tune->first, &tune->first_score);
        status = try_starts(&s);
    }
    if (status == STATUS_OK)
        status = climb_tops(&s);
    if (status == STATUS_OK && s.tops.count > 0 && moves_count(&s) > 0)
        status = restart(&s);
    if (status == STATUS_OK)
        status = simplify(&s);
    free(s.block);
    return status;
}
