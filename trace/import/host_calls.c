/* SPDX-License-Identifier: Apache-2.0 */
/* host_calls.c - see host_calls.h. */
#include "host_calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "evidence.h"
#include "fold.h"
#include "innermost.h"
#include "meetings.h"
#include "steps.h"

#include "trace/job/call_names.h"
#include "trace/job/job.h"
#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

enum { HANDOFF_NS = 80 * 1000 };

struct handoff {
    int call, other; /* `call` comes after `other` */
    bool at_end;     /* after its end; else after its push */
};

struct handoffs {
    struct handoff *items; /* by call */
    size_t count, cap;
};

/*
 * The order between the threads of a rank, which a trace shows only by its times.
 *
 * A call waits for one of another thread where
 *
 *     - both push to one stream, one after the other: the stream has the order of the trace;
 *     - it makes a stream wait for work that the other one pushed: the record must come first;
 *     - its thread was idle for more than HANDOFF_NS before it, the other thread made its last call in that
 *       time, and makes none for a while: it handed over.
 *
 * Every such order points forward in time, so the plan that has them cannot deadlock by them.
 */

/* True if call `a` begins before call `b`. In a thread the order of calls is that of their numbers. */
static bool host_calls_comes_before(const struct job_rank *rank, int a, int b)
{
    ASSERT_INDEX(a, rank->call_count);
    ASSERT_INDEX(b, rank->call_count);
    const int64_t start_a = rank->calls[a].start_ns, start_b = rank->calls[b].start_ns;
    return start_a != start_b ? start_a < start_b : a < b;
}

static bool add_handoff(const struct job_rank *rank, struct handoffs *out, int call, int other,
                        bool at_end)
{
    if (call < 0 || other < 0 || rank->calls[call].thread == rank->calls[other].thread ||
        !host_calls_comes_before(rank, other, call))
        return true;
    if (!ARRAY_GROW(out->items, out->count, out->cap))
        return false;
    out->items[out->count++] = (struct handoff){call, other, at_end};
    return true;
}

static bool add_stream_orders(const struct job_rank *rank, struct handoffs *out)
{
    for (size_t s = 0; s < rank->stream_count; s++) {
        int before = -1;
        for (int i = 0; i < rank->streams[s].count; i++) {
            const int call = rank->works[rank->by_stream[rank->streams[s].first + i]].call;
            if (call < 0)
                continue;
            if (!add_handoff(rank, out, call, before, false))
                return false;
            before = call;
        }
    }
    return true;
}

static bool add_records(const struct job_rank *rank, const struct evidence *evidence,
                        struct handoffs *out)
{
    for (size_t i = 0; i < evidence->edge_count; i++) {
        const struct edge_found *edge = &evidence->edges[i];
        if (!add_handoff(rank, out, rank->works[edge->work].call, rank->works[edge->source].call,
                         false))
            return false;
    }
    for (size_t i = 0; i < rank->call_count; i++) {
        const int work = evidence->waits[i].work;
        if (rank->calls[i].kind == CALL_SYNC_EVENT && work >= 0 &&
            !add_handoff(rank, out, (int)i, rank->works[work].call, false))
            return false;
    }
    return true;
}

/* The last call of another thread that was over at `time_ns`, made since `since_ns`, if its thread then made none for
   a while; -1. */
static int handed_over(const struct job_rank *rank, int thread, int64_t since_ns, int64_t time_ns)
{
    int best = -1;
    for (int other = 0; other < (int)rank->threads.count; other++) {
        /* The first call of a thread that begins at `time_ns` or later; the number behind its last one if there is none. */
        const int next = SORT_FIRST(i, rank->first_call[other], rank->first_call[other + 1],
                                    rank->calls[i].start_ns >= time_ns);
        if (other == thread || next == rank->first_call[other])
            continue;
        const struct job_call *last = &rank->calls[next - 1];
        const bool goes_on =
            next < rank->first_call[other + 1] && rank->calls[next].start_ns < time_ns + HANDOFF_NS;
        if (goes_on || last->end_ns > time_ns || last->end_ns < since_ns)
            continue;
        if (best < 0 || last->end_ns > rank->calls[best].end_ns)
            best = next - 1;
    }
    return best;
}

static bool add_idle_ends(const struct job_rank *rank, struct handoffs *out)
{
    for (int thread = 0; thread < (int)rank->threads.count; thread++) {
        int64_t idle_since = 0;
        for (int i = rank->first_call[thread]; i < rank->first_call[thread + 1]; i++) {
            const struct job_call *call = &rank->calls[i];
            if (call->start_ns - idle_since > HANDOFF_NS &&
                !add_handoff(rank, out, i, handed_over(rank, thread, idle_since, call->start_ns),
                             true))
                return false;
            idle_since = call->end_ns > idle_since ? call->end_ns : idle_since;
        }
    }
    return true;
}

/* By call; then the latest ends and pushes first, which imply the others. */
static int host_calls_compare(const void *left, const void *right)
{
    const struct handoff *a = left, *b = right;
    return compare_then(
        compare_int(a->call, b->call),
        compare_then(compare_int(b->other, a->other), compare_int(b->at_end, a->at_end)));
}

/* How far each thread has seen each other one: twice the number of the call, and one more at its end. */
static bool leave_out_implied(const struct job_rank *rank, struct handoffs *out)
{
    const size_t threads = rank->threads.count;
    int64_t *seen = malloc((threads * threads + 1) * sizeof *seen);
    if (!seen)
        return false;
    for (size_t i = 0; i < threads * threads; i++)
        seen[i] = -1;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const struct handoff *item = &out->items[i];
        const size_t row = (size_t)rank->calls[item->call].thread;
        int64_t *place = &seen[row * threads + (size_t)rank->calls[item->other].thread];
        const int64_t shows = 2 * (int64_t)item->other + item->at_end;
        if (shows <= *place)
            continue;
        *place = shows;
        out->items[kept++] = *item;
    }
    out->count = kept;
    free(seen);
    return true;
}

/* Those that do not follow from earlier ones of the same two threads. Ended by handoffs_fini, also after a failure;
   false without memory. */
static bool handoffs_find(const struct job_rank *rank, const struct evidence *evidence,
                          struct handoffs *out)
{
    *out = (struct handoffs){0};
    if (rank->threads.count < 2)
        return true;
    /* Threads of a job on CPUs work between their calls. */
    if (!add_stream_orders(rank, out) || !add_records(rank, evidence, out) ||
        (!rank->is_host && !add_idle_ends(rank, out)))
        return false;
    SORT(out->items, out->count, host_calls_compare);
    return leave_out_implied(rank, out);
}

static void handoffs_fini(struct handoffs *handoffs)
{
    free(handoffs->items);
    *handoffs = (struct handoffs){0};
}

/* The program of a rank under way. */
struct calls_writer {
    struct job *job;
    const struct job_rank *rank;
    const struct evidence *evidence;
    const struct host_calls_options *options;
    const struct meetings *meetings;
    int number;                /* of the rank in the plan */
    struct job_thread *thread; /* under way */
    int64_t end_ns;            /* of the thread */
    int *event;                /* per work: plan->events of the record behind it, or -1 */
    int *push_flag,
        *end_flag; /* per call: plan->flags that it sets behind its push, at its end; -1 */
    struct handoffs handoffs;
    size_t next_handoff;
    int *first_edge; /* per work, and one more: its edges */
    int *follower;   /* per work: the one without a launch behind it on its stream, or -1 */
    struct innermost
        innermost;    /* of a job on CPUs, or of one without some of its time; else empty */
    int trace_thread; /* rank->threads; -1: none */
    int stretch, last_stretch;     /* of the thread: the next one, and the end */
    size_t next_touch, last_touch; /* of the thread: rank->touches */
    struct step_search steps;
    struct fold_thread *folds; /* the threads so far */
    size_t fold_count;
    bool failed; /* no memory */
};

/* ---- operations ------------------------------------------------------------------------------ */

static struct host_op *host_calls_add_op(struct calls_writer *writer, enum op_kind kind)
{
    struct host_op *op = job_add_op(writer->job, writer->thread, kind);
    writer->failed |= !op;
    return op;
}

static int host_calls_named(struct calls_writer *writer, struct names *names, const char *word,
                            int number)
{
    char text[64];
    snprintf(text, sizeof text, "%s%d", word, number);
    const int index = names_intern(names, &writer->job->plan.arena, text);
    writer->failed |= index < 0;
    return index;
}

static int host_calls_plan_stream(struct calls_writer *writer, int stream)
{
    char text[STREAM_TEXT];
    ASSERT_INDEX(stream, writer->rank->stream_count);
    const int index = names_intern(&writer->job->plan.streams, &writer->job->plan.arena,
                                   job_stream_name(&writer->rank->streams[stream], text));
    writer->failed |= index < 0;
    return index;
}

static int64_t host_calls_pass(struct calls_writer *writer, int64_t until_ns);

static void add_time(struct calls_writer *writer, int64_t until_ns, const char *name)
{
    const int64_t passes = host_calls_pass(writer, until_ns);
    struct host_op *op = passes > 0 ? host_calls_add_op(writer, OP_HOST) : NULL;
    if (!op)
        return;
    op->time_ns = passes;
    op->name = name;
}

static bool is_named(const struct calls_writer *writer, int name)
{
    return name >= 0 && strcmp(writer->job->names.items[name], writer->options->without) == 0;
}

/* The part of a thread's time that `without` leaves out. */
static int64_t time_left_out(const struct calls_writer *writer, int64_t from_ns, int64_t to_ns)
{
    const struct innermost *innermost = &writer->innermost;
    int64_t sum_ns = 0;
    if (!writer->options->without || writer->rank->is_host || writer->trace_thread < 0)
        return 0;
    for (int i = innermost_after(innermost, writer->trace_thread, from_ns);
         i < innermost->first[writer->trace_thread + 1] && innermost->stretches[i].start_ns < to_ns;
         i++) {
        const struct innermost_stretch *stretch = &innermost->stretches[i];
        if (is_named(writer, stretch->name) || is_named(writer, stretch->within) ||
            is_named(writer, stretch->line) || is_named(writer, stretch->annotation))
            sum_ns += min_i64(stretch->end_ns, to_ns) - max_i64(stretch->start_ns, from_ns);
    }
    return sum_ns;
}

/* The thread's clock goes on; returns the CPU time that passes. */
static int64_t host_calls_pass(struct calls_writer *writer, int64_t until_ns)
{
    const int64_t from_ns = writer->thread->clock_ns;
    const int64_t passes = job_pass_time(writer->thread, until_ns);
    return passes > 0 ? passes - time_left_out(writer, from_ns, until_ns) : 0;
}

/* CPU time; of a job on CPUs by its annotations. */
static void add_host(struct calls_writer *writer, int64_t until_ns)
{
    const struct innermost *innermost = &writer->innermost;
    for (; writer->stretch < writer->last_stretch; writer->stretch++) {
        const struct innermost_stretch *stretch = &innermost->stretches[writer->stretch];
        if (stretch->start_ns >= until_ns)
            break;
        add_time(writer, stretch->start_ns, NULL);
        add_time(writer, stretch->end_ns < until_ns ? stretch->end_ns : until_ns,
                 writer->job->names.items[stretch->name]);
        if (stretch->end_ns > until_ns)
            break;
    }
    add_time(writer, until_ns, NULL);
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* plan->buffers of a memory; those of one name on several ranks are one entry. -1 without memory. */
static int host_calls_buffer(struct calls_writer *writer, int memory)
{
    ASSERT_INDEX(memory, writer->rank->memory_count);
    const struct job_memory *of = &writer->rank->memories[memory];
    const int buffer = job_buffer(writer->job, of->name);
    if (buffer >= 0)
        writer->job->plan.buffers[buffer].input |= of->from_outside;
    return buffer;
}

static void host_calls_list_all(struct calls_writer *writer, const struct job_accesses *accesses,
                                struct index_list *reads, struct index_list *writes)
{
    for (int i = 0; i < accesses->count && !writer->failed; i++) {
        const struct job_access *access = &writer->rank->accesses[accesses->first + i];
        const int buffer = host_calls_buffer(writer, access->memory);
        writer->failed |= buffer < 0 || !job_list_index(&writer->job->plan.arena,
                                                        access->write ? writes : reads, buffer);
    }
}

static void host_calls_accesses(struct calls_writer *writer, const struct job_accesses *accesses,
                                struct host_op *op)
{
    if (accesses->count == 0)
        return;
    if (op->kind == OP_GROUP) {
        if (op->part_count > 0)
            host_calls_list_all(writer, accesses, &op->parts[0].reads, &op->parts[0].writes);
        return;
    }
    if (host_op_make_accesses(op, &writer->job->plan.arena))
        host_calls_list_all(writer, accesses, &op->accesses->reads, &op->accesses->writes);
    else
        writer->failed = true;
}

/* CPU work up to this time that accesses what others use. */
static void host_calls_touches(struct calls_writer *writer, int64_t until_ns)
{
    for (; writer->next_touch < writer->last_touch; writer->next_touch++) {
        const struct job_touch *touch = &writer->rank->touches[writer->next_touch];
        if (touch->time_ns > until_ns)
            return;
        add_host(writer, touch->time_ns);
        struct host_op *op = host_calls_add_op(writer, OP_HOST);
        if (!op)
            return;
        op->name = writer->job->names.items[touch->name];
        host_calls_accesses(writer, &touch->accesses, op);
    }
}

/* ---- pushes ---------------------------------------------------------------------------------- */

static void host_calls_add_waits(struct calls_writer *writer, int work, int stream)
{
    const struct evidence *evidence = writer->evidence;
    for (int i = writer->first_edge[work]; i < writer->first_edge[work + 1]; i++) {
        const int event = writer->event[evidence->edges[i].source];
        struct host_op *op = event >= 0 ? host_calls_add_op(writer, OP_WAIT) : NULL;
        if (!op)
            continue;
        op->object = event;
        op->stream = stream;
    }
}

/* When the push of a work takes effect; of one without a launch at once. */
static int64_t push_time(const struct calls_writer *writer, int work)
{
    ASSERT_INDEX(work, writer->rank->work_count);
    const struct job_work *w = &writer->rank->works[work];
    const struct reason *reason = &writer->evidence->reasons[work];
    if (w->call < 0)
        return 0;
    if (reason->cause == IDLE_LAUNCH)
        return w->start_ns;
    const int64_t usual = writer->rank->calls[w->call].start_ns + writer->evidence->latency_ns;
    return usual < w->start_ns ? usual : w->start_ns;
}

/* The device's own gap in front of a work that has a cause. */
static int64_t own_gap(const struct calls_writer *writer, int work, int64_t pushed_ns)
{
    const struct reason *reason = &writer->evidence->reasons[work];
    const int64_t start = writer->rank->works[work].start_ns;
    const int64_t ready = reason->other_ready_ns > pushed_ns ? reason->other_ready_ns : pushed_ns;
    return evidence_is_unknown(reason->cause) || start <= ready ? 0 : start - ready;
}

/* Work of no known cause in front of a work that began late, or work from before the trace. */
static void add_opaque(struct calls_writer *writer, int work, int64_t pushed_ns, int stream)
{
    const struct reason *reason = &writer->evidence->reasons[work];
    const int64_t ready = reason->ready_ns > pushed_ns ? reason->ready_ns : pushed_ns;
    const int64_t late = writer->rank->works[work].start_ns - ready;
    const bool wanted =
        reason->cause == IDLE_BEFORE || (writer->options->opaque && reason->cause == IDLE_NOTHING);
    if (!wanted || late <= 0)
        return;
    struct host_op *op = host_calls_add_op(writer, OP_LAUNCH);
    if (!op)
        return;
    op->name = reason->cause == IDLE_BEFORE ? "before the trace" : "opaque";
    op->stream = stream;
    op->time_ns = late;
}

static enum op_kind host_calls_push_kind(const struct job_work *work, bool meets)
{
    if (work->is_message && meets)
        return OP_GROUP;
    if (work->class == CLASS_COPY)
        return OP_COPY;
    return meets ? OP_COLLECTIVE : OP_LAUNCH;
}

/* One message, whose communicator has two members. */
static void set_message(struct calls_writer *writer, struct host_op *op,
                        const struct job_work *work, int comm)
{
    ASSERT_INDEX(comm, writer->job->plan.comm_count);
    const struct comm *channel = &writer->job->plan.comms[comm];
    op->parts = ARENA_ARRAY(&writer->job->plan.arena, 1, struct p2p_part);
    writer->failed |= !op->parts;
    if (!op->parts)
        return;
    op->part_count = 1;
    op->parts[0] =
        (struct p2p_part){.tag = "message",
                          .send = work->send,
                          .peer = channel->members[channel->members[0] == writer->number],
                          .root = -1,
                          .comm = -1,
                          .stream = -1};
    op->name = NULL;
}

static void host_calls_add_push(struct calls_writer *writer, int work)
{
    const struct job_work *w = &writer->rank->works[work];
    const struct meetings_meeting *meeting = meetings_of(writer->meetings, writer->number, work);
    assert(w->stream >= 0 && (size_t)w->stream < writer->rank->stream_count);
    const int stream = host_calls_plan_stream(writer, w->stream);
    const int64_t until = push_time(writer, work);
    if (writer->rank->is_host)
        add_host(writer, until);
    const int64_t passes = host_calls_pass(writer, until);
    host_calls_add_waits(writer, work, stream);
    add_opaque(writer, work, writer->thread->clock_ns, stream);
    struct host_op *op = host_calls_add_op(writer, host_calls_push_kind(w, meeting != NULL));
    if (!op)
        return;
    op->name = writer->job->names.items[w->name];
    op->stream = stream;
    if (op->kind == OP_COPY) {
        op->bytes = w->class == CLASS_COPY ? w->bytes : 0;
        op->direction = w->direction;
    }
    op->host_time_ns = passes;
    op->time_ns = w->end_ns - w->start_ns + own_gap(writer, work, writer->thread->clock_ns);
    if (meeting) {
        op->comm = meeting->comm;
        if (w->is_message)
            set_message(writer, op, w, meeting->comm);
        if (op->kind == OP_COLLECTIVE)
            op->collective = w->collective;
        op->time_ns = meeting->time_ns;
    }
    host_calls_accesses(writer, &w->accesses, op);
    if (writer->event[work] < 0)
        return;
    struct host_op *record = host_calls_add_op(writer, OP_RECORD);
    if (record) {
        record->object = writer->event[work];
        record->stream = stream;
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void host_calls_add_sync(struct calls_writer *writer, const struct job_call *call,
                                const struct host_wait *wait)
{
    const struct job_work *works = writer->rank->works;
    if (call->kind == CALL_SYNC_EVENT && (wait->work < 0 || writer->event[wait->work] < 0))
        return;
    if (call->kind != CALL_SYNC_DEVICE && call->kind != CALL_SYNC_EVENT && wait->stream < 0)
        return;
    struct host_op *op = host_calls_add_op(writer, OP_SYNC);
    if (!op)
        return;
    op->sync = SYNC_STREAM;
    if (call->kind == CALL_SYNC_DEVICE) {
        op->sync = SYNC_DEVICE;
    } else if (call->kind == CALL_SYNC_EVENT) {
        op->sync = SYNC_EVENT;
        op->object = writer->event[wait->work];
    } else {
        op->stream = host_calls_plan_stream(writer, wait->stream);
    }
    /* The thread goes on when the work has ended, by the trace no later than the call. */
    const int64_t end = wait->work >= 0 ? works[wait->work].end_ns : 0;
    if (end > writer->thread->clock_ns)
        writer->thread->clock_ns = end < call->end_ns ? end : call->end_ns;
}

static void add_flag(struct calls_writer *writer, enum op_kind kind, int flag)
{
    struct host_op *op = flag >= 0 ? host_calls_add_op(writer, kind) : NULL;
    if (op)
        op->object = flag;
}

/* When a call is over, and its pushes have taken effect. */
static int64_t settled_time(const struct calls_writer *writer, int call)
{
    ASSERT_INDEX(call, writer->rank->call_count);
    const struct job_call *c = &writer->rank->calls[call];
    int64_t settled = c->end_ns;
    for (int i = 0; i < c->work_count; i++) {
        const int64_t pushed = push_time(writer, writer->rank->pushed[c->first_work + i]);
        settled = pushed > settled ? pushed : settled;
    }
    return settled;
}

/* The work of other threads that this call waits for. The list is sorted by call, as a thread's calls are. */
static void add_awaits(struct calls_writer *writer, int call)
{
    const struct handoffs *handoffs = &writer->handoffs;
    while (writer->next_handoff < handoffs->count &&
           handoffs->items[writer->next_handoff].call < call)
        writer->next_handoff++;
    for (; writer->next_handoff < handoffs->count; writer->next_handoff++) {
        const struct handoff *item = &handoffs->items[writer->next_handoff];
        if (item->call != call)
            return;
        add_flag(writer, OP_AWAIT,
                 item->at_end ? writer->end_flag[item->other] : writer->push_flag[item->other]);
        if (item->at_end)
            job_pass_time(writer->thread, settled_time(writer, item->other));
    }
}

/* Work without a launch follows the one before it on its stream. */
static void add_followers(struct calls_writer *writer, int work)
{
    for (work = writer->follower[work]; work >= 0; work = writer->follower[work])
        host_calls_add_push(writer, work);
}

/* True if a call neither pushes nor only waits, and takes so long that it is CPU time of its own name: cudaFree, cudaMalloc. */
static bool has_own_time(const struct calls_writer *writer, const struct job_call *call)
{
    enum { LEAST_NS = 100 * 1000 };
    return !writer->rank->is_host && call->work_count == 0 &&
           call->end_ns - call->start_ns >= LEAST_NS &&
           (call->kind == CALL_OTHER || call_waits_and_works(writer->job->names.items[call->name]));
}

static void host_calls_add_call(struct calls_writer *writer, int at)
{
    const struct job_call *call = &writer->rank->calls[at];
    assert(at >= 0 && (size_t)at < writer->rank->call_count);
    const struct host_wait *wait = &writer->evidence->waits[at];
    host_calls_touches(writer, call->start_ns);
    add_awaits(writer, at);
    for (int i = 0; i < call->work_count; i++) {
        const int work = writer->rank->pushed[call->first_work + i];
        host_calls_add_push(writer, work);
        add_followers(writer, work);
    }
    add_flag(writer, OP_SIGNAL, writer->push_flag[at]);
    if (wait->stream >= 0 || wait->work >= 0) {
        add_host(writer, call->start_ns);
        host_calls_add_sync(writer, call, wait);
    }
    if (has_own_time(writer, call)) {
        add_host(writer, call->start_ns);
        add_time(writer, call->end_ns, writer->job->names.items[call->name]);
    }
    if (writer->end_flag[at] >= 0)
        add_host(writer, call->end_ns);
    add_flag(writer, OP_SIGNAL, writer->end_flag[at]);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The name is made in the plan's arena. */
static bool host_calls_begin_thread(struct calls_writer *writer, const char *name)
{
    writer->thread = name ? job_add_thread(writer->job, writer->number, name) : NULL;
    writer->stretch = writer->last_stretch = 0;
    writer->trace_thread = -1;
    writer->next_touch = writer->last_touch = 0;
    return writer->thread != NULL;
}

/* The step begins, or the last one ends, at the thread's next operation. Layers that are CPU time end there. */
static void mark_step(struct calls_writer *writer, size_t step, int64_t time_ns)
{
    host_calls_touches(writer, time_ns - 1);
    if (writer->rank->is_host && time_ns <= writer->end_ns)
        add_host(writer, time_ns);
    writer->folds[writer->fold_count].marks[step] = writer->thread->host.op_count;
}

/* The steps begin where the thread's first call in them does; returns the one that begins behind `time_ns`. */
static size_t mark_steps(struct calls_writer *writer, size_t step, int64_t time_ns)
{
    const struct step_search *search = &writer->steps;
    for (; step < search->step_count && search->steps[step].begin_ns <= time_ns; step++)
        mark_step(writer, step, search->steps[step].begin_ns);
    if (step == 0 || step != search->step_count || search->steps[step - 1].end_ns > time_ns)
        return step;
    mark_step(writer, step, search->steps[step - 1].end_ns);
    return step + 1;
}

static bool begin_marks(struct calls_writer *writer)
{
    struct fold_thread *fold = &writer->folds[writer->fold_count];
    *fold = (struct fold_thread){
        &writer->thread->host,
        ARENA_ARRAY(writer->steps.arena, writer->steps.step_count + 1, size_t)};
    return fold->marks != NULL;
}

/* The thread of the first work of a stream that has a launch; -1: none has. */
static int first_launcher(const struct job_rank *rank, int stream)
{
    ASSERT_INDEX(stream, rank->stream_count);
    const struct job_stream *s = &rank->streams[stream];
    for (int i = 0; i < s->count; i++) {
        const int call = rank->works[rank->by_stream[s->first + i]].call;
        if (call >= 0)
            return rank->calls[call].thread;
    }
    return -1;
}

/* Work of a stream ahead of its first recorded launch: pushed before the trace begins. */
static void add_leftovers(struct calls_writer *writer, int stream)
{
    const struct job_rank *rank = writer->rank;
    ASSERT_INDEX(stream, rank->stream_count);
    const struct job_stream *s = &rank->streams[stream];
    if (s->count == 0 || rank->works[rank->by_stream[s->first]].call >= 0)
        return;
    host_calls_add_push(writer, rank->by_stream[s->first]);
    add_followers(writer, rank->by_stream[s->first]);
}

/* Its last call has ended, and so have the steps of the thread that has them. */
static int64_t thread_end(const struct job_rank *rank, int thread)
{
    int64_t last_ns = rank->stepped && rank->stepper == thread ? rank->steps_end_ns : 0;
    for (int i = rank->first_call[thread]; i < rank->first_call[thread + 1]; i++)
        last_ns = rank->calls[i].end_ns > last_ns ? rank->calls[i].end_ns : last_ns;
    return last_ns;
}

static bool host_calls_write_thread(struct calls_writer *writer, int thread)
{
    const struct job_rank *rank = writer->rank;
    if (!host_calls_begin_thread(writer, arena_printf(&writer->job->plan.arena, "t%d", thread)))
        return false;
    writer->trace_thread = thread;
    for (int stream = 0; stream < (int)rank->stream_count; stream++)
        if (first_launcher(rank, stream) == thread)
            add_leftovers(writer, stream);
    if (rank->is_host) {
        writer->stretch = writer->innermost.first[thread];
        writer->last_stretch = writer->innermost.first[thread + 1];
    }
    writer->next_touch = SORT_FIRST(i, 0, rank->touch_count, rank->touches[i].thread >= thread);
    writer->last_touch =
        SORT_FIRST(i, writer->next_touch, rank->touch_count, rank->touches[i].thread > thread);
    writer->end_ns = thread_end(rank, thread);
    if (!begin_marks(writer))
        return false;
    /* The time up to the first step is none of it, so that a step that is repeated does not have it again. */
    const int first = rank->first_call[thread];
    if (rank->stepped && rank->stepper == thread &&
        (first == rank->first_call[thread + 1] ||
         rank->calls[first].start_ns >= rank->steps_begin_ns))
        add_host(writer, rank->steps_begin_ns);
    size_t step = 0;
    for (int i = rank->first_call[thread]; i < rank->first_call[thread + 1]; i++) {
        step = mark_steps(writer, step, rank->calls[i].start_ns);
        host_calls_add_call(writer, i);
    }
    mark_steps(writer, step, INT64_MAX);
    host_calls_touches(writer, INT64_MAX);
    add_host(writer, writer->end_ns);
    writer->fold_count += writer->thread->host.op_count > 0;
    return !writer->failed;
}

/* A stream without any launch has a thread of its own. */
static bool write_unlaunched(struct calls_writer *writer, int stream)
{
    if (first_launcher(writer->rank, stream) >= 0)
        return true;
    if (!host_calls_begin_thread(writer,
                                 arena_printf(&writer->job->plan.arena, "unlaunched%d", stream)))
        return false;
    add_leftovers(writer, stream);
    return !writer->failed;
}

/* ---- what is needed where -------------------------------------------------------------------- */

/* Edges of a work, and events for their sources and for what threads wait for. */
static void prepare_events(struct calls_writer *writer)
{
    const struct evidence *evidence = writer->evidence;
    const struct job_rank *rank = writer->rank;
    size_t edge = 0;
    for (size_t i = 0; i <= rank->work_count; i++) {
        writer->first_edge[i] = (int)edge;
        while (edge < evidence->edge_count && evidence->edges[edge].work == (int)i)
            writer->event[evidence->edges[edge++].source] = 0;
    }
    for (size_t i = 0; i < rank->call_count; i++)
        if (rank->calls[i].kind == CALL_SYNC_EVENT && evidence->waits[i].work >= 0)
            writer->event[evidence->waits[i].work] = 0;
    int next = 0;
    for (size_t i = 0; i < rank->work_count; i++)
        if (writer->event[i] >= 0)
            writer->event[i] = host_calls_named(writer, &writer->job->plan.events, "e", next++);
}

static int *filled(size_t count, int value)
{
    int *items = malloc((count + 1) * sizeof *items);
    for (size_t i = 0; items && i <= count; i++)
        items[i] = value;
    return items;
}

static bool prepare_steps(struct calls_writer *writer, struct arena *arena)
{
    writer->steps = (struct step_search){.job = writer->job, .rank = writer->rank, .arena = arena};
    writer->folds = ARENA_ARRAY(arena, writer->rank->threads.count + 1, struct fold_thread);
    return writer->folds && (writer->options->repeat == REPEAT_NEVER || steps_find(&writer->steps));
}

static bool host_calls_write_rank(struct calls_writer *writer)
{
    const struct job_rank *rank = writer->rank;
    struct arena arena;
    arena_init(&arena, 0);
    writer->event = filled(rank->work_count, -1);
    writer->first_edge = filled(rank->work_count, 0);
    writer->push_flag = filled(rank->call_count, -1);
    writer->end_flag = filled(rank->call_count, -1);
    writer->follower = filled(rank->work_count, -1);
    bool ok = writer->event && writer->first_edge && writer->push_flag && writer->end_flag &&
              writer->follower && prepare_steps(writer, &arena) &&
              handoffs_find(rank, writer->evidence, &writer->handoffs) &&
              ((!rank->is_host && !writer->options->without) ||
               innermost_find(writer->job, rank, &writer->innermost));
    if (ok) {
        for (size_t s = 0; s < rank->stream_count; s++)
            for (int i = 1; i < rank->streams[s].count; i++) {
                const int *work = &rank->by_stream[rank->streams[s].first + i];
                if (rank->works[work[0]].call < 0)
                    writer->follower[work[-1]] = work[0];
            }
        prepare_events(writer);
        /* Flags for the calls that others wait for. */
        int next = (int)writer->job->plan.flags.count;
        for (size_t i = 0; i < writer->handoffs.count; i++) {
            const struct handoff *item = &writer->handoffs.items[i];
            int *flag =
                item->at_end ? &writer->end_flag[item->other] : &writer->push_flag[item->other];
            if (*flag < 0)
                *flag = host_calls_named(writer, &writer->job->plan.flags, "handoff", next++);
        }
    }
    for (int thread = 0; ok && thread < (int)rank->threads.count; thread++)
        ok = host_calls_write_thread(writer, thread);
    for (int stream = 0; ok && stream < (int)rank->stream_count; stream++)
        ok = write_unlaunched(writer, stream);
    ok = ok && fold_steps(writer->job, writer->folds, writer->fold_count, writer->steps.step_count,
                          writer->options->repeat == REPEAT_LIKE);
    arena_fini(&arena);
    free(writer->follower);
    free(writer->event);
    free(writer->first_edge);
    free(writer->push_flag);
    free(writer->end_flag);
    handoffs_fini(&writer->handoffs);
    innermost_fini(&writer->innermost);
    return ok;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* True if the work of this place on its stream is the first of a launch. */
static bool begins_launch(const struct job_rank *rank, const int *works, int at)
{
    const int call = rank->works[works[at]].call;
    return at == 0 || (call >= 0 && call != rank->works[works[at - 1]].call);
}

/* The most operations that so many launches in a row push to the stream: that of a graph pushes many. */
static int held_by_launches(const struct job_rank *rank, const struct job_stream *stream,
                            int64_t launches)
{
    const int *works = &rank->by_stream[stream->first];
    int64_t held = 0;
    int first = 0, most = 0;
    for (int i = 0; i < stream->count; i++) {
        held += begins_launch(rank, works, i);
        for (; held > launches; first++)
            held -= begins_launch(rank, works, first + 1);
        most = i + 1 - first > most ? i + 1 - first : most;
    }
    return most;
}

/* The plan's queue counts operations, that of a device launches. 0: it holds any number. */
static int queue_length(const struct job *job, int64_t launches)
{
    int64_t most = launches;
    for (size_t r = 0; launches > 0 && r < job->rank_count; r++)
        for (size_t s = 0; s < job->ranks[r].stream_count; s++) {
            const int held = held_by_launches(&job->ranks[r], &job->ranks[r].streams[s], launches);
            most = held > most ? held : most;
        }
    return most <= PLAN_MAX_IN_FLIGHT ? (int)most : 0;
}

static bool host_calls_write_ranks(struct job *job, const struct evidence *evidence,
                                   const struct host_calls_options *options,
                                   const struct meetings *meetings)
{
    struct plan *plan = &job->plan;
    plan->ranks = (int)job->rank_count;
    plan->name = arena_strdup(&plan->arena, options->name);
    plan->machine.launch_queue = queue_length(job, options->launch_queue);
    bool ok = plan->name != NULL;
    for (size_t r = 0; ok && r < job->rank_count; r++) {
        struct calls_writer writer = {.job = job,
                                      .rank = &job->ranks[r],
                                      .evidence = &evidence[r],
                                      .options = options,
                                      .meetings = meetings,
                                      .number = (int)r};
        ok = host_calls_write_rank(&writer);
    }
    plan->inputs_given = plan->buffer_count > 0;
    return ok;
}

enum status host_calls(struct job *job, const struct evidence *evidence,
                       const struct host_calls_options *options, struct diag *diag)
{
    struct meetings meetings;
    enum status status = meetings_find(job, &job->plan, &meetings, diag);
    if (status == STATUS_OK && !host_calls_write_ranks(job, evidence, options, &meetings))
        status = diag_no_memory(diag);
    meetings_fini(&meetings);
    return status;
}
