/* SPDX-License-Identifier: Apache-2.0 */
/* starter.c - see starter.h. */
#include "starter.h"

#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* Variables by which launchers name ranks; the others count only if `step`, where there is one, is set. */
static const struct {
    const char *rank, *size, *local_size, *machines, *step;
} starters[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", NULL, NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, "SLURM_STEP_NUM_NODES", "SLURM_STEP_ID"},
};

/* A number from the environment, -1: none. */
static int number_of(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    char *end;
    long number = text && *text ? strtol(text, &end, 10) : -1;
    return number >= 0 && number <= INT_MAX && *end == '\0' ? (int)number : -1;
}

void starter_find(struct starter *out)
{
    *out = (struct starter){0};
    for (size_t i = 0; i < sizeof starters / sizeof *starters && out->size == 0; i++) {
        int rank = number_of(starters[i].rank), size = number_of(starters[i].size);
        int local = number_of(starters[i].local_size), machines = number_of(starters[i].machines);
        if (rank < 0 || size <= rank || (starters[i].step && !getenv(starters[i].step)))
            continue;
        out->rank = rank;
        out->size = size;
        out->local_size = local > 0 && local <= size ? local : machines == 1 ? size : 0;
        out->several_machines = (local > 0 && local < size) || machines > 1;
    }
}

/* Bound by its starter a process may use few of them; unbound it shares all with its neighbours. */
int starter_processors(const struct starter *starter)
{
    cpu_set_t mine;
    long there = sysconf(_SC_NPROCESSORS_ONLN);
    int count = there < 1 ? 1 : there > INT_MAX ? INT_MAX : (int)there;
    if (starter->local_size > 1)
        count = count / starter->local_size;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) < count)
        count = CPU_COUNT(&mine);
    return count < 1 ? 1 : count;
}
