/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective_mpi.c - what collective.c times, with MPI: MPI_Allreduce and MPI_Alltoall of f32, back to back.
 *
 *     mpirun -n N collective_mpi [BYTES]...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 64, TASKS = 32, ROUNDS = 5 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_calls(int all_to_all, int bytes, int size, float *send, float *recv)
{
    const int count = bytes / (int)sizeof *send;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < CALLS * TASKS; i++)
        if (all_to_all)
            MPI_Alltoall(send, count / size, MPI_FLOAT, recv, count / size, MPI_FLOAT,
                         MPI_COMM_WORLD);
        else
            MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) * 1e6 / CALLS / TASKS;
}

static void time_size(int bytes, int rank, int size)
{
    float *send = calloc(1, (size_t)bytes), *recv = calloc(1, (size_t)bytes);
    if (!send || !recv)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int kind = 0; kind < 2; kind++) {
        double us[ROUNDS];
        for (int round = 0; round < ROUNDS; round++)
            us[round] = time_calls(kind, bytes, size, send, recv);
        qsort(us, ROUNDS, sizeof *us, by_value);
        if (rank == 0)
            printf("%-10s %-10s %8d bytes %2d ranks %10.2f us\n", "mpi",
                   kind ? "all_to_all" : "all_reduce", bytes, size, us[ROUNDS / 2]);
    }
    free(send);
    free(recv);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++)
        time_size(atoi(argv[i]), rank, size);
    if (argc == 1) {
        time_size(4096, rank, size);
        time_size(1 << 20, rank, size);
    }
    MPI_Finalize();
    return 0;
}
