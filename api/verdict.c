/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see verdict.h. */
#include "verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/columns.h"
#include "base/units.h"
#include "telling.h"

enum { STEPS_HEAD = 12, STEPS_TAIL = 28, STEPS_MANY = 30, LEAST_BEFORE = 4 };

/* ---- text ------------------------------------------------------------------------------------ */

static const char *paint(bool color, enum verdict verdict)
{
    static const char *const codes[] = {"\033[1;32m", "\033[1;31m", "\033[1;33m"};
    assert((size_t)verdict < sizeof codes / sizeof *codes);
    return color ? codes[verdict] : "";
}

/* For how many runs a verdict holds, behind its word: "for any number of iterations and ranks", "in 12 steps". */
static void print_reach(const struct verify_report *report, FILE *out)
{
    const char *any_ranks = report->any_ranks ? " and any number of ranks" : "";
    if (report->verdict == VERDICT_VIOLATED && report->stories[report->first].step_count == 0)
        fputs("in every run", out);
    else if (report->verdict == VERDICT_VIOLATED)
        fprintf(out, "in %zu step%s", report->stories[report->first].step_count,
                units_plural(report->stories[report->first].step_count));
    else if (report->limit && report->bitstate)
        fputs(report->limit, out);
    else if (report->limit)
        fprintf(out, "limit reached: %s", report->limit);
    else if (report->verdict == VERDICT_UNDECIDED && report->hidden)
        fputs(report->hidden, out);
    else if (report->finite && report->any_times)
        fprintf(out, "for every interleaving of %d or more iterations%s", report->repeated,
                any_ranks);
    else if (report->finite && report->repeated > 0)
        fprintf(out, "for every interleaving of %d iteration%s%s", report->repeated,
                units_plural((size_t)report->repeated), any_ranks);
    else if (report->finite)
        fprintf(out, "for every interleaving%s", any_ranks);
    else if (report->iterations < 0)
        fprintf(out, "for any number of iterations%s", report->any_ranks ? " and ranks" : "");
    else {
        /* Ranks may have data for different numbers of them. */
        fprintf(out, "for %" PRId64, report->iterations);
        if (report->most_iterations > report->iterations)
            fprintf(out, " to %" PRId64, report->most_iterations);
        fprintf(out, " iteration%s%s", units_plural((size_t)report->most_iterations), any_ranks);
    }
    if (report->driver_named)
        fputs(" under the plan's driver", out);
}

/* Race freedom of a part of the work, or of none of it. */
static bool leaves_races_out(const struct verdict_view *view)
{
    return view->report->outcome[PROPERTY_RACE] == OUTCOME_PROVED &&
           (coverage_is_nothing(view->coverage) || coverage_is_partial(view->coverage));
}

/* The warnings that cast doubt on a proof: a dead write is no such one. */
static size_t count_doubts(const struct warnings *warnings)
{
    size_t count = 0;
    for (size_t i = 0; i < warnings->count; i++)
        count += warnings->items[i].kind != WARNING_DEAD_WRITE;
    return count;
}

bool verdict_is_plain(const struct verdict_view *view)
{
    return view->report->verdict == VERDICT_PROVED && view->coverage->unrecorded_count == 0 &&
           !leaves_races_out(view) && count_doubts(view->warnings) == 0;
}

/* The reasons for which a proof is not plain, one after the other. */
static void tell_reasons(const struct verdict_view *view, void (*tell)(void *, const char *),
                         void *arg)
{
    char text[COVERAGE_TEXT];
    const struct coverage *coverage = view->coverage;
    const size_t warnings = count_doubts(view->warnings);
    for (size_t i = 0; i < view->coverage->unrecorded_count; i++)
        tell(arg, coverage_unrecorded(&view->coverage->unrecorded[i], text));
    if (coverage->declared == 0)
        snprintf(text, sizeof text, "race: no %.*s declares what it reads or writes",
                 (int)strlen(coverage->unit) - 1, coverage->unit);
    else
        snprintf(text, sizeof text, "race: %" PRId64 " of %" PRId64 " %s declare accesses",
                 coverage->declared, coverage->all, coverage->unit);
    if (leaves_races_out(view))
        tell(arg, text);
    snprintf(text, sizeof text, "%zu warning%s", warnings, units_plural(warnings));
    if (warnings)
        tell(arg, text);
}

/* A list in a line. */
struct verdict_listing {
    FILE *out;
    const char *comma;
};

/* What a list in a line would take. */
struct verdict_listed {
    size_t count, bytes;
};

static void count_reason(void *arg, const char *reason)
{
    struct verdict_listed *listed = arg;
    listed->count++;
    listed->bytes += strlen(reason);
}

/* Several reasons that are long stand in lines of their own. */
static bool lists_reasons_below(const struct verdict_view *view)
{
    enum { MOST_BYTES = 80 };
    struct verdict_listed listed = {0};
    if (view->report->verdict != VERDICT_PROVED || verdict_is_plain(view))
        return false;
    tell_reasons(view, count_reason, &listed);
    return listed.count > 1 && listed.bytes > MOST_BYTES;
}

static void print_reason_line(void *arg, const char *reason)
{
    fprintf(arg, "  except %s\n", reason);
}

static void print_reason(void *arg, const char *reason)
{
    struct verdict_listing *listing = arg;
    fprintf(listing->out, "%s%s", listing->comma, reason);
    listing->comma = ", ";
}

/* "proved     for every interleaving", "proved for every interleaving, except race: 1 of 2 tasks declare accesses, 2 warnings" */
static void print_verdict(const struct verdict_view *view, const char *colour, FILE *out)
{
    struct verdict_listing listing = {out, ""};
    const char *end = *colour ? "\033[0m" : "";
    if (view->report->verdict != VERDICT_PROVED || verdict_is_plain(view)) {
        fprintf(out, "%s%-9s%s  ", colour, verdict_key(view->report->verdict), end);
        print_reach(view->report, out);
        return;
    }
    fprintf(out, "%sproved ", colour);
    print_reach(view->report, out);
    fputs(", except ", out);
    if (lists_reasons_below(view))
        fputs("what the next lines say", out);
    else
        tell_reasons(view, print_reason, &listing);
    fputs(end, out);
}

enum { PLAN_COLUMNS = 35 }; /* of a plan's name at the beginning of a line */

void verdict_print_head(FILE *out)
{
    fprintf(out, "%-*s  %-8s  %-9s  %s\n", PLAN_COLUMNS, "plan", "driver", "verdict",
            "for what, how, how long");
}

static void verdict_print_line(const struct verdict_view *view, bool color, FILE *out)
{
    const struct verify_report *report = view->report;
    enum verdict shade = report->verdict == VERDICT_PROVED && !verdict_is_plain(view)
                             ? VERDICT_UNDECIDED
                             : report->verdict;
    char seconds[UNITS_TEXT];
    units_show_time(report->seconds * 1e9, seconds);
    fprintf(out, "%s%*s  %-8s  ", report->plan, columns_fill(report->plan, PLAN_COLUMNS), "",
            report->driver == DRIVER_NONE ? "-" : driver_key(report->driver));
    print_verdict(view, paint(color, shade), out);
    if (report->searched || report->finite)
        fprintf(out, "  %" PRIu64 " state%s  %s\n", report->states,
                units_plural((size_t)report->states), seconds);
    else
        fprintf(out, "  by structure  %s\n", seconds);
    if (report->parts)
        fprintf(out, "  %s\n", report->parts);
    if (lists_reasons_below(view))
        tell_reasons(view, print_reason_line, out);
}

/* Widths of the columns of a story: numbers, agents. */
struct verdict_columns {
    int number, agent;
    const char *rest; /* behind the number of steps that are left out */
};

static void print_telling(const struct story *story, const struct telling *telling,
                          const struct verdict_columns *columns, FILE *out)
{
    char range[TELLING_RANGE];
    telling_range(telling, range);
    const char *agent = telling->times ? "" : story->steps[telling->last].agent;
    fprintf(out, "  %*s  %s%*s  ", columns->number, range, agent,
            columns_fill(agent, columns->agent), "");
    telling_print(story, telling, out);
}

static int verdict_agent_width(const struct story *story)
{
    int width = 0;
    for (size_t i = 0; i < story->step_count; i++)
        columns_widen(&width, story->steps[i].agent);
    for (size_t i = 0; i < story->blocked_count; i++)
        columns_widen(&width, story->blocked[i].agent);
    return width;
}

static void verdict_print_cycle(const struct story *story, FILE *out)
{
    fputs("  cycle: ", out);
    for (size_t i = 0; i < story->cycle_count; i++)
        fprintf(out, "%s -> ", story->blocked[story->cycle[i]].agent);
    fprintf(out, "%s%s\n", story->blocked[story->cycle[0]].agent,
            story->cycle_count == 1 ? ": it waits for one of its own later operations" : "");
}

static void print_left_out(size_t steps, const char *how, const struct verdict_columns *columns,
                           FILE *out)
{
    static const char dots[] = "................";
    fprintf(out, "  %.*s  %zu step%s%s\n", columns->number, dots, steps, units_plural(steps), how);
}

/* Lines first to last - 1 are left out, but not where something goes wrong. */
static void print_gap(const struct story *story, const struct telling *lines, size_t first,
                      size_t last, const struct verdict_columns *columns, FILE *out)
{
    size_t from = first;
    for (size_t i = first; i < last; i++) {
        if (story->steps[lines[i].first].agent_kind != AGENT_FAULT)
            continue;
        if (i > from)
            print_left_out(lines[i].first - lines[from].first, "", columns, out);
        print_telling(story, &lines[i], columns, out);
        from = i + 1;
    }
    if (last > from)
        print_left_out(lines[last].first - lines[from].first, columns->rest, columns, out);
}

static bool is_cut(size_t count, bool whole)
{
    return !whole && count > STEPS_HEAD + STEPS_TAIL + 1;
}

static void verdict_print_steps(const struct story *story, const struct telling *lines,
                                size_t count, bool whole, const struct verdict_columns *columns,
                                FILE *out)
{
    bool cut = is_cut(count, whole);
    size_t tail = cut ? count - STEPS_TAIL : 0;
    for (size_t i = 0; i < count; i++) {
        if (cut && i == STEPS_HEAD) {
            print_gap(story, lines, i, tail, columns, out);
            i = tail;
        }
        print_telling(story, &lines[i], columns, out);
    }
}

static void print_agent(const struct story_blocked *blocked, char mark,
                        const struct verdict_columns *columns, FILE *out)
{
    fprintf(out, "  %*c  %s%*s  %s\n", columns->number, mark, blocked->agent,
            columns_fill(blocked->agent, columns->agent), "", blocked->waits_for);
}

/* What follows "rank 5 " in the name of an agent, and that number; NULL: the name is another. */
static const char *behind_rank(const char *agent, int *rank)
{
    int length = 0;
    return sscanf(agent, "rank %d %n", rank, &length) == 1 && length > 0 ? agent + length : NULL;
}

static bool are_alike(const struct story_blocked *a, const struct story_blocked *b)
{
    int rank;
    const char *x = behind_rank(a->agent, &rank), *y = behind_rank(b->agent, &rank);
    return !a->in_cycle && !b->in_cycle && a->aside == b->aside && x && y && strcmp(x, y) == 0 &&
           strcmp(a->waits_for, b->waits_for) == 0;
}

/* In one line those behind agent `at` that are as it is, on other ranks, where they are several; returns how many. */
static size_t print_alike(const struct story *story, size_t at,
                          const struct verdict_columns *columns, FILE *out)
{
    enum { LISTED = 12 };
    size_t count = 0;
    ASSERT_INDEX(at, story->blocked_count);
    while (at + count + 1 < story->blocked_count &&
           are_alike(&story->blocked[at], &story->blocked[at + count + 1]))
        count++;
    if (count < 2)
        return 0;
    fprintf(out, "  %*c  the same on %zu more ranks:", columns->number, ' ', count);
    for (size_t i = 1; i <= count && i <= LISTED; i++) {
        int rank = 0;
        behind_rank(story->blocked[at + i].agent, &rank);
        fprintf(out, "%s %d", i > 1 ? "," : "", rank);
    }
    fputs(count > LISTED ? ", ...\n" : "\n", out);
    return count;
}

/* The agents of the cycle alone, in its order. */
static void print_ring(const struct story *story, const struct verdict_columns *columns, FILE *out)
{
    if (story->cycle_count == 0)
        return;
    for (size_t i = 0; i < story->cycle_count; i++)
        print_agent(&story->blocked[story->cycle[i]], '*', columns, out);
    verdict_print_cycle(story, out);
}

/* The lines before the last moment when all was well, if they are some; a fault is told. */
static size_t lines_before(const struct story *story, const struct telling *lines, size_t count)
{
    size_t before = 0;
    while (before < count && lines[before].last < story->well &&
           story->steps[lines[before].first].agent_kind != AGENT_FAULT)
        before++;
    return before < LEAST_BEFORE ? 0 : before;
}

static void print_before(size_t steps, const struct verdict_columns *columns, FILE *out)
{
    char range[TELLING_RANGE];
    const struct telling all = {.first = 0, .last = steps - 1};
    telling_range(&all, range);
    fprintf(out, "  %*s  earlier steps, which violate nothing%s\n", columns->number, range,
            columns->rest);
}

/* The steps behind those of the beginning that are left out, since they have no part in it. */
static size_t count_aside(const struct story *story, size_t first)
{
    size_t count = 0;
    for (size_t i = first; i < story->step_count; i++)
        count += story->steps[i].aside;
    return count;
}

static enum status print_story(const struct verdict_style *style, const struct story *story,
                               FILE *out)
{
    bool whole = style->whole;
    struct telling *lines = ARENA_ARRAY(style->arena, story->step_count + 1, struct telling);
    if (!lines)
        return diag_no_memory(style->diag);
    size_t count = telling_all(story, whole, lines), before = 0;
    const bool rings = is_cut(count, whole);
    if (!whole && story->step_count > STEPS_MANY)
        before = lines_before(story, lines, count);
    lines += before;
    count -= before;
    bool is_long = is_cut(count, whole);
    if (is_long)
        count = telling_fold(story, lines, count, style->arena);
    struct verdict_columns columns = {4, verdict_agent_width(story),
                                      style->brief ? "" : "; --full shows all"};
    for (size_t i = 0; i < count; i++) {
        char range[TELLING_RANGE];
        int width = telling_range(&lines[i], range);
        columns.number = width > columns.number ? width : columns.number;
    }
    if (rings) /* a long story tells its end first */
        print_ring(story, &columns, out);
    if (before > 0)
        print_before(lines[0].first, &columns, out);
    verdict_print_steps(story, lines, count, whole, &columns, out);
    const size_t aside = whole || count == 0 ? 0 : count_aside(story, lines[0].first);
    if (aside > 0)
        fprintf(out, "  %.*s  %zu step%s in between that play no part%s\n", columns.number,
                "................", aside, units_plural(aside), columns.rest);
    if (story->blocked_count > 0)
        fputs(story->cycle_count > 0 ? "  blocked agents (* in a cycle):\n" : "  blocked agents:\n",
              out);
    size_t others = 0;
    for (size_t i = 0; i < story->blocked_count; i++) {
        const struct story_blocked *blocked = &story->blocked[i];
        if (blocked->aside && !whole) {
            others++;
            continue;
        }
        print_agent(blocked, blocked->in_cycle ? '*' : ' ', &columns, out);
        if (!whole)
            i += print_alike(story, i, &columns, out);
    }
    if (others > 0)
        fprintf(out, "  %*s  %zu more thread%s, waiting for these\n", columns.number, "", others,
                units_plural(others));
    if (story->cycle_count > 0)
        verdict_print_cycle(story, out);
    return STATUS_OK;
}

const char *verdict_proved_under(const struct repair *repair, bool several_drivers)
{
    if (!several_drivers)
        return "proved";
    if (repair->proves[0] && repair->proves[1])
        return "proved under both drivers";
    return repair->proves[0] ? "proved under the clock driver only"
                             : "proved under the dataflow driver only";
}

/* A change of what the plan takes for granted mends no program. */
static const char *title_of_repair(const struct repair *repair)
{
    return repair->of_machine ? "No fix of the program found; with another machine" : "Fix";
}

/* "one; and another": each on a line of its own. */
static void print_changes(const char *change, FILE *out)
{
    static const char joint[] = "; and ";
    for (const char *next; (next = strstr(change, joint)); change = next + strlen(joint))
        fprintf(out, "%.*s;\n       and ", (int)(next - change), change);
    fprintf(out, "%s\n", change);
}

static void print_repair(const struct verdict_style *style, const struct verdict_view *view,
                         FILE *out)
{
    const struct repair *repair = view->repair;
    bool color = style->color;
    if (view->told) {
        fprintf(out, "  %s: see above\n", repair->found ? title_of_repair(repair) : "No fix found");
        return;
    }
    if (!repair->found) {
        fprintf(out,
                "  No fix found: %" PRIu64
                " change%s of up to three edits %s tried, and none could be proved (%s)\n",
                repair->candidates, units_plural((size_t)repair->candidates),
                repair->candidates == 1 ? "was" : "were", repair->why_not);
        return;
    }
    fprintf(out, "  %s%s (%s):%s ", color ? "\033[1;32m" : "", title_of_repair(repair),
            verdict_proved_under(repair, view->several_drivers), color ? "\033[0m" : "");
    print_changes(repair->change, out);
    if (repair->weakens)
        fputs("    This gives up something the plan had: make sure that nothing needs it.\n", out);
    for (const char *line = repair->diff; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, "    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

const char *verdict_quantifier(const struct verify_report *report, enum property property)
{
    if (report->outcome[property] == OUTCOME_ALWAYS)
        return "always";
    return report->maybe_always & 1u << property
               ? "in some interleavings or all (the search for one without it was cut short)"
               : "in some interleavings";
}

/* The properties of which "some" may be "always". */
static void write_maybe_always(const struct verify_report *report, struct json *json)
{
    json_begin_array_at(json, "maybe_always");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (report->outcome[p] == OUTCOME_SOME && report->maybe_always & 1u << p)
            json_string(json, property_key((enum property)p));
    json_end_array(json);
}

/* "use(0): on stream b, pushed by thread w, line 9". Other sentences than of a race or a lifetime say where they are. */
static void print_places(enum property property, const struct story *story, FILE *out)
{
    const bool wanted = property == PROPERTY_RACE || property == PROPERTY_LIFETIME;
    for (size_t i = 0; wanted && i < story->place_count; i++) {
        const struct story_place *place = &story->places[i];
        fprintf(out, "    %s: on %s", place->subject, place->agent);
        if (place->pusher)
            fprintf(out, ", pushed by %s", place->pusher);
        if (place->mark.line > 0)
            fprintf(out, ", line %u", (unsigned)place->mark.line);
        fputc('\n', out);
    }
}

void verdict_print_repair(const struct verdict_style *style, const struct verdict_view *view,
                          FILE *out)
{
    if (view->repair)
        print_repair(style, view, out);
}

enum status verdict_print(const struct verdict_style *style, const struct verdict_view *view,
                          FILE *out)
{
    const struct verify_report *report = view->report;
    verdict_print_line(view, style->color, out);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (outcome_is_violation(report->outcome[p]) && (style->quiet || !view->alike))
            fprintf(out, "  %s, %s: %s\n", property_key((enum property)p),
                    verdict_quantifier(report, (enum property)p), report->stories[p].sentence);
    if (view->alike && !style->quiet) {
        fprintf(out, "  as under the driver above; --driver=%s shows its steps\n",
                driver_key(report->driver));
        return STATUS_OK;
    }
    if (report->verdict == VERDICT_VIOLATED && !style->quiet)
        print_places(report->first, &report->stories[report->first], out);
    if (report->verdict == VERDICT_VIOLATED && view->coverage->unrecorded_count > 0) {
        /* The job may have had an order that the plan lacks, so that the violation is none of the job. */
        struct verdict_listing listing = {out, ""};
        char text[COVERAGE_TEXT];
        fputs("  not in the plan: ", out);
        for (size_t i = 0; i < view->coverage->unrecorded_count; i++)
            print_reason(&listing, coverage_unrecorded(&view->coverage->unrecorded[i], text));
        fputc('\n', out);
    }
    if (report->verdict != VERDICT_VIOLATED || style->quiet)
        return STATUS_OK;
    enum status status = print_story(style, &report->stories[report->first], out);
    verdict_print_repair(style, view, out);
    return status;
}

enum status verdict_print_found(const struct verdict_style *style,
                                const struct verify_report *so_far, FILE *out)
{
    const struct story *story = &so_far->stories[so_far->first];
    fprintf(out, "%s%*s  %-8s  found a violation in %zu step%s; still searching\n", so_far->plan,
            columns_fill(so_far->plan, PLAN_COLUMNS), "",
            so_far->driver == DRIVER_NONE ? "-" : driver_key(so_far->driver), story->step_count,
            units_plural(story->step_count));
    fprintf(out, "  %s: %s\n", property_key(so_far->first), story->sentence);
    return print_story(style, story, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_mark(struct json *json, struct mark mark)
{
    json_put_known(json, "line", mark.line, mark.line > 0);
    json_put_known(json, "column", mark.col, mark.line > 0);
}

static void write_reason(void *json, const char *reason)
{
    json_string(json, reason);
}

static void verdict_write_steps(const struct story *story, struct json *json)
{
    json_begin_array_at(json, "witness");
    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];
        json_begin_object(json);
        json_put_int(json, "step", (int64_t)i + 1);
        json_put_known(json, "rank", step->rank, step->rank >= 0);
        json_put_string(json, "agent", step->agent);
        json_put_string(json, "action", step->action);
        json_put_string(json, "task", step->task);
        json_put_known(json, "iteration", step->iteration, step->iteration >= 0);
        put_mark(json, step->mark);
        json_end_object(json);
    }
    json_end_array(json);
}

static void verdict_write_places(const struct story *story, struct json *json)
{
    json_begin_array_at(json, "operations");
    for (size_t i = 0; i < story->place_count; i++) {
        const struct story_place *place = &story->places[i];
        json_begin_object(json);
        json_put_string(json, "operation", place->subject);
        json_put_string(json, "agent", place->agent);
        json_put_string(json, "pushed_by", place->pusher);
        put_mark(json, place->mark);
        json_end_object(json);
    }
    json_end_array(json);
}

static void verdict_write_blocked(const struct story *story, struct json *json)
{
    json_begin_array_at(json, "blocked");
    for (size_t i = 0; i < story->blocked_count; i++) {
        const struct story_blocked *blocked = &story->blocked[i];
        json_begin_object(json);
        json_put_known(json, "rank", blocked->rank, blocked->rank >= 0);
        json_put_string(json, "agent", blocked->agent);
        json_put_string(json, "waits_for", blocked->waits_for);
        json_put_bool(json, "in_cycle", blocked->in_cycle);
        put_mark(json, blocked->place.mark);
        json_end_object(json);
    }
    json_end_array(json);
}

static void verdict_write_iterations(const struct verify_report *report, struct json *json)
{
    json_key(json, "iterations");
    if (report->finite && report->any_times)
        json_string(json, "unbounded");
    else if (report->finite && report->repeated > 0)
        json_int(json, report->repeated);
    else if (report->finite)
        json_null(json);
    else if (report->iterations < 0)
        json_string(json, "unbounded");
    else
        json_int(json, report->most_iterations);
}

/* The iterations in flight at most, and the queues that let no more in. */
static void verdict_write_in_flight(const struct verify_report *report, struct json *json)
{
    json_key(json, "in_flight");
    if (report->finite) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_int(json, "iterations_max", report->most_in_flight);
    json_put_int(json, "bytes_max", report->most_bytes);
    json_put_int(json, "launch_queue", report->launch_queue);
    json_end_object(json);
}

static void write_repair(const struct verdict_view *view, struct json *json)
{
    const struct repair *repair = view->repair;
    json_key(json, "fix");
    if (!repair || !repair->found || view->report->verdict != VERDICT_VIOLATED) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_string(json, "change", repair->change);
    json_put_int(json, "edits", repair->edits);
    json_put_bool(json, "proved", true);
    json_put_bool(json, "both_drivers",
                  view->several_drivers && repair->proves[0] && repair->proves[1]);
    json_put_bool(json, "weakens", repair->weakens);
    json_put_bool(json, "of_machine", repair->of_machine);
    json_put_bool(json, "of_file", repair->edited != NULL);
    json_put_string(json, "diff", repair->diff);
    json_end_object(json);
}

void verdict_write(const struct verdict_view *view, struct json *json)
{
    const struct verify_report *report = view->report;
    static const struct story none = {0};
    bool violated = report->verdict == VERDICT_VIOLATED;
    const struct story *story = violated ? &report->stories[report->first] : &none;
    json_begin_document(json, DOCUMENT_VERDICT);
    json_put_string(json, "plan", report->plan);
    json_put_string(json, "driver", driver_key(report->driver));
    json_put_bool(json, "driver_of_plan", report->driver_named);
    json_put_string(json, "file", report->file);
    json_put_string(json, "verdict", verdict_key(report->verdict));
    json_begin_array_at(json, "but_for");
    tell_reasons(view, write_reason, json);
    json_end_array(json);
    verdict_write_iterations(report, json);
    json_key(json, "ranks");
    if (report->any_ranks && report->verdict == VERDICT_PROVED)
        json_string(json, "unbounded");
    else
        json_int(json, report->ranks);
    json_put_string(json, "parts", report->parts);
    json_begin_object_at(json, "properties");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        json_put_string(json, property_key((enum property)p), outcome_key(report->outcome[p]));
    json_end_object(json);
    verdict_write_in_flight(report, json);
    coverage_write(view->coverage, ((1u << PROPERTY_COUNT) - 1) & ~report->asked, json);
    warnings_write(view->warnings, report->file, json);
    json_put_int(json, "states", (int64_t)report->states);
    json_put_int(json, "transitions", (int64_t)report->transitions);
    json_put_double(json, "seconds", report->seconds);
    json_put_int(json, "peak_bytes", (int64_t)report->peak_bytes);
    json_put_string(json, "limit", report->limit);
    write_maybe_always(report, json);
    json_put_string(json, "hidden", report->verdict == VERDICT_UNDECIDED ? report->hidden : NULL);
    json_put_string(json, "violation", violated ? property_key(report->first) : NULL);
    json_put_string(json, "sentence", story->sentence);
    verdict_write_places(story, json);
    verdict_write_steps(story, json);
    verdict_write_blocked(story, json);
    write_repair(view, json);
    json_end_object(json);
}
