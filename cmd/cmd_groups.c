/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_groups.c - `swsim groups`: the groups of ranks that `parallel:` makes. */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"

#include "base/json.h"
#include "plan/schedules/parallel.h"

/* A kind of group, or the dimensions that --of names. */
struct cmd_groups_kind {
    const char *name;
    unsigned dims;
    bool experts;
    enum group_kind listed; /* GROUP_KIND_COUNT: --of */
};

struct cmd_groups_request {
    const char *of; /* NULL: all kinds */
};

static int members_of(const struct parallel_spec *spec, const struct cmd_groups_kind *kind,
                      int group, int *out)
{
    if (kind->listed < GROUP_KIND_COUNT)
        return group_members(spec, kind->listed, group, out);
    int size = parallel_group_size(spec, kind->dims, kind->experts);
    for (int i = 0; i < size; i++)
        out[i] = parallel_member(spec, kind->dims, kind->experts, group, i);
    return size;
}

/* "0-7", "0-14 by 2" or "0 1 4 5". */
static void print_members(const int *members, int count)
{
    int step = count > 1 ? members[1] - members[0] : 0;
    bool even = count > 2 && step > 0;
    for (int i = 2; i < count; i++)
        even &= members[i] - members[i - 1] == step;
    if (even)
        printf("%d-%d", members[0], members[count - 1]);
    if (even && step > 1)
        printf(" by %d", step);
    for (int i = 0; i < count && !even; i++)
        printf("%s%d", i ? " " : "", members[i]);
}

static void print_kind(const struct parallel_spec *spec, const struct cmd_groups_kind *kind,
                       int *members)
{
    int groups = parallel_groups(spec, kind->dims, kind->experts);
    int count = members_of(spec, kind, 0, members);
    if (count == 1 && kind->listed < GROUP_KIND_COUNT)
        return;
    printf("\n  %s: %d group%s of %d\n", kind->name, groups, groups == 1 ? "" : "s", count);
    for (int group = 0; group < groups; group++) {
        members_of(spec, kind, group, members);
        printf("    %s.%d  ", kind->name, group);
        print_members(members, count);
        printf("\n");
    }
}

static void write_kind(struct json *json, const struct parallel_spec *spec,
                       const struct cmd_groups_kind *kind, int *members)
{
    json_begin_array_at(json, kind->name);
    for (int group = 0; group < parallel_groups(spec, kind->dims, kind->experts); group++) {
        int count = members_of(spec, kind, group, members);
        json_begin_array(json);
        for (int i = 0; i < count; i++)
            json_int(json, members[i]);
        json_end_array(json);
    }
    json_end_array(json);
}

/* tp-dp, or with an expert dimension expert-tp-dp. */
static enum status parse_of(struct app *app, const char *text, struct cmd_groups_kind *out)
{
    static const char experts[] = "expert-";
    *out = (struct cmd_groups_kind){.name = text, .listed = GROUP_KIND_COUNT};
    const char *at = text;
    if (strncmp(at, experts, strlen(experts)) == 0) {
        out->experts = true;
        at += strlen(experts);
    }
    for (;; at++) {
        size_t length = strcspn(at, "-");
        int dim = parallel_find_dim(at, length);
        if (dim < 0)
            return diag_error(&app->diag, STATUS_USAGE,
                              "--of: found '%s', expected dimensions such as tp-dp or "
                              "expert-ep-dp",
                              text);
        out->dims |= 1u << dim;
        out->experts |= dim == DIM_EP;
        at += length;
        if (!*at)
            return STATUS_OK;
    }
}

static void put_kind(struct json *json, const struct parallel_spec *spec,
                     const struct cmd_groups_kind *kind, int *members)
{
    if (json)
        write_kind(json, spec, kind, members);
    else
        print_kind(spec, kind, members);
}

static void put_kinds(struct json *json, const struct parallel_spec *spec,
                      const struct cmd_groups_kind *of, int *members)
{
    if (of) {
        put_kind(json, spec, of, members);
        return;
    }
    for (int k = 0; k < GROUP_KIND_COUNT; k++) {
        enum group_kind kind = (enum group_kind)k;
        bool experts = spec->size[DIM_EP] > 1 || spec->expert_tp > 0;
        if (experts || !group_kind_experts(kind))
            put_kind(json, spec,
                     &(struct cmd_groups_kind){group_kind_key(kind), group_kind_dims(kind),
                                               group_kind_experts(kind), kind},
                     members);
    }
}

static enum status put_all(struct app *app, const struct plan *plan,
                           const struct cmd_groups_kind *of, int *members)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    char order[8 * DIM_COUNT];
    parallel_print_order(spec, order, sizeof order);
    if (!app->json) {
        printf("%s, %d ranks, order %s\n", plan->name, parallel_world(spec), order);
        put_kinds(NULL, spec, of, members);
        return STATUS_OK;
    }
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_GROUPS);
    json_put_string(&json, "plan", plan->name);
    json_put_int(&json, "ranks", parallel_world(spec));
    json_put_string(&json, "order", order);
    json_begin_object_at(&json, "groups");
    put_kinds(&json, spec, of, members);
    json_end_object(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

static enum status cmd_groups_show(struct app *app, struct plan *plan, void *context)
{
    const struct cmd_groups_request *request = context;
    struct cmd_groups_kind of;
    if (plan->form != FORM_PROGRAMS || !plan->programs.parallel.given)
        return diag_error(&app->diag, STATUS_INPUT,
                          "%s: found no \"parallel\", expected rank programs with groups",
                          plan->file);
    enum status status = request->of ? parse_of(app, request->of, &of) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    int *members = calloc((size_t)parallel_world(&plan->programs.parallel), sizeof *members);
    status = members ? put_all(app, plan, request->of ? &of : NULL, members)
                     : diag_no_memory(&app->diag);
    free(members);
    return status;
}

enum status cmd_groups(struct app *app, int argc, char **argv)
{
    struct cmd_groups_request request = {0};
    const struct option_spec options[] = {
        {"of", 0, "DIMENSIONS", "groups over these alone, such as tp-dp or expert-ep-dp",
         OPTION_TEXT, .value = &request.of},
    };
    const struct command command = {
        .name = "swsim groups",
        .arguments = "PLAN",
        .about =
            "Print the groups of ranks that `parallel:` of PLAN makes: tensor, context, expert,\n"
            "data and pipeline parallelism, and the embedding groups. K in tp.K is the number\n"
            "of the group, as in the names of communicators.",
        .examples = "  swsim groups --of=tp-pp plans/examples/groups.yaml",
        COMMAND_OPTIONS(options),
    };
    return options_use_plan(app, &command, argc, argv, cmd_groups_show, &request);
}
