/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_wire.h - the replications of a prediction, spread over processes, maybe on other machines.
 *
 *     rank 0: begin --- its share --- gather --- sum up, explain, print
 *     rank 1: begin --- its share ---'  ^
 *     rank 2: begin --- its share ------'
 *
 * Replication n is done by rank n mod size. The whole result of a replication goes to rank 0 as bytes, so
 * rank 0 sums up the same numbers in the same order as a single process would. The processes run the same program on the same kind of machine:
 * integers and doubles travel as they are in memory.
 *
 * How bytes travel is not known here: see struct result_wire.
 *
 * Errors: STATUS_SYSTEM: memory, or what came is no result; whatever a transport says.
 */
#ifndef SWSIM_RESULT_WIRE_H
#define SWSIM_RESULT_WIRE_H

#include "sim/engine/simulate.h"

/* A transport, and this process's place. Everything is called from one thread. */
struct result_wire {
    int rank, size; /* size >= 2 */
    void *context;
    /* A prediction begins: rank 0 says so, the others wait for that. On another rank a failure without
       a message means that rank 0 has ended, and with which status. */
    enum status (*begin)(void *context, struct diag *diag);
    /* To rank 0; in order. */
    enum status (*send)(void *context, const void *data, size_t bytes, struct diag *diag);
    /* On rank 0: the next of what `from` sent; the caller frees it. A failure is the end of `from`. */
    enum status (*receive)(void *context, int from, void **data, size_t *bytes, struct diag *diag);
};

/* Tell rank 0 the result of replication `number` of the program. */
enum status result_wire_send(const struct result_wire *wire, const struct program *program,
                             int number, const struct simulation_result *result, struct diag *diag);

/* The last message of a rank: all its results are sent, and it took so much processor time; or it has failed,
   and why. */
enum status result_wire_end(const struct result_wire *wire, enum status status, double cpu_seconds,
                            const struct diag *why, struct diag *diag);

/* On rank 0: put all that the others send in its place among `results`, which has room for `count` and
   is zeroed there; rank 0's own are there already. A message that is no result, comes twice or not at all, or
   speaks of tasks and streams that the program does not have, is refused. *cpu_seconds grows by theirs. When one has failed: its status and words. The others
   are heard to their end in any case. */
enum status result_wire_gather(const struct result_wire *wire, const struct program *program,
                               struct simulation_result *const *results, int count,
                               double *cpu_seconds, struct diag *diag);
/* The same where nothing can be done with it any more. */
void result_wire_drop(const struct result_wire *wire);

#endif
