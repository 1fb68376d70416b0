/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certificate.h - the file of `swsim verify --certificate`: why a plan is proved, for swcheck.
 */
#ifndef SWSIM_CMD_CERTIFICATE_H
#define SWSIM_CMD_CERTIFICATE_H

#include "app.h"

#include "check/verify.h"

/* Write a certificate for each of the reports, of one plan and several drivers. A property that none covers is told in a note, and nothing
   is written where not all are proved. */
enum status certificate_save(struct app *app, const struct plan *plan,
                             const struct verify_options *options,
                             const struct verify_report *reports, int count, const char *path);

#endif
