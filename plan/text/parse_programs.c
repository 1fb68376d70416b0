/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_programs.c - rank programs: actions, generator parameters, point-to-point knobs, times.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/actions.h"
#include "plan/schedules/generate.h"
#include "plan/schedules/costs.h"
#include "list_warnings.h"
#include "parse_internal.h"
#include "base/units.h"

static const char BLANKS[] = " \t\n";

/* ---- actions --------------------------------------------------------------------------------- */

/* `length` bytes at `offset` of a text; `one_line`: the text has no other. */
static bool parse_action(struct parser *parser, const struct node *node, bool one_line,
                         size_t offset, size_t length, struct action *out)
{
    const char *what;
    size_t where;
    struct mark mark = node->mark;
    mark.col += one_line ? (uint32_t)offset + !node->plain : 0;
    if (!action_parse(node->text + offset, length, false, &parser->plan->arena, out, &what,
                      &where)) {
        *out = (struct action){.kind = ACTION_IDLE, .stage = -1, .microbatch = -1, .mark = mark};
        mark.col += one_line ? (uint32_t)where : 0;
        return parse_error(parser, mark, "%s", what);
    }
    out->mark = mark;
    for (int i = 0; out->parts && i < ACTION_PARTS; i++)
        out->parts[i].mark = mark;
    return true;
}

static bool alloc_actions(struct parser *parser, const struct node *node, size_t count,
                          struct rank_program *out)
{
    if (count > PLAN_MAX_ACTIONS - parser->op_count)
        return parse_error(parser, node->mark, "found more than %d actions, expected fewer",
                           PLAN_MAX_ACTIONS);
    parser->op_count += count;
    out->count = 0;
    out->actions = ARENA_ARRAY(&parser->plan->arena, count, struct action);
    return out->actions || parse_no_memory(parser);
}

/* "0F0 0F1 0B0": actions between blanks. */
static bool parse_text_program(struct parser *parser, const struct node *node,
                               struct rank_program *out)
{
    size_t count = 0;
    bool one_line = !strchr(node->text, '\n');
    for (const char *at = node->text; *(at += strspn(at, BLANKS)); at += strcspn(at, BLANKS))
        count++;
    if (!alloc_actions(parser, node, count, out))
        return false;
    const char *at = node->text;
    for (; *(at += strspn(at, BLANKS)) && !parse_gave_up(parser); at += strcspn(at, BLANKS)) {
        size_t length = strcspn(at, BLANKS);
        out->unread += !parse_action(parser, node, one_line, (size_t)(at - node->text), length,
                                     &out->actions[out->count++]);
    }
    return true;
}

/* ["0F0", "", "0B0"]: an empty text is an idle cell. */
static bool parse_list_program(struct parser *parser, const struct node *node,
                               struct rank_program *out)
{
    if (!alloc_actions(parser, node, node->length, out))
        return false;
    READ_LIST (parser, node, item) {
        struct action *action = &out->actions[out->count++];
        *action =
            (struct action){.kind = ACTION_IDLE, .stage = -1, .microbatch = -1, .mark = item->mark};
        if (item->kind != NODE_SCALAR)
            out->unread += !parse_mismatch(parser, item, "an action such as \"0F3\"");
        else if (item->length)
            out->unread +=
                !parse_action(parser, item, !strchr(item->text, '\n'), 0, item->length, action);
    }
    return true;
}

/* False: there is no list. A cell that is no action is reported, and idle. */
static bool parse_program(struct parser *parser, const struct node *node, struct rank_program *out)
{
    if (node->kind == NODE_LIST)
        return parse_list_program(parser, node, out);
    if (node->kind == NODE_SCALAR && node->length)
        return parse_text_program(parser, node, out);
    return parse_mismatch(parser, node, "actions: a list or a text such as \"0F0 0F1 0B0\"");
}

/* Ranks of `programs:`, which must be all of them. */
static bool settle_ranks(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    const struct node *ranks = node_find(parser->root, "ranks");
    if (value->length == 0 || value->length > PLAN_MAX_RANKS)
        return parse_error(parser, value->mark, "found %zu rank programs, expected from 1 to %d",
                           value->length, PLAN_MAX_RANKS);
    if (ranks && value->length != (size_t)plan->ranks)
        return parse_error(parser, value->mark,
                           "found %zu rank programs, expected %d as \"ranks\" says", value->length,
                           plan->ranks);
    plan->ranks = (int)value->length;
    return true;
}

/* programs := {0: program, 1: program, ...} | [program, ...] */
void parse_programs(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value)
        return;
    if (value->kind == NODE_SCALAR) {
        parse_mismatch(parser, value, "a mapping from ranks to actions, or a list");
        return;
    }
    if (!settle_ranks(parser, value))
        return;
    plan->programs.ranks = ARENA_ARRAY(&plan->arena, value->length, struct rank_program);
    if (!plan->programs.ranks) {
        parse_no_memory(parser);
        return;
    }
    bool ok = true;
    int64_t rank = 0;
    if (value->kind == NODE_LIST)
        READ_LIST (parser, value, program)
            ok &= parse_program(parser, program, &plan->programs.ranks[rank++]);
    else
        READ_MAP (parser, value, key, program)
            ok &= parse_number(parser, key, true, 0, plan->ranks - 1, &rank) &&
                  parse_program(parser, program, &plan->programs.ranks[rank]);
    if (ok && parser->status != STATUS_SYSTEM && !parse_gave_up(parser))
        parse_check_programs(parser);
}

/* ---- generator, point to point, times -------------------------------------------------------- */

/* A number of activations, or as many as there is room for. */
static bool field_room(struct parser *parser, const struct node *value, void *member,
                       const struct field *field)
{
    if (value->kind != NODE_SCALAR || strcmp(value->text, "fit") != 0)
        return field_int(parser, value, member, field);
    *(int *)member = GENERATE_FIT;
    return true;
}

static const struct field generate_fields[] = {
    FIELD("schedule", struct generate_spec, schedule, field_name, .required = true),
    FIELD("ranks", struct generate_spec, ranks, field_int, .required = true, .min = 1,
          .max = PLAN_MAX_RANKS),
    FIELD("chunks", struct generate_spec, chunks, field_int, .min = 1,
          .max = PLAN_MAX_MODEL_STAGES),
    FIELD("microbatches", struct generate_spec, microbatches, field_int, .required = true, .min = 1,
          .max = PLAN_MAX_MICROBATCHES),
    FIELD("group", struct generate_spec, group, field_int, .min = 1, .max = PLAN_MAX_MICROBATCHES),
    FIELD("moe_overlap", struct generate_spec, moe_overlap, field_bool),
    FIELD("megatron", struct generate_spec, megatron, field_word, .words = keywords_megatron),
    FIELD("memory", struct generate_spec, memory, field_room, .min = 1,
          .max = PLAN_MAX_MICROBATCHES),
};

/* The schedule's own refusal, at its place in the file. */
static void check_schedule(struct parser *parser, const struct generate_spec *generate)
{
    struct diag refused;
    diag_init(&refused);
    struct generate_spec filled;
    if (generate_check(generate, &filled, &refused) != STATUS_OK) {
        if (refused.count > 0)
            parse_error(parser, generate->mark, "%s", refused.messages[0].text);
        else
            parse_no_memory(parser);
    }
    diag_fini(&refused);
}

/* A key that "generate" says, too. After an error the number may not be the file's. */
static void check_said(struct parser *parser, const char *key, int given, int said)
{
    const struct node *value = node_find(parser->root, key);
    if (value && given != said && parser->status == STATUS_OK)
        parse_error(parser, value->mark, "found %s %d, expected %d as \"generate\" says", key,
                    given, said);
}

/* True if the action is a pass that a schedule with split backwards has on this rank. `spec` says its chunks. */
static bool is_pass_of(const struct action *action, const struct generate_spec *spec, int rank)
{
    int stages = spec->ranks * spec->chunks, stage = action->stage;
    bool split = action->kind == ACTION_F || action->kind == ACTION_I || action->kind == ACTION_W;
    return split && action->microbatch < spec->microbatches &&
           (stage == rank || (spec->chunks > 1 && stage == stages - 1 - rank));
}

/* Lists beside a schedule that is found are those of an earlier search; no pass stands in them twice. */
static void take_found(struct parser *parser, struct generate_spec *generate)
{
    struct programs *programs = &parser->plan->programs;
    struct generate_spec filled;
    if (!programs->ranks || parser->status != STATUS_OK ||
        generate_check(generate, &filled, parser->diag) != STATUS_OK)
        return;
    size_t passes = 3 * (size_t)filled.chunks * (size_t)filled.microbatches;
    bool fits = parser->plan->ranks == filled.ranks;
    for (int rank = 0; fits && rank < filled.ranks; rank++) {
        const struct rank_program *list = &programs->ranks[rank];
        fits = list->count == passes;
        for (size_t i = 0; fits && i < list->count; i++)
            fits = is_pass_of(&list->actions[i], &filled, rank);
    }
    if (!fits) {
        parse_error(parser, generate->mark,
                    "found other \"programs\" beside \"generate\", expected F, I and W of each "
                    "microbatch on %d ranks, as %s has them",
                    filled.ranks, filled.schedule);
        return;
    }
    generate->found = programs->ranks;
    generate->found_given = true;
    programs->ranks = NULL;
}

void parse_generate(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    struct generate_spec *generate = &plan->programs.generate;
    if (!value || !parse_want_map(parser, value, "the parameters of a schedule"))
        return;
    generate->given = true;
    generate->mark = value->mark;
    if (!fields_parse(parser, value, generate_fields, FIELD_COUNT(generate_fields), generate,
                      "\"generate\""))
        return;
    check_said(parser, "ranks", plan->ranks, generate->ranks);
    check_said(parser, "copies", plan->programs.copies, generate_copies(generate));
    check_schedule(parser, generate);
    take_found(parser, generate);
    plan->ranks = generate->ranks;
}

/* A communicator for all was "rank" in earlier plans. */
static bool field_fifo(struct parser *parser, const struct node *value, void *member,
                       const struct field *field)
{
    if (value->kind != NODE_SCALAR || strcmp(value->text, "rank") != 0)
        return field_word(parser, value, member, field);
    *(enum fifo_rule *)member = FIFO_RANK;
    return true;
}

static const struct field p2p_fields[] = {
    FIELD("fifo", struct programs, fifo, field_fifo, .words = keywords_fifo),
    FIELD("batch", struct programs, batch, field_bool),
    FIELD("metadata", struct programs, metadata, field_word, .words = keywords_metadata),
    FIELD("bytes", struct programs, p2p_bytes, field_bytes),
    FIELD("eager_messages", struct programs, eager_messages, field_int, .max = 65536),
    FIELD("eager_bytes", struct programs, eager_bytes, field_bytes),
    FIELD("latency", struct programs, links.all.latency, field_given_time),
    FIELD("bandwidth", struct programs, links.all.bandwidth, field_given_rate),
    FIELD("forward", struct programs, links.forward, field_link),
    FIELD("backward", struct programs, links.backward, field_link),
    FIELD("node", struct programs, links.node, field_int, .min = 1, .max = PLAN_MAX_RANKS),
    FIELD("between", struct programs, links.between, field_link),
    FIELD("edges", struct programs, links, field_edges),
};

void parse_p2p(struct parser *parser, const struct node *value)
{
    struct programs *programs = &parser->plan->programs;
    generate_channel(&programs->generate, &programs->fifo, &programs->batch);
    if (!value || !parse_want_map(parser, value, "a mapping such as {fifo: pair, batch: true}"))
        return;
    programs->links.mark = value->mark;
    fields_parse(parser, value, p2p_fields, FIELD_COUNT(p2p_fields), programs, "\"p2p\"");
}

static const struct field fsdp_fields[] = {
    FIELD("replicas", struct programs, fsdp_replicas, field_int, .min = 1, .max = PLAN_MAX_RANKS),
    FIELD("bytes", struct programs, fsdp_bytes, field_bytes),
};

void parse_fsdp(struct parser *parser, const struct node *value)
{
    if (value && parse_want_map(parser, value, "a mapping such as {replicas: 2, bytes: 1GiB}"))
        fields_parse(parser, value, fsdp_fields, FIELD_COUNT(fsdp_fields), &parser->plan->programs,
                     "\"fsdp\"");
}

static const struct field arithmetic_fields[] = {
    FIELD("width", struct arithmetic, width, field_int, .min = 1, .max = ARITHMETIC_MOST),
    FIELD("batch", struct arithmetic, batch, field_int, .min = 1, .max = ARITHMETIC_MOST),
    FIELD("layers_per_stage", struct arithmetic, layers_per_stage, field_int, .min = 1,
          .max = ARITHMETIC_MOST),
    FIELD("activation", struct arithmetic, activation, field_word,
          .words = keywords_layer_function),
    FIELD("loss", struct arithmetic, loss, field_word, .words = keywords_loss),
    FIELD("seed", struct arithmetic, seed, field_int64, .max = INT64_MAX),
};

void parse_arithmetic(struct parser *parser, const struct node *value)
{
    struct arithmetic *arithmetic = &parser->plan->programs.arithmetic;
    if (!value || !parse_want_map(parser, value, "a mapping such as {width: 64, batch: 8}"))
        return;
    *arithmetic = (struct arithmetic){
        .given = true, .mark = value->mark, .width = ARITHMETIC_WIDTH, .batch = ARITHMETIC_BATCH};
    fields_parse(parser, value, arithmetic_fields, FIELD_COUNT(arithmetic_fields), arithmetic,
                 "\"arithmetic\"");
}

static bool field_action_time(struct parser *parser, const struct node *value, void *member,
                              const struct field *field)
{
    struct action_time *time = member;
    time->given = field_time(parser, value, &time->time_ns, field);
    if (!time->given || time->time_ns <= COST_MOST_NS)
        return time->given;
    char most[UNITS_TEXT];
    units_show_time((double)COST_MOST_NS, most);
    return parse_error(parser, value->mark, "found \"%s\", expected at most %s", value->text, most);
}

static const struct field time_fields[] = {
#define X(name, text, microbatch)                                                                  \
    FIELD(text, struct programs, times[ACTION_##name], field_action_time),
    ACTION_LIST(X)
#undef X
};

void parse_times(struct parser *parser, const struct node *value)
{
    if (value && parse_want_map(parser, value, "a mapping such as {F: 1ms, B: 2ms}"))
        fields_parse(parser, value, time_fields, ACTION_IDLE, &parser->plan->programs, "\"times\"");
}

/* ---- the rules all rank programs obey -------------------------------------------------------- */

static bool is_compute(enum action_kind kind)
{
    return kind == ACTION_F || kind == ACTION_I || kind == ACTION_W || kind == ACTION_B;
}

static bool is_message(enum action_kind kind)
{
    return kind == ACTION_SEND_F || kind == ACTION_RECV_F || kind == ACTION_SEND_B ||
           kind == ACTION_RECV_B;
}

/* Compute actions seen so far, by (kind, stage, microbatch); and the first action of each stage. */
struct census {
    struct parser *parser;
    const struct action **slots;
    size_t mask;
    struct owner {
        int rank; /* plus 1; 0: no rank yet */
        struct mark mark;
    } * owners;
    bool ok;
};

static size_t slot_of(const struct census *census, const struct action *action,
                      enum action_kind kind)
{
    uint64_t key =
        (uint64_t)kind << 40 | (uint64_t)action->stage << 20 | (uint64_t)action->microbatch;
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & census->mask;
    for (const struct action *other; (other = census->slots[at]); at = (at + 1) & census->mask)
        if (other->kind == kind && other->stage == action->stage &&
            other->microbatch == action->microbatch)
            break;
    return at;
}

static void refuse_twice(struct census *census, const struct action *action,
                         const struct action *earlier)
{
    char text[64];
    action_format(action, text, sizeof text);
    census->ok = parse_error(census->parser, action->mark,
                             "found %s a second time (first at %u:%u), expected it once", text,
                             earlier->mark.line, earlier->mark.col);
}

/* B is I and W in one. */
static void refuse_both(struct census *census, const struct action *action, enum action_kind kind)
{
    const struct action *other = census->slots[slot_of(census, action, kind)];
    char text[64], earlier[64];
    if (!other)
        return;
    action_format(action, text, sizeof text);
    action_format(other, earlier, sizeof earlier);
    census->ok =
        parse_error(census->parser, action->mark,
                    "found %s beside %s (at %u:%u), expected either B or I and W of a stage and "
                    "microbatch: B is both",
                    text, earlier, other->mark.line, other->mark.col);
}

static void count_compute(struct census *census, const struct action *action)
{
    size_t at = slot_of(census, action, action->kind);
    if (census->slots[at]) {
        refuse_twice(census, action, census->slots[at]);
        return;
    }
    census->slots[at] = action;
    if (action->kind == ACTION_I || action->kind == ACTION_W)
        refuse_both(census, action, ACTION_B);
    if (action->kind == ACTION_B) {
        refuse_both(census, action, ACTION_I);
        refuse_both(census, action, ACTION_W);
    }
}

static void count_action(struct census *census, int rank, const struct action *action)
{
    for (int i = 0; action->parts && i < ACTION_PARTS; i++)
        count_action(census, rank, &action->parts[i]);
    if (action->parts || action->kind == ACTION_IDLE)
        return;
    struct owner *owner = &census->owners[action->stage];
    if (!owner->rank)
        *owner = (struct owner){rank + 1, action->mark};
    if (owner->rank != rank + 1)
        census->ok =
            parse_error(census->parser, action->mark,
                        "found stage %d on rank %d, expected it only on rank %d, where it "
                        "is at %u:%u",
                        action->stage, rank, owner->rank - 1, owner->mark.line, owner->mark.col);
    else if (is_compute(action->kind))
        count_compute(census, action);
}

/* Room for every compute action at half load. */
static bool census_init(struct census *census, struct parser *parser,
                        const struct rank_program *ranks, int rank_count)
{
    size_t actions = 1, cap = 16;
    for (int rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            actions += ranks[rank].actions[i].parts ? ACTION_PARTS + 1 : 1;
    while (cap < 2 * actions)
        cap *= 2;
    *census = (struct census){.parser = parser, .mask = cap - 1, .ok = true};
    census->slots = arena_array(&parser->scratch, cap, sizeof *census->slots);
    census->owners = ARENA_ARRAY(&parser->scratch, PLAN_MAX_MODEL_STAGES, struct owner);
    return (census->slots && census->owners) || parse_no_memory(parser);
}

static void drop_last_idle(struct rank_program *program)
{
    while (program->count && program->actions[program->count - 1].kind == ACTION_IDLE)
        program->count--;
}

static bool check_no_idle(struct parser *parser, const struct rank_program *program)
{
    for (size_t i = 0; !program->unread && i < program->count; i++)
        if (program->actions[i].kind == ACTION_IDLE)
            return parse_error(parser, program->actions[i].mark,
                               "found an empty cell in a schedule with communication, expected an "
                               "action");
    return true;
}

static bool check_lists(struct parser *parser, struct rank_program *ranks, int rank_count,
                        bool *has_comms)
{
    struct census census;
    if (!census_init(&census, parser, ranks, rank_count))
        return false;
    for (int rank = 0; rank < rank_count; rank++) {
        struct rank_program *program = &ranks[rank];
        drop_last_idle(program);
        for (size_t i = 0; i < program->count && !parse_gave_up(parser); i++) {
            program->actions[i].column = (int)i + 1;
            count_action(&census, rank, &program->actions[i]);
            *has_comms |= is_message(program->actions[i].kind);
        }
    }
    for (int rank = 0; rank < rank_count; rank++) {
        census.ok &= !*has_comms || check_no_idle(parser, &ranks[rank]);
        census.ok &= !ranks[rank].unread;
    }
    return census.ok;
}

/* Lists that are refused have other mistakes, too: all are told at once. */
static void tell_others(struct parser *parser)
{
    struct plan *plan = parser->plan;
    struct warnings others = {.items =
                                  ARENA_ARRAY(&parser->scratch, WARNINGS_MOST, struct warning)};
    if (!others.items ||
        list_warnings_find(plan, &parser->scratch, &others, parser->diag) != STATUS_OK)
        return;
    for (size_t i = 0; i < others.count; i++)
        diag_warn_at(parser->diag, parser->plan->file, parser->source, others.items[i].mark, "%s",
                     others.items[i].text);
}

bool parse_check_programs(struct parser *parser)
{
    struct programs *programs = &parser->plan->programs;
    bool ok = check_lists(parser, programs->ranks, parser->plan->ranks, &programs->has_comms);
    if (!ok && !parse_gave_up(parser))
        tell_others(parser);
    return ok;
}

bool parse_one_program(struct parser *parser, const struct node *node, struct rank_program *out)
{
    bool has_comms = false;
    return parse_program(parser, node, out) && check_lists(parser, out, 1, &has_comms);
}
