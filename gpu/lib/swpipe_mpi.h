/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_mpi.h - join the group of an MPI communicator. Only this header needs MPI: the library does not.
 *
 *     struct swpipe_group *group;
 *     if (swpipe_join_mpi(MPI_COMM_WORLD, &group) == SWPIPE_OK) ...
 */
#ifndef SWPIPE_MPI_H
#define SWPIPE_MPI_H

#include <mpi.h>
#include <string.h>

#include "swpipe.h"

static inline int swpipe_mpi_broadcast(void *comm, void *data, size_t bytes)
{
    return MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, *(MPI_Comm *)comm) == MPI_SUCCESS ? 0 : -1;
}

/* The number of machines that the processes of `comm` are on. */
static inline int swpipe_mpi_machines(MPI_Comm comm)
{
    MPI_Comm local;
    int rank, first, machines;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &rank);
    MPI_Comm_free(&local);
    first = rank == 0;
    MPI_Allreduce(&first, &machines, 1, MPI_INT, MPI_SUM, comm);
    return machines;
}

/* As swpipe_join, with the ranks of `comm`, which is needed during the call only. Where they are on several machines
   all of them are refused. */
static inline enum swpipe_status swpipe_join_mpi(MPI_Comm comm, struct swpipe_group **out)
{
    struct swpipe_join join;
    memset(&join, 0, sizeof join); /* in C and C++ without a warning */
    MPI_Comm_rank(comm, &join.rank);
    MPI_Comm_size(comm, &join.size);
    join.machines = swpipe_mpi_machines(comm);
    join.broadcast = swpipe_mpi_broadcast;
    join.arg = &comm;
    return swpipe_join(&join, out);
}

#endif
