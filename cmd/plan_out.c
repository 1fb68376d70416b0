/* SPDX-License-Identifier: Apache-2.0 */
/* plan_out.c - see plan_out.h. */
#include "plan_out.h"

#include <stdlib.h>
#include <string.h>

#include "yaml_json.h"

#include "plan/schedules/actions.h"
#include "plan/text/print.h"
#include "plan/schedules/complete_lists.h"

/* JSON is converted from the canonical YAML, so that one printer knows the keys. */
static enum status plan_out_write_json(struct app *app, const struct plan *plan, FILE *out)
{
    char *text;
    struct json json;
    enum status status = plan_text(plan, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    json_open(&json, out);
    status = yaml_write_json(text, strlen(text), &json, &app->diag);
    free(text);
    return status == STATUS_OK ? json_close(&json, &app->diag) : status;
}

/* The keys of the plan that a schedule cannot hold, in a warning. */
static enum status warn_left_out(struct app *app, const struct plan *plan)
{
    static const char *const kept[] = {"swplan", "name", "programs", "generate", "about", "source"};
    const char *text, *left = NULL;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    for (const char *line = text; status == STATUS_OK && line; line = strchr(line, '\n')) {
        line += *line == '\n';
        int length = (int)strspn(line, "abcdefghijklmnopqrstuvwxyz_0123456789");
        bool known = length == 0 || line[length] != ':';
        for (size_t i = 0; !known && i < sizeof kept / sizeof *kept; i++)
            known =
                strlen(kept[i]) == (size_t)length && strncmp(kept[i], line, (size_t)length) == 0;
        if (known)
            continue;
        left =
            arena_printf(&app->arena, "%s%s%.*s", left ? left : "", left ? ", " : "", length, line);
        if (!left)
            return diag_no_memory(&app->diag);
    }
    if (left)
        diag_warn(&app->diag,
                  "%s: a schedule holds the actions alone: left out: %s; --format=yaml leaves out "
                  "nothing",
                  plan->name, left);
    return status;
}

/* Actions that no version of PyTorch reads, or, unless it is meant, only later ones, and copies of the model, which rows
   do not show. */
static void warn_unread(struct app *app, const struct plan *plan, const struct rank_program *ranks,
                        int rank_count, bool is_later)
{
    unsigned kinds = 0;
    for (int rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            kinds |= 1u << ranks[rank].actions[i].kind;
    for (int kind = ACTION_WAIT_SEND_F; kind <= ACTION_REDUCE_EMBEDDING; kind++) {
        bool later = kind == ACTION_WAIT_SEND_F || kind == ACTION_WAIT_SEND_B ||
                     kind == ACTION_WAIT_REDUCE_GRAD;
        if (kinds & 1u << kind && !(later && is_later))
            diag_warn(&app->diag, "%s: %s of PyTorch reads %s", plan->name,
                      later ? "only a version from 2.15 on" : "no version",
                      action_text((enum action_kind)kind));
    }
    if (complete_lists_copies(plan) > 1)
        diag_warn(
            &app->diag,
            "%s: the rows are those of %d copies of the model, which a schedule does not say: "
            "PyTorch takes them for one; --format=yaml says it",
            plan->name, complete_lists_copies(plan));
}

/* An empty row is no rank to a reader of schedules, nor to plan/text/csv.h. */
static enum status plan_out_check_rows(struct app *app, const struct plan *plan,
                                       const struct rank_program *ranks, int rank_count)
{
    for (int rank = 0; rank < rank_count; rank++)
        if (ranks[rank].count == 0)
            return diag_error(&app->diag, STATUS_INPUT,
                              "%s: rank %d has no actions, and a schedule has no empty rows; "
                              "--format=yaml keeps the rank",
                              plan->name, rank);
    return STATUS_OK;
}

enum status plan_write_csv(struct app *app, const struct plan *plan, bool later, FILE *out)
{
    struct rank_program *ranks = plan->programs.ranks;
    int rank_count = plan->ranks;
    if (plan->form != FORM_PROGRAMS)
        return diag_error(&app->diag, STATUS_INPUT,
                          "%s: only rank programs can be written as a PyTorch schedule",
                          plan->name);
    if (plan->programs.generate.given) {
        enum status status =
            complete_lists_given(plan, &app->arena, &ranks, &rank_count, &app->diag);
        if (status != STATUS_OK)
            return status;
    }
    enum status status = plan_out_check_rows(app, plan, ranks, rank_count);
    if (status != STATUS_OK)
        return status;
    /* A rank a row, an action a cell, as PyTorch writes it. */
    for (int rank = 0; rank < rank_count; rank++) {
        for (size_t i = 0; i < ranks[rank].count; i++) {
            if (i > 0)
                fputc(',', out);
            action_print(&ranks[rank].actions[i], out);
        }
        fputc('\n', out);
    }
    warn_unread(app, plan, ranks, rank_count, later);
    return warn_left_out(app, plan);
}

enum status plan_write(struct app *app, const struct plan *plan, enum plan_format format, FILE *out)
{
    switch (format) {
    case PLAN_YAML: return plan_print(plan, out, &app->diag);
    case PLAN_JSON: return plan_out_write_json(app, plan, out);
    case PLAN_CSV: break;
    }
    return plan_write_csv(app, plan, false, out);
}

enum status plan_write_file(struct app *app, const struct plan *plan, enum plan_format format,
                            const char *path)
{
    struct app_output output;
    enum status status = app_create(app, path, &output);
    return status == STATUS_OK
               ? app_close_file(app, &output, plan_write(app, plan, format, output.file))
               : status;
}
