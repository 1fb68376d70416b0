/* SPDX-License-Identifier: Apache-2.0 */
/* proof_paths.c - paths from a task to another, over iterations; the hops are in proof_structure.c. */
#include "structure.h"

#include <inttypes.h>

static bool depends_on(const struct structure *s, int task, int on, int64_t distance)
{
    for (int k = 0; k < s->p->depends[task].count; k++)
        if (s->p->depends[task].items[k].task == on &&
            s->p->depends[task].items[k].distance == distance)
            return true;
    return false;
}

/* Where a path has come to from (task, i). */
struct path {
    int task, hops;
    int64_t length;
    bool seen,
        retired; /* does the driver know of the source when it retires; was that the first hop? */
};

static bool retired_hop(struct structure *s, struct path *path, int64_t *hop)
{
    if (!certificate_index(s->c, s->p->tasks, &path->task))
        return false;
    *hop = s->p->depth - (structure_is_clock(s) ? s->tasks[path->task].stage : 0);
    path->retired = path->seen && path->hops == 0;
    return path->retired ||
           certificate_refuse(s->c, "line %" PRId64 ": the driver does not know of it", s->c->line);
}

static bool dependence_hop(struct structure *s, struct path *path, int64_t *hop)
{
    int from = path->task;
    return certificate_index(s->c, s->p->tasks, &path->task) &&
           certificate_number(s->c, 0, PLAN_MAX_DISTANCE, hop) &&
           (depends_on(s, path->task, from, *hop) ||
            certificate_refuse(s->c, "line %" PRId64 ": there is no such dependence", s->c->line));
}

static bool queue_hop(struct structure *s, struct path *path, int64_t *hop)
{
    int from = path->task;
    if (!certificate_expect(s->c, "queue") || !certificate_index(s->c, s->p->tasks, &path->task))
        return false;
    const struct task *a = &s->tasks[from], *b = &s->tasks[path->task];
    *hop = a->stage - b->stage + (s->place[from] >= s->place[path->task]);
    *hop = *hop > 0 ? *hop : 0;
    bool shared = structure_is_clock(s) && a->group == b->group && a->stream == b->stream &&
                  !structure_is_host(s, from) && !structure_is_host(s, path->task);
    return shared ||
           certificate_refuse(s->c, "line %" PRId64 ": the tasks share no queue", s->c->line);
}

static bool read_hop(struct structure *s, struct path *path)
{
    int64_t hop = 1;
    bool good = certificate_accept(s->c, "again")     ? true
                : certificate_accept(s->c, "on")      ? dependence_hop(s, path, &hop)
                : certificate_accept(s->c, "retired") ? retired_hop(s, path, &hop)
                                                      : queue_hop(s, path, &hop);
    path->length += hop;
    path->hops++;
    return good && (path->length < STRUCTURE_FAR || certificate_refuse(s->c, "a path is too long"));
}

/* To host work a CPU signal means that device work was submitted, no more: of its end only the driver knows. */
bool structure_read_path(struct structure *s, int from, int to, bool submission, int64_t *length)
{
    bool seen =
        submission || structure_is_host(s, from) || s->p->plan->pipeline.retire == RETIRE_DEVICE;
    struct path path = {.task = from, .seen = seen};
    int64_t count = 0;
    *length = STRUCTURE_FAR;
    if (certificate_accept(s->c, "none"))
        return true;
    if (!certificate_expect(s->c, "path") || !certificate_number(s->c, 1, CERTIFICATE_MOST, &count))
        return false;
    while (path.hops < count)
        if (!read_hop(s, &path))
            return false;
    *length = path.length;
    bool good = path.task == to;
    if (!submission && structure_is_host(s, to) && !structure_is_host(s, from))
        good &= path.retired;
    return good || certificate_refuse(s->c, "line %" PRId64 ": the path does not lead to task %d",
                                      s->c->line, to);
}
