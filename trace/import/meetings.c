/* SPDX-License-Identifier: Apache-2.0 */
/* meetings.c - see meetings.h. A list per rank of its collectives, by communicator and start; equal places meet. */
#include "meetings.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* A collective of a rank. `key` tells its communicator: the name of its group, or the place of its stream. */
struct meetings_entry {
    int key, work;
    int64_t start_ns;
};

struct meetings_list {
    struct meetings_entry *entries;
    size_t count;
};

enum { STREAM_KEYS = 1 << 30 };

static int by_key_and_start(const void *left, const void *right)
{
    const struct meetings_entry *a = left, *b = right;
    return compare_then(
        compare_int(a->key, b->key),
        compare_then(compare_i64(a->start_ns, b->start_ns), compare_int(a->work, b->work)));
}

/* The place of a stream among those of the rank that carry collectives. */
static int stream_place(int *places, int *next, int stream)
{
    if (places[stream] < 0)
        places[stream] = (*next)++;
    return places[stream];
}

static bool list_rank(const struct job_rank *rank, struct meetings_list *list)
{
    int *places = malloc((rank->stream_count + 1) * sizeof *places), next = 0;
    list->entries = malloc((rank->work_count + 1) * sizeof *list->entries);
    for (size_t i = 0; places && i < rank->stream_count; i++)
        places[i] = -1;
    for (size_t i = 0; places && list->entries && i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        if (!work->is_collective)
            continue;
        assert(work->group < STREAM_KEYS && work->stream >= 0 &&
               (size_t)work->stream < rank->stream_count);
        const int key = work->group >= 0 ? work->group
                                         : STREAM_KEYS + stream_place(places, &next, work->stream);
        list->entries[list->count++] = (struct meetings_entry){key, (int)i, work->start_ns};
    }
    free(places);
    if (places && list->entries)
        SORT(list->entries, list->count, by_key_and_start);
    return places && list->entries;
}

static void free_lists(struct meetings_list *lists, size_t count)
{
    for (size_t i = 0; lists && i < count; i++)
        free(lists[i].entries);
    free(lists);
}

/* One list a rank; NULL without memory. */
static struct meetings_list *meetings_list_ranks(const struct job *job)
{
    struct meetings_list *lists = calloc(job->rank_count, sizeof *lists);
    for (size_t r = 0; lists && r < job->rank_count; r++) {
        if (list_rank(&job->ranks[r], &lists[r]))
            continue;
        free_lists(lists, job->rank_count);
        return NULL;
    }
    return lists;
}

/* A run of entries with one key. */
struct slice {
    const struct meetings_entry *entries;
    size_t count;
};

static struct slice slice_of(const struct meetings_list *list, int key)
{
    struct slice slice = {0};
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].key != key)
            continue;
        if (slice.count++ == 0)
            slice.entries = &list->entries[i];
    }
    return slice;
}

static enum status meetings_refuse(const struct job *job, size_t a, size_t b, const char *why,
                                   struct diag *diag)
{
    ASSERT_INDEX(a, job->rank_count);
    ASSERT_INDEX(b, job->rank_count);
    return diag_error(diag, STATUS_INPUT, "%s and %s do not belong together: %s",
                      job->ranks[a].file, job->ranks[b].file, why);
}

/* ---- which entries are the same ---------------------------------------------------------------- */

/* Traces of two ranks need not begin or end with the same collective: the lists may be displaced by so many. */
enum { MOST_DISPLACED = 3, FEWEST_TO_DISPLACE = 8 };

static int64_t meetings_end_of(const struct job *job, int rank, const struct meetings_entry *entry)
{
    ASSERT_INDEX(rank, job->rank_count);
    return job->ranks[rank].works[entry->work].end_ns;
}

/* By how much the entries of `b`, displaced by `by`, end later than those of `a`: the median, and the median distance
   from it. `scratch` has room for all of them. */
static void meetings_compare_ends(const struct job *job, int rank_a, const struct slice *a,
                                  int rank_b, const struct slice *b, int by, int64_t *scratch,
                                  int64_t *median, int64_t *spread)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        const size_t k = i + (size_t)by;
        if (k < b->count)
            scratch[count++] = meetings_end_of(job, rank_b, &b->entries[k]) -
                               meetings_end_of(job, rank_a, &a->entries[i]);
    }
    *median = *spread = count > 0 ? 0 : INT64_MAX;
    if (count == 0)
        return;
    sort_i64(scratch, count);
    *median = scratch[count / 2];
    for (size_t i = 0; i < count; i++)
        scratch[i] = llabs(scratch[i] - *median);
    sort_i64(scratch, count);
    *spread = scratch[count / 2];
}

/* The displacement of `b` at which the two end together best; false without memory. */
static bool displacement(const struct job *job, int rank_a, const struct slice *a, int rank_b,
                         const struct slice *b, int *by, int64_t *median)
{
    const int most =
        a->count < FEWEST_TO_DISPLACE || b->count < FEWEST_TO_DISPLACE ? 0 : MOST_DISPLACED;
    int64_t *scratch = malloc((a->count + 1) * sizeof *scratch), least = INT64_MAX;
    if (!scratch)
        return false;
    for (int step = 0; step <= 2 * most; step++) {
        /* 0, 1, -1, 2, -2, ...: another one than 0 must be much better. */
        const int tried = step % 2 ? (step + 1) / 2 : -step / 2;
        int64_t later, spread;
        meetings_compare_ends(job, rank_a, a, rank_b, b, tried, scratch, &later, &spread);
        if (step > 0 && spread >= least / 4)
            continue;
        least = spread;
        *by = tried;
        *median = later;
    }
    free(scratch);
    return true;
}

/* ---- one communicator ------------------------------------------------------------------------ */

/* The ranks that have it, what each has, and by how many the list of each is displaced. */
struct meetings_members {
    struct slice *slices; /* per rank */
    int *ranks, *by;
    size_t count;
    int key;
    int64_t least_ns; /* of all entries */
};

/* The name of a communicator; `out` has room for that of a stream. */
static const char *meetings_name_of(const struct job *job, int key, char *out, size_t cap)
{
    if (key < STREAM_KEYS)
        return job->names.items[key];
    snprintf(out, cap, "nccl%d", key - STREAM_KEYS);
    return out;
}

static enum status refuse_counts(const struct job *job, const struct meetings_members *members,
                                 size_t m, struct diag *diag)
{
    char stream[16];
    assert(m < members->count);
    const int first = members->ranks[0], other = members->ranks[m];
    return diag_error(
        diag, STATUS_INPUT,
        "%s and %s do not belong together: of communicator %s one has %zu operations, "
        "the other %zu (--steps=A..B takes steps that both have)",
        job->ranks[first].file, job->ranks[other].file,
        meetings_name_of(job, members->key, stream, sizeof stream), members->slices[first].count,
        members->slices[other].count);
}

/* The rank that a message is for or from; NULL: it is not among them. */
static const struct job_rank *other_rank(const struct job *job, const struct job_work *message)
{
    for (size_t r = 0; message->is_message && r < job->rank_count; r++)
        if (job->ranks[r].number >= 0 && job->ranks[r].number == message->peer)
            return &job->ranks[r];
    return NULL;
}

/* A communicator that one rank has: that of messages has two, if both have traces. */
static enum status check_alone(const struct job *job, const struct meetings_members *members,
                               struct diag *diag)
{
    const struct job_rank *own = &job->ranks[members->ranks[0]];
    const struct slice *slice = &members->slices[members->ranks[0]];
    const struct job_rank *other = other_rank(job, &own->works[slice->entries[0].work]);
    char stream[16];
    return !other ? STATUS_OK
                  : diag_error(diag, STATUS_INPUT,
                               "%s and %s do not belong together: of communicator %s one has %zu "
                               "operations, the other none",
                               own->file, other->file,
                               meetings_name_of(job, members->key, stream, sizeof stream),
                               slice->count);
}

/* The entry of member `m` that is the `i`-th of the first member; NULL: its trace does not have it. */
static const struct meetings_entry *member_entry(const struct meetings_members *members, size_t m,
                                                 size_t i)
{
    const struct slice *slice = &members->slices[members->ranks[m]];
    const size_t k = i + (size_t)members->by[m];
    return k < slice->count ? &slice->entries[k] : NULL;
}

/* The end of a message of gloo is that of the wait for it, which may come late: it tells neither clock nor place. */
static bool ends_with_wait(const struct job_rank *rank, const struct meetings_entry *entry)
{
    return rank->is_host && rank->works[entry->work].is_message;
}

static enum status meetings_place_members(const struct job *job, struct meetings_members *members,
                                          struct diag *diag)
{
    const int first = members->ranks[0];
    const struct slice *a = &members->slices[first];
    for (size_t m = 1; m < members->count; m++) {
        const int rank = members->ranks[m];
        const struct slice *b = &members->slices[rank];
        int64_t median;
        const size_t more = a->count > b->count ? a->count - b->count : b->count - a->count;
        const bool few = a->count < FEWEST_TO_DISPLACE || b->count < FEWEST_TO_DISPLACE;
        if (more > (few ? 0 : MOST_DISPLACED))
            return refuse_counts(job, members, m, diag);
        if (more == 0 && ends_with_wait(&job->ranks[first], &a->entries[0]))
            continue;
        if (!displacement(job, first, a, rank, b, &members->by[m], &median))
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

static int64_t duration(const struct job_work *work)
{
    return work->end_ns - work->start_ns;
}

/* A send was there when it was called: on its stream it begins after the wait for the one before it, which may come late. */
static int64_t asked_for(const struct job_rank *rank, const struct job_work *work)
{
    return work->send && work->call >= 0 ? rank->calls[work->call].start_ns : work->start_ns;
}

/* The time of a message of gloo, whose end is that of the wait for it. Where its receiver was waiting it is the time from
   when both had asked for it; else the least that one of its channel took. */
static int64_t meetings_message_time(const struct job *job, const struct meetings_members *members,
                                     size_t i)
{
    int64_t begin_ns = INT64_MIN, end_ns = INT64_MIN;
    for (size_t m = 0; m < members->count; m++) {
        const struct job_rank *rank = &job->ranks[members->ranks[m]];
        const struct job_work *work = &rank->works[member_entry(members, m, i)->work];
        const int64_t asked_ns = asked_for(rank, work);
        begin_ns = asked_ns > begin_ns ? asked_ns : begin_ns;
        if (!work->send && work->awaited)
            end_ns = work->end_ns;
    }
    return end_ns >= begin_ns && end_ns - begin_ns > members->least_ns ? end_ns - begin_ns
                                                                       : members->least_ns;
}

/* The i-th collective of the first member, where all members have it. */
static enum status meetings_meet(const struct job *job, const struct meetings_members *members,
                                 size_t i, int comm, struct meetings *out, struct diag *diag)
{
    const int first = members->ranks[0];
    const struct job_work *own = &job->ranks[first].works[member_entry(members, 0, i)->work];
    int64_t least = INT64_MAX;
    for (size_t m = 0; m < members->count; m++) {
        const struct meetings_entry *entry = member_entry(members, m, i);
        if (!entry)
            return STATUS_OK;
        const struct job_work *work = &job->ranks[members->ranks[m]].works[entry->work];
        if (work->collective != own->collective ||
            (m > 0 && own->is_message && work->send == own->send))
            return meetings_refuse(job, (size_t)first, (size_t)members->ranks[m],
                                   "their collectives differ in kind or order", diag);
        least = duration(work) < least ? duration(work) : least;
    }
    if (own->is_message && job->ranks[first].is_host)
        least = meetings_message_time(job, members, i);
    for (size_t m = 0; m < members->count; m++)
        out->of[members->ranks[m]][member_entry(members, m, i)->work] =
            (struct meetings_meeting){comm, least};
    return STATUS_OK;
}

/* The least time that an operation of a communicator took on a rank. */
static int64_t least_of_all(const struct job *job, const struct meetings_members *members)
{
    int64_t least = INT64_MAX;
    for (size_t m = 0; m < members->count; m++) {
        const struct slice *slice = &members->slices[members->ranks[m]];
        for (size_t i = 0; i < slice->count; i++) {
            const int64_t took =
                duration(&job->ranks[members->ranks[m]].works[slice->entries[i].work]);
            least = took < least ? took : least;
        }
    }
    return least;
}

static bool meetings_add_comm(const struct job *job, struct plan *plan, int key, const int *members,
                              size_t count, size_t *cap)
{
    struct arena *arena = &plan->arena;
    struct comm comm = {.declared = true, .member_count = count};
    char stream[16];
    comm.name = arena_strdup(arena, meetings_name_of(job, key, stream, sizeof stream));
    comm.members = ARENA_ARRAY(arena, count, int);
    if (!comm.name || !comm.members || !ARENA_GROW(arena, plan->comms, plan->comm_count, *cap))
        return false;
    for (size_t i = 0; i < count; i++)
        comm.members[i] = members[i];
    plan->comms[plan->comm_count++] = comm;
    return true;
}

static enum status meet_all(const struct job *job, struct meetings_members *members, int key,
                            struct plan *plan, size_t *cap, struct meetings *out, struct diag *diag)
{
    enum status status = meetings_place_members(job, members, diag);
    if (status != STATUS_OK)
        return status;
    if (!meetings_add_comm(job, plan, key, members->ranks, members->count, cap))
        return diag_no_memory(diag);
    const int comm = (int)plan->comm_count - 1;
    members->least_ns = least_of_all(job, members);
    for (size_t i = 0; status == STATUS_OK && i < members->slices[members->ranks[0]].count; i++)
        status = meetings_meet(job, members, i, comm, out, diag);
    return status;
}

/* The communicator `key` of all ranks that have it. */
static enum status match_key(const struct job *job, const struct meetings_list *lists, int key,
                             struct plan *plan, size_t *cap, struct meetings *out,
                             struct diag *diag)
{
    struct meetings_members members = {.slices = calloc(job->rank_count, sizeof *members.slices),
                                       .ranks = calloc(job->rank_count, sizeof *members.ranks),
                                       .by = calloc(job->rank_count, sizeof *members.by),
                                       .key = key};
    enum status status =
        members.slices && members.ranks && members.by ? STATUS_OK : diag_no_memory(diag);
    for (size_t r = 0; status == STATUS_OK && r < job->rank_count; r++) {
        members.slices[r] = slice_of(&lists[r], key);
        if (members.slices[r].count > 0)
            members.ranks[members.count++] = (int)r;
    }
    if (status == STATUS_OK && members.count > 1)
        status = meet_all(job, &members, key, plan, cap, out, diag);
    else if (status == STATUS_OK && members.count == 1)
        status = check_alone(job, &members, diag);
    free(members.slices);
    free(members.ranks);
    free(members.by);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool known_before(const struct meetings_list *lists, size_t rank, size_t entry)
{
    const int key = lists[rank].entries[entry].key;
    if (entry > 0 && lists[rank].entries[entry - 1].key == key)
        return true;
    for (size_t r = 0; r < rank; r++)
        if (slice_of(&lists[r], key).count > 0)
            return true;
    return false;
}

static enum status match_all(const struct job *job, const struct meetings_list *lists,
                             struct plan *plan, struct meetings *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t cap = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; status == STATUS_OK && i < lists[r].count; i++)
            if (!known_before(lists, r, i))
                status = match_key(job, lists, lists[r].entries[i].key, plan, &cap, out, diag);
    return status;
}

static bool meetings_make_table(const struct job *job, struct meetings *out)
{
    out->of = calloc(job->rank_count, sizeof *out->of);
    for (size_t r = 0; out->of && r < job->rank_count; r++) {
        const size_t count = job->ranks[r].work_count;
        out->of[r] = malloc((count + 1) * sizeof **out->of);
        if (!out->of[r])
            return false;
        for (size_t i = 0; i < count; i++)
            out->of[r][i] = (struct meetings_meeting){.comm = -1};
    }
    return out->of != NULL;
}

enum status meetings_find(const struct job *job, struct plan *plan, struct meetings *out,
                          struct diag *diag)
{
    *out = (struct meetings){.rank_count = job->rank_count};
    if (!meetings_make_table(job, out))
        return diag_no_memory(diag);
    struct meetings_list *lists = meetings_list_ranks(job);
    if (!lists)
        return diag_no_memory(diag);
    enum status status = match_all(job, lists, plan, out, diag);
    free_lists(lists, job->rank_count);
    return status;
}

void meetings_fini(struct meetings *meetings)
{
    for (size_t r = 0; meetings->of && r < meetings->rank_count; r++)
        free(meetings->of[r]);
    free(meetings->of);
    *meetings = (struct meetings){0};
}

const struct meetings_meeting *meetings_of(const struct meetings *meetings, int rank, int work)
{
    const struct meetings_meeting *meeting = &meetings->of[rank][work];
    return meeting->comm >= 0 ? meeting : NULL;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static size_t count_key(const struct meetings_list *list, size_t from)
{
    size_t count = 0;
    while (from + count < list->count && list->entries[from + count].key == list->entries[from].key)
        count++;
    return count;
}

/* Ends of messages are those of waits, and tell nothing of clocks. */
static bool begins_messages(const struct job *job, int key)
{
    return key < STREAM_KEYS && strstr(job->names.items[key], "to") &&
           strncmp(job->names.items[key], "gloo.", 5) == 0;
}

/* The communicator with the most collectives that both have; -1: they share none. */
static int shared_key(const struct job *job, const struct meetings_list *a,
                      const struct meetings_list *b)
{
    size_t most = 0;
    int key = -1;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        const size_t a_count = count_key(a, i), b_count = count_key(b, k);
        const int a_key = a->entries[i].key, b_key = b->entries[k].key;
        const size_t both = a_count < b_count ? a_count : b_count;
        if (a_key == b_key && both > most && !begins_messages(job, a_key)) {
            most = both;
            key = a_key;
        }
        i += a_key <= b_key ? a_count : 0;
        k += b_key <= a_key ? b_count : 0;
    }
    return key;
}

/* The ranks whose clocks are right, in the order in which they became so. */
struct aligned {
    struct job *job;
    const struct meetings_list *lists;
    size_t *ranks;
    size_t count;
    bool *is_aligned;
};

static void put_aligned(struct aligned *aligned, size_t rank)
{
    aligned->is_aligned[rank] = true;
    aligned->ranks[aligned->count++] = rank;
}

/* Those that share a communicator with `known`. False without memory. */
static bool align_to(struct aligned *aligned, size_t known)
{
    const struct meetings_list *lists = aligned->lists;
    for (size_t r = 0; r < aligned->job->rank_count; r++) {
        const int key =
            aligned->is_aligned[r] ? -1 : shared_key(aligned->job, &lists[known], &lists[r]);
        if (key < 0)
            continue;
        const struct slice a = slice_of(&lists[known], key), b = slice_of(&lists[r], key);
        int by;
        int64_t later_ns;
        if (!displacement(aligned->job, (int)known, &a, (int)r, &b, &by, &later_ns))
            return false;
        job_shift(&aligned->job->ranks[r], later_ns);
        put_aligned(aligned, r);
    }
    return true;
}

/* A rank of a file that has an aligned one has its clock, and so has one without a device: those are on one machine, or
   their clocks are kept together. False: there is none. */
static bool take_of_same_file(struct aligned *aligned)
{
    const struct job_rank *ranks = aligned->job->ranks;
    for (size_t r = 0; r < aligned->job->rank_count; r++)
        for (size_t i = 0; !aligned->is_aligned[r] && i < aligned->count; i++)
            if (ranks[r].is_host || ranks[aligned->ranks[i]].path == ranks[r].path) {
                put_aligned(aligned, r);
                return true;
            }
    return false;
}

static enum status align_all(struct aligned *aligned, struct diag *diag)
{
    const size_t count = aligned->job->rank_count;
    put_aligned(aligned, 0);
    for (size_t i = 0; i < aligned->count || take_of_same_file(aligned); i++)
        if (!align_to(aligned, aligned->ranks[i]))
            return diag_no_memory(diag);
    for (size_t r = 0; r < count; r++)
        if (!aligned->is_aligned[r])
            return meetings_refuse(aligned->job, 0, r, "they have no collective in common", diag);
    job_begin_at_zero(aligned->job);
    return STATUS_OK;
}

enum status meetings_align(struct job *job, struct diag *diag)
{
    struct meetings_list *lists = meetings_list_ranks(job);
    struct aligned aligned = {.job = job,
                              .lists = lists,
                              .ranks = calloc(job->rank_count, sizeof *aligned.ranks),
                              .is_aligned = calloc(job->rank_count, sizeof *aligned.is_aligned)};
    enum status status = lists && aligned.ranks && aligned.is_aligned ? align_all(&aligned, diag)
                                                                      : diag_no_memory(diag);
    free_lists(lists, job->rank_count);
    free(aligned.ranks);
    free(aligned.is_aligned);
    return status;
}
