/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - failure safety: after any one fault no agent stays blocked for ever.
 *
 * The faults, and what a plan does about them (`on_failure`), are part of the machine
 * (machine/failure.h, doc/semantics.md section 4). Here failure safety is decided, in up to three
 * ways; the first answer counts:
 *
 *     structure    a rank that stops releases everything it holds; a proof without a search
 *     injection    a fault in every state that the reduced search passes, then one run to its end:
 *                  finds violations, proves nothing
 *     exhaustion   every interleaving of the program with its faults
 *
 * The arguments are in doc/checker.md, "Failure safety". The caller asks only about plans that do not
 * hang without a fault.
 */
#ifndef SWSIM_FAULTS_H
#define SWSIM_FAULTS_H

#include "search.h"
#include "plan/plan.h"

struct faults_options {
    bool no_structure; /* search even what structure proves */
    bool any_witness;  /* do not look for a shortest counterexample */
    bool lives;        /* proved: the plan never hangs without a fault */
    struct search_limits limits;
    const atomic_bool *interrupted; /* may be NULL */
    void (*progress)(void *arg, const struct search_progress *);
    void *progress_arg;
};

struct faults_answer {
    enum outcome outcome;
    struct program *program;    /* violated: the witness is a run of this program */
    struct search_path witness; /* violated */
    const char *limit;          /* undecided: why; else NULL */
    uint64_t states, transitions;
    size_t peak_bytes;
};

/* `program` is `plan` built without faults. STATUS_OK whatever the outcome; the caller frees the
   answer with faults_fini. On failure *out is untouched. */
enum status faults_judge(const struct plan *plan, const struct program *program,
                         const struct faults_options *options, struct faults_answer *out,
                         struct diag *diag);
void faults_fini(struct faults_answer *answer);

/* Find out whether the structure of the program proves failure safety. `lives` as in faults_options. STATUS_SYSTEM:
   memory is exhausted. */
enum status faults_proved_by_structure(const struct program *program, bool lives, bool *proved,
                                       struct diag *diag);

#endif
