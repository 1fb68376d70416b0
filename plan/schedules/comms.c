/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms.c - see comms.h.
 *
 * comms_add makes pass after pass over the ranks in ascending order and tries to place the next
 * action of each. A pass (F, I, B) can be placed when its input is here: sent by a RECV already in
 * this list, or computed by an action already in it. Placing one whose result is needed on another
 * rank appends the SEND here and the RECV there, at that moment. So all lists together are one
 * linear order in which every RECV follows its SEND at once: free of deadlock even if every message
 * is a rendezvous and a rank has a single queue for all of them. The price is that receives come
 * early and may hold up the sends behind them. This is how PyTorch lowers its compute-only
 * schedules.
 *
 * comms_add_timed places passes in the order in which they end when each pass and message takes its time. That is a
 * linear order too, so it is free of deadlock likewise; and as no message stands in front of one whose content is
 * there earlier, a single queue a rank holds up none.
 */
#include "comms.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "costs.h"
#include "parallel.h"

/* ---- actions --------------------------------------------------------------------------------- */

/* "2F0", as snprintf does it; schedules have millions of them. */
static int print_simple(const struct action *action, char *buf, size_t cap)
{
    char text[ACTION_NAME], *end = text;
    const char *kind = action_text(action->kind);
    size_t length = strlen(kind);
    *end = '-';
    end = integers_print(end + (action->stage < 0), abs(action->stage));
    memcpy(end, kind, length);
    end += length;
    if (action->microbatch >= 0)
        end = integers_print(end, action->microbatch);
    *end = '\0';
    if (cap > 0) {
        size_t fits = (size_t)(end - text) < cap ? (size_t)(end - text) : cap - 1;
        memcpy(buf, text, fits);
        buf[fits] = '\0';
    }
    return (int)(end - text);
}

const char *comms_action_name(const struct action *action, char *buf, size_t cap)
{
    if (action->kind != ACTION_OVERLAP_F_B) {
        print_simple(action, buf, cap);
        return buf;
    }
    size_t used = (size_t)snprintf(buf, cap, "(");
    for (size_t i = 0; i < ACTION_PARTS && used < cap; i++) {
        if (i > 0)
            used += (size_t)snprintf(buf + used, cap - used, ";");
        if (used < cap)
            used += (size_t)print_simple(&action->parts[i], buf + used, cap - used);
    }
    if (used < cap)
        snprintf(buf + used, cap - used, ")%s", action_text(action->kind));
    return buf;
}

bool comms_is_message(const struct action *action)
{
    switch (action->kind) {
    case ACTION_SEND_F:
    case ACTION_RECV_F:
    case ACTION_SEND_B:
    case ACTION_RECV_B: return true;
    default: return false;
    }
}

bool comms_present(const struct rank_program *ranks, int rank_count)
{
    for (int rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            if (comms_is_message(&ranks[rank].actions[i]))
                return true;
    return false;
}

/* ---- which rank holds which stage ------------------------------------------------------------ */

int comms_partner(const struct action *action)
{
    bool up = action->kind == ACTION_SEND_F || action->kind == ACTION_RECV_B;
    assert(comms_is_message(action));
    return up ? action->stage + 1 : action->stage - 1;
}

struct action comms_other_end(const struct action *message)
{
    static const enum action_kind others[ACTION_IDLE] = {[ACTION_SEND_F] = ACTION_RECV_F,
                                                         [ACTION_RECV_F] = ACTION_SEND_F,
                                                         [ACTION_SEND_B] = ACTION_RECV_B,
                                                         [ACTION_RECV_B] = ACTION_SEND_B};
    return (struct action){.kind = others[message->kind],
                           .stage = comms_partner(message),
                           .microbatch = message->microbatch};
}

bool comms_is_pass(const struct action *action)
{
    return action->kind == ACTION_F || action->kind == ACTION_I || action->kind == ACTION_W ||
           action->kind == ACTION_B;
}

static enum status comms_check_parts(const struct action *action, struct diag *diag)
{
    for (int i = 0; action->parts && i < ACTION_PARTS; i++)
        if (!comms_is_pass(&action->parts[i]))
            return diag_error_at(diag, NULL, NULL, action->mark,
                                 "found %s in %s, expected only F, I, W or B",
                                 action_text(action->parts[i].kind), action_text(action->kind));
    return STATUS_OK;
}

static enum status refuse_stage(const struct action *part, struct diag *diag)
{
    char name[ACTION_NAME];
    return diag_error_at(diag, NULL, NULL, part->mark, "%s: found stage %d, expected 0 to %d",
                         comms_action_name(part, name, sizeof name), part->stage,
                         PLAN_MAX_MODEL_STAGES - 1);
}

static enum status check_microbatch(const struct action *part, struct diag *diag)
{
    int highest = action_has_microbatch(part->kind) ? PLAN_MAX_MICROBATCHES - 1 : -1;
    int lowest = action_has_microbatch(part->kind) ? 0 : -1;
    char name[ACTION_NAME];
    if (part->microbatch >= lowest && part->microbatch <= highest)
        return STATUS_OK;
    return diag_error_at(diag, NULL, NULL, part->mark, "%s: found microbatch %d, expected %d to %d",
                         comms_action_name(part, name, sizeof name), part->microbatch, lowest,
                         highest);
}

static enum status refuse_holder(const struct action *part, int rank, int holder, struct diag *diag)
{
    char name[ACTION_NAME];
    return diag_error_at(diag, NULL, NULL, part->mark,
                         "found %s on rank %d, but stage %d is also on rank %d, expected every "
                         "stage on one rank",
                         comms_action_name(part, name, sizeof name), rank, part->stage, holder);
}

static enum status claim_stage(struct stage_map *map, int rank, const struct action *part,
                               struct diag *diag)
{
    if (part->stage < 0 || part->stage >= PLAN_MAX_MODEL_STAGES)
        return refuse_stage(part, diag);
    enum status status = check_microbatch(part, diag);
    int holder = map->rank_of[part->stage];
    if (status == STATUS_OK && holder >= 0 && holder != rank)
        status = refuse_holder(part, rank, holder, diag);
    if (status != STATUS_OK)
        return status;
    map->rank_of[part->stage] = rank;
    if (part->stage >= map->stages) {
        map->stages = part->stage + 1;
        map->mark = part->mark;
    }
    if (part->microbatch >= map->microbatches)
        map->microbatches = part->microbatch + 1;
    if (map->microbatches > PLAN_MAX_PASSES / map->stages)
        return diag_error_at(
            diag, NULL, NULL, part->mark,
            "found %d stages and %d microbatches so far, expected at most %d pairs "
            "of them",
            map->stages, map->microbatches, PLAN_MAX_PASSES);
    return STATUS_OK;
}

/* The stages of each rank, in ascending order. */
static bool list_stages(struct arena *arena, struct stage_map *map, int rank_count)
{
    map->lowest_of = ARENA_ARRAY(arena, (size_t)rank_count, int);
    map->next_of = ARENA_ARRAY(arena, (size_t)map->stages, int);
    if (!map->lowest_of || !map->next_of)
        return false;
    for (int rank = 0; rank < rank_count; rank++)
        map->lowest_of[rank] = -1;
    for (int stage = map->stages - 1; stage >= 0; stage--) {
        int rank = map->rank_of[stage];
        map->next_of[stage] = rank < 0 ? -1 : map->lowest_of[rank];
        if (rank >= 0)
            map->lowest_of[rank] = stage;
    }
    return true;
}

enum status comms_map_stages(struct arena *arena, const struct rank_program *ranks, int rank_count,
                             int copies, struct stage_map *out, struct diag *diag)
{
    struct stage_map map = {.rank_of = ARENA_ARRAY(arena, PLAN_MAX_MODEL_STAGES, int)};
    if (!map.rank_of)
        return diag_no_memory(diag);
    for (int stage = 0; stage < PLAN_MAX_MODEL_STAGES; stage++)
        map.rank_of[stage] = -1;
    for (int rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&ranks[rank].actions[i], &parts);
            enum status status = comms_check_parts(&ranks[rank].actions[i], diag);
            for (size_t k = 0; status == STATUS_OK && k < count; k++)
                status = claim_stage(&map, rank, &parts[k], diag);
            if (status != STATUS_OK)
                return status;
        }
    if (map.stages % copies != 0)
        return diag_error_at(
            diag, NULL, NULL, map.mark,
            "found stages up to %d, expected a multiple of %d stages for %d copies "
            "of a model",
            map.stages - 1, copies, copies);
    map.length = map.stages > 0 ? map.stages / copies : 1;
    if (!list_stages(arena, &map, rank_count))
        return diag_no_memory(diag);
    *out = map;
    return STATUS_OK;
}

/* ---- adding messages ------------------------------------------------------------------------- */

/* The actions placed for a stage and microbatch. */
enum { PLACED_F = 1, PLACED_B = 2, PLACED_RECV_F = 4, PLACED_RECV_B = 8 };

struct adding {
    const struct rank_program *in;
    struct rank_program *out;
    size_t *next; /* per rank: the action of `in` to place next */
    bool *waits;  /* per rank: no message has come since that action could not be placed */
    int rank_count;
    struct stage_map map;
    uint8_t *placed;             /* [stage * microbatches + microbatch] */
    struct comms_clocks *clocks; /* COMMS_TIMED */
    int column;                  /* of the action that is placed now */
};

/* The messages of a pass with the neighbouring stages. */
struct flow {
    int input_stage, output_stage; /* -1: none */
    unsigned computed, received;   /* to be placed before: at the input's stage, or at its own */
    enum action_kind send, recv;
};

static struct flow flow_of(const struct stage_map *map, const struct action *part)
{
    int above = part->stage + 1 < comms_end_stage(map, part->stage) ? part->stage + 1 : -1;
    int below = part->stage > comms_first_stage(map, part->stage) ? part->stage - 1 : -1;
    switch (part->kind) {
    case ACTION_F:
        return (struct flow){below, above, PLACED_F, PLACED_RECV_F, ACTION_SEND_F, ACTION_RECV_F};
    case ACTION_I:
    case ACTION_B:
        return (struct flow){above, below, PLACED_B, PLACED_RECV_B, ACTION_SEND_B, ACTION_RECV_B};
    default: return (struct flow){.input_stage = -1, .output_stage = -1};
    }
}

static uint8_t *placed_at(const struct adding *adding, int stage, int microbatch)
{
    return &adding->placed[(size_t)stage * (size_t)adding->map.microbatches + (size_t)microbatch];
}

/* The rank a pass's result must be sent to, -1: none. */
static int receiver_of(const struct stage_map *map, const struct action *part)
{
    int to = comms_rank_of(map, flow_of(map, part).output_stage);
    return to == comms_rank_of(map, part->stage) ? -1 : to;
}

static bool is_part_ready(const struct adding *adding, int rank, const struct action *part)
{
    struct flow flow = flow_of(&adding->map, part);
    if (flow.input_stage < 0)
        return true;
    if (*placed_at(adding, part->stage, part->microbatch) & flow.received)
        return true;
    return comms_rank_of(&adding->map, flow.input_stage) == rank &&
           (*placed_at(adding, flow.input_stage, part->microbatch) & flow.computed);
}

/* The part that keeps an action from being placed; NULL: none does. */
static const struct action *blocking_part(const struct adding *adding, int rank,
                                          const struct action *action)
{
    const struct action *parts;
    size_t count = comms_parts(action, &parts);
    for (size_t i = 0; i < count; i++)
        if (!is_part_ready(adding, rank, &parts[i]))
            return &parts[i];
    return NULL;
}

static void comms_append(struct rank_program *list, struct action action)
{
    list->actions[list->count++] = action;
}

/* The part's result is there: send it on if it is needed elsewhere. */
static void place_part(struct adding *adding, int rank, const struct action *part)
{
    struct flow flow = flow_of(&adding->map, part);
    if (flow.computed)
        *placed_at(adding, part->stage, part->microbatch) |= (uint8_t)flow.computed;
    int to = receiver_of(&adding->map, part);
    if (to < 0)
        return;
    struct action message = {.kind = flow.send,
                             .stage = part->stage,
                             .microbatch = part->microbatch,
                             .column = adding->column,
                             .mark = part->mark};
    comms_append(&adding->out[rank], message);
    message.kind = flow.recv;
    message.stage = flow.output_stage;
    comms_append(&adding->out[to], message);
    adding->waits[to] = false;
    *placed_at(adding, flow.output_stage, part->microbatch) |= (uint8_t)flow.received;
}

/* The rank's next action that is not idle, NULL at the end of its list. */
static const struct action *comms_head_of(struct adding *adding, int rank)
{
    const struct rank_program *list = &adding->in[rank];
    size_t *next = &adding->next[rank];
    while (*next < list->count && list->actions[*next].kind == ACTION_IDLE)
        ++*next;
    return *next < list->count ? &list->actions[*next] : NULL;
}

static bool place_head(struct adding *adding, int rank)
{
    const struct action *head = comms_head_of(adding, rank);
    adding->waits[rank] = !head || blocking_part(adding, rank, head);
    if (adding->waits[rank])
        return false;
    comms_append(&adding->out[rank], *head);
    adding->column = head->column;
    const struct action *parts;
    size_t count = comms_parts(head, &parts);
    for (size_t i = 0; i < count; i++)
        place_part(adding, rank, &parts[i]);
    adding->next[rank]++;
    return true;
}

/* The column of the pass that `part` waits for in the list of the rank that holds its stage; 0: it never comes. */
static size_t column_of_input(const struct adding *adding, const struct action *part)
{
    struct flow flow = flow_of(&adding->map, part);
    int from = comms_rank_of(&adding->map, flow.input_stage);
    const struct rank_program *list = &adding->in[from];
    for (size_t i = adding->next[from]; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            if (parts[k].stage == flow.input_stage && parts[k].microbatch == part->microbatch &&
                flow_of(&adding->map, &parts[k]).computed == flow.computed)
                return i + 1;
    }
    return 0;
}

/* The forward pass that comes behind a backward pass in the head of a list, and its column; NULL: none does. */
static const struct action *find_late(const struct adding *adding, int rank,
                                      const struct action *head, const struct action **backward,
                                      size_t *column)
{
    const struct rank_program *list = &adding->in[rank];
    const struct action *parts, *others;
    size_t count = comms_parts(head, &parts);
    for (size_t i = adding->next[rank] + 1; i < list->count; i++)
        for (size_t k = 0, all = comms_parts(&list->actions[i], &others); k < all; k++)
            for (size_t h = 0; h < count; h++)
                if (parts[h].kind != ACTION_F && others[k].kind == ACTION_F &&
                    others[k].stage == parts[h].stage &&
                    others[k].microbatch == parts[h].microbatch) {
                    *backward = &parts[h];
                    *column = i + 1;
                    return &others[k];
                }
    return NULL;
}

/* "rank 1 has 1F4 (row 2, column 7), which waits for 0F4, which row 1 has not" */
static void note_head(const struct adding *adding, int rank, const struct action *head,
                      struct diag *diag)
{
    char name[ACTION_NAME], other[ACTION_NAME];
    const struct action *backward;
    size_t at = adding->next[rank] + 1, column;
    const struct action *late = find_late(adding, rank, head, &backward, &column);
    if (late) {
        diag_note(diag,
                  "rank %d (row %d) has %s at column %zu before %s at column %zu: a backward pass "
                  "comes behind the forward pass of its stage",
                  rank, rank + 1, comms_action_name(backward, name, sizeof name), at,
                  comms_action_name(late, other, sizeof other), column);
        return;
    }
    comms_action_name(head, name, sizeof name);
    const struct action *part = blocking_part(adding, rank, head);
    int stage = flow_of(&adding->map, part).input_stage;
    int row = comms_rank_of(&adding->map, stage) + 1;
    column = column_of_input(adding, part);
    snprintf(other, sizeof other, "%d%s%d", stage, part->kind == ACTION_F ? "F" : "B",
             part->microbatch);
    if (column)
        diag_note(diag,
                  "rank %d is at %s (row %d, column %zu), which waits for %s (row %d, column %zu)",
                  rank, name, rank + 1, at, other, row, column);
    else
        diag_note(diag,
                  "rank %d is at %s (row %d, column %zu), which waits for %s: row %d has none left",
                  rank, name, rank + 1, at, other, row);
}

/* True if it is this action's fault that nothing goes on. The pass it waits for never comes, or stands behind it. */
static bool is_at_fault(const struct adding *adding, int rank, const struct action *head)
{
    const struct action *backward;
    size_t column;
    return find_late(adding, rank, head, &backward, &column) ||
           column_of_input(adding, blocking_part(adding, rank, head)) == 0;
}

static enum status refuse_malformed(struct adding *adding, struct diag *diag)
{
    const struct action *first = NULL;
    bool at_fault = false;
    for (int rank = 0; rank < adding->rank_count && !at_fault; rank++) {
        const struct action *head = comms_head_of(adding, rank);
        at_fault = head && is_at_fault(adding, rank, head);
        first = at_fault || !first ? head : first;
    }
    assert(first);
    char name[ACTION_NAME];
    enum status status =
        diag_error_at(diag, NULL, NULL, first->mark,
                      "malformed schedule: no rank can do its next action (this one is %s)",
                      comms_action_name(first, name, sizeof name));
    for (int rank = 0; rank < adding->rank_count; rank++) {
        const struct action *head = comms_head_of(adding, rank);
        if (head)
            note_head(adding, rank, head, diag);
    }
    return status;
}

/* A stage that no rank holds would leave its neighbours waiting for ever. */
static enum status comms_check_stages(const struct stage_map *map, struct diag *diag)
{
    for (int stage = 0; stage < map->stages; stage++)
        if (map->rank_of[stage] < 0)
            return diag_error_at(
                diag, NULL, NULL, map->mark,
                "found stages up to %d but none of the ranks names stage %d, expected "
                "every stage on one rank",
                map->stages - 1, stage);
    return STATUS_OK;
}

/* Room for exactly the actions there will be. */
static bool comms_make_room(struct adding *adding, struct arena *arena)
{
    for (int rank = 0; rank < adding->rank_count; rank++)
        for (size_t i = 0; i < adding->in[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&adding->in[rank].actions[i], &parts);
            adding->out[rank].count += count > 0;
            for (size_t k = 0; k < count; k++) {
                int to = receiver_of(&adding->map, &parts[k]);
                if (to < 0)
                    continue;
                adding->out[rank].count++;
                adding->out[to].count++;
            }
        }
    for (int rank = 0; rank < adding->rank_count; rank++) {
        adding->out[rank].actions = ARENA_ARRAY(arena, adding->out[rank].count, struct action);
        if (!adding->out[rank].actions)
            return false;
        adding->out[rank].count = 0;
    }
    return true;
}

static enum status refuse_rest(struct adding *adding, struct diag *diag)
{
    for (int rank = 0; rank < adding->rank_count; rank++)
        if (comms_head_of(adding, rank))
            return refuse_malformed(adding, diag);
    return STATUS_OK;
}

static enum status place_all(struct adding *adding, struct diag *diag)
{
    for (bool progress = true; progress;) {
        progress = false;
        for (int rank = 0; rank < adding->rank_count; rank++)
            progress |= !adding->waits[rank] && place_head(adding, rank);
    }
    return refuse_rest(adding, diag);
}

/* ---- by time --------------------------------------------------------------------------------- */

/* The ranks whose next action can be placed, by the time at which it ends: a heap. */
struct comms_clocks {
    struct pass_clock times;
    int64_t *forward, *backward; /* the end of a pass: [stage * microbatches + microbatch] */
    int64_t *free_at, *end;      /* per rank: its last action; its next one */
    bool *waits;                 /* per rank: it is in the heap */
    int *heap;
    int count;
};

static bool ends_before(const struct comms_clocks *clocks, int a, int b)
{
    return clocks->end[a] != clocks->end[b] ? clocks->end[a] < clocks->end[b] : a < b;
}

static void heap_push(struct comms_clocks *clocks, int rank)
{
    int at = clocks->count++;
    for (; at > 0 && ends_before(clocks, rank, clocks->heap[(at - 1) / 2]); at = (at - 1) / 2)
        clocks->heap[at] = clocks->heap[(at - 1) / 2];
    clocks->heap[at] = rank;
}

static int heap_pop(struct comms_clocks *clocks)
{
    int first = clocks->heap[0], last = clocks->heap[--clocks->count], at = 0;
    for (int child; (child = 2 * at + 1) < clocks->count; at = child) {
        if (child + 1 < clocks->count &&
            ends_before(clocks, clocks->heap[child + 1], clocks->heap[child]))
            child++;
        if (!ends_before(clocks, clocks->heap[child], last))
            break;
        clocks->heap[at] = clocks->heap[child];
    }
    clocks->heap[at] = last;
    return first;
}

static int64_t *comms_end_of(const struct adding *adding, const struct action *part, int stage)
{
    int64_t *ends = part->kind == ACTION_F ? adding->clocks->forward : adding->clocks->backward;
    return &ends[(size_t)stage * (size_t)adding->map.microbatches + (size_t)part->microbatch];
}

/* Of the message that brings the input of a part from this stage; of one rank to itself: none. */
static int64_t comms_message_time(const struct adding *adding, const struct action *part, int from)
{
    const struct plan *plan = adding->clocks->times.plan;
    int sender = comms_rank_of(&adding->map, from),
        receiver = comms_rank_of(&adding->map, part->stage);
    if (!plan || sender == receiver)
        return 0;
    struct message_cost cost = costs_message(
        plan, sender, receiver, parallel_apart(plan, 0, sender, receiver), part->kind == ACTION_F);
    return cost.latency_ns + cost.transfer_ns;
}

/* A rank whose next action has its inputs joins the heap. */
static void comms_consider(struct adding *adding, int rank)
{
    struct comms_clocks *clocks = adding->clocks;
    const struct action *head = comms_head_of(adding, rank), *parts;
    if (!head || clocks->waits[rank] || blocking_part(adding, rank, head))
        return;
    int64_t start = clocks->free_at[rank];
    size_t count = comms_parts(head, &parts);
    for (size_t i = 0; i < count; i++) {
        int from = flow_of(&adding->map, &parts[i]).input_stage;
        int64_t here = from < 0 ? 0
                                : *comms_end_of(adding, &parts[i], from) +
                                      comms_message_time(adding, &parts[i], from);
        start = here > start ? here : start;
    }
    clocks->end[rank] = start + pass_time(&clocks->times, head);
    clocks->waits[rank] = true;
    heap_push(clocks, rank);
}

static void place_earliest(struct adding *adding)
{
    struct comms_clocks *clocks = adding->clocks;
    int rank = heap_pop(clocks);
    const struct action *head = comms_head_of(adding, rank), *parts;
    size_t count = comms_parts(head, &parts);
    clocks->waits[rank] = false;
    clocks->free_at[rank] = clocks->end[rank];
    for (size_t i = 0; i < count; i++)
        if (flow_of(&adding->map, &parts[i]).computed)
            *comms_end_of(adding, &parts[i], parts[i].stage) = clocks->end[rank];
    place_head(adding, rank);
    comms_consider(adding, rank);
    for (size_t i = 0; i < count; i++)
        if (receiver_of(&adding->map, &parts[i]) >= 0)
            comms_consider(adding, receiver_of(&adding->map, &parts[i]));
}

static enum status place_by_time(struct adding *adding, struct diag *diag)
{
    for (int rank = 0; rank < adding->rank_count; rank++)
        comms_consider(adding, rank);
    while (adding->clocks->count > 0)
        place_earliest(adding);
    return refuse_rest(adding, diag);
}

static bool start_clocks(struct comms_clocks *clocks, size_t cells, int rank_count)
{
    clocks->forward = calloc(2 * cells + 1, sizeof *clocks->forward);
    clocks->free_at = calloc(2 * (size_t)rank_count, sizeof *clocks->free_at);
    clocks->waits = calloc((size_t)rank_count, sizeof *clocks->waits);
    clocks->heap = calloc((size_t)rank_count, sizeof *clocks->heap);
    if (!clocks->forward || !clocks->free_at || !clocks->waits || !clocks->heap)
        return false;
    clocks->backward = clocks->forward + cells;
    clocks->end = clocks->free_at + rank_count;
    return true;
}

static void stop_clocks(struct comms_clocks *clocks)
{
    free(clocks->forward);
    free(clocks->free_at);
    free(clocks->waits);
    free(clocks->heap);
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum status comms_add_messages(struct arena *arena, struct rank_program *ranks,
                                      int rank_count, int copies, struct comms_clocks *clocks,
                                      struct diag *diag)
{
    assert(!comms_present(ranks, rank_count));
    struct adding adding = {.in = ranks, .rank_count = rank_count, .clocks = clocks};
    enum status status = comms_map_stages(arena, ranks, rank_count, copies, &adding.map, diag);
    if (status == STATUS_OK)
        status = comms_check_stages(&adding.map, diag);
    if (status != STATUS_OK)
        return status;
    size_t cells = (size_t)adding.map.stages * (size_t)adding.map.microbatches;
    adding.placed = calloc(cells + 1, sizeof *adding.placed);
    adding.next = calloc((size_t)rank_count, sizeof *adding.next);
    adding.waits = calloc((size_t)rank_count, sizeof *adding.waits);
    adding.out = calloc((size_t)rank_count, sizeof *adding.out);
    bool ok = adding.placed && adding.next && adding.waits && adding.out &&
              comms_make_room(&adding, arena) &&
              (!clocks || start_clocks(clocks, cells, rank_count));
    if (ok)
        status = clocks ? place_by_time(&adding, diag) : place_all(&adding, diag);
    else
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        memcpy(ranks, adding.out, (size_t)rank_count * sizeof *ranks);
    free(adding.placed);
    free(adding.next);
    free(adding.waits);
    free(adding.out);
    return status;
}

enum status comms_add(struct arena *arena, struct rank_program *ranks, int rank_count, int copies,
                      struct diag *diag)
{
    return comms_add_messages(arena, ranks, rank_count, copies, NULL, diag);
}

enum status comms_add_timed(struct arena *arena, struct rank_program *ranks, int rank_count,
                            int copies, const struct pass_clock *times, struct diag *diag)
{
    struct comms_clocks clocks = {.times = *times};
    enum status status = comms_add_messages(arena, ranks, rank_count, copies, &clocks, diag);
    stop_clocks(&clocks);
    return status;
}

/* ---- joining split backwards ----------------------------------------------------------------- */

static bool is_weight_of(const struct action *weight, const struct action *input)
{
    return weight->kind == ACTION_W && input->kind == ACTION_I && weight->stage == input->stage &&
           weight->microbatch == input->microbatch;
}

enum status comms_merge_bw(struct arena *arena, struct rank_program *ranks, int rank_count,
                           struct diag *diag)
{
    for (int rank = 0; rank < rank_count; rank++) {
        const struct rank_program *in = &ranks[rank];
        struct rank_program out = {.actions = ARENA_ARRAY(arena, in->count, struct action)};
        if (!out.actions)
            return diag_no_memory(diag);
        for (size_t i = 0; i < in->count; i++) {
            const struct action *action = &in->actions[i];
            if (action->kind == ACTION_IDLE)
                continue;
            if (out.count > 0 && is_weight_of(action, &out.actions[out.count - 1]))
                out.actions[out.count - 1].kind = ACTION_B;
            else
                comms_append(&out, *action);
        }
        ranks[rank] = out;
    }
    return STATUS_OK;
}
