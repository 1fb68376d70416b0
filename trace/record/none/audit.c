/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - tells the loader of a program to take the libraries of the device that is not there where it looks for CUDA's.
 *
 * LD_PRELOAD and LD_LIBRARY_PATH do not: libraries of Python's wheels name their folders (DT_RPATH), and are of CUDA 12 or 13.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"

unsigned la_version(unsigned version);
unsigned la_version(unsigned version)
{
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* libNAME.so.12, libNAME.so.13, and what programs open by other names. */
static const struct {
    const char *wanted, *given;
} names[] = {{"libcudart.so.12", "libcudart.so.12"},
             {"libcudart.so.13", "libcudart.so.13"},
             {"libcudart.so", "libcudart.so.13"},
             {"libcublas.so.12", "libcublas.so.12"},
             {"libcublas.so.13", "libcublas.so.13"},
             {"libcublasLt.so.12", "libcublasLt.so.12"},
             {"libcublasLt.so.13", "libcublasLt.so.13"},
             {"libnccl.so.2", "libnccl.so.2"},
             {"libnccl.so", "libnccl.so.2"},
             {"libcuda.so.1", "libcuda.so.1"},
             {"libcuda.so", "libcuda.so.1"},
             {"libnvidia-ml.so.1", "libnvidia-ml.so.1"},
             {"libnvidia-ml.so", "libnvidia-ml.so.1"}};

/* A name with more numbers behind it, as libcudart.so.12.8.90, is the same library. */
static int is_name(const char *base, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(base, wanted, length) == 0 &&
           (base[length] == '\0' ||
            (base[length] == '.' && wanted[length - 1] >= '0' && wanted[length - 1] <= '9'));
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    static __thread char place[4096];
    const char *folder = getenv(NONE_VARIABLE_LIBRARIES);
    const char *base = strrchr(name, '/');
    (void)cookie, (void)flag;
    base = base ? base + 1 : name;
    for (size_t i = 0; folder && i < sizeof names / sizeof *names; i++)
        if (is_name(base, names[i].wanted)) {
            snprintf(place, sizeof place, "%s/%s", folder, names[i].given);
            return place;
        }
    return (char *)name;
}
