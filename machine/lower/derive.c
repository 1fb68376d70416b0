/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derive.c - the tables that follow from what a plan's form was lowered to: agents, faults, devices, processes, the
 * streams of a rank, the waiters of an event.
 */
#include <stdlib.h>
#include <string.h>

#include "base/large_pages.h"
#include "base/sort.h"
#include "machine/snapshot.h"
#include "plan/coverage.h"

#include "lower.h"

/* ---- accesses -------------------------------------------------------------------------------- */

/*
 * Which agents read, write and allocate which buffers.
 *
 * Every (buffer, agent, read, write or allocation) that the program can do gets one cell of a state. Shared buffers come
 * first, then those of one iteration, which are repeated for each iteration of the window.
 */

/* Which agent performs an operation's accesses: the stream it runs on, else the thread. */
static int access_agent(const struct program *program, const struct op *op, int thread)
{
    return op->stream >= 0 ? program_stream_agent(program, op->stream)
                           : program_thread_agent(program, thread);
}

/* Records by buffer: counted first, and then put where those of their buffer go. */
struct derive_listing {
    int *first; /* per buffer, then the end; two behind while counting, one while putting */
    struct record *records; /* NULL: they are counted */
    size_t count;
    bool *
        is_shared; /* per buffer: a thread that has not allocated it frees it or marks it as used */
    bool any_shared;
};

static void note_record(struct derive_listing *listing, struct record record)
{
    if (listing->records)
        listing->records[listing->first[record.buffer + 1]++] = record;
    else
        listing->first[record.buffer + 2]++;
    listing->count++;
}

static void derive_note_op(const struct program *program, struct derive_listing *listing,
                           const struct op *op, int thread)
{
    for (int k = 0; k < op->access_count; k++) {
        const struct access *access = &program->accesses[op->access_first + k];
        note_record(listing, (struct record){.buffer = access->buffer,
                                             .agent = access_agent(program, op, thread),
                                             .write = access->write});
    }
    if (!op_allocates(op->kind))
        return;
    note_record(listing, (struct record){.buffer = op->object,
                                         .agent = access_agent(program, op, thread),
                                         .kind = RECORD_ALLOCATED});
    if (listing->is_shared[op->object])
        note_record(listing, (struct record){.buffer = op->object,
                                             .agent = program_thread_agent(program, thread),
                                             .kind = RECORD_CALLED});
}

static void derive_note_all(const struct program *program, struct derive_listing *listing)
{
    listing->count = 0;
    for (size_t b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].count; i++)
            derive_note_op(program, listing, &program->ops[program->bodies[b].first + i],
                           program->bodies[b].thread);
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return compare_then(compare_int(x->buffer, y->buffer),
                        compare_then(compare_int(x->agent, y->agent),
                                     compare_then(compare_int((int)x->kind, (int)y->kind),
                                                  compare_int(x->write, y->write))));
}

/* Few are in order after fewer comparisons than the library makes. */
static void sort_records(struct record *records, size_t count)
{
    enum { FEW = 16 };
    if (count > FEW) {
        SORT(records, count, compare_records);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const struct record moved = records[i];
        size_t at = i;
        for (; at > 0 && compare_records(&records[at - 1], &moved) > 0; at--)
            records[at] = records[at - 1];
        records[at] = moved;
    }
}

/* Those of a buffer in order, each once; a buffer has few. Returns how many are left. */
static int sort_by_buffer(const struct program *program, struct derive_listing *listing)
{
    struct record *records = listing->records;
    int kept = 0;
    for (int b = 0; b < program->buffer_count; b++) {
        int from = listing->first[b], end = listing->first[b + 1];
        sort_records(records + from, (size_t)(end - from));
        for (int i = from; i < end; i++)
            if (i == from || compare_records(&records[kept - 1], &records[i]) != 0)
                records[kept++] = records[i];
    }
    return kept;
}

/* Shared buffers come first, then those of one iteration. */
static void place_records(struct program *program, const struct record *from)
{
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < program->record_count; i++) {
            struct buffer_desc *buffer = &program->buffers[from[i].buffer];
            if ((buffer->scope == SCOPE_ITERATION && program->tasks) != (pass == 1))
                continue;
            if (buffer->record_count++ == 0)
                buffer->record_first = count;
            program->records[count++] = from[i];
        }
        if (pass == 0)
            program->shared_records = count;
    }
    program->period_records = count - program->shared_records;
    for (int b = 0; b < program->buffer_count; b++) {
        struct buffer_desc *buffer = &program->buffers[b];
        buffer->ring_first = program->shared_records + program->ring_records;
        program->ring_records += buffer->period > 1 ? buffer->period * buffer->record_count : 0;
    }
}

static void find_allocated(struct program *program)
{
    for (size_t i = 0; i < program->op_count; i++)
        if (op_allocates(program->ops[i].kind)) {
            program->buffers[program->ops[i].object].allocated = true;
            program->buffers[program->ops[i].object].on_host =
                program->ops[i].kind == OP_HOST_ALLOC;
        }
}

/* Per buffer, one more than the thread that allocates it and whether another one frees it or marks it as used; false: memory
   is exhausted. */
static bool find_sharers(const struct program *program, struct derive_listing *listing)
{
    int *owner = calloc((size_t)program->buffer_count + 1, sizeof *owner);
    bool *shared = listing->is_shared =
        calloc((size_t)program->buffer_count + 1, sizeof *listing->is_shared);
    for (int pass = 0; owner && shared && pass < 2; pass++)
        for (size_t b = 0; b < program->body_count; b++)
            for (int i = 0; i < program->bodies[b].count; i++) {
                const struct op *op = &program->ops[program->bodies[b].first + i];
                if (op_operand(op->kind) != OPERAND_BUFFER)
                    continue;
                if (op_allocates(op->kind))
                    owner[op->object] = program->bodies[b].thread + 1;
                else if (pass == 1 && owner[op->object])
                    shared[op->object] |= owner[op->object] != program->bodies[b].thread + 1;
            }
    for (int b = 0; shared && b < program->buffer_count; b++)
        listing->any_shared |= shared[b];
    free(owner);
    return owner && shared;
}

/* All records of a program with accesses, sorted; false: memory is exhausted. */
static bool list_sorted(struct program *program, struct derive_listing *listing)
{
    derive_note_all(program, listing);
    for (int b = 0; b < program->buffer_count; b++)
        listing->first[b + 2] += listing->first[b + 1];
    listing->records = large_calloc(listing->count + 1, sizeof *listing->records);
    if (!listing->records)
        return false;
    derive_note_all(program, listing);
    program->record_count = sort_by_buffer(program, listing);
    program->records =
        ARENA_ARRAY(&program->arena, (size_t)program->record_count + 1, struct record);
    if (program->records)
        place_records(program, listing->records);
    return program->records != NULL;
}

/* program->records. */
static enum status access_records_list(struct lowering *lowering)
{
    struct program *program = lowering->program;
    find_allocated(program);
    struct derive_listing listing = {0};
    listing.first = calloc((size_t)program->buffer_count + 2, sizeof *listing.first);
    bool good = listing.first && find_sharers(program, &listing);
    if (good && (program->access_count > 0 || listing.any_shared))
        good = list_sorted(program, &listing);
    free(listing.first);
    free(listing.is_shared);
    free(listing.records);
    return good ? STATUS_OK : diag_no_memory(lowering->diag);
}

/* program->recorded: each stream that an operation names for a buffer, once. */
static enum status list_recorded_streams(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t count = 0;
    for (size_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == OP_RECORD_STREAM;
    program->recorded = ARENA_ARRAY(&program->arena, count + 1, struct marked_stream);
    program->recorded_of = ARENA_ARRAY(&program->arena, (size_t)program->buffer_count + 1, int);
    if (!program->recorded || !program->recorded_of)
        return diag_no_memory(lowering->diag);
    for (int b = 0; b < program->buffer_count; b++)
        program->recorded_of[b] = -1;
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind != OP_RECORD_STREAM)
            continue;
        int known = program->recorded_of[op->object];
        while (known >= 0 && program->recorded[known].stream != op->stream)
            known = program->recorded[known].next;
        if (known >= 0)
            continue;
        program->recorded[program->recorded_count] =
            (struct marked_stream){op->object, op->stream, program->recorded_of[op->object]};
        program->recorded_of[op->object] = program->recorded_count++;
    }
    return STATUS_OK;
}

static enum status name_locks(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t per_rank = lowering->plan->locks.count + 1, count = (size_t)program->ranks * per_rank;
    program->lock_count = (int)count;
    program->lock_names = ARENA_ARRAY(&program->arena, count, const char *);
    program->lock_rank = ARENA_ARRAY(&program->arena, count, int);
    if (!program->lock_names || !program->lock_rank)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < count; i++) {
        bool context = i % per_rank == per_rank - 1;
        program->lock_rank[i] = (int)(i / per_rank);
        program->lock_names[i] =
            context ? "the context lock" : lowering->plan->locks.items[i % per_rank];
    }
    return STATUS_OK;
}

/* In a host program each iteration of a repeat has an instance, so there is a ring of as many as a thread has iterations. */
static int count_instances(const struct plan *plan, const struct buffer *buffer)
{
    int most = 1;
    if (plan->form != FORM_THREADS || buffer->scope == SCOPE_SHARED)
        return buffer_period(buffer);
    for (size_t t = 0; t < plan->thread_count; t++) {
        int times = 0;
        for (size_t i = 0; i < plan->threads[t].repeat_count; i++)
            times += plan->threads[t].repeats[i].times;
        most = max_int(most, times);
    }
    return most;
}

static enum status list_buffers(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    bool owned = plan->buffer_count > 0 && plan->buffers[0].owner > 0;
    size_t count = (owned ? 1 : (size_t)program->ranks) * plan->buffer_count;
    program->buffer_count = (int)count;
    program->buffers = ARENA_ARRAY(&program->arena, count, struct buffer_desc);
    bool *outside = ARENA_ARRAY(&program->arena, plan->buffer_count + 1, bool);
    if (!program->buffers || !outside)
        return diag_no_memory(lowering->diag);
    coverage_inputs(plan, outside);
    for (size_t i = 0; i < count; i++) {
        const struct buffer *from = &plan->buffers[i % plan->buffer_count];
        int rank = owned ? from->owner - 1 : (int)(i / plan->buffer_count);
        program->buffers[i] = (struct buffer_desc){.rank = rank,
                                                   .plan_buffer = (int)(i % plan->buffer_count),
                                                   .name = from->name,
                                                   .scope = from->scope,
                                                   .period = count_instances(plan, from),
                                                   .bytes = from->bytes,
                                                   .initialised = outside[i % plan->buffer_count]};
        if (i < plan->buffer_count)
            *(from->scope == SCOPE_ITERATION ? &program->iteration_bytes
                                             : &program->shared_bytes) +=
                from->bytes * max_int(buffer_period(from), 1);
    }
    return STATUS_OK;
}

enum status lower_objects(struct lowering *lowering)
{
    enum status status = name_locks(lowering);
    return status == STATUS_OK ? list_buffers(lowering) : status;
}

/* The families of the plan's own events are equally many a rank, as are those of the legacy order. */
static enum status rank_events(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int all = program->event_families, own = lowering->in_order ? lowering->first_implicit : all;
    program->event_rank = ARENA_ARRAY(&program->arena, (size_t)all + 1, int);
    if (!program->event_rank)
        return diag_no_memory(lowering->diag);
    for (int family = 0; family < own; family++)
        program->event_rank[family] = family / (own / program->ranks);
    for (int family = own; family < all; family++)
        program->event_rank[family] = (family - own) / ((all - own) / program->ranks);
    return STATUS_OK;
}

static enum status name_flags(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int tasks = program->flag_families; /* pipeline form: these have their names already */
    const char **names = ARENA_ARRAY(&program->arena, lowering->flags.count, const char *);
    if (!names)
        return diag_no_memory(lowering->diag);
    for (int i = 0; i < (int)lowering->flags.count; i++)
        names[i] = i < tasks ? program->flag_names[i] : lowering->flags.items[i];
    program->flag_names = names;
    program->flag_families = (int)lowering->flags.count;
    program->kernel_count = (int)program->names.count;
    return STATUS_OK;
}

/* The value with which `flags:` says that the flag of the plan begins: by its own name, or by what stands before an iteration's
   number. */
static int derive_flag_begin(struct lowering *lowering, const char *name)
{
    const struct flag_spec *spec = plan_flag_spec(lowering->plan, name);
    if (spec && spec->scope != SCOPE_ITERATION)
        return spec->value;
    for (const char *end = strchr(name, '('); end; end = strchr(end + 1, '(')) {
        const char *family =
            arena_printf(&lowering->program->arena, "%.*s", (int)(end - name), name);
        spec = family ? plan_flag_spec(lowering->plan, family) : NULL;
        if (spec && spec->scope == SCOPE_ITERATION)
            return spec->value;
    }
    return 0;
}

/* True if the operation uses its flag as one that is set for good. A query does not: it looks before the flag is set,
   too. */
static bool is_plain_use(const struct op *op)
{
    return op->kind != OP_QUERY_FLAG && op->value == 1 &&
           (op->flag_rule == FLAG_SETS || op->flag_rule == FLAG_AT_LEAST);
}

/* Which flags count, with what they begin, and whether all values that they may have fit. */
static enum status derive_flag_values(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const size_t count = (size_t)program->flag_families;
    program->flag_counts = ARENA_ARRAY(&program->arena, count + 1, bool);
    program->flag_begins = ARENA_ARRAY(&program->arena, count + 1, int);
    int64_t *most = calloc(count + 1, sizeof *most);
    enum status status = program->flag_begins && most ? STATUS_OK : diag_no_memory(lowering->diag);
    for (size_t i = 0; status == STATUS_OK && i < count && i < lowering->plan->flags.count; i++) {
        program->flag_begins[i] = derive_flag_begin(lowering, program->flag_names[i]);
        program->flag_counts[i] = program->flag_begins[i] != 0;
        most[i] = program->flag_begins[i];
    }
    if (status == STATUS_OK && program->arena.failed)
        status = diag_no_memory(lowering->diag);
    for (size_t i = 0; status == STATUS_OK && i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op_operand(op->kind) != OPERAND_FLAG)
            continue;
        program->flag_counts[op->object] |= !is_plain_use(op);
        if (op_gives(op->kind) && !is_plain_use(op))
            most[op->object] += op->value < 0 ? -(int64_t)op->value : op->value;
        if (most[op->object] > INT32_MAX)
            status = plan_error_at(lowering->plan, lowering->diag, op->mark,
                                   "found values of flag %s whose sum is more than %d, expected "
                                   "smaller ones",
                                   program->flag_names[op->object], INT32_MAX);
    }
    free(most);
    return status;
}

/* Ranks of one device share its residency slots. */
static enum status find_devices(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    const int *shared = plan->machine.share_device;
    program->device = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    program->device_next = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->device || !program->device_next)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++) {
        program->device[rank] = shared && rank < plan->ranks ? shared[rank] : rank;
        program->device_next[rank] = -1;
    }
    for (int rank = 0; rank < program->ranks; rank++) {
        int last = program->device[rank];
        while (program->device_next[last] >= 0)
            last = program->device_next[last];
        if (last != rank)
            program->device_next[last] = rank;
    }
    return STATUS_OK;
}

/* `a`'s and `b`'s teams become one; false: they are. */
static bool join_teams(struct program *program, int a, int b)
{
    int *first = &program->team[a], *second = &program->team[b];
    bool joined = *first != *second;
    *first = *second = *first < *second ? *first : *second;
    return joined;
}

/* Without a communicator between them a rank could run ahead of another on its device without end, and
   no search would come to its end. */
static enum status check_devices(const struct lowering *lowering)
{
    const struct program *program = lowering->program;
    for (int rank = 0; rank < program->ranks; rank++)
        if (program->fellows[rank] != program->fellows[program->device[rank]])
            return plan_error_at(
                lowering->plan, lowering->diag, lowering->plan->machine.share_device_mark,
                "found ranks %d and %d on one device, which no communicator connects, expected a "
                "collective or message that both take part in, directly or through others: else "
                "one "
                "runs ahead of the other without end",
                program->device[rank], rank);
    return STATUS_OK;
}

/* For `part`: ranks outside the component have no data. */
static void leave_out_others(struct program *program)
{
    int part = program->options.part - 1;
    for (int rank = 0; program->tasks && part >= 0 && rank < program->ranks; rank++)
        if (program->fellows[rank] != program->fellows[part])
            program->ends[rank] = 0;
}

/* Ranks connected by communicators; in host programs flags and queues may connect any two. Others share only the answer
   of the data loader. */
static enum status find_fellows(struct lowering *lowering)
{
    struct program *program = lowering->program;
    program->team = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    program->fellows = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->team || !program->fellows)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        program->team[rank] = rank;
    for (bool again = true; again;) {
        again = false;
        for (int c = 0; c < program->comm_count; c++)
            for (int m = 1; m < program->comms[c].count; m++)
                again |= join_teams(program, program->comms[c].members[m - 1],
                                    program->comms[c].members[m]);
    }
    for (int rank = 0; rank < program->ranks; rank++)
        program->fellows[rank] = program->tasks ? program->team[rank] : 0;
    leave_out_others(program);
    return check_devices(lowering);
}

static bool shares_comm(const struct program *program, int rank)
{
    for (int c = 0; c < program->comm_count; c++)
        for (int m = 0; program->comms[c].count > 1 && m < program->comms[c].count; m++)
            if (program->comms[c].members[m] == rank)
                return true;
    return false;
}

/* Any thread but a driver may fail. The data of a rank end early only if it has peers, and a rank
   dies, with those in its process, only if there are others. An operation takes too long where it may wait for peers. */
static enum status list_faults(struct lowering *lowering)
{
    struct program *program = lowering->program;
    if (!program->options.faults)
        return STATUS_OK;
    size_t most =
        (size_t)program->thread_count + 2 * (size_t)program->ranks + (size_t)program->member_count;
    program->faults = ARENA_ARRAY(&program->arena, most, struct fault);
    if (!program->faults)
        return diag_no_memory(lowering->diag);
    struct fault *next = program->faults;
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind != THREAD_DRIVER)
            *next++ = (struct fault){.kind = FAULT_TASK, .index = t};
    for (int rank = 0; program->tasks && rank < program->ranks; rank++)
        if (shares_comm(program, rank))
            *next++ = (struct fault){.kind = FAULT_DATA, .index = rank};
    bool others = false;
    for (int rank = 1; rank < program->ranks; rank++)
        others |= !program_same_process(program, 0, rank);
    for (int rank = 0; others && rank < program->ranks; rank++)
        if (!program->process || program->process[rank] == rank)
            *next++ = (struct fault){.kind = FAULT_RANK, .index = rank};
    for (int c = 0; c < program->comm_count; c++) {
        const struct comm_desc *comm = &program->comms[c];
        for (int m = 0; comm->time_limit_ns > 0 && comm->count > 1 && m < comm->count; m++)
            *next++ = (struct fault){FAULT_TIME, c, comm->members[m]};
    }
    program->fault_count = (int)(next - program->faults);
    return STATUS_OK;
}

/* No two streams of the rank share a queue, which then has no effect. */
static void own_hw_queues(struct program *program, int rank)
{
    for (int k = program->rank_first[rank]; k < program->rank_first[rank + 1]; k++) {
        struct stream_desc *stream = &program->streams[program->rank_streams[k]];
        stream->hw_queue = -1;
        program->hw_cap -= stream->cap;
    }
}

/* The hardware queue that the plan names for a stream, or -1. */
static int named_hw_queue(const struct plan *plan, int stream)
{
    const struct stream_spec *spec = plan_stream_spec(plan, stream);
    return spec ? spec->hw_queue : -1;
}

/* Streams whose queue the plan does not name are dealt out in turn, in the order of their first use. */
static void assign_hw_queues(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int queues = lowering->plan->machine.hw_queues;
    for (int rank = 0; queues && rank < program->ranks; rank++) {
        int first = program->rank_first[rank], streams = program->rank_first[rank + 1] - first;
        bool named = false;
        for (int k = 0, dealt = 0; k < streams; k++) {
            struct stream_desc *stream = &program->streams[program->rank_streams[first + k]];
            int queue = named_hw_queue(lowering->plan, stream->plan_stream);
            named |= queue >= 0;
            stream->hw_queue = rank * queues + (queue >= 0 ? queue : dealt++ % queues);
            program->hw_cap += stream->cap;
        }
        if (named || streams > queues)
            program->hw_queue_count = program->ranks * queues;
        else
            own_hw_queues(program, rank);
    }
}

/* Counting sort by rank. */
static enum status derive_list_streams(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t ranks = (size_t)program->ranks;
    program->rank_first = ARENA_ARRAY(&program->arena, ranks + 2, int);
    program->rank_streams = ARENA_ARRAY(&program->arena, (size_t)program->stream_count + 1, int);
    if (!program->rank_first || !program->rank_streams)
        return diag_no_memory(lowering->diag);
    int *next = program->rank_first + 1; /* [rank]: where its next stream goes; at last its end */
    for (int s = 0; s < program->stream_count; s++)
        next[program->streams[s].rank + 1]++;
    for (size_t rank = 0; rank < ranks; rank++)
        next[rank + 1] += next[rank];
    for (int s = 0; s < program->stream_count; s++)
        program->rank_streams[next[program->streams[s].rank]++] = s;
    assign_hw_queues(lowering);
    return STATUS_OK;
}

/* Each family's waiters lose their repetitions: a stream may have several waits for one event. */
static void unite_waiters(struct program *program, int *seen)
{
    int *first = program->waiter_first, kept = 0;
    for (int family = 0; family < program->event_families; family++) {
        int from = first[family];
        first[family] = kept;
        for (int i = from; i < first[family + 1]; i++) {
            int stream = program->waiters[i];
            if (seen[stream] != family + 1)
                program->waiters[kept++] = stream;
            seen[stream] = family + 1;
        }
    }
    first[program->event_families] = kept;
}

/* The streams that wait for each family of events: a counting sort. */
static enum status list_waiters(struct lowering *lowering)
{
    struct program *program = lowering->program;
    size_t families = (size_t)program->event_families, count = 0;
    for (size_t i = 0; i < program->op_count; i++)
        count += program->ops[i].kind == OP_WAIT;
    program->waiter_first = ARENA_ARRAY(&program->arena, families + 2, int);
    program->waiters = ARENA_ARRAY(&program->arena, count + 1, int);
    int *seen = ARENA_ARRAY(&program->arena, (size_t)program->stream_count + 1, int);
    if (!program->waiter_first || !program->waiters || !seen)
        return diag_no_memory(lowering->diag);
    int *next = program->waiter_first + 1;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_WAIT)
            next[program->ops[i].object + 1]++;
    for (size_t family = 0; family < families; family++)
        next[family + 1] += next[family];
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_WAIT)
            program->waiters[next[program->ops[i].object]++] = program->ops[i].stream;
    unite_waiters(program, seen);
    return STATUS_OK;
}

/* Find which communicators are in use, whether one is aborted, and whether a kernel is greedy. `taken`: zeros, for each
   rank. */
static void find_aborts(struct program *program, bool *taken)
{
    for (size_t i = 0; i < program->op_count; i++) {
        program->has_aborts |= program->ops[i].kind == OP_ABORT;
        program->has_greedy |= op_is_greedy(&program->ops[i]);
        if (program->ops[i].comm >= 0)
            program->comms[program->ops[i].comm].used = true;
    }
    program->can_abort = program->has_aborts || program->options.faults;
    program->abort_is_plain = true;
    for (int c = 0; c < program->comm_count; c++) {
        const struct comm_desc *comm = &program->comms[c];
        program->abort_is_plain &= comm->used || comm->count == 1;
        for (int m = 0; comm->count > 1 && m < comm->count; m++) {
            program->abort_is_plain &= !taken[comm->members[m]];
            taken[comm->members[m]] = true;
        }
    }
}

static struct agent *list_watchdogs(const struct program *program, struct agent *next)
{
    const enum on_failure rule = program->plan->on_failure;
    for (int c = 0; program->options.faults && c < program->comm_count; c++) {
        const struct comm_desc *comm = &program->comms[c];
        if (comm->count > 1 && rule == ON_FAILURE_GROUP_ABORT)
            *next++ = (struct agent){AGENT_WATCHDOG, c, -1};
        for (int m = 0; m < comm->count && rule == ON_FAILURE_ABORT; m++)
            if (comm->count > 1 && comm->used)
                *next++ = (struct agent){AGENT_WATCHDOG, c, comm->members[m]};
    }
    return next;
}

static enum status list_agents(struct lowering *lowering)
{
    struct program *program = lowering->program;
    bool *taken = ARENA_ARRAY(&program->arena, (size_t)program->ranks + 1, bool);
    if (!taken)
        return diag_no_memory(lowering->diag);
    find_aborts(program, taken);
    int most = 1 + program->thread_count + program->stream_count + program->comm_count +
               program->fault_count + max_int(program->comm_count, program->member_count);
    program->agents = ARENA_ARRAY(&program->arena, (size_t)most, struct agent);
    if (!program->agents)
        return diag_no_memory(lowering->diag);
    struct agent *next = program->agents;
    *next++ = (struct agent){AGENT_DATA, 0, -1};
    for (int t = 0; t < program->thread_count; t++)
        *next++ = (struct agent){AGENT_THREAD, t, program->threads[t].rank};
    for (int s = 0; s < program->stream_count; s++)
        *next++ = (struct agent){AGENT_STREAM, s, program->streams[s].rank};
    for (int c = 0; c < program->comm_count; c++)
        *next++ = (struct agent){AGENT_COMM, c, -1};
    for (int f = 0; f < program->fault_count; f++)
        *next++ = (struct agent){AGENT_FAULT, f, -1};
    next = list_watchdogs(program, next);
    program->agent_count = (int)(next - program->agents);
    return STATUS_OK;
}

/* Communicators are listed, and the operations, too. */
static enum status find_member_streams(struct lowering *lowering)
{
    enum { NONE_YET = -2 };
    struct program *program = lowering->program;
    size_t count = (size_t)program->member_count;
    int *streams = program->member_stream = ARENA_ARRAY(&program->arena, count + 1, int);
    if (!streams)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < count; i++)
        streams[i] = NONE_YET;
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->comm < 0)
            continue;
        int *stream = &streams[program->comms[op->comm].first_member + op->member];
        *stream = *stream == NONE_YET || *stream == op->stream ? op->stream : -1;
    }
    for (size_t i = 0; i < count; i++)
        streams[i] = streams[i] == NONE_YET ? -1 : streams[i];
    return STATUS_OK;
}

/* Of each rank the thread that pushes its work, at least at first. */
static enum status find_first_threads(struct lowering *lowering)
{
    struct program *program = lowering->program;
    program->first_thread = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->first_thread)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        program->first_thread[rank] = -1;
    for (int t = program->thread_count - 1; t >= 0; t--)
        if (program->threads[t].kind == THREAD_DRIVER || program->threads[t].kind == THREAD_HOST)
            program->first_thread[program->threads[t].rank] = t;
    return STATUS_OK;
}

/* Every body has one thread that executes it. */
static void assign_bodies(struct program *program)
{
    for (size_t b = 0; program->tasks && b < program->body_count; b++)
        program->bodies[b].thread = program->worker[b];
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind == THREAD_HOST)
            program->bodies[program->threads[t].body].thread = t;
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == OP_CALLBACK)
            program->bodies[program->ops[i].object].thread = program->ops[i].callback;
}

/* In a pipeline, and in what rank programs become, each rank has its own. */
static void find_crossings(struct program *program)
{
    bool asked = program->plan->form == FORM_THREADS && program->ranks > 1 && !program->owned_plan;
    for (size_t b = 0; asked && b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        int rank = program->threads[body->thread].rank;
        for (int i = 0; i < body->count && !program->is_crossed; i++)
            program->is_crossed = program_op_crosses(program, &program->ops[body->first + i], rank);
    }
}

static void join_process(struct program *program, int a, int b)
{
    int low = program->process[a], high = program->process[b];
    for (int rank = 0; low != high && rank < program->ranks; rank++)
        if (program->process[rank] == low || program->process[rank] == high)
            program->process[rank] = low < high ? low : high;
}

/* The ranks of whose devices, events and buffers it makes use. */
static void join_used(struct program *program, const struct op *op, int rank)
{
    if (op->stream >= 0)
        join_process(program, rank, program->streams[op->stream].rank);
    if (op_operand(op->kind) == OPERAND_EVENT && op->object >= 0 && op->sync != SYNC_LOAD)
        join_process(program, rank, program->event_rank[op->object]);
    if (op->device >= 0)
        join_process(program, rank, op->device);
    for (int k = 0; k < op->access_count; k++)
        join_process(program, rank,
                     program->buffers[program->accesses[op->access_first + k].buffer].rank);
}

static enum status find_processes(struct lowering *lowering)
{
    struct program *program = lowering->program;
    assign_bodies(program);
    find_crossings(program);
    if (!program->is_crossed)
        return STATUS_OK;
    program->process = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    if (!program->process)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++)
        program->process[rank] = rank;
    for (size_t b = 0; b < program->body_count; b++) {
        const struct body *body = &program->bodies[b];
        for (int i = 0; i < body->count; i++)
            join_used(program, &program->ops[body->first + i], program->threads[body->thread].rank);
    }
    return STATUS_OK;
}

static const char *with_rank(struct lowering *lowering, const char *before, int rank,
                             const char *name)
{
    const char *full =
        arena_printf(&lowering->program->arena, "%sr%d.%s", before, rank, name + strlen(before));
    lowering->failed |= !full;
    return full ? full : name;
}

/* An object of a rank is named with the rank where the thread is another rank's. */
static enum status name_crossed(struct lowering *lowering)
{
    struct program *program = lowering->program;
    static const char event[] = "event ";
    for (int s = 0; s < program->stream_count; s++) {
        struct stream_desc *stream = &program->streams[s];
        stream->full_name = program->is_crossed
                                ? with_rank(lowering, "", stream->rank, stream->name)
                                : stream->name;
    }
    for (int b = 0; program->is_crossed && b < program->buffer_count; b++)
        program->buffers[b].name =
            with_rank(lowering, "", program->buffers[b].rank, program->buffers[b].name);
    for (int e = 0; program->is_crossed && e < program->event_families; e++)
        if (strncmp(program->event_names[e], event, strlen(event)) == 0)
            program->event_names[e] =
                with_rank(lowering, event, program->event_rank[e], program->event_names[e]);
    return lowering->failed ? lower_failed(lowering) : STATUS_OK;
}

enum status lower_derive(struct lowering *lowering)
{
    static enum status (*const tables[])(struct lowering *) = {
        rank_events,        name_flags,          derive_flag_values,   derive_list_streams,
        list_waiters,       find_devices,        find_fellows,         find_processes,
        name_crossed,       list_faults,         list_agents,          find_member_streams,
        find_first_threads, access_records_list, list_recorded_streams};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof tables / sizeof tables[0]; i++)
        status = tables[i](lowering);
    return status == STATUS_OK ? snapshot_build(lowering->program, lowering->diag) : status;
}
