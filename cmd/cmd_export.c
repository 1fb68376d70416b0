/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `swsim export`: a plan in another format. */
#include <string.h>

#include "app.h"
#include "options.h"
#include "plan_out.h"

#include "improve/found.h"
#include "plan/schedules/comms.h"
#include "plan/schedules/complete_lists.h"
#include "plan/schedules/generate.h"
#include "plan/schedules/pytorch.h"
#include "plan/text/chakra.h"
#include "base/output.h"

enum { CHAKRA = PLAN_CSV + 1 }; /* after the formats of plan_out.h, as in the option's list */

struct export_request {
    struct arguments arguments;
    int format; /* as above; -1: the default */
    const char *path;
    int receives, version; /* -1: not given */
    bool merge;
};

/* ---- rank programs: what is added to the passes ---------------------------------------------- */

static bool is_completed(const struct export_request *request)
{
    return request->receives >= 0 || request->version >= 0;
}

static enum status list_passes(struct app *app, struct plan *plan)
{
    struct programs *programs = &plan->programs;
    if (plan->form != FORM_PROGRAMS)
        return diag_error(
            &app->diag, STATUS_INPUT,
            "%s: --comms, --pytorch and --merge complete rank programs, and this plan is "
            "of another form",
            plan->name);
    if (programs->generate.given) {
        enum status status =
            complete_lists_given(plan, &plan->arena, &programs->ranks, &plan->ranks, &app->diag);
        if (status != STATUS_OK)
            return status;
        programs->copies = generate_copies(&programs->generate);
        programs->generate = (struct generate_spec){0};
    }
    return STATUS_OK;
}

/* Only passes can be completed: what else is there may stand at another place than it would be given. */
static enum status check_passes(struct app *app, const struct plan *plan)
{
    for (int rank = 0; rank < plan->ranks; rank++)
        for (size_t i = 0; i < plan->programs.ranks[rank].count; i++) {
            const struct action *action = &plan->programs.ranks[rank].actions[i];
            char name[ACTION_NAME];
            if (action->kind == ACTION_IDLE || action->kind == ACTION_OVERLAP_F_B ||
                comms_is_pass(action))
                continue;
            return plan_error_at(plan, &app->diag, action->mark,
                                 "found %s, expected passes alone for --comms and --pytorch",
                                 comms_action_name(action, name, sizeof name));
        }
    return STATUS_OK;
}

static enum status cmd_export_complete(struct app *app, struct plan *plan,
                                       const struct export_request *request)
{
    struct programs *programs = &plan->programs;
    const struct pytorch_options options = {
        .version = (enum pytorch_version)(request->version + 1),
        .receives = request->receives >= 0 ? (enum receives)request->receives : RECEIVES_EARLY,
        .plan = plan,
        .copies = complete_lists_copies(plan)};
    enum status status = check_passes(app, plan);
    if (status == STATUS_OK)
        status = pytorch_complete(&plan->arena, programs->ranks, plan->ranks, &options, &app->diag);
    if (status == STATUS_OK)
        programs->has_comms = true;
    return status;
}

static enum status cmd_export_prepare(struct app *app, struct plan *plan,
                                      const struct export_request *request)
{
    if (!is_completed(request) && !request->merge)
        return STATUS_OK;
    enum status status = list_passes(app, plan);
    if (status == STATUS_OK && request->merge)
        status = comms_merge_bw(&plan->arena, plan->programs.ranks, plan->ranks, &app->diag);
    return status == STATUS_OK && is_completed(request) ? cmd_export_complete(app, plan, request)
                                                        : status;
}

/* ---- formats --------------------------------------------------------------------------------- */

/* A file for each rank: PREFIX.0.et, PREFIX.1.et, ... */
static enum status write_chakra(struct app *app, const struct plan *plan, const char *prefix)
{
    struct arena arena;
    struct chakra_bytes *files;
    if (strcmp(prefix, "-") == 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--format=chakra writes a file for each rank: expected --output=PREFIX");
    arena_init(&arena, 0);
    enum status status = chakra_write(plan, &arena, &files, &app->diag);
    for (int r = 0; status == STATUS_OK && r < plan->ranks; r++) {
        const char *path = arena_printf(&arena, "%s.%d.et", prefix, r);
        status = path ? output_write(path, (const char *)files[r].items, files[r].count, &app->diag)
                      : diag_no_memory(&app->diag);
    }
    arena_fini(&arena);
    return status;
}

static enum status export_plan(struct app *app, struct plan *plan, void *context)
{
    const struct export_request *request = context;
    int format = request->format >= 0 ? request->format : app->json ? PLAN_JSON : PLAN_YAML;
    struct app_output output;
    bool as_written = (format == PLAN_YAML || format == PLAN_JSON) && !is_completed(request);
    enum status status = STATUS_OK;
    if (!as_written || request->merge)
        status = found_resolve(plan, &plan->arena, &app->diag);
    if (status == STATUS_OK)
        status = cmd_export_prepare(app, plan, request);
    if (status == STATUS_OK && format == CHAKRA)
        return write_chakra(app, plan, request->path);
    if (status == STATUS_OK)
        status = app_create(app, request->path, &output);
    if (status != STATUS_OK)
        return status;
    bool later = request->version + 1 == PYTORCH_2_15;
    status = format == PLAN_CSV ? plan_write_csv(app, plan, later, output.file)
                                : plan_write(app, plan, (enum plan_format)format, output.file);
    return app_close_file(app, &output, status);
}

enum status cmd_export(struct app *app, int argc, char **argv)
{
    struct export_request request = {.format = -1, .path = "-", .receives = -1, .version = -1};
    enum status status;
    const struct option_spec options[] = {
        {"format", 'f', "yaml|json|csv|chakra", "default yaml, with --json json", OPTION_CHOICE,
         .value = &request.format},
        {"as", 0, "yaml|json|csv|chakra", "the same as --format", OPTION_CHOICE,
         .value = &request.format},
        {"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
         .value = &request.path},
        {"comms", 0, "early|deferred|timed",
         "rank programs: add messages, received as PyTorch does, late, or in order of time",
         OPTION_CHOICE, .value = &request.receives},
        {"pytorch", 0, "2.9|2.15",
         "rank programs: add what this version of PyTorch adds, messages too", OPTION_CHOICE,
         .value = &request.version},
        {"merge", 0, NULL, "rank programs: first join each I with the W behind it to B",
         OPTION_FLAG, .value = &request.merge},
    };
    const struct command command = {
        .name = "swsim export",
        .arguments = "PLAN",
        .about =
            "Print PLAN in another format: its canonical YAML, the same as JSON, for rank "
            "programs\n"
            "a PyTorch schedule, or for host programs the execution traces of Chakra, a file for "
            "each rank.",
        .examples = "  swsim export --format=yaml schedule.csv\n"
                    "  swsim generate 1f1b -p4 -m8 | swsim export --format=csv -\n"
                    "  swsim export --format=csv --pytorch=2.15 passes.csv\n"
                    "  swsim export --format=chakra -o job job.yaml",
        COMMAND_OPTIONS(options),
    };
    if (!options_parse(app, &command, argc, argv, &request.arguments, &status))
        return status;
    return app_with_written(app, request.arguments.items[0], export_plan, &request);
}
