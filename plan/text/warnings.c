/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warnings.c - see warnings.h.
 *
 * One walk over the plan counts how often each name is used, and how. Then each table of names is judged by
 * itself. Names are compared with those of the same table only.
 */
#include "warnings.h"

#include "list_warnings.h"
#include "plan/crossing.h"
#include "base/assert_index.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/list_key.h"

#include <ctype.h>
#include <string.h>

/* More names than this are not compared with each other. */
enum { COMPARED_MOST = 2048 };

/* ---- how names are used ---------------------------------------------------------------------- */

enum warned_table { STREAMS, GROUPS, EVENTS, FLAGS, LOCKS, BARRIERS, BUFFERS, COMMS, TABLES };

struct usage {
    const char *name;
    uint64_t signs; /* a hash of what is no letter in the name */
    struct mark mark;
    int uses, gives,
        takes; /* gives: records, sets, writes, is an input; takes: waits, awaits, reads */
    /* Flags: awaited, and set, in a second iteration; used in several iterations, which a flag of one is not; the values that
       they get, and that they are awaited for, are not all one. */
    bool awaited_again, set_again, spans, varies;
    int iteration; /* of the last use */
    int64_t value; /* the first of these, 0: none */
};

struct book {
    const struct plan *plan;
    struct arena *arena;
    struct usage *tables[TABLES];
    size_t counts[TABLES];
    struct warnings *out;
};

static void warnings_note(struct book *book, enum warned_table table, int index, bool gives,
                          bool takes)
{
    if (index < 0)
        return;
    struct usage *usage = &book->tables[table][index];
    usage->uses++;
    usage->gives += gives;
    usage->takes += takes;
}

static void note_buffers(struct book *book, const struct index_list *reads,
                         const struct index_list *writes)
{
    for (size_t i = 0; i < reads->count; i++)
        warnings_note(book, BUFFERS, reads->items[i], false, true);
    for (size_t i = 0; i < writes->count; i++)
        warnings_note(book, BUFFERS, writes->items[i], true, false);
}

/* Keys that a task of one rank shares with that of all ranks, `base`, are written once. */
static void note_task(struct book *book, const struct task *task, const struct task *base)
{
    static const struct index_list none = {0};
    bool same_reads = base && base->reads.items == task->reads.items;
    bool same_writes = base && base->writes.items == task->writes.items;
    if (!base || base->stream != task->stream)
        warnings_note(book, STREAMS, task->stream, false, false);
    if (!base || base->group != task->group)
        warnings_note(book, GROUPS, task->group, false, false);
    if (!base || base->work.comm != task->work.comm)
        warnings_note(book, COMMS, task->work.comm, false, false);
    note_buffers(book, same_reads ? &none : &task->reads, same_writes ? &none : &task->writes);
    if (!base || base->holds.items != task->holds.items)
        for (size_t i = 0; i < task->holds.count; i++)
            warnings_note(book, LOCKS, task->holds.items[i], false, false);
}

static void note_pipeline(struct book *book)
{
    const struct pipeline *pipeline = &book->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++)
        note_task(book, &pipeline->tasks[t], NULL);
    for (size_t i = 0; i < pipeline->override_count; i++)
        for (size_t t = 0; pipeline->overrides[i].tasks && t < pipeline->task_count; t++)
            note_task(book, &pipeline->overrides[i].tasks[t], &pipeline->tasks[t]);
}

static void note_flag(struct usage *usage, const struct host_op *op)
{
    int64_t value;
    const enum flag_rule rule = host_op_flag_use(op, &value);
    const bool takes = op_takes(op->kind) || op->kind == OP_QUERY_FLAG;
    usage->uses++;
    usage->gives += !takes;
    usage->takes += takes;
    usage->spans |= usage->uses > 1 && op->iteration != usage->iteration;
    usage->iteration = op->iteration;
    usage->awaited_again |= takes && op->iteration > 1;
    usage->set_again |= !takes && op->iteration > 1;
    usage->varies |= (rule != FLAG_SETS && rule != FLAG_AT_LEAST) ||
                     (usage->value != 0 && usage->value != value) || value == 0;
    usage->value = value;
}

static void note_object(struct book *book, const struct host_op *op)
{
    static const enum warned_table tables[] = {[OPERAND_EVENT] = EVENTS,
                                               [OPERAND_LOCK] = LOCKS,
                                               [OPERAND_BARRIER] = BARRIERS,
                                               [OPERAND_BUFFER] = BUFFERS};
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG: note_flag(&book->tables[FLAGS][op->object], op); break;
    case OPERAND_EVENT:
    case OPERAND_LOCK:
    case OPERAND_BARRIER:
    case OPERAND_BUFFER:
        warnings_note(book, tables[op_operand(op->kind)], op->object, op_gives(op->kind),
                      op_takes(op->kind));
        break;
    case OPERAND_NONE:
    case OPERAND_QUEUE: /* these must be declared */
    case OPERAND_COMM:
    case OPERAND_SUBMISSION:
    case OPERAND_TURN: break;
    }
}

static void warnings_note_parts(struct book *book, const struct host_op *op)
{
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const struct p2p_part *part = &op->parts[i];
        warnings_note(book, STREAMS, part->stream, false, false);
        warnings_note(book, COMMS, part->comm, false, false);
        note_buffers(book, &part->reads, &part->writes);
    }
}

static void note_ops(struct book *book, const struct host_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct host_op *op = &ops[i];
        note_object(book, op);
        if (host_op_has_stream(op))
            warnings_note(book, STREAMS, op->stream, false, false);
        warnings_note(book, COMMS, op->comm, false, false);
        note_buffers(book, host_op_reads(op), host_op_writes(op));
        warnings_note_parts(book, op);
        const struct process_group *group = host_op_process_group(op);
        if (group && group->named)
            warnings_note(book, EVENTS, group->done, true, false);
        if (host_op_may_have_body(op->kind))
            note_ops(book, op->body, op->body_count);
    }
}

/* ---- the tables ------------------------------------------------------------------------------ */

static bool open_table(struct book *book, enum warned_table table, size_t count)
{
    book->counts[table] = count;
    book->tables[table] = ARENA_ARRAY(book->arena, count + 1, struct usage);
    return book->tables[table] != NULL;
}

static bool open_names(struct book *book, enum warned_table table, const struct names *names)
{
    if (!open_table(book, table, names->count))
        return false;
    for (size_t i = 0; i < names->count; i++)
        book->tables[table][i] =
            (struct usage){.name = names->items[i], .mark = names_mark(names, i)};
    return true;
}

static bool warnings_open_tables(struct book *book)
{
    const struct plan *plan = book->plan;
    if (!open_names(book, STREAMS, &plan->streams) || !open_names(book, GROUPS, &plan->groups) ||
        !open_names(book, EVENTS, &plan->events) || !open_names(book, FLAGS, &plan->flags) ||
        !open_names(book, LOCKS, &plan->locks) || !open_names(book, BARRIERS, &plan->barriers) ||
        !open_table(book, BUFFERS, plan->buffer_count) ||
        !open_table(book, COMMS, plan->comm_count))
        return false;
    for (size_t i = 0; i < plan->buffer_count; i++)
        book->tables[BUFFERS][i] = (struct usage){.name = plan->buffers[i].name,
                                                  .mark = plan->buffers[i].mark,
                                                  .gives = plan->buffers[i].input};
    for (size_t i = 0; i < plan->comm_count; i++)
        book->tables[COMMS][i] =
            (struct usage){.name = plan->comms[i].name, .mark = plan->comms[i].mark};
    return true;
}

static void count_uses(struct book *book)
{
    switch (book->plan->form) {
    case FORM_PIPELINE: note_pipeline(book); break;
    case FORM_THREADS:
        for (size_t i = 0; i < book->plan->thread_count; i++)
            note_ops(book, book->plan->threads[i].ops, book->plan->threads[i].op_count);
        for (size_t i = 0; i < book->plan->graph_count; i++)
            note_ops(book, book->plan->graphs[i].ops, book->plan->graphs[i].op_count);
        break;
    case FORM_PROGRAMS: break; /* stages and microbatches have numbers */
    }
}

/* ---- what is near ---------------------------------------------------------------------------- */

/* Of the names of the table that `fits` takes, the nearest; "" if none is near, or no warning has room. */
static const char *hint(const struct book *book, enum warned_table table, const struct usage *usage,
                        bool (*fits)(const struct usage *))
{
    struct nearest nearest = {.found = usage->name};
    for (size_t i = 0;
         i < book->counts[table] && i < COMPARED_MOST && book->out->count < WARNINGS_MOST; i++)
        if (&book->tables[table][i] != usage && fits(&book->tables[table][i]))
            nearest_try(&nearest, book->tables[table][i].name);
    return nearest_hint(&nearest, '"', book->arena);
}

static bool gives(const struct usage *usage)
{
    return usage->gives > 0;
}

static bool are_letters(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isalpha((unsigned char)text[i]))
            return false;
    return true;
}

/* The letters in a row around position `at`. */
static size_t word_length(const char *name, size_t at)
{
    size_t first = at, last = at;
    while (first > 0 && isalpha((unsigned char)name[first - 1]))
        first--;
    while (isalpha((unsigned char)name[last]))
        last++;
    return last - first;
}

/* True if one is a misspelling of the other, rather than another name of a series, such as s1 and s2, fwd and bwd. One
   letter more in a word of four, another letter in a word of five, or two letters swapped. */
static bool looks_misspelt(const char *a, const char *b)
{
    enum { WORD_SWAPPED = 3, WORD_LONGER = 4, WORD_OTHER = 5 };
    size_t length_a = strlen(a), length_b = strlen(b), head = 0, tail = 0;
    if (length_a < length_b)
        return looks_misspelt(b, a);
    if (length_a - length_b > 1)
        return false;
    while (head < length_b && a[head] == b[head])
        head++;
    while (tail < length_b - head && a[length_a - 1 - tail] == b[length_b - 1 - tail])
        tail++;
    size_t middle_a = length_a - head - tail, middle_b = length_b - head - tail;
    size_t word = word_length(a, head);
    if (!are_letters(a + head, middle_a) || !are_letters(b + head, middle_b))
        return false;
    if (middle_a == 1 && middle_b == 0)
        return word >= WORD_LONGER;
    if (middle_a == 1 && middle_b == 1)
        return word >= WORD_OTHER;
    return middle_a == 2 && middle_b == 2 && a[head] == b[head + 1] && a[head + 1] == b[head] &&
           word >= WORD_SWAPPED;
}

/* The name that this one, which is used once, was probably to be; NULL: none. Of two that are used once the first
   is right. */
static const char *meant(const struct book *book, enum warned_table table,
                         const struct usage *usage)
{
    const struct usage *items = book->tables[table];
    if (usage->uses != 1 || book->counts[table] > COMPARED_MOST)
        return NULL;
    for (size_t i = 0; i < book->counts[table]; i++)
        if (items[i].signs == usage->signs && /* only letters are mistaken */
            (items[i].uses > 1 || (items[i].uses == 1 && &items[i] < usage)) &&
            looks_misspelt(usage->name, items[i].name))
            return items[i].name;
    return NULL;
}

/* ---- the warnings ---------------------------------------------------------------------------- */

static void warnings_warn(struct book *book, enum warning_kind kind, struct mark mark,
                          const char *text)
{
    struct warnings *out = book->out;
    if (out->count < WARNINGS_MOST && text)
        out->items[out->count++] = (struct warning){kind, mark, text};
}

#define WARN(book, kind, usage, ...)                                                               \
    warnings_warn((book), (kind), (usage)->mark, arena_printf((book)->arena, __VA_ARGS__))

/* True if another warning of this name has asked whether it is misspelt. */
static bool is_asked(const struct book *book, const struct usage *usage)
{
    for (size_t i = 0; i < book->out->count; i++) {
        const struct warning *warning = &book->out->items[i];
        if (warning->mark.line == usage->mark.line && warning->mark.col == usage->mark.col &&
            strstr(warning->text, "did you mean"))
            return true;
    }
    return false;
}

static uint64_t signs_of(const char *name)
{
    uint64_t hash = 0;
    for (; *name; name++)
        if (!isalpha((unsigned char)*name))
            hash = hash_mix(hash ^ (unsigned char)*name);
    return hash;
}

static bool warn_of_similar(struct book *book, enum warned_table table, const char *noun)
{
    size_t before = book->out->count;
    for (size_t i = 0; i < book->counts[table]; i++)
        book->tables[table][i].signs = signs_of(book->tables[table][i].name);
    for (size_t i = 0; i < book->counts[table]; i++) {
        const struct usage *usage = &book->tables[table][i];
        const char *other = usage->mark.line ? meant(book, table, usage) : NULL;
        if (other && !is_asked(book, usage))
            WARN(book, WARNING_SIMILAR_NAME, usage, "%s \"%s\" is used once; did you mean \"%s\"?",
                 noun, usage->name, other);
    }
    return book->out->count > before;
}

static void warn_of_events(struct book *book)
{
    for (size_t i = 0; i < book->counts[EVENTS]; i++) {
        const struct usage *usage = &book->tables[EVENTS][i];
        if (usage->takes && !usage->gives)
            WARN(book, WARNING_NEVER_RECORDED, usage,
                 "event \"%s\" is waited for and never recorded: nothing waits%s", usage->name,
                 hint(book, EVENTS, usage, gives));
    }
}

/* The flags of a repeat's iterations stand at one place; the first of them is enough. */
static void warn_of_flags(struct book *book)
{
    struct mark last = {0};
    for (size_t i = 0; i < book->counts[FLAGS]; i++) {
        const struct usage *usage = &book->tables[FLAGS][i];
        bool again = usage->mark.line == last.line && usage->mark.col == last.col && last.line;
        const struct flag_spec *spec = plan_flag_spec(book->plan, usage->name);
        if (usage->awaited_again && usage->set_again && usage->spans && !usage->varies)
            WARN(book, WARNING_STAYS_SET, usage,
                 "flag \"%s\" is set and awaited in a repeat and stays set: only the first "
                 "iteration "
                 "waits; \"flags: {%s: {scope: iteration}}\" gives each iteration its own, "
                 "\"clear\" "
                 "or a greater value each time makes one do for all",
                 usage->name, usage->name);
        if (!usage->takes || usage->gives || (spec && spec->value))
            continue;
        last = usage->mark;
        if (!again)
            WARN(book, WARNING_NEVER_SET, usage, "flag \"%s\" is awaited and never set%s",
                 usage->name, hint(book, FLAGS, usage, gives));
    }
}

/* A buffer that holds values before and is written is meant to outlive an iteration, as weights do. */
static bool loses_writes(const struct book *book, size_t buffer)
{
    ASSERT_INDEX(buffer, book->plan->buffer_count);
    const struct buffer *b = &book->plan->buffers[buffer];
    return book->plan->form == FORM_PIPELINE && b->input && !b->declared &&
           book->tables[BUFFERS][buffer].gives > 1;
}

static void warn_of_unwritten(struct book *book, const struct usage *usage)
{
    const char *meant = hint(book, BUFFERS, usage, gives);
    if (meant && !*meant)
        meant =
            "; list it under \"inputs\" if its values come from outside the plan, as those of a "
            "batch do";
    WARN(book, WARNING_NEVER_WRITTEN, usage, "buffer \"%s\" is read and never written%s",
         usage->name, meant);
}

/* Warn where one buffer for all iterations seems to be meant, and each iteration has its own. */
static void warn_of_crossing(struct book *book, const struct crossing *crossing,
                             const struct usage *usage)
{
    const struct task *tasks = book->plan->pipeline.tasks;
    if (crossing->first < 0)
        return;
    WARN(book, WARNING_UNDECLARED, usage,
         "buffer \"%s\" is not under \"buffers\", where others are: each iteration has one of its "
         "own, so %s (line %u) does not see what %s (line %u) left there in the iteration before; "
         "scope shared makes one for all iterations",
         usage->name, tasks[crossing->first].name, (unsigned)tasks[crossing->first].mark.line,
         tasks[crossing->second].name, (unsigned)tasks[crossing->second].mark.line);
}

static void warn_of_buffers(struct book *book)
{
    const struct crossing *crossings = crossings_find(book->plan, book->arena);
    for (size_t i = 0; i < book->counts[BUFFERS]; i++) {
        const struct usage *usage = &book->tables[BUFFERS][i];
        if (!usage->uses)
            WARN(book, WARNING_NEVER_USED, usage, "buffer \"%s\" is declared and not used%s",
                 usage->name, hint(book, BUFFERS, usage, gives));
        else if (usage->takes && !usage->gives)
            warn_of_unwritten(book, usage);
        else if (loses_writes(book, i))
            WARN(book, WARNING_UNDECLARED, usage,
                 "buffer \"%s\" is an input that is written, and not under \"buffers\": each "
                 "iteration has one of its own and sees no write of another; scope shared "
                 "makes one for all iterations",
                 usage->name);
        else if (crossings)
            warn_of_crossing(book, &crossings[i], usage);
    }
    warn_of_similar(book, BUFFERS, "buffer");
}

static bool names_any_members(const struct plan *plan)
{
    for (size_t i = 0; i < plan->comm_count; i++)
        if (plan->comms[i].declared)
            return true;
    return false;
}

static void warn_of_comms(struct book *book)
{
    const struct plan *plan = book->plan;
    if (warn_of_similar(book, COMMS, "communicator") || !names_any_members(plan))
        return;
    for (size_t i = 0; i < plan->comm_count; i++)
        if (!plan->comms[i].declared && plan->comms[i].mark.line)
            WARN(book, WARNING_UNDECLARED, &book->tables[COMMS][i],
                 "communicator \"%s\" is not under \"comms\", where others are: it has all ranks",
                 plan->comms[i].name);
}

static bool warnings_is_used(const struct usage *usage)
{
    return usage->uses > 0;
}

static void warn_of_declared_streams(struct book *book)
{
    for (size_t i = 0; i < book->plan->stream_spec_count; i++) {
        const struct usage *usage = &book->tables[STREAMS][book->plan->stream_specs[i].stream];
        if (!usage->uses)
            WARN(book, WARNING_NEVER_USED, usage, "stream \"%s\" is declared and not used%s",
                 usage->name, hint(book, STREAMS, usage, warnings_is_used));
    }
}

static void warn_of_streams(struct book *book)
{
    int found = names_find(&book->plan->streams, "default");
    warn_of_declared_streams(book);
    warn_of_similar(book, STREAMS, "stream");
    if (found >= 0 && !plan_stream_spec(book->plan, found) && book->counts[STREAMS] > 1 &&
        book->tables[STREAMS][found].mark.line)
        WARN(book, WARNING_DEFAULT_STREAM, &book->tables[STREAMS][found],
             "stream \"default\" is a stream like the others: unlike CUDA's legacy default stream "
             "it "
             "waits for none of them");
}

/* CPU time alone is that of a launch; what it launches takes no time. */
static void warn_of_cpu_tasks(struct book *book)
{
    const struct pipeline *pipeline = &book->plan->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++) {
        const struct task *task = &pipeline->tasks[t];
        char time[UNITS_TEXT];
        units_print_time(task->host_time_ns + task->host_after_ns, time);
        if (plan_is_only_cpu(book->plan, task))
            warnings_warn(
                book, WARNING_CPU_TASK, task->mark,
                arena_printf(book->arena,
                             "task %s has CPU time and neither stream, time nor work: it "
                             "launches work of no length on stream %s; work of the CPU is "
                             "\"work: {host: %s}\"",
                             task->name, PLAN_IMPLICIT_STREAM, time));
    }
}

static bool stands_before(const struct warning *first, const struct warning *second)
{
    if (first->mark.line != second->mark.line)
        return first->mark.line < second->mark.line;
    return first->mark.col < second->mark.col;
}

/* Those of one position keep their order. */
static void sort_by_position(struct warnings *warnings)
{
    for (size_t i = 1; i < warnings->count; i++) {
        struct warning moved = warnings->items[i];
        size_t at = i;
        for (; at > 0 && stands_before(&moved, &warnings->items[at - 1]); at--)
            warnings->items[at] = warnings->items[at - 1];
        warnings->items[at] = moved;
    }
}

enum status warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                          struct diag *diag)
{
    struct book book = {.plan = plan, .arena = arena, .out = out};
    *out = (struct warnings){.items = ARENA_ARRAY(arena, WARNINGS_MOST, struct warning)};
    if (!out->items || !warnings_open_tables(&book))
        return diag_no_memory(diag);
    count_uses(&book);
    warn_of_events(&book);
    warn_of_flags(&book);
    warn_of_buffers(&book);
    warn_of_comms(&book);
    warn_of_cpu_tasks(&book);
    warn_of_streams(&book);
    warn_of_similar(&book, GROUPS, "thread group");
    warn_of_similar(&book, LOCKS, "lock");
    warn_of_similar(&book, BARRIERS, "barrier");
    enum status status = list_warnings_find(plan, arena, out, diag);
    if (status == STATUS_OK)
        status = list_warnings_find_edges(plan, arena, out, diag);
    if (status != STATUS_OK)
        return status;
    if (arena->failed)
        return diag_no_memory(diag);
    sort_by_position(out);
    return STATUS_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void warnings_write(const struct warnings *warnings, const char *file, struct json *json)
{
    static const char *const keys[] = {WARNING_LIST(LIST_KEY)};
    json_begin_array_at(json, "warnings");
    for (size_t i = 0; i < warnings->count; i++) {
        const struct warning *warning = &warnings->items[i];
        json_begin_object(json);
        json_put_string(json, "kind", keys[warning->kind]);
        json_put_string(json, "file", file);
        json_put_int(json, "line", warning->mark.line);
        json_put_int(json, "column", warning->mark.col);
        json_put_string(json, "text", warning->text);
        json_end_object(json);
    }
    json_end_array(json);
}
