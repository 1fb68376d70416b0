/* SPDX-License-Identifier: Apache-2.0 */
/* quick_proof.c - see quick_proof.h. */
#include "quick_proof.h"

#include <string.h>

#include "finding.h"

/* "not proved by structure, nor within the time for it: race, lifetime" */
static void describe_unknown(const struct verify_report *report, struct quick_proof *out)
{
    const char *comma = "";
    out->outcome = QUICK_UNDECIDED;
    snprintf(out->sentence, sizeof out->sentence,
             "not proved by structure, nor by a search in the time for it: ");
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        size_t used = strlen(out->sentence);
        if (!(report->asked & 1u << p) || report->outcome[p] == OUTCOME_PROVED)
            continue;
        snprintf(out->sentence + used, sizeof out->sentence - used, "%s%s", comma,
                 property_key((enum property)p));
        comma = ", ";
    }
}

static enum status quick_proof_describe(const struct finding *finding, struct arena *arena,
                                        struct quick_proof *out, FILE *story, struct diag *diag)
{
    const struct verdict_style style = {.arena = arena, .diag = diag, .brief = true};
    const struct verdict_view view = finding_view(finding, 0);
    const struct verify_report *report = view.report;
    *out = (struct quick_proof){.outcome = QUICK_PROVED};
    if (report->verdict == VERDICT_UNDECIDED)
        describe_unknown(report, out);
    if (report->verdict != VERDICT_VIOLATED)
        return STATUS_OK;
    /* "race, in some interleavings: ..." */
    bool always = report->outcome[report->first] == OUTCOME_ALWAYS;
    out->outcome = always && report->first == PROPERTY_DEADLOCK ? QUICK_MUST_HANG : QUICK_VIOLATED;
    snprintf(out->sentence, sizeof out->sentence, "%s, %s: %s", property_key(report->first),
             verdict_quantifier(report, report->first), report->stories[report->first].sentence);
    return verdict_print(&style, &view, story);
}

static enum status quick_proof_judge(struct finding *finding, const struct plan *plan,
                                     const struct verify_options *options, struct arena *arena,
                                     struct quick_proof *out, FILE *story, struct diag *diag)
{
    enum status status = finding_open(finding, plan, arena, diag);
    if (status != STATUS_OK)
        return status;
    status = finding_verify(finding, options, diag);
    if (status == STATUS_OK)
        status = quick_proof_describe(finding, arena, out, story, diag);
    finding_close(finding);
    return status;
}

enum status quick_proof_make(const struct plan *plan, const struct program_options *options,
                             int64_t limit_ns, struct quick_proof *out, FILE *story,
                             struct diag *diag)
{
    struct verify_options verify = {
        .program = *options, .any_witness = true, .limits = {.time_ns = limit_ns}};
    struct arena arena;
    arena_init(&arena, 0);
    verify.program.iterations = -1;
    struct finding *finding = ARENA_NEW(&arena, struct finding);
    enum status status = finding
                             ? quick_proof_judge(finding, plan, &verify, &arena, out, story, diag)
                             : diag_no_memory(diag);
    arena_fini(&arena);
    return status;
}
