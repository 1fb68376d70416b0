/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_plan.c - see random_plan.h.
 *
 * Every choice is drawn from hash_mix of the seed and a counter. Knobs are off in most plans, so
 * that each is also seen alone.
 */
#include "random_plan.h"

#include <stdlib.h>
#include <string.h>

#include "random_costs.h"
#include "random_draw.h"

const char *random_form_key(enum random_form form)
{
    static const char *const keys[] = {"pipeline", "threads", "programs"};
    return keys[form];
}

/* One of two streams is the legacy default stream, or stands in a hardware queue that the plan names; there
   are `hw_queues`. */
static void write_streams(struct random *random, const char *first, const char *second,
                          int hw_queues)
{
    if (hw_queues > 0 && below(random, 2))
        fprintf(random->out, "streams: {%s: {hw_queue: %d}}\n", second, below(random, hw_queues));
    else if (rarely(random, 5))
        fprintf(random->out, "streams: {%s: {legacy: true}, %s: {blocking: %s}}\n", first, second,
                rarely(random, 3) ? "false" : "true");
}

/* ---- pipeline -------------------------------------------------------------------------------- */

/* Two ranks may be on one device. */
static void write_slots(struct random *random, int ranks)
{
    if (ranks == 2 && below(random, 2))
        fprintf(random->out, "sm_slots: %d, share_device: [[0, 1]]", 1 + below(random, 3));
    else
        fprintf(random->out, "sm_slots: %d", 1 + below(random, 2));
}

/* Returns the number of hardware queues, 0: no limit. */
static int write_pipeline_machine(struct random *random)
{
    int hw_queues = 0;
    if (!rarely(random, 3))
        return 0;
    fputs("machine: {", random->out);
    switch (below(random, 7)) {
    case 0: write_slots(random, 1); break;
    case 1:
        hw_queues = 1 + below(random, 2);
        fprintf(random->out, "hw_queues: %d", hw_queues);
        break;
    case 2: fprintf(random->out, "launch_queue: %d", 2 + below(random, 5)); break;
    case 3: fputs("first_use_blocks: true", random->out); break;
    case 4: fputs("launch_order_implicit: true, sm_slots: 1", random->out); break;
    case 5: fputs("launch_blocking: true", random->out); break;
    default: fputs("lazy_load: true", random->out); break;
    }
    fputs("}\n", random->out);
    return hw_queues;
}

static void write_rules(struct random *random, int ranks)
{
    static const char *const retire[] = {"device", "submit", "last-task"};
    if (!rarely(random, 3))
        fprintf(random->out, "retire: %s\n", one_of(random, retire, rarely(random, 3) ? 3 : 1));
    if (rarely(random, 5))
        fprintf(random->out, "num_slots: %d\n", 1 + below(random, 3));
    if (rarely(random, 8))
        fputs("elide_same_stream: true\n", random->out);
    if (rarely(random, 8))
        fputs("ticket_at: fire\n", random->out);
    if (rarely(random, 10))
        fputs("forget_done: retire\n", random->out);
    if (rarely(random, 8))
        fputs("retired_dep: skip\n", random->out);
    if (rarely(random, 10))
        fputs("slot_reset: submit\n", random->out);
    if (ranks == 2 && rarely(random, 6))
        fprintf(random->out, "batches: [%d, %d]\n", below(random, 3), below(random, 3));
}

static void write_accesses(struct random *random)
{
    static const char *const accesses[] = {"reads: [b]",    "writes: [b]",
                                           "reads: [w]",    "writes: [w]",
                                           "reads: [b, w]", "reads: [w], writes: [b]"};
    if (below(random, 2))
        fprintf(random->out, ", %s", one_of(random, accesses, 6));
}

/* Returns whether it is work of the device. */
static bool write_work(struct random *random, int ranks)
{
    int which = below(random, ranks > 1 ? 6 : 12);
    switch (which) {
    case 0:
    case 1:
    case 2:
        fprintf(random->out, ", work: {collective: all_reduce, comm: %s, bytes: 1KiB}",
                below(random, 3) ? "dp" : "mp");
        break;
    case 3: fputs(", work: {host: 1us}", random->out); break;
    case 4:
        fprintf(random->out, ", work: {copy: h2d, bytes: 1KiB, pageable: %s}",
                below(random, 2) ? "true" : "false");
        break;
    default: break;
    }
    return which != 3;
}

static void write_task(struct random *random, int index, int ranks)
{
    fprintf(random->out, "  T%d: {stage: %d, stream: s%d, thread_group: g%d, time: 1us", index,
            below(random, 2), below(random, 2), below(random, 2));
    if (rarely(random, 3))
        fputs(", globally_ordered: true", random->out);
    if (rarely(random, 8))
        fprintf(random->out, ", host_sync: %s", below(random, 2) ? "stream" : "device");
    bool after = rarely(random, 10), sync_after = rarely(random, 10);
    if (rarely(random, 8))
        fprintf(random->out, ", holds: [%s]", below(random, 2) ? "m" : "m, n");
    bool slots = rarely(random, 3);
    write_accesses(random);
    bool device = write_work(random, ranks);
    if (device && slots)
        fputs(", sm: 1", random->out);
    if (device && after)
        fputs(", host_after: 1us", random->out);
    if (device && sync_after)
        fprintf(random->out, ", sync_after: %s", below(random, 2) ? "stream" : "device");
    fputs("}\n", random->out);
}

static void write_dependences(struct random *random, int tasks)
{
    const char *comma = "";
    fputs("intra_iter_deps: [", random->out);
    for (int t = 1; t < tasks; t++)
        if (below(random, 3)) {
            fprintf(random->out, "%s[T%d, T%d]", comma, t, below(random, t));
            comma = ", ";
        }
    fputs("]\n", random->out);
    if (below(random, 2))
        fprintf(random->out, "inter_iter_deps: [[T%d, T%d, %d]]\n", below(random, tasks),
                below(random, tasks), 1 + below(random, 2));
}

static void write_overrides(struct random *random, int tasks)
{
    fputs("rank_overrides: {1: {", random->out);
    if (below(random, 2))
        fprintf(random->out, "enqueue_order: %s",
                below(random, 2) ? "stage-descending" : "stage-ascending");
    else
        fprintf(random->out, "schedule: {T%d: {stream: s%d, thread_group: g%d%s}}",
                below(random, tasks), below(random, 2), below(random, 2),
                rarely(random, 3) ? ", globally_ordered: true" : "");
    fputs("}}\n", random->out);
}

static void write_pipeline(struct random *random)
{
    static const char *const orders[] = {"ready-first", "stage-descending", "stage-ascending"};
    int ranks = 1 + rarely(random, 3), tasks = 2 + (ranks == 1 && below(random, 2));
    fprintf(random->out, "swplan: 1\nname: random\nranks: %d\nmax_depth: %d\n", ranks,
            1 + below(random, 2));
    fprintf(random->out, "enqueue_order: %s\n", one_of(random, orders, 3));
    write_rules(random, ranks);
    write_streams(random, "s1", "s0", write_pipeline_machine(random));
    struct random draws = {hash_mix(random->seed ^ UINT64_C(0x417)), 0, NULL};
    int instances = rarely(&draws, 4) ? 2 + below(&draws, 2) : 1;
    fprintf(random->out, "buffers: {b: {scope: iteration}, w: {scope: shared, instances: %d}}\n",
            instances);
    if (below(random, 2))
        fprintf(random->out, "inputs: [%s]\n", below(random, 2) ? "b" : "b, w");
    if (rarely(random, 3) && instances == 1)
        fprintf(random->out, "staleness: {w: %d}\n", 1 + below(random, 2));
    fputs("schedule:\n", random->out);
    for (int t = 0; t < tasks; t++)
        write_task(random, t, ranks);
    write_dependences(random, tasks);
    if (ranks == 2 && rarely(random, 4))
        write_overrides(random, tasks);
}

/* ---- host programs --------------------------------------------------------------------------- */

struct host_writer {
    struct random *random;
    struct random
        *devices; /* draws what this thread does on the other rank's device; NULL: nothing */
    int rank, ranks, alloc; /* the next buffer this thread allocates */
    int thread;
    bool graphs; /* it launches graph g */
    int device;  /* the rank on whose device the next operation is */
    int pinned;  /* the next buffer of the host that this thread allocates */
};

/* The next operation may be on the device of the other rank. */
static void choose_device(struct host_writer *writer)
{
    writer->device = writer->rank;
    if (writer->devices && !below(writer->devices, 3))
        writer->device = 1 - writer->rank;
}

static bool elsewhere(const struct host_writer *writer)
{
    return writer->device != writer->rank;
}

/* A stream and, where it is not the thread's, its device. */
static const char *stream(struct host_writer *writer)
{
    static const char *const names[2][2] = {{"t, device: 0", "t, device: 1"},
                                            {"s, device: 0", "s, device: 1"}};
    bool s = below(writer->random, 3);
    if (elsewhere(writer))
        return names[s][writer->device];
    return s ? "s" : "t";
}

/* Accesses of work on a device, now and then to a buffer of the other rank's. */
static void write_device_accesses(struct host_writer *writer)
{
    if (writer->devices && !below(writer->devices, 4))
        fprintf(writer->random->out, ", %s: [r%d.b]",
                below(writer->devices, 2) ? "reads" : "writes", below(writer->devices, 2));
    else
        write_accesses(writer->random);
}

/* Operations of one call: a collective of both devices. */
static void write_call_for_both(struct host_writer *writer)
{
    fprintf(
        writer->random->out,
        "    - {group: [{collective: c0}, {collective: c0, device: %d}%s], comm: A, stream: s}\n",
        1 - writer->rank,
        below(writer->devices, 2) ? "" : ", {collective: c1, comm: B, stream: u}");
}

static void write_async(struct random *random)
{
    if (rarely(random, 3))
        fprintf(random->out, ", async: %s", below(random, 2) ? "true, work: e0" : "false");
}

static void write_push(struct host_writer *writer)
{
    struct random *random = writer->random;
    if (writer->devices && !below(writer->devices, 4)) {
        write_call_for_both(writer);
        return;
    }
    choose_device(writer);
    if (writer->graphs && rarely(random, 4)) {
        fprintf(random->out, "    - {launch: g, graph: true, stream: %s}\n", stream(writer));
        return;
    }
    int which = below(random, 10);
    if (which < 4) {
        fprintf(random->out, "    - {launch: k%d, stream: %s", below(random, 2), stream(writer));
        if (rarely(random, 8)) {
            fprintf(random->out, ", sm: 1, body: [{%s: f}, {compute: c, reads: [b]}]}\n",
                    below(random, 2) ? "signal" : "await");
            return;
        }
        if (rarely(random, 4))
            fputs(", sm: 1", random->out);
        write_device_accesses(writer);
        fputs("}\n", random->out);
    } else if (which < 5) {
        fprintf(random->out, "    - {copy: h2d, bytes: 1KiB, stream: %s, pageable: %s",
                stream(writer), below(random, 2) ? "true" : "false");
        write_accesses(random);
        fputs("}\n", random->out);
    } else if (which < 7) {
        fprintf(random->out, "    - {collective: c%d, comm: %s, stream: %s", rarely(random, 8),
                below(random, 3) ? "A" : "B", stream(writer));
        if (!elsewhere(writer))
            write_async(random);
        write_device_accesses(writer);
        fputs("}\n", random->out);
    } else if (writer->ranks == 2 && which < 9) {
        int part = below(random, 3), peer = 1 - writer->device;
        fputs("    - {group: [", random->out);
        if (rarely(random, 4))
            fprintf(random->out, "{collective: c%d}, ", rarely(random, 8));
        bool apart = rarely(random, 8);
        if (apart)
            fputs("{collective: c1, comm: B, stream: u, writes: [b]}, ", random->out);
        if (rarely(random, 8))
            fprintf(random->out, "{send: x, peer: %d}, {recv: x, peer: %d}, ", writer->device,
                    writer->device);
        if (part != 0)
            fprintf(random->out, "{send: x, peer: %d}%s", peer, part == 2 ? ", " : "");
        if (part != 1)
            fprintf(random->out, "{recv: %s, peer: %d}", rarely(random, 10) ? "y" : "x", peer);
        fprintf(random->out, "], comm: A, stream: %s", stream(writer));
        if (!apart)
            write_accesses(random);
        fputs("}\n", random->out);
    } else {
        fprintf(random->out, "    - {callback: f, stream: %s, body: [{%s}]}\n", stream(writer),
                one_of(random,
                       (const char *const[]){"signal: f", "await: g", "lock: m}, {unlock: m",
                                             "host: 1us", "put: q", "compute: c, writes: [b]",
                                             "host: 1us, reads: [b]"},
                       7));
    }
}

static void write_event(struct host_writer *writer)
{
    struct random *random = writer->random;
    const char *whose = "";
    choose_device(writer);
    if (writer->devices && !below(writer->devices, 3))
        whose = below(writer->devices, 2) ? "r1." : "r0.";
    switch (below(random, 5)) {
    case 0:
    case 1:
        fprintf(random->out, "    - {record: e%d, stream: %s}\n", below(random, 2), stream(writer));
        break;
    case 2:
    case 3:
        fprintf(random->out, "    - {wait: %se%d, stream: %s}\n", whose, below(random, 2),
                stream(writer));
        break;
    default:
        fprintf(random->out, "    - {sync: event, event: %se%d}\n", whose, below(random, 2));
        break;
    }
}

/* Also on memory that this thread, or another of its rank, has allocated and may have freed. */
static void write_cpu_work(const struct host_writer *writer)
{
    struct random *random = writer->random;
    if (rarely(random, 3)) {
        fputs("    - {host: 1us}\n", random->out);
        return;
    }
    fputs(below(random, 2) ? "    - {host: 1us" : "    - {compute: c, time: 1us", random->out);
    if (writer->alloc > 0 && below(random, 2))
        fprintf(random->out, ", writes: [a%d_%d]", writer->thread, below(random, writer->alloc));
    else if (rarely(random, 4))
        fprintf(random->out, ", reads: [a%d_0]", writer->rank);
    else
        write_accesses(random);
    fputs("}\n", random->out);
}

static void write_host(struct host_writer *writer)
{
    struct random *random = writer->random;
    choose_device(writer);
    switch (below(random, 9)) {
    case 0: fprintf(random->out, "    - {signal: %s}\n", below(random, 2) ? "f" : "g"); break;
    case 1: fprintf(random->out, "    - {await: %s}\n", below(random, 2) ? "f" : "g"); break;
    case 2: fputs("    - {put: q}\n", random->out); break;
    case 3: fputs("    - {get: q}\n", random->out); break;
    case 4: fprintf(random->out, "    - {sync: stream, stream: %s}\n", stream(writer)); break;
    case 5:
        fputs(elsewhere(writer) ? writer->rank ? "    - {sync: device, device: 0}\n"
                                               : "    - {sync: device, device: 1}\n"
                                : "    - {sync: device}\n",
              random->out);
        break;
    case 6: fputs("    - {barrier: b}\n", random->out); break;
    case 7: {
        int turn = rarely(random, 4) ? below(random, 3) : writer->thread;
        fprintf(random->out, "    - {ticket: %d}\n", turn);
        for (int pushes = below(random, 3); pushes > 0; pushes--)
            write_push(writer);
        fprintf(random->out, "    - {serve: %d}\n", turn);
        break;
    }
    default: write_cpu_work(writer); break;
    }
}

static void write_free(struct host_writer *writer, int thread, int buffer)
{
    struct random *random = writer->random;
    fprintf(random->out, "    - {free: a%d_%d", thread, buffer);
    if (rarely(random, 3))
        fprintf(random->out, ", stream: %s", stream(writer));
    else if (elsewhere(writer))
        fprintf(random->out, ", device: %d", writer->device);
    fputs("}\n", random->out);
}

static void write_lifetime(struct host_writer *writer)
{
    struct random *random = writer->random;
    int first = writer->alloc++;
    choose_device(writer);
    const int device = writer->device;
    const char *marked = stream(writer);
    fprintf(random->out, "    - {alloc: a%d_%d, stream: %s}\n", writer->thread, first,
            stream(writer));
    fprintf(random->out, "    - {launch: k0, stream: %s, writes: [a%d_%d]}\n", marked,
            writer->thread, first);
    if (below(random, 2))
        write_event(writer);
    if (rarely(random, 4))
        write_cpu_work(writer);
    writer->device = device;
    bool late = rarely(random, 12); /* behind the free */
    if (rarely(random, 3) && !late)
        fprintf(random->out, "    - {record_stream: a%d_%d, stream: %s}\n", writer->thread, first,
                below(random, 2) ? marked : stream(writer));
    if (rarely(random, 8)) /* of another thread's memory, or once more */
        write_free(writer, writer->rank, below(random, 2));
    if (!rarely(random, 8))
        write_free(writer, writer->thread, first);
    if (late)
        fprintf(random->out, "    - {record_stream: a%d_%d, stream: %s}\n", writer->thread, first,
                marked);
    fprintf(random->out, "    - {alloc: a%d_%d, stream: %s}\n", writer->thread, writer->alloc++,
            stream(writer));
}

/* Memory of the host, which a copy may still use when it is freed. */
static void write_pinned(struct host_writer *writer)
{
    struct random *random = writer->random;
    int buffer = writer->pinned++;
    writer->device = writer->rank;
    const char *user = stream(writer);
    fprintf(random->out, "    - {host_alloc: p%d_%d}\n", writer->thread, buffer);
    if (below(random, 2))
        fprintf(random->out, "    - {compute: c, time: 1us, writes: [p%d_%d]}\n", writer->thread,
                buffer);
    fprintf(random->out, "    - {copy: h2d, stream: %s, bytes: 1KiB, reads: [p%d_%d]}\n", user,
            writer->thread, buffer);
    if (rarely(random, 3))
        fprintf(random->out, "    - {record_stream: p%d_%d, stream: %s}\n", writer->thread, buffer,
                user);
    if (below(random, 2))
        fprintf(random->out, "    - {sync: stream, stream: %s}\n", user);
    if (!rarely(random, 6))
        fprintf(random->out, "    - {free: p%d_%d}\n", writer->thread, buffer);
    if (rarely(random, 8)) /* another thread's, or once more */
        fprintf(random->out, "    - {free: p%d_0}\n", writer->rank);
}

static void write_locked(struct host_writer *writer)
{
    struct random *random = writer->random;
    bool two = below(random, 2);
    const char *outer = below(random, 2) ? "m" : "n", *inner = *outer == 'm' ? "n" : "m";
    if (!rarely(random, 12)) /* else it releases what it may not hold */
        fprintf(random->out, "    - {lock: %s}\n", outer);
    if (two)
        fprintf(random->out, "    - {lock: %s}\n", inner);
    else
        write_push(writer);
    if (two)
        fprintf(random->out, "    - {unlock: %s}\n", inner);
    fprintf(random->out, "    - {unlock: %s}\n", outer);
}

static void write_thread(struct host_writer *writer, bool lifetimes)
{
    struct random *random = writer->random;
    int ops = 2 + below(random, 4);
    fprintf(random->out, "  r%d.t%d:\n", writer->rank, writer->thread);
    while (ops-- > 0) {
        int which = below(random, lifetimes ? 12 : 10);
        if (which < 4)
            write_push(writer);
        else if (which < 6)
            write_event(writer);
        else if (which < 9)
            write_host(writer);
        else if (which < 10)
            write_locked(writer);
        else if (below(random, 3))
            write_lifetime(writer);
        else
            write_pinned(writer);
    }
}

/* Returns the number of hardware queues, 0: no limit. */
static int write_host_machine(struct random *random, int ranks, int room_kib)
{
    int hw_queues = 0;
    if (!rarely(random, 2)) {
        if (room_kib)
            fprintf(random->out, "machine: {memory: %dKiB}\n", room_kib);
        return 0;
    }
    fputs("machine: {", random->out);
    if (room_kib)
        fprintf(random->out, "memory: %dKiB, ", room_kib);
    switch (below(random, 11)) {
    case 0: write_slots(random, ranks); break;
    case 1:
        hw_queues = 1 + below(random, 2);
        fprintf(random->out, "hw_queues: %d", hw_queues);
        break;
    case 2:
        fprintf(random->out, "launch_queue: %d%s", 1 + below(random, 3),
                below(random, 2) ? ", launch_lock: true" : "");
        break;
    case 3: fputs("first_use_blocks: true", random->out); break;
    case 4: fputs("launch_order_implicit: true", random->out); break;
    case 5: fputs("eager_messages: {A: 1}", random->out); break;
    case 6: fputs("eager_bytes: {A: 1KiB}", random->out); break;
    case 7: fputs("launch_blocking: true", random->out); break;
    case 8: fputs("alloc_may_sync: true", random->out); break;
    case 9: fputs("timeout: {A: 1us}", random->out); break;
    default: fputs("lazy_load: true", random->out); break;
    }
    fputs("}\n", random->out);
    return hw_queues;
}

/* One thread of a rank launches it. */
static void write_graph(struct random *random)
{
    fputs("graphs:\n  g:\n    - {launch: k0, stream: s, writes: [b]}\n", random->out);
    if (below(random, 2))
        fputs("    - {record: e0, stream: s}\n    - {wait: e0, stream: t}\n"
              "    - {launch: k1, stream: t, reads: [b]}\n    - {record: e1, stream: t}\n"
              "    - {wait: e1, stream: s}\n",
              random->out);
    if (below(random, 2))
        fputs("    - {collective: c0, comm: A, stream: s}\n", random->out);
}

static void write_threads(struct random *random)
{
    int ranks = 1 + below(random, 2), threads = 2 + rarely(random, 3);
    bool lifetimes = rarely(random, 4);
    struct random draws = {hash_mix(random->seed ^ UINT64_C(0x5dee)), 0, NULL};
    struct random *devices = ranks == 2 && rarely(&draws, 3) ? &draws : NULL;
    fprintf(random->out, "swplan: 1\nname: random\nranks: %d\ncomms: {A: [0%s], B: [0%s]}\n", ranks,
            ranks == 2 ? ", 1" : "", ranks == 2 ? ", 1" : "");
    fprintf(random->out, "queues: {q: %d}\n", 1 + below(random, 2));
    int room_kib = lifetimes && below(&draws, 2) ? 1 + below(&draws, 3) : 0;
    write_streams(random, "s", "t", write_host_machine(random, ranks, room_kib));
    bool inputs = rarely(random, 2);
    if (inputs || room_kib)
        fputs("buffers: {b: {}, w: {}", random->out);
    for (int t = 0; room_kib && t < threads; t++)
        fprintf(random->out, ", a%d_0: {bytes: 1KiB}, a%d_1: {bytes: 1KiB}, a%d_2: {bytes: 2KiB}",
                t, t, t);
    if (inputs || room_kib)
        fputs("}\n", random->out);
    if (inputs)
        fprintf(random->out, "inputs: [%s]\n", below(random, 2) ? "b" : "b, w");
    bool graphs = rarely(random, 4) && !devices;
    if (graphs)
        write_graph(random);
    fputs("threads:\n", random->out);
    for (int t = 0; t < threads; t++) {
        struct host_writer writer = {random,
                                     devices && below(devices, 2) ? devices : NULL,
                                     t % ranks,
                                     ranks,
                                     0,
                                     t,
                                     graphs && t < ranks,
                                     t % ranks,
                                     0};
        write_thread(&writer, lifetimes);
    }
}

/* ---- rank programs --------------------------------------------------------------------------- */

enum { MAX_ACTIONS = 16, ACTION_TEXT = 16 };

struct action_list {
    char text[MAX_ACTIONS][ACTION_TEXT];
    int count;
};

static void add(struct action_list *list, int stage, const char *kind, int microbatch)
{
    snprintf(list->text[list->count++], ACTION_TEXT, "%d%s%d", stage, kind, microbatch);
}

static void swap_neighbours(struct random *random, struct action_list *list)
{
    int at = below(random, list->count - 1);
    char saved[ACTION_TEXT];
    for (int i = 0; i < ACTION_TEXT; i++) {
        saved[i] = list->text[at][i];
        list->text[at][i] = list->text[at + 1][i];
        list->text[at + 1][i] = saved[i];
    }
}

/* An action that the list lacks; the caller says whether it is a piece. */
static void drop(struct random *random, struct action_list *list)
{
    int at = below(random, list->count);
    list->count--;
    memmove(list->text[at], list->text[at + 1], (size_t)(list->count - at) * ACTION_TEXT);
}

static void write_programs(struct random *random)
{
    static const char *const fifos[] = {"rank", "pair", "direction", "edge"};
    int microbatches = 1 + below(random, 2);
    struct action_list ranks[2] = {{.count = 0}, {.count = 0}};
    for (int m = 0; m < microbatches; m++) {
        add(&ranks[0], 0, "F", m);
        add(&ranks[0], 0, "SEND_F", m);
        add(&ranks[1], 1, "RECV_F", m);
        add(&ranks[1], 1, "F", m);
    }
    for (int m = 0; m < microbatches; m++) {
        add(&ranks[1], 1, "B", m);
        add(&ranks[1], 1, "SEND_B", m);
        add(&ranks[0], 0, "RECV_B", m);
        add(&ranks[0], 0, "B", m);
    }
    for (int swaps = below(random, 5); swaps > 0; swaps--)
        swap_neighbours(random, &ranks[below(random, 2)]);
    fprintf(random->out, "swplan: 1\nname: random\ntimes: {F: 1ms, B: 2ms}\np2p: {fifo: %s",
            one_of(random, fifos, 4));
    if (rarely(random, 3))
        fputs(", batch: true", random->out);
    if (rarely(random, 3))
        fprintf(random->out, ", eager_messages: %d", 1 + below(random, 2));
    const bool sent = random_link_costs(random, false);
    fputs("}\n", random->out);
    random_costs(random, 2, 0, sent);
    random_memory(random);
    if (rarely(random, 6))
        drop(random, &ranks[below(random, 2)]);
    if (rarely(random, 8))
        fputs("fragment: true\n", random->out);
    fputs("programs:\n", random->out);
    for (int rank = 0; rank < 2; rank++) {
        fputs("  - [", random->out);
        for (int i = 0; i < ranks[rank].count; i++)
            fprintf(random->out, "%s%s", i ? ", " : "", ranks[rank].text[i]);
        fputs("]\n", random->out);
    }
}

/* Does the plan do what is done once only, or wait on what another thread sets once? */
static bool happens_once(const char *text)
{
    static const char *const once[] = {"{alloc:", "{host_alloc:", "{ticket:", "{serve:"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (strstr(text, once[i]))
            return true;
    return false;
}

/* An operation of a body; what takes 1us may take another time in the second iteration. */
static void write_repeated(struct random *random, const char *line, const char *end)
{
    static const char time[] = ", time: 1us";
    const char *at = strstr(line, time);
    if (!at || at >= end || below(random, 2)) {
        fprintf(random->out, "  %.*s", (int)(end - line), line);
        return;
    }
    fprintf(random->out, "  %.*s, time: [1us, 2us]", (int)(at - line), line);
    at += sizeof time - 1;
    fprintf(random->out, "%.*s", (int)(end - at), at);
}

char *random_steps(char *text, uint64_t seed, int share)
{
    static const char *const calls[] = {"    - {signal: ", "    - {await: "};
    static const char *const steps[] = {"    - {write: ", "    - {wait_flag: "};
    struct random random = {hash_mix(seed ^ UINT64_C(0xf1a65)), 0, NULL};
    char *out = NULL;
    size_t length = 0;
    random.out = text ? open_memstream(&out, &length) : NULL;
    if (!random.out)
        return text;
    for (const char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        int which = 0;
        while (which < 2 && strncmp(line, calls[which], strlen(calls[which])) != 0)
            which++;
        const char *end = line + strcspn(line, "}\n");
        if (which < 2 && *end == '}' && rarely(&random, share))
            fprintf(random.out, "%s%.*s, stream: %s}\n", steps[which],
                    (int)(end - line - (int)strlen(calls[which])), line + strlen(calls[which]),
                    below(&random, 3) ? "s" : "t");
        else
            fprintf(random.out, "%.*s", (int)(next - line), line);
    }
    if (fclose(random.out) != 0) {
        free(out);
        return text;
    }
    free(text);
    return out;
}

/* A use of a flag with a value, in place of the plain one of `kind`. Returns the key that it has instead, or `kind`. */
static const char *write_value(struct random *random, const char *kind, const char **value)
{
    static const char *const changes[] = {", value: 2", ", value: 2", ", add: 1",
                                          ", add: 1",   ", add: -1",  ", value: 0"};
    static const char *const waits[] = {", at_least: 2", ", at_least: 2", ", equals: 1",
                                        ", equals: 2",   ", equals: 0",   ", at_least: 0"};
    static const char *const counts[] = {"", "", ", count: 2"};
    const bool is_call = strcmp(kind, "signal") == 0 || strcmp(kind, "await") == 0;
    const bool gives = strcmp(kind, "signal") == 0 || strcmp(kind, "write") == 0;
    *value = one_of(random, gives ? changes : waits, 6);
    if (!is_call || !rarely(random, 4))
        return kind;
    *value = gives ? "" : one_of(random, counts, 3);
    return gives ? "clear" : "acquire";
}

char *random_values(char *text, uint64_t seed, int share)
{
    static const char *const kinds[] = {"signal", "await", "write", "wait_flag"};
    struct random random = {hash_mix(seed ^ UINT64_C(0x7a1e5)), 0, NULL};
    char *out = NULL, head[32];
    size_t length = 0;
    random.out = text && rarely(&random, 2) ? open_memstream(&out, &length) : NULL;
    if (!random.out)
        return text;
    for (const char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        int which = 0;
        for (; which < 4; which++) {
            snprintf(head, sizeof head, "    - {%s: ", kinds[which]);
            if (strncmp(line, head, strlen(head)) == 0)
                break;
        }
        const char *end = line + strcspn(line, "}\n"), *value;
        if (strncmp(line, "threads:", 8) == 0 && rarely(&random, 3))
            fputs(below(&random, 2) ? "flags: {f: {value: 1}}\n" : "flags: {g: {value: 2}}\n",
                  random.out);
        if (which < 4 && *end == '}' && rarely(&random, share)) {
            const char *kind = write_value(&random, kinds[which], &value);
            fprintf(random.out, "    - {%s: %.*s%s}\n", kind, (int)(end - line) - (int)strlen(head),
                    line + strlen(head), value);
        } else {
            fprintf(random.out, "%.*s", (int)(next - line), line);
        }
    }
    if (fclose(random.out) != 0) {
        free(out);
        return text;
    }
    free(text);
    return out;
}

/* Behind a call of communicators by a thread of their members: one of them is aborted, or all in one group. */
static void write_abort(struct random *random, const char *line, const char *next)
{
    static const char *const names[] = {"comm: A", "comm: B"};
    bool called[2];
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(line, names[i]);
        called[i] = at && at < next;
    }
    if (called[0] && called[1])
        fprintf(random->out, "    - {abort: %s}\n", below(random, 2) ? "[A, B]" : "B");
    else
        fprintf(random->out, "    - {abort: %s}\n",
                called[0] ? below(random, 2) ? "[A]" : "A" : "B");
}

char *random_aborts(char *text, uint64_t seed)
{
    struct random random = {hash_mix(seed ^ UINT64_C(0xab047)), 0, NULL};
    const char *threads = text ? strstr(text, "\nthreads:\n") : NULL;
    char *out = NULL;
    size_t length = 0;
    random.out = threads && rarely(&random, 2) ? open_memstream(&out, &length) : NULL;
    if (!random.out)
        return text;
    for (const char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        fprintf(random.out, "%.*s", (int)(next - line), line);
        const char *comm = strstr(line, "comm: "), *device = strstr(line, "device: ");
        bool calls = line > threads && strncmp(line, "    - {", 7) == 0 && comm && comm < next;
        if (calls && !(device && device < next) && rarely(&random, 4))
            write_abort(&random, line, next);
    }
    if (fclose(random.out) != 0) {
        free(out);
        return text;
    }
    free(text);
    return out;
}

/* What a thread asks, or tries, up to the keys of its branches. */
static void write_question(struct random *random)
{
    static const char *const questions[] = {"{query: event, event: e0",
                                            "{query: event, event: e1",
                                            "{query: stream, stream: s",
                                            "{query: stream, stream: t",
                                            "{query: device",
                                            "{query: flag, flag: f",
                                            "{query: flag, flag: g",
                                            "{query: flag, flag: f, equals: 0",
                                            "{query: queue, queue: q",
                                            "{get: q",
                                            "{put: q",
                                            "{acquire: g",
                                            "{choose: luck",
                                            "{choose: luck",
                                            "{lock: m, then: [{unlock: m}]"};
    fputs(one_of(random, questions, sizeof questions / sizeof *questions), random->out);
}

/* Operations that a branch may have. */
static bool fits_in_branch(const char *text, const char *line, const char *next)
{
    static const char *const never[] = {"{barrier:", "{ticket:", "{serve:"};
    const bool connects = strstr(text, "first_use_blocks: true"), eager = strstr(text, "eager_");
    const char *comm = strstr(line, "comm: ");
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strncmp(line + 6, never[i], strlen(never[i])) == 0)
            return false;
    return strncmp(line, "    - {", 7) == 0 && !(comm && comm < next && (connects || eager));
}

/* The operation in a branch, or a question in front of it. */
static void write_branching(struct random *random, const char *line, const char *next)
{
    const int length = (int)(next - line) - 7; /* without "    - " and the newline */
    const int which = below(random, 4);
    fputs("    - ", random->out);
    write_question(random);
    if (which == 0)
        fprintf(random->out, ", else: [%.*s]}\n", length, line + 6);
    else if (which == 1)
        fprintf(random->out, ", else: [{host: 1us}, %.*s]}\n", length, line + 6);
    else if (which == 2)
        fprintf(random->out, ", else: [{choose: luck, then: [%.*s]}, {compute: c, reads: [b]}]}\n",
                length, line + 6);
    else
        fprintf(random->out, ", else: []}\n%.*s", (int)(next - line), line);
}

char *random_branches(char *text, uint64_t seed)
{
    struct random random = {hash_mix(seed ^ UINT64_C(0xb4a9c4)), 0, NULL};
    const char *threads = text ? strstr(text, "\nthreads:\n") : NULL;
    char *out = NULL;
    size_t length = 0;
    random.out = threads && rarely(&random, 3) ? open_memstream(&out, &length) : NULL;
    if (!random.out)
        return text;
    for (const char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (line > threads && fits_in_branch(text, line, next) && rarely(&random, 3))
            write_branching(&random, line, next);
        else
            fprintf(random.out, "%.*s", (int)(next - line), line);
    }
    if (fclose(random.out) != 0) {
        free(out);
        return text;
    }
    free(text);
    return out;
}

char *random_repeat(char *text, uint64_t seed)
{
    struct random random = {hash_mix(seed ^ UINT64_C(0x4e7ea7)), 0, NULL};
    const char *threads = text ? strstr(text, "\nthreads:\n") : NULL;
    if (!threads || !rarely(&random, 3) || happens_once(text))
        return text;
    char *out = NULL;
    size_t length = 0;
    int times = 2 + rarely(&random, 3);
    random.out = open_memstream(&out, &length);
    if (!random.out)
        return text;
    for (const char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        const bool operation = line > threads && strncmp(line, "    - ", 6) == 0;
        if (line == threads + 1 && !strstr(text, "\nflags:") && below(&random, 2))
            fputs("flags: {f: {scope: iteration}, g: {scope: iteration}}\n", random.out);
        if (operation)
            write_repeated(&random, line, next);
        else
            fprintf(random.out, "%.*s", (int)(next - line), line);
        if (line > threads && !operation && strncmp(line, "  r", 3) == 0 && *next == ' ')
            fprintf(random.out, "    - repeat: %d\n      body:\n", rarely(&random, 8) ? 1 : times);
    }
    if (fclose(random.out) != 0) {
        free(out);
        return text;
    }
    free(text);
    return out;
}

char *random_plan(uint64_t seed, enum random_form form)
{
    char *text = NULL;
    size_t length = 0;
    struct random random = {hash_mix(seed * RANDOM_FORMS + (uint64_t)form + 1), 0, NULL};
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
        return random_repeat(
            random_branches(random_values(random_steps(text, seed, 3), seed, 2), seed), seed);
    return text;
}

char *random_pipeline(uint64_t seed)
{
    return random_plan(seed, RANDOM_PIPELINE);
}

char *random_threads(uint64_t seed)
{
    return random_plan(seed, RANDOM_THREADS);
}

char *random_programs(uint64_t seed)
{
    return random_plan(seed, RANDOM_PROGRAMS);
}
