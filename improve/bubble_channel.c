/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble_channel.c - see bubble.h: lists whose messages share channels.
 *
 * A rank has a queue for its passes and one for each channel. Every queue goes on while the time at which its head can
 * start is known; no clock is needed, because which queue goes first does not change any time.
 */
#include "bubble.h"

#include <string.h>

#include "plan/schedules/comms.h"

/* Queue 0 has the passes; the others are named by the channel, as `key_of` says. */
enum { MOST_QUEUES = 16 };

struct order_queue {
    int key;
    const struct action **items;
    size_t count, at;
    int64_t free_ns;
};

struct rank_queues {
    struct order_queue queues[MOST_QUEUES];
    int count;
    int64_t first_ns, end_ns; /* of passes; -1: none yet */
};

/* The times at which the content of a message is there, on either side, and has come; -1: not known yet. */
struct bubble_channel_arrival {
    int64_t sender_ns, receiver_ns, end_ns;
};

struct channel_walk {
    const struct bubble_problem *problem;
    enum fifo_rule fifo;
    struct arena arena;
    struct rank_queues *ranks;
    int64_t *ends[2]; /* of F, of I: [stage * microbatches + microbatch]; -1 */
    struct bubble_channel_arrival
        *arrivals[2]; /* of the activation of a stage, of the gradient for it */
    bool overflow;
};

static size_t bubble_channel_cell(const struct channel_walk *walk, int stage, int microbatch)
{
    return (size_t)stage * (size_t)walk->problem->microbatches + (size_t)microbatch;
}

static bool is_send(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_SEND_B;
}

static bool is_forward(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_RECV_F;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static int bubble_channel_key_of(const struct channel_walk *walk, const struct action *message)
{
    int peer = walk->problem->rank_of[comms_partner(message)];
    switch (walk->fifo) {
    case FIFO_RANK: return 0;
    case FIFO_DIRECTION: return is_forward(message);
    case FIFO_PAIR: return peer;
    case FIFO_EDGE: break;
    }
    return 2 * peer + is_send(message);
}

/* The queue of an action of this rank, made at its first use. */
static struct order_queue *queue_of(struct channel_walk *walk, struct rank_queues *rank,
                                    const struct action *action)
{
    int key = comms_is_message(action) ? bubble_channel_key_of(walk, action) : -1;
    for (int i = 0; i < rank->count; i++)
        if (rank->queues[i].key == key)
            return &rank->queues[i];
    if (rank->count == MOST_QUEUES) {
        walk->overflow = true;
        return &rank->queues[0];
    }
    rank->queues[rank->count].key = key;
    return &rank->queues[rank->count++];
}

static bool fill_queues(struct channel_walk *walk, struct rank_queues *rank,
                        const struct rank_program *list)
{
    rank->queues[rank->count++].key = -1;
    for (size_t i = 0; i < list->count; i++)
        queue_of(walk, rank, &list->actions[i])->count++;
    for (int q = 0; q < rank->count; q++) {
        struct order_queue *queue = &rank->queues[q];
        queue->items = ARENA_ARRAY(&walk->arena, queue->count + 1, const struct action *);
        if (!queue->items)
            return false;
        queue->count = 0;
    }
    for (size_t i = 0; i < list->count; i++) {
        struct order_queue *queue = queue_of(walk, rank, &list->actions[i]);
        queue->items[queue->count++] = &list->actions[i];
    }
    rank->first_ns = -1;
    return !walk->overflow;
}

static bool open_walk(struct channel_walk *walk, const struct rank_program *lists)
{
    const struct bubble_problem *problem = walk->problem;
    size_t cells = (size_t)problem->stages * (size_t)problem->microbatches;
    arena_init(&walk->arena, 0);
    walk->ranks = ARENA_ARRAY(&walk->arena, (size_t)problem->ranks, struct rank_queues);
    for (int i = 0; i < 2; i++) {
        walk->ends[i] = ARENA_ARRAY(&walk->arena, cells, int64_t);
        walk->arrivals[i] = ARENA_ARRAY(&walk->arena, cells, struct bubble_channel_arrival);
    }
    if (walk->arena.failed)
        return false;
    for (int i = 0; i < 2; i++) {
        memset(walk->ends[i], 0xff, cells * sizeof *walk->ends[i]);
        memset(walk->arrivals[i], 0xff, cells * sizeof *walk->arrivals[i]);
    }
    for (int rank = 0; rank < problem->ranks; rank++)
        if (!fill_queues(walk, &walk->ranks[rank], &lists[rank]))
            return false;
    return true;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* The time at which the input of a pass is here; -1: not known yet. */
static int64_t bubble_channel_input_time(const struct channel_walk *walk, const struct action *pass)
{
    const struct bubble_problem *problem = walk->problem;
    int stage = pass->stage, backward = pass->kind != ACTION_F;
    int from = backward ? stage + 1 : stage - 1;
    if (pass->kind == ACTION_W)
        return 0;
    if (from < 0 || from == problem->stages)
        return 0;
    return problem->rank_of[from] == problem->rank_of[stage]
               ? walk->ends[backward][bubble_channel_cell(walk, from, pass->microbatch)]
               : walk->arrivals[backward][bubble_channel_cell(walk, stage, pass->microbatch)]
                     .end_ns;
}

static bool bubble_channel_step_pass(struct channel_walk *walk, struct rank_queues *rank,
                                     struct order_queue *queue)
{
    const struct action *pass = queue->items[queue->at];
    const struct pass_times *times = &walk->problem->times[pass->stage];
    int64_t input_ns = bubble_channel_input_time(walk, pass);
    if (input_ns < 0)
        return false;
    int64_t start_ns = input_ns > queue->free_ns ? input_ns : queue->free_ns;
    int64_t length_ns = pass->kind == ACTION_F ? times->f_ns
                        : pass->kind == ACTION_W
                            ? times->w_ns
                            : bubble_backward_ns(walk->problem, pass->stage, pass->microbatch);
    if (rank->first_ns < 0)
        rank->first_ns = start_ns;
    rank->end_ns = queue->free_ns = start_ns + length_ns;
    if (pass->kind != ACTION_W)
        walk->ends[pass->kind != ACTION_F]
                  [bubble_channel_cell(walk, pass->stage, pass->microbatch)] = queue->free_ns;
    queue->at++;
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int64_t bubble_channel_transfer_ns(const struct bubble_problem *problem,
                                          const struct action *message)
{
    int to = is_send(message) ? comms_partner(message) : message->stage;
    return is_forward(message) ? problem->up_ns[to - 1] : problem->down_ns[to];
}

/* The end that comes second knows when the message starts; the other one goes on when it is asked again. */
static bool bubble_channel_step_message(struct channel_walk *walk, struct order_queue *queue)
{
    const struct action *message = queue->items[queue->at];
    int backward = !is_forward(message), to = comms_partner(message);
    bool sends = is_send(message);
    struct bubble_channel_arrival *arrival = &walk->arrivals[backward][bubble_channel_cell(
        walk, sends ? to : message->stage, message->microbatch)];
    int64_t *own_ns = sends ? &arrival->sender_ns : &arrival->receiver_ns;
    int64_t made_ns =
        sends ? walk->ends[backward][bubble_channel_cell(walk, message->stage, message->microbatch)]
              : 0;
    if (made_ns < 0)
        return false;
    *own_ns = made_ns > queue->free_ns ? made_ns : queue->free_ns;
    if (arrival->sender_ns < 0 || arrival->receiver_ns < 0)
        return false;
    int64_t start_ns =
        arrival->sender_ns > arrival->receiver_ns ? arrival->sender_ns : arrival->receiver_ns;
    arrival->end_ns = queue->free_ns =
        start_ns + bubble_channel_transfer_ns(walk->problem, message);
    queue->at++;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool bubble_channel_go_on(struct channel_walk *walk, struct rank_queues *rank)
{
    bool any = false;
    for (int q = 0; q < rank->count; q++) {
        struct order_queue *queue = &rank->queues[q];
        while (queue->at < queue->count && (q == 0 ? bubble_channel_step_pass(walk, rank, queue)
                                                   : bubble_channel_step_message(walk, queue)))
            any = true;
    }
    return any;
}

static bool bubble_channel_sum_up(const struct channel_walk *walk, struct bubble_figures *out)
{
    struct bubble_figures figures = {0};
    for (int r = 0; r < walk->problem->ranks; r++) {
        const struct rank_queues *rank = &walk->ranks[r];
        int64_t span_ns = rank->end_ns - rank->first_ns;
        for (int q = 0; q < rank->count; q++)
            if (rank->queues[q].at < rank->queues[q].count)
                return false;
        figures.span_ns = span_ns > figures.span_ns ? span_ns : figures.span_ns;
        figures.makespan_ns =
            rank->end_ns > figures.makespan_ns ? rank->end_ns : figures.makespan_ns;
    }
    *out = figures;
    return true;
}

bool bubble_channel_evaluate(const struct bubble_problem *problem, enum fifo_rule fifo,
                             const struct rank_program *lists, struct bubble_figures *out)
{
    struct channel_walk walk = {.problem = problem, .fifo = fifo};
    bool ok = open_walk(&walk, lists);
    for (bool any = ok; any;) {
        any = false;
        for (int rank = 0; rank < problem->ranks; rank++)
            any |= bubble_channel_go_on(&walk, &walk.ranks[rank]);
    }
    ok = ok && bubble_channel_sum_up(&walk, out);
    arena_fini(&walk.arena);
    return ok;
}

int bubble_channel_held(const struct bubble_problem *problem, const struct rank_program *list)
{
    int held = 0, most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i];
        int left = comms_is_pass(action) ? problem->left_percent[action->stage] : 0;
        if (action->kind == ACTION_F)
            held += 100;
        else if (action->kind == ACTION_I)
            held -= 100 - left;
        else if (action->kind == ACTION_W)
            held -= left;
        most = held > most ? held : most;
    }
    return (most + 99) / 100;
}

bool bubble_channel_fits(const struct bubble_problem *problem, const struct rank_program *lists)
{
    for (int rank = 0; rank < problem->ranks; rank++)
        if (bubble_channel_held(problem, &lists[rank]) > problem->limits[rank])
            return false;
    return true;
}
