/* SPDX-License-Identifier: Apache-2.0 */
/* two_runs_json.c - see two_runs_text.h: two runs and their difference as JSON. */
#include "two_runs_text.h"

#include "base/json.h"

static void write_run(const char *key, const struct compared_run *run, struct json *json)
{
    const struct run_info *info = &run->trace.info;
    json_begin_object_at(json, key);
    json_put_string(json, "store", run->store);
    json_key(json, "run");
    if (run->store)
        json_int(json, run->trace.run);
    else
        json_null(json);
    json_put_string(json, "plan", info->plan_name);
    json_put_string(json, "kind", run_kind_text(info->kind));
    json_put_string(json, "device", info->device);
    json_put_int(json, "ranks", info->ranks);
    json_put_double(json, "steps", run->account.steps);
    json_put_int(json, "replications", run->account.replications);
    json_put_double(json, "step_ns", run->account.step_ns);
    json_end_object(json);
}

static void write_row(const struct difference_row *row, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "kind", row->cause ? "idle" : "task");
    json_put_string(json, "name", row->name);
    json_put_string(json, "cause", row->cause);
    json_put_string(json, "waits_for", row->waits_for);
    json_put_double(json, "first_ns", row->before_ns);
    json_put_double(json, "second_ns", row->after_ns);
    json_put_double(json, "change_ns", difference_change(row));
    json_put_double(json, "first_count", row->before_count);
    json_put_double(json, "second_count", row->after_count);
    json_put_double(json, "waited_for_change_ns", row->itself_ns);
    json_end_object(json);
}

static void write_stream(const struct difference_stream *stream, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "first", stream->before ? stream->before->name : NULL);
    json_put_string(json, "second", stream->after ? stream->after->name : NULL);
    json_put_double(json, "first_busy_ns", stream->before ? stream->before->busy_ns : 0);
    json_put_double(json, "second_busy_ns", stream->after ? stream->after->busy_ns : 0);
    json_begin_array_at(json, "rows");
    for (size_t i = 0; i < stream->row_count; i++)
        write_row(&stream->rows[i], json);
    json_end_array(json);
    json_end_object(json);
}

enum status two_runs_write(const struct compared_run *first, const struct compared_run *second,
                           const struct difference *difference, FILE *out, struct diag *diag)
{
    struct json json;
    json_open(&json, out);
    json_begin_document(&json, DOCUMENT_TWO_RUNS);
    write_run("first", first, &json);
    write_run("second", second, &json);
    json_key(&json, "by_steps");
    json_bool(&json, difference->by_steps);
    json_put_double(&json, "change_ns", difference->after_ns - difference->before_ns);
    json_put_double(&json, "left_ns", difference->left_ns);
    json_put_double(&json, "uncaused_ns", difference->uncaused_ns);
    json_begin_array_at(&json, "streams");
    for (size_t i = 0; i < difference->stream_count; i++)
        write_stream(&difference->streams[i], &json);
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, diag);
}
