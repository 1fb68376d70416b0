/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_make.c - emulated NCCL: not a GPU. How communicators are made: of an id, of all GPUs of a process, of another
 * communicator that is divided or shrunk.
 *
 * The ranks of a communicator meet by the name that it has for all. Those of one that is divided tell one another their
 * colors and keys first, at a place of its own. In a group all of it is done at its end, for all communicators at once;
 * one that does not block is made by a thread of its own.
 */
#include "nccl_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A communicator under way. */
struct making {
    struct making *next;
    struct ncclComm *comm;
    ncclComm_t *out; /* written when it is made; NULL: it is already */
    bool divides;    /* of these ranks those of its color, sorted by their keys */
    char place[LINK_MAX_NAME];
    int color, key, rank, ranks;
    ncclResult_t result;
};

static _Thread_local struct making *of_group;

/* ---- meeting ------------------------------------------------------------------------------------ */

/* The name of the machine, or the value of NCCL_HOSTID. */
static uint64_t host_hash(void)
{
    char name[256] = "";
    const char *text = getenv("NCCL_HOSTID");
    uint64_t hash = 14695981039346656037U;
    if (!text && gethostname(name, sizeof name - 1) == 0)
        text = name;
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211U;
    return hash;
}

static ncclResult_t meet(struct ncclComm *comm)
{
    struct patience patience = {.ended = nccl_is_ended, .arg = comm};
    ncclResult_t result =
        nccl_result_of(link_open(comm->id, comm->rank, comm->ranks, host_hash(),
                                 emulation.of_machine[comm->gpu], &patience, &comm->link));
    comm->is_open = result == ncclSuccess;
    return result;
}

/* A name that all ranks make of what they have in common. */
static void name_after(const char *id, const char *how, uint64_t number, char out[LINK_MAX_NAME])
{
    uint64_t hash[2] = {14695981039346656037U + number, 1099511628211U * (number + 1)};
    for (int i = 0; i < 2; i++) {
        for (const char *at = id; *at; at++)
            hash[i] = (hash[i] ^ (unsigned char)*at) * 1099511628211U;
        for (const char *at = how; *at; at++)
            hash[i] = (hash[i] ^ (unsigned char)*at) * 1099511628211U;
    }
    snprintf(out, LINK_MAX_NAME, "/swsim-emulated-nccl-%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
}

struct choice {
    int color, key;
};

/* The choices of all ranks of the communicator to be divided. */
static ncclResult_t ask_all(const struct making *making, struct choice choices[LINK_MAX_RANKS])
{
    enum { CHOICE = 99 };
    struct link link;
    struct patience patience = {.ended = nccl_is_ended, .arg = making->comm};
    struct transfer transfers[2 * LINK_MAX_RANKS];
    size_t count = 0;
    choices[making->rank] = (struct choice){making->color, making->key};
    enum link_end end = link_open(making->place, making->rank, making->ranks, host_hash(),
                                  emulation.of_machine[making->comm->gpu], &patience, &link);
    if (end != LINK_DONE)
        return nccl_result_of(end);
    for (int peer = 0; peer < making->ranks; peer++)
        for (int send = 0; send < 2 && peer != making->rank; send++) {
            const int whose = send ? making->rank : peer;
            link_ask(&link, peer, send);
            transfers[count++] = (struct transfer){.send = send,
                                                   .peer = peer,
                                                   .kind = CHOICE,
                                                   .data = (char *)&choices[whose],
                                                   .bytes = sizeof *choices};
        }
    for (size_t i = 0; i < count && end == LINK_DONE; i++)
        end = link_connect(&link, transfers[i].peer, transfers[i].send, &patience);
    if (end == LINK_DONE)
        end = link_exchange(&link, transfers, count, &patience);
    if (end == LINK_DEAD) /* a peer that has all leaves: what it has left behind is there */
        end = link_exchange(&link, transfers, count, &patience);
    link_close(&link);
    return nccl_result_of(end);
}

/* The rank is the number of those with this color and a lower key, or the same and a lower rank. */
static ncclResult_t find_rank(struct making *making)
{
    struct choice choices[LINK_MAX_RANKS];
    struct ncclComm *comm = making->comm;
    const ncclResult_t result = ask_all(making, choices);
    if (result != ncclSuccess)
        return result;
    comm->rank = comm->ranks = 0;
    for (int i = 0; i < making->ranks; i++) {
        if (choices[i].color != making->color)
            continue;
        comm->ranks++;
        comm->rank +=
            choices[i].key < making->key || (choices[i].key == making->key && i < making->rank);
    }
    return ncclSuccess;
}

/* NCCL_SPLIT_NOCOLOR: the rank takes part, and gets no communicator. */
static bool is_none(const struct making *making)
{
    return making->divides && making->color < 0;
}

/* It has not been made. */
static void drop(struct ncclComm *comm)
{
    cudaFreeHost(comm->flag);
    free(comm);
}

static void *make(void *arg)
{
    struct making *making = arg;
    making->result = making->divides ? find_rank(making) : ncclSuccess;
    if (making->result == ncclSuccess && !is_none(making))
        making->result = meet(making->comm);
    if (making->result == ncclSuccess && !is_none(making) && making->out)
        __atomic_store_n(making->out, making->comm, __ATOMIC_RELEASE);
    return NULL;
}

/* ---- when ---------------------------------------------------------------------------------------- */

static void *serve(void *unused)
{
    for (;;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return unused;
}

static void start_service(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, serve, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *make_later(void *arg)
{
    struct making *making = arg;
    struct ncclComm *comm = making->comm;
    ncclResult_t under_way = ncclInProgress;
    make(making);
    const ncclResult_t result = making->result;
    struct ncclComm *parent = making->divides ? comm->parent : NULL;
    const bool is_nobodys = is_none(making);
    free(making);
    atomic_compare_exchange_strong(&comm->state, &under_way, result);
    if (is_nobodys)
        drop(comm);
    under_way = ncclInProgress;
    if (parent) /* its user asks that one */
        atomic_compare_exchange_strong(&parent->state, &under_way, result);
    return NULL;
}

/* Takes what is under way. */
static ncclResult_t start(struct making *making)
{
    struct ncclComm *comm = making->comm;
    struct ncclComm *parent = making->divides ? comm->parent : NULL;
    atomic_store(&comm->state, ncclInProgress);
    if (parent)
        atomic_store(&parent->state, ncclInProgress);
    const bool is_nobodys = is_none(making);
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_later, making) == 0) {
        if (is_nobodys) { /* the thread frees it */
            pthread_detach(thread);
        } else {
            comm->thread = thread;
            comm->has_thread = true;
        }
        return ncclInProgress;
    }
    if (parent)
        atomic_store(&parent->state, ncclSuccess);
    drop(comm);
    free(making);
    return ncclSystemError;
}

static ncclResult_t end_making(struct making *making)
{
    const ncclResult_t result = making->result;
    atomic_store(&making->comm->state, ncclSuccess);
    if (result != ncclSuccess || is_none(making))
        drop(making->comm);
    free(making);
    return result;
}

/* Takes a copy of what is under way, with a communicator of its own. */
static ncclResult_t begin(const struct making *wanted)
{
    static pthread_once_t service = PTHREAD_ONCE_INIT;
    struct making *making = malloc(sizeof *making);
    if (!making) {
        drop(wanted->comm);
        return ncclSystemError;
    }
    pthread_once(&service, start_service);
    *making = *wanted;
    if (nccl_in_group()) {
        atomic_store(&making->comm->state, ncclInProgress);
        making->next = of_group;
        of_group = making;
        return ncclSuccess;
    }
    if (making->comm->free_running)
        return start(making);
    make(making);
    return end_making(making);
}

ncclResult_t nccl_make_all(ncclResult_t result)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    struct making *list = of_group, *waited[MOST];
    size_t count = 0;
    ncclResult_t under_way = ncclSuccess;
    of_group = NULL;
    while (list) {
        struct making *making = list;
        list = making->next;
        if (result == ncclSuccess && !making->comm->free_running && count < MOST &&
            pthread_create(&threads[count], NULL, make, making) == 0) {
            waited[count++] = making;
        } else if (result == ncclSuccess && making->comm->free_running) {
            under_way = start(making);
        } else {
            making->result = result == ncclSuccess ? ncclSystemError : result;
            result = end_making(making);
        }
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        const ncclResult_t made = end_making(waited[i]);
        result = result == ncclSuccess ? made : result;
    }
    return result == ncclSuccess ? under_way : result;
}

/* ---- the functions of nccl.h ----------------------------------------------------------------------- */

static struct ncclComm *new_comm(int rank, int ranks, int gpu, bool blocks)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->gpu = gpu;
    comm->free_running = !blocks;
    comm->luck = (uint32_t)rank + 1;
    if (cudaHostAlloc(&comm->flag, sizeof(int), cudaHostAllocMapped) != cudaSuccess) {
        free(comm);
        return NULL;
    }
    return comm;
}

static ncclResult_t init(ncclComm_t *out, int ranks, const ncclUniqueId *id, int rank, bool blocks)
{
    int gpu;
    if (ranks < 1 || ranks > LINK_MAX_RANKS || rank < 0 || rank >= ranks)
        return nccl_wrong(ncclInvalidArgument, "ncclCommInitRank: no such rank");
    if (cudaGetDevice(&gpu) != cudaSuccess)
        return ncclUnhandledCudaError;
    struct ncclComm *comm = new_comm(rank, ranks, gpu, blocks);
    if (!comm)
        return ncclSystemError;
    memcpy(comm->id, id->internal, sizeof comm->id - 1);
    *out = comm;
    const struct making making = {.comm = comm};
    const ncclResult_t result = begin(&making);
    if (result != ncclSuccess && result != ncclInProgress)
        *out = NULL;
    return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    if (fault_call(__func__) != cudaSuccess)
        _exit(9);
    return init(out, ranks, &id, rank, true);
}

static ncclResult_t init_config(ncclComm_t *out, int ranks, const ncclUniqueId *id, int rank,
                                const ncclConfig_t *config)
{
    if (config && config->magic != (unsigned)0xcafebeef)
        return nccl_wrong(ncclInvalidArgument, "a configuration without NCCL_CONFIG_INITIALIZER");
    if (config && config->blocking != 0 && config->blocking != 1 &&
        config->blocking != NCCL_CONFIG_UNDEF_INT)
        return nccl_wrong(ncclInvalidArgument, "a configuration: blocking is 0 or 1");
    if (config && config->minCTAs != NCCL_CONFIG_UNDEF_INT &&
        config->maxCTAs != NCCL_CONFIG_UNDEF_INT && config->minCTAs > config->maxCTAs)
        return nccl_wrong(ncclInvalidArgument, "a configuration: minCTAs above maxCTAs");
    return init(out, ranks, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return init_config(out, ranks, &id, rank, config);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *out, int ranks, int rank, int count,
                                      ncclUniqueId *ids, ncclConfig_t *config)
{
    if (count < 1 || count > ranks)
        return nccl_wrong(ncclInvalidArgument, "ncclCommInitRankScalable: as many ids as ranks");
    return init_config(out, ranks, &ids[0], rank, config);
}

/* "Convenience function": a group of ncclCommInitRank. */
ncclResult_t ncclCommInitAll(ncclComm_t *out, int count, const int *devices)
{
    ncclUniqueId id;
    int before;
    if (cudaGetDevice(&before) != cudaSuccess)
        return ncclUnhandledCudaError;
    if (count < 1)
        return nccl_wrong(ncclInvalidArgument, "ncclCommInitAll: no device");
    ncclResult_t result = ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = cudaSetDevice(devices ? devices[i] : i) == cudaSuccess
                     ? init(&out[i], count, &id, i, true)
                     : nccl_wrong(ncclUnhandledCudaError, "ncclCommInitAll: no such device");
    if (result != ncclSuccess)
        nccl_refuse(result);
    const ncclResult_t ended = ncclGroupEnd();
    cudaSetDevice(before);
    return result == ncclSuccess ? ended : result;
}

/* NULL: that of the communicator which is divided. */
static bool blocks(const struct ncclComm *comm, const ncclConfig_t *config)
{
    return config && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking != 0
                                                               : !comm->free_running;
}

static ncclResult_t divide(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    const ncclResult_t usable = nccl_check_usable(comm);
    *out = NULL;
    if (usable != ncclSuccess)
        return usable;
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        return nccl_wrong(ncclInvalidArgument, "ncclCommSplit: a color below 0");
    struct making making = {.comm = new_comm(0, 0, comm->gpu, blocks(comm, config)),
                            .out = out,
                            .divides = true,
                            .color = color,
                            .key = key,
                            .rank = comm->rank,
                            .ranks = comm->ranks};
    if (!making.comm)
        return ncclSystemError;
    making.comm->parent = comm;
    comm->splits++;
    name_after(comm->id, "splits", (uint64_t)comm->splits << 32, making.place);
    name_after(comm->id, "split", (uint64_t)comm->splits << 32 | (unsigned)color, making.comm->id);
    return begin(&making);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    nccl_enter(comm, __func__);
    const ncclResult_t result = divide(comm, color, key, out, config);
    nccl_leave(comm);
    return result;
}

#ifdef NCCL_SHRINK_DEFAULT
static ncclResult_t shrink(ncclComm_t comm, const int *excluded, int count, ncclComm_t *out,
                           ncclConfig_t *config, int flags)
{
    const ncclResult_t usable = nccl_check_usable(comm);
    int rank = comm->rank;
    uint64_t list = 0;
    *out = NULL;
    if (usable != ncclSuccess)
        return usable;
    if (flags != NCCL_SHRINK_DEFAULT || count < 1)
        return nccl_wrong(ncclInvalidArgument, "ncclCommShrink: these flags are not emulated");
    for (int i = 0; i < count; i++) {
        if (excluded[i] < 0 || excluded[i] >= comm->ranks || list >> excluded[i] & 1)
            return nccl_wrong(ncclInvalidArgument,
                              "ncclCommShrink: a rank that there is not, or twice");
        if (excluded[i] == comm->rank)
            return nccl_wrong(ncclInvalidArgument, "ncclCommShrink: the rank is excluded");
        rank -= excluded[i] < comm->rank;
        list |= UINT64_C(1) << excluded[i];
    }
    struct making making = {
        .comm = new_comm(rank, comm->ranks - count, comm->gpu, blocks(comm, config)), .out = out};
    if (!making.comm)
        return ncclSystemError;
    comm->shrinks++;
    name_after(comm->id, "shrink", (uint64_t)comm->shrinks << 32 | list, making.comm->id);
    return begin(&making);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *out,
                            ncclConfig_t *config, int flags)
{
    nccl_enter(comm, __func__);
    const ncclResult_t result = shrink(comm, excluded, count, out, config, flags);
    nccl_leave(comm);
    return result;
}
#endif
