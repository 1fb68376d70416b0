/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing.h - work that runs at the same time on one device, or on the cores of one host, slows each other down.
 *
 * The fluid model of processor sharing in its simplest form, that of network and CPU resources in
 * simulators such as SimGrid (Casanova et al., "Versatile, scalable, and accurate simulation of
 * distributed applications and platforms", JPDC 2014) without the fairness between users of several
 * resources: whatever runs wants a fixed share of each resource, and where all of it together wants
 * more than there is, all users of that resource are slowed in proportion. A resource is of a rank's
 * device; the cores (machine: {cores}) are of the host, on which all ranks are.
 *
 *     rate of an item = min over the resources it wants of min(1, what there is / all that is wanted of it)
 *
 *     SMs   wanted 0.6 + 0.6 = 1.2           A |======= 5/6 =======|
 *           A and B at 5/6 of their speed    B      |== 5/6 =======|== 1 ==|
 *                                            time ------------------------->
 *
 * An item is what takes time on streams: a kernel or copy, or a collective with a leg on a stream of
 * each member, which goes as fast as its slowest leg. Its demand is fixed while it runs, also
 * where another resource slows it. A collective or group that has started and waits for its peers
 * wants its SMs, where its kernel spins, but not the link, and no core, as its thread sleeps. A
 * callback wants nothing but what its body does. A greedy kernel goes at the share of its most residency slots that it has
 * (sharing_slots), whatever others want. The CPU parts of tasks and of host programs want a core and nothing else.
 *
 * Demand is counted in millionths and time in nanoseconds. The work left is kept to 2^-32 ns
 * and changes only when the rate does, so work that is never slowed ends to the nanosecond when it
 * would alone, and the end of others is that of the exact model, rounded to the nearest nanosecond.
 * Nothing depends on the order in which items of one instant start or end: rates change in
 * sharing_settle alone, once an instant.
 */
#ifndef SWSIM_SHARING_H
#define SWSIM_SHARING_H

#include "machine/program.h"

struct events;

/*            NAME         key            in words */
#define RESOURCE_LIST(X)                                                                           \
    X(SM, "sm", "the SMs")                                                                         \
    X(LINK, "link", "the link")                                                                    \
    X(COPY_ENGINE, "copy_engine", "copy engines")                                                  \
    X(CORE, "core", "the cores")

enum resource {
#define X(name, key, words) RESOURCE_##name,
    RESOURCE_LIST(X)
#undef X
        RESOURCE_COUNT
};

const char *resource_key(enum resource resource);
const char *resource_words(enum resource resource);

/* How much longer than alone the work of a subject took. A subject is the device part of a task, on all ranks, or of
   other forms than the pipeline all device work of one name; and the CPU part of each. */
struct slowdown {
    int64_t runs;                      /* that have ended, one a rank */
    int64_t work_ns;                   /* as long as they would have taken alone */
    int64_t slowed_ns[RESOURCE_COUNT]; /* and longer, by what was short */
};

int sharing_subject_count(const struct program *program);
/* "Load", "CPU part of Load". Returns buf. */
const char *sharing_subject_name(const struct program *program, int subject, char *buf, size_t cap);

/* True if the plan (pipeline form) says anything of this, so that other stages or streams for its tasks may let work
   slow other work down. */
bool sharing_asked(const struct plan *plan);

/* The resources that streams of one device, or of the host, may together exhaust, in words; NULL: nothing, so
   that no work is ever slowed, or memory is exhausted, as the arena says. */
const char *sharing_why(const struct program *program, struct arena *scratch);

struct sharing;

/* *out is NULL where no work is ever slowed. false: memory is exhausted. The program must outlive it. */
bool sharing_open(const struct program *program, struct sharing **out);
void sharing_close(struct sharing *sharing);

/* An operation on a communicator has started and waits for its peers. */
void sharing_hold(struct sharing *sharing, int op);

/* From now on `agent` takes work_ns, if nothing slows it; called for each leg, one operation each, of a thread for its
   CPU part. Its event has been put already, due in that case. */
void sharing_start(struct sharing *sharing, int agent, int op, int64_t work_ns, int64_t now_ns);

/* The greedy kernel that runs on a stream has so many residency slots from now on. */
void sharing_slots(struct sharing *sharing, int stream, int held);

/* Its time is over. Nothing happens to an agent that has not started. */
void sharing_finish(struct sharing *sharing, int agent, int64_t now_ns);

/* All of this instant has started and finished: the events of those whose rate is another now are
   put where they belong. */
void sharing_settle(struct sharing *sharing, int64_t now_ns, struct events *events);

/* The slowdown of a stream's work: part of its busy time. */
const int64_t *sharing_of_stream(const struct sharing *sharing, int stream);

/* The slowdown of the work that has last ended on a stream, or of the last CPU part of a thread; by its agent. */
const int64_t *sharing_last(const struct sharing *sharing, int agent);

/* "1.50 ms by the SMs, 20 us by the link", each the mean of so many runs; "" where nothing slowed it.
   Returns buf. */
const char *sharing_describe(const int64_t slowed_ns[RESOURCE_COUNT], int64_t runs, char *buf,
                             size_t cap);

/* The slowdowns of all subjects; the caller frees them. */
struct slowdown *sharing_take(struct sharing *sharing);

#endif
