/* SPDX-License-Identifier: Apache-2.0 */
/* random_costs.c - see random_costs.h. */
#include "random_costs.h"

enum { MOST_LAYERS = 5, MOST_STAGES = 16 }; /* a generated schedule has fewer stages */

static struct random draws_of(const struct random *plan, uint64_t what)
{
    return (struct random){hash_mix(plan->seed ^ what), 0, plan->out};
}

/* One value, or a list. */
static void write_value(struct random *random, const char *key, const char *unit, int count)
{
    bool list = count > 1 && below(random, 2);
    fprintf(random->out, ", %s: %s", key, list ? "[" : "");
    for (int i = 0; i < (list ? count : 1); i++)
        fprintf(random->out, "%s%d%s", i ? ", " : "", 1 + below(random, 3), unit);
    fputs(list ? "]" : "", random->out);
}

/* Backward passes as a whole, in their parts, or both. */
static void write_passes(struct random *random, int count)
{
    int kind = below(random, 3);
    write_value(random, "F", "ms", count);
    if (kind != 0) {
        write_value(random, "I", "ms", count);
        write_value(random, "W", "ms", count);
    }
    if (kind != 1)
        write_value(random, "B", "ms", count);
}

static void write_bytes(struct random *random, int count)
{
    write_value(random, "activation", "KiB", count);
    if (below(random, 2))
        write_value(random, "left", "KiB", count);
    if (below(random, 2))
        write_value(random, "input", "KiB", count);
    if (below(random, 2))
        write_value(random, "weights", "KiB", count);
    if (rarely(random, 3))
        write_value(random, "state", "KiB", count);
}

static void write_stages(struct random *random, int stages)
{
    fprintf(random->out, "stages: {optimizer: %dms", 1 + below(random, 3));
    if (below(random, 2))
        write_passes(random, stages);
    write_bytes(random, stages);
    fputs("}\n", random->out);
}

static void write_end(struct random *random, const char *key)
{
    if (below(random, 2))
        return;
    fprintf(random->out, ", %s: {weights: 1KiB", key);
    write_passes(random, 1);
    fputs("}", random->out);
}

/* Each stage's layers, one at least of the first. */
static void write_balance(struct random *random, int layers, int stages)
{
    if (rarely(random, 3))
        fputs("balance: found\n", random->out);
    else if (stages && rarely(random, 3)) {
        fprintf(random->out, "balance: [%d", layers - (stages - 1) * (layers / stages));
        for (int s = 1; s < stages; s++)
            fprintf(random->out, ", %d", layers / stages);
        fputs("]\n", random->out);
    }
}

static void write_layers(struct random *random, int stages)
{
    int count = (stages ? stages : MOST_STAGES) + below(random, MOST_LAYERS);
    fprintf(random->out, "layers: {count: %d", count);
    write_passes(random, count);
    write_bytes(random, count);
    write_end(random, "embedding");
    write_end(random, "head");
    fputs("}\n", random->out);
    write_balance(random, count, stages);
}

static void write_model(struct random *random, int stages, int tensor)
{
    int count = (stages ? stages : MOST_STAGES) + below(random, MOST_LAYERS);
    fprintf(random->out,
            "model: {layers: %d, hidden: 64, heads: 4, sequence: 32, microbatch: %d, rate: 1GFLOPS",
            count, 1 + below(random, 2));
    if (below(random, 2))
        fputs(", vocab: 100", random->out);
    const bool grouped = tensor > 0;
    if (rarely(random, 3) && tensor != 1)
        fprintf(random->out, "%s, sequence_parallel: true", grouped ? "" : ", tensor: 2");
    if (rarely(random, 3))
        fprintf(random->out, "%s, distributed_optimizer: true", grouped ? "" : ", data: 2");
    if (rarely(random, 4))
        fprintf(random->out, ", experts: 4, top_k: 2%s", grouped ? "" : ", expert_parallel: 2");
    if (rarely(random, 3))
        fputs(", selective: true", random->out);
    if (rarely(random, 3))
        fputs(", kv_heads: 2, gated: true, ffn: 96", random->out);
    fputs("}\n", random->out);
    write_balance(random, count, stages);
}

void random_costs(const struct random *plan, int stages, int tensor, bool sent)
{
    static const char *const checkpoints[] = {"never", "except_last", "always"};
    struct random random = draws_of(plan, UINT64_C(0xc057));
    if (below(&random, 2))
        return;
    switch (below(&random, 4)) {
    case 0: write_stages(&random, stages); break;
    case 1: write_layers(&random, stages); break;
    case 2: write_model(&random, stages, tensor); break;
    default:
        write_layers(&random, stages);
        fputs("stages: {F: 2ms, activation: 5KiB}\n", random.out);
    }
    if (below(&random, 2))
        fprintf(random.out, "checkpoint: %s\n", one_of(&random, checkpoints, 3));
    if (rarely(&random, 3) && sent)
        fputs("release: send\n", random.out);
}

static void write_link(struct random *random, bool bytes)
{
    if (below(random, 2))
        fprintf(random->out, ", latency: %dus", 10 * (1 + below(random, 200)));
    if (below(random, 2) && bytes)
        fprintf(random->out, ", bandwidth: %dMB/s", 1 + below(random, 4));
    if (below(random, 2))
        fprintf(random->out, ", bytes: %dKiB", 1 + below(random, 4));
}

bool random_link_costs(const struct random *plan, bool bytes)
{
    struct random random = draws_of(plan, UINT64_C(0x114c));
    if (below(&random, 2))
        return bytes;
    if (rarely(&random, 3)) {
        bytes = true;
        fprintf(random.out, ", forward: {bytes: %dKiB}, backward: {latency: %dus}",
                1 + below(&random, 4), 1 + below(&random, 900));
    }
    if (below(&random, 2)) {
        fprintf(random.out, ", latency: %dus", 10 * (1 + below(&random, 200)));
        if (bytes)
            fprintf(random.out, ", bandwidth: %dMB/s", 1 + below(&random, 4));
    }
    if (rarely(&random, 3))
        fprintf(random.out, ", node: 1, between: {%s: %d%s}", bytes ? "bandwidth" : "latency",
                1 + below(&random, 4), bytes ? "MB/s" : "ms");
    if (rarely(&random, 3)) {
        fputs(", edges: [{from: 0, to: 1", random.out);
        write_link(&random, bytes);
        fputs("}, {from: 1, to: 0", random.out);
        write_link(&random, bytes);
        fputs("}]", random.out);
    }
    return bytes;
}

void random_memory(const struct random *plan)
{
    struct random random = draws_of(plan, UINT64_C(0x3e3));
    if (rarely(&random, 6))
        fprintf(random.out, "machine: {memory: %dKiB}\n", 1 + below(&random, 64));
}
