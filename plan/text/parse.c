/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - see parse.h: reading files, telling the format, the keys at the top of a plan.
 *
 * The order of `sections` is the order of meaning: names that a later section refers to are read by an
 * earlier one, wherever the keys stand in the file.
 */
#include "parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "csv.h"
#include "base/input.h"
#include "parse_internal.h"
#include "plan/schedules/generate.h"
#include "base/printable.h"
#include "base/system_words.h"

enum { READ_CHUNK = 64 * 1024, VERSION = 1 };

/* ---- lifetime of a parser -------------------------------------------------------------------- */

/* The file's base name without its last suffix. */
static const char *default_name(struct plan *plan, const char *file_name)
{
    if (strcmp(file_name, "-") == 0)
        return "stdin";
    const char *slash = strrchr(file_name, '/');
    const char *base = slash && slash[1] ? slash + 1 : file_name;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    char *name = arena_strndup(&plan->arena, base, length < PLAN_MAX_NAME ? length : PLAN_MAX_NAME);
    return printable_text(&plan->arena, name, false);
}

bool parser_start(struct parser *parser, struct plan *plan, const char *file_name, const char *text,
                  size_t length, struct diag *diag)
{
    plan_init(plan);
    *parser = (struct parser){.plan = plan, .diag = diag, .source_length = length};
    arena_init(&parser->scratch, 0);
    plan->file = arena_strdup(&plan->arena, file_name);
    plan->name = default_name(plan, file_name);
    plan->text = parser->source = arena_strndup(&plan->arena, text, length);
    return (plan->file && plan->name && parser->source) || parse_no_memory(parser);
}

enum status parser_finish(struct parser *parser)
{
    if (parser->plan->arena.failed || parser->scratch.failed)
        parse_no_memory(parser);
    arena_fini(&parser->scratch);
    if (parser->status != STATUS_OK)
        plan_fini(parser->plan);
    return parser->status;
}

/* ---- comms, queues, buffers ------------------------------------------------------------------- */

/* The runtime of the pipeline form stops all ranks by default; a program written call by call does only
   what is written in it. */
static void parse_on_failure(struct parser *parser, const struct node *value)
{
    static const struct field field = {.words = keywords_on_failure};
    struct plan *plan = parser->plan;
    plan->on_failure = plan->form == FORM_PIPELINE ? ON_FAILURE_ABORT : ON_FAILURE_NONE;
    if (value)
        field_word(parser, value, &plan->on_failure, &field);
}

static int compare_ints(const void *a, const void *b)
{
    int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

/* members := "all" | list of ranks, each once */
static void parse_members(struct parser *parser, struct comm *comm, const struct node *value)
{
    if (value->kind == NODE_SCALAR && strcmp(value->text, "all") == 0)
        return;
    if (value->kind != NODE_LIST || value->length == 0) {
        parse_mismatch(parser, value, "a list of ranks such as [0, 1], or all");
        return;
    }
    comm->members = ARENA_ARRAY(&parser->plan->arena, value->length, int);
    if (!comm->members) {
        parse_no_memory(parser);
        return;
    }
    READ_LIST (parser, value, item) {
        int64_t rank;
        if (!parse_number(parser, item, false, 0, parser->plan->ranks - 1, &rank))
            continue;
        for (size_t i = 0; i < comm->member_count; i++)
            if (comm->members[i] == rank) {
                parse_error(parser, item->mark,
                            "found rank %d a second time, expected every "
                            "member once",
                            (int)rank);
                return;
            }
        comm->members[comm->member_count++] = (int)rank;
    }
    qsort(comm->members, comm->member_count, sizeof *comm->members, compare_ints);
}

static void parse_comms(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_map(parser, value, "a mapping from communicators to ranks"))
        return;
    READ_MAP (parser, value, key, members) {
        if (!parse_name(parser, key, "a communicator's name") ||
            symbol_find(parser, TABLE_COMMS, key->text) >= 0)
            continue; /* a duplicate key is reported already */
        struct comm *comm = parse_add_comm(parser, key->text, key->mark);
        if (!comm)
            continue;
        comm->declared = true;
        parse_members(parser, comm, members);
    }
}

static void parse_queues(struct parser *parser, const struct node *value)
{
    static const struct field capacity = {.min = 1, .max = 65536};
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from queues to capacities"))
        return;
    plan->queues = ARENA_ARRAY(&plan->arena, value->length, struct queue);
    if (!plan->queues) {
        parse_no_memory(parser);
        return;
    }
    READ_MAP (parser, value, key, number) {
        struct queue *queue = &plan->queues[plan->queue_count];
        if (!parse_name(parser, key, "a queue's name") ||
            symbol_find(parser, TABLE_QUEUES, key->text) >= 0)
            continue;
        queue->mark = key->mark;
        queue->name = parse_keep(parser, key->text);
        field_int(parser, number, &queue->capacity, &capacity);
        if (queue->name && symbol_add(parser, TABLE_QUEUES, queue->name, (int)plan->queue_count))
            plan->queue_count++;
    }
}

static const struct field buffer_fields[] = {
    FIELD("scope", struct buffer, scope, field_word, .words = keywords_scope),
    FIELD("bytes", struct buffer, bytes, field_bytes),
};

static void parse_buffers(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_map(parser, value, "a mapping from buffers to their properties"))
        return;
    READ_MAP (parser, value, key, properties) {
        if (!parse_name(parser, key, "a buffer's name") ||
            symbol_find(parser, TABLE_BUFFERS, key->text) >= 0)
            continue;
        struct buffer *buffer = parse_add_buffer(parser, key->text, key->mark);
        if (!buffer || !parse_want_map(parser, properties, "a mapping such as {bytes: 64MiB}"))
            continue;
        buffer->declared = true;
        fields_parse(parser, properties, buffer_fields, FIELD_COUNT(buffer_fields), buffer,
                     "a buffer");
        const struct node *scope = node_find(properties, "scope");
        if (scope && parser->plan->form == FORM_THREADS && buffer->scope == SCOPE_ITERATION)
            parse_error(parser, scope->mark,
                        "found scope iteration, expected shared: host programs have no iterations");
    }
}

/* A buffer that no operation names is a misspelling. */
static struct buffer *known_buffer(struct parser *parser, const struct node *node)
{
    int index = symbol_require(parser, TABLE_BUFFERS, node);
    return index < 0 ? NULL : &parser->plan->buffers[index];
}

static void parse_inputs(struct parser *parser, const struct node *value)
{
    if (!value || !parse_want_list(parser, value, "a list of buffers"))
        return;
    parser->plan->inputs_given = true;
    READ_LIST (parser, value, item) {
        struct buffer *buffer = known_buffer(parser, item);
        if (buffer && buffer->input)
            parse_error(parser, item->mark, "found buffer \"%s\" a second time", item->text);
        else if (buffer)
            buffer->input = true;
    }
}

static void parse_unrecorded(struct parser *parser, const struct node *value)
{
    if (!value ||
        !parse_want_map(parser, value, "a mapping from what is not recorded to the reason"))
        return;
    READ_MAP (parser, value, key, reason) {
        if (!parse_name(parser, key, "what is not recorded") ||
            !parse_name(parser, reason, "a reason"))
            continue;
        if (!plan_add_unrecorded(parser->plan, parse_keep(parser, key->text),
                                 parse_keep(parser, reason->text)))
            parse_no_memory(parser);
    }
}

static void parse_staleness(struct parser *parser, const struct node *value)
{
    static const struct field field = {.min = 1, .max = PLAN_MAX_DEPTH};
    if (!value || !parse_want_map(parser, value, "a mapping from shared buffers to iterations"))
        return;
    READ_MAP (parser, value, key, iterations) {
        struct buffer *buffer = known_buffer(parser, key);
        if (buffer && buffer->scope != SCOPE_SHARED)
            parse_error(parser, key->mark,
                        "found buffer \"%s\" of scope iteration, expected a shared one", key->text);
        else if (buffer)
            field_int(parser, iterations, &buffer->staleness, &field);
    }
}

/* ---- expected verdicts ----------------------------------------------------------------------- */

/* verdict := proved | some | always | violated, of a race also: order */
static void parse_verdict(struct parser *parser, struct expectation *expect, int property,
                          const struct node *value)
{
    const char *word = value->kind == NODE_SCALAR ? value->text : "";
    bool order = property == PROPERTY_RACE && strcmp(word, "order") == 0;
    expect->named[property] = true;
    if (order || strcmp(word, "violated") == 0) {
        expect->outcome[property] = OUTCOME_SOME;
        expect->any_violation[property] = true;
        return;
    }
    for (enum outcome outcome = OUTCOME_PROVED; outcome < OUTCOME_NONE; outcome++) {
        if (strcmp(word, outcome_key(outcome)) == 0) {
            expect->outcome[property] = outcome;
            return;
        }
    }
    parse_mismatch(parser, value,
                   property == PROPERTY_RACE ? "proved, some, always, violated or order"
                                             : "proved, some, always or violated");
}

static void parse_verdicts(struct parser *parser, struct expectation *expect,
                           const struct node *value)
{
    if (!parse_want_map(parser, value, "a mapping from properties to verdicts"))
        return;
    expect->given = true;
    expect->mark = value->mark;
    READ_MAP (parser, value, key, verdict) {
        struct nearest nearest = {.found = key->text};
        int property = 0;
        while (property < PROPERTY_COUNT &&
               strcmp(key->text, property_key((enum property)property)) != 0)
            nearest_try(&nearest, property_key((enum property)property++));
        if (property < PROPERTY_COUNT)
            parse_verdict(parser, expect, property, verdict);
        else
            parse_error(parser, key->mark,
                        "found unknown property \"%s\", expected message, deadlock, mismatch, "
                        "race, lifetime, value, serial, slot, bound, drain or faults%s",
                        key->text, nearest_hint(&nearest, '"', &parser->scratch));
    }
}

/* expect := verdicts | {clock: verdicts, dataflow: verdicts}, the latter for two drivers */
static void parse_expect(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value || !parse_want_map(parser, value, "a mapping from properties to verdicts"))
        return;
    const struct node *clock = node_find(value, "clock");
    const struct node *dataflow = node_find(value, "dataflow");
    if ((!clock && !dataflow) || plan->form != FORM_PIPELINE) {
        parse_verdicts(parser, &plan->expect, value);
        plan->expect_dataflow = plan->expect;
        return;
    }
    READ_MAP (parser, value, key, verdicts)
        if (verdicts != clock && verdicts != dataflow)
            parse_error(parser, key->mark,
                        "found key \"%s\" beside a driver, expected only clock and dataflow",
                        key->text);
    if (clock)
        parse_verdicts(parser, &plan->expect, clock);
    if (dataflow)
        parse_verdicts(parser, &plan->expect_dataflow, dataflow);
}

/* ---- version and ranks ----------------------------------------------------------------------- */

static void parse_version(struct parser *parser, const struct node *value)
{
    int64_t version;
    if (!value)
        parse_error(parser, parser->root->mark, "found no \"swplan\", expected \"swplan: %d\"",
                    VERSION);
    else if (parse_number(parser, value, false, 1, INT32_MAX, &version) && version != VERSION)
        parse_error(
            parser, value->mark,
            "found version %d of the format of plans, expected \"swplan: %d\", the only one so far",
            (int)version, VERSION);
}

static void raise_ranks(struct parser *parser, int rank)
{
    if (rank >= parser->plan->ranks && rank < PLAN_MAX_RANKS)
        parser->plan->ranks = rank + 1;
}

/* Host programs: as many as threads and communicators name. */
static void count_ranks(struct parser *parser)
{
    const struct node *threads = node_find(parser->root, "threads");
    const struct node *comms = node_find(parser->root, "comms");
    const char *name;
    int rank;
    if (threads && threads->kind == NODE_MAP)
        READ_MAP (parser, threads, key, ops)
            if (thread_name_rank(key->text, &rank, &name))
                raise_ranks(parser, rank);
    if (comms && comms->kind == NODE_MAP)
        READ_MAP (parser, comms, key, members)
            READ_LIST (parser, members, item)
                if (item->kind == NODE_SCALAR && strlen(item->text) <= 4)
                    raise_ranks(parser, atoi(item->text));
}

static void parse_ranks(struct parser *parser, const struct node *value)
{
    static const struct field field = {.min = 1, .max = PLAN_MAX_RANKS};
    if (value)
        field_int(parser, value, &parser->plan->ranks, &field);
    else if (parser->plan->form == FORM_THREADS)
        count_ranks(parser);
}

/* ---- the top of a plan ----------------------------------------------------------------------- */

enum {
    IN_PIPELINE = 1 << FORM_PIPELINE,
    IN_PROGRAMS = 1 << FORM_PROGRAMS,
    IN_THREADS = 1 << FORM_THREADS,
    IN_ALL = IN_PIPELINE | IN_PROGRAMS | IN_THREADS
};

/* A key at the top. `parse` is called whether the key is there or not; without it, the field is
   filled in when the key is there. */
static const struct section {
    unsigned forms;
    void (*parse)(struct parser *parser, const struct node *value);
    struct field field;
} sections[] = {
    {IN_ALL, parse_version, {.key = "swplan"}},
    {IN_ALL, NULL, FIELD("name", struct plan, name, field_name)},
    {IN_ALL, NULL, FIELD("about", struct plan, about, field_text)},
    {IN_ALL, NULL, FIELD("source", struct plan, source, field_text)},
    {IN_ALL, parse_ranks, {.key = "ranks"}},
    {IN_PIPELINE | IN_THREADS, parse_comms, {.key = "comms"}},
    {IN_THREADS, parse_queues, {.key = "queues"}},
    {IN_PIPELINE | IN_THREADS, parse_streams, {.key = "streams"}},
    {IN_PIPELINE | IN_THREADS, parse_buffers, {.key = "buffers"}},
    {IN_PIPELINE, parse_driver, {.key = "driver"}},
    {IN_PIPELINE, parse_schedule, {.key = "schedule"}},
    {IN_PIPELINE, parse_intra_deps, {.key = "intra_iter_deps"}},
    {IN_PIPELINE, parse_inter_deps, {.key = "inter_iter_deps"}},
    {IN_PIPELINE, parse_enqueue_order, {.key = "enqueue_order"}},
    {IN_PIPELINE, parse_overrides, {.key = "rank_overrides"}},
    {IN_PIPELINE, parse_depth, {.key = "pipeline_depth"}},
    {IN_PIPELINE, parse_max_depth, {.key = "max_depth"}},
    {IN_PIPELINE, NULL,
     FIELD("max_in_flight", struct plan, pipeline.max_in_flight, field_int, .min = 1,
           .max = PLAN_MAX_IN_FLIGHT)},
    {IN_PIPELINE, parse_num_slots, {.key = "num_slots"}},
    {IN_PIPELINE, parse_batches, {.key = "batches"}},
    {IN_PIPELINE, NULL,
     FIELD("retire", struct plan, pipeline.retire, field_word, .words = keywords_retire)},
    {IN_PIPELINE, NULL,
     FIELD("elide_same_stream", struct plan, pipeline.elide_same_stream, field_bool)},
    {IN_PIPELINE, NULL,
     FIELD("ticket_at", struct plan, pipeline.ticket_at, field_word, .words = keywords_ticket_at)},
    {IN_PIPELINE, NULL,
     FIELD("forget_done", struct plan, pipeline.forget_done, field_word, .words = keywords_forget)},
    {IN_PIPELINE, NULL,
     FIELD("retired_dep", struct plan, pipeline.retired_dep, field_word,
           .words = keywords_retired_dep)},
    {IN_PIPELINE, NULL,
     FIELD("slot_reset", struct plan, pipeline.slot_reset, field_word,
           .words = keywords_slot_reset)},
    {IN_PROGRAMS, NULL, FIELD("fragment", struct plan, programs.fragment, field_bool)},
    {IN_PROGRAMS, NULL,
     FIELD("copies", struct plan, programs.copies, field_int, .min = 1, .max = PLAN_MAX_RANKS)},
    {IN_PROGRAMS, parse_programs, {.key = "programs"}},
    {IN_PROGRAMS, parse_generate, {.key = "generate"}},
    {IN_PROGRAMS, parse_p2p, {.key = "p2p"}},
    {IN_PROGRAMS, parse_fsdp, {.key = "fsdp"}},
    {IN_PROGRAMS, parse_parallel, {.key = "parallel"}},
    {IN_PROGRAMS, parse_arithmetic, {.key = "arithmetic"}},
    {IN_PROGRAMS, parse_times, {.key = "times"}},
    {IN_PROGRAMS, parse_stages, {.key = "stages"}},
    {IN_PROGRAMS, parse_layers, {.key = "layers"}},
    {IN_PROGRAMS, parse_model, {.key = "model"}},
    {IN_PROGRAMS, parse_balance, {.key = "balance"}},
    {IN_PROGRAMS, NULL,
     FIELD("checkpoint", struct plan, programs.stages.checkpoint, field_word,
           .words = keywords_checkpoint)},
    {IN_PROGRAMS, NULL,
     FIELD("release", struct plan, programs.stages.release, field_word, .words = keywords_release)},
    {IN_THREADS, parse_graphs, {.key = "graphs"}},
    {IN_THREADS, parse_threads, {.key = "threads"}},
    {IN_PIPELINE | IN_THREADS, parse_inputs, {.key = "inputs"}},
    {IN_PIPELINE, parse_staleness, {.key = "staleness"}},
    {IN_ALL, parse_machine, {.key = "machine"}},
    {IN_ALL, NULL, FIELD("unexplained", struct plan, unexplained, field_share)},
    {IN_ALL, parse_unrecorded, {.key = "unrecorded"}},
    {IN_ALL, parse_on_failure, {.key = "on_failure"}},
    {IN_ALL, parse_expect, {.key = "expect"}},
};

/* The keys that make a form. */
static const struct form_key {
    const char *key;
    enum plan_form form;
    const char *words;
} form_keys[] = {
    {"schedule", FORM_PIPELINE, "pipeline plans"},
    {"programs", FORM_PROGRAMS, "rank programs"},
    {"generate", FORM_PROGRAMS, "rank programs"},
    {"threads", FORM_THREADS, "host programs"},
};

/* "generate" may stand beside the lists that a search has found for it. */
static bool has_found(const struct parser *parser)
{
    const struct node *generate = node_find(parser->root, "generate");
    const struct node *schedule = generate ? node_find(generate, "schedule") : NULL;
    return schedule && schedule->kind == NODE_SCALAR && generate_is_found(schedule->text);
}

static bool find_form(struct parser *parser, const struct form_key **out)
{
    *out = NULL;
    READ_MAP (parser, parser->root, key, value) {
        for (size_t i = 0; i < FIELD_COUNT(form_keys); i++) {
            if (strcmp(key->text, form_keys[i].key) != 0)
                continue;
            if (*out && !((*out)->form == form_keys[i].form && has_found(parser)))
                return parse_error(parser, key->mark,
                                   "found \"%s\" beside \"%s\", expected one form a plan",
                                   key->text, (*out)->key);
            *out = &form_keys[i];
        }
    }
    return *out != NULL ||
           parse_error(parser, parser->root->mark,
                       "found no form of a plan, expected schedule, programs, generate or threads");
}

static const struct section *find_section(const char *key)
{
    for (size_t i = 0; i < FIELD_COUNT(sections); i++)
        if (strcmp(sections[i].field.key, key) == 0)
            return &sections[i];
    return NULL;
}

static void unknown_section(struct parser *parser, const struct node *key)
{
    struct nearest nearest = {.found = key->text};
    for (size_t i = 0; i < FIELD_COUNT(sections); i++)
        nearest_try(&nearest, sections[i].field.key);
    parse_error(parser, key->mark, "found unknown key \"%s\", expected a key of a plan%s",
                key->text, nearest_hint(&nearest, '"', &parser->scratch));
}

static void check_sections(struct parser *parser, const struct form_key *form)
{
    READ_MAP (parser, parser->root, key, value) {
        const struct section *section = find_section(key->text);
        if (!section)
            unknown_section(parser, key);
        else if (form && !(section->forms & 1u << form->form))
            parse_error(parser, key->mark, "found \"%s\" beside \"%s\", expected only keys of %s",
                        key->text, form->key, form->words);
    }
}

static void parse_sections(struct parser *parser)
{
    for (size_t i = 0; i < FIELD_COUNT(sections); i++) {
        const struct section *section = &sections[i];
        if (!(section->forms & 1u << parser->plan->form) || parser->status == STATUS_SYSTEM ||
            parse_gave_up(parser))
            continue;
        const struct node *value = node_find(parser->root, section->field.key);
        if (section->parse)
            section->parse(parser, value);
        else if (value)
            section->field.parse(parser, value, (char *)parser->plan + section->field.offset,
                                 &section->field);
    }
}

/* Files of jobs, which are imported, by a key that they have and no plan has. */
static bool is_of_job(struct parser *parser)
{
    static const char *const kinds[][2] = {{"traceEvents", "the trace of a profiler"},
                                           {"pg_config", "the dump of a flight recorder"}};
    for (size_t i = 0; i < FIELD_COUNT(kinds); i++)
        if (node_find(parser->root, kinds[i][0])) {
            parse_error(parser, parser->root->mark,
                        "found %s, expected a plan: 'swsim import' makes one of it", kinds[i][1]);
            return true;
        }
    return false;
}

static void parse_root(struct parser *parser)
{
    const struct form_key *form;
    if (!parse_want_map(parser, parser->root, "a plan: a mapping with \"swplan: 1\"") ||
        is_of_job(parser))
        return;
    bool known = find_form(parser, &form);
    check_sections(parser, known ? form : NULL);
    if (!known) {
        parse_version(parser, node_find(parser->root, "swplan"));
        return;
    }
    parser->plan->form = form->form;
    parse_sections(parser);
    if (form->form == FORM_PROGRAMS && parser->status == STATUS_OK)
        parse_check_effects(parser);
}

static enum status parse_yaml_plan(const char *file_name, const char *text, size_t length,
                                   struct plan *out, struct diag *diag)
{
    struct parser parser;
    if (parser_start(&parser, out, file_name, text, length, diag)) {
        parser.root = parse_yaml(&parser, true);
        if (parser.root)
            parse_root(&parser);
    }
    return parser_finish(&parser);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcasecmp(name + length - suffix_length, suffix) == 0;
}

static bool is_csv(const char *file_name, const char *text, size_t length)
{
    if (has_suffix(file_name, ".csv"))
        return true;
    if (has_suffix(file_name, ".yaml") || has_suffix(file_name, ".yml") ||
        has_suffix(file_name, ".json"))
        return false;
    return csv_looks_like(text, length);
}

/* Files that other verbs read, by their first bytes. */
static enum status refuse_binary(const char *file_name, const char *text, size_t length,
                                 struct diag *diag)
{
    static const struct {
        const char *bytes, *what;
    } kinds[] = {
        {"SQLite format 3", "a file of SQLite, expected a plan: 'swsim runs' lists the runs of a "
                            "trace store, 'swsim import' reads an export of Nsight Systems"},
        {"\x1f\x8b", "a compressed file, expected a plan: 'swsim import' reads compressed traces"},
        {"\x80", "a pickle, expected a plan: 'swsim import' reads the dump of a flight recorder"}};
    for (size_t i = 0; i < FIELD_COUNT(kinds); i++) {
        size_t size = strlen(kinds[i].bytes);
        if (length > size && memcmp(text, kinds[i].bytes, size) == 0)
            return diag_error(diag, STATUS_INPUT, "%s: found %s", file_name, kinds[i].what);
    }
    return STATUS_OK;
}

enum status plan_parse(const char *file_name, const char *text, size_t length, struct plan *out,
                       struct diag *diag)
{
    enum status status = refuse_binary(file_name, text, length, diag);
    if (status != STATUS_OK) {
        *out = (struct plan){0};
        return status;
    }
    return is_csv(file_name, text, length) ? plan_parse_csv(file_name, text, length, out, diag)
                                           : parse_yaml_plan(file_name, text, length, out, diag);
}

/* The whole of an open file, at most PLAN_MAX_FILE_BYTES. Behind a zero byte, for which every format is refused, little
   is read: a stream of them has no end. The caller frees *out. */
static enum status read_all(FILE *file, const char *path, char **out, size_t *out_length,
                            struct diag *diag)
{
    char *text = NULL;
    size_t length = 0, cap = 0, got;
    bool is_text;
    do {
        if (cap - length < READ_CHUNK) {
            cap = cap ? 2 * cap : 2 * READ_CHUNK;
            char *grown = realloc(text, cap);
            if (!grown) {
                free(text);
                return diag_no_memory(diag);
            }
            text = grown;
        }
        errno = 0;
        got = fread(text + length, 1, cap - length, file);
        is_text = !memchr(text + length, '\0', got);
        length += got;
    } while (got && is_text && length <= PLAN_MAX_FILE_BYTES);
    enum status status = STATUS_OK;
    if (ferror(file))
        status = diag_error(diag, STATUS_SYSTEM, "cannot read %s: %s", path, system_words(errno));
    else if (length > PLAN_MAX_FILE_BYTES)
        status = diag_error(diag, STATUS_INPUT,
                            "found %s bigger than %d MiB, expected a plan below "
                            "this limit",
                            path, PLAN_MAX_FILE_BYTES / (1024 * 1024));
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    *out = text;
    *out_length = length;
    return STATUS_OK;
}

enum status plan_read(const char *path, struct plan *out, struct diag *diag)
{
    *out = (struct plan){0};
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : input_open_stream(path, diag);
    if (!file)
        return STATUS_SYSTEM;
    char *text = NULL;
    size_t length = 0;
    enum status status = read_all(file, is_stdin ? "standard input" : path, &text, &length, diag);
    if (!is_stdin)
        fclose(file);
    if (status != STATUS_OK)
        return status;
    status = plan_parse(path, text, length, out, diag);
    free(text);
    return status;
}
