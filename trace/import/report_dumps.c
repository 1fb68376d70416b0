/* SPDX-License-Identifier: Apache-2.0 */
/* report_dumps.c - see report_dumps.h. */
#include "report_dumps.h"

#include <inttypes.h>

#include "base/columns.h"
#include "base/json.h"

/* The calls of a rank, in one group or in all. */
struct tally {
    size_t calls, over, left_out;
    const struct flight_call *open; /* the first that is not over; NULL: none */
};

/* group: -1: of all. */
static struct tally tally_calls(const struct flight_rank *rank, int group)
{
    struct tally tally = {0};
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

static const char *name_of(const struct flight_call *call)
{
    return call->part_count > 0 && call->parts[0].name ? call->parts[0].name : "a call";
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_tally(const struct tally *tally, FILE *out)
{
    fprintf(out, "%zu call%s, %zu over", tally->calls, tally->calls == 1 ? "" : "s", tally->over);
    if (tally->left_out)
        fprintf(out, ", %zu left out", tally->left_out);
    if (!tally->open)
        return;
    fprintf(out, "; not over: %s", name_of(tally->open));
    if (tally->open->number >= 0)
        fprintf(out, ", number %" PRId64, tally->open->number);
}

static void print_rank(const struct flight_job *job, const struct flight_rank *rank, FILE *out)
{
    const struct tally all = tally_calls(rank, -1);
    fprintf(out, "rank %" PRId64 ", %s: ", rank->rank, rank->file);
    print_tally(&all, out);
    fprintf(out, "%s\n", rank->is_ring ? "; the oldest entries are lost" : "");
    for (size_t g = 0; g < job->group_count; g++) {
        const struct tally own = tally_calls(rank, (int)g);
        if (own.calls == 0)
            continue;
        const char *name = job->groups[g].name;
        fprintf(out, "  group %s%*s %zu ranks: ", name, columns_fill(name, 12), "",
                job->groups[g].rank_count);
        print_tally(&own, out);
        fputc('\n', out);
    }
}

void report_dumps(const struct flight_job *job, FILE *out)
{
    for (size_t r = 0; r < job->rank_count; r++)
        print_rank(job, &job->ranks[r], out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_tally(struct json *json, const struct tally *tally)
{
    json_put_int(json, "calls", (int64_t)tally->calls);
    json_put_int(json, "over", (int64_t)tally->over);
    json_put_int(json, "left_out", (int64_t)tally->left_out);
    json_put_string(json, "not_over", tally->open ? name_of(tally->open) : NULL);
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
        const struct tally own = tally_calls(rank, (int)g);
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

void report_dumps_json(const struct flight_job *job, struct json *json)
{
    json_begin_array_at(json, "ranks");
    for (size_t r = 0; r < job->rank_count; r++) {
        const struct flight_rank *rank = &job->ranks[r];
        const struct tally all = tally_calls(rank, -1);
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
