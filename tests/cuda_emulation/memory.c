/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - emulated CUDA: not a GPU. Addresses.
 *
 * A device address is in pages without access; the bytes are elsewhere, and only memory_reach returns
 * their address. Only pools reuse an address, so a pointer to freed memory is recognised. Pinned memory is
 * the C library's, and is registered while it is allocated. A reserved range of addresses has bytes where memory is mapped.
 */
#include "emulation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GARBAGE = 0xa5, PAGE = 4096, ALIGN = 256 };

struct granule {
    void *physical; /* NULL: nothing is mapped */
    uint64_t mapping;
    bool accessible;
};

struct block {
    struct block *next;
    int gpu; /* -1: pinned host memory */
    char *address;
    size_t bytes;
    char *backing;            /* NULL: freed */
    bool borrowed;            /* the program's own */
    struct granule *granules; /* of a reserved range; else NULL */
};

static struct {
    pthread_mutex_t lock;
    struct block *blocks;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The allocation that holds all of the bytes, live or freed. The lock is held. */
static struct block *find(const void *address, size_t bytes)
{
    const char *first = address;
    for (struct block *at = memory.blocks; at; at = at->next)
        if (first >= at->address && bytes <= at->bytes &&
            (size_t)(first - at->address) <= at->bytes - bytes)
            return at;
    return NULL;
}

static cudaError_t add(int gpu, char *address, size_t bytes, char *backing, bool borrowed)
{
    struct block *block = malloc(sizeof *block);
    if (!block)
        return cudaErrorMemoryAllocation;
    *block = (struct block){
        .gpu = gpu, .address = address, .bytes = bytes, .backing = backing, .borrowed = borrowed};
    if (!borrowed)
        memset(backing, GARBAGE, bytes);
    pthread_mutex_lock(&memory.lock);
    block->next = memory.blocks;
    memory.blocks = block;
    pthread_mutex_unlock(&memory.lock);
    return cudaSuccess;
}

cudaError_t memory_alloc_device(int gpu, size_t bytes, void **out)
{
    size_t span = (bytes + PAGE - 1) / PAGE * PAGE;
    char *backing = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    void *address = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!backing || address == MAP_FAILED ||
        add(gpu, address, bytes, backing, false) != cudaSuccess) {
        free(backing);
        if (address != MAP_FAILED)
            munmap(address, span);
        return cudaErrorMemoryAllocation;
    }
    *out = address;
    return cudaSuccess;
}

/* The device has pinned memory at an address of its own, as a GPU reaches it past the pages of the host. */
static char *map_twice(size_t span, char **other)
{
    const int fd = memfd_create("pinned", MFD_CLOEXEC);
    void *host = MAP_FAILED, *device = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)span) == 0) {
        host = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        device = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    if (host != MAP_FAILED && device != MAP_FAILED) {
        *other = device;
        return host;
    }
    if (host != MAP_FAILED)
        munmap(host, span);
    return NULL;
}

static size_t span_of(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

cudaError_t memory_alloc_pinned(size_t bytes, void **out)
{
    char *backing, *address = map_twice(span_of(bytes), &backing);
    if (!address)
        return cudaErrorMemoryAllocation;
    if (add(-1, address, bytes, backing, false) != cudaSuccess) {
        munmap(address, span_of(bytes));
        munmap(backing, span_of(bytes));
        return cudaErrorMemoryAllocation;
    }
    *out = address;
    return cudaSuccess;
}

cudaError_t memory_register(void *address, size_t bytes)
{
    return add(-1, address, bytes, address, true);
}

/* Takes the live block at an address out of the list, or NULL; a device's stays in it, without memory. */
static char *take(void *address, bool device, bool borrowed, size_t *bytes)
{
    char *backing = NULL;
    pthread_mutex_lock(&memory.lock);
    for (struct block **link = &memory.blocks; *link && !backing; link = &(*link)->next) {
        struct block *block = *link;
        if (block->address != address || !block->backing || (block->gpu >= 0) != device ||
            block->borrowed != borrowed || block->granules)
            continue;
        backing = block->backing;
        *bytes = block->bytes;
        block->backing = NULL;
        if (!device) {
            *link = block->next;
            free(block);
            break;
        }
    }
    pthread_mutex_unlock(&memory.lock);
    return backing;
}

bool memory_unregister(void *address)
{
    size_t bytes;
    return take(address, false, true, &bytes) != NULL;
}

/* Pinned memory is forgotten, because its address may be used again; a device address never is. */
bool memory_free(void *address, bool device)
{
    size_t bytes = 0;
    char *backing = take(address, device, false, &bytes);
    if (device) {
        free(backing);
    } else if (backing) {
        munmap(address, span_of(bytes));
        munmap(backing, span_of(bytes));
    }
    return backing != NULL;
}

/* The first block of a GPU with the address. The lock is held. */
static struct block *find_device(const void *address)
{
    struct block *at = memory.blocks;
    while (at && (at->gpu < 0 || at->address != address))
        at = at->next;
    return at;
}

bool memory_revive(void *address, size_t bytes)
{
    char *backing = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    if (!backing)
        return false;
    memset(backing, GARBAGE, bytes);
    pthread_mutex_lock(&memory.lock);
    find_device(address)->backing = backing;
    pthread_mutex_unlock(&memory.lock);
    return true;
}

void memory_spoil(void *address)
{
    pthread_mutex_lock(&memory.lock);
    struct block *block = find_device(address);
    if (block->backing)
        memset(block->backing, GARBAGE, block->bytes);
    pthread_mutex_unlock(&memory.lock);
}

/* ---- reserved ranges ------------------------------------------------------------------------------ */

static char *map_nothing(char *where, size_t bytes)
{
    void *found =
        mmap(where, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where ? MAP_FIXED : 0), -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

bool memory_reserve(size_t bytes, void **out)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return false;
    block->gpu = -2;
    block->bytes = bytes;
    block->granules = calloc(bytes / MEMORY_GRANULE, sizeof *block->granules);
    block->address = map_nothing(NULL, bytes);
    block->backing = map_nothing(NULL, bytes);
    if (!block->granules || !block->address || !block->backing)
        emulation_misuse("no memory for a reserved range of %zu bytes", bytes);
    pthread_mutex_lock(&memory.lock);
    block->next = memory.blocks;
    memory.blocks = block;
    pthread_mutex_unlock(&memory.lock);
    *out = block->address;
    return true;
}

/* The lock is held. */
static void clear(struct block *block, size_t first, size_t count)
{
    if (!map_nothing(block->backing + first * MEMORY_GRANULE, count * MEMORY_GRANULE))
        emulation_misuse("memory that is mapped cannot be unmapped");
    memset(&block->granules[first], 0, count * sizeof *block->granules);
}

/* Whole granules of one reserved range, of which all are mapped, or none. The lock is held. */
static struct block *find_granules(const void *address, size_t bytes, bool mapped, size_t *first)
{
    struct block *block = find(address, bytes);
    if (!block || !block->granules || bytes == 0 || bytes % MEMORY_GRANULE != 0 ||
        (size_t)((const char *)address - block->address) % MEMORY_GRANULE != 0)
        return NULL;
    *first = (size_t)((const char *)address - block->address) / MEMORY_GRANULE;
    for (size_t i = 0; i < bytes / MEMORY_GRANULE; i++)
        if ((block->granules[*first + i].physical != NULL) != mapped)
            return NULL;
    return block;
}

bool memory_map(void *address, size_t bytes, int gpu, int file, void *physical)
{
    static uint64_t mappings;
    size_t first;
    pthread_mutex_lock(&memory.lock);
    struct block *block = find_granules(address, bytes, false, &first);
    bool good = block && (block->gpu == -2 || block->gpu == gpu) &&
                mmap(block->backing + first * MEMORY_GRANULE, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    mappings++;
    for (size_t i = 0; good && i < bytes / MEMORY_GRANULE; i++)
        block->granules[first + i] = (struct granule){physical, mappings, false};
    if (good)
        block->gpu = gpu;
    pthread_mutex_unlock(&memory.lock);
    return good;
}

/* Whole mappings only. */
bool memory_unmap(void *address, size_t bytes)
{
    size_t first;
    pthread_mutex_lock(&memory.lock);
    struct block *block = find_granules(address, bytes, true, &first);
    const size_t end = block ? first + bytes / MEMORY_GRANULE : 0;
    const struct granule *list = block ? block->granules : NULL;
    bool good =
        block && (first == 0 || list[first - 1].mapping != list[first].mapping) &&
        (end == block->bytes / MEMORY_GRANULE || list[end].mapping != list[end - 1].mapping);
    if (good)
        clear(block, first, end - first);
    pthread_mutex_unlock(&memory.lock);
    return good;
}

bool memory_grant(void *address, size_t bytes)
{
    size_t first;
    pthread_mutex_lock(&memory.lock);
    struct block *block = find_granules(address, bytes, true, &first);
    for (size_t i = 0; block && i < bytes / MEMORY_GRANULE; i++)
        block->granules[first + i].accessible = true;
    pthread_mutex_unlock(&memory.lock);
    return block != NULL;
}

void *memory_physical(const void *address)
{
    pthread_mutex_lock(&memory.lock);
    const struct block *block = find(address, 1);
    void *found =
        block && block->granules
            ? block->granules[(size_t)((const char *)address - block->address) / MEMORY_GRANULE]
                  .physical
            : NULL;
    pthread_mutex_unlock(&memory.lock);
    return found;
}

bool memory_unreserve(void *address, size_t bytes)
{
    size_t first;
    pthread_mutex_lock(&memory.lock);
    struct block *block = find_granules(address, bytes, false, &first);
    const bool good = block && block->address == address && block->bytes == bytes;
    if (good) {
        munmap(block->backing, bytes);
        block->backing = NULL;
    }
    pthread_mutex_unlock(&memory.lock);
    return good;
}

/* Of all these bytes: is there memory that may be used? The lock is held. */
static bool is_usable(const struct block *block, const char *address, size_t bytes)
{
    if (!block->granules || !block->backing || bytes == 0)
        return block->backing != NULL;
    const size_t first = (size_t)(address - block->address) / MEMORY_GRANULE,
                 last = (size_t)(address - block->address + (ptrdiff_t)bytes - 1) / MEMORY_GRANULE;
    for (size_t i = first; i <= last; i++)
        if (!block->granules[i].accessible)
            return false;
    return true;
}

/* ---- all of a kind -------------------------------------------------------------------------------- */

void memory_reset(int gpu)
{
    pthread_mutex_lock(&memory.lock);
    for (struct block *at = memory.blocks; at; at = at->next)
        if (at->gpu == gpu && at->granules) {
            clear(at, 0, at->bytes / MEMORY_GRANULE);
        } else if (at->gpu == gpu) {
            free(at->backing);
            at->backing = NULL;
        }
    pthread_mutex_unlock(&memory.lock);
}

static bool lives(const void *address, size_t bytes, int gpu)
{
    pthread_mutex_lock(&memory.lock);
    const struct block *block = find(address, bytes);
    bool answer = block && is_usable(block, address, bytes) && block->gpu == gpu;
    pthread_mutex_unlock(&memory.lock);
    return answer;
}

bool memory_is_pinned(const void *address, size_t bytes)
{
    return lives(address, bytes, -1);
}

bool memory_is_device(int gpu, const void *address, size_t bytes)
{
    return lives(address, bytes, gpu);
}

int memory_gpu(const void *address, size_t bytes)
{
    pthread_mutex_lock(&memory.lock);
    const struct block *block = find(address, bytes);
    const int gpu = block && is_usable(block, address, bytes) ? block->gpu : -1;
    pthread_mutex_unlock(&memory.lock);
    return gpu;
}

void *memory_reach(int gpu, const void *address, size_t bytes, const char *caller)
{
    char *place = NULL;
    const char *wrong = NULL;
    pthread_mutex_lock(&memory.lock);
    const struct block *block = find(address, bytes);
    if (!block)
        wrong = "which are not all in one allocation";
    else if (!is_usable(block, address, bytes))
        wrong = "which have been freed, or are not mapped";
    else if (block->gpu >= 0 && block->gpu != gpu)
        wrong = "which are another GPU's";
    else
        place = block->backing + ((const char *)address - block->address);
    pthread_mutex_unlock(&memory.lock);
    if (wrong)
        emulation_say("%s reaches for %zu bytes at %p, %s", caller, bytes, address, wrong);
    return place;
}
