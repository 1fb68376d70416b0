/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_promela.c - see export_promela.h.
 *
 * machine/machine.c defines the operations; this is a second definition, in Promela, guard by guard
 * and effect by effect, so that a difference between the two shows as a verdict on which SPIN and
 * our checker disagree. Each agent of the machine is a process:
 *
 *     thread       its operations one after the other, each atomic { guard -> effect }
 *     worker       do :: take an instance of task T from its queue -> T's operations od
 *     driver       enqueue a period or admit an iteration; retire; and again
 *     stream       do :: item of operation N at the head -> start; finish od
 *     comm         do :: all members have started a collective -> finish it on all of them od
 *
 * Four definitions differ in form and have the same meaning. Records and waits at the head of a
 * stream are steps of their own (in the machine they take effect at once). An event remembers its
 * position in its stream for ever and has happened when the stream has passed it (the machine
 * forgets it then). A callback's body is part of the process of the stream that waits for it. The
 * iterations of a pipeline are numbered from 0 and never shifted, since there are finitely many.
 *
 * In the model `i` is the iteration and `n` the ticket of a worker's instance.
 */
#include "export_promela.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/integers.h"
#include "promela.h"

enum { CHANNEL_MAX = 255, PROCESS_MAX = 255, COUNT_MAX = INT16_MAX };

void promela_put(const struct model *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(m->out, format, args);
    va_end(args);
}

/* A name of the plan must not end the comment. */
void promela_put_name(const struct model *m, const char *name)
{
    for (; *name; name++)
        fputc(*name == '/' || *name == '\\' || *name == '\n' ? '|' : *name, m->out);
}

void promela_put_agent(const struct model *m, int agent)
{
    char name[160];
    promela_put_name(m, program_agent_name(m->p, agent, name, sizeof name));
}

/* ---- questions about the program ------------------------------------------------------------- */

bool promela_is_pipeline(const struct model *m)
{
    return m->p->tasks > 0;
}

static bool export_promela_has_kind(const struct program *p, enum op_kind kind)
{
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == kind)
            return true;
    return false;
}

/* Items ever pushed to a stream: `each` of them an iteration, or once without a pipeline. */
static int64_t pushed_ever(const struct model *m, int stream)
{
    int64_t each = 0;
    for (size_t i = 0; i < m->p->op_count; i++)
        each += op_pushes(m->p->ops[i].kind) && m->p->ops[i].stream == stream;
    return promela_is_pipeline(m) ? each * m->iterations : each;
}

static int64_t at_least_one(int64_t number)
{
    return number > 0 ? number : 1;
}

static int64_t item_places(const struct model *m, int stream)
{
    int64_t ever = pushed_ever(m, stream), cap = m->p->streams[stream].cap;
    return at_least_one(ever < cap ? ever : cap);
}

static int64_t hw_places(const struct model *m, int queue)
{
    int64_t places = 0;
    for (int s = 0; s < m->p->stream_count; s++)
        if (m->p->streams[s].hw_queue == queue)
            places += item_places(m, s);
    return at_least_one(places);
}

static int64_t message_places(const struct model *m, int channel)
{
    return at_least_one(m->p->channels[channel].cap);
}

static int64_t instance_places(const struct model *m, int thread)
{
    int64_t ever = 0;
    for (int k = 0; k < m->p->ranks * m->p->tasks; k++)
        ever += m->p->worker[k] == thread ? m->iterations : 0;
    int64_t cap = m->p->threads[thread].queue_cap;
    return at_least_one(ever < cap ? ever : cap);
}

static int64_t find_byte_unit(const struct program *p)
{
    int64_t unit = 0;
    for (size_t i = 0; i < p->part_count; i++)
        unit = integers_gcd(unit, p->parts[i].bytes);
    return unit ? unit : 1;
}

/* ---- limits of a model ----------------------------------------------------------------------- */

static enum status too_many(const struct model *m, struct diag *diag, int64_t found,
                            const char *what, int64_t most)
{
    return diag_error(diag, STATUS_INPUT,
                      "%s: found %" PRId64 " %s, expected at most %" PRId64 " in a Promela model",
                      m->p->plan->file, found, what, most);
}

static enum status check_streams(const struct model *m, struct diag *diag)
{
    const struct program *p = m->p;
    for (int s = 0; s < p->stream_count; s++) {
        if (item_places(m, s) > CHANNEL_MAX)
            return too_many(m, diag, item_places(m, s), "places in the queue of a stream",
                            CHANNEL_MAX);
        if (pushed_ever(m, s) > COUNT_MAX)
            return too_many(m, diag, pushed_ever(m, s), "items pushed to a stream", COUNT_MAX);
    }
    for (int q = 0; q < p->hw_queue_count; q++)
        if (hw_places(m, q) > CHANNEL_MAX)
            return too_many(m, diag, hw_places(m, q), "places in a hardware queue", CHANNEL_MAX);
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER && instance_places(m, t) > CHANNEL_MAX)
            return too_many(m, diag, instance_places(m, t), "places in the queue of a worker",
                            CHANNEL_MAX);
    return STATUS_OK;
}

static enum status check_messages(const struct model *m, struct diag *diag)
{
    const struct program *p = m->p;
    for (int c = 0; c < p->channel_count; c++)
        if (message_places(m, c) > CHANNEL_MAX)
            return too_many(m, diag, message_places(m, c), "messages between two ranks",
                            CHANNEL_MAX);
    for (size_t i = 0; i < p->part_count; i++) {
        const struct channel *channel = &p->channels[p->parts[i].channel];
        if (p->parts[i].element != ELEMENT_NONE)
            return diag_error(diag, STATUS_INPUT,
                              "%s: found a message with a \"dtype\", expected none: a Promela "
                              "model compares bytes alone",
                              p->plan->file);
        int64_t summed = p->comms[channel->comm].eager_bytes ? channel->cap : 1;
        if (p->parts[i].bytes / m->byte_unit > INT32_MAX / summed)
            return too_many(m, diag, p->parts[i].bytes / m->byte_unit, "units of a message's size",
                            INT32_MAX / summed);
    }
    return STATUS_OK;
}

static enum status check_iterations(const struct model *m, struct diag *diag)
{
    for (int rank = 0; promela_is_pipeline(m) && rank < m->p->ranks; rank++)
        if (m->p->ends[rank] < 0)
            return diag_error(diag, STATUS_INPUT,
                              "%s: found no number of iterations, expected one: a Promela model is "
                              "finite",
                              m->p->plan->file);
    if (m->iterations * (m->p->tasks + 1) * m->p->ranks > COUNT_MAX)
        return too_many(m, diag, m->iterations * (m->p->tasks + 1) * m->p->ranks,
                        "instances of tasks", COUNT_MAX);
    return STATUS_OK;
}

/* A model does not know who holds a lock, so it cannot tell whether one was taken for a wait that is skipped meanwhile. */
static enum status check_locks(const struct model *m, struct diag *diag)
{
    for (size_t i = 0; m->p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP && i < m->p->op_count;
         i++)
        if (promela_is_pipeline(m) && m->p->ops[i].kind == OP_LOCK &&
            op_dependence(&m->p->ops[i]) >= 0)
            return diag_error(diag, STATUS_INPUT,
                              "%s: found waits under a lock that \"retired_dep: skip\" may skip, "
                              "expected \"retired_dep: wait\": a Promela model has none of them",
                              m->p->plan->file);
    return STATUS_OK;
}

static enum status export_promela_check_size(const struct model *m, struct diag *diag)
{
    const struct program *p = m->p;
    if (p->has_greedy)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found \"greedy\", expected none: a Promela model has kernels with "
                          "fixed slots",
                          p->plan->file);
    if (p->has_aborts)
        return diag_error(diag, STATUS_INPUT,
                          "%s: found \"abort\", expected none: a Promela model has no aborts",
                          p->plan->file);
    enum status status = check_iterations(m, diag);
    if (status == STATUS_OK && p->op_count > COUNT_MAX)
        status = too_many(m, diag, (int64_t)p->op_count, "operations", COUNT_MAX);
    int processes = p->thread_count + p->stream_count + p->comm_count;
    if (status == STATUS_OK && processes > PROCESS_MAX)
        status = too_many(m, diag, processes, "threads, streams and communicators", PROCESS_MAX);
    int channels = p->stream_count + p->hw_queue_count + p->channel_count +
                   (promela_is_pipeline(m) ? p->thread_count : 0);
    if (status == STATUS_OK && channels > CHANNEL_MAX)
        status = too_many(m, diag, channels, "queues", CHANNEL_MAX);
    if (status == STATUS_OK)
        status = check_streams(m, diag);
    return status == STATUS_OK ? check_messages(m, diag) : status;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A mismatch ends the run, as in the checker: every process then leaves its loop. */
static void put_process_begin(const struct model *m, const char *name, int number, int agent)
{
    promela_put(m, "\nactive proctype %s_%d() /* ", name, number);
    promela_put_agent(m, agent);
    promela_put(m, " */\n{%s\n", m->matches ? " {" : "");
}

static void put_process_end(const struct model *m)
{
    promela_put(m, "}%s\n", m->matches ? " unless { mismatch } }" : "");
}

static void put_worker(const struct model *m, int thread)
{
    const struct program *p = m->p;
    int rank = p->threads[thread].rank;
    promela_put(m, "  short i, n;\nend:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        if (p->worker[rank * p->tasks + task] != thread)
            continue;
        promela_put(m, "  :: atomic { work_%d?%d,i,n", thread, task);
        if (p->plan->pipeline.slot_reset == SLOT_RESET_SUBMIT) {
            promela_put(m, "; ");
            promela_put_arm_slot(m, rank, task, "i");
        }
        promela_put(m, " }; /* ");
        promela_put_name(m, p->plan->pipeline.tasks[task].name);
        promela_put(m, " */\n");
        promela_put_body(m, rank * p->tasks + task, rank, "     ");
        promela_put(m, "     i = 0; n = 0\n");
    }
    promela_put(m, "  od\n");
}

static void put_thread(const struct model *m, int thread)
{
    const struct thread_desc *desc = &m->p->threads[thread];
    if (desc->kind == THREAD_CALLBACK)
        return; /* the process of its stream executes the bodies */
    put_process_begin(m, "thread", thread, program_thread_agent(m->p, thread));
    switch (desc->kind) {
    case THREAD_HOST:
        promela_put_body(m, desc->body, desc->rank, "  ");
        promela_put(m, "  skip\n");
        break;
    case THREAD_WORKER: put_worker(m, thread); break;
    case THREAD_DRIVER: promela_put_driver(m, desc->rank); break;
    case THREAD_CALLBACK: break;
    }
    put_process_end(m);
}

static void put_stream(const struct model *m, int stream)
{
    const struct program *p = m->p;
    if (pushed_ever(m, stream) == 0)
        return;
    put_process_begin(m, "stream", stream, program_stream_agent(p, stream));
    promela_put(m, "    short a, b%s;\n", promela_is_pipeline(m) ? ", i" : "");
    if (m->messages)
        promela_put(m, "    short t%s; int y;\n", promela_is_pipeline(m) ? ", j" : "");
    promela_put(m, "end:\n    do\n");
    for (size_t k = 0; k < p->op_count; k++)
        if (op_pushes(p->ops[k].kind) && p->ops[k].stream == stream)
            promela_put_item(m, &p->ops[k]);
    promela_put(m, "    od\n");
    put_process_end(m);
}

/* complete_collective in machine.c. */
static void export_promela_put_comm(const struct model *m, int index)
{
    const struct comm_desc *comm = &m->p->comms[index];
    bool used = false;
    for (size_t k = 0; k < m->p->op_count; k++)
        used |= op_ends_together(m->p->ops[k].kind) && m->p->ops[k].comm == index;
    if (!used)
        return;
    put_process_begin(m, "comm", index, program_comm_agent(m->p, index));
    promela_put(m, "end:\n  do\n  :: atomic { (true");
    for (int k = 0; k < comm->count; k++)
        promela_put(m, " && current[%d] > 0", comm->first_member + k);
    promela_put(m, ") ->");
    for (int k = 0; k < comm->count; k++) {
        int member = comm->first_member + k, device = m->p->device[comm->members[k]];
        promela_put(m, "\n       ");
        if (m->p->plan->machine.sm_slots)
            promela_put(m, "sm_used[%d] = sm_used[%d] - held[%d]; held[%d] = 0; ", device, device,
                        member, member);
        if (promela_is_pipeline(m))
            promela_put(m, "current_i[%d] = 0; ", member);
        promela_put(m,
                    "popped[on_stream[%d]]++; on_stream[%d] = 0; current[%d] = 0; finished[%d]++%s",
                    member, member, member, member, k + 1 < comm->count ? ";" : "");
    }
    promela_put(m, " }\n  od\n");
    put_process_end(m);
}

/* ---- declarations ---------------------------------------------------------------------------- */

static void put_unrecorded(const struct model *m)
{
    for (size_t i = 0; i < m->p->plan->unrecorded_count; i++) {
        promela_put(m, " * Not recorded of the job, and not in the model: ");
        promela_put_name(m, m->p->plan->unrecorded[i].what);
        promela_put(m, "\n");
    }
}

static void put_preamble(const struct model *m)
{
    promela_put(m, "/*\n * ");
    promela_put_name(m, m->p->plan->name ? m->p->plan->name : "a plan");
    if (promela_is_pipeline(m))
        promela_put(m, ", driver %s, %" PRId64 " iterations", driver_key(m->p->driver),
                    m->iterations);
    promela_put(
        m,
        ": a Promela model, made by swsim export.\n"
        " *\n"
        " * A deadlock is an invalid end state, a mismatch of collectives or messages a violated\n"
        " * assertion. Left out: buffers and with them order and lifetime races, slot hazards, "
        "the\n"
        " * bound on iterations in flight, time.\n");
    put_unrecorded(m);
    promela_put(m, " *\n"
                   " *     spin -a model.pml && cc -O2 -DSAFETY -DVECTORSZ=65536 -o pan pan.c\n"
                   " *     ./pan -m1000000\n"
                   " */\n");
}

static void put_array(const struct model *m, const char *type, const char *name, int64_t count)
{
    promela_put(m, "%s %s[%" PRId64 "];\n", type, name, at_least_one(count));
}

static void put_stream_tables(const struct model *m)
{
    const struct program *p = m->p;
    promela_put(
        m, "\n/* streams: items pushed and popped; an item is its operation%s and two numbers */\n",
        promela_is_pipeline(m) ? ", its iteration" : "");
    put_array(m, "short", "pushed", p->stream_count);
    put_array(m, "short", "popped", p->stream_count);
    for (int s = 0; s < p->stream_count; s++) {
        promela_put(m, "chan items_%d = [%" PRId64 "] of { short, %sshort, short }; /* ", s,
                    item_places(m, s), promela_is_pipeline(m) ? "short, " : "");
        promela_put_agent(m, program_stream_agent(p, s));
        promela_put(m, " */\n");
    }
    for (int q = 0; q < p->hw_queue_count; q++)
        promela_put(m, "chan hw_%d = [%" PRId64 "] of { short };\n", q, hw_places(m, q));
    promela_put(m, "#define room(s, cap) (pushed[s] - popped[s] < cap)\n"
                   "#define idle(s) (pushed[s] == popped[s])\n");
    if (p->awaited_count > 0)
        put_array(m, "short", "awaited", p->awaited_count);
    if (p->plan->machine.sm_slots)
        put_array(m, "short", "sm_used", p->ranks);
}

static bool any_flag_counts(const struct program *p)
{
    for (int flag = 0; flag < p->flag_families; flag++)
        if (p->flag_counts[flag])
            return true;
    return false;
}

static void put_object_tables(const struct model *m)
{
    const struct program *p = m->p;
    promela_put(m, "\n/* events: stream + 1 (0: nothing to wait for) and position in it */\n");
    put_array(m, "short", "event_stream", p->event_families * p->slots);
    put_array(m, "short", "event_pos", p->event_families * p->slots);
    promela_put(
        m,
        "#define over(e) (event_stream[e] == 0 || popped[event_stream[e] - 1] > event_pos[e])\n");
    promela_put(m, "\n/* flags, queues and locks between threads, tickets, loaded kernels */\n");
    if (p->flag_families)
        put_array(m, any_flag_counts(p) ? "int" : "bit", "flag", p->flag_families * p->slots);
    if (p->queue_count)
        put_array(m, "short", "queued", p->queue_count);
    if (export_promela_has_kind(p, OP_LOCK) || export_promela_has_kind(p, OP_UNLOCK))
        put_array(m, "bit", "locked", p->lock_count);
    put_array(m, "short", "served", p->ranks);
    if (p->plan->machine.lazy_load)
        put_array(m, "bit", "loaded", (int64_t)p->ranks * p->kernel_count);
}

static void put_comm_tables(const struct model *m)
{
    const struct program *p = m->p;
    if (!m->matches)
        return;
    promela_put(
        m,
        "\n/* members of communicators: operations issued and finished; current: the number of a\n"
        "   collective, -1 a group, 0 none */\n");
    put_array(m, "short", "issued", p->member_count);
    put_array(m, "short", "finished", p->member_count);
    put_array(m, "short", "current", p->member_count);
    put_array(m, "short", "on_stream", p->member_count);
    if (promela_is_pipeline(m))
        put_array(m, "short", "current_i", p->member_count);
    if (p->plan->machine.sm_slots)
        put_array(m, "short", "held", p->member_count);
    if (p->plan->machine.launch_order_implicit) {
        put_array(m, "short", "issued_any", p->ranks);
        put_array(m, "short", "started_any", p->ranks);
    }
    promela_put(m, "bit mismatch;\n"
                   "inline agree(same) {\n"
                   "  if\n  :: same\n  :: else -> assert(false); mismatch = 1\n  fi\n}\n");
}

/* post_part in machine.c. */
static void put_message_tables(const struct model *m)
{
    const struct program *p = m->p;
    const char *i_type = promela_is_pipeline(m) ? ", short" : "",
               *i = promela_is_pipeline(m) ? ",i" : "", *j = promela_is_pipeline(m) ? ",j" : "",
               *same = promela_is_pipeline(m) ? " && i == j" : "";
    if (!m->messages)
        return;
    promela_put(
        m,
        "\n/* links: messages not matched yet, all sends (balance > 0) or all receives (< 0), "
        "oldest\n"
        "   first: tag, size in units of %" PRId64 " bytes%s; unmatched: size of all sends */\n",
        m->byte_unit, promela_is_pipeline(m) ? ", iteration" : "");
    for (int c = 0; c < p->channel_count; c++)
        promela_put(m,
                    "chan link_%d = [%" PRId64 "] of { short, int%s }; /* rank %d to rank %d */\n",
                    c, message_places(m, c), i_type, p->channels[c].from, p->channels[c].to);
    put_array(m, "short", "balance", p->channel_count);
    put_array(m, "int", "unmatched", p->channel_count);
    promela_put(m,
                "inline send(link, c, tag, size) {\n"
                "  if\n"
                "  :: balance[c] < 0 -> link?t,y%s; "
                "agree(t == tag && (y == size || y == 0 || size == 0)%s)\n"
                "  :: else -> link!tag,size%s; unmatched[c] = unmatched[c] + size\n"
                "  fi;\n"
                "  balance[c]++; t = 0; y = 0\n}\n",
                j, same, i);
    promela_put(m,
                "inline receive(link, c, tag, size) {\n"
                "  if\n"
                "  :: balance[c] > 0 -> link?t,y%s; unmatched[c] = unmatched[c] - y;\n"
                "     agree(t == tag && (y == size || y == 0 || size == 0)%s)\n"
                "  :: else -> link!tag,size%s\n"
                "  fi;\n"
                "  balance[c]--; t = 0; y = 0\n}\n",
                j, same, i);
}

static void put_pipeline_tables(const struct model *m)
{
    const struct program *p = m->p;
    if (!promela_is_pipeline(m))
        return;
    promela_put(m, "\n/* workers: instances handed to them, (task, iteration, ticket) */\n");
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER)
            promela_put(m, "chan work_%d = [%" PRId64 "] of { short, short, short };\n", t,
                        instance_places(m, t));
    promela_put(m, "\n/* drivers, and a cell for each rank and iteration */\n");
    put_array(m, "short", "oldest", p->ranks);
    put_array(m, "short", "admitted", p->ranks);
    put_array(m, "short", "next_ticket", p->ranks);
    put_array(m, "short", "submit_left", p->ranks * m->iterations);
    put_array(m, "short", "device_left", p->ranks * m->iterations);
    put_array(m, "bit", "last_left", p->ranks * m->iterations);
    if (p->driver == DRIVER_DATAFLOW) {
        put_array(m, "bit", "fired", p->ranks * p->tasks * m->iterations);
        put_array(m, "bit", "submitted", p->ranks * p->tasks * m->iterations);
    }
}

enum status export_promela(const struct program *program, FILE *out, struct diag *diag)
{
    struct model m = {.p = program, .out = out, .byte_unit = find_byte_unit(program)};
    for (int rank = 0; program->tasks && rank < program->ranks; rank++)
        if (program->ends[rank] > m.iterations)
            m.iterations = program->ends[rank];
    m.messages = export_promela_has_kind(program, OP_GROUP);
    m.matches = m.messages || export_promela_has_kind(program, OP_COLLECTIVE);
    enum status status = check_locks(&m, diag);
    if (status == STATUS_OK)
        status = export_promela_check_size(&m, diag);
    if (status != STATUS_OK)
        return status;
    put_preamble(&m);
    put_stream_tables(&m);
    put_object_tables(&m);
    put_comm_tables(&m);
    put_message_tables(&m);
    put_pipeline_tables(&m);
    promela_put_driver_inlines(&m);
    for (int thread = 0; thread < program->thread_count; thread++)
        put_thread(&m, thread);
    for (int stream = 0; stream < program->stream_count; stream++)
        put_stream(&m, stream);
    for (int comm = 0; comm < program->comm_count; comm++)
        export_promela_put_comm(&m, comm);
    return STATUS_OK;
}
