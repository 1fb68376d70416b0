/* SPDX-License-Identifier: Apache-2.0 */
/* explore.c - see explore.h. */
#include "explore.h"
#include "base/assert_index.h"

enum { LOOK_EVERY = 16, FAULTS = 1u << PROPERTY_FAULTS };

/* ---- batches --------------------------------------------------------------------------------- */

void batch_open(struct batch *batch, struct budget *budget)
{
    *batch = (struct batch){.budget = budget};
}

void batch_close(struct batch *batch)
{
    if (!batch->budget)
        return;
    budget_free(batch->budget, batch->successors, batch->successor_cap * sizeof *batch->successors);
    budget_free(batch->budget, batch->violations, batch->violation_cap * sizeof *batch->violations);
    *batch = (struct batch){0};
}

static void add_successor(struct batch *batch, uint64_t root, struct transition by)
{
    enum status status = budget_grow(batch->budget, &batch->successors, &batch->successor_cap,
                                     batch->successor_count, sizeof *batch->successors);
    if (status == STATUS_OK)
        batch->successors[batch->successor_count++] = (struct successor){root, by};
    else
        batch->status = status;
}

/* The first violation of each property counts: nodes are expanded in the order of judging. */
static void explore_add_violation(struct batch *batch, unsigned violated, uint32_t id,
                                  const struct transition *choice, size_t chain)
{
    violated &= batch->properties;
    if (!violated)
        return;
    enum status status = budget_grow(batch->budget, &batch->violations, &batch->violation_cap,
                                     batch->violation_count, sizeof *batch->violations);
    if (status != STATUS_OK) {
        batch->status = status;
        return;
    }
    batch->properties &= ~violated;
    batch->violations[batch->violation_count++] = (struct violation){
        id, choice, choice ? *choice : (struct transition){0, 0}, chain, violated};
}

static uint32_t node_id(const struct batch *batch, size_t node)
{
    return batch->first == STATES_NONE ? STATES_NONE : batch->first + (uint32_t)node;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* True if the search is over. The clock is read at every LOOK_EVERY-th call. */
static bool explore_is_over(struct explorer *explorer)
{
    if (++explorer->ticks % LOOK_EVERY && !watch_interrupted(explorer->watch))
        return watch_over(explorer->watch);
    return watch_own_watch_look(explorer->watch);
}

/* The transitions to explore at the node. */
static int explore_list_choices(struct explorer *explorer)
{
    struct transition *choices = explorer->choices;
    const struct state *node = &explorer->cursor.node;
    int count = explorer->options->reduction ? reducer_choices(&explorer->reducer, node, choices)
                                             : machine_enabled(explorer->program, node, choices);
    if (!explorer->options->endless)
        return count;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (choices[i].agent != 0 || choices[i].choice == 0)
            choices[kept++] = choices[i];
    return kept;
}

/* Take one step in `work` and note its violations; returns whether the run goes on behind it. */
static bool explore_take(struct explorer *explorer, struct batch *batch, size_t node,
                         struct transition step, const struct transition *choice, size_t chain)
{
    struct effect effect;
    machine_step(explorer->program, &explorer->cursor.work, step, &effect);
    ASSERT_INDEX(node, batch->count);
    batch->nodes[node].transitions++;
    if (!effect.violated)
        return true;
    explore_add_violation(batch, effect.violated, node_id(batch, node), choice, chain);
    if (effect.violated & explorer->options->cut_at)
        return false;
    bool ends = effect.violated & 1u << PROPERTY_MISMATCH;
    batch->nodes[node].avoids |= ends;
    return !ends;
}

/* Show `work`, the state after `choice` and `chain` free steps, to the caller's `visit`. After its
   first hit it is not called again in this batch. */
static void explore_visit(struct explorer *explorer, struct batch *batch, size_t node,
                          const struct transition *choice, size_t chain)
{
    const struct search_options *options = explorer->options;
    if (options->visit && batch->properties & FAULTS &&
        options->visit(options->visit_arg, &explorer->cursor.work))
        explore_add_violation(batch, FAULTS, node_id(batch, node), choice, chain);
}

/* Take free steps until there is none, one retires an iteration, or the search is over; returns
   whether the run goes on behind them. */
static bool follow_chain(struct explorer *explorer, struct batch *batch, size_t node,
                         const struct transition *choice)
{
    const struct state *work = &explorer->cursor.work;
    reducer_begin(&explorer->reducer, work);
    bool retires = false;
    for (size_t k = 1; k < EXPLORE_MAX_CHAIN && !retires && !explore_is_over(explorer); k++) {
        int agent = reducer_next_free(&explorer->reducer, work);
        if (agent < 0)
            break;
        retires = machine_retires(explorer->program, work, agent);
        const struct transition step = {agent, explorer->reducer.choice};
        if (!explore_take(explorer, batch, node, step, choice, k))
            return false;
        explore_visit(explorer, batch, node, choice, k);
    }
    return true;
}

/* Take the chosen step, if any, and the chain of free steps behind it; returns whether the run goes
   on. A step that retires has no chain: its state is a node. */
static bool follow_choice(struct explorer *explorer, struct batch *batch, size_t node,
                          const struct transition *choice)
{
    const struct state *work = &explorer->cursor.work;
    bool retires = choice && machine_retires(explorer->program, work, choice->agent);
    if (choice && !explore_take(explorer, batch, node, *choice, choice, 0))
        return false;
    explore_visit(explorer, batch, node, choice, 0);
    return retires || !explorer->options->reduction || follow_chain(explorer, batch, node, choice);
}

/* Store `work` and note it as the successor by `choice`. */
static void explore_keep_successor(struct explorer *explorer, struct batch *batch,
                                   const struct transition *choice)
{
    uint64_t root;
    machine_canonical(explorer->program, &explorer->cursor.work);
    enum status status = cursor_store(&explorer->cursor, &root);
    if (status == STATUS_OK)
        add_successor(batch, root, choice ? *choice : (struct transition){0, 0});
    else
        batch->status = status;
}

static void explore_follow(struct explorer *explorer, struct batch *batch, size_t node,
                           const struct transition *choice)
{
    if (follow_choice(explorer, batch, node, choice))
        explore_keep_successor(explorer, batch, choice);
    else
        cursor_restore(&explorer->cursor);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A state without enabled steps: the end, or a deadlock. */
static unsigned judge_end(struct explorer *explorer, struct expansion *expansion)
{
    const struct program *p = explorer->program;
    const struct state *state = &explorer->cursor.node;
    if (machine_done(p, state)) {
        expansion->ends_well = true;
        return 0;
    }
    bool drain = reducer_data_ended(&explorer->reducer, state);
    unsigned violated = 1u << (drain ? PROPERTY_DRAIN : PROPERTY_DEADLOCK);
    int64_t wanted, other;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (machine_stale_wait(p, state, agent, &wanted, &other))
            violated |= 1u << PROPERTY_SLOT;
    return violated;
}

/* Programs built with `faults` are judged by one question: whether an agent is blocked for ever after a fault. True if
   there is nothing to expand here. */
static bool judge_fault(struct explorer *explorer, struct batch *batch, size_t node, int choices)
{
    const struct state *state = &explorer->cursor.node;
    if (!machine_never_woken(explorer->program, state)) {
        batch->nodes[node].ends_well = choices == 0 && machine_failed(explorer->program, state);
        return choices == 0;
    }
    explore_add_violation(batch, FAULTS, node_id(batch, node), NULL, EXPLORE_MAX_CHAIN);
    return choices == 0 || explorer->options->cut_at & FAULTS;
}

/* A node without successors: the end, a hang, or a run given up. */
static void judge_leaf(struct explorer *explorer, struct batch *batch, size_t node)
{
    ASSERT_INDEX(node, batch->count);
    struct expansion *expansion = &batch->nodes[node];
    unsigned violated = judge_end(explorer, expansion);
    explore_add_violation(batch, violated, node_id(batch, node), NULL, EXPLORE_MAX_CHAIN);
    bool cut = violated & explorer->options->cut_at;
    expansion->given_up =
        machine_enabled(explorer->program, &explorer->cursor.node, explorer->choices) > 0 && !cut;
    expansion->avoids |= !cut && !expansion->given_up;
}

static void explore_expand(struct explorer *explorer, struct batch *batch, size_t node)
{
    ASSERT_INDEX(node, batch->count);
    batch->nodes[node] = (struct expansion){0};
    cursor_load(&explorer->cursor, batch->roots[node]);
    int count = explore_list_choices(explorer);
    if (explorer->program->options.faults && judge_fault(explorer, batch, node, count))
        count = 0;
    else if (count == 0)
        judge_leaf(explorer, batch, node);
    for (int i = 0; i < count && batch->status == STATUS_OK; i++) {
        struct transition choice = explorer->choices[i];
        explore_follow(explorer, batch, node, &choice);
    }
    batch->nodes[node].successors = batch->successor_count;
    batch->nodes[node].violations = batch->violation_count;
}

static void empty(struct batch *batch)
{
    batch->done = batch->successor_count = batch->violation_count = 0;
    batch->status = STATUS_OK;
}

void explorer_expand(struct explorer *explorer, struct batch *batch)
{
    empty(batch);
    for (size_t node = 0; node < batch->count && !explore_is_over(explorer); node++) {
        explore_expand(explorer, batch, node);
        if (batch->status != STATUS_OK || watch_over(explorer->watch))
            return;
        batch->done++;
    }
}

void explorer_begin(struct explorer *explorer, struct batch *batch)
{
    empty(batch);
    batch->first = STATES_NONE;
    batch->count = 1;
    batch->nodes[0] = (struct expansion){0};
    machine_reset(explorer->program, &explorer->cursor.work);
    explore_follow(explorer, batch, 0, NULL);
    batch->nodes[0].successors = batch->successor_count;
    batch->nodes[0].violations = batch->violation_count;
    batch->done = batch->status == STATUS_OK && !watch_over(explorer->watch);
}

/* ---- explorers ------------------------------------------------------------------------------- */

enum pace explorer_pace(const struct program *program, const struct search_options *options)
{
    unsigned bound = 1u << PROPERTY_BOUND;
    bool counts = program->tasks || program_counts_memory(program);
    if (!counts || !program_asks_bound(program) || !(options->properties & bound))
        return PACE_ANY;
    return options->cut_at & bound ? PACE_LATE_ADMISSION : PACE_LATE_DEVICE;
}

enum staged_waits explorer_waits(const struct program *program,
                                 const struct search_options *options)
{
    if (program->options.faults || options->visit)
        return STAGED_EITHER;
    return options->cut_at ? STAGED_MOST : STAGED_LEAST;
}

static size_t choice_bytes(const struct program *program)
{
    return machine_most_transitions(program) * sizeof(struct transition);
}

enum status explorer_open(struct explorer *explorer, const struct search_options *options,
                          struct tree *tree, struct search_watch *watch)
{
    *explorer = (struct explorer){
        .program = tree->program, .options = options, .watch = watch, .budget = tree->budget};
    enum status status = cursor_open(&explorer->cursor, tree);
    if (status == STATUS_OK)
        status = budget_alloc(tree->budget, choice_bytes(tree->program), &explorer->choices);
    if (status == STATUS_OK &&
        !reducer_init(&explorer->reducer, tree->program, explorer_pace(tree->program, options),
                      explorer_waits(tree->program, options)))
        status = STATUS_SYSTEM;
    return status;
}

void explorer_close(struct explorer *explorer)
{
    if (!explorer->program)
        return;
    cursor_close(&explorer->cursor);
    budget_free(explorer->budget, explorer->choices, choice_bytes(explorer->program));
    reducer_fini(&explorer->reducer);
    *explorer = (struct explorer){0};
}
