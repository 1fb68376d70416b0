/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - see messages.h. */
#include "messages.h"

#include <stdlib.h>

#include "plan/schedules/comms.h"
#include "plan/schedules/listed.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* A part, and its operation. */
struct messages_place {
    const struct part *part;
    const struct op *op;
};

static int messages_compare_places(const void *a, const void *b)
{
    const struct part *x = ((const struct messages_place *)a)->part;
    const struct part *y = ((const struct messages_place *)b)->part;
    return compare_then(
        compare_int(x->channel, y->channel),
        compare_then(compare_int(x->tag, y->tag),
                     compare_then(compare_int(x->send, y->send), (x > y) - (x < y))));
}

/* For each channel, whether it has parts in a branch. How many of them come then depends on the run. NULL: no
   memory. */
static bool *find_uncounted(const struct program *p)
{
    bool *uncounted = calloc((size_t)p->channel_count + 1, sizeof *uncounted);
    for (size_t b = 0; uncounted && p->has_branches && b < p->body_count; b++)
        for (int i = 0, end = 0; i < p->bodies[b].count;
             i++) { /* `end`: of the branches around i */
            const struct op *op = &p->ops[p->bodies[b].first + i];
            for (int k = 0; i < end && k < op->part_count; k++)
                uncounted[p->parts[op->part_first + k].channel] = true;
            end = max_int(end, i + op->otherwise);
        }
    return uncounted;
}

static struct messages_place *list_places(const struct program *p, const bool *uncounted,
                                          size_t *count)
{
    struct messages_place *places = calloc(p->part_count + 1, sizeof *places);
    *count = 0;
    for (size_t i = 0; places && i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].part_count; k++) {
            const struct part *part = &p->parts[p->ops[i].part_first + k];
            if (!uncounted[part->channel])
                places[(*count)++] = (struct messages_place){part, &p->ops[i]};
        }
    if (places)
        SORT(places, *count, messages_compare_places);
    return places;
}

/* The last of those of one channel and tag that are too many; NULL: none. */
static const struct messages_place *find_excess(const struct messages_place *first, size_t count)
{
    size_t sends = 0;
    for (size_t i = 0; i < count; i++)
        sends += first[i].part->send;
    if (2 * sends == count)
        return NULL;
    return 2 * sends > count ? &first[count - 1] : &first[count - sends - 1];
}

static bool messages_comes_first(const struct messages_place *a, const struct messages_place *b)
{
    const struct mark *x = &a->op->mark, *y = &b->op->mark;
    return x->line != y->line ? x->line < y->line : x->col < y->col;
}

/* Find out whether each tag has one channel, with as many sends as receives. Almost all plans are so, and need no
   sorting. */
static enum status are_paired(const struct program *p, bool *paired, struct diag *diag)
{
    struct messages_ends {
        int channel, more_sends;
    } *ends = calloc(p->names.count + 1, sizeof *ends);
    if (!ends)
        return diag_no_memory(diag);
    *paired = true;
    for (size_t i = 0; i < p->part_count; i++) {
        const struct part *part = &p->parts[i];
        struct messages_ends *end = &ends[part->tag];
        *paired &= end->channel == 0 || end->channel == part->channel + 1;
        end->channel = part->channel + 1;
        end->more_sends += part->send ? 1 : -1;
    }
    for (size_t tag = 0; *paired && tag < p->names.count; tag++)
        *paired = ends[tag].more_sends == 0;
    free(ends);
    return STATUS_OK;
}

enum status messages_find_lone(const struct program *p, int *lone, struct diag *diag)
{
    size_t count;
    bool paired = true;
    *lone = -1;
    enum status status = p->part_count ? are_paired(p, &paired, diag) : STATUS_OK;
    if (status != STATUS_OK || paired)
        return status;
    bool *uncounted = find_uncounted(p);
    struct messages_place *places = uncounted ? list_places(p, uncounted, &count) : NULL;
    free(uncounted);
    if (!places)
        return diag_no_memory(diag);
    const struct messages_place *best = NULL;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && places[end].part->channel == places[first].part->channel &&
                          places[end].part->tag == places[first].part->tag;)
            end++;
        const struct messages_place *excess = find_excess(&places[first], end - first);
        if (excess && (!best || messages_comes_first(excess, best)))
            best = excess;
    }
    if (best)
        *lone = (int)(best->part - p->parts);
    free(places);
    return STATUS_OK;
}

/* ---- in words -------------------------------------------------------------------------------- */

static const struct op *op_of(const struct program *p, int part)
{
    for (size_t i = 0; i < p->op_count; i++)
        if (part >= p->ops[i].part_first && part < p->ops[i].part_first + p->ops[i].part_count)
            return &p->ops[i];
    return NULL;
}

static const char *messages_position(const struct program *p, const struct op *op,
                                     struct arena *arena)
{
    if (op->mark.line == 0)
        return "";
    return arena_printf(arena, " (%s:%u:%u)", p->plan->file, (unsigned)op->mark.line,
                        (unsigned)op->mark.col);
}

/* An earlier part with the same end and tag: the message is there twice. NULL: none. */
static const struct part *find_first(const struct program *p, int lone)
{
    ASSERT_INDEX(lone, p->part_count);
    const struct part *part = &p->parts[lone];
    for (int i = 0; i < lone; i++)
        if (p->parts[i].channel == part->channel && p->parts[i].tag == part->tag &&
            p->parts[i].send == part->send)
            return &p->parts[i];
    return NULL;
}

/* Actions as the lists have them, with row and column. */
static const char *tell_listed(const struct program *p, int lone, struct arena *arena)
{
    ASSERT_INDEX(lone, p->part_count);
    const struct listed_action *all = p->plan->listed, *listed = &all[p->parts[lone].listed - 1];
    const struct part *first = find_first(p, lone);
    char own[ACTION_NAME], other[ACTION_NAME], at[LISTED_PLACE], before[LISTED_PLACE];
    listed_name(listed, own, sizeof own);
    listed_place(listed, at, sizeof at);
    if (first && first->listed)
        return arena_printf(arena, "%s%s is there a second time, after the first%s", own, at,
                            listed_place(&all[first->listed - 1], before, sizeof before));
    return arena_printf(arena, "%s%s has no %s", own, at,
                        listed_partner(listed, other, sizeof other));
}

const char *messages_tell(const struct program *p, int lone, struct arena *arena)
{
    ASSERT_INDEX(lone, p->part_count);
    const struct part *part = &p->parts[lone];
    const struct channel *channel = &p->channels[part->channel];
    if (part->listed)
        return tell_listed(p, lone, arena);
    const char *tag = p->names.items[part->tag], *at = messages_position(p, op_of(p, lone), arena);
    if (!at)
        return NULL;
    return arena_printf(arena, "rank %d %s %s%s %s rank %d on communicator %s, which has no %s",
                        part->send ? channel->from : channel->to, part->send ? "sends" : "receives",
                        tag, at, part->send ? "to" : "from",
                        part->send ? channel->to : channel->from, p->comms[channel->comm].name,
                        part->send ? "receive for it" : "send for it");
}
