/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - see kineto.h: the object around the events, and the job that it tells of. */
#include "kineto.h"

#include <string.h>

#include "host_work.h"
#include "kineto_internal.h"
#include "kineto_open.h"
#include "processes.h"

/* ---- the file -------------------------------------------------------------------------------- */

/* An event as it is read: "X" is complete, "B" waits for its "E". */
static enum status take_phase(struct kineto *kineto, struct open_events *open,
                              const struct event *event)
{
    struct event whole;
    if (event->phase == PHASE_BEGIN)
        return open_events_begin(open, event, kineto->rank->file, kineto->diag);
    if (event->phase != PHASE_END)
        return kineto_take_event(kineto, event);
    return open_events_end(open, event, &whole) ? kineto_take_event(kineto, &whole) : STATUS_OK;
}

static enum status read_list(struct kineto *kineto, struct open_events *open)
{
    struct json_reader *reader = &kineto->reader;
    struct event event;
    enum json_token token;
    kineto->has_events = true;
    while ((token = json_next(reader)) == JSON_OBJECT) {
        enum status status = kineto_read_event(kineto, &event);
        if (status == STATUS_OK)
            status = take_phase(kineto, open, &event);
        if (status != STATUS_OK)
            return status;
    }
    return token == JSON_ARRAY_END ? STATUS_OK : json_refuse(reader, "an event of the trace, '{'");
}

static enum status read_events(struct kineto *kineto)
{
    struct open_events open = {0};
    const enum status status = read_list(kineto, &open);
    if (status == STATUS_OK && open.count > 0)
        diag_warn(kineto->diag, "%s: %zu events that begin and do not end are left out",
                  kineto->rank->file, open.count);
    open_events_fini(&open);
    return status == STATUS_OK
               ? job_check_reversed(&kineto->reversed, kineto->place - kineto->reversed.count,
                                    kineto->rank->file, kineto->diag)
               : status;
}

/* The file is a list of events, whose ']' may be missing where the program that wrote it has ended early. */
static enum status read_bare_list(struct kineto *kineto)
{
    kineto->reader.end_is_optional = true;
    const enum status status = read_events(kineto);
    if (status == STATUS_OK && kineto->reader.has_no_end)
        diag_warn(kineto->diag,
                  "%s: its list of events has no end (']'): later events may be missing",
                  kineto->rank->file);
    return status;
}

/* A list of ranks; of anything else nothing is taken. False: no memory. */
static bool read_members(struct kineto *kineto, struct job_members *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    bool ok = true;
    if (token != JSON_ARRAY) {
        json_skip_rest(reader, token);
        return true;
    }
    while ((token = json_next(reader)) == JSON_NUMBER) {
        ok = ok && arena_grow(&kineto->job->arena, (void **)&out->ranks, out->count, &out->cap,
                              sizeof *out->ranks);
        if (ok && decimal_scaled(reader->text, reader->length, 0, &out->ranks[out->count]))
            out->count++;
    }
    if (token != JSON_ARRAY_END)
        json_skip_rest(reader, token);
    return ok;
}

static bool keep_group(struct kineto *kineto, const char *name, const struct job_members *members)
{
    struct job_rank *rank = kineto->rank;
    const int at = names_intern(&rank->groups, &kineto->job->arena, name);
    while (at >= 0 && rank->members_count <= (size_t)at) {
        if (!arena_grow(&kineto->job->arena, (void **)&rank->members, rank->members_count,
                        &rank->members_cap, sizeof *rank->members))
            return false;
        rank->members[rank->members_count++] = (struct job_members){0};
    }
    if (at >= 0)
        rank->members[at] = *members;
    return at >= 0;
}

/* A process group of distributedInfo. */
static enum status read_group(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    struct text name = {{0}};
    struct job_members members = {0};
    int64_t size = 0;
    bool found, ok = true;
    enum json_token token;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader))
        if (json_text_is(reader, "pg_name"))
            kineto_read_text(kineto, &name);
        else if (json_text_is(reader, "pg_size"))
            kineto_read_number(kineto, 0, &size, &found);
        else if (json_text_is(reader, "ranks"))
            ok = read_members(kineto, &members) && ok;
        else
            json_skip(reader);
    if (!ok || (size > 0 && !keep_group(kineto, name.bytes, &members)))
        return diag_no_memory(kineto->diag);
    return reader->status;
}

static enum status read_groups(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY)
        return json_skip_rest(reader, token) ? STATUS_OK : reader->status;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (token = json_next(reader)) == JSON_OBJECT)
        status = read_group(kineto);
    return status != STATUS_OK || token == JSON_ARRAY_END || json_skip_rest(reader, token)
               ? status
               : reader->status;
}

static enum status read_distributed(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    bool found;
    if (token != JSON_OBJECT)
        return json_skip_rest(reader, token) ? STATUS_OK : reader->status;
    enum status status = STATUS_OK;
    for (token = json_next(reader); status == STATUS_OK && token == JSON_KEY;
         token = json_next(reader))
        if (json_text_is(reader, "rank"))
            kineto_read_number(kineto, 0, &kineto->rank->number, &found);
        else if (json_text_is(reader, "world_size"))
            kineto_read_number(kineto, 0, &kineto->rank->world, &found);
        else if (json_text_is(reader, "pg_config"))
            status = read_groups(kineto);
        else
            json_skip(reader);
    return status != STATUS_OK ? status : reader->status;
}

static enum status read_top(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token;
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        bool found;
        enum status status = STATUS_OK;
        if (json_text_is(reader, "traceEvents"))
            status = json_next(reader) == JSON_ARRAY
                         ? read_events(kineto)
                         : json_refuse(reader, "a list of events behind \"traceEvents\"");
        else if (json_text_is(reader, "baseTimeNanoseconds"))
            kineto_read_number(kineto, 0, &kineto->base_ns, &found);
        else if (json_text_is(reader, "distributedInfo"))
            status = read_distributed(kineto);
        else
            json_skip(reader);
        if (status != STATUS_OK)
            return status;
    }
    return reader->status;
}

static enum status read_file(struct kineto *kineto)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    enum status status = token == JSON_OBJECT  ? read_top(kineto)
                         : token == JSON_ARRAY ? read_bare_list(kineto)
                                               : json_refuse(reader, "a trace, '{' or '['");
    if (status == STATUS_OK && json_next(reader) != JSON_DONE)
        status = reader->status;
    if (status == STATUS_OK && !kineto->has_events)
        status = diag_error(kineto->diag, STATUS_INPUT, "%s: it has no \"traceEvents\": no trace",
                            kineto->rank->file);
    return status;
}

/* The members of a group are listed in distributedInfo, maybe behind the events. */
static void find_peer(const struct job *job, const struct job_rank *rank, struct job_work *work)
{
    const char *name = work->group >= 0 ? job->names.items[work->group] : NULL;
    for (size_t g = 0; work->peer_is_member && name && g < rank->members_count; g++)
        if (strcmp(rank->groups.items[g], name) == 0 && (size_t)work->peer < rank->members[g].count)
            work->peer = (int)rank->members[g].ranks[work->peer];
}

/* Names the way of each message, "0.1to2"; what a rank without a number sends stays a collective of its group. */
static bool name_messages(struct job *job, struct job_rank *rank)
{
    for (size_t i = 0; i < rank->work_count; i++) {
        struct job_work *work = &rank->works[i];
        if (!work->is_message)
            continue;
        find_peer(job, rank, work);
        work->is_message = rank->number >= 0 && rank->number != work->peer;
        if (!work->is_message)
            continue;
        const long long own = (long long)rank->number, other = work->peer;
        const char *way = arena_printf(&job->arena, "%s.%lldto%lld",
                                       work->group >= 0 ? job->names.items[work->group] : "nccl",
                                       work->send ? own : other, work->send ? other : own);
        work->group = way ? job_intern(job, way) : -1;
        if (work->group < 0)
            return false;
    }
    return true;
}

enum status kineto_read(struct bytes *bytes, struct job *job, struct diag *diag)
{
    struct kineto kineto = {.job = job, .diag = diag};
    const size_t first = job->rank_count;
    kineto.rank = job_add_rank(job, bytes_name(bytes));
    if (!kineto.rank)
        return diag_no_memory(diag);
    enum status status = json_reader_open(&kineto.reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = read_file(&kineto);
    json_reader_close(&kineto.reader);
    /* It may stand behind the events. */
    if (status == STATUS_OK && kineto.base_ns > 0 && job_times_are_sane(0, kineto.base_ns))
        job_shift(kineto.rank, -kineto.base_ns);
    if (status == STATUS_OK && !name_messages(job, kineto.rank))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        status = processes_split(job, job->rank_count - 1, diag);
    for (size_t r = first; status == STATUS_OK && r < job->rank_count; r++)
        if (host_work_is_all(&job->ranks[r]))
            status = host_work_make(job, &job->ranks[r], diag);
    return status;
}
