/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphviz.c - see graphviz.h.
 *
 * One Graphviz context serves the whole process and is never freed: its text plugin remembers the
 * last font by a pointer into the context (2.43), so that a second context would read freed memory.
 * This is the one variable of the rooms that outlives its caller; like libgvc, it knows one thread.
 */
#include "graphviz.h"

#include <stdlib.h>

#include "graphviz_load.h"

/* The last message of cgraph or libgvc, on one line. */
static enum status library_error(const struct graphviz *gv, const char *engine, const char *format,
                                 struct diag *diag)
{
    char *said = gv->aglasterr();
    for (char *c = said; c && *c; c++)
        if (*c == '\n')
            *c = c[1] ? ' ' : '\0';
    enum status status = diag_error(diag, STATUS_SYSTEM, "Graphviz (%s, %s) failed: %s", engine,
                                    format, said ? said : "no reason given");
    free(said);
    return status;
}

static enum status render(const struct graphviz *gv, struct GVC_s *context, Agraph_t *graph,
                          const char *engine, const char *format, char **out_data,
                          size_t *out_bytes, struct diag *diag)
{
    char *data = NULL;
    unsigned bytes = 0;
    if (gv->gvLayout(context, graph, engine) != 0)
        return library_error(gv, engine, format, diag);
    int failed = gv->gvRenderData(context, graph, format, &data, &bytes);
    (void)gv->gvFreeLayout(context, graph); /* never fails */
    if (failed || !data || !bytes) {
        gv->gvFreeRenderData(data);
        return library_error(gv, engine, format, diag);
    }
    *out_data = data;
    *out_bytes = bytes;
    return STATUS_OK;
}

/* The context, made when first needed; NULL when memory is exhausted. */
static struct GVC_s *get_context(const struct graphviz *gv)
{
    static struct GVC_s *context;
    if (!context)
        context = gv->gvContext();
    return context;
}

enum status graphviz_render(struct Agraph_s *graph, const char *engine, const char *format,
                            char **out_data, size_t *out_bytes, struct diag *diag)
{
    const struct graphviz *gv;
    enum status loaded = graphviz_load(&gv, diag);
    if (loaded != STATUS_OK)
        return loaded;
    agerrlevel_t level =
        gv->agseterr(AGMAX); /* keep messages for aglasterr instead of printing them */
    struct GVC_s *context = get_context(gv);
    enum status status = context
                             ? render(gv, context, graph, engine, format, out_data, out_bytes, diag)
                             : diag_no_memory(diag);
    (void)gv->agseterr(level);
    return status;
}

void graphviz_free(char *data)
{
    const struct graphviz *gv;
    if (data && graphviz_load(&gv, NULL) == STATUS_OK) /* data comes from a loaded library */
        gv->gvFreeRenderData(data);
}
