/*
 * t_structure.c - what structure.c proves without a search, a search without reduction must not
 * refute.
 *
 * Random small data-flow pipelines: two or three tasks, streams, thread groups, dependences of
 * distance 0 to 2, buffers, at times an ordered collective on two ranks. Prints its seed;
 * SWSIM_SEED sets it, SWSIM_LONG=1 asks for more plans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/search.h"
#include "check/structure.h"
#include "core/hash.h"
#include "core/parse.h"
#include "tests/tap.h"

enum { QUICK = 100, LONG = 5000, STATES = 12000 };

struct random {
    uint64_t seed, count;
};

static int below(struct random *random, int limit)
{
    return (int)(hash_mix(random->seed + 0x9e3779b97f4a7c15u * ++random->count) % (uint64_t)limit);
}

/* One task; at most one of them communicates. */
static int write_task(struct random *random, char *out, size_t cap, int index, bool communicates)
{
    static const char *const accesses[] = {"", ", reads: [b]", ", writes: [b]", ", reads: [w]",
                                           ", writes: [w]"};
    const char *work = communicates ? ", globally_ordered: true, work: {collective: all_reduce, "
                                      "comm: dp, bytes: 1KiB}"
                                    : "";
    return snprintf(out, cap, "  T%d: {stage: 0, stream: s%d, thread_group: g%d, time: 1us%s%s}\n",
                    index, below(random, 2), below(random, 2), accesses[below(random, 5)], work);
}

static void write_plan(struct random *random, char *out, size_t cap)
{
    int tasks = 2 + below(random, 2), ranks = 1 + (below(random, 4) == 0);
    int communicating = below(random, 3) == 0 ? below(random, tasks) : -1;
    size_t at =
        (size_t)snprintf(out, cap,
                         "swplan: 1\nname: random\nranks: %d\nmax_depth: %d\nretire: %s\n"
                         "buffers: {b: {scope: iteration}, w: {scope: shared}}\nschedule:\n",
                         ranks, 1 + below(random, 2), below(random, 4) ? "device" : "submit");
    for (int t = 0; t < tasks; t++)
        at += (size_t)write_task(random, out + at, cap - at, t, t == communicating);
    at += (size_t)snprintf(out + at, cap - at, "intra_iter_deps: [");
    const char *comma = "";
    for (int t = 1; t < tasks; t++)
        if (below(random, 3)) {
            at += (size_t)snprintf(out + at, cap - at, "%s[T%d, T%d]", comma, t, below(random, t));
            comma = ", ";
        }
    at += (size_t)snprintf(out + at, cap - at, "]\ninter_iter_deps: [");
    if (below(random, 2))
        at += (size_t)snprintf(out + at, cap - at, "[T%d, T%d, %d]", below(random, tasks),
                               below(random, tasks), 1 + below(random, 2));
    snprintf(out + at, cap - at, "]\n");
}

struct tally {
    int proved, races_proved, checked, refuted;
};

static void check_plan(const char *text, struct tally *tally)
{
    struct diag diag;
    diag_init(&diag);
    struct plan plan;
    struct program *program;
    struct program_options options = {.driver = DRIVER_DATAFLOW, .iterations = -1};
    unsigned proved = 0;
    if (plan_parse("random.yaml", text, strlen(text), &plan, &diag) != STATUS_OK ||
        program_build(&plan, &options, &program, &diag) != STATUS_OK) {
        diag_print(&diag, "t_structure", false, stderr);
        tally->refuted++;
        diag_fini(&diag);
        return;
    }
    if (structure_proves(program, &proved, &diag) == STATUS_OK && proved) {
        struct search_options search = {.properties = proved, .limits = {.states = STATES}};
        struct search_result result;
        tally->proved++;
        tally->races_proved += (proved & 1u << PROPERTY_RACE) != 0;
        if (search_run(program, &search, &result, &diag) == STATUS_OK) {
            tally->checked += result.complete;
            if (result.found) {
                tally->refuted++;
                for (int p = 0; p < PROPERTY_COUNT; p++)
                    if (result.found & 1u << p)
                        tap_note("structure proves %s, the search refutes it:\n%s",
                                 property_key((enum property)p), text);
            }
            search_result_fini(&result);
        }
    }
    program_close(program);
    plan_fini(&plan);
    diag_fini(&diag);
}

int main(void)
{
    const char *seed = getenv("SWSIM_SEED"), *is_long = getenv("SWSIM_LONG");
    struct random random = {seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL), 0};
    int plans = is_long && *is_long == '1' ? LONG : QUICK;
    struct tally tally = {0};
    char text[4096];
    tap_note("SWSIM_SEED=%" PRIu64, random.seed);
    for (int i = 0; i < plans; i++) {
        write_plan(&random, text, sizeof text);
        check_plan(text, &tally);
    }
    tap_ok(tally.refuted == 0, "no search refutes what structure proves");
    tap_ok(tally.proved > plans / 2 && tally.checked > plans / 5,
           "%d of %d plans proved by structure, %d of these searched to the end", tally.proved,
           plans, tally.checked);
    tap_ok(tally.races_proved > plans / 10 && tally.races_proved < tally.proved,
           "%d free of races by structure", tally.races_proved);
    return tap_done();
}
