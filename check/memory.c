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

enum status memory_of_lists(const struct plan *plan, struct rank_memory *most, int *rank,
                            struct diag *diag)
{
    struct arena arena;
    struct rank_memory *ranks;
    int count;
    arena_init(&arena, 0);
    enum status status = rank_memory_find(plan, &arena, &ranks, &count, diag);
    *rank = 0;
    for (int r = 0; status == STATUS_OK && r < count; r++)
        if (r == 0 || ranks[r].most > most->most) {
            *most = ranks[r];
            *rank = r;
        }
    arena_fini(&arena);
    most->during = most->after = NULL;
    return status;
}
