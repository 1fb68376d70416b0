/* SPDX-License-Identifier: Apache-2.0 */
/* show_channels.c - see show_channels.h. */
#include "show_channels.h"

enum status show_channels(struct app *app, const struct plan *plan,
                          const struct verify_options *verify,
                          const struct predict_options *predict)
{
    static const enum status statuses[] = {[VERDICT_PROVED] = STATUS_OK,
                                           [VERDICT_VIOLATED] = STATUS_VIOLATED,
                                           [VERDICT_UNDECIDED] = STATUS_LIMIT};
    struct channel_row rows[CHANNELS];
    struct json json;
    enum status status = channels_compare(plan, verify, predict, rows, &app->diag);
    if (status != STATUS_OK || app->silent)
        return status;
    if (app->json) {
        json_open(&json, stdout);
        channels_write(plan, rows, &json);
        status = json_close(&json, &app->diag);
    } else {
        channels_print(plan, rows, stdout);
    }
    return app_worse(statuses[channels_verdict(rows)], status);
}
