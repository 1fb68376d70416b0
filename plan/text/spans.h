/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - a YAML or JSON text as a tree of nodes that know which bytes they are.
 *
 * Nodes live in an arena and point into the text. The parser of plans (text_internal.h) needs the meaning of a
 * text, edits of a text need its places.
 */
#ifndef SWSIM_SPANS_H
#define SWSIM_SPANS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct span_node {
    enum text_span_kind { SPAN_NODE_SCALAR, SPAN_NODE_LIST, SPAN_NODE_MAP } kind;
    bool flow;                /* collections: in brackets */
    bool plain;               /* scalars: without quotes */
    size_t begin, end;        /* bytes; of a block collection from its first to its last node */
    const char *value;        /* scalars: without quotes and escapes */
    struct span_node **items; /* of a map: key, value, key, value */
    size_t count;             /* of items */
};

/* The only document in `text`; NULL: it is none, has what plans have not (aliases), or memory is
   exhausted, which the arena then knows (`failed`). */
const struct span_node *spans_parse(const char *text, struct arena *arena);

/* The value of a key of a map; NULL: none. */
const struct span_node *spans_find(const struct span_node *map, const char *key);
/* True if both mean the same. The order of keys does not count. */
bool spans_equal(const struct span_node *a, const struct span_node *b);

#endif
