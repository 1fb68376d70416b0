/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_internal.h - shared by the files of the parser.
 *
 *     parse.c           reads files, recognizes the format, top-level keys
 *     parse_yaml.c      YAML text to a tree of nodes (libyaml)
 *     parse_fields.c    tables of keys, scalars, names
 *     parse_machine.c   knobs of the device and its channels
 *     parse_pipeline.c  schedule, dependences, overrides
 *     parse_threads.c   host programs
 *     parse_programs.c  rank programs, also the rules a CSV must obey
 *     parse_costs.c     what their messages, passes and stages cost
 *
 * Nodes live in the parser's scratch arena and end with it; texts that the plan keeps are copied into the
 * plan's arena. Every function that returns bool returns false after it has reported an error.
 */
#ifndef SWSIM_PARSE_INTERNAL_H
#define SWSIM_PARSE_INTERNAL_H

#include <stddef.h>

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

/* Name to index, an open-addressing hash beside the plan's table of the same name. */
struct symbols {
    struct symbol {
        const char *name;
        int index;
    } * slots;
    size_t count, cap;
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
    struct names repeated;       /* flags used in a repeat */
    struct names single;         /* those used outside of one */
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
/* "found X, expected Y" for a whole node. */
bool parse_mismatch(struct parser *parser, const struct node *node, const char *expected);

bool parse_want_map(struct parser *parser, const struct node *node, const char *expected);
bool parse_want_list(struct parser *parser, const struct node *node, const char *expected);

/* ---- parse_yaml.c ---------------------------------------------------------------------------- */

/* The tree of parser->source; NULL after an error. Lines of operations are read by flow_lines.h where `lines` allows. */
struct node *parse_yaml(struct parser *parser, bool lines);

/* ---- parse_machine.c ------------------------------------------------------------------------- */

void parse_machine(struct parser *parser, const struct node *value);

/* ---- parse_streams.c ------------------------------------------------------------------------- */

void parse_streams(struct parser *parser, const struct node *value);
/* A stream's hardware queue is one of the machine's. */
void parse_check_hw_queues(struct parser *parser);

/* ---- parse_fields.c -------------------------------------------------------------------------- */

/* One key of a mapping: how its value is read and where it goes. */
struct field {
    const char *key;
    bool (*parse)(struct parser *parser, const struct node *value, void *member,
                  const struct field *field);
    size_t offset; /* of the member in the struct a mapping fills */
    bool required;
    int64_t min, max;         /* numbers */
    const char *const *words; /* enums, NULL-terminated; the position is the value */
    enum symbol_table table;  /* names */
};

/* Read a mapping by its table into `base`; `what` names the mapping in messages ("a task"). */
bool fields_parse(struct parser *parser, const struct node *map, const struct field *fields,
                  size_t count, void *base, const char *what);

/* `pageable` where neither side is host memory; a key that varies a time, `of`, of `ns`, which must not be 0. */
bool parse_check_pageable(struct parser *parser, const struct node *map, enum direction direction);
bool parse_check_jitter(struct parser *parser, const struct node *map, const char *key,
                        const char *of, int64_t ns);
/* May a collective of this kind have the root (a rank, -1: none given) that `map` names? */
bool parse_check_root(struct parser *parser, const struct node *map, enum collective_kind kind,
                      int root);

/* Handlers; the member's type stands behind. */
bool field_int(struct parser *parser, const struct node *value, void *member,
               const struct field *field); /* int */
bool field_int64(struct parser *parser, const struct node *value, void *member,
                 const struct field *field); /* int64_t */
bool field_rank(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* int, below the number of ranks: known by then */
bool field_bool(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* bool */
bool field_time(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* int64_t */
/* A struct cost_list. */
bool field_sizes(struct parser *parser, const struct node *value, void *member,
                 const struct field *field);
bool field_bytes(struct parser *parser, const struct node *value, void *member,
                 const struct field *field); /* int64_t */
bool field_given_time(struct parser *parser, const struct node *value, void *member,
                      const struct field *field); /* struct amount */
bool field_given_bytes(struct parser *parser, const struct node *value, void *member,
                       const struct field *field); /* struct amount */
bool field_given_rate(struct parser *parser, const struct node *value, void *member,
                      const struct field *field); /* struct amount: bytes a second, not 0 */
bool field_slots(struct parser *parser, const struct node *value, void *member,
                 const struct field *field); /* int; has a message of its own for a share */
bool field_share(struct parser *parser, const struct node *value, void *member,
                 const struct field *field); /* struct share */
bool field_shares(struct parser *parser, const struct node *value, void *member,
                  const struct field *field); /* struct shares */
bool field_word(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* an enum */
bool field_text(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* const char * */
bool field_name(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* const char * */
bool field_dist(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* struct dist */
bool field_symbol(struct parser *parser, const struct node *value, void *member,
                  const struct field *field); /* int */
bool field_symbols(struct parser *parser, const struct node *value, void *member,
                   const struct field *field); /* struct index_list */
bool field_work(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* struct work; parse_pipeline.c */

#define FIELD(key_, type, member_, handler, ...)                                                   \
    {                                                                                              \
        .key = (key_), .parse = (handler), .offset = offsetof(type, member_), __VA_ARGS__          \
    }
#define FIELD_COUNT(fields) (sizeof(fields) / sizeof *(fields))

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

/* Add a comm or a buffer to the plan and its table. NULL after an error. */
struct comm *parse_add_comm(struct parser *parser, const char *name, struct mark mark);
struct buffer *parse_add_buffer(struct parser *parser, const char *name, struct mark mark);

/* ---- sections: called in the order of the table in parse.c, value NULL where the plan is silent
 * -- */

void parse_driver(struct parser *parser, const struct node *value);
void parse_schedule(struct parser *parser, const struct node *value);
void parse_intra_deps(struct parser *parser, const struct node *value);
void parse_inter_deps(struct parser *parser, const struct node *value);
void parse_enqueue_order(struct parser *parser, const struct node *value);
void parse_overrides(struct parser *parser, const struct node *value);
void parse_depth(struct parser *parser, const struct node *value);
void parse_max_depth(struct parser *parser, const struct node *value);
void parse_num_slots(struct parser *parser, const struct node *value);
void parse_batches(struct parser *parser, const struct node *value);

void parse_programs(struct parser *parser, const struct node *value);
void parse_generate(struct parser *parser, const struct node *value);
void parse_graphs(struct parser *parser, const struct node *value);
/* A rank on whose device something is done, kept as 1 + rank (parse_devices.c). */
bool field_device(struct parser *parser, const struct node *value, void *member,
                  const struct field *field);
/* Names of another rank's, `r0.name`, too: an event of the operation `member`; a list of buffers. */
bool field_event(struct parser *parser, const struct node *value, void *member,
                 const struct field *field);
bool field_buffers(struct parser *parser, const struct node *value, void *member,
                   const struct field *field);
/* A name without a rank, as field_symbol. */
bool field_own(struct parser *parser, const struct node *value, void *member,
               const struct field *field);
bool parse_settle_devices(struct parser *parser, struct host_thread *thread);
bool parse_check_graph_device(struct parser *parser, const struct host_op *op);
/* One operation of a thread, a graph or a body; `around`: the operation whose body this is in, or NULL. */
bool parse_op(struct parser *parser, const struct node *item, const struct host_op *around,
              struct host_op *op);
/* All operations of a thread, those of its repeats once for each iteration (parse_repeat.c). */
bool parse_thread_ops(struct parser *parser, const struct node *list, struct host_thread *thread);
/* `time` and `host_time` of an operation, `member`: one, or in a repeat a list. */
bool field_op_time(struct parser *parser, const struct node *value, void *member,
                   const struct field *field);
bool field_op_host_time(struct parser *parser, const struct node *value, void *member,
                        const struct field *field);
/* A flag; in a repeat that of the iteration. */
bool field_flag(struct parser *parser, const struct node *value, void *member,
                const struct field *field);
bool parse_graph_ops(struct parser *parser, const struct node *list, struct graph *graph);
void parse_p2p(struct parser *parser, const struct node *value);
void parse_fsdp(struct parser *parser, const struct node *value);
/* One list of actions; keeps the rules that all lists obey. */
bool parse_one_program(struct parser *parser, const struct node *node, struct rank_program *out);
void parse_parallel(struct parser *parser, const struct node *value);
void parse_arithmetic(struct parser *parser, const struct node *value);
void parse_times(struct parser *parser, const struct node *value);

/* ---- parse_costs.c --------------------------------------------------------------------------- */

bool field_link(struct parser *parser, const struct node *value, void *member,
                const struct field *field); /* struct link */
bool field_edges(struct parser *parser, const struct node *value, void *member,
                 const struct field *field); /* struct links: its edges */
void parse_stages(struct parser *parser, const struct node *value);
void parse_layers(struct parser *parser, const struct node *value);
void parse_model(struct parser *parser, const struct node *value);
void parse_balance(struct parser *parser, const struct node *value);

/* Refuse keys of rank programs that others leave without effect (parse_effects.c). */
void parse_check_effects(struct parser *parser);

/* Find out the ranks before the operations are read: parse_threads needs them. */
bool thread_name_rank(const char *name, int *rank, const char **thread_name);
void parse_threads(struct parser *parser, const struct node *value);

/* ---- rank programs, also from CSV ------------------------------------------------------------ */

/* The rules all rank programs obey: no compute action twice, no stage on two ranks, no idle cell in
   a program with communication. Drops idle cells at the end of a rank and fills in has_comms. */
bool parse_check_programs(struct parser *parser);

/* Set file, scratch arena and status of a fresh parser over a fresh plan; false when memory is
   exhausted (reported). parser_finish ends both and hands out or drops the plan. */
bool parser_start(struct parser *parser, struct plan *plan, const char *file_name, const char *text,
                  size_t length, struct diag *diag);
enum status parser_finish(struct parser *parser);

#endif
