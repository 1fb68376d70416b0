/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - import.h: the ledger of idle time, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "flight_calls.h"
#include "import.h"
#include "innermost.h"

#include "base/assert_index.h"
#include "base/columns.h"
#include "base/json.h"
#include "base/units.h"

struct json;

/*
 * What dumps of the flight recorder hold: of each rank and process group how many calls, how many of
 * them are over, and which is the first that is not.
 */

/* The calls of a rank, in one group or in all. */
struct report_tally {
    size_t calls, over, left_out;
    const struct flight_call *open; /* the first that is not over; NULL: none */
};

/* group: -1: of all. */
static struct report_tally tally_calls(const struct flight_rank *rank, int group)
{
    struct report_tally tally = {0};
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct flight_call *call = &rank->calls[i];
        if (group >= 0 && call->group != group)
            continue;
        tally.calls++;
        tally.over += call->completed;
        tally.left_out += call->left_out;
        if (!call->completed && !tally.open)
            tally.open = call;
    }
    return tally;
}

static const char *report_name_of(const struct flight_call *call)
{
    return call->part_count > 0 && call->parts[0].name ? call->parts[0].name : "a call";
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_tally(const struct report_tally *tally, FILE *out)
{
    fprintf(out, "%zu call%s, %zu over", tally->calls, tally->calls == 1 ? "" : "s", tally->over);
    if (tally->left_out)
        fprintf(out, ", %zu left out", tally->left_out);
    if (!tally->open)
        return;
    fprintf(out, "; not over: %s", report_name_of(tally->open));
    if (tally->open->number >= 0)
        fprintf(out, ", number %" PRId64, tally->open->number);
}

static void print_dump(const struct flight_job *job, const struct flight_rank *rank, FILE *out)
{
    const struct report_tally all = tally_calls(rank, -1);
    fprintf(out, "rank %" PRId64 ", %s: ", rank->rank, rank->file);
    print_tally(&all, out);
    fprintf(out, "%s\n", rank->is_ring ? "; the oldest entries are lost" : "");
    for (size_t g = 0; g < job->group_count; g++) {
        const struct report_tally own = tally_calls(rank, (int)g);
        if (own.calls == 0)
            continue;
        const char *name = job->groups[g].name;
        fprintf(out, "  group %s%*s %zu ranks: ", name, columns_fill(name, 12), "",
                job->groups[g].rank_count);
        print_tally(&own, out);
        fputc('\n', out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_tally(struct json *json, const struct report_tally *tally)
{
    json_put_int(json, "calls", (int64_t)tally->calls);
    json_put_int(json, "over", (int64_t)tally->over);
    json_put_int(json, "left_out", (int64_t)tally->left_out);
    json_put_string(json, "not_over", tally->open ? report_name_of(tally->open) : NULL);
    json_key(json, "not_over_number");
    if (tally->open && tally->open->number >= 0)
        json_int(json, tally->open->number);
    else
        json_null(json);
}

static void put_groups(struct json *json, const struct flight_job *job,
                       const struct flight_rank *rank)
{
    json_begin_array_at(json, "groups");
    for (size_t g = 0; g < job->group_count; g++) {
        const struct report_tally own = tally_calls(rank, (int)g);
        if (own.calls == 0)
            continue;
        json_begin_object(json);
        json_put_string(json, "group", job->groups[g].name);
        json_begin_array_at(json, "ranks");
        for (size_t i = 0; i < job->groups[g].rank_count; i++)
            json_int(json, job->groups[g].ranks[i]);
        json_end_array(json);
        put_tally(json, &own);
        json_end_object(json);
    }
    json_end_array(json);
}

/* As members of an object. */
static void report_dumps_json(const struct flight_job *job, struct json *json)
{
    json_begin_array_at(json, "ranks");
    for (size_t r = 0; r < job->rank_count; r++) {
        const struct flight_rank *rank = &job->ranks[r];
        const struct report_tally all = tally_calls(rank, -1);
        json_begin_object(json);
        json_put_string(json, "file", rank->file);
        json_put_int(json, "rank", rank->rank);
        json_put_bool(json, "lost_entries", rank->is_ring);
        put_tally(json, &all);
        put_groups(json, job, rank);
        json_end_object(json);
    }
    json_end_array(json);
}

/* The warnings of the validator; COUNT is a member of struct evidence. */
#define TRACE_WARNING_LIST(X)                                                                      \
    X(unlaunched, "operations of the device have no launch in the trace")                          \
    X(early, "operations of the device begin before their launch")                                 \
    X(overlapped, "operations of a stream begin before the one in front of them has ended")        \
    X(contradicted, "waits are contradicted by the times, and left out")                           \
    X(records_missing, "waits for events do not name the record that they wait for")               \
    X(records_unknown, "waits for events name a record that no call made")                         \
    X(still_running, "kernels still ran when a wait for their stream had ended")                   \
    X(groups_missing, "collectives do not name their process group")                               \
    X(duplicated, "calls and operations are in the trace more than once, and count once")

static void report_print_line(const char *name, const struct ledger *ledger, FILE *out)
{
    const int64_t idle = ledger_idle(ledger);
    char busy[UNITS_TEXT], text[UNITS_TEXT];
    units_show_time((double)ledger->busy_ns, busy);
    units_show_time((double)idle, text);
    fprintf(out, "  %s%*s busy %-8s  idle %-8s", name, columns_fill(name, 10), "", busy, text);
    const char *before = " ";
    for (int i = 0; i < IDLE_COUNT; i++) {
        if (ledger->idle_ns[i] == 0)
            continue;
        fprintf(out, "%s %.1f%% %s", before, 100 * (double)ledger->idle_ns[i] / (double)idle,
                idle_key((enum idle)i));
        before = ",";
    }
    fputc('\n', out);
}

static void print_warnings(const struct evidence *evidence, FILE *out)
{
#define X(member, words)                                                                           \
    if (evidence->member > 0)                                                                      \
        fprintf(out, "  %zu %s\n", evidence->member, words);
    TRACE_WARNING_LIST(X)
#undef X
}

/* What the host did while the device waited for its launches. */
static void print_host_shares(const struct job *job, const struct job_rank *rank,
                              const struct evidence *evidence, FILE *out)
{
    enum { SHOWN = 8, WORDS = 200 };
    struct host_shares shares;
    char time[UNITS_TEXT], words[WORDS];
    if (host_shares_find(job, rank, evidence, &shares) && shares.all_ns * 20 >= rank->end_ns) {
        units_show_time((double)shares.all_ns, time);
        fprintf(out, "  nothing was launched for %s; meanwhile the host was in\n", time);
        for (size_t i = 0; i < shares.count && i < SHOWN; i++) {
            if (shares.items[i].ns * 100 < shares.all_ns)
                break;
            units_show_time((double)shares.items[i].ns, time);
            innermost_words(job, &shares.items[i].place, words, sizeof words);
            fprintf(out, "    %8s  %3.0f%%  %s\n", time,
                    100 * (double)shares.items[i].ns / (double)shares.all_ns, words);
        }
    }
    host_shares_fini(&shares);
}

/* The operations of a device whose accesses an execution trace tells. */
static size_t report_count_told(const struct job_rank *rank)
{
    size_t count = 0;
    for (size_t i = 0; i < rank->work_count; i++)
        count += rank->works[i].accesses.count > 0;
    return count;
}

static void report_print_rank(const struct imported *imported, size_t r, FILE *out)
{
    ASSERT_INDEX(r, imported->job.rank_count);
    const struct job_rank *rank = &imported->job.ranks[r];
    const struct evidence *evidence = &imported->evidence[r];
    char name[STREAM_TEXT], measured[UNITS_TEXT];
    units_show_time((double)rank->end_ns, measured);
    fprintf(out, "rank %zu, %s: %s, %zu operation%s of the device, %zu call%s\n", r, rank->file,
            measured, rank->work_count, units_plural(rank->work_count), rank->call_count,
            units_plural(rank->call_count));
    for (size_t s = 0; s < rank->stream_count; s++) {
        if (rank->streams[s].count == 0)
            continue;
        report_print_line(job_stream_name(&rank->streams[s], name), &evidence->streams[s], out);
    }
    report_print_line("all", &evidence->total, out);
    print_host_shares(&imported->job, rank, evidence, out);
    if (rank->memory_count > 0)
        fprintf(out,
                "  %s tells what %zu of %zu operations access; CPU work touches it %zu time%s\n",
                rank->execution, report_count_told(rank), rank->work_count, rank->touch_count,
                units_plural(rank->touch_count));
    print_warnings(evidence, out);
}

void import_report(const struct imported *imported, FILE *out)
{
    if (imported->dumps.rank_count > 0) {
        const struct flight_job *job = &imported->dumps;
        for (size_t r = 0; r < job->rank_count; r++)
            print_dump(job, &job->ranks[r], out);
        return;
    }
    struct ledger sum = {0};
    for (size_t r = 0; r < imported->job.rank_count; r++) {
        report_print_rank(imported, r, out);
        ledger_add(&sum, &imported->evidence[r].total);
    }
    fprintf(out, "idle time by cause:\n");
    for (int i = 0; i < IDLE_COUNT; i++)
        if (sum.idle_ns[i] > 0)
            fprintf(out, "  %-12s %s\n", idle_key((enum idle)i), idle_words((enum idle)i));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_ledger(struct json *json, const struct ledger *ledger, int unexplained)
{
    json_put_int(json, "busy_ns", ledger->busy_ns);
    json_put_int(json, "overlap_ns", ledger->overlap_ns);
    json_begin_object_at(json, "idle_ns");
    for (int i = 0; i < IDLE_COUNT; i++)
        json_put_int(json, idle_key((enum idle)i), ledger->idle_ns[i]);
    json_end_object(json);
    json_put_double(json, "unexplained", unexplained / 1e6);
}

static void put_streams(struct json *json, const struct job_rank *rank,
                        const struct evidence *evidence)
{
    char name[STREAM_TEXT];
    json_begin_array_at(json, "streams");
    for (size_t s = 0; s < rank->stream_count; s++) {
        json_begin_object(json);
        json_put_int(json, "stream", rank->streams[s].number);
        json_put_string(json, "name", job_stream_name(&rank->streams[s], name));
        json_put_int(json, "operations", rank->streams[s].count);
        put_ledger(json, &evidence->streams[s], ledger_unexplained(&evidence->streams[s]));
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_host_shares(struct json *json, const struct job *job, const struct job_rank *rank,
                            const struct evidence *evidence)
{
    struct host_shares shares;
    const bool ok = host_shares_find(job, rank, evidence, &shares);
    json_begin_array_at(json, "host");
    for (size_t i = 0; ok && i < shares.count; i++) {
        const struct innermost_stretch *place = &shares.items[i].place;
        json_begin_object(json);
        json_put_string(json, "name", place->name >= 0 ? job->names.items[place->name] : NULL);
        json_put_string(json, "within",
                        place->within >= 0 ? job->names.items[place->within] : NULL);
        json_put_string(json, "line", place->line >= 0 ? job->names.items[place->line] : NULL);
        json_put_int(json, "ns", shares.items[i].ns);
        json_end_object(json);
    }
    json_end_array(json);
    host_shares_fini(&shares);
}

void import_report_json(const struct imported *imported, struct json *json)
{
    if (imported->dumps.rank_count > 0) {
        report_dumps_json(&imported->dumps, json);
        return;
    }
    json_begin_array_at(json, "ranks");
    for (size_t r = 0; r < imported->job.rank_count; r++) {
        const struct job_rank *rank = &imported->job.ranks[r];
        const struct evidence *evidence = &imported->evidence[r];
        json_begin_object(json);
        json_put_string(json, "file", rank->file);
        json_put_int(json, "measured_ns", rank->end_ns);
        json_put_int(json, "operations", (int64_t)rank->work_count);
        json_put_int(json, "calls", (int64_t)rank->call_count);
        json_put_int(json, "with_accesses", (int64_t)report_count_told(rank));
        put_ledger(json, &evidence->total, evidence_unexplained(rank, evidence, false));
        put_streams(json, rank, evidence);
        put_host_shares(json, &imported->job, rank, evidence);
#define X(member, words) json_put_int(json, #member, (int64_t)evidence->member);
        TRACE_WARNING_LIST(X)
#undef X
        json_end_object(json);
    }
    json_end_array(json);
}
