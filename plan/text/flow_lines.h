/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow_lines.h - the lines of a plan that our own reader turns into nodes, because libyaml is slow on millions of them.
 *
 *     line  := spaces "- " map "\n"
 *     map   := "{" key ": " value (", " key ": " value)* "}"     key := [A-Za-z_][A-Za-z0-9_]*
 *     list  := "[" value (", " value)* "]"
 *     value := map | list | text without quotes, of printable ASCII that means nothing to YAML
 *
 * Such a line is one item of a block list, and YAML reads it as this reader does. Whether it stands in a block list,
 * and not in a text of several lines, only libyaml can tell: it reads a file in which FLOW_PLACEHOLDER, an item at the
 * same column, stands for all lines of a run. Where it finds these items, it would have found the lines.
 */
#ifndef SWSIM_FLOW_LINES_H
#define SWSIM_FLOW_LINES_H

#include "text_internal.h"

enum { FLOW_BYTES = 1000, FLOW_NODES = 128, FLOW_DEPTH = 4 };
#define FLOW_PLACEHOLDER "lines"

/* A line as nodes; nodes[0] is the map. */
struct flow_line {
    struct node nodes[FLOW_NODES];
    char text[FLOW_BYTES + 1];
    size_t count, indent;
    size_t bytes; /* with the newline */
};

/* Read the line `number` of the file, which begins at `text`; the file ends at `end`. false: it is none of these. */
bool flow_line_read(const char *text, const char *end, uint32_t number, struct flow_line *out);

/* Lines one after the other at one column. */
struct flow_run {
    size_t start, end; /* bytes of the file */
    size_t lines, indent;
    uint32_t line;      /* of the first, from 1 */
    uint32_t rest_line; /* of the placeholder in the rest, from 0 */
};

struct flow_runs {
    struct flow_run *items;
    size_t count;
    char *rest; /* the file with placeholders */
    size_t rest_length;
};

/* The runs of a text that ends with a NUL, in `scratch`; false where memory ended. */
bool flow_runs_find(const char *text, size_t length, struct arena *scratch, struct flow_runs *out);

#endif
