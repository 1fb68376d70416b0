/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic.h - whether the collectives of a pipeline come through, in whatever order threads are handed their work. The
 * conditions 3 of doc/checker.md, "Proved by structure".
 *
 * They do where all ranks issue all of them in one order. Under data-flow they also do where only those
 * of each communicator are in one order, the host never waits for the device, and none waits, by way of
 * streams and events, for one that comes later: the order of iterations, and within one iteration an
 * order of tasks, is then an order of all collectives.
 */
#ifndef SWSIM_TRAFFIC_H
#define SWSIM_TRAFFIC_H

#include "base/watch.h"
#include "machine/program.h"
#include "base/diag.h"

/* For ranks that are alike but for their communicators. Not plain, too, when `watch` ends the work. */
enum status traffic_is_plain(const struct program *program, struct search_watch *watch, bool *plain,
                             struct diag *diag);

#endif
