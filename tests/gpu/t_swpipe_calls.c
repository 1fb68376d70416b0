/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_calls.c - calls of libswpipe in any order: pipelines of two plans, both drivers, both kinds of threads, one
 * rank to three; functions and sources fail now and then. Every call returns, with a status that a call of its kind can
 * have; one that failed says why; every batch is given back once; a good run is possible at the end.
 *
 *     t_swpipe_calls [FIRST [COUNT]]     pipelines of these seeds; 0, 150
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lib/swpipe.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

static const char *const plans[] = {
    "swplan: 1\nname: meets\nranks: 2\nretire: device\nschedule:\n"
    "  A: {stage: 0, stream: m, thread_group: io, writes: [b]}\n"
    "  B: {stage: 1, stream: s, thread_group: g, globally_ordered: true, reads: [b], writes: [c],\n"
    "      work: {collective: all_reduce, comm: dp, bytes: 1KiB}}\n"
    "  C: {stage: 2, reads: [c]}\n"
    "intra_iter_deps: [[B, A], [C, B]]\nbuffers: {b: {bytes: 64 B}}\n",
    "swplan: 1\nname: alone\nschedule:\n"
    "  A: {stage: 0, stream: m, thread_group: io, writes: [b]}\n"
    "  B: {stage: 1, reads: [b]}\n  C: {stage: 1}\n"
    "intra_iter_deps: [[B, A], [C, B]]\ninter_iter_deps: [[B, B]]\n"};

enum { MOST_RANKS = 3, CALLS = 30, STATUSES = SWPIPE_SYSTEM + 1 };

struct world {
    struct random random;
    struct swpipe *pipe;
    _Atomic(struct swpipe_event *) event;
    atomic_int fail_at;   /* an iteration; -1: none */
    int left[MOST_RANKS]; /* batches */
    bool source_fails;
    int given, released;
    const char *odd; /* what must not be */
    int counts[STATUSES];
};

/* ---- what the library calls ------------------------------------------------------------------ */

static int next(void *arg, int rank, void **batch)
{
    struct world *world = arg;
    if (world->left[rank]-- <= 0)
        return world->source_fails ? -1 : 0;
    *batch = malloc(1);
    world->given += *batch != NULL;
    return *batch ? 1 : -1;
}

static void release(void *arg, int rank, void *batch)
{
    struct world *world = arg;
    (void)rank;
    world->released += batch != NULL; /* serial iterations that are asked for have none */
    free(batch);
}

static void *clone(const void *value, void *arg)
{
    (void)arg;
    int *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *(const int *)value;
    return copy;
}

static void forget_value(void *value, void *arg)
{
    (void)arg;
    free(value);
}

static const struct swpipe_kind counted = {.clone = clone, .release = forget_value};

static void read_value(void *arg)
{
    static atomic_int sum;
    atomic_fetch_add(&sum, *(int *)arg);
}

static int step(struct swpipe_context *context, void *arg)
{
    struct world *world = arg;
    struct swpipe_event *event = atomic_load(&world->event);
    const int64_t i = swpipe_iteration(context);
    if (i == atomic_load(&world->fail_at))
        return swpipe_fail(context, "as planned");
    int *value = swpipe_get(context, "value");
    if (!value) {
        value = calloc(1, sizeof *value);
        if (!value || swpipe_set(context, "value", value, &counted) != 0) {
            free(value);
            return -1;
        }
    }
    if (i % 3 == 0 && !swpipe_alloc(context, "memory", 256))
        return -1;
    if (i % 4 == 1)
        swpipe_unset(context, "memory");
    swpipe_set_result(context, world);
    if (event && swpipe_rank(context) == 0 && swpipe_event_record(context, event) != 0)
        return -1;
    return swpipe_launch(context, read_value, value);
}

static void *capture(void *arg)
{
    return clone(&(int){*(int *)arg}, NULL);
}

static int restore(const void *saved, void *arg)
{
    return *(const int *)saved == *(const int *)arg ? 0 : -1;
}

static void forget(void *saved, void *arg)
{
    (void)arg;
    free(saved);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void prepare(struct world *world)
{
    const int batches = below(&world->random, 9);
    for (int rank = 0; rank < MOST_RANKS; rank++)
        world->left[rank] = batches;
    world->source_fails = rarely(&world->random, 6);
    atomic_store(&world->fail_at, rarely(&world->random, 4) ? below(&world->random, 6) : -1);
}

static int move(struct world *world, const struct swpipe_source *source)
{
    struct swpipe *pipe = world->pipe;
    switch (below(&world->random, 8)) {
    case 0: return (int)swpipe_fill(pipe, source);
    case 1: return (int)swpipe_drain(pipe);
    case 2: return (int)swpipe_run(pipe, source, NULL);
    case 3: return (int)swpipe_run_serial(pipe, source, NULL);
    case 4: return (int)swpipe_run_one_serial(pipe, NULL, below(&world->random, 5) - 1);
    default: return (int)swpipe_progress(pipe, source, NULL);
    }
}

static int change(struct world *world)
{
    static const char *const names[] = {"A", "B", "C", "Nobody"};
    const struct swpipe_profile_options options = {1, 1, 1, NULL, 0};
    struct swpipe_profile profile;
    struct swpipe *pipe = world->pipe;
    switch (below(&world->random, 5)) {
    case 0: return (int)swpipe_record(pipe, rarely(&world->random, 2) ? "" : NULL);
    case 1: return (int)swpipe_enable_shortcut(pipe, one_of(&world->random, names, 4));
    case 2: return (int)swpipe_disable_shortcut(pipe, NULL);
    case 3: return (int)swpipe_profile(pipe, NULL, &options, &profile);
    default: break;
    }
    struct swpipe_event *event = NULL;
    if (atomic_load(&world->event))
        return SWPIPE_OK;
    int status = (int)swpipe_event_open(pipe, below(&world->random, 2) * 9, &event);
    if (status == SWPIPE_OK && event)
        atomic_store(&world->event, event);
    return status;
}

static int ask(struct world *world)
{
    struct swpipe_answer answer;
    struct swpipe_recorded recorded;
    struct swpipe *pipe = world->pipe;
    char *text = NULL;
    switch (below(&world->random, 6)) {
    case 0: return (int)swpipe_verify(pipe, below(&world->random, 3) - 1, &answer);
    case 1: text = swpipe_format(pipe); break;
    case 2: text = swpipe_format_schedule(pipe, below(&world->random, 9) - 1); break;
    case 3: text = swpipe_format_stats(pipe); break;
    case 4: (void)swpipe_recorded(pipe, &recorded); return SWPIPE_OK;
    default: text = swpipe_format_stage_analysis(pipe); break;
    }
    const bool told = text || *swpipe_error(pipe);
    free(text);
    world->odd = told ? world->odd : "a table is missing without a word";
    return SWPIPE_OK;
}

static void call(struct world *world)
{
    const struct swpipe_source good = {next, world}, none = {NULL, NULL};
    prepare(world);
    const struct swpipe_source *source = rarely(&world->random, 10) ? &none : &good;
    int kind = below(&world->random, 10), status;
    if (rarely(&world->random, 10))
        source = NULL;
    status = kind < 6 ? move(world, source) : kind < 8 ? change(world) : ask(world);
    if (status < 0 || status >= STATUSES)
        world->odd = "a status that is none";
    else
        world->counts[status]++;
    if (status > SWPIPE_END && !*swpipe_error(world->pipe))
        world->odd = "a failure without a word";
    if (status == SWPIPE_SYSTEM || status == SWPIPE_TIMEOUT) {
        tap_note("%s", swpipe_error(world->pipe));
        world->odd = "the system refused something, or a wait was too long";
    }
    const int in_flight = swpipe_in_flight(world->pipe);
    if (in_flight < 0 || in_flight > swpipe_depth(world->pipe))
        world->odd = "more in flight than there can be";
}

/* ---- a pipeline ------------------------------------------------------------------------------ */

static struct swpipe *open_any(struct world *world)
{
    static int state = 7;
    struct random *random = &world->random;
    const struct swpipe_io io = {capture, restore, forget, &state};
    const struct swpipe_task tasks[] = {{"A", step, world, &io, (size_t)below(random, 2)},
                                        {"C", step, world, NULL, 0}};
    const struct swpipe_config config = {.plan_text = one_of(random, plans, 2),
                                         .tasks = tasks,
                                         .task_count = (size_t)(1 + below(random, 2)),
                                         .driver = (enum swpipe_driver)below(random, 2),
                                         .threads = (enum swpipe_threads)below(random, 2),
                                         .ranks = 1 + below(random, MOST_RANKS),
                                         .hooks = {.release = release, .arg = world}};
    struct swpipe *pipe;
    if (swpipe_open(&config, &pipe) != SWPIPE_OK)
        world->odd = "a plan that is refused";
    return pipe;
}

static const char *try_one(uint64_t seed, int counts[STATUSES])
{
    struct world world = {.random = {.seed = seed}};
    atomic_store(&world.fail_at, -1);
    world.pipe = open_any(&world);
    for (int i = 0; i < CALLS && !world.odd; i++)
        call(&world);
    (void)swpipe_drain(world.pipe); /* what failed last is told */
    (void)swpipe_disable_shortcut(world.pipe, NULL);
    atomic_store(&world.fail_at, -1);
    world.source_fails = false;
    for (int rank = 0; rank < MOST_RANKS; rank++)
        world.left[rank] = 5;
    const struct swpipe_source source = {next, &world};
    if (!world.odd && swpipe_run(world.pipe, &source, NULL) != SWPIPE_OK)
        world.odd = "no run is possible behind it";
    swpipe_close(world.pipe);
    if (!world.odd && world.given != world.released)
        world.odd = "batches are not given back once";
    for (int i = 0; i < STATUSES; i++)
        counts[i] += world.counts[i];
    return world.odd;
}

int main(int argc, char **argv)
{
    const int first = argc > 1 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 150;
    int counts[STATUSES] = {0}, odd = 0;
    for (int i = 0; i < count; i++) {
        const char *what = try_one((uint64_t)(first + i), counts);
        odd += what != NULL;
        if (what)
            tap_note("seed %d: %s", first + i, what);
    }
    tap_ok(odd == 0, "pipelines take calls in any order");
    tap_ok(counts[SWPIPE_OK] > 0 && counts[SWPIPE_END] > 0 && counts[SWPIPE_FAILED] > 0 &&
               counts[SWPIPE_USAGE] > 0 && counts[SWPIPE_INPUT] > 0,
           "ok %d, end %d, failed %d, usage %d, input %d", counts[SWPIPE_OK], counts[SWPIPE_END],
           counts[SWPIPE_FAILED], counts[SWPIPE_USAGE], counts[SWPIPE_INPUT]);
    return tap_done();
}
