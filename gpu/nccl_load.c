/* nccl_load.c - see nccl_load.h. */
#include "nccl_load.h"

#ifdef HAVE_NCCL

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char soname[] = "libnccl.so.2";

/* Where to look below the value of an environment variable, or (NULL) from the root; patterns for
   glob. */
static const struct {
    const char *variable, *pattern;
} places[] = {
#ifdef NCCL_LIBRARY_DIR
    {NULL, NCCL_LIBRARY_DIR "/libnccl.so.2"},
#endif
    {"CUDA_HOME", "/lib64/libnccl.so.2"},
    {NULL, "/usr/local/cuda/lib64/libnccl.so.2"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"},
    {"CONDA_PREFIX", "/lib/libnccl.so.2"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2"},
};

static void *open_library(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The first match of a pattern that loads. */
static void *open_match(const char *variable, const char *pattern)
{
    char path[PATH_MAX];
    const char *root = variable ? getenv(variable) : "";
    if (!root || snprintf(path, sizeof path, "%s%s", root, pattern) >= (int)sizeof path)
        return NULL;
    glob_t found;
    void *library = NULL;
    if (glob(path, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !library; i++)
            library = open_library(found.gl_pathv[i]);
    globfree(&found);
    return library;
}

/* What SWSIM_NCCL names: the library, or the folder it is in. */
static void *open_named(const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", name, soname) < (int)sizeof path) {
        void *library = open_library(path);
        if (library)
            return library;
    }
    return open_library(name);
}

static void *find_library(void)
{
    const char *named = getenv("SWSIM_NCCL");
    if (named && *named)
        return open_named(named);
    void *library = open_library(soname);
    for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++)
        library = open_match(places[i].variable, places[i].pattern);
    return library;
}

/* POSIX lets a function's address travel through void *; the language does not. */
static void find_function(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
}

enum status nccl_load(struct nccl *nccl, struct diag *diag)
{
    struct nccl found = {.library = find_library()};
    if (!found.library) {
        const char *why = dlerror();
        return diag_error(diag, STATUS_SYSTEM,
                          "no NCCL found (%s); SWSIM_NCCL may name libnccl.so.2",
                          why ? why : "no reason given");
    }
    const char *missing = NULL;
#define X(name)                                                                                    \
    find_function(found.library, "nccl" #name, &found.name);                                       \
    if (!found.name)                                                                               \
        missing = "nccl" #name;
    NCCL_FUNCTION_LIST(X)
#undef X
    if (missing || found.GetVersion(&found.version) != ncclSuccess) {
        dlclose(found.library);
        return diag_error(diag, STATUS_SYSTEM, "the NCCL found has no working %s",
                          missing ? missing : "ncclGetVersion");
    }
    *nccl = found;
    return STATUS_OK;
}

void nccl_unload(struct nccl *nccl)
{
    if (nccl->library)
        dlclose(nccl->library);
    nccl->library = NULL;
}

#else

/* ISO C wants a declaration in every file. */
typedef int nccl_load_is_empty_without_nccl;

#endif
