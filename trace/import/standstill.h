/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standstill.h - what tells where the processes of a hung job stand, beside the dumps of the flight recorder: stacks that py-spy
 * or gdb printed, the counts of calls of NCCL's RAS, and the logs of its Inspector.
 *
 *     stacks      `py-spy dump`, as text or JSON, and gdb's `thread apply all bt`: of each process its main thread, with its
 *                 innermost frame and the innermost line of the program. The rank is the number that ends the file's name.
 *     RAS         `ncclras -f json`: of each communicator how many collectives of each kind each rank has launched, and
 *                 which ranks do not answer.
 *     Inspector   lines of JSON, of collectives that a rank has completed: of each communicator the last of each kind counts.
 *                 NCCL numbers them from 0. Those of less than NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES (8 KiB) are not in it.
 */
#ifndef SWSIM_STANDSTILL_H
#define SWSIM_STANDSTILL_H

#include "files.h"
#include "trace/job/bytes.h"
#include "trace/job/job.h"

struct stand_stack {
    const char *file;
    int64_t rank;         /* -1: the file's name does not end with a number */
    const char *thread;   /* "MainThread" */
    const char *frame;    /* the innermost; NULL: no frame */
    const char *line;     /* of the program, as "train.py:41"; NULL: none is */
    const char *function; /* at that line */
};

/* NCCL has five kinds of collectives; the last one here stands for all others. */
enum { STAND_KINDS = 16 };

struct stand_member {
    int64_t rank; /* of the communicator */
    const char *host;
    int64_t pid, device;
    int64_t counts[STAND_KINDS]; /* calls of each kind, launched or completed */
    int64_t error;               /* that ncclCommGetAsyncError tells; 0: none */
    bool silent, dead;           /* it does not answer, or is considered dead: nothing is counted */
    bool aborted;
};

struct stand_comm {
    const char *name;  /* its hash */
    const char *title; /* that the program gave it, " (dp)"; else "" */
    int64_t size;
    bool completed; /* counts are of calls that are over; else of launched ones */
    struct stand_member *members;
    size_t count, cap;
};

struct standstill {
    struct stand_stack *stacks;
    size_t stack_count, stack_cap;
    struct stand_comm *comms;
    size_t comm_count, comm_cap;
    const char *kinds[STAND_KINDS]; /* "AllReduce" */
    size_t kind_count;
};

/* Adds what a file of one of the three formats tells. All of it lives in `arena`. STATUS_INPUT for a damaged file. */
enum status standstill_read(struct bytes *bytes, enum format format, struct arena *arena,
                            struct standstill *out, struct diag *diag);

/* Notes where ranks stand, those that stand at one line together; warns of ranks that are behind or do not answer. False
   without memory. */
bool standstill_tell(const struct standstill *standstill, struct arena *arena, struct diag *diag);

/* The stack of a rank; NULL: there is none, or it tells nothing. */
const struct stand_stack *standstill_stack(const struct standstill *standstill, int64_t rank);

/* Of counts without dumps: adds the processes as ranks to the job. Of launched calls each has those by which it is ahead of the
   last, to whom they are missing; of completed ones, where no launched ones are counted, all have those that one has completed, and what
   they stand in is unrecorded. STATUS_INPUT where nothing is counted. */
enum status standstill_threads(const struct standstill *standstill, const char *name,
                               struct job *job, struct diag *diag);

#endif
