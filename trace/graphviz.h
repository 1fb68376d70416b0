/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphviz.h - Graphviz's libraries, loaded when a picture is drawn: a graph in, the bytes of a picture out.
 *
 * libgvc and its plugins take longer to load than most plans take to verify, and only pictures need them. So they are no
 * dependency of the programs: they are opened by the name the linker would have used, and their functions are called
 * through a table. Its own file output ends the process when a disk is full, so files are written elsewhere.
 *
 * The process that opens them draws one picture and ends (apart.h): loaded libraries and Graphviz's context are never
 * freed. Its text plugin remembers the last font by a pointer into the context (2.43), so a second context would read freed
 * memory. Thread-compatible, like libgvc itself.
 *
 * Where a plugin cannot be loaded, an edge not be routed or a background not be read, Graphviz writes a message to standard
 * error and goes on without it, with a result of success. So every message is a failure; no picture of this project causes
 * one.
 */
#ifndef SWSIM_GRAPHVIZ_H
#define SWSIM_GRAPHVIZ_H

#include <stddef.h>

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
    X(agsubg)                                                                                      \
    X(agwrite)

/* Of gvc.h, which claims names such as `box` and is therefore not included here. */
struct GVC_s;
#define GVC_FUNCTION_LIST(X)                                                                       \
    X(gvContext, struct GVC_s *, void)                                                             \
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

/* STATUS_SYSTEM where the libraries are not there or too old. They stay loaded. */
enum status graphviz_load(struct graphviz *out, struct diag *diag);

/* Lay out `graph` with `engine` ("dot", "nop2") and draw it as `format` ("svg", "png"). Nobody frees *out_data. STATUS_SYSTEM
   where it fails; Graphviz's own words are then on standard error. */
enum status graphviz_render(const struct graphviz *gv, Agraph_t *graph, const char *engine,
                            const char *format, char **out_data, size_t *out_bytes,
                            struct diag *diag);

/* The first message of Graphviz, without its end of line, in what was written to standard error, cut there; NULL: there is
   none. */
const char *graphviz_message(char *said);

#endif
