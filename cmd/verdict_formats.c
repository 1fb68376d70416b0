/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_formats.c - see verdict_formats.h.
 *
 * GitHub: "Workflow commands", ::error file=,line=,title=::message, with %, line ends and, in properties, commas and colons
 * escaped. SARIF: OASIS, Static Analysis Results Interchange Format 2.1.0, section 3.14 and 3.27. JUnit: the elements
 * that CI systems read, testsuite, testcase, failure, error.
 */
#include "verdict_formats.h"

#include <assert.h>
#include <string.h>

/* A finding: what is wrong, and where. */
struct format_item {
    const char *level; /* "error", "warning" */
    const char *rule;  /* "race", "plan": a text that has no special characters */
    const char *plan;  /* "train, clock driver" */
    const char *text, *file;
    struct mark mark;           /* line 0: not known */
    const struct story *others; /* its places but the first are those that it meets; NULL: none */
};

static void put_escaped(const char *text, bool in_property, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '%': fputs("%25", out); break;
        case '\r': fputs("%0D", out); break;
        case '\n': fputs("%0A", out); break;
        case ',':
        case ':':
            if (in_property) {
                fprintf(out, "%%%02X", (unsigned)*text);
                break;
            }
            fputc(*text, out);
            break;
        default: fputc(*text, out);
        }
}

static void put_github(const struct format_item *item, FILE *out)
{
    fprintf(out, "::%s file=", item->level);
    put_escaped(item->file, true, out);
    if (item->mark.line > 0)
        fprintf(out, ",line=%u,col=%u", (unsigned)item->mark.line, (unsigned)item->mark.col);
    fprintf(out, ",title=swsim %s::", item->rule);
    put_escaped(item->plan, false, out);
    fputs(": ", out);
    put_escaped(item->text, false, out);
    fputc('\n', out);
}

/* An element of `locations`; `subject` NULL: it has no message. */
static void put_location(const char *file, struct mark mark, const char *subject, struct json *json)
{
    json_begin_object(json);
    json_begin_object_at(json, "physicalLocation");
    json_begin_object_at(json, "artifactLocation");
    json_put_string(json, "uri", file);
    json_end_object(json);
    json_begin_object_at(json, "region");
    json_put_int(json, "startLine", mark.line > 0 ? mark.line : 1);
    if (mark.line > 0)
        json_put_int(json, "startColumn", mark.col);
    json_end_object(json);
    json_end_object(json);
    if (subject) {
        json_begin_object_at(json, "message");
        json_put_string(json, "text", subject);
        json_end_object(json);
    }
    json_end_object(json);
}

static void put_sarif(const struct format_item *item, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "ruleId", item->rule);
    json_put_string(json, "level", item->level);
    json_begin_object_at(json, "message");
    json_put_string(json, "text", item->text);
    json_end_object(json);
    json_begin_array_at(json, "locations");
    put_location(item->file, item->mark, NULL, json);
    json_end_array(json);
    if (item->others && item->others->place_count > 1) {
        json_begin_array_at(json, "relatedLocations");
        for (size_t i = 1; i < item->others->place_count; i++)
            if (item->others->places[i].mark.line > 0)
                put_location(item->file, item->others->places[i].mark,
                             item->others->places[i].subject, json);
        json_end_array(json);
    }
    json_end_object(json);
}

/* XML has no other control characters than tab and the line's ends. */
static void put_xml(const char *text, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*text < ' ' && !strchr("\t\n\r", *text) ? '?' : *text, out);
        }
}

/* A case; `item` NULL: it passed. */
static void put_junit(const char *plan, double seconds, const struct format_item *item, FILE *out)
{
    fputs("  <testcase classname=\"swsim verify\" name=\"", out);
    put_xml(plan, out);
    fprintf(out, "\" time=\"%.6f\"", seconds);
    if (!item) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, ">\n    <%s type=\"%s\" message=\"",
            strcmp(item->rule, "plan") == 0 ? "error" : "failure", item->rule);
    put_xml(item->text, out);
    fputs("\">", out);
    put_xml(item->file, out);
    if (item->mark.line > 0)
        fprintf(out, ":%u:%u", (unsigned)item->mark.line, (unsigned)item->mark.col);
    fprintf(out, "</%s>\n  </testcase>\n", strcmp(item->rule, "plan") == 0 ? "error" : "failure");
}

static void put_item(struct formats *formats, double seconds, const struct format_item *item)
{
    switch (formats->format) {
    case FORMAT_TEXT: break;
    case FORMAT_GITHUB: put_github(item, formats->out); break;
    case FORMAT_SARIF: put_sarif(item, &formats->json); break;
    case FORMAT_JUNIT: put_junit(item->plan, seconds, item, formats->out); break;
    }
}

void formats_begin(struct formats *formats, enum verdict_format format, FILE *out)
{
    assert(format != FORMAT_TEXT);
    *formats = (struct formats){.format = format, .out = out};
    if (format == FORMAT_JUNIT)
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite "
              "name=\"swsim\">\n",
              out);
    if (format != FORMAT_SARIF)
        return;
    struct json *json = &formats->json;
    json_open(json, out);
    json_begin_object(json);
    json_put_string(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_put_string(json, "version", "2.1.0");
    json_begin_array_at(json, "runs");
    json_begin_object(json);
    json_begin_object_at(json, "tool");
    json_begin_object_at(json, "driver");
    json_put_string(json, "name", "swsim");
    json_put_string(json, "version", PACKAGE_VERSION);
    json_end_object(json);
    json_end_object(json);
    json_begin_array_at(json, "results");
}

/* Of agents that wait for each other the first ones: ": thread a is at x, waits for ...; thread b ...". NULL: no memory. */
static const char *tell_cycle(const struct story *story, struct arena *arena)
{
    enum { MOST = 4 };
    const char *text = "";
    for (size_t i = 0; i < story->cycle_count && i < MOST && text; i++) {
        const struct story_blocked *blocked = &story->blocked[story->cycle[i]];
        text = arena_printf(arena, "%s%s %s %s", text, *text ? ";" : ":", blocked->agent,
                            blocked->waits_for);
    }
    return text && story->cycle_count > MOST
               ? arena_printf(arena, "%s; and %zu more", text, story->cycle_count - MOST)
               : text;
}

/* "race: A accesses ... Fix (proved): ..."; NULL: no memory. */
static const char *violation_text(const struct verdict_view *view, struct arena *arena)
{
    const struct verify_report *report = view->report;
    const struct story *story = &report->stories[report->first];
    const struct repair *repair = view->repair;
    const bool fixed = repair && repair->found && !repair->of_machine;
    const char *cycle = tell_cycle(story, arena);
    return cycle ? arena_printf(arena, "%s: %s%s%s%s", property_key(report->first), story->sentence,
                                cycle, fixed ? ". Fix (proved): " : "", fixed ? repair->change : "")
                 : NULL;
}

enum status formats_verdict(struct formats *formats, const struct verdict_view *view, bool expected,
                            struct arena *arena, struct diag *diag)
{
    const struct verify_report *report = view->report;
    const bool violated = report->verdict == VERDICT_VIOLATED;
    const char *plan =
        report->driver == DRIVER_NONE
            ? report->plan
            : arena_printf(arena, "%s, %s driver", report->plan, driver_key(report->driver));
    const char *text = violated ? violation_text(view, arena)
                                : arena_printf(arena, "undecided: a limit was reached (%s)",
                                               report->limit ? report->limit : "interrupted");
    if (!plan || !text)
        return diag_no_memory(diag);
    if (report->verdict == VERDICT_PROVED || expected) {
        if (formats->format == FORMAT_JUNIT)
            put_junit(plan, report->seconds, NULL, formats->out);
        return STATUS_OK;
    }
    const struct story *story = violated ? &report->stories[report->first] : NULL;
    const struct format_item item = {.level = violated ? "error" : "warning",
                                     .rule = violated ? property_key(report->first) : "undecided",
                                     .plan = plan,
                                     .text = text,
                                     .file = report->file,
                                     .mark = story && story->place_count > 0 ? story->places[0].mark
                                                                             : (struct mark){0},
                                     .others = story};
    put_item(formats, report->seconds, &item);
    return STATUS_OK;
}

void formats_errors(struct formats *formats, const char *plan, enum status status,
                    const struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++) {
        const struct diag_message *message = &diag->messages[i];
        if (message->severity != SEVERITY_ERROR)
            continue;
        const struct format_item item = {.level = "error",
                                         .rule = status == STATUS_VIOLATED ? "expect" : "plan",
                                         .plan = plan,
                                         .text = message->text,
                                         .file = message->file ? message->file : plan,
                                         .mark = message->mark};
        put_item(formats, 0, &item);
    }
}

enum status formats_end(struct formats *formats, struct diag *diag)
{
    struct json *json = &formats->json;
    if (formats->format == FORMAT_JUNIT)
        fputs(" </testsuite>\n</testsuites>\n", formats->out);
    if (formats->format == FORMAT_SARIF) {
        json_end_array(json);
        json_end_object(json);
        json_end_array(json);
        json_end_object(json);
        return json_close(json, diag);
    }
    return diag_flush(diag, formats->out, "standard output");
}
