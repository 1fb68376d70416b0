/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_accesses.c - what the tasks of a pipeline read and write, by the execution trace of a rank.
 *
 * The stage of a task says of which iteration its work is in a step, and memory says the stage: what one section writes and another
 * uses two steps later is of a batch that moves two stages on. Memory that one iteration alone uses is a buffer of scope
 * iteration, one for all that the same tasks use alike; memory that the same tasks use in iteration after iteration is a
 * shared buffer, with k instances where only each k-th iteration does. Other memory, such as what one iteration hands to
 * the next, has no form in a plan, and is unrecorded.
 *
 * Where the trace shows that two accesses are ordered, and nothing in the plan says so yet, a dependence does. Where it shows no
 * order there is none in the plan either, and verify finds the race.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

#include "evidence.h"
#include "execution.h"
#include "pieces_internal.h"
#include "pipeline_internal.h"
#include "base/units.h"

/* Which works of a rank are over when another begins, by streams, by their waits, and by the waits of threads. What a thread
   learns by waiting holds for what it launches later; what one thread tells another is not known. */
struct known_order {
    const struct job_rank *rank;
    int *place;  /* per work: on its stream, from 0 */
    int *over;   /* per work and stream: so many works of the stream are over when it begins */
    int *passed; /* per touch and stream: so many are over for its thread */
};

/* True if `before` is over when `after` begins, or is `after`. */
static inline bool known_order_before(const struct known_order *order, int before, int after)
{
    const size_t at = (size_t)after * order->rank->stream_count;
    return before == after ||
           order->place[before] < order->over[at + (size_t)order->rank->works[before].stream];
}

/* ---- One pass over launches, waits, touches and works in the order of their times --------------- */

/* At one time a launch comes before its work. */
enum known_kind { KNOWN_WAITED, KNOWN_LAUNCH, KNOWN_TOUCH, KNOWN_BEGIN };

struct known_event {
    int64_t time_ns;
    enum known_kind kind;
    int index; /* of a call, a touch or a work */
};

struct known_pass {
    struct known_order *order;
    const struct evidence *evidence;
    int *threads; /* per thread and stream: so many works are over for it */
};

static int by_known_time(const void *left, const void *right)
{
    const struct known_event *a = left, *b = right;
    return compare_then(
        compare_i64(a->time_ns, b->time_ns),
        compare_then(compare_int((int)a->kind, (int)b->kind), compare_int(a->index, b->index)));
}

static void known_raise(int *to, const int *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* What is known when a work is over. */
static void known_add_work(const struct known_order *order, int *to, int work)
{
    const size_t streams = order->rank->stream_count;
    ASSERT_INDEX(work, order->rank->work_count);
    const int stream = order->rank->works[work].stream, behind = order->place[work] + 1;
    known_raise(to, &order->over[(size_t)work * streams], streams);
    to[stream] = behind > to[stream] ? behind : to[stream];
}

/* A wait for the device is one for all that was launched before it and ended within it. */
static void known_wait_for_device(const struct known_order *order, const struct job_call *call,
                                  int *to)
{
    const struct job_rank *rank = order->rank;
    for (size_t s = 0; s < rank->stream_count; s++)
        for (int i = to[s]; i < rank->streams[s].count; i++) {
            const int work = rank->by_stream[rank->streams[s].first + i];
            const int launch = rank->works[work].call;
            if (launch < 0 || rank->calls[launch].start_ns >= call->start_ns ||
                rank->works[work].end_ns > call->end_ns + SLACK_NS)
                break;
            known_add_work(order, to, work);
        }
}

static void known_begin(struct known_pass *pass, int work)
{
    struct known_order *order = pass->order;
    const struct job_rank *rank = order->rank;
    const struct evidence *evidence = pass->evidence;
    int *over = &order->over[(size_t)work * rank->stream_count];
    if (order->place[work] > 0)
        known_add_work(order, over,
                       rank->by_stream[rank->streams[rank->works[work].stream].first +
                                       order->place[work] - 1]);
    const size_t first = SORT_FIRST(i, 0, evidence->edge_count, evidence->edges[i].work >= work);
    for (size_t i = first; i < evidence->edge_count && evidence->edges[i].work == work; i++)
        if (evidence->edges[i].word != IDLE_RESIDENCY)
            known_add_work(order, over, evidence->edges[i].source);
}

static void known_take(struct known_pass *pass, const struct known_event *event)
{
    struct known_order *order = pass->order;
    const struct job_rank *rank = order->rank;
    const size_t streams = rank->stream_count;
    if (event->kind == KNOWN_BEGIN) {
        known_begin(pass, event->index);
        return;
    }
    const int thread = event->kind == KNOWN_TOUCH ? rank->touches[event->index].thread
                                                  : rank->calls[event->index].thread;
    int *known = &pass->threads[(size_t)thread * streams];
    if (event->kind == KNOWN_TOUCH) {
        memcpy(&order->passed[(size_t)event->index * streams], known, streams * sizeof *known);
        return;
    }
    const struct job_call *call = &rank->calls[event->index];
    for (int i = 0; event->kind == KNOWN_LAUNCH && i < call->work_count; i++)
        known_raise(&order->over[(size_t)rank->pushed[call->first_work + i] * streams], known,
                    streams);
    const int waited = pass->evidence->waits[event->index].work;
    if (event->kind == KNOWN_LAUNCH || waited < 0)
        return;
    known_add_work(order, known, waited);
    if (call->kind == CALL_SYNC_DEVICE)
        known_wait_for_device(order, call, known);
}

static size_t list_known_events(const struct job_rank *rank, const struct evidence *evidence,
                                struct known_event *events)
{
    size_t count = 0;
    for (int i = 0; i < (int)rank->call_count; i++) {
        const struct job_call *call = &rank->calls[i];
        if (call->work_count > 0)
            events[count++] = (struct known_event){call->start_ns, KNOWN_LAUNCH, i};
        if (evidence->waits[i].work >= 0)
            events[count++] = (struct known_event){call->end_ns, KNOWN_WAITED, i};
    }
    for (int i = 0; i < (int)rank->touch_count; i++)
        events[count++] = (struct known_event){rank->touches[i].time_ns, KNOWN_TOUCH, i};
    for (int i = 0; i < (int)rank->work_count; i++)
        events[count++] = (struct known_event){rank->works[i].start_ns, KNOWN_BEGIN, i};
    SORT(events, count, by_known_time);
    return count;
}

/* All memory is in `arena`; false without it. */
static bool known_order_find(const struct job_rank *rank, const struct evidence *evidence,
                             struct arena *arena, struct known_order *out)
{
    const size_t streams = rank->stream_count;
    const size_t most = 2 * rank->call_count + rank->touch_count + rank->work_count + 1;
    struct known_event *events = malloc(most * sizeof *events);
    struct known_pass pass = {.order = out, .evidence = evidence};
    *out = (struct known_order){.rank = rank};
    pass.threads = calloc((rank->threads.count + 1) * (streams + 1), sizeof *pass.threads);
    out->place = ARENA_ARRAY(arena, rank->work_count + 1, int);
    out->over = ARENA_ARRAY(arena, (rank->work_count + 1) * (streams + 1), int);
    out->passed = ARENA_ARRAY(arena, (rank->touch_count + 1) * (streams + 1), int);
    const bool ok = events && pass.threads && out->place && out->over && out->passed;
    for (size_t s = 0; ok && s < streams; s++)
        for (int i = 0; i < rank->streams[s].count; i++)
            out->place[rank->by_stream[rank->streams[s].first + i]] = i;
    const size_t count = ok ? list_known_events(rank, evidence, events) : 0;
    for (size_t i = 0; i < count; i++)
        known_take(&pass, &events[i]);
    free(events);
    free(pass.threads);
    return ok;
}

/* An access of a work that is part of a task. */
struct found_access {
    int memory, iteration, work, task;
    bool write;
};

/* Memory that the same tasks access alike. */
struct pattern {
    struct buffer_use *uses; /* by task */
    size_t count;
    bool shared, kept; /* kept: most iterations have it */
    int instances;     /* of a shared one, 0: one */
    int times;         /* iterations in which there is one of scope iteration */
    int last;          /* iteration that was counted */
    size_t memories;
};

struct access_search {
    struct pipeline_form_writer *writer;
    struct orders *orders;
    struct arena *arena;
    const struct job_rank *rank,
        *turn; /* of the job; the same one with times that follow those of others */
    int number;
    struct known_order known;
    struct found_access *found; /* by memory, then by iteration, then by work */
    size_t found_count, found_cap;
    struct pattern *patterns;
    size_t pattern_count, pattern_cap;
    size_t *firsts;  /* per memory that has one: its first access, by pattern */
    int *pattern_of; /* per memory; -1 */
    size_t first_count, untold, moving;
    bool no_memory;
};

/* ---- accesses of tasks ------------------------------------------------------------------------- */

static int by_found_place(const void *left, const void *right)
{
    const struct found_access *a = left, *b = right;
    return compare_then(
        compare_int(a->memory, b->memory),
        compare_then(compare_int(a->iteration, b->iteration),
                     compare_then(compare_int(a->work, b->work), compare_int(a->write, b->write))));
}

static bool find_task_accesses(struct access_search *search)
{
    const struct pipeline_form_writer *writer = search->writer;
    const struct sections *sections = writer->sections;
    const struct job_rank *all = &writer->turns->rank;
    const int *of_work = writer->pieces->of_work + (search->turn->works - all->works);
    for (int w = 0; w < (int)search->rank->work_count; w++) {
        const struct job_accesses *accesses = &search->rank->works[w].accesses;
        const int call = search->turn->works[w].call;
        int step, section;
        if (of_work[w] < 0 || call < 0 ||
            !sections_at(sections, all->calls[call].start_ns, &step, &section))
            continue;
        search->untold += accesses->count == 0;
        for (int i = 0; i < accesses->count; i++) {
            const struct job_access *access = &search->rank->accesses[accesses->first + i];
            if (!ARENA_GROW(search->arena, search->found, search->found_count, search->found_cap))
                return false;
            search->found[search->found_count++] = (struct found_access){
                access->memory, sections->steps[step].place - writer->stage[section], w, of_work[w],
                access->write};
        }
    }
    SORT(search->found, search->found_count, by_found_place);
    return true;
}

/* ---- patterns ---------------------------------------------------------------------------------- */

/* The end of those from `at` on that are of one memory, and of one iteration of it. */
static size_t access_end(const struct access_search *search, size_t at, bool of_iteration)
{
    size_t end = at;
    ASSERT_INDEX(at, search->found_count);
    while (end < search->found_count && search->found[end].memory == search->found[at].memory &&
           (!of_iteration || search->found[end].iteration == search->found[at].iteration))
        end++;
    return end;
}

/* The uses by the tasks, each once: a task that writes first reads nothing that was there before. */
static size_t list_uses(const struct access_search *search, size_t first, size_t end,
                        struct buffer_use *uses)
{
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        const struct found_access *found = &search->found[i];
        size_t at = 0;
        while (at < count && uses[at].task < found->task)
            at++;
        if (at == count || uses[at].task != found->task) {
            memmove(&uses[at + 1], &uses[at], (count++ - at) * sizeof *uses);
            uses[at] = (struct buffer_use){.task = found->task, .reads = !found->write};
        }
        uses[at].writes |= found->write;
    }
    return count;
}

/* True if `b` has all uses of `a`. */
static bool uses_within(const struct pattern *a, const struct pattern *b)
{
    size_t at = 0;
    for (size_t i = 0; i < a->count; i++) {
        while (at < b->count && b->uses[at].task < a->uses[i].task)
            at++;
        if (at == b->count || b->uses[at].task != a->uses[i].task ||
            a->uses[i].reads > b->uses[at].reads || a->uses[i].writes > b->uses[at].writes)
            return false;
    }
    return true;
}

static struct pattern *like_pattern(struct access_search *search, const struct pattern *like)
{
    for (size_t i = 0; i < search->pattern_count; i++) {
        struct pattern *own = &search->patterns[i];
        if (own->count == like->count && own->shared == like->shared &&
            own->instances == like->instances && uses_within(own, like) && uses_within(like, own))
            return own;
    }
    if (!ARENA_GROW(search->arena, search->patterns, search->pattern_count, search->pattern_cap))
        return NULL;
    struct pattern *own = &search->patterns[search->pattern_count++];
    *own = *like;
    own->last = INT32_MIN;
    own->uses = ARENA_ARRAY(search->arena, like->count, struct buffer_use);
    if (own->uses)
        memcpy(own->uses, like->uses, like->count * sizeof *like->uses);
    return own->uses ? own : NULL;
}

/* A shared one where all iterations use it as the one that uses it most does, or less; kept where most do not less. */
static bool find_shared_pattern(const struct access_search *search, size_t first, size_t end,
                                struct buffer_use *uses, struct buffer_use *most,
                                struct pattern *out)
{
    int iterations = 0, alike = 0, apart = 0;
    *out = (struct pattern){.uses = most, .shared = true};
    for (size_t at = first, next; at < end; at = next) {
        next = access_end(search, at, true);
        const size_t count = list_uses(search, at, next, uses);
        const int gap =
            next < end ? search->found[next].iteration - search->found[at].iteration : apart;
        apart = apart == 0 || gap == apart ? gap : 1;
        iterations++;
        if (count <= out->count)
            continue;
        memcpy(most, uses, count * sizeof *uses);
        out->count = count;
    }
    for (size_t at = first, next; at < end; at = next) {
        next = access_end(search, at, true);
        const struct pattern own = {.uses = uses, .count = list_uses(search, at, next, uses)};
        if (!uses_within(&own, out))
            return false;
        alike += own.count == out->count;
    }
    out->instances = apart > 1 ? apart : 0;
    out->kept = 2 * alike > iterations;
    return true;
}

static int by_pattern(const void *left, const void *right, void *context)
{
    const struct access_search *search = context;
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return compare_then(compare_int(search->pattern_of[search->found[a].memory],
                                    search->pattern_of[search->found[b].memory]),
                        compare_u64(a, b));
}

static bool find_patterns(struct access_search *search)
{
    const size_t tasks = search->writer->plan->pipeline.task_count;
    struct buffer_use *uses = ARENA_ARRAY(search->arena, 2 * tasks + 2, struct buffer_use);
    search->pattern_of = pieces_filled(search->arena, search->rank->memory_count, -1);
    search->firsts = ARENA_ARRAY(search->arena, search->rank->memory_count + 1, size_t);
    if (!uses || !search->pattern_of || !search->firsts)
        return false;
    for (size_t at = 0, end; at < search->found_count; at = end) {
        const struct found_access *first = &search->found[at];
        struct pattern like = {.uses = uses};
        end = access_end(search, at, false);
        if (access_end(search, at, true) == end) {
            like.count = list_uses(search, at, end, uses);
        } else if (!find_shared_pattern(search, at, end, uses, uses + tasks + 1, &like)) {
            search->moving++;
            continue;
        }
        struct pattern *own = like_pattern(search, &like);
        if (!own)
            return false;
        own->times += own->last != first->iteration;
        own->last = first->iteration;
        own->memories++;
        own->kept |= like.kept;
        search->pattern_of[first->memory] = (int)(own - search->patterns);
        search->firsts[search->first_count++] = at;
    }
    SORT_BY(search->firsts, search->first_count, by_pattern, search);
    return true;
}

static int steps_of_rank(const struct access_search *search)
{
    const struct sections *sections = search->writer->sections;
    int steps = 0;
    for (size_t s = 0; s < sections->step_count; s++)
        steps += sections->steps[s].rank == search->number;
    return steps;
}

/* Those that half of the steps have; the first and the last steps have parts of others. */
static void keep_patterns(struct access_search *search)
{
    const int steps = steps_of_rank(search);
    struct pattern *patterns = search->patterns;
    for (size_t i = 0; i < search->pattern_count; i++)
        patterns[i].kept |= !patterns[i].shared && 2 * patterns[i].times >= steps;
    for (size_t i = 0; i < search->pattern_count; i++) {
        bool known = patterns[i].kept;
        for (size_t k = 0; k < search->pattern_count && !known; k++)
            known = patterns[k].kept && uses_within(&patterns[i], &patterns[k]);
        search->moving += known ? 0 : patterns[i].memories;
    }
}

/* ---- orders ------------------------------------------------------------------------------------ */

/* What the trace shows of the order of two tasks' accesses: none, one, or that they never meet. */
enum shown { SHOWN_NONE, SHOWN_ORDER, SHOWN_NEVER };

/* Are all accesses of `a` to one memory over when those of `b` in the iteration `distance` later begin, where one of two writes? */
static enum shown shown_of_memory(const struct access_search *search, size_t first, int a, int b,
                                  int distance)
{
    enum shown shown = SHOWN_NEVER;
    const size_t end = access_end(search, first, false);
    const struct found_access *found = search->found;
    for (size_t i = first; i < end; i++) {
        const int later = found[i].iteration + distance;
        size_t k =
            found[i].task == a ? SORT_FIRST(n, first, end, found[n].iteration >= later) : end;
        for (; k < end && found[k].iteration == later; k++) {
            if (found[k].task != b || (!found[i].write && !found[k].write))
                continue;
            if (!known_order_before(&search->known, found[i].work, found[k].work))
                return SHOWN_NONE;
            shown = SHOWN_ORDER;
        }
    }
    return shown;
}

static enum shown shown_order(const struct access_search *search, int pattern, int a, int b,
                              int distance)
{
    enum shown shown = SHOWN_NEVER;
    size_t at = SORT_FIRST(i, 0, search->first_count,
                           search->pattern_of[search->found[search->firsts[i]].memory] >= pattern);
    for (; at < search->first_count && shown != SHOWN_NONE &&
           search->pattern_of[search->found[search->firsts[at]].memory] == pattern;
         at++) {
        const enum shown own = shown_of_memory(search, search->firsts[at], a, b, distance);
        shown = own == SHOWN_NEVER ? shown : own;
    }
    return shown;
}

/* True if `b` always began, in the iteration `distance` later, when `a` had ended. */
static bool pieces_follow(const struct access_search *search, int a, int b, int distance)
{
    const struct pipeline_form_writer *writer = search->writer;
    const struct sections *sections = writer->sections;
    ASSERT_INDEX(a, writer->pieces->count);
    ASSERT_INDEX(b, writer->pieces->count);
    const struct piece *from = &writer->pieces->items[a], *to = &writer->pieces->items[b];
    const int apart = distance + writer->stage[to->section] - writer->stage[from->section];
    for (size_t s = 0; s < sections->step_count; s++) {
        const int place = sections->steps[s].place + apart;
        const size_t t = SORT_FIRST(i, 0, sections->step_count, sections->steps[i].place >= place);
        if (t < sections->step_count && sections->steps[t].place == place && to->start_ns[t] > 0 &&
            from->end_ns[s] > to->start_ns[t] + SLACK_NS)
            return false;
    }
    return true;
}

/* The order of two uses in the plan, where the trace shows it; false: it shows one for which the plan has no form. */
static bool order_uses(struct access_search *search, int pattern, int a, int b, int distance)
{
    struct orders *orders = search->orders;
    if (orders_come_after(orders, (distance > 0) * orders->tasks + b, a))
        return true;
    const enum shown shown = shown_order(search, pattern, a, b, distance);
    if (shown != SHOWN_ORDER)
        return shown == SHOWN_NONE;
    if (!pieces_follow(search, a, b, distance) ||
        (distance == 0 && orders_come_after(orders, a, b)))
        return false;
    search->no_memory |=
        !pipeline_add_dep(search->writer, b, a, distance) ||
        !orders_add(orders, search->arena, &(struct dep){.task = b, .on = a, .distance = distance});
    return true;
}

/* The orders of two uses, of which `a` is the first in an iteration; false as above. The next one of `a` comes behind `b`, unless
   it is of an earlier period: then only a stream in common can order the two. */
static bool order_pair(struct access_search *search, int at, int a, int b)
{
    ASSERT_INDEX(at, search->pattern_count);
    const struct pattern *pattern = &search->patterns[at];
    const struct task *tasks = search->writer->plan->pipeline.tasks;
    if (!order_uses(search, at, a, b, 0))
        return false;
    if (!pattern->shared || tasks[a].stream == tasks[b].stream)
        return true;
    const int next = pattern->instances > 1 ? pattern->instances : 1;
    const int ahead = tasks[b].stage - tasks[a].stage - next;
    return ahead > 0 || (ahead == 0 && a < b) ? shown_order(search, at, a, b, -next) != SHOWN_ORDER
                                              : order_uses(search, at, b, a, next);
}

/* True if `a` comes before `b` within an iteration; they differ. */
static bool is_first_of(const struct access_search *search, int a, int b)
{
    const struct task *tasks = search->writer->plan->pipeline.tasks;
    return tasks[a].stage != tasks[b].stage ? tasks[a].stage < tasks[b].stage : a < b;
}

/* False, and two tasks, where one order of a pattern's uses has no form. */
static bool order_pattern(struct access_search *search, int at, int *a, int *b)
{
    ASSERT_INDEX(at, search->pattern_count);
    const struct pattern *pattern = &search->patterns[at];
    for (size_t i = 0; i < pattern->count; i++)
        for (size_t k = 0; k < pattern->count && !search->no_memory; k++) {
            *a = pattern->uses[i].task;
            *b = pattern->uses[k].task;
            if (i != k && (pattern->uses[i].writes || pattern->uses[k].writes) &&
                is_first_of(search, *a, *b) && !order_pair(search, at, *a, *b))
                return false;
        }
    return true;
}

/* ---- buffers ----------------------------------------------------------------------------------- */

static bool is_contended(const struct pattern *pattern)
{
    bool written = false;
    for (size_t i = 0; i < pattern->count; i++)
        written |= pattern->uses[i].writes;
    return written && pattern->count > 1;
}

/* "forward.out" of an iteration, "optimizer.state" of all. */
static const char *pattern_name(struct plan *plan, const struct pattern *pattern)
{
    size_t maker = 0;
    while (!pattern->uses[maker].writes)
        maker++;
    const char *base =
        arena_printf(&plan->arena, "%s.%s", plan->pipeline.tasks[pattern->uses[maker].task].name,
                     pattern->shared ? "state" : "out");
    const char *name = base;
    for (int number = 2; name; number++) {
        size_t b = 0;
        while (b < plan->buffer_count && strcmp(plan->buffers[b].name, name) != 0)
            b++;
        if (b == plan->buffer_count)
            break;
        name = arena_printf(&plan->arena, "%s.%d", base, number);
    }
    return name;
}

/* It holds a value from before the iteration, or from before all, that its first use reads. */
static bool is_from_outside(const struct access_search *search, const struct pattern *pattern)
{
    size_t first = 0;
    for (size_t i = 1; i < pattern->count; i++)
        if (is_first_of(search, pattern->uses[i].task, pattern->uses[first].task))
            first = i;
    return pattern->uses[first].reads;
}

static bool add_pattern(struct access_search *search, int at)
{
    ASSERT_INDEX(at, search->pattern_count);
    const struct pattern *pattern = &search->patterns[at];
    struct plan *plan = search->writer->plan;
    const struct task *tasks = plan->pipeline.tasks;
    int a, b;
    if (!order_pattern(search, at, &a, &b))
        return plan_add_unrecorded(
            plan, arena_printf(&plan->arena, "memory of %s and %s", tasks[a].name, tasks[b].name),
            "the trace orders its accesses, and the tasks overlap");
    const struct buffer buffer = {.name = pattern_name(plan, pattern),
                                  .scope = pattern->shared ? SCOPE_SHARED : SCOPE_ITERATION,
                                  .instances = pattern->instances,
                                  .input = is_from_outside(search, pattern),
                                  .declared = true};
    return buffer.name && pipeline_add_buffer(plan, &buffer, pattern->uses, pattern->count);
}

static bool add_patterns(struct access_search *search)
{
    for (size_t i = 0; i < search->pattern_count; i++)
        if (search->patterns[i].kept && is_contended(&search->patterns[i]) &&
            (!add_pattern(search, (int)i) || search->no_memory))
            return false;
    return true;
}

/* What tasks share with nobody is one buffer that nothing writes, so that they declare something. */
static bool add_private(struct access_search *search)
{
    struct plan *plan = search->writer->plan;
    struct buffer_use *uses =
        ARENA_ARRAY(search->arena, plan->pipeline.task_count + 1, struct buffer_use);
    bool *told = ARENA_ARRAY(search->arena, plan->pipeline.task_count + 1, bool);
    size_t count = 0;
    if (!uses || !told)
        return false;
    for (size_t i = 0; i < search->found_count; i++)
        told[search->found[i].task] = true;
    for (int t = 0; t < (int)plan->pipeline.task_count; t++) {
        const struct task *task = &plan->pipeline.tasks[t];
        if (told[t] && task->reads.count + task->writes.count == 0)
            uses[count++] = (struct buffer_use){.task = t, .reads = true};
    }
    const struct buffer buffer = {
        .name = "unshared", .scope = SCOPE_SHARED, .input = true, .declared = true};
    return count == 0 || pipeline_add_buffer(plan, &buffer, uses, count);
}

/* CPU work that no wait orders behind an access of the device that was launched before it; the name of the first. */
static size_t count_host_races(const struct access_search *search, const char **name)
{
    const struct job_rank *rank = search->rank;
    const size_t streams = rank->stream_count;
    size_t count = 0;
    for (size_t t = 0; t < rank->touch_count; t++) {
        const struct job_touch *touch = &rank->touches[t];
        bool open = false;
        for (int k = 0; k < touch->accesses.count && !open; k++) {
            const struct job_access *own = &rank->accesses[touch->accesses.first + k];
            const size_t first =
                SORT_FIRST(i, 0, search->found_count, search->found[i].memory >= own->memory);
            for (size_t i = first;
                 i < search->found_count && !open && search->found[i].memory == own->memory; i++) {
                const int work = search->found[i].work;
                open = (own->write || search->found[i].write) &&
                       rank->calls[rank->works[work].call].start_ns < touch->time_ns &&
                       search->known.place[work] >=
                           search->known.passed[t * streams + (size_t)rank->works[work].stream];
            }
        }
        if (open && count++ == 0)
            *name = search->writer->job->names.items[touch->name];
    }
    return count;
}

static bool note_gaps(const struct access_search *search)
{
    struct plan *plan = search->writer->plan;
    struct arena *arena = &plan->arena;
    const char *touch = "";
    const size_t host = count_host_races(search, &touch);
    size_t all;
    const char *names = execution_untold(search->writer->job, search->rank, &all, search->arena);
    return names &&
           (search->untold == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(arena, "accesses of %zu operation%s", search->untold,
                                             units_plural(search->untold)),
                                arena_printf(arena, "no schema tells those of %s", names))) &&
           (search->moving == 0 ||
            plan_add_unrecorded(
                plan,
                arena_printf(arena, "%zu tensor%s", search->moving, units_plural(search->moving)),
                "iterations share them in a way that no buffer of a pipeline has")) &&
           (host == 0 ||
            plan_add_unrecorded(
                plan, arena_printf(arena, "%zu accesses of the host", host),
                arena_printf(arena, "no wait orders them (%.80s) behind those of the device",
                             touch)));
}

/* The accesses of the first rank that has an execution trace; false: none has. */
static bool begin_accesses(struct access_search *search, struct pipeline_form_writer *writer,
                           struct arena *arena)
{
    *search = (struct access_search){.writer = writer, .arena = arena};
    while (search->number < (int)writer->job->rank_count &&
           !writer->job->ranks[search->number].execution)
        search->number++;
    if (search->number == (int)writer->job->rank_count)
        return false;
    search->rank = &writer->job->ranks[search->number];
    search->turn = &writer->turns->ranks[search->number];
    return true;
}

/* ---- stages ------------------------------------------------------------------------------------ */

enum { FARTHEST_STAGE = 8 };

static int *stage_votes(int *votes, size_t sections, size_t from, size_t to)
{
    return &votes[(from * sections + to) * FARTHEST_STAGE];
}

static int section_of(const struct access_search *search, size_t at)
{
    ASSERT_INDEX(at, search->found_count);
    return search->writer->pieces->items[search->found[at].task].section;
}

/* True if a section writes there what it has not read in this step: its old value is of no use. */
static bool overwrites(const struct access_search *search, size_t at)
{
    ASSERT_INDEX(at, search->found_count);
    const struct found_access *found = &search->found[at];
    for (size_t i = at; found->write && i-- > 0 && search->found[i].memory == found->memory &&
                        search->found[i].iteration == found->iteration;)
        if (section_of(search, i) == section_of(search, at))
            return search->found[i].write;
    return found->write;
}

/* What one section overwrites, others use so many steps later, until it is overwritten again: so many stages they are apart. */
static void vote_for_stages(const struct access_search *search, int *votes)
{
    const size_t sections = search->writer->sections->count;
    size_t maker = 0;
    for (size_t i = 0; i < search->found_count; i++) {
        const struct found_access *found = &search->found[i];
        if (i == 0 || found->memory != search->found[maker].memory || overwrites(search, i))
            maker = i;
        const int later = found->iteration - search->found[maker].iteration;
        const int from = section_of(search, maker), to = section_of(search, i);
        if (search->found[maker].write && to != from && later < FARTHEST_STAGE)
            stage_votes(votes, sections, (size_t)from, (size_t)to)[later]++;
    }
}

/* Moves the stages of two sections so far apart as most memory says; false: they are. */
static bool move_stages(const int *votes, int steps, int *from, int *to)
{
    int best = 0;
    for (int d = 1; d < FARTHEST_STAGE; d++)
        best = votes[d] > votes[best] ? d : best;
    if (2 * votes[best] < steps || *to == *from + best)
        return false;
    *(*to < *from + best ? to : from) = *to < *from + best ? *from + best : *to - best;
    return true;
}

/* Sections of which memory tells nothing work on the last batch. */
static void put_last(struct pipeline_form_writer *writer, int *votes, int steps)
{
    const size_t count = writer->sections->count;
    int deepest = 0;
    for (size_t i = 0; i < count; i++)
        deepest = writer->stage[i] > deepest ? writer->stage[i] : deepest;
    for (size_t i = 0; i < count; i++) {
        int most = 0;
        for (size_t k = 0; k < count * FARTHEST_STAGE; k++) {
            const int to = votes[i * count * FARTHEST_STAGE + k],
                      from = stage_votes(votes, count, k / FARTHEST_STAGE, i)[k % FARTHEST_STAGE];
            most = to > most ? to : from > most ? from : most;
        }
        if (2 * most < steps)
            writer->stage[i] = deepest;
    }
}

bool pipeline_access_stages(struct pipeline_form_writer *writer, struct arena *arena, bool *out)
{
    struct access_search search;
    const size_t count = writer->sections->count;
    int *votes = ARENA_ARRAY(arena, count * count * FARTHEST_STAGE, int);
    *out = false;
    if (!begin_accesses(&search, writer, arena))
        return true;
    if (!votes || !find_task_accesses(&search))
        return false;
    const int steps = steps_of_rank(&search);
    vote_for_stages(&search, votes);
    bool moved = true;
    for (size_t round = 0; moved && round <= count * FARTHEST_STAGE; round++) {
        moved = false;
        for (size_t from = 0; from < count; from++)
            for (size_t to = 0; to < count; to++)
                moved |= move_stages(stage_votes(votes, count, from, to), steps,
                                     &writer->stage[from], &writer->stage[to]);
        *out |= moved;
    }
    /* They contradict each other. */
    for (size_t i = 0; moved && i < count; i++)
        writer->stage[i] = 0;
    *out &= !moved;
    if (*out)
        put_last(writer, votes, steps);
    return true;
}

bool pipeline_accesses(struct pipeline_form_writer *writer, struct orders *orders,
                       struct arena *arena, bool *out)
{
    struct access_search search;
    if (!(*out = begin_accesses(&search, writer, arena)))
        return true;
    search.orders = orders;
    if (!known_order_find(search.rank, &writer->evidence[search.number], arena, &search.known) ||
        !find_task_accesses(&search) || !find_patterns(&search))
        return false;
    keep_patterns(&search);
    struct plan *plan = writer->plan;
    plan->inputs_given = true;
    plan->buffers = ARENA_ARRAY(&plan->arena, search.pattern_count + 1, struct buffer);
    return plan->buffers && add_patterns(&search) && add_private(&search) && note_gaps(&search);
}
