/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - see processes.h. */
#include "processes.h"

#include <stdlib.h>
#include <string.h>

#include "host_work.h"
#include "base/assert_index.h"

/* In which parts of a hundred a process must have the work of a row to have it all. */
enum { NEARLY_ALL = 90 };

struct splitter {
    struct job *job;
    size_t source; /* job->ranks; ranks move when one is added */
    struct names pids;
    int *pid_of; /* per thread of the source */
    struct job_key *keys;
    int *owner;         /* per work: pids; -1: no call has its id */
    int *votes;         /* per row and pid */
    int *winner;        /* per row: the process that has most of it; -1: none has */
    bool *whole;        /* per row: it has nearly all */
    size_t *work_count; /* per pid */
};

static struct job_rank *processes_source_of(const struct splitter *splitter)
{
    return &splitter->job->ranks[splitter->source];
}

/* The processes of threads, those with calls alone being of interest. */
static bool list_processes(struct splitter *splitter)
{
    const struct job_rank *rank = processes_source_of(splitter);
    splitter->pid_of = malloc((rank->threads.count + 1) * sizeof *splitter->pid_of);
    if (!splitter->pid_of)
        return false;
    for (size_t i = 0; i < rank->threads.count; i++) {
        /* "PID" of "PID/TID" */
        const char *thread = rank->threads.items[i];
        const char *slash = strrchr(thread, '/');
        const size_t length = slash ? (size_t)(slash - thread) : strlen(thread);
        const char *pid = arena_strndup(&splitter->job->arena, thread, length);
        splitter->pid_of[i] = pid ? names_intern(&splitter->pids, &splitter->job->arena, pid) : -1;
        if (splitter->pid_of[i] < 0)
            return false;
    }
    return true;
}

/* ---- whose work ------------------------------------------------------------------------------ */

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* The process of the call with this id that is nearest to `place`; -1: none. */
static int processes_nearest(const struct splitter *splitter, int64_t correlation, uint32_t place)
{
    const struct job_rank *rank = processes_source_of(splitter);
    const struct job_key *keys = splitter->keys;
    int found = -1;
    for (size_t i = job_find_key(keys, rank->call_count, correlation);
         i < rank->call_count && keys[i].correlation == correlation; i++)
        if (found < 0 || distance(rank->calls[keys[i].call].place, place) <
                             distance(rank->calls[found].place, place))
            found = keys[i].call;
    return found >= 0 && correlation > 0 ? splitter->pid_of[rank->calls[found].thread] : -1;
}

static void count_row(struct splitter *splitter, size_t row)
{
    const int *votes = &splitter->votes[row * splitter->pids.count];
    int most = 0;
    int64_t all = 0;
    for (size_t p = 0; p < splitter->pids.count; p++) {
        all += votes[p];
        if (votes[p] > most) {
            most = votes[p];
            splitter->winner[row] = (int)p;
        }
    }
    splitter->whole[row] = (int64_t)most * 100 >= all * NEARLY_ALL;
}

/* Work without a call follows its row; a row of no process follows the first one. */
static void processes_settle(struct splitter *splitter)
{
    const struct job_rank *rank = processes_source_of(splitter);
    for (size_t row = 0; row < rank->rows.count; row++) {
        splitter->winner[row] = -1;
        count_row(splitter, row);
    }
    for (size_t i = 0; i < rank->work_count; i++) {
        const int row = rank->works[i].row, winner = splitter->winner[row];
        if (splitter->whole[row] || splitter->owner[i] < 0)
            splitter->owner[i] = winner >= 0 ? winner : 0;
        splitter->work_count[splitter->owner[i]]++;
    }
}

static bool processes_find_owners(struct splitter *splitter)
{
    const struct job_rank *rank = processes_source_of(splitter);
    const size_t pids = splitter->pids.count, rows = rank->rows.count;
    splitter->keys = job_key_calls(rank);
    splitter->owner = malloc((rank->work_count + 1) * sizeof *splitter->owner);
    splitter->votes = calloc(rows * pids + 1, sizeof *splitter->votes);
    splitter->winner = calloc(rows + 1, sizeof *splitter->winner);
    splitter->whole = calloc(rows + 1, sizeof *splitter->whole);
    splitter->work_count = calloc(pids + 1, sizeof *splitter->work_count);
    if (!splitter->keys || !splitter->owner || !splitter->votes || !splitter->winner ||
        !splitter->whole || !splitter->work_count)
        return false;
    for (size_t i = 0; i < rank->work_count; i++) {
        const struct job_work *work = &rank->works[i];
        const int owner = processes_nearest(splitter, work->correlation, work->place);
        splitter->owner[i] = owner;
        if (owner >= 0)
            splitter->votes[(size_t)work->row * splitter->pids.count + (size_t)owner]++;
    }
    processes_settle(splitter);
    return true;
}

/* ---- the ranks ------------------------------------------------------------------------------- */

static int copy_thread(struct splitter *splitter, struct job_rank *rank, int thread)
{
    return names_intern(&rank->threads, &splitter->job->arena,
                        processes_source_of(splitter)->threads.items[thread]);
}

static bool copy_host(struct splitter *splitter, int pid, struct job_rank *rank)
{
    const struct job_rank *source = processes_source_of(splitter);
    for (size_t i = 0; i < source->call_count; i++) {
        struct job_call call = source->calls[i];
        if (splitter->pid_of[call.thread] != pid)
            continue;
        call.thread = copy_thread(splitter, rank, call.thread);
        if (call.thread < 0 || !job_add_call(rank, &call))
            return false;
    }
    for (size_t i = 0; i < source->range_count; i++) {
        struct job_range range = source->ranges[i];
        if (splitter->pid_of[range.thread] != pid)
            continue;
        range.thread = copy_thread(splitter, rank, range.thread);
        if (range.thread < 0 || !job_add_range(rank, &range))
            return false;
    }
    for (size_t i = 0; i < source->act_count; i++) {
        struct job_act act = source->acts[i];
        if (splitter->pid_of[act.thread] != pid)
            continue;
        act.thread = copy_thread(splitter, rank, act.thread);
        if (act.thread < 0 || !job_add_act(rank, &act))
            return false;
    }
    for (size_t i = 0; i < source->operator_count; i++) {
        struct job_operator operator= source->operators[i];
        if (splitter->pid_of[operator.thread] != pid)
            continue;
        operator.thread = copy_thread(splitter, rank, operator.thread);
        if (operator.thread<0 || !job_add_operator(rank, &operator))
            return false;
    }
    return true;
}

/* The process of a sync: its row's, or else its call's; a sync has no place of its own. */
static int sync_owner(const struct splitter *splitter, const struct job_sync *sync)
{
    const int winner = splitter->winner[sync->row];
    return splitter->whole[sync->row] && winner >= 0
               ? winner
               : processes_nearest(splitter, sync->correlation, 0);
}

static bool copy_device(struct splitter *splitter, int pid, struct job_rank *rank)
{
    const struct job_rank *source = processes_source_of(splitter);
    for (size_t i = 0; i < source->work_count; i++) {
        struct job_work work = source->works[i];
        const struct job_stream *stream = &source->streams[work.stream];
        if (splitter->owner[i] != pid)
            continue;
        work.stream = job_stream(rank, stream->device, stream->own);
        work.row = 0;
        if (work.stream < 0 || !job_add_work(rank, &work))
            return false;
    }
    for (size_t i = 0; i < source->sync_count; i++)
        if (sync_owner(splitter, &source->syncs[i]) == pid &&
            !job_add_sync(rank, &source->syncs[i]))
            return false;
    for (size_t i = 0; i < source->mark_count; i++)
        if (splitter->winner[source->marks[i].row] == pid && !job_add_mark(rank, &source->marks[i]))
            return false;
    return true;
}

/* NULL: no memory. */
static struct job_rank *new_rank(struct splitter *splitter, int pid)
{
    ASSERT_INDEX(pid, splitter->pids.count);
    const char *file = arena_printf(&splitter->job->arena, "%s, process %s",
                                    processes_source_of(splitter)->file, splitter->pids.items[pid]);
    struct job_rank *rank = file ? job_add_rank(splitter->job, file) : NULL;
    if (rank)
        rank->path = processes_source_of(splitter)->path;
    return rank;
}

/* ---- of the host alone ----------------------------------------------------------------------- */

static bool copy_gloo_events(struct splitter *splitter, int pid, struct job_rank *rank)
{
    const struct job_rank *source = processes_source_of(splitter);
    for (size_t i = 0; i < source->gloo_event_count; i++) {
        struct job_gloo_event event = source->gloo_events[i];
        if (splitter->pid_of[event.thread] != pid)
            continue;
        event.thread = copy_thread(splitter, rank, event.thread);
        if (event.thread < 0 || !job_add_gloo_event(rank, &event))
            return false;
    }
    return true;
}

/* The file's header holds for each of its processes, which are numbered in its order if they are all. */
static bool add_host_rank(struct splitter *splitter, int pid, int64_t number, bool all)
{
    struct job_rank *rank = new_rank(splitter, pid);
    if (!rank)
        return false;
    rank->world = processes_source_of(splitter)->world;
    rank->number = all ? number : -1;
    rank->groups = processes_source_of(splitter)->groups;
    return copy_host(splitter, pid, rank) && copy_gloo_events(splitter, pid, rank);
}

static bool add_host_ranks(struct splitter *splitter)
{
    const struct job_rank *source = processes_source_of(splitter);
    const int64_t world = source->world;
    int64_t working = 0, number = 0;
    splitter->work_count = calloc(splitter->pids.count + 1, sizeof *splitter->work_count);
    if (!splitter->work_count)
        return false;
    for (size_t i = 0; i < source->gloo_event_count; i++)
        if (source->gloo_events[i].kind == GLOO_DONE)
            working += splitter->work_count[splitter->pid_of[source->gloo_events[i].thread]]++ == 0;
    if (working < 2)
        return true;
    for (size_t p = 0; p < splitter->pids.count; p++)
        if (splitter->work_count[p] > 0 &&
            !add_host_rank(splitter, (int)p, number++, working == world))
            return false;
    job_drop_rank(splitter->job, splitter->source);
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The device of all work of a process; -1: it has several. */
static int64_t processes_device_of(const struct job_rank *rank)
{
    for (size_t i = 0; i < rank->work_count; i++)
        if (rank->streams[rank->works[i].stream].device !=
            rank->streams[rank->works[0].stream].device)
            return -1;
    return rank->work_count > 0 ? rank->streams[rank->works[0].stream].device : -1;
}

static bool processes_have_peers(const struct job_rank *rank, int64_t ranks)
{
    for (size_t i = 0; i < rank->work_count; i++)
        if (rank->works[i].is_message && rank->works[i].peer >= ranks)
            return false;
    return true;
}

/* A file of several processes tells no rank of them. Where each has a device of its own, as many as there are processes, and
   no message goes elsewhere, they are the ranks of one machine, which have the numbers of their devices. */
static void number_by_device(struct job_rank *ranks, size_t count)
{
    uint64_t seen = 0;
    for (size_t r = 0; r < count; r++) {
        const int64_t device = processes_device_of(&ranks[r]);
        if (device < 0 || device >= (int64_t)count || device >= 64 || seen >> device & 1 ||
            !processes_have_peers(&ranks[r], (int64_t)count))
            return;
        seen |= UINT64_C(1) << device;
    }
    for (size_t r = 0; r < count; r++)
        ranks[r].number = processes_device_of(&ranks[r]);
}

static bool add_ranks(struct splitter *splitter)
{
    size_t working = 0;
    for (size_t p = 0; p < splitter->pids.count; p++)
        working += splitter->work_count[p] > 0;
    if (working < 2)
        return true;
    const size_t first = splitter->job->rank_count;
    for (size_t p = 0; p < splitter->pids.count; p++)
        if (splitter->work_count[p] > 0) {
            struct job_rank *rank = new_rank(splitter, (int)p);
            if (!rank || !copy_host(splitter, (int)p, rank) || !copy_device(splitter, (int)p, rank))
                return false;
        }
    number_by_device(&splitter->job->ranks[first], working);
    job_drop_rank(splitter->job, splitter->source);
    return true;
}

enum status processes_split(struct job *job, size_t rank, struct diag *diag)
{
    struct splitter splitter = {.job = job, .source = rank};
    bool ok = list_processes(&splitter);
    if (ok && splitter.pids.count > 1)
        ok = host_work_is_all(processes_source_of(&splitter))
                 ? add_host_ranks(&splitter)
                 : processes_find_owners(&splitter) && add_ranks(&splitter);
    free(splitter.pid_of);
    free(splitter.keys);
    free(splitter.owner);
    free(splitter.votes);
    free(splitter.winner);
    free(splitter.whole);
    free(splitter.work_count);
    return ok ? STATUS_OK : diag_no_memory(diag);
}
