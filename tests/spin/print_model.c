/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_model.c - a plan as a Promela model, for tests/check/t_spin.sh and tests/bench/spin.sh.
 *
 *     print_model PLAN clock|dataflow ITERATIONS RANKS [exact|general]     RANKS 0: the plan's
 *
 * `general` prints the model of any plan (export_promela.h). Else it is the lean one of a plain pipeline
 * (lean.h); exit status 3: there is none, because the plan is no plain pipeline or cannot run with these
 * options.
 */
#include "export_promela.h"
#include "lean.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "improve/found.h"
#include "plan/text/parse.h"

enum { EXIT_NO_MODEL = 3 };

/* ---- drivers --------------------------------------------------------------------------------- */

/* has_room in driver.c; it always holds where retiring waits for the device. */
static void put_has_room(const struct lean *m, int rank, const char *admitted)
{
    const struct program *p = m->p;
    if (p->plan->pipeline.retire != RETIRE_SUBMIT || p->ends[rank] <= p->window)
        return;
    put(m, " && (%s < %d || (true", admitted, p->window);
    for (int task = 0; task < p->tasks; task++) {
        put(m, " &&\n         ");
        lean_put_of(m, "submitted", rank, task);
        put(m, " + %d > %s && ", p->window, admitted);
        lean_put_of(m, "reached", rank, task);
        put(m, " + %d > %s", p->window, admitted);
    }
    put(m, "))");
}

static void put_retire(const struct lean *m, int rank)
{
    const struct program *p = m->p;
    for (int task = 0; task < p->tasks; task++) {
        put(m, " &&\n              ");
        lean_put_of(m, "submitted", rank, task);
        put(m, " > oldest");
        if (p->plan->pipeline.retire == RETIRE_DEVICE) {
            put(m, " && ");
            lean_put_of(m, "reached", rank, task);
            put(m, " > oldest");
        }
    }
    put(m,
        " ->\n       oldest++;\n       if\n       :: oldest == %" PRId64
        " -> goto end_over\n       :: else\n       fi }\n  od;\nend_over:\n  false\n",
        p->ends[rank]);
}

/* The driver hands out a period while period < depth + oldest, else it retires. */
static void put_clock(const struct lean *m, int rank)
{
    const struct program *p = m->p;
    char admitted[96];
    snprintf(admitted, sizeof admitted, "(period < %" PRId64 " -> period - %d : %" PRId64 ")",
             p->ends[rank] + p->min_stage, p->min_stage, p->ends[rank]);
    put(m, "  byte period, oldest;\n");
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER && p->threads[t].rank == rank)
            put(m, "  xs work_%d;\n", t);
    put(m, "  do\n  :: d_step { period < %d + oldest", p->periods);
    put_has_room(m, rank, admitted);
    put(m, " ->\n");
    for (int k = 0; k < p->tasks; k++) {
        int task = p->order[rank][k], stage = plan_task(p->plan, rank, task)->stage;
        put(m, "       if :: ");
        if (stage)
            put(m, "period >= %d && ", stage);
        put(m, "period < %" PRId64 " -> work_%d!", p->ends[rank] + stage,
            p->worker[rank * p->tasks + task]);
        lean_put_task(m, task);
        put(m, " :: else fi;\n");
    }
    put(m, "       period++ }\n  :: atomic { period == %d + oldest", p->periods);
    put_retire(m, rank);
}

/* inline fire_T(): hand out the next instance of T if its dependences are submitted. */
static void put_fire(const struct lean *m, int rank, int task)
{
    const struct program *p = m->p;
    put(m, "inline ");
    lean_put_of(m, "fire", rank, task);
    put(m, "() {\n  if\n  :: ");
    lean_put_of(m, "fired", rank, task);
    put(m, " < admitted_%d", rank);
    for (int e = 0; e < p->depends[task].count; e++) {
        put(m, " && ");
        lean_put_ahead(m, "submitted", rank, p->depends[task].items[e].task,
                       p->depends[task].items[e].distance, "fired", task);
    }
    put(m, " -> ");
    lean_put_of(m, "fired", rank, task);
    put(m, "++; work_%d!", p->worker[rank * p->tasks + task]);
    lean_put_task(m, task);
    put(m, "\n  :: else\n  fi\n}\n");
}

/* Retiring fires nothing: submitted instances stay submitted. */
static void put_dataflow(const struct lean *m, int rank)
{
    const struct program *p = m->p;
    char admitted[32], admits[96];
    snprintf(admitted, sizeof admitted, "admitted_%d", rank);
    snprintf(admits, sizeof admits, "(%s < %" PRId64 " && %s - oldest < %d)", admitted,
             p->ends[rank], admitted, p->depth);
    put(m, "  byte oldest;\n  do\n  :: d_step { %s", admits);
    put_has_room(m, rank, admitted);
    put(m, " ->\n       %s++", admitted);
    for (int k = 0; k < p->tasks; k++) {
        put(m, "; ");
        lean_put_of(m, "fire", rank, p->order[rank][k]);
        put(m, "()");
    }
    put(m, " }\n  :: atomic { !%s", admits);
    put_retire(m, rank);
}

/* ---- declarations ---------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The most instances of `tasks` tasks in a worker's queue (iterations that have a context) or in a
   stream's (iterations that the launch queue holds). */
static int64_t places(const struct lean *m, int rank, int tasks, bool stream)
{
    const struct program *p = m->p;
    bool ahead = stream && p->plan->pipeline.retire == RETIRE_SUBMIT;
    int64_t held = ahead ? p->window : p->depth;
    return tasks * least(p->ends[rank], held);
}

static void put_counts(const struct lean *m, int rank)
{
    static const char *const what[] = {"signalled", "recorded", "reached", "submitted", "fired"};
    const struct program *p = m->p;
    for (int task = 0; task < p->tasks; task++) {
        put(m, "byte ");
        const char *comma = "";
        for (int k = 0; k < 5; k++) {
            if ((k == 0 && (!lean_is_awaited(p, task) || lean_signal_is_local(p, rank, task))) ||
                (k == 1 && !lean_work(p, rank, task)) || (k == 4 && p->driver != DRIVER_DATAFLOW))
                continue;
            put(m, "%s", comma);
            lean_put_of(m, what[k], rank, task);
            comma = ", ";
        }
        put(m, ";\n");
    }
}

static void put_queues(const struct lean *m, int rank)
{
    const struct program *p = m->p;
    for (int t = 0; t < p->thread_count; t++) {
        int tasks = 0;
        for (int task = 0; task < p->tasks; task++)
            tasks += p->worker[rank * p->tasks + task] == t;
        if (tasks)
            put(m, "chan work_%d = [%" PRId64 "] of { byte };\n", t, places(m, rank, tasks, false));
    }
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != rank)
            continue;
        int tasks = 0;
        for (int task = 0; task < p->tasks; task++)
            tasks += lean_stream(p, rank, task) == s;
        put(m, "chan items_%d = [%" PRId64 "] of { byte }; /* ", s,
            least(places(m, rank, tasks, true), p->streams[s].cap));
        promela_put_agent(&m->model, program_stream_agent(p, s));
        put(m, " */\nbit late_%d;\n", s);
        if (lean_counts_busy(p, s))
            put(m, "byte busy_%d;\n", s);
        if (lean_is_bounded(m->p, s))
            put(m, "short len_%d; bit run_%d;\n", s, s);
    }
}

static bool is_locked(const struct program *p, int lock)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_LOCK && p->ops[k].object == lock)
            return true;
    return false;
}

static void put_declarations(const struct lean *m, int rank)
{
    const struct program *p = m->p;
    put(m, "\n/* rank %d: how many iterations each task has got how far; queues of tasks */\n",
        rank);
    put_counts(m, rank);
    put_queues(m, rank);
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != rank)
            continue;
        lean_put_pass(m, s);
        if (lean_is_bounded(m->p, s))
            lean_put_lead(m, s);
    }
    for (int k = 0; k < p->lock_count; k++)
        if (p->lock_rank[k] == rank && is_locked(p, k))
            put(m, "bit lock_%d;\n", k);
    if (p->driver != DRIVER_DATAFLOW)
        return;
    put(m, "byte admitted_%d; short served_%d;\n", rank, rank);
    for (int task = 0; task < p->tasks; task++)
        put_fire(m, rank, task);
}

/* A mismatch ends the run. If SPIN is told to ignore it, the run goes on and never blocks again. */
static void put_mismatch(const struct lean *m)
{
    put(m, "\n/* members of communicators: the collective each has started, 0 none */\n");
    for (int k = 0; k < m->p->member_count; k++)
        put(m, "byte current_%d;\n", k);
    put(m, "bit mismatch;\n"
           "inline agree(same) { if :: same :: else -> assert(false); mismatch = 1 fi }\n"
           "active proctype ended() { end: do :: mismatch od }\n");
}

/* ---- the model ------------------------------------------------------------------------------- */

static void put_process(const struct lean *m, const char *what, int number, int agent)
{
    put(m, "\nactive proctype %s_%d() /* ", what, number);
    promela_put_agent(&m->model, agent);
    put(m, " */\n{\n");
}

static void put_processes(const struct lean *m)
{
    const struct program *p = m->p;
    for (int t = 0; t < p->thread_count; t++) {
        put_process(m, "thread", t, program_thread_agent(p, t));
        if (p->threads[t].kind == THREAD_WORKER)
            lean_put_worker(m, t);
        else if (p->driver == DRIVER_CLOCK)
            put_clock(m, p->threads[t].rank);
        else
            put_dataflow(m, p->threads[t].rank);
        put(m, "}\n");
    }
    for (int s = 0; s < p->stream_count; s++) {
        if (!lean_stream_works(p, s))
            continue;
        put_process(m, "stream", s, program_stream_agent(p, s));
        lean_put_stream(m, s);
        put(m, "}\n");
    }
    for (int c = 0; c < p->comm_count; c++) {
        if (!lean_comm_is_used(p, c))
            continue;
        put_process(m, "comm", c, program_comm_agent(p, c));
        lean_put_comm(m, c);
        put(m, "}\n");
    }
}

/* A blocked process may leave work in a queue at the end, hence -q. */
static void put_model(const struct lean *m)
{
    const struct program *p = m->p;
    put(m, "/* A lean model of a plain pipeline. A deadlock is an invalid end state, a mismatch a\n"
           "   violated assertion: spin -a model.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -q "
           "*/\n");
    if (m->exact)
        put(m, "#define step (_pid >= 0) /* no effect */\n");
    bool matches = false;
    for (int task = 0; task < p->tasks; task++) {
        put(m, "#define ");
        lean_put_task(m, task);
        put(m, " %d\n", task + 1);
    }
    for (int rank = 0; rank < p->ranks; rank++)
        put_declarations(m, rank);
    for (int c = 0; c < p->comm_count; c++)
        matches |= lean_comm_is_used(p, c);
    if (matches)
        put_mismatch(m);
    put_processes(m);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_lean(const struct program *p, bool exact)
{
    const struct lean m = {
        .model = {.p = p, .out = stdout}, .p = p, .exact = exact, .numbered = lean_words_clash(p)};
    if (!lean_is_plain(p))
        return EXIT_NO_MODEL;
    put_model(&m);
    return EXIT_SUCCESS;
}

/* The model that `form` names; "": a lean one. */
static int print_plan(struct plan *plan, struct program_options options, const char *form,
                      struct diag *diag)
{
    struct program *program;
    bool general = strcmp(form, "general") == 0;
    if (plan->form != FORM_PIPELINE && !general)
        return EXIT_NO_MODEL;
    if (plan->form != FORM_PIPELINE)
        options = (struct program_options){.driver = DRIVER_NONE};
    if (found_resolve(plan, &plan->arena, diag) != STATUS_OK)
        return EXIT_FAILURE;
    enum status status = program_build(plan, &options, &program, diag);
    if (status != STATUS_OK)
        return status == STATUS_INPUT && !general ? EXIT_NO_MODEL : EXIT_FAILURE;
    int code = !general ? print_lean(program, strcmp(form, "exact") == 0)
               : export_promela(program, stdout, diag) == STATUS_OK ? EXIT_SUCCESS
                                                                    : EXIT_FAILURE;
    program_close(program);
    return fflush(stdout) == 0 && !ferror(stdout) ? code : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct plan plan;
    struct diag diag;
    int code = EXIT_FAILURE;
    const char *form = argc == 6 ? argv[5] : "";
    if (argc < 5 || argc > 6 || (argc == 6 && strcmp(form, "exact") && strcmp(form, "general"))) {
        fputs("usage: print_model PLAN clock|dataflow ITERATIONS RANKS [exact|general]\n", stderr);
        return EXIT_FAILURE;
    }
    const struct program_options options = {
        .driver = strcmp(argv[2], "clock") == 0 ? DRIVER_CLOCK : DRIVER_DATAFLOW,
        .iterations = atoi(argv[3]),
        .ranks = atoi(argv[4]),
    };
    diag_init(&diag);
    if (plan_read(argv[1], &plan, &diag) == STATUS_OK) {
        code = print_plan(&plan, options, form, &diag);
        plan_fini(&plan);
    }
    diag_print(&diag, "print_model", false, stderr);
    diag_fini(&diag);
    return code;
}
