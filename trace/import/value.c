/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h; trees from JSON. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

#include "json_reader.h"

#include "base/array.h"
#include "base/hash.h"

const struct value *value_get(const struct value *value, const char *key)
{
    if (!value || value->kind != VALUE_DICT)
        return NULL;
    for (size_t i = 0; i + 1 < value->count; i += 2) {
        const char *text = value_text(value->items[i]);
        if (text && strcmp(text, key) == 0)
            return value->items[i + 1];
    }
    return NULL;
}

int64_t value_int(const struct value *value, int64_t otherwise)
{
    int64_t number;
    if (value && (value->kind == VALUE_INT || value->kind == VALUE_BOOL))
        return value->number;
    if (value && value->kind == VALUE_TEXT &&
        decimal_scaled(value->text, strlen(value->text), 0, &number))
        return number;
    return otherwise;
}

const char *value_text(const struct value *value)
{
    return value && value->kind == VALUE_TEXT ? value->text : NULL;
}

size_t value_count(const struct value *value)
{
    return value && value->kind == VALUE_LIST ? value->count : 0;
}

/* ---- values that come again -------------------------------------------------------------------- */

/* Dumps repeat the same keys, words and small numbers in each entry: those that were made last are used again. */
enum { RECENT = 1024, RECENT_LONGEST = 64 };
struct recent {
    struct value *items[RECENT];
};

/* NULL without memory. */
static struct value *recent_int(struct recent *recent, struct arena *arena, int64_t number)
{
    struct value **place = &recent->items[(uint64_t)number % RECENT];
    if (*place && (*place)->kind == VALUE_INT && (*place)->number == number)
        return *place;
    struct value *value = ARENA_NEW(arena, struct value);
    if (value)
        *value = (struct value){.kind = VALUE_INT, .number = number};
    return value ? *place = value : NULL;
}

static struct value *recent_text(struct recent *recent, struct arena *arena, const char *text,
                                 size_t length)
{
    struct value **place =
        length <= RECENT_LONGEST ? &recent->items[hash_bytes(text, length) % RECENT] : NULL;
    if (place && *place && (*place)->kind == VALUE_TEXT &&
        strncmp((*place)->text, text, length) == 0 && (*place)->text[length] == 0)
        return *place;
    struct value *value = ARENA_NEW(arena, struct value);
    if (!value)
        return NULL;
    *value = (struct value){.kind = VALUE_TEXT, .text = arena_strndup(arena, text, length)};
    if (place && value->text)
        *place = value;
    return value->text ? value : NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct value_builder {
    struct json_reader reader;
    struct arena *arena;
    struct recent recent;
    struct value **stack; /* the items of what is not complete */
    size_t count, cap;
    size_t open[JSON_MAX_NESTING + 1]; /* the lists and dicts that are not complete: stack */
    int depth;
};

/* Members that nothing asks for, and which differ in every entry. */
static bool is_passed_over(const struct json_reader *reader)
{
    static const char *const keys[] = {"time_created_ns",
                                       "time_discovered_started_ns",
                                       "time_discovered_completed_ns",
                                       "op_id",
                                       "duration_ms",
                                       "timeout_ms",
                                       "thread_id",
                                       "pg_id"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_text_is(reader, keys[i]))
            return true;
    return false;
}

/* The value of a token that is no beginning and no end; NULL without memory. */
static struct value *value_make(struct value_builder *builder, enum json_token token)
{
    const struct json_reader *reader = &builder->reader;
    int64_t number;
    if (token == JSON_KEY || token == JSON_STRING)
        return recent_text(&builder->recent, builder->arena, reader->text, reader->length);
    if (token == JSON_NUMBER && decimal_scaled(reader->text, reader->length, 0, &number))
        return recent_int(&builder->recent, builder->arena, number);
    struct value *value = ARENA_NEW(builder->arena, struct value);
    if (value)
        *value = (struct value){.kind = token == JSON_NUMBER   ? VALUE_REAL
                                        : token == JSON_OBJECT ? VALUE_DICT
                                        : token == JSON_ARRAY  ? VALUE_LIST
                                        : token == JSON_NULL   ? VALUE_NONE
                                                               : VALUE_BOOL,
                                .number = token == JSON_TRUE};
    return value;
}

/* The list or dict that is open has the items behind it. */
static bool value_close(struct value_builder *builder)
{
    const size_t first = builder->open[--builder->depth] + 1;
    struct value *into = builder->stack[first - 1];
    into->count = into->cap = builder->count - first;
    builder->count = first;
    if (into->count == 0)
        return true;
    into->items = ARENA_ARRAY(builder->arena, into->count, struct value *);
    if (into->items)
        memcpy(into->items, builder->stack + first, into->count * sizeof *into->items);
    return into->items != NULL;
}

static bool value_take_token(struct value_builder *builder, enum json_token token)
{
    if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
        return value_close(builder);
    if (token == JSON_KEY && is_passed_over(&builder->reader)) {
        json_skip(&builder->reader);
        return true;
    }
    struct value *value = value_make(builder, token);
    if (!value || !ARRAY_GROW(builder->stack, builder->count, builder->cap))
        return false;
    if (token == JSON_OBJECT || token == JSON_ARRAY)
        builder->open[builder->depth++] = builder->count;
    builder->stack[builder->count++] = value;
    return true;
}

enum status value_read_json(struct bytes *bytes, struct arena *arena, struct value **out,
                            struct diag *diag)
{
    struct value_builder builder = {.arena = arena};
    enum json_token token;
    enum status status = json_reader_open(&builder.reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    while (status == STATUS_OK && (token = json_next(&builder.reader)) > JSON_DONE) {
        if (!value_take_token(&builder, token))
            status = diag_no_memory(diag);
        else if (builder.reader.consumed > VALUE_MAX_BYTES)
            status = diag_error(diag, STATUS_INPUT, "%s: larger than 256 MiB", bytes_name(bytes));
    }
    if (status == STATUS_OK)
        status = builder.reader.status;
    json_reader_close(&builder.reader);
    if (status == STATUS_OK)
        *out = builder.stack[0];
    free(builder.stack);
    return status;
}

/*
 * The part of Python's pickle that is data (protocols 0x80 0x02 and later).
 *
 * A pickle is a program for a stack machine. This one knows the instructions that push numbers, texts, lists, tuples and
 * dicts, and those that keep and fetch them. Those that import names or call code (code_name) are refused by their name,
 * all others by their number, and nothing is ever looked up. PyTorch's recorder writes protocol 2 without type tags, so
 * its dumps need none of them. Instructions: Python's pickletools.
 */

struct machine {
    const unsigned char *at, *end;
    size_t length;
    const char *name;
    struct arena *arena;
    struct recent recent;
    struct diag *diag;
    struct value **stack; /* NULL: a mark */
    size_t depth, depth_cap;
    struct value **memo;
    size_t memo_count, memo_cap;
    enum status status;
    bool done;
};

static bool value_fail(struct machine *machine, const char *why)
{
    if (machine->status == STATUS_OK)
        machine->status = diag_error(machine->diag, STATUS_INPUT, "%s: %s", machine->name, why);
    return false;
}

static bool value_no_memory(struct machine *machine)
{
    if (machine->status == STATUS_OK)
        machine->status = diag_no_memory(machine->diag);
    return false;
}

static bool value_push(struct machine *machine, struct value *value)
{
    if (!ARRAY_GROW(machine->stack, machine->depth, machine->depth_cap))
        return value_no_memory(machine);
    machine->stack[machine->depth++] = value;
    return true;
}

static bool value_push_new(struct machine *machine, enum value_kind kind, int64_t number)
{
    struct value *value = kind == VALUE_INT ? recent_int(&machine->recent, machine->arena, number)
                                            : ARENA_NEW(machine->arena, struct value);
    if (!value)
        return value_no_memory(machine);
    value->kind = kind;
    value->number = number;
    return value_push(machine, value);
}

/* A little-endian number of `bytes` bytes, at most 8; false at the end of the file. */
static bool value_number(struct machine *machine, size_t bytes, uint64_t *out)
{
    if ((size_t)(machine->end - machine->at) < bytes)
        return value_fail(machine, "the pickle ends before it is complete");
    *out = 0;
    for (size_t i = bytes; i-- > 0;)
        *out = *out << 8 | machine->at[i];
    machine->at += bytes;
    return true;
}

static bool push_int(struct machine *machine, size_t bytes, bool is_signed)
{
    uint64_t value;
    if (!value_number(machine, bytes, &value))
        return false;
    if (is_signed && bytes > 0 && bytes < 8 && value >> (8 * bytes - 1) & 1)
        value |= UINT64_MAX << 8 * bytes;
    return value_push_new(machine, VALUE_INT, (int64_t)value);
}

/* LONG1: a length, then that many bytes of a number. */
static bool push_long(struct machine *machine)
{
    uint64_t length;
    if (!value_number(machine, 1, &length))
        return false;
    return length <= 8 ? push_int(machine, (size_t)length, true)
                       : value_fail(machine, "a number of more than 64 bits");
}

static bool push_text(struct machine *machine, size_t length_bytes)
{
    uint64_t length;
    if (!value_number(machine, length_bytes, &length))
        return false;
    if (length > (uint64_t)(machine->end - machine->at))
        return value_fail(machine, "the pickle ends before it is complete");
    struct value *value =
        recent_text(&machine->recent, machine->arena, (const char *)machine->at, (size_t)length);
    machine->at += length;
    return value ? value_push(machine, value) : value_no_memory(machine);
}

static bool push_real(struct machine *machine)
{
    uint64_t bits;
    return value_number(machine, 8, &bits) && value_push_new(machine, VALUE_REAL, 0);
}

/* ---- lists and dicts ------------------------------------------------------------------------- */

/* The place behind the last mark; the stack below it belongs to what is open. */
static bool find_mark(struct machine *machine, size_t *out)
{
    size_t at = machine->depth;
    while (at > 0 && machine->stack[at - 1])
        at--;
    *out = at;
    return at > 0 || value_fail(machine, "the pickle is damaged: a mark is missing");
}

/* Adds to a list; false without memory. */
static bool value_append(struct value *list, struct value *item, struct arena *arena)
{
    if (!ARENA_GROW(arena, list->items, list->count, list->cap))
        return false;
    list->items[list->count++] = item;
    return true;
}

/* Items from `first` to the top go into `into`, and leave the stack. */
static bool move(struct machine *machine, struct value *into, size_t first, size_t left)
{
    if (into->count == 0 && machine->depth - first > 1) {
        into->cap = machine->depth - first;
        into->items = ARENA_ARRAY(machine->arena, into->cap, struct value *);
        if (!into->items)
            return value_no_memory(machine);
    }
    for (size_t i = first; i < machine->depth; i++)
        if (!value_append(into, machine->stack[i], machine->arena))
            return value_no_memory(machine);
    machine->depth = left;
    return true;
}

/* The item at `at` from the top; NULL: there is none. */
static struct value *value_item(struct machine *machine, size_t from_top)
{
    if (machine->depth <= from_top || !machine->stack[machine->depth - 1 - from_top]) {
        value_fail(machine, "the pickle is damaged: a value is missing");
        return NULL;
    }
    return machine->stack[machine->depth - 1 - from_top];
}

/* The last `count` items become a tuple. */
static bool make_tuple(struct machine *machine, size_t count)
{
    struct value *tuple = ARENA_NEW(machine->arena, struct value);
    if (!tuple)
        return value_no_memory(machine);
    tuple->kind = VALUE_LIST;
    if (count > 0 && !value_item(machine, count - 1))
        return false;
    const size_t first = machine->depth - count;
    return move(machine, tuple, first, first) && value_push(machine, tuple);
}

static bool make_marked_tuple(struct machine *machine)
{
    size_t mark;
    struct value *tuple = ARENA_NEW(machine->arena, struct value);
    if (!tuple)
        return value_no_memory(machine);
    tuple->kind = VALUE_LIST;
    return find_mark(machine, &mark) && move(machine, tuple, mark, mark - 1) &&
           value_push(machine, tuple);
}

/* APPEND and SETITEM take `count` items, APPENDS and SETITEMS all behind the mark. */
static bool add_to(struct machine *machine, enum value_kind kind, size_t count)
{
    struct value *into = value_item(machine, count);
    if (!into)
        return false;
    if (into->kind != kind)
        return value_fail(machine, "the pickle is damaged: items of something else");
    for (size_t i = 0; i < count; i++)
        if (!value_item(machine, i))
            return false;
    return move(machine, into, machine->depth - count, machine->depth - count);
}

static bool add_marked(struct machine *machine, enum value_kind kind)
{
    size_t mark;
    if (!find_mark(machine, &mark))
        return false;
    struct value *into = mark >= 2 ? machine->stack[mark - 2] : NULL;
    if (!into || into->kind != kind || (kind == VALUE_DICT && (machine->depth - mark) % 2 != 0))
        return value_fail(machine, "the pickle is damaged: items of something else");
    return move(machine, into, mark, mark - 1);
}

/* ---- the memo -------------------------------------------------------------------------------- */

static bool pickle_put_memo(struct machine *machine, uint64_t place)
{
    struct value *value = value_item(machine, 0);
    if (!value)
        return false;
    if (place >= machine->length) /* every place takes an instruction */
        return value_fail(machine, "the pickle is damaged: its memo is too large");
    while (machine->memo_count <= place) {
        if (!ARRAY_GROW(machine->memo, machine->memo_count, machine->memo_cap))
            return value_no_memory(machine);
        machine->memo[machine->memo_count++] = NULL;
    }
    machine->memo[place] = value;
    return true;
}

static bool put_at(struct machine *machine, size_t bytes)
{
    uint64_t place;
    return value_number(machine, bytes, &place) && pickle_put_memo(machine, place);
}

static bool get_at(struct machine *machine, size_t bytes)
{
    uint64_t place;
    if (!value_number(machine, bytes, &place))
        return false;
    if (place >= machine->memo_count || !machine->memo[place])
        return value_fail(machine, "the pickle is damaged: nothing was kept there");
    return value_push(machine, machine->memo[place]);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool value_skip(struct machine *machine, size_t bytes)
{
    uint64_t ignored;
    return value_number(machine, bytes, &ignored);
}

static bool value_pop(struct machine *machine)
{
    if (!value_item(machine, 0))
        return false;
    machine->depth--;
    return true;
}

/* Opcodes that import, look up or call something, or make an object. */
static const char *code_name(unsigned char instruction)
{
    switch (instruction) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 'b': return "BUILD";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x97: return "NEXT_BUFFER";
    default: return NULL;
    }
}

static bool value_refuse(struct machine *machine, unsigned char instruction)
{
    const char *name = code_name(instruction);
    if (machine->status == STATUS_OK && name)
        machine->status = diag_error(machine->diag, STATUS_INPUT,
                                     "%s: its pickle is not of data alone (%s would import, look "
                                     "up or call something), and is not followed",
                                     machine->name, name);
    else if (machine->status == STATUS_OK)
        machine->status = diag_error(machine->diag, STATUS_INPUT,
                                     "%s: its pickle has instruction 0x%02x, which no dump needs, "
                                     "and is not followed",
                                     machine->name, instruction);
    return false;
}

static bool value_execute(struct machine *machine, unsigned char instruction)
{
    switch (instruction) {
    case 0x80: return value_skip(machine, 1);                        /* PROTO */
    case 0x95: return value_skip(machine, 8);                        /* FRAME */
    case '(': return value_push(machine, NULL);                      /* MARK */
    case '0': return value_pop(machine);                             /* POP */
    case 'N': return value_push_new(machine, VALUE_NONE, 0);         /* NONE */
    case 0x88: return value_push_new(machine, VALUE_BOOL, 1);        /* NEWTRUE */
    case 0x89: return value_push_new(machine, VALUE_BOOL, 0);        /* NEWFALSE */
    case 'K': return push_int(machine, 1, false);                    /* BININT1 */
    case 'M': return push_int(machine, 2, false);                    /* BININT2 */
    case 'J': return push_int(machine, 4, true);                     /* BININT */
    case 0x8a: return push_long(machine);                            /* LONG1 */
    case 'G': return push_real(machine);                             /* BINFLOAT */
    case 0x8c: return push_text(machine, 1);                         /* SHORT_BINUNICODE */
    case 'X': return push_text(machine, 4);                          /* BINUNICODE */
    case 0x8d: return push_text(machine, 8);                         /* BINUNICODE8 */
    case 'U':                                                        /* SHORT_BINSTRING */
    case 'C': return push_text(machine, 1);                          /* SHORT_BINBYTES */
    case 'T':                                                        /* BINSTRING */
    case 'B': return push_text(machine, 4);                          /* BINBYTES */
    case ']': return value_push_new(machine, VALUE_LIST, 0);         /* EMPTY_LIST */
    case ')': return value_push_new(machine, VALUE_LIST, 0);         /* EMPTY_TUPLE */
    case '}': return value_push_new(machine, VALUE_DICT, 0);         /* EMPTY_DICT */
    case 'a': return add_to(machine, VALUE_LIST, 1);                 /* APPEND */
    case 's': return add_to(machine, VALUE_DICT, 2);                 /* SETITEM */
    case 'e': return add_marked(machine, VALUE_LIST);                /* APPENDS */
    case 'u': return add_marked(machine, VALUE_DICT);                /* SETITEMS */
    case 't': return make_marked_tuple(machine);                     /* TUPLE */
    case 0x85: return make_tuple(machine, 1);                        /* TUPLE1 */
    case 0x86: return make_tuple(machine, 2);                        /* TUPLE2 */
    case 0x87: return make_tuple(machine, 3);                        /* TUPLE3 */
    case 'q': return put_at(machine, 1);                             /* BINPUT */
    case 'r': return put_at(machine, 4);                             /* LONG_BINPUT */
    case 0x94: return pickle_put_memo(machine, machine->memo_count); /* MEMOIZE */
    case 'h': return get_at(machine, 1);                             /* BINGET */
    case 'j': return get_at(machine, 4);                             /* LONG_BINGET */
    case '.': machine->done = true; return true;                     /* STOP */
    default: return value_refuse(machine, instruction);
    }
}

static enum status value_run(struct machine *machine, struct value **out)
{
    while (!machine->done && machine->at < machine->end)
        if (!value_execute(machine, *machine->at++))
            return machine->status;
    if (!machine->done)
        value_fail(machine, "the pickle ends before it is complete");
    else if (value_item(machine, 0))
        *out = value_item(machine, 0);
    return machine->status;
}

/* All bytes of a file, in memory that the caller frees. */
static enum status value_read_all(struct bytes *bytes, unsigned char **out, size_t *length,
                                  struct diag *diag)
{
    size_t cap = 1 << 16, got = 1;
    unsigned char *data = malloc(cap);
    enum status status = data ? STATUS_OK : diag_no_memory(diag);
    *length = 0;
    while (status == STATUS_OK && got > 0) {
        if (*length == cap) {
            unsigned char *more = cap < VALUE_MAX_BYTES ? realloc(data, cap * 2) : NULL;
            if (!more) {
                status = cap < VALUE_MAX_BYTES
                             ? diag_no_memory(diag)
                             : diag_error(diag, STATUS_INPUT, "%s: larger than 256 MiB",
                                          bytes_name(bytes));
                break;
            }
            data = more;
            cap *= 2;
        }
        status = bytes_read(bytes, data + *length, cap - *length, &got, diag);
        *length += status == STATUS_OK ? got : 0;
    }
    if (status == STATUS_OK)
        *out = data;
    else
        free(data);
    return status;
}

enum status value_read_pickle(struct bytes *bytes, struct arena *arena, struct value **out,
                              struct diag *diag)
{
    unsigned char *data;
    size_t length;
    enum status status = value_read_all(bytes, &data, &length, diag);
    if (status != STATUS_OK)
        return status;
    struct machine machine = {.at = data,
                              .end = data + length,
                              .length = length,
                              .name = bytes_name(bytes),
                              .arena = arena,
                              .diag = diag};
    status = value_run(&machine, out);
    free(machine.stack);
    free(machine.memo);
    free(data);
    return status;
}
