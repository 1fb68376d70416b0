/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_load.c - see nccl_load.h. */
#include "nccl_load.h"

#ifdef HAVE_NCCL

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dynamic_library.h"
#include "base/system_words.h"

#define NCCL_SONAME "libnccl.so.2"
DYNAMIC_LIBRARY("nccl", "collectives between GPUs", "suggested", NCCL_SONAME);

/* Where to look below the value of an environment variable, or (NULL) from the root; patterns for
   glob. Of PATH each folder counts that has a python3. */
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
    {"PATH", "/../lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2"},
};

enum { WHY_TEXT = 512 };

/* The library wanted, and why the last candidate will not do. */
struct nccl_load_quest {
    struct nccl found; /* its library NULL: not yet */
    char why[WHY_TEXT];
};

/* The first function that is missing, or NULL. */
static const char *nccl_load_find_functions(struct nccl *nccl)
{
    const char *missing = NULL;
#define X(name)                                                                                    \
    dynamic_symbol(nccl->library, "nccl" #name, &nccl->name);                                      \
    if (!nccl->name && !missing)                                                                   \
        missing = "nccl" #name;
    NCCL_FUNCTION_LIST(X)
#undef X
#define X(name) dynamic_symbol(nccl->library, "nccl" #name, &nccl->name);
    NCCL_OPTIONAL_LIST(X)
#undef X
    return missing;
}

void nccl_show_version(int version, char *out, size_t size)
{
    int scale = version < 10000 ? 1000 : 10000; /* 2708 is 2.7.8; since 2.9, 20908 is 2.9.8 */
    snprintf(out, size, "%d.%d.%d", version / scale, version % scale / 100, version % 100);
}

const char *nccl_describe(const struct nccl *nccl, ncclResult_t error, char *out, size_t size)
{
    const char *last = NULL;
#if NCCL_VERSION_CODE >= 21300
    last =
        nccl->GetLastError ? nccl->GetLastError(NULL) : NULL; /* it has one for all communicators */
#endif
    snprintf(out, size, "%s%s%s", nccl->GetErrorString(error), last && *last ? ": " : "",
             last ? last : "");
    out[strcspn(out, "\n")] = '\0';
    return out;
}

/* The loader waits for the writer of a pipe. */
static bool nccl_load_may_be_library(const char *path)
{
    struct stat entry;
    return !strchr(path, '/') || stat(path, &entry) != 0 || S_ISREG(entry.st_mode);
}

/* The library at `path`, or which the loader knows by that name, if it is an NCCL we can use. */
static bool try_library(struct nccl_load_quest *quest, const char *path)
{
    char version[32];
    if (!nccl_load_may_be_library(path)) {
        snprintf(quest->why, sizeof quest->why, "no NCCL found (%s is no file)", path);
        return false;
    }
    /* The library stays: NCCL leaves threads and handlers of exit behind. */
    struct nccl nccl = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!nccl.library) {
        const char *why = system_loader_words();
        snprintf(quest->why, sizeof quest->why, "no NCCL found (%s)", *why ? why : path);
        return false;
    }
    const char *missing = nccl_load_find_functions(&nccl);
    if (!nccl.GetVersion || nccl.GetVersion(&nccl.version) != ncclSuccess) {
        snprintf(quest->why, sizeof quest->why, "%s is not NCCL: it has no ncclGetVersion", path);
    } else if (missing) {
        nccl_show_version(nccl.version, version, sizeof version);
        snprintf(quest->why, sizeof quest->why,
                 "NCCL %s (%s) is too old: it has no %s; 2.7 or newer is needed", version, path,
                 missing);
    } else {
        quest->found = nccl;
        return true;
    }
    dlclose(nccl.library);
    return false;
}

/* The first usable match of a pattern, below a folder with a name of `length` bytes. */
static bool try_pattern(struct nccl_load_quest *quest, const char *folder, size_t length,
                        const char *pattern)
{
    char path[PATH_MAX];
    glob_t matches;
    if (snprintf(path, sizeof path, "%.*s%s", (int)length, folder, pattern) >= (int)sizeof path)
        return false;
    if (glob(path, 0, NULL, &matches) == 0)
        for (size_t i = 0; i < matches.gl_pathc && !quest->found.library; i++)
            try_library(quest, matches.gl_pathv[i]);
    globfree(&matches);
    return quest->found.library;
}

static bool has_python(const char *folder, size_t length)
{
    char path[PATH_MAX];
    return length > 0 &&
           snprintf(path, sizeof path, "%.*s/python3", (int)length, folder) < (int)sizeof path &&
           access(path, X_OK) == 0;
}

/* Below each folder of PATH that has a python3. */
static bool try_path(struct nccl_load_quest *quest, const char *folders, const char *pattern)
{
    for (const char *at = folders;; at++) {
        size_t length = strcspn(at, ":");
        if (has_python(at, length) && try_pattern(quest, at, length, pattern))
            return true;
        at += length;
        if (!*at)
            return false;
    }
}

static bool try_place(struct nccl_load_quest *quest, const char *variable, const char *pattern)
{
    const char *value = variable ? getenv(variable) : "";
    if (!value)
        return false;
    if (variable && strcmp(variable, "PATH") == 0)
        return try_path(quest, value, pattern);
    return try_pattern(quest, value, strlen(value), pattern);
}

/* SWSIM_NCCL names the library, or the folder it is in. */
static void try_named(struct nccl_load_quest *quest, const char *name)
{
    char path[PATH_MAX];
    struct stat entry;
    bool folder = stat(name, &entry) == 0 && S_ISDIR(entry.st_mode);
    if (snprintf(path, sizeof path, "%s%s%s", name, folder ? "/" : "", folder ? NCCL_SONAME : "") >=
        (int)sizeof path)
        snprintf(quest->why, sizeof quest->why, "no NCCL found (SWSIM_NCCL is too long)");
    else
        try_library(quest, path);
}

enum status nccl_load(struct nccl *nccl, struct diag *diag)
{
    struct nccl_load_quest quest = {.why = ""};
    const char *named = getenv("SWSIM_NCCL");
    if (named && *named)
        try_named(&quest, named);
    else if (!try_library(&quest, NCCL_SONAME))
        for (size_t i = 0; i < sizeof places / sizeof *places && !quest.found.library; i++)
            try_place(&quest, places[i].variable, places[i].pattern);
    if (!quest.found.library)
        return diag_error(diag, STATUS_SYSTEM, "%s; SWSIM_NCCL may name libnccl.so.2", quest.why);
    *nccl = quest.found;
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
