/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_shared.c - see frontier_shared.h. */
#include "frontier_shared.h"

#include <stdlib.h>
#include <string.h>

/* Candidates of a rank. */
static size_t part_of(const struct frontier *f, const struct result_wire *wire, int rank)
{
    size_t size = (size_t)wire->size, first = (size_t)rank;
    return f->count > first ? (f->count - first + size - 1) / size : 0;
}

/* A byte says that the rank has failed. */
static enum status send_part(const struct frontier *f, const struct result_wire *wire, bool failed,
                             struct diag *diag)
{
    size_t count = part_of(f, wire, wire->rank);
    struct candidate *part = ARENA_ARRAY(f->arena, count + 1, struct candidate);
    if (!part || failed) {
        enum status status = wire->send(wire->context, "", 1, diag);
        return part ? status : diag_no_memory(diag);
    }
    for (size_t i = 0; i < count; i++)
        part[i] = f->candidates[(size_t)wire->rank + i * (size_t)wire->size];
    return wire->send(wire->context, part, count * sizeof *part, diag);
}

static enum status take_part(struct frontier *f, const struct result_wire *wire, int from,
                             struct diag *diag)
{
    size_t count = part_of(f, wire, from), bytes;
    void *data;
    enum status status = wire->receive(wire->context, from, &data, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    const struct candidate *part = data;
    if (bytes != count * sizeof *part)
        status = diag_error(diag, STATUS_SYSTEM, "rank %d could not try its candidates", from);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        f->candidates[(size_t)from + i * (size_t)wire->size] = part[i];
    free(data);
    return status;
}

enum status frontier_try_all(struct frontier *f, const struct result_wire *wire, struct diag *diag)
{
    if (!wire)
        return frontier_try(f, 0, 1, diag);
    enum status status = wire->begin(wire->context, diag);
    if (status != STATUS_OK)
        return status;
    status = frontier_try(f, (size_t)wire->rank, (size_t)wire->size, diag);
    if (wire->rank > 0) {
        enum status sent = send_part(f, wire, status != STATUS_OK, diag);
        return status == STATUS_OK ? sent : status;
    }
    for (int from = 1; from < wire->size; from++) { /* all are heard */
        enum status taken = take_part(f, wire, from, diag);
        status = status == STATUS_OK ? taken : status;
    }
    return status;
}
