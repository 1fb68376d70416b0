/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_workers.c - see mpi_workers.h. */
#include "mpi_workers.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_load.h"

/* From rank 0 to the others. */
struct order {
    int32_t over;   /* all is; else a prediction begins */
    int32_t status; /* how it ended: enum status */
    uint64_t digest;
};

struct mpi_workers {
    struct mpi *mpi;
    struct result_wire wire;
    uint64_t digest;
    struct order last; /* that this rank has received */
};

static void give_order(struct mpi_workers *workers, const struct order *order)
{
    for (int rank = 1; rank < workers->wire.size; rank++)
        mpi_send(workers->mpi, rank, order, sizeof *order);
}

static void take_order(struct mpi_workers *workers)
{
    size_t bytes;
    void *data = mpi_receive(workers->mpi, 0, &bytes);
    if (bytes != sizeof workers->last) /* another program has been started as rank 0 */
        mpi_abort(workers->mpi, status_exit_code(STATUS_USAGE));
    memcpy(&workers->last, data, sizeof workers->last);
    free(data);
}

/* ---- the transport --------------------------------------------------------------------------- */

static enum status disagree(struct diag *diag)
{
    return diag_error(diag, STATUS_USAGE, "its arguments or its plan are not those of rank 0");
}

static enum status mpi_workers_begin(void *context, struct diag *diag)
{
    struct mpi_workers *workers = context;
    if (workers->wire.rank == 0) {
        give_order(workers, &(struct order){.digest = workers->digest});
        return STATUS_OK;
    }
    take_order(workers);
    if (workers->last.over)
        return workers->last.status ? (enum status)workers->last.status : STATUS_SYSTEM;
    if (workers->last.digest == workers->digest)
        return STATUS_OK;
    enum status status = disagree(diag);
    (void)result_wire_end(&workers->wire, status, 0, diag, diag);
    return status;
}

static enum status send(void *context, const void *data, size_t bytes, struct diag *diag)
{
    struct mpi_workers *workers = context;
    if (bytes > MPI_MOST_BYTES)
        return diag_error(diag, STATUS_SYSTEM,
                          "%zu bytes of results are more than MPI can carry at once (%zu)", bytes,
                          MPI_MOST_BYTES);
    mpi_send(workers->mpi, 0, data, bytes);
    return STATUS_OK;
}

static enum status receive(void *context, int from, void **data, size_t *bytes, struct diag *diag)
{
    struct mpi_workers *workers = context;
    (void)diag;
    *data = mpi_receive(workers->mpi, from, bytes);
    return STATUS_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Without MPI every process would do the whole: one is enough. */
static bool go_alone(struct app *app, const struct starter *starter, struct diag *why)
{
    if (starter->rank == 0)
        diag_warn(&app->diag, "rank 0 of %d works alone: %s", starter->size,
                  why->count ? why->messages[0].text : "out of memory");
    diag_fini(why);
    return starter->rank == 0;
}

bool mpi_workers_open(struct app *app, const struct starter *starter, struct mpi_workers **out)
{
    struct diag why;
    *out = NULL;
    if (starter->size < 2)
        return true;
    diag_init(&why);
    struct mpi_workers *workers = calloc(1, sizeof *workers);
    if (!workers || mpi_begin(starter->size, &workers->mpi, &why) != STATUS_OK) {
        free(workers);
        return go_alone(app, starter, &why);
    }
    diag_fini(&why);
    workers->wire = (struct result_wire){.rank = starter->rank,
                                         .size = starter->size,
                                         .context = workers,
                                         .begin = mpi_workers_begin,
                                         .send = send,
                                         .receive = receive};
    *out = workers;
    return true;
}

void mpi_workers_agree(struct mpi_workers *workers, uint64_t digest)
{
    workers->digest = digest;
}

const struct result_wire *mpi_workers_wire(struct mpi_workers *workers)
{
    return workers ? &workers->wire : NULL;
}

/* Until rank 0 ends the work: answer each request for help with the reason for the refusal. */
static enum status await_end(struct mpi_workers *workers, struct app *app, enum status status)
{
    while (!workers->last.over) {
        take_order(workers);
        if (workers->last.over)
            break;
        if (status == STATUS_OK || status == STATUS_VIOLATED)
            status = disagree(&app->diag);
        (void)result_wire_end(&workers->wire, status, 0, &app->diag, &app->diag);
    }
    return (enum status)workers->last.status;
}

enum status mpi_workers_close(struct mpi_workers *workers, struct app *app, enum status status)
{
    if (!workers)
        return status;
    if (workers->wire.rank == 0)
        give_order(workers, &(struct order){.over = true, .status = (int32_t)status});
    else
        status = await_end(workers, app, status);
    mpi_end(workers->mpi);
    free(workers);
    return status;
}
