/*
 * graphviz.c - see graphviz.h.
 *
 * One Graphviz context serves the whole process and is never freed: its text plugin remembers the
 * last font by a pointer into the context (2.43), so that a second context would read freed memory.
 * This is the one variable of the rooms that outlives its caller; like libgvc, it knows one thread.
 */
#include "trace/graphviz.h"

#include <stdlib.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#include <gvc.h>
#pragma GCC diagnostic pop

/* What cgraph or libgvc complained about last, on one line. */
static enum status library_error(const char *engine, const char *format, struct diag *diag)
{
    char *said = aglasterr();
    for (char *c = said; c && *c; c++)
        if (*c == '\n')
            *c = c[1] ? ' ' : '\0';
    enum status status = diag_error(diag, STATUS_SYSTEM, "Graphviz (%s, %s) failed: %s", engine,
                                    format, said ? said : "no reason given");
    free(said);
    return status;
}

static enum status render(GVC_t *context, graph_t *graph, const char *engine, const char *format,
                          char **out_data, size_t *out_bytes, struct diag *diag)
{
    char *data = NULL;
    unsigned bytes = 0;
    if (gvLayout(context, graph, engine) != 0)
        return library_error(engine, format, diag);
    int failed = gvRenderData(context, graph, format, &data, &bytes);
    (void)gvFreeLayout(context, graph); /* never fails */
    if (failed || !data || !bytes) {
        gvFreeRenderData(data);
        return library_error(engine, format, diag);
    }
    *out_data = data;
    *out_bytes = bytes;
    return STATUS_OK;
}

/* The context, made when first needed; NULL when memory is exhausted. */
static GVC_t *get_context(void)
{
    static GVC_t *context;
    if (!context)
        context = gvContext();
    return context;
}

enum status graphviz_render(struct Agraph_s *graph, const char *engine, const char *format,
                            char **out_data, size_t *out_bytes, struct diag *diag)
{
    agerrlevel_t level = agseterr(AGMAX); /* keep messages for aglasterr instead of printing them */
    GVC_t *context = get_context();
    enum status status = context ? render(context, graph, engine, format, out_data, out_bytes, diag)
                                 : diag_no_memory(diag);
    (void)agseterr(level);
    return status;
}

void graphviz_free(char *data)
{
    gvFreeRenderData(data);
}
