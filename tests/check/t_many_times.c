/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_many_times.c - a repeat of 3 iterations that is said to prove any number, against 3 to 6 iterations written out.
 *
 * The buffer z has an instance for each iteration. Random threads of one or two ranks push, record, wait, sync, signal, await, send and call collectives in front of a repeat, in it and
 * behind it. What is said to be proved for any number is proved for each number that the search decides; a repeat
 * has the verdict of its iterations written out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "tests/harness.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { THREADS = 3, MOST_OPS = 7, PARTS = 3, LEAST = 3, MOST = 6, MAX_STATES = 4000, TEXT = 100 };

struct list {
    char ops[PARTS][MOST_OPS][TEXT]; /* "{...%s...}": the iteration of a flag or a buffer */
    int counts[PARTS];
};

struct trial_plan {
    int ranks, threads;
    struct list lists[THREADS];
};

static const char *const parts[] = {"front", "repeat", "behind"};

static void draw_op(struct random *random, const struct trial_plan *plan, int thread, int part,
                    char *out)
{
    static const char *const streams[] = {"a", "b"}, *const events[] = {"e", "f"},
                             *const buffers[] = {"x", "y", "z%s"};
    const char *stream = one_of(random, streams, 2), *event = one_of(random, events, 2),
               *buffer = one_of(random, buffers, part == 1 ? 3 : 2), *hole = part == 1 ? "%s" : "";
    const int rank = thread % plan->ranks;
    switch (below(random, 12)) {
    case 0:
    case 1:
        snprintf(out, TEXT, "{launch: k, stream: %s, %s: [%s]}", stream,
                 rarely(random, 4) ? "writes" : "reads", buffer);
        break;
    case 2:
        snprintf(out, TEXT, "{record: %s, stream: %s}", event, *event == 'e' ? "a" : stream);
        break;
    case 3:
    case 4: snprintf(out, TEXT, "{wait: %s, stream: %s}", event, stream); break;
    case 5: snprintf(out, TEXT, "{sync: event, event: %s}", event); break;
    case 6: snprintf(out, TEXT, "{sync: stream, stream: %s}", stream); break;
    case 7: snprintf(out, TEXT, "{compute: c, reads: [%s]}", buffer); break;
    case 8:
        snprintf(out, TEXT, "{copy: d2h, pageable: true, stream: %s, reads: [%s]}", stream, buffer);
        break;
    case 9: snprintf(out, TEXT, "{signal: g%d%s%s}", below(random, 2), parts[part], hole); break;
    case 10: snprintf(out, TEXT, "{await: g%d%s%s}", below(random, 2), parts[part], hole); break;
    default:
        if (plan->ranks == 2 && rarely(random, 2))
            snprintf(out, TEXT, "{%s: m, peer: %d, comm: all, stream: %s}",
                     rarely(random, 2) ? "send" : "recv", 1 - rank, stream);
        else
            snprintf(out, TEXT, "{collective: c, comm: all, stream: %s}", stream);
    }
}

static void insert_op(struct list *list, int part, int at, const char *text)
{
    if (list->counts[part] == MOST_OPS)
        return;
    memmove(list->ops[part] + at + 1, list->ops[part] + at,
            sizeof list->ops[part][0] * (size_t)(list->counts[part] - at));
    snprintf(list->ops[part][at], TEXT, "%s", text);
    list->counts[part]++;
}

/* One of the threads lets another one go on; ranks call alike. */
static void connect(struct random *random, struct trial_plan *plan, int part)
{
    for (int flag = 2; flag < 5 && !rarely(random, 4); flag++) {
        const int from = below(random, plan->threads), to = below(random, plan->threads);
        char text[TEXT];
        if (from == to)
            continue;
        snprintf(text, TEXT, "{signal: g%d%s%s}", flag, parts[part], part == 1 ? "%s" : "");
        insert_op(&plan->lists[from], part, below(random, plan->lists[from].counts[part] + 1),
                  text);
        snprintf(text, TEXT, "{await: g%d%s%s}", flag, parts[part], part == 1 ? "%s" : "");
        insert_op(&plan->lists[to], part, below(random, plan->lists[to].counts[part] + 1), text);
    }
    for (int rank = 0; plan->ranks == 2 && !rarely(random, 3) && rank < 2; rank++)
        insert_op(&plan->lists[rank], part, below(random, plan->lists[rank].counts[part] + 1),
                  "{collective: d, comm: all, stream: b}");
}

static void draw_plan(struct random *random, struct trial_plan *plan)
{
    *plan = (struct trial_plan){.ranks = 1 + below(random, 2)};
    plan->threads = plan->ranks + below(random, THREADS - plan->ranks + 1);
    for (int t = 0; t < plan->threads; t++)
        for (int part = 0; part < PARTS; part++) {
            const int ops = part == 1 ? 1 + below(random, 3) : below(random, 2);
            for (int i = 0; i < ops; i++)
                draw_op(random, plan, t, part, plan->lists[t].ops[part][i]);
            plan->lists[t].counts[part] = ops;
        }
    for (int part = 0; part < PARTS; part++)
        if (part == 1 || rarely(random, 3))
            connect(random, plan, part);
}

static void put_ops(FILE *out, const struct list *list, int part, const char *iteration)
{
    const char *indent = *iteration || part != 1 ? "  " : "    ";
    for (int i = 0; i < list->counts[part]; i++) {
        const char *op = list->ops[part][i], *hole = strstr(op, "%s");
        if (hole)
            fprintf(out, "%s- %.*s%s%s\n", indent, (int)(hole - op), op, iteration, hole + 2);
        else
            fprintf(out, "%s- %s\n", indent, op);
    }
}

/* With a repeat, or its iterations written out; the caller frees it. */
static char *plan_words(const struct trial_plan *plan, int times, bool repeats)
{
    char *text = NULL, iteration[16];
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    fputs("swplan: 1\nname: times\ncomms: {all: ", out);
    fputs(plan->ranks == 2 ? "[0, 1]}\n" : "[0]}\n", out);
    fputs("buffers: {x: {scope: shared}, y: {scope: shared}", out);
    for (int i = 0; i < times && !repeats; i++)
        fprintf(out, ", z_%d: {scope: shared}", i);
    fputs(repeats ? ", z: {scope: iteration}}\n" : "}\n", out);
    fputs("inputs: [x, y]\nflags: {", out);
    for (int flag = 0; flag < 5 && repeats; flag++)
        fprintf(out, "%sg%drepeat: {scope: iteration}", flag ? ", " : "", flag);
    fputs("}\nthreads:\n", out);
    for (int t = 0; t < plan->threads; t++) {
        const struct list *list = &plan->lists[t];
        fprintf(out, "  r%d.t%d:\n", t % plan->ranks, t);
        put_ops(out, list, 0, "");
        if (repeats) {
            fprintf(out, "  - repeat: %d\n    body:\n", times);
            put_ops(out, list, 1, "");
        }
        for (int i = 0; i < times && !repeats; i++) {
            snprintf(iteration, sizeof iteration, "_%d", i);
            put_ops(out, list, 1, iteration);
        }
        put_ops(out, list, 2, "");
    }
    return fclose(out) == 0 ? text : NULL;
}

struct answer {
    enum verdict verdict;
    bool any_times;
};

static enum status ask(void *context, const struct plan *plan, enum driver driver,
                       struct diag *diag)
{
    struct answer *answer = context;
    const struct verify_options options = {.program = {.driver = driver, .iterations = -1},
                                           .any_witness = true,
                                           .limits = {.states = MAX_STATES}};
    struct verify_report report;
    const enum status status = verify_plan(plan, &options, &report, diag);
    if (status == STATUS_OK) {
        *answer = (struct answer){report.verdict, report.any_times};
        verify_fini(&report);
    }
    return status;
}

/* False: the plan was not read. */
static bool verdict_of(const struct trial_plan *plan, int times, bool repeats, struct answer *out)
{
    char *text = plan_words(plan, times, repeats);
    const bool read = text && plan_try(text, ask, out);
    free(text);
    return read;
}

struct tally {
    uint64_t seed;
    int plans, any, proved, violated, only_more, complaints;
};

static void complain(struct tally *tally, const struct trial_plan *plan, const char *what,
                     int times)
{
    if (tally->complaints++ > 3)
        return;
    char *text = plan_words(plan, times, true);
    tap_note("SWSIM_SEED=%" PRIu64 ": %s, %d iterations\n%s", tally->seed, what, times,
             text ? text : "");
    free(text);
}

static void look_at_plan(struct tally *tally)
{
    struct random random = {.seed = tally->seed};
    struct trial_plan plan;
    struct answer few, more, apart;
    draw_plan(&random, &plan);
    if (!verdict_of(&plan, LEAST, true, &few))
        return;
    tally->plans++;
    tally->any += few.any_times;
    tally->proved += few.verdict == VERDICT_PROVED;
    tally->violated += few.verdict == VERDICT_VIOLATED;
    for (int times = LEAST; times <= MOST; times++) {
        if (!verdict_of(&plan, times, false, &apart) || apart.verdict == VERDICT_UNDECIDED)
            continue;
        if (few.any_times && apart.verdict != VERDICT_PROVED)
            complain(tally, &plan, "said to be proved for any number", times);
        tally->only_more += few.verdict == VERDICT_PROVED && apart.verdict == VERDICT_VIOLATED;
        if (!verdict_of(&plan, times, true, &more) ||
            (more.verdict != VERDICT_UNDECIDED && more.verdict != apart.verdict))
            complain(tally, &plan, "another verdict than written out", times);
    }
}

/* Three iterations make up for what the ranks call in front; four do not. */
static void test_uneven(void)
{
    static const char call[] = "{collective: c, comm: all, stream: a}";
    struct trial_plan plan = {.ranks = 2, .threads = 2};
    struct answer few, more;
    for (int i = 0; i < 3; i++)
        insert_op(&plan.lists[0], 0, 0, call);
    insert_op(&plan.lists[0], 1, 0, call);
    insert_op(&plan.lists[1], 1, 0, call);
    insert_op(&plan.lists[1], 1, 0, call);
    tap_ok(verdict_of(&plan, 3, true, &few) && few.verdict == VERDICT_PROVED && !few.any_times &&
               verdict_of(&plan, 4, true, &more) && more.verdict == VERDICT_VIOLATED,
           "iterations that make up for what comes before do not stand for more");
}

int main(void)
{
    struct tally tally = {0};
    const uint64_t seed = env_seed();
    for (uint64_t i = 0; i < (uint64_t)env_plans(300, 20000); i++) {
        tally.seed = seed + i;
        look_at_plan(&tally);
    }
    tap_ok(tally.complaints == 0 && tally.any > 0 && tally.violated > 0,
           "%d plans: %d proved, %d of them for any number of times, %d violated; %d runs of more "
           "times violate what 3 do not",
           tally.plans, tally.proved, tally.any, tally.violated, tally.only_more);
    test_uneven();
    return tap_done();
}
