/* SPDX-License-Identifier: Apache-2.0 */
/* graphviz.c - see graphviz.h. */
#include "graphviz.h"

#include <string.h>

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

enum status graphviz_load(struct graphviz *out, struct diag *diag)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return diag_error(diag, STATUS_SYSTEM,
                          "PNG, PDF and graphs of plans need Graphviz's libraries (SVG of runs and "
                          "schedules, HTML and JSON need none), which cannot be loaded: %s",
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
    if (missing)
        return diag_error(diag, STATUS_SYSTEM, "the Graphviz found, %s, has no %s", soname,
                          missing);
    *out = found;
    return STATUS_OK;
}

enum status graphviz_render(const struct graphviz *gv, Agraph_t *graph, const char *engine,
                            const char *format, char **out_data, size_t *out_bytes,
                            struct diag *diag)
{
    char *data = NULL;
    unsigned bytes = 0;
    struct GVC_s *context = gv->gvContext();
    if (!context)
        return diag_no_memory(diag);
    if (gv->gvLayout(context, graph, engine) != 0 ||
        gv->gvRenderData(context, graph, format, &data, &bytes) != 0 || !data || !bytes)
        return diag_error(diag, STATUS_SYSTEM, "Graphviz (%s, %s) failed", engine, format);
    *out_data = data;
    *out_bytes = bytes;
    return STATUS_OK;
}

const char *graphviz_message(char *said)
{
    static const char *const levels[] = {"Warning: ", "Error: "};
    for (char *line = said, *end; *line; line = end + strspn(end, "\r\n")) {
        end = line + strcspn(line, "\r\n");
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            if (strncmp(line, levels[i], strlen(levels[i])) == 0) {
                *end = '\0';
                return line;
            }
    }
    return NULL;
}
