/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant.h - a plan as a device can run it: without the rules the device decides for itself, and on
 * demand one task after another.
 *
 * A serial run is no special case of the runtime but another plan: every task in stage 0, one stream,
 * one thread group, topological order, one iteration in flight.
 */
#ifndef SWSIM_VARIANT_H
#define SWSIM_VARIANT_H

#include "base/arena.h"
#include "plan/plan.h"
#include "gpu/device/device.h"

/* A plan that shares most of its memory with the original, which must outlive it. */
struct variant {
    struct arena arena; /* what it does not share */
    struct plan plan;
};

/* Parts that had to be left out are noted in diag. variant_fini in any case. */
enum status variant_init(struct variant *variant, const struct plan *plan, bool serial,
                         enum device_kind device, struct diag *diag);
/* For a run by graphs: a graph may be launched again only when the device is done with it, so where the plan
   retires by submission, the run retires by the device. That is one of the plan's runs. */
void variant_for_graphs(struct variant *variant);
void variant_fini(struct variant *variant);

#endif
