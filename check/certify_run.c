/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify_run.c - numbers and paths of a program without iterations.
 *
 * A number is the place in a topological order of the waits (Kahn 1962). A path from one access to the next is found
 * backwards, breadth first, among the events whose number lies between theirs.
 */
#include "certify.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text_stream.h"
#include "check/proof/run_graph.h"
#include "base/sort.h"

/* One path visits no more events, and all paths together no more either. */
enum { PATH_MOST = 1 << 16 };
#define PATHS_MOST ((int64_t)1 << 30)

/* Waits by an event: items[first[event]] .. [first[event + 1]). */
struct index {
    int64_t *first, *items;
};

struct certify_run_writer {
    const struct certifier *certifier;
    const struct run_graph *graph;
    struct arena arena;
    FILE *out; /* the paths, which are left out when one is missing */
    int64_t events;
    int64_t *number;             /* per event, from 1; 0: none yet */
    struct index followers, own; /* per event: the waits for it, and its own */
    int64_t *queue, *came_by;    /* of a search; per event: the wait that leads on */
    int *seen, search;
    int64_t visited; /* in all searches */
    int *open;       /* reads since the last write */
};

/* ---- numbers ----------------------------------------------------------------------------------- */

static int64_t certify_run_key_of(const struct run_wait *wait, bool own)
{
    return own ? wait->event : wait->awaited;
}

static bool index_waits(struct certify_run_writer *w, bool own, struct index *index)
{
    const struct run_graph *g = w->graph;
    index->first = ARENA_ARRAY(&w->arena, (size_t)w->events + 2, int64_t);
    index->items = ARENA_ARRAY(&w->arena, g->count + 1, int64_t);
    if (w->arena.failed)
        return false;
    for (size_t i = 0; i < g->count; i++)
        index->first[certify_run_key_of(&g->waits[i], own) + 2]++;
    for (int64_t event = 2; event <= w->events + 1; event++)
        index->first[event] += index->first[event - 1];
    for (size_t i = 0; i < g->count; i++)
        index->items[index->first[certify_run_key_of(&g->waits[i], own) + 1]++] = (int64_t)i;
    return true;
}

/* False: some events wait for each other. */
static bool number_events(struct certify_run_writer *w)
{
    int64_t head = 0, count = 0, *left = w->came_by; /* waits that are not numbered */
    for (int64_t event = 0; event < w->events; event++) {
        left[event] = w->own.first[event + 1] - w->own.first[event];
        if (left[event] == 0)
            w->queue[count++] = event;
    }
    for (; head < count; head++) {
        int64_t event = w->queue[head];
        w->number[event] = head + 1;
        for (int64_t i = w->followers.first[event]; i < w->followers.first[event + 1]; i++) {
            int64_t follower = w->graph->waits[w->followers.items[i]].event;
            if (--left[follower] == 0)
                w->queue[count++] = follower;
        }
    }
    return count == w->events;
}

static void certify_run_write_numbers(const struct certify_run_writer *w)
{
    const struct run_graph *g = w->graph;
    const struct program *p = g->program;
    FILE *out = w->certifier->out;
    for (int op = 0; op < (int)p->op_count; op++)
        fprintf(out, "number %" PRId64 " %" PRId64 " %" PRId64 "\n",
                w->number[run_event(g, op, RUN_EXECUTE)], w->number[run_event(g, op, RUN_START)],
                w->number[run_event(g, op, RUN_DONE)]);
    for (int m = 0; m < g->meeting_count; m++) {
        fprintf(out, "meeting %" PRId64, w->number[run_meeting(g, m)]);
        for (int i = g->meetings.first[m]; i < g->meetings.first[m + 1]; i++)
            fprintf(out, " %d", g->meetings.items[i]);
        fputc('\n', out);
    }
}

/* ---- paths ------------------------------------------------------------------------------------- */

struct backwards {
    int64_t from, start, count; /* the source, where its line is met, and the events in the queue */
    bool found;
};

static void step_back(struct certify_run_writer *w, struct backwards *search, int64_t index)
{
    const struct run_wait wait = w->graph->waits[index];
    if (!wait.known || w->seen[wait.awaited] == w->search ||
        w->number[wait.awaited] < w->number[search->from])
        return;
    w->seen[wait.awaited] = w->search;
    w->came_by[wait.awaited] = index;
    w->queue[search->count++] = wait.awaited;
    search->start = wait.awaited;
    search->found =
        wait.awaited == search->from || run_in_line(w->graph, search->from, wait.awaited);
}

/* The path leads from `start`, in the line of `from`. */
static bool find_path(struct certify_run_writer *w, int64_t from, int64_t to, int64_t *start)
{
    struct backwards search = {.from = from, .count = 1};
    w->search++;
    w->seen[to] = w->search;
    w->queue[0] = to;
    for (int64_t head = 0; head < search.count && !search.found; head++) {
        int64_t event = w->queue[head];
        if (search.count >= PATH_MOST || w->visited > PATHS_MOST)
            return false;
        for (int64_t i = w->own.first[event]; i < w->own.first[event + 1] && !search.found; i++)
            step_back(w, &search, w->own.items[i]);
    }
    w->visited += search.count;
    *start = search.start;
    return search.found;
}

/* The last event of the path from `event` on that stands in its line: those between need not be told. */
static int64_t skip_line(const struct certify_run_writer *w, int64_t event, int64_t to)
{
    int64_t last = event;
    while (last != to) {
        int64_t next = w->graph->waits[w->came_by[last]].event;
        if (!run_in_line(w->graph, event, next))
            break;
        last = next;
    }
    return last;
}

static int write_hops(const struct certify_run_writer *w, int64_t start, int64_t to, FILE *out)
{
    int count = 0;
    for (int64_t event = skip_line(w, start, to); event != to; count++) {
        if (out)
            fprintf(out, " %" PRId64, w->came_by[event]);
        event = skip_line(w, w->graph->waits[w->came_by[event]].event, to);
    }
    return count;
}

static bool certify_run_write_path(struct certify_run_writer *w, int first, int second)
{
    int64_t from = run_access_event(w->graph, first), to = run_access_event(w->graph, second);
    int64_t start = to; /* in one line with `from`: there is no hop */
    if (!run_in_line(w->graph, from, to) && !find_path(w, from, to, &start))
        return false;
    fprintf(w->out, "path %d", write_hops(w, start, to, NULL));
    write_hops(w, start, to, w->out);
    fputc('\n', w->out);
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------------- */

struct certify_run_use {
    int buffer, op;
    int64_t number;
    bool reads, writes;
};

static int compare_uses(const void *a, const void *b)
{
    const struct certify_run_use *x = a, *y = b;
    return compare_then(compare_int(x->buffer, y->buffer), compare_i64(x->number, y->number));
}

/* One for each operation and buffer, by buffer and number. */
static size_t certify_run_list_uses(const struct certify_run_writer *w,
                                    struct certify_run_use *uses)
{
    const struct program *p = w->graph->program;
    size_t listed = 0, kept = 0;
    for (int op = 0; op < (int)p->op_count; op++)
        for (int k = 0; k < p->ops[op].access_count; k++) {
            const struct access *access = &p->accesses[p->ops[op].access_first + k];
            uses[listed++] = (struct certify_run_use){access->buffer, op,
                                                      w->number[run_access_event(w->graph, op)],
                                                      !access->write, access->write};
        }
    SORT(uses, listed, compare_uses);
    for (size_t i = 0; i < listed; i++)
        if (kept > 0 && compare_uses(&uses[kept - 1], &uses[i]) == 0) {
            uses[kept - 1].reads |= uses[i].reads;
            uses[kept - 1].writes |= uses[i].writes;
        } else {
            uses[kept++] = uses[i];
        }
    return kept;
}

/* False: two accesses have no path. */
static bool certify_run_write_buffer(struct certify_run_writer *w,
                                     const struct certify_run_use *uses, size_t count, bool *valued)
{
    FILE *out = w->out;
    int last = -1, reads = 0;
    *valued &= w->graph->program->buffers[uses->buffer].initialised || !uses[0].reads;
    for (size_t i = 0; i < count; i++) {
        bool good = true;
        fprintf(out, "access %d\n", uses[i].op);
        for (int k = 0; uses[i].writes && k < reads && good; k++)
            good = certify_run_write_path(w, w->open[k], uses[i].op);
        if (good && last >= 0 && !(uses[i].writes && reads > 0))
            good = certify_run_write_path(w, last, uses[i].op);
        if (!good)
            return false;
        if (uses[i].writes) {
            last = uses[i].op;
            reads = 0;
        } else {
            w->open[reads++] = uses[i].op;
        }
    }
    return true;
}

static bool certify_run_write_buffers(struct certify_run_writer *w, bool *valued)
{
    const struct program *p = w->graph->program;
    struct certify_run_use *uses =
        ARENA_ARRAY(&w->arena, p->access_count + 1, struct certify_run_use);
    bool ordered = uses != NULL;
    *valued = ordered;
    size_t count = uses ? certify_run_list_uses(w, uses) : 0;
    for (size_t first = 0, end; first < count && ordered; first = end) {
        for (end = first; end < count && uses[end].buffer == uses[first].buffer;)
            end++;
        ordered = !watch_own_watch_look(w->certifier->watch) &&
                  certify_run_write_buffer(w, uses + first, end - first, valued);
    }
    return ordered;
}

static enum status certify_run_add_buffers(struct certify_run_writer *w, struct diag *diag)
{
    struct text_stream stream;
    bool valued;
    if (!text_open(&stream))
        return diag_no_memory(diag);
    w->out = stream.out;
    bool ordered = certify_run_write_buffers(w, &valued);
    char *text = text_close(&stream, !w->arena.failed, NULL);
    if (!text)
        return diag_no_memory(diag);
    if (ordered)
        fputs(text, w->certifier->out);
    else
        certify_why_not(w->certifier, "no path was found between two accesses");
    if (!ordered)
        *w->certifier->proves &= ~(1u << PROPERTY_RACE);
    if (!ordered || !valued)
        *w->certifier->proves &= ~(1u << PROPERTY_VALUE);
    free(text);
    return STATUS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static enum status certify_run_write_run(struct certify_run_writer *w, struct diag *diag)
{
    const struct certifier *certifier = w->certifier;
    size_t n = (size_t)w->events + 1;
    w->number = ARENA_ARRAY(&w->arena, n, int64_t);
    w->queue = ARENA_ARRAY(&w->arena, n, int64_t);
    w->came_by = ARENA_ARRAY(&w->arena, n, int64_t);
    w->seen = ARENA_ARRAY(&w->arena, n, int);
    w->open = ARENA_ARRAY(&w->arena, w->graph->program->op_count + 1, int);
    if (w->arena.failed || !index_waits(w, false, &w->followers) || !index_waits(w, true, &w->own))
        return diag_no_memory(diag);
    if (!number_events(w)) {
        certify_why_not(certifier, "operations wait for each other");
        return STATUS_OK;
    }
    *certifier->proves = certifier->asked & proof_run_covers(w->graph->program);
    certify_run_write_numbers(w);
    return *certifier->proves & (1u << PROPERTY_RACE | 1u << PROPERTY_VALUE)
               ? certify_run_add_buffers(w, diag)
               : STATUS_OK;
}

enum status certify_run(const struct certifier *certifier, struct diag *diag)
{
    struct run_graph graph;
    struct certify_run_writer writer = {.certifier = certifier, .graph = &graph};
    enum status status = STATUS_OK;
    if (!run_graph_open(&graph, certifier->program, &writer.arena)) {
        status = diag_no_memory(diag);
    } else if (graph.refusal) {
        certify_why_not(certifier, graph.refusal);
    } else {
        writer.events = run_event_count(&graph);
        status = certify_run_write_run(&writer, diag);
    }
    arena_fini(&writer.arena);
    return status;
}
