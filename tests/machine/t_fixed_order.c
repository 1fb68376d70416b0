/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fixed_order.c - what flags order in every run (machine/fixed_order.h) is what a list of counts for each operation says, in random
 * programs of 2 to 70 threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "machine/fixed_order.h"
#include "tests/harness.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { MOST_THREADS = 70, MOST_OPS_EACH = 64, MOST_FLAGS = 512 };

/* By thread and operation: how many operations of each thread are done before it. */
static int known[MOST_THREADS][MOST_OPS_EACH][MOST_THREADS];

/* Threads signal and await flags, each set once, in an order that no await is ahead of: no thread stops. */
static void draw_program(struct random *random, int threads)
{
    static char text[MOST_THREADS][MOST_OPS_EACH * 16];
    static int counts[MOST_THREADS], setters[MOST_FLAGS], places[MOST_FLAGS];
    int flags = 0;
    memset(counts, 0, sizeof counts);
    memset(known, 0, sizeof known);
    memset(text, 0, sizeof text);
    for (int left = threads * (1 + below(random, 8)); left > 0; left--) {
        const int t = below(random, threads), at = counts[t];
        if (at == MOST_OPS_EACH || flags == MOST_FLAGS)
            continue;
        if (at > 0)
            memcpy(known[t][at], known[t][at - 1], sizeof known[t][at]);
        const int flag = flags > 0 && below(random, 5) < 3
                             ? flags - 1 - below(random, rarely(random, 2) || flags < 4 ? flags : 4)
                             : flags;
        sprintf(text[t] + strlen(text[t]), "%s{%s: f%d}", at ? ", " : "",
                flag < flags ? "await" : "signal", flag);
        if (flag == flags) {
            setters[flags] = t;
            places[flags++] = at;
        } else if (setters[flag] != t) {
            const int from = setters[flag];
            for (int other = 0; other < threads; other++)
                known[t][at][other] =
                    max_int(known[t][at][other], known[from][places[flag]][other]);
            known[t][at][from] = max_int(known[t][at][from], places[flag] + 1);
        }
        counts[t]++;
    }
    fputs("swplan: 1\nflags: {unset: {}", random->out);
    for (int f = 0; f < flags; f++)
        fprintf(random->out, ", f%d: {}", f);
    fputs("}\nthreads:\n", random->out);
    for (int t = 0; t < threads; t++)
        fprintf(random->out, "  r0.t%d: [%s]\n", t, counts[t] ? text[t] : "{host: 1us}");
}

/* How many places differ; -1: the plan is refused. */
static int differences(const char *text, long *compared)
{
    struct plan plan;
    struct program *program;
    struct diag diag;
    int differ = 0;
    if (!plan_of_text(text, &plan))
        return -1;
    diag_init(&diag);
    const enum status status =
        program_build(&plan, &(struct program_options){.iterations = -1}, &program, &diag);
    struct fixed_order *order = status == STATUS_OK ? fixed_order_make(program) : NULL;
    for (int t = 0; order && t < program->thread_count; t++)
        for (int at = 0; at < program->bodies[program->threads[t].body].count; at++)
            for (int other = 0; other < program->thread_count; other++, ++*compared)
                differ +=
                    other != t && fixed_order_before(order, t, at, other) != known[t][at][other];
    if (status == STATUS_OK)
        program_close(program);
    diag_fini(&diag);
    plan_fini(&plan);
    return status == STATUS_OK ? differ : -1;
}

int main(void)
{
    static const int sizes[] = {2, 3, 5, 16, 17, 40, MOST_THREADS};
    int wrong = 0, refused = 0;
    long compared = 0;
    for (uint64_t seed = 0; seed < 350; seed++) {
        char *text = NULL;
        size_t bytes;
        struct random random = {.seed = hash_mix(seed + 1), .out = open_memstream(&text, &bytes)};
        draw_program(&random, sizes[seed % (sizeof sizes / sizeof *sizes)]);
        fclose(random.out);
        const int differ = differences(text, &compared);
        refused += differ < 0;
        wrong += differ > 0;
        if (differ && wrong + refused < 3)
            tap_note("%d places differ in\n%s", differ, text);
        free(text);
    }
    tap_is_int(wrong, 0, "%ld places compared", compared);
    tap_ok(refused == 0 && compared > 100000, "%d programs refused", refused);
    return tap_done();
}
