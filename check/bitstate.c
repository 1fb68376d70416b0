/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitstate.c - see bitstate.h.
 *
 *     stack    [open] [   ] [   ] [open] [   ] [open]      top
 *               |                   |            |
 *               initial state       a child      a child of that: the current state
 *
 * A state is pushed when it is new. It is opened when its successors are pushed above it, and popped
 * when it is on top again. So the open states are the path to the topmost of them.
 */
#include "bitstate.h"

#include <stdlib.h>

#include "leaves.h"
#include "explore.h"
#include "paths.h"

enum { HASHES = 3, PROGRESS_EVERY = 1 << 12 };

const char SEARCH_BITSTATE[] = "bitstate";

struct stacked_state {
    uint64_t root;
    uint32_t agent;
    uint16_t choice;
    uint16_t open;
};

struct supertrace {
    const struct program *program;
    const struct search_options *options;
    struct search_result *result;
    struct budget *budget;
    struct search_watch *watch;
    struct tree tree;
    struct explorer explorer;
    struct batch batch;
    struct chunked stack;
    uint64_t *bits, bit_count, bits_set;
    double left_out; /* new states mistaken for old ones, estimated */
    double last_progress;
    enum status status;
    bool stop;
};

/* ---- the filter ------------------------------------------------------------------------------ */

/* Insert a state; returns whether it was new. Positions by double hashing. */
static bool filter_insert(struct supertrace *search, uint64_t root)
{
    uint64_t at = hash_words(&root, 1), step = hash_mix(at ^ UINT64_C(0x2545f4914f6cdd1d)) | 1;
    bool is_new = false;
    for (int i = 0; i < HASHES; i++, at += step) {
        uint64_t bit = at % search->bit_count, mask = UINT64_C(1) << (bit % 64);
        if (search->bits[bit / 64] & mask)
            continue;
        search->bits[bit / 64] |= mask;
        search->bits_set++;
        is_new = true;
    }
    return is_new;
}

/* The probability that a new state is mistaken for an old one. */
static double false_alarm(const struct supertrace *search)
{
    double full = (double)search->bits_set / (double)search->bit_count;
    return full * full * full;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static struct stacked_state *entry_at(const struct supertrace *search, size_t i)
{
    return chunked_at(&search->stack, i, sizeof(struct stacked_state));
}

static void bitstate_refuse(struct supertrace *search, enum status status)
{
    if (status == STATUS_OK || search->stop)
        return;
    search->result->no_memory = status == STATUS_SYSTEM;
    search->result->limit = status == STATUS_SYSTEM ? "no more memory in the system" : "memory";
    search->stop = true;
}

static void bitstate_push(struct supertrace *search, const struct successor *found)
{
    double chance = false_alarm(search);
    if (!filter_insert(search, found->root))
        return;
    search->left_out += chance / (1 - chance);
    search->result->states++;
    struct stacked_state entry = {found->root, (uint32_t)found->by.agent,
                                  (uint16_t)found->by.choice, 0};
    bitstate_refuse(search, chunked_push(&search->stack, &entry));
}

/* ---- violations ------------------------------------------------------------------------------ */

/* The path to the current state, then the step of the violation. No choice leads to the first state
   of the stack, the initial one. */
static enum status witness(struct supertrace *search, const struct violation *seen,
                           struct search_path *out)
{
    size_t count = 0;
    struct transition *choices = calloc(search->stack.count + 1, sizeof *choices);
    if (!choices)
        return STATUS_SYSTEM;
    for (size_t i = 1; i < search->stack.count; i++) {
        const struct stacked_state *entry = entry_at(search, i);
        if (entry->open)
            choices[count++] = (struct transition){(int)entry->agent, entry->choice};
    }
    if (seen->stepped)
        choices[count++] = seen->choice;
    enum status status =
        path_replay(search->program, search->options, choices, count, seen->chain, out);
    free(choices);
    return status;
}

static void bitstate_judge(struct supertrace *search, const struct violation *seen)
{
    struct search_result *result = search->result;
    const struct search_options *options = search->options;
    unsigned violated = seen->violated & ~result->found;
    for (int p = 0; p < PROPERTY_COUNT && search->status == STATUS_OK; p++)
        if (violated & 1u << p)
            search->status = witness(search, seen, &result->witness[p]);
    result->found |= violated;
    search->stop |= search_has_enough(options, result->found);
}

/* ---- the search ------------------------------------------------------------------------------ */

static void bitstate_commit(struct supertrace *search)
{
    const struct batch *batch = &search->batch;
    search->result->transitions += batch->nodes[0].transitions;
    search->result->ends_well |= batch->nodes[0].ends_well;
    for (size_t i = 0; i < batch->violation_count; i++)
        bitstate_judge(search, &batch->violations[i]);
    for (size_t i = batch->successor_count; i-- > 0 && !search->stop;) /* the first ends on top */
        bitstate_push(search, &batch->successors[i]);
    bitstate_refuse(search, batch->status);
}

static void check_limits(struct supertrace *search)
{
    struct search_result *result = search->result;
    uint64_t limit = search->options->limits.states;
    if (!search->stop && limit && result->states > limit) {
        result->limit = "states";
        search->stop = true;
    }
    if (!search->stop && watch_over(search->watch)) {
        result->limit = watch_interrupted(search->watch) ? "interrupted" : "time";
        search->stop = true;
    }
}

static void bitstate_report_progress(struct supertrace *search)
{
    double seconds = stopwatch_seconds(&search->watch->start);
    if (!search->options->progress || seconds - search->last_progress < 0.5)
        return;
    search->last_progress = seconds;
    struct search_progress progress = {.states = search->result->states,
                                       .transitions = search->result->transitions,
                                       .frontier = search->stack.count,
                                       .bytes = atomic_load(&search->budget->used_bytes),
                                       .seconds = seconds};
    search->options->progress(search->options->progress_arg, &progress);
}

static void depth_first(struct supertrace *search)
{
    struct batch *batch = &search->batch;
    batch->properties = search->options->properties;
    explorer_begin(&search->explorer, batch);
    bitstate_commit(search);
    check_limits(search);
    for (uint64_t steps = 0; search->stack.count && !search->stop && search->status == STATUS_OK;
         steps++) {
        struct stacked_state *top = entry_at(search, search->stack.count - 1);
        if (top->open) {
            chunked_pop(&search->stack);
            continue;
        }
        top->open = 1;
        batch->first = 0;
        batch->count = 1;
        batch->properties = search->options->properties & ~search->result->found;
        batch->roots[0] = top->root;
        explorer_expand(&search->explorer, batch);
        bitstate_commit(search);
        check_limits(search);
        if (steps % PROGRESS_EVERY == 0)
            bitstate_report_progress(search);
    }
}

static enum status bitstate_open_tables(struct supertrace *search)
{
    size_t bytes = search->options->bitstate_bytes / 8 * 8;
    struct tree_order order = {0};
    search->bit_count = 8 * (uint64_t)bytes;
    chunked_open(&search->stack, sizeof(struct stacked_state), search->budget);
    batch_open(&search->batch, search->budget);
    enum status status = budget_alloc(search->budget, bytes, &search->bits);
    if (status == STATUS_OK)
        status = leaves_by_agent(search->program, search->budget, &order);
    if (status == STATUS_OK)
        status = tree_open(&search->tree, search->program, &order, false, search->budget);
    leaves_free(&order, search->budget);
    if (status == STATUS_OK)
        status = explorer_open(&search->explorer, search->options, &search->tree, search->watch);
    return status;
}

static void bitstate_close_tables(struct supertrace *search)
{
    explorer_close(&search->explorer);
    tree_close(&search->tree);
    batch_close(&search->batch);
    chunked_close(&search->stack);
    budget_free(search->budget, search->bits, search->bit_count / 8);
}

enum status bitstate_run(const struct program *program, const struct search_options *options,
                         struct budget *budget, struct search_watch *watch,
                         struct search_result *out)
{
    struct supertrace search = {
        .program = program, .options = options, .result = out, .budget = budget, .watch = watch};
    enum status status = bitstate_open_tables(&search);
    bitstate_refuse(&search, status);
    if (status == STATUS_OK)
        depth_first(&search);
    out->coverage = (double)out->states / ((double)out->states + search.left_out);
    if (!out->limit && !search.stop)
        out->limit = SEARCH_BITSTATE;
    bitstate_close_tables(&search);
    return search.status;
}
