/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_load.h - MPI, loaded and initialised only where a launcher has started us.
 *
 * `swsim predict` sends its results through it. Loading libmpi takes longer than most plans take to verify, and initialising it a hundred times as
 * long. So it is no dependency of the programs: it is opened by the name the linker would have used,
 * and its functions are called through a table. A failure inside MPI ends all processes with MPI's
 * own message, as is its default: the functions below have nothing to report.
 *
 * One thread uses it. Once ended MPI cannot begin again in this process.
 */
#ifndef SWSIM_MPI_LOAD_H
#define SWSIM_MPI_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

struct mpi;

/* STATUS_SYSTEM with the reason where there is no MPI: not built in, not installed here, or another than
   that of the launcher, which started `size` processes. */
enum status mpi_begin(int size, struct mpi **out, struct diag *diag);
void mpi_end(struct mpi *mpi); /* all processes; NULL is allowed */
/* All processes end now, this one with `code`. */
void mpi_abort(struct mpi *mpi, int code) __attribute__((noreturn));

/* Send to a rank, or wait for something from one. A wait takes naps: it does not keep a processor
   busy. Received data is freed by the caller; memory that is not there ends all processes. */
void mpi_send(struct mpi *mpi, int to, const void *data, size_t bytes);
void *mpi_receive(struct mpi *mpi, int from, size_t *bytes);

/* The largest message. */
#define MPI_MOST_BYTES ((size_t)1 << 30)

#endif
