/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.c - see evidence.h. Calls are walked in the order of their beginnings, all threads together, so "before"
 * is one order for pushes, records and waits.
 */
#include "evidence.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

static const struct {
    const char *key, *words, *cause, *word;
} idles[] = {
#define X(name, key, words, cause, word) {key, words, cause, word},
    IDLE_LIST(X)
#undef X
};

const char *idle_key(enum idle idle)
{
    return idles[idle].key;
}

const char *idle_words(enum idle idle)
{
    return idles[idle].words;
}

const char *idle_cause(enum idle idle)
{
    return idles[idle].cause;
}

const char *idle_word(enum idle idle)
{
    return idles[idle].word;
}

struct evidence_search {
    const struct job_rank *rank;
    struct evidence *out;
    int *by_end; /* works by their end */
    int *by_id;  /* calls by their correlation id */
    int64_t *pushed;
};

/* ---- orders ---------------------------------------------------------------------------------- */

static int evidence_compare_ids(const void *left, const void *right, void *context)
{
    const struct job_call *calls = context;
    const int a = *(const int *)left, b = *(const int *)right;
    return compare_then(compare_i64(calls[a].correlation, calls[b].correlation), compare_int(a, b));
}

static int evidence_compare_ends(const void *left, const void *right, void *context)
{
    const struct job_work *works = context;
    const int a = *(const int *)left, b = *(const int *)right;
    return compare_then(compare_i64(works[a].end_ns, works[b].end_ns), compare_int(a, b));
}

/* The numbers from 0 to count - 1 in this order; the caller frees them. */
static int *numbers_sorted(size_t count, int (*order)(const void *, const void *, void *),
                           void *context)
{
    int *items = malloc((count + 1) * sizeof *items);
    for (size_t i = 0; items && i < count; i++)
        items[i] = (int)i;
    if (items)
        SORT_BY(items, count, order, context);
    return items;
}

/* ---- waits of streams ------------------------------------------------------------------------ */

static bool put_edge(struct evidence_search *search, int work, int source, enum idle word)
{
    struct evidence *out = search->out;
    assert(work >= 0 && (size_t)work < search->rank->work_count);
    assert(source >= 0 && (size_t)source < search->rank->work_count && source != work);
    if (!ARRAY_GROW(out->edges, out->edge_count, out->edge_cap))
        return false;
    out->edges[out->edge_count++] = (struct edge_found){work, source, word};
    return true;
}

/* An edge that a call tells of, unless the times contradict it. */
static bool evidence_add_edge(struct evidence_search *search, int work, int source, enum idle word)
{
    const struct job_work *works = search->rank->works;
    const struct evidence *out = search->out;
    if (source < 0 || works[source].stream == works[work].stream)
        return true;
    if (works[source].end_ns > works[work].start_ns + SLACK_NS) {
        search->out->contradicted++;
        return true;
    }
    for (size_t i = out->edge_count; i > 0 && out->edges[i - 1].work == work; i--)
        if (out->edges[i - 1].source == source)
            return true;
    return put_edge(search, work, source, word);
}

static int evidence_stream_index(const struct job_rank *rank, int64_t number)
{
    for (size_t i = 0; i < rank->stream_count; i++)
        if (rank->streams[i].number == number)
            return (int)i;
    return -1;
}

/* When each work was pushed. A stream is a FIFO: what has no launch was pushed with the work before it, or before the
   trace begins. */
static int64_t *push_times(const struct job_rank *rank)
{
    int64_t *pushed = malloc((rank->work_count + 1) * sizeof *pushed);
    for (size_t s = 0; pushed && s < rank->stream_count; s++) {
        int64_t last = INT64_MIN;
        for (int i = 0; i < rank->streams[s].count; i++) {
            const int work = rank->by_stream[rank->streams[s].first + i];
            const int call = rank->works[work].call;
            if (call >= 0 && rank->calls[call].start_ns > last)
                last = rank->calls[call].start_ns;
            pushed[work] = last;
        }
    }
    return pushed;
}

/* How many works of a stream were pushed before `time_ns`. */
static int count_pushed(const struct evidence_search *search, int stream, int64_t time_ns)
{
    const struct job_rank *rank = search->rank;
    ASSERT_INDEX(stream, rank->stream_count);
    const struct job_stream *s = &rank->streams[stream];
    return SORT_FIRST(i, 0, s->count, search->pushed[rank->by_stream[s->first + i]] >= time_ns);
}

/* The last work of a stream that was pushed before `time_ns`; -1. */
static int pushed_before(const struct evidence_search *search, int stream, int64_t time_ns)
{
    const struct job_rank *rank = search->rank;
    const int count = count_pushed(search, stream, time_ns);
    ASSERT_INDEX(stream, rank->stream_count);
    return count > 0 ? rank->by_stream[rank->streams[stream].first + count - 1] : -1;
}

/* The first one that was pushed at `time_ns` or later; -1. */
static int pushed_after(const struct evidence_search *search, int stream, int64_t time_ns)
{
    const struct job_rank *rank = search->rank;
    const struct job_stream *s = &rank->streams[stream];
    const int count = count_pushed(search, stream, time_ns);
    assert(count >= 0 && count <= s->count);
    return count < s->count ? rank->by_stream[s->first + count] : -1;
}

static const struct job_call *call_with_id(const struct evidence_search *search,
                                           int64_t correlation, enum call_kind kind)
{
    const struct job_call *calls = search->rank->calls;
    size_t low = SORT_FIRST(i, 0, search->rank->call_count,
                            calls[search->by_id[i]].correlation >= correlation);
    for (; low < search->rank->call_count; low++) {
        const struct job_call *call = &calls[search->by_id[low]];
        if (call->correlation != correlation || correlation <= 0)
            return NULL;
        if (call->kind == kind)
            return call;
    }
    return NULL;
}

/* The source that a row names: by the id of its record, or by its stream and the order of calls. */
static int told_source(struct evidence_search *search, const struct job_call *call,
                       const struct job_sync *sync, enum idle *word)
{
    const struct job_rank *rank = search->rank;
    const int stream = evidence_stream_index(rank, sync->source_stream);
    const struct job_call *record = call_with_id(search, sync->record, CALL_RECORD);
    const bool valid = record && record->start_ns <= call->start_ns;
    if (stream < 0)
        return -1;
    *word = valid ? IDLE_EVENT_ID : IDLE_EVENT_CALL;
    return pushed_before(search, stream, valid ? record->start_ns : call->start_ns);
}

/* The stream of the next push waits for the thread's last push to another stream. */
static bool evidence_infer_wait(struct evidence_search *search, int at)
{
    const struct job_rank *rank = search->rank;
    const int thread = rank->calls[at].thread;
    int after = at + 1, before = at - 1;
    assert(rank->first_call[thread] <= at && at < rank->first_call[thread + 1]);
    while (after < rank->first_call[thread + 1] && rank->calls[after].work_count == 0)
        after++;
    if (after == rank->first_call[thread + 1])
        return true;
    const int work = rank->pushed[rank->calls[after].first_work];
    for (; before >= rank->first_call[thread]; before--) {
        const struct job_call *call = &rank->calls[before];
        if (call->work_count == 0)
            continue;
        const int source = rank->pushed[call->first_work + call->work_count - 1];
        if (rank->works[source].stream != rank->works[work].stream)
            return evidence_add_edge(search, work, source, IDLE_EVENT_CALL);
    }
    return true;
}

static bool find_wait(struct evidence_search *search, int at)
{
    const struct job_rank *rank = search->rank;
    ASSERT_INDEX(at, rank->call_count);
    const struct job_call *call = &rank->calls[at];
    const struct job_sync *sync = call->sync >= 0 ? &rank->syncs[call->sync] : NULL;
    const int stream = sync ? evidence_stream_index(rank, sync->stream) : -1;
    if (!sync || sync->source_stream < 0)
        return evidence_infer_wait(search, at);
    enum idle word = IDLE_EVENT_CALL;
    const int source = told_source(search, call, sync, &word);
    const int work = stream >= 0 ? pushed_after(search, stream, call->start_ns) : -1;
    return work < 0 || evidence_add_edge(search, work, source, word);
}

static bool evidence_find_waits(struct evidence_search *search)
{
    for (size_t i = 0; i < search->rank->call_count; i++)
        if (search->rank->calls[i].kind == CALL_WAIT && !find_wait(search, (int)i))
            return false;
    return true;
}

static int evidence_compare_edges(const void *left, const void *right)
{
    const struct edge_found *a = left, *b = right;
    return compare_then(compare_int(a->work, b->work), compare_int(a->source, b->source));
}

static void evidence_sort_edges(struct evidence *out)
{
    SORT(out->edges, out->edge_count, evidence_compare_edges);
}

/* ---- why a work began ------------------------------------------------------------------------ */

/* The work that ended last within EXPLAINED_NS before `work` began, on another stream, and after `ready_ns`; -1. */
static int ended_before(const struct evidence_search *search, int work, int64_t ready_ns)
{
    const struct job_work *works = search->rank->works;
    const int64_t start = works[work].start_ns;
    size_t low =
        SORT_FIRST(i, 0, search->rank->work_count, works[search->by_end[i]].end_ns > start);
    while (low-- > 0) {
        const int other = search->by_end[low];
        if (works[other].end_ns <= ready_ns || works[other].end_ns + EXPLAINED_NS < start)
            return -1;
        if (works[other].stream != works[work].stream)
            return other;
    }
    return -1;
}

/* True if a work begins so soon after its call that it is explained by it. */
static bool follows_launch(const struct job_rank *rank, const struct job_work *work,
                           int64_t within_ns)
{
    return work->start_ns - rank->calls[work->call].end_ns <= within_ns;
}

static void later(struct reason *reason, int64_t ready_ns, enum idle cause, int source)
{
    if (ready_ns > reason->ready_ns) {
        reason->cause = cause;
        reason->source = source;
        reason->ready_ns = ready_ns;
    }
}

/* The work of a stream that began last before `time_ns`; -1. */
static int begun_before(const struct job_rank *rank, int stream, int64_t time_ns)
{
    ASSERT_INDEX(stream, rank->stream_count);
    const struct job_stream *s = &rank->streams[stream];
    int low =
        SORT_FIRST(i, 0, s->count, rank->works[rank->by_stream[s->first + i]].start_ns >= time_ns);
    return low > 0 ? rank->by_stream[s->first + low - 1] : -1;
}

/* Work of another stream that filled the device when `work` became ready, or just after, and leaves it now: its
   last blocks still run when `work` begins. -1: none. */
static int leaving(const struct evidence_search *search, int work, int64_t ready_ns)
{
    enum { TAIL_NS = 100 * 1000, TAIL_SHARE = 20 };
    const struct job_rank *rank = search->rank;
    ASSERT_INDEX(work, rank->work_count);
    const int64_t start = rank->works[work].start_ns;
    for (int s = 0; s < (int)rank->stream_count; s++) {
        const int other = s == rank->works[work].stream ? -1 : begun_before(rank, s, start);
        if (other < 0 || rank->works[other].start_ns > ready_ns + EXPLAINED_NS)
            continue;
        const int64_t tail = rank->works[other].end_ns - start;
        const int64_t whole = rank->works[other].end_ns - rank->works[other].start_ns;
        if (tail >= 0 && tail < TAIL_NS && tail < whole / TAIL_SHARE)
            return other;
    }
    return -1;
}

/* Work that was pushed before can be waited for with an event; room that work pushed later takes cannot. */
static bool explain_by_time(struct evidence_search *search, int work, struct reason *reason)
{
    const struct job_rank *rank = search->rank;
    int source = ended_before(search, work, reason->ready_ns);
    enum idle word = IDLE_EVENT_TIME;
    if (source < 0) {
        source = leaving(search, work, reason->ready_ns);
        word = IDLE_RESIDENCY;
    }
    if (source < 0)
        return true;
    const bool before = search->pushed[source] <= search->pushed[work];
    const int64_t end = rank->works[source].end_ns, start = rank->works[work].start_ns;
    if (before)
        reason->other_ready_ns = end;
    reason->cause = before ? word : IDLE_RESIDENCY;
    reason->source = source;
    reason->ready_ns = end < start ? end : start;
    return !before || put_edge(search, work, source, word);
}

static int put_piece(struct idle_piece out[IDLE_PIECES], int count, enum idle cause,
                     int64_t start_ns, int64_t end_ns)
{
    if (start_ns >= end_ns)
        return count;
    assert(count < IDLE_PIECES);
    out[count] = (struct idle_piece){cause, start_ns, end_ns};
    return count + 1;
}

static int64_t evidence_within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

int evidence_idle(const struct job_rank *rank, const struct evidence *evidence, int work,
                  struct idle_piece out[IDLE_PIECES])
{
    assert(work >= 0 && (size_t)work < rank->work_count);
    const struct reason *reason = &evidence->reasons[work];
    const struct job_work *w = &rank->works[work];
    if (reason->from_ns >= w->start_ns)
        return 0;
    if (w->call < 0)
        return put_piece(out, 0, reason->cause, reason->from_ns, w->start_ns);
    const int64_t launched =
        evidence_within(rank->calls[w->call].start_ns, reason->from_ns, w->start_ns);
    assert(reason->from_ns <= launched && launched <= w->start_ns);
    const int64_t ordered = evidence_is_unknown(reason->cause) && reason->ready_ns > launched
                                ? reason->ready_ns
                                : launched;
    int count = put_piece(out, 0, IDLE_LAUNCH, reason->from_ns, launched);
    count = put_piece(out, count, IDLE_ORDER, launched, ordered);
    return put_piece(out, count, reason->cause, ordered, w->start_ns);
}

/* The ledger's lines for the idle time in front of a work. */
static void evidence_enter(struct evidence_search *search, int work)
{
    struct idle_piece pieces[IDLE_PIECES];
    const int count = evidence_idle(search->rank, search->out, work, pieces);
    ASSERT_INDEX(work, search->rank->work_count);
    for (int i = 0; i < count; i++)
        search->out->streams[search->rank->works[work].stream].idle_ns[pieces[i].cause] +=
            pieces[i].end_ns - pieces[i].start_ns;
}

/* What cannot be told otherwise: the first work of the device waits for work that the trace does not have. */
static enum idle unknown_cause(int work)
{
    return work == 0 ? IDLE_BEFORE : IDLE_NOTHING;
}

static void explain_unlaunched(struct evidence_search *search, int work, int64_t from_ns)
{
    ASSERT_INDEX(work, search->rank->work_count);
    const int64_t start_ns = search->rank->works[work].start_ns;
    const enum idle cause = start_ns - from_ns <= EXPLAINED_NS ? IDLE_ORDER : unknown_cause(work);
    search->out->reasons[work] = (struct reason){cause, -1, from_ns, from_ns, from_ns};
    search->out->unlaunched++;
    evidence_enter(search, work);
}

/* `previous_end_ns`: of the work before it on its stream; `*edge`: the first edge that is not of an earlier work. */
static bool explain(struct evidence_search *search, int work, int64_t previous_end_ns, size_t *edge,
                    size_t told)
{
    const struct job_rank *rank = search->rank;
    struct evidence *out = search->out;
    const struct job_work *w = &rank->works[work];
    if (w->call < 0) {
        explain_unlaunched(search, work, previous_end_ns);
        return true;
    }
    struct reason *reason = &out->reasons[work];
    *reason = (struct reason){IDLE_ORDER, -1, previous_end_ns, previous_end_ns, previous_end_ns};
    for (; *edge < told && out->edges[*edge].work <= work; ++*edge)
        if (out->edges[*edge].work == work)
            later(reason, rank->works[out->edges[*edge].source].end_ns, out->edges[*edge].word,
                  out->edges[*edge].source);
    reason->other_ready_ns = reason->ready_ns;
    const int64_t launched = rank->calls[w->call].start_ns;
    if (launched >= reason->ready_ns) {
        reason->cause = IDLE_LAUNCH;
        reason->source = -1;
        reason->ready_ns = launched;
    }
    out->early += w->start_ns + SLACK_NS < launched;
    out->backwards += w->end_ns + BACKWARDS_NS < launched;
    if (w->start_ns - reason->ready_ns > EXPLAINED_NS) {
        reason->cause = follows_launch(rank, w, EXPLAINED_NS) ? IDLE_LAUNCH : unknown_cause(work);
        if (reason->cause == IDLE_NOTHING && !explain_by_time(search, work, reason))
            return false;
        /* Launches of HIP take longer, to a stream that is idle. */
        if (reason->cause == IDLE_NOTHING && launched >= previous_end_ns &&
            follows_launch(rank, w, LAUNCHED_NS))
            reason->cause = IDLE_LAUNCH;
    }
    assert(reason->ready_ns >= previous_end_ns);
    evidence_enter(search, work);
    return true;
}

/* Work that begins before its stream is free: no stream in order does that, so the file does not tell streams apart. */
static void count_overlap(struct evidence_search *search, const struct job_work *work,
                          int64_t previous_end_ns)
{
    const int64_t end_ns = work->end_ns < previous_end_ns ? work->end_ns : previous_end_ns;
    const int64_t overlap_ns = end_ns - work->start_ns;
    if (overlap_ns <= SLACK_NS)
        return;
    search->out->overlapped++;
    search->out->streams[work->stream].overlap_ns += overlap_ns;
}

/* The time without a cause in which no stream had work, since `idle_since_ns` and up to this work. */
static int64_t dark_before(const struct evidence_search *search, int work, int64_t idle_since_ns)
{
    struct idle_piece pieces[IDLE_PIECES];
    const int count = evidence_idle(search->rank, search->out, work, pieces);
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        if (pieces[i].cause == IDLE_NOTHING && pieces[i].end_ns > idle_since_ns)
            sum += pieces[i].end_ns -
                   (pieces[i].start_ns > idle_since_ns ? pieces[i].start_ns : idle_since_ns);
    return sum;
}

static bool explain_all(struct evidence_search *search)
{
    const struct job_rank *rank = search->rank;
    const size_t told = search->out->edge_count;
    int64_t *previous = calloc(rank->stream_count + 1, sizeof *previous);
    size_t edge = 0;
    int64_t idle_since_ns = 0;
    bool ok = previous != NULL;
    for (size_t i = 0; ok && i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        ok = explain(search, (int)i, previous[work->stream], &edge, told);
        count_overlap(search, work, previous[work->stream]);
        search->out->dark_ns += dark_before(search, (int)i, idle_since_ns);
        idle_since_ns = work->end_ns > idle_since_ns ? work->end_ns : idle_since_ns;
        search->out->streams[work->stream].busy_ns += work->end_ns - work->start_ns;
        if (work->end_ns > previous[work->stream])
            previous[work->stream] = work->end_ns;
    }
    free(previous);
    return ok;
}

/* The median latency of launches that nothing else delayed. */
static int64_t typical_latency(const struct job_rank *rank, const struct evidence *evidence)
{
    enum { BINS = 100 }; /* of a microsecond */
    size_t bins[BINS] = {0}, count = 0;
    for (size_t i = 0; i < rank->work_count; i++) {
        if (evidence->reasons[i].cause != IDLE_LAUNCH)
            continue;
        const int64_t late = rank->works[i].start_ns - rank->calls[rank->works[i].call].start_ns;
        if (late < 0 || late >= BINS * 1000)
            continue;
        bins[late / 1000]++;
        count++;
    }
    size_t seen = 0;
    for (int i = 0; i < BINS; i++)
        if ((seen += bins[i]) * 2 >= count && count > 0)
            return i * 1000;
    return 0;
}

/* ---- waits of the host ----------------------------------------------------------------------- */

/* The stream whose pushed work ends last within the call: what it has probably waited for; -1. */
static int infer_stream(const struct evidence_search *search, const struct job_call *call)
{
    const struct job_rank *rank = search->rank;
    int best = -1;
    int64_t best_end = call->start_ns;
    for (size_t s = 0; s < rank->stream_count; s++) {
        const int work = pushed_before(search, (int)s, call->start_ns);
        if (work < 0 || rank->works[work].end_ns <= best_end ||
            rank->works[work].end_ns > call->end_ns + SLACK_NS)
            continue;
        best = (int)s;
        best_end = rank->works[work].end_ns;
    }
    return best;
}

/* A stream that the row names is not believed where its work goes on long after the call. */
static void evidence_wait_for_stream(struct evidence_search *search, const struct job_call *call,
                                     int stream, struct host_wait *out)
{
    const struct job_rank *rank = search->rank;
    out->stream = stream >= 0 ? stream : infer_stream(search, call);
    out->work = out->stream >= 0 ? pushed_before(search, out->stream, call->start_ns) : -1;
    const int64_t late_ns =
        stream >= 0 && out->work >= 0 ? rank->works[out->work].end_ns - call->end_ns : 0;
    search->out->still_running += late_ns > SLACK_NS;
    if (late_ns > EXPLAINED_NS)
        evidence_wait_for_stream(search, call, -1, out);
}

static void evidence_wait_for_event(struct evidence_search *search, const struct job_call *call,
                                    const struct job_sync *sync, struct host_wait *out)
{
    enum idle word;
    if (sync && sync->source_stream >= 0)
        out->work = told_source(search, call, sync, &word);
    else
        evidence_wait_for_stream(search, call, -1, out);
    out->stream = -1;
}

/* The work that ends last of what was pushed before the call, unless it goes on long after. */
static void evidence_wait_for_device(struct evidence_search *search, const struct job_call *call,
                                     struct host_wait *out)
{
    const struct job_rank *rank = search->rank;
    for (size_t s = 0; s < rank->stream_count; s++) {
        const int work = pushed_before(search, (int)s, call->start_ns);
        if (work >= 0 &&
            (out->work < 0 || rank->works[work].end_ns > rank->works[out->work].end_ns))
            out->work = work;
    }
    if (out->work >= 0 && rank->works[out->work].end_ns > call->end_ns + EXPLAINED_NS)
        out->work = -1;
}

/* A copy from or to pageable memory that returned when it was done. */
static void wait_for_own(struct evidence_search *search, const struct job_call *call,
                         struct host_wait *out)
{
    const struct job_rank *rank = search->rank;
    for (int i = 0; i < call->work_count; i++) {
        const int work = rank->pushed[call->first_work + i];
        const struct job_work *w = &rank->works[work];
        if (w->class != CLASS_COPY || w->end_ns > call->end_ns + SLACK_NS || !w->pageable)
            continue;
        out->work = work;
        out->stream = w->stream;
    }
}

/* Rows about waits for events that name no record, or one that no call made. */
static void count_records(struct evidence_search *search)
{
    const struct job_rank *rank = search->rank;
    for (size_t i = 0; i < rank->sync_count; i++) {
        const struct job_sync *sync = &rank->syncs[i];
        if (!sync->is_event)
            continue;
        search->out->records_missing += sync->record <= 0;
        search->out->records_unknown +=
            sync->record > 0 && !call_with_id(search, sync->record, CALL_RECORD);
    }
}

static void find_host_waits(struct evidence_search *search)
{
    const struct job_rank *rank = search->rank;
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        const struct job_sync *sync = call->sync >= 0 ? &rank->syncs[call->sync] : NULL;
        struct host_wait *out = &search->out->waits[i];
        *out = (struct host_wait){-1, -1};
        switch (call->kind) {
        case CALL_SYNC_STREAM:
            evidence_wait_for_stream(search, call,
                                     sync ? evidence_stream_index(rank, sync->stream) : -1, out);
            break;
        case CALL_SYNC_EVENT: evidence_wait_for_event(search, call, sync, out); break;
        case CALL_SYNC_DEVICE: evidence_wait_for_device(search, call, out); break;
        case CALL_OTHER: wait_for_own(search, call, out); break;
        case CALL_RECORD:
        case CALL_WAIT: break;
        }
    }
}

/* ---- the ledger ------------------------------------------------------------------------------ */

int64_t ledger_idle(const struct ledger *ledger)
{
    int64_t sum = 0;
    for (int i = 0; i < IDLE_COUNT; i++)
        sum += ledger->idle_ns[i];
    return sum;
}

void ledger_add(struct ledger *to, const struct ledger *from)
{
    for (int i = 0; i < IDLE_COUNT; i++)
        to->idle_ns[i] += from->idle_ns[i];
    to->busy_ns += from->busy_ns;
    to->overlap_ns += from->overlap_ns;
}

static int millionths_of(int64_t part, int64_t all)
{
    return all > 0 ? (int)((double)part / (double)all * 1e6) : 0;
}

int ledger_unexplained(const struct ledger *ledger)
{
    return millionths_of(ledger->idle_ns[IDLE_NOTHING] + ledger->overlap_ns,
                         ledger_idle(ledger) + ledger->overlap_ns);
}

int evidence_unexplained(const struct job_rank *rank, const struct evidence *evidence, bool opaque)
{
    const int64_t dark_ns = (opaque ? 0 : evidence->dark_ns) + evidence->total.overlap_ns;
    return millionths_of(dark_ns < rank->end_ns ? dark_ns : rank->end_ns, rank->end_ns);
}

static bool find_all(struct evidence_search *search)
{
    if (!evidence_find_waits(search))
        return false;
    evidence_sort_edges(search->out);
    if (!explain_all(search))
        return false;
    evidence_sort_edges(search->out);
    find_host_waits(search);
    count_records(search);
    struct evidence *out = search->out;
    const struct job_rank *rank = search->rank;
    for (size_t s = 0; s < rank->stream_count; s++)
        ledger_add(&out->total, &out->streams[s]);
    for (size_t i = 0; i < rank->work_count; i++)
        out->groups_missing += rank->works[i].is_collective && rank->works[i].group < 0;
    search->out->duplicated = search->rank->duplicated;
    search->out->latency_ns = typical_latency(search->rank, search->out);
    return true;
}

enum status evidence_find(const struct job_rank *rank, struct evidence *out, struct diag *diag)
{
    struct evidence_search search = {.rank = rank, .out = out};
    *out = (struct evidence){0};
    out->reasons = calloc(rank->work_count + 1, sizeof *out->reasons);
    out->waits = calloc(rank->call_count + 1, sizeof *out->waits);
    out->streams = calloc(rank->stream_count + 1, sizeof *out->streams);
    search.by_end = numbers_sorted(rank->work_count, evidence_compare_ends, rank->works);
    search.by_id = numbers_sorted(rank->call_count, evidence_compare_ids, rank->calls);
    search.pushed = push_times(rank);
    const bool ok = out->reasons && out->waits && out->streams && search.by_end && search.by_id &&
                    search.pushed && find_all(&search);
    free(search.by_end);
    free(search.by_id);
    free(search.pushed);
    return ok ? STATUS_OK : diag_no_memory(diag);
}

void evidence_fini(struct evidence *evidence)
{
    free(evidence->reasons);
    free(evidence->edges);
    free(evidence->waits);
    free(evidence->streams);
    *evidence = (struct evidence){0};
}
