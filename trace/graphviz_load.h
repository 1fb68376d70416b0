/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphviz_load.h - Graphviz's libraries, loaded when the first picture is drawn.
 *
 * libgvc and its plugins take longer to load than most plans take to verify, and only
 * pictures need them. So they are no dependency of the programs: they are opened by the name the
 * linker would have used, and their functions are called through a table.
 *
 * Thread-compatible, like libgvc itself. A loaded library stays loaded.
 */
#ifndef SWSIM_GRAPHVIZ_LOAD_H
#define SWSIM_GRAPHVIZ_LOAD_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#include <cgraph.h>
#pragma GCC diagnostic pop

#include "base/diag.h"
#include "base/status.h"

#define CGRAPH_FUNCTION_LIST(X)                                                                    \
    X(agattr)                                                                                      \
    X(agclose)                                                                                     \
    X(agedge)                                                                                      \
    X(agnode)                                                                                      \
    X(agopen)                                                                                      \
    X(agsafeset)                                                                                   \
    X(agseterrf)                                                                                   \
    X(agsubg)                                                                                      \
    X(agwrite)

/* Of gvc.h, which claims names such as `box` and is therefore not included here. */
struct GVC_s;
#define GVC_FUNCTION_LIST(X)                                                                       \
    X(gvContext, struct GVC_s *, void)                                                             \
    X(gvFreeLayout, int, struct GVC_s *, Agraph_t *)                                               \
    X(gvFreeRenderData, void, char *)                                                              \
    X(gvLayout, int, struct GVC_s *, Agraph_t *, const char *)                                     \
    X(gvRenderData, int, struct GVC_s *, Agraph_t *, const char *, char **, unsigned *)

/* The functions under their own names, and the one variable that is needed. */
struct graphviz {
#define X(name) __typeof__(name) *name;
    CGRAPH_FUNCTION_LIST(X)
#undef X
#define X(name, result, ...) result (*name)(__VA_ARGS__);
    GVC_FUNCTION_LIST(X)
#undef X
    const Agdesc_t *Agdirected;
};

/* STATUS_SYSTEM where the libraries are not there or too old; *out is static. Once it has succeeded it
   cannot fail any more, and needs no diag. */
enum status graphviz_load(const struct graphviz **out, struct diag *diag);

#endif
