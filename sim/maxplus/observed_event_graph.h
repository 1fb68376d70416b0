/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observed_event_graph.h - the event graph of a plan, found by running the machine.
 *
 * If every step the machine takes is free (machine_step_free: it commutes with every step of every
 * other agent, machine/conflicts.h), no step can disable another or change what it does. Then all runs, whatever the
 * durations, consist of the same steps, and each step has the same causes in all of them: it happens when
 * the last of these has happened and its own time is over. That is a max-plus system; it holds for the
 * clock driver, and for data-flow where the queue of every worker is filled in one order only (a worker for
 * each task, say). Where several threads fill a queue as instances become ready there is no graph.
 *
 * To see all causes, not only the last one, the machine is run once for each agent, with that agent last:
 * it steps only when no other can. Let C be an immediate cause of S, by agent A, which means that no other
 * cause of S waits for C. In the run where A is last, every step that does not wait for C is taken before
 * it, the other causes of S too; so C is the enabling step of S (enabling_steps.h). The enabling step is one
 * of the causes in any run. So the edges are all immediate causes, and others that they imply.
 *
 * Iterations in the middle of a run all look alike, so an edge's height is the difference of two of them.
 * Steps are events that begin when they are possible and end when they are taken.
 */
#ifndef SWSIM_OBSERVED_EVENT_GRAPH_H
#define SWSIM_OBSERVED_EVENT_GRAPH_H

#include "event_graph.h"

/* Most looks at agents, one a step and agent in each run. */
enum { OBSERVED_MOST_LOOKS = 4000000 };

/* As event_graph_build. */
enum status observed_event_graph_build(const struct program *program, const struct timing *timing,
                                       struct event_graph *out, struct diag *diag);

#endif
