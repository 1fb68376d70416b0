/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_keep.c - kineto_internal.h: the category of an event decides what becomes of it. */
#include "kineto_internal.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/job/call_names.h"

#include "plan/schedules/pass_names.h"

enum { THREAD_TEXT = 64, SHORT = PLAN_MAX_NAME };

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* ---- what becomes of an event ---------------------------------------------------------------- */

static int intern(struct kineto *kineto, const char *name)
{
    return job_intern(kineto->job, name);
}

static int thread_of(struct kineto *kineto, const struct event *event)
{
    char name[2 * TEXT];
    snprintf(name, sizeof name, "%.*s/%.*s", THREAD_TEXT, event->pid.bytes, THREAD_TEXT,
             event->tid.bytes);
    return names_intern(&kineto->rank->threads, &kineto->job->arena, name);
}

/* The row of the device that the event stands in. */
static int row_of(struct kineto *kineto, const struct event *event)
{
    char name[THREAD_TEXT + 1];
    snprintf(name, sizeof name, "%.*s", THREAD_TEXT, event->pid.bytes);
    return names_intern(&kineto->rank->rows, &kineto->job->arena, name);
}

/* The rank of a number in a process group, by the list of its members; -1: a list that is cut off does not tell.
   Where no list is, or all that it shows are as in the group of all ranks, the number is the rank. */
static int64_t rank_of_member(const char *list, int64_t number)
{
    bool same = true;
    const char *at = *list == '[' ? list + 1 : "";
    for (int64_t i = 0; isdigit((unsigned char)*at); i++) {
        char *end;
        const int64_t rank = strtoll(at, &end, 10);
        if (*end != ',' && *end != ']')
            break;
        if (i == number)
            return rank;
        same = same && rank == i;
        at = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
    }
    return same ? number : -1;
}

/* A kernel that sends to one rank or receives from it, by the record of torch.distributed. */
static void find_message(const struct event *event, struct job_work *work)
{
    const int64_t peer = rank_of_member(event->ranks.bytes, event->peer);
    work->send = strcmp(event->collective.bytes, "send") == 0;
    work->is_message = event->peer >= 0 && peer >= 0 && peer <= INT_MAX &&
                       (work->send || strcmp(event->collective.bytes, "recv") == 0);
    work->peer = work->is_message ? (int)peer : -1;
    work->peer_is_member = work->is_message && event->ranks.bytes[0] == 0;
}

/* Events of a device have its streams as their threads: 7, or "stream 7"; -1: none is told. */
static int64_t row_stream(const struct event *event)
{
    const char *digits = strpbrk(event->tid.bytes, "0123456789");
    const bool negative = digits && digits > event->tid.bytes && digits[-1] == '-';
    return digits && !negative ? strtoll(digits, NULL, 10) : -1;
}

static bool keep_work(struct kineto *kineto, const struct event *event, enum work_class class)
{
    char name[SHORT];
    struct job_work work = {.class = class,
                            .stream =
                                job_stream(kineto->rank, event->device,
                                           event->stream >= 0 ? event->stream : row_stream(event)),
                            .row = row_of(kineto, event),
                            .place = kineto->place,
                            .bytes = event->bytes > 0 ? event->bytes : 0,
                            .correlation = event->correlation,
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns,
                            .call = -1,
                            .group = -1};
    if (class == CLASS_COPY) {
        work.direction = copy_direction(event->name.bytes);
        work.pageable = copy_is_pageable(event->name.bytes);
    }
    if (class == CLASS_KERNEL)
        work.is_collective = kernel_is_collective(event->name.bytes, &work.collective);
    if (work.is_collective)
        find_message(event, &work);
    if (event->group.bytes[0])
        work.group = intern(kineto, event->group.bytes);
    work.name = intern(kineto, kernel_short_name(event->name.bytes, name, sizeof name));
    return work.name >= 0 && work.stream >= 0 && work.row >= 0 && job_add_work(kineto->rank, &work);
}

static bool keep_call(struct kineto *kineto, const struct event *event)
{
    struct job_call call = {.place = kineto->place,
                            .correlation = event->correlation,
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns,
                            .sync = -1};
    if (!call_kind_of(event->name.bytes, &call.kind))
        return true;
    call.name = intern(kineto, event->name.bytes);
    call.thread = thread_of(kineto, event);
    return call.name >= 0 && call.thread >= 0 && job_add_call(kineto->rank, &call);
}

static bool keep_sync(struct kineto *kineto, const struct event *event)
{
    enum { NO_STREAM = -1, ALL_STREAMS = 0x7fffffff };
    const struct job_sync sync = {
        .correlation = event->correlation,
        .stream = event->stream > ALL_STREAMS ? NO_STREAM : event->stream,
        .source_stream = event->source_stream > ALL_STREAMS ? NO_STREAM : event->source_stream,
        .is_event = strstr(event->name.bytes, "Event") != NULL,
        .record = event->record,
        .row = row_of(kineto, event)};
    return sync.row >= 0 && job_add_sync(kineto->rank, &sync);
}

static bool keep_range(struct kineto *kineto, const struct event *event)
{
    struct job_range range = {.start_ns = event->start_ns,
                              .end_ns = event->start_ns + event->duration_ns};
    range.name = intern(kineto, event->name.bytes);
    range.thread = thread_of(kineto, event);
    return range.name >= 0 && range.thread >= 0 && job_add_range(kineto->rank, &range);
}

static bool keep_deed(struct kineto *kineto, const struct event *event, enum deed_kind kind)
{
    const bool message = strstr(event->name.bytes, "send") || strstr(event->name.bytes, "recv");
    struct job_deed deed = {.kind = kind,
                            .waits = event->waits && !message,
                            .peer = message ? event->peer : -1,
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns};
    deed.name = intern(kineto, event->name.bytes);
    deed.thread = thread_of(kineto, event);
    return deed.name >= 0 && deed.thread >= 0 && job_add_deed(kineto->rank, &deed);
}

/* Where operators of a thread begin and end: of nested ones the outer one. A trace with work of a device needs none. */
static bool keep_operator(struct kineto *kineto, const struct event *event)
{
    const bool same = strcmp(kineto->worked_tid.bytes, event->tid.bytes) == 0;
    if (kineto->rank->call_count > 0 || kineto->rank->work_count > 0 ||
        (same && event->start_ns < kineto->worked_end_ns))
        return true;
    if (!same) {
        kineto->worked_tid = event->tid;
        kineto->worked_thread = thread_of(kineto, event);
    }
    kineto->worked_end_ns = event->start_ns + event->duration_ns;
    const struct job_deed deed = {.kind = DEED_WORKED,
                                  .thread = kineto->worked_thread,
                                  .peer = -1,
                                  .start_ns = event->start_ns,
                                  .end_ns = kineto->worked_end_ns};
    return kineto->worked_thread >= 0 && job_add_deed(kineto->rank, &deed);
}

static bool keep_annotation(struct kineto *kineto, const struct event *event)
{
    return (!begins(event->name.bytes, "gloo:") || keep_deed(kineto, event, DEED_DONE)) &&
           keep_range(kineto, event);
}

static bool keep_mark(struct kineto *kineto, const struct event *event)
{
    struct job_mark mark = {.row = row_of(kineto, event),
                            .name = intern(kineto, event->name.bytes),
                            .stream = row_stream(event),
                            .start_ns = event->start_ns,
                            .end_ns = event->start_ns + event->duration_ns};
    return mark.row >= 0 && mark.name >= 0 && job_add_mark(kineto->rank, &mark);
}

/* Older files have annotations among the operators: PyTorch's own have a # in their names
   (enumerate(DataLoader)#..., Optimizer.step#...), which no operator has. */
static bool keep_event(struct kineto *kineto, const struct event *event)
{
    int64_t number;
    switch (event->category) {
    case CATEGORY_KERNEL: return keep_work(kineto, event, CLASS_KERNEL);
    case CATEGORY_COPY: return keep_work(kineto, event, CLASS_COPY);
    case CATEGORY_MEMSET: return keep_work(kineto, event, CLASS_MEMSET);
    case CATEGORY_RUNTIME:
    case CATEGORY_DRIVER:
    case CATEGORY_HIP_RUNTIME:
    case CATEGORY_PRIVATE: return keep_call(kineto, event);
    case CATEGORY_SYNC: return keep_sync(kineto, event);
    case CATEGORY_ANNOTATION: return keep_annotation(kineto, event);
    case CATEGORY_MARK: return keep_mark(kineto, event);
    case CATEGORY_PYTHON:
        return !begins(event->name.bytes, "<built-in method wait of ") ||
               keep_deed(kineto, event, DEED_WAIT);
    case CATEGORY_OPERATOR:
        if (kineto_is_distributed(event))
            return keep_deed(kineto, event, DEED_ASKED);
        return range_is_step(event->name.bytes, &number) || strchr(event->name.bytes, '#')
                   ? keep_range(kineto, event)
                   : keep_operator(kineto, event);
    case CATEGORY_OTHER:
    case CATEGORY_UNKNOWN: return true;
    }
    return true;
}

static enum status refuse_times(struct kineto *kineto, const struct event *event)
{
    return diag_error(kineto->diag, STATUS_INPUT,
                      "%s: '%.60s' begins or ends in no time that can be", kineto->rank->file,
                      event->name.bytes);
}

/* Annotations of the device are kept where they name a pass. */
static bool names_pass(const struct event *event)
{
    struct arena arena;
    struct action pass;
    arena_init(&arena, 0);
    const bool named = pass_name_read(event->name.bytes, &arena, &pass);
    arena_fini(&arena);
    return named;
}

enum status kineto_take_event(struct kineto *kineto, const struct event *event)
{
    if (event->phase != PHASE_COMPLETE || event->category >= CATEGORY_OTHER ||
        (event->category == CATEGORY_MARK && !names_pass(event)))
        return STATUS_OK;
    int64_t end_ns;
    kineto->place++;
    if (event->duration_ns < 0 || !event->has_start) {
        job_leave_out(&kineto->reversed, event->name.bytes);
        return STATUS_OK;
    }
    if (__builtin_add_overflow(event->start_ns, event->duration_ns, &end_ns) ||
        !job_times_are_sane(event->start_ns, end_ns))
        return refuse_times(kineto, event);
    return keep_event(kineto, event) ? STATUS_OK : diag_no_memory(kineto->diag);
}
