/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - what a run is asked for, and what came of it; filled by gpu/exec and gpu/record together.
 *
 * Times are in nanoseconds. Options are borrowed. Everything a result points to lies in its arena;
 * runtime_result_fini (gpu/exec/runtime.h) frees it.
 */
#ifndef SWSIM_RESULT_H
#define SWSIM_RESULT_H

#include <stdatomic.h>

#include "gpu/device/device.h"
#include "machine/machine.h"

enum { RUNTIME_HOST_BUFFER_BYTES = 16 * 1024 * 1024 };
#define RUNTIME_TIMEOUT_NS INT64_C(30000000000)

/* The values a signal handler may write to `*options->stop`. */
enum {
    RUNTIME_GO,    /* the initial value */
    RUNTIME_DRAIN, /* admit nothing more; abort what has not finished within a second */
    RUNTIME_ABORT  /* at once */
};

/* A run that is to happen once more, step by step (gpu/device/gate.h): the transitions of the program built
   with the driver, iterations, ranks and max_depth of the options that hold it. What comes after its
   last step is up to the device. */
struct runtime_witness {
    const struct transition *steps;
    size_t count;
};

/* Whether a steady period of the clock-driven pipeline is captured as a graph of the device and given to it
   by one launch (gpu/exec/graph.h). */
enum runtime_graph {
    RUNTIME_GRAPH_OFF,
    RUNTIME_GRAPH_AUTO,   /* where the plan allows it; a note says why it does not */
    RUNTIME_GRAPH_REQUIRE /* else the run is refused */
};

struct runtime_options {
    enum device_kind device;
    enum driver driver; /* pipeline form: CLOCK or DATAFLOW; other forms: NONE */
    int64_t iterations; /* pipeline form: how many, >= 0; with a witness -1: what its data loader
                               says, and one more where it does not end the data */
    int ranks;          /* 0: as the plan says */
    int max_depth;      /* 0: as the plan says */
    bool serial;        /* pipeline form: one task after another, on one stream a rank */
    enum runtime_graph graph;
    bool replay;    /* true if the run is legal */
    bool compare;   /* pipeline form, rank programs with arithmetic: true if the results match
                              a serial run */
    const char *db; /* trace store the run is added to; NULL: none */
    const char *plan_text;   /* for the store: the plan in canonical form; NULL: none */
    const bool *is_function; /* by task: a function of the program does its work; NULL: none does */
    bool durable;            /* each commit to the store waits until the disk has it */
    /* Called for each iteration, in order, by the thread that writes the trace: it is retired on every rank
       and, with a store, in it. NULL: nobody wants to know */
    void (*retired)(void *arg, int64_t iteration);
    void *retired_arg;
    int64_t seed;       /* of the branches that `choose` takes */
    int64_t timeout_ns; /* 0: RUNTIME_TIMEOUT_NS */
    int log_chunks;     /* for tests: instead of JOURNAL_CHUNKS (gpu/record/journal.h); 0: those */
    struct rendezvous
        *rendezvous;        /* this process is one rank of it, and reports to its broker what it
                                      logs (gpu/exec/ranks.h): figures, `legal` and the store are made
                                      there, not here. NULL: all ranks are threads of this process */
    const atomic_int *stop; /* watched during the run; NULL: none */
    const struct runtime_witness *witness; /* NULL: the run takes its own course. Host device only;
                                              operations then take no time */
    struct {
        bool given; /* for tests: the device operation with this number, counted from 0, fails */
        int rank;
        int64_t number;
    } inject;
};

enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

/* An agent that cannot go on. */
struct runtime_blocked {
    int rank; /* -1: of no rank in particular */
    const char *agent;
    const char *waits_for; /* "is at Forward(3), waits for the CPU signal of H2D(3)" */
};

struct runtime_stream {
    int rank;
    const char *name;
    int64_t busy_ns; /* work ran */
};

/* Calls and times of one name, over all ranks (gpu/record/op_stats.h). */
struct runtime_stat {
    const char *name;
    int64_t calls;
    int64_t device_ns, host_ns;
};

/* Mean and order statistics of the times between the ends of iterations on the lowest rank, retired and
   finished on the device; the fill (up to the first end) is left out. 0 with fewer than two iterations. */
struct runtime_times {
    double mean_ns, p50_ns, p95_ns, p99_ns;
};

/* With options->graph, summed up over the ranks. */
struct runtime_graphs {
    int64_t graphs;   /* captured */
    int64_t launches; /* periods that were given to the device by one launch ... */
    int64_t periods;  /* ... of all that were handed out */
};

/* Where a gradient or a loss differs from the serial one. */
struct runtime_difference {
    int rank, stage, layer; /* of the stage, from 0 */
    int microbatch;         /* of a loss; -1: a gradient of a weight ... */
    int row, column;        /* ... from `row` to `column`; row -1: of the bias */
    float found, expected;
};

/* Of rank programs with `arithmetic:` (gpu/exec/layers.h). */
enum { ARITHMETIC_LOSSES = 1024 };
struct runtime_arithmetic {
    enum answer equal;         /* bit for bit; unknown: not compared */
    int64_t gradients, losses; /* numbers compared */
    double loss_sum;
    float each_loss[ARITHMETIC_LOSSES]; /* the first, by replica and then by microbatch */
    int64_t different;                  /* of them */
    struct runtime_difference first;
};

struct runtime_result {
    struct arena arena; /* of everything below */
    const char *device; /* one line, for people */
    bool finished;      /* everything was done */
    bool interrupted;   /* `stop` was set */
    bool hung;
    bool peer_died; /* the process of another rank died */
    struct {
        bool complete; /* with a rendezvous: this rank did all it had to ... */
        int64_t end;   /* ... which was so many iterations */
    } local;
    int64_t iterations, most_iterations; /* retired on every rank, and on the rank with the most */
    int64_t tasks;                       /* instances with finished device work, all ranks */
    int64_t steps;                       /* of the machine, replayed */
    struct runtime_graphs graph;
    int64_t duration_ns;
    int64_t fill_ns, drain_ns; /* until the first iteration is over; since the last admission */
    struct runtime_times iteration;
    int64_t serial_ns; /* an iteration of the lowest rank would take one task after another: the sum
                          of its tasks' mean CPU and device times; 0: not known */
    struct runtime_stream *streams;
    size_t stream_count;
    struct runtime_stat *stats; /* by name */
    size_t stat_count;
    int64_t run;       /* in the store; -1: none */
    int64_t log_bytes; /* the most that was logged and not read by the journal, in full chunks */
    int64_t held_ns;   /* threads waited for the journal, in all */
    int64_t
        clock_error_ns; /* by which times of the device may be off, of any rank; 0: the host's clock is its own */
    /* legal: unknown where it was not asked for, and where an aborted run ended in the middle of
       something that several agents do together */
    enum answer legal, matches_serial;
    bool stale; /* a read saw what a serial run had some iterations ago, as `staleness` allows */
    struct runtime_arithmetic arithmetic; /* of rank programs; with options->compare */
    size_t forced, to_force;  /* with a witness: steps taken in its order, and all it has, the data
                                 loader's left out */
    const char *forced_agent; /* the agent of the next step; NULL: all were taken */
    struct runtime_blocked *blocked; /* when it hung */
    size_t blocked_count;
    const char *violations[PROPERTY_COUNT]; /* seen in the replay, in words; NULL: none */
};

#endif
