/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_view.h - the results of a plan, as far as the order of its accesses determines them.
 *
 * Two runs of the same tasks leave the same values in every shared buffer if the writes of each buffer
 * come in the same order and every read comes after the same write (view equivalence, as databases
 * call it; Yannakakis 1984). The stages determine the age of the weights that a Forward reads; moving
 * them must not change that unasked. A buffer of scope `iteration` has one instance an iteration, and
 * its order is a matter of dependences, which the checker proves.
 *
 * The view of a plan is a number: a hash of the write order of every shared buffer of every rank and of
 * the write that each read saw, over the first iterations, fill and drain included. It is taken from one
 * run of the machine. That is enough, because in a plan that is proved free of races conflicting
 * accesses have the same order in all of its runs.
 *
 * Without shared buffers in a plan it is unknown what its iterations share. Then every stream of
 * the given plan counts as a buffer that all its tasks write: work keeps its order on a stream.
 */
#ifndef SWSIM_TUNE_VIEW_H
#define SWSIM_TUNE_VIEW_H

#include "plan/plan.h"
#include "machine/program.h"

/* An access of a task to an object that iterations share: a buffer, or a stream of `given`. */
struct tune_access {
    int object;
    bool read, write;
};

/* The accesses of a task of `given` as rank `rank` sees it, the k-th of them; false: there are no more. */
bool tune_access(const struct plan *given, bool by_stream, int rank, int task, size_t k,
                 struct tune_access *out);
/* True if no task of the plan names a shared buffer. */
bool tune_by_stream(const struct plan *given);

/* The view of `plan`, which has the tasks of `given`, over `iterations` iterations. *complete is false
   when the run hangs: then there is none. STATUS_SYSTEM, or as program_build. */
enum status tune_view(const struct plan *given, const struct plan *plan, enum driver driver,
                      int64_t iterations, uint64_t *out, bool *complete, struct diag *diag);

#endif
