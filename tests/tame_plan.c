/* SPDX-License-Identifier: Apache-2.0 */
/* tame_plan.c - see tame_plan.h. */
#include "tame_plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/random.h"

static int below(struct random_stream *rng, int count)
{
    return (int)(random_bits(rng) % (uint64_t)count);
}

/* A task on a stream that belongs to one thread; what is issued together is ordered. */
static void tame_task(FILE *out, struct random_stream *rng, int task, int stage, int stream,
                      int group, bool calm)
{
    static const char *const kinds[] = {
        "",
        "",
        ", work: {host: 3us}",
        ", holds: [gil]",
        ", globally_ordered: true",
        ", host_after: 5us",
        ", globally_ordered: true, work: {collective: all_reduce, comm: dp, bytes: 1KiB}",
        ", work: {copy: h2d, bytes: 1KiB, pageable: true}", /* from here on not calm */
        ", host_sync: stream",
        ", sync_after: stream",
        ", host_after: 4us, sync_after: stream, holds: [gil]"};
    const int calm_kinds = 7;
    int device_ns = below(rng, 9000), host_ns = below(rng, 3000);
    const char *kind = kinds[below(rng, calm ? calm_kinds : (int)(sizeof kinds / sizeof *kinds))];
    fprintf(out, "  T%d: {stage: %d, stream: s%d, thread_group: g%d, ", task, stage, stream, group);
    fprintf(out, "time: %dns, host_time: %dns%s}\n", device_ns, host_ns, kind);
}

static void tame_deps(FILE *out, struct random_stream *rng, int tasks)
{
    fprintf(out, "intra_iter_deps: [");
    for (int t = 1; t < tasks; t++)
        fprintf(out, "%s[T%d, T%d]", t > 1 ? ", " : "", t, below(rng, t));
    fprintf(out, "]\ninter_iter_deps: [");
    for (int i = below(rng, 3); i > 0; i--) {
        int task = below(rng, tasks), on = below(rng, tasks);
        fprintf(out, "[T%d, T%d, %d]%s", task, on, i + below(rng, 2) * 2, i > 1 ? ", " : "");
    }
    fprintf(out, "]\n");
}

static char *make_plan(uint64_t seed, bool calm)
{
    static const char *const orders[] = {"ready-first", "stage-descending", "stage-ascending"};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct random_stream rng = random_open(
        &(struct random_subject){.seed = seed, .task = random_name("tame"), .part = RANDOM_OTHER});
    if (!out)
        return NULL;
    int tasks = 2 + below(&rng, 7), streams = 1 + below(&rng, 4), groups = 1 + below(&rng, 3);
    int ranks = 1 + below(&rng, 3), first = below(&rng, 2), stage = first;
    fprintf(out, "swplan: 1\nranks: %d\n", ranks);
    fprintf(out, "enqueue_order: %s\n", orders[below(&rng, 3)]);
    fprintf(out, "retire: %s\n", calm || below(&rng, 2) ? "device" : "submit");
    if (!calm && below(&rng, 3) == 0)
        fprintf(out, "machine: {launch_queue: %d}\n", 1 + below(&rng, 20));
    fprintf(out, "schedule:\n");
    for (int t = 0; t < tasks; t++) {
        int stream = below(&rng, streams);
        stage += t > 0 && stage < 3 && below(&rng, 3) == 0;
        tame_task(out, &rng, t, stage, stream, stream % groups, calm);
    }
    tame_deps(out, &rng, tasks);
    fprintf(out, "%s", ranks > 1 ? "rank_overrides:\n" : "");
    for (int rank = 1; rank < ranks; rank++)
        fprintf(out, "  %d: {schedule: {T0: {time: %dns}, T1: {stage: %d}}}\n", rank, rank * 3000,
                first + below(&rng, stage - first + 1));
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *tame_plan(uint64_t seed)
{
    return make_plan(seed, false);
}

char *calm_plan(uint64_t seed)
{
    return make_plan(seed, true);
}
