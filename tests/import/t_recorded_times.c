/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_recorded_times.c - recordings with records of CUPTI, as plans: which time each operation gets, from clocks that drift,
 * records that are lost, graphs, and operations of several ranks; and counts that are very large.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/job/bytes.h"
#include "trace/record/reader/recorded.h"
#include "machine/program.h"
#include "base/arena.h"
#include "plan/text/print.h"
#include "trace/record/recorder/recording.h"
#include "tests/fuzz/tape_lines.h"
#include "tests/tap.h"
#include "trace/trace.h"

static struct diag diag;
static char *text;

static struct arena run_arena;
static struct trace run;
static bool
    names_are_of_plan; /* each operation of a device in the run has the name of one of the plan's */

static bool is_in(const struct program *program, const char *name)
{
    char subject[256];
    for (size_t i = 0; i < program->op_count; i++)
        if (program->ops[i].stream >= 0 &&
            strcmp(program_op_subject(program, &program->ops[i], 0, subject, sizeof subject),
                   name) == 0)
            return true;
    return false;
}

static bool run_has_names_of(const struct plan *plan)
{
    const struct program_options options = {.driver = DRIVER_NONE, .iterations = -1};
    struct program *program;
    bool all = true;
    if (program_build(plan, &options, &program, &diag) != STATUS_OK)
        return false;
    for (size_t i = 0; i < run.span_count; i++)
        if (run.spans[i].kind == SPAN_DEVICE && !is_in(program, run.spans[i].task)) {
            tap_note("%s", run.spans[i].task);
            all = false;
        }
    program_close(program);
    return all;
}

/* The plan of these recordings as text, and their run. */
static void import_run(const char *const *lines, size_t count, bool with_run)
{
    struct recorded_options options = {.name = "timed", .run = with_run ? &run : NULL};
    struct bytes *files[2] = {NULL, NULL};
    void *images[2] = {NULL, NULL};
    struct plan plan;
    free(text);
    text = NULL;
    arena_fini(&run_arena);
    arena_init(&run_arena, SIZE_MAX);
    trace_init(&run, &run_arena);
    diag_fini(&diag);
    diag_init(&diag);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t size;
        images[i] = tape_lines((const uint8_t *)lines[i], strlen(lines[i]), &size);
        status = bytes_open_memory("timed.swr", images[i], size, &files[i], &diag);
    }
    if (status == STATUS_OK)
        status = recorded_plan_of(files, count, &options, &plan, &diag);
    for (size_t i = 0; i < count; i++) {
        bytes_close(files[i]);
        free(images[i]);
    }
    names_are_of_plan = status == STATUS_OK && with_run && run_has_names_of(&plan);
    if (status == STATUS_OK && plan_text(&plan, &text, &diag) != STATUS_OK)
        text = NULL;
    if (status == STATUS_OK)
        plan_fini(&plan);
}

static void import(const char *const *lines, size_t count)
{
    import_run(lines, count, false);
}

static void import_one(const char *lines)
{
    import((const char *const[]){lines}, 1);
}

static bool warned(const char *part)
{
    for (size_t i = 0; i < diag.count; i++)
        if (diag.messages[i].severity == SEVERITY_WARNING && strstr(diag.messages[i].text, part))
            return true;
    return false;
}

static void has(const char *part, const char *what)
{
    tap_ok(text && strstr(text, part), "%s", what);
    if (text && !strstr(text, part))
        tap_note("expected %s in\n%s", part, text);
}

static void warns(const char *part, const char *what)
{
    tap_ok(warned(part), "%s", what);
    for (size_t i = 0; i < diag.count && !warned(part); i++)
        tap_note("%s", diag.messages[i].text);
}

#define BEGIN                                                                                      \
    "0 1000000 0 PROCESS 77 0 0 0 0\n"                                                             \
    "0 1000000 1000 ALLOC 0x10000 4096 0\n"                                                        \
    "0 1000000 0 TEXT 1 axpy(float*)\n"                                                            \
    "0 1000000 0 KERNEL 2 1 1\n"
/* CUPTI's clock is the host's with another zero. */
#define TIES "0 1001000 0 CLOCK 5001000 1001000 0\n0 9000000 0 CLOCK 13000000 9000000 0\n"
#define LAUNCH(at, number)                                                                         \
    "0 " at " 0 PUSH " number "\n0 " at " 4000 LAUNCH 0x100 2 0xc000000000010000\n"
#define DONE(correlation, number, start, end)                                                      \
    "1 9000000 0 PUSHED_AS " number " " correlation "\n1 9000000 0 DEVICE_OP " correlation         \
    " 0 0 7 " start " " end " 0\n"

static void test_times(void)
{
    import_one(
        BEGIN TIES LAUNCH("1100000", "11") LAUNCH("1200000", "12")
            DONE("31", "11", "5110000", "5210000")
                DONE("32", "12", "5211000",
                     "5230000") "0 1210000 30000 SYNC_STREAM 0x100\n0 1300000 1000 SYNC_DEVICE\n");
    has("with measured times of 2 operations of devices", "the plan says that it has times");
    has("launch_latency: 6us", "a launch takes from its end to the begin of its work");
    has("{host: 0.1ms}", "time before the first call");
    has("time: 0.1ms, host_time: 4us", "work keeps its measured time, a call its own");
    has("{host: 96us}\n  - {launch: axpy, stream: stream1, time: 20us, host_time: 4us",
        "work that is queued has the device's gap in front");
    has("{sync: stream, stream: stream1}\n  - {host: 70us}\n  - {sync: device}",
        "a wait ends with its work: 10 us until the call returned, 60 until the next");
    tap_ok(diag.count == 0, "nothing to warn of");
}

/* Between its ties the GPU's clock runs twice as fast, then as fast as the host's. */
static void test_drift(void)
{
    import_one(BEGIN "0 1001000 0 CLOCK 5000000 1000000 0\n0 1500000 0 CLOCK 6000000 1500000 0\n"
                     "0 2500000 0 CLOCK 7000000 2500000 0\n" LAUNCH("1100000", "11")
                         LAUNCH("1600000", "12") DONE("31", "11", "5220000", "5240000")
                             DONE("32", "12", "6110000", "6130000") "0 1700000 1000 SYNC_DEVICE\n");
    has("time: 10us, host_time: 4us", "the first tick is half as long");
    has("time: 20us, host_time: 4us", "the second is not");
    has("launch_latency: 6us", "and both begin when the host says");
    tap_ok(diag.count == 0, "nothing to warn of");
    import_one(BEGIN "0 1001000 0 CLOCK 5000000 1000000 0\n" LAUNCH("1100000", "11")
                   LAUNCH("1600000", "12") DONE("31", "11", "5220000", "5240000")
                       DONE("32", "12", "6110000", "6130000") "0 1700000 1000 SYNC_DEVICE\n");
    warns("measured times contradict the calls by up to 0.429 ms",
          "without the later ties it ends behind its wait, which is told");
    import_one(BEGIN LAUNCH("1100000", "11")
                   DONE("31", "11", "5220000", "5240000") "0 1700000 1000 SYNC_DEVICE\n");
    has("without times", "without any the times say nothing");
}

static void test_missing(void)
{
    import_one(BEGIN TIES LAUNCH("1100000", "11") LAUNCH("1200000", "12") DONE(
        "31", "11", "5110000", "5210000") "1 9000000 0 LOST 3\n"
                                          "1 9000000 0 DEVICE_OP 99 0 0 7 5300000 5350000 0\n"
                                          "0 1210000 30000 SYNC_STREAM 0x100\n");
    warns("CUPTI lost 3 records", "lost records are told");
    warns("1 of 2 operations of devices have no measured time", "and what has no time");
    warns("1 measured operations of 0.05 ms in all belong to no recorded call",
          "and work that nobody recorded");
    import_one(BEGIN TIES LAUNCH("1100000", "11")
                   DONE("31", "11", "0", "0") "0 1210000 30000 SYNC_STREAM 0x100\n");
    has("without times", "a record may have no times itself");
}

/* Nodes are in the order of the capture, whatever ran first. */
#define GRAPH                                                                                      \
    "0 1010000 1 CAPTURE 0x100\n0 1020000 1 LAUNCH 0x100 2 0xc000000000010000\n"                   \
    "0 1030000 1 FILL 0x100 0x10000 0 64 1\n0 1040000 1 CAPTURE_END 0x100 0x500\n"                 \
    "0 1050000 1 GRAPH 0x600 0x500\n"                                                              \
    "0 1100000 0 PUSH 11\n0 1100000 4000 GRAPH_LAUNCH 0x600 0x100\n"                               \
    "0 1400000 0 PUSH 12\n0 1400000 4000 GRAPH_LAUNCH 0x600 0x100\n"                               \
    "0 1500000 100000 SYNC_STREAM 0x100\n1 9000000 0 PUSHED_AS 11 31\n"                            \
    "1 9000000 0 PUSHED_AS 12 32\n1 9000000 0 DEVICE_OP 31 2 0 7 5110000 5120000 82\n"             \
    "1 9000000 0 DEVICE_OP 31 0 0 7 5130000 5160000 81\n"                                          \
    "1 9000000 0 DEVICE_OP 32 0 0 7 5410000 5460000 81\n"
static void test_graph(void)
{
    import_one(BEGIN TIES GRAPH "1 9000000 0 DEVICE_OP 32 2 0 7 5460000 5480000 82\n");
    has("{launch: axpy, stream: stream1, time: 40us", "a node has the mean over its launches");
    has("{launch: memset, stream: stream1, time: 15us", "so has the other");
    import_one(BEGIN TIES GRAPH);
    warns("1 launch of graphs had another number of operations", "a node without a record is told");
    has("{launch: axpy, stream: stream1, time: 30us", "and that launch is left out");
}

/* Rank 1 comes 300 us later. */
static void test_ranks(void)
{
    static const char first[] = "0 1000000 0 PROCESS 71 1 2 0 0\n0 1000000 1 COMM 0x900 1 2 0 2\n",
                      second[] = "0 1000000 0 PROCESS 72 2 2 0 0\n0 1000000 1 COMM 0x900 1 2 1 2\n";
    static const char call[] = " 4000 COLLECTIVE 0x900 0x100 0 0x10000 0x10000 64 7 0 0\n"
                               "0 1900000 600000 SYNC_STREAM 0x100\n";
    char lines[2][1000];
    snprintf(lines[0], sizeof lines[0],
             "%s" TIES "0 1100000 0 PUSH 11\n0 1100000%s" DONE("31", "11", "5110000", "6000000"),
             first, call);
    snprintf(lines[1], sizeof lines[1],
             "%s" TIES "0 1400000 0 PUSH 11\n0 1400000%s" DONE("31", "11", "5410000", "6000000"),
             second, call);
    import((const char *const[]){lines[0], lines[1]}, 2);
    has("{host: 0.1ms}\n  - {collective: all_reduce float32 sum, comm: comm0, stream: stream1, "
        "bytes: 256B, "
        "time: 590us",
        "a collective takes as long as on the rank that came last");
    has("{host: 0.4ms}\n  - {collective: all_reduce float32 sum, comm: comm0, stream: stream1, "
        "bytes: 256B, "
        "time: 590us",
        "on both");
}

static bool ran(const char *name)
{
    for (size_t i = 0; i < run.span_count; i++)
        if (run.spans[i].kind == SPAN_DEVICE && strcmp(run.spans[i].task, name) == 0)
            return true;
    return false;
}

/* Two ranks: `calls` of each is in a group, which one kernel does. */
static void run_groups(const char *const calls[2])
{
    char lines[2][1500];
    for (int rank = 0; rank < 2; rank++)
        snprintf(lines[rank], sizeof lines[rank],
                 "0 1000000 0 PROCESS 7%d %d 2 0 0\n0 1000000 1 COMM 0x900 1 2 %d 2\n" TIES
                 "0 1090000 1 GROUP 0\n%s0 1100000 0 PUSH 11\n0 1100000 4000 GROUP_END 0\n" DONE(
                     "31", "11", "5110000", "6000000") "0 1900000 600000 SYNC_STREAM 0x100\n",
                 rank + 1, rank + 1, rank, calls[rank]);
    import_run((const char *const[]){lines[0], lines[1]}, 2, true);
}

#define REDUCE              "0 1091000 1 COLLECTIVE 0x900 0x100 0 0x10000 0x10000 64 7 0 0\n"
#define BROADCAST           "0 1092000 1 COLLECTIVE 0x900 0x100 1 0x10000 0x10000 16 7 0 1\n"
#define MESSAGE(send, peer) "0 1093000 1 MESSAGE 0x900 0x100 " send " 0x10000 128 0 " peer "\n"

/* A run is shown beside the prediction of its plan: by the names of its operations. */
static void test_names_of_groups(void)
{
    run_groups((const char *const[]){MESSAGE("1", "1"), MESSAGE("0", "0")});
    tap_ok(ran("send int8 to rank 1") && ran("receive int8 from rank 0"),
           "a message is named by its direction and peer");
    tap_ok(names_are_of_plan, "as in the plan");
    run_groups((const char *const[]){MESSAGE("0", "1") MESSAGE("1", "1"),
                                     MESSAGE("1", "0") MESSAGE("0", "0")});
    tap_ok(ran("receive int8 from rank 1 and others") && ran("send int8 to rank 0 and others"),
           "several by the first one");
    tap_ok(names_are_of_plan, "as in the plan");
    run_groups((const char *const[]){MESSAGE("1", "1") REDUCE BROADCAST,
                                     MESSAGE("0", "0") REDUCE BROADCAST});
    tap_ok(ran("all_reduce float32 sum 256B + broadcast float32 broadcast from 1 64B"),
           "collectives, which are first, by all of them");
    tap_ok(names_are_of_plan, "as in the plan");
    run_groups((const char *const[]){MESSAGE("1", "1") REDUCE, MESSAGE("0", "0") REDUCE});
    tap_ok(ran("all_reduce float32 sum"), "one by itself");
    tap_ok(names_are_of_plan, "as in the plan");
}

/* 2^32 numbers are 16 GiB, not none. */
static void test_many(void)
{
    import_one("0 1000000 0 PROCESS 71 1 1 0 0\n0 1000000 1 COMM 0x900 1 2 0 1\n"
               "0 1100000 4000 COLLECTIVE 0x900 0x100 0 0x10000 0x10000 4294967296 7 0 0\n");
    has("bytes: 16GiB", "a count of more than 32 bits");
    import_one("0 1000000 0 PROCESS 71 1 1 0 0\n0 1000000 1 COMM 0x900 1 2 0 1\n"
               "0 1100000 4000 MESSAGE 0x900 0x100 1 0x10000 0x2000000000000001 7 0\n");
    has("bytes: 4TiB", "one that no memory has is the most");
}

/* Two tensors at once; one is gone while a stream still uses it, then there is room for the third. The peak is by what it is for. */
static void test_tensors(void)
{
#define TENSOR(at, address, bytes) "0 " at " 0 TENSOR " address " " bytes " 0 4096 1\n"
#define HELD                                                                                       \
    "0 1000000 0 PROCESS 77 0 0 0 0\n0 1000000 1000 ALLOC 0x10000 8192 0\n"                        \
    "0 1000000 0 TEXT 1 aten.mm\n0 1000000 0 TEXT 2 train.py:7\n0 1000000 0 TEXT 3 train.py:9\n"   \
    "0 1000000 0 WHERE 2\n" TENSOR(                                                                \
        "1100000", "0x10000",                                                                      \
        "1024") "0 1150000 0 TENSORS_ARE 0 0x10010\n" TENSOR("1200000", "0x10400",                 \
                                                             "512") "0 1250000 0 TENSORS_ARE 3 "   \
                                                                    "0x10400\n"                    \
                                                                    "0 1300000 100 RECORD 0x700 "  \
                                                                    "0x100 0\n0 1310000 0 "        \
                                                                    "TENSOR_END 0x10400\n"         \
                                                                    "0 1320000 0 WHERE "           \
                                                                    "3\n" TENSOR("1400000",        \
                                                                                 "0x10600", "256")
    import_one(HELD);
    has("memory:\n- {rank: 0, peak: 1792B, reserved: 4KiB, device: 8KiB, parameters: 1KiB, "
        "workspace: 256B, held: 512B, at: 'train.py:9 aten.mm'}",
        "a tensor that is gone holds its memory until its event is done");
    import_one(HELD "0 1500000 100 QUERY_EVENT 1 0x700\n" TENSOR("1600000", "0x10700", "128"));
    has("peak: 1792B", "which a query has told");
    import_one(HELD "0 1500000 100 QUERY_EVENT 0 0x700\n" TENSOR("1600000", "0x10700", "128"));
    has("peak: 1920B", "or has not");
    import_one(HELD "0 1500000 0 TENSORS_ARE 1 0x10610\n0 1510000 0 TENSORS_ARE 4 0x10610\n");
    has("gradients: 256B", "what a tensor is kept for counts, not which operator made it");
    import_one(HELD "0 1500000 0 TENSOR_REFUSED 1073741824 0\n");
    has("refused: 1GiB, at: 'train.py:9'", "an allocation that fails has its line");
    import_one("0 1000000 0 PROCESS 71 1 1 0 0\n0 1000000 1 COMM 0x900 1 2 0 1\n" TENSOR(
        "1100000", "0x10000",
        "1024") "0 1150000 0 TENSORS_ARE 0 0x20000\n"
                "0 1200000 4000 COLLECTIVE 0x900 0x100 0 0x10000 0x10000 64 7 0 0\n");
    has("communication: 1KiB", "memory of collectives is theirs, unless it is known for more");
}

int main(void)
{
    diag_init(&diag);
    test_tensors();
    test_times();
    test_drift();
    test_missing();
    test_graph();
    test_ranks();
    test_names_of_groups();
    test_many();
    arena_fini(&run_arena);
    diag_fini(&diag);
    free(text);
    return tap_done();
}
