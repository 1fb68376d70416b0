/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_wide.c - random plans that leave nothing out: every key of swplan(5) that can change a
 * verdict is drawn, and most of those that cannot, in any mixture.
 *
 *     every form   about, on_failure, ranks, comms (of some ranks too), queues, buffers (scope, bytes), machine
 *     machine      sm_slots, hw_queues, launch_queue, launch_latency, first_use_blocks, launch_order_implicit,
 *                  lazy_load, launch_blocking, alloc_may_sync, memory, copy_engines, cores, eager_messages, eager_bytes
 *     pipeline     every key of the form, of a task and of work; rank_overrides of both kinds
 *     programs     programs, generate, p2p (all keys), times; every action; written as lists, texts
 *                  and by rank; with and without messages
 *     threads      every operation; groups of several parts, bodies of several operations
 *
 * Not drawn: source and expect, which nothing but a reader looks at.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/generate.h"
#include "random_costs.h"
#include "random_draw.h"
#include "random_plan.h"

#define ONE_OF(random, words) one_of((random), (words), (int)(sizeof(words) / sizeof *(words)))

static const char *const distributions[] = {"constant",
                                            "uniform(half=0.5)",
                                            "normal(cv=0.1)",
                                            "lognormal(cv=0.2) + spike(p=1%, add=5ms)",
                                            "gamma(cv=0.3)",
                                            "exponential",
                                            "empirical(0.5, 1, 1.5)"};

/* ---- the machine ----------------------------------------------------------------------------- */

/* Each knob once in `often`; `link` is the communicator of messages, NULL: none is named. `room_kib`: the memory; 0: any; `each`: a rank may have its own. */
static void write_machine(struct random *random, int often, int ranks, const char *link,
                          int room_kib, bool each)
{
    const char *comma = "";
    fputs("machine: {", random->out);
#define KNOB(...)                                                                                  \
    do {                                                                                           \
        if (rarely(random, often)) {                                                               \
            fprintf(random->out, "%s", comma);                                                     \
            fprintf(random->out, __VA_ARGS__);                                                     \
            comma = ", ";                                                                          \
        }                                                                                          \
    } while (0)
    if (ranks > 1 && rarely(random, 2 * often)) {
        fprintf(random->out, "sm_slots: %d, share_device: [[0, 1]]", 1 + below(random, 3));
        comma = ", ";
    } else {
        KNOB("sm_slots: %d", 1 + below(random, 3));
    }
    KNOB("hw_queues: %d", 1 + below(random, 2));
    KNOB("launch_queue: %d", 2 + below(random, 6));
    KNOB("launch_latency: %dus", 1 + below(random, 5));
    KNOB("first_use_blocks: true");
    KNOB("launch_order_implicit: true");
    KNOB("lazy_load: true");
    KNOB("launch_blocking: true");
    KNOB("alloc_may_sync: true");
    if (room_kib) {
        fprintf(random->out, "%smemory: %dKiB", comma, room_kib);
        comma = ", ";
    } else if (each && rarely(random, often)) {
        fprintf(random->out, "%smemory: [", comma);
        for (int rank = 0; rank < ranks; rank++)
            fprintf(random->out, "%s%dKiB", rank ? ", " : "", below(random, 8));
        fputs("]", random->out);
        comma = ", ";
    } else {
        KNOB("memory: %dKiB", 1 + below(random, 8));
    }
    KNOB("copy_engines: 2, cores: 3");
    if (link) {
        KNOB("eager_messages: {%s: %d}", link, 1 + below(random, 2));
        KNOB("eager_bytes: {%s: %dKiB}", link, 1 + below(random, 2));
        KNOB("timeout: {%s: 2us}", link);
    }
#undef KNOB
    fputs("}\n", random->out);
}

/* The plan's entries for streams. */
static void write_streams(struct random *random, int often, const char *first, const char *second)
{
    if (rarely(random, often))
        fprintf(random->out, "streams: {%s: {legacy: true}, %s: {blocking: %s}}\n", first, second,
                below(random, 2) ? "true" : "false");
}

static void write_accesses(struct random *random)
{
    static const char *const accesses[] = {"reads: [b]",    "writes: [b]",
                                           "reads: [w]",    "writes: [w]",
                                           "reads: [b, w]", "reads: [w], writes: [b]",
                                           "writes: [u]",   "reads: [u]"};
    if (below(random, 2))
        fprintf(random->out, ", %s", ONE_OF(random, accesses));
}

/* A root is one of the first two ranks, which are in every communicator. */
static const char *collective(struct random *random, int ranks)
{
    static const char *const kinds[] = {"all_reduce",     "all_to_all", "all_gather",
                                        "reduce_scatter", "broadcast",  "barrier"};
    static const char *const rooted[] = {"broadcast", "broadcast, root: 0", "broadcast, root: 1"};
    const char *kind = ONE_OF(random, kinds);
    return strcmp(kind, "broadcast") == 0 ? rooted[below(random, ranks > 1 ? 3 : 2)] : kind;
}

/* The plan's keys for a failure; without one they make no difference. */
static void write_on_failure(struct random *random)
{
    static const char *const ways[] = {"none", "wake", "abort", "group_abort"};
    if (rarely(random, 4))
        fprintf(random->out, "on_failure: %s\n", ONE_OF(random, ways));
}

/* ---- pipeline -------------------------------------------------------------------------------- */

enum { MAX_TASKS = 4 };

/* A task of a pipeline for which ranks do not all do the same. */
enum difference { ALIKE, MESSAGE, HALF };

struct pipeline_writer {
    struct random *random;
    int ranks, tasks, stages, streams, groups;
    int stage[MAX_TASKS];
    bool on_host, spins; /* the task at work */
    enum difference difference[MAX_TASKS];
};

static void write_work(struct pipeline_writer *writer, int task)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    int which = below(random, writer->ranks > 1 ? 14 : 9);
    switch (which) {
    case 0:
        writer->on_host = true;
        fputs(", work: {host: 1us}", out);
        break;
    case 1:
        fprintf(out, ", work: {copy: %s, bytes: 1KiB}",
                below(random, 2) ? below(random, 2) ? "h2d" : "d2d" : "h2d, pageable: true");
        break;
    case 2: fputs(", work: {gemm: {m: 2, n: 2, k: 2, dtype: f32}}", out); break;
    case 3: fputs(", work: {gather: {rows: 4, dim: 2}}", out); break;
    case 4: fputs(", work: {axpy: {elements: 8}}", out); break;
    case 5:
        writer->spins = true;
        fputs(", work: {spin: 1us}", out);
        break;
    case 9: /* rank 0 sends, rank 1 receives: see write_overrides */
        writer->difference[task] = MESSAGE;
        fprintf(out, ", work: {send: x%d, peer: 1, comm: link, bytes: 1KiB}", below(random, 2));
        break;
    case 10: /* a collective of two ranks, of which there may be a third */
        writer->difference[task] = HALF;
        fprintf(out, ", work: {collective: %s, comm: half, bytes: 1KiB}",
                collective(random, writer->ranks));
        break;
    case 6:
    case 11:
    case 12:
    case 13:
        fprintf(out, ", work: {collective: %s, comm: %s, bytes: 1KiB}",
                collective(random, writer->ranks), below(random, 3) ? "dp" : "mp");
        break;
    default: break;
    }
}

static void write_task(struct pipeline_writer *writer, int task)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    fprintf(out, "  T%d: {stage: %d", task, writer->stage[task]);
    if (below(random, 4))
        fprintf(out, ", stream: s%d", below(random, writer->streams));
    if (below(random, 4))
        fprintf(out, ", thread_group: g%d", below(random, writer->groups));
    writer->on_host = writer->spins = false;
    if (rarely(random, 3))
        fputs(", globally_ordered: true", out);
    if (rarely(random, 4)) {
        fputs(", host_time: 1us", out);
        if (below(random, 2))
            fprintf(out, ", host_jitter: \"%s\"", ONE_OF(random, distributions));
    }
    if (rarely(random, 10))
        fprintf(out, ", host_sync: %s", below(random, 2) ? "stream" : "device");
    if (rarely(random, 8))
        fprintf(out, ", holds: [%s]", ONE_OF(random, ((const char *const[]){"m", "m, n", "n, m"})));
    write_accesses(random);
    write_work(writer, task);
    if (!writer->on_host && rarely(random, 3))
        fprintf(out, ", sm: %d", 1 + rarely(random, 4));
    if (!writer->on_host && rarely(random, 8))
        fputs(", host_after: 1us", out);
    if (!writer->on_host && rarely(random, 10))
        fprintf(out, ", sync_after: %s", below(random, 2) ? "stream" : "device");
    if (!writer->spins && below(random, 4)) {
        fputs(", time: 1us", out);
        if (rarely(random, 6))
            fprintf(out, ", jitter: \"%s\"", ONE_OF(random, distributions));
    }
    fputs("}\n", out);
}

static void write_dependences(struct pipeline_writer *writer)
{
    struct random *random = writer->random;
    const char *comma = "";
    fputs("intra_iter_deps: [", random->out);
    for (int task = 1; task < writer->tasks; task++)
        for (int on = 0; on < task; on++)
            if (rarely(random, task + 1)) {
                fprintf(random->out, "%s[T%d, T%d]", comma, task, on);
                comma = ", ";
            }
    fputs("]\ninter_iter_deps: [", random->out);
    comma = "";
    for (int more = below(random, 3); more > 0; more--) {
        fprintf(random->out, "%s[T%d, T%d", comma, below(random, writer->tasks),
                below(random, writer->tasks));
        if (below(random, 2))
            fprintf(random->out, ", %d", 1 + below(random, 3));
        fputs("]", random->out);
        comma = ", ";
    }
    fputs("]\n", random->out);
}

/* A list of all tasks in some order. */
static void write_order(struct pipeline_writer *writer, const char *indent)
{
    static const char *const orders[] = {"ready-first", "stage-descending", "stage-ascending"};
    struct random *random = writer->random;
    fprintf(random->out, "%senqueue_order: ", indent);
    if (below(random, 3)) {
        fprintf(random->out, "%s\n", ONE_OF(random, orders));
        return;
    }
    int order[MAX_TASKS];
    for (int i = 0; i < writer->tasks; i++) {
        int at = below(random, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < writer->tasks; i++)
        fprintf(random->out, "%sT%d", i ? ", " : "[", order[i]);
    fputs("]\n", random->out);
}

/* This rank's own actions in place of those of all; false: the same. */
static bool write_difference(struct pipeline_writer *writer, int rank, int task, const char *comma)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    bool first = rank == 1 && writer->difference[task] == MESSAGE;
    bool absent = rank == 2 && writer->difference[task] != ALIKE;
    bool other = rarely(random, 6);
    if (!first && !absent && !other)
        return false;
    fprintf(out, "%sT%d: {", comma, task);
    if (first)
        fprintf(out, "work: {recv: x%d, peer: 0, comm: link, bytes: 1KiB}%s", below(random, 2),
                other ? ", " : "");
    if (absent)
        fprintf(out, "time: 0ns, work: {spin: 1us}%s", other ? ", " : "");
    if (other)
        switch (below(random, 4)) {
        case 0: fprintf(out, "stage: %d", below(random, writer->stages)); break;
        case 1: fprintf(out, "stream: s%d", below(random, writer->streams)); break;
        case 2: fprintf(out, "thread_group: g%d", below(random, writer->groups)); break;
        default: fputs("globally_ordered: true", out); break;
        }
    fputs("}", out);
    return true;
}

static void write_overrides(struct pipeline_writer *writer)
{
    struct random *random = writer->random;
    fputs("rank_overrides:\n", random->out);
    for (int rank = 1; rank < writer->ranks; rank++) {
        fprintf(random->out, "  %d:\n    schedule: {", rank);
        const char *comma = "";
        for (int task = 0; task < writer->tasks; task++)
            if (write_difference(writer, rank, task, comma))
                comma = ", ";
        fputs("}\n", random->out);
        if (rarely(random, 4))
            write_order(writer, "    ");
    }
}

static void write_rules(struct pipeline_writer *writer)
{
    static const char *const retire[] = {"device", "submit", "last-task"};
    struct random *random = writer->random;
    FILE *out = random->out;
    if (below(random, 2))
        fprintf(out, "max_depth: %d\n", 1 + below(random, rarely(random, 4) ? 8 : 3));
    if (!rarely(random, 8))
        fprintf(out, "retire: %s\n", rarely(random, 6) ? ONE_OF(random, retire) : "device");
    if (rarely(random, 6))
        fprintf(out, "max_in_flight: %d\n", 1 + below(random, 6));
    if (rarely(random, 6))
        fprintf(out, "num_slots: %d\n", 1 + below(random, 6));
    if (rarely(random, 6))
        fprintf(out, "elide_same_stream: %s\n", below(random, 3) ? "true" : "false");
    if (rarely(random, 8))
        fprintf(out, "ticket_at: %s\n", below(random, 3) ? "fire" : "iteration");
    if (rarely(random, 10))
        fprintf(out, "forget_done: %s\n", below(random, 3) ? "retire" : "false");
    if (rarely(random, 8))
        fprintf(out, "retired_dep: %s\n", below(random, 3) ? "skip" : "wait");
    if (rarely(random, 10))
        fprintf(out, "slot_reset: %s\n", below(random, 3) ? "submit" : "admit");
    if (rarely(random, 6))
        for (int rank = 0; rank < writer->ranks; rank++)
            fprintf(out, "%s%d%s", rank ? ", " : "batches: [", below(random, 4),
                    rank + 1 == writer->ranks ? "]\n" : "");
}

static void write_pipeline(struct random *random)
{
    struct pipeline_writer writer = {.random = random};
    writer.ranks = 1 + rarely(random, 2) + rarely(random, 6);
    writer.tasks = 1 + below(random, writer.ranks > 1 ? 3 : 4);
    writer.stages = 1 + below(random, 3);
    writer.streams = 1 + below(random, 3);
    writer.groups = 1 + below(random, 3);
    int highest = 0;
    for (int task = 0; task < writer.tasks; task++) {
        writer.stage[task] = below(random, writer.stages);
        highest = writer.stage[task] > highest ? writer.stage[task] : highest;
    }
    writer.stages = highest + 1;
    fprintf(random->out, "swplan: 1\nname: wide\nabout: a random pipeline\nranks: %d\n",
            writer.ranks);
    write_on_failure(random);
    if (rarely(random, 4))
        fprintf(random->out, "pipeline_depth: %d\n", writer.stages);
    fputs("buffers: {b: {scope: iteration, bytes: 1KiB}, w: {scope: shared, bytes: 1KiB}}\n",
          random->out);
    if (writer.ranks > 1)
        fputs("comms: {link: [0, 1], half: [1, 0]}\n", random->out);
    write_machine(random, 10, writer.ranks, writer.ranks > 1 ? "link" : NULL, 0, false);
    write_streams(random, 12, "s1", "s0");
    write_order(&writer, "");
    write_rules(&writer);
    fputs("schedule:\n", random->out);
    for (int task = 0; task < writer.tasks; task++)
        write_task(&writer, task);
    write_dependences(&writer);
    if (writer.ranks > 1)
        write_overrides(&writer);
}

/* ---- host programs --------------------------------------------------------------------------- */

struct thread_writer {
    struct random *random;
    int rank, ranks, thread, next_buffer;
    bool in_body; /* of a callback: no device operations */
};

static const char *some_stream(struct random *random)
{
    static const char *const streams[] = {"s", "s", "t", "u"};
    return ONE_OF(random, streams);
}

static const char *some_flag(struct random *random)
{
    return below(random, 2) ? "f" : "g";
}

static int some_peer(struct thread_writer *writer)
{
    return (writer->rank + 1 + below(writer->random, writer->ranks - 1)) % writer->ranks;
}

static void write_group(struct thread_writer *writer)
{
    struct random *random = writer->random;
    fputs("group: [", random->out);
    for (int parts = 1 + below(random, 3), i = 0; i < parts; i++)
        if (rarely(random, 4))
            fprintf(random->out, "%s{collective: c%d, bytes: 1KiB%s}", i ? ", " : "",
                    rarely(random, 8), below(random, 2) ? ", comm: B, reads: [b]" : "");
        else
            fprintf(random->out, "%s{%s: %s, peer: %d, bytes: 1KiB}", i ? ", " : "",
                    below(random, 2) ? "send" : "recv", rarely(random, 8) ? "y" : "x",
                    rarely(random, 10) ? writer->rank : some_peer(writer));
    fprintf(random->out, "], comm: A, stream: %s, time: 1us", some_stream(random));
    write_accesses(random);
}

static void write_collective(struct thread_writer *writer)
{
    struct random *random = writer->random;
    const char *comm = writer->rank < 2 && writer->ranks > 1 && rarely(random, 3)
                           ? "C"
                           : (below(random, 3) ? "A" : "B");
    fprintf(random->out, "collective: c%d, comm: %s, stream: %s", rarely(random, 8), comm,
            some_stream(random));
    if (rarely(random, 6))
        fprintf(random->out, ", op: %s", collective(random, writer->ranks));
    if (rarely(random, 4))
        fprintf(random->out, ", bytes: %dKiB", 1 + rarely(random, 6));
    if (rarely(random, 3))
        fputs(", sm: 1", random->out);
    if (rarely(random, 4))
        fprintf(random->out, ", async: %s", below(random, 2) ? "true, work: e1" : "false");
    write_accesses(random);
}

static void write_host_step(struct thread_writer *writer);

static void write_callback(struct thread_writer *writer)
{
    struct random *random = writer->random;
    fprintf(random->out, "callback: f, stream: %s, body: [", some_stream(random));
    writer->in_body = true;
    for (int ops = below(random, 3), i = 0; i < ops; i++) {
        fputs(i ? ", {" : "{", random->out);
        write_host_step(writer);
        fputs("}", random->out);
    }
    writer->in_body = false;
    fputs("]", random->out);
}

/* Work for a stream. */
static void write_push(struct thread_writer *writer)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    switch (below(random, writer->ranks > 1 ? 9 : 6)) {
    case 0:
    case 1:
        fprintf(out, "launch: k%d, stream: %s", below(random, 2), some_stream(random));
        if (rarely(random, 3))
            fprintf(out, ", sm: %d", 1 + rarely(random, 4));
        if (rarely(random, 4))
            fprintf(out, ", host_time: 1us, time: 1us, jitter: \"%s\"",
                    ONE_OF(random, distributions));
        if (rarely(random, 6))
            fputs(", work: {axpy: {elements: 8}}", out);
        write_accesses(random);
        break;
    case 2:
        fprintf(out, "copy: d2h, bytes: 1KiB, stream: %s, pageable: %s", some_stream(random),
                below(random, 3) ? "false" : "true");
        write_accesses(random);
        break;
    case 3: write_callback(writer); break;
    case 6:
    case 7: write_group(writer); break;
    default: write_collective(writer); break;
    }
}

static void write_event(struct thread_writer *writer)
{
    struct random *random = writer->random;
    static const char *const kinds[] = {"record", "record", "wait", "wait"};
    if (rarely(random, 5))
        fprintf(random->out, "sync: event, event: e%d", below(random, 2));
    else
        fprintf(random->out, "%s: e%d, stream: %s", ONE_OF(random, kinds), below(random, 2),
                some_stream(random));
}

/* The operations that a callback may do, too. */
static void write_host_step(struct thread_writer *writer)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    switch (below(random, writer->in_body ? 5 : 8)) {
    case 0: fprintf(out, "signal: %s", some_flag(random)); break;
    case 1: fprintf(out, "await: %s", some_flag(random)); break;
    case 2: fprintf(out, "put: %s", below(random, 3) ? "q" : "r"); break;
    case 3: fprintf(out, "get: %s", below(random, 3) ? "q" : "r"); break;
    case 4:
        fputs(below(random, 2) ? "host: 1us, name: think" : "compute: c, writes: [b]", out);
        break;
    case 5: fprintf(out, "sync: stream, stream: %s", some_stream(random)); break;
    case 6: fputs("sync: device", out); break;
    default: fprintf(out, "barrier: %s", below(random, 3) ? "b" : "c"); break;
    }
}

static void write_line(struct thread_writer *writer, void (*write)(struct thread_writer *))
{
    fputs("    - {", writer->random->out);
    write(writer);
    fputs("}\n", writer->random->out);
}

/* Something between two operations that belong together. */
static void write_bracket(struct thread_writer *writer)
{
    struct random *random = writer->random;
    if (below(random, 2)) {
        int turn = rarely(random, 4) ? below(random, 3) : writer->thread;
        fprintf(random->out, "    - {ticket: %d}\n", turn);
        for (int pushes = below(random, 3); pushes > 0; pushes--)
            write_line(writer, write_push);
        fprintf(random->out, "    - {serve: %d}\n", turn);
        return;
    }
    const char *lock = below(random, 2) ? "m" : "n";
    fprintf(random->out, "    - {lock: %s}\n", lock);
    write_line(writer, below(random, 2) ? write_push : write_host_step);
    if (!rarely(random, 8))
        fprintf(random->out, "    - {unlock: %s}\n", lock);
}

/* The life of a buffer, at times cut short. */
static void write_life(struct thread_writer *writer)
{
    struct random *random = writer->random;
    FILE *out = random->out;
    int buffer = writer->next_buffer++, thread = writer->thread;
    const char *user = some_stream(random);
    fprintf(out, "    - {alloc: a%d_%d, stream: %s}\n", thread, buffer, some_stream(random));
    fprintf(out, "    - {launch: k0, stream: %s, writes: [a%d_%d]}\n", user, thread, buffer);
    if (below(random, 2))
        write_line(writer, write_event);
    if (rarely(random, 3))
        fprintf(out, "    - {record_stream: a%d_%d, stream: %s}\n", thread, buffer,
                below(random, 2) ? user : some_stream(random));
    if (!rarely(random, 6))
        fprintf(out, "    - {free: a%d_%d}\n", thread, buffer);
    if (rarely(random, 8)) /* another thread's, or once more */
        fprintf(out, "    - {free: a%d_0}\n", below(random, 2));
    fprintf(out, "    - {alloc: a%d_%d, stream: %s}\n", thread, writer->next_buffer++,
            some_stream(random));
}

static void write_thread(struct thread_writer *writer, bool lives)
{
    struct random *random = writer->random;
    fprintf(random->out, "  r%d.t%d:\n", writer->rank, writer->thread);
    for (int ops = 1 + below(random, 5); ops > 0; ops--) {
        int which = below(random, lives ? 14 : 12);
        if (which < 5)
            write_line(writer, write_push);
        else if (which < 8)
            write_line(writer, write_event);
        else if (which < 11)
            write_line(writer, write_host_step);
        else if (which < 12)
            write_bracket(writer);
        else
            write_life(writer);
    }
}

static void write_threads(struct random *random)
{
    int ranks = 1 + rarely(random, 2) + rarely(random, 5), threads = ranks + below(random, 3);
    static const char *const members[] = {"[0]", "[0, 1]", "[0, 1, 2]"};
    bool lives = rarely(random, 4);
    fprintf(random->out,
            "swplan: 1\nname: wide\nabout: random threads\nranks: %d\nqueues: {q: %d, r: 1}\n"
            "comms: {A: %s, B: %s%s}\nbuffers: {b: {scope: shared, bytes: 1KiB}",
            ranks, 1 + below(random, 2), members[ranks - 1], members[ranks - 1],
            ranks > 1 ? ", C: [1, 0]" : "");
    for (int t = 0; lives && t < threads; t++)
        fprintf(random->out, ", a%d_0: {bytes: 1KiB}, a%d_1: {bytes: 2KiB}", t, t);
    fputs("}\n", random->out);
    write_on_failure(random);
    write_machine(random, 8, ranks, "A", lives && below(random, 2) ? 2 + below(random, 3) : 0,
                  true);
    write_streams(random, 8, "s", "t");
    fputs("threads:\n", random->out);
    for (int t = 0; t < threads; t++) {
        struct thread_writer writer = {
            .random = random, .rank = t % ranks, .ranks = ranks, .thread = t};
        write_thread(&writer, lives);
    }
}

/* ---- rank programs --------------------------------------------------------------------------- */

enum { MAX_ACTIONS = 64, ACTION_TEXT = 64 };

struct action_list {
    char text[MAX_ACTIONS][ACTION_TEXT];
    int count;
};

/* Stage s is on rank s mod ranks: the first `ranks` stages one a rank, then round again. */
struct program_writer {
    struct random *random;
    int ranks, stages, microbatches;
    bool messages, split; /* written out; the backward pass in two parts */
    struct action_list list[RANDOM_MAX_RANKS];
};

static void add(struct program_writer *writer, int stage, const char *kind, int microbatch)
{
    struct action_list *list = &writer->list[stage % writer->ranks];
    char *text = list->text[list->count++];
    if (microbatch < 0)
        snprintf(text, ACTION_TEXT, "%d%s", stage, kind);
    else
        snprintf(text, ACTION_TEXT, "%d%s%d", stage, kind, microbatch);
}

static void add_pass(struct program_writer *writer, int stage, bool forward, int microbatch)
{
    int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
    const char *way = forward ? "F" : "B";
    char kind[20];
    snprintf(kind, sizeof kind, "RECV_%s", way);
    if (writer->messages && from >= 0 && from < writer->stages)
        add(writer, stage, kind, microbatch);
    add(writer, stage, forward ? "F" : writer->split ? "I" : "B", microbatch);
    snprintf(kind, sizeof kind, "SEND_%s", way);
    if (writer->messages && to >= 0 && to < writer->stages)
        add(writer, stage, kind, microbatch);
    snprintf(kind, sizeof kind, "WAIT_SEND_%s", way);
    if (writer->messages && to >= 0 && to < writer->stages && rarely(writer->random, 8))
        add(writer, stage, kind, microbatch);
    if (!forward && writer->split)
        add(writer, stage, "W", microbatch);
}

static void swap_neighbours(struct program_writer *writer)
{
    struct action_list *list = &writer->list[below(writer->random, writer->ranks)];
    char saved[ACTION_TEXT];
    if (list->count < 2)
        return;
    int at = below(writer->random, list->count - 1);
    memcpy(saved, list->text[at], ACTION_TEXT);
    memcpy(list->text[at], list->text[at + 1], ACTION_TEXT);
    memcpy(list->text[at + 1], saved, ACTION_TEXT);
}

static void fill_lists(struct program_writer *writer)
{
    struct random *random = writer->random;
    bool sharded = rarely(random, 4);
    for (int stage = 0; sharded && stage < writer->stages; stage++)
        add(writer, stage, "UNSHARD", -1);
    for (int stage = 0; stage < writer->stages; stage++)
        for (int m = 0; m < writer->microbatches; m++)
            add_pass(writer, stage, true, m);
    for (int stage = writer->stages - 1; stage >= 0; stage--)
        for (int m = 0; m < writer->microbatches; m++)
            add_pass(writer, stage, false, m);
    for (int stage = 0; sharded && stage < writer->stages; stage++) {
        add(writer, stage, "RESHARD", -1);
        add(writer, stage, "REDUCE_GRAD", -1);
        if (rarely(random, 2))
            add(writer, stage, "WAIT_REDUCE_GRAD", -1);
    }
}

/* An action that the lists lack. */
static void drop(struct program_writer *writer)
{
    struct action_list *list = &writer->list[below(writer->random, writer->ranks)];
    if (list->count < 2)
        return;
    int at = below(writer->random, list->count);
    list->count--;
    memmove(list->text[at], list->text[at + 1], (size_t)(list->count - at) * ACTION_TEXT);
}

/* A forward and a backward pass at once, on the rank of the last stage, where they are neighbours. */
static void overlap(struct program_writer *writer)
{
    struct action_list *list = &writer->list[(writer->stages - 1) % writer->ranks];
    int last = writer->stages - 1;
    char forward[ACTION_TEXT], backward[ACTION_TEXT];
    snprintf(forward, sizeof forward, "%dF%d", last, writer->microbatches - 1);
    snprintf(backward, sizeof backward, "%dB0", last);
    for (int i = 0; i + 1 < list->count; i++)
        if (strcmp(list->text[i], forward) == 0 && strcmp(list->text[i + 1], backward) == 0) {
            snprintf(list->text[i], ACTION_TEXT, "(%dF%d;%dB0)OVERLAP_F_B", last,
                     writer->microbatches - 1, last);
            memmove(list->text[i + 1], list->text[i + 2],
                    (size_t)(list->count - i - 2) * ACTION_TEXT);
            list->count--;
            return;
        }
}

/* As a list, as one text, or by rank. */
static void write_lists(struct program_writer *writer)
{
    FILE *out = writer->random->out;
    int style = below(writer->random, 3);
    fputs("programs:\n", out);
    for (int rank = 0; rank < writer->ranks; rank++) {
        const struct action_list *list = &writer->list[rank];
        if (style == 2)
            fprintf(out, "  %d: ", rank);
        else
            fputs("  - ", out);
        fputs(style == 0 ? "[" : "\"", out);
        for (int i = 0; i < list->count; i++)
            fprintf(out, style == 0 ? "%s\"%s\"" : "%s%s", i ? (style == 0 ? ", " : " ") : "",
                    list->text[i]);
        fputs(style == 0 ? "]\n" : "\"\n", out);
    }
}

/* The inputs of a schedule's search: the bytes that passes leave, and the most that a rank may hold; `fit`: as many as the
   machine has memory for. */
static void write_found(struct random *random, bool vee, bool fit)
{
    if (below(random, 2))
        fprintf(random->out, "stages: {activation: 4KiB, left: %dKiB}\n", 1 + below(random, 4));
    if (fit)
        fputs("generate: {memory: fit, ", random->out);
    else
        fprintf(random->out, "generate: {memory: %d, ", (vee ? 2 : 1) * (1 + below(random, 3)));
}

/* Every schedule, of as few microbatches as it can have. */
static void write_generate(struct random *random, bool fit, bool sent)
{
    static const char *const megatron[] = {"batch", "odd_even", "overlap_p2p", "overlap_p2p_flush"};
    int count = 0;
    while (generate_name((size_t)count))
        count++;
    const char *name = generate_name((size_t)below(random, count));
    bool vee = name[0] == 'v' || strcmp(name, "zbv_auto") == 0;
    bool line = strcmp(name, "zb_1p") == 0 || strcmp(name, "zb_2p") == 0;
    bool dual = strncmp(name, "dualpipe", 8) == 0;
    bool interleaved = strcmp(name, "interleaved_1f1b") == 0;
    if ((vee || line) && below(random, 2))
        write_found(random, vee, fit);
    else {
        random_costs(random, 0, 0, sent);
        fputs("generate: {", random->out);
    }
    if (interleaved && below(random, 2))
        fputs("moe_overlap: true, ", random->out);
    if (interleaved && below(random, 2))
        fprintf(random->out, "megatron: %s, ", ONE_OF(random, megatron));
    if (interleaved || (strcmp(name, "forward_only") == 0 && below(random, 2)))
        fputs("chunks: 2, ", random->out);
    fprintf(random->out, "schedule: %s, ranks: 2, microbatches: %d}\n", name,
            dual          ? 4
            : interleaved ? 2
                          : 1 + below(random, vee ? 2 : 3));
}

/* Returns whether messages have bytes. */
static bool write_p2p(struct random *random)
{
    bool sent = false;
    static const char *const fifos[] = {"rank", "pair", "direction", "edge"};
    fprintf(random->out, "p2p: {fifo: %s", ONE_OF(random, fifos));
    if (rarely(random, 3))
        fputs(", batch: true", random->out);
    if (rarely(random, 2)) {
        sent = true;
        fputs(", bytes: 1KiB", random->out);
    }
    if (rarely(random, 4))
        fprintf(random->out, ", eager_messages: %d", 1 + below(random, 2));
    if (rarely(random, 4))
        fprintf(random->out, ", eager_bytes: %dKiB", 1 + below(random, 2));
    if (rarely(random, 4))
        fprintf(random->out, ", metadata: %s", below(random, 2) ? "first" : "each");
    sent = random_link_costs(random, sent);
    fputs("}\n", random->out);
    return sent;
}

/* Collectives of passes of each kind, on the stream of the passes or beside them. Returns the ranks of a tensor group. */
static int write_pass_calls(struct random *random)
{
    static const char *const tp[] = {"usual", "all_reduce", "gather_scatter"};
    static const char *const cp[] = {"usual", "all_gather", "ring", "all_to_all"};
    const char *beside = rarely(random, 3) ? ", overlap: true" : "";
    if (below(random, 2)) {
        fprintf(random->out, "tp: 2, costs: {tp: {F: 2, W: 1, latency: 1ms, call: %s%s}}",
                ONE_OF(random, tp), beside);
        return 2;
    }
    fprintf(random->out, "cp: 2, costs: {cp: {latency: 1ms, call: %s%s}}", ONE_OF(random, cp),
            beside);
    return 1;
}

/* Two pipelines side by side, in a group of their passes or as replicas; ranks may differ in when they reduce gradients.
   Returns the ranks of a tensor group. */
static int write_parallel(struct random *random)
{
    int tensor = 1;
    static const char *const reduce[] = {"none", "end", "stage", "overlap"};
    static const char *const embedding[] = {"none", "first", "last"};
    static const char *const order[] = {"tp-cp-dp-pp", "pp-tp-cp-dp"};
    fputs("parallel: {", random->out);
    if (below(random, 2))
        tensor = write_pass_calls(random);
    else
        fputs("dp: 2", random->out);
    fprintf(random->out, ", grad_reduce: %s, embedding: %s", ONE_OF(random, reduce),
            ONE_OF(random, embedding));
    if (below(random, 2))
        fprintf(random->out, ", order: %s", ONE_OF(random, order));
    if (rarely(random, 2))
        fprintf(random->out, ", ranks: {1: {grad_reduce: %s, embedding: %s}}",
                ONE_OF(random, reduce), ONE_OF(random, embedding));
    fputs("}\n", random->out);
    return tensor;
}

/* An action that parameters are sharded for. */
static bool is_sharded(const struct program_writer *writer)
{
    for (int rank = 0; rank < writer->ranks; rank++)
        for (int i = 0; i < writer->list[rank].count; i++)
            if (strstr(writer->list[rank].text[i], "UNSHARD") ||
                strstr(writer->list[rank].text[i], "REDUCE_GRAD"))
                return true;
    return false;
}

static void write_programs(struct random *random)
{
    struct program_writer writer = {.random = random};
    bool generates = rarely(random, 6);
    int replicas = 0, tensor = 0;
    fputs("swplan: 1\nname: wide\nabout: random actions\n"
          "times: {F: 1ms, B: 2ms, I: 1ms, W: 1ms, UNSHARD: 1ms, SEND_F: 1ms}\n",
          random->out);
    const bool sent = write_p2p(random);
    if (rarely(random, 5))
        replicas = 1 + below(random, 2);
    else if (!generates && rarely(random, 5))
        tensor = write_parallel(random);
    else if (generates && rarely(random, 2)) /* never a fragment */
        fputs("arithmetic: {width: 4, batch: 2, layers_per_stage: 2}\n", random->out);
    if (rarely(random, 6))
        fputs("unrecorded: {messages: gloo}\n", random->out);
    write_on_failure(random);
    int room_kib = generates && rarely(random, 3) ? 16 + below(random, 48) : 0;
    write_machine(random, 10, 2, NULL, room_kib, false);
    if (generates) {
        if (replicas)
            fprintf(random->out, "fsdp: {replicas: %d}\n", replicas);
        write_generate(random, room_kib > 0, sent);
        return;
    }
    writer.ranks = 2 + rarely(random, 6);
    writer.stages = writer.ranks * (1 + rarely(random, 5));
    writer.microbatches = 1 + rarely(random, 3);
    random_costs(random, writer.stages, tensor, sent);
    writer.messages = below(random, 2);
    writer.split = rarely(random, 3);
    fill_lists(&writer);
    if (!writer.split && rarely(random, 2))
        overlap(&writer);
    for (int swaps = writer.messages ? below(random, 4) : 0; swaps > 0; swaps--)
        swap_neighbours(&writer);
    if (writer.messages && rarely(random, 5))
        drop(&writer);
    if (rarely(random, 8))
        fputs("fragment: true\n", random->out);
    if (replicas)
        fprintf(random->out, "fsdp: {replicas: %d%s}\n", replicas,
                is_sharded(&writer) ? ", bytes: 1KiB" : "");
    write_lists(&writer);
}

char *random_wide_plan(uint64_t seed, enum random_form form)
{
    char *text = NULL;
    size_t length = 0;
    struct random random = {hash_mix(~(seed * RANDOM_FORMS + (uint64_t)form)), 0, NULL};
    random.out = open_memstream(&text, &length);
    if (!random.out)
        return NULL;
    switch (form) {
    case RANDOM_THREADS: write_threads(&random); break;
    case RANDOM_PROGRAMS: write_programs(&random); break;
    default: write_pipeline(&random); break;
    }
    if (fclose(random.out) != 0) {
        free(text);
        return NULL;
    }
    if (form == RANDOM_THREADS)
        return random_aborts(
            random_repeat(
                random_branches(random_values(random_steps(text, ~seed, 8), ~seed, 3), ~seed),
                ~seed),
            ~seed);
    return text;
}
