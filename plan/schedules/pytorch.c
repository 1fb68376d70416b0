/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.c - see pytorch.h: a pass over the lists for each kind of action.
 *
 * Order and rules are those of torch/distributed/pipelining/schedules.py, 2.9.1 and 2.15.0: shards, reductions,
 * messages, waits for sends, receives put off.
 */
#include "pytorch.h"
#include "base/array.h"
#include "base/assert_index.h"

#include "costs.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists in the making --------------------------------------------------------------------- */

struct pytorch_maker {
    struct arena *arena;
    const struct pytorch_options *options;
    struct stage_map map;
    struct action *actions; /* the list that is made now */
    size_t count, cap;
    bool failed; /* memory is exhausted */
};

static void pytorch_push(struct pytorch_maker *maker, struct action action)
{
    if (!ARENA_GROW(maker->arena, maker->actions, maker->count, maker->cap))
        maker->failed = true;
    else
        maker->actions[maker->count++] = action;
}

static void pytorch_push_new(struct pytorch_maker *maker, enum action_kind kind, int stage,
                             int microbatch, struct mark mark)
{
    pytorch_push(maker, (struct action){
                            .kind = kind, .stage = stage, .microbatch = microbatch, .mark = mark});
}

/* One pass over a list. */
typedef void rewrite(struct pytorch_maker *maker, const struct rank_program *list);

static bool rewrite_all(struct pytorch_maker *maker, rewrite *rule, struct rank_program *ranks,
                        int count)
{
    for (int rank = 0; rank < count && !maker->failed; rank++) {
        maker->actions = NULL;
        maker->count = maker->cap = 0;
        rule(maker, &ranks[rank]);
        ranks[rank] = (struct rank_program){.actions = maker->actions, .count = maker->count};
    }
    return !maker->failed;
}

/* ---- UNSHARD and RESHARD --------------------------------------------------------------------- */

/* The stages that are unsharded at once; a composite that crosses this bound is not divided. */
enum { ACTIVE = 3, WINDOW = ACTIVE + 1 };

/* The next stages of a list from some action on, each once, and where they come. */
struct window {
    int count;
    int stage[WINDOW];
    size_t at[WINDOW];
};

static bool window_has(const struct window *window, int stage)
{
    for (int i = 0; i < window->count; i++)
        if (window->stage[i] == stage)
            return true;
    return false;
}

static void window_add(struct window *window, int stage, size_t at)
{
    if (window->count == WINDOW || window_has(window, stage))
        return;
    window->stage[window->count] = stage;
    window->at[window->count++] = at;
}

/* 2.9 divides composites: the window ends with the ACTIVE-th stage. */
static void window_cut(struct window *window, bool whole)
{
    while (window->count > ACTIVE &&
           (!whole || window->at[window->count - 1] != window->at[ACTIVE - 1]))
        window->count--;
}

/* The window of action `at`, from that of the next. */
static struct window window_before(const struct window *next, const struct action *action,
                                   size_t at, bool whole)
{
    const struct action *parts;
    size_t count = comms_parts(action, &parts);
    struct window window = {0};
    for (size_t i = 0; i < count; i++)
        window_add(&window, parts[i].stage, at);
    for (int i = 0; i < next->count; i++)
        window_add(&window, next->stage[i], next->at[i]);
    window_cut(&window, whole);
    return window;
}

/* Unsharded now, in the order of UNSHARD. */
struct active {
    int count;
    int stage[2 * WINDOW];
};

static void reshard_others(struct pytorch_maker *maker, struct active *active,
                           const struct window *window, struct mark mark)
{
    int kept = 0;
    for (int i = 0; i < active->count; i++)
        if (window_has(window, active->stage[i]))
            active->stage[kept++] = active->stage[i];
        else
            pytorch_push_new(maker, ACTION_RESHARD, active->stage[i], -1, mark);
    active->count = kept;
}

static bool is_active(const struct active *active, int stage)
{
    for (int i = 0; i < active->count; i++)
        if (active->stage[i] == stage)
            return true;
    return false;
}

static void unshard_next(struct pytorch_maker *maker, struct active *active,
                         const struct window *window, struct mark mark)
{
    for (int i = 0; i < window->count; i++)
        if (!is_active(active, window->stage[i])) {
            pytorch_push_new(maker, ACTION_UNSHARD, window->stage[i], -1, mark);
            active->stage[active->count++] = window->stage[i];
        }
}

static void add_shards(struct pytorch_maker *maker, const struct rank_program *list)
{
    bool whole = maker->options->version != PYTORCH_2_9;
    struct window *windows = calloc(list->count + 1, sizeof *windows);
    struct active active = {0};
    if (!windows) {
        maker->failed = true;
        return;
    }
    for (size_t i = list->count; i-- > 0;)
        windows[i] = window_before(&windows[i + 1], &list->actions[i], i, whole);
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i];
        if (action->kind == ACTION_IDLE)
            continue;
        reshard_others(maker, &active, &windows[i], action->mark);
        unshard_next(maker, &active, &windows[i], action->mark);
        pytorch_push(maker, *action);
    }
    if (maker->options->version != PYTORCH_2_9)
        reshard_others(maker, &active, &(struct window){0}, (struct mark){0, 0});
    free(windows);
}

/* ---- composites ------------------------------------------------------------------------------ */

static void take_apart(struct pytorch_maker *maker, const struct rank_program *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            pytorch_push(maker, parts[k]);
    }
}

/* ---- REDUCE_GRAD ----------------------------------------------------------------------------- */

static void add_reductions(struct pytorch_maker *maker, const struct rank_program *list)
{
    int *done = calloc((size_t)maker->map.stages + 1, sizeof *done);
    if (!done) {
        maker->failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        pytorch_push(maker, list->actions[i]);
        for (size_t k = 0; k < count; k++) {
            bool last = (parts[k].kind == ACTION_W || parts[k].kind == ACTION_B) &&
                        ++done[parts[k].stage] == maker->map.microbatches;
            if (!last)
                continue;
            pytorch_push_new(maker, ACTION_REDUCE_GRAD, parts[k].stage, -1, parts[k].mark);
            pytorch_push_new(maker, ACTION_WAIT_REDUCE_GRAD, parts[k].stage, -1, parts[k].mark);
        }
    }
    free(done);
}

/* ---- WAIT_SEND ------------------------------------------------------------------------------- */

/* True where the forward message of this stage and microbatch has been sent and not been awaited. */
static bool *pytorch_pending_at(const struct pytorch_maker *maker, bool *pending,
                                const struct action *action)
{
    return &pending[(size_t)action->stage * (size_t)maker->map.microbatches +
                    (size_t)action->microbatch];
}

static void wait_behind(struct pytorch_maker *maker, bool *pending, const struct action *action)
{
    const struct action *parts;
    size_t count = comms_parts(action, &parts);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].kind == ACTION_SEND_F)
            *pytorch_pending_at(maker, pending, &parts[i]) = true;
        bool backward = parts[i].kind == ACTION_B || parts[i].kind == ACTION_I;
        if (!backward || !*pytorch_pending_at(maker, pending, &parts[i]))
            continue;
        pytorch_push_new(maker, ACTION_WAIT_SEND_F, parts[i].stage, parts[i].microbatch,
                         parts[i].mark);
        *pytorch_pending_at(maker, pending, &parts[i]) = false;
    }
}

/* A forward message is awaited behind the backward pass that it leads to, which proves that it has arrived; the
   others at the end. */
static void add_send_waits(struct pytorch_maker *maker, const struct rank_program *list)
{
    bool *pending =
        calloc((size_t)maker->map.stages * (size_t)maker->map.microbatches + 1, sizeof *pending);
    if (!pending) {
        maker->failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        pytorch_push(maker, list->actions[i]);
        wait_behind(maker, pending, &list->actions[i]);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct action *send = &list->actions[i];
        if (send->kind == ACTION_SEND_B)
            pytorch_push_new(maker, ACTION_WAIT_SEND_B, send->stage, send->microbatch, send->mark);
        if (send->kind == ACTION_SEND_F && *pytorch_pending_at(maker, pending, send))
            pytorch_push_new(maker, ACTION_WAIT_SEND_F, send->stage, send->microbatch, send->mark);
    }
    free(pending);
}

/* ---- receives put off ------------------------------------------------------------------------ */

/* Receives that are still to be placed, in the order of the list. */
struct late {
    struct action *items;
    size_t count;
};

static void place_late(struct pytorch_maker *maker, struct late *late, size_t at)
{
    ASSERT_INDEX(at, late->count);
    pytorch_push(maker, late->items[at]);
    late->count--;
    memmove(&late->items[at], &late->items[at + 1], (late->count - at) * sizeof *late->items);
}

/* The lower of two ranks receives from the other before it sends to it. */
static void receive_before_send(struct pytorch_maker *maker, struct late *late,
                                const struct action *send)
{
    int here = comms_rank_of(&maker->map, send->stage);
    int peer = comms_rank_of(&maker->map, comms_partner(send));
    if (here >= peer)
        return;
    for (size_t i = 0; i < late->count;)
        if (comms_rank_of(&maker->map, comms_partner(&late->items[i])) == peer)
            place_late(maker, late, i);
        else
            i++;
}

static void receive_before_pass(struct pytorch_maker *maker, struct late *late,
                                const struct action *pass)
{
    bool backward = pass->kind == ACTION_B || pass->kind == ACTION_I;
    enum action_kind wanted = pass->kind == ACTION_F ? ACTION_RECV_F : ACTION_RECV_B;
    if (pass->kind != ACTION_F && !backward)
        return;
    for (size_t i = 0; i < late->count; i++)
        if (late->items[i].kind == wanted && late->items[i].stage == pass->stage &&
            late->items[i].microbatch == pass->microbatch) {
            place_late(maker, late, i);
            return;
        }
}

static void put_off_receives(struct pytorch_maker *maker, const struct rank_program *list)
{
    struct late late = {.items = calloc(list->count + 1, sizeof *late.items)};
    if (!late.items) {
        maker->failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i], *parts;
        if (action->kind == ACTION_RECV_F || action->kind == ACTION_RECV_B) {
            late.items[late.count++] = *action;
            continue;
        }
        if (comms_is_message(action))
            receive_before_send(maker, &late, action);
        size_t count = comms_parts(action, &parts);
        for (size_t k = 0; k < count; k++)
            receive_before_pass(maker, &late, &parts[k]);
        pytorch_push(maker, *action);
    }
    free(late.items);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool add_before_messages(struct pytorch_maker *maker, struct rank_program *ranks, int count)
{
    switch (maker->options->version) {
    case PYTORCH_NONE: break;
    case PYTORCH_2_9:
        return rewrite_all(maker, add_shards, ranks, count) &&
               rewrite_all(maker, take_apart, ranks, count);
    case PYTORCH_2_15:
        return rewrite_all(maker, add_shards, ranks, count) &&
               rewrite_all(maker, add_reductions, ranks, count);
    }
    return true;
}

static bool add_behind_messages(struct pytorch_maker *maker, struct rank_program *ranks, int count)
{
    return (maker->options->version != PYTORCH_2_15 ||
            rewrite_all(maker, add_send_waits, ranks, count)) &&
           (maker->options->receives != RECEIVES_DEFERRED ||
            rewrite_all(maker, put_off_receives, ranks, count));
}

static enum status add_timed(struct pytorch_maker *maker, struct rank_program *ranks,
                             int rank_count, struct diag *diag)
{
    const struct plan *plan = maker->options->plan;
    struct stage_cost *costs = NULL;
    int stages = maker->map.stages;
    enum status status = plan ? costs_resolve(plan, stages, maker->arena, &costs, diag) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    bool known = pass_time_known(costs, stages);
    struct pass_clock clock = {.plan = known ? plan : NULL,
                               .costs = known ? costs : NULL,
                               .microbatches = maker->map.microbatches};
    return comms_add_timed(maker->arena, ranks, rank_count, maker->options->copies, &clock, diag);
}

enum status pytorch_complete(struct arena *arena, struct rank_program *ranks, int rank_count,
                             const struct pytorch_options *options, struct diag *diag)
{
    struct pytorch_maker maker = {.arena = arena, .options = options};
    enum status status =
        comms_map_stages(arena, ranks, rank_count, options->copies, &maker.map, diag);
    if (status != STATUS_OK)
        return status;
    if (!add_before_messages(&maker, ranks, rank_count))
        return diag_no_memory(diag);
    status = options->receives == RECEIVES_TIMED
                 ? add_timed(&maker, ranks, rank_count, diag)
                 : comms_add(arena, ranks, rank_count, options->copies, diag);
    if (status == STATUS_OK && !add_behind_messages(&maker, ranks, rank_count))
        return diag_no_memory(diag);
    return status;
}
