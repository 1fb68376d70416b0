/*
 * t_machine.c - what every operation of a host program and every knob of the machine means
 * (doc/semantics.md, sections 3 and 6): small plans in pairs, one that holds and one that does not.
 *
 * A plan says itself what it expects. Each is searched with and without reduction.
 */
#include <stdio.h>
#include <string.h>

#include "check/verify.h"
#include "plan/parse.h"
#include "tests/tap.h"

/* A kernel that writes b on stream s, one that reads it on stream t. */
#define WRITES "{launch: k1, stream: s, writes: [b]}"
#define READS  "{launch: k2, stream: t, reads: [b]}"

#define HOLDS         "expect: {}\n"
#define RACE          "expect: {race: always}\n"
#define RACE_SOME     "expect: {race: some}\n"
#define DEADLOCK      "expect: {deadlock: always}\n"
#define DEADLOCK_SOME "expect: {deadlock: some}\n"
#define MISMATCH      "expect: {mismatch: always}\n"
#define LIFETIME      "expect: {lifetime: always}\n"
#define LIFETIME_SOME "expect: {lifetime: some}\n"

static const struct example {
    const char *what, *plan;
} examples[] = {
    /* ---- streams and events */
    {"one stream orders its kernels",
     HOLDS "threads: {r0.m: [" WRITES ", {launch: k2, stream: s, reads: [b]}]}"},
    {"two streams do not", RACE "threads: {r0.m: [" WRITES ", " READS "]}"},
    {"two readers are no race",
     HOLDS "threads: {r0.m: [{launch: k1, stream: s, reads: [b]}, " READS "]}"},
    {"an event orders two streams", HOLDS
     "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {wait: e, stream: t}, " READS "]}"},
    {"a wait means the event as recorded by then: before the record it waits for nothing",
     RACE "threads: {r0.m: [" WRITES ", {wait: e, stream: t}, {record: e, stream: s}, " READS "]}"},
    {"a record before the work does not cover it",
     RACE "threads: {r0.m: [{record: e, stream: s}, " WRITES ", {wait: e, stream: t}, " READS "]}"},
    {"recorded again elsewhere, an event forgets what it meant",
     RACE "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {record: e, stream: u}, {wait: e, "
          "stream: t}, " READS "]}"},
    {"a wait keeps what the event meant when it was pushed",
     HOLDS "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {wait: e, stream: t}, {record: e, "
           "stream: u}, " READS "]}"},
    {"recorded again behind the work, an event covers it",
     HOLDS "threads: {r0.m: [{record: e, stream: s}, " WRITES ", {record: e, stream: s}, {wait: e, "
           "stream: t}, " READS "]}"},
    {"a wait with no work after it orders the next record",
     HOLDS "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {wait: e, stream: u}, {record: f, "
           "stream: u}, {wait: f, stream: t}, " READS "]}"},
    {"a record without that wait does not",
     RACE "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {record: f, stream: u}, {wait: f, "
          "stream: t}, " READS "]}"},
    {"two threads: who waits may be before who records",
     RACE_SOME "threads:\n  r0.a: [" WRITES ", {record: e, stream: s}]\n"
               "  r0.b: [{wait: e, stream: t}, " READS "]\n"},
    {"events are a rank's own",
     RACE "threads:\n  r0.a: [" WRITES ", {record: e, stream: s}, {signal: f}, {wait: e, stream: "
          "t}, " READS ", {launch: k3, stream: u, reads: [b]}]\n"
          "  r1.a: [{await: f}, {record: e, stream: s}]\n"},

    /* ---- the host waits */
    {"sync stream", HOLDS "threads: {r0.m: [" WRITES ", {sync: stream, stream: s}, " READS "]}"},
    {"sync with another stream",
     RACE "threads: {r0.m: [" WRITES ", {sync: stream, stream: t}, " READS "]}"},
    {"sync event",
     HOLDS "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {sync: event, event: "
           "e}, " READS "]}"},
    {"sync with an event never recorded waits for nothing",
     RACE "threads: {r0.m: [" WRITES ", {sync: event, event: e}, " READS "]}"},
    {"sync device", HOLDS "threads: {r0.m: [" WRITES ", {sync: device}, " READS "]}"},
    {"sync stream also waits for waits at its end",
     HOLDS "threads: {r0.m: [" WRITES ", {record: e, stream: s}, {wait: e, stream: u}, {sync: "
           "stream, stream: u}, " READS "]}"},
    {"a pageable copy blocks the host", HOLDS
     "threads: {r0.m: [{copy: h2d, bytes: 1KiB, stream: s, pageable: true, writes: [b]}, " READS
     "]}"},
    {"a pinned one does not",
     RACE "threads: {r0.m: [{copy: h2d, bytes: 1KiB, stream: s, writes: [b]}, " READS "]}"},

    /* ---- threads */
    {"a flag orders two threads",
     HOLDS "threads:\n  r0.a: [" WRITES ", {sync: device}, {signal: f}]\n"
           "  r0.b: [{await: f}, " READS "]\n"},
    {"but not the device", RACE "threads:\n  r0.a: [" WRITES ", {signal: f}]\n"
                                "  r0.b: [{await: f}, " READS "]\n"},
    {"only the first signal lets pass",
     RACE "threads:\n  r0.a: [{signal: f}, " WRITES ", {sync: device}, {signal: f}]\n"
          "  r0.b: [{await: f}, " READS "]\n"},
    {"a flag nobody sets", DEADLOCK "threads: {r0.a: [{await: f}]}"},
    {"flags reach other ranks",
     HOLDS "threads:\n  r0.a: [{signal: f}, {await: g}]\n  r1.a: [{await: f}, {signal: g}]\n"},
    {"a queue orders put before get",
     HOLDS "queues: {q: 1}\nthreads:\n  r0.a: [" WRITES ", {sync: device}, {put: q}]\n"
           "  r0.b: [{get: q}, " READS "]\n"},
    {"a put before the work is done says nothing",
     RACE "queues: {q: 1}\nthreads:\n  r0.a: [" WRITES ", {put: q}, {sync: device}]\n"
          "  r0.b: [{get: q}, " READS "]\n"},
    {"a full queue blocks", DEADLOCK "queues: {q: 1}\nthreads: {r0.a: [{put: q}, {put: q}]}"},
    {"a bigger one does not", HOLDS "queues: {q: 2}\nthreads: {r0.a: [{put: q}, {put: q}]}"},
    {"an empty queue blocks", DEADLOCK "queues: {q: 1}\nthreads: {r0.a: [{get: q}]}"},
    {"a get that made room is known to the put",
     HOLDS "queues: {q: 1}\nthreads:\n  r0.a: [{put: q}, {put: q}, " READS "]\n"
           "  r0.b: [" WRITES ", {sync: device}, {get: q}]\n"},
    {"a put that had room knows nothing",
     RACE "queues: {q: 2}\nthreads:\n  r0.a: [{put: q}, {put: q}, " READS "]\n"
          "  r0.b: [" WRITES ", {sync: device}, {get: q}]\n"},
    {"two locks in two orders",
     DEADLOCK_SOME "threads:\n  r0.a: [{lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"
                   "  r0.b: [{lock: n}, {lock: m}, {unlock: m}, {unlock: n}]\n"},
    {"two locks in one order",
     HOLDS "threads:\n  r0.a: [{lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"
           "  r0.b: [{lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"},
    {"locks are a rank's own",
     HOLDS "threads:\n  r0.a: [{lock: m}, {lock: n}, {unlock: n}, {unlock: m}]\n"
           "  r1.b: [{lock: n}, {lock: m}, {unlock: m}, {unlock: n}]\n"},
    {"a lock is not recursive", DEADLOCK "threads: {r0.a: [{lock: m}, {lock: m}]}"},
    {"a lock orders what it covers",
     HOLDS "threads:\n  r0.a: [{lock: m}, " WRITES ", {sync: device}, {unlock: m}]\n"
           "  r0.b: [{lock: m}, " READS ", {sync: device}, {unlock: m}]\n"},
    {"a lock does not cover what the device does later",
     "expect: {race: violated}\nthreads:\n  r0.a: [{lock: m}, " WRITES ", {unlock: m}]\n"
     "  r0.b: [{lock: m}, " READS ", {unlock: m}]\n"},
    {"a barrier orders both ways",
     HOLDS "threads:\n  r0.a: [" WRITES ", {sync: device}, {barrier: x}]\n"
           "  r0.b: [{barrier: x}, " READS "]\n"},
    {"a barrier waits for all who name it",
     DEADLOCK "threads:\n  r0.a: [{barrier: x}, {barrier: x}]\n  r0.b: [{barrier: x}]\n"},
    {"a barrier can be used again", HOLDS
     "threads:\n  r0.a: [{barrier: x}, {barrier: x}]\n  r0.b: [{barrier: x}, {barrier: x}]\n"},
    {"tickets put threads in order",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n"
           "  r0.a: [{ticket: 0}, {collective: c, comm: A, stream: s}, {serve: 0}]\n"
           "  r0.b: [{ticket: 1}, {collective: d, comm: A, stream: t}, {serve: 1}]\n"
           "  r1.a: [{ticket: 0}, {collective: c, comm: A, stream: s}, {serve: 0}]\n"
           "  r1.b: [{ticket: 1}, {collective: d, comm: A, stream: t}, {serve: 1}]\n"},
    {"without tickets any order is possible",
     "expect: {mismatch: some}\ncomms: {A: [0, 1]}\nthreads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s}]\n"
     "  r0.b: [{collective: d, comm: A, stream: t}]\n"
     "  r1.a: [{collective: c, comm: A, stream: s}]\n"
     "  r1.b: [{collective: d, comm: A, stream: t}]\n"},
    {"a turn that is never over",
     DEADLOCK "threads:\n  r0.a: [{ticket: 0}]\n  r0.b: [{ticket: 1}, {serve: 1}]\n"},
    {"a turn whose turn never comes",
     DEADLOCK "threads:\n  r0.a: [{ticket: 0}, {serve: 0}]\n  r0.b: [{ticket: 2}, {serve: 2}]\n"},

    /* ---- callbacks */
    {"a callback runs in stream order",
     HOLDS "threads: {r0.a: [" WRITES
           ", {callback: c, stream: s, body: [{signal: f}]}, {await: f}, " READS "]}"},
    {"a callback on another stream knows nothing",
     RACE "threads: {r0.a: [" WRITES
          ", {callback: c, stream: u, body: [{signal: f}]}, {await: f}, " READS "]}"},
    {"a callback holds up its stream", DEADLOCK
     "threads: {r0.a: [{callback: c, stream: s, body: [{await: f}]}, {sync: stream, stream: "
     "s}, {signal: f}]}"},
    {"but no other",
     HOLDS "threads: {r0.a: [{callback: c, stream: s, body: [{await: f}]}, {sync: stream, stream: "
           "t}, {signal: f}]}"},
    {"a callback wants a lock its waiter holds",
     DEADLOCK "threads: {r0.a: [{lock: gil}, {callback: c, stream: s, body: [{lock: gil}, {unlock: "
              "gil}]}, {sync: stream, stream: s}, {unlock: gil}]}"},
    {"the waiter lets go of it",
     HOLDS "threads: {r0.a: [{callback: c, stream: s, body: [{lock: gil}, {unlock: gil}]}, {sync: "
           "stream, stream: s}, {lock: gil}, {unlock: gil}]}"},
    {"an empty callback",
     HOLDS "threads: {r0.a: [{callback: c, stream: s, body: []}, {sync: stream, "
           "stream: s}]}"},

    /* ---- CPU work on buffers */
    {"CPU code beside a kernel", RACE "threads: {r0.a: [" WRITES ", {compute: c, reads: [b]}]}"},
    {"CPU code after a kernel that its thread has waited for",
     HOLDS "threads: {r0.a: [" WRITES ", {sync: stream, stream: s}, {compute: c, reads: [b]}]}"},
    {"CPU code waits for another stream",
     RACE "threads: {r0.a: [" WRITES ", {sync: stream, stream: t}, {compute: c, reads: [b]}]}"},
    {"a kernel pushed after CPU code knows it",
     HOLDS "threads: {r0.a: [{compute: c, writes: [b]}, " WRITES "]}"},
    {"CPU code and a kernel that both read",
     HOLDS "threads: {r0.a: [" READS ", {compute: c, reads: [b]}]}"},
    {"CPU code of two threads",
     RACE "threads: {r0.a: [{compute: c, writes: [b]}], r0.b: [{compute: d, reads: [b]}]}"},
    {"a flag orders it", HOLDS "threads: {r0.a: [{compute: c, writes: [b]}, {signal: f}], r0.b: "
                               "[{await: f}, {compute: d, reads: [b]}]}"},
    {"a flag set before it does not", RACE
     "threads: {r0.a: [{signal: f}, {compute: c, writes: [b]}], r0.b: [{await: f}, {compute: d, "
     "reads: [b]}]}"},
    {"a lock orders it, either way round",
     HOLDS "threads: {r0.a: [{lock: m}, {compute: c, writes: [b]}, {unlock: m}], r0.b: [{lock: m}, "
           "{compute: d, writes: [b]}, {unlock: m}]}"},
    {"CPU code in a callback comes after the kernels before it",
     HOLDS "threads: {r0.a: [" WRITES
           ", {callback: c, stream: s, body: [{compute: c, writes: [b]}]}, " WRITES "]}"},
    {"and races with its own thread",
     RACE "threads: {r0.a: [{callback: c, stream: s, body: [{compute: c, writes: [b]}]}, {compute: "
          "d, reads: [b]}]}"},
    {"CPU code on freed memory",
     LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {free: x}, {compute: c, reads: [x]}]}"},
    {"CPU code before another thread frees", LIFETIME_SOME
     "threads: {r0.a: [{alloc: x, stream: s}, {signal: f}, {compute: c, reads: [x]}], r0.b: "
     "[{await: f}, {free: x}]}"},
    {"memory is reused while another thread still uses it",
     LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {signal: f}, {compute: c, reads: [x]}], "
              "r0.b: [{await: f}, {free: x}, {alloc: y, stream: s}]}"},
    {"that thread has finished",
     HOLDS "threads: {r0.a: [{alloc: x, stream: s}, {compute: c, reads: [x]}, {signal: f}], "
           "r0.b: [{await: f}, {free: x}, {alloc: y, stream: s}]}"},

    /* ---- the allocator */
    {"freed memory is reused in its stream while another still uses it",
     LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, {free: "
              "x}, {alloc: y, stream: s}]}"},
    {"record_stream keeps it",
     HOLDS "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, "
           "{record_stream: x, stream: t}, {free: x}, {alloc: y, stream: s}]}"},
    {"record_stream of the wrong stream",
     LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, "
              "{record_stream: x, stream: u}, {free: x}, {alloc: y, stream: s}]}"},
    {"work in the same stream is over before the memory is reused", HOLDS
     "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: s, writes: [x]}, {free: x}, "
     "{alloc: y, stream: s}]}"},
    {"an event from the user to the owner", HOLDS
     "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, {record: e, "
     "stream: t}, {wait: e, stream: s}, {free: x}, {alloc: y, stream: s}]}"},
    {"the host waits before it frees",
     HOLDS "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, {sync: "
           "stream, stream: t}, {free: x}, {alloc: y, stream: s}]}"},
    {"an allocation in another stream gets other memory", HOLDS
     "threads: {r0.a: [{alloc: x, stream: s}, {launch: k, stream: t, writes: [x]}, {free: x}, "
     "{alloc: y, stream: u}]}"},
    {"an allocation before the free gets other memory, however late the stream comes to it",
     HOLDS "threads: {r0.a: [{alloc: x, stream: s}, {callback: c, stream: s, body: [{await: f}]}, "
           "{launch: k, stream: t, writes: [x]}, {alloc: y, stream: s}, {free: x}, {signal: f}]}"},
    {"freed twice", LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {free: x}, {free: x}]}"},
    {"used after it was freed",
     LIFETIME "threads: {r0.a: [{alloc: x, stream: s}, {free: x}, {launch: k, stream: s, reads: "
              "[x]}]}"},

    /* ---- collectives */
    {"a collective needs all members",
     DEADLOCK "comms: {A: [0, 1]}\nthreads:\n  r0.a: [{collective: c, comm: A, stream: s}]\n"
              "  r1.a: [{host: 1us}]\n"},
    {"it completes when all have come",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n  r0.a: [{collective: c, comm: A, stream: s}]\n"
           "  r1.a: [{collective: c, comm: A, stream: s}]\n"},
    {"different tags at one position",
     MISMATCH "comms: {A: [0, 1]}\nthreads:\n  r0.a: [{collective: c, comm: A, stream: s}]\n"
              "  r1.a: [{collective: d, comm: A, stream: s}]\n"},
    {"different sizes at one position", MISMATCH
     "comms: {A: [0, 1]}\nthreads:\n  r0.a: [{collective: c, comm: A, stream: s, bytes: 1KiB}]\n"
     "  r1.a: [{collective: c, comm: A, stream: s, bytes: 2KiB}]\n"},
    {"two communicators in two orders on one stream", DEADLOCK
     "comms: {A: [0, 1], B: [0, 1]}\nthreads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s}, {collective: d, comm: B, stream: s}]\n"
     "  r1.a: [{collective: d, comm: B, stream: s}, {collective: c, comm: A, stream: s}]\n"},
    {"on two streams",
     HOLDS "comms: {A: [0, 1], B: [0, 1]}\nthreads:\n"
           "  r0.a: [{collective: c, comm: A, stream: s}, {collective: d, comm: B, stream: t}]\n"
           "  r1.a: [{collective: d, comm: B, stream: t}, {collective: c, comm: A, stream: s}]\n"},
    {"one communicator runs in issue order, across streams", DEADLOCK
     "comms: {A: [0]}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: f}]}, {collective: "
     "c, comm: A, stream: s}, {collective: d, comm: A, stream: t}, {callback: g, stream: t, body: "
     "[{signal: f}]}]}"},
    {"two communicators do not wait for each other", HOLDS
     "comms: {A: [0], B: [0]}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: f}]}, "
     "{collective: c, comm: A, stream: s}, {collective: d, comm: B, stream: t}, {callback: g, "
     "stream: t, body: [{signal: f}]}]}"},
    {"a collective orders its members",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n"
           "  r0.a: [{launch: k1, stream: s, writes: [b]}, {collective: c, comm: A, stream: s}, "
           "{collective: d, comm: A, stream: t}, " READS "]\n"
           "  r1.a: [{collective: c, comm: A, stream: s}, {collective: d, comm: A, stream: s}]\n"},

    /* ---- point to point */
    {"send meets receive",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n  r0.a: [{group: [{send: x, peer: 1}], comm: A}]\n"
           "  r1.a: [{group: [{recv: x, peer: 0}], comm: A}]\n"},
    {"send against send", DEADLOCK
     "comms: {A: [0, 1]}\nthreads:\n"
     "  r0.a: [{group: [{send: x, peer: 1}], comm: A}, {group: [{recv: y, peer: 1}], comm: "
     "A}]\n"
     "  r1.a: [{group: [{send: y, peer: 0}], comm: A}, {group: [{recv: x, peer: 0}], comm: "
     "A}]\n"},
    {"in one group they meet",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n"
           "  r0.a: [{group: [{send: x, peer: 1}, {recv: y, peer: 1}], comm: A}]\n"
           "  r1.a: [{group: [{send: y, peer: 0}, {recv: x, peer: 0}], comm: A}]\n"},
    {"an eager message does not wait",
     HOLDS "comms: {A: [0, 1]}\nmachine: {eager_messages: {A: 1}}\nthreads:\n"
           "  r0.a: [{group: [{send: x, peer: 1}], comm: A}, {group: [{recv: y, peer: 1}], comm: "
           "A}]\n"
           "  r1.a: [{group: [{send: y, peer: 0}], comm: A}, {group: [{recv: x, peer: 0}], comm: "
           "A}]\n"},
    {"a second one does", DEADLOCK
     "comms: {A: [0, 1]}\nmachine: {eager_messages: {A: 1}}\nthreads:\n"
     "  r0.a: [{group: [{send: x, peer: 1}], comm: A}, {group: [{send: z, peer: 1}], comm: A}, "
     "{group: [{recv: y, peer: 1}], comm: A}]\n"
     "  r1.a: [{group: [{send: y, peer: 0}], comm: A}, {group: [{send: w, peer: 0}], comm: A}, "
     "{group: [{recv: x, peer: 0}], comm: A}]\n"},
    {"eager up to so many bytes",
     HOLDS "comms: {A: [0, 1]}\nmachine: {eager_bytes: {A: 1MiB}}\nthreads:\n"
           "  r0.a: [{group: [{send: x, peer: 1, bytes: 1MiB}], comm: A}, {group: [{recv: y, peer: "
           "1}], comm: A}]\n"
           "  r1.a: [{group: [{send: y, peer: 0, bytes: 1MiB}], comm: A}, {group: [{recv: x, peer: "
           "0}], comm: A}]\n"},
    {"one byte more is not", DEADLOCK
     "comms: {A: [0, 1]}\nmachine: {eager_bytes: {A: 1MiB}}\nthreads:\n"
     "  r0.a: [{group: [{send: x, peer: 1, bytes: 1048577B}], comm: A}, {group: [{recv: y, "
     "peer: 1}], comm: A}]\n"
     "  r1.a: [{group: [{send: y, peer: 0, bytes: 1048577B}], comm: A}, {group: [{recv: x, "
     "peer: 0}], comm: A}]\n"},
    {"operations with one peer match in order",
     MISMATCH "comms: {A: [0, 1]}\nthreads:\n"
              "  r0.a: [{group: [{send: x, peer: 1}, {send: y, peer: 1}], comm: A}]\n"
              "  r1.a: [{group: [{recv: y, peer: 0}, {recv: x, peer: 0}], comm: A}]\n"},
    {"with different peers independently",
     HOLDS "comms: {A: [0, 1, 2]}\nthreads:\n"
           "  r0.a: [{group: [{send: x, peer: 1}, {recv: y, peer: 2}], comm: A}]\n"
           "  r1.a: [{group: [{recv: x, peer: 0}], comm: A}]\n"
           "  r2.a: [{group: [{send: y, peer: 0}], comm: A}]\n"},
    {"a group finishes as a unit", DEADLOCK
     "comms: {A: [0, 1, 2]}\nthreads:\n"
     "  r0.a: [{group: [{send: x, peer: 1}, {recv: y, peer: 2}], comm: A}, {sync: device}, "
     "{signal: f}]\n"
     "  r1.a: [{group: [{recv: x, peer: 0}], comm: A}]\n"
     "  r2.a: [{await: f}, {group: [{send: y, peer: 0}], comm: A}]\n"},
    {"a message orders what its sender did before what its receiver does", HOLDS
     "comms: {A: [0, 1]}\nthreads:\n"
     "  r0.a: [" WRITES ", {group: [{send: x, peer: 1}], comm: A, stream: s}, {group: [{recv: "
     "y, peer: 1}], comm: A, stream: t}, " READS "]\n"
     "  r1.a: [{group: [{recv: x, peer: 0}], comm: A}, {group: [{send: y, peer: 0}], comm: "
     "A}]\n"},
    {"an eager sender does not wait and knows nothing of its receiver",
     RACE "comms: {A: [0, 1], B: [0, 1]}\nmachine: {eager_messages: {B: 1}}\nthreads:\n"
          "  r0.a: [" WRITES ", {group: [{recv: x, peer: 1}], comm: B, stream: s}]\n"
          "  r0.b: [{await: f}, " READS "]\n"
          "  r1.a: [{group: [{send: x, peer: 0}], comm: B}, {sync: device}, {signal: f}]\n"},
    {"a sender that waits for its receiver does",
     HOLDS "comms: {B: [0, 1]}\nthreads:\n"
           "  r0.a: [" WRITES ", {group: [{recv: x, peer: 1}], comm: B, stream: s}]\n"
           "  r0.b: [{await: f}, " READS "]\n"
           "  r1.a: [{group: [{send: x, peer: 0}], comm: B}, {sync: device}, {signal: f}]\n"},

    /* ---- knobs of the machine */
    {"two collectives, one place for work, in any order", DEADLOCK_SOME
     "comms: {A: [0, 1], B: [0, 1]}\nmachine: {sm_slots: 1}\nthreads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, sm: "
     "1}]\n"
     "  r1.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, sm: "
     "1}]\n"},
    {"two places", HOLDS
     "comms: {A: [0, 1], B: [0, 1]}\nmachine: {sm_slots: 2}\nthreads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, sm: "
     "1}]\n"
     "  r1.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, sm: "
     "1}]\n"},
    {"a kernel bigger than the device",
     DEADLOCK "machine: {sm_slots: 1}\nthreads: {r0.a: [{launch: k, stream: s, sm: 2}]}"},
    {"streams that share a hardware queue wait for each other", DEADLOCK
     "machine: {hw_queues: 1}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: f}]}, "
     "{launch: k, stream: s}, {callback: g, stream: t, body: [{signal: f}]}]}"},
    {"with a hardware queue each they do not", HOLDS
     "machine: {hw_queues: 2}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: f}]}, "
     "{launch: k, stream: s}, {callback: g, stream: t, body: [{signal: f}]}]}"},
    {"implicit launch order, two orders", DEADLOCK
     "comms: {A: [0, 1], B: [0, 1]}\nmachine: {launch_order_implicit: true, sm_slots: 1}\n"
     "threads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: "
     "t, sm: 1}]\n"
     "  r1.a: [{collective: d, comm: B, stream: t, sm: 1}, {collective: c, comm: A, stream: "
     "s, sm: 1}]\n"},
    {"implicit launch order, one order and one place for work", HOLDS
     "comms: {A: [0, 1], B: [0, 1]}\nmachine: {launch_order_implicit: true, sm_slots: 1}\n"
     "threads:\n"
     "  r0.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, "
     "sm: 1}]\n"
     "  r1.a: [{collective: c, comm: A, stream: s, sm: 1}, {collective: d, comm: B, stream: t, "
     "sm: 1}]\n"},
    {"a kernel's first launch waits for the device",
     DEADLOCK "comms: {A: [0, 1]}\nmachine: {lazy_load: true}\nthreads:\n"
              "  r0.a: [{collective: c, comm: A, stream: s}, {launch: k, stream: t}, {signal: f}]\n"
              "  r1.a: [{await: f}, {collective: c, comm: A, stream: s}]\n"},
    {"its second does not", HOLDS
     "comms: {A: [0, 1]}\nmachine: {lazy_load: true}\nthreads:\n"
     "  r0.a: [{launch: k, stream: t}, {collective: c, comm: A, stream: s}, {launch: k, stream: "
     "t}, {signal: f}]\n"
     "  r1.a: [{await: f}, {collective: c, comm: A, stream: s}]\n"},
    {"loaded at the start",
     HOLDS "comms: {A: [0, 1]}\nthreads:\n"
           "  r0.a: [{collective: c, comm: A, stream: s}, {launch: k, stream: t}, {signal: f}]\n"
           "  r1.a: [{await: f}, {collective: c, comm: A, stream: s}]\n"},
    {"the first use of a link blocks the host",
     DEADLOCK "comms: {A: [0, 1]}\nmachine: {first_use_blocks: true}\nthreads:\n"
              "  r0.a: [{group: [{send: x, peer: 1}], comm: A}, {signal: f}]\n"
              "  r1.a: [{await: f}, {group: [{recv: x, peer: 0}], comm: A}]\n"},
    {"a link made before", HOLDS
     "comms: {A: [0, 1]}\nmachine: {first_use_blocks: true}\nthreads:\n"
     "  r0.a: [{group: [{send: w, peer: 1}], comm: A}, {group: [{send: x, peer: 1}], comm: A}, "
     "{signal: f}]\n"
     "  r1.a: [{group: [{recv: w, peer: 0}], comm: A}, {await: f}, {group: [{recv: x, peer: "
     "0}], comm: A}]\n"},
    {"a push to a full stream blocks the host", DEADLOCK
     "machine: {launch_queue: 1}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: "
     "f}]}, {launch: k, stream: s}, {signal: f}]}"},
    {"a longer stream does not",
     HOLDS "machine: {launch_queue: 2}\nthreads: {r0.a: [{callback: w, stream: s, body: [{await: "
           "f}]}, {launch: k, stream: s}, {signal: f}]}"},
};

static bool check(const struct plan *plan, bool no_reduction, struct diag *diag)
{
    struct verify_options options = {.program.iterations = -1, .no_reduction = no_reduction};
    struct verify_report report;
    if (verify_plan(plan, &options, &report, diag) != STATUS_OK)
        return false;
    bool agrees = verify_as_expected(plan, &report, diag);
    verify_fini(&report);
    return agrees;
}

static void try_example(const struct example *example)
{
    char text[4096];
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    snprintf(text, sizeof text, "swplan: 1\n%s", example->plan);
    bool ok = plan_parse("example.yaml", text, strlen(text), &plan, &diag) == STATUS_OK;
    if (ok) {
        ok = check(&plan, false, &diag);
        ok = check(&plan, true, &diag) && ok;
        plan_fini(&plan);
    }
    tap_ok(ok, "%s", example->what);
    for (size_t i = 0; !ok && i < diag.count; i++)
        tap_note("%s", diag.messages[i].text);
    diag_fini(&diag);
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        try_example(&examples[i]);
    return tap_done();
}
