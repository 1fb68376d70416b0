/* SPDX-License-Identifier: Apache-2.0 */
/* shorten.c - see shorten.h. */
#include "reduce.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "shorten.h"
#include "base/stopwatch.h"

struct minimiser {
    const struct program *program;
    enum property property;
    struct state *state;
    struct reducer reducer;
    struct transition *choices;            /* room for the reducer's answers */
    struct transition *path, *trial, *try; /* the best so far; to be replayed; the steps replayed */
    size_t count;
    int64_t effort; /* machine steps left */
    struct search_watch *watch;
};

/* ---- replay ---------------------------------------------------------------------------------- */

static bool shorten_is_possible(const struct minimiser *m, struct transition step)
{
    return machine_agent_enabled(m->program, m->state, step.agent) > step.choice;
}

/* True if the state is an end that the property forbids. As in the search, one component of several may hang alone. */
static bool ends_badly(struct minimiser *m)
{
    const struct program *p = m->program;
    if (machine_done(p, m->state) || reducer_choices(&m->reducer, m->state, m->choices) > 0)
        return false;
    if (m->property != PROPERTY_SLOT)
        return m->property ==
               (reducer_data_ended(&m->reducer, m->state) ? PROPERTY_DRAIN : PROPERTY_DEADLOCK);
    int64_t wanted, found;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (machine_stale_wait(p, m->state, agent, &wanted, &found))
            return true;
    return false;
}

/* True if the violation is a property of a last state, rather than of a step. */
static bool is_of_states(enum property property)
{
    return property == PROPERTY_DEADLOCK || property == PROPERTY_DRAIN || property == PROPERTY_SLOT;
}

/* Replay `count` steps of `trial` into `try`, without those that are not enabled. Returns the length
   of `try` if it ends in the violation, else 0. No run goes on behind a mismatch. */
static size_t shorten_replay(struct minimiser *m, size_t count)
{
    size_t done = 0;
    machine_reset(m->program, m->state);
    for (size_t i = 0; i < count; i++) {
        struct effect effect;
        if (!shorten_is_possible(m, m->trial[i]))
            continue;
        machine_step(m->program, m->state, m->trial[i], &effect);
        m->effort--;
        m->try[done++] = m->trial[i];
        if (effect.violated & 1u << m->property)
            return done;
        if (effect.violated & 1u << PROPERTY_MISMATCH)
            return 0;
    }
    return is_of_states(m->property) && ends_badly(m) ? done : 0;
}

/* ---- leaving out ----------------------------------------------------------------------------- */

static bool shorten_goes_on(const struct minimiser *m)
{
    return m->effort > 0 && !watch_own_watch_look(m->watch);
}

/* Replay the trial; it becomes the path if it shows the violation and is not too long. */
static bool shorten_adopt(struct minimiser *m, size_t count, size_t longest)
{
    size_t length = shorten_replay(m, count);
    if (length == 0 || length > longest)
        return false;
    memcpy(m->path, m->try, length * sizeof *m->path);
    m->count = length;
    return true;
}

static bool leave_out_stretch(struct minimiser *m, size_t first, size_t length)
{
    size_t end = min_size(first + length, m->count);
    memcpy(m->trial, m->path, first * sizeof *m->path);
    memcpy(m->trial + first, m->path + end, (m->count - end) * sizeof *m->path);
    return shorten_adopt(m, m->count - (end - first), m->count - 1);
}

static size_t shorten_steps_of(const struct minimiser *m, int agent)
{
    size_t steps = 0;
    for (size_t i = 0; i < m->count; i++)
        steps += m->path[i].agent == agent;
    return steps;
}

static bool leave_out_last(struct minimiser *m, int agent, size_t steps)
{
    size_t keep = shorten_steps_of(m, agent) - steps, kept = 0, count = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->path[i].agent != agent || kept++ < keep)
            m->trial[count++] = m->path[i];
    return shorten_adopt(m, count, m->count - 1);
}

static void shorten_agent(struct minimiser *m, int agent)
{
    for (size_t steps = shorten_steps_of(m, agent); steps > 0 && shorten_goes_on(m); steps /= 2)
        while (steps <= shorten_steps_of(m, agent) && shorten_goes_on(m) &&
               leave_out_last(m, agent, steps))
            ;
}

static void shorten_shorten(struct minimiser *m)
{
    for (int agent = m->program->agent_count; agent-- > 0;)
        shorten_agent(m, agent);
    for (size_t length = m->count / 2; length > 0; length /= 2)
        for (size_t first = m->count; first > 0 && shorten_goes_on(m);) {
            first = first > length ? first - length : 0;
            leave_out_stretch(m, first, length);
            first = min_size(first, m->count);
        }
}

/* ---- straightening --------------------------------------------------------------------------- */

/* Move the next step of the agent of step `at - 1` forward to `at`, if the path stays as good. */
static void draw_forward(struct minimiser *m, size_t at)
{
    size_t next = at;
    while (next < m->count && m->path[next].agent != m->path[at - 1].agent)
        next++;
    if (next == at || next == m->count)
        return;
    memcpy(m->trial, m->path, m->count * sizeof *m->path);
    memmove(m->trial + at + 1, m->trial + at, (next - at) * sizeof *m->trial);
    m->trial[at] = m->path[next];
    size_t length = shorten_replay(m, m->count);
    if (length == m->count)
        memcpy(m->path, m->try, length * sizeof *m->path);
}

static void straighten(struct minimiser *m)
{
    for (size_t at = 1; at < m->count && shorten_goes_on(m); at++)
        draw_forward(m, at);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool alloc_minimiser(struct minimiser *m, size_t count)
{
    m->state = machine_state(m->program);
    m->choices = calloc(machine_most_transitions(m->program), sizeof *m->choices);
    m->path = calloc(count + 1, sizeof *m->path);
    m->trial = calloc(count + 1, sizeof *m->trial);
    m->try = calloc(count + 1, sizeof *m->try);
    return reducer_init(&m->reducer, m->program, PACE_ANY, STAGED_EITHER) && m->state &&
           m->choices && m->path && m->trial && m->try;
}

static void close_minimiser(struct minimiser *m)
{
    reducer_fini(&m->reducer);
    machine_free(m->state);
    free(m->choices);
    free(m->path);
    free(m->trial);
    free(m->try);
}

/* Open with `path` as the best so far and as the trial. */
static enum status open_minimiser(struct minimiser *m, const struct program *program,
                                  enum property property, const struct search_path *path,
                                  struct diag *diag)
{
    *m = (struct minimiser){.program = program, .property = property, .count = path->count};
    if (!alloc_minimiser(m, path->count)) {
        close_minimiser(m);
        return diag_no_memory(diag);
    }
    if (path->count > 0) {
        memcpy(m->path, path->steps, path->count * sizeof *m->path);
        memcpy(m->trial, path->steps, path->count * sizeof *m->path);
    }
    return STATUS_OK;
}

enum status minimise_path(const struct program *program, enum property property, int64_t *effort,
                          struct search_watch *watch, struct search_path *path, struct diag *diag)
{
    struct minimiser m;
    enum status status = open_minimiser(&m, program, property, path, diag);
    if (status != STATUS_OK)
        return status;
    m.effort = *effort;
    m.watch = watch;
    if (path->count > 0 && shorten_replay(&m, path->count) == path->count) {
        shorten_shorten(&m);
        straighten(&m);
        memcpy(path->steps, m.path, m.count * sizeof *m.path);
        path->count = m.count;
    }
    *effort = m.effort > 0 ? m.effort : 0;
    close_minimiser(&m);
    return STATUS_OK;
}

enum status minimise_check(const struct program *program, enum property property,
                           const struct search_path *path, bool *out, struct diag *diag)
{
    struct minimiser m;
    enum status status = open_minimiser(&m, program, property, path, diag);
    if (status != STATUS_OK)
        return status;
    size_t length = shorten_replay(&m, path->count);
    *out = path->count > 0 ? length == path->count : is_of_states(property) && ends_badly(&m);
    close_minimiser(&m);
    return STATUS_OK;
}

enum { SEARCH_STEPS = 200000, REPLAY_STEPS = 1 << 19 };
/* Steps are up to ten times as slow under a sanitizer or with checks, and the story is to be the same. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__ || defined SWSIM_CHECKS
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

static enum status shorten_find_shortest(const struct program *program,
                                         const struct search_options *common,
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
    budget->search_steps -= min_u64(result.transitions, budget->search_steps);
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
    if (budget->search_steps > 0 && !watch_own_watch_look(&watch))
        status = shorten_find_shortest(program, search, property, budget, path, diag);
    if (status != STATUS_OK)
        return status;
    return minimise_path(program, property, &budget->replay_steps, &watch, path, diag);
}
