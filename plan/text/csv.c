/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - see csv.h: rows, cells and their dialect. */
#include "csv.h"

#include <ctype.h>
#include <string.h>

#include "plan/schedules/actions.h"
#include "text_internal.h"

static const char BYTE_ORDER_MARK[] = "\xEF\xBB\xBF";

bool csv_looks_like(const char *text, size_t length)
{
    size_t at = length >= 3 && memcmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    while (at < length && isspace((unsigned char)text[at]))
        at++;
    return at < length && (isdigit((unsigned char)text[at]) || text[at] == '(' || text[at] == ',');
}

/* The old dialect has BW, or W without I. Only between a stage and a microbatch are these letters an operation. */
static bool is_old_dialect(const char *text)
{
    bool has_w = false, has_i = false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            continue;
        if (text[1] == 'B' && text[2] == 'W')
            return true;
        if (text[1] && isdigit((unsigned char)text[2])) {
            has_w |= text[1] == 'W';
            has_i |= text[1] == 'I';
        }
    }
    return has_w && !has_i;
}

/* A row or cell: a piece of the source, without the end of line. */
struct csv_span {
    const char *start, *end;
};

static struct csv_span trim(struct csv_span span)
{
    while (span.start < span.end && (*span.start == ' ' || *span.start == '\t'))
        span.start++;
    while (span.start < span.end && (span.end[-1] == ' ' || span.end[-1] == '\t'))
        span.end--;
    bool quoted = span.end - span.start >= 2 && *span.start == '"' && span.end[-1] == '"';
    return quoted ? (struct csv_span){span.start + 1, span.end - 1} : span;
}

/* Step over the next line; false at the end of the text. */
static bool next_row(const char **at, const char *end, struct csv_span *row)
{
    if (*at == end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    *row = (struct csv_span){*at, newline ? newline : end};
    *at = newline ? newline + 1 : end;
    if (row->end > row->start && row->end[-1] == '\r')
        row->end--;
    return true;
}

static size_t count_cells(struct csv_span row)
{
    size_t count = 1;
    for (const char *at = row.start; at < row.end; at++)
        count += *at == ',';
    return count;
}

static bool parse_cell(struct parser *parser, struct csv_span cell, struct mark mark,
                       bool old_dialect, struct action *out)
{
    const char *what;
    size_t where;
    *out = (struct action){.kind = ACTION_IDLE, .stage = -1, .microbatch = -1, .mark = mark};
    if (cell.start == cell.end)
        return true;
    if (!action_parse(cell.start, (size_t)(cell.end - cell.start), old_dialect,
                      &parser->plan->arena, out, &what, &where)) {
        *out = (struct action){.kind = ACTION_IDLE, .stage = -1, .microbatch = -1, .mark = mark};
        mark.col += (uint32_t)where;
        return parse_error(parser, mark, "%s", what);
    }
    out->mark = mark;
    for (int i = 0; out->parts && i < ACTION_PARTS; i++)
        out->parts[i].mark = mark;
    return true;
}

/* False: the row is not there. Cells that are no actions are told, and idle. */
static bool parse_row(struct parser *parser, struct csv_span row, uint32_t line, bool old_dialect,
                      struct rank_program *out)
{
    size_t cells = count_cells(row);
    if (cells > PLAN_MAX_ACTIONS - parser->op_count)
        return parse_error(parser, ((struct mark){line, 1}),
                           "found more than %d cells, expected fewer", PLAN_MAX_ACTIONS);
    parser->op_count += cells;
    out->actions = ARENA_ARRAY(&parser->plan->arena, cells, struct action);
    if (!out->actions)
        return parse_no_memory(parser);
    for (const char *at = row.start; out->count < cells && !parse_gave_up(parser);) {
        const char *comma = memchr(at, ',', (size_t)(row.end - at));
        struct csv_span cell = trim((struct csv_span){at, comma ? comma : row.end});
        struct mark mark = {line, (uint32_t)(cell.start - row.start) + 1};
        out->unread += !parse_cell(parser, cell, mark, old_dialect, &out->actions[out->count++]);
        at = comma ? comma + 1 : row.end;
    }
    return true;
}

static bool is_blank(struct csv_span row)
{
    for (const char *at = row.start; at < row.end; at++)
        if (*at != ',' && !isspace((unsigned char)*at))
            return false;
    return true;
}

/* The end of the file starts here, unless the empty row has cells: a rank that idles is none. */
static bool check_end(struct parser *parser, struct csv_span row, uint32_t line, size_t rank)
{
    const struct mark mark = {line, 1};
    if (memchr(row.start, ',', (size_t)(row.end - row.start)))
        return parse_error(parser, mark, "found an empty row, expected the actions of rank %zu",
                           rank);
    diag_warn_at(parser->diag, parser->plan->file, parser->source, mark,
                 "row %zu is empty: it is the end of the file, not rank %zu", rank + 1, rank);
    return true;
}

/* The number of rows up to the last that is not blank; false when one before is, or there are none
   or too many. */
static bool count_rows(struct parser *parser, const char *text, const char *end, size_t *out)
{
    struct csv_span row, blank = {0};
    uint32_t line = 0, blank_line = 0;
    *out = 0;
    while (next_row(&text, end, &row)) {
        line++;
        if (is_blank(row)) {
            blank = blank_line ? blank : row;
            blank_line = blank_line ? blank_line : line;
            continue;
        }
        if (blank_line)
            return parse_error(parser, ((struct mark){blank_line, 1}),
                               "found an empty row, expected the actions of rank %zu", *out);
        if (++*out > PLAN_MAX_RANKS)
            return parse_error(parser, ((struct mark){line, 1}),
                               "found more than %d rows, expected one a rank", PLAN_MAX_RANKS);
    }
    if (*out == 0)
        return parse_error(parser, ((struct mark){1, 1}),
                           "found no actions, expected a schedule: one row a rank");
    return !blank_line || check_end(parser, blank, blank_line, *out);
}

static bool parse_rows(struct parser *parser, const char *text, const char *end)
{
    struct plan *plan = parser->plan;
    size_t rows;
    if (!count_rows(parser, text, end, &rows))
        return false;
    plan->ranks = (int)rows;
    plan->programs.ranks = ARENA_ARRAY(&plan->arena, rows, struct rank_program);
    if (!plan->programs.ranks)
        return parse_no_memory(parser);
    bool old_dialect = is_old_dialect(text), ok = true;
    for (size_t rank = 0; rank < rows && !parse_gave_up(parser); rank++) {
        struct csv_span row;
        next_row(&text, end, &row);
        ok &= parse_row(parser, row, (uint32_t)rank + 1, old_dialect, &plan->programs.ranks[rank]);
    }
    return ok && parse_check_programs(parser);
}

enum status plan_parse_csv(const char *file_name, const char *text, size_t length, struct plan *out,
                           struct diag *diag)
{
    struct parser parser;
    if (parser_start(&parser, out, file_name, text, length, diag)) {
        const char *start = parser.source, *end = start + length;
        out->form = FORM_PROGRAMS;
        if (strlen(start) != length)
            parse_error(&parser, ((struct mark){1, 1}),
                        "found a NUL byte, expected a schedule in text");
        else
            parse_rows(&parser, strncmp(start, BYTE_ORDER_MARK, 3) == 0 ? start + 3 : start, end);
    }
    return parser_finish(&parser);
}
