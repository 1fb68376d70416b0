/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unseen.c - libraries of a program whose calls go past the recorder, noted when the process ends.
 *
 * NVIDIA's libraries have a CUDA runtime of their own inside, or use the driver.
 */
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"
#include "tape.h"

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Those that are seen, or do no work of the program's. */
static bool is_known(const char *base)
{
    static const char *const names[] = {"libcudart.so", "libnccl.so", "libcupti.so",
                                        "libcuda.so",   "libnvidia",  "libnvToolsExt",
                                        "libswrecord"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins_with(base, names[i]))
            return true;
    return false;
}

static bool is_cuda_library(const char *base)
{
    static const char *const names[] = {"libcublas",   "libcudnn",    "libcufft",
                                        "libcusparse", "libcusolver", "libcurand",
                                        "libnvjpeg",   "libnpp",      "libcutensor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins_with(base, names[i]))
            return true;
    return false;
}

/* Does the object ask for a library of this name? */
static bool needs(const struct dl_phdr_info *info, const char *library)
{
    const ElfW(Dyn) *dynamic = NULL;
    const char *strings = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (const ElfW(Dyn) *at = dynamic; at && at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_STRTAB)
            strings = (const char *)at->d_un.d_ptr;
    for (const ElfW(Dyn) *at = dynamic; strings && at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_NEEDED && begins_with(strings + at->d_un.d_val, library))
            return true;
    return false;
}

static void note(const char *name)
{
    tape_put(RECORDING_UNSEEN, WORDS(tape_text(name)));
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size, (void)arg;
    base = base ? base + 1 : *info->dlpi_name ? info->dlpi_name : "the program";
    if (begins_with(base, "linux-vdso") || is_known(base))
        return 0;
    if (is_cuda_library(base) && !needs(info, "libcudart.so"))
        note(base);
    return 0;
}

/* Only where something was recorded. */
__attribute__((destructor)) static void end_process(void)
{
    const char *linked_in = getenv("SWSIM_RECORD_STATIC");
    if (tape_here().count == 0)
        return;
    dl_iterate_phdr(look_at, NULL);
    if (linked_in && *linked_in)
        note("CUDA's runtime in the program");
    if (symbols_bound_deeply())
        note("a library opened with RTLD_DEEPBIND");
}
