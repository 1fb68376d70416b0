/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_machine.c - what each operation of a host program and each knob of the machine means: the plans of
 * tests/cases/machine.txt, each verified with and without reduction.
 *
 * A case (tests/case_file.h) leaves out the line "swplan: 1". Its expectations:
 *
 *     holds                     nothing is violated
 *     deadlock: always          as after the plan's key `expect`: a property and an outcome; no other is violated
 *     blocked: AGENT WAITS      an agent that the counterexample with reduction leaves blocked, in its words
 *     cycle: N                  so many of them wait for each other in a cycle
 *     accesses: N of M          operations that declare accesses, of those that may have some
 *     states: N                 the search with reduction takes at most N states
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "plan/coverage.h"
#include "plan/text/parse.h"
#include "tests/case_file.h"
#include "tests/harness.h"
#include "tests/tap.h"

static const char *after(const char *text, const char *start)
{
    size_t length = strlen(start);
    return strncmp(text, start, length) == 0 ? text + length : NULL;
}

static bool is_blocked(const struct verify_report *report, const char *want)
{
    const struct story *story = &report->stories[PROPERTY_DEADLOCK];
    for (size_t i = 0; i < story->blocked_count; i++) {
        const char *rest = after(want, story->blocked[i].agent);
        if (rest && *rest == ' ' && strcmp(rest + 1, story->blocked[i].waits_for) == 0)
            return true;
    }
    for (size_t i = 0; i < story->blocked_count; i++)
        tap_note("blocked: %s %s", story->blocked[i].agent, story->blocked[i].waits_for);
    return false;
}

/* Properties for the search with reduction only. */
static bool is_as_said(const struct text_case *test, const struct verify_report *report)
{
    bool good = true;
    for (size_t i = 0; i < test->expected_count; i++) {
        const char *blocked = after(test->expected[i], "blocked: ");
        const char *cycle = after(test->expected[i], "cycle: ");
        const char *states = after(test->expected[i], "states: ");
        if (blocked)
            good = is_blocked(report, blocked) && good;
        if (cycle && report->stories[PROPERTY_DEADLOCK].cycle_count != strtoull(cycle, NULL, 10)) {
            tap_note("a cycle of %zu", report->stories[PROPERTY_DEADLOCK].cycle_count);
            good = false;
        }
        if (states && report->states > strtoull(states, NULL, 10)) {
            tap_note("%llu states", (unsigned long long)report->states);
            good = false;
        }
    }
    return good;
}

/* "accesses: 2 of 3": operations that declare them, of all that may have some. */
static bool is_covered(const struct text_case *test, const struct plan *plan, struct diag *diag)
{
    struct coverage coverage;
    char text[64];
    bool good = true;
    if (coverage_find(plan, &coverage, diag) != STATUS_OK)
        return false;
    snprintf(text, sizeof text, "%lld of %lld", (long long)coverage.declared,
             (long long)coverage.all);
    for (size_t i = 0; i < test->expected_count; i++) {
        const char *accesses = after(test->expected[i], "accesses: ");
        if (accesses && strcmp(accesses, text) != 0) {
            tap_note("accesses: %s", text);
            good = false;
        }
    }
    return good;
}

static bool check(const struct text_case *test, const struct plan *plan, bool no_reduction,
                  struct diag *diag)
{
    struct verify_options options = {.program.iterations = -1, .no_reduction = no_reduction};
    struct verify_report report;
    if (verify_plan(plan, &options, &report, diag) != STATUS_OK)
        return false;
    bool good = verify_as_expected(plan, &report, diag);
    if (!no_reduction)
        good = is_as_said(test, &report) && good;
    verify_fini(&report);
    return good;
}

/* The plan, with the outcomes as its key `expect`. */
static void write_plan(const struct text_case *test, char *text, size_t cap)
{
    size_t at = (size_t)snprintf(text, cap, "swplan: 1\nexpect: {");
    const char *comma = "";
    for (size_t i = 0; i < test->expected_count; i++) {
        const char *line = test->expected[i];
        if (strcmp(line, "holds") == 0 || after(line, "blocked: ") || after(line, "cycle: ") ||
            after(line, "states: ") || after(line, "accesses: "))
            continue;
        at += (size_t)snprintf(text + at, cap - at, "%s%s", comma, line);
        comma = ", ";
    }
    snprintf(text + at, cap - at, "}\n%s", test->text);
}

static void run_case(const struct text_case *test)
{
    static char text[2 * sizeof test->text];
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    write_plan(test, text, sizeof text);
    bool good = plan_parse("case.yaml", text, strlen(text), &plan, &diag) == STATUS_OK;
    if (good) {
        good = check(test, &plan, false, &diag);
        good = check(test, &plan, true, &diag) && good;
        good = is_covered(test, &plan, &diag) && good;
        plan_fini(&plan);
    }
    tap_ok(good, "%s:%d: %s", test->file, test->line, test->title);
    if (!good)
        diag_tell(&diag);
    diag_fini(&diag);
}

int main(void)
{
    case_file_run("machine.txt", run_case);
    return tap_done();
}
