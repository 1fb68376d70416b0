/* SPDX-License-Identifier: Apache-2.0 */
/* critical_path.c - see critical_path.h. */
#include "critical_path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "sim/maxplus/enabling_steps.h"
#include "base/units.h"
#include "base/columns.h"

enum { NONE = -1 };

/* An iteration that some rank has admitted and some rank has not finished. */
struct critical_path_open_iteration {
    int64_t begin_step, begin_ns; /* step NONE: not admitted yet */
    int finished;                 /* ranks */
};

struct path_watch {
    const struct program *program;
    const struct simulate_observer *inner;
    struct simulate_observer observer;
    struct diag *diag;
    struct enabling_steps *steps;
    int64_t *finished; /* per rank: iterations that are over */
    int64_t wanted;    /* an iteration, or PATH_SLOWEST */
    struct critical_path_open_iteration *open;
    int64_t open_first; /* open[0] is this one */
    size_t open_count, open_cap;
    struct critical_path scratch, kept; /* the path in hand, from its end; the one asked for */
    int part_cap;
};

/* ---- why a step was not earlier -------------------------------------------------------------- */

static enum path_wait of_thread(const struct program *p, const struct enabled_step *step)
{
    const struct op *op = step->op < 0 ? NULL : &p->ops[step->op]; /* NULL: a driver's step */
    switch (step->wait.cause) {
    case CAUSE_RETIRE: return p->driver == DRIVER_CLOCK ? PATH_PERIOD : PATH_BACKPRESSURE;
    case CAUSE_FULL:
    case CAUSE_WINDOW: return PATH_BACKPRESSURE;
    case CAUSE_LOCK: return PATH_RESOURCE;
    case CAUSE_QUEUE:
        return op && op_gives_to(op->kind, OPERAND_QUEUE) ? PATH_BACKPRESSURE : PATH_DEPENDENCE;
    case CAUSE_ORDER: return PATH_TICKET;
    case CAUSE_DEPENDENCE: return PATH_DEPENDENCE;
    default: return PATH_THREAD_ORDER;
    }
}

static enum path_wait of_stream(const struct enabled_step *step)
{
    switch (step->wait.cause) {
    case CAUSE_EMPTY: return PATH_LAUNCH;
    case CAUSE_DEPENDENCE: return PATH_DEPENDENCE;
    case CAUSE_COMM_ORDER:
    case CAUSE_ISSUE: return PATH_COMM_ORDER;
    case CAUSE_PEER: return PATH_PEER;
    case CAUSE_HW_QUEUE:
    case CAUSE_RESIDENCY: return PATH_RESOURCE;
    default: return PATH_STREAM_ORDER;
    }
}

/* A worker had nothing in its queue: find what put an instance there. */
static bool was_fired(const struct program *p, const struct enabled_step *step,
                      const struct enabled_step *from)
{
    return step->wait.cause == CAUSE_EMPTY && p->agents[step->agent].kind == AGENT_THREAD &&
           from->op >= 0 && op_ends_submission(p->ops[from->op].kind);
}

/* Let the part know what kept this step, unless it knows of something greater. */
static void note_wait(const struct program *p, const struct enabled_step *step,
                      const struct enabled_step *from, struct path_part *part)
{
    enum path_wait wait;
    int task = step->wait.task;
    int64_t iteration = step->wait.iteration;
    switch (p->agents[step->agent].kind) {
    case AGENT_THREAD: wait = of_thread(p, step); break;
    case AGENT_STREAM: wait = of_stream(step); break;
    default: wait = step->wait.cause == CAUSE_PEER ? PATH_PEER : PATH_BEGIN; break;
    }
    if (was_fired(p, step, from)) {
        wait = PATH_DEPENDENCE;
        task = p->ops[from->op].task;
        iteration = from->iteration;
    }
    if (wait <= part->waited)
        return;
    part->waited = wait;
    part->on_task = task;
    part->on_iteration = iteration;
}

/* ---- a path, from its end -------------------------------------------------------------------- */

static struct path_part *critical_path_add_part(struct path_watch *watch,
                                                const struct enabled_step *step)
{
    struct critical_path *path = &watch->scratch;
    if (!ARRAY_GROW(path->parts, path->part_count, watch->part_cap))
        return NULL;
    int64_t start_ns = step->enabled_ns > path->start_ns ? step->enabled_ns : path->start_ns;
    assert(step->time_ns >= start_ns);
    assert(path->part_count == 0 || step->time_ns <= path->parts[path->part_count - 1].start_ns);
    struct path_part *part = &path->parts[path->part_count++];
    *part = (struct path_part){.agent = step->agent,
                               .op = step->op,
                               .iteration = step->iteration,
                               .start_ns = start_ns,
                               .dur_ns = step->time_ns - start_ns,
                               .waited = PATH_BEGIN,
                               .on_task = NONE};
    return part;
}

/* From the last step back to the first one that is part of it. false: memory is exhausted. */
static bool trace(struct path_watch *watch, int64_t first_step)
{
    struct critical_path *path = &watch->scratch;
    struct path_part *part = NULL;
    path->part_count = 0;
    for (int64_t number = enabling_steps_count(watch->steps) - 1; number >= first_step;) {
        const struct enabled_step *step = enabling_steps_step(watch->steps, number);
        if (step->time_ns <= path->start_ns)
            break;
        if (step->time_ns > step->enabled_ns && !(part = critical_path_add_part(watch, step)))
            return false;
        assert(step->from < number);
        number = step->from;
        if (part && number >= first_step)
            note_wait(watch->program, step, enabling_steps_step(watch->steps, number), part);
    }
    if (part && part->start_ns == path->start_ns)
        part->waited = PATH_BEGIN;
    return true;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static struct path_share *critical_path_share_of(const struct path_watch *watch,
                                                 const struct path_part *part)
{
    const struct program *p = watch->program;
    int task = part->op < 0 ? NONE : p->ops[part->op].task;
    if (task < 0 || !watch->kept.shares)
        return NULL;
    bool host = p->agents[part->agent].kind == AGENT_THREAD;
    return &watch->kept.shares[host ? p->tasks + task : task];
}

static void add_shares(struct path_watch *watch)
{
    const struct critical_path *path = &watch->scratch;
    for (int i = 0; i < path->part_count; i++) {
        struct path_share *share = critical_path_share_of(watch, &path->parts[i]);
        if (!share)
            continue;
        share->ns += path->parts[i].dur_ns;
        share->iterations += share->iterations == 0 || share->last != path->iteration;
        share->last = path->iteration;
    }
    watch->kept.total_ns += path->end_ns - path->start_ns;
    watch->kept.iterations++;
}

/* ---- which path ------------------------------------------------------------------------------ */

static bool critical_path_is_wanted(const struct path_watch *watch)
{
    const struct critical_path *path = &watch->scratch, *kept = &watch->kept;
    if (watch->wanted != PATH_SLOWEST)
        return path->iteration == watch->wanted;
    return !kept->parts || path->end_ns - path->start_ns > kept->end_ns - kept->start_ns;
}

/* In the order of time. */
static bool critical_path_keep(struct path_watch *watch)
{
    const struct critical_path *path = &watch->scratch;
    struct critical_path *kept = &watch->kept;
    struct path_part *parts = calloc((size_t)path->part_count + 1, sizeof *parts);
    if (!parts)
        return false;
    for (int i = 0; i < path->part_count; i++)
        parts[i] = path->parts[path->part_count - 1 - i];
    free(kept->parts);
    kept->parts = parts;
    kept->part_count = path->part_count;
    kept->iteration = path->iteration;
    kept->start_ns = path->start_ns;
    kept->end_ns = path->end_ns;
    return true;
}

/* Something that began with a step is over, with the last one. */
static bool end_path(struct path_watch *watch, int64_t iteration, int64_t first_step,
                     int64_t start_ns, int64_t end_ns)
{
    assert(start_ns <= end_ns);
    watch->scratch.iteration = iteration;
    watch->scratch.start_ns = start_ns;
    watch->scratch.end_ns = end_ns;
    if (!trace(watch, first_step))
        return false;
    add_shares(watch);
    return !critical_path_is_wanted(watch) || critical_path_keep(watch);
}

/* ---- iterations ------------------------------------------------------------------------------ */

static struct critical_path_open_iteration *critical_path_open_at(struct path_watch *watch,
                                                                  int64_t iteration)
{
    assert(iteration >= watch->open_first);
    size_t index = (size_t)(iteration - watch->open_first);
    if (!ARRAY_RESERVE(watch->open, index + 1, watch->open_cap))
        return NULL;
    while (watch->open_count <= index)
        watch->open[watch->open_count++] = (struct critical_path_open_iteration){NONE, 0, 0};
    return &watch->open[index];
}

static bool critical_path_admitted(struct path_watch *watch, int64_t iteration, int64_t now_ns)
{
    struct critical_path_open_iteration *open = critical_path_open_at(watch, iteration);
    if (!open)
        return false;
    if (open->begin_step == NONE)
        *open = (struct critical_path_open_iteration){enabling_steps_count(watch->steps) - 1,
                                                      now_ns, 0};
    return true;
}

static int critical_path_ranks_with(const struct program *p, int64_t iteration)
{
    int count = 0;
    for (int rank = 0; rank < p->ranks; rank++)
        count += iteration < p->ends[rank];
    return count;
}

/* Iterations are over in their order on every rank, so the first is over first. */
static bool critical_path_finished(struct path_watch *watch, int64_t iteration, int64_t now_ns)
{
    struct critical_path_open_iteration *open = critical_path_open_at(watch, iteration);
    if (!open)
        return false;
    if (++open->finished < critical_path_ranks_with(watch->program, iteration))
        return true;
    if (!end_path(watch, iteration, open->begin_step, open->begin_ns, now_ns))
        return false;
    watch->open_first++;
    watch->open_count--;
    memmove(watch->open, watch->open + 1, watch->open_count * sizeof *watch->open);
    if (watch->open_count > 0 && watch->open[0].begin_step != NONE)
        enabling_steps_forget(watch->steps, watch->open[0].begin_step);
    return true;
}

static bool look_at_rank(struct path_watch *watch, int rank, int64_t now_ns)
{
    const struct state *state = enabling_steps_state(watch->steps);
    bool good = true;
    while (good && watch->finished[rank] < machine_finished(watch->program, state, rank))
        good = critical_path_finished(watch, watch->finished[rank]++, now_ns);
    return good;
}

/* Iterations that the last step has finished, on its rank or on those of its communicator. */
static bool look_for_finished(struct path_watch *watch, const struct agent *desc, int64_t now_ns)
{
    const struct comm_desc *comm =
        desc->kind == AGENT_COMM ? &watch->program->comms[desc->index] : NULL;
    if (!comm)
        return desc->rank < 0 || look_at_rank(watch, desc->rank, now_ns);
    bool good = true;
    for (int m = 0; good && m < comm->count; m++)
        good = look_at_rank(watch, comm->members[m], now_ns);
    return good;
}

static bool critical_path_take(struct path_watch *watch, int64_t time_ns,
                               struct transition transition)
{
    const struct program *p = watch->program;
    const struct agent *desc = &p->agents[transition.agent];
    bool driver = desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_DRIVER;
    const struct state *state = enabling_steps_state(watch->steps);
    int64_t first = driver ? machine_admitted(p, state, desc->rank) : 0;
    bool good = enabling_steps_take(watch->steps, time_ns, transition);
    for (int64_t i = first; good && driver && i < machine_admitted(p, state, desc->rank); i++)
        good = critical_path_admitted(watch, i, time_ns);
    return good && (p->tasks == 0 || look_for_finished(watch, desc, time_ns));
}

/* ---- watching -------------------------------------------------------------------------------- */

static bool critical_path_watch_step(void *context, int64_t time_ns, struct transition transition,
                                     const struct effect *effect)
{
    struct path_watch *watch = context;
    if (!critical_path_take(watch, time_ns, transition)) {
        diag_no_memory(watch->diag);
        return false;
    }
    return !watch->inner || !watch->inner->step ||
           watch->inner->step(watch->inner->context, time_ns, transition, effect);
}

static bool critical_path_watch_span(void *context, const struct simulate_span *span)
{
    const struct simulate_observer *inner = ((struct path_watch *)context)->inner;
    return inner->span(inner->context, span);
}

static bool critical_path_watch_work(void *context, const struct simulate_span *span)
{
    const struct simulate_observer *inner = ((struct path_watch *)context)->inner;
    return inner->work(inner->context, span);
}

static bool watch_iteration(void *context, int rank, int64_t number, int64_t admitted_ns,
                            int64_t finished_ns)
{
    const struct simulate_observer *inner = ((struct path_watch *)context)->inner;
    return inner->iteration(inner->context, rank, number, admitted_ns, finished_ns);
}

static bool critical_path_watch_progress(void *context, int64_t iterations, int64_t time_ns)
{
    const struct simulate_observer *inner = ((struct path_watch *)context)->inner;
    return inner->progress(inner->context, iterations, time_ns);
}

struct path_watch *path_watch_open(const struct program *program, int64_t iteration,
                                   const struct simulate_observer *inner, struct diag *diag)
{
    struct path_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        diag_no_memory(diag);
        return NULL;
    }
    watch->program = program;
    watch->inner = inner;
    watch->diag = diag;
    watch->wanted = iteration == PATH_MIDDLE && program->tasks ? program->ends[0] / 2 : iteration;
    watch->observer = (struct simulate_observer){
        .context = watch,
        .span = inner && inner->span ? critical_path_watch_span : NULL,
        .work = inner && inner->work ? critical_path_watch_work : NULL,
        .iteration = inner && inner->iteration ? watch_iteration : NULL,
        .progress = inner && inner->progress ? critical_path_watch_progress : NULL,
        .step = critical_path_watch_step};
    size_t tasks = (size_t)watch->program->tasks;
    watch->steps = enabling_steps_open(watch->program, true);
    watch->finished = calloc((size_t)watch->program->ranks, sizeof *watch->finished);
    if (tasks)
        watch->kept.shares = calloc(2 * tasks, sizeof *watch->kept.shares);
    if (watch->steps && watch->finished && (!tasks || watch->kept.shares))
        return watch;
    diag_no_memory(diag);
    path_watch_close(watch);
    return NULL;
}

const struct simulate_observer *path_watch_observer(const struct path_watch *watch)
{
    return &watch->observer;
}

enum status path_watch_take(struct path_watch *watch, struct critical_path *out)
{
    int64_t count = enabling_steps_count(watch->steps);
    if (watch->program->tasks == 0 && count > 0) {
        watch->wanted = NONE;
        if (!end_path(watch, NONE, 0, 0, enabling_steps_step(watch->steps, count - 1)->time_ns))
            return diag_no_memory(watch->diag);
    }
    *out = watch->kept;
    watch->kept = (struct critical_path){0};
    return STATUS_OK;
}

void path_watch_close(struct path_watch *watch)
{
    if (!watch)
        return;
    enabling_steps_close(watch->steps);
    free(watch->finished);
    free(watch->open);
    free(watch->scratch.parts);
    critical_path_fini(&watch->kept);
    free(watch);
}

void critical_path_fini(struct critical_path *path)
{
    free(path->parts);
    free(path->shares);
    *path = (struct critical_path){0};
}

/* ---- texts and JSON -------------------------------------------------------------------------- */

enum { NAME = 200 };

static const struct {
    const char *key, *words;
} waits[] = {
#define X(name, key, words) {key, words},
    PATH_WAIT_LIST(X)
#undef X
};

static bool critical_path_is_host(const struct program *p, const struct path_part *part)
{
    return p->agents[part->agent].kind == AGENT_THREAD;
}

/* "launch of Forward(5)" */
static const char *critical_path_part_name(const struct program *p, const struct path_part *part,
                                           char *buf, size_t cap)
{
    char subject[NAME - 16];
    if (part->op < 0)
        return "driver";
    const struct op *op = &p->ops[part->op];
    program_op_subject(p, op, part->iteration, subject, sizeof subject);
    snprintf(buf, cap, "%s%s", critical_path_is_host(p, part) && op->task >= 0 ? "launch of " : "",
             subject);
    return buf;
}

static void critical_path_print_parts(const struct program *p, const struct critical_path *path,
                                      FILE *out)
{
    int name_width = 4, place_width = 5;
    char name[NAME], place[NAME], start[UNITS_TEXT], takes[UNITS_TEXT];
    for (int i = 0; i < path->part_count; i++) {
        const struct path_part *part = &path->parts[i];
        columns_widen(&name_width, critical_path_part_name(p, part, name, sizeof name));
        columns_widen(&place_width, program_agent_name(p, part->agent, place, sizeof place));
    }
    fprintf(out, "  %10s  %10s  %-*s  %-*s  %s\n", "from", "takes", name_width, "what", place_width,
            "where", "began after");
    for (int i = 0; i < path->part_count; i++) {
        const struct path_part *part = &path->parts[i];
        units_show_time((double)(part->start_ns - path->start_ns), start);
        units_show_time((double)part->dur_ns, takes);
        const char *what = critical_path_part_name(p, part, name, sizeof name);
        const char *where = program_agent_name(p, part->agent, place, sizeof place);
        fprintf(out, "  %10s  %10s  %s%*s  %s%*s  ", start, takes, what,
                columns_fill(what, name_width), "", where, columns_fill(where, place_width), "");
        /* "dependence on H2D(5)" */
        fputs(waits[part->waited].words, out);
        if (part->on_task >= 0)
            fprintf(out, "%s%s(%" PRId64 ")", part->waited == PATH_DEPENDENCE ? " on " : ", ",
                    p->plan->pipeline.tasks[part->on_task].name, part->on_iteration);
        fputs("\n", out);
    }
}

static void critical_path_print_shares(const struct program *p, const struct critical_path *path,
                                       FILE *out)
{
    if (!path->shares || path->total_ns == 0)
        return;
    fprintf(out, "\n  on the critical paths of all %" PRId64 " iterations\n", path->iterations);
    for (int i = 0; i < 2 * p->tasks; i++) {
        const struct path_share *share = &path->shares[i];
        if (share->ns)
            fprintf(out, "  %5.1f%% of the time, in %5.1f%% of the paths  %s%s\n",
                    100 * (double)share->ns / (double)path->total_ns,
                    100 * (double)share->iterations / (double)path->iterations,
                    i < p->tasks ? "" : "launch of ", p->plan->pipeline.tasks[i % p->tasks].name);
    }
}

void critical_path_print(const struct program *program, const struct critical_path *path, FILE *out)
{
    char takes[UNITS_TEXT], start[UNITS_TEXT];
    units_show_time((double)(path->end_ns - path->start_ns), takes);
    units_show_time((double)path->start_ns, start);
    if (!path->parts)
        fputs("\n  no critical path: the iteration never finished\n", out);
    else if (path->iteration < 0)
        fprintf(out, "\n  critical path, %s\n", takes);
    else
        fprintf(out, "\n  critical path of iteration %" PRId64 ", admitted at %s, over %s later\n",
                path->iteration, start, takes);
    if (path->parts)
        critical_path_print_parts(program, path, out);
    critical_path_print_shares(program, path, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_task(const struct program *p, const char *key, int task, struct json *json)
{
    json_put_string(json, key, task < 0 ? NULL : p->plan->pipeline.tasks[task].name);
}

static void critical_path_write_part(const struct program *p, const struct path_part *part,
                                     struct json *json)
{
    char name[NAME];
    const struct op *op = part->op < 0 ? NULL : &p->ops[part->op];
    json_begin_object(json);
    put_task(p, "task", op ? op->task : -1, json);
    json_put_string(json, "name", critical_path_part_name(p, part, name, sizeof name));
    if (p->tasks)
        json_put_int(json, "iteration", part->iteration);
    json_put_string(json, "part", critical_path_is_host(p, part) ? "host" : "device");
    json_put_string(json, "agent", program_agent_name(p, part->agent, name, sizeof name));
    json_put_int(json, "start_ns", part->start_ns);
    json_put_int(json, "duration_ns", part->dur_ns);
    json_put_string(json, "waited", waits[part->waited].key);
    put_task(p, "on", part->on_task, json);
    if (part->on_task >= 0)
        json_put_int(json, "on_iteration", part->on_iteration);
    json_end_object(json);
}

static void write_shares(const struct program *p, const struct critical_path *path,
                         struct json *json)
{
    json_begin_array_at(json, "shares");
    for (int i = 0; path->shares && i < 2 * p->tasks; i++) {
        const struct path_share *share = &path->shares[i];
        if (share->ns == 0)
            continue;
        json_begin_object(json);
        put_task(p, "task", i % p->tasks, json);
        json_put_string(json, "part", i < p->tasks ? "device" : "host");
        json_put_int(json, "ns", share->ns);
        json_put_int(json, "paths", share->iterations);
        json_end_object(json);
    }
    json_end_array(json);
}

void critical_path_write(const struct program *program, const struct critical_path *path,
                         struct json *json)
{
    json_begin_object(json);
    if (path->parts && path->iteration >= 0)
        json_put_int(json, "iteration", path->iteration);
    json_put_int(json, "start_ns", path->start_ns);
    json_put_int(json, "end_ns", path->end_ns);
    json_begin_array_at(json, "steps");
    for (int i = 0; i < path->part_count; i++)
        critical_path_write_part(program, &path->parts[i], json);
    json_end_array(json);
    json_put_int(json, "paths", path->iterations);
    json_put_int(json, "total_ns", path->total_ns);
    write_shares(program, path, json);
    json_end_object(json);
}
