/* verdict.c - see verdict.h. */
#include "verdict.h"

#include <inttypes.h>
#include <string.h>

#include "core/units.h"

enum { STEPS_HEAD = 12, STEPS_TAIL = 28 };

/* ---- text ------------------------------------------------------------------------------------ */

static const char *paint(bool color, enum verdict verdict)
{
    static const char *const codes[] = {"\033[1;32m", "\033[1;31m", "\033[1;33m"};
    return color ? codes[verdict] : "";
}

static void print_reach(const struct verify_report *report, FILE *out)
{
    if (report->verdict == VERDICT_VIOLATED)
        fprintf(out, "in %zu steps", report->stories[report->first].step_count);
    else if (report->limit)
        fprintf(out, "limit reached: %s", report->limit);
    else if (report->finite)
        fputs("every interleaving", out);
    else if (report->iterations < 0)
        fputs("any number of iterations", out);
    else
        fprintf(out, "%" PRId64 " iterations", report->iterations);
}

static void print_line(const struct verify_report *report, bool color, FILE *out)
{
    char seconds[UNITS_TEXT];
    units_show_time(report->seconds * 1e9, seconds);
    fprintf(out, "%-35s  %-8s  %s%-9s%s  ", report->plan,
            report->driver == DRIVER_NONE ? "-" : driver_key(report->driver),
            paint(color, report->verdict), verdict_key(report->verdict), color ? "\033[0m" : "");
    print_reach(report, out);
    if (report->states)
        if (report->states == 0 && report->verdict == VERDICT_PROVED)
            fputs("  by structure\n", out);
        else
            fprintf(out, "  %" PRIu64 " states  %s\n", report->states, seconds);
    else
        fprintf(out, "  by structure  %s\n", seconds);
}

static void print_step(const struct story_step *step, size_t number, int width, FILE *out)
{
    fprintf(out, "  %4zu  %-*s  %s\n", number, width, step->agent, step->action);
}

static int agent_width(const struct story *story)
{
    size_t width = 0;
    for (size_t i = 0; i < story->step_count; i++)
        if (strlen(story->steps[i].agent) > width)
            width = strlen(story->steps[i].agent);
    for (size_t i = 0; i < story->blocked_count; i++)
        if (strlen(story->blocked[i].agent) > width)
            width = strlen(story->blocked[i].agent);
    return (int)width;
}

static void print_cycle(const struct story *story, FILE *out)
{
    fputs("  cycle: ", out);
    for (size_t i = 0; i < story->cycle_count; i++)
        fprintf(out, "%s -> ", story->blocked[story->cycle[i]].agent);
    fprintf(out, "%s\n", story->blocked[story->cycle[0]].agent);
}

/* Steps first to last - 1 are left out, but not where something goes wrong. */
static void print_gap(const struct story *story, size_t first, size_t last, int width, FILE *out)
{
    size_t from = first;
    for (size_t i = first; i < last; i++) {
        if (!story->steps[i].is_fault)
            continue;
        if (i > from)
            fprintf(out, "  ....  %zu steps\n", i - from);
        print_step(&story->steps[i], i + 1, width, out);
        from = i + 1;
    }
    if (last > from)
        fprintf(out, "  ....  %zu steps; --witness=FILE writes all of them\n", last - from);
}

static void print_story(const struct story *story, bool whole, FILE *out)
{
    int width = agent_width(story);
    bool cut = !whole && story->step_count > STEPS_HEAD + STEPS_TAIL + 1;
    size_t tail = cut ? story->step_count - STEPS_TAIL : 0;
    for (size_t i = 0; i < story->step_count; i++) {
        if (cut && i == STEPS_HEAD) {
            print_gap(story, i, tail, width, out);
            i = tail;
        }
        print_step(&story->steps[i], i + 1, width, out);
    }
    if (story->blocked_count > 0)
        fputs("  blocked:\n", out);
    for (size_t i = 0; i < story->blocked_count; i++)
        fprintf(out, "     %c  %-*s  %s\n", story->blocked[i].in_cycle ? '*' : ' ', width,
                story->blocked[i].agent, story->blocked[i].waits_for);
    if (story->cycle_count > 0)
        print_cycle(story, out);
}

static bool is_violated(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

void verdict_print(const struct app *app, const struct verify_report *report, bool whole, FILE *out)
{
    print_line(report, app_color(app, out), out);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (is_violated(report->outcome[p]))
            fprintf(out, "  %s, %s: %s\n", property_key((enum property)p),
                    report->outcome[p] == OUTCOME_ALWAYS ? "always" : "in some interleavings",
                    report->stories[p].sentence);
    if (report->verdict == VERDICT_VIOLATED && !app->quiet)
        print_story(&report->stories[report->first], whole, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_number_or_null(struct json *json, const char *key, int64_t value)
{
    json_key(json, key);
    if (value < 0)
        json_null(json);
    else
        json_int(json, value);
}

static void write_properties(const struct verify_report *report, struct json *json)
{
    json_key(json, "properties");
    json_begin_object(json);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        json_put_string(json, property_key((enum property)p), outcome_key(report->outcome[p]));
    json_end_object(json);
}

static void write_steps(const struct story *story, struct json *json)
{
    json_key(json, "witness");
    json_begin_array(json);
    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];
        json_begin_object(json);
        json_put_int(json, "step", (int64_t)i + 1);
        put_number_or_null(json, "rank", step->rank);
        json_put_string(json, "agent", step->agent);
        json_put_string(json, "action", step->action);
        json_put_string(json, "task", step->task);
        put_number_or_null(json, "iteration", step->iteration);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_blocked(const struct story *story, struct json *json)
{
    json_key(json, "blocked");
    json_begin_array(json);
    for (size_t i = 0; i < story->blocked_count; i++) {
        const struct story_blocked *blocked = &story->blocked[i];
        json_begin_object(json);
        put_number_or_null(json, "rank", blocked->rank);
        json_put_string(json, "agent", blocked->agent);
        json_put_string(json, "waits_for", blocked->waits_for);
        json_put_bool(json, "in_cycle", blocked->in_cycle);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_iterations(const struct verify_report *report, struct json *json)
{
    json_key(json, "iterations");
    if (report->finite)
        json_null(json);
    else if (report->iterations < 0)
        json_string(json, "unbounded");
    else
        json_int(json, report->iterations);
}

void verdict_write(const struct verify_report *report, struct json *json)
{
    static const struct story none = {0};
    bool violated = report->verdict == VERDICT_VIOLATED;
    const struct story *story = violated ? &report->stories[report->first] : &none;
    json_begin_object(json);
    json_put_string(json, "plan", report->plan);
    json_put_string(json, "driver", driver_key(report->driver));
    json_put_string(json, "file", report->file);
    json_put_string(json, "verdict", verdict_key(report->verdict));
    write_iterations(report, json);
    write_properties(report, json);
    json_put_int(json, "states", (int64_t)report->states);
    json_put_int(json, "transitions", (int64_t)report->transitions);
    json_put_double(json, "seconds", report->seconds);
    json_put_int(json, "peak_bytes", (int64_t)report->peak_bytes);
    json_put_string(json, "limit", report->limit);
    json_put_string(json, "violation", violated ? property_key(report->first) : NULL);
    json_put_string(json, "sentence", story->sentence);
    write_steps(story, json);
    write_blocked(story, json);
    json_end_object(json);
}
