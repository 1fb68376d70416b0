/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_plan.c - the text of a plan, read and written in every way. The canonical text is a fixed point of reading and
 * printing, as JSON it is the same plan, and editing nothing gives a text of the same plan. Both readers of YAML agree.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/yaml_json.h"
#include "plan/coverage.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "plan/text/rewrite.h"
#include "plan/schedule.h"
#include "plan/strip_device_rules.h"
#include "plan/text/warnings.h"
#include "targets.h"
#include "tests/same_tree.h"

/* `text` is a plan, and prints as `canonical`. */
static void expect_same(const char *name, const char *text, const char *canonical)
{
    struct diag diag;
    struct plan plan;
    char *printed = NULL;
    fuzz_diag_begin(&diag);
    enum status status = plan_parse(name, text, strlen(text), &plan, &diag);
    if (status != STATUS_OK) {
        diag_print(&diag, "fuzz", false, stderr);
        fprintf(stderr, "%s\n", text);
    }
    FUZZ_EXPECT(status == STATUS_OK);
    FUZZ_EXPECT(plan_text(&plan, &printed, &diag) == STATUS_OK);
    if (strcmp(printed, canonical) != 0)
        fprintf(stderr, "%s\n----\n%s\n", canonical, printed);
    FUZZ_EXPECT(strcmp(printed, canonical) == 0);
    free(printed);
    plan_fini(&plan);
    fuzz_diag_end(&diag, true);
}

static void convert(const char *canonical, struct diag *diag)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    struct json json;
    FUZZ_EXPECT(out);
    json_open(&json, out);
    FUZZ_EXPECT(yaml_write_json(canonical, strlen(canonical), &json, diag) == STATUS_OK);
    FUZZ_EXPECT(json_close(&json, diag) == STATUS_OK);
    fclose(out);
    expect_same("fuzz.json", text, canonical);
    free(text);
}

static void look_at(struct plan *plan, struct diag *diag)
{
    struct arena arena;
    struct warnings warnings;
    struct coverage coverage;
    struct plan stripped = *plan;
    struct json json;
    arena_init(&arena, 0);
    FUZZ_EXPECT(warnings_find(plan, &arena, &warnings, diag) == STATUS_OK);
    FUZZ_EXPECT(coverage_find(plan, &coverage, diag) == STATUS_OK);
    json_open(&json, fuzz_sink());
    json_begin_object(&json);
    warnings_write(&warnings, plan->file, &json);
    coverage_write(&coverage, 0, &json);
    json_end_object(&json);
    FUZZ_EXPECT(plan_strip_device_rules(&stripped, &arena, true, NULL));
    arena_fini(&arena);
}

/* The tables for people. Plans of other forms are refused. */
static void tabulate(const struct plan *plan)
{
    struct diag diag;
    struct schedule_view view = {.periods = 3};
    fuzz_diag_begin(&diag);
    enum status status = schedule_print(plan, &view, fuzz_sink(), &diag);
    FUZZ_EXPECT(status == STATUS_OK || plan->form != FORM_PIPELINE);
    if (status == STATUS_OK)
        status = schedule_print_stages(plan, fuzz_sink(), &diag);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

static void use(struct plan *plan)
{
    struct diag diag;
    struct arena arena;
    char *canonical = NULL;
    fuzz_diag_begin(&diag);
    arena_init(&arena, 0);
    FUZZ_EXPECT(plan_text(plan, &canonical, &diag) == STATUS_OK);
    expect_same("fuzz.yaml", canonical, canonical);
    convert(canonical, &diag);
    const char *edited = rewrite_text(plan->text, canonical, canonical, &arena);
    if (edited)
        expect_same("fuzz.yaml", edited, canonical);
    look_at(plan, &diag);
    arena_fini(&arena);
    free(canonical);
    fuzz_diag_end(&diag, true);
    tabulate(plan);
}

void fuzz_plan(const uint8_t *data, size_t size)
{
    struct diag diag;
    struct plan plan;
    FUZZ_EXPECT(same_tree((const char *)data, size, NULL));
    fuzz_diag_begin(&diag);
    enum status status = plan_parse("fuzz.yaml", (const char *)data, size, &plan, &diag);
    if (status == STATUS_OK) {
        use(&plan);
        plan_fini(&plan);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
}
