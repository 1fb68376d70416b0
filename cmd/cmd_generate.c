/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_generate.c - `swsim generate`: the plan of a known pipeline-parallel schedule. */
#include <string.h>

#include "app.h"
#include "options.h"
#include "plan_out.h"

#include "improve/found.h"
#include "plan/schedules/comms.h"
#include "plan/schedules/generate.h"
#include "base/nearest.h"
#include "base/units.h"

/* "NAME  description", a line each, for --help. */
static char *describe_schedules(struct app *app)
{
    char *text =
        arena_strdup(&app->arena, "Print the plan of a pipeline-parallel schedule. NAME is "
                                  "one of:\n");
    for (size_t i = 0; text && generate_name(i); i++)
        text =
            arena_printf(&app->arena, "%s\n  %-23s  %s", text, generate_name(i), generate_about(i));
    return text;
}

static bool known(const char *name)
{
    for (size_t i = 0; generate_name(i); i++)
        if (strcmp(generate_name(i), name) == 0)
            return true;
    return false;
}

static enum status unknown_schedule(struct app *app, const char *name)
{
    struct nearest nearest = {.found = name};
    for (size_t i = 0; generate_name(i); i++)
        nearest_try(&nearest, generate_name(i));
    diag_error(&app->diag, STATUS_USAGE, "unknown schedule '%s'%s", name,
               nearest_hint(&nearest, '\'', &app->arena));
    diag_note(&app->diag, "'swsim generate --help' lists the schedules");
    return STATUS_USAGE;
}

struct generate_request {
    struct generate_spec spec;
    bool comms, brief;
    int64_t memory, latency_ns;
    const char *times; /* NULL: not given */
    const char *path;  /* of the plan; "-": standard output */
};

static enum status fill_costs(struct app *app, struct generate_request *request, struct plan *plan)
{
    request->spec.memory = (int)request->memory;
    if (request->latency_ns)
        plan->programs.links.all.latency = (struct amount){true, request->latency_ns};
    return request->times ? option_times(app_reader(app), request->times, plan) : STATUS_OK;
}

/* The figures of a found schedule, for people; NULL: out of memory. */
static const char *describe_found(const struct found_figures *figures, struct arena *arena)
{
    char span[UNITS_TEXT], bound[UNITS_TEXT], makespan[UNITS_TEXT];
    units_print_time(figures->span_ns, span);
    units_print_time(figures->bound_ns, bound);
    units_print_time(figures->makespan_ns, makespan);
    double span_ns = (double)figures->span_ns, bound_ns = (double)figures->bound_ns;
    double work_ns = (double)figures->work_ns;
    return arena_printf(arena,
                        "Found: longest span of a rank %s, bubble %.4f; no order has less than %s, "
                        "bubble %.4f. Makespan %s.",
                        span, span_ns > 0 ? 1 - work_ns / span_ns : 0, bound,
                        bound_ns > 0 ? 1 - work_ns / bound_ns : 0, makespan);
}

/* Fill an empty plan: only the parameters if `brief`, else every action. */
static enum status fill_plan(struct app *app, struct generate_request *request, struct plan *plan)
{
    const struct generate_spec *spec = &request->spec;
    struct programs *programs = &plan->programs;
    struct found_figures figures;
    bool found = generate_is_found(spec->schedule);
    plan->form = FORM_PROGRAMS;
    plan->ranks = spec->ranks;
    plan->name =
        arena_printf(&plan->arena, "%s-p%d-m%d", spec->schedule, spec->ranks, spec->microbatches);
    if (!plan->name)
        return diag_no_memory(&app->diag);
    enum status status = fill_costs(app, request, plan);
    /* A search looks at the channel. */
    generate_channel(spec, &programs->fifo, &programs->batch);
    programs->generate = *spec;
    if (status == STATUS_OK)
        status =
            found
                ? found_search(spec, plan, &plan->arena, &programs->ranks, &figures, &app->diag)
                : generate_program(spec, &plan->arena, &programs->ranks, &plan->ranks, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (found && !(plan->about = describe_found(&figures, &plan->arena)))
        return diag_no_memory(&app->diag);
    bool comms = request->comms || spec->megatron;
    if (comms && !comms_present(programs->ranks, plan->ranks))
        status = comms_add(&plan->arena, programs->ranks, plan->ranks, generate_copies(spec),
                           &app->diag);
    programs->has_comms = comms;
    programs->copies = generate_copies(spec);
    if (request->brief)
        programs->copies = 0;
    else
        programs->generate = (struct generate_spec){0};
    return status;
}

static enum status generate(struct app *app, struct generate_request *request)
{
    struct plan plan;
    plan_init(&plan);
    enum status status = fill_plan(app, request, &plan);
    if (status == STATUS_OK)
        status = plan_write_file(app, &plan, app->json ? PLAN_JSON : PLAN_YAML, request->path);
    plan_fini(&plan);
    return status;
}

enum status cmd_generate(struct app *app, int argc, char **argv)
{
    struct generate_request request = {.path = "-"};
    int64_t ranks = 0, chunks = 0, microbatches = 0, group = 0;
    int megatron = MEGATRON_NONE;
    const struct option_spec options[] = {
        {"ranks", 'p', "N", "pipeline ranks", OPTION_INTEGER, .value = &ranks, .min = 1,
         .max = PLAN_MAX_RANKS},
        {"microbatches", 'm', "N", "microbatches in a step", OPTION_INTEGER, .value = &microbatches,
         .min = 1, .max = PLAN_MAX_MICROBATCHES},
        {"chunks", 'v', "N", "stages per rank (default: 1, or as many as the schedule needs)",
         OPTION_INTEGER, .value = &chunks, .min = 1, .max = PLAN_MAX_MODEL_STAGES},
        {"group", 0, "N", "interleaved_1f1b, forward_only: microbatches in a row", OPTION_INTEGER,
         .value = &group, .min = 1, .max = PLAN_MAX_MICROBATCHES},
        {"moe-overlap", 0, NULL, "interleaved_1f1b: the passes of a pair together", OPTION_FLAG,
         .value = &request.spec.moe_overlap},
        {"megatron", 0, "none|batch|odd_even|overlap_p2p|overlap_p2p_flush",
         "1f1b, interleaved_1f1b, forward_only: the messages of Megatron-LM", OPTION_CHOICE,
         .value = &megatron},
        {"times", 0, "F=T,I=T,...", "times of passes, for those found from costs (default: 1 each)",
         OPTION_TEXT, .value = &request.times},
        {"latency", 0, "T", "time of a message between ranks", OPTION_TIME,
         .value = &request.latency_ns},
        {"memory", 0, "N", "activations of a stage that a rank may hold", OPTION_INTEGER,
         .value = &request.memory, .min = 1, .max = PLAN_MAX_MICROBATCHES},
        {"comms", 0, NULL, "add the sends and receives", OPTION_FLAG, .value = &request.comms},
        {"brief", 0, NULL, "print the parameters, not the actions", OPTION_FLAG,
         .value = &request.brief, .excludes = "comms group"},
        {"output", 'o', "FILE", "write to this file (default: standard output)", OPTION_TEXT,
         .value = &request.path},
    };
    const struct command command = {
        .name = "swsim generate",
        .arguments = "NAME",
        .about = describe_schedules(app),
        .examples = "  swsim generate 1f1b --ranks=4 --microbatches=8\n"
                    "  swsim generate gpipe -p4 -m8 --comms -o gpipe.yaml\n"
                    "  swsim generate zb_2p -p8 -m24 --times=F=19ms,I=18ms,W=9ms --latency=1ms\n"
                    "  swsim generate zbv --ranks=4 --microbatches=8 --comms | swsim verify -",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!command.about)
        return diag_no_memory(&app->diag);
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (!known(arguments.items[0]))
        return unknown_schedule(app, arguments.items[0]);
    if (!ranks || !microbatches)
        return diag_error(&app->diag, STATUS_USAGE, "a schedule needs --ranks and --microbatches");
    struct generate_spec *spec = &request.spec;
    spec->given = true;
    spec->schedule = arguments.items[0];
    spec->ranks = (int)ranks;
    spec->chunks = (int)chunks;
    spec->microbatches = (int)microbatches;
    spec->group = (int)group;
    spec->megatron = (enum megatron_order)megatron;
    return generate(app, &request);
}
