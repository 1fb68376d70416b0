/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_operators.c - see kineto_operators.h.
 *
 * The calls of a thread stand in the order of their times, with the time of their work summed up, so that an operator is two binary
 * searches. On the host an operator takes the time up to the next one of its thread that launches work, so that Python's time
 * between them is in it; a millisecond between them and more is something else, as a loader or a wait.
 */
#include "kineto_operators.h"

#include <stdlib.h>

#include "kineto.h"

#include "base/sort.h"

enum { MOST_GAP_NS = 1000000 };

/* The first call of the thread that is not before `ns`. */
static size_t profiled_first(const struct job_rank *rank, int thread, int64_t ns)
{
    const struct job_call *calls = rank->calls;
    return SORT_FIRST(i, (size_t)rank->first_call[thread], (size_t)rank->first_call[thread + 1],
                      calls[i].start_ns >= ns);
}

static int compare_operators(const void *left, const void *right)
{
    const struct job_operator *a = left, *b = right;
    return compare_then(compare_int(a->thread, b->thread), compare_i64(a->start_ns, b->start_ns));
}

/* The time of the work of all calls in front of each one; the caller frees it. NULL without memory. */
static int64_t *profiled_sums(const struct job_rank *rank)
{
    int64_t *before = malloc((rank->call_count + 1) * sizeof *before), sum = 0;
    for (size_t i = 0; before && i <= rank->call_count; i++) {
        before[i] = sum;
        for (int w = 0; i < rank->call_count && w < rank->calls[i].work_count; w++) {
            const struct job_work *work = &rank->works[rank->pushed[rank->calls[i].first_work + w]];
            sum += work->end_ns - work->start_ns;
        }
    }
    return before;
}

static int64_t profiled_work(const struct job_rank *rank, const int64_t *before,
                             const struct job_operator *of)
{
    return before[profiled_first(rank, of->thread, of->end_ns)] -
           before[profiled_first(rank, of->thread, of->start_ns)];
}

static bool profiled_add_all(const struct job *job, struct job_rank *rank, struct arena *arena,
                             struct operator_times *times)
{
    struct job_operator *operators = rank->operators;
    int64_t *before = profiled_sums(rank);
    size_t count = 0;
    bool ok = before != NULL;
    for (size_t i = 0; ok && i < rank->operator_count; i++)
        if (profiled_work(rank, before, &operators[i]) > 0)
            operators[count++] = operators[i];
    SORT(operators, count, compare_operators);
    for (size_t i = 0; ok && i < count; i++) {
        const struct job_operator *now = &operators[i];
        const size_t next =
            SORT_FIRST(n, i + 1, count,
                       operators[n].thread > now->thread || operators[n].start_ns >= now->end_ns);
        const bool is_near = next < count && operators[next].thread == now->thread &&
                             operators[next].start_ns - now->end_ns < MOST_GAP_NS;
        const int64_t host_ns = (is_near ? operators[next].start_ns : now->end_ns) - now->start_ns;
        ok = operator_times_add(times, arena, job->names.items[now->name], now->shapes,
                                (double)profiled_work(rank, before, now), (double)host_ns);
    }
    free(before);
    return ok;
}

enum status kineto_operators_read(struct bytes *bytes, struct arena *arena,
                                  struct operator_times *times, struct diag *diag)
{
    struct job job;
    size_t operators = 0;
    job_init(&job);
    job.wants_shapes = true;
    enum status status = kineto_read(bytes, &job, diag);
    for (size_t r = 0; r < job.rank_count; r++)
        operators += job.ranks[r].operator_count;
    if (status == STATUS_OK && operators == 0)
        status = diag_error(diag, STATUS_INPUT,
                            "%s: its operators have no shapes: profile with record_shapes=True",
                            bytes_name(bytes));
    else if (status == STATUS_OK && job.ranks[0].is_host)
        status = diag_error(diag, STATUS_INPUT,
                            "%s: no work of a GPU is in it: profile with ProfilerActivity.CUDA",
                            bytes_name(bytes));
    if (status == STATUS_OK)
        status = job_finish(&job, diag);
    for (size_t r = 0; status == STATUS_OK && r < job.rank_count; r++)
        if (!profiled_add_all(&job, &job.ranks[r], arena, times))
            status = diag_no_memory(diag);
    job_fini(&job);
    return status;
}
