/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_print.c - the canonical text of a plan: what it looks like, that it is a fixed point of parsing
 * and printing, and that a full disk is reported.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "tests/harness.h"
#include "tests/tap.h"

/* Under another file name, from which the name of the plan must not come. */
static char *reprint(const char *file_name, const char *text)
{
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    bool parsed = plan_parse(file_name, text, strlen(text), &plan, &diag) == STATUS_OK;
    diag_tell(&diag);
    diag_fini(&diag);
    if (!parsed)
        return NULL;
    char *printed = text_of_plan(&plan);
    plan_fini(&plan);
    return printed;
}

/* print(parse(print(parse(x)))) == print(parse(x)); and equal to `want`, if given. */
static void check(const char *title, const char *text, const char *want)
{
    char *first = reprint("plan.yaml", text);
    char *second = first ? reprint("other.yaml", first) : NULL;
    tap_is_str(second, first, "%s: a fixed point", title);
    if (want)
        tap_is_str(first, want, "%s: the text", title);
    free(first);
    free(second);
}

static void test_shares(void)
{
    check("shares",
          "swplan: 1\n"
          "ranks: 2\n"
          "machine: {shares: {collective: {link: 1.0, sm: 0.150}, kernel: {}, copy: {core: 0.0}},"
          " cores: 8, copy_engines: 2}\n"
          "schedule:\n"
          "  A: {stage: 0, shares: {link: 0, sm: 0.600000}}\n"
          "  B: {stage: 0, shares: {}}\n"
          "rank_overrides: {1: {schedule: {A: {shares: {}}, B: {shares: {sm: 1}}}}}\n",
          "swplan: 1\n"
          "name: plan\n"
          "ranks: 2\n"
          "machine: {copy_engines: 2, cores: 8, shares: {copy: {core: 0}, collective: {sm: 0.15, "
          "link: 1}}}\n"
          "schedule:\n"
          "  A:\n"
          "    stage: 0\n"
          "    shares: {sm: 0.6, link: 0}\n"
          "  B:\n"
          "    stage: 0\n"
          "rank_overrides:\n"
          "  1:\n"
          "    schedule:\n"
          "      A:\n"
          "        shares: {}\n"
          "      B:\n"
          "        shares: {sm: 1}\n");
    check("repeats",
          "swplan: 1\n"
          "threads: {r0.m: [{repeat: 2, body: [{signal: f}, {callback: c, body: [{await: f}]}]}, "
          "{host: 1ms}, {repeat: 1, body: [{signal: f}]}, {repeat: 3, body: [{host: [2000us, "
          "1ms]}, {launch: k, "
          "time: [1ms], host_time: [1us, 2us]}]}]}\n",
          "swplan: 1\n"
          "name: plan\n"
          "threads:\n"
          "  r0.m:\n"
          "  - repeat: 2\n"
          "    body:\n"
          "    - {signal: f}\n"
          "    - {callback: c, body: [{await: f}]}\n"
          "  - {host: 1ms}\n"
          "  - repeat: 1\n"
          "    body:\n"
          "    - {signal: f}\n"
          "  - repeat: 3\n"
          "    body:\n"
          "    - {host: [2ms, 1ms]}\n"
          "    - {launch: k, time: [1ms], host_time: [1us, 2us]}\n");
    check("flags",
          "swplan: 1\n"
          "flags: {f: {value: 2}, g: {scope: iteration}, h: {scope: shared}}\n"
          "threads: {r0.m: [{signal: f, value: 1}, {await: f, at_least: 0}, {acquire: f, count: 1}, "
          "{acquire: f, count: 2}, {clear: f}, {repeat: 2, body: [{signal: f, value: iteration+1}, "
          "{write: f, add: -2}, {await: g}, {wait_flag: f, equals: 2*iteration - 1}, "
          "{await: f, at_least: 3 * iteration}]}]}\n",
          "swplan: 1\n"
          "name: plan\n"
          "flags: {f: {value: 2}, g: {scope: iteration}, h: {}}\n"
          "threads:\n"
          "  r0.m:\n"
          "  - {signal: f}\n"
          "  - {await: f, at_least: 0}\n"
          "  - {acquire: f}\n"
          "  - {acquire: f, count: 2}\n"
          "  - {clear: f}\n"
          "  - repeat: 2\n"
          "    body:\n"
          "    - {signal: f, value: iteration + 1}\n"
          "    - {write: f, add: -2}\n"
          "    - {await: g}\n"
          "    - {wait_flag: f, equals: 2 * iteration - 1}\n"
          "    - {await: f, at_least: 3 * iteration}\n");
    check(
        "shares of operations",
        "swplan: 1\n"
        "threads: {r0.m: [{launch: k, shares: {core: 1, sm: 0.000001}}, {copy: d2h, shares: {link: "
        "0.5}}]}\n",
        "swplan: 1\n"
        "name: plan\n"
        "threads:\n"
        "  r0.m:\n"
        "  - {launch: k, shares: {sm: 0.000001, core: 1}}\n"
        "  - {copy: d2h, shares: {link: 0.5}}\n");
}

static void test_pipeline(void)
{
    check("pipeline",
          "expect: {race: order}\n"
          "inter_iter_deps: [[A, B], [A, A, 2]]\n"
          "intra_iter_deps: [[B, A]]\n"
          "schedule:\n"
          "  A: {time: 200us, stage: 0, stream: copy, jitter: ' gamma( cv=0.10 )',\n"
          "      work: {bytes: 1024KiB, copy: h2d}, writes: [x]}\n"
          "  \"2\": {stage: 1, host_sync: none}\n"
          "  B: {stage: 1, stream: main, reads: [x], sm: 0, work: {collective: all_reduce, "
          "comm: dp}}\n"
          "ranks: 2\n"
          "rank_overrides: {1: {schedule: {B: {stream: copy, reads: []}, A: {}}, enqueue_order: "
          "[B, '2', A]}}\n"
          "buffers: {x: {}}\n"
          "swplan: 1\n"
          "pipeline_depth: 2\n",
          "swplan: 1\n"
          "name: plan\n"
          "ranks: 2\n"
          "pipeline_depth: 2\n"
          "comms: {dp: all}\n"
          "schedule:\n"
          "  A:\n"
          "    stage: 0\n"
          "    stream: copy\n"
          "    time: 0.2ms\n"
          "    jitter: gamma(cv=0.1)\n"
          "    writes: [x]\n"
          "    work: {copy: h2d, bytes: 1MiB}\n"
          "  \"2\":\n"
          "    stage: 1\n"
          "  B:\n"
          "    stage: 1\n"
          "    reads: [x]\n"
          "    work: {collective: all_reduce, comm: dp}\n"
          "intra_iter_deps:\n"
          "- [B, A]\n"
          "inter_iter_deps:\n"
          "- [A, B]\n"
          "- [A, A, 2]\n"
          "rank_overrides:\n"
          "  1:\n"
          "    schedule:\n"
          "      B:\n"
          "        stream: copy\n"
          "        reads: []\n"
          "    enqueue_order: [B, \"2\", A]\n"
          "buffers:\n"
          "  x: {}\n"
          "expect: {race: order}\n");
    check(
        "knobs",
        "swplan: 1\ndriver: dataflow\nmax_depth: 3\nmax_in_flight: 9\nnum_slots: 4\nretire: "
        "device\nelide_same_stream: true\n"
        "ticket_at: fire\nforget_done: retire\nretired_dep: skip\nslot_reset: submit\n"
        "batches: [3]\nenqueue_order: stage-ascending\nschedule: {A: {stage: 0}}\n"
        "machine: {lazy_load: true, memory: 2GiB}\nexpect: {clock: {slot: always}, dataflow: {}}\n",
        "swplan: 1\nname: plan\ndriver: dataflow\nmax_depth: 3\nmax_in_flight: 9\nnum_slots: "
        "4\nenqueue_order: "
        "stage-ascending\n"
        "retire: device\nelide_same_stream: true\nticket_at: fire\nforget_done: retire\n"
        "retired_dep: skip\nslot_reset: submit\nbatches: [3]\n"
        "machine: {lazy_load: true, memory: 2GiB}\nschedule:\n  A:\n    stage: 0\n"
        "expect: {clock: {slot: always}, dataflow: {}}\n");
}

static void test_threads(void)
{
    check("host programs",
          "swplan: 1\ncomms: {A: [1, 0]}\nqueues: {q: 2}\nthreads:\n"
          "  r0.m:\n"
          "    - {launch: \"true\", stream: main, work: {axpy: {elements: 3}}}\n"
          "    - {copy: h2d, bytes: 1kB, pageable: false}\n"
          "    - {collective: t, comm: A, op: all_reduce, stream: s}\n"
          "    - {group: [{send: x, peer: 1}, {recv: y, peer: 1, bytes: 1B}], comm: A}\n"
          "    - {compute: c, writes: [], time: 1000us, reads: [x]}\n"
          "    - {sync: event, event: e}\n"
          "    - {sync: stream}\n"
          "    - {callback: c, body: [{put: q}]}\n"
          "    - {alloc: b}\n"
          "    - {record_stream: b, stream: s}\n"
          "  r1.n: []\n"
          "expect: {}\n",
          "swplan: 1\nname: plan\ncomms: {A: [0, 1]}\nqueues: {q: 2}\nthreads:\n"
          "  r0.m:\n"
          "  - {launch: \"true\", work: {axpy: {elements: 3}}}\n"
          "  - {copy: h2d, bytes: 1kB}\n"
          "  - {collective: t, comm: A, stream: s}\n"
          "  - {group: [{send: x, peer: 1}, {recv: y, peer: 1, bytes: 1B}], comm: A}\n"
          "  - {compute: c, time: 1ms, reads: [x]}\n"
          "  - {sync: event, event: e}\n"
          "  - {sync: stream}\n"
          "  - {callback: c, body: [{put: q}]}\n"
          "  - {alloc: b}\n"
          "  - {record_stream: b, stream: s}\n"
          "  r1.n: []\n"
          "expect: {}\n");
    check("streams",
          "swplan: 1\nmachine: {hw_queues: 2}\n"
          "streams: {s: {blocking: true}, t: {hw_queue: 1, blocking: false}, u: {legacy: true}}\n"
          "threads: {r0.m: [{host: 1us, writes: [b]}]}\n",
          "swplan: 1\nname: plan\nmachine: {hw_queues: 2}\n"
          "streams: {s: {}, t: {blocking: false, hw_queue: 1}, u: {legacy: true}}\n"
          "threads:\n  r0.m:\n  - {host: 1us, writes: [b]}\n");
    check("ranks without threads", "swplan: 1\nranks: 3\nthreads: {r0.m: []}\n",
          "swplan: 1\nname: plan\nranks: 3\nthreads:\n  r0.m: []\n");
}

static void test_programs(void)
{
    check("rank programs",
          "swplan: 1\np2p: {fifo: edge, batch: false}\ntimes: {B: 2ms, F: 1ms, W: 0s}\n"
          "programs: [[0F0, '', 0B0, ''], '1F0  1B0', []]\n",
          "swplan: 1\nname: plan\np2p: {fifo: edge}\ntimes: {F: 1ms, W: 0s, B: 2ms}\nprograms:\n"
          "  0: [0F0, '', 0B0]\n  1: 1F0 1B0\n  2: []\n");
    check("a generator", "swplan: 1\ngenerate: {microbatches: 8, ranks: 4, schedule: gpipe}\n",
          "swplan: 1\nname: plan\ngenerate: {schedule: gpipe, ranks: 4, microbatches: 8}\n");
}

/* Texts that YAML could take for something else, or break. */
static void test_texts(void)
{
    static const char *const texts[] = {"null",
                                        "~",
                                        "true",
                                        "1",
                                        "1e3",
                                        "0x1F",
                                        "a: b",
                                        "a #b",
                                        "- a",
                                        "[a",
                                        "{a",
                                        "&a",
                                        "*a",
                                        "!a",
                                        "%a",
                                        "@a",
                                        "`a",
                                        "?a",
                                        "? a",
                                        "a\\nb",
                                        "a\\n\\n  b\\n",
                                        " lead",
                                        "trail ",
                                        "tab\\there",
                                        "quote\\\"s",
                                        "it's",
                                        "\\u00e4\\u20ac",
                                        "\\U0001F600",
                                        "<<",
                                        "=",
                                        "a,b",
                                        "a]b",
                                        "\\u0085",
                                        "---",
                                        "... ...",
                                        "\\u2028x",
                                        "#",
                                        ("long long long long long long long long long long long "
                                         "long long long long long long long "
                                         "long long  long")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char plan[512];
        snprintf(plan, sizeof plan, "swplan: 1\nabout: \"%s\"\nthreads: {r0.m: []}\n", texts[i]);
        check(texts[i], plan, NULL);
    }
    for (size_t i = 0; i < 24; i++) {
        char plan[512];
        if (strchr(texts[i], '\\'))
            continue; /* names hold no control characters */
        snprintf(plan, sizeof plan,
                 "swplan: 1\ncomms: {\"%s\": [0, 1]}\nmachine: {eager_messages: {\"%s\": 1}}\n"
                 "threads: {\"r0.%s\": [{collective: \"%s\", comm: \"%s\"}, {lock: \"%s\"}]}\n",
                 texts[i], texts[i], texts[i], texts[i], texts[i], texts[i]);
        check(texts[i], plan, NULL);
    }
}

/* ---- whole files ----------------------------------------------------------------------------- */

static void check_file(const char *path)
{
    struct plan plan;
    if (!plan_of_file(path, &plan))
        return;
    char *first = text_of_plan(&plan);
    plan_fini(&plan);
    char *second = first ? reprint("other.yaml", first) : NULL;
    tap_ok(first && second && strcmp(first, second) == 0, "%s: a fixed point", path);
    free(first);
    free(second);
}

static void check_files(glob_t files)
{
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i]);
    globfree(&files);
}

static void test_files(void)
{
    check_files(files_source("plans/*/*.yaml"));
    check_files(files_shared("zoo/*.yaml"));
    check_files(files_shared("data/pytorch/*.csv"));
}

static void test_full_disk(void)
{
    static const char text[] = "swplan: 1\nthreads: {r0.m: []}\n";
    struct plan plan;
    struct diag diag;
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        tap_skip("no /dev/full");
        return;
    }
    diag_init(&diag);
    if (plan_parse("x.yaml", text, sizeof text - 1, &plan, &diag) == STATUS_OK) {
        tap_is_int(plan_print(&plan, full, &diag), STATUS_SYSTEM, "a full disk is an error");
        tap_is_str(diag.count ? diag.messages[0].text : "",
                   "cannot write the plan: No space left on device", "and says so");
        plan_fini(&plan);
    }
    diag_fini(&diag);
    fclose(full);
}

int main(void)
{
    test_pipeline();
    test_shares();
    test_threads();
    test_programs();
    test_texts();
    test_files();
    test_full_disk();
    return tap_done();
}
