/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dynamic_library.h - libraries that are opened at run time: their note for packagers, and their symbols.
 *
 * A program does not name such a library as needed, so a packager's tools cannot see it there. They read the section
 * .note.dlopen instead: https://uapi-group.org/specifications/specs/elf_dlopen_metadata/.
 */
#ifndef SWSIM_DYNAMIC_LIBRARY_H
#define SWSIM_DYNAMIC_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { DYNAMIC_LIBRARY_NOTE = 0x407c0c0a };

/* At file scope: this file opens the library `soname` (a literal). priority: "required", "recommended" or
   "suggested"; feature and description say what for. */
#define DYNAMIC_LIBRARY(feature, description, priority, soname)                                    \
    DYNAMIC_LIBRARY_TEXT("[{\"feature\":\"" feature "\",\"description\":\"" description            \
                         "\",\"priority\":\"" priority "\",\"soname\":[\"" soname "\"]}]")

#define DYNAMIC_LIBRARY_TEXT(text)                                                                 \
    __attribute__((used, section(".note.dlopen"))) _Alignas(4) static const struct {               \
        uint32_t name_bytes, text_bytes, type;                                                     \
        char name[sizeof "FDO"];                                                                   \
        _Alignas(4) char json[sizeof(text)];                                                       \
    } dynamic_library_note = {sizeof "FDO", sizeof(text), DYNAMIC_LIBRARY_NOTE, "FDO", text}

/* *pointer, a pointer to a function, becomes that of the symbol; false: the library has none. POSIX lets a function's
   address travel through void *; the language does not. */
static inline bool dynamic_symbol(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);
    memcpy(pointer, &address, sizeof address);
    return address;
}

#endif
