/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_programs.c - rank programs: actions, generator parameters, arithmetic, times; the rules that all lists obey.
 */
#include <assert.h>
#include <string.h>

#include "plan/schedules/actions.h"
#include "plan/schedules/generate.h"
#include "list_warnings.h"
#include "text_internal.h"

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
    plan->programs.ranks = PARSE_ARRAY(parser, value->length, struct rank_program);
    if (!plan->programs.ranks)
        return;
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

enum { PROGRAM_WIDTH = 96, MAX_ACTION = 160 };

static bool has_idle(const struct rank_program *program)
{
    for (size_t i = 0; i < program->count; i++)
        if (program->actions[i].kind == ACTION_IDLE)
            return true;
    return false;
}

static void put_actions_as_list(struct printer *printer, const struct rank_program *program)
{
    char text[MAX_ACTION];
    open_list(printer, FLOW);
    for (size_t i = 0; i < program->count; i++) {
        action_format(&program->actions[i], text, sizeof text);
        put_word(printer, text);
    }
    close_list(printer);
}

static void put_actions_as_text(struct printer *printer, const struct rank_program *program)
{
    size_t cap = 1, length = 0;
    for (size_t i = 0; i < program->count; i++)
        cap += action_format(&program->actions[i], NULL, 0) + 1;
    char *text = arena_alloc(&printer->scratch, cap);
    for (size_t i = 0; text && i < program->count; i++) {
        if (i)
            text[length++] = ' ';
        length += action_format(&program->actions[i], text + length, cap - length);
    }
    put_scalar(printer, text, YAML_PLAIN_SCALAR_STYLE);
}

/* Without idle cells one text is shorter and reads better than a list. */
void put_program(struct printer *printer, const struct rank_program *program)
{
    if (program->count == 0 || has_idle(program))
        put_actions_as_list(printer, program);
    else
        put_actions_as_text(printer, program);
}

/* The lists that are printed: those of the plan, or those that were found for its schedule; NULL: none. */
static const struct rank_program *printed_lists(const struct printer *printer)
{
    const struct programs *programs = &printer->plan->programs;
    if (!programs->generate.given)
        return programs->ranks;
    return printer->kept || programs->generate.found_given ? programs->generate.found : NULL;
}

bool has_programs(const struct printer *printer)
{
    return printed_lists(printer) != NULL;
}

/* Elsewhere a line is a task's property or an operation, however long; only these are folded. */
void print_programs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    yaml_emitter_set_width(&printer->emitter, PROGRAM_WIDTH);
    open_map(printer, BLOCK);
    for (int rank = 0; rank < plan->ranks; rank++) {
        put_number(printer, rank);
        put_program(printer, &printed_lists(printer)[rank]);
    }
    close_map(printer);
}

void schema_program(struct json *json, const struct field *field)
{
    schema_either(json);
    json_put_string(json, "type", "string");
    schema_or(json);
    schema_begin_list(json);
    json_put_string(json, "type", "string");
    schema_end(json);
    schema_end_either(json);
}

static void schema_programs(struct json *json, const struct field *field)
{
    schema_either(json);
    schema_begin_list(json);
    schema_program(json, field);
    schema_end(json);
    schema_or(json);
    schema_begin_named(json);
    schema_program(json, field);
    schema_end(json);
    schema_end_either(json);
}

const struct field_kind kind_programs = {.schema = schema_programs};

/* ---- generator, arithmetic, times -------------------------------------------------------------- */

/* A number of activations, or as many as there is room for. */
static bool field_room(PARSE_PARAMS)
{
    if (value->kind != NODE_SCALAR || strcmp(value->text, "fit") != 0)
        return field_int(parser, value, member, field);
    *(int *)member = GENERATE_FIT;
    return true;
}

static void print_room(PRINT_PARAMS)
{
    if (*(const int *)member == GENERATE_FIT)
        put_word(printer, "fit");
    else
        print_int(printer, member, field);
}

static void schema_room(struct json *json, const struct field *field)
{
    schema_either(json);
    json_put_string(json, "const", "fit");
    schema_or(json);
    schema_int(json, field);
    schema_end_either(json);
}

static const struct field_kind kind_room = {field_room, print_room, same_int,
                                            .schema = schema_room};

static const struct field generate_fields[] = {
    FIELD("schedule", struct generate_spec, schedule, name,
          "The name of the schedule: gpipe, 1f1b, interleaved_1f1b, zb_h1 and others.",
          .required = true),
    FIELD("ranks", struct generate_spec, ranks, int, "The ranks of the pipeline.", .required = true,
          .min = 1, .max = PLAN_MAX_RANKS),
    FIELD("chunks", struct generate_spec, chunks, int, "The stages of each rank.", .min = 1,
          .max = PLAN_MAX_MODEL_STAGES),
    FIELD("microbatches", struct generate_spec, microbatches, int, "The microbatches of a step.",
          .required = true, .min = 1, .max = PLAN_MAX_MICROBATCHES),
    FIELD("group", struct generate_spec, group, int,
          "The microbatches that go through a chunk in a row.", .min = 1,
          .max = PLAN_MAX_MICROBATCHES),
    FIELD("moe_overlap", struct generate_spec, moe_overlap, boolean,
          "Whether the two passes of a steady pair are one piece of work."),
    FIELD("megatron", struct generate_spec, megatron, word,
          "Messages in the order in which Megatron-LM sends them.", .words = keywords_megatron),
    FIELD("memory", struct generate_spec, memory, room,
          "The activations of a stage that a rank holds, or fit: as many as there is memory for.",
          .min = 1, .max = PLAN_MAX_MICROBATCHES),
};
const struct keys generate_keys =
    KEYS(generate_fields, "\"generate\"", "the parameters of a schedule");

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
    if (!value || !parse_want_map(parser, value, generate_keys.example))
        return;
    generate->given = true;
    generate->mark = value->mark;
    if (!keys_parse(parser, value, &generate_keys, generate))
        return;
    check_said(parser, "ranks", plan->ranks, generate->ranks);
    check_said(parser, "copies", plan->programs.copies, generate_copies(generate));
    check_schedule(parser, generate);
    take_found(parser, generate);
    plan->ranks = generate->ranks;
}

static const struct field arithmetic_fields[] = {
    FIELD("width", struct arithmetic, width, int, "The width of a layer.", .min = 1,
          .max = ARITHMETIC_MOST, .otherwise = ARITHMETIC_WIDTH),
    FIELD("batch", struct arithmetic, batch, int, "The rows of a microbatch.", .min = 1,
          .max = ARITHMETIC_MOST, .otherwise = ARITHMETIC_BATCH),
    FIELD("layers_per_stage", struct arithmetic, layers_per_stage, int,
          "The layers of a stage. The default is what layers or model say, else 1.", .min = 1,
          .max = ARITHMETIC_MOST),
    FIELD("activation", struct arithmetic, activation, word, "The function behind each layer.",
          .words = keywords_layer_function),
    FIELD("loss", struct arithmetic, loss, word, "The loss behind the last layer.",
          .words = keywords_loss),
    FIELD("seed", struct arithmetic, seed, int64, "The seed of weights and inputs.",
          .max = INT64_MAX),
};
const struct keys arithmetic_keys =
    KEYS(arithmetic_fields, "\"arithmetic\"", "a mapping such as {width: 64, batch: 8}");

void parse_arithmetic(struct parser *parser, const struct node *value)
{
    struct arithmetic *arithmetic = &parser->plan->programs.arithmetic;
    if (!value || !parse_want_map(parser, value, arithmetic_keys.example))
        return;
    *arithmetic = (struct arithmetic){
        .given = true, .mark = value->mark, .width = ARITHMETIC_WIDTH, .batch = ARITHMETIC_BATCH};
    keys_parse(parser, value, &arithmetic_keys, arithmetic);
}

static bool field_action_time(PARSE_PARAMS)
{
    struct action_time *time = member;
    return time->given = field_time(parser, value, &time->time_ns, field);
}

static void print_action_time(PRINT_PARAMS)
{
    put_time(printer, ((const struct action_time *)member)->time_ns);
}

static bool same_action_time(SAME_PARAMS)
{
    return !((const struct action_time *)member)->given;
}

static const struct field_kind kind_action_time = {field_action_time, print_action_time,
                                                   same_action_time, .refer = "time"};

static const struct field time_fields[] = {
#define X(name, text, microbatch)                                                                  \
    FIELD(text, struct programs, times[ACTION_##name], action_time, "The time of this action."),
    ACTION_LIST(X)
#undef X
};
/* An idle cell, the last action, has no time. */
const struct keys times_keys = {.fields = time_fields,
                                .count = ACTION_IDLE,
                                .what = "\"times\"",
                                .example = "a mapping such as {F: 1ms, B: 2ms}"};

/* ---- the rules all rank programs obey -------------------------------------------------------- */

static bool keys_programs_is_compute(enum action_kind kind)
{
    return kind == ACTION_F || kind == ACTION_I || kind == ACTION_W || kind == ACTION_B;
}

static bool keys_programs_is_message(enum action_kind kind)
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

static size_t keys_programs_slot_of(const struct census *census, const struct action *action,
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
    const struct action *other = census->slots[keys_programs_slot_of(census, action, kind)];
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
    size_t at = keys_programs_slot_of(census, action, action->kind);
    if (census->slots[at]) {
        refuse_twice(census, action, census->slots[at]);
        return;
    }
    assert(keys_programs_is_compute(action->kind));
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
    assert(action->stage >= 0 && action->stage < PLAN_MAX_MODEL_STAGES);
    struct owner *owner = &census->owners[action->stage];
    if (!owner->rank)
        *owner = (struct owner){rank + 1, action->mark};
    if (owner->rank != rank + 1)
        census->ok =
            parse_error(census->parser, action->mark,
                        "found stage %d on rank %d, expected it only on rank %d, where it "
                        "is at %u:%u",
                        action->stage, rank, owner->rank - 1, owner->mark.line, owner->mark.col);
    else if (keys_programs_is_compute(action->kind))
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
            *has_comms |= keys_programs_is_message(program->actions[i].kind);
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
