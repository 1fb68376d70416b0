/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_warnings.c - see list_warnings.h.
 *
 * A first walk over all lists marks which actions there are; a second one goes through each list in its order and asks
 * of every action for those that it needs: whether they have been there, come later, or never.
 */
#include "list_warnings.h"

#include "plan/schedules/comms.h"
#include "plan/schedules/complete_lists.h"
#include "base/assert_index.h"
#include "base/list_key.h"

/* Warnings of a kind that are told one by one. */
enum { TOLD_MOST = 6 };
enum { KINDS = WARNING_LATE_BACKWARD + 1 };

struct list_warnings_lists {
    const struct plan *plan;
    struct arena *arena;
    struct warnings *out;
    struct stage_map map;
    uint16_t *all, *seen; /* [stage * microbatches + microbatch]: a bit for each kind of action */
    unsigned kinds;       /* of actions in the lists */
    int row, column;      /* of the second walk, from 1 */
    size_t found[KINDS];
    struct mark last[KINDS];
};

static unsigned bit(enum action_kind kind)
{
    return 1u << kind;
}

static size_t list_warnings_cell(const struct list_warnings_lists *lists, int stage, int microbatch)
{
    return (size_t)stage * (size_t)lists->map.microbatches + (size_t)microbatch;
}

static unsigned there(const struct list_warnings_lists *lists, const uint16_t *table, int stage,
                      int microbatch)
{
    return table[list_warnings_cell(lists, stage, microbatch)];
}

static void list_warnings_tell(struct list_warnings_lists *lists, enum warning_kind kind,
                               struct mark mark, const char *text)
{
    struct warnings *out = lists->out;
    lists->last[kind] = mark;
    if (lists->found[kind]++ < TOLD_MOST && text && out->count < WARNINGS_MOST)
        out->items[out->count++] = (struct warning){kind, mark, text};
}

static const char *list_warnings_name_of(enum action_kind kind, int stage, int microbatch,
                                         char *buf, size_t cap)
{
    return comms_action_name(
        &(struct action){.kind = kind, .stage = stage, .microbatch = microbatch}, buf, cap);
}

/* ---- which actions there are ----------------------------------------------------------------- */

static bool has_bits(enum action_kind kind)
{
    return action_has_microbatch(kind) && kind <= ACTION_RECV_B;
}

/* Calls `take` for every action of a list that has a microbatch; composites are taken apart. */
typedef void take_action(struct list_warnings_lists *lists, const struct action *action);

static void list_warnings_walk_list(struct list_warnings_lists *lists, int rank, take_action *take)
{
    ASSERT_INDEX(rank, lists->plan->ranks);
    const struct rank_program *list = &lists->plan->programs.ranks[rank];
    lists->row = rank + 1;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        lists->column = (int)i + 1;
        for (size_t k = 0; k < count; k++)
            if (has_bits(parts[k].kind))
                take(lists, &parts[k]);
    }
}

static void mark_action(struct list_warnings_lists *lists, const struct action *action)
{
    lists->all[list_warnings_cell(lists, action->stage, action->microbatch)] |=
        (uint16_t)bit(action->kind);
    lists->kinds |= bit(action->kind);
}

/* The action that a row lacks may be in a cell that could not be read. */
static bool may_have(const struct list_warnings_lists *lists, int row)
{
    return lists->plan->programs.ranks[row - 1].unread > 0;
}

/* ---- what an action needs -------------------------------------------------------------------- */

/* One of `kinds`, of a stage, before an action of its microbatch. */
struct list_warnings_need {
    unsigned kinds;
    enum action_kind named; /* of them, in the sentence */
    int stage;
    const char *rule;
};

static bool is_first(const struct list_warnings_lists *lists, int stage)
{
    return stage == comms_first_stage(&lists->map, stage);
}

static bool list_warnings_is_last(const struct list_warnings_lists *lists, int stage)
{
    return stage + 1 == comms_end_stage(&lists->map, stage);
}

static bool list_warnings_is_here(const struct list_warnings_lists *lists, int stage)
{
    return comms_rank_of(&lists->map, stage) == lists->row - 1;
}

/* The source of a pass's input: a message, or a pass of the neighbouring stage on the same rank. */
static struct list_warnings_need input_of(const struct list_warnings_lists *lists,
                                          const struct action *pass)
{
    static const char rule[] = "a pass comes behind what brings its input";
    const unsigned backward = bit(ACTION_B) | bit(ACTION_I);
    bool forward = pass->kind == ACTION_F;
    int from = forward ? pass->stage - 1 : pass->stage + 1;
    if (forward ? is_first(lists, pass->stage) : list_warnings_is_last(lists, pass->stage))
        return (struct list_warnings_need){0};
    if (list_warnings_is_here(lists, from))
        return forward ? (struct list_warnings_need){bit(ACTION_F), ACTION_F, from, rule}
                       : (struct list_warnings_need){backward, ACTION_B, from, rule};
    enum action_kind brings = forward ? ACTION_RECV_F : ACTION_RECV_B;
    if (!lists->plan->programs.has_comms)
        return (struct list_warnings_need){0};
    return (struct list_warnings_need){bit(brings), brings, pass->stage, rule};
}

/* The other thing that it needs. */
static struct list_warnings_need list_warnings_source_of(const struct action *action)
{
    const unsigned backward = bit(ACTION_B) | bit(ACTION_I);
    int stage = action->stage;
    switch (action->kind) {
    case ACTION_B:
    case ACTION_I:
        return (struct list_warnings_need){
            bit(ACTION_F), ACTION_F, stage,
            "a backward pass comes behind the forward pass of its stage"};
    case ACTION_W:
        return (struct list_warnings_need){
            bit(ACTION_I), ACTION_I, stage,
            "the weights' part of a backward pass comes behind that of the input"};
    case ACTION_SEND_F:
        return (struct list_warnings_need){bit(ACTION_F), ACTION_F, stage,
                                           "a message comes behind the pass that makes it"};
    case ACTION_SEND_B:
        return (struct list_warnings_need){backward, ACTION_B, stage,
                                           "a message comes behind the pass that makes it"};
    case ACTION_F:
    case ACTION_RECV_F:
    case ACTION_RECV_B:
    case ACTION_UNSHARD:
    case ACTION_RESHARD:
    case ACTION_REDUCE_GRAD:
    case ACTION_WAIT_SEND_F:
    case ACTION_WAIT_SEND_B:
    case ACTION_WAIT_RECV_F:
    case ACTION_WAIT_RECV_B:
    case ACTION_WAIT_REDUCE_GRAD:
    case ACTION_REDUCE_EMBEDDING:
    case ACTION_OVERLAP_F_B:
    case ACTION_IDLE: break;
    }
    return (struct list_warnings_need){0};
}

/* The text of the needed action, as the lists have it or would have it. */
static const char *needed_name(const struct list_warnings_lists *lists,
                               const struct list_warnings_need *need, int microbatch, char *buf,
                               size_t cap)
{
    bool split = (lists->kinds & bit(ACTION_I)) && !(lists->kinds & bit(ACTION_B));
    split |= (there(lists, lists->all, need->stage, microbatch) & bit(ACTION_I)) != 0;
    enum action_kind kind = need->named == ACTION_B && split ? ACTION_I : need->named;
    return list_warnings_name_of(kind, need->stage, microbatch, buf, cap);
}

static void check_need(struct list_warnings_lists *lists, const struct action *action,
                       struct list_warnings_need need)
{
    char own[ACTION_NAME], other[ACTION_NAME];
    if (!need.kinds || (there(lists, lists->seen, need.stage, action->microbatch) & need.kinds))
        return;
    bool later = there(lists, lists->all, need.stage, action->microbatch) & need.kinds;
    if (!later && (lists->plan->programs.fragment || may_have(lists, lists->row)))
        return;
    comms_action_name(action, own, sizeof own);
    needed_name(lists, &need, action->microbatch, other, sizeof other);
    list_warnings_tell(lists, later ? WARNING_OUT_OF_ORDER : WARNING_MISSING, action->mark,
                       arena_printf(lists->arena, "%s (row %d, column %d) %s %s: %s", own,
                                    lists->row, lists->column, later ? "comes before" : "has no",
                                    other, need.rule));
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A stage that no rank has is refused elsewhere. */
static void check_other_end(struct list_warnings_lists *lists, const struct action *message)
{
    char own[ACTION_NAME], other[ACTION_NAME];
    struct action end = comms_other_end(message);
    int holder = comms_rank_of(&lists->map, end.stage);
    if (holder < 0 ||
        comms_first_stage(&lists->map, end.stage) != comms_first_stage(&lists->map, message->stage))
        return;
    if (may_have(lists, holder + 1) ||
        there(lists, lists->all, end.stage, end.microbatch) & bit(end.kind))
        return;
    list_warnings_tell(
        lists, WARNING_UNPAIRED, message->mark,
        arena_printf(lists->arena,
                     "%s (row %d, column %d) has no %s in row %d: every message has a send and a "
                     "receive",
                     comms_action_name(message, own, sizeof own), lists->row, lists->column,
                     comms_action_name(&end, other, sizeof other), holder + 1));
}

/* ---- one action after the other -------------------------------------------------------------- */

static int first_column(const struct list_warnings_lists *lists, const struct action *wanted)
{
    const struct rank_program *list = &lists->plan->programs.ranks[lists->row - 1];
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            if (parts[k].kind == wanted->kind && parts[k].stage == wanted->stage &&
                parts[k].microbatch == wanted->microbatch)
                return (int)i + 1;
    }
    return 0;
}

static void check_doubled(struct list_warnings_lists *lists, const struct action *action)
{
    char own[ACTION_NAME];
    bool told = lists->found[WARNING_DOUBLED] >= TOLD_MOST;
    list_warnings_tell(
        lists, WARNING_DOUBLED, action->mark,
        arena_printf(lists->arena,
                     "%s (row %d, column %d) is there a second time, first at column %d: every "
                     "message is sent and received once",
                     comms_action_name(action, own, sizeof own), lists->row, lists->column,
                     told ? 0 : first_column(lists, action)));
}

static void check_action(struct list_warnings_lists *lists, const struct action *action)
{
    uint16_t *seen = &lists->seen[list_warnings_cell(lists, action->stage, action->microbatch)];
    if (*seen & bit(action->kind)) {
        if (comms_is_message(action)) /* a pass is refused */
            check_doubled(lists, action);
        return;
    }
    check_need(lists, action, list_warnings_source_of(action));
    if (action->kind == ACTION_F || action->kind == ACTION_B || action->kind == ACTION_I)
        check_need(lists, action, input_of(lists, action));
    if (comms_is_message(action))
        check_other_end(lists, action);
    *seen |= (uint16_t)bit(action->kind);
}

/* ---- passes that a stage lacks --------------------------------------------------------------- */

static void miss_pass(struct list_warnings_lists *lists, enum action_kind kind, int stage,
                      int microbatch, const char *rule)
{
    char name[ACTION_NAME];
    list_warnings_tell(
        lists, WARNING_MISSING, (struct mark){(uint32_t)lists->row, 1},
        arena_printf(lists->arena, "row %d has no %s: %s", lists->row,
                     list_warnings_name_of(kind, stage, microbatch, name, sizeof name), rule));
}

static void check_cell(struct list_warnings_lists *lists, int stage, int microbatch)
{
    static const char whole[] = "every microbatch passes every stage forward and backward";
    const unsigned backward = bit(ACTION_B) | bit(ACTION_I) | bit(ACTION_W);
    unsigned all = there(lists, lists->all, stage, microbatch);
    bool split = (lists->kinds & bit(ACTION_I)) && !(lists->kinds & bit(ACTION_B));
    if (!(all & bit(ACTION_F)) && !(all & backward)) /* else it is told at the backward */
        miss_pass(lists, ACTION_F, stage, microbatch, whole);
    else if ((lists->kinds & backward) && !(all & (bit(ACTION_B) | bit(ACTION_I))))
        miss_pass(lists, split ? ACTION_I : ACTION_B, stage, microbatch, whole);
    else if ((all & bit(ACTION_I)) && !(all & bit(ACTION_W)))
        miss_pass(lists, ACTION_W, stage, microbatch,
                  "I is one half of a backward pass, W the other");
}

static void check_cells(struct list_warnings_lists *lists)
{
    for (int stage = 0; stage < lists->map.stages; stage++) {
        lists->row = comms_rank_of(&lists->map, stage) + 1;
        bool known = lists->row > 0 && !may_have(lists, lists->row);
        for (int i = 0; known && i < lists->map.microbatches; i++)
            check_cell(lists, stage, i);
    }
}

/* ---- off by one ------------------------------------------------------------------------------ */

/* The stage that all actions of a list are of; -1: there are several. */
static int only_stage(const struct rank_program *list)
{
    int stage = -1;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i];
        if (action->kind == ACTION_IDLE)
            continue;
        if (action->kind == ACTION_OVERLAP_F_B || (stage >= 0 && action->stage != stage))
            return -1;
        stage = action->stage;
    }
    return stage;
}

/* PyTorch's table of 1F1B has two forwards in front of the last rank's first backward, and then one by one. */
static void check_late_backward(struct list_warnings_lists *lists)
{
    const struct plan *plan = lists->plan;
    const struct rank_program *last = &plan->programs.ranks[plan->ranks - 1];
    const struct action *second = NULL;
    int forwards = 0, ahead = 0, backwards = 0;
    if (plan->ranks < 2 || may_have(lists, plan->ranks))
        return;
    for (int rank = 0; rank < plan->ranks; rank++)
        if (only_stage(&plan->programs.ranks[rank]) != rank)
            return;
    for (size_t i = 0; i < last->count; i++) {
        const struct action *action = &last->actions[i];
        forwards += action->kind == ACTION_F;
        second = action->kind == ACTION_F && forwards == 2 ? action : second;
        if (action->kind == ACTION_I || action->kind == ACTION_W)
            return;
        if (action->kind == ACTION_B)
            ahead += forwards - backwards++ == 2;
    }
    if (forwards < 3 || ahead != forwards - 1)
        return;
    list_warnings_tell(
        lists, WARNING_LATE_BACKWARD, second->mark,
        arena_printf(lists->arena,
                     "the last rank (row %d) does %dF%d before its first backward: in 1F1B it "
                     "does one forward, one backward; this is off by one, holds one more "
                     "activation and makes every rank before it wait a forward longer",
                     plan->ranks, second->stage, second->microbatch));
}

/* ---- all ------------------------------------------------------------------------------------- */

static void tell_rest(struct list_warnings_lists *lists)
{
    static const char *const keys[] = {WARNING_LIST(LIST_KEY)};
    struct warnings *out = lists->out;
    for (int kind = 0; kind < KINDS; kind++)
        if (lists->found[kind] > TOLD_MOST && out->count < WARNINGS_MOST)
            out->items[out->count++] = (struct warning){
                (enum warning_kind)kind, lists->last[kind],
                arena_printf(lists->arena, "%zu more like it (%s); this is the last",
                             lists->found[kind] - TOLD_MOST, keys[kind])};
}

static void check_all(struct list_warnings_lists *lists)
{
    int ranks = lists->plan->ranks;
    for (int rank = 0; rank < ranks; rank++)
        list_warnings_walk_list(lists, rank, mark_action);
    for (int rank = 0; rank < ranks; rank++)
        list_warnings_walk_list(lists, rank, check_action);
    if (!lists->plan->programs.fragment)
        check_cells(lists);
    check_late_backward(lists);
    tell_rest(lists);
}

enum status list_warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                               struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    if (plan->form != FORM_PROGRAMS || !programs->ranks || programs->generate.given)
        return STATUS_OK;
    struct list_warnings_lists lists = {.plan = plan, .arena = arena, .out = out};
    struct arena scratch;
    struct diag refused;
    arena_init(&scratch, 0);
    diag_init(&refused);
    int copies = programs->copies > 1 ? programs->copies : 1;
    enum status status =
        comms_map_stages(&scratch, programs->ranks, plan->ranks, copies, &lists.map, &refused);
    if (status == STATUS_OK) {
        size_t cells = (size_t)lists.map.stages * (size_t)lists.map.microbatches;
        lists.all = ARENA_ARRAY(&scratch, cells + 1, uint16_t);
        lists.seen = ARENA_ARRAY(&scratch, cells + 1, uint16_t);
    }
    if (lists.seen && lists.all)
        check_all(&lists);
    bool failed = scratch.failed || arena->failed;
    diag_fini(&refused);
    arena_fini(&scratch);
    return failed ? diag_no_memory(diag) : STATUS_OK;
}

/* ---- edges of p2p that no message takes ---------------------------------------------------------- */

/* The lists of all ranks, with messages, and between which stages there are any. */
struct edge_search {
    const struct links *links;
    struct stage_map map;
    struct rank_program *ranks, *differing; /* differing: of ranks with a list of their own */
    int rank_count;
    bool *forward, *backward; /* [stage that sends] */
};

static void mark_edge_message(struct edge_search *search, const struct action *action)
{
    bool sends = action->kind == ACTION_SEND_F || action->kind == ACTION_SEND_B;
    bool is_forward = action->kind == ACTION_SEND_F || action->kind == ACTION_RECV_F;
    int sender = sends ? action->stage : comms_partner(action);
    if (sender >= 0 && sender < search->map.stages)
        (is_forward ? search->forward : search->backward)[sender] = true;
}

static void mark_edge_lists(struct edge_search *search, const struct rank_program *lists,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < lists[i].count; k++)
            if (comms_is_message(&lists[i].actions[k]))
                mark_edge_message(search, &lists[i].actions[k]);
}

static enum status read_edge_lists(const struct plan *plan, struct arena *scratch,
                                   struct edge_search *search, struct diag *diag)
{
    struct plan made = complete_lists_like(plan);
    enum status status = complete_lists_fill_all(&made, scratch, &search->ranks,
                                                 &search->rank_count, &search->differing, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(scratch, search->ranks, search->rank_count,
                                  complete_lists_copies(&made), &search->map, diag);
    if (status != STATUS_OK)
        return status;
    search->forward = ARENA_ARRAY(scratch, (size_t)search->map.stages, bool);
    search->backward = ARENA_ARRAY(scratch, (size_t)search->map.stages, bool);
    if (!search->forward || !search->backward)
        return diag_no_memory(diag);
    mark_edge_lists(search, search->ranks, (size_t)search->rank_count);
    if (search->differing)
        mark_edge_lists(search, search->differing, plan->programs.parallel.differing_count);
    return STATUS_OK;
}

static bool edge_is_taken(const struct edge_search *search, const struct edge_link *edge)
{
    bool taken = false;
    for (int s = 0; s < search->map.stages; s++) {
        bool leaves = comms_rank_of(&search->map, s) == edge->from;
        taken |= leaves && search->forward[s] && comms_rank_of(&search->map, s + 1) == edge->to;
        taken |= leaves && search->backward[s] && comms_rank_of(&search->map, s - 1) == edge->to;
    }
    return taken;
}

static void warn_of_edges(const struct edge_search *search, struct arena *arena,
                          struct warnings *out)
{
    const struct edge_link *first = NULL;
    size_t more = 0;
    for (size_t i = 0; i < search->links->edge_count; i++) {
        const struct edge_link *edge = &search->links->edges[i];
        if (edge_is_taken(search, edge))
            continue;
        more += first != NULL;
        first = first ? first : edge;
    }
    if (!first || out->count >= WARNINGS_MOST)
        return;
    const char *others = more ? arena_printf(arena, " (%zu more like it)", more) : "";
    out->items[out->count++] = (struct warning){
        WARNING_UNUSED_EDGE, first->mark,
        arena_printf(arena, "no message goes from rank %d to rank %d: this edge has no effect%s",
                     first->from, first->to, others ? others : "")};
}

enum status list_warnings_find_edges(const struct plan *plan, struct arena *arena,
                                     struct warnings *out, struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    if (plan->form != FORM_PROGRAMS || programs->links.edge_count == 0)
        return STATUS_OK;
    struct edge_search search = {.links = &programs->links};
    struct arena scratch;
    struct diag refused;
    arena_init(&scratch, 0);
    diag_init(&refused);
    if (read_edge_lists(plan, &scratch, &search, &refused) == STATUS_OK)
        warn_of_edges(&search, arena, out);
    bool failed = scratch.failed || arena->failed;
    diag_fini(&refused);
    arena_fini(&scratch);
    return failed ? diag_no_memory(diag) : STATUS_OK;
}
