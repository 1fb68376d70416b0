/* SPDX-License-Identifier: Apache-2.0 */
/* lean_program.c - see lean.h: questions about the program, the conditions of "plain", names. */
#include "lean.h"

#include <stdarg.h>
#include <string.h>

enum { BYTE_MAX = 255, NONE = -1, MANY = -2, WORD = 48 };

/* ---- questions about the program ------------------------------------------------------------- */

/* The operation that records the event of a task, by rank * tasks + task. */
static const struct op *record_of(const struct program *p, int family)
{
    const struct body *body = &p->bodies[family];
    int k = body->count - 1;
    while (p->ops[body->first + k].kind != OP_RECORD)
        k--; /* every task records its event */
    return &p->ops[body->first + k];
}

const struct body *lean_body(const struct program *p, int rank, int task)
{
    return &p->bodies[rank * p->tasks + task];
}

const struct op *lean_work(const struct program *p, int rank, int task)
{
    const struct body *body = lean_body(p, rank, task);
    for (int k = 0; k < body->count; k++) {
        const struct op *op = &p->ops[body->first + k];
        if (op_is_device_work(op->kind))
            return op;
    }
    return NULL;
}

int lean_stream(const struct program *p, int rank, int task)
{
    return record_of(p, rank * p->tasks + task)->stream;
}

bool lean_waits_across(const struct program *p, const struct op *wait)
{
    return record_of(p, wait->object)->stream != wait->stream;
}

/* With few iterations the launch queue has room for all of them. */
bool lean_is_bounded(const struct program *p, int stream)
{
    int64_t items = 0;
    for (size_t k = 0; k < p->op_count; k++)
        items += op_pushes(p->ops[k].kind) && p->ops[k].stream == stream;
    return p->plan->pipeline.retire == RETIRE_SUBMIT &&
           items * p->ends[p->streams[stream].rank] > p->streams[stream].cap;
}

/* A sync looks at the count, and so does a record of work of the host. */
bool lean_counts_busy(const struct program *p, int stream)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_SYNC &&
            (p->ops[k].sync == SYNC_DEVICE || p->ops[k].stream == stream))
            return true;
    int rank = p->streams[stream].rank;
    for (int task = 0; task < p->tasks; task++)
        if (lean_stream(p, rank, task) == stream && !lean_work(p, rank, task))
            return true;
    return false;
}

int lean_stream_member(const struct program *p, int stream)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_COLLECTIVE && p->ops[k].stream == stream)
            return promela_member(p, &p->ops[k]);
    return -1;
}

bool lean_is_exclusive(const struct lean *m, int stream)
{
    return !m->exact && !lean_is_bounded(m->p, stream) && !lean_counts_busy(m->p, stream) &&
           lean_stream_member(m->p, stream) < 0;
}

bool lean_is_awaited(const struct program *p, int task)
{
    return p->fires[task].count > 0;
}

bool lean_signal_is_local(const struct program *p, int rank, int task)
{
    const struct edge_list *fires = &p->fires[task];
    bool local = lean_is_awaited(p, task);
    for (int k = 0; k < fires->count; k++)
        local &=
            p->worker[rank * p->tasks + fires->items[k].task] == p->worker[rank * p->tasks + task];
    return local;
}

/* ---- is it plain? ---------------------------------------------------------------------------- */

static bool knobs_are_plain(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    const struct machine_spec *machine = &p->plan->machine;
    return p->slots_safe && pipeline->retired_dep == RETIRED_DEP_WAIT &&
           pipeline->forget_done == FORGET_NEVER && pipeline->ticket_at != TICKET_AT_FIRE &&
           machine->sm_slots == 0 && p->hw_queue_count == 0 && machine->launch_queue == 0 &&
           !machine->first_use_blocks && !machine->launch_order_implicit && !machine->lazy_load &&
           !plan_legacy_stream(p->plan);
}

static bool counts_fit(const struct program *p)
{
    for (int rank = 0; rank < p->ranks; rank++)
        if (p->ends[rank] < 1 || p->ends[rank] + p->periods + p->depth >= BYTE_MAX ||
            p->tasks * (p->ends[rank] < p->window ? p->ends[rank] : p->window) >= BYTE_MAX)
            return false;
    return p->tasks < BYTE_MAX;
}

static int workers_of(const struct program *p, int rank)
{
    int workers = 0;
    for (int t = 0; t < p->thread_count; t++)
        workers += p->threads[t].kind == THREAD_WORKER && p->threads[t].rank == rank;
    return workers;
}

/* Work of the host pushes a record and no work. The record must take effect together with the item
   before it, so it may not wait for another stream. */
static bool body_is_plain(const struct program *p, int rank, int task)
{
    const struct body *body = &p->bodies[rank * p->tasks + task];
    bool works = false, waits = false;
    for (int k = 0; k < body->count; k++) {
        const struct op *op = &p->ops[body->first + k];
        if (op->kind == OP_GROUP || (op->kind == OP_SYNC && op->sync == SYNC_LOAD) ||
            op_may_sync(op))
            return false;
        if (op->kind == OP_SYNC && op->sync == SYNC_DEVICE && workers_of(p, rank) > 1)
            return false;
        works |= op_is_device_work(op->kind);
        waits |= op->kind == OP_WAIT && lean_waits_across(p, op);
    }
    return works || (!waits && p->plan->pipeline.retire == RETIRE_DEVICE);
}

static void note(int *user, int found)
{
    *user = *user == NONE || *user == found ? found : MANY;
}

/* One worker pushes to each stream; one stream serves each member of a communicator; under the clock
   one worker takes the tickets of a rank, so it never waits for its turn; one task has turns under data-flow. */
static bool users_are_single(const struct program *p)
{
    bool single = true;
    for (int s = 0; s < p->stream_count; s++) {
        int pusher = NONE;
        for (int k = 0; k < p->ranks * p->tasks; k++)
            if (record_of(p, k)->stream == s)
                note(&pusher, p->worker[k]);
        single &= pusher != MANY;
    }
    for (int member = 0; member < p->member_count; member++) {
        int stream = NONE;
        for (size_t k = 0; k < p->op_count; k++)
            if (p->ops[k].kind == OP_COLLECTIVE && promela_member(p, &p->ops[k]) == member)
                note(&stream, p->ops[k].stream);
        single &= stream != MANY;
    }
    for (int rank = 0; rank < p->ranks; rank++)
        single &= !program_fires_by_turn(p) || p->ordered_tasks[rank] <= 1;
    for (int rank = 0; rank < p->ranks && p->driver == DRIVER_CLOCK; rank++) {
        int taker = NONE;
        for (int task = 0; task < p->tasks; task++)
            if (p->ticket_position[rank * p->tasks + task] >= 0)
                note(&taker, p->worker[rank * p->tasks + task]);
        single &= taker != MANY;
    }
    return single;
}

bool lean_is_plain(const struct program *p)
{
    if (p->tasks == 0 || !knobs_are_plain(p) || !counts_fit(p) || !users_are_single(p))
        return false;
    for (int k = 0; k < p->ranks * p->tasks; k++)
        if (!body_is_plain(p, k / p->tasks, k % p->tasks))
            return false;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A task's name as a word of Promela. Returns buf. */
static const char *word_of(const char *name, char *buf, size_t cap)
{
    size_t length = 0;
    for (; name[length] && length + 1 < cap; length++) {
        char c = name[length];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        buf[length] = good ? c : '_';
    }
    buf[length] = '\0';
    return buf;
}

/* Do two tasks become the same word? */
bool lean_words_clash(const struct program *p)
{
    char a[WORD], b[WORD];
    for (int i = 0; i < p->tasks; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(word_of(p->plan->pipeline.tasks[i].name, a, sizeof a),
                       word_of(p->plan->pipeline.tasks[j].name, b, sizeof b)) == 0)
                return true;
    return false;
}

void put(const struct lean *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(m->model.out, format, args);
    va_end(args);
}

void lean_put_of(const struct lean *m, const char *what, int rank, int task)
{
    char word[WORD];
    put(m, "%s_", what);
    if (rank >= 0 && m->p->ranks > 1)
        put(m, "%d_", rank);
    if (m->numbered)
        put(m, "%d", task);
    else
        put(m, "%s", word_of(m->p->plan->pipeline.tasks[task].name, word, sizeof word));
}

void lean_put_task(const struct lean *m, int task)
{
    lean_put_of(m, "T", -1, task);
}

void lean_put_ahead(const struct lean *m, const char *what, int rank, int on, int distance,
                    const char *other, int task)
{
    lean_put_of(m, what, rank, on);
    if (distance)
        put(m, " + %d", distance);
    put(m, " > ");
    lean_put_of(m, other, rank, task);
}
