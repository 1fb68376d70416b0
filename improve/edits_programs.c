/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_programs.c - edits of rank programs, and of the machine's knobs, which every form has.
 *
 * Rank programs whose lists disagree: a message that lacks its other end gets one, one that is there a second time is
 * removed, one that a pass needs and no list has is added, and a rank of `parallel: {ranks}` does as the others. A receive
 * that is added stands before the pass that needs it, a send behind the pass that makes it, or a few places further away,
 * where the channel has other messages between.
 */
#include "edits_internal.h"

#include "plan/schedules/actions.h"
#include "plan/schedules/comms.h"
#include "plan/keywords.h"
#include "base/assert_index.h"

enum { LONE_MOST = 8, PLACES = 4, LIST_TEXT = 160 };

/* ---- which messages are alone ---------------------------------------------------------------- */

static bool is_same_action(const struct action *a, const struct action *b)
{
    return a->kind == b->kind && a->stage == b->stage && a->microbatch == b->microbatch;
}

/* The action of a list that is or has this one, behind the first `from`; its length: none. */
static size_t edits_programs_find_action(const struct rank_program *list,
                                         const struct action *wanted, size_t from)
{
    for (size_t i = from; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            if (is_same_action(&parts[k], wanted))
                return i;
    }
    return list->count;
}

/* The rank that has passes of this stage; -1: none. */
static int holder_of(const struct plan *plan, int stage)
{
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&plan->programs.ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                if (comms_is_pass(&parts[k]) && parts[k].stage == stage)
                    return rank;
        }
    return -1;
}

/* ---- proposals ------------------------------------------------------------------------------- */

/* The pass of its stage that a message is made by, or is needed by. */
static size_t find_pass(const struct rank_program *list, const struct action *message)
{
    bool forward = message->kind == ACTION_SEND_F || message->kind == ACTION_RECV_F;
    struct action pass = {.kind = forward ? ACTION_F : ACTION_B,
                          .stage = message->stage,
                          .microbatch = message->microbatch};
    size_t at = edits_programs_find_action(list, &pass, 0);
    pass.kind = ACTION_I;
    return at < list->count || forward ? at : edits_programs_find_action(list, &pass, 0);
}

static void propose_other_end(struct proposer *proposer, int rank, size_t index)
{
    const struct programs *programs = &proposer->plan->programs;
    struct action end = comms_other_end(&programs->ranks[rank].actions[index]);
    int holder = holder_of(proposer->plan, end.stage);
    const struct rank_program *list = holder < 0 ? NULL : &programs->ranks[holder];
    size_t pass = list ? find_pass(list, &end) : 0;
    if (!list || pass == list->count)
        return;
    bool send = end.kind == ACTION_SEND_F || end.kind == ACTION_SEND_B;
    for (size_t away = 0; away < PLACES; away++) {
        size_t at = send ? pass + 1 + away : pass - away;
        if (at <= list->count && (send || away <= pass))
            propose(proposer,
                    (struct edit){.kind = EDIT_ACTION_ADD,
                                  .a = holder,
                                  .b = (int)at,
                                  .c = rank,
                                  .to = (int)index},
                    0, (int)away);
    }
}

/* Messages without another end, and those that a list has twice. */
static int propose_of_message(struct proposer *proposer, int rank, size_t index)
{
    const struct programs *programs = &proposer->plan->programs;
    const struct rank_program *list = &programs->ranks[rank];
    const struct action *message = &list->actions[index];
    struct action end = comms_other_end(message);
    size_t again = edits_programs_find_action(list, message, index + 1);
    if (again < list->count) {
        propose(proposer, (struct edit){.kind = EDIT_ACTION_REMOVE, .a = rank, .b = (int)again}, 0,
                0);
        propose(proposer, (struct edit){.kind = EDIT_ACTION_REMOVE, .a = rank, .b = (int)index}, 0,
                1);
        return 1;
    }
    int holder = holder_of(proposer->plan, end.stage);
    if (holder < 0 || edits_programs_find_action(&programs->ranks[holder], &end, 0) <
                          programs->ranks[holder].count)
        return 0;
    propose_other_end(proposer, rank, index);
    return 1;
}

static void propose_messages(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    int lone = 0;
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count && lone < LONE_MOST; i++)
            if (comms_is_message(&plan->programs.ranks[rank].actions[i]))
                lone += propose_of_message(proposer, rank, i);
}

/* ---- messages that no list has --------------------------------------------------------------- */

/* Both ends, and where they go. */
struct missing {
    struct action send, receive;
    int sender, receiver;       /* ranks */
    size_t send_at, receive_at; /* places in their lists */
};

/* The receive of a pass's input from its neighbour; false: the first or last stage of a copy has none, nor has W. */
static bool receive_of(const struct plan *plan, const struct action *pass, int stages,
                       struct action *out)
{
    int copies = plan->programs.copies > 1 ? plan->programs.copies : 1, length = stages / copies;
    bool forward = pass->kind == ACTION_F;
    int place = length > 0 ? pass->stage % length : 0;
    *out = (struct action){.kind = forward ? ACTION_RECV_F : ACTION_RECV_B,
                           .stage = pass->stage,
                           .microbatch = pass->microbatch};
    return pass->kind != ACTION_W && place != (forward ? 0 : length - 1);
}

static int edits_programs_count_stages(const struct plan *plan)
{
    int stages = 0;
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&plan->programs.ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                stages = parts[k].stage >= stages ? parts[k].stage + 1 : stages;
        }
    return stages;
}

/* The message that an EDIT_MESSAGE_ADD adds. False: none is missing there, or its places are outside the lists. */
static bool find_missing(const struct plan *plan, const struct edit *edit, int stages,
                         struct missing *out)
{
    const struct rank_program *list = &plan->programs.ranks[edit->a];
    const struct action *parts;
    size_t count = comms_parts(&list->actions[edit->b], &parts), away = (size_t)edit->to;
    if ((size_t)edit->c >= count || !comms_is_pass(&parts[edit->c]) ||
        !receive_of(plan, &parts[edit->c], stages, &out->receive))
        return false;
    out->send = comms_other_end(&out->receive);
    out->receiver = edit->a;
    out->sender = holder_of(plan, out->send.stage);
    if (out->sender < 0 || out->sender == out->receiver)
        return false;
    const struct rank_program *other = &plan->programs.ranks[out->sender];
    size_t pass = find_pass(other, &out->send);
    out->receive_at = (size_t)edit->b - away % PLACES;
    out->send_at = pass + 1 + away / PLACES;
    return pass < other->count && out->send_at <= other->count &&
           away % PLACES <= (size_t)edit->b &&
           edits_programs_find_action(list, &out->receive, 0) == list->count &&
           edits_programs_find_action(other, &out->send, 0) == other->count;
}

static int propose_of_pass(struct proposer *proposer, int rank, int index, int stages)
{
    struct missing missing;
    int found = 0;
    for (int part = 0; part < 2; part++)
        for (int away = 0; away < PLACES * PLACES; away++) {
            struct edit edit = {
                .kind = EDIT_MESSAGE_ADD, .a = rank, .b = index, .c = part, .to = away};
            if (!find_missing(proposer->plan, &edit, stages, &missing))
                continue;
            propose(proposer, edit, 0, away % PLACES + away / PLACES);
            found = 1;
        }
    return found;
}

static void propose_missing(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    int stages = edits_programs_count_stages(plan), lone = 0;
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count && lone < LONE_MOST; i++)
            lone += propose_of_pass(proposer, rank, (int)i, stages);
}

/* `unpaired`: there are more sends than receives, or fewer. */
static void propose_lists(struct proposer *proposer, bool unpaired)
{
    const struct programs *programs = &proposer->plan->programs;
    for (int i = 0; i < (int)programs->parallel.differing_count; i++)
        propose(proposer, (struct edit){.kind = EDIT_RANK_ALIKE, .a = i}, 0, i < 8 ? i : 8);
    if (programs->ranks && !programs->generate.given &&
        (unpaired || proposer->suspects->property == PROPERTY_MESSAGE))
        propose_messages(proposer);
    if (programs->ranks && !programs->generate.given && programs->has_comms &&
        proposer->suspects->property == PROPERTY_VALUE)
        propose_missing(proposer);
}

/* ---- making them ----------------------------------------------------------------------------- */

static bool insert_action(struct plan *plan, int rank, size_t at, const struct action *action)
{
    ASSERT_INDEX(rank, plan->ranks);
    struct rank_program *list = &plan->programs.ranks[rank];
    struct action *actions = ARENA_ARRAY(&plan->arena, list->count + 1, struct action);
    if (!actions)
        return false;
    memcpy(actions, list->actions, at * sizeof *actions);
    actions[at] = *action;
    memcpy(actions + at + 1, list->actions + at, (list->count - at) * sizeof *actions);
    list->actions = actions;
    list->count++;
    return true;
}

static bool add_action(struct plan *plan, const struct edit *edit)
{
    struct action end = comms_other_end(&plan->programs.ranks[edit->c].actions[edit->to]);
    return insert_action(plan, edit->a, (size_t)edit->b, &end);
}

/* Where another edit has added it already, nothing is left to do. */
static bool edits_programs_add_message(struct plan *plan, const struct edit *edit)
{
    struct missing missing;
    return !find_missing(plan, edit, edits_programs_count_stages(plan), &missing) ||
           (insert_action(plan, missing.receiver, missing.receive_at, &missing.receive) &&
            insert_action(plan, missing.sender, missing.send_at, &missing.send));
}

static void edits_programs_remove_item(void *items, size_t size, size_t *count, size_t at)
{
    char *bytes = items;
    memmove(bytes + at * size, bytes + (at + 1) * size, (--*count - at) * size);
}

bool apply_list(struct plan *plan, const struct edit *edit)
{
    struct parallel_spec *spec = &plan->programs.parallel;
    struct rank_program *list;
    if (edit->kind == EDIT_ACTION_ADD)
        return add_action(plan, edit);
    if (edit->kind == EDIT_MESSAGE_ADD)
        return edits_programs_add_message(plan, edit);
    if (edit->kind == EDIT_RANK_ALIKE) {
        edits_programs_remove_item(spec->differing, sizeof *spec->differing, &spec->differing_count,
                                   (size_t)edit->a);
        return true;
    }
    list = &plan->programs.ranks[edit->a];
    edits_programs_remove_item(list->actions, sizeof *list->actions, &list->count, (size_t)edit->b);
    return true;
}

/* ---- saying them ----------------------------------------------------------------------------- */

/* "rank 1: add 1RECV_F0 before 1F0" */
static const char *describe_inserted(const struct plan *plan, int rank, size_t at,
                                     const struct action *action, struct arena *arena)
{
    char what[LIST_TEXT], other[LIST_TEXT];
    ASSERT_INDEX(rank, plan->ranks);
    const struct rank_program *list = &plan->programs.ranks[rank];
    bool last = at == list->count;
    action_format(action, what, sizeof what);
    action_format(&list->actions[last ? at - 1 : at], other, sizeof other);
    return arena_printf(arena, "rank %d: add %s %s %s", rank, what, last ? "behind" : "before",
                        other);
}

static const char *edits_programs_describe_added(const struct plan *plan, const struct edit *edit,
                                                 struct arena *arena)
{
    struct action end = comms_other_end(&plan->programs.ranks[edit->c].actions[edit->to]);
    return describe_inserted(plan, edit->a, (size_t)edit->b, &end, arena);
}

static const char *describe_message(const struct plan *plan, const struct edit *edit,
                                    struct arena *arena)
{
    struct missing missing;
    if (!find_missing(plan, edit, edits_programs_count_stages(plan), &missing))
        return "nothing";
    const char *receive =
        describe_inserted(plan, missing.receiver, missing.receive_at, &missing.receive, arena);
    const char *send =
        describe_inserted(plan, missing.sender, missing.send_at, &missing.send, arena);
    return receive && send ? arena_printf(arena, "%s; %s", receive, send) : NULL;
}

const char *describe_list(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    char what[LIST_TEXT];
    if (edit->kind == EDIT_ACTION_ADD)
        return edits_programs_describe_added(plan, edit, arena);
    if (edit->kind == EDIT_MESSAGE_ADD)
        return describe_message(plan, edit, arena);
    if (edit->kind == EDIT_RANK_ALIKE)
        return arena_printf(arena, "parallel: {ranks}: rank %d does as the other ranks",
                            plan->programs.parallel.differing[edit->a].rank);
    action_format(&plan->programs.ranks[edit->a].actions[edit->b], what, sizeof what);
    return arena_printf(arena, "rank %d: %s (number %d of its list) only once", edit->a, what,
                        edit->b + 1);
}

enum { ACTION_REACH = 4, ACTION_TEXT = 160 };

/* ---- proposals ------------------------------------------------------------------------------- */

static void propose_limits(struct proposer *proposer)
{
    const struct machine_spec *machine = &proposer->plan->machine;
    for (int more = 1; more <= 2; more++) {
        if (machine->sm_slots > 0)
            propose(proposer, (struct edit){.kind = EDIT_SM_SLOTS, .to = machine->sm_slots + more},
                    0, more - 1);
        if (machine->hw_queues > 0)
            propose(proposer,
                    (struct edit){.kind = EDIT_HW_QUEUES, .to = machine->hw_queues + more}, 0,
                    more - 1);
        if (machine->launch_queue > 0)
            propose(proposer,
                    (struct edit){.kind = EDIT_LAUNCH_QUEUE, .to = machine->launch_queue + more}, 0,
                    more - 1);
    }
    if (machine->launch_queue > 0)
        propose(proposer, (struct edit){.kind = EDIT_LAUNCH_QUEUE, .to = 0}, 0, 3);
}

/* Sends less receives of a communicator, in host programs. */
static int message_balance(const struct host_op *ops, size_t count, int comm)
{
    int balance = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; ops[i].comm == comm && k < host_op_part_count(&ops[i]); k++)
            balance += ops[i].parts[k].send ? 1 : -1;
    return balance;
}

/* True if every message of the communicator has a receive. Else a send that does not wait for one only hides that. */
static bool is_balanced(const struct plan *plan, int comm)
{
    int balance = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        balance += message_balance(plan->threads[t].ops, plan->threads[t].op_count, comm);
    return balance == 0;
}

static int action_balance(const struct action *actions, size_t count, bool forward)
{
    int balance = 0;
    for (size_t i = 0; i < count; i++) {
        balance += actions[i].kind == (forward ? ACTION_SEND_F : ACTION_SEND_B);
        balance -= actions[i].kind == (forward ? ACTION_RECV_F : ACTION_RECV_B);
        balance += action_balance(actions[i].parts, actions[i].parts ? ACTION_PARTS : 0, forward);
    }
    return balance;
}

/* The same of rank programs, for both directions. */
static bool are_balanced(const struct plan *plan)
{
    int forward = 0, backward = 0;
    for (int rank = 0; plan->programs.ranks && rank < plan->ranks; rank++) {
        const struct rank_program *program = &plan->programs.ranks[rank];
        forward += action_balance(program->actions, program->count, true);
        backward += action_balance(program->actions, program->count, false);
    }
    return forward == 0 && backward == 0;
}

static void propose_eager(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    for (size_t c = 0; c < plan->comm_count && plan->form == FORM_THREADS; c++)
        for (int more = 1; more <= 4 && is_balanced(plan, (int)c); more *= 2)
            propose(proposer,
                    (struct edit){.kind = EDIT_EAGER,
                                  .a = (int)c,
                                  .to = plan->comms[c].eager_messages + more},
                    0, 2 * more);
}

void propose_machine(struct proposer *proposer)
{
    const struct machine_spec *machine = &proposer->plan->machine;
    propose_limits(proposer);
    int rule = (int)proposer->plan->on_failure;
    while (proposer->suspects->property == PROPERTY_FAULTS && ++rule <= ON_FAILURE_GROUP_ABORT)
        propose(proposer, (struct edit){.kind = EDIT_ON_FAILURE, .to = rule}, 0, rule);
    propose_eager(proposer);
    if (machine->sm_slots > 0 && !machine->launch_order_implicit)
        propose(proposer, (struct edit){.kind = EDIT_LAUNCH_ORDER}, 0, 0);
    if (machine->lazy_load)
        propose(proposer, (struct edit){.kind = EDIT_LAZY_LOAD}, 0, 0);
    if (machine->first_use_blocks)
        propose(proposer, (struct edit){.kind = EDIT_FIRST_USE}, 0, 0);
}

static bool edits_programs_is_message(const struct action *action, bool send)
{
    return send ? action->kind == ACTION_SEND_F || action->kind == ACTION_SEND_B
                : action->kind == ACTION_RECV_F || action->kind == ACTION_RECV_B;
}

/* A send comes sooner, or a receive; other moves are less likely to help. */
static void propose_action_moves(struct proposer *proposer, int rank)
{
    ASSERT_INDEX(rank, proposer->plan->ranks);
    const struct rank_program *program = &proposer->plan->programs.ranks[rank];
    for (size_t i = 0; i < program->count; i++)
        for (int by = -ACTION_REACH; by <= ACTION_REACH; by++) {
            int to = (int)i + by;
            if (by == 0 || by == 1 || to < 0 || to >= (int)program->count)
                continue;
            const struct action *action = &program->actions[i];
            int places = by < 0 ? -by : by;
            bool message =
                edits_programs_is_message(action, true) || edits_programs_is_message(action, false);
            propose(proposer,
                    (struct edit){.kind = EDIT_ACTION_MOVE, .a = rank, .b = (int)i, .to = to},
                    proposer->near[rank][i],
                    10 * (places - 1) + (message ? 0 : 10) +
                        (edits_programs_is_message(action, true) && by < 0 ? 0 : 1));
        }
}

void propose_programs(struct proposer *proposer)
{
    const struct plan *plan = proposer->plan;
    const struct programs *programs = &plan->programs;
    for (int rank = 0; programs->ranks && !programs->generate.given && rank < plan->ranks; rank++) {
        if (edits_are_over(proposer))
            return;
        propose_action_moves(proposer, rank);
    }
    propose_lists(proposer, !are_balanced(plan));
    if (!programs->batch)
        propose(proposer, (struct edit){.kind = EDIT_P2P_BATCH}, 0, 0);
    for (int rule = FIFO_RANK; rule <= FIFO_EDGE; rule++)
        if ((int)programs->fifo != rule)
            propose(proposer, (struct edit){.kind = EDIT_P2P_FIFO, .to = rule}, 0, rule);
    for (int more = 1; more <= 4 && are_balanced(plan); more *= 2)
        propose(proposer,
                (struct edit){.kind = EDIT_P2P_EAGER, .to = programs->eager_messages + more}, 0,
                2 * more);
}

/* ---- making them ----------------------------------------------------------------------------- */

bool apply_common(struct plan *plan, const struct edit *edit)
{
    struct machine_spec *machine = &plan->machine;
    switch (edit->kind) {
    case EDIT_ON_FAILURE: plan->on_failure = (enum on_failure)edit->to; break;
    case EDIT_SM_SLOTS: machine->sm_slots = edit->to; break;
    case EDIT_HW_QUEUES: machine->hw_queues = edit->to; break;
    case EDIT_LAUNCH_QUEUE: machine->launch_queue = edit->to; break;
    case EDIT_LAUNCH_ORDER: machine->launch_order_implicit = true; break;
    case EDIT_LAZY_LOAD: machine->lazy_load = false; break;
    case EDIT_FIRST_USE: machine->first_use_blocks = false; break;
    case EDIT_EAGER: plan->comms[edit->a].eager_messages = edit->to; break;
    case EDIT_P2P_BATCH: plan->programs.batch = true; break;
    case EDIT_P2P_FIFO: plan->programs.fifo = (enum fifo_rule)edit->to; break;
    case EDIT_P2P_EAGER: plan->programs.eager_messages = edit->to; break;
    default: {
        struct action kept;
        shift_item(plan->programs.ranks[edit->a].actions, sizeof kept, (size_t)edit->b,
                   (size_t)edit->to, &kept);
    }
    }
    return true;
}

/* ---- saying them ----------------------------------------------------------------------------- */

static const char *describe_action(const struct plan *plan, const struct edit *edit,
                                   struct arena *arena)
{
    char what[ACTION_TEXT], other[ACTION_TEXT];
    const struct action *actions = plan->programs.ranks[edit->a].actions;
    action_format(&actions[edit->b], what, sizeof what);
    action_format(&actions[edit->to], other, sizeof other);
    return arena_printf(arena, "rank %d: %s %s %s", edit->a, what,
                        edit->to < edit->b ? "before" : "after", other);
}

static const char *describe_number(const char *what, int now, int then, const char *none,
                                   struct arena *arena)
{
    if (then == 0)
        return arena_printf(arena, "%s: %s instead of %d", what, none, now);
    return arena_printf(arena, "%s: %d instead of %d", what, then, now);
}

const char *describe_common(const struct plan *plan, const struct edit *edit, struct arena *arena)
{
    const struct machine_spec *machine = &plan->machine;
    switch (edit->kind) {
    case EDIT_ON_FAILURE:
        return arena_printf(arena, "on_failure: %s instead of %s", keywords_on_failure[edit->to],
                            keywords_on_failure[plan->on_failure]);
    case EDIT_SM_SLOTS:
        return describe_number("sm_slots", machine->sm_slots, edit->to, "any number", arena);
    case EDIT_HW_QUEUES:
        return describe_number("hw_queues", machine->hw_queues, edit->to, "one a stream", arena);
    case EDIT_LAUNCH_QUEUE:
        return describe_number("launch_queue", machine->launch_queue, edit->to, "the default",
                               arena);
    case EDIT_LAUNCH_ORDER:
        return "launch_order_implicit: true, collectives start in the order of their calls";
    case EDIT_LAZY_LOAD: return "lazy_load: false, modules are loaded at the start";
    case EDIT_FIRST_USE: return "first_use_blocks: false, communicators are set up at the start";
    case EDIT_EAGER:
        return arena_printf(arena, "eager_messages of communicator %s: %d instead of %d",
                            plan->comms[edit->a].name, edit->to,
                            plan->comms[edit->a].eager_messages);
    case EDIT_P2P_BATCH: return "p2p: {batch: true}, neighbouring sends and receives in one group";
    case EDIT_P2P_FIFO:
        return arena_printf(arena, "p2p: {fifo: %s} instead of %s", keywords_fifo[edit->to],
                            keywords_fifo[plan->programs.fifo]);
    case EDIT_P2P_EAGER:
        return describe_number("p2p: eager_messages", plan->programs.eager_messages, edit->to,
                               "none", arena);
    default: return describe_action(plan, edit, arena);
    }
}
