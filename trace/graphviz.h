/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphviz.h - libgvc kept apart: a graph in, the bytes of a picture out.
 *
 * libgvc's headers claim names such as `path` and `box`, and its own file output ends the process
 * when a disk is full; here both stay behind one function.
 */
#ifndef SWSIM_GRAPHVIZ_H
#define SWSIM_GRAPHVIZ_H

#include <stddef.h>

#include "base/diag.h"
#include "base/status.h"

struct Agraph_s; /* cgraph's Agraph_t */

/* Lay out `graph` with `engine` ("dot", "nop2") and draw it as `format` ("svg", "png"). On success
   the caller frees *out_data with graphviz_free. STATUS_SYSTEM with Graphviz's own words where a
   plugin is missing, it fails, or it has anything to say. */
enum status graphviz_render(struct Agraph_s *graph, const char *engine, const char *format,
                            char **out_data, size_t *out_bytes, struct diag *diag);
void graphviz_free(char *data);

#endif
