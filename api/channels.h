/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.h - `--p2p`: rank programs under another channel than that of the plan, or under all of them.
 */
#ifndef SWSIM_CHANNELS_H
#define SWSIM_CHANNELS_H

#include <stdio.h>

#include "check/verify.h"
#include "base/json.h"
#include "plan/plan.h"
#include "sim/predict/predict.h"

/* The words of the option, in the order of enum fifo_rule; then all. */
#define CHANNELS_CHOICE "group|pair|direction|edge|all"
enum { CHANNELS_ALL = FIFO_EDGE + 1, CHANNELS_NOT_GIVEN = -1 };

/* One of these words; false: it is none. */
bool channels_parse(const char *word, int *out);

/* Set the channel that was chosen; nothing for all or none. STATUS_USAGE: the plan has no messages of that kind. */
enum status channels_choose(struct plan *plan, int choice, struct diag *diag);

/* The verdict and the figures of a plan under one channel. */
struct channel_row {
    enum fifo_rule fifo;
    bool batch;
    const char *who; /* does it so */
    enum verdict verdict;
    const char *violated; /* a property; NULL: none */
    bool hangs;
    double makespan_ns, span_ns, rate; /* NAN: it hangs */
};
enum { CHANNELS = 6 };

/* The kinds of channel: the ones that hang, and the costs of the others. */
enum status channels_compare(const struct plan *plan, const struct verify_options *verify,
                             const struct predict_options *predict,
                             struct channel_row rows[CHANNELS], struct diag *diag);
/* Violated where one of the rows is, else undecided where one is. */
enum verdict channels_verdict(const struct channel_row rows[CHANNELS]);
/* A table. */
void channels_print(const struct plan *plan, const struct channel_row rows[CHANNELS], FILE *out);
/* One JSON object; its keys are a contract. */
void channels_write(const struct plan *plan, const struct channel_row rows[CHANNELS],
                    struct json *json);

#endif
