/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_load.c - see mpi_load.h. */
#include "mpi_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef MPI_SONAME

#include <mpi.h>

#include "base/dynamic_library.h"
#include "base/system_words.h"

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
    return introduced ? STATUS_OK
                      : diag_error(diag, STATUS_SYSTEM,
                                   "srun has told MPI nothing of the other processes; try 'srun "
                                   "--mpi=pmix'");
}

enum status mpi_begin(int size, struct mpi **out, struct diag *diag)
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

void mpi_end(struct mpi *mpi)
{
    if (!mpi)
        return;
    mpi->MPI_Finalize();
    free(mpi);
}

void mpi_abort(struct mpi *mpi, int code)
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

void mpi_send(struct mpi *mpi, int to, const void *data, size_t bytes)
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

void *mpi_receive(struct mpi *mpi, int from, size_t *bytes)
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

enum status mpi_begin(int size, struct mpi **out, struct diag *diag)
{
    (void)size;
    (void)out;
    return diag_error(diag, STATUS_SYSTEM, "MPI is not built in (configure --with-mpi)");
}

void mpi_end(struct mpi *mpi)
{
    (void)mpi;
}

void mpi_abort(struct mpi *mpi, int code)
{
    (void)mpi;
    _Exit(code);
}

void mpi_send(struct mpi *mpi, int to, const void *data, size_t bytes)
{
    (void)mpi;
    (void)to;
    (void)data;
    (void)bytes;
}

void *mpi_receive(struct mpi *mpi, int from, size_t *bytes)
{
    (void)mpi;
    (void)from;
    *bytes = 0;
    return NULL;
}

#endif
