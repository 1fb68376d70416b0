/* SPDX-License-Identifier: Apache-2.0 */
/* bubble_search.c - see bubble.h: the search. */
#include "bubble.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"

/* Passes walked through by all trials of a kind: about a second together. */
enum { CANDIDATE_WORK = 10 * 1000 * 1000, CHANGE_WORK = 40 * 1000 * 1000 };
/* With a stage a rank a climb ends where this part of its changes has made nothing better; in V shape gains come late. */
enum { STALE = 6 };
enum { ROUND_CHANGES = 5000, MOST_ROUNDS = 12, PATIENCE_STEPS = 9 };

/* A pass at its place in a repeated block. */
struct placed_pass {
    double at;
    struct pass_code pass;
};

struct bubble_search_search {
    const struct bubble_problem *problem;
    struct bubble_room *room;
    struct bubble_order trial, best, current, start; /* of a climb: the latest top, and the begin */
    struct bubble_figures figures;                   /* of the best */
    bool found;
    int64_t bound_ns, work;
    size_t passes; /* of an order */
    struct placed_pass *placed;
};

/* ---- trials ---------------------------------------------------------------------------------- */

static bool make_order(const struct bubble_problem *problem, struct arena *arena,
                       struct bubble_order *out)
{
    size_t ranks = (size_t)problem->ranks;
    *out = (struct bubble_order){.passes = arena_array(arena, ranks, sizeof *out->passes),
                                 .counts = ARENA_ARRAY(arena, ranks, size_t),
                                 .patience = arena_array(arena, ranks, sizeof *out->patience)};
    if (!out->passes || !out->counts || !out->patience)
        return false;
    for (int stage = 0; stage < problem->stages; stage++)
        out->counts[problem->rank_of[stage]] += 2 * (size_t)problem->microbatches;
    for (size_t rank = 0; rank < ranks; rank++)
        out->passes[rank] = ARENA_ARRAY(arena, out->counts[rank], struct pass_code);
    return !arena->failed;
}

static void copy_rank(struct bubble_order *to, const struct bubble_order *from, int rank)
{
    memcpy(to->passes[rank], from->passes[rank], from->counts[rank] * sizeof **from->passes);
    memcpy(to->patience[rank], from->patience[rank], sizeof *to->patience);
}

static bool bubble_search_is_done(const struct bubble_search_search *search)
{
    return search->found && search->figures.span_ns <= search->bound_ns;
}

/* True if the trial is at least as good as the best so far. Its figures are then those of the best. */
static bool try_order(struct bubble_search_search *search)
{
    struct bubble_figures figures;
    search->work += (int64_t)search->passes;
    int64_t most_ns = search->found ? search->figures.span_ns : INT64_MAX;
    if (!bubble_evaluate(search->problem, &search->trial, search->room, most_ns, &figures, NULL))
        return false;
    search->figures = figures;
    search->found = true;
    return true;
}

/* The trial, with each patience that is worth a try. */
static void bubble_search_try_candidate(struct bubble_search_search *search)
{
    static const uint8_t patiences[][2] = {{0, 0}, {0, 4}, {2, 2}, {2, 4}, {3, 4}, {4, 4}};
    for (size_t i = 0; i < sizeof patiences / sizeof patiences[0]; i++) {
        for (int rank = 0; rank < search->problem->ranks; rank++)
            memcpy(search->trial.patience[rank], patiences[i], sizeof patiences[i]);
        if (!try_order(search))
            continue;
        for (int rank = 0; rank < search->problem->ranks; rank++)
            copy_rank(&search->best, &search->trial, rank);
    }
}

/* ---- an order that is known ------------------------------------------------------------------ */

static void try_known(struct bubble_search_search *search, const struct rank_program *known)
{
    for (int rank = 0; rank < search->problem->ranks; rank++) {
        size_t count = 0;
        for (size_t i = 0; i < known[rank].count; i++) {
            const struct action *action = &known[rank].actions[i];
            if (action->kind != ACTION_W)
                search->trial.passes[rank][count++] =
                    (struct pass_code){(uint16_t)action->stage, action->kind != ACTION_F};
        }
        assert(count == search->trial.counts[rank]);
    }
    bubble_search_try_candidate(search);
}

/* ---- one stage a rank: leads ----------------------------------------------------------------- */

/* `lead` forwards, then backward and forward by turns, then backwards. */
static void fill_lead(struct bubble_search_search *search, int rank, int stage, int lead)
{
    const struct bubble_problem *problem = search->problem;
    struct pass_code *passes = search->trial.passes[rank];
    int limit = problem->limits[rank];
    int most = limit < problem->microbatches ? limit : problem->microbatches;
    int ahead = lead < most ? lead : most;
    size_t count = 0;
    for (int i = 0; i < ahead; i++)
        passes[count++] = (struct pass_code){(uint16_t)stage, false};
    for (int i = 0; i < problem->microbatches; i++) {
        passes[count++] = (struct pass_code){(uint16_t)stage, true};
        if (ahead + i < problem->microbatches)
            passes[count++] = (struct pass_code){(uint16_t)stage, false};
    }
}

/* A rank's lead is the last one's plus a slope, both in eighths, for each rank behind it: 8 is 1F1B, 16 ZB-H2. */
static void try_leads(struct bubble_search_search *search)
{
    const struct bubble_problem *problem = search->problem;
    for (int last = 8; last <= 32; last += 4)
        for (int slope = 8; slope <= 24; slope++) {
            if (search->work > CANDIDATE_WORK || bubble_search_is_done(search))
                return;
            for (int stage = 0; stage < problem->stages; stage++)
                fill_lead(search, problem->rank_of[stage], stage,
                          (last + (problem->stages - 1 - stage) * slope) / 8);
            bubble_search_try_candidate(search);
        }
}

/* ---- two stages a rank in V shape: repeated blocks ------------------------------------------- */

/* How far apart a pass on one rank and on the next are: forward down and up the V, backward down and up. */
struct bubble_search_block {
    double hop[4], turn;
    double interval; /* between microbatches */
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed_pass *a = left, *b = right;
    return compare_then(compare_double(a->at, b->at),
                        compare_then(compare_int(b->pass.backward, a->pass.backward),
                                     compare_int(a->pass.stage, b->pass.stage)));
}

static void fill_block(struct bubble_search_search *search, int rank,
                       const struct bubble_search_block *block)
{
    const struct bubble_problem *problem = search->problem;
    int ranks = problem->ranks, last = ranks - 1;
    uint16_t low = (uint16_t)rank, high = (uint16_t)(2 * ranks - 1 - rank);
    const struct pass_code codes[] = {{low, false}, {high, false}, {high, true}, {low, true}};
    const int hops[] = {rank, last - rank, rank, last - rank};
    size_t count = 0;
    for (int i = 0; i < problem->microbatches; i++) {
        double begin = i * block->interval;
        for (int k = 0; k < 4; k++) {
            search->placed[count++] =
                (struct placed_pass){begin + hops[k] * block->hop[k], codes[k]};
            begin += last * block->hop[k] + block->turn;
        }
    }
    SORT(search->placed, count, compare_placed);
    assert(count == search->trial.counts[rank]);
    for (size_t i = 0; i < count; i++)
        search->trial.passes[rank][i] = search->placed[i].pass;
}

static void try_block(struct bubble_search_search *search, const struct bubble_search_block *block)
{
    for (int rank = 0; rank < search->problem->ranks; rank++)
        fill_block(search, rank, block);
    bubble_search_try_candidate(search);
}

/* The ranks with the least and the most room. */
static void find_limits(const struct bubble_problem *problem, int *least, int *most)
{
    *least = *most = problem->limits[0];
    for (int rank = 1; rank < problem->ranks; rank++) {
        int limit = problem->limits[rank];
        *least = limit < *least ? limit : *least;
        *most = limit > *most ? limit : *most;
    }
}

/* Blocks whose hops are these multiples of a pass, if they hold about what may be held. */
static void try_blocks(struct bubble_search_search *search, double stretch)
{
    static const double multiples[] = {1, 1.5, 2, 2.5, 3, 4, 5};
    enum { MULTIPLES = sizeof multiples / sizeof multiples[0] };
    const struct bubble_problem *problem = search->problem;
    double pass = 0, weights = 0, ranks = problem->ranks;
    for (int stage = 0; stage < problem->stages; stage++) {
        pass += (double)(problem->times[stage].f_ns + problem->times[stage].i_ns) / 2;
        weights += (double)problem->times[stage].w_ns;
    }
    int least, most;
    find_limits(problem, &least, &most);
    pass /= problem->stages;
    double interval = stretch * (4 * pass + 2 * weights / problem->stages);
    pass += (double)(problem->up_ns[0] + problem->down_ns[0]) / 2;
    for (int k = 0; k < MULTIPLES * MULTIPLES * MULTIPLES * MULTIPLES * 2; k++) {
        struct bubble_search_block block = {.interval = interval, .turn = pass * (1 + k % 2)};
        double all = 4;
        for (int h = 0, rest = k / 2; h < 4; h++, rest /= MULTIPLES) {
            block.hop[3 - h] = pass * multiples[rest % MULTIPLES];
            all += (ranks - 1) * multiples[rest % MULTIPLES];
        }
        if (search->work > CANDIDATE_WORK || bubble_search_is_done(search))
            return;
        double held = all * pass / interval;
        if (held <= most + 4 && (stretch > 1 || held >= least / 2 - 2))
            try_block(search, &block);
    }
}

/* Where memory is short a microbatch may have to be done before the next begins. */
static void try_all_blocks(struct bubble_search_search *search)
{
    for (double stretch = 1; stretch <= 4 * search->problem->ranks; stretch *= 2) {
        try_blocks(search, stretch);
        if (search->found)
            return;
        search->work = 0;
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static int bubble_search_draw(uint64_t *count, size_t limit)
{
    return (int)(hash_mix(UINT64_C(0x9e3779b97f4a7c15) * ++*count) % (uint64_t)limit);
}

/* Exchange two neighbours, and the next pairs like them, up to `most` pairs. False: they are alike. */
static bool bubble_search_exchange(struct pass_code *passes, size_t count, size_t at, size_t most)
{
    struct pass_code first = passes[at], second = passes[at + 1];
    if (first.stage == second.stage && first.backward == second.backward)
        return false;
    for (; at + 1 < count && most > 0; at++) {
        const struct pass_code *pair = &passes[at];
        if (pair[0].stage != first.stage || pair[0].backward != first.backward ||
            pair[1].stage != second.stage || pair[1].backward != second.backward)
            continue;
        passes[at] = second;
        passes[at + 1] = first;
        most--;
    }
    return true;
}

static bool change_rank(struct bubble_search_search *search, int rank, uint64_t *count)
{
    struct bubble_order *trial = &search->trial;
    size_t passes = trial->counts[rank];
    int kind = bubble_search_draw(count, 8);
    if (kind == 0) {
        trial->patience[rank][bubble_search_draw(count, 2)] =
            (uint8_t)bubble_search_draw(count, PATIENCE_STEPS);
        return true;
    }
    size_t at = (size_t)bubble_search_draw(count, passes - 1);
    return bubble_search_exchange(trial->passes[rank], passes, at,
                                  kind < 4 ? 1 : 1 + (size_t)bubble_search_draw(count, passes));
}

static void copy_order(struct bubble_order *to, const struct bubble_order *from, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        copy_rank(to, from, rank);
}

/* Changes from `start` on, each kept unless it makes the order worse. */
static void bubble_search_climb(struct bubble_search_search *search,
                                const struct bubble_order *start, struct bubble_figures now,
                                int64_t most_work, uint64_t *count)
{
    const int ranks = search->problem->ranks;
    struct bubble_figures figures;
    copy_order(&search->current, start, ranks);
    copy_order(&search->trial, start, ranks);
    bool line = search->problem->stages == ranks;
    int64_t better_at = 0, patience = line ? most_work / STALE : most_work;
    for (int64_t work = 0; work < most_work && work - better_at <= patience;
         work += (int64_t)search->passes) {
        int rank = bubble_search_draw(count, (size_t)ranks);
        if (change_rank(search, rank, count) &&
            bubble_evaluate(search->problem, &search->trial, search->room, now.span_ns, &figures,
                            NULL)) {
            better_at = figures.span_ns < now.span_ns ? work : better_at;
            now = figures;
            copy_rank(&search->current, &search->trial, rank);
        } else {
            copy_rank(&search->trial, &search->current, rank);
        }
        if (now.span_ns <= search->bound_ns)
            break;
    }
    if (now.span_ns > search->figures.span_ns)
        return;
    search->figures = now;
    copy_order(&search->best, &search->current, ranks);
}

/* A small problem is climbed several times from the best candidate: each climb ends on another top. */
static void bubble_search_improve(struct bubble_search_search *search)
{
    int64_t rounds = CHANGE_WORK / ROUND_CHANGES / (int64_t)search->passes;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    uint64_t count = 0;
    struct bubble_figures begin = search->figures;
    copy_order(&search->start, &search->best, search->problem->ranks);
    for (int64_t round = 0; round < rounds && !bubble_search_is_done(search); round++)
        bubble_search_climb(search, &search->start, begin, CHANGE_WORK / rounds, &count);
}

/* ---- all together ---------------------------------------------------------------------------- */

static bool make_search(struct bubble_search_search *search, struct arena *arena)
{
    const struct bubble_problem *problem = search->problem;
    search->bound_ns = bubble_bound(problem);
    search->passes = 3 * (size_t)problem->stages * (size_t)problem->microbatches;
    search->placed = ARENA_ARRAY(arena, 4 * (size_t)problem->microbatches, struct placed_pass);
    return bubble_room_make(problem, arena, &search->room) &&
           make_order(problem, arena, &search->trial) &&
           make_order(problem, arena, &search->best) &&
           make_order(problem, arena, &search->current) &&
           make_order(problem, arena, &search->start) && search->placed;
}

static bool write_lists(const struct bubble_search_search *search, struct arena *arena,
                        struct rank_program **out)
{
    const struct bubble_problem *problem = search->problem;
    struct rank_program *lists = ARENA_ARRAY(arena, (size_t)problem->ranks, struct rank_program);
    for (int rank = 0; lists && rank < problem->ranks; rank++) {
        lists[rank].actions = ARENA_ARRAY(arena, search->best.counts[rank] / 2 * 3, struct action);
        if (!lists[rank].actions)
            return false;
    }
    struct bubble_figures figures;
    bool good =
        lists && bubble_evaluate(problem, &search->best, search->room, INT64_MAX, &figures, lists);
    *out = lists;
    return good;
}

enum status bubble_search(const struct bubble_problem *problem, const struct rank_program *known,
                          struct arena *arena, struct rank_program **ranks,
                          struct bubble_figures *figures)
{
    struct bubble_search_search search = {.problem = problem};
    struct arena scratch;
    arena_init(&scratch, 0);
    struct rank_program *lists = NULL;
    bool ok = make_search(&search, &scratch);
    if (ok && known)
        try_known(&search, known);
    if (ok && problem->stages == problem->ranks)
        try_leads(&search);
    else if (ok)
        try_all_blocks(&search);
    if (ok && search.found) {
        bubble_search_improve(&search);
        ok = write_lists(&search, arena, &lists);
    }
    arena_fini(&scratch);
    if (!ok)
        return STATUS_SYSTEM;
    *ranks = lists;
    *figures = search.figures;
    return STATUS_OK;
}
