/* SPDX-License-Identifier: Apache-2.0 */
/* frontier_report.c - see frontier_report.h. */
#include "frontier_report.h"

#include <string.h>

#include "improve/tune.h"
#include "plan/coverage.h"
#include "base/units.h"

/* ---- options and warnings -------------------------------------------------------------------- */

enum status frontier_check_samples(const struct frontier_options *options, const struct plan *plan,
                                   struct diag *diag)
{
    int size = plan->programs.stages.model.microbatch;
    if (options->samples && size && options->samples != size)
        return diag_error(diag, STATUS_USAGE, "--samples: found %d, expected %d as \"model\" says",
                          options->samples, size);
    return STATUS_OK;
}

static bool is_tried(const struct frontier *f, enum axis axis, int value)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->candidates[i].at[axis] == value && f->candidates[i].fate != FATE_IMPOSSIBLE)
            return true;
    return false;
}

/* "all" asks for those that can be. */
static bool is_every_word(enum axis axis, const struct axis_values *values)
{
    return values->count > 1 && axis_word(axis, 0) && !axis_word(axis, (int)values->count);
}

/* Values that were asked for, and that no candidate can have. */
static void warn_of_values(const struct frontier *f, struct diag *diag)
{
    for (int a = 0; a < AXES; a++) {
        const struct axis_values *values = &f->options->axes[a];
        bool every = is_every_word((enum axis)a, values);
        for (size_t i = 0; !every && i < values->count; i++) {
            const char *word = axis_word((enum axis)a, values->items[i]);
            char number[16];
            snprintf(number, sizeof number, "%d", values->items[i]);
            if (!is_tried(f, (enum axis)a, values->items[i]))
                diag_warn(diag, "--%s: found %s, but no schedule that was asked for can have it",
                          axis_key((enum axis)a), word ? word : number);
        }
    }
}

void frontier_warn(const struct frontier *f, struct diag *diag)
{
    if (f->fates[FATE_UNTRIED])
        diag_warn(diag, "%s: interrupted: %zu candidate%s not tried", f->plan->name,
                  f->fates[FATE_UNTRIED], units_plural(f->fates[FATE_UNTRIED]));
    if (!f->has_times)
        diag_warn(diag, "%s gives no times: F, I and W are assumed to take 1 ms each",
                  f->plan->name);
    warn_of_values(f, diag);
    coverage_warn(f->plan, diag);
}

/* ---- as text --------------------------------------------------------------------------------- */

/* The number of an axis as people count it; 0: the schedule's own. */
static int frontier_report_number_of(const struct frontier *f, const struct candidate *candidate,
                                     enum axis axis)
{
    switch (axis) {
    case AXIS_MICROBATCHES: return frontier_microbatches(f, candidate);
    case AXIS_HELD: return frontier_held(candidate);
    case AXIS_SCHEDULE:
    case AXIS_SIZE:
    case AXIS_CHUNKS:
    case AXIS_GROUP:
    case AXIS_BALANCE:
    case AXIS_CHECKPOINT:
    case AXIS_CHANNEL:
    case AXES: break;
    }
    return candidate->at[axis];
}

/* True if the candidates differ there. */
static bool frontier_report_varies(const struct frontier *f, enum axis axis)
{
    for (size_t i = 1; i < f->count; i++)
        if (f->candidates[i].fate != FATE_IMPOSSIBLE &&
            frontier_report_number_of(f, &f->candidates[i], axis) !=
                frontier_report_number_of(f, &f->candidates[0], axis))
            return true;
    return false;
}

static int memory_width(const struct frontier *f)
{
    return f->has_bytes ? (int)strlen("2.39 GiB") : (int)strlen("activations");
}

static void print_choice(const struct frontier *f, const struct candidate *candidate, FILE *out)
{
    for (int a = 0; a < AXES; a++) {
        bool words = axis_has_words((enum axis)a);
        int width = a == AXIS_SCHEDULE ? 23 : 12, number;
        if (a != AXIS_SCHEDULE && !frontier_report_varies(f, (enum axis)a))
            continue;
        if (words)
            fprintf(out, "  %-*s", width, axis_word((enum axis)a, candidate->at[a]));
        else if (a == AXIS_HELD && candidate->at[a] == HELD_FIT) {
            /* Of the rank with the least room, and with the most. */
            char text[32];
            if (candidate->held_least == candidate->held_most)
                snprintf(text, sizeof text, "%d", candidate->held_most);
            else
                snprintf(text, sizeof text, "%d to %d", candidate->held_least,
                         candidate->held_most);
            fprintf(out, "  %*s", width, text);
        } else if ((number = frontier_report_number_of(f, candidate, (enum axis)a)) > 0)
            fprintf(out, "  %*d", width, number);
        else
            fprintf(out, "  %*s", width, "-");
    }
}

static bool has_left(const struct frontier *f)
{
    return f->has_bytes && machine_has_memory(&f->machine);
}

static void frontier_report_print_head(const struct frontier *f, FILE *out)
{
    for (int a = 0; a < AXES; a++)
        if (a == AXIS_SCHEDULE || frontier_report_varies(f, (enum axis)a))
            fprintf(out, axis_has_words((enum axis)a) ? "  %-*s" : "  %*s",
                    a == AXIS_SCHEDULE ? 23 : 12, axis_key((enum axis)a));
    fprintf(out, "  %9s  %9s  %7s  %*s", "step",
            frontier_report_varies(f, AXIS_SIZE) ? "a sample" : "a microb.", "bubble",
            memory_width(f), f->has_bytes ? "memory" : "activations");
    fprintf(out, "%s\n", has_left(f) ? "      left" : "");
}

static void show_memory(const struct frontier *f, int64_t bytes, char out[UNITS_TEXT])
{
    if (f->has_bytes)
        units_show_bytes((double)bytes, out);
    else
        snprintf(out, UNITS_TEXT, "%.4g", (double)bytes / FRONTIER_ACTIVATION);
}

/* The verdict of one that is not proved: which property is violated, how much memory it lacks. */
static void print_fate(const struct frontier *f, const struct candidate *candidate, FILE *out)
{
    char over[UNITS_TEXT];
    fprintf(out, "  %s", fate_key(candidate->fate));
    if (candidate->fate == FATE_VIOLATED)
        fprintf(out, ": %s", property_key(candidate->violated));
    if (candidate->fate == FATE_HEAVY) {
        show_memory(f, -candidate->left_bytes, over);
        fprintf(out, ", by %s", over);
    }
    fprintf(out, "\n");
}

static void print_candidate(const struct frontier *f, const struct candidate *candidate, FILE *out)
{
    char step[UNITS_TEXT], each[UNITS_TEXT], memory[UNITS_TEXT];
    int samples = frontier_report_varies(f, AXIS_SIZE) ? f->size : 1;
    print_choice(f, candidate, out);
    show_memory(f, candidate->bytes, memory);
    if (candidate->fate == FATE_PROVED) {
        units_show_time(candidate->step_ns, step);
        units_show_time(candidate->microbatch_ns / samples, each);
        fprintf(out, "  %9s  %9s  %6.2f%%  %*s", step, each, 100 * candidate->bubble,
                memory_width(f), memory);
        /* Memory beside the bytes that are held, of the rank with the least. */
        char left[UNITS_TEXT] = "";
        if (has_left(f))
            show_memory(f, candidate->left_bytes, left);
        fprintf(out, *left ? "  %8s\n" : "%s\n", left);
        return;
    }
    fprintf(out, "  %9s  %9s  %7s  %*s", "-", "-", "-", memory_width(f), memory);
    print_fate(f, candidate, out);
}

/* The candidates stand in order: the first of a schedule is its best. */
static bool is_best_of_others(const struct frontier *f, size_t i)
{
    const struct candidate *candidate = &f->candidates[i];
    bool first = fate_is_tried(candidate->fate) && !candidate->frontier;
    for (size_t j = 0; first && j < i; j++)
        first = f->candidates[j].at[AXIS_SCHEDULE] != candidate->at[AXIS_SCHEDULE];
    return first;
}

static size_t count_tried(const struct frontier *f)
{
    size_t tried = 0;
    for (int fate = 0; fate < FATES; fate++)
        tried += fate_is_tried((enum frontier_fate)fate) ? f->fates[fate] : 0;
    return tried;
}

/* Print whether the frontier is that of all choices, and which were left out. */
static void print_completeness(const struct frontier *f, FILE *out)
{
    const char *before = ": ";
    if (f->fates[FATE_IMPOSSIBLE])
        fprintf(out, "left out %zu combination%s that the schedule cannot have\n",
                f->fates[FATE_IMPOSSIBLE], f->fates[FATE_IMPOSSIBLE] == 1 ? "" : "s");
    if (frontier_unjudged(f) == 0) {
        fprintf(out, "the frontier is complete over these values\n");
        return;
    }
    fprintf(out, "the frontier may be incomplete");
    for (int fate = 0; fate < FATE_PROVED; fate++) {
        if (!f->fates[fate] ||
            (fate_is_tried((enum frontier_fate)fate) && fate != FATE_UNDECIDED) ||
            fate == FATE_IMPOSSIBLE)
            continue;
        fprintf(out, "%s%zu %s", before, f->fates[fate], fate_key((enum frontier_fate)fate));
        before = ", ";
    }
    fprintf(out, "\n");
}

/* The candidate that lacks least, where nothing fits. */
static void print_lightest(const struct frontier *f, FILE *out)
{
    const struct candidate *lightest = NULL;
    for (size_t i = 0; i < f->count; i++)
        if (f->candidates[i].fate == FATE_HEAVY &&
            (!lightest || f->candidates[i].bytes < lightest->bytes))
            lightest = &f->candidates[i];
    if (!lightest)
        return;
    fprintf(out, "\nthe lightest of those beyond memory\n");
    frontier_report_print_head(f, out);
    print_candidate(f, lightest, out);
}

void frontier_print(const struct frontier *f, bool quiet, FILE *out)
{
    fprintf(out, "%s, %d rank%s, %d stage%s, %d microbatch%s\n", f->plan->name, f->ranks,
            units_plural((size_t)f->ranks), f->stages, units_plural((size_t)f->stages),
            f->microbatches, f->microbatches == 1 ? "" : "es");
    if (f->fates[FATE_PROVED]) {
        fprintf(out, "\nthe frontier: nothing is as fast with less memory\n");
        frontier_report_print_head(f, out);
        for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++)
            print_candidate(f, &f->candidates[i], out);
    }
    if (!quiet) {
        const char *head = "\nother schedules, the best of each\n";
        for (size_t i = 0; i < f->count; i++) {
            if (!is_best_of_others(f, i))
                continue;
            fputs(head, out);
            head = "";
            print_candidate(f, &f->candidates[i], out);
        }
    }
    size_t tried = count_tried(f);
    fprintf(out, "\ntried %zu candidate%s: %zu proved", tried, tried == 1 ? "" : "s",
            f->fates[FATE_PROVED]);
    for (int fate = FATE_PROVED - 1; fate_is_tried((enum frontier_fate)fate); fate--)
        if (f->fates[fate])
            fprintf(out, ", %zu %s", f->fates[fate], fate_key((enum frontier_fate)fate));
    fprintf(out, "\n");
    print_completeness(f, out);
    if (f->fates[FATE_PROVED])
        return;
    fprintf(out, "no candidate is proved and within the limits\n");
    print_lightest(f, out);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_candidate(const struct frontier *f, const struct candidate *candidate,
                            struct json *json)
{
    json_begin_object(json);
    for (int a = 0; a < AXES; a++) {
        const char *key = axis_key((enum axis)a);
        if (axis_has_words((enum axis)a))
            json_put_string(json, key, axis_word((enum axis)a, candidate->at[a]));
        else
            json_put_int(json, key, frontier_report_number_of(f, candidate, (enum axis)a));
    }
    json_put_string(json, "verdict", fate_key(candidate->fate));
    if (candidate->fate == FATE_VIOLATED)
        json_put_string(json, "violated", property_key(candidate->violated));
    json_put_bool(json, "frontier", candidate->frontier);
    json_put_double(json, "step_ns", candidate->step_ns);
    json_put_double(json, "microbatch_ns", candidate->microbatch_ns);
    json_put_double(json, "sample_ns", candidate->microbatch_ns / f->size);
    json_put_double(json, "bubble_rate", candidate->bubble);
}

void frontier_write(const struct frontier *f, struct json *json)
{
    json_begin_document(json, DOCUMENT_FRONTIER);
    json_put_string(json, "plan", f->plan->name);
    json_put_int(json, "ranks", f->ranks);
    json_put_bool(json, "assumed_times", !f->has_times);
    json_put_bool(json, "complete", frontier_unjudged(f) == 0);
    json_put_int(json, "impossible", (int64_t)f->fates[FATE_IMPOSSIBLE]);
    json_put_int(json, "refused", (int64_t)f->fates[FATE_REFUSED]);
    json_put_int(json, "untried", (int64_t)f->fates[FATE_UNTRIED]);
    json_begin_array_at(json, "candidates");
    for (size_t i = 0; i < f->count; i++) {
        if (!fate_is_tried(f->candidates[i].fate))
            continue;
        write_candidate(f, &f->candidates[i], json);
        if (f->has_bytes) {
            json_put_int(json, "bytes", f->candidates[i].bytes);
            if (has_left(f))
                json_put_int(json, "left_bytes", f->candidates[i].left_bytes);
        } else
            json_put_double(json, "activations",
                            (double)f->candidates[i].bytes / FRONTIER_ACTIVATION);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* ---- as a plan ------------------------------------------------------------------------------- */

/* The fastest of all: the last of the frontier. */
static const struct candidate *find_fastest(const struct frontier *f)
{
    const struct candidate *fastest = NULL;
    for (size_t i = 0; i < f->count && f->candidates[i].frontier; i++)
        fastest = &f->candidates[i];
    return fastest;
}

enum status frontier_best(const struct frontier *f, struct plan *out, bool *found,
                          struct diag *diag)
{
    const struct candidate *fastest = find_fastest(f);
    *found = fastest != NULL;
    if (!fastest)
        return STATUS_OK;
    enum status status = frontier_plan(f, fastest, f->arena, out, diag);
    if (status == STATUS_OK && !frontier_is_given(f, fastest) &&
        !(out->name = tune_name(out->name, f->arena)))
        status = diag_no_memory(diag);
    if (status == STATUS_OK && !f->has_bytes) /* what they were counted with is not the plan's */
        out->programs.stages.stages.of[COST_ACTIVATION] = (struct cost_list){0};
    return status;
}
