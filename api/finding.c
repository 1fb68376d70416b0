/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - see finding.h. */
#include "finding.h"

#include "check/dead_writes.h"

#include <assert.h>
#include <string.h>

#include "base/stopwatch.h"

enum status finding_open(struct finding *finding, const struct plan *plan, struct arena *arena,
                         struct diag *diag)
{
    *finding = (struct finding){.plan = plan};
    enum status status = coverage_find(plan, &finding->coverage, diag);
    return status == STATUS_OK ? warnings_find(plan, arena, &finding->warnings, diag) : status;
}

void finding_close(struct finding *finding)
{
    for (int d = 0; d < finding->count; d++)
        verify_fini(&finding->reports[d]);
    if (finding->repair_sought)
        repair_fini(&finding->repair);
}

/* Each search for a verdict, a repair or dead writes has the whole of a time limit: its end is found when it begins. */
static struct verify_options finding_timed(const struct verify_options *options)
{
    struct verify_options timed = *options;
    timed.limits.until_ns =
        stopwatch_earlier(options->limits.until_ns, stopwatch_until(options->limits.time_ns));
    return timed;
}

enum status finding_verify(struct finding *finding, const struct verify_options *options,
                           struct diag *diag)
{
    const struct verify_options timed = finding_timed(options);
    assert((size_t)finding->count < sizeof finding->reports / sizeof *finding->reports);
    enum status status =
        verify_plan(finding->plan, &timed, &finding->reports[finding->count], diag);
    finding->count += status == STATUS_OK;
    return status;
}

/* True if the accesses of every run are in the one order that is looked at. */
static bool finding_is_ordered(const struct finding *finding)
{
    bool ordered = finding->count > 0;
    for (int d = 0; d < finding->count; d++) {
        const enum outcome *outcome = finding->reports[d].outcome;
        ordered &=
            outcome[PROPERTY_RACE] == OUTCOME_PROVED &&
            outcome[PROPERTY_DEADLOCK] == OUTCOME_PROVED &&
            (finding->plan->form != FORM_PIPELINE || outcome[PROPERTY_SERIAL] == OUTCOME_PROVED);
    }
    return ordered;
}

static const char *dead_write_words(const struct dead_write *write, struct arena *arena)
{
    return arena_printf(
        arena,
        "what %s (line %u) writes to buffer %s is overwritten by %s (line %u) before "
        "anything can read it; work that adds to a buffer, or writes a part of it, has to declare "
        "that it reads it",
        write->lost.subject, (unsigned)write->lost.mark.line, write->buffer, write->over.subject,
        (unsigned)write->over.mark.line);
}

enum status finding_dead_writes(struct finding *finding, const struct verify_options *options,
                                struct arena *arena, size_t *first, struct diag *diag)
{
    struct dead_writes writes;
    struct warnings *warnings = &finding->warnings;
    *first = warnings->count;
    if (finding->coverage.declared == 0 || !finding_is_ordered(finding))
        return STATUS_OK;
    struct verify_options asked = finding_timed(options);
    asked.program.driver = finding->reports[0].driver;
    enum status status = dead_writes_find(finding->plan, &asked, arena, &writes, diag);
    for (size_t i = 0; status == STATUS_OK && writes.one_order && i < writes.count; i++) {
        const struct dead_write *write = &writes.items[i];
        if (!write->read || write->may_be_read || warnings->count == WARNINGS_MOST)
            continue;
        const char *text = dead_write_words(write, arena);
        if (!text)
            return diag_no_memory(diag);
        warnings->items[warnings->count++] =
            (struct warning){WARNING_DEAD_WRITE, write->lost.mark, text};
    }
    return status;
}

enum status finding_repair(struct finding *finding, const struct repair_options *options,
                           struct diag *diag)
{
    struct repair_options wanted = *options;
    bool any = false;
    wanted.verify = finding_timed(&options->verify);
    wanted.driver_count = finding->count;
    for (int d = 0; d < finding->count; d++) {
        wanted.drivers[d] = finding->reports[d].driver;
        wanted.violated[d] = finding->reports[d].verdict == VERDICT_VIOLATED;
        wanted.effort += finding->reports[d].states;
        any |= wanted.violated[d];
    }
    if (!any)
        return STATUS_OK;
    enum status status = repair_find(finding->plan, &wanted, &finding->repair, diag);
    finding->repair_sought = status == STATUS_OK;
    return status;
}

/* True if the two violate the same properties in the same words. */
static bool finding_same_words(const struct verify_report *a, const struct verify_report *b)
{
    bool same = true;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        same &= (a->outcome[p] != OUTCOME_SOME && a->outcome[p] != OUTCOME_ALWAYS) ||
                strcmp(a->stories[p].sentence, b->stories[p].sentence) == 0;
    return same;
}

struct verdict_view finding_view(const struct finding *finding, int number)
{
    bool told = false, alike = false;
    const struct verify_report *report = &finding->reports[number];
    assert(number >= 0 && (size_t)number < sizeof finding->reports / sizeof *finding->reports);
    for (int d = 0; d < number; d++) {
        const struct verify_report *before = &finding->reports[d];
        told |= before->verdict == VERDICT_VIOLATED;
        alike |= report->verdict == VERDICT_VIOLATED && before->verdict == VERDICT_VIOLATED &&
                 before->first == report->first &&
                 memcmp(before->outcome, report->outcome, sizeof report->outcome) == 0 &&
                 finding_same_words(before, report);
    }
    return (struct verdict_view){.report = report,
                                 .repair = finding->repair_sought ? &finding->repair : NULL,
                                 .several_drivers = finding->count > 1,
                                 .told = told,
                                 .alike = alike,
                                 .warnings = &finding->warnings,
                                 .coverage = &finding->coverage};
}
