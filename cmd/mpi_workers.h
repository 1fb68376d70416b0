/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_workers.h - a command's processes under mpirun or srun: rank 0 leads, the others help it predict.
 *
 *     rank 0:  begin  ... results ...  begin  ... results ...  end
 *                 \   /                   \   /                  \
 *     rank 1:    begin                   begin                   close
 *
 * Every process reads the same arguments and the same plan and comes to the same predictions, one after
 * the other. Rank 0 begins each prediction and ends the work; the others only follow. So every failure, on
 * whatever rank, ends on rank 0, which prints it, and no process waits for one that has left. A helper that
 * has failed, for example to read the plan, answers the next request with the reason.
 *
 * When a process dies without an answer, the launcher ends all others.
 */
#ifndef SWSIM_MPI_WORKERS_H
#define SWSIM_MPI_WORKERS_H

#include "app.h"
#include "starter.h"

#include "sim/predict/result_wire.h"

struct mpi_workers;

/*
 * Connect the processes of the job. *out is NULL where this process works alone: it is the only one, or
 * (with a warning) MPI does not know the others. Then rank 0 works alone and the others have nothing to
 * do: false.
 */
bool mpi_workers_open(struct app *app, const struct starter *starter, struct mpi_workers **out);

/* Hash of arguments and plan, which must be the same on all processes. */
void mpi_workers_agree(struct mpi_workers *workers, uint64_t digest);

/* For predict_options; NULL of no workers. */
const struct result_wire *mpi_workers_wire(struct mpi_workers *workers);

/* End the work, with the status of this process. Returns that of rank 0. NULL is allowed. */
enum status mpi_workers_close(struct mpi_workers *workers, struct app *app, enum status status);

#endif
