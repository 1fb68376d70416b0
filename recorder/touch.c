/* SPDX-License-Identifier: Apache-2.0 */
/* touch.c - see touch.h. The table is without locks, for the handler of a signal looks into it. */
#include "touch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tape.h"
#include "threads.h"

enum { MAX_BLOCKS = 4096 };

static struct block {
    atomic_uintptr_t address; /* 0: a free place */
    size_t bytes;
    atomic_int closed; /* its protection is not that for reading and writing */
} blocks[MAX_BLOCKS];
static bool wanted;
static struct sigaction before;

static struct block *find(uintptr_t address)
{
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const uintptr_t first = atomic_load(&blocks[i].address);
        if (first && address >= first && address - first < blocks[i].bytes)
            return &blocks[i];
    }
    return NULL;
}

/* The pages of a block belong to it: pinned memory is pages. */
static bool protect(const struct block *block, int how)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = atomic_load(&block->address) / page * page;
    const uintptr_t end = (atomic_load(&block->address) + block->bytes + page - 1) / page * page;
    return mprotect((void *)first, end - first, how) == 0;
}

static bool was_write(void *context)
{
#ifdef __x86_64__
    return (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return false;
#endif
}

/* Another fault goes where it would have gone. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        sigaction(number, &before, NULL);
}

static void open_block(int number, siginfo_t *info, void *context)
{
    struct block *block = find((uintptr_t)info->si_addr);
    const int closed = block ? atomic_exchange(&block->closed, 0) : 0;
    if (!block) {
        pass_on(number, info, context);
        return;
    }
    protect(block, PROT_READ | PROT_WRITE);
    if (closed && !tape_in_call() && !threads_are_internal())
        tape_put(RECORDING_TOUCH, WORDS(WORD_OF(info->si_addr), closed == 2 || was_write(context)));
}

static void add(uintptr_t address, size_t bytes)
{
    for (int i = 0; i < MAX_BLOCKS; i++) {
        uintptr_t none = 0;
        if (atomic_load(&blocks[i].address) != 0)
            continue;
        blocks[i].bytes = bytes;
        atomic_store(&blocks[i].closed, 0);
        if (atomic_compare_exchange_strong(&blocks[i].address, &none, address))
            return;
    }
}

/* 1: closed; 2: read-only. */
static void close_block(uintptr_t address, int how)
{
    struct block *block = find(address);
    if (!block)
        return;
    atomic_store(&block->closed, how);
    if (!protect(block, how == 1 ? PROT_NONE : PROT_READ))
        atomic_store(&block->closed, 0);
}

bool touch_on(void)
{
    return wanted;
}

static void close_copied(uint64_t to, uint64_t from)
{
    close_block((uintptr_t)from, 2);
    close_block((uintptr_t)to, 1);
}

void touch_see(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (!wanted)
        return;
    if (kind == RECORDING_ALLOC && words[2] == RECORDING_MEMORY_PINNED && words[1] > 0)
        add((uintptr_t)words[0], (size_t)words[1]);
    struct block *freed = kind == RECORDING_FREE ? find((uintptr_t)words[0]) : NULL;
    if (freed)
        atomic_store(&freed->address, 0);
    if (kind == RECORDING_COPY)
        close_copied(words[1], words[2]);
    for (size_t i = 1; kind == RECORDING_COPY_BATCH && i + 2 < count; i += 3)
        close_copied(words[i], words[i + 1]);
}

void touch_begin_thread(void)
{
    sigset_t fault;
    if (!wanted)
        return;
    sigemptyset(&fault);
    sigaddset(&fault, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
}

__attribute__((constructor)) static void begin(void)
{
    const char *asked = getenv("SWSIM_RECORD_TOUCH");
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = open_block;
    wanted = asked && *asked && sigaction(SIGSEGV, &action, &before) == 0;
    touch_begin_thread();
}
