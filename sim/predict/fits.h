/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.h - whether the memory of recorded ranks (plan->memory) fits on a GPU, and what it is for.
 */
#ifndef SWSIM_FITS_H
#define SWSIM_FITS_H

#include <stdio.h>

#include "plan/hardware.h"

/* STATUS_OK: all ranks fit, or the recording does not know; STATUS_VIOLATED: some rank does not. The report goes to `out`, unless
   that is NULL. */
enum status fits_report(const struct plan *plan, const struct hardware *hardware, FILE *out,
                        struct diag *diag);

#endif
