/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c - see timing.h. */
#include "timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/large_pages.h"

/* The name an operation draws its random numbers under. */
static const char *random_task(const struct program *program, const struct op *op)
{
    if (op->task >= 0)
        return program->plan->pipeline.tasks[op->task].name;
    if (op->name >= 0)
        return program->names.items[op->name];
    if (op->part_count > 0)
        return program->names.items[program->parts[op->part_first].tag];
    return op_key(op->kind);
}

/* True if a rule is about `name`. A `*` in the rule stands for any characters: after a mismatch the last `*` takes one
   character more. */
static bool names(const char *rule, const char *name)
{
    const char *star = NULL, *again = NULL;
    while (*name) {
        if (*rule == '*') {
            star = ++rule;
            again = name;
        } else if (*rule == *name) {
            rule++;
            name++;
        } else if (star) {
            rule = star;
            name = ++again;
        } else {
            return false;
        }
    }
    return rule[strspn(rule, "*")] == '\0';
}

/* True if a rule for this task or operation speaks of this part of it. */
static bool names_part(const struct program *program, const char *task, const struct op *op)
{
    bool varied_part =
        !op_is_cpu_work(op->kind) || op->task < 0 || op->given->work->kind == WORK_HOST;
    return varied_part && op_is_work(op->kind) && names(task, random_task(program, op));
}

static bool timing_varies(const struct dist *dist, int64_t mean_ns)
{
    return dist->spike_probability > 0 || (dist->kind != DIST_CONSTANT && mean_ns != 0);
}

/* Its distribution: of the last rule that names it, else the plan's. */
static const struct dist *find_dist(const struct program *program, const struct op *op,
                                    const struct jitter_rule *rules, bool *used, size_t rule_count)
{
    const struct dist *dist = op->given->jitter;
    for (size_t i = 0; i < rule_count; i++)
        if (names_part(program, rules[i].task, op)) {
            dist = &rules[i].dist;
            used[i] = true;
        }
    return dist;
}

/* The operations that take time, rank by rank, in their order: those of a rank begin at first[rank]. */
static int *list_by_rank(const struct timing *timing, size_t *first)
{
    const struct program *program = timing->program;
    size_t ranks = (size_t)program->ranks, *next = first + 1;
    int *ops = malloc((program->op_count + 1) * sizeof *ops);
    if (!ops)
        return NULL;
    for (size_t i = 0; i < program->op_count; i++)
        next[timing->ops[i].rank + 1] += op_is_work(program->ops[i].kind);
    for (size_t rank = 0; rank < ranks; rank++)
        next[rank + 1] += next[rank];
    for (size_t i = 0; i < program->op_count; i++)
        if (op_is_work(program->ops[i].kind))
            ops[next[timing->ops[i].rank]++] = (int)i;
    return ops;
}

static int timing_name_of(const struct program *program, const struct op *op)
{
    if (op->name >= 0)
        return op->name;
    return op->part_count > 0 ? program->parts[op->part_first].tag : (int)program->names.count;
}

/* `seen`: of each name on this rank so far; zeros before and after. */
static void number_rank(struct timing *timing, const int *ops, size_t count, uint32_t *seen)
{
    const struct program *program = timing->program;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = seen[timing_name_of(program, &program->ops[ops[i]])]++;
        int draw = timing->ops[ops[i]].draw;
        if (draw >= 0)
            timing->variation[draw].occurrence = number;
    }
    for (size_t i = 0; i < count; i++)
        seen[timing_name_of(program, &program->ops[ops[i]])] = 0;
}

/* Host programs: number the operations of one name on a rank. */
static enum status number_names(struct timing *timing, struct diag *diag)
{
    const struct program *program = timing->program;
    size_t ranks = (size_t)program->ranks;
    if (timing->draw_count == 0)
        return STATUS_OK; /* numbers make draws differ */
    uint32_t *seen = calloc(program->names.count + 1, sizeof *seen);
    size_t *first = calloc(ranks + 2, sizeof *first);
    int *ops = first ? list_by_rank(timing, first) : NULL;
    bool good = seen && ops;
    for (size_t rank = 0; good && rank < ranks; rank++)
        number_rank(timing, ops + first[rank], first[rank + 1] - first[rank], seen);
    free(seen);
    free(first);
    free(ops);
    return good ? STATUS_OK : diag_no_memory(diag);
}

static void set_body(struct timing *timing, const struct body *body, int rank)
{
    for (int i = body->first; i < body->first + body->count; i++)
        if (op_is_work(timing->program->ops[i].kind)) {
            struct op_time *time = &timing->ops[i];
            const struct op *op = &timing->program->ops[i];
            time->mean_ns = op->time_ns;
            if (op->time_ns == 0 &&
                (op->given->work->kind == WORK_SPIN || op->given->work->kind == WORK_HOST))
                time->mean_ns = op->given->work->time_ns;
            time->host = op_is_cpu_work(op->kind);
            time->timed = true;
            time->rank = (uint16_t)rank;
        }
}

/* The rank a body's operations belong to. */
static void timing_set_all(struct timing *timing)
{
    const struct program *program = timing->program;
    if (program->tasks) {
        for (size_t b = 0; b < program->body_count; b++)
            set_body(timing, &program->bodies[b], (int)b / program->tasks);
        return;
    }
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].body >= 0)
            set_body(timing, &program->bodies[program->threads[t].body], program->threads[t].rank);
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op_calls_host(op->kind) && op->object >= 0)
            set_body(timing, &program->bodies[op->object], program->streams[op->stream].rank);
    }
}

/* The operations that vary get their numbers. */
static enum status list_variation(struct timing *timing, const struct jitter_rule *rules,
                                  bool *used, size_t rule_count, struct diag *diag)
{
    const struct program *program = timing->program;
    size_t cap = 0;
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        struct op_time *time = &timing->ops[i];
        time->draw = -1;
        const struct dist *dist =
            time->timed ? find_dist(program, op, rules, used, rule_count) : NULL;
        if (!dist || !timing_varies(dist, time->mean_ns))
            continue;
        if (!ARRAY_GROW(timing->variation, timing->draw_count, cap))
            return diag_no_memory(diag);
        time->draw = timing->draw_count++;
        timing->variation[time->draw] = (struct op_variation){
            .dist = dist, .name = random_name(random_task(program, op)), .op = (int)i};
    }
    return STATUS_OK;
}

static enum status check_rules(const struct jitter_rule *rules, const bool *used, size_t rule_count,
                               struct diag *diag)
{
    for (size_t i = 0; i < rule_count; i++)
        if (!used[i] && strcmp(rules[i].task, "*") != 0)
            return diag_error(diag, STATUS_USAGE,
                              "found jitter for '%s', expected the name of a task that takes time",
                              rules[i].task);
    return STATUS_OK;
}

static bool same_shape(const struct dist *a, const struct dist *b)
{
    return a == b ||
           (a->kind != DIST_EMPIRICAL && a->kind == b->kind && a->parameter == b->parameter);
}

/* Each gets the table of its distribution. */
static enum status make_quantiles(struct timing *timing, struct diag *diag)
{
    timing->quantiles = calloc((size_t)timing->draw_count + 1, sizeof *timing->quantiles);
    if (!timing->quantiles)
        return diag_no_memory(diag);
    for (int i = 0; i < timing->draw_count; i++) {
        struct op_variation *variation = &timing->variation[i];
        int known = 0;
        while (known < timing->quantile_count &&
               !same_shape(timing->quantiles[known].dist, variation->dist))
            known++;
        if (known == timing->quantile_count) {
            if (!quantile_init(&timing->quantiles[known], variation->dist))
                return diag_no_memory(diag);
            timing->quantile_count++;
        }
        variation->quantile = &timing->quantiles[known];
    }
    return STATUS_OK;
}

enum status timing_init(struct timing *timing, const struct program *program,
                        const struct jitter_rule *rules, size_t rule_count, struct diag *diag)
{
    struct timing made = {.program = program};
    bool *used = calloc(rule_count + 1, sizeof *used);
    made.ops = large_calloc(program->op_count + 1, sizeof *made.ops);
    if (!used || !made.ops) {
        free(used);
        timing_fini(&made);
        return diag_no_memory(diag);
    }
    timing_set_all(&made);
    enum status status = list_variation(&made, rules, used, rule_count, diag);
    if (status == STATUS_OK)
        status = check_rules(rules, used, rule_count, diag);
    if (status == STATUS_OK && program->tasks == 0)
        status = number_names(&made, diag);
    if (status == STATUS_OK && made.draw_count > 0)
        status = make_quantiles(&made, diag);
    free(used);
    if (status != STATUS_OK) {
        timing_fini(&made);
        return status;
    }
    *timing = made;
    return STATUS_OK;
}

void timing_fini(struct timing *timing)
{
    for (int i = 0; timing->quantiles && i < timing->quantile_count; i++)
        quantile_fini(&timing->quantiles[i]);
    if (!timing->copied)
        free(timing->variation);
    free(timing->quantiles);
    free(timing->ops);
    timing->variation = NULL;
    timing->quantiles = NULL;
    timing->ops = NULL;
}

/* Name the tasks that there are, up to a few. */
static enum status no_such_task(const struct program *program, const char *rule, struct diag *diag)
{
    enum { NAMED = 12 };
    const char *found[NAMED];
    char list[400] = "";
    size_t count = 0, length = 0;
    bool more = false;
    for (size_t i = 0; i < program->op_count && !more; i++) {
        const struct op *op = &program->ops[i];
        const char *name = random_task(program, op);
        bool is_new = names_part(program, "*", op);
        for (size_t k = 0; k < count && is_new; k++)
            is_new = strcmp(found[k], name) != 0;
        more = is_new && (count == NAMED || length + strlen(name) + 3 > sizeof list);
        if (!is_new || more)
            continue;
        found[count] = name;
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", count ? ", " : "", name);
        count++;
    }
    return count ? diag_error(diag, STATUS_USAGE, "no task matches '%s'; the tasks are %s%s", rule,
                              list, more ? ", ..." : "")
                 : diag_error(diag, STATUS_USAGE,
                              "no task matches '%s': no task of the plan takes time", rule);
}

enum status timing_change(struct timing *timing, const struct time_rule *rules, size_t rule_count,
                          struct diag *diag)
{
    const struct program *program = timing->program;
    for (size_t r = 0; r < rule_count; r++) {
        bool used = false;
        for (size_t i = 0; i < program->op_count; i++) {
            struct op_time *time = &timing->ops[i];
            if (!names_part(program, rules[r].task, &program->ops[i]))
                continue;
            used = true;
            time->mean_ns = rules[r].factor < 0 ? rules[r].set_ns
                                                : llround((double)time->mean_ns * rules[r].factor);
        }
        if (!used)
            return no_such_task(program, rules[r].task, diag);
    }
    return STATUS_OK;
}

enum status timing_without(struct timing *out, const struct timing *timing, int task,
                           struct diag *diag)
{
    const struct program *program = timing->program;
    struct timing copy = *timing;
    copy.copied = true;
    copy.quantiles = NULL; /* they belong to the original */
    copy.ops = malloc((program->op_count + 1) * sizeof *copy.ops);
    if (!copy.ops)
        return diag_no_memory(diag);
    memcpy(copy.ops, timing->ops, program->op_count * sizeof *copy.ops);
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].task == task && op_is_work(program->ops[i].kind)) {
            copy.ops[i].mean_ns = 0;
            copy.ops[i].draw = -1;
        }
    *out = copy;
    return STATUS_OK;
}

int64_t timing_mean(const struct timing *timing, int op)
{
    const struct op_time *time = &timing->ops[op];
    const struct dist *dist = time->draw < 0 ? NULL : timing->variation[time->draw].dist;
    double spikes = dist ? dist->spike_probability * (double)dist->spike_add_ns : 0;
    return time->mean_ns + llround(spikes);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Words of one subject, and 32 more bits for each where they matter. */
enum use { USE_SHAPE, USE_SPIKE, USE_SHAPE_REST, USE_SPIKE_REST };

static struct random_subject timing_subject_of(const struct timing *timing, int op,
                                               int64_t iteration, uint64_t seed,
                                               uint32_t replication)
{
    const struct op_time *time = &timing->ops[op];
    const struct op_variation *variation = &timing->variation[time->draw];
    return (struct random_subject){
        .seed = seed,
        .task = variation->name,
        .replication = replication,
        .iteration = timing->program->tasks ? (uint32_t)iteration : variation->occurrence,
        .rank = time->rank,
        .part = time->host ? RANDOM_HOST : RANDOM_DEVICE,
    };
}

static uint64_t long_word(uint32_t word, const struct random_subject *subject, enum use rest)
{
    return (uint64_t)word << 32 | random_word(subject, rest);
}

/* `count` words: those of `first` and of the iterations after it. */
struct timing_words {
    uint32_t *words;
    int count;
    struct random_subject first;
};

static struct random_subject subject_at(const struct timing_words *words, int i)
{
    struct random_subject subject = words->first;
    subject.iteration += (uint32_t)i;
    return subject;
}

/* One in 2^QUANTILE_DEEP_BITS needs more bits. */
static void draw_shapes(const struct timing *timing, const struct op_time *time,
                        const struct timing_words *words, int64_t *out_ns)
{
    const struct quantile *quantile = timing->variation[time->draw].quantile;
    if (!quantile_durations(quantile, time->mean_ns, words->words, words->count, out_ns))
        return;
    for (int i = 0; i < words->count; i++)
        if (quantile_is_deep(words->words[i])) {
            const struct random_subject subject = subject_at(words, i);
            out_ns[i] = quantile_deep_duration(
                quantile, time->mean_ns, long_word(words->words[i], &subject, USE_SHAPE_REST));
        }
}

/* There is a spike where the word, a fraction, is below its probability. */
static void add_spikes(const struct dist *dist, const struct timing_words *words, int64_t *ns)
{
    double whole = floor(dist->spike_probability * 0x1p32);
    for (int i = 0; i < words->count; i++) {
        bool spike = words->words[i] < whole;
        if (words->words[i] == whole) { /* its first 32 bits do not say it */
            const struct random_subject subject = subject_at(words, i);
            uint64_t word = long_word(words->words[i], &subject, USE_SPIKE_REST);
            spike = (double)(word >> 11) * 0x1p-53 < dist->spike_probability;
        }
        int64_t sum = ns[i] + (spike ? dist->spike_add_ns : 0);
        ns[i] = sum < QUANTILE_LONGEST_NS ? sum : QUANTILE_LONGEST_NS;
    }
}

int64_t timing_draw(const struct timing *timing, int op, int64_t iteration, uint64_t seed,
                    uint32_t replication)
{
    const struct op_time *time = &timing->ops[op];
    if (time->draw < 0)
        return time->mean_ns;
    const struct dist *dist = timing->variation[time->draw].dist;
    uint32_t word;
    const struct timing_words words = {&word, 1,
                                       timing_subject_of(timing, op, iteration, seed, replication)};
    int64_t ns;
    word = random_word(&words.first, USE_SHAPE);
    draw_shapes(timing, time, &words, &ns);
    if (dist->spike_probability > 0) {
        word = random_word(&words.first, USE_SPIKE);
        add_spikes(dist, &words, &ns);
    }
    return ns;
}

void timing_draw_run(const struct timing *timing, int op, int64_t iteration, uint64_t seed,
                     uint32_t replication, int64_t out_ns[RANDOM_RUN])
{
    const struct op_time *time = &timing->ops[op];
    const struct dist *dist = timing->variation[time->draw].dist;
    _Alignas(64) uint32_t drawn[RANDOM_RUN];
    const struct timing_words words = {
        drawn, RANDOM_RUN,
        timing_subject_of(timing, op, iteration / RANDOM_RUN * RANDOM_RUN, seed, replication)};
    random_words(&words.first, USE_SHAPE, drawn);
    draw_shapes(timing, time, &words, out_ns);
    if (dist->spike_probability > 0) {
        random_words(&words.first, USE_SPIKE, drawn);
        add_spikes(dist, &words, out_ns);
    }
}
