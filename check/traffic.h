/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic.h - whether all collectives of a pipeline complete, in whatever order threads are handed their work: condition 3
 * of doc/checker.md, "Proved by structure".
 *
 * They complete if all ranks issue all collectives in one order. Under data-flow it is enough that the collectives of each
 * communicator are in one order, that the host never waits for the device, and that no collective waits, by way of streams
 * and events, for a later one: the order of iterations, and of tasks within an iteration, is then an order of all.
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
