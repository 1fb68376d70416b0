/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_run_memory.c - a real run with too little memory: one allocation after the other is refused, once. The run is legal,
 * or it has no verdict and says that memory ran out: no step that could not be logged makes it an illegal one, and the
 * message comes once.
 *
 * Linked with --wrap, so malloc of the product is __wrap_malloc here. Its calls come from several threads, so which one
 * is refused differs from run to run.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/runtime.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/refused.h"
#include "tests/tap.h"

enum { ITERATIONS = 12 };

static const char plan_text[] =
    "swplan: 1\n"
    "name: quick\n"
    "schedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: io, writes: [x]}\n"
    "  Forward: {stage: 1, reads: [x]}\n"
    "intra_iter_deps: [[Forward, Load]]\n"
    "buffers: {x: {scope: iteration, bytes: 4KiB}}\n";

struct end {
    enum status status;
    bool reached, illegal, hung;
    size_t told; /* messages of an error */
};

static struct end run_with(const struct plan *plan, long refused)
{
    const struct runtime_options options = {.driver = DRIVER_DATAFLOW,
                                            .iterations = ITERATIONS,
                                            .replay = true,
                                            .compare = true,
                                            .plan_text = plan_text};
    struct runtime_result result;
    struct diag diag;
    diag_init(&diag);
    atomic_store(&before_refusal, refused);
    struct end end = {.status = runtime_run(plan, &options, &result, &diag)};
    end.reached = refused >= 0 && atomic_exchange(&before_refusal, -1) < 0;
    end.told = diag.errors + diag.out_of_memory;
    if (end.status == STATUS_OK || end.status == STATUS_VIOLATED) {
        end.illegal = result.legal == ANSWER_NO;
        end.hung = result.hung;
        runtime_result_fini(&result);
    }
    diag_fini(&diag);
    return end;
}

static bool is_silent(const struct end *end)
{
    return end->status != STATUS_OK && end->told == 0;
}

int main(void)
{
    struct plan plan;
    struct diag diag;
    long refused = 0, illegal = 0, other = 0, silent = 0, repeated = 0;
    diag_init(&diag);
    bool parsed = plan_parse("quick.yaml", plan_text, strlen(plan_text), &plan, &diag) == STATUS_OK;
    tap_ok(parsed && run_with(&plan, -1).status == STATUS_OK, "a run with enough memory");
    for (bool reached = parsed; reached; refused++) {
        struct end end = run_with(&plan, refused);
        reached = end.reached;
        illegal += end.illegal;
        other += end.status == STATUS_VIOLATED || end.status == STATUS_INPUT || end.hung;
        silent += is_silent(&end);
        repeated += end.told > 1;
        if (end.illegal || end.status == STATUS_VIOLATED || is_silent(&end))
            tap_note("allocation %ld refused: status %d%s%s", refused, (int)end.status,
                     end.illegal ? ", illegal" : "", end.hung ? ", hung" : "");
    }
    tap_ok(refused > 100, "%ld allocations are refused", refused - 1);
    tap_is_int(illegal, 0, "runs that are called illegal");
    tap_is_int(other, 0, "runs that are said to violate something, or to hang");
    tap_is_int(silent, 0, "failures without a message");
    tap_is_int(repeated, 0, "failures with two");
    if (parsed)
        plan_fini(&plan);
    diag_fini(&diag);
    return tap_done();
}
