/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphviz.c - see graphviz.h.
 *
 * One Graphviz context serves the whole process and is never freed: its text plugin remembers the
 * last font by a pointer into the context (2.43), so that a second context would read freed memory.
 * Context and messages are the variables of the rooms that outlive their caller: Graphviz calls `hear` without a
 * context. Like libgvc, both know one thread.
 *
 * Where a plugin cannot be loaded, an edge not be routed or a background not be read, Graphviz gives a message and goes
 * on without it, with a result of success. So every message is a failure; no picture of this project causes one.
 */
#include "graphviz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphviz_load.h"

enum { MAX_HEARD = 400 };
static char heard[MAX_HEARD]; /* the messages of cgraph and libgvc, on one line; empty: none */

/* A piece of a message: "Warning", ": ", "Could not load ...\n". */
static int hear(char *text)
{
    size_t length = strlen(heard);
    snprintf(heard + length, sizeof heard - length, "%s", text);
    for (char *c = heard + length; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return 0;
}

static void strip_blanks(char *text)
{
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
        text[end - 1] = '\0';
}

static enum status check(bool done, const char *engine, const char *format, struct diag *diag)
{
    if (done && !*heard)
        return STATUS_OK;
    strip_blanks(heard);
    return diag_error(diag, STATUS_SYSTEM, "Graphviz (%s, %s) failed: %s", engine, format,
                      *heard ? heard : "no reason given");
}

static enum status render(const struct graphviz *gv, struct GVC_s *context, Agraph_t *graph,
                          const char *engine, const char *format, char **out_data,
                          size_t *out_bytes, struct diag *diag)
{
    char *data = NULL;
    unsigned bytes = 0;
    enum status status = check(gv->gvLayout(context, graph, engine) == 0, engine, format, diag);
    if (status != STATUS_OK)
        return status;
    bool failed = gv->gvRenderData(context, graph, format, &data, &bytes) != 0;
    (void)gv->gvFreeLayout(context, graph); /* never fails */
    status = check(!failed && data && bytes, engine, format, diag);
    if (status != STATUS_OK) {
        gv->gvFreeRenderData(data);
        return status;
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
    heard[0] = '\0';
    (void)gv->agseterrf(hear);
    struct GVC_s *context = get_context(gv);
    enum status status = context
                             ? render(gv, context, graph, engine, format, out_data, out_bytes, diag)
                             : diag_no_memory(diag);
    (void)gv->agseterrf(NULL);
    return status;
}

void graphviz_free(char *data)
{
    const struct graphviz *gv;
    if (data && graphviz_load(&gv, NULL) == STATUS_OK) /* data comes from a loaded library */
        gv->gvFreeRenderData(data);
}
