/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - see memory.h. */
#include "memory.h"

#include <inttypes.h>

#include "machine.h"
#include "base/units.h"
#include "plan/schedules/parallel.h"

/* A rank whose list is that of this place in a pipeline, or the one that differs behind them; -1: none. */
static int memory_rank_of_row(const struct plan *plan, int places, int row)
{
    if (row >= places)
        return plan->programs.parallel.differing[row - places].rank;
    for (int replica = 0; replica < plan_replicas(plan); replica++) {
        int rank = parallel_rank(&plan->programs.parallel, places, replica, row);
        if (!parallel_differs(plan, rank))
            return rank;
    }
    return -1;
}

/* The ranks that have the list of this row. */
static int ranks_of_row(const struct plan *plan, int places, int row)
{
    int count = 0;
    if (row >= places)
        return 1;
    for (int replica = 0; replica < plan_replicas(plan); replica++)
        count +=
            !parallel_differs(plan, parallel_rank(&plan->programs.parallel, places, replica, row));
    return count;
}

/* Bytes by which a rank of this row does not fit; 0: it fits, or no rank has the row. */
static int64_t excess_of(const struct plan *plan, const struct rank_memory *ranks, int places,
                         int row, int64_t *limit)
{
    int rank = memory_rank_of_row(plan, places, row), replica, place;
    if (rank < 0)
        return 0;
    parallel_place(&plan->programs.parallel, places, rank, &replica, &place);
    *limit = machine_memory(&plan->machine, place);
    return *limit && ranks[row].most > *limit ? ranks[row].most - *limit : 0;
}

/* The part of them that is the biggest when a rank holds most. */
static const char *biggest_part(const struct rank_memory *rank, int64_t *bytes)
{
    static const char *const names[MEMORY_USES] = {[MEMORY_ACTIVATIONS] = "activations",
                                                   [MEMORY_MESSAGES] = "messages",
                                                   [MEMORY_PARAMETERS] = "parameters"};
    const char *name = "weights and state";
    *bytes = rank->fixed;
    for (int use = 0; use < MEMORY_USES; use++)
        if (rank->at[use] > *bytes) {
            *bytes = rank->at[use];
            name = names[use];
        }
    return name;
}

/* ", rank 3 by 1.5 GiB (activations 4 GiB)" */
static const char *tell_rank(struct arena *arena, const char *before, int number,
                             const struct rank_memory *rank, int64_t excess)
{
    char over[UNITS_TEXT], part[UNITS_TEXT];
    int64_t bytes;
    const char *name = biggest_part(rank, &bytes);
    units_show_bytes((double)excess, over);
    units_show_bytes((double)bytes, part);
    return arena_printf(arena, "%s rank %d by %s (%s %s)", before, number, over, name, part);
}

enum { TOLD_MOST = 8 };

/* Those that do not fit: of ranks with the same list the first. */
static const char *tell_unfit(const struct plan *plan, const struct rank_memory *ranks, int places,
                              int rows, struct arena *arena)
{
    const char *text = "";
    int unfit = 0, all = 0, told = 0, lists = 0;
    for (int row = 0; row < rows; row++) {
        int rank = memory_rank_of_row(plan, places, row), count = ranks_of_row(plan, places, row);
        int64_t limit, excess = excess_of(plan, ranks, places, row, &limit);
        all += count;
        if (!excess)
            continue;
        unfit += count;
        if (lists++ < TOLD_MOST && text)
            text = arena_printf(arena, "%s%s", text,
                                tell_rank(arena, told++ ? "," : "", rank, &ranks[row], excess));
    }
    return arena_printf(arena, "%d of %d ranks do not fit:%s%s", unfit, all, text,
                        lists > told ? ", and others" : "");
}

static const char *tell_most(const struct rank_memory *most, int rank, int64_t limit,
                             const char *unfit, struct arena *arena)
{
    return arena_printf(arena,
                        "rank %d holds %" PRId64
                        " bytes at its action %zu (weights and state %" PRId64
                        ", activations %" PRId64 ", messages %" PRId64 ", parameters %" PRId64
                        "), machine.memory allows %" PRId64 "; %s",
                        rank, most->most, most->column, most->fixed, most->at[MEMORY_ACTIVATIONS],
                        most->at[MEMORY_MESSAGES], most->at[MEMORY_PARAMETERS], limit, unfit);
}

static enum status tell_lists(const struct plan *plan, struct arena *arena, const char **sentence,
                              struct diag *diag)
{
    struct arena scratch;
    struct rank_memory *ranks;
    int places, most = -1;
    int64_t worst = 0, limit = 0;
    arena_init(&scratch, 0);
    enum status status = rank_memory_find_all(plan, &scratch, &ranks, &places, diag);
    int rows = status == STATUS_OK ? places + (int)plan->programs.parallel.differing_count : 0;
    for (int row = 0; row < rows; row++) {
        int64_t excess = excess_of(plan, ranks, places, row, &limit);
        if (excess > worst) {
            worst = excess;
            most = row;
        }
    }
    if (most >= 0) {
        const char *unfit = tell_unfit(plan, ranks, places, rows, &scratch);
        *sentence = tell_most(&ranks[most], memory_rank_of_row(plan, places, most),
                              ranks[most].most - worst, unfit, arena);
        status = unfit && *sentence ? STATUS_OK : diag_no_memory(diag);
    }
    arena_fini(&scratch);
    return status;
}

static enum status tell_hosts(const struct program *program, struct arena *arena,
                              const char **sentence, struct diag *diag)
{
    int64_t bytes = 0, most = 0;
    int rank = -1;
    for (int r = 0; r < program->ranks; r++) { /* the machine counts the rest, at each alloc */
        int64_t used = machine_used_bytes(program, r),
                memory = machine_memory(&program->plan->machine, r);
        if (!memory || used - memory <= most)
            continue;
        most = used - memory;
        bytes = used;
        rank = r;
    }
    if (rank < 0)
        return STATUS_OK;
    *sentence = arena_printf(arena,
                             "rank %d holds %" PRId64 " bytes of buffers, machine.memory allows "
                             "%" PRId64,
                             rank, bytes, machine_memory(&program->plan->machine, rank));
    return *sentence ? STATUS_OK : diag_no_memory(diag);
}

enum status memory_tell(const struct plan *plan, const struct program *program, struct arena *arena,
                        const char **sentence, struct diag *diag)
{
    *sentence = NULL;
    if (program->tasks || !machine_has_memory(&program->plan->machine))
        return STATUS_OK;
    return plan->form == FORM_PROGRAMS ? tell_lists(plan, arena, sentence, diag)
                                       : tell_hosts(program, arena, sentence, diag);
}
