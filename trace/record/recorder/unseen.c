/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unseen.c - see unseen.h. NVIDIA's libraries have a CUDA runtime of their own inside, or use the driver.
 */
#include "unseen.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "symbols.h"
#include "tape.h"

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Those that are seen, or do no work of the program's. */
static bool unseen_is_known(const char *base)
{
    static const char *const names[] = {"libcudart.so", "libnccl.so", "libcupti.so",
                                        "libcuda.so",   "libnvidia",  "libnvToolsExt",
                                        "libswrecord"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins_with(base, names[i]))
            return true;
    return false;
}

static bool unseen_is_cuda_library(const char *base)
{
    static const char *const names[] = {"libcublas",   "libcudnn",    "libcufft",
                                        "libcusparse", "libcusolver", "libcurand",
                                        "libnvjpeg",   "libnpp",      "libcutensor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins_with(base, names[i]))
            return true;
    return false;
}

/* ---- the dynamic section of an object ---------------------------------------------------------- */

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* The address of a tag; NULL: the object has no such tag. */
static const void *unseen_find(const struct dl_phdr_info *info, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *at = dynamic_of(info); at && at->d_tag != DT_NULL; at++)
        if (at->d_tag == tag)
            return (const void *)at->d_un.d_ptr;
    return NULL;
}

/* True if the object asks for a library of this name. */
static bool needs(const struct dl_phdr_info *info, const char *library)
{
    const char *strings = unseen_find(info, DT_STRTAB);
    for (const ElfW(Dyn) *at = dynamic_of(info); strings && at && at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_NEEDED && begins_with(strings + at->d_un.d_val, library))
            return true;
    return false;
}

/* Symbols that the object wants come first: behind them are those that a hash finds in it. */
static size_t count_wanted(const struct dl_phdr_info *info)
{
    const uint32_t *gnu = unseen_find(info, DT_GNU_HASH), *old = unseen_find(info, DT_HASH);
    return gnu ? gnu[1] : old ? old[1] : 0;
}

static void unseen_own_note(const char *name)
{
    tape_put(RECORDING_UNSEEN, WORDS(tape_text(name)));
}

/* Functions that the object may call, and of which nothing would be seen: they are newer than the recorder. */
static void note_unknown(const struct dl_phdr_info *info)
{
    const ElfW(Sym) *symbols = unseen_find(info, DT_SYMTAB);
    const char *strings = unseen_find(info, DT_STRTAB);
    const size_t count = symbols && strings ? count_wanted(info) : 0;
    for (size_t i = 1; i < count; i++) {
        const char *name = strings + symbols[i].st_name;
        void *function = NULL;
        if (symbols[i].st_shndx == SHN_UNDEF && !symbols_are_known(name) &&
            real_find(&function, name) && real_is_cuda(function))
            unseen_own_note(name);
    }
}

static int unseen_look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    base = base ? base + 1 : *info->dlpi_name ? info->dlpi_name : "the program";
    if (begins_with(base, "linux-vdso") || unseen_is_known(base))
        return 0;
    if (!unseen_is_cuda_library(base))
        note_unknown(info);
    else if (!needs(info, "libcudart.so") && !*(const bool *)arg)
        unseen_own_note(base);
    return 0;
}

/* On the device that is not there NVIDIA's libraries are ours, or were not called: a call ends the run. */
static bool has_no_device(void)
{
    static void (*missing)(void);
    return real_find_in(&missing, "none_missing", "libswnone.so");
}

void unseen_note(void)
{
    const char *linked_in = getenv("SWSIM_RECORD_STATIC");
    bool no_device = has_no_device();
    dl_iterate_phdr(unseen_look_at, &no_device);
    if (linked_in && *linked_in)
        unseen_own_note("CUDA's runtime in the program");
    if (symbols_bound_deeply())
        unseen_own_note("a library opened with RTLD_DEEPBIND");
}
