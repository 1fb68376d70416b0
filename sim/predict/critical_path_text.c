/* SPDX-License-Identifier: Apache-2.0 */
/* critical_path_text.c - critical paths for people and, as JSON, for programs; see critical_path.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "critical_path.h"
#include "base/columns.h"

enum { NAME = 200 };

static const struct {
    const char *key, *words;
} waits[] = {
#define X(name, key, words) {key, words},
    PATH_WAIT_LIST(X)
#undef X
};

static bool is_host(const struct program *p, const struct path_part *part)
{
    return p->agents[part->agent].kind == AGENT_THREAD;
}

/* "launch of Forward(5)" */
static const char *part_name(const struct program *p, const struct path_part *part, char *buf,
                             size_t cap)
{
    char subject[NAME - 16];
    if (part->op < 0)
        return "driver";
    const struct op *op = &p->ops[part->op];
    program_op_subject(p, op, part->iteration, subject, sizeof subject);
    snprintf(buf, cap, "%s%s", is_host(p, part) && op->task >= 0 ? "launch of " : "", subject);
    return buf;
}

/* "dependence on H2D(5)" */
static void print_wait(const struct program *p, const struct path_part *part, FILE *out)
{
    fputs(waits[part->waited].words, out);
    if (part->on_task >= 0)
        fprintf(out, "%s%s(%" PRId64 ")", part->waited == PATH_DEPENDENCE ? " on " : ", ",
                p->plan->pipeline.tasks[part->on_task].name, part->on_iteration);
}

static void print_parts(const struct program *p, const struct critical_path *path, FILE *out)
{
    int name_width = 4, place_width = 5;
    char name[NAME], place[NAME], start[UNITS_TEXT], takes[UNITS_TEXT];
    for (int i = 0; i < path->part_count; i++) {
        const struct path_part *part = &path->parts[i];
        columns_widen(&name_width, part_name(p, part, name, sizeof name));
        columns_widen(&place_width, program_agent_name(p, part->agent, place, sizeof place));
    }
    fprintf(out, "  %10s  %10s  %-*s  %-*s  %s\n", "from", "takes", name_width, "what", place_width,
            "where", "began after");
    for (int i = 0; i < path->part_count; i++) {
        const struct path_part *part = &path->parts[i];
        units_show_time((double)(part->start_ns - path->start_ns), start);
        units_show_time((double)part->dur_ns, takes);
        const char *what = part_name(p, part, name, sizeof name);
        const char *where = program_agent_name(p, part->agent, place, sizeof place);
        fprintf(out, "  %10s  %10s  %s%*s  %s%*s  ", start, takes, what,
                columns_fill(what, name_width), "", where, columns_fill(where, place_width), "");
        print_wait(p, part, out);
        fputs("\n", out);
    }
}

static void print_shares(const struct program *p, const struct critical_path *path, FILE *out)
{
    if (!path->shares || path->total_ns == 0)
        return;
    fprintf(out, "\n  on the critical paths of all %" PRId64 " iterations\n", path->iterations);
    for (int i = 0; i < 2 * p->tasks; i++) {
        const struct path_share *share = &path->shares[i];
        if (share->ns)
            fprintf(out, "  %5.1f%% of the time, in %5.1f%% of the paths  %s%s\n",
                    100 * (double)share->ns / (double)path->total_ns,
                    100 * (double)share->iterations / (double)path->iterations,
                    i < p->tasks ? "" : "launch of ", p->plan->pipeline.tasks[i % p->tasks].name);
    }
}

void critical_path_print(const struct program *program, const struct critical_path *path, FILE *out)
{
    char takes[UNITS_TEXT], start[UNITS_TEXT];
    units_show_time((double)(path->end_ns - path->start_ns), takes);
    units_show_time((double)path->start_ns, start);
    if (!path->parts)
        fputs("\n  no critical path: it was never over\n", out);
    else if (path->iteration < 0)
        fprintf(out, "\n  critical path, %s\n", takes);
    else
        fprintf(out, "\n  critical path of iteration %" PRId64 ", admitted at %s, over %s later\n",
                path->iteration, start, takes);
    if (path->parts)
        print_parts(program, path, out);
    print_shares(program, path, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_task(const struct program *p, const char *key, int task, struct json *json)
{
    json_put_string(json, key, task < 0 ? NULL : p->plan->pipeline.tasks[task].name);
}

static void write_part(const struct program *p, const struct path_part *part, struct json *json)
{
    char name[NAME];
    const struct op *op = part->op < 0 ? NULL : &p->ops[part->op];
    json_begin_object(json);
    put_task(p, "task", op ? op->task : -1, json);
    json_put_string(json, "name", part_name(p, part, name, sizeof name));
    if (p->tasks)
        json_put_int(json, "iteration", part->iteration);
    json_put_string(json, "part", is_host(p, part) ? "host" : "device");
    json_put_string(json, "agent", program_agent_name(p, part->agent, name, sizeof name));
    json_put_int(json, "start_ns", part->start_ns);
    json_put_int(json, "duration_ns", part->dur_ns);
    json_put_string(json, "waited", waits[part->waited].key);
    put_task(p, "on", part->on_task, json);
    if (part->on_task >= 0)
        json_put_int(json, "on_iteration", part->on_iteration);
    json_end_object(json);
}

static void write_shares(const struct program *p, const struct critical_path *path,
                         struct json *json)
{
    json_key(json, "shares");
    json_begin_array(json);
    for (int i = 0; path->shares && i < 2 * p->tasks; i++) {
        const struct path_share *share = &path->shares[i];
        if (share->ns == 0)
            continue;
        json_begin_object(json);
        put_task(p, "task", i % p->tasks, json);
        json_put_string(json, "part", i < p->tasks ? "device" : "host");
        json_put_int(json, "ns", share->ns);
        json_put_int(json, "paths", share->iterations);
        json_end_object(json);
    }
    json_end_array(json);
}

void critical_path_write(const struct program *program, const struct critical_path *path,
                         struct json *json)
{
    json_begin_object(json);
    if (path->parts && path->iteration >= 0)
        json_put_int(json, "iteration", path->iteration);
    json_put_int(json, "start_ns", path->start_ns);
    json_put_int(json, "end_ns", path->end_ns);
    json_key(json, "steps");
    json_begin_array(json);
    for (int i = 0; i < path->part_count; i++)
        write_part(program, &path->parts[i], json);
    json_end_array(json);
    json_put_int(json, "paths", path->iterations);
    json_put_int(json, "total_ns", path->total_ns);
    write_shares(program, path, json);
    json_end_object(json);
}
