/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_repeat.c - host programs: a piece of a thread's program that is executed again and again.
 *
 *     repeat := {repeat: times, body: [operation, ...]}
 *
 * Later stages see a program without repeats: the operations of the body are read once and copied for each iteration,
 * with its times; those with flags are read again.
 * The iterations of a thread are counted from 0, over all its repeats. Of a flag with `scope: iteration` each iteration has
 * its own: `ready` is ready(0), ready(1) and so on, those of the iteration of the thread that names it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "flow_lines.h"
#include "text_internal.h"

enum { MOST_READ = 16 * 1024 * 1024 }; /* nodes, over the iterations of a repeat */

struct parse_repeat_piece {
    int times;
    const struct node *body;
};

static bool field_node(PARSE_PARAMS)
{
    *(const struct node **)member = value;
    return parse_want_list(parser, value, "a list of operations");
}

static const struct field_kind kind_operation = {.refer = "operation"};
static const struct field operation_field = {.kind = &kind_operation};
static const struct field_kind kind_node = {.parse = field_node, .schema = schema_list};

static const struct field repeat_fields[] = {
    FIELD("repeat", struct parse_repeat_piece, times, int, "How often the body is executed.",
          .required = true, .min = 1, .max = PLAN_MAX_OPS),
    FIELD("body", struct parse_repeat_piece, body, node, "The operations of an iteration.",
          .required = true, .each = &operation_field),
};

void schema_repeat(struct json *json)
{
    schema_keys(json, repeat_fields, FIELD_COUNT(repeat_fields));
}

static bool is_repeat(const struct node *item)
{
    return item->kind == NODE_MAP && item->length > 0 && strcmp(item->first->text, "repeat") == 0;
}

/* A lone operation is a piece that is executed once. */
static bool read_piece(struct parser *parser, const struct node *item,
                       struct parse_repeat_piece *out)
{
    *out = (struct parse_repeat_piece){.times = 1};
    if (!is_repeat(item))
        return true;
    if (!fields_parse(parser, item, repeat_fields, FIELD_COUNT(repeat_fields), out, "a repeat"))
        return false;
    return out->body->length > 0 ||
           parse_error(parser, out->body->mark, "found no operation to repeat, expected one");
}

/* The keys, values and items in it: the cost of reading it once. */
static size_t node_count(const struct node *node)
{
    size_t count = 1;
    if (node->kind != NODE_SCALAR)
        for (const struct node *item = node->first; item; item = item->next)
            count += node_count(item);
    return count;
}

static const struct node *branch_of(const struct node *item, const char *key)
{
    const struct node *list = item->kind == NODE_MAP ? node_find(item, key) : NULL;
    return list && list->kind == NODE_LIST ? list : NULL;
}

/* Those that always have branches have OP_END, too. */
static bool has_branches(const struct node *item)
{
    if (item->kind != NODE_MAP || item->length == 0)
        return false;
    for (int kind = 0; kind < HOST_OP_COUNT; kind++)
        if (op_asks((enum op_kind)kind) &&
            strcmp(item->first->text, op_key((enum op_kind)kind)) == 0)
            return true;
    return node_find(item, "then") || node_find(item, "else");
}

static size_t item_length(const struct node *item);

static size_t list_length(const struct node *list)
{
    size_t length = 0;
    for (const struct node *item = list ? list->first : NULL; item; item = item->next)
        length += item_length(item);
    return length;
}

/* The operations of the flat list that an item becomes:

       {query: ..., then: [a, b], else: [c]}  -->  QUERY a b ELSE c END */
static size_t item_length(const struct node *item)
{
    if (!has_branches(item))
        return 1;
    const size_t otherwise = list_length(branch_of(item, "else"));
    return 1 + list_length(branch_of(item, "then")) + (otherwise > 0) + otherwise + 1;
}

/* True if the operation is read again in each iteration. */
static bool is_read_again(const struct node *item)
{
    if (item->kind != NODE_MAP || item->length == 0)
        return true;
    for (int kind = 0; kind < HOST_OP_COUNT; kind++)
        if (op_operand((enum op_kind)kind) == OPERAND_FLAG &&
            strcmp(item->first->text, op_key((enum op_kind)kind)) == 0)
            return true;
    for (const struct node *key = item->first; key; key = key->next->next)
        if (strcmp(key->text, "body") == 0)
            return true;
    return has_branches(item);
}

static size_t cost_of_body(const struct node *body)
{
    size_t count = 1;
    for (const struct node *item = body->first; item; item = item->next)
        count += is_read_again(item) ? node_count(item) : 1;
    return count;
}

/* A short text must not become a program that fills the memory. */
static bool fits(struct parser *parser, const struct node *item,
                 const struct parse_repeat_piece *piece)
{
    return !piece->body || cost_of_body(piece->body) <= MOST_READ / (size_t)piece->times ||
           parse_error(
               parser, item->mark,
               "found more than %d keys, values and items in all iterations, expected fewer",
               MOST_READ);
}

/* The operations of an iteration. */
static size_t piece_length(const struct node *item, const struct parse_repeat_piece *piece)
{
    if (item->kind == NODE_LINES)
        return item->length;
    return piece->body ? list_length(piece->body) : item_length(item);
}

static bool parse_repeat_count_ops(struct parser *parser, const struct node *list, size_t *out_ops,
                                   size_t *out_repeats)
{
    bool ok = true;
    *out_ops = *out_repeats = 0;
    READ_LIST (parser, list, item) {
        struct parse_repeat_piece piece;
        if (!read_piece(parser, item, &piece) || !fits(parser, item, &piece)) {
            ok = false;
            continue;
        }
        const size_t times = (size_t)piece.times, length = piece_length(item, &piece);
        if (length > (PLAN_MAX_OPS - parser->op_count) / times)
            return parse_error(parser, item->mark, "found more than %d operations, expected fewer",
                               PLAN_MAX_OPS);
        parser->op_count += times * length;
        *out_ops += times * length;
        *out_repeats += piece.body != NULL;
    }
    return ok;
}

/* Refuses operations that an iteration cannot do twice. */
static bool check_repeated(struct parser *parser, const struct host_op *op)
{
    for (size_t i = 0; i < host_op_body_count(op); i++)
        if (!check_repeated(parser, &op->body[i]))
            return false;
    const bool turn = op->kind == OP_TICKET || op->kind == OP_SERVE;
    if (!op_allocates(op->kind) && !turn)
        return true;
    return parse_error(parser, op->mark, "found \"%s\" in a repeat, expected it outside: %s",
                       op_key(op->kind),
                       turn ? "each number has one turn" : "memory of one name is allocated once");
}

static bool names_flags(const struct host_op *op)
{
    return op_operand(op->kind) == OPERAND_FLAG || host_op_body_count(op) > 0;
}

static int64_t time_of_round(const struct time_list *list, int64_t time_ns, int round)
{
    return list ? list->items[(size_t)round % list->count] : time_ns;
}

/* The operation as a later iteration has it. */
static struct host_op copy_for(const struct parser *parser, const struct host_op *first)
{
    struct host_op op = *first;
    op.iteration = parser->iteration;
    const struct host_details *details = host_op_details(first);
    op.time_ns = time_of_round(details->times, op.time_ns, parser->round);
    op.host_time_ns = time_of_round(details->host_times, op.host_time_ns, parser->round);
    return op;
}

static void add_branch_mark(struct parser *parser, const struct node *item, enum op_kind kind,
                            struct host_thread *thread)
{
    struct host_op *op = &thread->ops[thread->op_count++];
    *op = host_op_make(kind);
    op->mark = item->mark;
    op->iteration = parser->iteration;
}

static bool read_item(struct parser *parser, const struct node *item, struct host_thread *thread);

/* Refuses what stands for a number of times, or for a place in the thread, that no branch has. */
static bool check_in_branch(struct parser *parser, const struct host_op *op)
{
    const bool counted = op->kind == OP_BARRIER || op_operand(op->kind) == OPERAND_TURN;
    return !counted ||
           parse_error(parser, op->mark, "found \"%s\" in a branch, expected it outside: %s",
                       op_key(op->kind),
                       op->kind == OP_BARRIER ? "its uses are counted by the thread's list"
                                              : "each number has one turn");
}

static bool read_branch(struct parser *parser, const struct node *list, struct host_thread *thread)
{
    bool ok = true;
    if (!list)
        return true;
    READ_LIST (parser, list, item) {
        const size_t at = thread->op_count;
        ok &= read_item(parser, item, thread) && check_in_branch(parser, &thread->ops[at]);
    }
    return ok;
}

/* An operation, with its branches behind it. */
static bool read_item(struct parser *parser, const struct node *item, struct host_thread *thread)
{
    struct host_op *op = &thread->ops[thread->op_count++];
    bool ok = parse_op(parser, item, NULL, op);
    if (!ok || !op->has_branches)
        return ok;
    const struct node *otherwise = branch_of(item, "else");
    ok = read_branch(parser, branch_of(item, "then"), thread);
    if (otherwise && otherwise->length > 0)
        add_branch_mark(parser, item, OP_ELSE, thread);
    ok &= read_branch(parser, otherwise, thread);
    add_branch_mark(parser, item, OP_END, thread);
    return ok;
}

/* `length`: the operations of an iteration. */
static bool read_iteration(struct parser *parser, const struct node *body, size_t length,
                           struct host_thread *thread)
{
    bool ok = true;
    READ_LIST (parser, body, item) {
        struct host_op *op = &thread->ops[thread->op_count];
        const struct host_op *first =
            parser->round > 0 ? op - (size_t)parser->round * length : NULL;
        if (first && !first->has_branches && !names_flags(first)) {
            thread->op_count++;
            *op = copy_for(parser, first);
            continue;
        }
        ok &= read_item(parser, item, thread);
        for (struct host_op *each = op; ok && each < &thread->ops[thread->op_count]; each++)
            ok = check_repeated(parser, each);
    }
    return ok;
}

static bool read_repeat(struct parser *parser, const struct parse_repeat_piece *piece,
                        int *iterations, struct host_thread *thread)
{
    const size_t length = list_length(piece->body);
    bool ok = true;
    thread->repeats[thread->repeat_count++] =
        (struct repeat){thread->op_count, length, piece->times};
    for (int i = 0; ok && i < piece->times; i++) {
        parser->iteration = ++*iterations;
        parser->round = i;
        ok = read_iteration(parser, piece->body, length, thread);
    }
    parser->iteration = 0;
    return ok;
}

static bool read_lines(struct parser *parser, const struct node *lines, struct host_thread *thread)
{
    bool ok = true;
    const char *at = lines->text, *end = parser->source + parser->source_length;
    struct flow_line line;
    for (uint32_t i = 0; i < lines->length && !parse_gave_up(parser); i++, at += line.bytes) {
        flow_line_read(at, end, lines->mark.line + i, &line);
        ok &= parse_op(parser, line.nodes, NULL, &thread->ops[thread->op_count++]);
    }
    return ok;
}

bool parse_thread_ops(struct parser *parser, const struct node *list, struct host_thread *thread)
{
    size_t ops, repeats;
    if (!parse_want_list(parser, list, "a list of operations") ||
        !parse_repeat_count_ops(parser, list, &ops, &repeats))
        return false;
    thread->ops = ARENA_ARRAY(&parser->plan->arena, ops, struct host_op);
    thread->repeats = ARENA_ARRAY(&parser->plan->arena, repeats, struct repeat);
    if (!thread->ops || !thread->repeats)
        return parse_no_memory(parser);
    bool ok = true;
    int iterations = 0;
    READ_LIST (parser, list, item) {
        struct parse_repeat_piece piece;
        if (!read_piece(parser, item, &piece))
            return false;
        if (item->kind == NODE_LINES)
            ok &= read_lines(parser, item, thread);
        else if (piece.body)
            ok &= read_repeat(parser, &piece, &iterations, thread);
        else
            ok &= read_item(parser, item, thread);
    }
    return ok;
}

/* ---- times ----------------------------------------------------------------------------------- */

static bool parse_repeat_read_list(struct parser *parser, const struct node *value,
                                   const struct field *field, struct time_list **out)
{
    struct time_list *list = ARENA_ARRAY(&parser->plan->arena, 1, struct time_list);
    if (list)
        list->items = ARENA_ARRAY(&parser->plan->arena, value->length, int64_t);
    if (!list || !list->items)
        return parse_no_memory(parser);
    bool ok = true;
    READ_LIST (parser, value, item)
        ok &= field_time(parser, item, &list->items[list->count++], field);
    *out = list;
    return ok;
}

static bool parse_repeat_read_time(struct parser *parser, const struct node *value,
                                   const struct field *field, struct host_op *op, bool of_call)
{
    int64_t *out_ns = of_call ? &op->host_time_ns : &op->time_ns;
    if (value->kind != NODE_LIST)
        return field_time(parser, value, out_ns, field);
    if (parser->iteration == 0)
        return parse_error(parser, value->mark,
                           "found several times outside of a repeat, expected one");
    if (value->length == 0)
        return parse_error(parser, value->mark, "found no time, expected one or more");
    struct host_details *details = host_op_make_details(op, &parser->plan->arena);
    if (!details)
        return parse_no_memory(parser);
    struct time_list **list = of_call ? &details->host_times : &details->times;
    if (!parse_repeat_read_list(parser, value, field, list))
        return false;
    *out_ns = (*list)->items[(size_t)parser->round % (*list)->count];
    return true;
}

bool field_op_time(PARSE_PARAMS)
{
    return parse_repeat_read_time(parser, value, field, member, false);
}

bool field_op_host_time(PARSE_PARAMS)
{
    return parse_repeat_read_time(parser, value, field, member, true);
}

/* ---- flags ----------------------------------------------------------------------------------- */

bool field_flag(PARSE_PARAMS)
{
    struct node own = *value;
    if (!parse_name(parser, value, "a flag's name"))
        return false;
    const struct flag_spec *spec = plan_flag_spec(parser->plan, value->text);
    if (spec && spec->scope == SCOPE_ITERATION) {
        if (parser->iteration == 0)
            return parse_error(parser, value->mark,
                               "found flag \"%s\" of scope iteration outside of a repeat, expected "
                               "it in one",
                               value->text);
        own.text = arena_printf(&parser->scratch, "%s(%d)", value->text, parser->iteration - 1);
        if (!own.text)
            return parse_no_memory(parser);
        own.length = strlen(own.text);
    }
    *(int *)member = symbol_resolve(parser, TABLE_FLAGS, &own);
    return *(int *)member >= 0;
}

/* A whole number at *text, which goes behind it. */
static bool read_whole(const char **text, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    *out =
        strtoll(*text, &end, 10); /* a number that is too big is the greatest one: refused later */
    *text = end + strspn(end, " ");
    return true;
}

static bool read_sign(const char **text, int64_t *out)
{
    if (**text != '-' && **text != '+')
        return false;
    *out = **text == '-' ? -1 : 1;
    *text += 1 + strspn(*text + 1, " ");
    return true;
}

/* value := number | [number "*"] "iteration" [("+" | "-") number] */
static bool read_flag_value(const char *text, struct flag_use *use)
{
    static const char word[] = "iteration";
    int64_t sign = 1, number = 1;
    bool is_signed = read_sign(&text, &sign), counted = read_whole(&text, &number);
    if (counted && *text == '\0') {
        use->base = sign * number;
        return true;
    }
    if (is_signed || (counted && *text != '*'))
        return false;
    text += counted ? 1 + strspn(text + 1, " ") : 0;
    if (strncmp(text, word, strlen(word)) != 0)
        return false;
    text += strlen(word);
    text += strspn(text, " ");
    use->each = number;
    return *text == '\0' || (read_sign(&text, &sign) && read_whole(&text, &number) &&
                             *text == '\0' && ((use->base = sign * number), true));
}

bool field_flag_use(PARSE_PARAMS)
{
    struct host_op *op = member;
    if (op->flag_use.given)
        return parse_error(parser, value->mark,
                           "found \"%s\" beside another value, expected one of them", field->key);
    op->flag_use = (struct flag_use){.given = true, .rule = (enum flag_rule)field->otherwise};
    if (value->kind != NODE_SCALAR || !read_flag_value(value->text, &op->flag_use))
        return parse_mismatch(parser, value, "a number, iteration, or a sum such as iteration + 1");
    if (op->flag_use.each != 0 && parser->iteration == 0)
        return parse_error(parser, value->mark,
                           "found \"iteration\" outside of a repeat, expected a number");
    int64_t found;
    const bool fits =
        llabs(op->flag_use.base) <= PLAN_MAX_FLAG && op->flag_use.each <= PLAN_MAX_FLAG;
    host_op_flag_use(op, &found);
    if (fits && found >= field->min && found <= field->max &&
        (op->flag_use.rule != FLAG_ADDS || found != 0))
        return true;
    return parse_error(parser, value->mark, "found %s, expected a number from %lld to %lld%s",
                       value->text, (long long)field->min, (long long)field->max,
                       op->flag_use.rule == FLAG_ADDS ? " but 0" : "");
}
