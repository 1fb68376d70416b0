/* SPDX-License-Identifier: Apache-2.0 */
/* launched.c - see launched.h. */
#include "launched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { MOST = 1 << 30 };

static const struct {
    const char *rank, *size;
} places[] = {{"RANK", "WORLD_SIZE"}, /* torchrun, and what else starts jobs of PyTorch */
              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
              {"PMIX_RANK", "PMIX_SIZE"},
              {"PMI_RANK", "PMI_SIZE"},
              {"SLURM_PROCID", "SLURM_NTASKS"}};

/* A whole number below `end`. */
static bool launched_read_number(const char *text, uint64_t end, uint64_t *out)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number < end; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    *out = number;
    return at != text && !*at && number < end;
}

/* The job of row i, whose rank is set. */
static struct launched launched_take_row(size_t i, const char *number)
{
    const char *of = getenv(places[i].size);
    uint64_t rank, size = 0;
    if (of && *of && !launched_read_number(of, MOST, &size))
        return (struct launched){.odd = places[i].size};
    if (!launched_read_number(number, size ? size : MOST, &rank))
        return (struct launched){.odd = places[i].rank};
    return (struct launched){.rank = rank + 1, .size = size};
}

struct launched launched_as(void)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *number = getenv(places[i].rank);
        if (number && *number)
            return launched_take_row(i, number);
    }
    return (struct launched){0};
}
