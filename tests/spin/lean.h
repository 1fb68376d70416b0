/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean.h - the lean Promela model of a plain pipeline, for benchmarks and for counting states.
 *
 * A pipeline is plain (lean_is_plain) when its instances cannot meet an iteration other than their
 * own and no two threads share a stream. Then the instances of a task are handed out, taken,
 * submitted and done on the device in the order of their iterations, and a state consists of counts
 * (in bytes) and queues of tasks:
 *
 *     work_W         tasks handed to worker W          signalled_T   CPU signals of T set
 *     items_S        tasks launched on stream S        recorded_T    records of T pushed
 *     period,        the position of the driver        reached_T     events of T reached
 *     admitted,                                        submitted_T   instances of T submitted
 *     oldest                                           fired_T       (data-flow) handed out
 *
 * The iteration of an instance is not stored. A worker at T is at iteration submitted_T of T; a
 * stream whose head is T is at iteration reached_T. So "the signal of D(i - d) is set", as seen by
 * T(i), is signalled_D + d > submitted_T: always true where i < d.
 *
 * Items that take effect at once at the head of a stream have no step: a wait is a guard of the
 * start of the work behind it; a record takes effect with the end of the work before it, or, if the
 * host comes late, when it is pushed (late_S: the work is done, its record is not pushed yet).
 *
 * Under `retire: submit` the launch queue may block the host, and its items are counted: len_S is
 * their number, with the waits of the head among them until it starts; lead_S is the number of these
 * whose events have happened, which the machine has popped already.
 *
 * An exact model takes one step for each step of machine/machine.c, also for those without effect,
 * so that its states are the machine's: tests/check/t_spin.sh counts both.
 */
#ifndef SWSIM_TESTS_LEAN_H
#define SWSIM_TESTS_LEAN_H

#include "promela.h"

struct lean {
    struct model model; /* what promela.h asks for */
    const struct program *p;
    bool exact;    /* one step for each of the machine's */
    bool numbered; /* tasks are called by numbers: their names are too similar */
};

/* ---- questions about the program (lean_program.c) ---- */

bool lean_is_plain(const struct program *p);
const struct body *lean_body(const struct program *p, int rank, int task);
/* The work a task pushes; NULL: it works on the host. */
const struct op *lean_work(const struct program *p, int rank, int task);
/* The stream of a task's record. */
int lean_stream(const struct program *p, int rank, int task);
/* Does the wait look at another stream? */
bool lean_waits_across(const struct program *p, const struct op *wait);
/* Can the host fill this stream's launch queue? */
bool lean_is_bounded(const struct program *p, int stream);
/* Does the model count the unfinished items of a stream? */
bool lean_counts_busy(const struct program *p, int stream);
/* The member that a stream's collectives act for, or -1. */
int lean_stream_member(const struct program *p, int stream);
/* Does one process alone send to the stream's queue, and one alone receive from it? */
bool lean_is_exclusive(const struct lean *m, int stream);
/* Does another task await the signal of this one? */
bool lean_is_awaited(const struct program *p, int task);
/* Is the signal awaited by the worker that sets it, and by no other? */
bool lean_signal_is_local(const struct program *p, int rank, int task);
bool lean_words_clash(const struct program *p);

/* ---- text (lean_program.c) ---- */

/* Errors in writing stay in the stream. */
void put(const struct lean *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "what_Task", with "1_" in between on rank 1 of several. */
void lean_put_of(const struct lean *m, const char *what, int rank, int task);
void lean_put_task(const struct lean *m, int task);
/* "what_A + distance > other_B": the condition of T(i) on D(i - distance). */
void lean_put_ahead(const struct lean *m, const char *what, int rank, int on, int distance,
                    const char *other, int task);

/* ---- processes (lean_host.c, lean_device.c) ---- */

void lean_put_worker(const struct lean *m, int thread);
void lean_put_stream(const struct lean *m, int stream);
void lean_put_comm(const struct lean *m, int index);
/* Does the stream need a process? One without work takes its steps in the pushing process. */
bool lean_stream_works(const struct program *p, int stream);
bool lean_comm_is_used(const struct program *p, int index);
/* "inline pass_S()": records of work of the host that are now at the head. */
void lean_put_pass(const struct lean *m, int stream);
/* "#define lead_S": the number of waits at the head that are over. */
void lean_put_lead(const struct lean *m, int stream);

#endif
