/* SPDX-License-Identifier: Apache-2.0 */
/* edits_common.c - edits of the machine's knobs, which every form has, and of rank programs. */
#include "edits_internal.h"

#include "plan/schedules/actions.h"
#include "plan/keywords.h"

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
        for (size_t k = 0; ops[i].comm == comm && k < ops[i].part_count; k++)
            balance += ops[i].parts[k].send ? 1 : -1;
    return balance;
}

/* Has every message of the communicator a receive? Else a send that does not wait for one only hides that. */
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
    while (proposer->suspects->property == PROPERTY_FAULTS && ++rule <= ON_FAILURE_ABORT)
        propose(proposer, (struct edit){.kind = EDIT_ON_FAILURE, .to = rule}, 0, rule);
    propose_eager(proposer);
    if (machine->sm_slots > 0 && !machine->launch_order_implicit)
        propose(proposer, (struct edit){.kind = EDIT_LAUNCH_ORDER}, 0, 0);
    if (machine->lazy_load)
        propose(proposer, (struct edit){.kind = EDIT_LAZY_LOAD}, 0, 0);
    if (machine->first_use_blocks)
        propose(proposer, (struct edit){.kind = EDIT_FIRST_USE}, 0, 0);
}

static bool is_message(const struct action *action, bool send)
{
    return send ? action->kind == ACTION_SEND_F || action->kind == ACTION_SEND_B
                : action->kind == ACTION_RECV_F || action->kind == ACTION_RECV_B;
}

/* A send comes sooner, or a receive; other moves are less likely to help. */
static void propose_action_moves(struct proposer *proposer, int rank)
{
    const struct rank_program *program = &proposer->plan->programs.ranks[rank];
    for (size_t i = 0; i < program->count; i++)
        for (int by = -ACTION_REACH; by <= ACTION_REACH; by++) {
            int to = (int)i + by;
            if (by == 0 || by == 1 || to < 0 || to >= (int)program->count)
                continue;
            const struct action *action = &program->actions[i];
            int places = by < 0 ? -by : by;
            bool message = is_message(action, true) || is_message(action, false);
            propose(proposer,
                    (struct edit){.kind = EDIT_ACTION_MOVE, .a = rank, .b = (int)i, .to = to},
                    proposer->near[rank][i],
                    10 * (places - 1) + (message ? 0 : 10) +
                        (is_message(action, true) && by < 0 ? 0 : 1));
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
