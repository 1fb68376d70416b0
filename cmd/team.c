/* team.c - see team.h. */
#include "team.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_load.h"

/* From rank 0 to the others. */
struct order {
    int32_t over;   /* all is; else a prediction begins */
    int32_t status; /* how it ended: enum status */
    uint64_t digest;
};

struct team {
    struct mpi *mpi;
    struct spread spread;
    uint64_t digest;
    struct order last; /* that this rank has received */
};

static void give_order(struct team *team, const struct order *order)
{
    for (int rank = 1; rank < team->spread.size; rank++)
        mpi_send(team->mpi, rank, order, sizeof *order);
}

static void take_order(struct team *team)
{
    size_t bytes;
    void *data = mpi_receive(team->mpi, 0, &bytes);
    if (bytes != sizeof team->last) /* another program has been started as rank 0 */
        mpi_abort(team->mpi, status_exit_code(STATUS_USAGE));
    memcpy(&team->last, data, sizeof team->last);
    free(data);
}

/* ---- the transport --------------------------------------------------------------------------- */

static enum status disagree(struct diag *diag)
{
    return diag_error(diag, STATUS_USAGE, "its arguments or its plan are not those of rank 0");
}

static enum status begin(void *context, struct diag *diag)
{
    struct team *team = context;
    if (team->spread.rank == 0) {
        give_order(team, &(struct order){.digest = team->digest});
        return STATUS_OK;
    }
    take_order(team);
    if (team->last.over)
        return team->last.status ? (enum status)team->last.status : STATUS_SYSTEM;
    if (team->last.digest == team->digest)
        return STATUS_OK;
    enum status status = disagree(diag);
    (void)spread_end(&team->spread, status, 0, diag, diag);
    return status;
}

static enum status send(void *context, const void *data, size_t bytes, struct diag *diag)
{
    struct team *team = context;
    if (bytes > MPI_MOST_BYTES)
        return diag_error(diag, STATUS_SYSTEM,
                          "%zu bytes of results are more than MPI can carry at once (%zu)", bytes,
                          MPI_MOST_BYTES);
    mpi_send(team->mpi, 0, data, bytes);
    return STATUS_OK;
}

static enum status receive(void *context, int from, void **data, size_t *bytes, struct diag *diag)
{
    struct team *team = context;
    (void)diag;
    *data = mpi_receive(team->mpi, from, bytes);
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

bool team_open(struct app *app, const struct starter *starter, struct team **out)
{
    struct diag why;
    *out = NULL;
    if (starter->size < 2)
        return true;
    diag_init(&why);
    struct team *team = calloc(1, sizeof *team);
    if (!team || mpi_begin(starter->size, &team->mpi, &why) != STATUS_OK) {
        free(team);
        return go_alone(app, starter, &why);
    }
    diag_fini(&why);
    team->spread = (struct spread){.rank = starter->rank,
                                   .size = starter->size,
                                   .context = team,
                                   .begin = begin,
                                   .send = send,
                                   .receive = receive};
    *out = team;
    return true;
}

void team_agree(struct team *team, uint64_t digest)
{
    team->digest = digest;
}

const struct spread *team_spread(struct team *team)
{
    return team ? &team->spread : NULL;
}

/* Until rank 0 says that all is over: who is asked to help and cannot says why. */
static enum status await_end(struct team *team, struct app *app, enum status status)
{
    while (!team->last.over) {
        take_order(team);
        if (team->last.over)
            break;
        if (status == STATUS_OK || status == STATUS_VIOLATED)
            status = disagree(&app->diag);
        (void)spread_end(&team->spread, status, 0, &app->diag, &app->diag);
    }
    return (enum status)team->last.status;
}

enum status team_close(struct team *team, struct app *app, enum status status)
{
    if (!team)
        return status;
    if (team->spread.rank == 0)
        give_order(team, &(struct order){.over = true, .status = (int32_t)status});
    else
        status = await_end(team, app, status);
    mpi_end(team->mpi);
    free(team);
    return status;
}
