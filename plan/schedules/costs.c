/* SPDX-License-Identifier: Apache-2.0 */
/* costs.c - see costs.h. */
#include "costs.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "plan/plan.h"

#include "arithmetic.h"
#include "comms.h"
#include "complete_lists.h"
#include "generate.h"
#include "model.h"
#include "base/list_key.h"

/* ---- layers to stages ------------------------------------------------------------------------ */

/*
 * Layers divided into stages such that the slowest stage is the fastest (`balance: found`).
 *
 * Layers stay behind one another. With `machine: {memory}` a rank is to hold no more than that, by an estimate: weights
 * and state of its layers, and of each stage the activations of as many microbatches as its list ever has in flight
 * (where the list is itself found: as it may have); messages are not counted. Stages are filled from the first on: where
 * a rank has two, the first leaves no room for the second. Where no division is found that keeps to the memory, the
 * fastest is taken; verify says what a rank really holds.
 *
 * By bisection over the time of the slowest stage: layers are put into one stage after the other while it takes no longer
 * and its rank has room.
 */

/* ---- what layers cost ------------------------------------------------------------------------ */

static int64_t costs_item(const struct cost_list *list, size_t index)
{
    return list->count == 0 ? 0 : list->items[list->count == 1 ? 0 : index];
}

/* The time of a microbatch in a layer, in embedding or head. */
static int64_t item_ns(const struct cost_table *table, size_t index)
{
    int64_t backward = table->of[COST_B].count ? costs_item(&table->of[COST_B], index)
                                               : costs_item(&table->of[COST_I], index) +
                                                     costs_item(&table->of[COST_W], index);
    int64_t exchange =
        costs_item(&table->of[COST_DISPATCH], index) + costs_item(&table->of[COST_COMBINE], index);
    return costs_item(&table->of[COST_F], index) + backward + 2 * exchange;
}

/* The ranks' room, and what stages hold. */
struct room {
    const struct machine_spec *machine; /* NULL: there is no bound */
    bool again;                         /* only inputs are kept, and one layer computed once more */
    int *rank_of;                       /* per stage */
    int *in_flight; /* per stage: microbatches that hold activations at a time */
    int64_t *held;  /* per rank, while a division is made */
};

static int64_t item_bytes(const struct room *room, const struct cost_table *table, size_t index,
                          int stage)
{
    int64_t kept = costs_item(&table->of[room->again ? COST_INPUT : COST_ACTIVATION], index);
    return costs_item(&table->of[COST_WEIGHTS], index) + costs_item(&table->of[COST_STATE], index) +
           room->in_flight[stage] * kept;
}

/* ---- what lists have in flight --------------------------------------------------------------- */

/* A microbatch is in flight from F to the end of its backward pass. */
static void count_list(struct room *room, const struct rank_program *list, int rank)
{
    const struct action *parts;
    for (int stage = 0; room->rank_of[stage] >= 0; stage++) {
        int now = 0;
        for (size_t i = 0; room->rank_of[stage] == rank && i < list->count; i++)
            for (size_t k = 0, count = comms_parts(&list->actions[i], &parts); k < count; k++) {
                if (parts[k].stage != stage)
                    continue;
                now += parts[k].kind == ACTION_F;
                now -= parts[k].kind == ACTION_B || parts[k].kind == ACTION_W;
                if (now > room->in_flight[stage])
                    room->in_flight[stage] = now;
            }
    }
}

/* Lists that are found follow from the costs: there `memory` says how many are in flight. */
static enum status count_in_flight(const struct plan *plan, int stages, struct arena *arena,
                                   struct room *room, struct diag *diag)
{
    const struct generate_spec *spec = &plan->programs.generate;
    struct rank_program *ranks = plan->programs.ranks;
    struct stage_map map;
    int rank_count = plan->ranks, chunks = spec->given && stages > spec->ranks ? 2 : 1;
    enum status status = STATUS_OK;
    if (spec->given && generate_is_found(spec->schedule)) {
        for (int stage = 0; stage < stages; stage++) {
            bool climbs = stage >= spec->ranks;
            room->rank_of[stage] = climbs ? stages - 1 - stage : stage;
            room->in_flight[stage] = (generate_memory(spec) + chunks - 1) / chunks;
        }
        return STATUS_OK;
    }
    if (spec->given)
        status = generate_program(spec, arena, &ranks, &rank_count, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(arena, ranks, rank_count, 1, &map, diag);
    if (status != STATUS_OK || map.stages < stages)
        return status;
    for (int stage = 0; stage < stages; stage++)
        room->rank_of[stage] = map.rank_of[stage];
    for (int rank = 0; rank < rank_count; rank++)
        count_list(room, &ranks[rank], rank);
    return STATUS_OK;
}

static enum status costs_find_room(const struct plan *plan, int stages, struct arena *arena,
                                   struct room *room, struct diag *diag)
{
    size_t count = (size_t)stages + 1;
    room->machine = machine_has_memory(&plan->machine) ? &plan->machine : NULL;
    room->again = plan->programs.stages.checkpoint == CHECKPOINT_ALWAYS;
    room->rank_of = ARENA_ARRAY(arena, count, int);
    room->in_flight = ARENA_ARRAY(arena, count, int);
    room->held = ARENA_ARRAY(arena, count, int64_t);
    if (!room->rank_of || !room->in_flight || !room->held)
        return diag_no_memory(diag);
    for (int stage = 0; stage < stages; stage++)
        room->rank_of[stage] = stage;
    room->rank_of[stages] = -1;
    return room->machine ? count_in_flight(plan, stages, arena, room, diag) : STATUS_OK;
}

/* ---- divisions ------------------------------------------------------------------------------- */

static bool costs_has_room(const struct room *room, int stage, int64_t more)
{
    int rank = room->rank_of[stage];
    int64_t bytes = room->machine ? machine_memory(room->machine, rank) : 0;
    return bytes == 0 || room->held[rank] + more <= bytes;
}

static int64_t end_ns(const struct layers *layers, int stages, int stage)
{
    return (stage == 0 ? item_ns(&layers->embedding, 0) : 0) +
           (stage == stages - 1 ? item_ns(&layers->head, 0) : 0);
}

/* The bytes that a rank holds before layers are put into its stages. */
static void costs_start_ranks(struct room *room, const struct layers *layers, int stages)
{
    for (int stage = 0; stage < stages; stage++)
        room->held[room->rank_of[stage]] = 0;
    room->held[room->rank_of[0]] += item_bytes(room, &layers->embedding, 0, 0);
    room->held[room->rank_of[stages - 1]] += item_bytes(room, &layers->head, 0, stages - 1);
    for (int stage = 0; room->again && stage < stages; stage++)
        room->held[room->rank_of[stage]] += costs_item(&layers->each.of[COST_ACTIVATION], 0);
}

/* Layers behind one another on each stage while it takes no longer than `most`; each stage gets one while there
   are enough. False: layers are left over, or a rank has no room. */
static bool costs_fill_stages(const struct layers *layers, int stages, int64_t most,
                              struct room *room, int *out)
{
    int next = 0;
    costs_start_ranks(room, layers, stages);
    for (int s = 0; s < stages; s++) {
        int64_t ns = end_ns(layers, stages, s);
        int last = layers->count - (stages - 1 - s); /* one for each stage behind it */
        out[s] = 0;
        while (next < layers->count) {
            int64_t more_ns = item_ns(&layers->each, (size_t)next);
            int64_t bytes = item_bytes(room, &layers->each, (size_t)next, s);
            bool must = out[s] == 0 && layers->count >= stages;
            bool may = next < last && ns + more_ns <= most && costs_has_room(room, s, bytes);
            if (!must && !may)
                break;
            ns += more_ns;
            room->held[room->rank_of[s]] += bytes;
            out[s]++;
            next++;
        }
        if (ns > most || !costs_has_room(room, s, 0))
            return false;
    }
    return next == layers->count;
}

/* False: no division keeps to the room. */
static bool bisect(const struct layers *layers, int stages, struct room *room, int *out)
{
    int64_t low = -1, high = item_ns(&layers->embedding, 0) + item_ns(&layers->head, 0);
    for (int i = 0; i < layers->count; i++)
        high += item_ns(&layers->each, (size_t)i);
    if (room->machine && !costs_fill_stages(layers, stages, high, room, out))
        return false;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (costs_fill_stages(layers, stages, middle, room, out))
            high = middle;
        else
            low = middle;
    }
    costs_fill_stages(layers, stages, high, room, out);
    return true;
}

/* The layers of each stage into `out`. `layers` has the model's costs, too. */
static enum status balance_find(const struct plan *plan, const struct layers *layers, int stages,
                                int *out, struct diag *diag)
{
    struct room room = {0};
    struct arena scratch;
    arena_init(&scratch, 0);
    enum status status = costs_find_room(plan, stages, &scratch, &room, diag);
    if (status == STATUS_OK && !bisect(layers, stages, &room, out)) {
        room.machine = NULL;
        bisect(layers, stages, &room, out);
    }
    arena_fini(&scratch);
    return status;
}

enum { NS_PER_S = 1000 * 1000 * 1000 };

/* ---- messages -------------------------------------------------------------------------------- */

enum { MOST_LINKS = 4 };

static const struct link *find_edge(const struct links *links, int from, int to)
{
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].from == from && links->edges[i].to == to)
            return &links->edges[i].link;
    return NULL;
}

/* The links of a message, narrowest first; returns how many. */
static int links_of(const struct links *links, const struct link *edge, bool apart, bool forward,
                    const struct link *out[MOST_LINKS])
{
    int count = 0;
    if (edge)
        out[count++] = edge;
    if (apart)
        out[count++] = &links->between;
    out[count++] = forward ? &links->forward : &links->backward;
    out[count++] = &links->all;
    return count;
}

/* The value of the narrowest link that gives one; 0: none does. */
#define FIRST_GIVEN(links, count, what)                                                            \
    for (int i_ = 0; i_ < (count); i_++)                                                           \
        if ((links)[i_]->what.given) {                                                             \
            what = (links)[i_]->what.value;                                                        \
            break;                                                                                 \
        }

/* Of what costs_resolve has checked, exactly; of more, as much as is refused. */
static int64_t costs_transfer_ns(int64_t bytes, int64_t bandwidth)
{
    double ns = bandwidth ? (double)bytes * NS_PER_S / (double)bandwidth + 0.5 : 0;
    return ns < 2.0 * PLAN_MOST_NS ? (int64_t)ns : 2 * PLAN_MOST_NS;
}

/* A time given for either end of a message is that of the message. */
static bool costs_given_time(const struct programs *programs, bool forward, int64_t *ns)
{
    const struct action_time *send = &programs->times[forward ? ACTION_SEND_F : ACTION_SEND_B];
    const struct action_time *recv = &programs->times[forward ? ACTION_RECV_F : ACTION_RECV_B];
    *ns = send->time_ns > recv->time_ns ? send->time_ns : recv->time_ns;
    return send->given || recv->given;
}

struct message_cost costs_link(const struct link *const *links, int count, int64_t bytes)
{
    int64_t latency = 0, bandwidth = 0;
    FIRST_GIVEN(links, count, latency)
    FIRST_GIVEN(links, count, bandwidth)
    FIRST_GIVEN(links, count, bytes)
    return (struct message_cost){.bytes = bytes,
                                 .latency_ns = latency,
                                 .transfer_ns = costs_transfer_ns(bytes, bandwidth),
                                 .metadata_ns =
                                     latency + costs_transfer_ns(METADATA_BYTES, bandwidth)};
}

/* `edge`: the link of its own that a message has; NULL: none. */
static struct message_cost message_over(const struct plan *plan, const struct link *edge,
                                        bool apart, bool forward)
{
    const struct programs *programs = &plan->programs;
    const struct link *links[MOST_LINKS];
    int count = links_of(&programs->links, edge, apart, forward, links);
    int64_t bytes = programs->p2p_bytes, given;
    if (bytes == 0 && programs->stages.model.layers) {
        struct model_spec model = costs_model(plan);
        bytes = model_message_bytes(&model);
    }
    struct message_cost cost = costs_link(links, count, bytes);
    if (cost.bytes == 0 && programs->arithmetic.given)
        cost = costs_link(links, count, arithmetic_message_bytes(&programs->arithmetic));
    if (costs_given_time(programs, forward, &given))
        return (struct message_cost){.bytes = cost.bytes, .latency_ns = given};
    return cost;
}

struct message_cost costs_message(const struct plan *plan, int from, int to, bool apart,
                                  bool forward)
{
    return message_over(plan, find_edge(&plan->programs.links, from, to), apart, forward);
}

/* ---- a model --------------------------------------------------------------------------------- */

struct model_spec costs_model(const struct plan *plan)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    struct model_spec model = plan->programs.stages.model;
    if (!spec->given || !model.layers)
        return model;
    model.tensor = spec->size[DIM_TP];
    model.data = spec->size[DIM_DP] * spec->size[DIM_CP];
    model.context = spec->size[DIM_CP];
    model.expert_parallel = spec->size[DIM_EP];
    return model;
}

/* ---- layers of stages ------------------------------------------------------------------------ */

const char *cost_key(enum cost cost)
{
    static const char *const keys[] = {COST_LIST(LIST_KEY)};
    return keys[cost];
}

bool cost_is_time(enum cost cost)
{
#define X(name, key, time) time,
    static const bool times[] = {COST_LIST(X)};
#undef X
    return times[cost];
}

static void balance_evenly(int layers, int stages, int *out)
{
    for (int s = 0; s < stages; s++)
        out[s] = (int)((int64_t)layers * (s + 1) / stages - (int64_t)layers * s / stages);
}

static enum status check_balance(const struct plan *plan, const struct layers *layers, int stages,
                                 struct diag *diag)
{
    const struct stage_spec *spec = &plan->programs.stages;
    int64_t sum = 0;
    for (size_t s = 0; s < spec->balanced_count; s++)
        sum += spec->balanced[s];
    if (spec->balanced_count != (size_t)stages)
        return plan_error_at(plan, diag, spec->balance_mark,
                             "found the layers of %zu stages, expected those of %d",
                             spec->balanced_count, stages);
    if (sum != layers->count)
        return plan_error_at(plan, diag, spec->balance_mark,
                             "found %lld layers in the stages, expected %d as \"layers\" says",
                             (long long)sum, layers->count);
    return STATUS_OK;
}

/* Programs without a pass have no stage that could hold a layer. */
static enum status costs_check_stages(const struct plan *plan, const struct layers *layers,
                                      int stages, struct diag *diag)
{
    if (stages > 0)
        return STATUS_OK;
    return plan_error_at(plan, diag, layers->mark,
                         "found %d layers and programs without a pass, expected passes, whose "
                         "stages hold the layers",
                         layers->count);
}

/* A stage without layers is meant where `balance` lists it. */
static enum status check_even(const struct plan *plan, const struct layers *layers, int stages,
                              struct diag *diag)
{
    if (layers->count >= stages)
        return STATUS_OK;
    return plan_error_at(plan, diag, layers->mark,
                         "found %d layers for %d stages, expected one a stage at least, or "
                         "\"balance\" to list those of each",
                         layers->count, stages);
}

static enum status divide_layers(const struct plan *plan, const struct layers *layers, int stages,
                                 int *out, struct diag *diag)
{
    const struct stage_spec *spec = &plan->programs.stages;
    enum status status = STATUS_OK;
    switch (spec->balance) {
    case BALANCE_EVEN:
        status = check_even(plan, layers, stages, diag);
        balance_evenly(layers->count, stages, out);
        break;
    case BALANCE_FOUND: status = balance_find(plan, layers, stages, out, diag); break;
    case BALANCE_LISTED:
        status = check_balance(plan, layers, stages, diag);
        if (status == STATUS_OK)
            memcpy(out, spec->balanced, (size_t)stages * sizeof *out);
    }
    return status;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Of layers, embedding and head some may give B, others I and W: a sum of one has the others, too. */
static void add_backward(struct stage_cost *row, const struct cost_table *table, size_t index)
{
    int64_t whole = costs_item(&table->of[COST_B], index);
    bool split = table->of[COST_I].count || table->of[COST_W].count;
    if (table->of[COST_B].count && !split) {
        row->of[COST_I] += whole - whole / 2;
        row->of[COST_W] += whole / 2;
    } else if (table->of[COST_I].count && table->of[COST_W].count && !table->of[COST_B].count) {
        row->of[COST_B] +=
            costs_item(&table->of[COST_I], index) + costs_item(&table->of[COST_W], index);
    }
}

/* The costs that are known of a stage, however many layers it has. */
static void note_given(struct stage_cost *row, const struct cost_table *table)
{
    for (int c = 0; c < COST_COUNT; c++)
        row->given[c] |= table->of[c].count > 0;
    row->given[COST_B] |= table->of[COST_I].count && table->of[COST_W].count;
}

static void costs_add_item(struct stage_cost *row, const struct cost_table *table, size_t index)
{
    for (int c = 0; c < COST_COUNT; c++)
        row->of[c] += costs_item(&table->of[c], index);
    note_given(row, table);
    add_backward(row, table, index);
    int64_t again = costs_item(&table->of[COST_ACTIVATION], index);
    row->again = again > row->again ? again : row->again;
}

static enum status add_layers(const struct plan *plan, const struct layers *layers, int stages,
                              struct arena *arena, struct stage_cost *rows, struct diag *diag)
{
    int *counts = ARENA_ARRAY(arena, (size_t)stages, int), next = 0;
    if (!counts)
        return diag_no_memory(diag);
    enum status status = costs_check_stages(plan, layers, stages, diag);
    if (status == STATUS_OK)
        status = divide_layers(plan, layers, stages, counts, diag);
    for (int s = 0; status == STATUS_OK && s < stages; s++) {
        rows[s].layers = counts[s];
        note_given(&rows[s], &layers->each);
        for (int i = 0; i < counts[s]; i++)
            costs_add_item(&rows[s], &layers->each, (size_t)next++);
    }
    if (status == STATUS_OK) {
        costs_add_item(&rows[0], &layers->embedding, 0);
        costs_add_item(&rows[stages - 1], &layers->head, 0);
    }
    return status;
}

/* I and W of a stage go before B of its layers, and B of a stage before their I and W. */
static void put_backward(const struct cost_table *table, struct stage_cost *row)
{
    bool whole = table->of[COST_B].count > 0;
    bool split = table->of[COST_I].count || table->of[COST_W].count;
    if (row->layers && split && !whole)
        row->of[COST_B] = row->of[COST_I] + row->of[COST_W];
    if (row->layers && whole && !split) {
        row->of[COST_I] = row->of[COST_B] - row->of[COST_B] / 2;
        row->of[COST_W] = row->of[COST_B] / 2;
    }
}

/* A value of `stages:` goes before those of the stage's layers. A list is of all stages, or of those of one copy of the
   model. */
static enum status put_stages(const struct plan *plan, int stages, int length,
                              struct stage_cost *rows, struct diag *diag)
{
    const struct cost_table *table = &plan->programs.stages.stages;
    for (int c = 0; c < COST_COUNT; c++) {
        const struct cost_list *list = &table->of[c];
        if (list->count > 1 && list->count != (size_t)stages && list->count != (size_t)length)
            return plan_error_at(plan, diag, list->mark,
                                 "found \"%s\" of %zu stages, expected one for all or %d",
                                 cost_key((enum cost)c), list->count, stages);
        for (int s = 0; list->count && s < stages; s++) {
            rows[s].given[c] = true;
            rows[s].of[c] = costs_item(list, (size_t)s % list->count);
            if (c == COST_ACTIVATION)
                rows[s].again = rows[s].of[c];
        }
    }
    for (int s = 0; s < stages; s++)
        put_backward(table, &rows[s]);
    return STATUS_OK;
}

static void fill_rest(const struct programs *programs, struct stage_cost *row)
{
    bool split = row->given[COST_I] && row->given[COST_W];
    for (int c = COST_F; c <= COST_B; c++) {
        const struct action_time *time = &programs->times[action_of_cost((enum cost)c)];
        if (row->given[c] || !time->given || (c == COST_B && split))
            continue;
        row->given[c] = true;
        row->of[c] = time->time_ns;
    }
    if (!row->given[COST_B] && row->given[COST_I] && row->given[COST_W]) {
        row->given[COST_B] = true;
        row->of[COST_B] = row->of[COST_I] + row->of[COST_W];
    }
    if (!row->given[COST_LEFT])
        row->of[COST_LEFT] = row->of[COST_ACTIVATION];
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static enum status refuse_cost(const struct plan *plan, const char *what, bool time, int64_t value,
                               struct mark mark, struct diag *diag)
{
    char found[UNITS_TEXT], most[UNITS_TEXT];
    if (time) {
        units_show_time((double)value, found);
        units_show_time((double)PLAN_MOST_NS, most);
    } else {
        units_show_bytes((double)value, found);
        units_show_bytes((double)COST_MOST_BYTES, most);
    }
    /* A negative one is the result of a model too large for 64 bits. */
    return plan_error_at(plan, diag, mark, "found %s of %s, expected at most %s", what,
                         value < 0 ? "more than 64 bits hold" : found, most);
}

static bool costs_is_within(enum cost cost, int64_t value)
{
    return value >= 0 && value <= (cost_is_time(cost) ? PLAN_MOST_NS : COST_MOST_BYTES);
}

/* `mark`: of values that the plan's file does not have. */
static enum status check_table(const struct plan *plan, const struct cost_table *table,
                               struct mark mark, struct diag *diag)
{
    for (int c = 0; c < COST_COUNT; c++)
        for (size_t i = 0; i < table->of[c].count; i++)
            if (!costs_is_within((enum cost)c, table->of[c].items[i]))
                return refuse_cost(plan, cost_key((enum cost)c), cost_is_time((enum cost)c),
                                   table->of[c].items[i],
                                   table->of[c].mark.line ? table->of[c].mark : mark, diag);
    return STATUS_OK;
}

/* Before they are added up: then no sum of layers overflows. */
static enum status check_given(const struct plan *plan, const struct layers *layers,
                               struct diag *diag)
{
    const struct cost_table *tables[] = {&plan->programs.stages.stages, &layers->each,
                                         &layers->embedding, &layers->head};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof tables / sizeof *tables; i++)
        status = check_table(plan, tables[i], layers->mark, diag);
    for (int kind = 0; status == STATUS_OK && kind < ACTION_IDLE; kind++) {
        int64_t ns = plan->programs.times[kind].time_ns;
        if (ns > PLAN_MOST_NS)
            status = refuse_cost(plan, action_text((enum action_kind)kind), true, ns,
                                 (struct mark){0}, diag);
    }
    return status;
}

static enum status costs_check_rows(const struct plan *plan, const struct stage_cost *rows,
                                    int stages, struct mark mark, struct diag *diag)
{
    for (int s = 0; s < stages; s++)
        for (int c = 0; c < COST_COUNT; c++)
            if (!costs_is_within((enum cost)c, rows[s].of[c])) {
                char what[64];
                snprintf(what, sizeof what, "%s of stage %d", cost_key((enum cost)c), s);
                return refuse_cost(plan, what, cost_is_time((enum cost)c), rows[s].of[c], mark,
                                   diag);
            }
    return STATUS_OK;
}

/* Every combination of links that a message may have. */
static enum status check_links(const struct plan *plan, struct diag *diag)
{
    const struct links *links = &plan->programs.links;
    for (size_t i = 0; i <= links->edge_count; i++)
        for (int way = 0; way < 4; way++) {
            const struct edge_link *edge = i < links->edge_count ? &links->edges[i] : NULL;
            struct message_cost cost =
                message_over(plan, edge ? &edge->link : NULL, way & 1, way >> 1);
            struct mark mark = edge ? edge->mark : links->mark;
            bool heavy = cost.bytes > COST_MOST_BYTES;
            if (heavy || cost.latency_ns > PLAN_MOST_NS || cost.transfer_ns > PLAN_MOST_NS)
                return refuse_cost(plan, "a message", !heavy,
                                   heavy                            ? cost.bytes
                                   : cost.latency_ns > PLAN_MOST_NS ? cost.latency_ns
                                                                    : cost.transfer_ns,
                                   mark, diag);
        }
    return STATUS_OK;
}

enum status costs_resolve(const struct plan *plan, int stages, struct arena *arena,
                          struct stage_cost **out, struct diag *diag)
{
    struct stage_cost *rows = ARENA_ARRAY(arena, (size_t)stages, struct stage_cost);
    struct layers layers = plan->programs.stages.layers;
    struct model_spec model = costs_model(plan);
    int copies = complete_lists_copies(plan);
    int length = stages % copies == 0 ? stages / copies : stages; /* of a copy of the model */
    bool filled = !model.layers || model_fill(&model, length, arena, &layers);
    enum status status = rows && filled ? STATUS_OK : diag_no_memory(diag);
    if (status == STATUS_OK)
        status = check_given(plan, &layers, diag);
    if (status == STATUS_OK)
        status = check_links(plan, diag);
    if (status == STATUS_OK && layers.count)
        status = add_layers(plan, &layers, length, arena, rows, diag);
    for (int s = length; status == STATUS_OK && s < stages; s++)
        rows[s] = rows[s % length];
    if (status == STATUS_OK)
        status = put_stages(plan, stages, length, rows, diag);
    for (int s = 0; status == STATUS_OK && s < stages; s++)
        fill_rest(&plan->programs, &rows[s]);
    if (status == STATUS_OK)
        status = costs_check_rows(plan, rows, stages, layers.mark, diag);
    if (status == STATUS_OK)
        *out = rows;
    return status;
}

bool costs_checkpointed(const struct plan *plan, int microbatch, int microbatches)
{
    switch (plan->programs.stages.checkpoint) {
    case CHECKPOINT_NEVER: return false;
    case CHECKPOINT_EXCEPT_LAST: return microbatch < microbatches - 1;
    case CHECKPOINT_ALWAYS: return true;
    }
    return false;
}
