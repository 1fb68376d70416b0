/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - see memory.h. */
#include "memory.h"

#include <stdlib.h>

#include "machine/machine.h"

/* Before the first step: what is never allocated. The machine counts the rest, at each alloc. */
static enum status most_at_first(const struct program *p, int64_t *bytes, int *rank,
                                 struct diag *diag)
{
    struct state *state = machine_state(p);
    if (!state)
        return diag_no_memory(diag);
    for (int r = 0; r < p->ranks; r++) {
        int64_t held = machine_held_bytes(p, state, r);
        if (held > *bytes) {
            *bytes = held;
            *rank = r;
        }
    }
    machine_free(state);
    return STATUS_OK;
}

enum status memory_of_hosts(const struct program *p, int64_t *bytes, int *rank, struct diag *diag)
{
    *bytes = 0;
    *rank = 0;
    return p->tasks > 0 ? STATUS_OK : most_at_first(p, bytes, rank, diag);
}

/* A rank whose list is that of this place in a pipeline, or the one that differs behind them; -1: none. */
static int rank_of_row(const struct plan *plan, int places, int row)
{
    if (row >= places)
        return plan->programs.parallel.differing[row - places].rank;
    for (int replica = 0; replica < parallel_replicas(plan); replica++) {
        int rank = parallel_rank(plan, places, replica, row);
        if (!parallel_differs(plan, rank))
            return rank;
    }
    return -1;
}

enum status memory_of_lists(const struct plan *plan, struct rank_memory *most, int *rank,
                            struct diag *diag)
{
    struct arena arena;
    struct rank_memory *ranks;
    int count;
    arena_init(&arena, 0);
    enum status status = rank_memory_find_all(plan, &arena, &ranks, &count, diag);
    int rows = status == STATUS_OK ? count + (int)plan->programs.parallel.differing_count : 0;
    *rank = -1;
    for (int r = 0; r < rows; r++)
        if (rank_of_row(plan, count, r) >= 0 && (*rank < 0 || ranks[r].most > most->most)) {
            *most = ranks[r];
            *rank = rank_of_row(plan, count, r);
        }
    arena_fini(&arena);
    most->during = most->after = NULL;
    return status;
}
