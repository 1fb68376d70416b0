/* SPDX-License-Identifier: Apache-2.0 */
/* proof_paths.c - paths from a task to another, over iterations; the hops are in proof_structure.c. */
#include "structure.h"
#include "base/assert_index.h"

static bool depends_on(const struct structure *s, int task, int on, int64_t distance)
{
    ASSERT_INDEX(task, s->p->tasks);
    for (int k = 0; k < s->p->depends[task].count; k++)
        if (s->p->depends[task].items[k].task == on &&
            s->p->depends[task].items[k].distance == distance)
            return true;
    return false;
}

enum { MOST_DEEP = 4 }; /* paths in hops of paths */

/* Where a path has come to from (task, i). */
struct path {
    int task, hops;
    int64_t length, count;
    bool submission, seen,
        retired; /* true if the driver knows of the source when it retires; true if that was the first hop */
};

static bool retired_hop(struct structure *s, struct path *path, int64_t *hop)
{
    if (!certificate_index(s->c, NULL, s->p->tasks, &path->task))
        return false;
    *hop = s->p->depth - (structure_is_clock(s) ? s->tasks[path->task].stage : 0);
    path->retired = path->seen && path->hops == 0;
    return path->retired || certificate_refuse(s->c, "the driver does not know of it");
}

static bool dependence_hop(struct structure *s, struct path *path, int64_t *hop)
{
    int from = path->task;
    return certificate_index(s->c, NULL, s->p->tasks, &path->task) &&
           certificate_number(s->c, NULL, 0, PLAN_MAX_DISTANCE, hop) &&
           (depends_on(s, path->task, from, *hop) ||
            certificate_refuse(s->c, "there is no such dependence"));
}

/* Tasks that one thread takes in some order are submitted in it, and done, being on one stream or of the host both. Work of the host
   on several streams orders nothing else: it leads no path on. */
static bool proof_paths_share_queue(const struct structure *s, const struct path *path, int from)
{
    const struct task *a = &s->tasks[from], *b = &s->tasks[path->task];
    bool hosts = structure_is_host(s, from) && structure_is_host(s, path->task);
    return (a->group == b->group &&
            (path->submission || a->stream == b->stream || (hosts && path->count == 1))) ||
           certificate_refuse(s->c, "the tasks share no queue");
}

/* The clock fills queues in the order of the keys, data-flow in that of turns. */
static bool queue_hop(struct structure *s, struct path *path, int64_t *hop)
{
    const struct program *p = s->p;
    int from = path->task;
    if (!certificate_index(s->c, "queue", p->tasks, &path->task))
        return certificate_refuse(s->c, "expected a hop");
    const int to = path->task;
    if (structure_is_clock(s))
        *hop = s->tasks[from].stage - s->tasks[to].stage + (s->place[from] >= s->place[to]);
    else if (program_ends_turn(p, 0, from) && program_ends_turn(p, 0, to))
        *hop = p->turn_stage[from] - p->turn_stage[to] +
               (p->ticket_position[from] >= p->ticket_position[to]);
    else
        return certificate_refuse(s->c, "tasks %d and %d do not have turns", from, to);
    *hop = *hop > 0 ? *hop : 0;
    return proof_paths_share_queue(s, path, from);
}

/* `first`, on which (X, i) depends, is submitted no later than the dependence that the certificate names of (Y, i + hop); or one
   submission is both, and fires in the order of the plan's dependences. */
static bool read_firing(struct structure *s, const struct edge *first, int to, int64_t hop)
{
    ASSERT_INDEX(to, s->p->tasks);
    const struct edge_list *seconds = &s->p->depends[to];
    int which = 0;
    if (!certificate_index(s->c, NULL, seconds->count, &which))
        return false;
    const struct edge *second = &seconds->items[which];
    int64_t length = first->dep >= second->dep;
    if (first->task != second->task &&
        !structure_read_path(s, first->task, second->task, true, &length))
        return false;
    return length <= hop + first->distance - second->distance ||
           certificate_refuse(s->c, "task %d may be fired before", to);
}

/* Data-flow: (X, i) is fired, into the queue of its worker, before (Y, i + hop). One admission may fire both where hop is 0,
   in the enqueue order, unless Y waits for a submission of its own iteration. */
static bool fired_hop(struct structure *s, struct path *path, int64_t *hop)
{
    const struct edge_list *firsts = &s->p->depends[path->task];
    int from = path->task, to = 0;
    if (!certificate_index(s->c, NULL, s->p->tasks, &to) ||
        !certificate_number(s->c, NULL, 0, PLAN_MAX_DEPTH, hop))
        return false;
    path->task = to;
    bool later = *hop > 0 || s->place[from] < s->place[to];
    for (int k = 0; k < s->p->depends[to].count; k++)
        later |= s->p->depends[to].items[k].distance == 0;
    if (structure_is_clock(s) || !later || program_ends_turn(s->p, 0, from))
        return certificate_refuse(s->c, "task %d may be fired before", to);
    for (int k = 0; k < firsts->count; k++)
        if (!read_firing(s, &firsts->items[k], to, *hop))
            return false;
    return proof_paths_share_queue(s, path, from);
}

static bool read_hop(struct structure *s, struct path *path)
{
    int64_t hop = 1;
    bool good = certificate_accept(s->c, "again")     ? true
                : certificate_accept(s->c, "on")      ? dependence_hop(s, path, &hop)
                : certificate_accept(s->c, "retired") ? retired_hop(s, path, &hop)
                : certificate_accept(s->c, "fired")   ? fired_hop(s, path, &hop)
                                                      : queue_hop(s, path, &hop);
    path->length += hop;
    path->hops++;
    return good && (path->length < STRUCTURE_FAR || certificate_refuse(s->c, "a path is too long"));
}

static bool read_hops(struct structure *s, struct path *path)
{
    bool good = s->deep < MOST_DEEP || certificate_refuse(s->c, "paths are nested too deep");
    s->deep++;
    while (good && path->hops < path->count)
        good = read_hop(s, path);
    s->deep--;
    return good;
}

/* To host work a CPU signal means that device work was submitted, no more: of its end only the driver knows. */
bool structure_read_path(struct structure *s, int from, int to, bool submission, int64_t *length)
{
    bool seen =
        submission || structure_is_host(s, from) || s->p->plan->pipeline.retire == RETIRE_DEVICE;
    struct path path = {.task = from, .submission = submission, .seen = seen};
    *length = STRUCTURE_FAR;
    if (certificate_accept(s->c, "none"))
        return true;
    if (!certificate_number(s->c, "path", 1, CERTIFICATE_MOST, &path.count) || !read_hops(s, &path))
        return false;
    *length = path.length;
    bool good = path.task == to;
    if (!submission && structure_is_host(s, to) && !structure_is_host(s, from))
        good &= path.retired;
    return good || certificate_refuse(s->c, "the path does not lead to task %d", to);
}
