/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_internal.h - shared by the files that read, print and describe the keys of plans.
 *
 *     fields.c          tables of keys: how a mapping is read and printed; the kinds of values
 *     symbols.c         names
 *     keys_plan.c       the keys at the top of a plan, and short sections
 *     keys_machine.c    the device, its streams and its channels
 *     keys_pipeline.c   schedule, dependences, overrides
 *     keys_programs.c   rank programs, also the rules a CSV must obey
 *     keys_hardware.c   files that describe hardware, which are no plans
 *     keys_costs.c      what their messages, passes and stages cost
 *     keys_parallel.c   the groups of ranks around them
 *     keys_threads.c    host programs
 *     parse.c           reads files, recognizes the format
 *     parse_relative.c  one list of operations for all ranks
 *     parse_yaml.c      YAML text to a tree of nodes (libyaml)
 *     print.c           the events of libyaml that make the canonical text
 *     plan_schema.c     the same tables as a JSON Schema
 *
 * Nodes live in the parser's scratch arena and end with it; texts that the plan keeps are copied into the
 * plan's arena. Every function that returns bool returns false after it has reported an error. Once an event of the
 * printer fails all later ones are skipped, so no call of the printer needs a check: plan_print reports the reason.
 */
#ifndef SWSIM_TEXT_INTERNAL_H
#define SWSIM_TEXT_INTERNAL_H

#include <stddef.h>
#include <stdio.h>
#include <yaml.h>

#include "base/json.h"
#include "plan/keywords.h"
#include "base/nearest.h"
#include "plan/plan.h"

/* ---- the tree -------------------------------------------------------------------------------- */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP, NODE_LINES };

/* The children of a map alternate: key, value, key, value. Keys are scalars, no two alike. LINES are several items of a
   thread's operations, still as text (flow_lines.h): a tree of all of them would fill the memory. */
struct node {
    enum node_kind kind;
    bool plain; /* SCALAR: written without quotes */
    struct mark mark;
    const char *text; /* SCALAR; LINES: in the source */
    size_t length; /* SCALAR: bytes; LIST: items, each of LINES counts; MAP: pairs; LINES: items */
    struct node *first, *next;
};

#define LIST_EACH(list, item)                                                                      \
    for (const struct node *(item) = (list)->first; (item); (item) = (item)->next)
#define MAP_EACH(map, key, value)                                                                  \
    for (const struct node *(key) = (map)->first, *(value) = (key) ? (key)->next : NULL; (key);    \
         (key) = (value)->next, (value) = (key) ? (key)->next : NULL)

/* The same for what is read: they end early where the parser gives up. */
#define READ_LIST(parser, list, item)                                                              \
    for (const struct node *(item) = (list)->first; (item) && !parse_gave_up(parser);              \
         (item) = (item)->next)
#define READ_MAP(parser, map, key, value)                                                          \
    for (const struct node *(key) = (map)->first, *(value) = (key) ? (key)->next : NULL;           \
         (key) && !parse_gave_up(parser);                                                          \
         (key) = (value)->next, (value) = (key) ? (key)->next : NULL)

/* The value of `key`, or NULL. */
const struct node *node_find(const struct node *map, const char *key);

/* ---- the parser ------------------------------------------------------------------------------ */

enum symbol_table {
    TABLE_STREAMS,
    TABLE_GROUPS,
    TABLE_EVENTS,
    TABLE_FLAGS,
    TABLE_LOCKS,
    TABLE_BARRIERS,
    TABLE_BUFFERS,
    TABLE_COMMS,
    TABLE_QUEUES,
    TABLE_TASKS,
    TABLE_TEXTS, /* of many operations */
    TABLE_COUNT
};

/* Names with their indices, beside the plan's table of the same names. */
struct symbols {
    struct symbol {
        const char *name;
        int index;
    } * items;
    size_t count, cap;
    struct table table;
};

struct parser {
    struct plan *plan;
    bool in_graph; /* the operations that are read are those of a graph */
    struct diag *diag;
    const char *source; /* the whole text, NUL-terminated */
    size_t source_length;
    struct arena scratch;
    enum status status; /* the worst so far */
    size_t errors;
    bool gave_up; /* after PARSE_MANY_ERRORS */
    const struct node *root;
    struct symbols symbols[TABLE_COUNT];
    const char *thread;          /* whose operations are being read: a thread's or a graph's */
    int home;                    /* its rank */
    int64_t ticket;              /* the thread's last one so far, -1: none */
    int iteration;               /* of the thread, 1 + its number; 0: in no repeat */
    int round;                   /* of its repeat: the iterations of that before it */
    size_t comm_cap, buffer_cap; /* of the plan's arrays */
    size_t op_count;             /* host operations so far, at most PLAN_MAX_OPS */
};

/* Report an error at a mark: the found text, the expected text. Evaluates to false. */
#define parse_error(parser, at, ...)                                                               \
    parse_fail((parser), diag_error_at((parser)->diag, (parser)->plan->file, (parser)->source,     \
                                       (at), __VA_ARGS__))
bool parse_fail(struct parser *parser, enum status status);
/* After this many errors the rest is not read: a file can have millions. */
enum { PARSE_MANY_ERRORS = 500 };
static inline bool parse_gave_up(const struct parser *parser)
{
    return parser->gave_up;
}
bool parse_no_memory(struct parser *parser);
/* Zeroed memory of the plan; NULL after an error. */
void *parse_array(struct parser *parser, size_t count, size_t size);
#define PARSE_ARRAY(parser, count, type) ((type *)parse_array((parser), (count), sizeof(type)))
/* "found X, expected Y" for a whole node. */
bool parse_mismatch(struct parser *parser, const struct node *node, const char *expected);

/* A node as a message quotes it. */
const char *parse_describe(struct parser *parser, const struct node *node);
bool parse_want_map(struct parser *parser, const struct node *node, const char *expected);
bool parse_want_list(struct parser *parser, const struct node *node, const char *expected);

/* ---- parse_yaml.c ---------------------------------------------------------------------------- */

/* The tree of parser->source; NULL after an error. Lines of operations are read by flow_lines.h where `lines` allows. */
struct node *parse_yaml(struct parser *parser, bool lines);

/* ---- fields.c: one table of keys for parser, printer and schema ------------------------------- */

struct printer;
struct field;

/* The functions of a kind have these parameters, whether they need them or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PARSE_PARAMS                                                                               \
    struct parser *parser, const struct node *value, void *member, const struct field *field
#define PRINT_PARAMS struct printer *printer, const void *member, const struct field *field
#define SAME_PARAMS                                                                                \
    struct printer *printer, const void *member, const void *other, const struct field *field

/* How a kind of value is read, printed and described. `member` is what the offset of the field says. */
struct field_kind {
    bool (*parse)(PARSE_PARAMS);
    /* Print the value behind its key; NULL: the key is not in the canonical text. */
    void (*print)(PRINT_PARAMS);
    /* True if the value is not printed: it equals that of `other`, where that is given, else the default of the field. */
    bool (*same)(SAME_PARAMS);
    /* Write what a JSON Schema says of the value into the object that is open. */
    void (*schema)(struct json *json, const struct field *field);
    const char *refer;           /* in place of `schema`: a definition of plan_schema.c */
    const struct field_kind *of; /* of a struct amount: the kind of its number */
};

/* The keys of a mapping. */
struct keys {
    const struct field *fields;
    size_t count;
    const char *what;    /* the mapping in messages: "a task" */
    const char *example; /* what is expected where a value is no mapping */
};

/* A part of the struct that a mapping fills, beside it: the members of some keys lie there. */
struct field_part {
    void *(*make)(struct parser *parser, void *base); /* to be filled; NULL after an error */
    const void *(*find)(const void *base);            /* NULL: none, and its keys are not printed */
};

/* One key of a mapping. */
struct field {
    const char *key;
    const struct field_kind *kind;
    const char *about; /* one line for who reads or writes a plan */
    size_t offset;     /* of the member in the struct a mapping fills, or in `part` of it */
    const struct field_part *part; /* NULL: the struct itself */
    bool required;
    bool always;              /* printed also where it is the default; what is required always is */
    int64_t min, max;         /* numbers */
    int64_t otherwise;        /* the default of numbers, sizes, times and words; -1: none */
    const char *const *words; /* enums, NULL-terminated; the position is the value */
    enum symbol_table table;  /* names */
    const struct keys *keys;  /* mappings */
    const struct field *each; /* lists, mappings from names: what a value is */
};

#define FIELD(key_, type, member_, of_kind, about_, ...)                                           \
    {                                                                                              \
        .key = (key_), .kind = &kind_##of_kind, .offset = offsetof(type, member_),                 \
        .about = (about_), __VA_ARGS__                                                             \
    }
/* A key whose kind gets the whole struct: it sets several members, or none. */
#define FIELD_OF_ALL(key_, of_kind, about_, ...)                                                   \
    {                                                                                              \
        .key = (key_), .kind = &kind_##of_kind, .about = (about_), __VA_ARGS__                     \
    }
#define FIELD_COUNT(fields) (sizeof(fields) / sizeof *(fields))
#define KEYS(fields_, what_, example_)                                                             \
    {                                                                                              \
        .fields = (fields_), .count = FIELD_COUNT(fields_), .what = (what_), .example = (example_) \
    }

/* Read a mapping by its table into `base`. */
bool fields_parse(struct parser *parser, const struct node *map, const struct field *fields,
                  size_t count, void *base, const char *what);
/* The same where the value may be no mapping. */
bool keys_parse(struct parser *parser, const struct node *value, const struct keys *keys,
                void *base);
/* Print the keys in the order of their table; those whose values equal the ones of `usual`, or the default where that is
   NULL, are left out. */
void fields_print(struct printer *printer, const struct field *fields, size_t count,
                  const void *base, const void *usual);
/* True if fields_print would print nothing. */
bool fields_same(struct printer *printer, const struct field *fields, size_t count,
                 const void *base, const void *usual);
/* Kinds; the member's type stands behind. */
extern const struct field_kind kind_int;         /* int */
extern const struct field_kind kind_more;        /* int; 0 and 1 are the default */
extern const struct field_kind kind_int64;       /* int64_t */
extern const struct field_kind kind_rank;        /* int, below the number of ranks: known by then */
extern const struct field_kind kind_slots;       /* int; has a message of its own for a share */
extern const struct field_kind kind_boolean;     /* bool */
extern const struct field_kind kind_time;        /* int64_t */
extern const struct field_kind kind_bytes;       /* int64_t */
extern const struct field_kind kind_given_int;   /* struct amount */
extern const struct field_kind kind_given_time;  /* struct amount */
extern const struct field_kind kind_given_bytes; /* struct amount */
extern const struct field_kind kind_given_rate;  /* struct amount: bytes a second, not 0 */
extern const struct field_kind kind_flops;       /* int64_t: operations a second, not 0 */
extern const struct field_kind kind_given_flops; /* struct amount */
extern const struct field_kind kind_share;       /* struct share */
extern const struct field_kind kind_shares;      /* struct shares */
extern const struct field_kind kind_word;        /* an enum */
extern const struct field_kind kind_text;        /* const char * */
extern const struct field_kind kind_name;        /* const char * */
extern const struct field_kind kind_dist;        /* struct dist */
extern const struct field_kind kind_symbol;      /* int: the index of a name */
extern const struct field_kind kind_count;       /* int64_t, from which others follow */
extern const struct field_kind kind_symbols;     /* struct index_list */
extern const struct field_kind kind_map;         /* the struct that its keys fill */
extern const struct field_kind kind_work;        /* struct work; keys_pipeline.c */
extern const struct field_kind kind_sizes;       /* struct cost_list; keys_costs.c */
/* Keys at the top that functions of their own read and print. */
extern const struct field_kind kind_names,
    kind_list; /* mappings from names, and lists, of `each` */
extern const struct field_kind kind_deps, kind_order, kind_programs, kind_balance, kind_threads;
extern const struct field task_field, operations_field, override_field, stream_field, flag_field;
extern const struct keys link_keys, machine_keys, generate_keys, p2p_keys, fsdp_keys, parallel_keys,
    arithmetic_keys, times_keys, stages_keys, layers_keys, model_keys;

/* Their functions, for kinds that differ little from them. */
bool field_int(PARSE_PARAMS), field_int64(PARSE_PARAMS), field_rank(PARSE_PARAMS),
    field_bool(PARSE_PARAMS), field_time(PARSE_PARAMS), field_bytes(PARSE_PARAMS),
    field_word(PARSE_PARAMS), field_symbol(PARSE_PARAMS), field_map(PARSE_PARAMS),
    field_sizes(PARSE_PARAMS);
void print_int(PRINT_PARAMS), print_bool(PRINT_PARAMS), print_word(PRINT_PARAMS),
    print_map(PRINT_PARAMS), print_sizes(PRINT_PARAMS);
void schema_sizes(struct json *json, const struct field *field);
bool same_int(SAME_PARAMS);
bool same_map(SAME_PARAMS);
void print_symbol(PRINT_PARAMS);
void print_symbols(PRINT_PARAMS);
void schema_symbols(struct json *json, const struct field *field);
void schema_list(struct json *json, const struct field *field);
void schema_names(struct json *json, const struct field *field);
bool same_list(SAME_PARAMS);

/* `pageable` where neither side is host memory; a key that varies a time, `of`, of `ns`, which must not be 0. */
bool parse_check_pageable(struct parser *parser, const struct node *map, enum direction direction);
bool parse_check_jitter(struct parser *parser, const struct node *map, const char *key,
                        const char *of, int64_t ns);
/* Check that a collective of this kind may have the root (a rank, -1: none given) that `map` names. */
/* The number of elements of a message or collective says its bytes, if `count` is there. */
bool parse_check_count(struct parser *parser, const struct node *map, enum element element,
                       int64_t count, int64_t *bytes);
#define PARSE_MAX_COUNT (INT64_C(1) << 56)
bool parse_check_root(struct parser *parser, const struct node *map, enum collective_kind kind,
                      int root);

/* ---- plan_schema.c: pieces of a JSON Schema -------------------------------------------------------- */

/* {"$ref": ...} to a definition of plan_schema.c that no table has: "time", "size", "name". */
void schema_refer(struct json *json, const char *definition);
/* What the kind of the field says of a value, in the open object. */
void schema_value(struct json *json, const struct field *field);
/* Either this or that: the open object is the first; schema_or begins the next. */
void schema_either(struct json *json);
void schema_or(struct json *json);
void schema_end_either(struct json *json);
/* One value of the field, or a list of at least so many. */
void schema_one_or_list(struct json *json, const struct field *one, int least);
/* A truth value without a default. */
void schema_truth(struct json *json, const struct field *field);
void schema_int(struct json *json, const struct field *field);
void schema_rank(struct json *json, const struct field *field);
void schema_bool(struct json *json, const struct field *field);
void schema_word(struct json *json, const struct field *field);
void schema_map(struct json *json, const struct field *field);
/* A mapping whose keys are names; the open object at the end is what its values are. */
void schema_begin_named(struct json *json);
/* A list; the open object at the end is what its items are. */
void schema_begin_list(struct json *json);
void schema_end(struct json *json);
/* The keys at the top (keys_plan.c), a task, an operation of a thread. */
void schema_plan(struct json *json);
void schema_task(struct json *json);
void schema_operation(struct json *json);
void schema_repeat(struct json *json);
/* "type": "object" and the properties of a table. */
void schema_keys(struct json *json, const struct field *fields, size_t count);
/* The same, and `key` must be there. */
void schema_keys_with(struct json *json, const struct field *fields, size_t count, const char *key);

/* ---- symbols.c: names -------------------------------------------------------------------------- */

/* A name: not empty, not null, at most PLAN_MAX_NAME bytes, no control characters. */
bool parse_name(struct parser *parser, const struct node *node, const char *expected);
/* A whole number without quotes; in a key quotes are allowed. */
bool parse_number(struct parser *parser, const struct node *node, bool is_key, int64_t min,
                  int64_t max, int64_t *out);
/* A copy in the plan's arena; NULL after an error. */
const char *parse_keep(struct parser *parser, const char *text);

/* Index of a name in a table, -1: not there. */
int symbol_find(const struct parser *parser, enum symbol_table table, const char *name);
/* Enter a name that is not there yet; `name` must outlive the parser. */
bool symbol_add(struct parser *parser, enum symbol_table table, const char *name, int index);
/* The index of the name a node holds. Names that are declared by use are entered; tasks, queues
   and, in host programs, comms must be there. -1 after an error. */
int symbol_resolve(struct parser *parser, enum symbol_table table, const struct node *node);
/* The same for a name that the file leaves out. */
int symbol_implicit(struct parser *parser, enum symbol_table table, const char *name);
/* The same where names must be declared. */
int symbol_require(struct parser *parser, enum symbol_table table, const struct node *node);

/* A copy of a name in the plan's arena, one for all that are equal; NULL after an error. */
const char *symbol_keep(struct parser *parser, const char *name);

/* Add a comm or a buffer to the plan and its table. NULL after an error. */
struct comm *parse_add_comm(struct parser *parser, const char *name, struct mark mark);
struct buffer *parse_add_buffer(struct parser *parser, const char *name, struct mark mark);

/* The name of an index of a table. */
const char *symbol_name(const struct plan *plan, enum symbol_table table, int index);

/* ---- sections: read in the order of the table in keys_plan.c, value NULL where the plan is silent -- */

typedef void section_parser(struct parser *parser, const struct node *value);
section_parser parse_machine, parse_streams, parse_flags, parse_schedule, parse_intra_deps,
    parse_inter_deps, parse_enqueue_order, parse_overrides, parse_depth, parse_batches,
    parse_programs, parse_generate, parse_p2p, parse_parallel, parse_arithmetic, parse_layers,
    parse_model, parse_balance, parse_graphs, parse_threads;
/* One list of actions; keeps the rules that all lists obey. */
bool parse_one_program(struct parser *parser, const struct node *node, struct rank_program *out);
/* Refuse keys of rank programs that others leave without effect (parse_effects.c). */
void parse_check_effects(struct parser *parser);
/* Find out the ranks before the operations are read: parse_threads needs them. */
bool thread_name_rank(const char *name, int *rank, const char **thread_name);
/* True if the name is that of all ranks, r*.name. */
bool thread_name_is_of_all(const char *name, const char **thread_name);

/* The plan at the root of the tree (keys_plan.c). */
void parse_root(struct parser *parser);

/* ---- host programs ----------------------------------------------------------------------------- */

/* A rank on whose device something is done, kept as 1 + rank (parse_devices.c). */
bool field_device(PARSE_PARAMS);
/* Names of another rank's, `r0.name`, too: an event of the operation `member`; a list of buffers. */
bool field_event(PARSE_PARAMS);
bool field_buffers(PARSE_PARAMS);
/* A name without a rank, as field_symbol. */
bool field_own(PARSE_PARAMS);
/* The operation, or a copy in which ranks stand for what is counted from the rank of the thread; NULL after an error
   (parse_relative.c). */
const struct node *parse_relative(struct parser *parser, const struct node *item);
/* A rank, or its distance; a name of it. */
void put_rank(struct printer *printer, int rank);
void put_ranked_name(struct printer *printer, int rank, const char *name);
/* The list of all ranks of which this thread is one, once; then the lists of ranks that differ. */
void print_for_all_ranks(struct printer *printer, const struct host_thread *thread);
/* A thread's list (keys_threads.c), in the open document or aside as text, NULL after an error. */
void print_thread(struct printer *printer, const struct host_thread *thread);
const char *print_aside(struct printer *printer, const struct host_thread *thread, bool relative);
bool parse_settle_devices(struct parser *parser, struct host_thread *thread);
bool parse_check_graph_device(struct parser *parser, const struct host_op *op);
/* One operation of a thread, a graph or a body; `around`: the operation whose body this is in, or NULL. */
bool parse_op(struct parser *parser, const struct node *item, const struct host_op *around,
              struct host_op *op);
/* All operations of a thread, those of its repeats once for each iteration (parse_repeat.c). */
bool parse_thread_ops(struct parser *parser, const struct node *list, struct host_thread *thread);
/* `time` and `host_time` of an operation, `member`: one, or in a repeat a list. */
bool field_flag_use(PARSE_PARAMS);
bool field_op_time(PARSE_PARAMS);
bool field_op_host_time(PARSE_PARAMS);
/* A flag; in a repeat that of the iteration. */
bool field_flag(PARSE_PARAMS);
bool parse_graph_ops(struct parser *parser, const struct node *list, struct graph *graph);

/* ---- rank programs, also from CSV ------------------------------------------------------------ */

/* The rules all rank programs obey: no compute action twice, no stage on two ranks, no idle cell in
   a program with communication. Drops idle cells at the end of a rank and fills in has_comms. */
bool parse_check_programs(struct parser *parser);

/* Set file, scratch arena and status of a fresh parser over a fresh plan; false when memory is
   exhausted (reported). parser_finish ends both and hands out or drops the plan. */
bool parser_start(struct parser *parser, struct plan *plan, const char *file_name, const char *text,
                  size_t length, struct diag *diag);
enum status parser_finish(struct parser *parser);

/* The text of a file, or of standard input ("-"); the caller frees *out. */
enum status parse_text_of(const char *path, char **out, size_t *out_length, struct diag *diag);

/* ---- print.c: nodes of the canonical text -------------------------------------------------------- */

enum print_layout { BLOCK, FLOW };

struct printer {
    yaml_emitter_t emitter;
    const struct plan *plan;
    FILE *out;
    bool kept; /* with the lists of a schedule that is found */
    struct arena scratch;
    int default_stream, default_group; /* of PLAN_IMPLICIT_STREAM and _GROUP, -1: not in use */
    bool in_body; /* operations of a body: they are on the device of the operation around it */
    bool in_branch;
    bool relative; /* True if ranks are counted from `home` (parse_relative.c). */
    int home;      /* the rank of the thread that is printed */
    const bool *
        relative_lines; /* of a list of all ranks: per line, whether it is relative; NULL: of another */
    size_t line;        /* of that list, the next */
    bool failed;
    int write_errno; /* why the file refused, 0: it did not */
};

void open_map(struct printer *printer, enum print_layout layout);
void close_map(struct printer *printer);
void open_list(struct printer *printer, enum print_layout layout);
void close_list(struct printer *printer);

/* A text in a style of one's own; NULL means that an arena is full. */
void put_scalar(struct printer *printer, const char *text, yaml_scalar_style_t style);
/* A keyword, a number, a value with a unit. */
void put_word(struct printer *printer, const char *text);
/* A name or a text of the author's: quoted where a YAML reader would take it for something else. */
void put_text(struct printer *printer, const char *text);
void put_number(struct printer *printer, int64_t number);
void put_time(struct printer *printer, int64_t ns);
void put_bytes(struct printer *printer, int64_t bytes);

/* The values of keys at the top, and whether they are printed. */
bool has_inter_deps(const struct printer *printer);
bool has_programs(const struct printer *printer);
bool has_balance(const struct printer *printer);
typedef void section_printer(struct printer *printer);
section_printer print_streams, print_flags, print_schedule, print_intra_deps, print_inter_deps,
    print_order, print_overrides, print_batches, print_programs, print_parallel, print_balance,
    print_graphs, print_threads, print_sections;
/* A list of actions. */
void schema_program(struct json *json, const struct field *field);
void put_program(struct printer *printer, const struct rank_program *program);
/* The keys at the top of the plan (keys_plan.c). */

#endif
