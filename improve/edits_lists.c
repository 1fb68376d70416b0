/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_lists.c - edits of rank programs whose lists disagree: a message that lacks its other end gets one, one that is
 * there a second time is removed, one that a pass needs and no list has is added, and a rank of `parallel: {ranks}` does
 * as the others.
 *
 * A receive that is added stands before the pass that needs it, a send behind the pass that makes it, or a few places
 * further away, where the channel has other messages between.
 */
#include "edits_internal.h"

#include "plan/schedules/actions.h"
#include "plan/schedules/comms.h"

enum { LONE_MOST = 8, PLACES = 4, LIST_TEXT = 160 };

/* ---- which messages are alone ---------------------------------------------------------------- */

static bool is_same_action(const struct action *a, const struct action *b)
{
    return a->kind == b->kind && a->stage == b->stage && a->microbatch == b->microbatch;
}

/* The action of a list that is or has this one, behind the first `from`; its length: none. */
static size_t find_action(const struct rank_program *list, const struct action *wanted, size_t from)
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
    size_t at = find_action(list, &pass, 0);
    pass.kind = ACTION_I;
    return at < list->count || forward ? at : find_action(list, &pass, 0);
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
    size_t again = find_action(list, message, index + 1);
    if (again < list->count) {
        propose(proposer, (struct edit){.kind = EDIT_ACTION_REMOVE, .a = rank, .b = (int)again}, 0,
                0);
        propose(proposer, (struct edit){.kind = EDIT_ACTION_REMOVE, .a = rank, .b = (int)index}, 0,
                1);
        return 1;
    }
    int holder = holder_of(proposer->plan, end.stage);
    if (holder < 0 ||
        find_action(&programs->ranks[holder], &end, 0) < programs->ranks[holder].count)
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

static int count_stages(const struct plan *plan)
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
           away % PLACES <= (size_t)edit->b && find_action(list, &out->receive, 0) == list->count &&
           find_action(other, &out->send, 0) == other->count;
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
    int stages = count_stages(plan), lone = 0;
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count && lone < LONE_MOST; i++)
            lone += propose_of_pass(proposer, rank, (int)i, stages);
}

void propose_lists(struct proposer *proposer, bool unpaired)
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
static bool add_message(struct plan *plan, const struct edit *edit)
{
    struct missing missing;
    return !find_missing(plan, edit, count_stages(plan), &missing) ||
           (insert_action(plan, missing.receiver, missing.receive_at, &missing.receive) &&
            insert_action(plan, missing.sender, missing.send_at, &missing.send));
}

static void remove_item(void *items, size_t size, size_t *count, size_t at)
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
        return add_message(plan, edit);
    if (edit->kind == EDIT_RANK_ALIKE) {
        remove_item(spec->differing, sizeof *spec->differing, &spec->differing_count,
                    (size_t)edit->a);
        return true;
    }
    list = &plan->programs.ranks[edit->a];
    remove_item(list->actions, sizeof *list->actions, &list->count, (size_t)edit->b);
    return true;
}

/* ---- saying them ----------------------------------------------------------------------------- */

/* "rank 1: add 1RECV_F0 before 1F0" */
static const char *describe_inserted(const struct plan *plan, int rank, size_t at,
                                     const struct action *action, struct arena *arena)
{
    char what[LIST_TEXT], other[LIST_TEXT];
    const struct rank_program *list = &plan->programs.ranks[rank];
    bool last = at == list->count;
    action_format(action, what, sizeof what);
    action_format(&list->actions[last ? at - 1 : at], other, sizeof other);
    return arena_printf(arena, "rank %d: add %s %s %s", rank, what, last ? "behind" : "before",
                        other);
}

static const char *describe_added(const struct plan *plan, const struct edit *edit,
                                  struct arena *arena)
{
    struct action end = comms_other_end(&plan->programs.ranks[edit->c].actions[edit->to]);
    return describe_inserted(plan, edit->a, (size_t)edit->b, &end, arena);
}

static const char *describe_message(const struct plan *plan, const struct edit *edit,
                                    struct arena *arena)
{
    struct missing missing;
    if (!find_missing(plan, edit, count_stages(plan), &missing))
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
        return describe_added(plan, edit, arena);
    if (edit->kind == EDIT_MESSAGE_ADD)
        return describe_message(plan, edit, arena);
    if (edit->kind == EDIT_RANK_ALIKE)
        return arena_printf(arena, "parallel: {ranks}: rank %d does as the other ranks",
                            plan->programs.parallel.differing[edit->a].rank);
    action_format(&plan->programs.ranks[edit->a].actions[edit->b], what, sizeof what);
    return arena_printf(arena, "rank %d: %s (number %d of its list) only once", edit->a, what,
                        edit->b + 1);
}
