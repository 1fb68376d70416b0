/* SPDX-License-Identifier: Apache-2.0 */
/* swsim_store.c - stored runs of swsim.h. */
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "render.h"
#include "run_list.h"
#include "swsim_impl.h"
#include "trace/page.h"
#include "trace/profiler_json.h"
#include "trace/schedule_picture.h"

struct swsim_store {
    struct store *store; /* NULL: it was not opened */
    char *error;
};

enum swsim_status swsim_store_open(const char *path, struct swsim_store **out)
{
    struct swsim_store *store = out ? calloc(1, sizeof *store) : NULL;
    struct diag diag;
    if (!out)
        return SWSIM_USAGE;
    *out = store;
    if (!store)
        return SWSIM_SYSTEM;
    diag_init(&diag);
    enum status status = store_open(path ? path : "", false, &store->store, &diag);
    if (status != STATUS_OK) {
        store->store = NULL;
        store->error = swsim_all_messages(&diag);
    }
    diag_fini(&diag);
    return swsim_translate(status);
}

void swsim_store_close(struct swsim_store *store)
{
    struct diag diag;
    if (!store)
        return;
    diag_init(&diag);
    if (store->store)
        store_close(store->store, &diag); /* nothing was written: it cannot be lost */
    diag_fini(&diag);
    free(store->error);
    free(store);
}

const char *swsim_store_error(const struct swsim_store *store)
{
    if (!store || (!store->store && !store->error))
        return "out of memory";
    return store->error ? store->error : "";
}

/* ---- questions ------------------------------------------------------------------------------- */

/* A run of a store, and where its picture goes. */
struct run_asked {
    struct swsim_store *store;
    int64_t run;
    const char *path;
};

static enum status swsim_store_check(struct asking *asking, const struct run_asked *asked)
{
    if (!asked->store || !asked->store->store)
        return diag_error(&asking->diag, STATUS_USAGE, "the store was not opened");
    return asked->run >= STORE_LATEST
               ? STATUS_OK
               : diag_error(&asking->diag, STATUS_USAGE,
                            "a run has a number from 1 on, not a negative one");
}

static enum status swsim_store_list(struct asking *asking, const void *context)
{
    const struct run_asked *asked = context;
    size_t count;
    enum status status = swsim_store_check(asking, asked);
    if (status == STATUS_OK)
        status = run_list_print(asked->store->store, asking->text.out, &count, &asking->diag);
    return status == STATUS_OK ? run_list_write(asked->store->store, &asking->json, &asking->diag)
                               : status;
}

enum swsim_status swsim_runs(struct swsim_store *store, struct swsim_result **out)
{
    const struct run_asked asked = {.store = store, .run = STORE_LATEST};
    return swsim_make(NULL, swsim_store_list, &asked, out);
}

static enum status tell_ledger(struct asking *asking, const void *context)
{
    const struct run_asked *asked = context;
    struct trace trace;
    enum status status = swsim_store_check(asking, asked);
    if (status == STATUS_OK)
        status =
            run_ledger_load(asked->store->store, asked->run, &asking->arena, &trace, &asking->diag);
    if (status != STATUS_OK)
        return status;
    run_ledger_print(&trace, asking->text.out);
    run_ledger_write(&trace, &asking->json);
    return STATUS_OK;
}

enum swsim_status swsim_ledger(struct swsim_store *store, int64_t run, struct swsim_result **out)
{
    const struct run_asked asked = {.store = store, .run = run};
    return swsim_make(NULL, tell_ledger, &asked, out);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static bool swsim_store_ends_with(const char *path, const char *suffix)
{
    size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

/* Of the one run that is drawn; NULL: none was asked for. */
static const char *const *titles(const struct asking *asking)
{
    return asking->options.title ? &asking->options.title : NULL;
}

static enum status make_chart(struct asking *asking, const struct trace *trace, struct chart *out)
{
    enum status status = render_schedule_run(trace, &asking->arena, out, &asking->diag);
    if (status == STATUS_OK && asking->options.title)
        out->title = asking->options.title;
    return status;
}

static enum status write_chart(struct asking *asking, const struct trace *trace, FILE *out)
{
    const struct look look = {0};
    struct chart chart;
    enum status status = make_chart(asking, trace, &chart);
    return status == STATUS_OK
               ? page_write_charts(&chart, 1, PALETTE_PYTORCH, &look, out, &asking->diag)
               : status;
}

/* Outputs of their own: a page of all runs, or their JSON. */
static enum status write_file(struct asking *asking, const struct trace *trace, const char *path)
{
    const struct timeline_options timeline = {.range = TIMELINE_ALL, .titles = titles(asking)};
    const struct profiler_json_options json = {0};
    const struct look look = {0};
    struct text_stream stream;
    size_t bytes;
    if (!text_open(&stream))
        return diag_no_memory(&asking->diag);
    enum status status = !swsim_store_ends_with(path, ".html")
                             ? profiler_json_write(trace, &json, stream.out, &asking->diag)
                         : render_schedule_fits(trace)
                             ? write_chart(asking, trace, stream.out)
                             : page_write(trace, 1, &timeline, &look, stream.out, &asking->diag);
    char *text = text_close(&stream, status == STATUS_OK, &bytes);
    if (status == STATUS_OK)
        status =
            text ? output_write(path, text, bytes, &asking->diag) : diag_no_memory(&asking->diag);
    free(text);
    return status;
}

static enum status swsim_store_draw_schedule(struct asking *asking, const struct trace *trace,
                                             const struct draw_target *target)
{
    const struct schedule_picture_options usual = {0};
    struct chart chart;
    enum status status = make_chart(asking, trace, &chart);
    return status == STATUS_OK ? schedule_picture_render(&chart, 1, &usual, target, &asking->diag)
                               : status;
}

static enum status swsim_store_draw(struct asking *asking, const void *context)
{
    const struct run_asked *asked = context;
    const struct timeline_options timeline = {.titles = titles(asking)};
    const struct draw_target target = {.path = asked->path};
    struct trace trace;
    enum status status = swsim_store_check(asking, asked);
    if (status == STATUS_OK && !asked->path)
        status = diag_error(&asking->diag, STATUS_USAGE, "no file is named");
    if (status != STATUS_OK)
        return status;
    bool whole =
        swsim_store_ends_with(asked->path, ".html") || swsim_store_ends_with(asked->path, ".json");
    const struct run_part part = {.from = whole ? STORE_ALL : STORE_FIRST,
                                  .to = whole ? STORE_ALL : TIMELINE_FIRST_ITERATIONS};
    status = render_run_load(asked->store->store, asked->run, &part, &asking->arena, &trace,
                             &asking->diag);
    if (status != STATUS_OK)
        return status;
    if (whole)
        return write_file(asking, &trace, asked->path);
    return render_schedule_fits(&trace)
               ? swsim_store_draw_schedule(asking, &trace, &target)
               : timeline_render(&trace, 1, &timeline, &target, &asking->diag);
}

enum swsim_status swsim_draw_run(struct swsim_store *store, int64_t run,
                                 const struct swsim_options *options, const char *path,
                                 struct swsim_result **out)
{
    const struct run_asked asked = {store, run, path};
    return swsim_make(options, swsim_store_draw, &asked, out);
}
