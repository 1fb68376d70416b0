/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c - a prediction as JSON; see report.h. */
#include "report_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/sort.h"

enum { NAME = 160 };

static void write_interval(const char *key, const struct interval *in, struct json *json)
{
    json_begin_array_at(json, key);
    json_double(json, in->low);
    json_double(json, in->high);
    json_end_array(json);
}

static void report_json_write_iteration(const struct iteration_figures *figures, struct json *json)
{
    json_begin_object_at(json, "iteration_ns");
    json_put_double(json, "mean", figures->mean);
    json_put_double(json, "p50", figures->p50);
    json_put_double(json, "p95", figures->p95);
    json_put_double(json, "p99", figures->p99);
    write_interval("ci95", &figures->mean_in, json);
    write_interval("p50_ci95", &figures->p50_in, json);
    write_interval("p95_ci95", &figures->p95_in, json);
    write_interval("p99_ci95", &figures->p99_in, json);
    json_put_int(json, "counted", figures->count);
    json_put_int(json, "warm_up", figures->warm_up);
    json_put_string(json, "doubt",
                    figures->doubt == DOUBT_NONE ? NULL : doubt_words(figures->doubt));
    json_end_object(json);
}

static void report_json_write_account(const struct prediction *prediction,
                                      const struct stream_account *account, int count,
                                      struct json *json)
{
    json_begin_object(json);
    json_put_double(json, "busy", report_share(prediction, account->busy_ns) / count);
    if (prediction->slowdowns) {
        json_begin_object_at(json, "slowed");
        for (int i = 0; i < RESOURCE_COUNT; i++)
            json_put_double(json, resource_key((enum resource)i),
                            report_share(prediction, account->slowed_ns[i]) / count);
        json_end_object(json);
    }
    json_begin_object_at(json, "stall");
    for (int i = 0; i < STALL_COUNT; i++)
        json_put_double(json, stall_key((enum stall_cause)i),
                        report_share(prediction, account->stall_ns[i]) / count);
    json_end_object(json);
}

/* The part of the dependence stalls each task (or stream, thread) is waited for. */
static void report_json_write_dependences(const struct prediction *prediction, int stream,
                                          struct json *json)
{
    const struct stream_account *account = &prediction->streams[stream];
    const struct program *p = prediction->program;
    json_begin_object_at(json, "dependence_on");
    for (int i = 0; i < account->blame_count; i++) {
        const struct stall *stall = &account->blames[i].stall;
        char name[NAME] = "others";
        if (stall->cause != STALL_DEPENDENCE)
            continue;
        if (stall->on >= 0)
            snprintf(name, sizeof name, "%s", p->plan->pipeline.tasks[stall->on].name);
        else if (stall->on != STALL_ON_NONE)
            program_agent_name(p, ~stall->on, name, sizeof name);
        json_put_double(json, name, report_share(prediction, account->blames[i].ns));
    }
    json_end_object(json);
}

/* The part of the resource stalls that each resource is lacking. */
static void write_resources(const struct prediction *prediction, int stream, struct json *json)
{
    const struct stream_account *account = &prediction->streams[stream];
    const int rank = prediction->program->streams[stream].rank;
    char name[2 * NAME];
    json_begin_object_at(json, "resource_on");
    for (int i = 0; i < account->blame_count; i++) {
        const struct stall *stall = &account->blames[i].stall;
        if (stall->cause != STALL_RESOURCE)
            continue;
        const char *held = stall_waits_for(prediction->program, rank, stall, name, sizeof name);
        json_put_double(json, held ? held : "others",
                        report_share(prediction, account->blames[i].ns));
    }
    json_end_object(json);
}

static void write_named(const struct prediction *prediction, int stream, struct json *json)
{
    report_json_write_dependences(prediction, stream, json);
    write_resources(prediction, stream, json);
}

/* One object for each stream name: the mean over the ranks that have it. */
static void report_json_write_streams(const struct prediction *prediction,
                                      const struct report_stream_row *rows, int count,
                                      struct json *json)
{
    const struct program *p = prediction->program;
    json_begin_object_at(json, "streams");
    for (int r = 0; r < count; r++) {
        json_key(json, p->streams[rows[r].stream].name);
        report_json_write_account(prediction, &rows[r].sum, rows[r].count, json);
        if (program_all_ranks(prediction->program) == 1)
            write_named(prediction, rows[r].stream, json);
        json_end_object(json);
    }
    json_end_object(json);
}

/* Those that are simulated; each stands for as many. */
static void report_json_write_ranks(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_begin_array_at(json, "ranks");
    for (int rank = 0; rank < p->ranks; rank++) {
        json_begin_object(json);
        json_put_int(json, "rank", program_stood_for(p, rank));
        json_put_int(json, "alike", program_all_ranks(p) / p->ranks);
        json_begin_object_at(json, "streams");
        for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
            const int stream = p->rank_streams[i];
            json_key(json, p->streams[stream].name);
            report_json_write_account(prediction, &prediction->streams[stream], 1, json);
            write_named(prediction, stream, json);
            json_end_object(json);
        }
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_exposed(const struct prediction *prediction, const char *key,
                          const double *exposed_ns, struct json *json)
{
    json_key(json, key);
    if (!exposed_ns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int t = 0; t < prediction->program->tasks; t++)
        json_put_double(json, prediction->program->plan->pipeline.tasks[t].name, exposed_ns[t]);
    json_end_object(json);
}

static void write_slack(const struct prediction *prediction, struct json *json)
{
    json_key(json, "slack_ns");
    if (!prediction->slack_ns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int t = 0; t < prediction->program->tasks; t++) {
        const char *name = prediction->program->plan->pipeline.tasks[t].name;
        if (prediction->slack_ns[t] >= 0)
            json_put_int(json, name, prediction->slack_ns[t]);
    }
    json_end_object(json);
}

/* Sums over all runs, in whole nanoseconds; null where no work can slow other work. */
static void write_slowdowns(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_key(json, "slowed");
    if (!prediction->slowdowns) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    for (int i = 0; i < sharing_subject_count(p); i++) {
        const struct slowdown *slowdown = &prediction->slowdowns[i];
        char name[2 * NAME];
        if (slowdown->runs == 0)
            continue;
        json_begin_object_at(json, sharing_subject_name(p, i, name, sizeof name));
        json_put_int(json, "runs", slowdown->runs);
        json_put_int(json, "alone_ns", slowdown->work_ns);
        for (int r = 0; r < RESOURCE_COUNT; r++)
            json_put_int(json, resource_key((enum resource)r), slowdown->slowed_ns[r]);
        json_end_object(json);
    }
    json_end_object(json);
}

/* The properties that the simulated run broke; it shows no races. */
static void report_json_write_violations(const struct prediction *prediction, struct json *json)
{
    json_begin_array_at(json, "violations");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (prediction->violated & 1u << p)
            json_string(json, property_key((enum property)p));
    json_end_array(json);
}

static void report_json_write_blocked(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    json_put_bool(json, "deadlock", prediction->blocked_count > 0);
    if (prediction->blocked_count == 0)
        return;
    json_begin_array_at(json, "blocked");
    for (size_t i = 0; i < prediction->blocked_count; i++) {
        const struct blocked *blocked = &prediction->blocked[i];
        char name[NAME];
        json_begin_object(json);
        int rank = p->agents[blocked->agent].rank;
        json_put_int(json, "rank", rank);
        json_put_string(json, "agent", agent_on_rank(p, rank, blocked->agent, name, sizeof name));
        json_put_string(json, "waits_for", blocked->waits_for);
        json_end_object(json);
    }
    json_end_array(json);
}

/* The operation that exceeds the time limit of its communicator first. */
static void report_json_write_overrun(const struct prediction *prediction, struct json *json)
{
    const struct program *p = prediction->program;
    const struct time_overrun *overrun = &prediction->overrun;
    char name[NAME];
    if (overrun->limit_ns == 0)
        return;
    const struct op *op = &p->ops[overrun->op];
    json_begin_object_at(json, "timeout");
    json_put_int(json, "rank", overrun->rank);
    json_put_string(json, "comm", p->comms[op->comm].name);
    json_put_string(json, "operation",
                    program_op_subject(p, op, overrun->iteration, name, sizeof name));
    json_put_int(json, "called_ns", overrun->called_ns);
    json_put_int(json, "taken_ns", overrun->taken_ns);
    json_put_int(json, "limit_ns", overrun->limit_ns);
    json_end_object(json);
}

static void report_json_write_part(const struct prediction *prediction,
                                   const struct steady_part *part, struct json *json)
{
    static const char *const kinds[] = {"driver", "host", "device"};
    const struct task *tasks = prediction->program->plan->pipeline.tasks;
    json_begin_object(json);
    json_put_string(json, "part", kinds[part->kind]);
    json_put_string(json, "task", part->task < 0 ? NULL : tasks[part->task].name);
    json_put_known(json, "rank", part->rank, part->rank >= 0);
    json_put_int(json, "ns", part->ns);
    json_end_object(json);
}

/* The tasks of the cycle in its order, each once in a row. */
static void write_critical_cycle(const struct prediction *prediction, struct json *json)
{
    const struct steady *steady = &prediction->steady;
    json_key(json, "critical_cycle");
    if (steady->kind == STEADY_UNKNOWN) {
        json_null(json);
        return;
    }
    int last = -1;
    json_begin_array(json);
    for (int i = 0; i < steady->part_count; i++) {
        int task = steady->parts[i].task;
        if (task >= 0 && task != last)
            json_string(json, prediction->program->plan->pipeline.tasks[task].name);
        last = task >= 0 ? task : last;
    }
    json_end_array(json);
}

/* The ratio is the exact figure, `steady_exact_ns` the nearest whole number. */
static void write_steady(const struct prediction *prediction, struct json *json)
{
    static const char *const ways[] = {"event_graph", "causes", "run"};
    const struct steady *steady = &prediction->steady;
    bool exact = steady->kind == STEADY_EXACT;
    json_put_double(json, "steady_exact_ns", round(report_steady_ns(steady)));
    json_key(json, "steady_exact_ratio");
    if (exact) {
        json_begin_array(json);
        json_int(json, steady->num_ns);
        json_int(json, steady->den);
        json_end_array(json);
    } else {
        json_null(json);
    }
    json_put_string(json, "steady_exact_way", exact ? ways[steady->way] : NULL);
    json_put_string(json, "steady_exact_why",
                    exact                             ? NULL
                    : steady->kind == STEADY_DEADLOCK ? "deadlock"
                                                      : steady->why);
    write_critical_cycle(prediction, json);
    json_key(json, "critical_parts");
    if (steady->kind == STEADY_UNKNOWN) {
        json_null(json);
        return;
    }
    json_begin_array(json);
    for (int i = 0; i < steady->part_count; i++)
        report_json_write_part(prediction, &steady->parts[i], json);
    json_end_array(json);
}

/* The iterations in flight on rank 0 from each time on. */
static void report_json_write_in_flight(const struct prediction *prediction, struct json *json)
{
    if (!prediction->in_flight)
        return;
    json_begin_array_at(json, "in_flight");
    for (int i = 0; i < prediction->in_flight->count; i++) {
        const struct in_flight_point *point = &prediction->in_flight->points[i];
        json_begin_object(json);
        json_put_int(json, "time_ns", point->time_ns);
        if (prediction->program->tasks)
            json_put_int(json, "iterations", point->iterations);
        json_put_int(json, "bytes", point->bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

static void report_json_write_body(const struct prediction *prediction,
                                   const struct report_stream_row *rows, int row_count,
                                   struct json *json)
{
    const struct program *p = prediction->program;
    int64_t most = p->tasks ? 0 : p->repeats ? p->repeats : 1;
    for (int rank = 0; p->tasks && rank < p->ranks; rank++)
        most = max_i64(most, p->ends[rank]);
    json_put_string(json, "plan", p->plan->name);
    json_put_string(json, "driver", driver_key(p->driver));
    json_put_int(json, "seed", (int64_t)prediction->seed);
    json_put_int(json, "iterations", most);
    json_put_int(json, "replications", prediction->replications);
    json_put_known(json, "cores", p->plan->machine.cores, p->plan->machine.cores > 0);
    json_put_int(json, "tasks_simulated", prediction->tasks);
    json_put_double(json, "seconds", prediction->seconds);
    json_put_double(json, "cpu_seconds", prediction->cpu_seconds);
    report_json_write_iteration(&prediction->iteration, json);
    json_put_double(json, "throughput_per_s", prediction->throughput_per_s);
    json_put_double(json, "fill_ns", prediction->fill_ns);
    json_put_double(json, "drain_ns", prediction->drain_ns);
    json_put_double(json, "makespan_ns", prediction->makespan_ns);
    json_put_bool(json, "untimed", report_is_untimed(prediction));
    write_steady(prediction, json);
    json_put_double(json, "jitter_penalty", prediction->jitter_penalty);
    json_put_double(json, "bubble", prediction->bubble);
    report_json_write_streams(prediction, rows, row_count, json);
    if (program_all_ranks(prediction->program) > 1)
        report_json_write_ranks(prediction, json);
    report_write_pipeline(prediction, json);
    write_slowdowns(prediction, json);
    write_exposed(prediction, "exposed_ns", prediction->exposed_ns, json);
    write_exposed(prediction, "serial_exposed_ns", prediction->serial_exposed_ns, json);
    json_put_double(json, "serial_ns", prediction->serial_ns);
    write_slack(prediction, json);
    if (prediction->critical_path) {
        json_key(json, "critical_path");
        critical_path_write(prediction->program, prediction->critical_path, json);
    }
    report_json_write_in_flight(prediction, json);
    json_put_int(json, "in_flight_bytes_max", prediction->in_flight_bytes_max);
    json_put_int(json, "in_flight_max", prediction->in_flight_max);
    json_put_double(json, "in_flight_mean", prediction->in_flight_mean);
    report_json_write_violations(prediction, json);
    report_json_write_blocked(prediction, json);
    report_json_write_overrun(prediction, json);
}

/* By how much longer than the base an iteration is with the same random numbers. */
static void write_change(const struct prediction *prediction, const struct report_row *row,
                         struct json *json)
{
    if (!row->what_if && !row->base)
        return;
    if (row->what_if)
        json_put_string(json, "what_if", row->what_if);
    if (!row->base)
        return;
    struct interval in;
    json_put_string(json, "compared_with", driver_key(row->base->program->driver));
    json_put_double(json, "difference_ns", prediction_difference(row->base, prediction, &in));
    write_interval("difference_ci95", &in, json);
}

enum status report_write(const struct prediction *prediction, const struct report_row *row,
                         struct json *json, struct diag *diag)
{
    struct report_stream_row *rows =
        calloc((size_t)prediction->program->stream_count + 1, sizeof *rows);
    if (!rows)
        return diag_no_memory(diag);
    int count = report_rows(prediction, rows);
    json_begin_document(json, DOCUMENT_PREDICTION);
    if (row->swept) {
        json_begin_object_at(json, "swept");
        json_put_int(json, row->swept, row->value);
        json_end_object(json);
    }
    write_change(prediction, row, json);
    if (row->within)
        json_put_bool(json, "within", *row->within);
    report_json_write_body(prediction, rows, count, json);
    if (row->warnings)
        warnings_write(row->warnings, prediction->program->plan->file, json);
    json_end_object(json);
    free(rows);
    return STATUS_OK;
}
