/*
 * fuzz_csv.c - a schedule file. A schedule that is read prints as a plan that reads back as the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/csv.h"
#include "plan/parse.h"
#include "plan/print.h"
#include "tests/fuzz/targets.h"

static void print_again(const struct plan *plan)
{
    struct diag diag;
    struct plan again;
    char *first = NULL, *second = NULL;
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(plan_text(plan, &first, &diag) == STATUS_OK);
    FUZZ_EXPECT(plan_parse("again.yaml", first, strlen(first), &again, &diag) == STATUS_OK);
    FUZZ_EXPECT(plan_text(&again, &second, &diag) == STATUS_OK && strcmp(first, second) == 0);
    plan_fini(&again);
    free(first);
    free(second);
    fuzz_diag_end(&diag, true);
}

void fuzz_csv(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct plan plan;
    fuzz_diag_begin(&diag);
    (void)csv_looks_like((const char *)data, size);
    enum status status = plan_parse_csv("fuzz.csv", (const char *)data, size, &plan, &diag);
    if (status == STATUS_OK) {
        print_again(&plan);
        plan_fini(&plan);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
}
