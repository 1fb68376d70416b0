/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - see swpipe_build.h: names with keys in the order of the calls, written as a plan's text, which the parser
 * reads and the printer prints.
 */
#include "swpipe_build.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"

struct build_entry {
    struct build_entry *next;
    char *key, *value;
};

/* A task, a buffer, ..., the plan itself: a name and its keys. */
struct thing {
    struct thing *next;
    char *name;
    struct build_entry *entries;
};

struct build_need {
    struct build_need *next;
    char *task, *on;
    int distance;
};

struct swpipe_plan {
    struct thing own, *tasks, *buffers, *streams, *comms;
    struct build_need *needs;
    char error[512];
};

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_line(const char *text)
{
    return text && text[0] && !strpbrk(text, "\n\r");
}

/* True if the text is a key of a plan: letters, digits and underlines. Other syntax of plans is not taken from callers. */
static bool is_key(const char *text)
{
    size_t at = 0;
    while (text && (isalnum((unsigned char)text[at]) || text[at] == '_'))
        at++;
    return at > 0 && !text[at];
}

static struct thing *find_thing(struct thing **list, const char *name)
{
    while (*list && strcmp((*list)->name, name) != 0)
        list = &(*list)->next;
    if (*list)
        return *list;
    struct thing *thing = calloc(1, sizeof *thing);
    char *copy = strdup(name);
    if (!thing || !copy) {
        free(thing);
        free(copy);
        return NULL;
    }
    thing->name = copy;
    *list = thing;
    return thing;
}

static struct build_entry *find_entry(struct thing *thing, const char *key)
{
    struct build_entry **at = &thing->entries;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    if (*at)
        return *at;
    struct build_entry *entry = calloc(1, sizeof *entry);
    char *copy = strdup(key);
    if (!entry || !copy) {
        free(entry);
        free(copy);
        return NULL;
    }
    entry->key = copy;
    *at = entry;
    return entry;
}

static int build_set(struct thing *thing, const char *key, const char *value)
{
    if (!thing || !is_key(key) || !is_line(value))
        return -1;
    char *copy = strdup(value);
    struct build_entry *entry = copy ? find_entry(thing, key) : NULL;
    if (!entry) {
        free(copy);
        return -1;
    }
    free(entry->value);
    entry->value = copy;
    return 0;
}

static int set_in(struct thing **list, const char *name, const char *key, const char *value)
{
    return is_line(name) && is_key(key) && is_line(value)
               ? build_set(find_thing(list, name), key, value)
               : -1;
}

struct swpipe_plan *swpipe_plan_new(const char *name)
{
    struct swpipe_plan *plan = calloc(1, sizeof *plan);
    if (plan && is_line(name) && (plan->own.name = strdup(name)) != NULL)
        return plan;
    swpipe_plan_free(plan);
    return NULL;
}

int swpipe_plan_set(struct swpipe_plan *plan, const char *key, const char *value)
{
    return plan ? build_set(&plan->own, key, value) : -1;
}

int swpipe_plan_task(struct swpipe_plan *plan, const char *task, const char *key, const char *value)
{
    return plan ? set_in(&plan->tasks, task, key, value) : -1;
}

int swpipe_plan_buffer(struct swpipe_plan *plan, const char *buffer, const char *key,
                       const char *value)
{
    return plan ? set_in(&plan->buffers, buffer, key, value) : -1;
}

int swpipe_plan_stream(struct swpipe_plan *plan, const char *stream, const char *key,
                       const char *value)
{
    return plan ? set_in(&plan->streams, stream, key, value) : -1;
}

int swpipe_plan_comm(struct swpipe_plan *plan, const char *comm, const char *ranks)
{
    return plan ? set_in(&plan->comms, comm, "ranks", ranks) : -1;
}

int swpipe_plan_needs(struct swpipe_plan *plan, const char *task, const char *on, int distance)
{
    if (!plan || !is_line(task) || !is_line(on) || distance < 0)
        return -1;
    struct build_need **at = &plan->needs;
    struct build_need *need = calloc(1, sizeof *need);
    if (!need)
        return -1;
    *need = (struct build_need){.task = strdup(task), .on = strdup(on), .distance = distance};
    if (!need->task || !need->on) {
        free(need->task);
        free(need->on);
        free(need);
        return -1;
    }
    while (*at)
        at = &(*at)->next;
    *at = need;
    return 0;
}

static void free_entries(struct build_entry *entry)
{
    while (entry) {
        struct build_entry *next = entry->next;
        free(entry->key);
        free(entry->value);
        free(entry);
        entry = next;
    }
}

static void free_things(struct thing *thing)
{
    while (thing) {
        struct thing *next = thing->next;
        free_entries(thing->entries);
        free(thing->name);
        free(thing);
        thing = next;
    }
}

void swpipe_plan_free(struct swpipe_plan *plan)
{
    if (!plan)
        return;
    free_entries(plan->own.entries);
    free(plan->own.name);
    free_things(plan->tasks);
    free_things(plan->buffers);
    free_things(plan->streams);
    free_things(plan->comms);
    while (plan->needs) {
        struct build_need *next = plan->needs->next;
        free(plan->needs->task);
        free(plan->needs->on);
        free(plan->needs);
        plan->needs = next;
    }
    free(plan);
}

/* ---- its text -------------------------------------------------------------------------------- */

/* In double quotes, as YAML has them: a name may look like anything. */
static void build_write_name(FILE *out, const char *name)
{
    fputc('"', out);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            fputc('\\', out);
        fputc(*name, out);
    }
    fputc('"', out);
}

static void write_things(FILE *out, const char *section, const struct thing *thing)
{
    if (thing)
        fprintf(out, "%s:\n", section);
    for (; thing; thing = thing->next) {
        fputs("  ", out);
        build_write_name(out, thing->name);
        fputs(": {", out);
        for (const struct build_entry *at = thing->entries; at; at = at->next)
            fprintf(out, "%s%s: %s", at == thing->entries ? "" : ", ", at->key, at->value);
        fputs("}\n", out);
    }
}

static void write_comms(FILE *out, const struct thing *comm)
{
    if (comm)
        fputs("comms:\n", out);
    for (; comm; comm = comm->next) {
        fputs("  ", out);
        build_write_name(out, comm->name);
        fprintf(out, ": %s\n", comm->entries ? comm->entries->value : "[]");
    }
}

static void write_needs(FILE *out, const char *section, const struct build_need *need, bool intra)
{
    bool any = false;
    for (; need; need = need->next) {
        if ((need->distance == 0) != intra)
            continue;
        if (!any)
            fprintf(out, "%s:\n", section);
        any = true;
        fputs("  - [", out);
        build_write_name(out, need->task);
        fputs(", ", out);
        build_write_name(out, need->on);
        if (intra)
            fputs("]\n", out);
        else
            fprintf(out, ", %d]\n", need->distance);
    }
}

static bool has_key(const struct thing *thing, const char *key)
{
    const struct build_entry *at = thing->entries;
    while (at && strcmp(at->key, key) != 0)
        at = at->next;
    return at;
}

static char *build_write_plan(const struct swpipe_plan *plan)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fputs("swplan: 1\n", out);
    if (!has_key(&plan->own, "name")) {
        fputs("name: ", out);
        build_write_name(out, plan->own.name);
        fputc('\n', out);
    }
    for (const struct build_entry *at = plan->own.entries; at; at = at->next)
        fprintf(out, "%s: %s\n", at->key, at->value);
    write_things(out, "schedule", plan->tasks);
    write_needs(out, "intra_iter_deps", plan->needs, true);
    write_needs(out, "inter_iter_deps", plan->needs, false);
    write_things(out, "streams", plan->streams);
    write_comms(out, plan->comms);
    write_things(out, "buffers", plan->buffers);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

char *swpipe_plan_print(struct swpipe_plan *plan)
{
    if (!plan)
        return NULL;
    char *raw = build_write_plan(plan), *text = NULL;
    struct plan parsed;
    struct diag diag;
    diag_init(&diag);
    plan->error[0] = '\0';
    locale_t before = c_locale_begin();
    enum status status = raw ? plan_parse("plan", raw, strlen(raw), &parsed, &diag) : STATUS_SYSTEM;
    if (!status) {
        status = plan_text(&parsed, &text, &diag);
        plan_fini(&parsed);
    }
    c_locale_end(before);
    if (status) {
        const struct diag_message *found = NULL;
        for (size_t i = diag.count; i-- > 0;)
            if (diag.messages[i].severity == SEVERITY_ERROR)
                found = &diag.messages[i];
        const char *line = found && found->source ? found->source : "";
        line += strspn(line, " -");
        snprintf(plan->error, sizeof plan->error, "%s%s%s", found ? found->text : "out of memory",
                 *line ? ", in: " : "", line);
    }
    diag_fini(&diag);
    free(raw);
    return status ? NULL : text;
}

const char *swpipe_plan_error(const struct swpipe_plan *plan)
{
    return plan ? plan->error : "there is no plan: its name is none, or memory is exhausted";
}
