/* SPDX-License-Identifier: Apache-2.0 */
/* listed.c - see listed.h. */
#include "listed.h"

#include <stdio.h>

#include "comms.h"
#include "tensors.h"
#include "base/assert_index.h"

static struct action action_of(const struct listed_action *listed)
{
    return (struct action){
        .kind = listed->kind, .stage = listed->stage, .microbatch = listed->microbatch};
}

const char *listed_name(const struct listed_action *listed, char *buf, size_t cap)
{
    struct action action = action_of(listed);
    if (listed->kind != ACTION_IDLE)
        return comms_action_name(&action, buf, cap);
    snprintf(buf, cap, "row %d", listed->row);
    return buf;
}

const char *listed_place(const struct listed_action *listed, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (listed->column > 0)
        snprintf(buf, cap, " (row %d, column %d)", listed->row,
                 listed->in_file > 0 ? listed->in_file : listed->column);
    return buf;
}

const char *listed_partner(const struct listed_action *listed, char *buf, size_t cap)
{
    static const enum action_kind others[ACTION_IDLE] = {[ACTION_SEND_F] = ACTION_RECV_F,
                                                         [ACTION_RECV_F] = ACTION_SEND_F,
                                                         [ACTION_SEND_B] = ACTION_RECV_B,
                                                         [ACTION_RECV_B] = ACTION_SEND_B};
    struct action action = action_of(listed);
    action.stage = comms_partner(&action);
    action.kind = others[action.kind];
    return comms_action_name(&action, buf, cap);
}

static bool reads(const struct listed_action *listed, const struct tensor *tensor)
{
    struct tensor_use uses[ACTION_MOST_USES];
    struct action action = action_of(listed);
    int count = action_uses(&action, 0, tensor->stage + 2, ALL_TENSORS, uses);
    for (int i = 0; i < count; i++)
        if (!uses[i].write && uses[i].tensor.kind == tensor->kind &&
            uses[i].tensor.stage == tensor->stage &&
            uses[i].tensor.microbatch == tensor->microbatch)
            return true;
    return false;
}

const struct listed_action *listed_reader(const struct plan *lowered, size_t first,
                                          const struct tensor *tensor)
{
    ASSERT_INDEX(first, lowered->listed_count);
    const struct listed_action *listed = &lowered->listed[first];
    for (size_t i = first; i < lowered->listed_count && lowered->listed[i].row == listed->row &&
                           lowered->listed[i].column == listed->column;
         i++)
        if (reads(&lowered->listed[i], tensor))
            return &lowered->listed[i];
    return listed;
}

static bool provides(const struct action *action, const struct tensor *tensor)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = action_uses(action, 0, tensor->stage + 1, ALL_TENSORS, uses);
    bool found = false;
    for (int i = 0; i < count; i++)
        found |= uses[i].write && uses[i].tensor.kind == tensor->kind &&
                 uses[i].tensor.stage == tensor->stage;
    return found;
}

/* How well it fits the lists: whether its stage is on the row, and an action of its kind. */
static int fitness(const struct plan *lowered, const struct action *action, int row)
{
    bool here = false, used = false;
    for (size_t i = 0; i < lowered->listed_count; i++) {
        const struct listed_action *listed = &lowered->listed[i];
        here |= listed->row == row && listed->stage == action->stage && listed->kind != ACTION_IDLE;
        used |= listed->kind == action->kind;
    }
    return 2 * here + used;
}

const char *listed_provider(const struct plan *lowered, const struct tensor *tensor, int row,
                            char *buf, size_t cap)
{
    struct action best = {.kind = ACTION_IDLE};
    int best_fitness = -1;
    for (int kind = 0; kind < ACTION_IDLE; kind++)
        for (int stage = tensor->stage - 1; stage <= tensor->stage + 1; stage++) {
            struct action action = {
                .kind = (enum action_kind)kind, .stage = stage, .microbatch = tensor->microbatch};
            int fit = provides(&action, tensor) ? fitness(lowered, &action, row) : -1;
            if (fit > best_fitness) {
                best_fitness = fit;
                best = action;
            }
        }
    return comms_action_name(&best, buf, cap);
}
