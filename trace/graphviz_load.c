/* SPDX-License-Identifier: Apache-2.0 */
/* graphviz_load.c - see graphviz_load.h. */
#include "graphviz_load.h"

#include "base/dynamic_library.h"
#include "base/system_words.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#include <gvc.h>
#pragma GCC diagnostic pop

#define X(name, result, ...)                                                                       \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), result(__VA_ARGS__)),            \
                   #name " is not what gvc.h says");
GVC_FUNCTION_LIST(X)
#undef X

/* configure has found the name of the library whose headers were compiled in. */
static const char soname[] = GRAPHVIZ_SONAME;

DYNAMIC_LIBRARY("graphviz", "draw pictures", "recommended", GRAPHVIZ_SONAME);

enum status graphviz_load(const struct graphviz **out, struct diag *diag)
{
    static struct graphviz loaded; /* outlives its caller, like the context in graphviz.c */
    if (!loaded.agopen) {
        void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return diag_error(diag, STATUS_SYSTEM,
                              "pictures need Graphviz's libraries, which cannot be loaded: %s",
                              system_loader_words());
        struct graphviz found;
        const char *missing = NULL;
#define X(name, ...)                                                                               \
    if (!dynamic_symbol(library, #name, &found.name))                                              \
        missing = #name;
        CGRAPH_FUNCTION_LIST(X)
        GVC_FUNCTION_LIST(X)
        X(Agdirected)
#undef X
        if (missing) {
            (void)dlclose(library);
            return diag_error(diag, STATUS_SYSTEM, "the Graphviz found, %s, has no %s", soname,
                              missing);
        }
        loaded = found;
    }
    *out = &loaded;
    return STATUS_OK;
}
