/*
 * explore.h - the successors of states: what one thread of a search does.
 *
 * An explorer is given a batch of nodes and fills in what comes of them. One node is expanded like
 * this:
 *
 *     node --choice--> state --free step--> state ... --free step--> state = next node
 *
 * where the chain of free steps, taken only with reduction, ends at a state with a real choice, at
 * an end, or after an iteration was retired (so that every infinite run passes infinitely many nodes
 * and the graph can close). The chain is deterministic, so a parent and a choice are enough to find
 * it again.
 *
 * Explorers share a tree and nothing else; what a batch holds does not depend on who filled it.
 */
#ifndef SWSIM_EXPLORE_H
#define SWSIM_EXPLORE_H

#include "reduce.h"
#include "search.h"
#include "states.h"
#include "tree.h"
#include "watch.h"

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

/* What came of one node; its successors and violations end where these say. */
struct expansion {
    size_t successors, violations;
    uint64_t transitions;
    bool ends_well; /* it is the end of a run that has done everything */
    bool given_up;  /* a run that could go on was not followed */
};

/* Consecutive nodes, or before the first the way to it (`first` is STATES_NONE). */
struct batch {
    struct budget *budget;
    uint32_t first, count;
    unsigned properties; /* violations that are worth noting */
    uint64_t roots[BATCH_NODES];
    struct expansion nodes[BATCH_NODES];
    size_t done; /* nodes completely expanded: all, unless `status` says why not, or time is up */
    enum status status;
    struct successor *successors;
    size_t successor_count, successor_cap;
    struct violation *violations;
    size_t violation_count, violation_cap;
};

struct explorer {
    const struct program *program;
    const struct search_options *options;
    struct watch *watch;
    struct budget *budget;
    struct cursor cursor;
    struct reducer reducer;
    struct transition *choices;
    unsigned ticks; /* nodes and free steps since the watch was looked at */
};

enum status explorer_open(struct explorer *explorer, const struct search_options *options,
                          struct tree *tree, struct watch *watch);
/* Also after a failed open. */
void explorer_close(struct explorer *explorer);

void batch_open(struct batch *batch, struct budget *budget);
void batch_close(struct batch *batch);

/* Fill in what comes of the nodes of `batch`. */
void explorer_expand(struct explorer *explorer, struct batch *batch);
/* The way from the initial state to the first node, the only successor. */
void explorer_begin(struct explorer *explorer, struct batch *batch);

/* Which of the free steps go first; depends on what is looked for. */
enum pace explorer_pace(const struct program *program, const struct search_options *options);

#endif
