/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_early.c - a violation told while searches go on: once, and where memory does not allow its story at first, later.
 *
 * Linked with --wrap, so malloc of the product is __wrap_malloc here: each allocation of the story is refused in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "check/early.h"
#include "tests/harness.h"
#include "tests/refused.h"
#include "tests/tap.h"

/* Two threads, two locks, two orders. */
static const char two_locks[] =
    "swplan: 1\nthreads:\n"
    "  r0.a: [{host: 1us}, {lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"
    "  r0.b: [{lock: n}, {lock: m}, {unlock: m}, {unlock: n}]\n";

enum { ASKED = 1 << PROPERTY_DEADLOCK };

struct told {
    int times, whole;
    int too_early; /* while nobody waits for it yet */
};

static void hear(void *arg, const struct verify_report *so_far)
{
    struct told *told = arg;
    const struct story *story = &so_far->stories[PROPERTY_DEADLOCK];
    told->times++;
    told->whole += so_far->first == PROPERTY_DEADLOCK && story->sentence && story->step_count == 3;
}

/* The main search has its result, another one goes on: four looks, of which the second finds `refused` refused. */
static struct told look(const struct program *program, const struct search_result *result,
                        long refused, bool *reached)
{
    struct told told = {0};
    struct early early;
    struct search_result other = {.transitions = 0};
    early_begin(&early, program, ASKED, hear, &told);
    early.result = result;
    early_look(&early, &other);
    told.too_early = told.times;
    other.transitions = UINT64_MAX / 2;
    atomic_store(&before_refusal, refused);
    early_look(&early, &other);
    *reached = refused >= 0 && atomic_exchange(&before_refusal, -1) < 0;
    early_look(&early, &other);
    early_look(&early, &other);
    return told;
}

static void test_refused(const struct program *program, const struct search_result *result)
{
    bool reached;
    long refused = 0, lost = 0, again = 0, half = 0;
    struct told told = look(program, result, -1, &reached);
    tap_ok(told.times == 1 && told.whole == 1 && !told.too_early,
           "with memory a violation is told once");
    for (reached = true; reached; refused++) {
        told = look(program, result, refused, &reached);
        lost += told.times == 0;
        again += told.times > 1;
        half += told.times != told.whole;
    }
    tap_ok(refused > 2, "%ld allocations of a story are refused", refused - 1);
    tap_is_int(lost, 0, "violations that are not told later");
    tap_is_int(again, 0, "violations that are told twice");
    tap_is_int(half, 0, "stories that are not whole");
}

int main(void)
{
    const struct program_options options = {.iterations = -1};
    const struct search_options search = {.reduction = true, .properties = ASKED, .stop_at = ASKED};
    struct plan plan;
    struct program *program = NULL;
    struct search_result result;
    struct diag diag;
    diag_init(&diag);
    if (plan_of_text(two_locks, &plan)) {
        bool found = program_build(&plan, &options, &program, &diag) == STATUS_OK &&
                     search_run(program, &search, &result, &diag) == STATUS_OK;
        tap_ok(found && result.found == ASKED, "a deadlock is found");
        if (found) {
            test_refused(program, &result);
            search_result_fini(&result);
        }
        program_close(program);
        plan_fini(&plan);
    }
    diag_fini(&diag);
    return tap_done();
}
