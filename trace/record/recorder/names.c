/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h. Kernels are never forgotten. */
#include "names.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "tape.h"

enum { MAX_ARGUMENTS = 64, BUCKETS = 4096 };

enum argument_kind { ARGUMENT_OTHER, ARGUMENT_READ, ARGUMENT_WRITTEN, ARGUMENT_STRUCT };

struct kernel {
    atomic_bool described;
    const char *mangled;
    uint64_t number;
    int count;
    struct {
        enum argument_kind kind;
        size_t bytes;
    } arguments[MAX_ARGUMENTS];
};

struct names_entry {
    struct names_entry *next;
    const void *handle;
    struct kernel *kernel;
};
static struct names_entry *_Atomic table[BUCKETS];

static struct names_entry *_Atomic *bucket(const void *handle)
{
    return &table[((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15U >> 52];
}

static struct kernel *names_own_find(const void *handle)
{
    struct names_entry *at = atomic_load_explicit(bucket(handle), memory_order_acquire);
    while (at && at->handle != handle)
        at = at->next;
    return at ? at->kernel : NULL;
}

static void names_add(const void *handle, struct kernel *kernel)
{
    struct names_entry *entry = malloc(sizeof *entry);
    if (!entry)
        return;
    *entry = (struct names_entry){atomic_load(bucket(handle)), handle, kernel};
    while (!atomic_compare_exchange_weak(bucket(handle), &entry->next, entry))
        ;
}

static struct kernel *new_kernel(const void *function, const char *mangled)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->mangled = mangled ? strdup(mangled) : NULL;
    names_add(function, kernel);
    return kernel;
}

void names_register(const void *function, const char *mangled)
{
    if (!names_own_find(function))
        new_kernel(function, mangled);
}

void names_alias(const void *handle, const void *function)
{
    struct kernel *kernel = names_own_find(function);
    if (kernel && !names_own_find(handle))
        names_add(handle, kernel);
}

/* ---- types ------------------------------------------------------------------------------------ */

typedef char *demangle_function(const char *mangled, char *out, size_t *size, int *status);

/* The name with its types, which the caller frees; NULL: nobody can read it. */
static char *demangle(const char *mangled)
{
    static demangle_function *function;
    int status = 0;
    return real_find_in(&function, "__cxa_demangle", "libstdc++.so") ||
                   real_find_in(&function, "__cxa_demangle", "libc++abi.so")
               ? function(mangled, NULL, NULL, &status)
               : NULL;
}

/* The end of one type in a list of them. */
static const char *end_of_type(const char *at)
{
    int depth = 0;
    for (; *at && (depth > 0 || (*at != ',' && *at != ')')); at++)
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
    return at;
}

static bool names_ends_with(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length >= size && memcmp(text + length - size, end, size) == 0;
}

static bool names_is_number(const char *type, size_t length)
{
    static const char *const names[] = {"char",      "signed char",   "unsigned char",      "short",
                                        "int",       "unsigned int",  "unsigned short",     "long",
                                        "long long", "unsigned long", "unsigned long long", "float",
                                        "double",    "bool"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(type, names[i], length) == 0)
            return true;
    return false;
}

static enum argument_kind names_kind_of(const char *type, size_t length)
{
    static const char *const ends[] = {" __restrict__", " restrict", " const"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (names_ends_with(type, length, ends[i]))
            length -= strlen(ends[i]);
    if (names_ends_with(type, length, "*"))
        return names_ends_with(type, length, " const*") ||
                       names_ends_with(type, length, " const volatile*")
                   ? ARGUMENT_READ
                   : ARGUMENT_WRITTEN;
    return names_is_number(type, length) ? ARGUMENT_OTHER : ARGUMENT_STRUCT;
}

/* The arguments in parentheses: the last ones of the name. */
static const char *find_list(const char *text)
{
    const char *list = NULL;
    int angles = 0, depth = 0;
    for (const char *at = text; *at; at++) {
        angles += (*at == '<') - (*at == '>');
        if (*at == '(' && depth++ == 0 && angles == 0 && strncmp(at, "(anonymous", 10) != 0)
            list = at;
        depth -= *at == ')';
    }
    return list;
}

static void read_types(struct kernel *kernel, const char *text)
{
    const char *at = find_list(text);
    if (!at || strcmp(at, "()") == 0)
        return;
    for (at++; *at && kernel->count < MAX_ARGUMENTS; kernel->count++) {
        const char *end = end_of_type(at);
        kernel->arguments[kernel->count].kind = names_kind_of(at, (size_t)(end - at));
        kernel->arguments[kernel->count].bytes =
            kernel->arguments[kernel->count].kind == ARGUMENT_STRUCT ? 0 : 8;
        if (*end != ',') {
            kernel->count++;
            return;
        }
        at = end + 1 + (end[1] == ' ');
    }
}

/* ---- sizes ------------------------------------------------------------------------------------ */

typedef int info_function(const void *function, size_t index, size_t *offset, size_t *bytes);
typedef int error_function(void);

/* CUDA is asked for arguments until there is none. */
static void read_sizes(struct kernel *kernel, const void *function, bool typed, info_function *info)
{
    size_t offset, bytes;
    int i = 0;
    const int most = typed ? kernel->count : MAX_ARGUMENTS;
    for (; i < most && info(function, (size_t)i, &offset, &bytes) == 0; i++) {
        kernel->arguments[i].bytes = bytes;
        if (!typed)
            kernel->arguments[i].kind = bytes < 8 ? ARGUMENT_OTHER : ARGUMENT_STRUCT;
    }
    kernel->count = typed ? kernel->count : i;
}

/* The error that this leaves was not the program's. */
static void ask_runtime_sizes(struct kernel *kernel, const void *function, bool typed)
{
    static info_function *info;
    static error_function *peek, *get;
    if (!real_find(&info, "cudaFuncGetParamInfo") || !real_find(&peek, "cudaPeekAtLastError") ||
        !real_find(&get, "cudaGetLastError") || peek() != 0)
        return;
    read_sizes(kernel, function, typed, info);
    get();
}

static void ask_driver_sizes(struct kernel *kernel, const void *function, bool typed)
{
    static info_function *info;
    if (real_find(&info, "cuFuncGetParamInfo"))
        read_sizes(kernel, function, typed, info);
}

static bool all_known(const struct kernel *kernel, bool typed)
{
    for (int i = 0; i < kernel->count; i++)
        if (kernel->arguments[i].kind == ARGUMENT_STRUCT && kernel->arguments[i].bytes == 0)
            return false;
    return typed || kernel->count > 0;
}

typedef int name_function(const char **name, const void *function);

static const char *ask_name(const void *function, bool driver)
{
    static name_function *of_runtime, *of_driver;
    const char *name = NULL;
    if (driver ? !real_find(&of_driver, "cuFuncGetName")
               : !real_find(&of_runtime, "cudaFuncGetName"))
        return NULL;
    return (driver ? of_driver : of_runtime)(&name, function) == 0 ? name : NULL;
}

/* At its first launch; two threads that do so find the same. */
static void names_describe(struct kernel *kernel, const void *function, bool driver)
{
    struct kernel described = {.mangled = kernel->mangled};
    if (!described.mangled)
        described.mangled = ask_name(function, driver);
    char *text = described.mangled ? demangle(described.mangled) : NULL;
    const bool typed = text && find_list(text);
    if (typed)
        read_types(&described, text);
    if (driver)
        ask_driver_sizes(&described, function, typed);
    else
        ask_runtime_sizes(&described, function, typed);
    const char *name = text ? text : described.mangled ? described.mangled : "kernel";
    kernel->count = described.count;
    memcpy(kernel->arguments, described.arguments, sizeof kernel->arguments);
    kernel->number = tape_number();
    tape_put(RECORDING_KERNEL,
             WORDS(kernel->number, tape_text(name), all_known(&described, typed)));
    atomic_store_explicit(&kernel->described, true, memory_order_release);
    free(text);
}

/* ---- launches --------------------------------------------------------------------------------- */

static bool may_be_address(uint64_t word)
{
    return word >= 65536 && word < UINT64_C(1) << 57;
}

size_t names_launch(const void *handle, void **args, bool driver, uint64_t *words, size_t most)
{
    struct kernel *kernel = names_own_find(handle);
    if (!kernel)
        kernel = new_kernel(handle, NULL);
    if (!kernel)
        return 0;
    if (!atomic_load_explicit(&kernel->described, memory_order_acquire))
        names_describe(kernel, handle, driver);
    size_t count = 0;
    words[count++] = kernel->number;
    for (int i = 0; args && i < kernel->count; i++) {
        const enum argument_kind kind = kernel->arguments[i].kind;
        const size_t bytes = kernel->arguments[i].bytes;
        for (size_t at = 0; kind != ARGUMENT_OTHER && at + 8 <= bytes && count < most; at += 8) {
            uint64_t word;
            memcpy(&word, (char *)args[i] + at, sizeof word);
            if (may_be_address(word))
                words[count++] = word | (kind == ARGUMENT_READ ? 0 : RECORDING_WRITE) |
                                 (kind == ARGUMENT_STRUCT ? 0 : RECORDING_POINTER);
        }
    }
    return count;
}
