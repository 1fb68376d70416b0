/* SPDX-License-Identifier: Apache-2.0 */
/*
 * violation_words.c - violations in words: what differs in a mismatch, and which step broke which property.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/listed.h"
#include "plan/units.h"
#include "uses.h"

/* ---- mismatches ------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t cap, const char *format,
                                                         ...)
{
    size_t length = strlen(buf);
    va_list args;
    va_start(args, format);
    vsnprintf(buf + length, cap - length, format, args);
    va_end(args);
}

static void append_bytes(char *buf, size_t cap, int64_t ours, int64_t theirs)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];
    units_show_bytes((double)ours, a);
    units_show_bytes((double)theirs, b);
    if (strcmp(a, b) == 0)
        append(buf, cap, ", bytes (%" PRId64 ", %" PRId64 ")", ours, theirs);
    else
        append(buf, cap, ", bytes (%s, %s)", a, b);
}

static void append_tags(const struct program *p, int ours, int theirs, char *buf, size_t cap)
{
    append(buf, cap, ", tag (%s, %s)", ours >= 0 ? p->names.items[ours] : "none",
           theirs >= 0 ? p->names.items[theirs] : "none");
}

static void differing_collectives(const struct program *p, const struct op *ours,
                                  const struct op *theirs, char *buf, size_t cap)
{
    if (ours->name != theirs->name)
        append_tags(p, ours->name, theirs->name, buf, cap);
    if (ours->given->work->collective != theirs->given->work->collective)
        append(buf, cap, ", kind (%s, %s)", collective_key(ours->given->work->collective),
               collective_key(theirs->given->work->collective));
    if (ours->given->bytes != theirs->given->bytes)
        append_bytes(buf, cap, ours->given->bytes, theirs->given->bytes);
}

/* The two sides of one channel that do not fit, the first such. */
static void differing_messages(const struct program *p, const struct op *ours,
                               const struct op *theirs, char *buf, size_t cap)
{
    size_t before = strlen(buf);
    for (int i = 0; i < ours->part_count && strlen(buf) == before; i++)
        for (int k = 0; k < theirs->part_count && strlen(buf) == before; k++) {
            const struct part *a = &p->parts[ours->part_first + i];
            const struct part *b = &p->parts[theirs->part_first + k];
            if (a->channel != b->channel || a->send == b->send)
                continue;
            if (a->tag != b->tag)
                append_tags(p, a->tag, b->tag, buf, cap);
            if (a->bytes != b->bytes && a->bytes && b->bytes)
                append_bytes(buf, cap, a->bytes, b->bytes);
        }
}

/* ": they differ in tag (grads, activations), bytes (1.00 MiB, 2.00 MiB)" */
static void describe_difference(const struct program *p, const struct effect *effect, char *buf,
                                size_t cap)
{
    char fields[MACHINE_NAME] = "";
    if (effect->op < 0 || effect->other_op < 0)
        return;
    const struct op *ours = &p->ops[effect->op], *theirs = &p->ops[effect->other_op];
    if (ours->kind == OP_COLLECTIVE && theirs->kind == OP_COLLECTIVE)
        differing_collectives(p, ours, theirs, fields, sizeof fields);
    else if (ours->kind == OP_GROUP && theirs->kind == OP_GROUP)
        differing_messages(p, ours, theirs, fields, sizeof fields);
    else
        append(fields, sizeof fields, ", kind (%s, %s)", op_key(ours->kind), op_key(theirs->kind));
    if (p->tasks && effect->iteration != effect->other_iteration)
        append(fields, sizeof fields, ", iteration (%" PRId64 ", %" PRId64 ")", effect->iteration,
               effect->other_iteration);
    if (*fields)
        append(buf, cap, ": they differ in %s", fields + strlen(", "));
}

/* ---- violations ------------------------------------------------------------------------------ */

/* "line 7", of a task. */
static int line_of(const struct program *p, int task)
{
    return (int)p->plan->pipeline.tasks[task].mark.line;
}

/* The access of `subject` in this run and in a serial one. */
static void describe_order(const struct program *p, const struct effect *effect,
                           const char *subject, char *buf, size_t cap)
{
    const struct order_change *change = &effect->serial;
    const struct buffer_desc *buffer = &p->buffers[change->buffer];
    const char *writer = p->plan->pipeline.tasks[change->writer].name;
    const char *verb = change->reads ? "reads" : "writes";
    int64_t lag = change->serial - change->found;
    int line = line_of(p, p->ops[effect->op].task), other_line = line_of(p, change->writer);
    if (lag > 0 && change->reads && buffer->scope == SCOPE_SHARED)
        snprintf(buf, cap,
                 "%s (line %d) reads buffer %s %" PRId64
                 " iteration%s old; serial: 0, after %s(%" PRId64 ") (line %d)",
                 subject, line, buffer->name, lag, lag == 1 ? "" : "s", writer, change->serial - 1,
                 other_line);
    else if (lag > 0)
        snprintf(buf, cap,
                 "%s (line %d) %s buffer %s before %s(%" PRId64
                 ") (line %d) writes it; serial: after it",
                 subject, line, verb, buffer->name, writer, change->found, other_line);
    else if (lag < 0)
        snprintf(buf, cap,
                 "%s (line %d) %s buffer %s after %s(%" PRId64
                 ") (line %d) has written it; serial: "
                 "before it",
                 subject, line, verb, buffer->name, writer, change->found - 1, other_line);
    else
        snprintf(buf, cap, "%s (line %d) reads buffer %s older than %s (line %d) has left it",
                 subject, line, buffer->name, writer, other_line);
}

/* The action that reads `buffer` in an operation: each of a group's sends reads one. */
static const struct listed_action *find_reader(const struct program *p, const struct op *op,
                                               int buffer)
{
    uint32_t listed = op->listed;
    int reads = 0;
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &p->accesses[op->access_first + i];
        if (!access->write && access->buffer == buffer)
            break;
        reads += !access->write;
    }
    for (int i = 0; i < op->part_count; i++) {
        const struct part *part = &p->parts[op->part_first + i];
        if (part->send && reads-- == 0)
            listed = part->listed;
    }
    const struct tensor *tensor = &p->plan->buffers[p->buffers[buffer].plan_buffer].holds;
    return listed ? listed_reader(p->plan, listed - 1, tensor) : NULL;
}

static bool is_written(const struct program *p, int buffer)
{
    bool written = false;
    const struct buffer_desc *desc = &p->buffers[buffer];
    for (int i = desc->record_first; i < desc->record_first + desc->record_count; i++)
        written |= p->records[i].write;
    return written;
}

/* "1B2 (row 2, column 7) has no 1F2", "row 1 has no 0F3". */
static void describe_listed(const struct program *p, const struct listed_action *reader, int buffer,
                            char *buf, size_t cap)
{
    char name[MACHINE_NAME], provider[MACHINE_NAME], place[LISTED_PLACE];
    const struct tensor *tensor = &p->plan->buffers[p->buffers[buffer].plan_buffer].holds;
    snprintf(buf, cap, "%s%s %s %s", listed_name(reader, name, sizeof name),
             listed_place(reader, place, sizeof place),
             is_written(p, buffer) ? "comes before" : "has no",
             listed_provider(p->plan, tensor, reader->row, provider, sizeof provider));
}

static void describe_unwritten(const struct program *p, const struct effect *effect,
                               const char *subject, char *buf, size_t cap)
{
    const struct listed_action *reader =
        effect->op >= 0 ? find_reader(p, &p->ops[effect->op], effect->unwritten) : NULL;
    if (reader)
        describe_listed(p, reader, effect->unwritten, buf, cap);
    else
        snprintf(buf, cap, "%s reads buffer %s, which nothing has written", subject,
                 p->buffers[effect->unwritten].name);
}

const char *machine_describe_violation(const struct program *p, enum property property,
                                       const struct effect *effect, char *buf, size_t cap)
{
    char subject[MACHINE_NAME] = "a driver", other[MACHINE_NAME] = "another operation",
         agent[MACHINE_NAME] = "an earlier operation";
    if (effect->op >= 0)
        program_op_subject(p, &p->ops[effect->op], effect->iteration, subject, sizeof subject);
    if (effect->other_op >= 0)
        program_op_subject(p, &p->ops[effect->other_op], effect->other_iteration, other,
                           sizeof other);
    if (effect->other_agent >= 0)
        program_agent_name(p, effect->other_agent, agent, sizeof agent);
    switch (property) {
    case PROPERTY_RACE:
        snprintf(buf, cap, "%s accesses buffer %s, which %s%s%s %s without an order between them",
                 subject, p->buffers[effect->buffer].name, effect->other_op >= 0 ? other : "",
                 effect->other_op >= 0 ? " of " : "", agent,
                 effect->other_write ? "writes" : "reads");
        break;
    case PROPERTY_LIFETIME:
        if (effect->early)
            snprintf(
                buf, cap,
                "%s uses buffer %s without an order behind its allocation on %s: its memory may "
                "still be in use there",
                subject, p->buffers[effect->buffer].name, agent);
        else
            snprintf(buf, cap, "memory of buffer %s is %s", p->buffers[effect->buffer].name,
                     effect->other_agent >= 0 ? "reused while another stream still uses it"
                                              : "used after it was freed");
        break;
    case PROPERTY_VALUE: describe_unwritten(p, effect, subject, buf, cap); break;
    case PROPERTY_SERIAL: describe_order(p, effect, subject, buf, cap); break;
    case PROPERTY_MISMATCH:
        snprintf(buf, cap, "%s meets %s at the same position", subject, other);
        describe_difference(p, effect, buf, cap);
        break;
    case PROPERTY_SLOT:
        snprintf(buf, cap,
                 "%s looks for iteration %" PRId64 " in a slot that belongs to iteration %" PRId64,
                 subject, effect->wanted, effect->found);
        break;
    case PROPERTY_BOUND:
        snprintf(buf, cap,
                 effect->bytes ? "%" PRId64 " bytes are in use, machine.memory allows %" PRId64
                               : "%" PRId64 " iterations are in flight, the plan allows %" PRId64,
                 effect->found, effect->wanted);
        break;
    case PROPERTY_DEADLOCK: snprintf(buf, cap, "no step is possible and work remains"); break;
    case PROPERTY_DRAIN:
        if (effect->other_op >= 0)
            snprintf(buf, cap,
                     "after the drain the message of %s is left without a receive: the next fill "
                     "would receive it",
                     other);
        else
            snprintf(buf, cap, "after the end of the data an iteration never retires");
        break;
    case PROPERTY_FAULTS: snprintf(buf, cap, "after a fault an agent is never woken"); break;
    default: snprintf(buf, cap, "%s", property_key(property)); break;
    }
    return buf;
}
