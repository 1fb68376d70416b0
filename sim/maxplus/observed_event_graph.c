/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observed_event_graph.c - see observed_event_graph.h.
 *
 * A step is known by its class, what is done, and its iteration. Every operation has four classes (a
 * worker takes the instance that begins with it, a thread executes it, a stream starts it, it finishes),
 * every driver two. In classes that do not occur nothing happens.
 */
#include "observed_event_graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "enabling_steps.h"
#include "sim/engine/sharing.h"

enum { NONE = -1, MIDDLE = 3 };
enum variant { TAKE, EXECUTE, START, FINISH, VARIANTS };
enum graph_phase { ADMIT, RETIRE, PHASES };

/* A step that was taken. */
struct taken_step {
    int class;
    int64_t iteration;
};

struct observed_builder {
    const struct program *p;
    struct program cut; /* the same with data for as many iterations as are looked at */
    const struct timing *timing;
    struct event_graph out;
    struct arena scratch;
    size_t edge_cap, link_cap, event_cap, op_cap, taken_cap;
    int64_t first, last; /* iterations in the middle: first .. last - 1; others fill and drain */
    int *events;         /* per class: its event; NONE */
    int *newest_edge;    /* per event: the last edge into it; NONE */
    int *edge_before;    /* beside edges: the one before into the same event */
    size_t before_cap;
    struct taken_step *taken; /* of the present run */
    int64_t looks;
};

static bool observed_event_graph_refuse(struct observed_builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool observed_event_graph_refuse(struct observed_builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->out.why, sizeof b->out.why, format, args);
    va_end(args);
    return false;
}

/* ---- steps and events ------------------------------------------------------------------------ */

/* The agent's next step. */
static int observed_event_graph_class_of(const struct observed_builder *b,
                                         const struct state *state, int agent)
{
    const struct program *p = b->p;
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    int64_t iteration;
    if (desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_DRIVER)
        return (int)p->op_count * VARIANTS + desc->rank * PHASES +
               (machine_retires(p, state, agent) ? RETIRE : ADMIT);
    if (desc->kind == AGENT_COMM)
        return FINISH; /* its operation is known when it is done */
    int op = machine_current_op(p, state, agent, &iteration);
    if (op < 0)
        return TAKE;
    if (desc->kind == AGENT_THREAD)
        return EXECUTE;
    return machine_stream_running(p, state, desc->index) ? FINISH : START;
}

static void observed_event_graph_add_op(struct observed_builder *b, struct event_graph_event *event,
                                        int op)
{
    if (!ARENA_GROW(&b->out.arena, b->out.ops, b->out.op_count, b->op_cap))
        return;
    if (event->op_count++ == 0)
        event->op_first = b->out.op_count;
    b->out.ops[b->out.op_count++] = op;
}

static void observed_event_graph_describe(struct observed_builder *b,
                                          struct event_graph_event *event,
                                          const struct enabled_step *step, int class)
{
    const struct program *p = b->p;
    const struct agent *desc = &p->agents[step->agent];
    *event = (struct event_graph_event){EVENT_DRIVER, desc->rank, NONE, 0, 0};
    if (step->op < 0)
        return;
    const struct op *op = &p->ops[step->op];
    event->kind = desc->kind == AGENT_THREAD ? EVENT_HOST : EVENT_DEVICE;
    event->task = op->task;
    if (desc->kind == AGENT_COMM) {
        event->rank = program_comm_rank(p, desc->index);
        /* All members are in a collective for as long as the slowest. */
        for (size_t i = 0; i < b->p->op_count; i++)
            if (op_ends_together(b->p->ops[i].kind) && b->p->ops[i].comm == op->comm &&
                b->p->ops[i].task == op->task)
                observed_event_graph_add_op(b, event, (int)i);
    } else if (class % VARIANTS == FINISH ||
               (class % VARIANTS == EXECUTE && op_is_cpu_work(op->kind))) {
        observed_event_graph_add_op(b, event, step->op);
    }
}

static int event_of(struct observed_builder *b, const struct enabled_step *step, int class)
{
    size_t count = (size_t)b->out.event_count;
    if (b->events[class] != NONE)
        return b->events[class];
    if (!ARENA_GROW(&b->out.arena, b->out.events, count, b->event_cap))
        return NONE;
    observed_event_graph_describe(b, &b->out.events[count], step, class);
    b->newest_edge[count] = NONE;
    return b->events[class] = b->out.event_count++;
}

static void observed_event_graph_add_edge(struct observed_builder *b, int from, int to, int height)
{
    struct event_graph *out = &b->out;
    size_t count = (size_t)out->edge_count;
    for (int e = b->newest_edge[to]; e != NONE; e = b->edge_before[e])
        if (out->edges[e].from == from && out->edges[e].height == height)
            return;
    if (!ARENA_GROW(&out->arena, out->edges, count, b->edge_cap) ||
        !ARENA_GROW(&out->arena, out->links, count, b->link_cap) ||
        !ARENA_GROW(&b->scratch, b->edge_before, count, b->before_cap))
        return;
    assert(from < out->event_count && to < out->event_count);
    out->edges[count] =
        (struct ratio_edge){from, to, height, event_graph_mean_ns(out, b->timing, from)};
    out->links[count] = (struct event_link){.end = true};
    b->edge_before[count] = b->newest_edge[to];
    b->newest_edge[to] = out->edge_count++;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static bool takes_part(const struct program *p, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    enum agent_kind kind = p->agents[agent].kind;
    return kind == AGENT_THREAD || kind == AGENT_STREAM || kind == AGENT_COMM;
}

/* The next agent that can step, `patient` only if no other can; NONE: none can. */
static int next_agent(const struct enabling_steps *steps, int patient, int *at)
{
    const struct program *p = enabling_steps_program(steps);
    for (int k = 0; k < p->agent_count; k++) {
        *at = (*at + 1) % p->agent_count;
        if (*at != patient && enabling_steps_can_step(steps, *at))
            return *at;
    }
    return enabling_steps_can_step(steps, patient) ? patient : NONE;
}

static bool over(const struct observed_builder *b, const struct state *state)
{
    for (int rank = 0; rank < b->p->ranks; rank++)
        if (machine_oldest(b->p, state, rank) < b->last + b->p->window)
            return false;
    return true;
}

/* The last step is recorded, and if it is one of the middle also an edge from its enabling step. */
static bool observed_event_graph_note(struct observed_builder *b,
                                      const struct enabling_steps *steps, int class)
{
    int64_t number = enabling_steps_count(steps) - 1;
    const struct enabled_step *step = enabling_steps_step(steps, number);
    if (class < VARIANTS)
        class += step->op * VARIANTS;
    if (!ARENA_GROW(&b->scratch, b->taken, number, b->taken_cap))
        return false;
    b->taken[number] = (struct taken_step){class, step->iteration};
    if (step->iteration < b->first || step->iteration >= b->last || step->from < 0)
        return true;
    const struct taken_step *from = &b->taken[step->from];
    int cause = event_of(b, enabling_steps_step(steps, step->from), from->class);
    int event = event_of(b, step, class);
    if (cause == NONE || event == NONE)
        return false;
    observed_event_graph_add_edge(b, cause, event, (int)(step->iteration - from->iteration));
    return !b->out.arena.failed && !b->scratch.failed;
}

/* false: there is no graph, or no memory. */
static bool observed_event_graph_run(struct observed_builder *b, struct enabling_steps *steps,
                                     int patient)
{
    const struct program *p = enabling_steps_program(steps);
    char name[EVENT_GRAPH_WHY / 2];
    int at = patient, agent;
    while (!over(b, enabling_steps_state(steps))) {
        if ((agent = next_agent(steps, patient, &at)) == NONE)
            return observed_event_graph_refuse(b, "the run comes to a deadlock");
        if (!machine_step_free(p, enabling_steps_state(steps), agent))
            return observed_event_graph_refuse(b, "what %s does depends on the timing",
                                               program_agent_name(p, agent, name, sizeof name));
        if ((b->looks += p->agent_count) > OBSERVED_MOST_LOOKS)
            return observed_event_graph_refuse(b, "the plan is too large");
        int class = observed_event_graph_class_of(b, enabling_steps_state(steps), agent);
        if (!enabling_steps_take(steps, 0, (struct transition){agent, 0}) ||
            !observed_event_graph_note(b, steps, class)) {
            b->scratch.failed = true;
            return false;
        }
        if (enabling_steps_step(steps, enabling_steps_count(steps) - 1)->violated &
            1u << PROPERTY_MISMATCH)
            return observed_event_graph_refuse(b, "ranks disagree about their collectives");
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool observed_event_graph_make_tables(struct observed_builder *b)
{
    const struct program *p = b->p;
    size_t classes = p->op_count * VARIANTS + (size_t)p->ranks * PHASES;
    b->events = ARENA_ARRAY(&b->scratch, classes, int);
    b->newest_edge = ARENA_ARRAY(&b->scratch, classes, int);
    for (size_t i = 0; !b->scratch.failed && i < classes; i++)
        b->events[i] = NONE;
    return !b->scratch.failed;
}

/* The fill and the drain of the pipeline are far from the middle. */
static bool cut_data(struct observed_builder *b)
{
    const struct program *p = b->p;
    int64_t margin = 2 * (int64_t)(p->window + p->periods + p->depth + p->max_distance + 1);
    b->first = margin;
    b->last = b->first + MIDDLE;
    b->cut = *p;
    b->cut.ends = ARENA_ARRAY(&b->scratch, (size_t)p->ranks, int64_t);
    for (int rank = 0; b->cut.ends && rank < p->ranks; rank++)
        b->cut.ends[rank] = b->last + margin;
    return b->cut.ends != NULL;
}

static bool observed_event_graph_own_build(struct observed_builder *b)
{
    if (b->p->tasks == 0)
        return observed_event_graph_refuse(b, "only pipelines have a steady state");
    const char *shared = sharing_why(b->p, &b->scratch);
    if (shared)
        return observed_event_graph_refuse(
            b, "streams share %s: how long work takes depends on what else runs", shared);
    if (b->p->plan->machine.launch_latency_ns)
        return observed_event_graph_refuse(b,
                                           "machine.launch_latency is not part of the event graph");
    if (!cut_data(b) || !observed_event_graph_make_tables(b))
        return false;
    for (int agent = 0; agent < b->p->agent_count; agent++) {
        if (!takes_part(b->p, agent))
            continue;
        struct enabling_steps *steps = enabling_steps_open(&b->cut, false);
        if (!steps) {
            b->scratch.failed = true;
            return false;
        }
        bool good = observed_event_graph_run(b, steps, agent);
        enabling_steps_close(steps);
        if (!good)
            return false;
    }
    return true;
}

enum status observed_event_graph_build(const struct program *program, const struct timing *timing,
                                       struct event_graph *out, struct diag *diag)
{
    struct observed_builder b = {.p = program, .timing = timing};
    arena_init(&b.scratch, 0);
    arena_init(&b.out.arena, 0);
    observed_event_graph_own_build(&b);
    bool failed = b.scratch.failed || b.out.arena.failed;
    arena_fini(&b.scratch);
    if (failed) {
        arena_fini(&b.out.arena);
        return diag_no_memory(diag);
    }
    *out = b.out;
    return STATUS_OK;
}
