/* SPDX-License-Identifier: Apache-2.0 */
/* large_pages.c - see large_pages.h. */
#include "large_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A hint, which may be refused. calloc has not touched what is new, so its pages are still to be handed out. */
static void want_large_pages(char *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 2 << 20, FEW = 2 };
    const size_t before = -(uintptr_t)memory % PAGE;
    if (bytes >= (size_t)FEW * PAGE)
        madvise(memory + before, (bytes - before) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

void *large_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory)
        want_large_pages(memory, count * size);
    return memory;
}
