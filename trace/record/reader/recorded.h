/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - recordings of `swsim record` as host programs: what each thread called, with the events, streams and
 * memory that the calls named.
 *
 * A process is a rank; one that uses several devices is a rank for each. Communicators of several recordings are one
 * where they were made with one id. Threads come in the order in which they let each other go on; locks exclude each other, or
 * come in their order too, or all comes in the order that the clock shows.
 * A query that found its event done is a wait for it; where it could have been answered otherwise, the plan says so.
 * cudaFree waits for the device; other memory that the program
 * frees is written by the host then. A kernel reads and may write the memory from each of its pointers on, to the
 * next address of the allocation that anything begins at.
 */
#ifndef SWSIM_RECORDED_H
#define SWSIM_RECORDED_H

#include "plan/plan.h"

/* The order of threads: as they signalled, created and joined each other; as they locked, too; or as their calls ended and
   began. */
enum recorded_order { RECORDED_WAITS, RECORDED_LOCKS, RECORDED_SEEN };

/* What a kernel does with memory that a struct among its arguments points to: the types of these pointers are not known. */
enum recorded_structs { RECORDED_STRUCTS_WRITE, RECORDED_STRUCTS_READ };

/* Answers of queries: as the run had them; or a yes is a wait, since the program asks until it has it: where it asked again and
   again in the run and did nothing else, or everywhere; or a yes that another run need not have orders nothing. */
enum recorded_queries {
    RECORDED_QUERIES_SEEN,
    RECORDED_QUERIES_LOOPS,
    RECORDED_QUERIES_WAIT,
    RECORDED_QUERIES_NONE
};

struct trace;
struct recorded_options {
    const char *name;  /* of the plan */
    int order;         /* enum recorded_order */
    int structs;       /* enum recorded_structs */
    int queries;       /* enum recorded_queries */
    bool folds;        /* steps that do the same are written once (recorded_fold.c) */
    bool without_luck; /* orders that another run need not have are left out */
    bool launch_order; /* operations of NCCL on a rank start in the order of their launches */
    int64_t sm_slots;  /* of them that can be resident at once; 0: any number */
    struct trace *run; /* gets the measured run; trace_init has begun it. NULL: it is not wanted */
};

struct bytes;

/* The caller ends *out with plan_fini; set on success only. STATUS_INPUT for a damaged file, for recordings
   that do not belong together, and where the run is wanted and nothing was measured. */
enum status recorded_plan(const char *const *paths, size_t count,
                          const struct recorded_options *options, struct plan *out,
                          struct diag *diag);
/* The same of open files, which stay open. */
enum status recorded_plan_of(struct bytes *const *files, size_t count,
                             const struct recorded_options *options, struct plan *out,
                             struct diag *diag);

#endif
