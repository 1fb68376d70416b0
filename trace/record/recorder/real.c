/* SPDX-License-Identifier: Apache-2.0 */
/* real.c - see real.h. */
#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The address that dlsym would have returned; never freed. */
struct remembered {
    struct remembered *next;
    void *function;
    char name[];
};
static struct remembered *_Atomic all;

dlsym_function *real_dlsym(void)
{
    static dlsym_function *_Atomic found;
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};
    dlsym_function *function = atomic_load(&found);
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !function; i++) {
        void *address = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&function, &address, sizeof function);
    }
    atomic_store(&found, function);
    return function;
}

static void *find_remembered(const char *name)
{
    struct remembered *at = atomic_load(&all);
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    return at ? at->function : NULL;
}

void real_remember(const char *name, void *function)
{
    struct remembered *new = find_remembered(name) ? NULL : malloc(sizeof *new + strlen(name) + 1);
    if (!new)
        return;
    new->function = function;
    strcpy(new->name, name);
    new->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &new->next, new))
        ;
}

struct real_quest {
    const char *name, *library; /* NULL: CUDA's */
    void *found;
};

static bool real_is_cuda_library(const char *path)
{
    static const char *const names[] = {"libcudart.so", "libcuda.so", "libnccl.so"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool real_is_cuda(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && real_is_cuda_library(info.dli_fname);
}

/* A library that only some other one has opened. */
static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct real_quest *quest = arg;
    (void)size;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base ? base + 1 : info->dlpi_name;
    if (quest->library ? strncmp(base, quest->library, strlen(quest->library)) != 0
                       : !real_is_cuda_library(info->dlpi_name))
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    quest->found = real_dlsym()(library, quest->name);
    dlclose(library);
    return quest->found != NULL;
}

bool real_find_in(void *function, const char *name, const char *library)
{
    void *_Atomic *place = function;
    struct real_quest quest = {name, library, atomic_load_explicit(place, memory_order_relaxed)};
    if (!quest.found)
        dl_iterate_phdr(look_into, &quest);
    if (!quest.found)
        quest.found = real_dlsym()(RTLD_DEFAULT, name);
    atomic_store(place, quest.found);
    return quest.found != NULL;
}

bool real_find(void *function, const char *name)
{
    void *_Atomic *place = function;
    if (atomic_load_explicit(place, memory_order_relaxed))
        return true;
    struct real_quest quest = {name, NULL, find_remembered(name)};
    if (!quest.found)
        quest.found = real_dlsym()(RTLD_NEXT, name);
    if (!quest.found)
        dl_iterate_phdr(look_into, &quest);
    atomic_store(place, quest.found);
    return quest.found != NULL;
}
