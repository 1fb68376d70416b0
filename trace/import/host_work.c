/* SPDX-License-Identifier: Apache-2.0 */
/* host_work.c - see host_work.h: what was done is sorted, joined with what asked for it, and then with the waits. */
#include "host_work.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/job/call_names.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "base/units.h"

/* Where an annotation or an operator of a thread begins or ends. */
struct host_work_edge {
    int thread;
    int64_t time_ns;
};

struct host_maker {
    struct job *job;
    struct job_rank *rank;
    struct diag *diag;
    int *workers; /* the threads of gloo, ascending: rank->threads */
    size_t worker_count;
    int *asked;   /* per event that is done: the event that asked for it; -1: none did */
    int *stream;  /* ... and its stream */
    int *work;    /* ... rank->works */
    bool *waited; /* ... a thread has waited for it */
    struct host_work_edge *edges; /* by thread and time */
    size_t edge_count;
    size_t oldest;    /* event that a thread may still wait for */
    int64_t *free_ns; /* per stream: its last operation has ended */
};

/* Ids of a event's push, of the record behind it and of the wait for it. */
enum host_call { PUSH, RECORD, WAIT };

static bool host_waits_make(struct host_maker *maker);

static bool has_operations(const struct job_rank *rank)
{
    for (size_t i = 0; i < rank->gloo_event_count; i++)
        if (rank->gloo_events[i].kind == GLOO_DONE)
            return true;
    return false;
}

bool host_work_is_all(const struct job_rank *rank)
{
    return rank->work_count == 0 && rank->call_count == 0 &&
           (rank->range_count > 0 || has_operations(rank));
}

static int compare_events(const void *left, const void *right)
{
    const struct job_gloo_event *a = left, *b = right;
    return compare_then(compare_i64(a->start_ns, b->start_ns),
                        compare_int((int)a->kind, (int)b->kind));
}

/* ---- the kinds of operations --------------------------------------------------------------------- */

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static enum collective_kind host_work_kind_of(const char *name)
{
    return has(name, "all_reduce") || has(name, "gloo:reduce") ? COLLECTIVE_ALL_REDUCE
           : has(name, "all_gather")                           ? COLLECTIVE_ALL_GATHER
           : has(name, "reduce_scatter")                       ? COLLECTIVE_REDUCE_SCATTER
           : has(name, "broadcast")                            ? COLLECTIVE_BROADCAST
           : has(name, "barrier")                              ? COLLECTIVE_BARRIER
                                                               : COLLECTIVE_ALL_TO_ALL;
}

static const char *host_work_name_of(const struct host_maker *maker, int event)
{
    ASSERT_INDEX(event, maker->rank->gloo_event_count);
    return maker->job->names.items[maker->rank->gloo_events[event].name];
}

/* True if it is a send or a receive. */
static bool host_is_message(const struct host_maker *maker, int event)
{
    return has(host_work_name_of(maker, event), "send") ||
           has(host_work_name_of(maker, event), "recv");
}

/* c10d::reduce_scatter_ of lists is several gloo:all_reduce. */
static bool asks_for_several(const struct host_maker *maker, int event)
{
    return strcmp(host_work_name_of(maker, event), "c10d::reduce_scatter_") == 0;
}

/* ---- who asked ------------------------------------------------------------------------------------ */

/* The next operator behind `from` that asks for a message, or for a collective; the count: there is none. */
static size_t next_asker(const struct host_maker *maker, size_t from, bool message)
{
    const struct job_rank *rank = maker->rank;
    while (from < rank->gloo_event_count && (rank->gloo_events[from].kind != GLOO_CALLED ||
                                             host_is_message(maker, (int)from) != message))
        from++;
    return from;
}

/* Operations begin in the order in which they were asked for. */
static void find_askers(struct host_maker *maker, bool message)
{
    const struct job_rank *rank = maker->rank;
    size_t at = next_asker(maker, 0, message);
    int last = -1;
    for (size_t i = 0; i < rank->gloo_event_count; i++) {
        if (rank->gloo_events[i].kind != GLOO_DONE || host_is_message(maker, (int)i) != message)
            continue;
        const bool fresh = at < rank->gloo_event_count &&
                           rank->gloo_events[at].start_ns <= rank->gloo_events[i].start_ns;
        if (!fresh && (last < 0 || !asks_for_several(maker, last)))
            continue;
        if (fresh) {
            last = (int)at;
            at = next_asker(maker, at + 1, message);
        }
        maker->asked[i] = last;
    }
}

/* ---- streams -------------------------------------------------------------------------------------- */

static int64_t thread_number(const struct host_maker *maker, int thread)
{
    ASSERT_INDEX(thread, maker->rank->threads.count);
    const char *slash = strrchr(maker->rank->threads.items[thread], '/');
    return slash ? strtoll(slash + 1, NULL, 10) : thread;
}

/* By number of the system, in which the groups made them. */
static void sort_workers(struct host_maker *maker)
{
    sort_int(maker->workers, maker->worker_count);
    for (size_t i = 1; i < maker->worker_count; i++)
        for (size_t k = i; k > 0 && thread_number(maker, maker->workers[k]) <
                                        thread_number(maker, maker->workers[k - 1]);
             k--) {
            const int other = maker->workers[k];
            maker->workers[k] = maker->workers[k - 1];
            maker->workers[k - 1] = other;
        }
}

/* True if this is a thread of gloo. */
static bool host_is_worker(const struct host_maker *maker, int thread)
{
    for (size_t i = 0; i < maker->worker_count; i++)
        if (maker->workers[i] == thread)
            return true;
    return false;
}

static void host_work_find_workers(struct host_maker *maker)
{
    const struct job_rank *rank = maker->rank;
    for (size_t i = 0; i < rank->gloo_event_count; i++)
        if (rank->gloo_events[i].kind == GLOO_DONE && !host_is_message(maker, (int)i) &&
            !host_is_worker(maker, rank->gloo_events[i].thread))
            maker->workers[maker->worker_count++] = rank->gloo_events[i].thread;
    sort_workers(maker);
}

/* What gloo's own threads do is part of its operations. */
static void drop_workers_operators(struct host_maker *maker)
{
    struct job_rank *rank = maker->rank;
    size_t kept = 0;
    for (size_t i = 0; i < rank->operator_count; i++)
        if (!host_is_worker(maker, rank->operators[i].thread))
            rank->operators[kept++] = rank->operators[i];
    rank->operator_count = kept;
}

/* The n-th group, of all or of those that have several ranks; the count of them: there are no more. */
static size_t nth_group(const struct job_rank *rank, bool several, size_t n)
{
    size_t at = 0;
    for (; at < rank->groups.count; at++) {
        const bool alone = at < rank->members_count && rank->members[at].count == 1;
        if (!(several && alone) && n-- == 0)
            break;
    }
    return at;
}

static size_t count_groups(const struct job_rank *rank, bool several)
{
    size_t count = 0;
    while (nth_group(rank, several, count) < rank->groups.count)
        count++;
    return count;
}

/* The process group of a collective: each has two threads of its own. A group of one rank may have had none to do. */
static enum status host_work_group_of(struct host_maker *maker, int thread, const char **out)
{
    const struct job_rank *rank = maker->rank;
    enum { EACH = 2 };
    const bool several = maker->worker_count != EACH * rank->groups.count;
    const size_t groups = count_groups(rank, several);
    const bool only = groups == 0 || (groups == 1 && maker->worker_count <= EACH);
    size_t at = 0;
    if (!only && maker->worker_count != EACH * groups)
        return diag_error(maker->diag, STATUS_INPUT,
                          "%s: the trace does not say to which of %zu process groups a collective "
                          "belongs: it has "
                          "%zu threads of gloo, expected two for each group",
                          rank->file, rank->groups.count, maker->worker_count);
    while (!only && maker->workers[at] != thread)
        at++;
    *out = groups > 0 ? rank->groups.items[nth_group(rank, several, at / EACH)] : "0";
    return STATUS_OK;
}

/* The other rank is told by its number in a process group, and which group that is, is not. The ranks that it may be:
   how many, and one of them. */
static size_t possible_peers(const struct job_rank *rank, int64_t told, int64_t *out)
{
    size_t count = 0;
    for (size_t g = 0; g < rank->members_count; g++) {
        const struct job_members *members = &rank->members[g];
        if (told < 0 || (uint64_t)told >= members->count || members->ranks[told] == rank->number ||
            (count > 0 && members->ranks[told] == *out))
            continue;
        *out = members->ranks[told];
        count++;
    }
    return count;
}

/* The other rank of a message; a job of two needs no record. Where several groups have such a number, that of all ranks
   is assumed, in which most programs send. */
static enum status host_work_peer_of(struct host_maker *maker, const struct job_gloo_event *asked,
                                     int64_t *out)
{
    struct job_rank *rank = maker->rank;
    int64_t peer = asked ? asked->peer : -1;
    *out = rank->world == 2 && rank->number >= 0 ? 1 - rank->number : peer;
    if (rank->world != 2 && possible_peers(rank, peer, out) > 1) {
        if (peer == rank->number || peer >= rank->world)
            return diag_error(maker->diag, STATUS_INPUT,
                              "%s: the process group of a message to or from its rank %" PRId64
                              " is not recorded",
                              rank->file, peer);
        *out = peer;
        rank->assumed_count++;
    }
    if (*out >= 0 && rank->number >= 0)
        return STATUS_OK;
    return diag_error(
        maker->diag, STATUS_INPUT,
        "%s: which rank a message goes to or comes from is not recorded: expected a trace "
        "with record_shapes=True",
        rank->file);
}

/* The name of the communicator of an operation, and the other rank where it is a message. */
static enum status channel_of(struct host_maker *maker, int event, const char **out, int *other)
{
    const struct job_rank *rank = maker->rank;
    const struct job_gloo_event *asked =
        maker->asked[event] >= 0 ? &rank->gloo_events[maker->asked[event]] : NULL;
    const char *group = "0";
    int64_t peer;
    if (!host_is_message(maker, event)) {
        enum status status = host_work_group_of(maker, rank->gloo_events[event].thread, &group);
        *out = status == STATUS_OK ? arena_printf(&maker->job->arena, "gloo.%s", group) : NULL;
        return status != STATUS_OK || *out ? status : diag_no_memory(maker->diag);
    }
    enum status status = host_work_peer_of(maker, asked, &peer);
    *other = status == STATUS_OK && peer <= INT_MAX ? (int)peer : -1;
    const bool send = has(host_work_name_of(maker, event), "send");
    if (status == STATUS_OK)
        *out = arena_printf(&maker->job->arena, "gloo.%lldto%lld",
                            (long long)(send ? rank->number : peer),
                            (long long)(send ? peer : rank->number));
    return status != STATUS_OK || *out ? status : diag_no_memory(maker->diag);
}

/* ---- calls and works ------------------------------------------------------------------------------ */

static int64_t host_id(int event, enum host_call which)
{
    return 1 + 3 * (int64_t)event + which;
}

/* False without memory. */
static bool host_add_call(struct host_maker *maker, int thread, int name, enum call_kind kind,
                          int64_t id, int64_t start_ns, int64_t end_ns)
{
    const struct job_call call = {.thread = thread,
                                  .name = name,
                                  .kind = kind,
                                  .correlation = id,
                                  .start_ns = start_ns,
                                  .end_ns = end_ns > start_ns ? end_ns : start_ns,
                                  .sync = -1};
    return job_add_call(maker->rank, &call);
}

/* The record follows its push at once, so that it means no other one. */
static bool host_work_add_push(struct host_maker *maker, const struct job_work *work, int event)
{
    ASSERT_INDEX(event, maker->rank->gloo_event_count);
    const struct job_gloo_event *done = &maker->rank->gloo_events[event];
    const struct job_gloo_event *asked =
        maker->asked[event] >= 0 ? &maker->rank->gloo_events[maker->asked[event]] : done;
    const int64_t end_ns = asked == done                    ? done->start_ns
                           : asked->end_ns > work->start_ns ? asked->end_ns
                                                            : work->start_ns;
    const int64_t start_ns = asked->start_ns;
    const int thread = asked->thread, name = asked->name;
    return host_add_call(maker, thread, name, CALL_OTHER, host_id(event, PUSH), start_ns, end_ns) &&
           host_add_call(maker, thread, name, CALL_RECORD, host_id(event, RECORD), start_ns + 1, 0);
}

/* An operation begins when the one before it on its stream has ended; a message when it was asked for. */
static enum status host_work_add_work(struct host_maker *maker, int event)
{
    struct job_rank *rank = maker->rank;
    ASSERT_INDEX(event, rank->gloo_event_count);
    const struct job_gloo_event *done = &rank->gloo_events[event];
    const struct job_gloo_event *asked =
        maker->asked[event] >= 0 ? &rank->gloo_events[maker->asked[event]] : done;
    struct job_work work = {.class = CLASS_KERNEL,
                            .correlation = host_id(event, PUSH),
                            .name = done->name,
                            .is_collective = true,
                            .is_message = host_is_message(maker, event),
                            .send = has(host_work_name_of(maker, event), "send"),
                            .peer = -1,
                            .collective = host_work_kind_of(host_work_name_of(maker, event)),
                            .call = -1};
    const char *channel;
    enum status status = channel_of(maker, event, &channel, &work.peer);
    if (status != STATUS_OK)
        return status;
    work.group = job_intern(maker->job, channel);
    work.stream = work.group < 0 ? -1 : job_stream(rank, 0, work.group);
    work.row = names_intern(&rank->rows, &maker->job->arena, "gloo");
    if (work.stream < 0 || work.row < 0)
        return diag_no_memory(maker->diag);
    rank->streams[work.stream].name = channel;
    int64_t *free_ns = &maker->free_ns[work.stream];
    work.start_ns = work.is_message ? asked->start_ns : done->start_ns;
    work.start_ns = work.start_ns > *free_ns ? work.start_ns : *free_ns;
    work.end_ns = done->end_ns > work.start_ns ? done->end_ns : work.start_ns;
    *free_ns = work.end_ns;
    maker->stream[event] = work.stream;
    maker->work[event] = (int)rank->work_count;
    return job_add_work(rank, &work) && host_work_add_push(maker, &work, event)
               ? STATUS_OK
               : diag_no_memory(maker->diag);
}

/* ---- all ------------------------------------------------------------------------------------------ */

static enum status add_works(struct host_maker *maker)
{
    enum status status = STATUS_OK;
    size_t *unasked = &maker->rank->unasked_count;
    for (size_t i = 0; status == STATUS_OK && i < maker->rank->gloo_event_count; i++) {
        if (maker->rank->gloo_events[i].kind == GLOO_DONE && maker->asked[i] >= 0)
            status = host_work_add_work(maker, (int)i);
        *unasked += maker->rank->gloo_events[i].kind == GLOO_DONE && maker->asked[i] < 0;
    }
    if (status == STATUS_OK && *unasked > 0)
        diag_warn(maker->diag,
                  "%s: left out: %zu operation%s of gloo that no operator of the trace asks for",
                  maker->rank->file, *unasked, units_plural(*unasked));
    if (status == STATUS_OK && maker->rank->assumed_count > 0)
        diag_warn(
            maker->diag,
            "%s: the process group of %zu message%s is not recorded: the group of all ranks is "
            "assumed",
            maker->rank->file, maker->rank->assumed_count,
            units_plural(maker->rank->assumed_count));
    return status;
}

enum status host_work_make(struct job *job, struct job_rank *rank, struct diag *diag)
{
    const size_t count = rank->gloo_event_count;
    struct host_maker maker = {.job = job, .rank = rank, .diag = diag};
    maker.workers = malloc((count + 1) * sizeof *maker.workers);
    maker.asked = malloc((count + 1) * sizeof *maker.asked);
    maker.stream = malloc((count + 1) * sizeof *maker.stream);
    maker.work = malloc((count + 1) * sizeof *maker.work);
    maker.waited = calloc(count + 1, sizeof *maker.waited);
    maker.free_ns = malloc((count + 1) * sizeof *maker.free_ns); /* no more streams than events */
    enum status status =
        maker.workers && maker.asked && maker.stream && maker.work && maker.waited && maker.free_ns
            ? STATUS_OK
            : diag_no_memory(diag);
    rank->is_host = true;
    if (!has_operations(rank))
        diag_warn(
            diag,
            "%s: neither work of a GPU nor operations of gloo are recorded in it: the plan has "
            "the CPU time of its threads",
            rank->file);
    SORT(rank->gloo_events, count, compare_events);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        maker.asked[i] = -1;
        maker.free_ns[i] = INT64_MIN;
    }
    if (status == STATUS_OK) {
        find_askers(&maker, false);
        find_askers(&maker, true);
        host_work_find_workers(&maker);
        drop_workers_operators(&maker);
        status = add_works(&maker);
    }
    if (status == STATUS_OK && !host_waits_make(&maker))
        status = diag_no_memory(diag);
    free(maker.workers);
    free(maker.edges);
    free(maker.asked);
    free(maker.stream);
    free(maker.work);
    free(maker.waited);
    free(maker.free_ns);
    return status;
}

/* The waits that a trace tells, those that its times tell, and how long its threads are there. */

/* A wait that is inferred ends so soon behind its operation. */
enum { SOON_NS = 500 * 1000, LATE_SHARE = 4 /* ... or so small a part of the wait */ };
/* A thread that waits for so long has waited for the operation to end. */
enum { BLOCKED_NS = 20 * 1000 };

/* ---- waits ---------------------------------------------------------------------------------------- */

static bool host_work_add_wait(struct host_maker *maker, int event, int thread, int64_t start_ns,
                               int64_t end_ns)
{
    struct job_rank *rank = maker->rank;
    const struct job_sync sync = {.correlation = host_id(event, WAIT),
                                  .stream = -1,
                                  .source_stream = rank->streams[maker->stream[event]].number,
                                  .is_event = true,
                                  .record = host_id(event, RECORD)};
    maker->waited[event] = true;
    rank->works[maker->work[event]].awaited =
        host_is_message(maker, event) && end_ns - start_ns > BLOCKED_NS;
    return job_add_sync(rank, &sync) &&
           host_add_call(maker, thread, rank->gloo_events[event].name, CALL_SYNC_EVENT,
                         host_id(event, WAIT), start_ns, end_ns);
}

/* True if this is an operation that no thread has waited for yet. */
static bool host_work_is_open(const struct host_maker *maker, size_t event)
{
    ASSERT_INDEX(event, maker->rank->gloo_event_count);
    return maker->rank->gloo_events[event].kind == GLOO_DONE && maker->asked[event] >= 0 &&
           !maker->waited[event];
}

/* The operation that a thread's wait awaits: of those asked for before and not waited for yet the one that ends
   last within it, else the oldest one that has ended; -1. */
static int awaited(struct host_maker *maker, const struct job_gloo_event *wait)
{
    const struct job_rank *rank = maker->rank;
    int within = -1, before = -1;
    while (maker->oldest < rank->gloo_event_count && !host_work_is_open(maker, maker->oldest))
        maker->oldest++;
    for (size_t i = maker->oldest;
         i < rank->gloo_event_count && rank->gloo_events[i].start_ns < wait->end_ns; i++) {
        const struct job_gloo_event *done = &rank->gloo_events[i];
        const int asked = maker->asked[i];
        if (!host_work_is_open(maker, i) || rank->gloo_events[asked].start_ns > wait->start_ns ||
            rank->gloo_events[asked].thread != wait->thread ||
            done->end_ns > wait->end_ns + SOON_NS)
            continue;
        if (done->end_ns <= wait->start_ns)
            before = before < 0 ? (int)i : before;
        else if (within < 0 || done->end_ns > rank->gloo_events[within].end_ns)
            within = (int)i;
    }
    return within >= 0 ? within : before;
}

static bool add_told_waits(struct host_maker *maker)
{
    struct job_rank *rank = maker->rank;
    for (size_t i = 0; i < rank->gloo_event_count; i++) {
        const struct job_gloo_event *wait = &rank->gloo_events[i];
        rank->has_waits |= wait->kind == GLOO_WAIT;
        const int event = wait->kind == GLOO_WAIT ? awaited(maker, wait) : -1;
        if (event >= 0 &&
            !host_work_add_wait(maker, event, wait->thread, wait->start_ns, wait->end_ns))
            return false;
    }
    return true;
}

static int host_work_compare_edges(const void *left, const void *right)
{
    const struct host_work_edge *a = left, *b = right;
    return compare_then(compare_int(a->thread, b->thread), compare_i64(a->time_ns, b->time_ns));
}

static void host_work_add_edge(struct host_maker *maker, int thread, int64_t start_ns,
                               int64_t end_ns)
{
    maker->edges[maker->edge_count++] = (struct host_work_edge){thread, start_ns};
    maker->edges[maker->edge_count++] = (struct host_work_edge){thread, end_ns};
}

/* The beginnings and ends of all annotations and operators. False without memory. */
static bool host_work_list_edges(struct host_maker *maker)
{
    const struct job_rank *rank = maker->rank;
    maker->edges =
        malloc((2 * (rank->range_count + rank->gloo_event_count) + 1) * sizeof *maker->edges);
    if (!maker->edges)
        return false;
    for (size_t i = 0; i < rank->range_count; i++)
        host_work_add_edge(maker, rank->ranges[i].thread, rank->ranges[i].start_ns,
                           rank->ranges[i].end_ns);
    for (size_t i = 0; i < rank->gloo_event_count; i++)
        if (rank->gloo_events[i].kind == GLOO_CALLED || rank->gloo_events[i].kind == GLOO_OTHER)
            host_work_add_edge(maker, rank->gloo_events[i].thread, rank->gloo_events[i].start_ns,
                               rank->gloo_events[i].end_ns);
    SORT(maker->edges, maker->edge_count, host_work_compare_edges);
    return true;
}

/* The last edge of the thread before this time, and the first one from it on. */
static void edges_around(const struct host_maker *maker, int thread, int64_t time_ns,
                         int64_t *before, int64_t *after)
{
    const struct host_work_edge key = {thread, time_ns};
    size_t low =
        SORT_FIRST(i, 0, maker->edge_count, host_work_compare_edges(&maker->edges[i], &key) >= 0);
    const struct host_work_edge *at = &maker->edges[low];
    *before = low > 0 && at[-1].thread == thread ? at[-1].time_ns : INT64_MIN;
    *after = low < maker->edge_count && at->thread == thread ? at->time_ns : INT64_MAX;
}

/* Of a message the end is that of its wait. */
static bool host_work_infer_wait(struct host_maker *maker, int event)
{
    const struct job_rank *rank = maker->rank;
    ASSERT_INDEX(event, rank->gloo_event_count);
    const struct job_gloo_event *done = &rank->gloo_events[event],
                                *asked = &rank->gloo_events[maker->asked[event]];
    int64_t before, after;
    if (asked->waits)
        return host_work_add_wait(maker, event, asked->thread, asked->end_ns, done->end_ns);
    edges_around(maker, asked->thread, done->end_ns, &before, &after);
    /* A thread that was silent for long, and is late on a busy machine, has waited as well. */
    const int64_t silent_ns = before >= asked->start_ns ? done->end_ns - before : 0;
    const int64_t soon_ns = silent_ns / LATE_SHARE > SOON_NS ? silent_ns / LATE_SHARE : SOON_NS;
    const bool goes_on = after <= done->end_ns + soon_ns || host_is_message(maker, event);
    return !goes_on || before < asked->start_ns ||
           host_work_add_wait(maker, event, asked->thread, before, done->end_ns);
}

/* ---- threads -------------------------------------------------------------------------------------- */

/* A thread is there from its first annotation or operator to its last one; steps keep theirs. */
static bool host_work_add_ends(struct host_maker *maker)
{
    struct job_rank *rank = maker->rank;
    const int name = job_intern(maker->job, "edge");
    int64_t number, id = -2;
    for (size_t i = 0; name >= 0 && i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        if (host_is_worker(maker, range->thread))
            continue;
        const bool step = range_is_step(maker->job->names.items[range->name], &number);
        const int64_t last_ns =
            step && range->end_ns > range->start_ns ? range->end_ns - 1 : range->end_ns;
        if (!host_add_call(maker, range->thread, name, CALL_OTHER, id--, range->start_ns, 0) ||
            !host_add_call(maker, range->thread, name, CALL_OTHER, id--, last_ns, 0))
            return false;
    }
    for (size_t i = 0; name >= 0 && i < maker->edge_count; i++) {
        const struct host_work_edge *edge = &maker->edges[i];
        const bool first = i == 0 || edge[-1].thread != edge->thread;
        const bool last = i + 1 == maker->edge_count || edge[1].thread != edge->thread;
        if ((first || last) && !host_is_worker(maker, edge->thread) &&
            !host_add_call(maker, edge->thread, name, CALL_OTHER, id--, edge->time_ns, 0))
            return false;
    }
    return name >= 0;
}

/* The waits of threads, and where threads begin and end. False without memory. */
static bool host_waits_make(struct host_maker *maker)
{
    bool at_once = true;
    if (!host_work_list_edges(maker) || !add_told_waits(maker))
        return false;
    for (size_t i = 0; i < maker->rank->gloo_event_count; i++)
        at_once &=
            maker->rank->gloo_events[i].kind != GLOO_CALLED || maker->rank->gloo_events[i].waits;
    maker->rank->has_waits |= at_once;
    for (size_t i = 0; i < maker->rank->gloo_event_count; i++)
        if (host_work_is_open(maker, i) && !host_work_infer_wait(maker, (int)i))
            return false;
    return host_work_add_ends(maker);
}
