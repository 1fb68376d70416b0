/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.h - `--p2p`: rank programs under another channel than that of the plan, or under all of them.
 */
#ifndef SWSIM_CHANNELS_H
#define SWSIM_CHANNELS_H

#include "app.h"
#include "check/verify.h"
#include "plan/plan.h"
#include "sim/predict/predict.h"

/* The words of the option, in the order of enum fifo_rule; then all. */
#define CHANNELS_CHOICE "group|pair|direction|edge|all"
enum { CHANNELS_ALL = FIFO_EDGE + 1, CHANNELS_NOT_GIVEN = -1 };

/* Set the channel that was chosen; nothing for all or none. STATUS_USAGE: the plan has no messages of that kind. */
enum status channels_choose(struct app *app, struct plan *plan, int choice);

/* One table: which channel hangs, which costs what. STATUS_VIOLATED where one violates something. */
enum status channels_compare(struct app *app, const struct plan *plan,
                             const struct verify_options *verify,
                             const struct predict_options *predict);

#endif
