/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_found.c - schedules that are found from costs and a memory limit: their figures, their memory, the bound.
 *
 * A walk of its own over the lists gives spans and activations held, with no code of the search. Published figures of
 * zero-bubble's own search are in a file that may be absent.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "improve/found.h"
#include "plan/schedules/comms.h"
#include "plan/schedules/generate.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "plan/schedules/rank_memory.h"
#include "sim/predict/predict.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { MOST = 1 << 16 };

struct costs {
    int64_t f, i, w, latency;
};

struct walked {
    int64_t span, makespan;
    double held; /* activations, the most on any rank */
};

static int rank_of(const struct generate_spec *spec, int stage)
{
    return stage < spec->ranks ? stage : 2 * spec->ranks - 1 - stage;
}

/* When the pass that `action` needs ended, with its message; -1: not yet. */
static int64_t input_end(const struct generate_spec *spec, const struct costs *costs,
                         const struct action *action, int stages, int64_t *const ends[3])
{
    int m = spec->microbatches, from = action->stage + (action->kind == ACTION_F ? -1 : 1);
    int64_t own = action->kind == ACTION_F ? 0
                  : action->kind == ACTION_W
                      ? ends[ACTION_I][action->stage * m + action->microbatch]
                      : ends[ACTION_F][action->stage * m + action->microbatch];
    if (own < 0 || action->kind == ACTION_W || from < 0 || from == stages)
        return own;
    int64_t end = ends[action->kind][from * m + action->microbatch];
    if (end < 0)
        return -1;
    end += rank_of(spec, from) == rank_of(spec, action->stage) ? 0 : costs->latency;
    return end > own ? end : own;
}

/* Again and again over the ranks, each as far as it can go. False: they wait for each other. */
static bool walk(const struct generate_spec *spec, const struct costs *costs,
                 const struct rank_program *ranks, int stages, double left, struct walked *out)
{
    size_t cells = (size_t)stages * (size_t)spec->microbatches;
    int64_t *ends[3], now[64] = {0}, first[64];
    size_t at[64] = {0};
    double held[64] = {0};
    const int64_t times[] = {costs->f, costs->i, costs->w};
    for (int kind = 0; kind < 3; kind++) {
        ends[kind] = malloc(cells * sizeof *ends[kind]);
        memset(ends[kind], 0xff, cells * sizeof *ends[kind]);
    }
    *out = (struct walked){0};
    bool progress = true, done = false;
    while (progress && !done) {
        progress = false;
        done = true;
        for (int rank = 0; rank < spec->ranks; rank++) {
            for (; at[rank] < ranks[rank].count; at[rank]++) {
                const struct action *action = &ranks[rank].actions[at[rank]];
                int64_t input = input_end(spec, costs, action, stages, ends);
                if (input < 0)
                    break;
                int64_t start = input > now[rank] ? input : now[rank];
                if (at[rank] == 0)
                    first[rank] = start;
                now[rank] = start + times[action->kind];
                ends[action->kind][action->stage * spec->microbatches + action->microbatch] =
                    now[rank];
                held[rank] += action->kind == ACTION_F   ? 1
                              : action->kind == ACTION_I ? left - 1
                                                         : -left;
                out->held = held[rank] > out->held ? held[rank] : out->held;
                progress = true;
            }
            done &= at[rank] == ranks[rank].count;
        }
    }
    for (int rank = 0; done && rank < spec->ranks; rank++) {
        int64_t span = now[rank] - first[rank];
        out->span = span > out->span ? span : out->span;
        out->makespan = now[rank] > out->makespan ? now[rank] : out->makespan;
    }
    for (int kind = 0; kind < 3; kind++)
        free(ends[kind]);
    return done;
}

static int chunks_of(const char *schedule)
{
    return schedule[0] == 'v' || strcmp(schedule, "zbv_auto") == 0 ? 2 : 1;
}

/* The figures that the generator says are those of its lists, and keep to the memory and the bound. Returns the span. */
static int64_t check_found(const struct generate_spec *spec, const struct costs *costs, int memory)
{
    struct plan plan;
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks = NULL;
    struct found_figures figures = {0};
    struct walked walked = {0};
    int chunks = chunks_of(spec->schedule);
    plan_init(&plan);
    arena_init(&arena, 0);
    diag_init(&diag);
    plan.programs.times[ACTION_F] = (struct action_time){true, costs->f};
    plan.programs.times[ACTION_I] = (struct action_time){true, costs->i};
    plan.programs.times[ACTION_W] = (struct action_time){true, costs->w};
    plan.programs.links.all.latency = (struct amount){true, costs->latency};
    bool ok = found_search(spec, &plan, &arena, &ranks, &figures, &diag) == STATUS_OK;
    ok = ok && walk(spec, costs, ranks, spec->ranks * chunks, 0.5, &walked);
    tap_ok(ok, "%s p%d m%d is found and has no deadlock", spec->schedule, spec->ranks,
           spec->microbatches);
    tap_ok(figures.span_ns == walked.span && figures.makespan_ns == walked.makespan,
           "span %lld and makespan %lld are those of its lists", (long long)figures.span_ns,
           (long long)figures.makespan_ns);
    tap_ok(walked.held <= memory, "at most %d activations are held, got %g", memory, walked.held);
    tap_ok(figures.bound_ns >= figures.work_ns && figures.bound_ns <= figures.span_ns,
           "no less than the bound");
    diag_fini(&diag);
    arena_fini(&arena);
    plan_fini(&plan);
    return walked.span;
}

static struct generate_spec spec_of(const char *schedule, int ranks, int microbatches)
{
    return (struct generate_spec){
        .given = true, .schedule = schedule, .ranks = ranks, .microbatches = microbatches};
}

/* F = I = W = 1 and free messages: no bubble with 2p, half of 1F1B's with half of its memory, two thirds with a third. */
static void test_units(void)
{
    static const int sizes[][2] = {{2, 8}, {4, 8}, {4, 12}, {8, 16}};
    static const struct costs units = {1, 1, 1, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int p = sizes[i][0], m = sizes[i][1];
        struct generate_spec vee = spec_of("zbv_auto", p, m), half = spec_of("v_half", p, m),
                             third = spec_of("v_min", p, m), line = spec_of("zb_2p", p, m);
        tap_is_int(check_found(&vee, &units, 2 * p), 6 * m, "no bubble with 2p");
        tap_ok(check_found(&half, &units, 2 * ((p + 2) / 2)) <= 6 * m + 3 * (p - 1),
               "half the bubble with half the memory");
        tap_ok(check_found(&third, &units, 2 * ((p + 4) / 3)) <= 6 * m + 4 * (p - 1),
               "two thirds of the bubble with a third of the memory");
        check_found(&line, &units, 2 * p);
    }
}

static void test_memory(void)
{
    static const struct costs costs = {100, 90, 50, 10};
    struct generate_spec spec = spec_of("zb_2p", 4, 8);
    int64_t before = INT64_MAX;
    for (int memory = 1; memory <= 8; memory++) {
        spec.memory = memory;
        int64_t span = check_found(&spec, &costs, memory);
        tap_ok(span <= before, "more memory, no longer span");
        before = span;
    }
}

/* "single,8,24,18522,18086,9337,601,ZB-2p,16,1152599,...": never worse than the search of its authors. */
static void check_row(char *row)
{
    char *cells[16] = {NULL};
    int count = 0;
    for (char *cell = strtok(row, ","); cell && count < 16; cell = strtok(NULL, ","))
        cells[count++] = cell;
    if (count < 12)
        return;
    const char *schedule = strcmp(cells[7], "ZB-1p") == 0   ? "zb_1p"
                           : strcmp(cells[7], "ZB-2p") == 0 ? "zb_2p"
                           : strcmp(cells[7], "ZB-V") == 0  ? "zbv_auto"
                                                            : NULL;
    int p = atoi(cells[1]), m = atoi(cells[2]);
    if (!schedule || p * m > 4700)
        return;
    struct costs costs = {atol(cells[3]), atol(cells[4]), atol(cells[5]), atol(cells[6])};
    struct generate_spec spec = spec_of(schedule, p, m);
    int64_t span = check_found(&spec, &costs, atoi(cells[8]));
    tap_ok(span <= atol(cells[9]), "%s p%d m%d: %lld, published %s", schedule, p, m,
           (long long)span, cells[9]);
}

static void test_published(void)
{
    const char *path = path_shared("data/zero-bubble/targets.csv");
    if (!has_shared(path))
        return;
    char *text = file_text(path), *rest = text;
    for (char *row; (row = strsep(&rest, "\n"));)
        check_row(row);
    free(text);
}

/* Stages of unlike costs: how far what is found is from the bound, over a grid. The bound need not be reached. */
static void test_unlike(void)
{
    enum { CASES = 24, STAGES = 16, MOST_MEAN = 3, MOST_WORST = 12 };
    static const char *const schedules[] = {"zb_1p", "zb_2p", "zbv_auto", "v_half"};
    double sum = 0, worst = 0;
    for (int i = 0; i < CASES; i++) {
        struct plan plan;
        struct arena arena;
        struct diag diag;
        struct rank_program *ranks;
        struct found_figures figures = {0};
        int p = i % 3 == 0 ? 4 : 8;
        struct generate_spec spec = spec_of(schedules[i % 4], p, (2 + i % 3) * p);
        int64_t times[3][STAGES];
        plan_init(&plan);
        arena_init(&arena, 0);
        diag_init(&diag);
        for (int pass = 0; pass < 3; pass++) {
            for (int stage = 0; stage < STAGES; stage++)
                times[pass][stage] =
                    1000 + (int64_t)(hash_mix((uint64_t)((i * 3 + pass) * STAGES + stage)) % 1000);
            plan.programs.stages.stages.of[COST_F + pass] = (struct cost_list){
                .items = times[pass], .count = (size_t)(p * chunks_of(spec.schedule))};
        }
        plan.programs.links.all.latency = (struct amount){true, 100 * (i % 3)};
        bool ok = found_search(&spec, &plan, &arena, &ranks, &figures, &diag) == STATUS_OK;
        double over =
            ok ? 100.0 * (double)(figures.span_ns - figures.bound_ns) / (double)figures.bound_ns
               : INFINITY;
        tap_ok(over >= 0 && over <= MOST_WORST, "%s p%d m%d: %.2f%% above the bound", spec.schedule,
               p, spec.microbatches, over);
        sum += over;
        worst = over > worst ? over : worst;
        diag_fini(&diag);
        arena_fini(&arena);
        plan_fini(&plan);
    }
    tap_ok(sum / CASES <= MOST_MEAN, "in the mean %.2f%% above the bound, at most %.2f%%",
           sum / CASES, worst);
}

/* The lists of a text that keeps them are those that were found. */
static void check_same(const struct rank_program *a, const struct rank_program *b, int ranks)
{
    bool same = true;
    for (int rank = 0; rank < ranks && same; rank++) {
        same = a[rank].count == b[rank].count;
        for (size_t i = 0; i < a[rank].count && same; i++)
            same = a[rank].actions[i].kind == b[rank].actions[i].kind &&
                   a[rank].actions[i].stage == b[rank].actions[i].stage &&
                   a[rank].actions[i].microbatch == b[rank].actions[i].microbatch;
    }
    tap_ok(same, "the lists that are kept are those that were found");
}

/* An answer is remembered for its question, and for no other one. */
static void check_memo(struct plan *plan, struct arena *arena, struct diag *diag)
{
    struct found_memo memo;
    const struct rank_program *first = plan->programs.generate.found;
    int64_t *time_ns = &plan->programs.times[ACTION_F].time_ns;
    if (found_memo_open(&memo, diag))
        abort();
    for (int i = 0; i < 2; i++) {
        tap_is_int(found_resolve_with(plan, arena, &memo, NULL, diag), STATUS_OK, "time %d", i);
        check_same(first, plan->programs.generate.found, 3);
        tap_is_int(memo.next, 1, "there was one search");
    }
    *time_ns += 1;
    tap_is_int(found_resolve_with(plan, arena, &memo, NULL, diag), STATUS_OK, "other costs");
    tap_is_int(memo.next, 2, "are another question");
    *time_ns -= 1;
    found_memo_close(&memo);
}

/* A plan prints as it was written; the text that a run keeps has the lists, and nothing is searched for again. */
static void test_kept(void)
{
    static const char text[] = "swplan: 1\nname: kept\ntimes: {F: 3ms, I: 2ms, W: 1ms}\n"
                               "generate: {schedule: zb_1p, ranks: 3, microbatches: 5}\n";
    struct plan plan, again;
    struct arena arena;
    struct diag diag;
    struct program *program;
    const struct program_options options = {.driver = DRIVER_NONE, .iterations = 1};
    const char *kept = "", *plain = "", *twice = "";
    arena_init(&arena, 0);
    diag_init(&diag);
    if (plan_parse("kept.yaml", text, strlen(text), &plan, &diag))
        abort();
    tap_ok(found_is_wanted(&plan), "its lists are to be found");
    tap_is_int(program_build(&plan, &options, &program, &diag), STATUS_INPUT, "it is not lowered");
    tap_is_int(found_resolve(&plan, &arena, &diag), STATUS_OK, "a search");
    tap_is_int(program_build(&plan, &options, &program, &diag), STATUS_OK, "it is lowered");
    program_close(program);
    tap_is_int(plan_text_in(&plan, &arena, &plain, &diag), STATUS_OK, "it prints");
    tap_ok(!strstr(plain, "programs:"), "as it was written");
    tap_is_int(plan_kept_text_in(&plan, &arena, &kept, &diag), STATUS_OK, "a run keeps it");
    if (plan_parse("kept.yaml", kept, strlen(kept), &again, &diag))
        abort();
    tap_ok(!found_is_wanted(&again), "the text that is kept has the lists");
    check_same(plan.programs.generate.found, again.programs.generate.found, 3);
    tap_is_int(plan_text_in(&again, &arena, &twice, &diag), STATUS_OK, "it prints");
    tap_ok(strcmp(kept, twice) == 0, "as it was kept");
    check_memo(&plan, &arena, &diag);
    plan_fini(&again);
    plan_fini(&plan);
    diag_fini(&diag);
    arena_fini(&arena);
}

/* ---- messages on shared channels --------------------------------------------------------------- */

static int drawn(uint64_t seed, int what, int count)
{
    return (int)(hash_mix(seed * 1000 + (uint64_t)what) % (uint64_t)count);
}

static void write_channel_plan(uint64_t seed, char *buf, size_t cap)
{
    static const char *const schedules[] = {"zb_1p", "zb_2p", "zbv_auto", "v_half", "v_min"};
    static const char *const fifos[] = {"rank", "direction", "pair", "edge"};
    static const char *const passes[] = {"F", "I", "W"};
    const char *schedule = schedules[drawn(seed, 0, 5)];
    int p = 2 + drawn(seed, 1, 4), m = p + drawn(seed, 2, 2 * p + 1), v = chunks_of(schedule);
    FILE *out = fmemopen(buf, cap, "w");
    if (!out)
        abort();
    fprintf(out,
            "swplan: 1\nname: found\np2p: {fifo: %s, forward: {latency: %dus}, backward: {latency: "
            "%dus}}\n",
            fifos[drawn(seed, 3, 4)], drawn(seed, 4, 9), drawn(seed, 5, 9));
    fputs("stages: {", out);
    for (int pass = 0; pass < 3; pass++) {
        fprintf(out, "%s%s: [", pass ? ", " : "", passes[pass]);
        for (int stage = 0; stage < p * v; stage++)
            fprintf(out, "%s%dus", stage ? ", " : "", 5 + drawn(seed, 10 + 100 * pass + stage, 9));
        fputs("]", out);
    }
    fprintf(out, "}\ngenerate: {schedule: %s, ranks: %d, microbatches: %d}\n", schedule, p, m);
    fclose(out);
}

/* The time that the choice of an order gives on its channels (improve/bubble_channel.c) is the machine's. */
static bool channels_agree(const char *text, int *held_up)
{
    struct plan plan;
    struct arena arena;
    struct diag diag;
    struct found_figures figures = {0};
    struct prediction prediction;
    const struct predict_options options = {.seed = 1, .replications = 1, .threads = 1};
    arena_init(&arena, 0);
    diag_init(&diag);
    if (plan_parse("found.yaml", text, strlen(text), &plan, &diag) ||
        found_resolve_with(&plan, &arena, NULL, &figures, &diag) ||
        predict(&plan, &options, &prediction, &diag)) {
        diag_print(&diag, "t_found", false, stderr);
        abort();
    }
    bool same = prediction.total_ns == figures.makespan_ns;
    if (!same)
        tap_note("the machine takes %lld, the choice said %lld:\n%s",
                 (long long)prediction.total_ns, (long long)figures.makespan_ns, text);
    *held_up += figures.span_ns > figures.bound_ns;
    prediction_fini(&prediction);
    plan_fini(&plan);
    arena_fini(&arena);
    diag_fini(&diag);
    return same;
}

static void test_channels(void)
{
    enum { CASES = 100 };
    int same = 0, held_up = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        char text[4096];
        write_channel_plan(seed, text, sizeof text);
        same += channels_agree(text, &held_up);
    }
    tap_is_int(same, CASES, "found orders take on their channels what was said");
    tap_ok(held_up > CASES / 4, "in %d of them passes wait", held_up);
}

/* ---- the memory of the machine --------------------------------------------------------------- */

struct limited {
    enum status status;
    struct found_figures figures;
    int64_t most_bytes; /* of a rank */
};

static struct limited find_limited(const char *generate, const char *costs, int64_t memory_mib)
{
    struct limited out = {0};
    struct plan plan;
    struct arena arena;
    struct diag diag;
    struct rank_memory *memory;
    char text[1024];
    int count = 0;
    arena_init(&arena, 0);
    diag_init(&diag);
    snprintf(text, sizeof text,
             "swplan: 1\nname: found\ngenerate: {%s}\nstages: {F: 1ms, I: 1ms, W: 1ms, "
             "%s\nmachine: {memory: %lldMiB}\n",
             generate, costs, (long long)memory_mib);
    out.status = plan_parse("found.yaml", text, strlen(text), &plan, &diag);
    if (out.status != STATUS_OK)
        abort();
    out.status = found_resolve_with(&plan, &arena, NULL, &out.figures, &diag);
    if (out.status == STATUS_OK && rank_memory_find(&plan, &arena, &memory, &count, &diag))
        abort();
    for (int rank = 0; out.status == STATUS_OK && rank < count; rank++)
        out.most_bytes = memory[rank].most > out.most_bytes ? memory[rank].most : out.most_bytes;
    plan_fini(&plan);
    arena_fini(&arena);
    diag_fini(&diag);
    return out;
}

/* Messages and recomputation take memory beside the activations counted. */
static void test_machine_memory(void)
{
    static const char *const costs[] = {
        "activation: 100MiB, weights: 1000MiB}",
        "activation: 100MiB, left: 25MiB, weights: 1000MiB}\np2p: {bytes: 30MiB}",
        "activation: 100MiB, input: 20MiB, weights: 1000MiB}\ncheckpoint: always"};
    static const char *const schedules[] = {"zb_1p", "zb_2p", "zbv_auto", "v_half"};
    for (size_t s = 0; s < 4; s++)
        for (size_t c = 0; c < 3; c++) {
            char generate[128];
            snprintf(generate, sizeof generate, "schedule: %s, ranks: 4, microbatches: 8",
                     schedules[s]);
            int64_t weights = s < 2 ? 1000 : 2000;
            for (int64_t more = 550; more <= 1000; more += 150) {
                struct limited found = find_limited(generate, costs[c], weights + more);
                tap_ok(found.status == STATUS_OK && found.most_bytes <= (weights + more) << 20,
                       "%s keeps to %lld MiB: %lld", schedules[s], (long long)(weights + more),
                       (long long)found.most_bytes >> 20);
            }
        }
}

/* One rank with larger weights: the others hold more than it has room for, and that is worth something. */
static void test_machine_by_rank(void)
{
    static const char costs[] =
        "activation: [100MiB, 100MiB, 100MiB, 100MiB], weights: [100MiB, 100MiB, 100MiB, 700MiB]}";
    static const char two[] = "schedule: zb_2p, ranks: 4, microbatches: 12";
    struct limited own = find_limited(two, costs, 100 << 10);
    struct limited by_rank = find_limited(two, costs, 1000);
    struct limited tightest =
        find_limited("schedule: zb_2p, ranks: 4, microbatches: 12, memory: 3", costs, 1000);
    struct limited fit =
        find_limited("schedule: zb_2p, ranks: 4, microbatches: 12, memory: fit", costs, 1000);
    tap_ok(own.figures.least_limit == 8 && own.figures.most_limit == 8,
           "much memory: its own number");
    tap_ok(by_rank.figures.least_limit == 3 && by_rank.figures.most_limit == 8,
           "a rank has room for 3, the others for their 8: %d to %d", by_rank.figures.least_limit,
           by_rank.figures.most_limit);
    tap_ok(by_rank.figures.span_ns < tightest.figures.span_ns,
           "which is faster than 3 on all: %lld, %lld", (long long)by_rank.figures.span_ns,
           (long long)tightest.figures.span_ns);
    tap_ok(fit.figures.least_limit == 3 && fit.figures.most_limit == 9, "as many as fit: %d to %d",
           fit.figures.least_limit, fit.figures.most_limit);
    struct limited none = find_limited(two, costs, 750);
    tap_ok(none.status == STATUS_OK && none.figures.most_limit == 8,
           "too little memory for any: its own number, for verify to judge");
    none = find_limited("schedule: zb_2p, ranks: 4, microbatches: 12, memory: fit", costs, 750);
    tap_is_int(none.status, STATUS_INPUT, "and nothing fits");
}

int main(void)
{
    test_machine_memory();
    test_machine_by_rank();
    test_kept();
    test_channels();
    if (getenv("SWSIM_LONG"))
        test_unlike();
    test_units();
    test_memory();
    test_published();
    return tap_done();
}
