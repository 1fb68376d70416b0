/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_why.c - `swsim why`: the ten largest stalls of a job, with what removing each would gain; or why one takes longer than another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"
#include "two_runs.h"

#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "sim/predict/account.h"
#include "sim/predict/predict.h"

enum { STALLS_SHOWN = 10 };

/* A cause of idle time of a stream. */
struct why_stall {
    const struct account_stream *stream;
    const struct account_part *part;
    double
        gain_ns; /* by how much the run is shorter without what is waited for; NAN: the cause is no work that could be removed */
};

static int why_longest_first(const void *left, const void *right)
{
    const struct why_stall *a = left, *b = right;
    return (a->part->ns < b->part->ns) - (a->part->ns > b->part->ns);
}

/* Gaps between works, and the time behind the last one, are no stalls. */
static bool is_stall(const struct account_part *part)
{
    return part->ns >= 1 && strcmp(part->cause, LEDGER_ORDER) != 0 &&
           strcmp(part->cause, "no_more_data") != 0 &&
           strcmp(part->cause, ACCOUNT_NOT_RECORDED) != 0;
}

static enum status list_stalls(struct app *app, const struct run_account *account,
                               struct why_stall **out, size_t *count)
{
    size_t most = 0;
    *count = 0;
    for (size_t s = 0; s < account->stream_count; s++)
        most += account->streams[s].idle.count;
    *out = ARENA_ARRAY(&app->arena, most + 1, struct why_stall);
    if (!*out)
        return diag_no_memory(&app->diag);
    for (size_t s = 0; s < account->stream_count; s++)
        for (size_t i = 0; i < account->streams[s].idle.count; i++)
            if (is_stall(&account->streams[s].idle.items[i]))
                (*out)[(*count)++] = (struct why_stall){&account->streams[s],
                                                        &account->streams[s].idle.items[i], NAN};
    qsort(*out, *count, sizeof **out, why_longest_first);
    return STATUS_OK;
}

/* ---- what removing one would gain ------------------------------------------------------------------ */

/* A prediction that was refused is an answer, NAN; one that failed is none. */
static enum status why_answer(struct app *app, enum status status, const char *name)
{
    if (status == STATUS_OK || status == STATUS_INPUT || status == STATUS_USAGE)
        return STATUS_OK;
    return diag_error(&app->diag, status, "what %s would gain cannot be predicted",
                      name ? name : "the job");
}

/* How long the run takes where work of this name takes no time; NULL: as it is. NAN where the plan has no such work. */
static enum status time_without(struct app *app, const struct plan *plan, const char *name,
                                double *out)
{
    const struct time_rule rule = {.task = name, .factor = 0};
    const struct predict_options options = {.program = {.driver = DRIVER_NONE},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .times = &rule,
                                            .time_count = name ? 1 : 0};
    struct prediction prediction;
    struct diag quiet;
    diag_init(&quiet);
    const enum status status = predict(plan, &options, &prediction, &quiet);
    diag_fini(&quiet);
    *out = NAN;
    if (status == STATUS_OK) {
        *out = (double)prediction.total_ns;
        prediction_fini(&prediction);
    }
    return why_answer(app, status, name);
}

/* The work that is waited for: of "hipFree in aten::empty, train.py(41): step" the call, of "aten::stack, data.py(12): next" the
   operator. */
static const char *waited_for(struct app *app, const struct account_part *part)
{
    const char *end = part->waits_for ? strstr(part->waits_for, " in ") : NULL;
    if (!end && part->waits_for && strcmp(part->cause, "host") == 0)
        end = strstr(part->waits_for, ", ");
    return end ? arena_strndup(&app->arena, part->waits_for, (size_t)(end - part->waits_for))
               : part->waits_for;
}

/* The same of a job whose host takes no time there, by its trace; NAN of a store, whose plan does not tell what the host did. */
static enum status time_without_host(struct app *app, const char *spec, const char *name,
                                     double *out)
{
    struct app quiet = *app;
    struct plan plan;
    diag_init(&quiet.diag);
    enum status status = two_runs_plan_without(&quiet, spec, name, &plan);
    diag_fini(&quiet.diag);
    *out = NAN;
    if (status != STATUS_OK)
        return why_answer(app, status, name);
    status = time_without(app, &plan, NULL, out);
    plan_fini(&plan);
    return status;
}

/* That of the same cause before it; else by the plan, and where that has no such work, without what the host did. */
static enum status find_gain(struct app *app, const char *spec, const struct plan *plan,
                             double base_ns, struct why_stall *stalls, size_t at)
{
    struct why_stall *stall = &stalls[at];
    const char *name = waited_for(app, stall->part);
    double without_ns = NAN;
    for (size_t k = 0; name && k < at; k++) {
        const char *other = waited_for(app, stalls[k].part);
        if (other && strcmp(other, name) == 0) {
            stall->gain_ns = stalls[k].gain_ns;
            return STATUS_OK;
        }
    }
    enum status status = name ? time_without(app, plan, name, &without_ns) : STATUS_OK;
    if (status == STATUS_OK && name && isnan(without_ns) && strcmp(stall->part->cause, "host") == 0)
        status = time_without_host(app, spec, name, &without_ns);
    stall->gain_ns = base_ns - without_ns;
    return status;
}

static enum status find_gains(struct app *app, const char *spec, const struct plan *plan,
                              double measured_ns, struct why_stall *stalls, size_t count)
{
    double base_ns;
    enum status status = time_without(app, plan, NULL, &base_ns);
    if (status == STATUS_OK && !(fabs(base_ns / measured_ns - 1) <= 0.05))
        diag_warn(
            &app->diag,
            "the plan takes %+.1f%% longer than the job was measured to take: each gain may be "
            "wrong by as much",
            100 * (base_ns / measured_ns - 1));
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = find_gain(app, spec, plan, base_ns, stalls, i);
    return status;
}

/* ---- as text and as JSON ---------------------------------------------------------------------------- */

static void why_print(const struct run_account *account, const char *name,
                      const struct why_stall *stalls, size_t count)
{
    char whole[UNITS_TEXT], time[UNITS_TEXT], gain[UNITS_TEXT];
    units_show_time(account->step_ns, whole);
    printf("%s takes %s; its streams are idle longest for\n\n%10s  %10s  %-8s  %s\n", name, whole,
           "Idle", "Gain", "Stream", "Waits for");
    for (size_t i = 0; i < count; i++) {
        units_show_time(stalls[i].part->ns, time);
        units_show_time(fmax(stalls[i].gain_ns, 0), gain);
        printf("%10s  %10s  %-8s  ", time, isnan(stalls[i].gain_ns) ? "-" : gain,
               stalls[i].stream->name);
        printable_put(stalls[i].part->name, false, stdout);
        putchar('\n');
    }
    puts("\nGain: how much shorter the run would be if what is waited for took no time; -: "
         "the cause is no work that could be removed");
}

static enum status why_print_json(struct app *app, const struct run_account *account,
                                  const char *name, const struct why_stall *stalls, size_t count)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_WHY);
    json_put_string(&json, "plan", name);
    json_put_double(&json, "measured_ns", account->step_ns);
    json_begin_array_at(&json, "stalls");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(&json);
        json_put_string(&json, "stream", stalls[i].stream->name);
        json_put_string(&json, "cause", stalls[i].part->cause);
        json_put_string(&json, "words", stalls[i].part->name);
        json_put_string(&json, "waits_for", stalls[i].part->waits_for);
        json_put_double(&json, "idle_ns", stalls[i].part->ns);
        json_put_double(&json, "gain_ns", stalls[i].gain_ns);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

/* ---- the verb ----------------------------------------------------------------------------------------- */

static enum status why_one(struct app *app, const char *spec)
{
    struct trace trace;
    struct run_account account;
    struct plan plan;
    struct why_stall *stalls;
    const char *path;
    size_t count;
    enum status status = two_runs_load(app, spec, &trace, &path);
    if (status == STATUS_OK)
        status = account_make(&trace, false, &account, &app->diag);
    if (status == STATUS_OK)
        status = list_stalls(app, &account, &stalls, &count);
    if (status == STATUS_OK)
        status = two_runs_plan(app, &trace, &plan);
    if (status != STATUS_OK)
        return status;
    count = count < STALLS_SHOWN ? count : STALLS_SHOWN;
    status = find_gains(app, spec, &plan, account.step_ns, stalls, count);
    if (status == STATUS_OK && app->json)
        status = why_print_json(app, &account, plan.name, stalls, count);
    else if (status == STATUS_OK)
        why_print(&account, plan.name, stalls, count);
    plan_fini(&plan);
    return status;
}

enum status cmd_why(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .name = "swsim why",
        .arguments = "TRACE|DB[:RUN] [TRACE|DB[:RUN]]",
        .about = "Say why a job takes so long: the ten largest stalls of its streams, what each "
                 "waits for,\n"
                 "and what the job would gain if that took no time. With a second job: why that "
                 "one takes\n"
                 "longer, or less.\n"
                 "\n"
                 "TRACE is what 'swsim import' reads of a job that came to its end, or a folder of "
                 "its ranks;\n"
                 "DB a trace store with a run.",
        .examples = "  swsim why trace.json.gz\n"
                    "  swsim why yesterday.json.gz today.json.gz\n",
        .more_arguments = 1,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (arguments.count == 1)
        return why_one(app, arguments.items[0]);
    const struct two_runs two = {.first = arguments.items[0],
                                 .second = arguments.items[1],
                                 .diff = true,
                                 .seed = 1,
                                 .replications = 1,
                                 .limit = NAN};
    return two_runs_compare(app, &two);
}
