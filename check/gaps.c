/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaps.c - see gaps.h.
 *
 * Edges, all of a length that is not negative:
 *
 *     on -> task   of length d, for every dependence of distance d
 *     T -> T       of length 1: not stored, it shortens no path between two tasks
 *     X -> Y       of length depth (data-flow) or depth less the stage of Y (clock), by way of the driver,
 *                  if it knows of X when the iteration is retired: not stored, the same for every such X
 *     X -> Y       clock: on one thread and one stream, as far as their keys say
 *     X -> Y       submission: on one thread, if X has neither a dependence nor a turn: the admission of its iteration puts
 *                  it into the queue, in the enqueue order, of length 0 if X comes first in it, else 1
 *
 * Of the last kind there is one for each two tasks of a thread and stream; a few say as much. With the
 * tasks of one stage in enqueue order,
 *
 *     X -> next of its stage                         0
 *     X -> first of an older stage (s less than X's) s + 1, and the first behind X's place: s
 *     X -> first of a younger stage                  0
 *     X -> first of its own stage                    1
 *
 * Shortest paths by levels: the tasks at distance 0, 1, 2 and so on (Dial 1969).
 */
#include "gaps.h"
#include "base/array.h"
#include "base/sort.h"

#include <assert.h>
#include <string.h>

enum { NONE = -1 };

int gaps_of_keys(const struct program *p, const int *place, int from, int to)
{
    const struct task *tasks = plan_task(p->plan, 0, 0);
    return tasks[from].stage - tasks[to].stage + (place[from] >= place[to]);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* A task of a thread and stream under the clock. */
struct keyed {
    int group, stream, stage, place, task;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return compare_then(compare_int(x->group, y->group),
                        compare_then(compare_int(x->stream, y->stream),
                                     compare_then(compare_int(x->stage, y->stage),
                                                  compare_int(x->place, y->place))));
}

static bool one_queue(const struct keyed *a, const struct keyed *b)
{
    return a->group == b->group && a->stream == b->stream;
}

/* An edge is counted, or stored where there is a table. */
static void gaps_add_edge(struct gaps *gaps, int from, int to, int length)
{
    if (gaps->edges)
        gaps->edges[gaps->first[from]++] = (struct gap_edge){to, length};
    else
        gaps->first[from]++;
    gaps->levels = length >= gaps->levels ? length + 1 : gaps->levels;
}

static void add_key_edge(struct gaps *gaps, int from, int to)
{
    int least = gaps_of_keys(gaps->program, gaps->place, from, to);
    if (from != to)
        gaps_add_edge(gaps, from, to, least > 0 ? least : 0);
}

/* From one task to those of one stage, tasks[first .. end). */
static void add_stage_edges(struct gaps *gaps, const struct keyed *tasks, int from, int first,
                            int end)
{
    const struct keyed *x = &tasks[from];
    const int behind = SORT_FIRST(i, first, end, tasks[i].place > x->place);
    add_key_edge(gaps, x->task, tasks[first].task);
    if (behind > first && behind < end && tasks[first].stage <= x->stage)
        add_key_edge(gaps, x->task, tasks[behind].task);
}

/* Between the tasks of one thread and stream, tasks[first .. end). */
static void add_queue_edges(struct gaps *gaps, const struct keyed *tasks, int first, int end)
{
    for (int stage = first, next; stage < end; stage = next) {
        for (next = stage; next < end && tasks[next].stage == tasks[stage].stage;)
            next++;
        for (int x = first; x < end; x++)
            add_stage_edges(gaps, tasks, x, stage, next);
    }
}

static void add_clock_edges(struct gaps *gaps, const struct keyed *tasks, int count)
{
    for (int first = 0, end; first < count; first = end) {
        for (end = first; end < count && one_queue(&tasks[end], &tasks[first]);)
            end++;
        add_queue_edges(gaps, tasks, first, end);
    }
}

bool gaps_fired_at_admission(const struct program *p, int task)
{
    return p->depends[task].count == 0 && !program_ends_turn(p, 0, task);
}

void gaps_firing_order(const struct program *p, int *missing, int *out)
{
    int count = 0;
    for (int t = 0; t < p->tasks; t++) {
        missing[t] = 0;
        for (int k = 0; k < p->depends[t].count; k++)
            missing[t] += p->depends[t].items[k].distance == 0;
    }
    for (int k = 0; k < p->tasks; k++)
        if (missing[p->order[0][k]] == 0)
            out[count++] = p->order[0][k];
    for (int at = 0; at < count; at++) {
        const struct edge_list *fires = &p->fires[out[at]];
        for (int k = 0; k < fires->count; k++)
            if (fires->items[k].distance == 0 && --missing[fires->items[k].task] == 0)
                out[count++] = fires->items[k].task;
    }
    assert(count == p->tasks);
}

/* Submission: from the tasks that an admission fires to the others of their thread. They are chained, so from the last one
   in front of a task is enough: in the first round of its iteration, in the second of the one before. */
static void add_admission_edges(struct gaps *gaps)
{
    const struct program *p = gaps->program;
    const struct task *tasks = plan_task(p->plan, 0, 0);
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < p->tasks; k++) {
            const int task = p->order[0][k];
            int *last = &gaps->admitted[tasks[task].group];
            if (*last >= 0 && *last != task)
                gaps_add_edge(gaps, *last, task, round);
            if (round == 0 && gaps_fired_at_admission(p, task))
                *last = task;
        }
    for (int t = 0; t < p->tasks; t++)
        gaps->admitted[tasks[t].group] = NONE;
}

static void gaps_add_edges(struct gaps *gaps, const struct keyed *keyed, int keyed_count)
{
    const struct program *p = gaps->program;
    if (gaps->of == GAPS_OF_SUBMISSION)
        add_admission_edges(gaps);
    for (int task = 0; task < p->tasks; task++)
        for (int k = 0; k < p->depends[task].count; k++) {
            struct edge edge = p->depends[task].items[k];
            /* an elided wait is within one stream, which orders its tasks anyway */
            gaps_add_edge(gaps, edge.task, task, edge.distance);
        }
    add_clock_edges(gaps, keyed, keyed_count);
}

/* Host work is in no stream. */
static int find_keyed(const struct gaps *gaps, struct keyed *keyed)
{
    const struct program *p = gaps->program;
    const struct task *tasks = plan_task(p->plan, 0, 0);
    int count = 0;
    for (int t = 0; t < p->tasks && p->driver == DRIVER_CLOCK; t++)
        if (tasks[t].work.kind != WORK_HOST)
            keyed[count++] =
                (struct keyed){tasks[t].group, tasks[t].stream, tasks[t].stage, gaps->place[t], t};
    SORT(keyed, (size_t)count, compare_keyed);
    return count;
}

/* Counts become the places behind the edges of the tasks before. */
static int gaps_add_up(int *first, int count)
{
    int sum = 0;
    for (int i = 0; i <= count; i++) {
        int own = first[i];
        first[i] = sum;
        sum += own;
    }
    return sum;
}

/* ---- shortest paths -------------------------------------------------------------------------- */

/* A search that has looked at so many edges is long. */
enum { SHORT_EDGES = 256 };

static bool open_search(struct gaps *gaps)
{
    const size_t tasks = (size_t)gaps->program->tasks, visits = (size_t)gaps->edge_count + tasks;
    struct gaps_search *search = &gaps->search;
    search->visits = ARENA_ARRAY(&gaps->arena, visits, struct gap_visit);
    search->level = ARENA_ARRAY(&gaps->arena, (size_t)gaps->levels, struct gap_level);
    search->row = ARENA_ARRAY(&gaps->arena, tasks, int);
    if (gaps->arena.failed)
        return false;
    for (int i = 0; i < gaps->levels; i++)
        search->level[i] = (struct gap_level){NONE, NONE};
    for (size_t t = 0; t < tasks; t++)
        search->row[t] = GAP_FAR;
    return true;
}

static void visit_later(struct gaps *gaps, int task, int distance)
{
    struct gaps_search *search = &gaps->search;
    struct gap_level *level = &search->level[distance % gaps->levels];
    *(level->first == NONE ? &level->first : &search->visits[level->last].next) =
        search->visit_count;
    level->last = search->visit_count;
    search->visits[search->visit_count++] = (struct gap_visit){task, NONE};
    search->waiting++;
    search->row[task] = distance;
}

/* Returns how many edges were looked at. `known`: gaps that are shorter need no path; NULL: there are none. */
static int gaps_visit(struct gaps *gaps, const int *known, int task)
{
    const int first = gaps->first[task], end = gaps->first[task + 1];
    for (int i = first; i < end; i++) {
        const struct gap_edge *edge = &gaps->edges[i];
        const int distance = gaps->search.row[task] + edge->length;
        if (distance < gaps->search.row[edge->to] && (!known || distance < known[edge->to]))
            visit_later(gaps, edge->to, distance);
    }
    return end - first;
}

static int gaps_found(const struct gaps *gaps, const int *known, int to)
{
    return known ? min_int(known[to], gaps->search.row[to]) : gaps->search.row[to];
}

/* Follow the edges from the tasks that wait, nearer ones first, up to `to`, whose path then is the shortest, or at most
   `enough`. True if it gives up, since that is far. NONE: to all tasks. */
static bool spread(struct gaps *gaps, const int *known, int to, int enough)
{
    struct gaps_search *search = &gaps->search;
    int edges = 0;
    for (; search->waiting > 0; search->distance++)
        for (struct gap_level *level = &search->level[search->distance % gaps->levels];
             level->first != NONE;) {
            const int task = search->visits[level->first].task;
            level->first = search->visits[level->first].next;
            search->waiting--;
            if (search->row[task] == search->distance) /* else it was nearer */
                edges += gaps_visit(gaps, known, task);
            if (to != NONE && gaps_found(gaps, known, to) <= max_int(search->distance, enough))
                return false;
            if (to != NONE && edges > SHORT_EDGES)
                return true;
        }
    return false;
}

/* Ready for the next search. */
static void close_search(struct gaps *gaps)
{
    struct gaps_search *search = &gaps->search;
    for (int i = 0; i < search->visit_count; i++)
        search->row[search->visits[i].task] = GAP_FAR;
    for (int i = 0; search->waiting > 0 && i < gaps->levels; i++)
        search->level[i].first = NONE;
    search->visit_count = search->waiting = search->distance = 0;
}

/* The driver retires iteration i before it admits i + depth, and under the clock before it hands out
   period i + depth; what is handed out then may have successors that are handed out before. */
static bool find_from_any(struct gaps *gaps)
{
    const struct program *p = gaps->program;
    const struct task *tasks = plan_task(p->plan, 0, 0);
    int *from_any = ARENA_ARRAY(&gaps->arena, (size_t)p->tasks, int);
    if (!from_any || !open_search(gaps))
        return false;
    for (int t = 0; t < p->tasks; t++)
        visit_later(gaps, t, p->depth - (p->driver == DRIVER_CLOCK ? tasks[t].stage : 0));
    spread(gaps, NULL, NONE, 0);
    memcpy(from_any, gaps->search.row, (size_t)p->tasks * sizeof *from_any);
    close_search(gaps);
    gaps->from_any = from_any;
    return true;
}

int gaps_at_once(const struct program *p, const int *place, int from, int to)
{
    const struct task *tasks = plan_task(p->plan, 0, 0), *x = &tasks[from], *y = &tasks[to];
    const struct edge_list *depends = &p->depends[to];
    int least = GAP_FAR;
    for (int k = 0; k < depends->count; k++)
        if (depends->items[k].task == from && depends->items[k].distance < least)
            least = depends->items[k].distance;
    if (p->driver != DRIVER_CLOCK || x->work.kind == WORK_HOST || y->work.kind == WORK_HOST ||
        x->group != y->group || x->stream != y->stream)
        return least;
    int keys = gaps_of_keys(p, place, from, to);
    return keys < least ? (keys > 0 ? keys : 0) : least;
}

bool gaps_driver_sees(const struct gaps *gaps, int task)
{
    return gaps->program->plan->pipeline.retire == RETIRE_DEVICE ||
           plan_task(gaps->program->plan, 0, task)->work.kind == WORK_HOST;
}

/* List the edges: none is needed where dependences and keys tell all. */
static bool gaps_prepare(struct gaps *gaps)
{
    const struct program *p = gaps->program;
    const size_t n = (size_t)p->tasks;
    int *first = ARENA_ARRAY(&gaps->arena, n + 1, int),
        *next = ARENA_ARRAY(&gaps->arena, n + 1, int);
    struct keyed *keyed = ARENA_ARRAY(&gaps->arena, n, struct keyed);
    gaps->admitted = ARENA_ARRAY(&gaps->arena, p->plan->groups.count + 1, int);
    if (gaps->arena.failed)
        return false;
    for (size_t i = 0; i <= p->plan->groups.count; i++)
        gaps->admitted[i] = NONE;
    int keyed_count = find_keyed(gaps, keyed);
    gaps->first = first;
    gaps_add_edges(gaps, keyed, keyed_count);
    gaps->edge_count = gaps_add_up(first, p->tasks);
    gaps->edges = ARENA_ARRAY(&gaps->arena, (size_t)gaps->edge_count + 1, struct gap_edge);
    if (!gaps->edges)
        return false;
    for (size_t i = 0; i <= n; i++)
        next[i] = first[i];
    gaps->first = next;
    gaps_add_edges(gaps, keyed, keyed_count);
    gaps->first = first;
    return find_from_any(gaps);
}

/* ---- gaps between two ------------------------------------------------------------------------- */

/* NULL: the driver tells nothing of what comes behind this task. */
static const int *gaps_known(const struct gaps *gaps, int task)
{
    return gaps->of == GAPS_OF_SUBMISSION || gaps_driver_sees(gaps, task) ? gaps->from_any : NULL;
}

static bool keep_row(struct gaps *gaps, int from)
{
    const int tasks = gaps->program->tasks, *known = gaps_known(gaps, from);
    int *row = ARENA_ARRAY(&gaps->arena, (size_t)tasks, int);
    for (int t = 0; row && t < tasks; t++)
        row[t] = gaps_found(gaps, known, t);
    gaps->rows[from] = row;
    return row;
}

/* True if a path by way of a chain is short enough. */
static bool leads_far(struct gaps *gaps, int from, int to, int enough)
{
    if (!gaps->chains.of[0] && !gap_chains_build(&gaps->chains, &gaps->arena, gaps->program->tasks,
                                                 gaps->first, gaps->edges))
        return false; /* a row finds out that memory is exhausted */
    return gap_chains_lead(&gaps->chains, from, to, enough);
}

enum status gaps_between(struct gaps *gaps, int from, int to, int enough, int *out)
{
    if (!gaps->from_any && !gaps_prepare(gaps))
        return STATUS_SYSTEM;
    const int *known = gaps_known(gaps, from);
    if (gaps->rows[from] || (known && known[to] <= enough)) {
        *out = gaps->rows[from] ? gaps->rows[from][to] : known[to];
        return STATUS_OK;
    }
    bool enough_memory = true, far = false;
    visit_later(gaps, from, 0);
    if (from != to && spread(gaps, known, to, enough) &&
        !(far = leads_far(gaps, from, to, enough))) {
        spread(gaps, known, NONE, enough);
        enough_memory = keep_row(gaps, from);
    }
    *out = far ? enough : gaps_found(gaps, known, to);
    close_search(gaps);
    return enough_memory ? STATUS_OK : STATUS_SYSTEM;
}

enum status gaps_by_driver(struct gaps *gaps, int to, int *out)
{
    if (!gaps->from_any && !gaps_prepare(gaps))
        return STATUS_SYSTEM;
    *out = gaps->from_any[to];
    return STATUS_OK;
}

/* ---- opening ---------------------------------------------------------------------------------- */

bool gaps_open(struct gaps *gaps, const struct program *p, const int *place, enum gaps_of of)
{
    const size_t n = (size_t)p->tasks;
    *gaps = (struct gaps){.program = p, .place = place, .of = of, .levels = p->depth + 1};
    gaps->rows = ARENA_ARRAY(&gaps->arena, n, int *);
    return !gaps->arena.failed;
}

void gaps_close(struct gaps *gaps)
{
    arena_fini(&gaps->arena);
}

/* ---- queues of data-flow --------------------------------------------------------------------- */

/* An instance is fired, into its worker's queue, with the admission of its iteration or with the end of the
   submission of its last dependence. So (from, i) comes first if each of its dependences is submitted
   before one of (to, i + g) is, or with it: then the order of the firings counts. */

static bool share_a_queue(const struct gaps *gaps, int a, int b)
{
    const struct task *tasks = plan_task(gaps->program->plan, 0, 0);
    return tasks[a].group == tasks[b].group;
}

static enum status queue_gap(struct gaps *gaps, int from, int to, int deep, int *out);

/* The least g with which the dependence `first` of (from, i) is submitted no later than `second` of
   (to, i + g). One submission fires tasks in the order of the plan's dependences. */
static enum status firing_gap(struct gaps *gaps, const struct edge *first,
                              const struct edge *second, int deep, int *out)
{
    int apart = second->distance - first->distance, between;
    if (first->task == second->task) {
        *out = apart + (first->dep >= second->dep);
        return STATUS_OK;
    }
    enum status status = gaps_between(gaps, first->task, second->task, 0, out);
    *out += apart;
    if (status != STATUS_OK || deep == 0 || !share_a_queue(gaps, first->task, second->task))
        return status;
    status = queue_gap(gaps, first->task, second->task, deep - 1, &between);
    if (status == STATUS_OK && between + apart < *out)
        *out = between + apart;
    return status;
}

enum status gaps_of_firing(struct gaps *gaps, const struct edge *first, int to, int deep,
                           int *which, int *out)
{
    const struct edge_list *seconds = &gaps->program->depends[to];
    *which = -1;
    *out = GAP_FAR;
    for (int k = 0; k < seconds->count; k++) {
        int gap;
        enum status status = firing_gap(gaps, first, &seconds->items[k], deep, &gap);
        if (status != STATUS_OK)
            return status;
        *which = gap < *out ? k : *which;
        *out = gap < *out ? gap : *out;
    }
    return STATUS_OK;
}

static bool has_turn(const struct gaps *gaps, int task)
{
    return program_ends_turn(gaps->program, 0, task);
}

/* Both have turns: one is submitted before the other is fired. */
static int turn_gap(const struct program *p, int from, int to)
{
    const int gap = p->turn_stage[from] - p->turn_stage[to] +
                    (p->ticket_position[from] >= p->ticket_position[to]);
    return gap > 0 ? gap : 0;
}

static enum status find_queue_gap(struct gaps *gaps, int from, int to, int deep, int *out)
{
    if (has_turn(gaps, from)) { /* its turn may come late */
        *out = has_turn(gaps, to) ? turn_gap(gaps->program, from, to) : GAP_FAR;
        return STATUS_OK;
    }
    const struct edge_list *firsts = &gaps->program->depends[from];
    const struct edge_list *seconds = &gaps->program->depends[to];
    int least =
        gaps->place[from] >= gaps->place[to]; /* one admission fires both in the enqueue order */
    for (int k = 0; k < seconds->count; k++)
        least = seconds->items[k].distance == 0 ? 0 : least;
    for (int i = 0; i < firsts->count; i++) {
        int which, gap;
        enum status status = gaps_of_firing(gaps, &firsts->items[i], to, deep, &which, &gap);
        if (status != STATUS_OK)
            return status;
        least = max_int(least, gap);
    }
    *out = least;
    return STATUS_OK;
}

/* Many pairs ask for the order of the same dependences: each gap is found once. */
static enum status queue_gap(struct gaps *gaps, int from, int to, int deep, int *out)
{
    const uint64_t words[] = {(uint64_t)from, (uint64_t)to, (uint64_t)deep, 0},
                   hash = hash_words(words, 4);
    const uint32_t found = TABLE_FIND(&gaps->queued_table, hash, i,
                                      gaps->queued[i].from == from && gaps->queued[i].to == to &&
                                          gaps->queued[i].deep == deep);
    if (found != TABLE_NONE) {
        *out = gaps->queued[found].gap;
        return STATUS_OK;
    }
    const enum status status = find_queue_gap(gaps, from, to, deep, out);
    if (status != STATUS_OK)
        return status;
    if (!ARENA_GROW(&gaps->arena, gaps->queued, gaps->queued_count, gaps->queued_cap) ||
        !table_add_in(&gaps->queued_table, &gaps->arena, hash, gaps->queued_count))
        return STATUS_SYSTEM;
    gaps->queued[gaps->queued_count++] = (struct queued_gap){from, to, deep, *out};
    return STATUS_OK;
}

enum status gaps_in_queue(struct gaps *gaps, int from, int to, int *out, struct diag *diag)
{
    *out = GAP_FAR;
    if (gaps->program->driver != DRIVER_DATAFLOW || !share_a_queue(gaps, from, to))
        return STATUS_OK;
    enum status status = queue_gap(gaps, from, to, GAPS_DEEP, out);
    return status == STATUS_OK ? status : diag_no_memory(diag);
}
