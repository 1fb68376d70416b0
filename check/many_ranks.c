/* SPDX-License-Identifier: Apache-2.0 */
/* many_ranks.c - see many_ranks.h. */
#include "many_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "plan/blocks.h"

/* More choices of blocks are not tried; parts of a plan with fewer operations neither, unless they are asked for. */
enum { MOST_SYSTEMS = 5000, LEAST_OPS = 1000, NO_PARTS = -1 };

/* Blocks of a plan, the same one several times maybe, as a plan. */
struct excerpt {
    const struct plan *plan;
    const struct blocks *blocks;
    const int *chosen; /* ascending */
    int count;
    struct plan *out;
};

/* How often the block of entry `i` stands before it. */
static int excerpt_copy(const struct excerpt *s, int i)
{
    int copy = 0;
    while (copy < i && s->chosen[i - copy - 1] == s->chosen[i])
        copy++;
    return copy;
}

static int excerpt_rank(const struct excerpt *s, int entry, int rank)
{
    return entry * s->blocks->size + blocks_place(s->blocks, rank);
}

/* Blocks of roots are fewer than entries, or there is one entry. */
static int excerpt_root(const struct excerpt *s, const struct comm *comm, int entry, int root)
{
    if (root < 0)
        return root;
    return blocks_share(s->blocks, comm)
               ? excerpt_rank(s, blocks_of(s->blocks, root) % s->count, root)
               : excerpt_rank(s, entry, root);
}

/* A name of each copy, those of the first as in the plan: index + copy * count. */
static bool excerpt_names(const struct excerpt *s, const struct names *from, struct names *to)
{
    *to = (struct names){0};
    for (int copy = 0; copy < s->count; copy++)
        for (size_t i = 0; i < from->count; i++) {
            const char *name =
                copy == 0 ? from->items[i]
                          : arena_printf(&s->out->arena, "%s of copy %d", from->items[i], copy);
            if (!name || names_intern(to, &s->out->arena, name) < 0)
                return false;
        }
    return true;
}

static bool excerpt_flag_specs(const struct excerpt *s)
{
    const struct plan *plan = s->plan;
    struct plan *out = s->out;
    const size_t count = plan->flag_spec_count * (size_t)s->count;
    out->flag_specs = NULL;
    out->flag_spec_count = out->flag_spec_cap = 0;
    out->flag_table = (struct table){0};
    for (size_t i = 0; i < count; i++) {
        struct flag_spec spec = plan->flag_specs[i % plan->flag_spec_count];
        const int flag = names_find(&plan->flags, spec.name);
        if (flag >= 0)
            spec.name =
                out->flags.items[(size_t)flag + i / plan->flag_spec_count * plan->flags.count];
        if (!plan_add_flag_spec(out, &spec))
            return false;
    }
    return true;
}

static bool excerpt_queues(const struct excerpt *s)
{
    const struct plan *plan = s->plan;
    struct plan *out = s->out;
    out->queue_count = plan->queue_count * (size_t)s->count;
    out->queues = ARENA_ARRAY(&out->arena, out->queue_count + 1, struct queue);
    for (size_t i = 0; out->queues && i < out->queue_count; i++)
        out->queues[i] = plan->queues[i % plan->queue_count];
    return out->queues != NULL;
}

/* Communicators within a block are copied with it. */
static bool excerpt_comms(const struct excerpt *s)
{
    const struct plan *plan = s->plan;
    struct plan *out = s->out;
    out->comm_count = plan->comm_count * (size_t)s->count;
    out->comms = ARENA_ARRAY(&out->arena, out->comm_count + 1, struct comm);
    int *members = ARENA_ARRAY(&out->arena, out->comm_count * (size_t)out->ranks + 1, int);
    if (!out->comms || !members)
        return false;
    for (size_t c = 0; c < out->comm_count; c++, members += out->ranks) {
        struct comm *comm = &out->comms[c];
        const int copy = (int)(c / plan->comm_count);
        *comm = plan->comms[c % plan->comm_count];
        if (!comm->members)
            continue;
        const struct comm from = *comm;
        const bool shared = blocks_share(s->blocks, &from);
        comm->members = members;
        comm->member_count = 0;
        for (int entry = 0; entry < s->count; entry++)
            for (size_t m = 0; m < from.member_count; m++) {
                const int rank = from.members[m];
                if (shared ? blocks_of(s->blocks, rank) == 0
                           : blocks_of(s->blocks, rank) == s->chosen[entry] &&
                                 excerpt_copy(s, entry) == copy)
                    members[comm->member_count++] = excerpt_rank(s, entry, rank);
            }
        comm->member_count += comm->member_count == 0; /* of no chosen block: nobody calls it */
    }
    return true;
}

static struct host_op *excerpt_ops(const struct excerpt *s, const struct host_op *ops, size_t count,
                                   int entry);

static bool excerpt_add(struct arena *arena, struct index_list *to, const struct index_list *more)
{
    int *items = ARENA_ARRAY(arena, to->count + more->count + 1, int);
    if (!items)
        return false;
    if (to->count > 0)
        memcpy(items, to->items, to->count * sizeof *items);
    if (more->count > 0)
        memcpy(items + to->count, more->items, more->count * sizeof *items);
    to->items = items;
    to->count += more->count;
    return true;
}

/* An exchange has a part for each entry, what it has for that block: with a copy of itself what it has with itself. What
   it accesses for others it accesses still. */
static bool excerpt_parts(const struct excerpt *s, struct host_op *op, int entry)
{
    const struct plan *plan = s->plan;
    const struct p2p_part *parts = op->parts;
    const size_t count = op->part_count;
    const bool exchange = blocks_exchange(s->blocks, plan, op);
    struct index_list reads = {0}, writes = {0}; /* for whom is not here */
    struct p2p_part *own = ARENA_ARRAY(&s->out->arena, count * (size_t)s->count, struct p2p_part);
    if (!own)
        return false;
    op->parts = own;
    op->part_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct p2p_part part = parts[i];
        const struct comm *met = &plan->comms[part.comm >= 0 ? part.comm : op->comm];
        if (part.is_collective)
            part.root = excerpt_root(s, met, entry, part.root);
        if (part.device > 0)
            part.device = 1 + excerpt_rank(s, entry, part.device - 1);
        if (part.comm >= 0 && !blocks_share(s->blocks, met))
            part.comm += excerpt_copy(s, entry) * (int)plan->comm_count;
        part.reads.ranks = part.writes.ranks = NULL; /* all are its own */
        bool kept = false;
        for (int other = 0; other < s->count; other++) {
            if (exchange ? s->chosen[other] != blocks_of(s->blocks, parts[i].peer) : other != entry)
                continue;
            own[op->part_count] = part;
            if (!part.is_collective)
                own[op->part_count].peer = excerpt_rank(s, other, parts[i].peer);
            if (kept)
                own[op->part_count].reads = own[op->part_count].writes = (struct index_list){0};
            kept = true;
            op->part_count++;
        }
        if (!kept && (!excerpt_add(&s->out->arena, &reads, &part.reads) ||
                      !excerpt_add(&s->out->arena, &writes, &part.writes)))
            return false;
    }
    return op->part_count == 0 || (excerpt_add(&s->out->arena, &own[0].reads, &reads) &&
                                   excerpt_add(&s->out->arena, &own[0].writes, &writes));
}

static bool excerpt_op(const struct excerpt *s, struct host_op *op, int entry)
{
    const struct plan *plan = s->plan;
    const int copy = excerpt_copy(s, entry);
    const enum op_operand operand = op_operand(op->kind);
    const struct comm *comm = op->comm >= 0 ? &plan->comms[op->comm] : NULL;
    if (op->object >= 0)
        op->object += copy * (int)(operand == OPERAND_FLAG      ? plan->flags.count
                                   : operand == OPERAND_QUEUE   ? plan->queue_count
                                   : operand == OPERAND_BARRIER ? plan->barriers.count
                                                                : 0);
    if (op->accesses && (op->accesses->reads.ranks || op->accesses->writes.ranks)) {
        struct host_accesses *own = ARENA_NEW(&s->out->arena, struct host_accesses);
        if (!own)
            return false;
        *own = *op->accesses;
        own->reads.ranks = own->writes.ranks = NULL; /* all are its own */
        op->accesses = own;
    }
    if (op->device > 0)
        op->device = 1 + excerpt_rank(s, entry, op->device - 1);
    if (op->object_rank > 0)
        op->object_rank = 1 + excerpt_rank(s, entry, op->object_rank - 1);
    if (op->kind == OP_COLLECTIVE)
        op->root = excerpt_root(s, comm, entry, op->root);
    if (host_op_part_count(op) > 0 && !excerpt_parts(s, op, entry))
        return false;
    if (comm && !blocks_share(s->blocks, comm))
        op->comm += copy * (int)plan->comm_count;
    if (host_op_body_count(op) > 0)
        op->body = excerpt_ops(s, op->body, op->body_count, entry);
    return host_op_body_count(op) == 0 || op->body;
}

/* NULL: no memory. */
static struct host_op *excerpt_ops(const struct excerpt *s, const struct host_op *ops, size_t count,
                                   int entry)
{
    struct host_op *own = ARENA_ARRAY(&s->out->arena, count + 1, struct host_op);
    if (own && count > 0)
        memcpy(own, ops, count * sizeof *own);
    for (size_t i = 0; own && i < count; i++)
        if (!excerpt_op(s, &own[i], entry))
            return NULL;
    return own;
}

static bool excerpt_threads(const struct excerpt *s)
{
    const struct plan *plan = s->plan;
    struct plan *out = s->out;
    out->threads =
        ARENA_ARRAY(&out->arena, plan->thread_count * (size_t)s->count + 1, struct host_thread);
    out->graphs = ARENA_ARRAY(&out->arena, plan->graph_count + 1, struct graph);
    out->thread_count = 0;
    if (!out->threads || !out->graphs)
        return false;
    for (size_t g = 0; g < plan->graph_count; g++) {
        out->graphs[g] = plan->graphs[g];
        out->graphs[g].ops = excerpt_ops(s, plan->graphs[g].ops, plan->graphs[g].op_count, 0);
        if (!out->graphs[g].ops)
            return false;
    }
    for (int entry = 0; entry < s->count; entry++)
        for (size_t t = 0; t < plan->thread_count; t++) {
            if (blocks_of(s->blocks, plan->threads[t].rank) != s->chosen[entry])
                continue;
            struct host_thread *thread = &out->threads[out->thread_count++];
            *thread = plan->threads[t];
            thread->rank = excerpt_rank(s, entry, thread->rank);
            thread->ops = excerpt_ops(s, thread->ops, thread->op_count, entry);
            if (!thread->ops)
                return false;
        }
    return true;
}

/* A plan that refers to s->plan; its own memory is in its arena. */
static bool excerpt_make(struct excerpt *s)
{
    const struct plan *plan = s->plan;
    *s->out = *plan;
    arena_init(&s->out->arena, 0);
    s->out->ranks = s->count * s->blocks->size;
    s->out->memory_count = 0;
    return excerpt_names(s, &plan->flags, &s->out->flags) &&
           excerpt_names(s, &plan->barriers, &s->out->barriers) && excerpt_flag_specs(s) &&
           excerpt_queues(s) && excerpt_comms(s) && excerpt_threads(s);
}

/* ---- all that are needed ----------------------------------------------------------------------- */

struct crowd {
    const struct plan *plan;
    const struct verify_options *options;
    struct verify_report *report;
    struct diag *diag;
    struct blocks blocks;
    const char *open; /* what is not proved; NULL: nothing */
    int systems;
};

/* A proof of one block is enough for these: other blocks add nothing but order to its steps. */
static const unsigned of_one = 1u << PROPERTY_RACE | 1u << PROPERTY_LIFETIME |
                               1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL | 1u << PROPERTY_BOUND;

static const char *crowd_words(struct crowd *crowd, const int *chosen, int count,
                               const struct verify_report *found)
{
    char who[160];
    size_t length = 0;
    for (int i = 0; i < count && length < sizeof who; i++)
        length += (size_t)snprintf(who + length, sizeof who - length, "%s%d", i ? ", " : "",
                                   blocks_rank(&crowd->blocks, chosen[i], 0));
    const char *what = found->verdict == VERDICT_VIOLATED ? property_key(found->first)
                       : found->limit                     ? found->limit
                                                          : "not decided";
    return arena_printf(&crowd->report->arena,
                        count == 1 ? "rank %s without the others: %s"
                                   : "ranks that do what %s do, together: %s",
                        who, what);
}

static enum status crowd_ask(struct crowd *crowd, const int *chosen, int count)
{
    struct plan plan;
    struct excerpt excerpt = {crowd->plan, &crowd->blocks, chosen, count, &plan};
    struct verify_options options = *crowd->options;
    struct verify_report found;
    const unsigned asked = crowd->report->asked;
    options.many_ranks = NO_PARTS;
    options.found = NULL;
    options.quick = true;
    options.properties = count == 1 ? asked : asked & ~of_one;
    if (crowd->open || options.properties == 0)
        return STATUS_OK;
    enum status status = excerpt_make(&excerpt) ? STATUS_OK : diag_no_memory(crowd->diag);
    if (status == STATUS_OK)
        status = verify_plan(&plan, &options, &found, crowd->diag);
    if (status == STATUS_OK) {
        if (found.verdict != VERDICT_PROVED) {
            crowd->open = crowd_words(crowd, chosen, count, &found);
            status = crowd->open ? status : diag_no_memory(crowd->diag);
        }
        crowd->systems++;
        crowd->report->searched |= found.searched;
        crowd->report->states += found.states;
        crowd->report->transitions += found.transitions;
        crowd->report->seconds += found.seconds;
        verify_fini(&found);
    }
    arena_fini(&plan.arena);
    return status;
}

/* Each choice of `count` blocks, ascending; with repetition if other ranks are asked for. */
static enum status crowd_ask_all(struct crowd *crowd, int *chosen, int count)
{
    enum status status = STATUS_OK;
    const int step = crowd->options->many_ranks == 0;
    for (int i = 0; i < count; i++)
        chosen[i] = i * step;
    for (int at = 0; at >= 0 && status == STATUS_OK;) {
        status = crowd_ask(crowd, chosen, count);
        at = count - 1;
        while (at >= 0 && chosen[at] == crowd->blocks.count - 1 - (count - 1 - at) * step)
            at--;
        for (int i = at, next = at >= 0 ? chosen[at] + 1 : 0; at >= 0 && i < count; i++)
            chosen[i] = next + (i - at) * step;
    }
    return status;
}

struct shared_calls {
    const struct blocks *blocks;
    bool *called; /* per communicator that blocks share */
    int roots;    /* 1 + the highest block of a root */
};

static void shared_calls_count(struct shared_calls *calls, const struct plan *plan, int comm,
                               int root)
{
    if (comm < 0 || !blocks_share(calls->blocks, &plan->comms[comm]))
        return;
    calls->called[comm] = true;
    if (root >= 0 && blocks_of(calls->blocks, root) >= calls->roots)
        calls->roots = 1 + blocks_of(calls->blocks, root);
}

static void shared_calls_look(struct shared_calls *calls, const struct plan *plan,
                              const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        if (op_uses_comm(op->kind))
            shared_calls_count(calls, plan, op->comm, op->kind == OP_COLLECTIVE ? op->root : -1);
        for (size_t k = 0; k < host_op_part_count(op); k++)
            shared_calls_count(calls, plan, op->parts[k].comm >= 0 ? op->parts[k].comm : op->comm,
                               op->parts[k].is_collective ? op->parts[k].root : -1);
    }
}

/* As many blocks as communicators that they share can keep from going on; two can differ in a call; and roots need places. */
static int blocks_together(struct shared_calls *calls, const struct plan *plan)
{
    int comms = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        shared_calls_look(calls, plan, plan->threads[t].ops, plan->threads[t].op_count);
    for (size_t g = 0; g < plan->graph_count; g++)
        shared_calls_look(calls, plan, plan->graphs[g].ops, plan->graphs[g].op_count);
    for (size_t c = 0; c < plan->comm_count; c++)
        comms += calls->called[c];
    return max_int(2, max_int(comms, calls->roots));
}

/* Choices of `count` of `from`, with repetition; MOST_SYSTEMS + 1: more than that. */
static int count_choices(int from, int count)
{
    int64_t choices = 1;
    for (int i = 1; i <= count && choices <= MOST_SYSTEMS; i++)
        choices = choices * (from + i - 1) / i;
    return choices > MOST_SYSTEMS ? MOST_SYSTEMS + 1 : (int)choices;
}

static enum status crowd_tell(struct crowd *crowd, int together)
{
    struct verify_report *report = crowd->report;
    const int recorded = crowd->plan->ranks,
              ranks = crowd->options->many_ranks ? crowd->options->many_ranks : recorded;
    if (crowd->open && ranks == recorded)
        return STATUS_OK;
    char groups[64] = "";
    if (crowd->blocks.size > 1)
        snprintf(groups, sizeof groups, ", in groups of %d", crowd->blocks.size);
    report->ranks = ranks;
    report->any_ranks = !crowd->open && ranks > recorded;
    report->limit = NULL;
    report->hidden = NULL;
    report->verdict = crowd->open ? VERDICT_UNDECIDED : VERDICT_PROVED;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (report->asked & 1u << p)
            report->outcome[p] = crowd->open ? OUTCOME_UNDECIDED : OUTCOME_PROVED;
    if (crowd->open)
        report->hidden = arena_printf(&report->arena, "for %d ranks: %s", ranks, crowd->open);
    else {
        const char *unit = crowd->blocks.size == 1 ? "ranks" : "groups";
        report->parts =
            ranks > recorded
                ? arena_printf(
                      &report->arena,
                      "%d ranks, each of which does what one of the %d of the plan does%s: "
                      "%d parts of 1 and %d %s are proved, which proves all",
                      ranks, recorded, groups, crowd->systems, together, unit)
                : arena_printf(
                      &report->arena,
                      "its ranks meet in communicators only%s: %d parts of 1 and %d %s are "
                      "proved, which proves the whole",
                      groups, crowd->systems, together, unit);
    }
    return report->hidden || report->parts ? STATUS_OK : diag_no_memory(crowd->diag);
}

void many_ranks_option(struct verify_options *options, const struct plan *plan)
{
    const int asked = max_int(options->many_ranks, options->program.ranks);
    const bool more = plan->form == FORM_THREADS && asked > plan->ranks;
    options->many_ranks = more ? asked : 0;
    options->program.ranks = more ? 0 : asked;
}

bool many_ranks_may_do(const struct plan *plan, const struct verify_options *options)
{
    const struct search_limits *limits = &options->limits;
    size_t ops = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        ops += plan->threads[t].op_count;
    return plan->form == FORM_THREADS && options->many_ranks != NO_PARTS &&
           (options->many_ranks > 0 ||
            (plan->ranks > 1 && ops >= LEAST_OPS && !options->faults && !options->no_reduction &&
             !options->bitstate_bytes && !limits->states && !limits->steps));
}

/* The choices of blocks to ask, or why there are none. */
static enum status crowd_begin(struct crowd *crowd, int *together)
{
    const struct plan *plan = crowd->plan;
    const int ranks = crowd->options->many_ranks ? crowd->options->many_ranks : plan->ranks;
    enum status status = blocks_find(plan, ranks, &crowd->blocks, crowd->diag);
    if (status != STATUS_OK)
        return status;
    struct shared_calls calls = {.blocks = &crowd->blocks,
                                 .called = calloc(plan->comm_count + 1, sizeof *calls.called)};
    if (!calls.called)
        return diag_no_memory(crowd->diag);
    *together = blocks_together(&calls, plan);
    free(calls.called);
    if (count_choices(crowd->blocks.count, *together) > MOST_SYSTEMS)
        return diag_error(crowd->diag, STATUS_INPUT,
                          "%s: its ranks cannot stand for %d: its %d groups of ranks meet in too "
                          "many communicators, or have too many roots (%d)",
                          plan->file, ranks, crowd->blocks.count, *together);
    if (ranks < *together * crowd->blocks.size)
        return diag_error(crowd->diag, STATUS_USAGE, "%s: found --ranks=%d, expected at least %d",
                          plan->file, ranks, *together * crowd->blocks.size);
    return STATUS_OK;
}

enum status many_ranks_judge(const struct plan *plan, const struct verify_options *options,
                             struct verify_report *report, struct diag *diag)
{
    struct diag unused;
    struct crowd crowd = {.plan = plan, .options = options, .report = report};
    int together = 0, *chosen = NULL;
    diag_init(&unused);
    crowd.diag = options->many_ranks ? diag : &unused;
    enum status status = STATUS_OK;
    const bool faults = report->asked & 1u << PROPERTY_FAULTS;
    if (options->many_ranks && faults)
        status = diag_error(diag, STATUS_USAGE,
                            "%s: failure safety is asked of the ranks of the plan, not of %d",
                            plan->file, options->many_ranks);
    else if (!faults && report->verdict != VERDICT_VIOLATED &&
             (options->many_ranks || report->verdict != VERDICT_PROVED))
        status = crowd_begin(&crowd, &together);
    if (status == STATUS_OK && together > 0 &&
        (options->many_ranks || together <= crowd.blocks.count)) {
        chosen = calloc((size_t)together, sizeof *chosen);
        status = chosen ? crowd_ask_all(&crowd, chosen, 1) : diag_no_memory(crowd.diag);
        if (status == STATUS_OK && !crowd.open)
            status = crowd_ask_all(&crowd, chosen, together);
        if (status == STATUS_OK)
            status = crowd_tell(&crowd, together);
        free(chosen);
    }
    blocks_fini(&crowd.blocks);
    diag_fini(&unused);
    return options->many_ranks || status == STATUS_SYSTEM ? status : STATUS_OK;
}
