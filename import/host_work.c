/* host_work.c - see host_work.h: what was done is sorted, joined with what asked for it, and then with the waits. */
#include "host_work.h"

#include <stdlib.h>
#include <string.h>

#include "call_names.h"

/* A wait that is inferred ends so soon behind its operation. */
enum { SOON_NS = 500 * 1000, FIRST_ID = 1 };

/* Where an annotation or an operator of a thread begins or ends. */
struct edge {
    int thread;
    int64_t time_ns;
};

struct maker {
    struct job *job;
    struct job_rank *rank;
    struct diag *diag;
    int *workers; /* the threads of gloo, ascending: rank->threads */
    size_t worker_count;
    int *asked;         /* per deed that is done: the deed that asked for it; -1: none did */
    int *stream;        /* ... and its stream */
    bool *waited;       /* ... a thread has waited for it */
    struct edge *edges; /* by thread and time */
    size_t edge_count;
    size_t oldest;    /* deed that a thread may still wait for */
    int64_t *free_ns; /* per stream: its last operation has ended */
};

bool host_work_is_all(const struct job_rank *rank)
{
    return rank->work_count == 0 && rank->call_count == 0 &&
           (rank->deed_count > 0 || rank->range_count > 0);
}

static int compare_deeds(const void *left, const void *right)
{
    const struct job_deed *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

/* ---- the kinds of operations --------------------------------------------------------------------- */

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static enum collective_kind kind_of(const char *name)
{
    return has(name, "all_reduce") || has(name, "gloo:reduce") ? COLLECTIVE_ALL_REDUCE
           : has(name, "all_gather")                           ? COLLECTIVE_ALL_GATHER
           : has(name, "reduce_scatter")                       ? COLLECTIVE_REDUCE_SCATTER
           : has(name, "broadcast")                            ? COLLECTIVE_BROADCAST
           : has(name, "barrier")                              ? COLLECTIVE_BARRIER
                                                               : COLLECTIVE_ALL_TO_ALL;
}

static const char *name_of(const struct maker *maker, int deed)
{
    return maker->job->names.items[maker->rank->deeds[deed].name];
}

static bool is_message(const struct maker *maker, int deed)
{
    return has(name_of(maker, deed), "send") || has(name_of(maker, deed), "recv");
}

/* c10d::reduce_scatter_ of lists is several gloo:all_reduce. */
static bool asks_for_several(const struct maker *maker, int deed)
{
    return strcmp(name_of(maker, deed), "c10d::reduce_scatter_") == 0;
}

/* ---- who asked ------------------------------------------------------------------------------------ */

/* The next operator behind `from` that asks for a message, or for a collective; the count: there is none. */
static size_t next_asker(const struct maker *maker, size_t from, bool message)
{
    const struct job_rank *rank = maker->rank;
    while (from < rank->deed_count &&
           (rank->deeds[from].kind != DEED_ASKED || is_message(maker, (int)from) != message))
        from++;
    return from;
}

/* Operations begin in the order in which they were asked for. */
static void find_askers(struct maker *maker, bool message)
{
    const struct job_rank *rank = maker->rank;
    size_t at = next_asker(maker, 0, message);
    int last = -1;
    for (size_t i = 0; i < rank->deed_count; i++) {
        if (rank->deeds[i].kind != DEED_DONE || is_message(maker, (int)i) != message)
            continue;
        const bool fresh =
            at < rank->deed_count && rank->deeds[at].start_ns <= rank->deeds[i].start_ns;
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

static int by_number(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static int64_t thread_number(const struct maker *maker, int thread)
{
    const char *slash = strrchr(maker->rank->threads.items[thread], '/');
    return slash ? strtoll(slash + 1, NULL, 10) : thread;
}

/* By number of the system, in which the groups made them. */
static void sort_workers(struct maker *maker)
{
    qsort(maker->workers, maker->worker_count, sizeof *maker->workers, by_number);
    for (size_t i = 1; i < maker->worker_count; i++)
        for (size_t k = i; k > 0 && thread_number(maker, maker->workers[k]) <
                                        thread_number(maker, maker->workers[k - 1]);
             k--) {
            const int other = maker->workers[k];
            maker->workers[k] = maker->workers[k - 1];
            maker->workers[k - 1] = other;
        }
}

static bool is_worker(const struct maker *maker, int thread)
{
    for (size_t i = 0; i < maker->worker_count; i++)
        if (maker->workers[i] == thread)
            return true;
    return false;
}

static void find_workers(struct maker *maker)
{
    const struct job_rank *rank = maker->rank;
    for (size_t i = 0; i < rank->deed_count; i++)
        if (rank->deeds[i].kind == DEED_DONE && !is_message(maker, (int)i) &&
            !is_worker(maker, rank->deeds[i].thread))
            maker->workers[maker->worker_count++] = rank->deeds[i].thread;
    sort_workers(maker);
}

/* The process group of a collective: each has two threads of its own. */
static enum status group_of(struct maker *maker, int thread, const char **out)
{
    const struct job_rank *rank = maker->rank;
    enum { EACH = 2 };
    size_t at = 0;
    if (rank->groups.count > 1 && maker->worker_count != EACH * rank->groups.count)
        return diag_error(
            maker->diag, STATUS_INPUT,
            "%s: collectives of %zu process groups, and the trace does not tell which is "
            "of which: gloo's threads are %zu, expected two for each group",
            rank->file, rank->groups.count, maker->worker_count);
    while (rank->groups.count > 1 && maker->workers[at] != thread)
        at++;
    *out = rank->groups.count > 0 ? rank->groups.items[at / EACH] : "0";
    return STATUS_OK;
}

/* The other rank of a message; a job of two needs no record. */
static enum status peer_of(struct maker *maker, const struct job_deed *asked, int64_t *out)
{
    const struct job_rank *rank = maker->rank;
    *out = rank->world == 2 && rank->number >= 0 ? 1 - rank->number : asked ? asked->peer : -1;
    if (*out >= 0 && rank->number >= 0)
        return STATUS_OK;
    return diag_error(
        maker->diag, STATUS_INPUT,
        "%s: which rank a message goes to or comes from is not recorded: expected a trace "
        "with record_shapes=True",
        rank->file);
}

/* The name of the communicator of an operation. */
static enum status channel_of(struct maker *maker, int deed, const char **out)
{
    const struct job_rank *rank = maker->rank;
    const struct job_deed *asked =
        maker->asked[deed] >= 0 ? &rank->deeds[maker->asked[deed]] : NULL;
    const char *group = "0";
    int64_t peer;
    if (!is_message(maker, deed)) {
        enum status status = group_of(maker, rank->deeds[deed].thread, &group);
        *out = status == STATUS_OK ? arena_printf(&maker->job->arena, "gloo.%s", group) : NULL;
        return status != STATUS_OK || *out ? status : diag_no_memory(maker->diag);
    }
    enum status status = peer_of(maker, asked, &peer);
    const bool send = has(name_of(maker, deed), "send");
    if (status == STATUS_OK)
        *out = arena_printf(&maker->job->arena, "gloo.%lldto%lld",
                            (long long)(send ? rank->number : peer),
                            (long long)(send ? peer : rank->number));
    return status != STATUS_OK || *out ? status : diag_no_memory(maker->diag);
}

/* ---- calls and works ------------------------------------------------------------------------------ */

/* Ids of a deed's push, of the record behind it and of the wait for it. */
static int64_t id_of(int deed, int which)
{
    return FIRST_ID + 3 * (int64_t)deed + which;
}

enum { PUSH, RECORD, WAIT };

static bool add_call(struct maker *maker, int thread, int name, enum call_kind kind, int64_t id,
                     int64_t start_ns, int64_t end_ns)
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
static bool add_push(struct maker *maker, const struct job_work *work, int deed)
{
    const struct job_deed *done = &maker->rank->deeds[deed];
    const struct job_deed *asked =
        maker->asked[deed] >= 0 ? &maker->rank->deeds[maker->asked[deed]] : done;
    const int64_t end_ns = asked == done                    ? done->start_ns
                           : asked->end_ns > work->start_ns ? asked->end_ns
                                                            : work->start_ns;
    const int64_t start_ns = asked->start_ns;
    const int thread = asked->thread, name = asked->name;
    return add_call(maker, thread, name, CALL_OTHER, id_of(deed, PUSH), start_ns, end_ns) &&
           add_call(maker, thread, name, CALL_RECORD, id_of(deed, RECORD), start_ns + 1, 0);
}

/* An operation begins when the one before it on its stream has ended; a message when it was asked for. */
static enum status add_work(struct maker *maker, int deed)
{
    struct job_rank *rank = maker->rank;
    const struct job_deed *done = &rank->deeds[deed];
    const struct job_deed *asked =
        maker->asked[deed] >= 0 ? &rank->deeds[maker->asked[deed]] : done;
    struct job_work work = {.class = CLASS_KERNEL,
                            .correlation = id_of(deed, PUSH),
                            .name = done->name,
                            .is_collective = true,
                            .is_message = is_message(maker, deed),
                            .send = has(name_of(maker, deed), "send"),
                            .collective = kind_of(name_of(maker, deed)),
                            .call = -1};
    const char *channel;
    enum status status = channel_of(maker, deed, &channel);
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
    maker->stream[deed] = work.stream;
    return job_add_work(rank, &work) && add_push(maker, &work, deed) ? STATUS_OK
                                                                     : diag_no_memory(maker->diag);
}

/* ---- waits ---------------------------------------------------------------------------------------- */

static bool add_wait(struct maker *maker, int deed, int thread, int64_t start_ns, int64_t end_ns)
{
    struct job_rank *rank = maker->rank;
    const struct job_sync sync = {.correlation = id_of(deed, WAIT),
                                  .stream = -1,
                                  .source_stream = rank->streams[maker->stream[deed]].number,
                                  .is_event = true,
                                  .record = id_of(deed, RECORD)};
    maker->waited[deed] = true;
    return job_add_sync(rank, &sync) &&
           add_call(maker, thread, rank->deeds[deed].name, CALL_SYNC_EVENT, id_of(deed, WAIT),
                    start_ns, end_ns);
}

/* Is this an operation that no thread has waited for yet? */
static bool is_open(const struct maker *maker, size_t deed)
{
    return maker->rank->deeds[deed].kind == DEED_DONE && maker->asked[deed] >= 0 &&
           !maker->waited[deed];
}

/* What a wait of a thread waits for: of the operations that were asked for before and not waited for yet the one that ends
   last within it, else the oldest one that has ended; -1. */
static int awaited(struct maker *maker, const struct job_deed *wait)
{
    const struct job_rank *rank = maker->rank;
    int within = -1, before = -1;
    while (maker->oldest < rank->deed_count && !is_open(maker, maker->oldest))
        maker->oldest++;
    for (size_t i = maker->oldest; i < rank->deed_count && rank->deeds[i].start_ns < wait->end_ns;
         i++) {
        const struct job_deed *done = &rank->deeds[i];
        const int asked = maker->asked[i];
        if (!is_open(maker, i) || rank->deeds[asked].start_ns > wait->start_ns ||
            rank->deeds[asked].thread != wait->thread || done->end_ns > wait->end_ns + SOON_NS)
            continue;
        if (done->end_ns <= wait->start_ns)
            before = before < 0 ? (int)i : before;
        else if (within < 0 || done->end_ns > rank->deeds[within].end_ns)
            within = (int)i;
    }
    return within >= 0 ? within : before;
}

static bool add_told_waits(struct maker *maker)
{
    const struct job_rank *rank = maker->rank;
    for (size_t i = 0; i < rank->deed_count; i++) {
        const struct job_deed *wait = &rank->deeds[i];
        const int deed = wait->kind == DEED_WAIT ? awaited(maker, wait) : -1;
        if (deed >= 0 && !add_wait(maker, deed, wait->thread, wait->start_ns, wait->end_ns))
            return false;
    }
    return true;
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void add_edge(struct maker *maker, int thread, int64_t start_ns, int64_t end_ns)
{
    maker->edges[maker->edge_count++] = (struct edge){thread, start_ns};
    maker->edges[maker->edge_count++] = (struct edge){thread, end_ns};
}

/* The beginnings and ends of all annotations and operators. False without memory. */
static bool list_edges(struct maker *maker)
{
    const struct job_rank *rank = maker->rank;
    maker->edges = malloc((2 * (rank->range_count + rank->deed_count) + 1) * sizeof *maker->edges);
    if (!maker->edges)
        return false;
    for (size_t i = 0; i < rank->range_count; i++)
        add_edge(maker, rank->ranges[i].thread, rank->ranges[i].start_ns, rank->ranges[i].end_ns);
    for (size_t i = 0; i < rank->deed_count; i++)
        if (rank->deeds[i].kind == DEED_ASKED)
            add_edge(maker, rank->deeds[i].thread, rank->deeds[i].start_ns, rank->deeds[i].end_ns);
    if (maker->edge_count > 0)
        qsort(maker->edges, maker->edge_count, sizeof *maker->edges, compare_edges);
    return true;
}

/* The last edge of the thread before this time, and the first one from it on. */
static void edges_around(const struct maker *maker, int thread, int64_t time_ns, int64_t *before,
                         int64_t *after)
{
    const struct edge key = {thread, time_ns};
    size_t low = 0, high = maker->edge_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_edges(&maker->edges[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct edge *at = &maker->edges[low];
    *before = low > 0 && at[-1].thread == thread ? at[-1].time_ns : INT64_MIN;
    *after = low < maker->edge_count && at->thread == thread ? at->time_ns : INT64_MAX;
}

/* Of a message the end is that of its wait. */
static bool infer_wait(struct maker *maker, int deed)
{
    const struct job_rank *rank = maker->rank;
    const struct job_deed *done = &rank->deeds[deed], *asked = &rank->deeds[maker->asked[deed]];
    int64_t before, after;
    if (asked->waits)
        return add_wait(maker, deed, asked->thread, asked->end_ns, done->end_ns);
    edges_around(maker, asked->thread, done->end_ns, &before, &after);
    const bool goes_on = after <= done->end_ns + SOON_NS || is_message(maker, deed);
    return !goes_on || before < asked->start_ns ||
           add_wait(maker, deed, asked->thread, before, done->end_ns);
}

static bool add_inferred_waits(struct maker *maker)
{
    for (size_t i = 0; i < maker->rank->deed_count; i++)
        if (is_open(maker, i) &&
            (!maker->rank->has_waits || maker->rank->deeds[maker->asked[i]].waits) &&
            !infer_wait(maker, (int)i))
            return false;
    return true;
}

/* ---- threads -------------------------------------------------------------------------------------- */

/* A thread is there from its first annotation or operator to its last one; steps keep theirs. */
static bool add_ends(struct maker *maker)
{
    struct job_rank *rank = maker->rank;
    const int name = job_intern(maker->job, "edge");
    int64_t number, id = -2;
    for (size_t i = 0; name >= 0 && i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        if (is_worker(maker, range->thread))
            continue;
        const bool step = range_is_step(maker->job->names.items[range->name], &number);
        const int64_t last_ns =
            step && range->end_ns > range->start_ns ? range->end_ns - 1 : range->end_ns;
        if (!add_call(maker, range->thread, name, CALL_OTHER, id--, range->start_ns, 0) ||
            !add_call(maker, range->thread, name, CALL_OTHER, id--, last_ns, 0))
            return false;
    }
    return name >= 0;
}

/* ---- all ------------------------------------------------------------------------------------------ */

static enum status add_works(struct maker *maker)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < maker->rank->deed_count; i++)
        if (maker->rank->deeds[i].kind == DEED_DONE && maker->asked[i] >= 0)
            status = add_work(maker, (int)i);
    return status;
}

enum status host_work_make(struct job *job, struct job_rank *rank, struct diag *diag)
{
    const size_t count = rank->deed_count;
    struct maker maker = {.job = job, .rank = rank, .diag = diag};
    maker.workers = malloc((count + 1) * sizeof *maker.workers);
    maker.asked = malloc((count + 1) * sizeof *maker.asked);
    maker.stream = malloc((count + 1) * sizeof *maker.stream);
    maker.waited = calloc(count + 1, sizeof *maker.waited);
    maker.free_ns = malloc((count + 1) * sizeof *maker.free_ns); /* no more streams than deeds */
    enum status status =
        maker.workers && maker.asked && maker.stream && maker.waited && maker.free_ns
            ? STATUS_OK
            : diag_no_memory(diag);
    rank->is_host = true;
    if (count > 0)
        qsort(rank->deeds, count, sizeof *rank->deeds, compare_deeds);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        maker.asked[i] = -1;
        maker.free_ns[i] = INT64_MIN;
        rank->has_waits |= rank->deeds[i].kind == DEED_WAIT;
    }
    if (status == STATUS_OK) {
        find_askers(&maker, false);
        find_askers(&maker, true);
        find_workers(&maker);
        status = add_works(&maker);
    }
    if (status == STATUS_OK && (!list_edges(&maker) || !add_told_waits(&maker) ||
                                !add_inferred_waits(&maker) || !add_ends(&maker)))
        status = diag_no_memory(diag);
    free(maker.workers);
    free(maker.edges);
    free(maker.asked);
    free(maker.stream);
    free(maker.waited);
    free(maker.free_ns);
    return status;
}
