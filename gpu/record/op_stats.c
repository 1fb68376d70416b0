/* SPDX-License-Identifier: Apache-2.0 */
/* op_stats.c - see op_stats.h. */
#include "op_stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/columns.h"
#include "base/sort.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Of "2F3", the kind of action; NULL: it is none. Rank programs have become host programs by now: their
   labels tell. */
static const char *action_name(const char *label)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'F', "forward_chunk"},
                 {'B', "backward_chunk"},
                 {'I', "backward_input"},
                 {'W', "backward_weight"}};
    static const char composite[] = ")OVERLAP_F_B";
    const char *letter = label + strspn(label, "0123456789");
    size_t length = strlen(label), ending = sizeof composite - 1;
    if (*label == '(' && length > ending && strcmp(label + length - ending, composite) == 0)
        return "overlap_f_b";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*letter == names[i].letter && letter > label && letter[1] &&
            letter[1 + strspn(letter + 1, "0123456789")] == '\0')
            return names[i].name;
    return NULL;
}

/* Of "0WAIT_RECV_B12" "wait_recv_b": the actions of a kind, whatever their stage and microbatch; others as they are. NULL: no
   memory. */
static const char *kind_of_action(const char *label, struct arena *arena)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const char *word = label + strspn(label, "0123456789");
    const size_t length = strspn(word, letters);
    const char *end = word + length;
    if (word == label || length < 2 || end[strspn(end, "0123456789")])
        return label;
    char *kind = ARENA_ARRAY(arena, length + 1, char);
    for (size_t i = 0; kind && i < length; i++)
        kind[i] = word[i] == '_' ? '_' : (char)(word[i] - 'A' + 'a');
    return kind;
}

static bool is_metadata(const struct program *p, const struct op *op)
{
    return op->kind == OP_GROUP && op->part_count > 0 && p->parts[op->part_first].metadata;
}

static const char *op_stats_group_name(const struct program *p, const struct op *op)
{
    bool sends = false, receives = false;
    for (int i = 0; i < op->part_count; i++) {
        sends = sends || p->parts[op->part_first + i].send;
        receives = receives || !p->parts[op->part_first + i].send;
    }
    if (is_metadata(p, op))
        return sends && receives ? "sendrecv_meta" : sends ? "send_meta" : "recv_meta";
    return sends && receives ? "sendrecv" : sends ? "send" : "recv";
}

/* *out NULL: it is no work. False: no memory. */
static bool op_stats_name_of(const struct program *p, const struct op *op, struct arena *arena,
                             const char **out)
{
    *out = NULL;
    if (!op_is_work(op->kind) || (p->tasks && op->task < 0))
        return true;
    if (p->tasks) {
        *out = p->plan->pipeline.tasks[op->task].name;
    } else if (op->kind == OP_GROUP) {
        *out = op_stats_group_name(p, op);
    } else {
        const char *label = op->name >= 0 ? p->names.items[op->name] : op_key(op->kind);
        const char *action = action_name(label);
        *out = action ? action : kind_of_action(label, arena);
    }
    return *out;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct named {
    const char *name;
    int op;
};

static int op_stats_by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* The operations that have a name, sorted by it. False: no memory. */
static bool sort_names(const struct program *p, struct named *out, size_t *count,
                       struct arena *arena)
{
    const char *name;
    *count = 0;
    for (size_t i = 0; i < p->op_count; i++) {
        if (!op_stats_name_of(p, &p->ops[i], arena, &name))
            return false;
        if (name)
            out[(*count)++] = (struct named){name, (int)i};
    }
    SORT(out, *count, op_stats_by_name);
    return true;
}

bool op_stats_open(struct op_stats *op_stats, const struct program *program)
{
    *op_stats = (struct op_stats){.program = program};
    arena_init(&op_stats->arena, 0);
    size_t ops = program->op_count + 1;
    struct named *names = calloc(ops, sizeof *names);
    op_stats->rows = ARENA_ARRAY(&op_stats->arena, ops, int);
    op_stats->stats = ARENA_ARRAY(&op_stats->arena, ops, struct runtime_stat);
    size_t count;
    if (!names || !op_stats->rows || !op_stats->stats ||
        !sort_names(program, names, &count, &op_stats->arena)) {
        free(names);
        return false;
    }
    for (size_t i = 0; i < ops; i++)
        op_stats->rows[i] = -1;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(names[i].name, names[i - 1].name) != 0)
            op_stats->stats[op_stats->count++] = (struct runtime_stat){.name = names[i].name};
        op_stats->rows[names[i].op] = (int)op_stats->count - 1;
    }
    free(names);
    return true;
}

void op_stats_close(struct op_stats *op_stats)
{
    arena_fini(&op_stats->arena);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* A task with CPU work and device work is called once: what it does on the device counts. */
static bool counts_on_host(const struct program *p, const struct op *op)
{
    return op_is_cpu_work(op->kind) && (p->tasks == 0 || op->given->work->kind == WORK_HOST);
}

static struct runtime_stat *op_stats_row_of(struct op_stats *op_stats, int op)
{
    return op_stats->rows[op] >= 0 ? &op_stats->stats[op_stats->rows[op]] : NULL;
}

/* The message that tells the shape is part of the one behind it. */
static struct runtime_stat *whole_of(struct op_stats *op_stats, int op)
{
    const struct program *p = op_stats->program;
    ASSERT_INDEX(op, p->op_count);
    return is_metadata(p, &p->ops[op]) ? op_stats_row_of(op_stats, op + 1) : NULL;
}

void op_stats_host(struct op_stats *op_stats, int op, int64_t ns)
{
    struct runtime_stat *stat = op_stats_row_of(op_stats, op), *whole = whole_of(op_stats, op);
    if (!stat)
        return;
    stat->host_ns += ns;
    ASSERT_INDEX(op, op_stats->program->op_count);
    stat->calls += counts_on_host(op_stats->program, &op_stats->program->ops[op]);
    if (whole)
        whole->host_ns += ns;
}

void op_stats_device(struct op_stats *op_stats, int op, int64_t ns)
{
    struct runtime_stat *stat = op_stats_row_of(op_stats, op), *whole = whole_of(op_stats, op);
    if (!stat)
        return;
    stat->device_ns += ns;
    stat->calls++;
    if (whole)
        whole->device_ns += ns;
}

/* ---- what came of it ------------------------------------------------------------------------- */

bool op_stats_list(const struct op_stats *op_stats, struct runtime_result *result)
{
    result->stats = ARENA_ARRAY(&result->arena, op_stats->count + 1, struct runtime_stat);
    result->stat_count = 0;
    for (size_t i = 0; result->stats && i < op_stats->count; i++) {
        if (op_stats->stats[i].calls == 0)
            continue;
        struct runtime_stat *stat = &result->stats[result->stat_count++];
        *stat = op_stats->stats[i];
        stat->name = arena_strdup(&result->arena, stat->name);
        if (!stat->name)
            return false;
    }
    return result->stats;
}

void op_stats_print(const struct runtime_stat *stats, size_t count, FILE *out)
{
    static const char line[] = "--------------------------------";
    int width = 4;
    for (size_t i = 0; i < count; i++)
        columns_widen(&width, stats[i].name);
    fprintf(out, "%-*s  %9s  %12s  %12s  %12s\n", width, "name", "ncalls", "time (ms)", "mean (ms)",
            "host (ms)");
    for (int left = width; left > 0; left -= 32)
        fprintf(out, "%.*s", left < 32 ? left : 32, line);
    fprintf(out, "  %.9s  %.12s  %.12s  %.12s\n", line, line, line, line);
    for (size_t i = 0; i < count; i++) {
        double time_ms = 1e-6 * (double)stats[i].device_ns;
        fprintf(out, "%s%*s  %9" PRId64 "  %12.3f  %12.3f  %12.3f\n", stats[i].name,
                columns_fill(stats[i].name, width), "", stats[i].calls, time_ms,
                time_ms / (double)stats[i].calls, 1e-6 * (double)stats[i].host_ns);
    }
}
