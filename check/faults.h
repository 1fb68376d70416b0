/*
 * faults.h - failure safety: whatever one fault, nobody is left blocked for ever.
 *
 * What may go wrong and what a plan does about it (`on_failure`) is the machine's (machine/failure.h,
 * doc/semantics.md section 4). Here it is decided whether it is enough, in up to three ways, the first
 * that answers:
 *
 *     structure    a rank that stops lets go of everything; a proof without a search
 *     injection    a fault in every state that the reduced search passes, then one run to its end:
 *                  finds what is wrong, proves nothing
 *     exhaustion   every interleaving of the program with its faults
 *
 * The arguments are in doc/checker.md, "Failure safety". The question makes sense only for a plan that
 * does not hang anyway; the caller sees to that.
 */
#ifndef SWSIM_FAULTS_H
#define SWSIM_FAULTS_H

#include "search.h"
#include "plan/plan.h"

struct faults_options {
    bool no_structure; /* search even what structure proves */
    bool any_witness;  /* do not look for a shortest counterexample */
    bool lives;        /* it is proved that the plan, without a fault, never hangs */
    struct search_limits limits;
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

/* Does the structure of the program prove it? `lives` as in faults_options. STATUS_SYSTEM: memory is
   exhausted. */
enum status faults_proved_by_structure(const struct program *program, bool lives, bool *proved,
                                       struct diag *diag);

#endif
