/* SPDX-License-Identifier: Apache-2.0 */
/*
 * violation_words.c - violations in words: what differs in a mismatch, and which step broke which property.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/group_names.h"
#include "uses.h"
#include "plan/schedules/listed.h"
#include "base/units.h"

/* ---- mismatches ------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void violation_words_append(char *buf, size_t cap,
                                                                         const char *format, ...)
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
        violation_words_append(buf, cap, ", bytes (%" PRId64 ", %" PRId64 ")", ours, theirs);
    else
        violation_words_append(buf, cap, ", bytes (%s, %s)", a, b);
}

static void append_elements(char *buf, size_t cap, enum element ours, enum element theirs)
{
    violation_words_append(buf, cap, ", dtype (%s, %s)", element_key(ours), element_key(theirs));
}

static void append_tags(const struct program *p, int ours, int theirs, char *buf, size_t cap)
{
    violation_words_append(buf, cap, ", tag (%s, %s)", ours >= 0 ? p->names.items[ours] : "none",
                           theirs >= 0 ? p->names.items[theirs] : "none");
}

/* The rank that a broadcast comes from; -1: another collective, or several of one group, whose name has them. */
static int root_of(const struct program *p, const struct op *op)
{
    return op->given->root_count == 1 ? p->comms[op->comm].members[op->given->roots[0]] : -1;
}

static void differing_collectives(const struct program *p, const struct op *ours,
                                  const struct op *theirs, char *buf, size_t cap)
{
    if (ours->name != theirs->name)
        append_tags(p, ours->name, theirs->name, buf, cap);
    if (ours->given->work->collective != theirs->given->work->collective)
        violation_words_append(buf, cap, ", kind (%s, %s)",
                               collective_key(ours->given->work->collective),
                               collective_key(theirs->given->work->collective));
    if (root_of(p, ours) != root_of(p, theirs))
        violation_words_append(buf, cap, ", root (%d, %d)", root_of(p, ours), root_of(p, theirs));
    if (ours->given->bytes != theirs->given->bytes)
        append_bytes(buf, cap, ours->given->bytes, theirs->given->bytes);
    if (ours->given->work->element != theirs->given->work->element)
        append_elements(buf, cap, ours->given->work->element, theirs->given->work->element);
}

static void differing_messages(const struct program *p, const struct part *ours,
                               const struct part *theirs, char *buf, size_t cap)
{
    if (ours->tag != theirs->tag)
        append_tags(p, ours->tag, theirs->tag, buf, cap);
    if (ours->bytes != theirs->bytes && ours->bytes && theirs->bytes)
        append_bytes(buf, cap, ours->bytes, theirs->bytes);
    if (ours->element != theirs->element && ours->element && theirs->element)
        append_elements(buf, cap, ours->element, theirs->element);
}

/* "receive x from rank 0", a message of a group; of a task its name and iteration. */
static const char *message_subject(const struct program *p, int op, int part, int64_t iteration,
                                   char *buf, size_t cap)
{
    const struct part *message = &p->parts[part];
    const struct channel *channel = &p->channels[message->channel];
    if (p->ops[op].task >= 0 || p->ops[op].part_count < 2)
        return program_op_title(p, &p->ops[op], iteration, buf, cap);
    group_message_name(message->send, p->names.items[message->tag],
                       message->send ? channel->to : channel->from, false, buf, cap);
    return buf;
}

/* ": they differ in tag (grads, activations), bytes (1.00 MiB, 2.00 MiB)" */
static void describe_difference(const struct program *p, const struct effect *effect, char *buf,
                                size_t cap)
{
    char fields[MACHINE_NAME] = "";
    const struct counterpart *met = &effect->met;
    if (effect->op < 0 || met->op < 0)
        return;
    if (met->part >= 0)
        differing_messages(p, &p->parts[met->part], &p->parts[met->other_part], fields,
                           sizeof fields);
    else
        differing_collectives(p, &p->ops[effect->op], &p->ops[met->op], fields, sizeof fields);
    if (p->tasks && effect->iteration != met->iteration)
        violation_words_append(fields, sizeof fields, ", iteration (%" PRId64 ", %" PRId64 ")",
                               effect->iteration, met->iteration);
    if (*fields)
        violation_words_append(buf, cap, ": they differ in %s", fields + strlen(", "));
}

static void describe_mismatch(const struct program *p, const struct effect *effect, char *buf,
                              size_t cap)
{
    char ours[MACHINE_NAME] = "an operation", theirs[MACHINE_NAME] = "another one";
    const struct counterpart *met = &effect->met;
    if (met->part >= 0) {
        message_subject(p, effect->op, met->part, effect->iteration, ours, sizeof ours);
        message_subject(p, met->op, met->other_part, met->iteration, theirs, sizeof theirs);
    } else if (met->op >= 0) {
        program_op_title(p, &p->ops[effect->op], effect->iteration, ours, sizeof ours);
        program_op_title(p, &p->ops[met->op], met->iteration, theirs, sizeof theirs);
    }
    snprintf(buf, cap, "%s meets %s at the same position", ours, theirs);
    describe_difference(p, effect, buf, cap);
}

/* ---- violations ------------------------------------------------------------------------------ */

/* "line 7", of a task. */
static int line_of(const struct program *p, int task)
{
    return (int)p->plan->pipeline.tasks[task].mark.line;
}

/* The access of `subject` in this run and in a serial one. */
static void violation_words_describe_order(const struct program *p, const struct effect *effect,
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

static const char *agent_of_access(const struct program *p, const struct other_access *access,
                                   char *buf, size_t cap)
{
    if (access->agent >= 0)
        return program_agent_name(p, access->agent, buf, cap);
    snprintf(buf, cap, "an earlier operation");
    return buf;
}

static void describe_race(const struct program *p, const struct other_access *race,
                          const char *subject, char *buf, size_t cap)
{
    char other[MACHINE_NAME] = "", agent[MACHINE_NAME];
    if (race->op >= 0)
        program_op_title(p, &p->ops[race->op], race->iteration, other, sizeof other);
    snprintf(buf, cap, "%s accesses buffer %s, which %s%s%s %s without an order between them",
             subject, p->buffers[race->buffer].name, other, race->op >= 0 ? " of " : "",
             agent_of_access(p, race, agent, sizeof agent), race->write ? "writes" : "reads");
}

/* "Copy(3) on stream d2h" */
static const char *access_words(const struct program *p, const struct other_access *access,
                                char *buf, size_t cap)
{
    char subject[MACHINE_NAME], agent[MACHINE_NAME];
    agent_of_access(p, access, agent, sizeof agent);
    if (access->op < 0)
        return agent_of_access(p, access, buf, cap);
    program_op_subject(p, &p->ops[access->op], access->iteration, subject, sizeof subject);
    snprintf(buf, cap, "%s on %s", subject, agent);
    return buf;
}

/* `kind` is that of the operation whose step shows it. */
static void describe_lifetime(const struct program *p, const struct other_access *lifetime,
                              enum op_kind kind, const char *subject, char *buf, size_t cap)
{
    char agent[MACHINE_NAME], user[3 * MACHINE_NAME];
    const char *buffer = p->buffers[lifetime->buffer].name;
    if (kind == OP_FREE && lifetime->agent >= 0)
        snprintf(buf, cap, "free of buffer %s of the host, which %s may still use", buffer,
                 agent_of_access(p, lifetime, agent, sizeof agent));
    else if (kind == OP_FREE || kind == OP_RECORD_STREAM)
        snprintf(buf, cap,
                 lifetime->early ? "%s of buffer %s without an order behind its alloc"
                 : kind == OP_FREE
                     ? "%s of buffer %s, which is freed already"
                     : "%s of buffer %s behind its free, which is when the allocator looks at the "
                       "streams that use it",
                 op_key(kind), buffer);
    else if (lifetime->early)
        snprintf(buf, cap, "%s uses buffer %s without an order behind its allocation on %s: %s",
                 subject, buffer, agent_of_access(p, lifetime, agent, sizeof agent),
                 op_is_cpu_work(kind) ? "memory that the CPU uses is of host_alloc, or it waits"
                                      : "its memory may still be in use there");
    else if (lifetime->agent >= 0)
        snprintf(buf, cap, "memory of buffer %s is reused while another stream still uses it: %s",
                 buffer, access_words(p, lifetime, user, sizeof user));
    else
        snprintf(buf, cap, "memory of buffer %s is used after it was freed: %s", buffer, subject);
}

const char *machine_describe_violation(const struct program *p, enum property property,
                                       const struct effect *effect, char *buf, size_t cap)
{
    char subject[MACHINE_NAME] = "a driver", other[MACHINE_NAME] = "another operation";
    if (effect->op >= 0)
        program_op_title(p, &p->ops[effect->op], effect->iteration, subject, sizeof subject);
    switch (property) {
    case PROPERTY_RACE: describe_race(p, &effect->race, subject, buf, cap); break;
    case PROPERTY_LIFETIME:
        describe_lifetime(p, &effect->lifetime, effect->op >= 0 ? p->ops[effect->op].kind : OP_HOST,
                          subject, buf, cap);
        break;
    case PROPERTY_VALUE: describe_unwritten(p, effect, subject, buf, cap); break;
    case PROPERTY_SERIAL: violation_words_describe_order(p, effect, subject, buf, cap); break;
    case PROPERTY_MISMATCH: describe_mismatch(p, effect, buf, cap); break;
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
        if (effect->met.op >= 0)
            snprintf(buf, cap,
                     "after the drain the message of %s is left without a receive: the next fill "
                     "would receive it",
                     program_op_title(p, &p->ops[effect->met.op], effect->met.iteration, other,
                                      sizeof other));
        else
            snprintf(buf, cap, "after the end of the data no step is possible and work remains");
        break;
    case PROPERTY_FAULTS: snprintf(buf, cap, "after a fault an agent is never woken"); break;
    default: snprintf(buf, cap, "%s", property_key(property)); break;
    }
    return buf;
}
