/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - see proof.h: the head of a certificate, its kind, its end.
 *
 * The writer finds, the checker looks once at what it is told:
 *
 *     plan -> lowering -> program          certificate
 *                            |                  |
 *     run         table of waits ........ a number for each event: larger than all it waits for       no hang
 *                 of events        ...... a path for each two accesses: places in the table           no race
 *     structure   dependences, keys ..... a number for each task, the same for every iteration        no hang
 *                 of tasks          ..... a path with its length in iterations                        no race, serial
 *     states      steps of the machine .. the state behind each step                                  no bad state
 *     teams       conditions of the plan .. nothing
 *
 * All memory of a check is the certificate's arena; every refusal has a line (certificate.h).
 */
#include "proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/memory.h"
#include "base/hash.h"
#include "plan/text/print.h"

static const struct proof_own_kind {
    const char *key;
    proof_judge *judge;
    proof_cover *covers;
} kinds[PROOF_KINDS] = {
    [PROOF_RUN] = {"run", proof_run, proof_run_covers},
    [PROOF_STRUCTURE] = {"structure", proof_structure, proof_structure_covers},
    [PROOF_STATES] = {"states", proof_states, proof_states_covers},
    [PROOF_REDUCED_STATES] = {"reduced_states", proof_reduced, proof_reduced_covers},
    [PROOF_TEAMS] = {"teams", proof_teams, proof_teams_covers},
    [PROOF_FAULTY_STATES] = {"faulty_states", proof_states, proof_states_covers},
};

const char *proof_key(enum proof_kind kind)
{
    return kinds[kind].key;
}

unsigned proof_covers(enum proof_kind kind, const struct program *program)
{
    return kinds[kind].covers(program);
}

enum status proof_hash(const struct plan *plan, uint64_t *hash, struct diag *diag)
{
    char *text;
    enum status status = plan_text(plan, &text, diag);
    if (status != STATUS_OK)
        return status;
    *hash = hash_bytes(text, strlen(text));
    free(text);
    return STATUS_OK;
}

enum status proof_program(const struct plan *plan, enum proof_kind kind, unsigned proves,
                          const struct program_options *options, struct program **out,
                          struct diag *diag)
{
    struct program_options built = {.driver = options->driver,
                                    .iterations = options->iterations,
                                    .ranks = options->ranks,
                                    .max_depth = options->max_depth,
                                    .serial =
                                        (kind == PROOF_STATES || kind == PROOF_REDUCED_STATES) &&
                                        proves & 1u << PROPERTY_SERIAL,
                                    .faults = kind == PROOF_FAULTY_STATES,
                                    .clocks = kind == PROOF_RUN,
                                    .any_size = kind == PROOF_STRUCTURE || kind == PROOF_TEAMS};
    return program_build(plan, &built, out, diag);
}

static void read_options(struct certificate *c, const struct plan *plan,
                         struct program_options *options)
{
    int64_t iterations = -1, ranks = 0, max_depth = 0;
    int driver = DRIVER_NONE;
    certificate_expect(c, "options");
    while (driver <= DRIVER_DATAFLOW && !certificate_accept(c, driver_key((enum driver)driver)))
        driver++;
    options->driver = (enum driver)driver;
    if (driver > DRIVER_DATAFLOW ||
        (options->driver == DRIVER_NONE) != (plan->form != FORM_PIPELINE))
        certificate_refuse(c, "the driver does not fit the plan");
    certificate_number(c, NULL, 0, PLAN_MAX_RANKS, &ranks);
    certificate_number(c, NULL, 0, PLAN_MAX_DEPTH, &max_depth);
    certificate_number(c, NULL, -1, INT32_MAX, &iterations);
    options->ranks = (int)ranks;
    options->max_depth = (int)max_depth;
    options->iterations = iterations;
}

static void read_head(struct certificate *c, const struct plan *plan, uint64_t hash,
                      struct proof_result *out)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    int64_t version;
    if (certificate_number(c, "swcert", 0, CERTIFICATE_MOST, &version) && version != PROOF_VERSION)
        certificate_refuse(c, "it is of another version than %d", PROOF_VERSION);
    if (certificate_expect(c, "plan") && !certificate_accept(c, text))
        certificate_refuse(c, "it is for another plan than this one, which is %s", text);
    read_options(c, plan, &out->options);
    certificate_expect(c, "proves");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (certificate_accept(c, property_key((enum property)p)))
            out->proves |= 1u << p;
    certificate_expect(c, "by");
    int kind = 0;
    while (kind < PROOF_KINDS && !certificate_accept(c, kinds[kind].key))
        kind++;
    if (kind == PROOF_KINDS)
        certificate_refuse(c, "expected a kind of proof");
    else
        out->kind = (enum proof_kind)kind;
}

/* Programs without iterations: check that the bytes that are held whatever happens fit. */
static enum status proof_check_memory(struct certificate *c, const struct plan *plan,
                                      const struct program *program, struct diag *diag)
{
    const char *sentence = NULL;
    enum status status = memory_tell(plan, program, &c->arena, &sentence, diag);
    if (sentence)
        certificate_refuse(c, "%s", sentence);
    return status;
}

static bool same_options(const struct program_options *a, const struct program_options *b)
{
    return a->driver == b->driver && a->ranks == b->ranks && a->max_depth == b->max_depth &&
           a->iterations == b->iterations;
}

enum status proof_check(const struct plan *plan, const char *text, size_t *length,
                        struct proof_result *out, struct diag *diag)
{
    struct certificate c = {.at = text, .end = text + *length, .line = 1};
    struct program *program = NULL;
    uint64_t hash;
    const struct proof_result last = *out;
    *out = (struct proof_result){0};
    enum status status = proof_hash(plan, &hash, diag);
    if (status != STATUS_OK)
        return status;
    read_head(&c, plan, hash, out);
    if (last.good && same_options(&last.options, &out->options))
        out->before = last.before | last.proves;
    if (!c.refused) {
        c.before = out->before;
        status = proof_program(plan, out->kind, out->proves, &out->options, &program, diag);
        if (status != STATUS_OK)
            return status;
        out->ranks = program->ranks;
        const unsigned covers = proof_covers(out->kind, program);
        if (covers == 0)
            certificate_refuse(&c, "a certificate by %s proves nothing of this plan",
                               proof_key(out->kind));
        else if (out->proves == 0)
            certificate_refuse(&c, "it claims nothing");
        else if (out->proves & ~covers)
            certificate_refuse(&c, "it claims a property that such a certificate does not prove");
        else if (out->proves & 1u << PROPERTY_BOUND && program->tasks == 0)
            status = proof_check_memory(&c, plan, program, diag);
        if (status == STATUS_OK && !c.refused)
            out->good =
                kinds[out->kind].judge(program, &c, out->proves) && certificate_expect(&c, "end");
        certificate_accept(&c, ""); /* passes the space behind it */
        program_close(program);
    }
    *length = (size_t)(c.end - c.at);
    memcpy(out->why, c.why, sizeof out->why);
    bool failed = c.arena.failed;
    arena_fini(&c.arena);
    return failed && status == STATUS_OK ? diag_no_memory(diag) : status;
}
