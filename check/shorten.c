/* SPDX-License-Identifier: Apache-2.0 */
/* shorten.c - see shorten.h. */
#include "shorten.h"

#include "minimise.h"
#include "stopwatch.h"

enum { SEARCH_STEPS = 200000, REPLAY_STEPS = 1 << 19 };
/* Steps are up to ten times as slow under a sanitizer, and the story is to be the same. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define SHORTEN_NS INT64_C(30000000000)
#else
#define SHORTEN_NS INT64_C(2000000000)
#endif
#define SEARCH_BYTES ((size_t)512 << 20)

void shorten_begin(struct shorten_budget *budget)
{
    *budget = (struct shorten_budget){.search_steps = SEARCH_STEPS, .replay_steps = REPLAY_STEPS};
}

/* The part of the caller's limits that is left for this. */
static struct search_limits limits_within(const struct search_limits *limits,
                                          const struct shorten_budget *budget)
{
    size_t mem_bytes = limits->mem_bytes;
    return (struct search_limits){
        .steps = budget->search_steps,
        .mem_bytes = mem_bytes && mem_bytes < SEARCH_BYTES ? mem_bytes : SEARCH_BYTES,
        .until_ns = stopwatch_earlier(limits->until_ns, budget->until_ns)};
}

static void charge(struct shorten_budget *budget, uint64_t steps)
{
    budget->search_steps -= steps < budget->search_steps ? steps : budget->search_steps;
}

static enum status find_shortest(const struct program *program, const struct search_options *common,
                                 enum property property, struct shorten_budget *budget,
                                 struct search_path *path, struct diag *diag)
{
    struct search_options search = *common;
    search.reduction = false;
    search.properties = search.stop_at = 1u << property;
    search.limits = limits_within(&common->limits, budget);
    search.progress = NULL;
    search.bitstate_bytes = 0;
    struct search_result result;
    enum status status = search_run(program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    struct search_path *found = &result.witness[property];
    if (result.found & 1u << property && found->count < path->count) {
        struct search_path longer = *path;
        *path = *found;
        *found = longer;
    }
    charge(budget, result.transitions);
    search_result_fini(&result);
    return STATUS_OK;
}

enum status shorten_path(const struct program *program, const struct search_options *search,
                         enum property property, struct shorten_budget *budget,
                         struct search_path *path, struct diag *diag)
{
    if (!budget->until_ns)
        budget->until_ns = stopwatch_now_ns() + SHORTEN_NS;
    struct search_watch watch = {.until_ns =
                                     stopwatch_earlier(search->limits.until_ns, budget->until_ns),
                                 .interrupted = search->interrupted};
    enum status status = STATUS_OK;
    if (budget->search_steps > 0 && !watch_look(&watch))
        status = find_shortest(program, search, property, budget, path, diag);
    if (status != STATUS_OK)
        return status;
    return minimise_path(program, property, &budget->replay_steps, &watch, path, diag);
}
