/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - what the parts of a plan's tasks really took: times from a measured serial run.
 *
 * A serial run (`swrun --serial --db`) does one task after another, so that nothing in it waits for
 * anything else: what its spans took is what the tasks take. Of every task and rank a profile has two
 * empirical distributions:
 *
 *     CPU part      what its thread does for it, from taking it to being done, waiting aside: its CPU
 *                   work and the calls that give work, records and waits to the device. In a run
 *                   without steps (--no-check) of the calls only those that give work are known
 *     device part   from its start on the stream to its end; of a collective from the start of the
 *                   last member to the mean end of all; of a send or receive with its wait for
 *                   the other side
 *
 * The first tenth of the iterations, and one more, are left out: they warm up. Which iteration took
 * how long is forgotten: predictions draw from the distributions, each task by itself.
 *
 * A profile is a plan: the one it was read for, with measured times in place of its own. So whatever
 * takes a plan takes a profile. A part that was not measured keeps the plan's time and is named.
 * Ranks the run did not have take after those it had, in turn. A collective takes as long as its
 * slowest member, and its members were measured together: so its lowest member gets the distribution
 * and the others no time.
 *
 * A run of the host device also says how many cores carried it, and which tasks computed there and which slept. A plan
 * without `machine: {cores}` takes that over: so many cores, and a `core: 0` in the shares of those that slept. Where the
 * serial run had more ranks than cores, its times may have waits for a core in them already: then a note says so.
 */
#ifndef SWSIM_PROFILE_H
#define SWSIM_PROFILE_H

#include "plan/plan.h"
#include "trace/store.h"

#define PROFILE_PART_LIST(X) X(HOST, "CPU part") X(DEVICE, "device part")
enum profile_kind {
#define X(name, words) PROFILE_##name,
    PROFILE_PART_LIST(X)
#undef X
        PROFILE_KINDS
};
const char *profile_words(enum profile_kind kind);

/* The durations of one part of one task on one rank, ascending. */
struct profile_part {
    enum profile_kind kind;
    int task, rank;
    double mean_ns;
    const int64_t *ns;
    size_t count;
};

struct profile {
    struct arena arena; /* of everything below */
    struct plan plan; /* shares memory with the plan it was read for, which must outlive it; is not
                           ended with plan_fini */
    int64_t run;
    const char *device;
    int ranks;          /* of the run */
    int cores;          /* taken over from the run; 0: the plan names them, or the run does not */
    int64_t iterations; /* that count */
    int64_t warm_up;    /* iterations left out before them */
    struct profile_part *parts; /* by (kind, task, rank) */
    size_t part_count;
    struct profile_part *missing; /* parts the plan has and the run has not; count 0 */
    size_t missing_count;
    /* Of an imported job's host programs (profile_steps.c), which have no parts: the operations that have a distribution,
       of all that work on a device. Of its pipeline (profile.c): the tasks that were measured, of all. Of rank
       programs: the costs that were measured. */
    size_t drawn, operations;
};

/*
 * Read the serial run `run` (STORE_LATEST: the newest of a plan with this one's name) for `plan` on
 * `ranks` ranks (0: the plan's), or the imported run. STATUS_INPUT when the run
 * is not there, is not measured, neither serial nor imported, not finished, too short, or has none of the plan's tasks.
 * Of host programs it is the profile of an imported run, see profile_steps.c; of rank programs see profile_ranks.c.
 * *out is set on success only and ended with profile_fini.
 */
enum status profile_read(struct store *store, int64_t run, const struct plan *plan, int ranks,
                         struct profile *out, struct diag *diag);
void profile_fini(struct profile *profile);

/* The measured factors of the mean, each equally likely; of very many those at even distances. False without memory. */
bool profile_make_dist(struct arena *arena, const struct profile_part *part, int64_t mean_ns,
                       struct dist *out);

/* Say in notes where the times come from and which are the plan's own. */
void profile_note(const struct profile *profile, const char *path, struct diag *diag);

/* The cores that carried a measured run; 0: not known. STATUS_INPUT where the store has no such number. */
enum status profile_cores(const struct trace *trace, int *out, struct diag *diag);
/* "2 cores of the run's machine carry the work of all ranks"; `own`: they are the run's. Returns buf. */
enum { PROFILE_CORES_TEXT = 80 };
const char *profile_describe_cores(int cores, bool own, char buf[PROFILE_CORES_TEXT]);

/* True if it is a measured run of one task after another. */
bool profile_is_serial(const struct run_info *info);

/* True if it is a measured run that an import stored. */
bool profile_is_imported(const struct run_info *info);

/* ---- private to profile*.c ------------------------------------------------------------------- */

/* The iterations of an imported run, as its first rank has them. */
int64_t profile_count_steps(const struct trace *trace);

/* As profile_read, of host programs and of a run that was imported from a trace with two steps or more. */
enum status profile_read_steps(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag);
/* As profile_read, of rank programs: `run`, or the newest finished run of a plan of that name. STATUS_INPUT also where
   the run has other stages. The profile has no parts but `drawn` of `operations`: passes of a stage, and edges. */
enum status profile_read_ranks(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag);

#endif
