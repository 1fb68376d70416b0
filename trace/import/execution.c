/* SPDX-License-Identifier: Apache-2.0 */
/* execution.c - see execution.h: the file, the schemas of its operators, and the join with the works of a rank. */
#include "execution.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "base/table.h"

/* ---- schemas --------------------------------------------------------------------------------- */

/* What an operator does with the storages of an argument. */
enum { ARGUMENT_READ = 1, ARGUMENT_WRITTEN = 2 };

enum { MAX_ARGUMENTS = 64, SCHEMA_TEXT = 8192, NAME_TEXT = 256 };

struct schema {
    bool known;
    bool makes_nothing; /* its outputs hold no value: aten::empty */
    int argument_count;
    unsigned arguments[MAX_ARGUMENTS];
};

/* Operators in place that write all of their first argument and read nothing of it. */
static const char *const overwriting[] = {
    "copy_",     "zero_",      "fill_",   "normal_", "uniform_",    "random_",     "bernoulli_",
    "randperm_", "geometric_", "cauchy_", "eye_",    "log_normal_", "exponential_"};

/* Operators whose schema marks an argument as changed, and that change nothing of its memory. */
static const char *const renaming[] = {
    "record_stream",  "resize_",     "resize_as_", "set_",      "detach_",
    "requires_grad_", "t_",          "transpose_", "squeeze_",  "unsqueeze_",
    "rename_",        "as_strided_", "swapaxes_",  "swapdims_", "_resize_output_"};

/* Operators that hand out memory as it is. */
static const char *const allocating[] = {"empty",     "empty_like",        "empty_strided",
                                         "new_empty", "new_empty_strided", "empty_permuted"};

/* Of torch.distributed: what its first two arguments are. */
static const struct distributed_word {
    const char *name;
    unsigned arguments[2];
} distributed_words[] = {
    {"allreduce_", {ARGUMENT_READ | ARGUMENT_WRITTEN, 0}},
    {"allreduce_coalesced_", {ARGUMENT_READ | ARGUMENT_WRITTEN, 0}},
    {"broadcast_", {ARGUMENT_READ | ARGUMENT_WRITTEN, 0}},
    {"reduce_", {ARGUMENT_READ | ARGUMENT_WRITTEN, 0}},
    {"send", {ARGUMENT_READ, 0}},
    {"recv_", {ARGUMENT_WRITTEN, 0}},
    {"recv_any_source_", {ARGUMENT_WRITTEN, 0}},
    {"allgather_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"allgather_coalesced_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"allgather_into_tensor_coalesced_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"_allgather_base_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"reduce_scatter_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"reduce_scatter_tensor_coalesced_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"_reduce_scatter_base_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"gather_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"scatter_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"alltoall_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
    {"alltoall_base_", {ARGUMENT_WRITTEN, ARGUMENT_READ}},
};

static bool execution_is_one_of(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(word, list) execution_is_one_of(word, list, sizeof(list) / sizeof *(list))

static bool schema_of_distributed(const char *name, struct schema *out)
{
    for (size_t i = 0; i < sizeof distributed_words / sizeof *distributed_words; i++)
        if (strcmp(name, distributed_words[i].name) == 0) {
            out->known = true;
            out->argument_count = 2;
            memcpy(out->arguments, distributed_words[i].arguments,
                   sizeof distributed_words[i].arguments);
            return true;
        }
    return false;
}

/* The argument that ends at `end`; `named`: it stands behind the '*', where out= does. */
static void schema_add_argument(struct schema *schema, const char *at, const char *end, bool named)
{
    const char *open = memchr(at, '(', (size_t)(end - at));
    const bool changed = memchr(at, '!', (size_t)(end - at)) != NULL;
    if (schema->argument_count < MAX_ARGUMENTS)
        schema->arguments[schema->argument_count++] =
            changed ? ARGUMENT_WRITTEN | (named ? 0U : ARGUMENT_READ)
            : open  ? 0U
                    : ARGUMENT_READ;
}

/* "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)" */
static void schema_read_arguments(struct schema *schema, const char *at)
{
    bool named = false;
    int depth = 0;
    const char *begin = at;
    for (; *at; at++) {
        depth += *at == '(' || *at == '[';
        const bool closes = *at == ')' && depth == 0;
        if ((*at == ',' && depth == 0) || closes) {
            while (*begin == ' ')
                begin++;
            if (*begin == '*' && at == begin + 1)
                named = true;
            else if (at > begin)
                schema_add_argument(schema, begin, at, named);
            begin = at + 1;
        }
        if (closes)
            return;
        depth -= *at == ')' || *at == ']';
    }
}

/* `name` is that of the operator: "aten::add_". */
static struct schema schema_of(const char *name, const char *text)
{
    struct schema schema = {0};
    const char *colons = strstr(name, "::"), *word = colons ? colons + 2 : name;
    const char *open = strchr(text, '(');
    if (strcmp(name, "record_param_comms") == 0) {
        schema.known = true;
        schema.argument_count = 1;
        schema.arguments[0] = ARGUMENT_READ;
        return schema;
    }
    if ((strncmp(name, "c10d::", 6) == 0 && schema_of_distributed(word, &schema)) || !open)
        return schema;
    schema.known = true;
    if (IS_ONE_OF(word, renaming))
        return schema;
    schema_read_arguments(&schema, open + 1);
    if (IS_ONE_OF(word, overwriting))
        schema.arguments[0] = ARGUMENT_WRITTEN;
    schema.makes_nothing = IS_ONE_OF(word, allocating);
    return schema;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A storage among the values of a node. */
struct node_storage {
    int64_t storage;
    int argument;
    bool of_host;
};

struct node_storages {
    struct node_storage *items;
    size_t count, cap;
};

struct execution_reader {
    struct json_reader json;
    struct execution *out;
    struct arena *arena;
    struct node_storages inputs, outputs; /* of the node */
    char name[NAME_TEXT], schema[SCHEMA_TEXT];
    int64_t number;
    bool has_nodes, no_memory;
};

/* A tensor is [id, storage, offset, elements, bytes of one, device]; a list of tensors has these in it. False where the
   reader failed. */
static bool execution_read_list(struct execution_reader *reader, int argument,
                                struct node_storages *out)
{
    enum { STORAGE = 1, NUMBERS = 5 };
    struct json_reader *json = &reader->json;
    int64_t numbers[NUMBERS];
    int place = 0, number_count = 0;
    bool of_host = false, is_tensor = false;
    enum json_token token;
    for (token = json_next(json); token != JSON_ARRAY_END && token != JSON_FAILED;
         token = json_next(json), place++) {
        if (token == JSON_ARRAY) {
            if (!execution_read_list(reader, argument, out))
                return false;
            continue;
        }
        if (token == JSON_NUMBER && place == number_count && place < NUMBERS &&
            decimal_scaled(json->text, json->length, 0, &numbers[place]))
            number_count++;
        if (token == JSON_STRING && place == NUMBERS) {
            is_tensor = number_count == NUMBERS;
            of_host = json_text_is(json, "cpu");
        }
        if (!json_skip_rest(json, token))
            return false;
    }
    if (token != JSON_ARRAY_END || !is_tensor || place != NUMBERS + 1 || numbers[STORAGE] <= 0)
        return token == JSON_ARRAY_END;
    if (!ARENA_GROW(reader->arena, out->items, out->count, out->cap)) {
        reader->no_memory = true;
        return false;
    }
    out->items[out->count++] = (struct node_storage){numbers[STORAGE], argument, of_host};
    return true;
}

/* The list of arguments, whose '[' was the last token. */
static bool execution_read_values(struct execution_reader *reader, struct node_storages *out)
{
    struct json_reader *json = &reader->json;
    int argument = 0;
    enum json_token token;
    for (token = json_next(json); token != JSON_ARRAY_END; token = json_next(json), argument++)
        if (token == JSON_ARRAY ? !execution_read_list(reader, argument, out)
                                : !json_skip_rest(json, token))
            return false;
    return true;
}

/* {"values": [...], "shapes": ...}; before version 1.0.2 the list alone. */
static bool execution_read_tensors(struct execution_reader *reader, struct node_storages *out)
{
    struct json_reader *json = &reader->json;
    enum json_token token = json_next(json);
    if (token == JSON_ARRAY)
        return execution_read_values(reader, out);
    if (token != JSON_OBJECT)
        return json_skip_rest(json, token);
    while ((token = json_next(json)) == JSON_KEY) {
        const bool values = json_text_is(json, "values");
        if (!values) {
            json_skip(json);
            continue;
        }
        token = json_next(json);
        if (token == JSON_ARRAY ? !execution_read_values(reader, out)
                                : !json_skip_rest(json, token))
            return false;
    }
    return token == JSON_OBJECT_END;
}

/* An attribute: {"name": "rf_id", "type": "uint64", "value": 7} */
static bool execution_read_attribute(struct execution_reader *reader)
{
    struct json_reader *json = &reader->json;
    char name[NAME_TEXT] = "";
    enum json_token token;
    while ((token = json_next(json)) == JSON_KEY)
        if (json_text_is(json, "name"))
            json_take_text(json, name, sizeof name);
        else if (json_text_is(json, "value") && strcmp(name, "rf_id") == 0)
            json_take_number(json, 0, &reader->number);
        else if (json_text_is(json, "value") && strcmp(name, "op_schema") == 0)
            json_take_text(json, reader->schema, sizeof reader->schema);
        else
            json_skip(json);
    return token == JSON_OBJECT_END;
}

static bool execution_read_attributes(struct execution_reader *reader)
{
    struct json_reader *json = &reader->json;
    enum json_token token = json_next(json);
    if (token != JSON_ARRAY)
        return json_skip_rest(json, token);
    while ((token = json_next(json)) == JSON_OBJECT)
        if (!execution_read_attribute(reader))
            return false;
    return token == JSON_ARRAY_END || json_skip_rest(json, token);
}

static bool execution_read_member(struct execution_reader *reader)
{
    struct json_reader *json = &reader->json;
    if (json_text_is(json, "name"))
        return json_take_text(json, reader->name, sizeof reader->name);
    if (json_text_is(json, "inputs"))
        return execution_read_tensors(reader, &reader->inputs);
    if (json_text_is(json, "outputs"))
        return execution_read_tensors(reader, &reader->outputs);
    if (json_text_is(json, "attrs"))
        return execution_read_attributes(reader);
    if (json_text_is(json, "rf_id"))
        return json_take_number(json, 0, &reader->number);
    if (json_text_is(json, "op_schema"))
        return json_take_text(json, reader->schema, sizeof reader->schema);
    return json_skip(json);
}

static bool execution_add_access(struct execution_reader *reader, const struct node_storage *of,
                                 unsigned use)
{
    struct execution *out = reader->out;
    if (use == 0)
        return true;
    if (!ARENA_GROW(reader->arena, out->accesses, out->access_count, out->access_cap))
        return false;
    out->accesses[out->access_count++] =
        (struct execution_access){.storage = of->storage,
                                  .write = (use & ARGUMENT_WRITTEN) != 0,
                                  .reads_too = (use & ARGUMENT_READ) != 0,
                                  .of_host = of->of_host};
    return true;
}

static bool is_storage_of(const struct node_storages *list, int64_t storage)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].storage == storage)
            return true;
    return false;
}

/* The node that was read, where its accesses are known and are any. */
static bool execution_take_node(struct execution_reader *reader)
{
    struct execution *out = reader->out;
    const struct schema schema = schema_of(reader->name, reader->schema);
    const bool comms = strcmp(reader->name, "record_param_comms") == 0;
    struct execution_node node = {.number = reader->number,
                                  .name_hash = table_hash_name(reader->name),
                                  .first = (int)out->access_count};
    if (!schema.known || reader->number <= 0 || out->access_count > INT32_MAX / 2)
        return true;
    for (size_t i = 0; i < reader->inputs.count; i++) {
        const int argument = reader->inputs.items[i].argument;
        if (argument < schema.argument_count &&
            !execution_add_access(reader, &reader->inputs.items[i], schema.arguments[argument]))
            return false;
    }
    for (size_t i = 0; i < reader->outputs.count && !schema.makes_nothing; i++)
        if ((comms || !is_storage_of(&reader->inputs, reader->outputs.items[i].storage)) &&
            strncmp(reader->name, "c10d::", 6) != 0 &&
            !execution_add_access(reader, &reader->outputs.items[i], ARGUMENT_WRITTEN))
            return false;
    node.count = (int)out->access_count - node.first;
    if (node.count == 0)
        return true;
    if (!ARENA_GROW(reader->arena, out->nodes, out->node_count, out->node_cap))
        return false;
    out->nodes[out->node_count++] = node;
    return true;
}

static enum status execution_read_nodes(struct execution_reader *reader, struct diag *diag)
{
    struct json_reader *json = &reader->json;
    enum json_token token = json_next(json);
    if (token != JSON_ARRAY)
        return json_refuse(json, "a list of nodes behind \"nodes\"");
    reader->has_nodes = true;
    while ((token = json_next(json)) == JSON_OBJECT) {
        reader->inputs.count = reader->outputs.count = 0;
        reader->name[0] = reader->schema[0] = 0;
        reader->number = -1;
        bool good = true;
        while (good && (token = json_next(json)) == JSON_KEY)
            good = execution_read_member(reader);
        if (reader->no_memory || (json->status == STATUS_OK && !execution_take_node(reader)))
            return diag_no_memory(diag);
        if (json->status != STATUS_OK)
            return json->status;
    }
    return token == JSON_ARRAY_END ? STATUS_OK : json_refuse(json, "a node, '{'");
}

static int execution_by_number(const void *left, const void *right)
{
    const struct execution_node *a = left, *b = right;
    return compare_i64(a->number, b->number);
}

enum status execution_read(struct bytes *bytes, struct arena *arena, struct execution *out,
                           struct diag *diag)
{
    *out = (struct execution){.file = bytes_name(bytes), .pid = -1};
    struct execution_reader *reader = ARENA_ARRAY(arena, 1, struct execution_reader);
    if (!reader)
        return diag_no_memory(diag);
    *reader = (struct execution_reader){.out = out, .arena = arena};
    enum status status = json_reader_open(&reader->json, bytes, diag);
    if (status != STATUS_OK)
        return status;
    struct json_reader *json = &reader->json;
    enum json_token token = json_next(json);
    if (token != JSON_OBJECT)
        status = json_refuse(json, "an execution trace, '{'");
    while (status == STATUS_OK && (token = json_next(json)) == JSON_KEY)
        if (json_text_is(json, "nodes"))
            status = execution_read_nodes(reader, diag);
        else if (json_text_is(json, "pid"))
            json_take_number(json, 0, &out->pid);
        else
            json_skip(json);
    if (status == STATUS_OK)
        status = json->status;
    json_reader_close(json);
    if (status == STATUS_OK && !reader->has_nodes)
        status = diag_error(diag, STATUS_INPUT, "%s: it has no \"nodes\": no execution trace",
                            out->file);
    SORT(out->nodes, out->node_count, execution_by_number);
    return status;
}

/* ---- operators and their places --------------------------------------------------------------- */

/* An operator of a rank, and the one around it. */
struct placed_operator {
    const struct job_operator *of;
    int parent;   /* -1: none */
    int node;     /* of the trace; -1: its accesses are not known */
    bool is_told; /* works have its accesses to memory of the host */
};

struct joiner {
    struct job *job;
    struct job_rank *rank;
    const struct execution *trace;
    struct placed_operator *operators; /* by thread, then by start, the outer one first */
    size_t count;
    struct table storages; /* of rank->memories */
    int64_t *storage;      /* per memory: its number in the trace */
    size_t storage_cap;
    size_t joined, named; /* operators that both have, and those of one name */
};

static int execution_by_place(const void *left, const void *right)
{
    const struct job_operator *a = ((const struct placed_operator *)left)->of,
                              *b = ((const struct placed_operator *)right)->of;
    return compare_then(
        compare_int(a->thread, b->thread),
        compare_then(compare_i64(a->start_ns, b->start_ns), compare_i64(b->end_ns, a->end_ns)));
}

static int execution_find_node(const struct execution *trace, int64_t number)
{
    const size_t at = SORT_FIRST(i, 0, trace->node_count, trace->nodes[i].number >= number);
    return at < trace->node_count && trace->nodes[at].number == number ? (int)at : -1;
}

static bool execution_place(struct joiner *joiner)
{
    const struct job_rank *rank = joiner->rank;
    joiner->count = rank->operator_count;
    joiner->operators = malloc((joiner->count + 1) * sizeof *joiner->operators);
    if (!joiner->operators)
        return false;
    for (size_t i = 0; i < joiner->count; i++)
        joiner->operators[i] = (struct placed_operator){.of = &rank->operators[i], .parent = -1};
    SORT(joiner->operators, joiner->count, execution_by_place);
    for (size_t i = 0; i < joiner->count; i++) {
        struct placed_operator *own = &joiner->operators[i];
        int parent = (int)i - 1;
        while (parent >= 0 && (joiner->operators[parent].of->thread != own->of->thread ||
                               joiner->operators[parent].of->end_ns < own->of->end_ns))
            parent = joiner->operators[parent].of->thread == own->of->thread
                         ? joiner->operators[parent].parent
                         : -1;
        own->parent = parent;
        own->node = execution_find_node(joiner->trace, own->of->number);
        if (own->node < 0)
            continue;
        joiner->joined++;
        const char *name = joiner->job->names.items[own->of->name];
        joiner->named += table_hash_name(name) == joiner->trace->nodes[own->node].name_hash;
    }
    return true;
}

/* The innermost operator of a thread at this time whose accesses are known; -1. */
static int operator_at(const struct joiner *joiner, int thread, int64_t time_ns)
{
    const size_t behind = SORT_FIRST(i, 0, joiner->count,
                                     joiner->operators[i].of->thread > thread ||
                                         (joiner->operators[i].of->thread == thread &&
                                          joiner->operators[i].of->start_ns > time_ns));
    int at = (int)behind - 1;
    if (at < 0 || joiner->operators[at].of->thread != thread)
        return -1;
    while (at >= 0 &&
           (joiner->operators[at].node < 0 || joiner->operators[at].of->end_ns < time_ns))
        at = joiner->operators[at].parent;
    return at;
}

/* ---- accesses --------------------------------------------------------------------------------- */

/* The memory of a storage, maybe a new one; -1 without memory. */
static int execution_memory(struct joiner *joiner, int64_t storage)
{
    struct job_rank *rank = joiner->rank;
    const uint64_t hash = table_hash_number((uint64_t)storage);
    const uint32_t found = TABLE_FIND(&joiner->storages, hash, i, joiner->storage[i] == storage);
    if (found != TABLE_NONE)
        return (int)found;
    if (!ARRAY_GROW(rank->memories, rank->memory_count, rank->memory_cap) ||
        !ARRAY_GROW(joiner->storage, rank->memory_count, joiner->storage_cap) ||
        !table_add(&joiner->storages, hash, rank->memory_count))
        return -1;
    joiner->storage[rank->memory_count] = storage;
    rank->memories[rank->memory_count] = (struct job_memory){0};
    return (int)rank->memory_count++;
}

/* The accesses of a node to memory of the host, or to that of the device, or to both; of a memory that it reads and writes
   two. False without memory. */
static bool execution_list(struct joiner *joiner, int node, bool host, bool device,
                           struct job_accesses *out)
{
    struct job_rank *rank = joiner->rank;
    ASSERT_INDEX(node, joiner->trace->node_count);
    const struct execution_node *of = &joiner->trace->nodes[node];
    *out = (struct job_accesses){.first = (int)rank->access_count};
    for (int i = of->first; i < of->first + of->count; i++) {
        const struct execution_access *access = &joiner->trace->accesses[i];
        if (!(access->of_host ? host : device))
            continue;
        const int memory = execution_memory(joiner, access->storage);
        for (int write = 0; write < 2; write++) {
            if (write ? !access->write : access->write && !access->reads_too)
                continue;
            if (memory < 0 || !ARRAY_GROW(rank->accesses, rank->access_count, rank->access_cap))
                return false;
            rank->accesses[rank->access_count++] =
                (struct job_access){.memory = memory, .write = write == 1};
        }
    }
    out->count = (int)rank->access_count - out->first;
    return true;
}

/* A kernel reads numbers of the host when it is launched, and pageable memory is read and written by the call. */
static bool execution_join_works(struct joiner *joiner)
{
    struct job_rank *rank = joiner->rank;
    for (size_t i = 0; i < rank->work_count; i++) {
        struct job_work *work = &rank->works[i];
        const struct job_call *call = work->call >= 0 ? &rank->calls[work->call] : NULL;
        const int at = call ? operator_at(joiner, call->thread, call->start_ns) : -1;
        if (at < 0)
            continue;
        const bool host = rank->is_host || (work->class == CLASS_COPY && !work->pageable);
        joiner->operators[at].is_told |= host;
        if (!execution_list(joiner, joiner->operators[at].node, host, true, &work->accesses))
            return false;
    }
    return true;
}

const char *execution_untold(const struct job *job, const struct job_rank *rank, size_t *count,
                             struct arena *arena)
{
    enum { SHOWN = 3 };
    size_t *times = ARENA_ARRAY(arena, (size_t)job->names.count + 1, size_t);
    const char *text = times ? "" : NULL;
    *count = 0;
    for (size_t i = 0; times && i < rank->work_count; i++) {
        const bool untold = rank->works[i].accesses.count == 0;
        times[rank->works[i].name] += untold;
        *count += untold;
    }
    size_t left = *count;
    for (int shown = 0; text && left > 0 && shown < SHOWN; shown++) {
        int most = 0;
        for (int n = 1; n < (int)job->names.count; n++)
            most = times[n] > times[most] ? n : most;
        text = arena_printf(arena, "%s%s%.40s (%zu)", text, shown > 0 ? ", " : "",
                            job->names.items[most], times[most]);
        left -= times[most];
        times[most] = 0;
    }
    return text && left > 0 ? arena_printf(arena, "%s and %zu more", text, left) : text;
}

/* True if an operator around it stands for its accesses on the host. */
static bool is_inside_touch(const struct joiner *joiner, size_t at)
{
    for (int up = joiner->operators[at].parent; up >= 0; up = joiner->operators[up].parent)
        if (joiner->operators[up].node >= 0)
            return true;
    return false;
}

/* CPU work: the outermost operators, but not those whose works have the accesses. */
static bool execution_join_touches(struct joiner *joiner)
{
    struct job_rank *rank = joiner->rank;
    for (size_t i = 0; i < joiner->count; i++) {
        const struct placed_operator *own = &joiner->operators[i];
        struct job_touch touch = {
            .thread = own->of->thread, .name = own->of->name, .time_ns = own->of->end_ns};
        if (own->node < 0 || own->is_told || is_inside_touch(joiner, i))
            continue;
        if (!execution_list(joiner, own->node, true, false, &touch.accesses))
            return false;
        if (touch.accesses.count == 0)
            continue;
        if (!ARRAY_GROW(rank->touches, rank->touch_count, rank->touch_cap))
            return false;
        rank->touches[rank->touch_count++] = touch;
    }
    return true;
}

/* ---- who shares what -------------------------------------------------------------------------- */

/* The streams and threads that access a memory. */
struct memory_use {
    int agent; /* the only one; -1: none yet, -2: several */
    bool written, on_device;
    int64_t first_ns; /* when it is accessed first */
    bool first_reads; /* and how */
};

static void use_memory(struct memory_use *use, const struct job_access *access, int agent,
                       int64_t time_ns)
{
    use->agent = use->agent == -1 || use->agent == agent ? agent : -2;
    use->written |= access->write;
    if (time_ns < use->first_ns) {
        use->first_ns = time_ns;
        use->first_reads = !access->write;
    } else if (time_ns == use->first_ns) {
        use->first_reads |= !access->write;
    }
}

static void use_memories(struct joiner *joiner, struct memory_use *uses)
{
    const struct job_rank *rank = joiner->rank;
    for (size_t i = 0; i < rank->memory_count; i++)
        uses[i] = (struct memory_use){.agent = -1, .first_ns = INT64_MAX};
    for (size_t i = 0; i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        for (int k = 0; k < work->accesses.count; k++) {
            const struct job_access *access = &rank->accesses[work->accesses.first + k];
            use_memory(&uses[access->memory], access, work->stream, work->start_ns);
        }
    }
    for (size_t i = 0; i < rank->touch_count; i++) {
        const struct job_touch *touch = &rank->touches[i];
        for (int k = 0; k < touch->accesses.count; k++) {
            const struct job_access *access = &rank->accesses[touch->accesses.first + k];
            use_memory(&uses[access->memory], access, (int)rank->stream_count + touch->thread,
                       touch->time_ns);
        }
    }
}

/* Memory gets its last numbers: what only one stream uses is one memory of that stream, as nobody can race for it, and what is
   only read is one, too; what several share is kept. */
static bool execution_settle(struct joiner *joiner)
{
    struct job_rank *rank = joiner->rank;
    struct arena *arena = &joiner->job->arena;
    const size_t alone = rank->stream_count, extra = alone + 1;
    struct memory_use *uses = malloc((rank->memory_count + 1) * sizeof *uses);
    int *kept = malloc((rank->memory_count + 1) * sizeof *kept);
    struct job_memory *memories = malloc((rank->memory_count + extra) * sizeof *memories);
    bool ok = uses && kept && memories;
    if (ok)
        use_memories(joiner, uses);
    size_t count = 0;
    for (size_t s = 0; ok && s < alone; s++) {
        char text[STREAM_TEXT];
        memories[count++] = (struct job_memory){
            arena_printf(arena, "only.%s", job_stream_name(&rank->streams[s], text)), true};
        ok = memories[count - 1].name != NULL;
    }
    if (ok)
        memories[count++] = (struct job_memory){"constants", true};
    for (size_t i = 0; ok && i < rank->memory_count; i++) {
        const bool is_shared = uses[i].agent == -2;
        kept[i] = !is_shared && uses[i].agent < (int)alone ? uses[i].agent
                  : !is_shared                             ? -1
                  : !uses[i].written                       ? (int)alone
                                                           : (int)count;
        if (!is_shared || !uses[i].written)
            continue;
        memories[count++] = (struct job_memory){
            arena_printf(arena, "storage%" PRId64, joiner->storage[i]), uses[i].first_reads};
        ok = memories[count - 1].name != NULL;
    }
    for (size_t i = 0; ok && i < rank->access_count; i++)
        rank->accesses[i].memory = kept[rank->accesses[i].memory];
    if (ok) {
        free(rank->memories);
        rank->memories = memories;
        rank->memory_count = count;
    } else {
        free(memories);
    }
    free(kept);
    free(uses);
    return ok;
}

/* CPU work that shares no memory is left out. */
static void execution_drop_touches(struct job_rank *rank)
{
    size_t kept = 0;
    for (size_t i = 0; i < rank->touch_count; i++) {
        struct job_touch touch = rank->touches[i];
        int count = 0;
        for (int k = 0; k < touch.accesses.count; k++) {
            const struct job_access access = rank->accesses[touch.accesses.first + k];
            if (access.memory > (int)rank->stream_count)
                rank->accesses[touch.accesses.first + count++] = access;
        }
        touch.accesses.count = count;
        if (count > 0)
            rank->touches[kept++] = touch;
    }
    rank->touch_count = kept;
}

/* ---- all -------------------------------------------------------------------------------------- */

static bool has_pid(const struct job_rank *rank, int64_t pid)
{
    return rank->threads.count > 0 && pid >= 0 && strtoll(rank->threads.items[0], NULL, 10) == pid;
}

/* The trace of a rank: that of its process, where no other rank has a process of this number; else the one at its place. */
static const struct execution *execution_of(const struct job *job, size_t rank,
                                            const struct execution *items, size_t count)
{
    const struct execution *found = NULL;
    size_t matches = 0;
    ASSERT_INDEX(rank, job->rank_count);
    for (size_t i = 0; i < count; i++)
        if (has_pid(&job->ranks[rank], items[i].pid)) {
            found = &items[i];
            matches++;
        }
    for (size_t r = 0; found && r < job->rank_count; r++)
        matches += r != rank && has_pid(&job->ranks[r], found->pid);
    if (matches == 1)
        return found;
    return count == job->rank_count ? &items[rank] : NULL;
}

static enum status execution_join_rank(struct job *job, struct job_rank *rank,
                                       const struct execution *trace, bool settle,
                                       struct diag *diag)
{
    struct joiner joiner = {.job = job, .rank = rank, .trace = trace};
    bool ok = execution_place(&joiner);
    const bool same = 10 * joiner.named >= 9 * joiner.joined && joiner.joined > 0;
    if (ok && !same)
        diag_warn(
            diag,
            "%s: its operators are not those of %s (of %zu with the number of a node %zu have "
            "its name): it is left out; both must be recorded at once, by "
            "profile(execution_trace_observer=...)",
            trace->file, rank->file, joiner.joined, joiner.named);
    if (ok && same) {
        rank->execution = trace->file;
        ok = execution_join_works(&joiner) &&
             ((rank->is_host && !rank->has_waits) || execution_join_touches(&joiner)) &&
             (!settle || execution_settle(&joiner));
    }
    if (ok && same && settle)
        execution_drop_touches(rank);
    size_t untold = 0;
    const char *names = ok && same ? execution_untold(job, rank, &untold, &job->arena) : "";
    if (untold > 0 && names)
        diag_note(diag, "%s: no schema tells what %zu of %zu operations access: %s", trace->file,
                  untold, rank->work_count, names);
    ok = ok && names;
    free(joiner.operators);
    free(joiner.storage);
    table_fini(&joiner.storages);
    return ok ? STATUS_OK : diag_no_memory(diag);
}

enum status execution_join(struct job *job, const struct execution *items, size_t count,
                           bool settle, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t r = 0; status == STATUS_OK && r < job->rank_count; r++) {
        const struct execution *trace = execution_of(job, r, items, count);
        if (trace)
            status = execution_join_rank(job, &job->ranks[r], trace, settle, diag);
        else
            diag_warn(diag, "%s: none of the execution traces is of its process",
                      job->ranks[r].file);
    }
    return status;
}
