/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_ranks.c - what passes and messages of rank programs really took: costs by stage and edge from a measured run.
 *
 * A pass on a stream waits for nothing once it has begun, so a run need not be serial, and may be one of another
 * schedule of the same stages. Of all microbatches the median is taken: the first ones warm up.
 *
 *     F I W B    from their starts to their ends, by stage, instead of `stages:`, `layers:` and `times:`
 *     messages   from the later start of its two ends to their later end, by edge, instead of `p2p:`
 *
 * A backward pass that was measured only as a whole is divided as the plan divides it, else in halves; one measured only
 * as I and W is both together. A pass that was not measured keeps the plan's costs.
 */
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "plan/schedules/actions.h"
#include "plan/schedules/costs.h"
#include "plan/schedules/parallel.h"
#include "plan/schedules/complete_lists.h"

enum { FORWARD_TAG = 'F', NS_PER_S = 1000 * 1000 * 1000 };

/* A pass: `kind` and `at`, its stage. One end of a message: `at` and `to`, its ranks. */
struct taken_work {
    bool message, receive;
    enum cost kind;
    int at, to;
    const char
        *tag; /* of a message: equal names of a trace are equal pointers, this is a part of one */
    size_t tag_length;
    int64_t start_ns, end_ns, ns;
};

struct ranks_reader {
    struct profile *profile;
    struct arena scratch;
    struct trace trace;
    struct taken_work *items;
    size_t count;
    int stages; /* of the plan */
    struct diag *diag;
};

/* ---- which run ------------------------------------------------------------------------------- */

struct wanted_run {
    const char *plan;
    int64_t run; /* -1: none found yet */
};

static bool is_usable(const struct run_info *info)
{
    return info->kind == RUN_MEASURED && info->finished == RUN_FINISHED;
}

static void profile_ranks_look_at_run(const struct store_run *run, void *context)
{
    struct wanted_run *wanted = context;
    if (is_usable(&run->info) && strcmp(run->info.plan_name, wanted->plan) == 0)
        wanted->run = run->id;
}

static enum status profile_ranks_find_run(struct store *store, const struct plan *plan,
                                          int64_t *run, struct diag *diag)
{
    struct wanted_run wanted = {.plan = plan->name, .run = -1};
    enum status status = store_list_runs(store, profile_ranks_look_at_run, &wanted, diag);
    if (status != STATUS_OK)
        return status;
    if (wanted.run < 0) {
        diag_error(diag, STATUS_INPUT, "the trace store has no finished run of %s", plan->name);
        diag_note(diag, "'swrun --db FILE PLAN' adds one");
        return STATUS_INPUT;
    }
    *run = wanted.run;
    return STATUS_OK;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static bool profile_ranks_take_pass(struct ranks_reader *reader, const char *name,
                                    struct taken_work *out)
{
    struct action action;
    const char *what;
    size_t where;
    if (!action_parse(name, strlen(name), false, &reader->scratch, &action, &what, &where) ||
        !action_cost(action.kind, &out->kind))
        return false;
    out->at = action.stage;
    return true;
}

/* "send F0@1 to rank 1", "receive F0@1 from rank 0" on `rank`. */
static bool profile_ranks_take_message(const char *name, int rank, struct taken_work *out)
{
    static const char send[] = "send ", receive[] = "receive ";
    out->receive = strncmp(name, receive, sizeof receive - 1) == 0;
    if (!out->receive && strncmp(name, send, sizeof send - 1) != 0)
        return false;
    const char *peer = strrchr(name, ' ');
    out->tag = strchr(name, ' ') + 1;
    out->tag_length = strcspn(out->tag, " ");
    int other = atoi(peer);
    out->message = true;
    out->at = out->receive ? other : rank;
    out->to = out->receive ? rank : other;
    return out->tag + out->tag_length < peer; /* else a batch of several */
}

/* Messages of the first pipeline stand for those of all: their ranks become places. */
static bool take_placed(const struct plan *plan, const char *name, int rank, struct taken_work *out)
{
    int replica, at, to;
    if (!profile_ranks_take_message(name, rank, out))
        return false;
    parallel_place(&plan->programs.parallel, plan->ranks, out->at, &replica, &at);
    parallel_place(&plan->programs.parallel, plan->ranks, out->to, &replica, &to);
    out->at = at;
    out->to = to;
    return replica == 0;
}

static bool profile_ranks_take_span(struct ranks_reader *reader, const struct trace_span *span,
                                    struct taken_work *out)
{
    const struct trace_agent *agent = &reader->trace.agents[span->agent];
    if (span->kind != SPAN_DEVICE || !span->task || agent->rank < 0)
        return false;
    *out = (struct taken_work){
        .start_ns = span->start_ns, .end_ns = span->end_ns, .ns = span->end_ns - span->start_ns};
    return take_placed(&reader->profile->plan, span->task, agent->rank, out) ||
           profile_ranks_take_pass(reader, span->task, out);
}

static int profile_ranks_compare_kinds(const struct taken_work *a, const struct taken_work *b)
{
    return compare_then(
        compare_then(compare_int(a->message, b->message), compare_int((int)a->kind, (int)b->kind)),
        compare_then(compare_int(a->at, b->at), compare_int(a->to, b->to)));
}

static int by_tag(const void *left, const void *right)
{
    const struct taken_work *a = left, *b = right;
    int order = profile_ranks_compare_kinds(a, b);
    if (order || !a->message)
        return order;
    order = compare_size(a->tag_length, b->tag_length);
    if (order)
        return order;
    return compare_then(memcmp(a->tag, b->tag, a->tag_length), compare_int(a->receive, b->receive));
}

static int profile_ranks_by_time(const void *left, const void *right)
{
    const struct taken_work *a = left, *b = right;
    return compare_then(profile_ranks_compare_kinds(a, b), compare_i64(a->ns, b->ns));
}

static bool profile_ranks_same_message(const struct taken_work *send,
                                       const struct taken_work *receive)
{
    return receive->message && !send->receive && receive->receive &&
           profile_ranks_compare_kinds(send, receive) == 0 &&
           send->tag_length == receive->tag_length &&
           memcmp(send->tag, receive->tag, send->tag_length) == 0;
}

/* Sends and receives become messages; an end without the other one is left out. */
static void join_ends(struct ranks_reader *reader)
{
    size_t kept = 0;
    SORT(reader->items, reader->count, by_tag);
    for (size_t i = 0; i < reader->count; i++) {
        struct taken_work item = reader->items[i];
        if (item.message) {
            const struct taken_work *receive = &reader->items[i + 1];
            if (i + 1 == reader->count || !profile_ranks_same_message(&item, receive))
                continue;
            int64_t start = item.start_ns > receive->start_ns ? item.start_ns : receive->start_ns;
            int64_t end = item.end_ns > receive->end_ns ? item.end_ns : receive->end_ns;
            item.ns = end > start ? end - start : 0;
            i++;
        }
        reader->items[kept++] = item;
    }
    reader->count = kept;
}

/* The operations of an import have the names of its job. */
static enum status refuse_run(const struct ranks_reader *reader)
{
    const char *made_by = reader->trace.info.note;
    bool imported = made_by && strcmp(made_by, RUN_NOTE_IMPORTED) == 0;
    diag_error(reader->diag, STATUS_INPUT,
               "run %" PRId64
               "%s has no passes and messages of rank programs (F0, send F0@1 to rank 1): their "
               "times cannot be used",
               reader->profile->run, imported ? ", imported," : "");
    diag_note(reader->diag,
              "'swrun --db FILE PLAN' measures a plan; --times and `stages:` give times");
    return STATUS_INPUT;
}

static enum status profile_ranks_take_spans(struct ranks_reader *reader)
{
    const struct trace *trace = &reader->trace;
    struct profile *profile = reader->profile;
    reader->items = ARENA_ARRAY(&reader->scratch, trace->span_count + 1, struct taken_work);
    if (!reader->items)
        return diag_no_memory(reader->diag);
    for (size_t i = 0; i < trace->span_count; i++) {
        struct taken_work *item = &reader->items[reader->count];
        if (!profile_ranks_take_span(reader, &trace->spans[i], item))
            continue;
        if (!item->message && item->at >= reader->stages)
            return diag_error(reader->diag, STATUS_INPUT,
                              "run %" PRId64 ": found stage %d, expected those of %s: %d of them",
                              profile->run, item->at, profile->plan.name, reader->stages);
        reader->count++;
    }
    join_ends(reader);
    SORT(reader->items, reader->count, profile_ranks_by_time);
    if (reader->count == 0)
        return refuse_run(reader);
    return STATUS_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Like items stand together, the shortest first. */
static const struct taken_work *find_median(const struct ranks_reader *reader,
                                            const struct taken_work *key)
{
    size_t first = 0, last;
    while (first < reader->count && profile_ranks_compare_kinds(&reader->items[first], key) < 0)
        first++;
    for (last = first;
         last < reader->count && profile_ranks_compare_kinds(&reader->items[last], key) == 0;)
        last++;
    return last > first ? &reader->items[first + (last - first - 1) / 2] : NULL;
}

static int64_t *find_medians(struct ranks_reader *reader, enum cost kind, int64_t *count)
{
    int64_t *items = ARENA_ARRAY(&reader->profile->arena, (size_t)reader->stages, int64_t);
    *count = 0;
    for (int s = 0; items && s < reader->stages; s++) {
        const struct taken_work *median =
            find_median(reader, &(struct taken_work){.kind = kind, .at = s});
        items[s] = median ? median->ns : -1;
        *count += median != NULL;
    }
    return items;
}

/* The whole, divided as the plan's own two parts are. */
static int64_t profile_ranks_part_of(int64_t whole_ns, const struct stage_cost *own, enum cost kind)
{
    int64_t both = own->of[COST_I] + own->of[COST_W];
    int64_t input =
        both > 0 ? (int64_t)((long double)whole_ns * own->of[COST_I] / both) : whole_ns / 2;
    return kind == COST_I ? input : whole_ns - input;
}

/* Passes of one kind of all stages; those that were not measured have the plan's costs. */
static enum status set_passes(struct ranks_reader *reader, enum cost kind, const int64_t *whole,
                              const struct stage_cost *own)
{
    struct profile *profile = reader->profile;
    struct cost_list *list = &profile->plan.programs.stages.stages.of[kind];
    int64_t measured;
    int64_t *items = find_medians(reader, kind, &measured);
    bool any = measured > 0;
    if (!items)
        return diag_no_memory(reader->diag);
    for (int s = 0; s < reader->stages; s++) {
        bool divided = items[s] < 0 && (kind == COST_I || kind == COST_W) && whole[s] >= 0;
        any |= divided;
        if (items[s] < 0)
            items[s] = divided ? profile_ranks_part_of(whole[s], &own[s], kind) : own[s].of[kind];
    }
    profile->drawn += (size_t)measured;
    if (any)
        *list = (struct cost_list){.items = items, .count = (size_t)reader->stages};
    return STATUS_OK;
}

/* B measured as I and W is both: the plan's own B would go before them. */
static enum status set_stages(struct ranks_reader *reader)
{
    struct profile *profile = reader->profile;
    struct stage_cost *own;
    int64_t wholes, inputs;
    enum status status =
        costs_resolve(&profile->plan, reader->stages, &profile->arena, &own, reader->diag);
    if (status != STATUS_OK)
        return status;
    const int64_t *whole = find_medians(reader, COST_B, &wholes);
    const int64_t *input = find_medians(reader, COST_I, &inputs);
    if (!whole || !input)
        return diag_no_memory(reader->diag);
    for (int kind = COST_F; status == STATUS_OK && kind <= COST_B; kind++)
        if (kind != COST_B || wholes > 0)
            status = set_passes(reader, (enum cost)kind, whole, own);
    if (wholes == 0 && inputs > 0) {
        profile->plan.programs.times[ACTION_B] = (struct action_time){0};
        profile->plan.programs.stages.stages.of[COST_B] = (struct cost_list){0};
    }
    return status;
}

/* The plan's own entry of an edge, or a new one. */
static struct edge_link *edge_of(struct links *links, int from, int to)
{
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].from == from && links->edges[i].to == to)
            return &links->edges[i];
    links->edges[links->edge_count] = (struct edge_link){.from = from, .to = to};
    return &links->edges[links->edge_count++];
}

/* Time that the bandwidth does not explain is latency; a message that took less had a higher bandwidth. */
static void set_edge(struct plan *plan, const struct taken_work *median)
{
    struct message_cost own =
        costs_message(plan, median->at, median->to, parallel_apart(plan, 0, median->at, median->to),
                      median->tag[0] == FORWARD_TAG);
    struct link *link = &edge_of(&plan->programs.links, median->at, median->to)->link;
    int64_t latency_ns = median->ns - own.transfer_ns;
    link->latency = (struct amount){true, latency_ns > 0 ? latency_ns : 0};
    if (latency_ns < 0)
        link->bandwidth = (struct amount){
            true, (int64_t)((double)own.bytes * NS_PER_S / (double)(median->ns + 1)) + 1};
}

static enum status set_messages(struct ranks_reader *reader)
{
    struct profile *profile = reader->profile;
    struct programs *programs = &profile->plan.programs;
    const enum action_kind kinds[] = {ACTION_SEND_F, ACTION_RECV_F, ACTION_SEND_B, ACTION_RECV_B};
    const struct edge_link *old = programs->links.edges;
    size_t count = programs->links.edge_count, edges = 0;
    for (size_t i = 0; i < reader->count; i++)
        edges +=
            reader->items[i].message &&
            (i == 0 || profile_ranks_compare_kinds(&reader->items[i - 1], &reader->items[i]) != 0);
    if (edges == 0)
        return STATUS_OK;
    programs->links.edges = ARENA_ARRAY(&profile->arena, count + edges, struct edge_link);
    if (!programs->links.edges)
        return diag_no_memory(reader->diag);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        programs->times[kinds[i]] = (struct action_time){0};
    if (count)
        memcpy(programs->links.edges, old, count * sizeof *old);
    for (size_t i = 0; i < reader->count; i++)
        if (reader->items[i].message &&
            (i == 0 || profile_ranks_compare_kinds(&reader->items[i - 1], &reader->items[i]) != 0))
            set_edge(&profile->plan, find_median(reader, &reader->items[i]));
    profile->drawn += edges;
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status profile_ranks_count_stages(const struct plan *plan, struct ranks_reader *reader)
{
    struct rank_program *ranks;
    int count;
    enum status status = complete_lists_fill(plan, &reader->scratch, &ranks, &count, reader->diag);
    for (int r = 0; status == STATUS_OK && r < count; r++)
        for (size_t i = 0; i < ranks[r].count; i++)
            if (ranks[r].actions[i].stage >= reader->stages)
                reader->stages = ranks[r].actions[i].stage + 1;
    return status;
}

static enum status profile_ranks_read_run(struct ranks_reader *reader, struct store *store,
                                          int64_t run)
{
    struct profile *profile = reader->profile;
    const struct run_info *info = &reader->trace.info;
    enum status status = profile_ranks_count_stages(&profile->plan, reader);
    if (status == STATUS_OK)
        status = store_load(store, run, STORE_ALL, STORE_ALL, &reader->scratch, &reader->trace,
                            reader->diag);
    if (status != STATUS_OK)
        return status;
    if (!is_usable(info))
        return diag_error(
            reader->diag, STATUS_INPUT, "run %" PRId64 " of %s %s", run, info->plan_name,
            info->kind == RUN_MEASURED ? "did not come to its end" : "is not measured");
    profile->run = run;
    profile->ranks = info->ranks;
    profile->iterations = 1;
    profile->device = arena_strdup(&profile->arena, info->device);
    if (!profile->device)
        return diag_no_memory(reader->diag);
    status = profile_ranks_take_spans(reader);
    if (status == STATUS_OK)
        status = set_stages(reader);
    return status == STATUS_OK ? set_messages(reader) : status;
}

enum status profile_read_ranks(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag)
{
    struct profile profile = {.plan = *plan};
    struct ranks_reader reader = {.profile = &profile, .diag = diag};
    enum status status = run < 0 ? profile_ranks_find_run(store, plan, &run, diag) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    arena_init(&profile.arena, 0);
    arena_init(&reader.scratch, 0);
    status = profile_ranks_read_run(&reader, store, run);
    arena_fini(&reader.scratch);
    if (status == STATUS_OK)
        *out = profile;
    else
        profile_fini(&profile);
    return status;
}
