/* SPDX-License-Identifier: Apache-2.0 */
/* group_names.c - see group_names.h. */
#include "group_names.h"

#include <stdio.h>

#include "base/units.h"

const char *group_message_name(bool send, const char *tag, int peer, bool others, char *buf,
                               size_t cap)
{
    snprintf(buf, cap, "%s %s %s rank %d%s", send ? "send" : "receive", tag, send ? "to" : "from",
             peer, others ? " and others" : "");
    return buf;
}

const char *group_add_collective(struct arena *arena, const char *name, const struct p2p_part *part)
{
    const bool usual = part->collective == COLLECTIVE_ALL_REDUCE;
    char size[UNITS_TEXT] = "", root[24] = "";
    if (part->bytes)
        units_print_bytes(part->bytes, size);
    if (part->root >= 0)
        snprintf(root, sizeof root, " from %d", part->root);
    return arena_printf(arena, "%s%s%s%s%s%s%s%s%s%s", name, *name ? " + " : "", part->tag,
                        usual ? "" : " ", usual ? "" : collective_key(part->collective), root,
                        part->bytes ? " " : "", size, part->element ? " " : "",
                        part->element ? element_key(part->element) : "");
}
