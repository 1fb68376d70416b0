/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - see predict.h.
 *
 * Replications are numbered; each thread takes the next one until there is none. Their results are added up
 * in the order of the numbers, so sums of doubles come out the same.
 */
#include "predict.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "machine/memory.h"
#include "machine/straight.h"
#include "plan/order.h"
#include "plan/schedules/parallel.h"

static double seconds_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- replications ---------------------------------------------------------------------------- */

struct replication_job {
    enum status status;
    struct diag diag;
    struct simulation_result result;
};

/* This process does every size'th replication, beginning with number `rank`. */
struct replication_batch {
    const struct prediction *prediction;
    const struct simulate_observer *observer;
    struct in_flight *in_flight; /* of the first replication; NULL: not wanted */
    const atomic_bool *interrupted;
    struct replication_job *jobs;
    int count, rank, size;
    atomic_int next;    /* of this process's replications */
    atomic_bool failed; /* no further replication need start */
};

static void replicate_one(struct replication_batch *batch, int number)
{
    struct replication_job *job = &batch->jobs[number];
    assert(number % batch->size == batch->rank && !job->result.streams);
    const struct simulate_options options = {.seed = batch->prediction->seed,
                                             .replication = (uint32_t)number,
                                             .observer = number == 0 ? batch->observer : NULL,
                                             .in_flight = number == 0 ? batch->in_flight : NULL,
                                             .interrupted = batch->interrupted};
    job->status = simulate_run(batch->prediction->program, &batch->prediction->timing, &options,
                               &job->result, &job->diag);
    if (job->status != STATUS_OK)
        atomic_store(&batch->failed, true);
}

static void *replicate_rest(void *argument)
{
    struct replication_batch *batch = argument;
    int number;
    while (!atomic_load(&batch->failed) &&
           (number = batch->rank + batch->size * atomic_fetch_add(&batch->next, 1)) < batch->count)
        replicate_one(batch, number);
    return NULL;
}

/* The first replication is done in the calling thread, where its observer may be told. A thread that cannot
   be created is no failure: the others do its part. */
static void do_batch(struct replication_batch *batch, int threads)
{
    pthread_t workers[PREDICT_MAX_THREADS];
    int started = 0, watched = batch->rank == 0;
    int mine = (batch->count - batch->rank + batch->size - 1) / batch->size;
    atomic_store(&batch->next, watched);
    while (started + 1 < threads && started + 1 < mine &&
           pthread_create(&workers[started], NULL, replicate_rest, batch) == 0)
        started++;
    if (watched)
        replicate_one(batch, 0);
    replicate_rest(batch);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

/* ---- summing up ------------------------------------------------------------------------------ */

static bool predict_add_account(struct stream_account *to, const struct stream_account *from)
{
    to->busy_ns += from->busy_ns;
    for (int i = 0; i < RESOURCE_COUNT; i++)
        to->slowed_ns[i] += from->slowed_ns[i];
    for (int i = 0; i < from->blame_count; i++)
        if (!stream_account_blame(to, &from->blames[i].stall, from->blames[i].ns))
            return false;
    return true;
}

/* The array of the first replication becomes the sum's. */
static void add_slowdowns(struct prediction *sum, struct simulation_result *result)
{
    if (!sum->slowdowns) {
        sum->slowdowns = result->slowdowns;
        result->slowdowns = NULL;
        return;
    }
    for (int i = 0; i < sharing_subject_count(sum->program); i++) {
        const struct slowdown *from = &result->slowdowns[i];
        sum->slowdowns[i].runs += from->runs;
        sum->slowdowns[i].work_ns += from->work_ns;
        for (int r = 0; r < RESOURCE_COUNT; r++)
            sum->slowdowns[i].slowed_ns[r] += from->slowed_ns[r];
    }
}

static bool add_result(struct prediction *sum, struct simulation_result *result, int number)
{
    const double share = 1.0 / sum->replications;
    const int each = program_all_ranks(sum->program) / sum->program->ranks;
    sum->makespan_ns += share * (double)result->makespan_ns;
    sum->fill_ns += result->fill_ns < 0 ? NAN : share * (double)result->fill_ns;
    sum->drain_ns += result->drain_ns < 0 ? NAN : share * (double)result->drain_ns;
    sum->total_ns += result->makespan_ns;
    sum->in_flight_mean += (double)result->in_flight_ns;
    sum->tasks += each * result->tasks;
    sum->steps += each * result->steps;
    sum->violated |= result->violated;
    if (result->in_flight_max > sum->in_flight_max)
        sum->in_flight_max = result->in_flight_max;
    if (result->in_flight_bytes_max > sum->in_flight_bytes_max)
        sum->in_flight_bytes_max = result->in_flight_bytes_max;
    add_slowdowns(sum, result);
    for (int s = 0; s < result->stream_count; s++)
        if (!predict_add_account(&sum->streams[s], &result->streams[s]))
            return false;
    if (result->blocked_count && sum->blocked_replication < 0) {
        sum->blocked = result->blocked;
        sum->blocked_count = result->blocked_count;
        sum->blocked_replication = number;
        result->blocked = NULL;
        result->blocked_count = 0;
    }
    return true;
}

/* The mean and the interval of one figure over the replications. */
static double over_jobs(const struct replication_job *jobs, int count, double *scratch,
                        size_t offset, struct interval *in)
{
    double mean = 0;
    assert(count > 0 && offset + sizeof *scratch <= sizeof jobs->result.iteration);
    for (int i = 0; i < count; i++) {
        memcpy(&scratch[i], (const char *)&jobs[i].result.iteration + offset, sizeof *scratch);
        mean += scratch[i] / count;
    }
    *in = statistics_mean(scratch, count);
    return mean;
}

/* With several replications all figures are means over them, and intervals are those of the means. */
static bool sum_iterations(struct prediction *sum, const struct replication_job *jobs)
{
    int count = sum->replications;
    struct iteration_figures *figures = &sum->iteration;
    *figures = jobs[0].result.iteration;
    const bool iterates = sum->program->tasks || sum->program->repeats;
    if (!iterates)
        *figures = (struct iteration_figures){.mean = NAN,
                                              .p50 = NAN,
                                              .p95 = NAN,
                                              .p99 = NAN,
                                              .mean_in = {NAN, NAN},
                                              .p50_in = {NAN, NAN},
                                              .p95_in = {NAN, NAN},
                                              .p99_in = {NAN, NAN}};
    if (!iterates || count == 1)
        return true;
    double *scratch = malloc((size_t)count * sizeof *scratch);
    sum->means_ns = malloc((size_t)count * sizeof *sum->means_ns);
    if (!scratch || !sum->means_ns) {
        free(scratch);
        return false;
    }
#define OVER_JOBS(field)                                                                           \
    figures->field = over_jobs(jobs, count, scratch, offsetof(struct iteration_figures, field),    \
                               &figures->field##_in)
    OVER_JOBS(p50);
    OVER_JOBS(p95);
    OVER_JOBS(p99);
    OVER_JOBS(mean);
#undef OVER_JOBS
    memcpy(sum->means_ns, scratch, (size_t)count * sizeof *scratch);
    free(scratch);
    figures->count = 0;
    for (int i = 0; i < count; i++)
        figures->count += jobs[i].result.iteration.count;
    if (figures->doubt != DOUBT_FEW && figures->doubt != DOUBT_WARM_UP)
        figures->doubt = count < STATISTICS_BATCHES ? DOUBT_REPLICATIONS : DOUBT_NONE;
    return true;
}

bool prediction_has_iterations(const struct prediction *prediction)
{
    return !isnan(prediction->iteration.mean);
}

/* Why there is no time to compare; NULL: there is. */
static const char *why_no_time(const struct prediction *prediction, double time_ns)
{
    if (prediction->blocked_count > 0 || isnan(time_ns))
        return "the predicted run does not come to its end";
    return time_ns > 0 ? NULL : "no work of the plan has a time";
}

bool prediction_keeps_bounds(const struct prediction *prediction, bool expect, int64_t most_ns,
                             bool *asked, struct diag *diag)
{
    const struct program *p = prediction->program;
    const struct plan *plan = p->plan;
    const struct expectation *expectation =
        p->driver == DRIVER_DATAFLOW ? &plan->expect_dataflow : &plan->expect;
    const int64_t below_ns = expect ? expectation->below_ns : 0;
    const bool iterations = prediction_has_iterations(prediction);
    const double time_ns = iterations ? prediction->iteration.mean : prediction->makespan_ns;
    const char *driver = p->driver == DRIVER_NONE ? "" : driver_key(p->driver),
               *what = iterations ? "an iteration" : "the run",
               *why_not = why_no_time(prediction, time_ns);
    char takes[UNITS_TEXT], wanted[UNITS_TEXT], told[2 * UNITS_TEXT + 64];
    *asked = below_ns > 0 || most_ns > 0;
    units_show_time(time_ns, takes);
    if (why_not)
        snprintf(told, sizeof told, "%s", why_not);
    else
        snprintf(told, sizeof told, "%s takes %s", what, takes);
    const bool long_for_plan = below_ns > 0 && (why_not || !(time_ns < (double)below_ns)),
               long_for_option = most_ns > 0 && (why_not || time_ns > (double)most_ns);
    if (long_for_plan) {
        units_print_time(below_ns, wanted);
        diag_error_at(diag, plan->file, plan->text, expectation->below_mark,
                      "%s%s%s, expected less than %s", driver, *driver ? " driver: " : "", told,
                      wanted);
    }
    if (long_for_option) {
        units_print_time(most_ns, wanted);
        diag_error(diag, STATUS_VIOLATED, "%s%s%s: %s, --max-iteration is %s", plan->file,
                   *driver ? ", driver " : "", driver, told, wanted);
    }
    return !long_for_plan && !long_for_option;
}

double prediction_difference(const struct prediction *a, const struct prediction *b,
                             struct interval *in)
{
    double mean = NAN;
    *in = (struct interval){NAN, NAN};
    if (!prediction_has_iterations(a) && !prediction_has_iterations(b))
        return b->makespan_ns - a->makespan_ns;
    if (a->means_ns && b->means_ns && a->replications == b->replications)
        *in = statistics_difference(a->means_ns, b->means_ns, a->replications, &mean);
    else if (!a->means_ns && !b->means_ns && a->iteration.part_count == b->iteration.part_count)
        *in = statistics_difference(a->iteration.parts, b->iteration.parts, a->iteration.part_count,
                                    &mean);
    return mean;
}

int prediction_compute_stream(const struct prediction *prediction, int rank)
{
    static const char *const names[] = {"compute", PLAN_IMPLICIT_STREAM};
    const struct program *p = prediction->program;
    assert(rank >= 0 && rank < p->ranks);
    const int *streams = p->rank_streams + p->rank_first[rank];
    int count = p->rank_first[rank + 1] - p->rank_first[rank], busiest = -1;
    for (int i = 0; i < count; i++)
        if (busiest < 0 ||
            prediction->streams[streams[i]].busy_ns > prediction->streams[busiest].busy_ns)
            busiest = streams[i];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int i = 0; i < count; i++)
            if (strcmp(p->streams[streams[i]].name, names[n]) == 0 &&
                prediction->streams[streams[i]].busy_ns > 0)
                return streams[i];
    return busiest;
}

static double find_bubble(const struct prediction *prediction)
{
    double busy = 0, total = 0;
    for (int rank = 0; rank < prediction->program->ranks; rank++) {
        int stream = prediction_compute_stream(prediction, rank);
        if (stream < 0)
            continue;
        busy += (double)prediction->streams[stream].busy_ns;
        total += (double)prediction->total_ns;
    }
    return total > 0 ? 1 - busy / total : NAN;
}

/* True if every nanosecond of the total is busy or has a cause. For assertions. */
static bool accounts_for(const struct stream_account *account, int64_t total_ns)
{
    int64_t sum_ns = account->busy_ns;
    for (int i = 0; i < STALL_COUNT; i++)
        sum_ns += account->stall_ns[i];
    return sum_ns == total_ns;
}

static enum status predict_sum_up(struct prediction *sum, struct replication_job *jobs,
                                  struct diag *diag)
{
    size_t streams = (size_t)sum->program->stream_count;
    sum->blocked_replication = -1;
    sum->streams = calloc(streams + 1, sizeof *sum->streams);
    if (!sum->streams)
        return diag_no_memory(diag);
    for (int i = 0; i < sum->replications; i++)
        if (!add_result(sum, &jobs[i].result, i))
            return diag_no_memory(diag);
    for (size_t s = 0; s < streams; s++) {
        stream_account_finish(&sum->streams[s]);
        assert(accounts_for(&sum->streams[s], sum->total_ns));
    }
    if (!sum_iterations(sum, jobs))
        return diag_no_memory(diag);
    sum->in_flight_mean = sum->program->tasks && sum->total_ns
                              ? sum->in_flight_mean / sum->program->ranks / (double)sum->total_ns
                              : NAN;
    sum->throughput_per_s = sum->iteration.mean > 0 ? 1e9 / sum->iteration.mean : NAN;
    sum->bubble = find_bubble(sum);
    return STATUS_OK;
}

/* Messages of the replications go to the caller's diag, the first failure only. */
static enum status first_failure(struct replication_job *jobs, int count, struct diag *diag)
{
    for (int i = 0; i < count; i++) {
        if (jobs[i].status == STATUS_OK)
            continue;
        for (size_t k = 0; k < jobs[i].diag.count; k++)
            diag_error(diag, jobs[i].status, "%s", jobs[i].diag.messages[k].text);
        if (jobs[i].diag.out_of_memory)
            diag_no_memory(diag);
        return jobs[i].status;
    }
    return STATUS_OK;
}

/* ---- several processes ----------------------------------------------------------------------- */

/* On rank 0: the other ranks' replications go where they would be, had they been done here. */
static enum status predict_gather(struct replication_batch *batch, const struct result_wire *wire,
                                  double *cpu_seconds, struct diag *diag)
{
    struct simulation_result **results = calloc((size_t)batch->count, sizeof *results);
    if (!results) {
        result_wire_drop(wire);
        return diag_no_memory(diag);
    }
    for (int i = 0; i < batch->count; i++)
        results[i] = &batch->jobs[i].result;
    enum status status = result_wire_gather(wire, batch->prediction->program, results, batch->count,
                                            cpu_seconds, diag);
    free(results);
    return status;
}

/* On another rank: what was found here goes to rank 0. */
static enum status predict_deliver(const struct replication_batch *batch,
                                   const struct result_wire *wire, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int number = batch->rank; !status && number < batch->count; number += batch->size)
        status = result_wire_send(wire, batch->prediction->program, number,
                                  &batch->jobs[number].result, diag);
    return status;
}

/* ---- all replications ------------------------------------------------------------------------ */

static enum status open_batch(struct replication_batch *batch, struct prediction *prediction,
                              const struct predict_options *options, struct diag *diag)
{
    int count = prediction->replications;
    *batch = (struct replication_batch){.prediction = prediction,
                                        .observer = options->observer,
                                        .in_flight = prediction->in_flight,
                                        .interrupted = options->interrupted,
                                        .jobs = calloc((size_t)count, sizeof *batch->jobs),
                                        .count = count,
                                        .rank = options->wire ? options->wire->rank : 0,
                                        .size = options->wire ? options->wire->size : 1};
    if (!batch->jobs)
        return diag_no_memory(diag);
    for (int i = 0; i < count; i++)
        diag_init(&batch->jobs[i].diag);
    return STATUS_OK;
}

static void close_batch(struct replication_batch *batch)
{
    for (int i = 0; batch->jobs && i < batch->count; i++) {
        diag_fini(&batch->jobs[i].diag);
        simulation_fini(&batch->jobs[i].result);
    }
    free(batch->jobs);
}

/* An interrupted batch becomes the one of the replications that are complete, from the first one on. */
static enum status keep_complete(struct replication_batch *batch, struct prediction *prediction,
                                 struct diag *diag)
{
    int complete = 0;
    while (complete < batch->count && batch->jobs[complete].result.streams)
        complete++;
    if (complete == batch->count)
        return STATUS_OK;
    if (complete == 0)
        return first_failure(batch->jobs, batch->count, diag);
    diag_note(diag, "interrupted: the figures are of the first %d of %d replications", complete,
              batch->count);
    for (int i = complete; i < batch->count; i++) {
        simulation_fini(&batch->jobs[i].result);
        diag_fini(&batch->jobs[i].diag);
    }
    batch->count = prediction->replications = complete;
    return STATUS_OK;
}

/* On rank 0 `heard` becomes true once the others have been heard to the end. */
static enum status do_replications(struct replication_batch *batch, struct prediction *prediction,
                                   const struct predict_options *options, bool *heard,
                                   struct diag *diag)
{
    const struct result_wire *wire = options->wire;
    do_batch(batch, options->threads);
    enum status status = STATUS_OK;
    if (!wire && options->interrupted && atomic_load(options->interrupted))
        status = keep_complete(batch, prediction, diag);
    if (!status)
        status = first_failure(batch->jobs, batch->count, diag);
    if (status)
        return status;
    if (wire && wire->rank > 0)
        return predict_deliver(batch, wire, diag);
    if (wire) {
        status = predict_gather(batch, wire, &prediction->cpu_seconds, diag);
        *heard = true;
    }
    return status ? status : predict_sum_up(prediction, batch->jobs, diag);
}

static enum status replicate_here(struct prediction *prediction,
                                  const struct predict_options *options, bool *heard,
                                  struct diag *diag)
{
    struct replication_batch batch;
    enum status status = open_batch(&batch, prediction, options, diag);
    if (status == STATUS_OK)
        status = do_replications(&batch, prediction, options, heard, diag);
    close_batch(&batch);
    return status;
}

/* Together with the other ranks, if there are any: each rank that has begun reports how it ended. */
static enum status replicate(struct prediction *prediction, const struct predict_options *options,
                             struct diag *diag)
{
    const struct result_wire *wire = options->wire;
    bool heard = false;
    if (!wire)
        return replicate_here(prediction, options, &heard, diag);
    double cpu = seconds_now(CLOCK_PROCESS_CPUTIME_ID);
    enum status status = wire->begin(wire->context, diag);
    if (status != STATUS_OK)
        return status;
    status = replicate_here(prediction, options, &heard, diag);
    if (wire->rank == 0 && !heard)
        result_wire_drop(wire);
    if (wire->rank == 0)
        return status;
    enum status told =
        result_wire_end(wire, status, seconds_now(CLOCK_PROCESS_CPUTIME_ID) - cpu, diag, diag);
    return status ? status : told;
}

/* With an observer that finds the critical path of the first replication, which is rank 0's, if that is
   wanted. */
static enum status replicate_watched(struct prediction *prediction,
                                     const struct predict_options *options, struct diag *diag)
{
    if (!options->critical_path || (options->wire && options->wire->rank > 0))
        return replicate(prediction, options, diag);
    struct predict_options watched = *options;
    struct path_watch *watch =
        path_watch_open(prediction->program, *options->critical_path, options->observer, diag);
    if (!watch)
        return STATUS_SYSTEM;
    watched.observer = path_watch_observer(watch);
    enum status status = replicate(prediction, &watched, diag);
    if (status == STATUS_OK) {
        prediction->critical_path = calloc(1, sizeof *prediction->critical_path);
        status = prediction->critical_path ? path_watch_take(watch, prediction->critical_path)
                                           : diag_no_memory(diag);
    }
    path_watch_close(watch);
    return status;
}

/* More bytes than a rank may hold in every run. */
static enum status predict_judge_memory(struct prediction *prediction, const struct plan *plan,
                                        struct diag *diag)
{
    struct arena arena;
    const char *sentence = NULL;
    arena_init(&arena, 0);
    enum status status = memory_tell(plan, prediction->program, &arena, &sentence, diag);
    if (sentence)
        prediction->violated |= 1u << PROPERTY_BOUND;
    arena_fini(&arena);
    return status;
}

/* The accounts of programs that leave no choice, whose graph has the dates. */
static bool account_straight(const struct program *program, struct simulation_result *result)
{
    const struct straight *graph = program->straight;
    bool ok = true;
    for (int s = 0; s < graph->stream_count; s++) {
        const struct straight_stream *from = &graph->streams[s];
        struct stream_account *to = &result->streams[s];
        const int first = graph->rank_first[from->rank],
                  count = graph->rank_first[from->rank + 1] - first;
        int64_t rest_ns = graph->end_ns - from->busy_ns - from->peer_ns;
        to->busy_ns = from->busy_ns;
        for (int k = 0; k < count; k++) {
            const int agent = program_stream_agent(program, first + k);
            ok &= stream_account_blame(to, &(struct stall){STALL_DEPENDENCE, ~agent},
                                       from->dependence_ns[k]);
            rest_ns -= from->dependence_ns[k];
        }
        ok &= stream_account_blame(to, &(struct stall){STALL_PEER, STALL_ON_NONE}, from->peer_ns);
        ok &= stream_account_blame(to, &(struct stall){STALL_NO_MORE_DATA, STALL_ON_NONE}, rest_ns);
    }
    return ok;
}

static enum status replicate_straight(struct prediction *prediction, struct diag *diag)
{
    const struct program *program = prediction->program;
    const struct straight *graph = program->straight;
    struct replication_job job = {
        .result = {.makespan_ns = graph->end_ns,
                   .steps = (int64_t)graph->machine_steps,
                   .tasks = graph->step_count,
                   .streams = calloc((size_t)graph->stream_count + 1, sizeof *job.result.streams),
                   .stream_count = graph->stream_count,
                   .fill_ns = -1,
                   .drain_ns = -1}};
    assert(prediction->replications == 1 && graph->stream_count == program->stream_count);
    enum status status = job.result.streams && account_straight(program, &job.result)
                             ? predict_sum_up(prediction, &job, diag)
                             : diag_no_memory(diag);
    simulation_fini(&job.result);
    return status;
}

/* The same with an observer that finds what the ranks of rank programs do and hold. */
static enum status replicate_lists(struct prediction *prediction, const struct plan *plan,
                                   const struct predict_options *options, struct diag *diag)
{
    struct predict_options watched = *options;
    struct pipeline_watch *watch =
        pipeline_watch_open(plan, prediction->program, options->observer, diag);
    if (!watch)
        return STATUS_SYSTEM;
    watched.observer = pipeline_watch_observer(watch);
    enum status status = prediction->program->straight
                             ? replicate_straight(prediction, diag)
                             : replicate_watched(prediction, &watched, diag);
    if (status == STATUS_OK) {
        prediction->pipeline = calloc(1, sizeof *prediction->pipeline);
        status = prediction->pipeline ? pipeline_watch_take(watch, prediction->pipeline, diag)
                                      : diag_no_memory(diag);
    }
    pipeline_watch_close(watch);
    return status;
}

/* With what rank 0 alone reports. */
static enum status replicate_ranks(struct prediction *prediction, const struct plan *plan,
                                   const struct predict_options *options, struct diag *diag)
{
    if (options->wire && options->wire->rank > 0)
        return replicate_watched(prediction, options, diag);
    enum status status = plan->form == FORM_PROGRAMS
                             ? replicate_lists(prediction, plan, options, diag)
                             : replicate_watched(prediction, options, diag);
    return status == STATUS_OK ? predict_judge_memory(prediction, plan, diag) : status;
}

/* ---- exposed times --------------------------------------------------------------------------- */

/*
 * By how much the mean iteration is longer than in a short run of the same random numbers in which the task takes no time.
 * Once as the plan is run, and once with one iteration at a time.
 */

enum { EXPOSED_ITERATIONS = 50, EXPOSED_DEPTHS = 4, EXPOSED_JITTER_ITERATIONS = 1000 };

/* Mean iteration time of a short run. */
static enum status short_run(const struct program *program, const struct timing *timing,
                             uint64_t seed, double *out_ns, struct diag *diag)
{
    struct simulation_result result;
    const struct simulate_options options = {.seed = seed};
    enum status status = simulate_run(program, timing, &options, &result, diag);
    if (status != STATUS_OK)
        return status;
    *out_ns = result.blocked_count ? NAN : result.iteration.mean;
    simulation_fini(&result);
    return STATUS_OK;
}

/* The same random numbers with and without the task, so that only the task makes the difference. */
static enum status expose(const struct program *program, const struct timing *timing, uint64_t seed,
                          double *mean_ns, double *exposed_ns, struct diag *diag)
{
    double with_ns = NAN;
    enum status status = short_run(program, timing, seed, &with_ns, diag);
    *mean_ns = with_ns;
    for (int task = 0; status == STATUS_OK && task < program->tasks; task++) {
        struct timing without;
        double without_ns = NAN;
        status = timing_without(&without, timing, task, diag);
        if (status != STATUS_OK)
            return status;
        status = short_run(program, &without, seed, &without_ns, diag);
        timing_fini(&without);
        exposed_ns[task] = with_ns - without_ns;
    }
    return status;
}

/* True if it is asked for, or found in a short time, and the plan has iterations that end. */
static bool exposed_is_wanted(const struct prediction *prediction,
                              const struct predict_options *options)
{
    const struct program *p = prediction->program;
    if (p->tasks == 0 || isnan(prediction->iteration.mean) || options->exposed == EXPOSED_NEVER)
        return false;
    return options->exposed == EXPOSED_ALWAYS ||
           (p->tasks <= PREDICT_EXPOSED_TASKS && p->ranks <= PREDICT_EXPOSED_RANKS);
}

/* A short run of the plan under some driver. */
struct rehearsal {
    struct program *program;
    struct timing timing;
};

static enum status rehearsal_open(struct rehearsal *out, const struct plan *plan,
                                  const struct predict_options *options,
                                  const struct program_options *how, struct diag *diag)
{
    struct rehearsal made;
    struct program_options timed = *how;
    timed.no_knowledge = true;
    if (options->interrupted && !atomic_load(options->interrupted)) /* else it is of the answer */
        timed.interrupted = options->interrupted;
    enum status status = program_build(plan, &timed, &made.program, diag);
    if (status != STATUS_OK)
        return status;
    status = timing_init(&made.timing, made.program, options->jitter, options->jitter_count, diag);
    if (status == STATUS_OK) {
        status = timing_change(&made.timing, options->times, options->time_count, diag);
        if (status == STATUS_OK) {
            *out = made;
            return STATUS_OK;
        }
        timing_fini(&made.timing);
    }
    program_close(made.program);
    return status;
}

static void rehearsal_close(struct rehearsal *rehearsal)
{
    timing_fini(&rehearsal->timing);
    program_close(rehearsal->program);
}

/* The cost of each task as the plan is run, or with one iteration at a time. */
static enum status find_exposed_in(struct prediction *prediction, const struct plan *plan,
                                   const struct predict_options *options,
                                   const struct program_options *how, double **out, double *mean_ns,
                                   struct diag *diag)
{
    struct rehearsal rehearsal;
    enum status status = rehearsal_open(&rehearsal, plan, options, how, diag);
    if (status != STATUS_OK)
        return status;
    *out = calloc((size_t)rehearsal.program->tasks, sizeof **out);
    if (!*out)
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status =
            expose(rehearsal.program, &rehearsal.timing, prediction->seed, mean_ns, *out, diag);
    rehearsal_close(&rehearsal);
    return status;
}

/* All at stage 0: a period is an iteration. */
static struct task *without_stages(struct arena *arena, const struct task *tasks, size_t count)
{
    struct task *copy = ARENA_ARRAY(arena, count, struct task);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = tasks[i];
        copy[i].stage = 0;
    }
    return copy;
}

/* The plan with one iteration at a time: the host waits for the device before it begins the next. Threads take their tasks,
   and tickets are given, in one topological order of the dependences within an iteration, so that no thread comes to a
   ticket that it has to give first. */
static enum status predict_make_serial(struct plan *serial, struct arena *arena, struct diag *diag)
{
    struct pipeline *pipeline = &serial->pipeline;
    int *order = ARENA_ARRAY(arena, pipeline->task_count, int);
    struct rank_override *overrides =
        ARENA_ARRAY(arena, pipeline->override_count, struct rank_override);
    pipeline->tasks = without_stages(arena, pipeline->tasks, pipeline->task_count);
    if (!order || !overrides || !pipeline->tasks)
        return diag_no_memory(diag);
    for (size_t i = 0; i < pipeline->override_count; i++) {
        overrides[i] = pipeline->overrides[i];
        overrides[i].has_order = false;
        if (!overrides[i].tasks)
            continue;
        overrides[i].tasks = without_stages(arena, overrides[i].tasks, pipeline->task_count);
        if (!overrides[i].tasks)
            return diag_no_memory(diag);
    }
    pipeline->overrides = overrides;
    pipeline->order = (struct order_spec){.kind = ORDER_EXPLICIT,
                                          .tasks = {.items = order, .count = pipeline->task_count}};
    pipeline->depth = 1;
    pipeline->num_slots_given = false;
    pipeline->retire = RETIRE_DEVICE;
    return order_topological(serial, order, diag);
}

static enum status find_serial_exposed(struct prediction *prediction, const struct plan *plan,
                                       const struct predict_options *options,
                                       struct program_options how, struct diag *diag)
{
    struct arena arena;
    struct plan serial = *plan;
    how.driver = DRIVER_CLOCK;
    how.max_depth = 0;
    arena_init(&arena, 0);
    enum status status = predict_make_serial(&serial, &arena, diag);
    if (status == STATUS_OK)
        status = find_exposed_in(prediction, &serial, options, &how, &prediction->serial_exposed_ns,
                                 &prediction->serial_ns, diag);
    arena_fini(&arena);
    return status;
}

/* Fills exposed_ns, exposed_iterations, serial_exposed_ns and serial_ns of a prediction whose program and timing are made. An
   error leaves what is filled to prediction_fini. */
static enum status exposed_find(struct prediction *prediction, const struct plan *plan,
                                const struct predict_options *options, struct diag *diag)
{
    struct program_options how = options->program;
    double mean_ns;
    int64_t wanted = EXPOSED_ITERATIONS + EXPOSED_DEPTHS * prediction->program->depth;
    if (prediction->timing.draw_count > 0 && wanted < EXPOSED_JITTER_ITERATIONS)
        wanted = EXPOSED_JITTER_ITERATIONS;
    if (how.iterations > wanted)
        how.iterations = wanted;
    prediction->exposed_iterations = how.iterations;
    how.ranks = prediction->program->options.ranks;
    how.stands_for = prediction->program->options.stands_for;
    enum status status =
        find_exposed_in(prediction, plan, options, &how, &prediction->exposed_ns, &mean_ns, diag);
    return status != STATUS_OK ? status : find_serial_exposed(prediction, plan, options, how, diag);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void find_penalty(struct prediction *prediction)
{
    const struct steady *steady = &prediction->steady;
    prediction->jitter_penalty = NAN;
    if (steady->kind != STEADY_EXACT || prediction->timing.draw_count == 0 || steady->num_ns == 0)
        return;
    double exact_ns = (double)steady->num_ns / (double)steady->den;
    prediction->jitter_penalty = prediction->iteration.mean / exact_ns - 1;
}

/* A plan that hangs in its drain has a period until then, but no run that lasts. */
static void give_up_steady(struct prediction *prediction)
{
    struct steady *steady = &prediction->steady;
    if (prediction->blocked_count == 0 || steady->kind != STEADY_EXACT)
        return;
    steady_fini(steady);
    *steady = (struct steady){.kind = STEADY_UNKNOWN};
    snprintf(steady->why, sizeof steady->why, "the run ends in a deadlock");
}

static int ranks_of(const struct plan *plan, const struct predict_options *options)
{
    return options->program.ranks ? options->program.ranks : plan_rank_count(plan);
}

static bool may_vary(const struct dist *dist)
{
    return dist->kind != DIST_CONSTANT || dist->spike_probability > 0;
}

/* True if the times of the tasks do not vary, and each rank of the pipeline meets the others as if it were alone. */
static bool tasks_meet_alone(const struct plan *plan)
{
    bool alone = plan_ranks_meet_alone(plan);
    for (int t = 0; alone && t < (int)plan->pipeline.task_count; t++)
        alone = !may_vary(&plan_task(plan, 0, t)->jitter) &&
                !may_vary(&plan_task(plan, 0, t)->host_jitter);
    return alone;
}

static bool is_watched(const struct predict_options *options)
{
    const struct simulate_observer *observer = options->observer;
    return options->begin || options->critical_path || options->wire ||
           (observer &&
            (observer->span || observer->work || observer->iteration || observer->step));
}

/* Equal ranks whose times do not vary do the same at the same times, and each meets the others as if it were alone: one stands for
   all, of groups one pipeline. Not where they share something, or connect to each other, or where each is watched, maybe by
   another process. */
static bool one_rank_stands_for_all(const struct plan *plan, const struct predict_options *options)
{
    const int ranks = ranks_of(plan, options);
    bool alike = ranks > 1 && ranks <= PLAN_MAX_RANKS && !is_watched(options) &&
                 options->jitter_count == 0 && plan->machine.cores == 0 &&
                 (plan->form == FORM_PIPELINE
                      ? tasks_meet_alone(plan)
                      : plan->form == FORM_PROGRAMS && parallel_replicas_are_alike(plan));
    for (size_t c = 0; c < plan->comm_count; c++)
        alike &= plan->comms[c].time_limit_ns == 0;
    return alike;
}

/* True if nothing varies or watches what the program does. */
static bool dates_will_do(const struct predict_options *options)
{
    return !is_watched(options) && options->replications == 1 && options->jitter_count == 0 &&
           options->time_count == 0;
}

/* The program and its timing, of one rank or of all. */
static enum status predict_build(struct prediction *prediction, const struct plan *plan,
                                 const struct predict_options *options, bool one, struct diag *diag)
{
    /* Times need no knowledge of what happened before. */
    struct program_options timed = options->program;
    timed.no_knowledge = true;
    timed.interrupted = options->interrupted;
    timed.keep_lists = plan->form == FORM_PROGRAMS && !(options->wire && options->wire->rank > 0);
    timed.straight = timed.keep_lists && dates_will_do(options);
    if (one) {
        timed.ranks = plan->form == FORM_PIPELINE ? 1 : 0;
        timed.few = 1;
        timed.stands_for = ranks_of(plan, options);
    }
    enum status status = program_build(plan, &timed, &prediction->program, diag);
    if (status == STATUS_OK)
        status = timing_init(&prediction->timing, prediction->program, options->jitter,
                             options->jitter_count, diag);
    if (status == STATUS_OK)
        status = timing_change(&prediction->timing, options->times, options->time_count, diag);
    return status;
}

static enum status predict_into(struct prediction *prediction, const struct plan *plan,
                                const struct predict_options *options, bool one, struct diag *diag)
{
    enum status status = predict_build(prediction, plan, options, one, diag);
    assert(status != STATUS_OK || !one || prediction->timing.draw_count == 0);
    if (status == STATUS_OK && options->begin)
        status = options->begin(options->observer->context, prediction->program, diag);
    if (status == STATUS_OK && options->in_flight) {
        prediction->in_flight = calloc(1, sizeof *prediction->in_flight);
        if (!prediction->in_flight)
            status = diag_no_memory(diag);
    }
    if (status == STATUS_OK)
        status = replicate_ranks(prediction, plan, options, diag);
    if (options->wire && options->wire->rank > 0)
        return status;
    if (status == STATUS_OK)
        status = steady_find_by(prediction->program, &prediction->timing, STEADY_BY_RECURRENT_STATE,
                                &prediction->steady, diag);
    if (status == STATUS_OK)
        give_up_steady(prediction);
    if (status == STATUS_OK)
        status = time_limits_find(
            prediction->program, &prediction->timing,
            &(struct simulate_options){.seed = options->seed, .interrupted = options->interrupted},
            &prediction->overrun, diag);
    if (status == STATUS_OK && options->exposed != EXPOSED_NEVER)
        status = slack_find(prediction->program, &prediction->timing, &prediction->steady,
                            &prediction->slack_ns, diag);
    if (status == STATUS_OK)
        find_penalty(prediction);
    if (status == STATUS_OK && exposed_is_wanted(prediction, options))
        status = exposed_find(prediction, plan, options, diag);
    return status;
}

/* The message names what took the memory, and what a user changes to need less. */
static void note_size(const struct plan *plan, const struct predict_options *options,
                      struct diag *diag)
{
    const bool several = options->threads > 1 && options->replications > 1;
    const int ranks = ranks_of(plan, options);
    diag_note(diag, "a simulation of %d rank%s did not fit into memory%s: %s less", ranks,
              units_plural((size_t)ranks), several ? ", with others beside it" : "",
              plan->form == FORM_PIPELINE
                  ? several ? "fewer --ranks or --threads take" : "fewer --ranks take"
              : several ? "fewer --threads or a smaller plan take"
                        : "a smaller plan takes");
}

enum status predict(const struct plan *plan, const struct predict_options *options,
                    struct prediction *out, struct diag *diag)
{
    assert(options->replications >= 1 && options->replications <= PREDICT_MAX_REPLICATIONS);
    assert(options->threads >= 1 && options->threads <= PREDICT_MAX_THREADS);
    double start = seconds_now(CLOCK_MONOTONIC), cpu = seconds_now(CLOCK_PROCESS_CPUTIME_ID);
    const struct prediction begun = {
        .seed = options->seed, .replications = options->replications, .serial_ns = NAN};
    struct prediction prediction = begun;
    const bool one = one_rank_stands_for_all(plan, options);
    enum status status = predict_into(&prediction, plan, options, one, diag);
    if (status == STATUS_OK && one && prediction.blocked_count) { /* all that wait are told */
        prediction_fini(&prediction);
        prediction = begun;
        status = predict_into(&prediction, plan, options, false, diag);
    }
    if (status != STATUS_OK) {
        if (diag->out_of_memory)
            note_size(plan, options, diag);
        prediction_fini(&prediction);
        return status;
    }
    prediction.seconds = seconds_now(CLOCK_MONOTONIC) - start;
    prediction.cpu_seconds += seconds_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    *out = prediction;
    return STATUS_OK;
}

void prediction_fini(struct prediction *prediction)
{
    for (int s = 0; prediction->streams && s < prediction->program->stream_count; s++)
        stream_account_free(&prediction->streams[s]);
    free(prediction->streams);
    free(prediction->slowdowns);
    for (size_t i = 0; i < prediction->blocked_count; i++)
        free(prediction->blocked[i].waits_for);
    free(prediction->blocked);
    free(prediction->exposed_ns);
    free(prediction->in_flight);
    if (prediction->critical_path)
        critical_path_fini(prediction->critical_path);
    free(prediction->critical_path);
    if (prediction->pipeline)
        pipeline_figures_fini(prediction->pipeline);
    free(prediction->pipeline);
    free(prediction->slack_ns);
    free(prediction->serial_exposed_ns);
    free(prediction->means_ns);
    steady_fini(&prediction->steady);
    timing_fini(&prediction->timing);
    program_close(prediction->program);
    *prediction = (struct prediction){0};
}
