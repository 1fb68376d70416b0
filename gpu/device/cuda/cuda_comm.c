/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm.c - communicators of the CUDA device: NCCL does the work.
 *
 * A process has one rank. The first member makes the id of a communicator and puts it where the world's
 * processes meet; the others get it there. NCCL has neither time limit nor callback: its errors
 * are polled during waits (cuda_comm_check), and only an abort ends its kernels.
 *
 * Communicators block: one that does not has NCCL make a thread for every call. So they are made, and connected, by a
 * thread of their own (make_main), when all members have come to do so: its caller watches the others meanwhile, and gives it
 * up where one has died or the world has ended. A call that is then in ncclCommInitRank comes back when NCCL notices, or never;
 * its thread owns all that it uses. A communicator of the program's own is as the program made it; a call of one that does not
 * block is asked for until it is through (cuda_comm_await).
 *
 * NCCL connects two ranks at their first message, and their hosts wait for each other then. A push must not
 * wait, so opening a communicator sends one message between every pair of its ranks (push_warm_up); the
 * connections of collectives are made by ncclCommInitRank (NCCL_RUNTIME_CONNECT=0).
 *
 * An abort waits for pushed operations, and these for other communicators that are being aborted, so all are
 * aborted in one group (before NCCL 2.22: by a thread each), by a thread of its own: the aborting thread goes on at once. It
 * also waits for work of the user's on the GPU, which nothing need end: after SETTLE_S a close leaves it, and what it has, until
 * the process ends. Calls of NCCL hold comm->lock, the question for errors, too (find_error); one that does not come back
 * within ABORT_WAIT_S is stuck, and only the abort ends it.
 *
 * In a build without NCCL's header there are no communicators (the end of this file).
 */
#include "cuda_impl.h"

#ifdef HAVE_NCCL

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl_load.h"
#include "gpu/net/rendezvous.h"
#include "base/hash.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum {
    ABORT_WAIT_S = 1,
    SETTLE_S = 5,
    LOCK_WAIT_NS = 5000000,
    NCCL_TEXT = 300,
    WARM_UP_PAUSE_NS = 20000,
    NEWS_NS =
        300000000 /* that which made an error of NCCL comes by the rendezvous within this time */
};

struct cuda_comm {
    union {
        struct device_comm base;
        struct cuda_member member;
    };
    struct cuda_comm *next;
    struct cuda_comm *next_aborted; /* among those the abort has taken */
    struct nccl *nccl;
    pthread_mutex_t lock; /* NCCL wants one caller at a time */
    ncclComm_t handle;
    bool adopted;        /* the program's own, which stays but for an abort */
    atomic_bool aborted; /* the handle is gone; set under the world's lock */
    bool locked;         /* by the abort */
    bool aborting;       /* by a thread of its own */
    pthread_t abort_thread;
    char *scratch; /* a number for each member; a barrier sums the first */
};

/* A call within a group may be under way, too. */
static bool cuda_comm_passes(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* The end of a call that may still be under way; with comm->lock. */
static ncclResult_t cuda_comm_await(struct cuda_comm *comm, ncclResult_t result);
/* The end of a group whose calls gave `result`. */
static ncclResult_t cuda_comm_end_group(struct cuda_comm *comm, ncclResult_t result);

void cuda_nccl_open(struct cuda_device *device, char *description, size_t size)
{
    struct diag why;
    diag_init(&why);
    device->nccl = calloc(1, sizeof *device->nccl);
    if (device->nccl && nccl_load(device->nccl, &why) == STATUS_OK) {
        char version[32];
        nccl_show_version(device->nccl->version, version, sizeof version);
        snprintf(description, size, "NCCL %s", version);
    } else {
        free(device->nccl);
        device->nccl = NULL;
        snprintf(description, size, "%s", why.count ? why.messages[0].text : "no NCCL");
    }
    diag_fini(&why);
}

/* The state that NCCL tells. No abort ends the handle meanwhile: that needs the world's lock first (take_all). */
static ncclResult_t cuda_comm_ask(struct cuda_comm *comm)
{
    struct cuda_world *world = ((struct cuda_device *)comm->base.device)->world;
    ncclResult_t state = ncclInvalidUsage; /* what an aborted communicator gives */
    pthread_mutex_lock(&world->lock);
    if (!atomic_load(&comm->aborted) &&
        comm->nccl->CommGetAsyncError(comm->handle, &state) != ncclSuccess)
        state = ncclInternalError;
    pthread_mutex_unlock(&world->lock);
    return state;
}

/* While a communicator is made no thread watches the others: find out whether one of its members has died, or failed. */
static enum status members_ended(struct cuda_comm *comm, struct diag *diag)
{
    struct cuda_world *world = ((struct cuda_device *)comm->base.device)->world;
    struct rendezvous *rendezvous = world->base.config.rendezvous;
    enum status status = cuda_world_ended(world, diag);
    const char *how;
    const int gone = rendezvous && !status ? rendezvous_lost(rendezvous, &how) : -1;
    if (gone < 0)
        return status;
    if (gone == rendezvous_size(rendezvous))
        return diag_error(diag, STATUS_SYSTEM, "communicator %s: the ranks' broker is gone",
                          comm->base.name);
    return diag_error(diag, STATUS_SYSTEM, "communicator %s: rank %d %s", comm->base.name, gone,
                      how);
}

static ncclResult_t cuda_comm_await(struct cuda_comm *comm, ncclResult_t result)
{
    while (result == ncclInProgress) {
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
        result = cuda_comm_ask(comm);
    }
    return result;
}

static ncclResult_t cuda_comm_end_group(struct cuda_comm *comm, ncclResult_t result)
{
    const ncclResult_t ended = comm->nccl->GroupEnd();
    return cuda_comm_passes(result) ? cuda_comm_await(comm, ended) : result;
}

enum status cuda_nccl_captures(const struct cuda_device *device, struct diag *diag)
{
    char version[32];
    if (!device->comms || device->nccl->version >= NCCL_WITH_GRAPHS)
        return STATUS_OK;
    nccl_show_version(device->nccl->version, version, sizeof version);
    return diag_error(diag, STATUS_SYSTEM,
                      "a graph cannot be captured: NCCL %s is too old, 2.9 or newer is needed",
                      version);
}

void cuda_nccl_close(struct cuda_device *device)
{
    if (device->nccl && !device->stuck) {
        nccl_unload(device->nccl);
        free(device->nccl);
    }
    device->nccl = NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static enum status refused(struct cuda_comm *comm, const char *what, ncclResult_t result,
                           struct diag *diag)
{
    char version[32], words[NCCL_TEXT];
    nccl_show_version(comm->nccl->version, version, sizeof version);
    return diag_error(diag, STATUS_SYSTEM, "communicator %s: %s: %s (NCCL %s)", comm->base.name,
                      what, nccl_describe(comm->nccl, result, words, sizeof words), version);
}

/* The key of this communicator in the rendezvous, the same in every process: its world, its name and members,
   and how often it has been opened before. NULL: no memory. */
static char *id_key(struct cuda_comm *comm, struct cuda_world *world)
{
    struct cuda_name *name;
    char *text = NULL, *key = NULL;
    uint64_t members =
        hash_bytes(comm->base.members, (size_t)comm->base.count * sizeof *comm->base.members);
    if (asprintf(&text, "communicator %s, world %d, members %08" PRIx64, comm->base.name,
                 world->number, members & UINT32_MAX) < 0)
        return NULL;
    for (name = world->names; name && strcmp(name->text, text) != 0; name = name->next)
        continue;
    if (!name) {
        name = calloc(1, sizeof *name + strlen(text) + 1);
        if (!name) {
            free(text);
            return NULL;
        }
        memcpy(name->text, text, strlen(text) + 1);
        name->next = world->names;
        world->names = name;
    }
    if (asprintf(&key, "%s, %d", text, name->opened++) < 0)
        key = NULL;
    free(text);
    return key;
}

void cuda_comm_forget(struct cuda_world *world)
{
    while (world->names) {
        struct cuda_name *name = world->names;
        world->names = name->next;
        free(name);
    }
}

static enum status make_id(struct cuda_comm *comm, ncclUniqueId *id, struct diag *diag)
{
    ncclResult_t result = comm->nccl->GetUniqueId(id);
    return result == ncclSuccess ? STATUS_OK : refused(comm, "no id", result, diag);
}

/* ncclCommInitRank waits for all members, and nothing can end that: it is called when all of them are
   there to call it. */
static enum status all_here(struct cuda_comm *comm, const char *key, struct diag *diag)
{
    struct rendezvous *rendezvous =
        ((struct cuda_device *)comm->base.device)->world->base.config.rendezvous;
    enum status status = STATUS_OK;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < comm->base.count && !status; i++) {
            char *here = NULL, mark = 1;
            size_t bytes = sizeof mark;
            if ((turn == 0) != (i == comm->base.me))
                continue;
            if (asprintf(&here, "%s, member %d", key, i) < 0)
                return diag_no_memory(diag);
            status = turn == 0 ? rendezvous_put(rendezvous, here, &mark, bytes, diag)
                               : rendezvous_get(rendezvous, here, &mark, &bytes, RENDEZVOUS_FOREVER,
                                                diag);
            free(here);
        }
    return status;
}

/* One communicator is opened at a time, as NCCL wants it, too. */
static enum status agree_on_id(struct cuda_comm *comm, ncclUniqueId *id, struct diag *diag)
{
    struct cuda_world *world = ((struct cuda_device *)comm->base.device)->world;
    struct rendezvous *rendezvous = world->base.config.rendezvous;
    size_t bytes = sizeof *id;
    char *key = id_key(comm, world);
    if (!key)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    if (comm->base.me == 0)
        status = make_id(comm, id, diag);
    if (!status && comm->base.me == 0)
        status = rendezvous_put(rendezvous, key, id, bytes, diag);
    else if (!status)
        status = rendezvous_get(rendezvous, key, id, &bytes, RENDEZVOUS_FOREVER, diag);
    if (!status && bytes != sizeof *id)
        status = diag_error(diag, STATUS_SYSTEM,
                            "communicator %s: the processes have different versions of NCCL",
                            comm->base.name);
    if (!status)
        status = all_here(comm, key, diag);
    free(key);
    return status;
}

/* A communicator that the program has made: with these members, on this GPU, of the NCCL that is used here. */
static enum status cuda_comm_adopt(struct cuda_comm *comm, ncclComm_t handle, struct diag *diag)
{
    const struct nccl *nccl = comm->nccl;
    int gpu = ((struct cuda_device *)comm->base.device)->world->gpu;
    int count = -1, place = -1, device = -1;
    ncclResult_t result = nccl->CommCount(handle, &count);
    if (result == ncclSuccess)
        result = nccl->CommUserRank(handle, &place);
    if (result == ncclSuccess)
        result = nccl->CommCuDevice(handle, &device);
    if (result != ncclSuccess)
        return refused(comm, "the program's own cannot be used", result, diag);
    if (count != comm->base.count || place != comm->base.me || device != gpu)
        return diag_error(
            diag, STATUS_INPUT,
            "communicator %s: the program's own has rank %d of %d on GPU %d, the plan "
            "%d of %d on GPU %d",
            comm->base.name, place, count, device, comm->base.me, comm->base.count, gpu);
    comm->handle = handle;
    comm->adopted = true;
    return STATUS_OK;
}

static void *own_handle(const struct device *device, const char *name)
{
    const struct device_own *own = device->world->config.own;
    return own && own->comm ? own->comm(own->arg, device->rank, name) : NULL;
}

/* NCCL sees the connections of a dead member close, often before the ranks' broker says who is dead: wait for that. */
static enum status cannot_be_made(struct cuda_comm *comm, ncclResult_t result, struct diag *diag)
{
    struct cuda_world *world = ((struct cuda_device *)comm->base.device)->world;
    const int64_t since_ns = device_now(&world->base);
    const bool lost = result == ncclRemoteError || result == ncclSystemError;
    enum status status = STATUS_OK;
    while (lost && !status && device_now(&world->base) - since_ns < NEWS_NS) {
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
        status = members_ended(comm, diag);
    }
    return status ? status : refused(comm, "cannot be made", result, diag);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A communicator that is being made. Given up, it belongs to its thread. */
struct making {
    struct cuda_comm *comm; /* not looked at by a thread that has been given up */
    struct nccl nccl;
    ncclUniqueId id;
    int count, me;
    ncclComm_t handle; /* NULL: not yet made */
    ncclResult_t result;
    pthread_mutex_t lock;
    bool entered;  /* the thread has the world's GPU */
    bool made;     /* the handle is the communicator's */
    bool ended;    /* it is connected, or there is an error */
    bool given_up; /* nobody waits for it */
    pthread_t thread;
};

static ncclResult_t push_warm_up(struct cuda_comm *comm, cudaStream_t stream);

static void making_free(struct making *making)
{
    pthread_mutex_destroy(&making->lock);
    free(making);
}

/* The handle is there. False: nobody wants it. */
static bool hand_over(struct making *making)
{
    pthread_mutex_lock(&making->lock);
    const bool wanted = !making->given_up;
    making->made = wanted && making->result == ncclSuccess;
    if (making->made)
        making->comm->handle = making->handle;
    making->ended = wanted && !making->made;
    pthread_mutex_unlock(&making->lock);
    return wanted;
}

static void making_say(struct making *making, bool *what)
{
    pthread_mutex_lock(&making->lock);
    *what = true;
    pthread_mutex_unlock(&making->lock);
}

static bool making_has(struct making *making, const bool *what)
{
    pthread_mutex_lock(&making->lock);
    const bool has = *what;
    pthread_mutex_unlock(&making->lock);
    return has;
}

static void *make_main(void *arg)
{
    struct making *making = arg;
    const struct cuda_device *device = (const struct cuda_device *)making->comm->base.device;
    cuda_relax(device->world);
    const bool entered = cuda_enter(device->world) == cudaSuccess;
    making_say(making, &making->entered);
    if (!entered)
        making->result = ncclUnhandledCudaError;
    else if (!making->handle)
        making->result =
            making->nccl.CommInitRank(&making->handle, making->count, making->id, making->me);
    if (!hand_over(making)) {
        if (making->result == ncclSuccess)
            making->nccl.CommAbort(making->handle);
        making_free(making);
        return NULL;
    }
    if (making->ended)
        return NULL;
    pthread_mutex_lock(&making->comm->lock);
    making->result = push_warm_up(making->comm, device->service);
    pthread_mutex_unlock(&making->comm->lock);
    making_say(making, &making->ended);
    return NULL;
}

static void tell_lost(const struct cuda_comm *comm);

/* The thread is through, or, where a member or the world has ended, it is made to be, or left alone: `left`. */
static enum status await_making(struct making *making, bool *left, struct diag *diag)
{
    struct cuda_comm *comm = making->comm;
    enum status status = STATUS_OK;
    *left = false;
    while (!making_has(making, &making->ended) && !status) {
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
        status = members_ended(comm, diag);
    }
    while (!making_has(making, &making->entered))
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
    pthread_mutex_lock(&making->lock);
    const bool connects = making->made && !making->ended;
    *left = making->given_up = !making->made && !making->ended;
    pthread_mutex_unlock(&making->lock);
    if (!connects)
        return status;
    atomic_store(&comm->aborted, true); /* which no other thread knows yet */
    tell_lost(comm);
    comm->nccl->CommAbort(comm->handle);
    return status;
}

static enum status make_in_thread(struct cuda_comm *comm, const ncclUniqueId *id, struct diag *diag)
{
    struct making *making = calloc(1, sizeof *making);
    if (!making || pthread_mutex_init(&making->lock, NULL) != 0) {
        free(making);
        return diag_no_memory(diag);
    }
    making->comm = comm;
    making->nccl = *comm->nccl;
    making->handle = comm->handle;
    making->count = comm->base.count;
    making->me = comm->base.me;
    if (id)
        making->id = *id;
    const int failed = quiet_thread_start(&making->thread, make_main, making);
    if (failed) {
        making_free(making);
        return diag_error(diag, STATUS_SYSTEM, "communicator %s: cannot start a thread: %s",
                          comm->base.name, system_words(failed));
    }
    const pthread_t thread = making->thread;
    bool left;
    enum status status = await_making(making, &left, diag);
    if (left) {
        pthread_detach(thread);
        return status;
    }
    pthread_join(thread, NULL);
    const ncclResult_t result = making->result;
    const bool made = making->made;
    making_free(making);
    if (!status && result != ncclSuccess)
        status = made ? refused(comm, "cannot be used", result, diag)
                      : cannot_be_made(comm, result, diag);
    if (status && made && !atomic_exchange(&comm->aborted, true) && !comm->adopted)
        comm->nccl->CommAbort(comm->handle);
    return status;
}

static enum status cuda_comm_make(struct cuda_comm *comm, struct diag *diag)
{
    void *handle = own_handle(comm->base.device, comm->base.name);
    ncclUniqueId id;
    enum status status =
        handle ? cuda_comm_adopt(comm, handle, diag) : agree_on_id(comm, &id, diag);
    return status ? status : make_in_thread(comm, handle ? NULL : &id, diag);
}

static size_t scratch_bytes(const struct cuda_comm *comm)
{
    return (size_t)comm->base.count * sizeof(float);
}

/* Steps that can fail on one rank alone come before the call that all ranks make together. */
static enum status cuda_comm_connect(struct cuda_comm *comm, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)comm->base.device;
    cudaError_t error = cuda_enter(device->world);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&comm->scratch, scratch_bytes(comm));
    if (error == cudaSuccess)
        error = cudaMemsetAsync(comm->scratch, 0, scratch_bytes(comm), device->service);
    if (error != cudaSuccess)
        return diag_error(diag, STATUS_SYSTEM, "rank %d: no memory for communicator %s: %s",
                          device->base.rank, comm->base.name, cudaGetErrorString(error));
    return cuda_comm_make(comm, diag);
}

static void comm_free(struct cuda_comm *comm)
{
    if (!cuda_never_ends((const struct cuda_device *)comm->base.device))
        cudaFree(comm->scratch);
    else if (comm->scratch)
        atomic_fetch_add(&comm->base.device->kept_bytes, (long long)scratch_bytes(comm));
    pthread_mutex_destroy(&comm->lock);
    pthread_mutex_destroy(&comm->member.order);
    free(comm->base.members);
    free(comm->base.name);
    free(comm);
}

static struct cuda_comm *comm_new(struct cuda_device *device, const char *name, const int *members,
                                  int count)
{
    struct cuda_comm *comm = calloc(1, sizeof *comm);
    if (!comm || pthread_mutex_init(&comm->lock, NULL) != 0) {
        free(comm);
        return NULL;
    }
    if (pthread_mutex_init(&comm->member.order, NULL) != 0) {
        pthread_mutex_destroy(&comm->lock);
        free(comm);
        return NULL;
    }
    comm->nccl = device->nccl;
    comm->base = (struct device_comm){.device = &device->base, .count = count};
    comm->base.name = strdup(name);
    comm->base.members = calloc((size_t)count, sizeof *members);
    if (!comm->base.name || !comm->base.members) {
        comm_free(comm);
        return NULL;
    }
    memcpy(comm->base.members, members, (size_t)count * sizeof *members);
    comm->base.me = device_comm_place(&comm->base, device->base.rank);
    return comm;
}

/* A communicator whose end waits for work that does not end: the thread that ends it keeps it. */
static void comm_leave(struct cuda_comm *comm)
{
    struct device *device = comm->base.device;
    atomic_fetch_add(&device->kept_bytes, (long long)scratch_bytes(comm));
    atomic_fetch_add(&device->kept_comms, 1);
}

/* False: the thread goes on, by itself. */
static bool join_for(pthread_t thread, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    if (pthread_timedjoin_np(thread, NULL, &until) == 0)
        return true;
    pthread_detach(thread);
    return false;
}

/* A number from every rank to every rank, and a sum. */
static ncclResult_t push_warm_up(struct cuda_comm *comm, cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    char *mine = comm->scratch + (size_t)comm->base.me * sizeof(float);
    ncclResult_t result = nccl->GroupStart();
    for (int i = 0; i < comm->base.count && cuda_comm_passes(result); i++) {
        if (i == comm->base.me)
            continue;
        result = nccl->Send(mine, sizeof(float), ncclChar, i, comm->handle, stream);
        if (cuda_comm_passes(result))
            result = nccl->Recv(comm->scratch + (size_t)i * sizeof(float), sizeof(float), ncclChar,
                                i, comm->handle, stream);
    }
    result = cuda_comm_end_group(comm, result);
    if (result == ncclSuccess)
        result = nccl->AllReduce(comm->scratch, comm->scratch, 1, ncclFloat, ncclSum, comm->handle,
                                 stream);
    return cuda_comm_await(comm, result);
}

/* What the thread that made it has pushed is done. */
static enum status await_warm_up(struct cuda_comm *comm, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)comm->base.device;
    enum status status = members_ended(comm, diag);
    while (!status) {
        cudaError_t error = cuda_ask_stream(device->world, device->service);
        if (error == cudaSuccess)
            break;
        status = error == cudaErrorNotReady
                     ? members_ended(comm, diag)
                     : cuda_refused(diag, "a communicator's first use", error);
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
    }
    return status;
}

enum status cuda_comm_open(struct device *base, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base;
    if (!device->nccl) {
        struct nccl again;
        enum status status = nccl_load(&again, diag); /* says why, or it has appeared since */
        if (status)
            return status;
        nccl_unload(&again);
        return diag_error(diag, STATUS_SYSTEM,
                          "NCCL was not there when the device was opened; open it again");
    }
    if (device->world->shared && !getenv("NCCL_HOSTID") && !own_handle(&device->base, name))
        return diag_error(
            diag, STATUS_INPUT,
            "communicator %s: ranks share a GPU, which NCCL refuses unless each has a "
            "machine name of its own: set NCCL_HOSTID before the first use of CUDA, and "
            "NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, NCCL_NET=Socket",
            name);
    struct cuda_comm *comm = comm_new(device, name, members, count);
    if (!comm)
        return diag_no_memory(diag);
    enum status status = cuda_comm_connect(comm, diag);
    if (status) {
        comm_free(comm);
        return status;
    }
    pthread_mutex_lock(&device->world->lock); /* from now on an abort ends it */
    comm->next = device->comms;
    device->comms = comm;
    pthread_mutex_unlock(&device->world->lock);
    status = await_warm_up(comm, diag);
    if (status)
        cuda_comm_close(&comm->base);
    else
        *out = &comm->base;
    return status;
}

/* All pushed work is done. NCCL wants all ranks of a machine to destroy theirs, and one may have died. */
static void *destroy_one(void *arg)
{
    const struct cuda_comm *comm = arg;
    device_enter(comm->base.device);
    comm->nccl->CommDestroy(comm->handle);
    return NULL;
}

static void end_alone(struct cuda_comm *comm)
{
    struct cuda_device *device = (struct cuda_device *)comm->base.device;
    pthread_t thread;
    if (quiet_thread_start(&thread, destroy_one, comm) != 0)
        destroy_one(comm);
    else if (!join_for(thread, SETTLE_S)) {
        device->stuck = true;
        comm_leave(comm);
        return;
    }
    comm_free(comm);
}

/* The thread that takes `aborted` ends the handle; the other must be through with it. */
void cuda_comm_close(struct device_comm *base)
{
    struct cuda_comm *comm = (struct cuda_comm *)base;
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct diag ignored; /* a sync has reported it */
    diag_init(&ignored);
    device_enter(&device->base);
    cuda_device_sync(&device->base, DEVICE_FOREVER, &ignored);
    diag_fini(&ignored);
    pthread_mutex_lock(&device->world->lock);
    struct cuda_comm **link = &device->comms;
    while (*link != comm)
        link = &(*link)->next;
    *link = comm->next;
    bool mine = !atomic_exchange(&comm->aborted, true);
    pthread_mutex_unlock(&device->world->lock);
    if (mine && comm->adopted)
        comm_free(comm);
    else if (mine)
        end_alone(comm);
    else if (cuda_comm_settle(device))
        comm_free(comm);
    else
        comm_leave(comm);
}

void *cuda_comm_handle(struct device_comm *base)
{
    const struct cuda_comm *comm = (const struct cuda_comm *)base;
    return atomic_load(&comm->aborted) ? NULL : comm->handle;
}

/* ---- pushes: collectives and groups of messages as calls of NCCL ----------------------------- */

/* Block j of what is sent goes to member j, block i of what is received comes from member i. */
static ncclResult_t all_to_all(struct cuda_comm *comm, const struct device_collective *what,
                               cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    size_t block = (size_t)what->bytes / (size_t)comm->base.count;
    ncclResult_t result = nccl->GroupStart();
    for (int i = 0; i < comm->base.count && cuda_comm_passes(result); i++) {
        size_t offset = (size_t)i * block;
        result =
            nccl->Send(ref_address(what->send) + offset, block, ncclChar, i, comm->handle, stream);
        if (cuda_comm_passes(result))
            result = nccl->Recv(ref_address(what->recv) + offset, block, ncclChar, i, comm->handle,
                                stream);
    }
    return cuda_comm_end_group(comm, result);
}

static ncclDataType_t type_of(enum number number)
{
    switch (number) {
    case NUMBER_F32: break;
    case NUMBER_F16: return ncclFloat16;
    case NUMBER_BF16: return ncclBfloat16;
    case NUMBER_I32: return ncclInt32;
    case NUMBER_I64: return ncclInt64;
    }
    return ncclFloat32;
}

static ncclResult_t cuda_comm_push_collective(struct cuda_comm *comm,
                                              const struct device_collective *what,
                                              cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    size_t bytes = (size_t)what->bytes, block = bytes / (size_t)comm->base.count;
    const void *send = ref_address(what->send);
    void *recv = ref_address(what->recv);
    size_t size = (size_t)number_bytes(what->number);
    ncclDataType_t type = type_of(what->number);
    if (bytes == 0 && what->kind != COLLECTIVE_BARRIER)
        return ncclSuccess; /* nothing to move, and no NCCL kernel either */
    switch (what->kind) {
    case COLLECTIVE_ALL_TO_ALL: return all_to_all(comm, what, stream);
    case COLLECTIVE_ALL_REDUCE:
        return nccl->AllReduce(send, recv, bytes / size, type, ncclSum, comm->handle, stream);
    case COLLECTIVE_ALL_GATHER:
        return nccl->AllGather(send, recv, block, ncclChar, comm->handle, stream);
    case COLLECTIVE_REDUCE_SCATTER:
        return nccl->ReduceScatter(send, recv, block / size, type, ncclSum, comm->handle, stream);
    case COLLECTIVE_BROADCAST:
        return nccl->Broadcast(send, recv, bytes, ncclChar,
                               device_comm_place(&comm->base, what->root), comm->handle, stream);
    case COLLECTIVE_BARRIER:
        return nccl->AllReduce(comm->scratch, comm->scratch, 1, ncclFloat, ncclSum, comm->handle,
                               stream);
    }
    return ncclInvalidArgument;
}

static ncclResult_t cuda_comm_push_group(struct cuda_comm *comm, const struct device_group *group,
                                         cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    ncclResult_t result = nccl->GroupStart();
    for (size_t i = 0; i < group->count && cuda_comm_passes(result); i++) {
        const struct device_p2p *part = &group->parts[i];
        int peer = device_comm_place(&comm->base, part->peer);
        char *data = ref_address(part->data);
        result = part->send
                     ? nccl->Send(data, (size_t)part->bytes, ncclChar, peer, comm->handle, stream)
                     : nccl->Recv(data, (size_t)part->bytes, ncclChar, peer, comm->handle, stream);
    }
    return cuda_comm_end_group(comm, result);
}

/* A push that is refused behind the death of a peer: the abort, which says who it was, may come in a moment. */
static void cuda_comm_await_news(struct cuda_world *world, ncclResult_t result)
{
    const int64_t since_ns = device_now(&world->base);
    if (result == ncclSuccess || result == ncclInvalidArgument || result == ncclInvalidUsage)
        return;
    while (world->base.config.rendezvous && !atomic_load(&world->aborted) &&
           device_now(&world->base) - since_ns < NEWS_NS)
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
}

/* False: it has been aborted, which may hold the lock for as long as graphs are open that have its work. */
static bool cuda_comm_lock(struct cuda_comm *comm)
{
    struct timespec until;
    if (pthread_mutex_trylock(&comm->lock) == 0)
        return true;
    while (!atomic_load(&comm->aborted)) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOCK_WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&comm->lock, &until) == 0)
            return true;
    }
    return false;
}

void cuda_comm_push(struct cuda_stream *stream, const struct device_op *op)
{
    struct cuda_comm *comm = (struct cuda_comm *)device_op_comm(op);
    ncclResult_t result = ncclInvalidUsage; /* what an aborted communicator gives */
    char text[OP_TEXT], words[NCCL_TEXT];
    const bool locked = cuda_comm_lock(comm);
    if (locked && !atomic_load(&comm->aborted))
        result = op->kind == DEVICE_OP_GROUP
                     ? cuda_comm_push_group(comm, &op->group, stream->handle)
                     : cuda_comm_push_collective(comm, &op->collective, stream->handle);
    result = cuda_comm_await(comm, result);
    if (locked)
        pthread_mutex_unlock(&comm->lock);
    cuda_comm_await_news(stream->device->world, result);
    if (result != ncclSuccess)
        cuda_stream_fail(stream, STATUS_SYSTEM, "rank %d, stream %s: %s on communicator %s: %s",
                         stream->device->base.rank, stream->base.name, device_op_text(op, text),
                         comm->base.name, nccl_describe(comm->nccl, result, words, sizeof words));
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Find out whether the communicator has an error of its own. One with a call under way is asked later: NCCL wants one
   caller at a time. */
static bool has_error(struct cuda_comm *comm, ncclResult_t *error)
{
    if (atomic_load(&comm->aborted) || pthread_mutex_trylock(&comm->lock) != 0)
        return false;
    const bool answered = comm->nccl->CommGetAsyncError(comm->handle, error) == ncclSuccess;
    pthread_mutex_unlock(&comm->lock);
    return answered && *error != ncclSuccess && *error != ncclInProgress;
}

/* The first with an error, and the error. The world's lock is held, so none is aborted meanwhile. */
static const struct cuda_comm *find_error(const struct cuda_device *device, ncclResult_t *error)
{
    for (struct cuda_comm *comm = device->comms; comm; comm = comm->next)
        if (has_error(comm, error))
            return comm;
    return NULL;
}

/* An error of NCCL ends the run: it becomes the reason of an abort. Mostly it follows from the death or abort
   of a peer; so wait a moment for the original reason. */
void cuda_comm_check(struct cuda_device *device)
{
    struct cuda_world *world = device->world;
    char why[FAILURE_TEXT], words[NCCL_TEXT];
    ncclResult_t error;
    bool ends = false;
    pthread_mutex_lock(&world->lock);
    const struct cuda_comm *comm = find_error(device, &error);
    if (comm) {
        int64_t now_ns = device_now(&world->base);
        if (device->error_ns == 0)
            device->error_ns = now_ns;
        ends = !world->base.config.rendezvous || now_ns - device->error_ns >= NEWS_NS;
        snprintf(why, sizeof why, "communicator %s: %s", comm->base.name,
                 nccl_describe(comm->nccl, error, words, sizeof words));
    }
    if (ends && !world->failure.status) { /* as where a push is refused, which may be seen first */
        world->failure.status = STATUS_SYSTEM;
        snprintf(world->failure.text, sizeof world->failure.text, "%s", why);
    }
    pthread_mutex_unlock(&world->lock);
    if (ends)
        device_world_abort(&world->base, why);
}

/* ---- abort ----------------------------------------------------------------------------------- */

static void tell_lost(const struct cuda_comm *comm)
{
    const struct device *device = comm->base.device;
    const struct device_own *own = device->world->config.own;
    if (comm->adopted && own->comm_lost)
        own->comm_lost(own->arg, device->rank, comm->base.name);
}

/* The handles that no other thread ends, as a list through next_aborted. The world's lock is held, so no thread
   is in cuda_comm_check, and a close from now on leaves its handle to this function. */
static struct cuda_comm *take_all(struct cuda_device *device)
{
    struct cuda_comm *taken = NULL;
    for (struct cuda_comm *comm = device->comms; comm; comm = comm->next)
        if (!atomic_exchange(&comm->aborted, true)) {
            comm->next_aborted = taken;
            taken = comm;
            tell_lost(comm);
        }
    return taken;
}

static void *abort_one(void *arg)
{
    struct cuda_comm *comm = arg;
    device_enter(comm->base.device);
    comm->nccl->CommAbort(comm->handle);
    return NULL;
}

/* Work of one communicator may wait for another's: none is aborted behind another. */
static void abort_apart(struct cuda_comm *taken)
{
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        comm->aborting = quiet_thread_start(&comm->abort_thread, abort_one, comm) == 0;
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (!comm->aborting)
            abort_one(comm);
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (comm->aborting)
            pthread_join(comm->abort_thread, NULL);
}

static void abort_together(const struct nccl *nccl, struct cuda_comm *taken)
{
    nccl->GroupStart();
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        nccl->CommAbort(comm->handle);
    nccl->GroupEnd();
}

static void *abort_all(void *arg)
{
    struct cuda_device *device = arg;
    struct cuda_comm *taken = device->condemned;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_WAIT_S;
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        comm->locked = pthread_mutex_timedlock(&comm->lock, &until) == 0;
    device_enter(&device->base);
    if (device->nccl->version >= NCCL_ABORTS_TOGETHER)
        abort_together(device->nccl, taken);
    else
        abort_apart(taken);
    for (struct cuda_comm *comm = taken; comm; comm = comm->next_aborted)
        if (comm->locked)
            pthread_mutex_unlock(&comm->lock);
    return NULL;
}

bool cuda_comm_abort(struct cuda_device *device)
{
    device->condemned = take_all(device);
    if (!device->condemned)
        return true;
    device->aborting = quiet_thread_start(&device->abort_thread, abort_all, device) == 0;
    return device->aborting;
}

void cuda_comm_abort_here(struct cuda_device *device)
{
    abort_all(device);
}

bool cuda_comm_settle(struct cuda_device *device)
{
    pthread_mutex_lock(&device->abort_lock); /* the second to ask waits for the first */
    pthread_mutex_lock(&device->world->lock);
    bool aborting = device->aborting;
    device->aborting = false;
    pthread_mutex_unlock(&device->world->lock);
    if (aborting && !join_for(device->abort_thread, SETTLE_S))
        device->stuck = true;
    const bool settled = !device->stuck;
    pthread_mutex_unlock(&device->abort_lock);
    return settled;
}

#else

#include <stdio.h>

void *cuda_comm_handle(struct device_comm *comm)
{
    (void)comm;
    return NULL;
}

enum status cuda_comm_open(struct device *device, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag)
{
    (void)device, (void)members, (void)count, (void)out;
    return diag_error(diag, STATUS_SYSTEM,
                      "communicator %s: this program was built without NCCL's header", name);
}

void cuda_comm_close(struct device_comm *comm)
{
    (void)comm;
}

void cuda_comm_push(struct cuda_stream *stream, const struct device_op *op)
{
    (void)stream, (void)op;
}

void cuda_comm_check(struct cuda_device *device)
{
    (void)device;
}

bool cuda_comm_abort(struct cuda_device *device)
{
    (void)device;
    return true;
}

void cuda_comm_abort_here(struct cuda_device *device)
{
    (void)device;
}

bool cuda_comm_settle(struct cuda_device *device)
{
    (void)device;
    return true;
}

void cuda_nccl_open(struct cuda_device *device, char *description, size_t size)
{
    (void)device;
    snprintf(description, size, "built without NCCL");
}

enum status cuda_nccl_captures(const struct cuda_device *device, struct diag *diag)
{
    (void)device, (void)diag;
    return STATUS_OK;
}

void cuda_nccl_close(struct cuda_device *device)
{
    (void)device;
}

void cuda_comm_forget(struct cuda_world *world)
{
    (void)world;
}

#endif
