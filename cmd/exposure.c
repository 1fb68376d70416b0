/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.c - see exposure.h: the profile of the public library, for people and as JSON. */
#include "exposure.h"

#include <stdlib.h>

#include "base/json.h"
#include "plan/text/print.h"
#include "gpu/lib/swpipe.h"

static enum status exposure_translate(enum swpipe_status status)
{
    switch (status) {
    case SWPIPE_OK:
    case SWPIPE_END: return STATUS_OK;
    case SWPIPE_FAILED:
    case SWPIPE_TIMEOUT: return STATUS_VIOLATED;
    case SWPIPE_USAGE: return STATUS_USAGE;
    case SWPIPE_INPUT: return STATUS_INPUT;
    case SWPIPE_SYSTEM: break;
    }
    return STATUS_SYSTEM;
}

static enum status exposure_write_profile(struct app *app, const struct plan *plan,
                                          const struct exposure_options *options,
                                          const struct swpipe_profile *profile)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_EXPOSURE);
    json_put_string(&json, "plan", plan->name);
    json_put_string(&json, "device", device_kind_key(options->device));
    json_put_double(&json, "baseline_ns", 1e9 * profile->baseline_seconds);
    json_begin_object_at(&json, "exposed_ns");
    for (size_t i = 0; i < profile->task_count; i++)
        json_put_double(&json, profile->tasks[i].task, 1e9 * profile->tasks[i].seconds);
    json_end_object(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

static enum status print_profile(struct app *app, const struct plan *plan,
                                 const struct exposure_options *options, struct swpipe *pipe,
                                 const struct swpipe_profile *profile)
{
    char *text = swpipe_format_profile(pipe, profile);
    if (!text)
        return diag_no_memory(&app->diag);
    printf("%s: exposed time of each task, on %s, one task after another\n\n%s", plan->name,
           device_kind_key(options->device), text);
    free(text);
    return STATUS_OK;
}

static enum status exposure_measure(struct app *app, const struct plan *plan,
                                    const struct exposure_options *options, struct swpipe *pipe)
{
    int ranks = options->ranks ? options->ranks : plan_rank_count(plan);
    const struct swpipe_profile_options how = {.measure = options->iterations};
    struct swpipe_profile profile;
    void **batches = calloc((size_t)ranks, sizeof *batches); /* the plan's copies bring numbers */
    if (!batches)
        return diag_no_memory(&app->diag);
    enum status status = exposure_translate(swpipe_profile(pipe, batches, &how, &profile));
    free(batches);
    if (status != STATUS_OK)
        return diag_error(&app->diag, status, "%s", swpipe_error(pipe));
    return app->json ? exposure_write_profile(app, plan, options, &profile)
                     : print_profile(app, plan, options, pipe, &profile);
}

enum status exposure_show(struct app *app, const struct plan *plan,
                          const struct exposure_options *options)
{
    const char *text;
    struct swpipe *pipe = NULL;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    const struct swpipe_config config = {
        .plan_file = plan->file,
        .plan_text = text,
        .device = options->device == DEVICE_KIND_CUDA ? SWPIPE_CUDA : SWPIPE_HOST,
        .ranks = options->ranks,
        .wait_timeout_ns = options->timeout_ns,
        .progress_timeout_ns = options->timeout_ns};
    status = exposure_translate(swpipe_open(&config, &pipe));
    if (status != STATUS_OK)
        diag_error(&app->diag, status, "%s", swpipe_error(pipe));
    else
        status = exposure_measure(app, plan, options, pipe);
    swpipe_close(pipe);
    return status;
}
