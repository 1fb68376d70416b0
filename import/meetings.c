/* meetings.c - see meetings.h. A list per rank of its collectives, by communicator and start; equal places meet. */
#include "meetings.h"

#include <stdlib.h>

/* A collective of a rank. `key` tells its communicator: the name of its group, or the place of its stream. */
struct entry {
    int key, work;
    int64_t start_ns;
};

struct list {
    struct entry *entries;
    size_t count;
};

enum { STREAM_KEYS = 1 << 30 };

static int by_key_and_start(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->work > b->work) - (a->work < b->work);
}

/* The place of a stream among those of the rank that carry collectives. */
static int stream_place(int *places, int *next, int stream)
{
    if (places[stream] < 0)
        places[stream] = (*next)++;
    return places[stream];
}

static bool list_rank(const struct job_rank *rank, struct list *list)
{
    int *places = malloc((rank->stream_count + 1) * sizeof *places), next = 0;
    list->entries = malloc((rank->work_count + 1) * sizeof *list->entries);
    for (size_t i = 0; places && i < rank->stream_count; i++)
        places[i] = -1;
    for (size_t i = 0; places && list->entries && i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        if (!work->is_collective)
            continue;
        const int key = work->group >= 0 ? work->group
                                         : STREAM_KEYS + stream_place(places, &next, work->stream);
        list->entries[list->count++] = (struct entry){key, (int)i, work->start_ns};
    }
    free(places);
    if (places && list->entries)
        qsort(list->entries, list->count, sizeof *list->entries, by_key_and_start);
    return places && list->entries;
}

static void free_lists(struct list *lists, size_t count)
{
    for (size_t i = 0; lists && i < count; i++)
        free(lists[i].entries);
    free(lists);
}

/* One list a rank; NULL without memory. */
static struct list *list_ranks(const struct job *job)
{
    struct list *lists = calloc(job->rank_count, sizeof *lists);
    for (size_t r = 0; lists && r < job->rank_count; r++) {
        if (list_rank(&job->ranks[r], &lists[r]))
            continue;
        free_lists(lists, job->rank_count);
        return NULL;
    }
    return lists;
}

/* ---- one communicator ------------------------------------------------------------------------ */

/* A run of entries with one key. */
struct slice {
    const struct entry *entries;
    size_t count;
};

static struct slice slice_of(const struct list *list, int key)
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

static enum status refuse(const struct job *job, size_t a, size_t b, const char *why,
                          struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT, "%s and %s do not belong together: %s",
                      job->ranks[a].file, job->ranks[b].file, why);
}

/* Do the members have the same collectives? */
static enum status check_members(const struct job *job, const struct slice *slices,
                                 const int *members, size_t count, struct diag *diag)
{
    const int first = members[0];
    for (size_t m = 1; m < count; m++) {
        const int rank = members[m];
        if (slices[rank].count != slices[first].count)
            return refuse(job, (size_t)first, (size_t)rank,
                          "they have not the same number of collectives", diag);
        for (size_t i = 0; i < slices[rank].count; i++)
            if (job->ranks[rank].works[slices[rank].entries[i].work].collective !=
                job->ranks[first].works[slices[first].entries[i].work].collective)
                return refuse(job, (size_t)first, (size_t)rank,
                              "their collectives differ in kind or order", diag);
    }
    return STATUS_OK;
}

static int64_t duration(const struct job_work *work)
{
    return work->end_ns - work->start_ns;
}

static void meet(const struct job *job, const struct slice *slices, const int *members,
                 size_t count, int comm, struct meetings *out)
{
    for (size_t i = 0; i < slices[members[0]].count; i++) {
        int64_t least = INT64_MAX;
        for (size_t m = 0; m < count; m++) {
            const int rank = members[m];
            const int64_t time = duration(&job->ranks[rank].works[slices[rank].entries[i].work]);
            least = time < least ? time : least;
        }
        for (size_t m = 0; m < count; m++)
            out->of[members[m]][slices[members[m]].entries[i].work] = (struct meeting){comm, least};
    }
}

static bool add_comm(const struct job *job, struct plan *plan, int key, const int *members,
                     size_t count, size_t *cap)
{
    struct arena *arena = &plan->arena;
    struct comm comm = {.declared = true, .member_count = count};
    comm.name = key >= STREAM_KEYS ? arena_printf(arena, "nccl%d", key - STREAM_KEYS)
                                   : arena_strdup(arena, job->names.items[key]);
    comm.members = ARENA_ARRAY(arena, count, int);
    if (!comm.name || !comm.members ||
        !arena_grow(arena, (void **)&plan->comms, plan->comm_count, cap, sizeof comm))
        return false;
    for (size_t i = 0; i < count; i++)
        comm.members[i] = members[i];
    plan->comms[plan->comm_count++] = comm;
    return true;
}

/* The communicator `key` of all ranks that have it. */
static enum status match_key(const struct job *job, const struct list *lists, int key,
                             struct plan *plan, size_t *cap, struct meetings *out,
                             struct diag *diag)
{
    struct slice *slices = calloc(job->rank_count, sizeof *slices);
    int *members = calloc(job->rank_count, sizeof *members);
    size_t count = 0;
    enum status status = slices && members ? STATUS_OK : diag_no_memory(diag);
    for (size_t r = 0; status == STATUS_OK && r < job->rank_count; r++) {
        slices[r] = slice_of(&lists[r], key);
        if (slices[r].count > 0)
            members[count++] = (int)r;
    }
    if (status == STATUS_OK && count > 1) {
        status = check_members(job, slices, members, count, diag);
        if (status == STATUS_OK && !add_comm(job, plan, key, members, count, cap))
            status = diag_no_memory(diag);
        if (status == STATUS_OK)
            meet(job, slices, members, count, (int)plan->comm_count - 1, out);
    }
    free(slices);
    free(members);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool known_before(const struct list *lists, size_t rank, size_t entry)
{
    const int key = lists[rank].entries[entry].key;
    if (entry > 0 && lists[rank].entries[entry - 1].key == key)
        return true;
    for (size_t r = 0; r < rank; r++)
        if (slice_of(&lists[r], key).count > 0)
            return true;
    return false;
}

static enum status match_all(const struct job *job, const struct list *lists, struct plan *plan,
                             struct meetings *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t cap = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; status == STATUS_OK && i < lists[r].count; i++)
            if (!known_before(lists, r, i))
                status = match_key(job, lists, lists[r].entries[i].key, plan, &cap, out, diag);
    return status;
}

static bool make_table(const struct job *job, struct meetings *out)
{
    out->of = calloc(job->rank_count, sizeof *out->of);
    for (size_t r = 0; out->of && r < job->rank_count; r++) {
        const size_t count = job->ranks[r].work_count;
        out->of[r] = malloc((count + 1) * sizeof **out->of);
        if (!out->of[r])
            return false;
        for (size_t i = 0; i < count; i++)
            out->of[r][i] = (struct meeting){.comm = -1};
    }
    return out->of != NULL;
}

enum status meetings_find(const struct job *job, struct plan *plan, struct meetings *out,
                          struct diag *diag)
{
    *out = (struct meetings){.rank_count = job->rank_count};
    if (!make_table(job, out))
        return diag_no_memory(diag);
    struct list *lists = list_ranks(job);
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

const struct meeting *meetings_of(const struct meetings *meetings, int rank, int work)
{
    const struct meeting *meeting = &meetings->of[rank][work];
    return meeting->comm >= 0 ? meeting : NULL;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static int by_value(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The median of how much later the collectives of `list` end than those of `first`; 0 where they do not match. */
static bool difference(const struct job *job, const struct list *lists, size_t rank, int64_t *out)
{
    const struct list *list = &lists[rank], *first = &lists[0];
    *out = 0;
    if (list->count != first->count || list->count == 0)
        return true;
    int64_t *later = malloc(list->count * sizeof *later);
    if (!later)
        return false;
    for (size_t i = 0; i < list->count; i++)
        later[i] = job->ranks[rank].works[list->entries[i].work].end_ns -
                   job->ranks[0].works[first->entries[i].work].end_ns;
    qsort(later, list->count, sizeof *later, by_value);
    *out = later[list->count / 2];
    free(later);
    return true;
}

enum status meetings_align(struct job *job, struct diag *diag)
{
    struct list *lists = list_ranks(job);
    bool ok = lists != NULL;
    for (size_t r = 1; ok && r < job->rank_count; r++) {
        int64_t by;
        ok = difference(job, lists, r, &by);
        if (ok)
            job_shift(&job->ranks[r], by);
    }
    free_lists(lists, job->rank_count);
    if (ok)
        job_begin_at_zero(job);
    return ok ? STATUS_OK : diag_no_memory(diag);
}
