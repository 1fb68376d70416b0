/* SPDX-License-Identifier: Apache-2.0 */
/* starter.c - see starter.h. */
#include "starter.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/processors.h"

/* Variables by which launchers name ranks; the others count only if `step`, where there is one, is set. */
static const struct {
    const char *rank, *size, *local_size, *machines, *step;
} starters[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", NULL, NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, "SLURM_STEP_NUM_NODES", "SLURM_STEP_ID"},
};

/* NULL: unset, or empty. */
static const char *value_of(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    return text && *text ? text : NULL;
}

/* A number of the environment from 0 on, -1: unset, or not such a number, which *odd then names. */
static int starter_number_of(const char *variable, const char **odd)
{
    const char *text = value_of(variable);
    char *end;
    if (!text)
        return -1;
    const long number = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
    if (number >= 0 && number <= INT_MAX && *end == '\0')
        return (int)number;
    if (!*odd)
        *odd = variable;
    return -1;
}

static void starter_refuse(struct starter *out, const char *variable, const char *expected)
{
    *out = (struct starter){.odd = variable, .expected = expected};
}

/* The starter of row i, whose rank and size are set. */
static void starter_take_row(size_t i, struct starter *out)
{
    const char *odd = NULL;
    const int rank = starter_number_of(starters[i].rank, &odd),
              size = starter_number_of(starters[i].size, &odd);
    const int local = starter_number_of(starters[i].local_size, &odd);
    const int machines = starter_number_of(starters[i].machines, &odd);
    if (odd)
        starter_refuse(out, odd, "a number that the launcher has set");
    else if (size == 0)
        starter_refuse(out, starters[i].size, "at least one process");
    else if (rank >= size)
        starter_refuse(out, starters[i].rank, "less than the number of processes");
    else if (local == 0 || local > size)
        starter_refuse(out, starters[i].local_size, "1 to the number of processes");
    else if (machines == 0)
        starter_refuse(out, starters[i].machines, "at least one machine");
    else
        *out = (struct starter){
            .rank = rank,
            .size = size,
            .local_size = local > 0       ? local
                          : machines == 1 ? size
                                          : 0,
            .several_machines = (local > 0 && local < size) || machines > 1,
        };
}

void starter_find(struct starter *out)
{
    *out = (struct starter){0};
    for (size_t i = 0; i < sizeof starters / sizeof *starters && out->size == 0 && !out->odd; i++)
        if (value_of(starters[i].rank) && value_of(starters[i].size) &&
            (!starters[i].step || value_of(starters[i].step)))
            starter_take_row(i, out);
}

enum status starter_check(const struct starter *starter, struct diag *diag)
{
    if (!starter->odd)
        return STATUS_OK;
    return diag_error(diag, STATUS_USAGE, "environment variable %s: found \"%.20s\", expected %s",
                      starter->odd, getenv(starter->odd), starter->expected);
}

/* Bound by its starter a process may use few of them; unbound it shares all with its neighbours. */
int starter_processors(const struct starter *starter)
{
    const int mine = processors_count();
    const int each = processors_online() / (starter->local_size > 1 ? starter->local_size : 1);
    return each < 1 ? 1 : each < mine ? each : mine;
}
