/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - whether a certificate is a proof of a plan. The whole of swcheck but its command line.
 *
 * Nothing here searches: each file reads numbers and paths that `swsim verify --certificate` wrote, and looks
 * whether they are what doc/checker.md, "A proof that others can check", asks for, in time linear in plan and certificate.
 */
#ifndef SWSIM_PROOF_H
#define SWSIM_PROOF_H

#include "certificate.h"
#include "machine/conflicts.h"
#include "base/diag.h"

#define PROOF_VERSION 2

/* The states of one certificate take no more memory, however many it claims. */
#define PROOF_STATE_BYTES ((size_t)1 << 30)

/* How a certificate proves: its keyword, and the property bits that it can prove. */
enum proof_kind {
    PROOF_RUN,
    PROOF_STRUCTURE,
    PROOF_STATES,
    PROOF_REDUCED_STATES,
    PROOF_TEAMS,
    PROOF_FAULTY_STATES,
    PROOF_KINDS
};
const char *proof_key(enum proof_kind kind);

struct proof_result {
    bool good;
    char why[240];   /* not good: one sentence */
    unsigned proves; /* good: bits of enum property */
    unsigned before; /* those of the certificates in front of it, with the same options */
    enum proof_kind kind;
    struct program_options options; /* driver, ranks, max_depth, iterations it speaks of */
    int ranks;
};

/* The hash of the plan's canonical text. */
enum status proof_hash(const struct plan *plan, uint64_t *hash, struct diag *diag);

/* Look at the first certificate of a text; *length becomes that of the rest, which is empty or another one. *out holds
   the result of the certificate in front of it, or zeros. An error only where the plan cannot be lowered or memory is
   exhausted; a bad certificate is a result. */
enum status proof_check(const struct plan *plan, const char *text, size_t *length,
                        struct proof_result *out, struct diag *diag);

/* The program that a certificate of this kind, which claims to prove these, speaks of; the caller closes it. */
enum status proof_program(const struct plan *plan, enum proof_kind kind, unsigned proves,
                          const struct program_options *options, struct program **out,
                          struct diag *diag);

/* Each kind: read the rest of a certificate, which claims to prove these; false with a reason if that does not follow, or
   because its arena has failed. */
typedef bool proof_judge(const struct program *program, struct certificate *certificate,
                         unsigned proves);
proof_judge proof_run, proof_structure, proof_states, proof_reduced, proof_teams;

/* The properties that such a certificate of this program can prove. */
typedef unsigned proof_cover(const struct program *program);
proof_cover proof_run_covers, proof_structure_covers, proof_states_covers, proof_reduced_covers,
    proof_teams_covers;
unsigned proof_covers(enum proof_kind kind, const struct program *program);

/* The steps of the smallest closed set of agents around `seed`, or the answers of the data loader while it is asked. They need
   room for machine_most_transitions; returns their number, 0: none of the set can step. */
int proof_tried_steps(const struct program *program, const struct state *state, int seed,
                      struct agent_set *set, struct transition *steps);

#endif
