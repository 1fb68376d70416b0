/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - see trial.h. */
#include "trial.h"

#include <string.h>

#include "plan/text/parse.h"
#include "harness.h"
#include "tap.h"

static void run(struct trial *trial, struct runtime_options options)
{
    if (!trial->parsed)
        return;
    if (trial->plan.form != FORM_PIPELINE)
        options.driver = DRIVER_NONE;
    trial->status = runtime_run(&trial->plan, &options, &trial->result, &trial->diag);
    trial->ran = trial->status == STATUS_OK || trial->status == STATUS_VIOLATED;
}

void trial_text(struct trial *trial, const char *text, struct runtime_options options)
{
    *trial = (struct trial){.status = STATUS_INPUT};
    diag_init(&trial->diag);
    trial->parsed =
        plan_parse("test.yaml", text, strlen(text), &trial->plan, &trial->diag) == STATUS_OK;
    run(trial, options);
}

void trial_file(struct trial *trial, const char *path, struct runtime_options options)
{
    *trial = (struct trial){.status = STATUS_INPUT};
    diag_init(&trial->diag);
    trial->parsed = plan_read(path, &trial->plan, &trial->diag) == STATUS_OK;
    run(trial, options);
}

void trial_fini(struct trial *trial)
{
    if (trial->ran)
        runtime_result_fini(&trial->result);
    if (trial->parsed)
        plan_fini(&trial->plan);
    diag_fini(&trial->diag);
}

bool trial_says(const struct trial *trial, const char *text)
{
    return diag_says(&trial->diag, text);
}

void trial_tell(const struct trial *trial)
{
    const struct runtime_result *result = &trial->result;
    diag_tell(&trial->diag);
    for (int p = 0; trial->ran && p < PROPERTY_COUNT; p++)
        if (result->violations[p])
            tap_note("%s", result->violations[p]);
    for (size_t i = 0; trial->ran && i < result->blocked_count; i++)
        tap_note("%s %s", result->blocked[i].agent, result->blocked[i].waits_for);
}

bool trial_went_well(const struct trial *trial)
{
    const struct runtime_result *result = &trial->result;
    bool clean = trial->ran && trial->status == STATUS_OK && result->finished;
    for (int p = 0; clean && p < PROPERTY_COUNT; p++)
        clean = !result->violations[p];
    return clean && result->legal == ANSWER_YES && result->matches_serial != ANSWER_NO;
}

bool trial_matched(const struct trial *trial)
{
    return trial_went_well(trial) && trial->result.matches_serial == ANSWER_YES;
}

bool trial_is_possible(const struct trial *trial)
{
    return !trial->ran || trial_says(trial, "mismatch") ||
           (trial->result.legal == ANSWER_YES && (trial->result.finished || trial->result.hung) &&
            !trial_says(trial, "could go on"));
}
