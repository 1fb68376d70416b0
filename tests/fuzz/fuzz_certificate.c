/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_certificate.c - a file for swcheck: `a`, `b`, ... names one of the plans below, the rest is the certificate, whose
 * hash is made that of the plan.
 *
 * Half of the plans are wrong, each by little. A certificate accepted of one must not claim what it violates.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "check/proof/proof.h"
#include "targets.h"

#define PIPELINE                                                                                   \
    "swplan: 1\nname: p\nranks: 2\nschedule:\n"                                                    \
    "  A: {stage: 0, stream: copy, thread_group: io, time: 1ms, writes: [b]}\n"                    \
    "  C: {stage: 1, time: 1ms, reads: [b], globally_ordered: true,\n"                             \
    "      work: {collective: all_reduce, comm: dp, bytes: 1KiB}}\n"                               \
    "buffers: {b: {scope: iteration, bytes: 1KiB}}\n"
#define LOCKS(first, second)                                                                       \
    "swplan: 1\nname: l\nthreads:\n"                                                               \
    "  r0.a: [{lock: x}, {lock: y}, {unlock: y}, {unlock: x}]\n"                                   \
    "  r0.b: [{lock: " first "}, {lock: " second "}, {unlock: " second "}, {unlock: " first "}]\n"
#define EVENTS(wait)                                                                               \
    "swplan: 1\nname: e\nthreads:\n  r0.a:\n"                                                      \
    "  - {launch: k, stream: s, time: 1us, writes: [b]}\n  - {record: e, stream: s}\n" wait        \
    "  - {launch: l, stream: t, time: 1us, reads: [b]}\n  - {sync: device}\n"

#define BIT(property) (1u << PROPERTY_##property)

/* The properties of the plan that every driver violates. */
static const struct {
    const char *text;
    unsigned violates;
} plans[] = {
    {PIPELINE "intra_iter_deps: [[C, A]]\n", 0},
    {PIPELINE "intra_iter_deps: []\n", BIT(RACE)},
    {LOCKS("x", "y"), 0},
    {LOCKS("y", "x"), BIT(DEADLOCK) | BIT(DRAIN)},
    {EVENTS("  - {wait: e, stream: t}\n"), 0},
    {EVENTS(""), BIT(RACE)},
};
enum { PLANS = sizeof plans / sizeof *plans };

/* A certificate names its plan behind its first line. */
static void set_hash(char *text, uint64_t hash)
{
    char digits[17], *at = strstr(text, "plan ");
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    if (at && strlen(at) >= 5 + 16)
        memcpy(at + 5, digits, 16);
}

static void check(const struct plan *plan, unsigned violates, char *text, struct diag *diag)
{
    struct proof_result result = {0};
    uint64_t hash;
    size_t length = strlen(text);
    FUZZ_EXPECT(proof_hash(plan, &hash, diag) == STATUS_OK);
    for (size_t left = length, before = length + 1; left > 0 && left < before; before = left) {
        char *rest = text + (length - left);
        before = left;
        set_hash(rest, hash);
        if (proof_check(plan, rest, &left, &result, diag) != STATUS_OK || !result.good)
            return;
        FUZZ_EXPECT(!(result.proves & violates));
    }
}

void fuzz_certificate(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct plan plan;
    if (size == 0)
        return;
    int k = (data[0] - 'a') & 0xff;
    char *text = fuzz_text(data + 1, size - 1);
    const char *source = plans[k % PLANS].text;
    diag_init(&diag);
    FUZZ_EXPECT(plan_parse("fuzz.yaml", source, strlen(source), &plan, &diag) == STATUS_OK);
    check(&plan, plans[k % PLANS].violates, text, &diag);
    plan_fini(&plan);
    diag_fini(&diag);
    free(text);
}
