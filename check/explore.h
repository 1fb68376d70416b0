/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.h - the successors of states: the work of one thread of a search.
 *
 * An explorer gets a batch of nodes and fills in their successors and violations. One node is
 * expanded like this:
 *
 *     node --choice--> state --free step--> state ... --free step--> state = next node
 *
 * where the chain of free steps, taken only with reduction, ends at a state with a real choice, at
 * an end, or after an iteration was retired (so that every infinite run passes infinitely many nodes
 * and the graph can close). The chain is deterministic, so a parent and a choice are enough to find
 * it again.
 *
 * Explorers share a tree and nothing else; the contents of a batch do not depend on its explorer.
 */
#ifndef SWSIM_EXPLORE_H
#define SWSIM_EXPLORE_H

#include "reduce.h"
#include "search.h"
#include "states.h"
#include "tree.h"
#include "base/watch.h"

enum { BATCH_NODES = 128, EXPLORE_MAX_CHAIN = 1 << 20 };

struct successor {
    uint64_t root;
    struct transition by;
};

/* A violation seen at node `id` (STATES_NONE: before the first), after `choice` if `stepped`, and
   then `chain` free steps. */
struct violation {
    uint32_t id;
    bool stepped;
    struct transition choice;
    size_t chain;
    unsigned violated;
};

/* The results of one node: the ends of its successors and violations in the lists of the batch. */
struct expansion {
    size_t successors, violations;
    uint64_t transitions;
    bool ends_well; /* the node is the end of a complete run */
    bool avoids;    /* a run ends here without a violation of options.cut_at */
    bool given_up;  /* a run that could go on was not followed */
};

/* Consecutive nodes, or before the first the way to it (`first` is STATES_NONE). */
struct batch {
    struct budget *budget;
    uint32_t first, count;
    unsigned properties; /* violations to note */
    uint64_t roots[BATCH_NODES];
    struct expansion nodes[BATCH_NODES];
    size_t done; /* nodes completely expanded: all, unless `status` is an error or time is up */
    enum status status;
    struct successor *successors;
    size_t successor_count, successor_cap;
    struct violation *violations;
    size_t violation_count, violation_cap;
};

struct explorer {
    const struct program *program;
    const struct search_options *options;
    struct search_watch *watch;
    struct budget *budget;
    struct cursor cursor;
    struct reducer reducer;
    struct transition *choices;
    unsigned ticks; /* nodes and free steps so far */
};

enum status explorer_open(struct explorer *explorer, const struct search_options *options,
                          struct tree *tree, struct search_watch *watch);
/* Also after a failed open. */
void explorer_close(struct explorer *explorer);

void batch_open(struct batch *batch, struct budget *budget);
void batch_close(struct batch *batch);

/* Fill in successors and violations of the nodes of `batch`. */
void explorer_expand(struct explorer *explorer, struct batch *batch);
/* The path from the initial state to the first node, the only successor. */
void explorer_begin(struct explorer *explorer, struct batch *batch);

/* The order of free steps that the properties looked for need. */
enum pace explorer_pace(const struct program *program, const struct search_options *options);
/* Which waits that threads may leave out the search needs. */
enum staged_waits explorer_waits(const struct program *program,
                                 const struct search_options *options);

#endif
