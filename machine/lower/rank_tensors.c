/* SPDX-License-Identifier: Apache-2.0 */
/* rank_tensors.c - see rank_internal.h: what actions read and write, by the table of tensors.h. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/integers.h"
#include "plan/schedules/tensors.h"

#include "rank_internal.h"
#include "rank_programs.h"

/* ---- names and tags -------------------------------------------------------------------------- */

/*
 * The names of operations and the tags of messages.
 *
 * A schedule has four of them for each stage and microbatch. The receiver of the operations gets each text once, and a number
 * afterwards, which stands at the stage and microbatch: no text is looked up.
 */

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
static int *number_cell(struct rank_lowering *lowering, int **table, int stage, int microbatch)
{
    size_t microbatches = (size_t)lowering->map.microbatches + 1;
    if (!*table)
        *table = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->map.stages * microbatches, int);
    return *table ? &(*table)[(size_t)stage * microbatches + (size_t)(microbatch + 1)] : NULL;
}

/* The number of a text that has no cell of its own. */
static int *number_other(struct rank_lowering *lowering, const char *text)
{
    struct rank_names *names = &lowering->names;
    int index = names_intern(&names->others, &lowering->scratch, text);
    size_t count = names->other_count;
    if (index < 0 || !ARENA_GROW(&lowering->scratch, names->other_numbers, count, names->other_cap))
        return NULL;
    if ((size_t)index == count)
        names->other_numbers[names->other_count++] = 0;
    return &names->other_numbers[index];
}

/* The number of a text that is handed on if it has none yet. */
static bool rank_tensors_hand_on(struct rank_lowering *lowering, int *number, const char *text)
{
    const struct ops_sink *sink = &lowering->sink;
    if (number && !*number)
        *number = sink->name(sink->arg, text) + 1;
    return number && *number > 0;
}

/* By stage and microbatch; composites and collectives of groups are few. */
static int *rank_tensors_number_of(struct rank_lowering *lowering, const struct rank_step *step)
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

bool names_op(struct rank_lowering *lowering, struct host_op *op, const struct rank_step *step)
{
    struct ops_sink *sink = &lowering->sink;
    int *number = sink->take && sink->name ? rank_tensors_number_of(lowering, step) : NULL;
    op->name = "";
    if (!sink->take)
        return true;
    if (sink->name && !number)
        return false;
    if (!number || !*number)
        op->name = groups_step_name(lowering, step);
    if (!op->name || (number && !rank_tensors_hand_on(lowering, number, op->name)))
        return false;
    op->numbered = number ? *number : 0;
    return true;
}

bool names_word(struct rank_lowering *lowering, struct host_op *op, const char *word)
{
    op->name = word;
    if (!lowering->sink.take || !lowering->sink.name)
        return true;
    int *number = number_other(lowering, word);
    if (!rank_tensors_hand_on(lowering, number, word))
        return false;
    op->numbered = *number;
    return true;
}

bool names_part(struct rank_lowering *lowering, struct p2p_part *part, const struct rank_step *step)
{
    struct ops_sink *sink = &lowering->sink;
    part->tag = "";
    if (!sink->take)
        return true;
    part->tag = groups_step_name(lowering, step);
    if (!part->tag || !sink->name)
        return part->tag != NULL;
    int *number = number_other(lowering, part->tag);
    if (!rank_tensors_hand_on(lowering, number, part->tag))
        return false;
    part->numbered = *number;
    return true;
}

bool names_message(struct rank_lowering *lowering, struct p2p_part *part,
                   const struct action *message)
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
    if (!rank_tensors_hand_on(lowering, number,
                              number && *number ? "" : print_tag(text, message, part->metadata)))
        return false;
    part->numbered = *number;
    return true;
}

static size_t tensor_cell(const struct rank_lowering *lowering, const struct tensor *tensor)
{
    if (tensor->microbatch < 0)
        return (size_t)tensor->stage;
    return (size_t)tensor->stage * (size_t)lowering->map.microbatches + (size_t)tensor->microbatch;
}

static struct tensor_table *table_of(struct rank_lowering *lowering, const struct tensor *tensor)
{
    bool made = comms_rank_of(&lowering->map, tensor->stage) == lowering->rank;
    return &lowering->tensors[made ? PLACE_MADE : PLACE_NEXT][tensor->kind];
}

/* The step that brought it last, index + 1. */
static uint32_t *latest_of(struct rank_lowering *lowering, const struct tensor *tensor)
{
    return &table_of(lowering, tensor)->latest[tensor_cell(lowering, tensor)];
}

static int rank_tensors_uses_of(const struct rank_lowering *lowering, const struct action *action,
                                unsigned kinds, struct tensor_use uses[ACTION_MOST_USES])
{
    return action_uses(action, comms_first_stage(&lowering->map, action->stage),
                       comms_end_stage(&lowering->map, action->stage), kinds, uses);
}

/* True if operations access it. Nothing that no action reads; the gradient of the model's input is dropped. */
static bool is_accessed(const struct rank_lowering *lowering, const struct tensor *tensor)
{
    switch (tensor->kind) {
    case TENSOR_ACTIVATION: return true;
    case TENSOR_GRADIENT: return tensor->stage > comms_first_stage(&lowering->map, tensor->stage);
    case TENSOR_LEFT: return lowering->kinds & 1u << ACTION_W;
    case TENSOR_PARAMETERS: return lowering->fsdp.stages[tensor->stage].gathered;
    case TENSOR_WEIGHT_GRADIENT: return lowering->fsdp.stages[tensor->stage].reduced;
    case TENSOR_SENT_F: return lowering->kinds & 1u << ACTION_WAIT_SEND_F;
    case TENSOR_SENT_B: return lowering->kinds & 1u << ACTION_WAIT_SEND_B;
    case TENSOR_REDUCED: return lowering->kinds & 1u << ACTION_WAIT_REDUCE_GRAD;
    case TENSOR_WEIGHT:
    case TENSOR_COUNT: break;
    }
    return false;
}

/* True if steps on one stream wait for it on another. */
static bool rank_tensors_is_awaited(const struct rank_lowering *lowering, enum tensor_kind kind)
{
    switch (kind) {
    case TENSOR_LEFT:
    case TENSOR_WEIGHT:
    case TENSOR_COUNT: return false;
    case TENSOR_SENT_F:
    case TENSOR_SENT_B:
    case TENSOR_REDUCED: return is_accessed(lowering, &(struct tensor){.kind = kind});
    case TENSOR_ACTIVATION:
    case TENSOR_GRADIENT:
    case TENSOR_PARAMETERS:
    case TENSOR_WEIGHT_GRADIENT: break;
    }
    return true;
}

/* The kinds of tensors that some action of the lists writes, or that some reads. */
static unsigned used_kinds(const struct rank_lowering *lowering, bool write)
{
    unsigned used = 0;
    for (int kind = 0; kind < ACTION_IDLE; kind++) {
        const struct action middle = {.kind = (enum action_kind)kind, .stage = 1};
        struct tensor_use uses[ACTION_MOST_USES];
        int count =
            lowering->kinds & 1u << kind ? action_uses(&middle, 0, 3, ALL_TENSORS, uses) : 0;
        for (int i = 0; i < count; i++)
            used |= uses[i].write == write ? 1u << uses[i].tensor.kind : 0;
    }
    return used;
}

/* Only what some action brings and some reads holds up a step. */
static void rank_tensors_find_kinds(struct rank_lowering *lowering)
{
    const unsigned both = used_kinds(lowering, true) & used_kinds(lowering, false);
    for (int kind = 0; kind < TENSOR_COUNT; kind++) {
        struct tensor tensor = {.kind = (enum tensor_kind)kind};
        if (rank_tensors_is_awaited(lowering, tensor.kind))
            lowering->awaited |= 1u << kind & both;
        for (; tensor.stage < lowering->map.stages; tensor.stage++)
            if (is_accessed(lowering, &tensor))
                lowering->accessed |= 1u << kind;
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Stages of one rank exchange no messages. */
static bool is_to_itself(const struct rank_lowering *lowering, const struct action *action)
{
    return comms_is_message(action) &&
           comms_rank_of(&lowering->map, comms_partner(action)) == lowering->rank;
}

static void note_provided(struct rank_lowering *lowering, const struct action *action,
                          uint8_t provided)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = rank_tensors_uses_of(lowering, action, ALL_TENSORS, uses);
    for (int i = 0; i < count; i++)
        if (uses[i].write && !is_to_itself(lowering, action))
            table_of(lowering, &uses[i].tensor)->provided[tensor_cell(lowering, &uses[i].tensor)] =
                provided;
}

static void note_list(struct rank_lowering *lowering, const struct rank_program *list,
                      uint8_t provided)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->actions[i], &parts);
        for (size_t k = 0; k < count; k++)
            note_provided(lowering, &parts[k], provided);
    }
}

static void note_all_provided(struct rank_lowering *lowering)
{
    for (lowering->rank = 0; lowering->rank < lowering->rank_count; lowering->rank++)
        note_list(lowering, &lowering->ranks[lowering->rank], 1);
}

enum { PROVIDED_NOW = 2 };

/* True if each accessed tensor that the action reads, or writes, has been made in this walk, or none of them. */
static bool are_all_made(struct rank_lowering *lowering, const struct action *action, bool write,
                         bool made)
{
    struct tensor_use uses[ACTION_MOST_USES];
    const int count = rank_tensors_uses_of(lowering, action, lowering->accessed, uses);
    bool all = true;
    if (is_to_itself(lowering, action))
        return true;
    for (int i = 0; i < count; i++) {
        if (uses[i].write != write || !is_accessed(lowering, &uses[i].tensor))
            continue;
        uint8_t *cell =
            &table_of(lowering, &uses[i].tensor)->provided[tensor_cell(lowering, &uses[i].tensor)];
        all &= ((*cell & PROVIDED_NOW) != 0) == made;
        if (write)
            *cell |= PROVIDED_NOW;
    }
    return all;
}

bool tensors_are_read(struct rank_lowering *lowering, const struct action *action)
{
    return are_all_made(lowering, action, false, true);
}

bool tensors_are_made(struct rank_lowering *lowering, const struct action *action)
{
    return are_all_made(lowering, action, true, false);
}

void tensors_turn(struct rank_lowering *lowering, const struct rank_program *list)
{
    const struct stage_map *map = &lowering->map;
    for (int s = map->lowest_of[lowering->rank]; s >= 0; s = map->next_of[s])
        fsdp_again(lowering, s);
    if (!lowering->tracked || lowering->list_count == lowering->rank_count)
        return;
    for (int i = 0; i < lowering->list_count; i++)
        if (lowering->lists[i].own == lowering->rank)
            note_list(lowering, lowering->lists[i].program, 0);
    note_list(lowering, list, 1);
}

static bool begin_table(struct rank_lowering *lowering, struct tensor_table *table,
                        enum tensor_kind kind)
{
    struct arena *scratch = &lowering->scratch;
    int microbatches = tensor_has_microbatch(kind) ? lowering->map.microbatches : 1;
    size_t cells = (size_t)lowering->map.stages * (size_t)microbatches + 1;
    if (lowering->awaited & 1u << kind && !(table->latest = ARENA_ARRAY(scratch, cells, uint32_t)))
        return false;
    if (!lowering->tracked)
        return true;
    table->buffers = ARENA_ARRAY(scratch, cells, int);
    table->provided = ARENA_ARRAY(scratch, cells, uint8_t);
    return table->buffers && table->provided;
}

/* Mostly an action makes one at most. Room that is not used is not touched. */
static bool reserve_buffers(struct rank_lowering *lowering, size_t actions)
{
    struct plan *out = lowering->out;
    out->buffers = ARENA_ARRAY(&out->arena, actions, struct buffer);
    lowering->buffer_cap = actions;
    return out->buffers != NULL;
}

bool tensors_begin(struct rank_lowering *lowering, size_t actions)
{
    size_t copies =
        lowering->plan->programs.parallel.given ? (size_t)plan_replicas(lowering->plan) : 1;
    rank_tensors_find_kinds(lowering);
    lowering->tracked = actions <= RANK_PROGRAMS_MAX_TRACKED / copies || lowering->all_buffers;
    for (int place = 0; place < PLACES; place++)
        for (int kind = 0; kind < TENSOR_COUNT; kind++)
            if (!begin_table(lowering, &lowering->tensors[place][kind], (enum tensor_kind)kind))
                return false;
    if (lowering->tracked)
        note_all_provided(lowering);
    return !lowering->tracked || reserve_buffers(lowering, actions);
}

void tensors_again(struct rank_lowering *lowering)
{
    for (int place = 0; place < PLACES; place++)
        for (int kind = 0; kind < TENSOR_COUNT; kind++) {
            uint32_t *latest = lowering->tensors[place][kind].latest;
            size_t microbatches = tensor_has_microbatch((enum tensor_kind)kind)
                                      ? (size_t)lowering->map.microbatches
                                      : 1;
            if (latest)
                memset(latest, 0, (size_t)lowering->map.stages * microbatches * sizeof *latest);
        }
}

void tensors_forget(struct rank_lowering *lowering, const struct rank_list *list)
{
    lowering->rank = list->own;
    for (size_t i = 0; i < list->program->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&list->program->actions[i], &parts);
        for (size_t k = 0; k < count; k++) {
            struct tensor_use uses[ACTION_MOST_USES];
            int use_count = rank_tensors_uses_of(lowering, &parts[k], lowering->awaited, uses);
            for (int u = 0; u < use_count; u++)
                *latest_of(lowering, &uses[u].tensor) = 0;
        }
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

static int64_t rank_tensors_tensor_bytes(const struct rank_lowering *lowering,
                                         enum tensor_kind kind)
{
    const struct programs *programs = &lowering->plan->programs;
    switch (kind) {
    case TENSOR_ACTIVATION:
    case TENSOR_GRADIENT: return programs->p2p_bytes;
    case TENSOR_PARAMETERS:
    case TENSOR_WEIGHT_GRADIENT: return programs->fsdp_bytes;
    case TENSOR_LEFT:
    case TENSOR_WEIGHT:
    case TENSOR_SENT_F:
    case TENSOR_SENT_B:
    case TENSOR_REDUCED:
    case TENSOR_COUNT: break;
    }
    return 0;
}

/* "act.2.7" */
enum { BUFFER_TEXT = 64 };

static const char *buffer_name(struct arena *arena, const struct tensor *tensor, int number)
{
    const char *text = tensor_text(tensor->kind);
    size_t length = strlen(text);
    char name[BUFFER_TEXT];
    memcpy(name, text, length);
    name[length] = '.';
    char *end = integers_print(name + length + 1, tensor->stage);
    *end++ = '.';
    end = integers_print(end, number);
    return arena_strndup(arena, name, (size_t)(end - name));
}

int tensors_buffer(struct rank_lowering *lowering, int *cell, const struct tensor *tensor,
                   int number)
{
    struct plan *out = lowering->out;
    if (*cell)
        return *cell - 1;
    bool outside = lowering->plan->programs.fragment &&
                   !table_of(lowering, tensor)->provided[tensor_cell(lowering, tensor)];
    struct buffer buffer = {.name = buffer_name(&out->arena, tensor, number),
                            .scope = SCOPE_SHARED,
                            .bytes = rank_tensors_tensor_bytes(lowering, tensor->kind),
                            .owner = lowering->rank + 1,
                            .declared = true,
                            .input = outside,
                            .holds = *tensor};
    if (!buffer.name ||
        !ARENA_REGROW(&out->arena, out->buffers, out->buffer_count, lowering->buffer_cap))
        return -1;
    out->buffers[out->buffer_count] = buffer;
    *cell = (int)++out->buffer_count;
    return *cell - 1;
}

/* -1: no memory. */
static int buffer_of(struct rank_lowering *lowering, const struct tensor *tensor)
{
    int number = tensor->microbatch < 0 ? 0 : tensor->microbatch;
    int *cell = &table_of(lowering, tensor)->buffers[tensor_cell(lowering, tensor)];
    if (tensor->kind == TENSOR_PARAMETERS)
        return fsdp_parameters(lowering, tensor->stage);
    return *cell ? *cell - 1 : tensors_buffer(lowering, cell, tensor, number);
}

static bool rank_tensors_use(struct rank_lowering *lowering, struct index_list *list,
                             const struct tensor *tensor)
{
    int buffer = buffer_of(lowering, tensor);
    if (buffer < 0)
        return false;
    if (!index_list_has(list, buffer)) /* both parts of a composite may use it */
        list->items[list->count++] = buffer;
    return true;
}

bool tensors_access(struct rank_lowering *lowering, struct host_op *op, const struct action *action)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = rank_tensors_uses_of(lowering, action, lowering->accessed, uses);
    for (int i = 0; i < count; i++)
        if (is_accessed(lowering, &uses[i].tensor) &&
            !rank_tensors_use(lowering,
                              uses[i].write ? &op->accesses->writes : &op->accesses->reads,
                              &uses[i].tensor))
            return false;
    return true;
}

/* An activation or a gradient. */
static bool rank_tensors_is_shared(const struct tensor *tensor)
{
    return tensor->kind == TENSOR_ACTIVATION || tensor->kind == TENSOR_GRADIENT;
}

bool tensors_access_shared(struct rank_lowering *lowering, struct host_op *op,
                           const struct action *action, enum step_place place)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = rank_tensors_uses_of(lowering, action, lowering->accessed, uses);
    bool behind = place == STEP_BEHIND;
    for (int i = 0; i < count; i++)
        if (uses[i].write == behind && rank_tensors_is_shared(&uses[i].tensor) &&
            is_accessed(lowering, &uses[i].tensor) &&
            !(rank_tensors_use(lowering, &op->accesses->reads, &uses[i].tensor) &&
              (!behind || rank_tensors_use(lowering, &op->accesses->writes, &uses[i].tensor))))
            return false;
    return true;
}

/* ---- waits ----------------------------------------------------------------------------------- */

void tensors_link(struct rank_lowering *lowering, size_t at, size_t last,
                  const struct action *action)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = rank_tensors_uses_of(lowering, action, lowering->awaited, uses);
    for (int i = 0; i < count; i++) {
        uint32_t *latest = latest_of(lowering, &uses[i].tensor);
        if (uses[i].write)
            *latest = (uint32_t)last + 1;
        else
            steps_wait(&lowering->now, at, *latest);
    }
}

void tensors_await(struct rank_lowering *lowering, size_t at, const struct action *action)
{
    struct tensor_use uses[ACTION_MOST_USES];
    int count = rank_tensors_uses_of(lowering, action, lowering->awaited, uses);
    for (int i = 0; i < count; i++)
        if (!uses[i].write && rank_tensors_is_shared(&uses[i].tensor))
            steps_wait(&lowering->now, at, *latest_of(lowering, &uses[i].tensor));
}

/* ---- the end of a list ----------------------------------------------------------------------- */

/* True if every stage makes it for every microbatch. A pass backward has two halves where the lists split one. */
static bool rank_tensors_is_wanted(const struct rank_lowering *lowering, enum tensor_kind kind)
{
    const unsigned split = 1u << ACTION_I | 1u << ACTION_W;
    switch (kind) {
    case TENSOR_ACTIVATION: return true;
    case TENSOR_GRADIENT: return lowering->kinds & (1u << ACTION_B | 1u << ACTION_I);
    case TENSOR_WEIGHT: return lowering->kinds & split;
    case TENSOR_LEFT:
    case TENSOR_SENT_F:
    case TENSOR_SENT_B:
    case TENSOR_PARAMETERS:
    case TENSOR_WEIGHT_GRADIENT:
    case TENSOR_REDUCED:
    case TENSOR_COUNT: break;
    }
    return false;
}

/* Each is asked for once, so the list, which may be as long as the product of stages and microbatches, is not searched. */
static bool add_missing(struct rank_lowering *lowering, const struct tensor *tensor, size_t *cap,
                        struct index_list *out)
{
    if (table_of(lowering, tensor)->provided[tensor_cell(lowering, tensor)])
        return true;
    int buffer = buffer_of(lowering, tensor);
    if (buffer < 0 || !ARENA_GROW(lowering->sink.arena, out->items, out->count, *cap))
        return false;
    out->items[out->count++] = buffer;
    return true;
}

bool tensors_missing(struct rank_lowering *lowering, struct index_list *out)
{
    size_t cap = 0;
    const struct stage_map *map = &lowering->map;
    if (!lowering->tracked || lowering->plan->programs.fragment)
        return true;
    for (int kind = 0; kind < TENSOR_COUNT; kind++)
        for (int s = map->lowest_of[lowering->rank];
             s >= 0 && rank_tensors_is_wanted(lowering, (enum tensor_kind)kind);
             s = map->next_of[s])
            for (int m = 0; m < map->microbatches; m++)
                if (!add_missing(lowering, &(struct tensor){(enum tensor_kind)kind, s, m}, &cap,
                                 out))
                    return false;
    return true;
}
