/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c - see tensors.h. */
#include "tensors.h"

#include "plan/plan.h"
#include "base/list_key.h"

/* A use of the tensor of the stage `offset` behind the action's own. */
struct row_use {
    enum tensor_kind kind;
    int offset;
    bool write;
};

struct tensors_row {
    int count;
    struct row_use uses[ACTION_MOST_USES];
};

#define READ(name, offset)                                                                         \
    {                                                                                              \
        TENSOR_##name, offset, false                                                               \
    }
#define WRITE(name, offset)                                                                        \
    {                                                                                              \
        TENSOR_##name, offset, true                                                                \
    }

static const struct tensors_row table[ACTION_IDLE + 1] = {
    [ACTION_F] = {3, {READ(PARAMETERS, 0), READ(ACTIVATION, -1), WRITE(ACTIVATION, 0)}},
    [ACTION_I] = {6,
                  {READ(PARAMETERS, 0), READ(ACTIVATION, -1), READ(GRADIENT, 1),
                   READ(ACTIVATION, 0), WRITE(GRADIENT, 0), WRITE(LEFT, 0)}},
    [ACTION_W] = {6,
                  {READ(PARAMETERS, 0), READ(ACTIVATION, -1), READ(GRADIENT, 1), READ(LEFT, 0),
                   WRITE(WEIGHT_GRADIENT, 0), WRITE(WEIGHT, 0)}},
    [ACTION_B] = {8,
                  {READ(PARAMETERS, 0), READ(ACTIVATION, -1), READ(GRADIENT, 1),
                   READ(ACTIVATION, 0), WRITE(WEIGHT_GRADIENT, 0), WRITE(GRADIENT, 0),
                   WRITE(LEFT, 0), WRITE(WEIGHT, 0)}},
    [ACTION_UNSHARD] = {1, {WRITE(PARAMETERS, 0)}},
    [ACTION_REDUCE_GRAD] = {2, {READ(WEIGHT_GRADIENT, 0), WRITE(REDUCED, 0)}},
    [ACTION_SEND_F] = {2, {READ(ACTIVATION, 0), WRITE(SENT_F, 0)}},
    [ACTION_RECV_F] = {1, {WRITE(ACTIVATION, -1)}},
    [ACTION_SEND_B] = {2, {READ(GRADIENT, 0), WRITE(SENT_B, 0)}},
    [ACTION_RECV_B] = {1, {WRITE(GRADIENT, 1)}},
    [ACTION_WAIT_SEND_F] = {1, {READ(SENT_F, 0)}},
    [ACTION_WAIT_SEND_B] = {1, {READ(SENT_B, 0)}},
    [ACTION_WAIT_RECV_F] = {1, {READ(ACTIVATION, -1)}},
    [ACTION_WAIT_RECV_B] = {1, {READ(GRADIENT, 1)}},
    [ACTION_WAIT_REDUCE_GRAD] = {1, {READ(REDUCED, 0)}},
    [ACTION_REDUCE_EMBEDDING] = {2, {READ(WEIGHT_GRADIENT, 0), WRITE(WEIGHT_GRADIENT, 0)}},
};

bool tensor_has_microbatch(enum tensor_kind kind)
{
#define X(name, text, microbatch) microbatch,
    static const bool has[] = {TENSOR_LIST(X)};
#undef X
    return has[kind];
}

int action_uses(const struct action *action, int first, int end, unsigned kinds,
                struct tensor_use uses[ACTION_MOST_USES])
{
    const struct tensors_row *row = &table[action->kind];
    int count = 0;
    for (int i = 0; i < row->count; i++) {
        const struct row_use *use = &row->uses[i];
        int stage = action->stage + use->offset;
        if (kinds >> use->kind & 1 && stage >= first && stage < end)
            uses[count++] = (struct tensor_use){
                {use->kind, stage, tensor_has_microbatch(use->kind) ? action->microbatch : -1},
                use->write};
    }
    return count;
}

const char *tensor_text(enum tensor_kind kind)
{
    static const char *const texts[] = {TENSOR_LIST(LIST_KEY)};
    return texts[kind];
}
