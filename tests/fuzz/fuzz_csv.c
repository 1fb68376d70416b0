/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_csv.c - a schedule file. A schedule that is read prints as a plan that reads back as the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/text/csv.h"
#include "plan/text/parse.h"
#include "targets.h"

void fuzz_csv(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct plan plan;
    fuzz_diag_begin(&diag);
    (void)csv_looks_like((const char *)data, size);
    enum status status = plan_parse_csv("fuzz.csv", (const char *)data, size, &plan, &diag);
    if (status == STATUS_OK) {
        fuzz_print_again(&plan);
        plan_fini(&plan);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
}
