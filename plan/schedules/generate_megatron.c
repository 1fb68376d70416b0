/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_megatron.c - see generate_internal.h: the passes of a rank with the messages that Megatron-LM sends between
 * them.
 *
 * Megatron talks to its neighbours in calls: up to four messages, to and from the previous and the next rank. What is
 * in a call, the order in which its messages are handed to the device, and when a rank waits for them, is its plan:
 *
 *     BATCH       one batch_isend_irecv: send to and receive from the previous rank, then the next; awaited at once
 *     ODD_EVEN    one by one, even ranks send first, odd ranks receive first; awaited at once
 *     OVERLAP     the same; in the steady part, a message is awaited by the pass that needs it, a send by the next
 *                 send of its direction
 *     FLUSH       OVERLAP in warm-up and cool-down, too: a rank receives before the pass in front
 *
 * In the interleaved schedule the ranks form a ring, and each call receives the input of the next pass; the leading
 * rank of a direction is behind the others by p - 1 passes, so it receives for the chunk behind.
 *
 * Source: megatron-core 0.16.1, pipeline_parallel (tests/partners/t_megatron.py compares call by call).
 */
#include "generate_internal.h"

enum pass_way { FORWARD, BACKWARD, WAYS };

/* The messages of a call; a kind of ACTION_IDLE: there is none. */
struct generate_megatron_call {
    struct action send_next, recv_prev, send_prev, recv_next;
};

struct talk {
    struct list_builder *b;
    struct generate_pattern pattern;
    enum megatron_order order;
    int total; /* passes a direction */
    /* Of each direction: the messages received so far of each chunk, receives that no pass has awaited yet, oldest
       first, and the last send. */
    int *received[WAYS];
    struct action *open[WAYS];
    int open_first[WAYS], open_end[WAYS];
    struct action sent[WAYS];
};

static const struct action none = {.kind = ACTION_IDLE};

static bool generate_megatron_is_there(const struct action *message)
{
    return message->kind != ACTION_IDLE;
}

/* ---- one call -------------------------------------------------------------------------------- */

static void say(struct talk *talk, const struct action *action)
{
    if (generate_megatron_is_there(action))
        generate_push(talk->b, action->kind, action->stage, action->microbatch);
}

static void await(struct talk *talk, const struct action *message)
{
    static const enum action_kind waits[ACTION_IDLE + 1] = {
        [ACTION_SEND_F] = ACTION_WAIT_SEND_F,
        [ACTION_RECV_F] = ACTION_WAIT_RECV_F,
        [ACTION_SEND_B] = ACTION_WAIT_SEND_B,
        [ACTION_RECV_B] = ACTION_WAIT_RECV_B,
    };
    if (generate_megatron_is_there(message))
        generate_push(talk->b, waits[message->kind], message->stage, message->microbatch);
}

enum { MOST = 4 };

static void in_order(const struct talk *talk, const struct generate_megatron_call *call,
                     struct action out[MOST])
{
    bool even = talk->b->rank % 2 == 0;
    if (talk->order == MEGATRON_BATCH) {
        out[0] = call->send_prev, out[1] = call->recv_prev;
        out[2] = call->send_next, out[3] = call->recv_next;
    } else if (even) {
        out[0] = call->send_next, out[1] = call->recv_prev;
        out[2] = call->send_prev, out[3] = call->recv_next;
    } else {
        out[0] = call->recv_prev, out[1] = call->send_next;
        out[2] = call->recv_next, out[3] = call->send_prev;
    }
}

static void talk_now(struct talk *talk, struct generate_megatron_call call)
{
    struct action messages[MOST];
    in_order(talk, &call, messages);
    for (int i = 0; i < MOST; i++)
        say(talk, &messages[i]);
    for (int i = 0; i < MOST; i++)
        await(talk, &messages[i]);
}

static void keep_open(struct talk *talk, enum pass_way way, const struct action *receive)
{
    if (generate_megatron_is_there(receive))
        talk->open[way][talk->open_end[way]++] = *receive;
}

/* A call of one direction that is awaited later. The send before it is awaited now. */
static void talk_ahead(struct talk *talk, enum pass_way way, struct generate_megatron_call call)
{
    struct action messages[MOST];
    in_order(talk, &call, messages);
    for (int i = 0; i < MOST; i++)
        say(talk, &messages[i]);
    await(talk, &talk->sent[way]);
    talk->sent[way] = way == FORWARD ? call.send_next : call.send_prev;
    keep_open(talk, way, way == FORWARD ? &call.recv_prev : &call.recv_next);
}

/* A receive alone, which awaits no send. */
static void receive_ahead(struct talk *talk, enum pass_way way, const struct action *receive)
{
    say(talk, receive);
    keep_open(talk, way, receive);
}

static void await_input(struct talk *talk, enum pass_way way)
{
    if (talk->open_first[way] < talk->open_end[way])
        await(talk, &talk->open[way][talk->open_first[way]++]);
}

/* ---- the messages of a pass ------------------------------------------------------------------ */

static struct action pass_of(const struct talk *talk, enum pass_way way, int k)
{
    return generate_pass(talk->b, way == FORWARD ? ACTION_F : ACTION_B, talk->pattern.group, k);
}

static int chunk_of(const struct talk *talk, enum pass_way way, int k)
{
    return pass_of(talk, way, k % talk->total).stage / talk->b->p;
}

static bool is_outermost(const struct talk *talk, enum pass_way way, int stage)
{
    return stage == (way == FORWARD ? 0 : talk->b->p * talk->b->v - 1);
}

/* The result of the k-th pass, unless it stays. */
static struct action send_of(const struct talk *talk, enum pass_way way, int k)
{
    struct action pass = pass_of(talk, way, k);
    if (is_outermost(talk, way == FORWARD ? BACKWARD : FORWARD, pass.stage))
        return none;
    pass.kind = way == FORWARD ? ACTION_SEND_F : ACTION_SEND_B;
    return pass;
}

static struct action receive_for(struct talk *talk, enum pass_way way, int chunk)
{
    return (struct action){.kind = way == FORWARD ? ACTION_RECV_F : ACTION_RECV_B,
                           .stage = chunk * talk->b->p + talk->b->rank,
                           .microbatch = talk->received[way][chunk]++};
}

/* The message that the call at the k-th pass receives: the input of the next pass, on the leading rank that of the pass that the
   last rank in the ring has just done. */
static struct action receive_at(struct talk *talk, enum pass_way way, int k)
{
    const struct list_builder *b = talk->b;
    int step = way == FORWARD ? 1 : -1, last = way == FORWARD ? b->v - 1 : 0;
    if (k == talk->total - 1)
        return none;
    if (b->rank != (way == FORWARD ? 0 : b->p - 1))
        return receive_for(talk, way, chunk_of(talk, way, k + 1));
    int behind = k - (b->p - 1);
    if (behind < 0 || chunk_of(talk, way, behind) == last)
        return none;
    return receive_for(talk, way, chunk_of(talk, way, behind) + step);
}

static struct action receive_first(struct talk *talk, enum pass_way way)
{
    const struct list_builder *b = talk->b;
    if (b->rank == (way == FORWARD ? 0 : b->p - 1))
        return none;
    return receive_for(talk, way, way == FORWARD ? 0 : b->v - 1);
}

static void generate_megatron_pass(struct talk *talk, enum pass_way way, int k)
{
    struct action action = pass_of(talk, way, k);
    say(talk, &action);
}

static struct generate_megatron_call
generate_megatron_call_of(enum pass_way way, struct action send, struct action receive)
{
    return way == FORWARD ? (struct generate_megatron_call){send, receive, none, none}
                          : (struct generate_megatron_call){none, none, send, receive};
}

/* ---- one chunk a rank ------------------------------------------------------------------------ */

/* A pass between a receive and a send. */
static void alone(struct talk *talk, enum pass_way way, int k)
{
    talk_now(talk, generate_megatron_call_of(way, none, receive_first(talk, way)));
    generate_megatron_pass(talk, way, k);
    talk_now(talk, generate_megatron_call_of(way, send_of(talk, way, k), none));
}

static void build_line(struct talk *talk)
{
    int warm = talk->pattern.warm < talk->total ? talk->pattern.warm : talk->total;
    for (int k = 0; k < warm; k++)
        alone(talk, FORWARD, k);
    if (warm < talk->total)
        talk_now(talk, generate_megatron_call_of(FORWARD, none, receive_first(talk, FORWARD)));
    for (int k = 0; k + warm < talk->total; k++) {
        bool last = k + warm == talk->total - 1;
        generate_megatron_pass(talk, FORWARD, k + warm);
        talk_now(talk, (struct generate_megatron_call){send_of(talk, FORWARD, k + warm), none, none,
                                                       receive_first(talk, BACKWARD)});
        generate_megatron_pass(talk, BACKWARD, k);
        talk_now(talk,
                 (struct generate_megatron_call){none, last ? none : receive_first(talk, FORWARD),
                                                 send_of(talk, BACKWARD, k), none});
    }
    for (int k = talk->total - warm; k < talk->total; k++)
        alone(talk, BACKWARD, k);
}

static void build_line_forward(struct talk *talk)
{
    for (int k = 0; k < talk->total; k++)
        alone(talk, FORWARD, k);
}

/* ---- several chunks: a ring ------------------------------------------------------------------ */

static bool is_outermost_pass(const struct talk *talk, enum pass_way way, int k)
{
    return is_outermost(talk, way, pass_of(talk, way, k).stage);
}

static void await_pass_input(struct talk *talk, enum pass_way way, int k)
{
    if (!is_outermost_pass(talk, way, k))
        await_input(talk, way);
}

/* A pass of warm-up or cool-down under FLUSH: it receives for the next one before it is done. */
static void flush_pass(struct talk *talk, enum pass_way way, int k)
{
    const struct list_builder *b = talk->b;
    bool leads = b->rank == (way == FORWARD ? 0 : b->p - 1);
    if (k > 0)
        await_pass_input(talk, way, k);
    struct action receive = receive_at(talk, way, k);
    if (!leads)
        receive_ahead(talk, way, &receive);
    generate_megatron_pass(talk, way, k);
    talk_ahead(talk, way,
               generate_megatron_call_of(way, send_of(talk, way, k), leads ? receive : none));
}

static void generate_megatron_warm_up(struct talk *talk, int warm, bool backwards_follow)
{
    bool overlaps = talk->order == MEGATRON_OVERLAP || talk->order == MEGATRON_FLUSH;
    talk_now(talk, generate_megatron_call_of(FORWARD, none, receive_first(talk, FORWARD)));
    for (int k = 0; k < warm; k++) {
        bool last = k == warm - 1 && backwards_follow;
        if (talk->order == MEGATRON_FLUSH) {
            flush_pass(talk, FORWARD, k);
        } else {
            generate_megatron_pass(talk, FORWARD, k);
            struct action send = send_of(talk, FORWARD, k);
            struct action receive = receive_at(talk, FORWARD, k);
            struct action gradient = last && !overlaps ? receive_first(talk, BACKWARD) : none;
            talk_now(talk, (struct generate_megatron_call){send, receive, none, gradient});
        }
        if (last && overlaps) {
            struct action gradient = receive_first(talk, BACKWARD);
            receive_ahead(talk, BACKWARD, &gradient);
        }
    }
}

static void steady_passes(struct talk *talk, int forward_k, int k)
{
    if (!talk->pattern.overlap) {
        generate_megatron_pass(talk, FORWARD, forward_k);
        return;
    }
    generate_push_overlap(talk->b, pass_of(talk, FORWARD, forward_k), pass_of(talk, BACKWARD, k));
}

/* Awaited by what needs it. With composites both directions are awaited before and talked to behind. */
static void steady_ahead(struct talk *talk, int forward_k, int k, bool last)
{
    await_pass_input(talk, FORWARD, forward_k);
    if (talk->pattern.overlap)
        await_pass_input(talk, BACKWARD, k);
    steady_passes(talk, forward_k, k);
    struct action send = send_of(talk, FORWARD, forward_k);
    talk_ahead(talk, FORWARD,
               generate_megatron_call_of(FORWARD, send,
                                         last ? none : receive_at(talk, FORWARD, forward_k)));
    if (!talk->pattern.overlap) {
        await_pass_input(talk, BACKWARD, k);
        generate_megatron_pass(talk, BACKWARD, k);
    }
    send = send_of(talk, BACKWARD, k);
    talk_ahead(talk, BACKWARD,
               generate_megatron_call_of(BACKWARD, send, receive_at(talk, BACKWARD, k)));
}

static void steady_now(struct talk *talk, int forward_k, int k, bool last)
{
    steady_passes(talk, forward_k, k);
    if (!talk->pattern.overlap)
        generate_megatron_pass(talk, BACKWARD, k);
    struct action receive = last ? none : receive_at(talk, FORWARD, forward_k);
    struct action sends[WAYS] = {send_of(talk, FORWARD, forward_k), send_of(talk, BACKWARD, k)};
    talk_now(talk, (struct generate_megatron_call){sends[FORWARD], receive, sends[BACKWARD],
                                                   receive_at(talk, BACKWARD, k)});
}

static void cool_down(struct talk *talk, int first, bool all_warm)
{
    if (all_warm)
        talk_now(talk, generate_megatron_call_of(BACKWARD, none, receive_first(talk, BACKWARD)));
    for (int k = first; k < talk->total; k++) {
        if (talk->order == MEGATRON_FLUSH) {
            flush_pass(talk, BACKWARD, k);
            continue;
        }
        if (k > 0)
            await_pass_input(talk, BACKWARD, k);
        generate_megatron_pass(talk, BACKWARD, k);
        struct action send = send_of(talk, BACKWARD, k);
        talk_now(talk, generate_megatron_call_of(BACKWARD, send, receive_at(talk, BACKWARD, k)));
    }
    await(talk, &talk->sent[BACKWARD]);
}

static void build_ring(struct talk *talk, bool forward_only)
{
    bool overlaps = talk->order == MEGATRON_OVERLAP || talk->order == MEGATRON_FLUSH;
    bool all_warm = forward_only || talk->pattern.warm >= talk->total;
    int warm = all_warm ? talk->total : talk->pattern.warm;
    generate_megatron_warm_up(talk, warm, !all_warm);
    for (int k = 0; k + warm < talk->total; k++) {
        bool last = k + warm == talk->total - 1;
        if (overlaps)
            steady_ahead(talk, k + warm, k, last);
        else
            steady_now(talk, k + warm, k, last);
    }
    if (!forward_only)
        cool_down(talk, talk->total - warm, all_warm);
}

/* ---- all ------------------------------------------------------------------------------------- */

void generate_megatron(struct list_builder *b, const struct generate_pattern *pattern,
                       enum megatron_order order, bool forward_only)
{
    struct talk talk = {
        .b = b, .pattern = *pattern, .order = order, .total = b->v * b->m, .sent = {none, none}};
    for (int way = 0; way < WAYS; way++) {
        talk.received[way] = ARENA_ARRAY(b->arena, (size_t)b->v, int);
        talk.open[way] = ARENA_ARRAY(b->arena, (size_t)talk.total + 1, struct action);
        if (!talk.received[way] || !talk.open[way]) {
            b->failed = true;
            return;
        }
    }
    if (b->v > 1)
        build_ring(&talk, forward_only);
    else if (forward_only)
        build_line_forward(&talk);
    else
        build_line(&talk);
}
