/*
 * programs.c - see programs.h.
 *
 * A rank is lowered in three walks over its list: its actions become steps (one device or host
 * operation each; with `batch` neighbouring messages share one), each step finds the earlier steps
 * on other streams it has to wait for, and the steps are written down as host operations with the
 * records and waits between them.
 *
 * Events are reused: one serves from its record to its last wait, which is right because a wait
 * means the event as last recorded. So a rank needs as many as it has results in flight, not one a
 * message. Event F.2 is the third of those that stand for forward passes.
 */
#include "programs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "comms.h"
#include "generate.h"

enum step_kind { STEP_KERNEL, STEP_HOST, STEP_GROUP };

/* One operation. Indices + 1 mean 0: none. */
struct step {
    enum step_kind kind;
    const struct action *action; /* a pass; GROUP: its first message */
    int stream, comm;
    int64_t time_ns;
    size_t first_message, last_message, message_count; /* GROUP: rank_steps.messages */
    size_t first_wait, wait_count;                     /* rank_steps.waits: what it waits for */
    size_t first_waiter;                               /* index + 1 into waits: who waits for it */
    size_t waiters_left;                               /* of those, not yet written down */
    size_t event_slot;                                 /* held while waiters are left */
};

struct message {
    const struct action *action;
    size_t next; /* index + 1: in the same group */
};

/* A stream waits for a step on another stream. */
struct wait_for {
    size_t producer;
    int stream;
    size_t next; /* index + 1: the next wait for the same producer */
};

/* The rank being lowered; arrays big enough for the longest list. */
struct rank_steps {
    struct step *steps;
    struct message *messages;
    struct wait_for *waits;
    size_t step_count, message_count, wait_count;
    size_t run_first; /* the first step of the current run of neighbouring messages */
};

/* The latest step that did something, index + 1. A stage lives on one rank, so one set of tables
   serves all ranks. The first four are per stage and microbatch. */
struct latest {
    uint32_t *forward, *backward, *recv_forward, *recv_backward;
    uint32_t unshard[PLAN_MAX_STAGE + 1], stage_backward[PLAN_MAX_STAGE + 1];
};

/* The events that stand for one kind of action, and those of them unused now. */
struct event_pool {
    int *ids; /* per slot: plan->events */
    size_t count, cap;
    size_t *unused;
    size_t unused_count, unused_cap;
};

/* A communicator, the stream that carries its messages and the ranks or direction it is for. */
struct route {
    int comm, stream;
};

struct lowering {
    const struct plan *plan;
    struct plan *out;
    struct diag *diag;
    struct arena scratch;
    struct rank_program *ranks;
    int rank_count;
    struct stage_map map;
    int64_t times[ACTION_IDLE];
    int compute;          /* stream */
    struct route *routes; /* comm -1: not made yet; see route_cell */
    size_t comm_cap, buffer_cap;
    int *activations, *gradients; /* per stage and microbatch: buffer + 1; NULL: no buffers */
    struct latest latest;
    struct event_pool events[ACTION_IDLE];
    struct rank_steps now;
    size_t op_count; /* of all ranks so far */
};

static size_t cell_count(const struct lowering *lowering)
{
    return (size_t)lowering->map.stages * (size_t)lowering->map.microbatches;
}

static size_t cell_of(const struct lowering *lowering, int stage, int microbatch)
{
    return (size_t)stage * (size_t)lowering->map.microbatches + (size_t)microbatch;
}

/* ---- what the plan stands for ---------------------------------------------------------------- */

/* Messages from the generators and from comms.c know the position but not the file. */
static void name_file(struct diag *diag, size_t first, const char *file)
{
    for (size_t i = first; i < diag->count; i++) {
        if (diag->messages[i].file || !file)
            continue;
        diag->messages[i].file = strdup(file);
        if (!diag->messages[i].file)
            diag->out_of_memory = true;
    }
}

static enum status complete(const struct plan *plan, struct arena *arena,
                            struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    enum status status = STATUS_OK;
    if (programs->generate.given) {
        status = generate_program(&programs->generate, arena, ranks, rank_count, diag);
    } else {
        *rank_count = plan->ranks;
        *ranks = ARENA_ARRAY(arena, (size_t)plan->ranks, struct rank_program);
        if (!*ranks)
            return diag_no_memory(diag);
        memcpy(*ranks, programs->ranks, (size_t)plan->ranks * sizeof **ranks);
    }
    if (status == STATUS_OK && !comms_present(*ranks, *rank_count))
        status = comms_add(arena, *ranks, *rank_count, diag);
    return status;
}

enum status programs_complete(const struct plan *plan, struct arena *arena,
                              struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    size_t first = diag->count;
    struct rank_program *made = NULL;
    int count = 0;
    enum status status = complete(plan, arena, &made, &count, diag);
    if (status != STATUS_OK) {
        name_file(diag, first, plan->file);
        return status;
    }
    *ranks = made;
    *rank_count = count;
    return STATUS_OK;
}

/* ---- checks and costs ------------------------------------------------------------------------ */

/* A message must have someone at its other end, though it may not be expected there. */
static enum status check_partner(const struct lowering *lowering, int rank,
                                 const struct action *action)
{
    int partner = comms_partner(action);
    if (comms_rank_of(&lowering->map, partner) >= 0)
        return STATUS_OK;
    char name[ACTION_NAME];
    comms_action_name(action, name, sizeof name);
    if (partner < 0)
        return diag_error_at(lowering->diag, lowering->plan->file, NULL, action->mark,
                             "found %s on rank %d, expected no such message: stage 0 is the first",
                             name, rank);
    return diag_error_at(lowering->diag, lowering->plan->file, NULL, action->mark,
                         "found %s on rank %d, but no rank holds stage %d", name, rank, partner);
}

static enum status check_partners(const struct lowering *lowering)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        for (size_t i = 0; i < lowering->ranks[rank].count; i++) {
            const struct action *action = &lowering->ranks[rank].actions[i];
            if (!comms_is_message(action))
                continue;
            enum status status = check_partner(lowering, rank, action);
            if (status != STATUS_OK)
                return status;
        }
    return STATUS_OK;
}

static bool is_used(const struct lowering *lowering, enum action_kind kind)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        for (size_t i = 0; i < lowering->ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&lowering->ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                if (parts[k].kind == kind)
                    return true;
        }
    return false;
}

/* B costs what I and W cost together unless it is given. A pass forgotten in `times:` is worth a
   warning: it would make a prediction too good. */
static void fill_times(struct lowering *lowering)
{
    const struct action_time *given = lowering->plan->programs.times;
    bool known[ACTION_IDLE], any = false;
    for (int kind = 0; kind < ACTION_IDLE; kind++) {
        known[kind] = given[kind].given;
        any |= known[kind];
        lowering->times[kind] = given[kind].given ? given[kind].time_ns : 0;
    }
    if (!known[ACTION_B] && known[ACTION_I] && known[ACTION_W]) {
        lowering->times[ACTION_B] = lowering->times[ACTION_I] + lowering->times[ACTION_W];
        known[ACTION_B] = true;
    }
    static const enum action_kind passes[] = {ACTION_F, ACTION_I, ACTION_W, ACTION_B};
    for (size_t i = 0; any && i < sizeof passes / sizeof passes[0]; i++)
        if (!known[passes[i]] && is_used(lowering, passes[i]))
            diag_warn(lowering->diag, "%s: times: does not say how long %s takes; it takes no time",
                      lowering->plan->file, action_text(passes[i]));
}

/* ---- communicators --------------------------------------------------------------------------- */

static bool is_forward(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_RECV_F;
}

static bool is_send(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_SEND_B;
}

/* Sender and receiver of a message, as ranks. */
static void find_ends(const struct lowering *lowering, const struct action *message, int *from,
                      int *to)
{
    int here = comms_rank_of(&lowering->map, message->stage);
    int there = comms_rank_of(&lowering->map, comms_partner(message));
    *from = is_send(message) ? here : there;
    *to = is_send(message) ? there : here;
}

/* Which of the lowering's routes a message takes, and what tells it apart from the others: "" or
   ".forward", ".0-1", ".0>1". */
static struct route *route_cell(struct lowering *lowering, const struct action *message,
                                char *suffix, size_t cap)
{
    int from, to;
    find_ends(lowering, message, &from, &to);
    int low = from < to ? from : to, high = from < to ? to : from;
    size_t width = (size_t)lowering->rank_count;
    switch (lowering->plan->programs.fifo) {
    case FIFO_RANK: snprintf(suffix, cap, "%s", ""); return &lowering->routes[0];
    case FIFO_DIRECTION:
        snprintf(suffix, cap, "%s", is_forward(message) ? ".forward" : ".backward");
        return &lowering->routes[is_forward(message) ? 0 : 1];
    case FIFO_PAIR:
        snprintf(suffix, cap, ".%d-%d", low, high);
        return &lowering->routes[(size_t)low * width + (size_t)high];
    case FIFO_EDGE: break;
    }
    snprintf(suffix, cap, ".%d>%d", from, to);
    return &lowering->routes[(size_t)from * width + (size_t)to];
}

/* The communicator of that name as the plan's `machine:` describes it, NULL if it does not. */
static const struct comm *find_described(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->comm_count; i++)
        if (strcmp(plan->comms[i].name, name) == 0)
            return &plan->comms[i];
    return NULL;
}

static bool fill_members(struct lowering *lowering, struct comm *comm, const struct action *message)
{
    enum fifo_rule fifo = lowering->plan->programs.fifo;
    if (fifo == FIFO_RANK || fifo == FIFO_DIRECTION)
        return true;
    int from, to;
    find_ends(lowering, message, &from, &to);
    comm->members = ARENA_ARRAY(&lowering->out->arena, 2, int);
    if (!comm->members)
        return false;
    comm->members[0] = from < to ? from : to;
    comm->members[1] = from < to ? to : from;
    comm->member_count = 2;
    return true;
}

static bool make_route(struct lowering *lowering, struct route *route, const char *suffix,
                       const struct action *message)
{
    struct plan *out = lowering->out;
    const struct programs *programs = &lowering->plan->programs;
    struct comm comm = {.name = arena_printf(&out->arena, "pp%s", suffix),
                        .eager_messages = programs->eager_messages,
                        .eager_bytes = programs->eager_bytes};
    const char *stream = arena_printf(&out->arena, "p2p%s", suffix);
    if (!comm.name || !stream || !fill_members(lowering, &comm, message))
        return false;
    const struct comm *described = find_described(lowering->plan, comm.name);
    if (described) {
        comm.eager_messages = described->eager_messages;
        comm.eager_bytes = described->eager_bytes;
        comm.mark = described->mark;
    }
    if (!arena_grow(&out->arena, (void **)&out->comms, out->comm_count, &lowering->comm_cap,
                    sizeof comm))
        return false;
    route->stream = names_intern(&out->streams, &out->arena, stream);
    route->comm = (int)out->comm_count;
    out->comms[out->comm_count++] = comm;
    return route->stream >= 0;
}

/* The route of a message, made at its first use; NULL when memory is exhausted. */
static const struct route *route_of(struct lowering *lowering, const struct action *message)
{
    char suffix[32];
    struct route *route = route_cell(lowering, message, suffix, sizeof suffix);
    if (route->comm < 0 && !make_route(lowering, route, suffix, message))
        return NULL;
    return route;
}

static bool begin_routes(struct lowering *lowering)
{
    enum fifo_rule fifo = lowering->plan->programs.fifo;
    size_t width = (size_t)lowering->rank_count;
    size_t count = fifo == FIFO_RANK || fifo == FIFO_DIRECTION ? 2 : width * width;
    lowering->routes = ARENA_ARRAY(&lowering->scratch, count, struct route);
    for (size_t i = 0; lowering->routes && i < count; i++)
        lowering->routes[i].comm = -1;
    return lowering->routes != NULL;
}

/* A communicator the plan describes but no message uses is a misspelling. */
static enum status check_described(const struct lowering *lowering)
{
    const struct plan *plan = lowering->plan, *out = lowering->out;
    for (size_t i = 0; i < plan->comm_count; i++) {
        bool made = false;
        for (size_t k = 0; k < out->comm_count; k++)
            made |= strcmp(out->comms[k].name, plan->comms[i].name) == 0;
        if (!made)
            return diag_error_at(lowering->diag, plan->file, NULL, plan->comms[i].mark,
                                 "found communicator %s, which no message uses, expected %s%s",
                                 plan->comms[i].name,
                                 out->comm_count ? "one that `p2p: {fifo}` makes, like " : "none",
                                 out->comm_count ? out->comms[0].name : "");
    }
    return STATUS_OK;
}

/* ---- actions to steps ------------------------------------------------------------------------ */

static struct step *add_step(struct rank_steps *now, struct step step)
{
    now->steps[now->step_count] = step;
    return &now->steps[now->step_count++];
}

/* The parts of a composite share the time given for it in proportion to their own. */
static int64_t part_time(const struct lowering *lowering, const struct action *action,
                         const struct action *part)
{
    int64_t own = lowering->times[part->kind];
    if (part == action || !lowering->plan->programs.times[action->kind].given)
        return own;
    double all = 0;
    for (size_t i = 0; i < action->part_count; i++)
        all += (double)lowering->times[action->parts[i].kind];
    double share = all > 0 ? (double)own / all : 1.0 / (double)action->part_count;
    return (int64_t)((double)lowering->times[action->kind] * share + 0.5);
}

static bool step_part(struct lowering *lowering, const struct action *action,
                      const struct action *part)
{
    struct step step = {.action = part,
                        .stream = lowering->compute,
                        .comm = -1,
                        .time_ns = part_time(lowering, action, part)};
    if (part->kind == ACTION_RESHARD) {
        step.kind = STEP_HOST;
        step.stream = -1;
    } else if (part->kind == ACTION_UNSHARD || part->kind == ACTION_REDUCE_GRAD) {
        step.stream = names_intern(&lowering->out->streams, &lowering->out->arena, "fsdp");
        if (step.stream < 0)
            return false;
    }
    add_step(&lowering->now, step);
    lowering->now.run_first = lowering->now.step_count;
    return true;
}

/* The group a message joins: with `batch` that of its neighbours on the same communicator. */
static struct step *find_group(struct lowering *lowering, const struct route *route)
{
    struct rank_steps *now = &lowering->now;
    for (size_t i = now->run_first; lowering->plan->programs.batch && i < now->step_count; i++)
        if (now->steps[i].comm == route->comm)
            return &now->steps[i];
    return NULL;
}

static bool step_message(struct lowering *lowering, const struct action *action)
{
    struct rank_steps *now = &lowering->now;
    int from, to;
    find_ends(lowering, action, &from, &to);
    if (from == to)
        return true;
    const struct route *route = route_of(lowering, action);
    if (!route)
        return false;
    size_t message = now->message_count++;
    now->messages[message] = (struct message){.action = action};
    struct step *group = find_group(lowering, route);
    if (group) {
        now->messages[group->last_message].next = message + 1;
    } else {
        group = add_step(now, (struct step){.kind = STEP_GROUP,
                                            .action = action,
                                            .stream = route->stream,
                                            .comm = route->comm,
                                            .first_message = message});
    }
    group->last_message = message;
    group->message_count++;
    return true;
}

static bool make_steps(struct lowering *lowering, const struct rank_program *list)
{
    struct rank_steps *now = &lowering->now;
    now->step_count = now->message_count = now->wait_count = now->run_first = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i], *parts;
        size_t count = comms_parts(action, &parts);
        for (size_t k = 0; k < count; k++)
            if (comms_is_message(&parts[k]) ? !step_message(lowering, &parts[k])
                                            : !step_part(lowering, action, &parts[k]))
                return false;
    }
    return true;
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* Step `at` waits for `producer` (index + 1), unless its stream does so already or it is the same.
 */
static void wait_for(struct rank_steps *now, size_t at, uint32_t producer)
{
    if (producer == 0)
        return;
    struct step *step = &now->steps[at], *from = &now->steps[producer - 1];
    if (from->stream == step->stream)
        return;
    for (size_t i = from->first_waiter; i; i = now->waits[i - 1].next)
        if (now->waits[i - 1].stream == step->stream)
            return;
    now->waits[now->wait_count] = (struct wait_for){
        .producer = producer - 1, .stream = step->stream, .next = from->first_waiter};
    from->first_waiter = ++now->wait_count;
    from->waiters_left++;
    step->wait_count++;
}

static void link_message(struct lowering *lowering, size_t at, const struct action *message)
{
    struct latest *latest = &lowering->latest;
    size_t cell = cell_of(lowering, message->stage, message->microbatch);
    switch (message->kind) {
    case ACTION_SEND_F: wait_for(&lowering->now, at, latest->forward[cell]); break;
    case ACTION_SEND_B: wait_for(&lowering->now, at, latest->backward[cell]); break;
    case ACTION_RECV_F: latest->recv_forward[cell] = (uint32_t)at + 1; break;
    default: latest->recv_backward[cell] = (uint32_t)at + 1; break;
    }
}

static void link_pass(struct lowering *lowering, size_t at, const struct action *pass)
{
    struct latest *latest = &lowering->latest;
    struct rank_steps *now = &lowering->now;
    size_t cell = cell_of(lowering, pass->stage, pass->microbatch);
    uint32_t number = (uint32_t)at + 1;
    wait_for(now, at, latest->unshard[pass->stage]);
    if (pass->kind == ACTION_F) {
        wait_for(now, at, latest->recv_forward[cell]);
        latest->forward[cell] = number;
        return;
    }
    latest->stage_backward[pass->stage] = number;
    if (pass->kind == ACTION_W)
        return;
    wait_for(now, at, latest->recv_backward[cell]);
    latest->backward[cell] = number;
}

static void link_step(struct lowering *lowering, size_t at)
{
    struct rank_steps *now = &lowering->now;
    struct step *step = &now->steps[at];
    struct latest *latest = &lowering->latest;
    step->first_wait = now->wait_count;
    if (step->kind == STEP_GROUP) {
        for (size_t m = step->first_message + 1; m; m = now->messages[m - 1].next)
            link_message(lowering, at, now->messages[m - 1].action);
        return;
    }
    switch (step->action->kind) {
    case ACTION_UNSHARD: latest->unshard[step->action->stage] = (uint32_t)at + 1; break;
    case ACTION_REDUCE_GRAD: wait_for(now, at, latest->stage_backward[step->action->stage]); break;
    case ACTION_RESHARD: break;
    default: link_pass(lowering, at, step->action); break;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* An event for results of this kind of action that nobody waits for any more, or a new one. */
static bool take_event(struct lowering *lowering, enum action_kind kind, size_t *slot)
{
    struct plan *out = lowering->out;
    struct event_pool *pool = &lowering->events[kind];
    if (pool->unused_count > 0) {
        *slot = pool->unused[--pool->unused_count];
        return true;
    }
    const char *text = action_text(kind);
    const char *name = pool->count ? arena_printf(&out->arena, "%s.%zu", text, pool->count) : text;
    if (!name || !arena_grow(&lowering->scratch, (void **)&pool->ids, pool->count, &pool->cap,
                             sizeof *pool->ids))
        return false;
    if (!arena_grow(&out->arena, (void **)&out->events.items, out->events.count, &out->events.cap,
                    sizeof *out->events.items))
        return false;
    out->events.items[out->events.count] = name;
    pool->ids[pool->count] = (int)out->events.count++;
    *slot = pool->count++;
    return true;
}

static bool drop_event(struct lowering *lowering, enum action_kind kind, size_t slot)
{
    struct event_pool *pool = &lowering->events[kind];
    if (!arena_grow(&lowering->scratch, (void **)&pool->unused, pool->unused_count,
                    &pool->unused_cap, sizeof *pool->unused))
        return false;
    pool->unused[pool->unused_count++] = slot;
    return true;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static int declare_buffer(struct lowering *lowering, int *cell, const char *what, int stage,
                          int microbatch)
{
    struct plan *out = lowering->out;
    if (*cell)
        return *cell - 1;
    struct buffer buffer = {.name = arena_printf(&out->arena, "%s.%d.%d", what, stage, microbatch),
                            .scope = SCOPE_SHARED,
                            .bytes = lowering->plan->programs.p2p_bytes,
                            .declared = true};
    if (!buffer.name || !arena_grow(&out->arena, (void **)&out->buffers, out->buffer_count,
                                    &lowering->buffer_cap, sizeof buffer))
        return -1;
    out->buffers[out->buffer_count] = buffer;
    *cell = (int)++out->buffer_count;
    return *cell - 1;
}

/* The output of a stage for a microbatch, on whatever rank. */
static bool use_activation(struct lowering *lowering, struct index_list *list, int stage,
                           int microbatch)
{
    int *cell = &lowering->activations[cell_of(lowering, stage, microbatch)];
    list->items[list->count] = declare_buffer(lowering, cell, "act", stage, microbatch);
    return list->items[list->count++] >= 0;
}

/* The gradient of a stage's input. */
static bool use_gradient(struct lowering *lowering, struct index_list *list, int stage,
                         int microbatch)
{
    int *cell = &lowering->gradients[cell_of(lowering, stage, microbatch)];
    list->items[list->count] = declare_buffer(lowering, cell, "grad", stage, microbatch);
    return list->items[list->count++] >= 0;
}

static bool access_pass(struct lowering *lowering, struct host_op *op, const struct action *pass)
{
    int s = pass->stage, m = pass->microbatch, last = lowering->map.stages - 1;
    bool ok = s == 0 || use_activation(lowering, &op->reads, s - 1, m);
    if (pass->kind == ACTION_F)
        return ok && use_activation(lowering, &op->writes, s, m);
    ok = ok && (s == last || use_gradient(lowering, &op->reads, s + 1, m));
    if (pass->kind == ACTION_W)
        return ok;
    ok = ok && use_activation(lowering, &op->reads, s, m);
    return ok && (s == 0 || use_gradient(lowering, &op->writes, s, m));
}

static bool access_message(struct lowering *lowering, struct host_op *op,
                           const struct action *message)
{
    int partner = comms_partner(message), m = message->microbatch;
    switch (message->kind) {
    case ACTION_SEND_F: return use_activation(lowering, &op->reads, message->stage, m);
    case ACTION_RECV_F: return use_activation(lowering, &op->writes, partner, m);
    case ACTION_SEND_B: return use_gradient(lowering, &op->reads, message->stage, m);
    default: return use_gradient(lowering, &op->writes, partner, m);
    }
}

/* What an operation reads and writes. */
static bool add_accesses(struct lowering *lowering, struct host_op *op, const struct step *step)
{
    enum { MOST_OF_A_PASS = 3 };
    if (!lowering->activations || step->kind == STEP_HOST ||
        (step->kind == STEP_KERNEL && !action_has_microbatch(step->action->kind)))
        return true;
    size_t most = step->message_count > MOST_OF_A_PASS ? step->message_count : MOST_OF_A_PASS;
    op->reads.items = ARENA_ARRAY(&lowering->out->arena, most, int);
    op->writes.items = ARENA_ARRAY(&lowering->out->arena, most, int);
    if (!op->reads.items || !op->writes.items)
        return false;
    if (step->kind == STEP_KERNEL)
        return access_pass(lowering, op, step->action);
    const struct message *messages = lowering->now.messages;
    for (size_t i = step->first_message + 1; i; i = messages[i - 1].next)
        if (!access_message(lowering, op, messages[i - 1].action))
            return false;
    return true;
}

/* ---- steps to host operations ---------------------------------------------------------------- */

static struct host_op *add_op(struct host_thread *thread, enum op_kind kind, struct mark mark)
{
    struct host_op *op = &thread->ops[thread->op_count++];
    *op = (struct host_op){.kind = kind, .mark = mark, .stream = -1, .object = -1, .comm = -1};
    op->work.comm = -1;
    return op;
}

static void write_event_op(struct lowering *lowering, struct host_thread *thread, enum op_kind kind,
                           const struct step *producer, int stream, struct mark mark)
{
    struct host_op *op = add_op(thread, kind, mark);
    op->object = lowering->events[producer->action->kind].ids[producer->event_slot];
    op->stream = stream;
}

static bool write_waits(struct lowering *lowering, struct host_thread *thread,
                        const struct step *step)
{
    struct rank_steps *now = &lowering->now;
    for (size_t i = step->first_wait; i < step->first_wait + step->wait_count; i++) {
        struct step *producer = &now->steps[now->waits[i].producer];
        write_event_op(lowering, thread, OP_WAIT, producer, step->stream, step->action->mark);
        if (--producer->waiters_left == 0 &&
            !drop_event(lowering, producer->action->kind, producer->event_slot))
            return false;
    }
    return true;
}

static bool write_record(struct lowering *lowering, struct host_thread *thread, struct step *step)
{
    if (step->waiters_left == 0)
        return true;
    if (!take_event(lowering, step->action->kind, &step->event_slot))
        return false;
    write_event_op(lowering, thread, OP_RECORD, step, step->stream, step->action->mark);
    return true;
}

static bool write_part(struct lowering *lowering, struct p2p_part *part,
                       const struct action *message)
{
    int from, to;
    find_ends(lowering, message, &from, &to);
    int arrives_at = is_send(message) ? comms_partner(message) : message->stage;
    *part = (struct p2p_part){.send = is_send(message),
                              .tag = arena_printf(&lowering->out->arena, "%s%d@%d",
                                                  is_forward(message) ? "F" : "B",
                                                  message->microbatch, arrives_at),
                              .peer = is_send(message) ? to : from,
                              .bytes = lowering->plan->programs.p2p_bytes,
                              .mark = message->mark};
    return part->tag != NULL;
}

static bool write_group(struct lowering *lowering, struct host_op *op, const struct step *step)
{
    const struct message *messages = lowering->now.messages;
    op->comm = step->comm;
    op->parts = ARENA_ARRAY(&lowering->out->arena, step->message_count, struct p2p_part);
    if (!op->parts)
        return false;
    for (size_t i = step->first_message + 1; i; i = messages[i - 1].next)
        if (!write_part(lowering, &op->parts[op->part_count++], messages[i - 1].action))
            return false;
    return true;
}

static bool write_step(struct lowering *lowering, struct host_thread *thread, struct step *step)
{
    static const enum op_kind kinds[] = {
        [STEP_KERNEL] = OP_LAUNCH, [STEP_HOST] = OP_HOST, [STEP_GROUP] = OP_GROUP};
    if (!write_waits(lowering, thread, step))
        return false;
    struct host_op *op = add_op(thread, kinds[step->kind], step->action->mark);
    op->stream = step->stream;
    op->time_ns = step->time_ns;
    op->sm = step->kind == STEP_HOST ? 0 : 1;
    if (step->kind == STEP_GROUP) {
        if (!write_group(lowering, op, step))
            return false;
    } else {
        char name[ACTION_NAME];
        op->name =
            arena_strdup(&lowering->out->arena, comms_action_name(step->action, name, sizeof name));
        if (!op->name)
            return false;
    }
    return add_accesses(lowering, op, step) && write_record(lowering, thread, step);
}

/* How many operations the steps take: each one, its waits, a record if somebody waits for it. */
static size_t count_ops(const struct rank_steps *now)
{
    size_t count = now->step_count + now->wait_count;
    for (size_t i = 0; i < now->step_count; i++)
        count += now->steps[i].waiters_left > 0;
    return count;
}

static enum status write_thread(struct lowering *lowering, struct host_thread *thread)
{
    struct rank_steps *now = &lowering->now;
    size_t count = count_ops(now) + 1;
    lowering->op_count += count;
    if (lowering->op_count > PLAN_MAX_OPS)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the rank programs need more than %d machine operations, expected a "
                          "smaller schedule",
                          lowering->plan->file, PLAN_MAX_OPS);
    thread->ops = ARENA_ARRAY(&lowering->out->arena, count, struct host_op);
    if (!thread->ops)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < now->step_count; i++)
        if (!write_step(lowering, thread, &now->steps[i]))
            return diag_no_memory(lowering->diag);
    struct host_op *end = add_op(thread, OP_SYNC, (struct mark){0, 0});
    end->sync = SYNC_DEVICE;
    assert(thread->op_count == count);
    return STATUS_OK;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

/* A rank has the events of the ranks before it, all unused; the first ones go first. */
static void reset_events(struct lowering *lowering)
{
    for (int kind = 0; kind < ACTION_IDLE; kind++) {
        struct event_pool *pool = &lowering->events[kind];
        assert(pool->unused_count == pool->count);
        for (size_t i = 0; i < pool->count; i++)
            pool->unused[i] = pool->count - 1 - i;
    }
}

static enum status lower_rank(struct lowering *lowering, int rank)
{
    struct host_thread *thread = &lowering->out->threads[rank];
    *thread = (struct host_thread){.rank = rank, .name = "main"};
    reset_events(lowering);
    if (!make_steps(lowering, &lowering->ranks[rank]))
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < lowering->now.step_count; i++)
        link_step(lowering, i);
    return write_thread(lowering, thread);
}

static size_t part_total(const struct rank_program *list)
{
    size_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        total += comms_parts(&list->actions[i], &parts);
    }
    return total;
}

static bool begin_buffers(struct lowering *lowering, size_t total)
{
    if (total > PROGRAMS_MAX_TRACKED)
        return true;
    size_t cells = cell_count(lowering);
    lowering->activations = ARENA_ARRAY(&lowering->scratch, cells, int);
    lowering->gradients = ARENA_ARRAY(&lowering->scratch, cells, int);
    return lowering->activations && lowering->gradients;
}

/* Tables and arrays as big as the biggest rank needs them. */
static bool begin_tables(struct lowering *lowering)
{
    struct arena *scratch = &lowering->scratch;
    struct latest *latest = &lowering->latest;
    struct rank_steps *now = &lowering->now;
    size_t cells = cell_count(lowering), most = 0, total = 0;
    for (int rank = 0; rank < lowering->rank_count; rank++) {
        size_t count = part_total(&lowering->ranks[rank]);
        most = count > most ? count : most;
        total += count;
    }
    latest->forward = ARENA_ARRAY(scratch, cells, uint32_t);
    latest->backward = ARENA_ARRAY(scratch, cells, uint32_t);
    latest->recv_forward = ARENA_ARRAY(scratch, cells, uint32_t);
    latest->recv_backward = ARENA_ARRAY(scratch, cells, uint32_t);
    now->steps = ARENA_ARRAY(scratch, most, struct step);
    now->messages = ARENA_ARRAY(scratch, most, struct message);
    now->waits = ARENA_ARRAY(scratch, 2 * most, struct wait_for); /* a pass waits for two at most */
    return begin_buffers(lowering, total) && begin_routes(lowering) && !scratch->failed;
}

static enum status begin(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    size_t first = lowering->diag->count;
    enum status status = programs_complete(plan, &lowering->scratch, &lowering->ranks,
                                           &lowering->rank_count, lowering->diag);
    if (status == STATUS_OK)
        status = comms_map_stages(&lowering->scratch, lowering->ranks, lowering->rank_count,
                                  &lowering->map, lowering->diag);
    if (status != STATUS_OK) {
        name_file(lowering->diag, first, plan->file);
        return status;
    }
    status = check_partners(lowering);
    if (status != STATUS_OK)
        return status;
    fill_times(lowering);
    struct plan *out = lowering->out;
    lowering->compute = names_intern(&out->streams, &out->arena, "compute");
    out->ranks = lowering->rank_count;
    out->thread_count = (size_t)out->ranks;
    out->threads = ARENA_ARRAY(&out->arena, out->thread_count, struct host_thread);
    if (lowering->compute < 0 || !out->threads || !begin_tables(lowering))
        return diag_no_memory(lowering->diag);
    return STATUS_OK;
}

static bool copy_text(struct arena *arena, const char *text, const char **out)
{
    *out = text ? arena_strdup(arena, text) : NULL;
    return !text || *out;
}

static bool copy_head(struct plan *out, const struct plan *plan)
{
    out->form = FORM_THREADS;
    out->machine = plan->machine;
    out->on_failure = plan->on_failure;
    out->expect = plan->expect;
    out->expect_dataflow = plan->expect_dataflow;
    return copy_text(&out->arena, plan->file, &out->file) &&
           copy_text(&out->arena, plan->name, &out->name) &&
           copy_text(&out->arena, plan->about, &out->about) &&
           copy_text(&out->arena, plan->source, &out->source);
}

enum status programs_lower(const struct plan *plan, struct plan *out, struct diag *diag)
{
    assert(plan->form == FORM_PROGRAMS);
    struct plan made;
    plan_init(&made);
    struct lowering lowering = {.plan = plan, .out = &made, .diag = diag};
    arena_init(&lowering.scratch, 0);
    enum status status = copy_head(&made, plan) ? begin(&lowering) : diag_no_memory(diag);
    for (int rank = 0; status == STATUS_OK && rank < lowering.rank_count; rank++)
        status = lower_rank(&lowering, rank);
    if (status == STATUS_OK)
        status = check_described(&lowering);
    arena_fini(&lowering.scratch);
    if (status == STATUS_OK)
        *out = made;
    else
        plan_fini(&made);
    return status;
}
