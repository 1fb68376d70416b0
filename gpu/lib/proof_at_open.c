/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_at_open.c - the proof that swpipe_open asks for, swpipe_verify and swpipe_predict.
 *
 * The Corollaries are those of the SWPipeline reference: 1, a dependence within an iteration on a later stage; 2, one
 * on a task that the same thread is given later in the same period; 3, one on an iteration before whose task comes in
 * a later period.
 */
#include "swpipe_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/quick_proof.h"
#include "api/swsim_impl.h"
#include "plan/coverage.h"
#include "plan/hang.h"
#include "plan/text/warnings.h"

#define LIMIT_NS INT64_C(20000000)

static void proof_at_open_tell(const struct swpipe_config *config, const char *text)
{
    if (config->message && *text)
        config->message(config->message_arg, text);
}

/* ---- what must hang -------------------------------------------------------------------------- */

static int corollary(const struct plan *plan, const struct dep *dep)
{
    const struct task *tasks = plan->pipeline.tasks;
    int periods = tasks[dep->on].stage - tasks[dep->task].stage - dep->distance;
    return periods <= 0 ? 2 : dep->distance > 0 ? 3 : 1;
}

/* One thread that waits for itself. */
static enum status refuse_own_wait(struct swpipe *pipe)
{
    const struct dep *dep = NULL;
    const struct task *tasks = pipe->plan.pipeline.tasks;
    enum status status = pipe->driver == DRIVER_CLOCK
                             ? hang_find(&pipe->plan, pipe->ranks, &dep, &pipe->diag)
                             : STATUS_OK;
    if (status || !dep)
        return status;
    return diag_error_at(
        &pipe->diag, pipe->plan.file, NULL, dep->mark,
        "%s waits for %s, which its own thread comes to later: a deadlock under the "
        "clock driver (Corollary %d); see 'swsim verify'",
        tasks[dep->task].name, tasks[dep->on].name, corollary(&pipe->plan, dep));
}

static struct program_options options_of(const struct swpipe *pipe)
{
    return (struct program_options){
        .driver = pipe->driver, .ranks = pipe->ranks, .max_depth = pipe->max_depth};
}

/* The story goes to the message function, the sentence becomes the error or a message, too. */
static enum status proof_at_open_conclude(struct swpipe *pipe, const struct swpipe_config *config,
                                          const struct quick_proof *proof, const char *story)
{
    char text[QUICK_SENTENCE + 256];
    proof_at_open_tell(config, story);
    if (proof->outcome == QUICK_MUST_HANG)
        return diag_error(&pipe->diag, STATUS_INPUT, "%s: must hang under the %s driver: %s",
                          pipe->plan.file, driver_key(pipe->driver), proof->sentence);
    if (proof->outcome != QUICK_PROVED) {
        snprintf(text, sizeof text, "%s: %s; see swpipe_verify\n", pipe->plan.file,
                 proof->sentence);
        proof_at_open_tell(config, text);
    }
    return STATUS_OK;
}

static enum status proof_at_open_prove(struct swpipe *pipe, const struct swpipe_config *config)
{
    const struct program_options options = options_of(pipe);
    struct quick_proof proof;
    struct text_stream stream;
    if (!text_open(&stream))
        return diag_no_memory(&pipe->diag);
    enum status status = quick_proof_make(
        &pipe->plan, &options, config->proof_limit_ns ? config->proof_limit_ns : LIMIT_NS, &proof,
        stream.out, &pipe->diag);
    char *story = text_close(&stream, true, NULL);
    if (status == STATUS_OK)
        status = story ? proof_at_open_conclude(pipe, config, &proof, story)
                       : diag_no_memory(&pipe->diag);
    free(story);
    return status;
}

/* Tasks of a communicator that are functions: the proof knows the call that the plan describes, not theirs. */
static void tell_unseen(const struct swpipe *pipe, const struct swpipe_config *config)
{
    char names[400] = "", text[600];
    size_t used = 0;
    for (size_t i = 0; i < config->task_count; i++) {
        const struct swpipe_task *task = &config->tasks[i];
        int t = task->name && task->function ? swpipe_find_task(pipe, task->name) : -1;
        if (t >= 0 && pipe->plan.pipeline.tasks[t].work.comm >= 0 && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     task->name);
    }
    if (used == 0)
        return;
    snprintf(
        text, sizeof text,
        "%s: the proof assumes that these functions make the calls that the plan describes: %s\n",
        pipe->plan.file, names);
    proof_at_open_tell(config, text);
}

/* Forgetting the count is easy, and the run looks well. */
static void tell_no_functions(const struct swpipe *pipe, const struct swpipe_config *config)
{
    char text[512];
    if (!config->tasks || config->task_count > 0)
        return;
    snprintf(text, sizeof text,
             "%s: tasks is given, but task_count is 0: every task does the work of the plan\n",
             pipe->plan.file);
    proof_at_open_tell(config, text);
}

/* A plan may name the driver that it is for; the pipeline's is that of the configuration, in which the clock is 0. */
static void tell_other_driver(const struct swpipe *pipe, const struct swpipe_config *config)
{
    const struct pipeline *pipeline = &pipe->plan.pipeline;
    enum driver named = pipeline->driver == PLAN_DRIVER_DATAFLOW ? DRIVER_DATAFLOW : DRIVER_CLOCK;
    char text[512];
    if (!pipeline->driver_given || named == pipe->driver)
        return;
    snprintf(text, sizeof text, "%s: the plan names driver %s; config.driver, %s, overrides it\n",
             pipe->plan.file, driver_key(named), driver_key(pipe->driver));
    proof_at_open_tell(config, text);
}

/* Names that are probably misspelt or lack a declaration: the proof is of the plan as it stands. */
static enum status tell_warnings(struct swpipe *pipe, const struct swpipe_config *config)
{
    struct arena arena;
    struct warnings found;
    if (!config->message)
        return STATUS_OK;
    arena_init(&arena, 0);
    enum status status = warnings_find(&pipe->plan, &arena, &found, &pipe->diag);
    for (size_t i = 0; status == STATUS_OK && i < found.count; i++) {
        const struct warning *warning = &found.items[i];
        const char *text = arena_printf(&arena, "%s:%u:%u: warning: %s\n", pipe->plan.file,
                                        warning->mark.line, warning->mark.col, warning->text);
        proof_at_open_tell(config, text ? text : warning->text);
    }
    arena_fini(&arena);
    return status;
}

static enum status tell_undeclared(struct swpipe *pipe, const struct swpipe_config *config)
{
    struct coverage coverage;
    char text[512];
    enum status status = coverage_find(&pipe->plan, &coverage, &pipe->diag);
    if (status || !coverage_is_nothing(&coverage))
        return status;
    snprintf(text, sizeof text,
             "%s: no task says what it reads and writes, so the proof finds no race\n",
             pipe->plan.file);
    proof_at_open_tell(config, text);
    return STATUS_OK;
}

enum status proof_at_open(struct swpipe *pipe, const struct swpipe_config *config)
{
    tell_other_driver(pipe, config);
    tell_no_functions(pipe, config);
    enum status status = tell_warnings(pipe, config);
    if (!status)
        status = refuse_own_wait(pipe);
    if (status || config->proof_limit_ns < 0)
        return status;
    tell_unseen(pipe, config);
    status = tell_undeclared(pipe, config);
    return status ? status : proof_at_open_prove(pipe, config);
}

/* ---- questions ------------------------------------------------------------------------------- */

typedef enum swsim_status ask(const struct swsim_plan *plan, const struct swsim_options *options,
                              struct swsim_result **out);

static enum status proof_at_open_translate(enum swsim_status status)
{
    static const enum status statuses[] = {[SWSIM_OK] = STATUS_OK,
                                           [SWSIM_LIMIT] = STATUS_LIMIT,
                                           [SWSIM_USAGE] = STATUS_USAGE,
                                           [SWSIM_INPUT] = STATUS_INPUT,
                                           [SWSIM_SYSTEM] = STATUS_SYSTEM};
    return statuses[status];
}

/* The answer is kept until the next one. */
static enum status question(struct swpipe *pipe, ask *verb, int64_t limit_ns,
                            struct swpipe_answer *out)
{
    static const int holds[] = {[SWSIM_PROVED] = 1, [SWSIM_VIOLATED] = 0, [SWSIM_UNDECIDED] = -1};
    if (!pipe->has_plan)
        return diag_error(&pipe->diag, STATUS_USAGE, "the plan was not read");
    if (!out || limit_ns < 0)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          out ? "limit_ns is negative: expected 0, as long as it takes, or more"
                              : "the place for the answer is NULL");
    const struct swsim_plan plan = {.plan = pipe->plan, .has_plan = true};
    const struct swsim_options options = {
        .driver = pipe->driver == DRIVER_DATAFLOW ? SWSIM_DRIVER_DATAFLOW : SWSIM_DRIVER_CLOCK,
        .ranks = pipe->ranks,
        .max_depth = pipe->max_depth,
        .limit_ns = limit_ns};
    swsim_free(pipe->answer);
    enum status status = proof_at_open_translate(verb(&plan, &options, &pipe->answer));
    if (status)
        return diag_error(&pipe->diag, status, "%s", swsim_error(pipe->answer));
    *out = (struct swpipe_answer){.holds = holds[swsim_verdict(pipe->answer)],
                                  .text = swsim_text(pipe->answer),
                                  .json = swsim_json(pipe->answer),
                                  .repair = swsim_better_plan(pipe->answer)};
    return STATUS_OK;
}

enum swpipe_status swpipe_verify(struct swpipe *pipe, int64_t limit_ns, struct swpipe_answer *out)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, question(pipe, swsim_verify, limit_ns, out));
}

enum swpipe_status swpipe_predict(struct swpipe *pipe, struct swpipe_answer *out)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, question(pipe, swsim_predict, 0, out));
}
