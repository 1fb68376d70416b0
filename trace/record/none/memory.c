/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory of the device that is not there. See none.h.
 *
 * It is memory of the process that takes no room until somebody writes it: kernels do not, so a model may be as large as the
 * device. /proc/self/pagemap tells which pages are written; copies of others are none.
 */
#include "none.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, GRANULE = 2 << 20, LARGE = 64 * PAGE };

static struct {
    struct none_block *blocks; /* by address */
    size_t count, cap;
    uint64_t numbers;
    size_t used[64];
    int pagemap; /* 0: not open; -1: there is none */
    int itself;  /* /proc/self/mem; -1: there is none, or no need */
} memory;

/* The first block behind the address. */
static size_t memory_first_behind(const char *address)
{
    size_t low = 0, high = memory.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (memory.blocks[middle].address > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool none_find_locked(const void *address, struct none_block *out)
{
    const size_t at = memory_first_behind(address);
    if (at == 0 || (size_t)((const char *)address - memory.blocks[at - 1].address) >=
                       memory.blocks[at - 1].bytes)
        return false;
    *out = memory.blocks[at - 1];
    return true;
}

bool none_find(const void *address, struct none_block *out)
{
    if (!none_lock())
        return false;
    const bool found = none_find_locked(address, out);
    none_unlock();
    return found;
}

static bool none_add_block_locked(const struct none_block *block)
{
    if (memory.count == memory.cap) {
        const size_t cap = 2 * memory.cap + 64;
        struct none_block *grown = realloc(memory.blocks, cap * sizeof *grown);
        if (!grown)
            return false;
        memory.blocks = grown;
        memory.cap = cap;
    }
    const size_t at = memory_first_behind(block->address);
    memmove(&memory.blocks[at + 1], &memory.blocks[at],
            (memory.count - at) * sizeof *memory.blocks);
    memory.blocks[at] = *block;
    memory.count++;
    return true;
}

static size_t all_bytes(void)
{
    const char *text = getenv(NONE_VARIABLE_MEMORY);
    const unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;
    return bytes ? (size_t)bytes : none_model()->memory;
}

static size_t memory_round_up(size_t bytes)
{
    return (bytes + GRANULE - 1) & ~(size_t)(GRANULE - 1);
}

int none_alloc(void **out, size_t bytes, enum none_kind kind, unsigned flags)
{
    int result = NONE_OK;
    *out = NULL;
    if (bytes == 0)
        return NONE_OK;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    const int device = none_device();
    const bool counts = kind == NONE_DEVICE;
    if (counts && (bytes > all_bytes() || memory.used[device] + bytes > all_bytes()))
        result = NONE_NO_MEMORY;
    void *address = MAP_FAILED;
    if (result == NONE_OK)
        address = mmap(NULL, memory_round_up(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        result = NONE_NO_MEMORY;
    const struct none_block block = {address, bytes, kind, device, ++memory.numbers, flags};
    if (result == NONE_OK && !none_add_block_locked(&block)) {
        munmap(address, memory_round_up(bytes));
        result = NONE_NO_MEMORY;
    }
    if (result == NONE_OK) {
        memory.used[device] += counts ? bytes : 0;
        *out = address;
    }
    none_unlock();
    return result;
}

int none_register(void *address, size_t bytes, unsigned flags)
{
    struct none_block found;
    if (!none_lock())
        return NONE_NOT_INITIALIZED;
    const struct none_block block = {address,          bytes, NONE_REGISTERED, none_device(),
                                     ++memory.numbers, flags};
    int result = !address || bytes == 0 ? NONE_INVALID_VALUE : NONE_OK;
    if (result == NONE_OK && none_find_locked(address, &found))
        result = 712; /* cudaErrorHostMemoryAlreadyRegistered */
    if (result == NONE_OK && !none_add_block_locked(&block))
        result = NONE_NO_MEMORY;
    none_unlock();
    return result;
}

static void none_end_block_locked(size_t at)
{
    const struct none_block block = memory.blocks[at];
    if (block.kind == NONE_DEVICE)
        memory.used[block.device] -= block.bytes;
    if (block.kind != NONE_REGISTERED)
        munmap(block.address, memory_round_up(block.bytes));
    memory.count--;
    memmove(&memory.blocks[at], &memory.blocks[at + 1],
            (memory.count - at) * sizeof *memory.blocks);
}

static int none_free_locked(const char *address, bool registered)
{
    const size_t at = memory_first_behind(address);
    if (at == 0 || memory.blocks[at - 1].address != address ||
        (memory.blocks[at - 1].kind == NONE_REGISTERED) != registered)
        return registered ? NONE_NOT_REGISTERED : NONE_INVALID_VALUE;
    none_end_block_locked(at - 1);
    return NONE_OK;
}

/* Freeing waits for all work, as CUDA's does. */
int none_free(void *address, enum none_kind kind)
{
    if (!address)
        return NONE_OK;
    const int waited = none_device_sync();
    if (waited != NONE_OK)
        return waited;
    none_lock();
    const int result = none_free_locked(address, kind == NONE_REGISTERED);
    none_unlock();
    return result;
}

static void *start_free(void *arg)
{
    return arg;
}

static bool step_free(void *arg)
{
    none_free_locked(arg, false);
    return true;
}

int none_free_async(void *address, const void *stream)
{
    static const struct none_work work = {start_free, step_free};
    struct none_block block;
    if (!none_find(address, &block) || block.address != address)
        return NONE_INVALID_VALUE;
    return none_push(stream, &work, address);
}

void none_memory_info(size_t *unused, size_t *all)
{
    *all = all_bytes();
    *unused = *all;
    if (!none_lock())
        return;
    *unused = *all - memory.used[none_device()];
    none_unlock();
}

void none_memory_reset(void)
{
    if (!none_lock())
        return;
    for (size_t i = memory.count; i-- > 0;)
        if (memory.blocks[i].device == none_device() && memory.blocks[i].kind != NONE_REGISTERED)
            none_end_block_locked(i);
    none_unlock();
}

/* ---- pages that nobody has written ------------------------------------------------------------------- */

static bool piece_is_untouched_locked(const char *address, size_t bytes)
{
    uint64_t words[LARGE / PAGE];
    if (memory.pagemap == 0)
        memory.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const uintptr_t first = (uintptr_t)address / PAGE,
                    count = ((uintptr_t)address + bytes - 1) / PAGE - first + 1;
    if (memory.pagemap < 0 ||
        pread(memory.pagemap, words, count * sizeof *words, (off_t)(first * sizeof *words)) !=
            (ssize_t)(count * sizeof *words))
        return false;
    for (size_t i = 0; i < count; i++)
        if (words[i] >> 62) /* present, or swapped out */
            return false;
    return true;
}

static size_t piece_of(size_t bytes)
{
    return bytes < LARGE - PAGE ? bytes : LARGE - PAGE;
}

bool none_is_untouched_locked(const char *address, size_t bytes)
{
    struct none_block block;
    if (bytes < PAGE || !none_find_locked(address, &block) || block.kind == NONE_REGISTERED)
        return false;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = piece_of(bytes - at);
        if (!piece_is_untouched_locked(address + at, piece))
            return false;
    }
    return true;
}

/* ---- memory of the host that the recorder watches -------------------------------------------------------- */

/* Of which pages it has taken the access away, to see the program's next one: this is no access of the program. */
static bool is_watched_locked(const char *address)
{
    static int watched; /* 0: not asked; -1: nothing is */
    struct none_block block;
    if (watched == 0) {
        watched = getenv("SWSIM_RECORD_TOUCH") ? 1 : -1;
        memory.itself = watched > 0 ? open("/proc/self/mem", O_RDWR | O_CLOEXEC) : -1;
    }
    return memory.itself >= 0 && none_find_locked(address, &block) && block.kind != NONE_DEVICE &&
           block.kind != NONE_MANAGED;
}

/* `from` NULL: zeros. */
static void move_watched_locked(char *to, const char *from, size_t bytes)
{
    static char part[1 << 16];
    for (size_t at = 0; at < bytes;) {
        const size_t left = bytes - at, size = left < sizeof part ? left : sizeof part;
        if (!from)
            memset(part, 0, size);
        else if (pread(memory.itself, part, size, (off_t)(uintptr_t)(from + at)) != (ssize_t)size)
            none_missing("a copy", "memory that can be read");
        if (pwrite(memory.itself, part, size, (off_t)(uintptr_t)(to + at)) != (ssize_t)size)
            none_missing("a copy", "memory that can be written");
        at += size;
    }
}

void none_clear_locked(char *to, size_t bytes)
{
    if (is_watched_locked(to)) {
        move_watched_locked(to, NULL, bytes);
        return;
    }
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = piece_of(bytes - at);
        if (!none_is_untouched_locked(to + at, piece))
            memset(to + at, 0, piece);
    }
}

void none_move_locked(char *to, const char *from, size_t bytes)
{
    const bool overlaps = to < from + bytes && from < to + bytes;
    if (is_watched_locked(to) || is_watched_locked(from)) {
        move_watched_locked(to, from, bytes);
        return;
    }
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = overlaps ? bytes : piece_of(bytes - at);
        if (none_is_untouched_locked(from + at, piece))
            none_clear_locked(to + at, piece);
        else
            memmove(to + at, from + at, piece);
    }
}
