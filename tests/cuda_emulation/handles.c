/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - emulated CUDA: not a GPU. The handles that are alive, of the kinds that nothing else has a list of. */
#include "emulation.h"

#include <stdlib.h>

struct live {
    struct live *next;
    enum handle_kind kind;
    const void *handle;
};
static struct live *handles; /* emulation.lock */

static const char *const names[HANDLE_KINDS] = {
    [HANDLE_GRAPH] = "graph", [HANDLE_EXEC] = "executable graph",   [HANDLE_POOL] = "pool",
    [HANDLE_ARRAY] = "array", [HANDLE_VIEW] = "texture or surface",
};

void handle_born(enum handle_kind kind, const void *handle)
{
    struct live *live = malloc(sizeof *live);
    if (!live)
        emulation_misuse("no memory");
    *live = (struct live){handles, kind, handle};
    handles = live;
}

static struct live **find(enum handle_kind kind, const void *handle, const char *caller)
{
    for (struct live **link = &handles; *link; link = &(*link)->next)
        if ((*link)->kind == kind && (*link)->handle == handle)
            return link;
    emulation_misuse("%s: %p is no %s, or one that has been destroyed", caller, handle,
                     names[kind]);
}

void handle_use(enum handle_kind kind, const void *handle, const char *caller)
{
    (void)find(kind, handle, caller);
}

void handle_dies(enum handle_kind kind, const void *handle, const char *caller)
{
    struct live **link = find(kind, handle, caller), *dead = *link;
    *link = dead->next;
    free(dead);
}

void handle_tell_left(void)
{
    for (const struct live *at = handles; at; at = at->next)
        emulation_misuse("a handle has not been destroyed: %s %p", names[at->kind], at->handle);
}
