/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_workers.c - see mpi_workers.h. */
#include "mpi_workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef MPI_SONAME
#include <mpi.h>
#endif

#include "base/dynamic_library.h"
#include "base/system_words.h"

/* ---- MPI ------------------------------------------------------------------------------------- */

/*
 * Loading libmpi takes longer than most plans take to verify, and initialising it a hundred times as long. So it is no
 * dependency of the programs: where a launcher has started us it is opened by the name that the linker would have used,
 * and its functions are called through a table. A failure inside MPI ends all processes with MPI's own message, as is
 * its default: the functions below have nothing to report. One thread uses it. Once ended MPI cannot begin again in
 * this process.
 */

struct mpi; /* MPI, loaded */

#define MPI_MOST_BYTES ((size_t)1 << 30) /* the largest message */

#ifdef MPI_SONAME

#define MPI_FUNCTION_LIST(X)                                                                       \
    X(MPI_Abort)                                                                                   \
    X(MPI_Comm_size)                                                                               \
    X(MPI_Finalize)                                                                                \
    X(MPI_Get_count)                                                                               \
    X(MPI_Get_library_version)                                                                     \
    X(MPI_Init_thread)                                                                             \
    X(MPI_Iprobe)                                                                                  \
    X(MPI_Isend)                                                                                   \
    X(MPI_Recv)                                                                                    \
    X(MPI_Test)

struct mpi {
#define X(name) __typeof__(name) *name;
    MPI_FUNCTION_LIST(X)
#undef X
    MPI_Comm world;
    MPI_Datatype byte;
};

enum { TAG = 1, NAP_FIRST_NS = 20000, NAP_LONGEST_NS = 2000000 };

static const char soname[] = MPI_SONAME;
DYNAMIC_LIBRARY("mpi", "workers of predict under mpirun or srun", "suggested", MPI_SONAME);

/* ---- begin and end --------------------------------------------------------------------------- */

/* In Open MPI a handle is the address of a variable of the library, elsewhere it is a number. */
static const char *find_handles(void *library, struct mpi *mpi)
{
#ifdef OPEN_MPI
    if (!dynamic_symbol(library, "ompi_mpi_comm_world", &mpi->world))
        return "ompi_mpi_comm_world";
    if (!dynamic_symbol(library, "ompi_mpi_byte", &mpi->byte))
        return "ompi_mpi_byte";
#else
    (void)library;
    mpi->world = MPI_COMM_WORLD;
    mpi->byte = MPI_BYTE;
#endif
    return NULL;
}

/* Its parts are libraries themselves and expect to find its names: hence RTLD_GLOBAL. A loaded library
   stays loaded. */
static enum status mpi_load_load(struct mpi *mpi, struct diag *diag)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return diag_error(diag, STATUS_SYSTEM, "MPI's library cannot be loaded: %s",
                          system_loader_words());
    const char *missing = find_handles(library, mpi);
#define X(name)                                                                                    \
    if (!dynamic_symbol(library, #name, &mpi->name))                                               \
        missing = #name;
    MPI_FUNCTION_LIST(X)
#undef X
    if (missing)
        return diag_error(diag, STATUS_SYSTEM, "the MPI found, %s, has no %s", soname, missing);
    return STATUS_OK;
}

static enum status expect_size(struct mpi *mpi, int size, struct diag *diag)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int found = 0, length = 0;
    mpi->MPI_Comm_size(mpi->world, &found);
    if (found == size)
        return STATUS_OK;
    mpi->MPI_Get_library_version(version, &length);
    return diag_error(diag, STATUS_SYSTEM,
                      "%d processes were started, but MPI knows of %d: this is %.*s; was another "
                      "MPI's launcher used?",
                      size, found, (int)strcspn(version, ",\n"), version);
}

/* srun tells MPI of the other processes where it is asked to; Open MPI would end a process that it was
   not told of, instead of saying that it is alone. */
static enum status expect_introduction(struct diag *diag)
{
    static const char *const introductions[] = {"PMIX_NAMESPACE", "PMI_RANK",
                                                "OMPI_COMM_WORLD_SIZE"};
    bool introduced = !getenv("SLURM_STEP_ID");
    for (size_t i = 0; i < sizeof introductions / sizeof *introductions; i++)
        introduced = introduced || getenv(introductions[i]);
    return introduced
               ? STATUS_OK
               : diag_error(
                     diag, STATUS_SYSTEM,
                     "MPI knows nothing of the other processes that srun has started; try 'srun "
                     "--mpi=pmix'");
}

/* All processes end with it. */
static void mpi_end(struct mpi *mpi)
{
    if (!mpi)
        return;
    mpi->MPI_Finalize();
    free(mpi);
}

/* STATUS_SYSTEM with the reason where there is no MPI: not installed here, or another than that of the launcher, which
   started `size` processes. */
static enum status mpi_begin(int size, struct mpi **out, struct diag *diag)
{
    int level;
    enum status status = expect_introduction(diag);
    if (status != STATUS_OK)
        return status;
    struct mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi)
        return diag_no_memory(diag);
    status = mpi_load_load(mpi, diag);
    if (status != STATUS_OK) {
        free(mpi);
        return status;
    }
    mpi->MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    status = expect_size(mpi, size, diag);
    if (status != STATUS_OK) {
        mpi_end(mpi);
        return status;
    }
    *out = mpi;
    return STATUS_OK;
}

/* All processes end now, this one with `code`. */
static __attribute__((noreturn)) void mpi_abort(struct mpi *mpi, int code)
{
    mpi->MPI_Abort(mpi->world, code);
    _Exit(code);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void mpi_load_nap(long *ns)
{
    nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
    *ns = *ns < NAP_LONGEST_NS ? 2 * *ns : *ns;
}

/* A wait takes naps: it does not keep a processor busy. */
static void mpi_send(struct mpi *mpi, int to, const void *data, size_t bytes)
{
    MPI_Request request;
    long nap_ns = NAP_FIRST_NS;
    int sent = 0;
    mpi->MPI_Isend(data, (int)bytes, mpi->byte, to, TAG, mpi->world, &request);
    for (;;) {
        mpi->MPI_Test(&request, &sent, MPI_STATUS_IGNORE);
        if (sent)
            return;
        mpi_load_nap(&nap_ns);
    }
}

/* Something from a rank, freed by the caller; memory that is not there ends all processes. */
static void *mpi_receive(struct mpi *mpi, int from, size_t *bytes)
{
    MPI_Status status;
    long nap_ns = NAP_FIRST_NS;
    int there = 0, count = 0;
    for (;;) {
        mpi->MPI_Iprobe(from, TAG, mpi->world, &there, &status);
        if (there)
            break;
        mpi_load_nap(&nap_ns);
    }
    mpi->MPI_Get_count(&status, mpi->byte, &count);
    void *data = malloc((size_t)count + 1);
    if (!data) {
        fprintf(stderr, "swsim: error: no memory for a message of %d bytes from MPI rank %d\n",
                count, from);
        mpi_abort(mpi, status_exit_code(STATUS_SYSTEM));
    }
    mpi->MPI_Recv(data, count, mpi->byte, from, TAG, mpi->world, MPI_STATUS_IGNORE);
    *bytes = (size_t)count;
    return data;
}

#else /* without MPI: nothing begins, so nothing else is called */

static enum status mpi_begin(int size, struct mpi **out, struct diag *diag)
{
    (void)size;
    (void)out;
    return diag_error(diag, STATUS_SYSTEM, "MPI is not built in (configure --with-mpi)");
}

static void mpi_end(struct mpi *mpi)
{
    (void)mpi;
}

static __attribute__((noreturn)) void mpi_abort(struct mpi *mpi, int code)
{
    (void)mpi;
    _Exit(code);
}

static void mpi_send(struct mpi *mpi, int to, const void *data, size_t bytes)
{
    (void)mpi;
    (void)to;
    (void)data;
    (void)bytes;
}

static void *mpi_receive(struct mpi *mpi, int from, size_t *bytes)
{
    (void)mpi;
    (void)from;
    *bytes = 0;
    return NULL;
}

#endif

/* ---- orders ---------------------------------------------------------------------------------- */

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

static enum status mpi_workers_send(void *context, const void *data, size_t bytes,
                                    struct diag *diag)
{
    struct mpi_workers *workers = context;
    if (bytes > MPI_MOST_BYTES)
        return diag_error(diag, STATUS_SYSTEM,
                          "%zu bytes of results are more than MPI can carry at once (%zu)", bytes,
                          MPI_MOST_BYTES);
    mpi_send(workers->mpi, 0, data, bytes);
    return STATUS_OK;
}

static enum status mpi_workers_receive(void *context, int from, void **data, size_t *bytes,
                                       struct diag *diag)
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
                                         .send = mpi_workers_send,
                                         .receive = mpi_workers_receive};
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
