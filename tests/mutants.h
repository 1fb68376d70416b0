/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutants.h - certificates in which a word is left out, doubled or changed, or which end at it.
 *
 * Reading any of them ends. A text that lacks a word, or has one twice, is refused, unless it only claims less; a changed number can make
 * another proof.
 */
#ifndef SWSIM_MUTANTS_H
#define SWSIM_MUTANTS_H

#include "base/diag.h"
#include "check/proof/proof.h"

struct mutants {
    uint64_t seed;
    int count;             /* to try */
    int accepted, refused; /* of them */
    char *wrong;           /* one that is accepted and must not be; the caller frees it */
};

/* All certificates of a text are good; what they prove together is in *proves, of the last one the rest. */
bool mutants_check(const struct plan *plan, const char *text, struct proof_result *result,
                   unsigned *proves, struct diag *diag);

/* Mutants of a good certificate, which covers these properties. False: one is accepted that must not be. */
bool mutants_try(const struct plan *plan, const char *text, unsigned covers,
                 struct mutants *mutants, struct diag *diag);

#endif
