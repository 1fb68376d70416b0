/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show_channels.h - `--p2p=all`: all channels of rank programs in one table.
 */
#ifndef SWSIM_SHOW_CHANNELS_H
#define SWSIM_SHOW_CHANNELS_H

#include "app.h"

#include "api/channels.h"

/* STATUS_VIOLATED where one violates something, STATUS_LIMIT where one is undecided. */
enum status show_channels(struct app *app, const struct plan *plan,
                          const struct verify_options *verify,
                          const struct predict_options *predict);

#endif
