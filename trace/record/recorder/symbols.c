/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.c - dlsym as programs call it: one that asks a library for a function of CUDA or NCCL gets the recorder's.
 *
 * A library that is opened with RTLD_DEEPBIND finds its own functions first, past the recorder: that is remembered.
 *
 * RTLD_NEXT means the library behind the caller, which the C library knows by the address to return to: so the call
 * goes on as a jump, and this file is compiled with optimisation always.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "functions.h"
#include "real.h"
#include "symbols.h"
#include "tape.h"

static bool may_be_ours(const char *name)
{
    return strncmp(name, "cu", 2) == 0 || strncmp(name, "nccl", 4) == 0 ||
           strncmp(name, "__cuda", 6) == 0;
}

static void *own_library(void)
{
    static void *_Atomic library;
    Dl_info info;
    if (!library && dladdr((void *)(uintptr_t)own_library, &info))
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library;
}

/* Before the process ends: to open a library whose destructors run executes its constructors once more. */
__attribute__((constructor)) static void find_own_library(void)
{
    (void)own_library();
}

/* Calls among NVIDIA's libraries are not the program's. */
static bool is_nvidia(const void *caller)
{
    static const char *const names[] = {"libcu", "libnccl", "libnv"};
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return false;
    const char *base = strrchr(info.dli_fname, '/');
    base = base ? base + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void *own_function(const char *name)
{
    return own_library() ? real_dlsym()(own_library(), name) : NULL;
}

bool symbols_is_ours(const void *address)
{
    Dl_info own, info;
    return dladdr((void *)(uintptr_t)own_library, &own) && dladdr(address, &info) &&
           own.dli_fbase == info.dli_fbase;
}

bool symbols_are_known(const char *name)
{
    return !functions_is_name(name) || functions_harmless(name) || own_function(name);
}

/* It may be called, and nothing would be seen of it. */
void symbols_note_unknown(const char *name, const void *theirs, const void *caller)
{
    if (theirs && real_is_cuda(theirs) && !symbols_are_known(name) && !is_nvidia(caller))
        tape_put(RECORDING_UNSEEN, WORDS(tape_text(name)));
}

void *symbols_ours(const char *name, void *theirs, const void *caller)
{
    void *own = theirs ? own_function(name) : NULL;
    if (!own || own == theirs || is_nvidia(caller))
        return theirs;
    real_remember(name, theirs);
    return own;
}

static __thread const void *asking __attribute__((tls_model("initial-exec")));

static void *ours(void *library, const char *name)
{
    void *theirs = real_dlsym()(library, name);
    symbols_note_unknown(name, theirs, asking);
    return symbols_ours(name, theirs, asking);
}

#ifdef __clang__
#define OPTIMISED
#define AS_A_JUMP __attribute__((musttail))
#else
#define OPTIMISED __attribute__((optimize("O2")))
#define AS_A_JUMP
#endif

OPTIMISED void *dlsym(void *restrict library, const char *restrict name)
{
    asking = __builtin_return_address(0);
    dlsym_function *go_on =
        library != RTLD_NEXT && tape_on() && may_be_ours(name) ? ours : real_dlsym();
    AS_A_JUMP return go_on(library, name);
}

static atomic_bool bound_deeply;

bool symbols_bound_deeply(void)
{
    return atomic_load(&bound_deeply);
}

typedef void *dlopen_function(const char *file, int mode);

OPTIMISED void *dlopen(const char *file, int mode)
{
    static dlopen_function *real;
    if (!real_find(&real, "dlopen"))
        return NULL;
    if (mode & RTLD_DEEPBIND)
        atomic_store(&bound_deeply, true);
    AS_A_JUMP return real(file, mode);
}
