/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_names.c - see rank_internal.h: the names of operations and the tags of messages.
 *
 * A schedule has four of them for each stage and microbatch. The receiver of the operations gets each text once, and a number
 * afterwards, which stands at the stage and microbatch: no text is looked up.
 */
#include <string.h>

#include "base/integers.h"
#include "rank_internal.h"

/* "F3@2", for the third microbatch arriving at stage 2. */
enum { TAG_TEXT = 2 * INTEGERS_TEXT + 3 + sizeof ".meta" };

static const char *print_tag(char *text, const struct action *message, bool metadata)
{
    char *end = text;
    *end++ = message_is_forward(message) ? 'F' : 'B';
    end = integers_print(end, message->microbatch);
    *end++ = '@';
    end = integers_print(end, message_arrives_at(message));
    strcpy(end, metadata ? ".meta" : "");
    return text;
}

/* A number + 1 for each stage and microbatch; NULL: out of memory. */
static int *number_cell(struct lowering *lowering, int **table, int stage, int microbatch)
{
    size_t microbatches = (size_t)lowering->map.microbatches + 1;
    if (!*table)
        *table = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->map.stages * microbatches, int);
    return *table ? &(*table)[(size_t)stage * microbatches + (size_t)(microbatch + 1)] : NULL;
}

/* The number of a text that has no cell of its own. */
static int *number_other(struct lowering *lowering, const char *text)
{
    struct rank_names *names = &lowering->names;
    int index = names_intern(&names->others, &lowering->scratch, text);
    size_t count = names->other_count;
    if (index < 0 || !arena_grow(&lowering->scratch, (void **)&names->other_numbers, count,
                                 &names->other_cap, sizeof *names->other_numbers))
        return NULL;
    if ((size_t)index == count)
        names->other_numbers[names->other_count++] = 0;
    return &names->other_numbers[index];
}

/* The number of a text that is handed on if it has none yet. */
static bool hand_on(struct lowering *lowering, int *number, const char *text)
{
    const struct ops_sink *sink = &lowering->sink;
    if (number && !*number)
        *number = sink->name(sink->arg, text) + 1;
    return number && *number > 0;
}

/* By stage and microbatch; composites and collectives of groups are few. */
static int *number_of(struct lowering *lowering, const struct rank_step *step)
{
    const struct action *action = step->action;
    bool simple = step->place == STEP_ALONE && action->kind != ACTION_OVERLAP_F_B &&
                  action->kind != ACTION_REDUCE_EMBEDDING;
    if (simple)
        return number_cell(lowering, &lowering->names.actions[action->kind], action->stage,
                           action->microbatch);
    const char *text = groups_step_name(lowering, step);
    return text ? number_other(lowering, text) : NULL;
}

bool names_op(struct lowering *lowering, struct host_op *op, const struct rank_step *step)
{
    struct ops_sink *sink = &lowering->sink;
    int *number = sink->take && sink->name ? number_of(lowering, step) : NULL;
    op->name = "";
    if (!sink->take)
        return true;
    if (sink->name && !number)
        return false;
    if (!number || !*number)
        op->name = groups_step_name(lowering, step);
    if (!op->name || (number && !hand_on(lowering, number, op->name)))
        return false;
    op->numbered = number ? *number : 0;
    return true;
}

bool names_word(struct lowering *lowering, struct host_op *op, const char *word)
{
    op->name = word;
    if (!lowering->sink.take || !lowering->sink.name)
        return true;
    int *number = number_other(lowering, word);
    if (!hand_on(lowering, number, word))
        return false;
    op->numbered = *number;
    return true;
}

bool names_part(struct lowering *lowering, struct p2p_part *part, const struct rank_step *step)
{
    struct ops_sink *sink = &lowering->sink;
    part->tag = "";
    if (!sink->take)
        return true;
    part->tag = groups_step_name(lowering, step);
    if (!part->tag || !sink->name)
        return part->tag != NULL;
    int *number = number_other(lowering, part->tag);
    if (!hand_on(lowering, number, part->tag))
        return false;
    part->numbered = *number;
    return true;
}

bool names_message(struct lowering *lowering, struct p2p_part *part, const struct action *message)
{
    char text[TAG_TEXT];
    struct ops_sink *sink = &lowering->sink;
    part->tag = "";
    if (!sink->take)
        return true;
    if (!sink->name) {
        part->tag = arena_strdup(sink->arena, print_tag(text, message, part->metadata));
        return part->tag != NULL;
    }
    int **table = &lowering->names.tags[part->metadata][message_is_forward(message)];
    int *number = number_cell(lowering, table, message_arrives_at(message), message->microbatch);
    if (!hand_on(lowering, number,
                 number && *number ? "" : print_tag(text, message, part->metadata)))
        return false;
    part->numbered = *number;
    return true;
}
