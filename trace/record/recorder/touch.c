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

enum { OPEN, CLOSED, READ_ONLY }; /* what the protection of a block allows */
static struct touch_block {
    atomic_uintptr_t address; /* 0: a free place */
    atomic_size_t bytes;
    atomic_int closed;
} blocks[MAX_BLOCKS];
static atomic_int block_end; /* no place from here on was ever used */
static bool wanted;
static struct sigaction before;

static struct touch_block *touch_find(uintptr_t address)
{
    for (int i = 0; i < atomic_load(&block_end); i++) {
        const uintptr_t first = atomic_load(&blocks[i].address);
        if (first && address >= first && address - first < blocks[i].bytes)
            return &blocks[i];
    }
    return NULL;
}

/* The pages of a block belong to it: pinned memory is pages. */
static bool protect(const struct touch_block *block, int how)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = atomic_load(&block->address) / page * page;
    const uintptr_t end = (atomic_load(&block->address) + block->bytes + page - 1) / page * page;
    return mprotect((void *)first, end - first, how) == 0;
}

/* Where the processor does not say it, memory that may be read was not read. */
static bool was_write(void *context, int closed)
{
#ifdef __x86_64__
    (void)closed;
    return (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return closed == READ_ONLY;
#endif
}

/* Another fault goes where it would have gone. */
static void touch_pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        sigaction(number, &before, NULL);
}

static void touch_note(uint64_t address, enum recording_touch what)
{
    tape_put_call(RECORDING_TOUCH, WORDS(address, what, threads_are_several()));
}

/* A thread that has read may not yet write without a note. Another thread may have opened the block meanwhile. */
static void touch_open_for(struct touch_block *block, bool write)
{
    int closed = CLOSED;
    if (write)
        atomic_store(&block->closed, OPEN);
    else
        atomic_compare_exchange_strong(&block->closed, &closed, READ_ONLY);
    protect(block, write ? PROT_READ | PROT_WRITE : PROT_READ);
}

/* An access of CUDA's own is none of the program's: what the program does afterwards is not seen then. */
static void take_fault(int number, siginfo_t *info, void *context)
{
    struct touch_block *block = touch_find((uintptr_t)info->si_addr);
    if (!block) {
        touch_pass_on(number, info, context);
        return;
    }
    const int closed = atomic_load(&block->closed);
    const bool write = closed == OPEN || was_write(context, closed);
    const bool own = !tape_in_call() && !threads_are_internal();
    touch_open_for(block, write || !own);
    if (closed != OPEN)
        touch_note(WORD_OF(info->si_addr), !own    ? RECORDING_TOUCH_UNSEEN
                                           : write ? RECORDING_TOUCH_WRITE
                                                   : RECORDING_TOUCH_READ);
}

/* The place is taken by an address that no memory has, until its size is there. */
static void touch_add(uintptr_t address, size_t bytes)
{
    for (int i = 0; i < MAX_BLOCKS; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&blocks[i].address, &none, UINTPTR_MAX))
            continue;
        atomic_store(&blocks[i].bytes, bytes);
        atomic_store(&blocks[i].closed, OPEN);
        atomic_store(&blocks[i].address, address);
        for (int end = atomic_load(&block_end); end <= i;)
            if (atomic_compare_exchange_weak(&block_end, &end, i + 1))
                return;
        return;
    }
    touch_note(address, RECORDING_TOUCH_UNSEEN);
}

/* Closed memory is not opened for reading. */
static void close_block(uint64_t address, int how)
{
    struct touch_block *block = touch_find((uintptr_t)address);
    if (!block || atomic_load(&block->closed) == CLOSED)
        return;
    atomic_store(&block->closed, how);
    if (protect(block, how == CLOSED ? PROT_NONE : PROT_READ))
        return;
    atomic_store(&block->closed, OPEN);
    touch_note(address, RECORDING_TOUCH_UNSEEN);
}

bool touch_on(void)
{
    return wanted;
}

static void close_copied(uint64_t to, uint64_t from)
{
    close_block(from, READ_ONLY);
    close_block(to, CLOSED);
}

static void close_launched(size_t count, const uint64_t *words)
{
    for (size_t i = 2; i < count; i++)
        close_block(words[i] & ~(RECORDING_WRITE | RECORDING_POINTER),
                    words[i] & RECORDING_WRITE ? CLOSED : READ_ONLY);
}

static void close_used(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (kind == RECORDING_COPY)
        close_copied(words[1], words[2]);
    if (kind == RECORDING_COPY_2D)
        close_copied(words[1], words[3]);
    if (kind == RECORDING_FILL)
        close_block(words[1], CLOSED);
    if (kind == RECORDING_LAUNCH)
        close_launched(count, words);
    for (size_t i = 1; kind == RECORDING_COPY_BATCH && i + 2 < count; i += 3)
        close_copied(words[i], words[i + 1]);
}

void touch_see(enum recording_kind kind, size_t count, const uint64_t *words)
{
    if (!wanted)
        return;
    if (kind == RECORDING_ALLOC && words[2] == RECORDING_MEMORY_PINNED && words[1] > 0)
        touch_add((uintptr_t)words[0], (size_t)words[1]);
    struct touch_block *freed = kind == RECORDING_FREE ? touch_find((uintptr_t)words[0]) : NULL;
    if (freed)
        atomic_store(&freed->address, 0);
    close_used(kind, count, words);
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

__attribute__((constructor)) static void touch_begin(void)
{
    const char *asked = getenv("SWSIM_RECORD_TOUCH");
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = take_fault;
    wanted = asked && *asked && sigaction(SIGSEGV, &action, &before) == 0;
    touch_begin_thread();
}
