/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify.h - write down why a plan is proved, for others to check: `swsim verify --certificate`.
 *
 * proof/ has accepted every text that comes out, so this room need not be believed: it may find numbers and paths in
 * any way. The format is in doc/certificate.md.
 *
 *     certify.c            which kind of proof; the head
 *     certify_run.c        programs without iterations: numbers and paths of one run
 *     certify_structure.c  pipelines: numbers and paths for any number of iterations
 *     certify_traffic.c    the order of collectives under data-flow
 *     certify_states.c     the closed set of states, reduced or not
 */
#ifndef SWSIM_CERTIFY_H
#define SWSIM_CERTIFY_H

#include "machine/program.h"
#include "base/diag.h"
#include "check/proof/proof.h"

#include "base/watch.h"

/* Certificates in words, and the properties that they cover together. */
struct certified {
    char *text; /* the caller frees it; NULL: there is none */
    unsigned covers;
    char why_not[240]; /* of the properties that are missing; "": none is */
};

/* Sets of states that are listed have no more than so many, unless a caller says otherwise. */
#define CERTIFY_STATES 200000

/* `proved`: bits of the properties that were proved of the plan with these options. */
enum status certify_plan(const struct plan *plan, const struct program_options *options,
                         unsigned proved, size_t most_states, struct search_watch *watch,
                         struct certified *out, struct diag *diag);

/* ---- the kinds: each writes what follows the head, up to `end`, and tells in *proves what it proves of what it was asked
   for. STATUS_OK with 0 in *proves: such a proof was not found, for the reason `why_not`. */
struct certifier {
    const struct program *program;
    struct search_watch *watch;
    FILE *out;
    unsigned asked, *proves;
    unsigned before; /* properties that certificates in front of it prove */
    size_t most_states;
    char *why_not; /* room as in struct certified */
};
typedef enum status certify_kind(const struct certifier *certifier, struct diag *diag);
certify_kind certify_run, certify_structure, certify_states, certify_reduced, certify_teams;

/* With `message`, in front of a set of states: the part that each send and receive meets. False: memory is exhausted. */
bool certify_partners(const struct program *program, FILE *out);

void certify_why_not(const struct certifier *certifier, const char *why);

#endif
