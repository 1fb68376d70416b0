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
#include <string.h>

#include "plan/text_stream.h"
#include "proof/run_graph.h"

/* One path visits no more events, and all paths together no more either. */
enum { PATH_MOST = 1 << 16 };
#define PATHS_MOST ((int64_t)1 << 30)

struct writer {
    const struct certifier *certifier;
    const struct run_graph *graph;
    struct arena arena;
    FILE *out; /* the paths, which are left out when one is missing */
    int64_t events;
    int64_t *number; /* per event, from 1; 0: none yet */
    int64_t *first,
        *followers; /* per event: followers[first[event]] .. [first[event + 1]) wait for it */
    int *waits;     /* per event: that it still waits for */
    int64_t *queue, *came_from; /* of a search: the event that follows */
    int *seen, search;
    int64_t visited; /* in all searches */
    int *open;       /* reads since the last write */
};

/* ---- numbers ----------------------------------------------------------------------------------- */

static void collect_all(struct writer *w, bool store)
{
    const struct run_graph *g = w->graph;
    for (int64_t event = 0; event < w->events; event++)
        for (int64_t i = g->first[event]; i < g->first[event + 1]; i++) {
            int64_t awaited = g->waits[i].event;
            if (store)
                w->followers[w->first[awaited]++] = event;
            else
                w->first[awaited + 1]++;
            w->waits[event] += !store;
        }
}

static bool find_followers(struct writer *w)
{
    w->first = ARENA_ARRAY(&w->arena, (size_t)w->events + 2, int64_t);
    w->waits = ARENA_ARRAY(&w->arena, (size_t)w->events + 1, int);
    if (w->arena.failed)
        return false;
    collect_all(w, false);
    for (int64_t event = 0; event < w->events; event++)
        w->first[event + 1] += w->first[event];
    w->followers = ARENA_ARRAY(&w->arena, (size_t)w->first[w->events] + 1, int64_t);
    if (w->arena.failed)
        return false;
    collect_all(w, true);
    memmove(w->first + 1, w->first, (size_t)w->events * sizeof *w->first);
    w->first[0] = 0;
    return true;
}

/* False: some events wait for each other. */
static bool number_events(struct writer *w)
{
    int64_t head = 0, count = 0;
    for (int64_t event = 0; event < w->events; event++)
        if (w->waits[event] == 0)
            w->queue[count++] = event;
    for (; head < count; head++) {
        int64_t event = w->queue[head];
        w->number[event] = head + 1;
        for (int64_t i = w->first[event]; i < w->first[event + 1]; i++)
            if (--w->waits[w->followers[i]] == 0)
                w->queue[count++] = w->followers[i];
    }
    return count == w->events;
}

static void write_numbers(const struct writer *w)
{
    const struct run_graph *g = w->graph;
    const struct program *p = g->program;
    FILE *out = w->certifier->out;
    for (int op = 0; op < (int)p->op_count; op++) {
        fprintf(out, "number %" PRId64, w->number[run_event(g, op, RUN_EXECUTE)]);
        if (op_pushes(p->ops[op].kind))
            fprintf(out, " %" PRId64, w->number[run_event(g, op, RUN_START)]);
        if (op_is_stream_work(p->ops[op].kind))
            fprintf(out, " %" PRId64, w->number[run_event(g, op, RUN_DONE)]);
        fputc('\n', out);
    }
    for (int m = 0; m < g->meeting_count; m++) {
        fprintf(out, "meeting %" PRId64, w->number[run_meeting(g, m)]);
        for (int i = g->meetings.first[m]; i < g->meetings.first[m + 1]; i++)
            fprintf(out, " %d", g->meetings.items[i]);
        fputc('\n', out);
    }
}

/* ---- paths ------------------------------------------------------------------------------------- */

struct backwards {
    int64_t from, count; /* the source, and the events in the queue */
    bool found;
};

static void step_back(struct writer *w, struct backwards *search, int64_t event,
                      struct run_wait wait)
{
    if (!wait.known || w->seen[wait.event] == w->search ||
        w->number[wait.event] < w->number[search->from])
        return;
    w->seen[wait.event] = w->search;
    w->came_from[wait.event] = event;
    w->queue[search->count++] = wait.event;
    search->found = wait.event == search->from || run_in_line(w->graph, search->from, wait.event);
    if (search->found && wait.event != search->from)
        w->came_from[search->from] = wait.event;
}

static bool find_path(struct writer *w, int64_t from, int64_t to)
{
    const struct run_graph *g = w->graph;
    struct backwards search = {.from = from, .count = 1};
    w->search++;
    w->seen[to] = w->search;
    w->queue[0] = to;
    for (int64_t head = 0; head < search.count && !search.found; head++) {
        int64_t event = w->queue[head];
        if (search.count >= PATH_MOST || w->visited > PATHS_MOST)
            return false;
        for (int64_t i = g->first[event]; i < g->first[event + 1] && !search.found; i++)
            step_back(w, &search, event, g->waits[i]);
    }
    w->visited += search.count;
    return search.found;
}

/* The last event of the path from `event` on that stands in its line: those between need not be told. */
static int64_t skip_line(const struct writer *w, int64_t event, int64_t to)
{
    int64_t last = w->came_from[event];
    for (int64_t next = last; next != to;) {
        next = w->came_from[next];
        if (!run_in_line(w->graph, event, next))
            break;
        last = next;
    }
    return last;
}

static int write_hops(const struct writer *w, int64_t from, int64_t to, FILE *out)
{
    int count = 1;
    for (int64_t event = from;; event = skip_line(w, event, to), count++) {
        if (out)
            fprintf(out, " %" PRId64, event);
        if (event == to)
            return count;
    }
}

static bool write_path(struct writer *w, int first, int second)
{
    int64_t from = run_access_event(w->graph, first), to = run_access_event(w->graph, second);
    if (run_in_line(w->graph, from, to))
        return true;
    if (!find_path(w, from, to))
        return false;
    fprintf(w->out, "path %d", write_hops(w, from, to, NULL));
    write_hops(w, from, to, w->out);
    fputc('\n', w->out);
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------------- */

struct use {
    int buffer, op;
    int64_t number;
    bool reads, writes;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* One for each operation and buffer, by buffer and number. */
static size_t list_uses(const struct writer *w, struct use *uses)
{
    const struct program *p = w->graph->program;
    size_t listed = 0, kept = 0;
    for (int op = 0; op < (int)p->op_count; op++)
        for (int k = 0; k < p->ops[op].access_count; k++) {
            const struct access *access = &p->accesses[p->ops[op].access_first + k];
            uses[listed++] =
                (struct use){access->buffer, op, w->number[run_access_event(w->graph, op)],
                             !access->write, access->write};
        }
    qsort(uses, listed, sizeof *uses, compare_uses);
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
static bool write_buffer(struct writer *w, const struct use *uses, size_t count, bool *valued)
{
    FILE *out = w->out;
    int last = -1, reads = 0;
    *valued &= w->graph->program->buffers[uses->buffer].initialised || !uses[0].reads;
    fprintf(out, "buffer %d\n", uses->buffer);
    for (size_t i = 0; i < count; i++) {
        bool good = true;
        fprintf(out, "access %d\n", uses[i].op);
        for (int k = 0; uses[i].writes && k < reads && good; k++)
            good = write_path(w, w->open[k], uses[i].op);
        if (good && last >= 0 && !(uses[i].writes && reads > 0))
            good = write_path(w, last, uses[i].op);
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

static bool write_buffers(struct writer *w, bool *valued)
{
    const struct program *p = w->graph->program;
    struct use *uses = ARENA_ARRAY(&w->arena, p->access_count + 1, struct use);
    bool ordered = uses != NULL;
    *valued = ordered;
    size_t count = uses ? list_uses(w, uses) : 0;
    for (size_t first = 0, end; first < count && ordered; first = end) {
        for (end = first; end < count && uses[end].buffer == uses[first].buffer;)
            end++;
        ordered =
            !watch_look(w->certifier->watch) && write_buffer(w, uses + first, end - first, valued);
    }
    return ordered;
}

static enum status add_buffers(struct writer *w, struct diag *diag)
{
    struct text_stream stream;
    bool valued;
    if (!text_open(&stream))
        return diag_no_memory(diag);
    w->out = stream.out;
    bool ordered = write_buffers(w, &valued);
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

static enum status write_run(struct writer *w, struct diag *diag)
{
    const struct certifier *certifier = w->certifier;
    size_t n = (size_t)w->events + 1;
    w->number = ARENA_ARRAY(&w->arena, n, int64_t);
    w->queue = ARENA_ARRAY(&w->arena, n, int64_t);
    w->came_from = ARENA_ARRAY(&w->arena, n, int64_t);
    w->seen = ARENA_ARRAY(&w->arena, n, int);
    w->open = ARENA_ARRAY(&w->arena, w->graph->program->op_count + 1, int);
    if (w->arena.failed || !find_followers(w))
        return diag_no_memory(diag);
    if (!number_events(w)) {
        certify_why_not(certifier, "operations wait for each other");
        return STATUS_OK;
    }
    *certifier->proves = certifier->asked & proof_run_covers(w->graph->program);
    write_numbers(w);
    return *certifier->proves & (1u << PROPERTY_RACE | 1u << PROPERTY_VALUE) ? add_buffers(w, diag)
                                                                             : STATUS_OK;
}

enum status certify_run(const struct certifier *certifier, struct diag *diag)
{
    struct run_graph graph;
    struct writer writer = {.certifier = certifier, .graph = &graph};
    enum status status = STATUS_OK;
    if (!run_graph_open(&graph, certifier->program)) {
        status = diag_no_memory(diag);
    } else if (graph.refusal) {
        certify_why_not(certifier, graph.refusal);
    } else {
        writer.events = run_event_count(&graph);
        status = write_run(&writer, diag);
    }
    arena_fini(&writer.arena);
    run_graph_close(&graph);
    return status;
}
