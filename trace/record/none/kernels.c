/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - modules, kernels and their parameters, read from the fat binaries that nvcc puts into programs. See none.h.
 *
 * A fat binary has an image for each kind of GPU, compressed with LZ4 or zstd; of an image, an ELF file, the section
 * .nv.info.KERNEL has a list of attributes, one for each parameter. A module's image is read when a kernel of it is first
 * asked for. What is known of a program's modules is never forgotten.
 */
#include "none.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 16384, MOST_PARAMETERS = 256 };

struct none_kernel {
    struct none_kernel *next;
    const char *name;
    struct {
        uint16_t offset, bytes;
        bool known;
    } parameters[MOST_PARAMETERS];
    size_t count;
    struct none_numbers numbers;
};

struct none_variable {
    struct none_variable *next;
    const struct none_module *module;
    const void *handle;
    const char *name;
    void *address[64]; /* by device */
    size_t bytes;
};

struct none_module {
    const void *image;
    bool read;
    struct none_kernel *kernels;
    struct none_function *functions; /* made by name */
    char *elf;                       /* of the device's kind; NULL: none */
    size_t elf_bytes;
};

static struct none_function *functions[BUCKETS];
static struct none_variable *variables;

/* ---- images ---------------------------------------------------------------------------------------- */

struct none_fat_head {
    uint32_t magic;
    uint16_t version, head;
    uint64_t bytes;
};
struct none_fat_entry {
    uint16_t kind, version; /* 1: PTX, 2: ELF */
    uint32_t head;
    uint64_t bytes;
    uint32_t packed, unused1;
    uint32_t unused2, arch;
    uint32_t unused3, unused4;
    uint64_t flags;
    uint64_t unused5;
    uint64_t unpacked;
};
struct none_wrapper {
    uint32_t magic, version;
    const void *data;
    const void *other;
};
enum { FAT_MAGIC = 0xBA55ED50, WRAPPER_MAGIC = 0x466243b1, KIND_ELF = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };

static bool unpack_lz4(const unsigned char *at, size_t bytes, unsigned char *out, size_t room)
{
    const unsigned char *end = at + bytes;
    unsigned char *to = out, *to_end = out + room;
    while (at < end) {
        const unsigned token = *at++;
        size_t length = token >> 4;
        for (unsigned char more = 255; length >= 15 && more == 255 && at < end; length += more)
            more = *at++;
        if (length > (size_t)(to_end - to) || length > (size_t)(end - at))
            return false;
        memcpy(to, at, length);
        to += length;
        at += length;
        if (end - at < 2)
            break;
        const size_t back = at[0] | (size_t)at[1] << 8;
        at += 2;
        length = token & 15;
        for (unsigned char more = 255; length >= 15 && more == 255 && at < end; length += more)
            more = *at++;
        length += 4;
        if (back == 0 || back > (size_t)(to - out) || length > (size_t)(to_end - to))
            return false;
        for (; length > 0; length--, to++)
            *to = *(to - back);
    }
    return true;
}

typedef size_t zstd_function(void *to, size_t room, const void *from, size_t bytes);
static zstd_function *zstd;

/* Without the lock: modules are registered by constructors of libraries, which have the loader's lock. */
static void find_zstd(void)
{
    if (zstd)
        return;
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "ZSTD_decompress") : NULL;
    memcpy(&zstd, &found, sizeof zstd);
}

static bool unpack_zstd(const void *from, size_t bytes, void *out, size_t room)
{
    if (!zstd)
        none_say("libzstd.so.1 is not here: the parameters of kernels are not known");
    return zstd && zstd(out, room, from, bytes) == room;
}

static bool set_elf(struct none_module *module, const void *image, size_t bytes)
{
    module->elf = malloc(bytes);
    if (module->elf)
        memcpy(module->elf, image, bytes);
    module->elf_bytes = bytes;
    return module->elf != NULL;
}

static bool unpack_entry(struct none_module *module, const struct none_fat_entry *entry)
{
    const char *data = (const char *)entry + entry->head;
    if (!(entry->flags & (FLAG_LZ4 | FLAG_ZSTD)))
        return set_elf(module, data, (size_t)entry->bytes);
    module->elf_bytes = (size_t)entry->unpacked;
    module->elf = malloc(module->elf_bytes);
    const bool good =
        module->elf && (entry->flags & FLAG_LZ4
                            ? unpack_lz4((const unsigned char *)data, entry->packed,
                                         (unsigned char *)module->elf, module->elf_bytes)
                            : unpack_zstd(data, entry->packed, module->elf, module->elf_bytes));
    if (!good) {
        free(module->elf);
        module->elf = NULL;
    }
    return good;
}

/* The newest image that the device can run; else any: parameters are the same. */
static void open_fat(struct none_module *module, const struct none_fat_head *head)
{
    const unsigned own = (unsigned)(10 * none_model()->major + none_model()->minor);
    const char *at = (const char *)head + head->head, *end = at + head->bytes;
    const struct none_fat_entry *best = NULL;
    while (at + sizeof(struct none_fat_entry) <= end) {
        const struct none_fat_entry *entry = (const struct none_fat_entry *)(const void *)at;
        if (entry->kind == KIND_ELF &&
            (!best || (entry->arch <= own && (best->arch > own || entry->arch > best->arch))))
            best = entry;
        at += entry->head + entry->bytes;
    }
    if (best)
        unpack_entry(module, best);
}

static void none_open_image(struct none_module *module)
{
    const struct none_wrapper *wrapper = module->image;
    const void *data = wrapper->magic == WRAPPER_MAGIC ? wrapper->data : module->image;
    const Elf64_Ehdr *elf = data;
    if (((const struct none_fat_head *)data)->magic == FAT_MAGIC)
        open_fat(module, data);
    else if (memcmp(data, ELFMAG, SELFMAG) == 0)
        set_elf(module, data, (size_t)elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize);
}

/* ---- the sections of an image ----------------------------------------------------------------------- */

enum { NV_SIZED = 4, NV_PARAMETER = 0x17, NV_MOST_THREADS = 0x05 };

static struct none_kernel *need_kernel(struct none_module *module, const char *name)
{
    struct none_kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (kernel || !(kernel = calloc(1, sizeof *kernel)))
        return kernel;
    kernel->name = name;
    kernel->numbers = (struct none_numbers){.registers = 32, .most_threads = 1024};
    kernel->next = module->kernels;
    module->kernels = kernel;
    return kernel;
}

static void read_attributes(struct none_kernel *kernel, const unsigned char *at, size_t bytes)
{
    const unsigned char *end = at + bytes;
    for (size_t size; end - at >= 4; at += 4 + size) {
        const unsigned format = at[0], what = at[1];
        size = format == NV_SIZED ? at[2] | (size_t)at[3] << 8 : 0;
        uint32_t words[3] = {0};
        if (size > (size_t)(end - at - 4) || format != NV_SIZED)
            continue;
        memcpy(words, at + 4, size < sizeof words ? size : sizeof words);
        if (what == NV_MOST_THREADS && size >= 4)
            kernel->numbers.most_threads = (int)words[0];
        const uint32_t place = words[1] & 0xffff;
        if (what != NV_PARAMETER || size < 12 || place >= MOST_PARAMETERS)
            continue;
        kernel->parameters[place].offset = (uint16_t)(words[1] >> 16);
        kernel->parameters[place].bytes = (uint16_t)(words[2] >> 18);
        kernel->parameters[place].known = true;
        kernel->count = place >= kernel->count ? place + 1 : kernel->count;
    }
}

static const char *name_behind(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0 ? name + strlen(begin) : NULL;
}

static void read_section(struct none_module *module, const Elf64_Shdr *section, const char *name)
{
    const char *kernel_name;
    if ((kernel_name = name_behind(name, ".nv.info."))) {
        struct none_kernel *kernel = need_kernel(module, kernel_name);
        if (kernel)
            read_attributes(kernel, (const unsigned char *)module->elf + section->sh_offset,
                            (size_t)section->sh_size);
    } else if ((kernel_name = name_behind(name, ".text."))) {
        struct none_kernel *kernel = need_kernel(module, kernel_name);
        if (kernel && section->sh_info >> 24)
            kernel->numbers.registers = (int)(section->sh_info >> 24);
    } else if ((kernel_name = name_behind(name, ".nv.shared."))) {
        struct none_kernel *kernel = need_kernel(module, kernel_name);
        if (kernel)
            kernel->numbers.shared = (int)section->sh_size;
    }
}

static bool lies_within(const struct none_module *module, uint64_t offset, uint64_t bytes)
{
    return offset <= module->elf_bytes && bytes <= module->elf_bytes - offset;
}

/* With the lock held. */
static void none_module_read(struct none_module *module)
{
    if (module->read)
        return;
    module->read = true;
    none_open_image(module);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)module->elf;
    if (!head || module->elf_bytes < sizeof *head || head->e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_within(module, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)) ||
        head->e_shstrndx >= head->e_shnum)
        return;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(module->elf + head->e_shoff);
    const Elf64_Shdr *names = &sections[head->e_shstrndx];
    for (int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_name < names->sh_size &&
            (sections[i].sh_type == SHT_NOBITS ||
             lies_within(module, sections[i].sh_offset, sections[i].sh_size)))
            read_section(module, &sections[i],
                         module->elf + names->sh_offset + sections[i].sh_name);
}

/* ---- what programs register and load ------------------------------------------------------------------- */

struct none_module *none_module_register(const void *wrapper)
{
    struct none_module *module = calloc(1, sizeof *module);
    find_zstd();
    if (module)
        module->image = wrapper;
    return module;
}

/* The program may free the image. */
struct none_module *none_module_load(const void *image)
{
    struct none_module *module = none_module_register(image);
    if (!module || !none_lock())
        return module;
    none_module_read(module);
    none_unlock();
    return module;
}

static struct none_function **none_bucket(const void *handle)
{
    return &functions[((uintptr_t)handle >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 50];
}

static void none_function_add_locked(struct none_module *module, const void *handle,
                                     const char *name)
{
    struct none_function *function = calloc(1, sizeof *function);
    if (!function)
        none_missing(name, "there is no memory");
    *function = (struct none_function){*none_bucket(handle), handle, module, name, 0};
    *none_bucket(handle) = function;
}

/* The loader of a program calls it: that is no use of the device. */
void none_function_register(struct none_module *module, const void *handle, const char *name)
{
    none_lock_anyhow();
    none_function_add_locked(module, handle, name);
    none_unlock();
}

static struct none_function *none_function_find_locked(const void *handle)
{
    struct none_function *at = *none_bucket(handle);
    while (at && at->handle != handle)
        at = at->next;
    return at;
}

struct none_function *none_function_find(const void *handle)
{
    if (!none_lock())
        return NULL;
    struct none_function *found = none_function_find_locked(handle);
    none_unlock();
    return found;
}

struct none_function *none_module_function(struct none_module *module, const char *name)
{
    if (!none_lock())
        return NULL;
    none_module_read(module);
    struct none_function *at = module->functions;
    const struct none_kernel *kernel = module->kernels;
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (!at && kernel && (at = calloc(1, sizeof *at))) {
        *at = (struct none_function){module->functions, at, module, kernel->name, 0};
        module->functions = at;
        none_function_add_locked(module, at, kernel->name);
    }
    none_unlock();
    return at;
}

size_t none_module_functions(struct none_module *module, struct none_function **out, size_t room)
{
    size_t count = 0;
    if (!none_lock())
        return 0;
    none_module_read(module);
    const struct none_kernel *kernels = module->kernels;
    none_unlock();
    for (const struct none_kernel *at = kernels; at; at = at->next, count++)
        if (out && count < room)
            out[count] = none_module_function(module, at->name);
    return count;
}

void none_variable_register(struct none_module *module, const void *handle, const char *name,
                            size_t bytes)
{
    struct none_variable *variable = calloc(1, sizeof *variable);
    if (!variable)
        return;
    none_lock_anyhow();
    variable->module = module;
    variable->handle = handle;
    variable->name = name;
    variable->bytes = bytes;
    variable->next = variables;
    variables = variable;
    none_unlock();
}

static bool place_variable(struct none_variable *variable, void **address, size_t *bytes)
{
    void **place = variable ? &variable->address[none_device()] : NULL;
    if (!place || (!*place && none_alloc(place, variable->bytes, NONE_DEVICE, 0) != NONE_OK))
        return false;
    *address = *place;
    *bytes = variable->bytes;
    return true;
}

bool none_variable_find(const void *handle, void **address, size_t *bytes)
{
    struct none_variable *at = variables;
    while (at && at->handle != handle)
        at = at->next;
    return place_variable(at, address, bytes);
}

/* Of a loaded image the symbol table tells its bytes. */
static size_t symbol_bytes(const struct none_module *module, const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)module->elf;
    const Elf64_Shdr *sections =
        head ? (const Elf64_Shdr *)(const void *)(module->elf + head->e_shoff) : NULL;
    for (int i = 0; head && i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= head->e_shnum ||
            !lies_within(module, sections[i].sh_offset, sections[i].sh_size))
            continue;
        const Elf64_Sym *symbols =
            (const Elf64_Sym *)(const void *)(module->elf + sections[i].sh_offset);
        const Elf64_Shdr *names = &sections[sections[i].sh_link];
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            if (symbols[k].st_name < names->sh_size &&
                strcmp(module->elf + names->sh_offset + symbols[k].st_name, name) == 0)
                return (size_t)symbols[k].st_size;
    }
    return 0;
}

bool none_module_variable(struct none_module *module, const char *name, void **address,
                          size_t *bytes)
{
    struct none_variable *at = variables;
    while (at && (at->module != module || strcmp(at->name, name) != 0))
        at = at->next;
    if (!at) {
        const size_t size = symbol_bytes(module, name);
        char *copy = size ? strdup(name) : NULL;
        if (!copy)
            return false;
        none_variable_register(module, copy, copy, size);
        return none_variable_find(copy, address, bytes);
    }
    return place_variable(at, address, bytes);
}

/* ---- what a kernel is like --------------------------------------------------------------------------- */

static const struct none_kernel *kernel_of_locked(struct none_function *function)
{
    if (!function->module)
        return NULL;
    none_module_read(function->module);
    const struct none_kernel *kernel = function->module->kernels;
    while (kernel && strcmp(kernel->name, function->name) != 0)
        kernel = kernel->next;
    return kernel;
}

bool none_parameter(struct none_function *function, size_t index, size_t *offset, size_t *bytes)
{
    if (!none_lock())
        return false;
    const struct none_kernel *kernel = kernel_of_locked(function);
    const bool known = kernel && index < kernel->count && kernel->parameters[index].known;
    if (known) {
        *offset = kernel->parameters[index].offset;
        *bytes = kernel->parameters[index].bytes;
    }
    none_unlock();
    return known;
}

struct none_numbers none_function_numbers(struct none_function *function)
{
    struct none_numbers numbers = {.registers = 32, .most_threads = 1024};
    if (!none_lock())
        return numbers;
    const struct none_kernel *kernel = kernel_of_locked(function);
    if (kernel)
        numbers = kernel->numbers;
    none_unlock();
    return numbers;
}

int none_blocks(struct none_function *function, int threads, size_t shared)
{
    enum { REGISTERS = 65536, THREADS = 2048, BLOCKS = 32, RESERVED = 1024, WARP = 32 };
    const struct none_numbers numbers = none_function_numbers(function);
    const int warps = (threads + WARP - 1) / WARP;
    const int of_warp = (numbers.registers + 7) / 8 * 8 * WARP;
    const int by_registers = REGISTERS / of_warp / warps;
    const int by_shared = (int)((size_t)none_model()->shared_of_multiprocessor /
                                (shared + (size_t)numbers.shared + RESERVED));
    int blocks = THREADS / (warps * WARP);
    blocks = blocks < by_registers ? blocks : by_registers;
    blocks = blocks < by_shared ? blocks : by_shared;
    return blocks < BLOCKS ? blocks : BLOCKS;
}
