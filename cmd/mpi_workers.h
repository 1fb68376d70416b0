/*
 * mpi_workers.h - a command's processes under mpirun or srun: rank 0 leads, the others help it predict.
 *
 *     rank 0:  begin  ... results ...  begin  ... results ...  end
 *                 \   /                   \   /                  \
 *     rank 1:    begin                   begin                   close
 *
 * Every process reads the same arguments and the same plan and comes to the same predictions, one after
 * the other. Rank 0 says when one begins and when all is over; the others have no will of their own, so
 * whatever goes wrong anywhere ends on rank 0, which says so, and nobody waits for one who has left. What
 * a helper could not do, such as reading the plan, it tells when it is asked to help.
 *
 * A process that dies without a word, the launcher ends with all others.
 */
#ifndef SWSIM_MPI_WORKERS_H
#define SWSIM_MPI_WORKERS_H

#include "app.h"
#include "starter.h"

#include "sim/predict/result_wire.h"

struct mpi_workers;

/*
 * Come together with the processes that were started with this one. *out is NULL where this process
 * works alone: nobody else was started, or (with a warning) there is no MPI that knows of them. Then
 * rank 0 works alone and the others have nothing to do: false.
 */
bool mpi_workers_open(struct app *app, const struct starter *starter, struct mpi_workers **out);

/* What this process was asked for and of which plan: all must agree on it. */
void mpi_workers_agree(struct mpi_workers *workers, uint64_t digest);

/* For predict_options; NULL of no workers. */
const struct result_wire *mpi_workers_wire(struct mpi_workers *workers);

/* All is over, and how it ended here. Returns how it ended on rank 0. NULL is allowed. */
enum status mpi_workers_close(struct mpi_workers *workers, struct app *app, enum status status);

#endif
