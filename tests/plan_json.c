/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_json.c - plans as they are written, as JSON, a line each: for tests of `swsim schema plan`.
 *
 *     plan_json FILE...    a file may have several plans, each behind a line `---`
 *
 * A text that the parser refuses is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/yaml_json.h"
#include "harness.h"
#include "plan/text/parse.h"

static bool is_plan(const char *text)
{
    struct diag diag;
    struct plan plan;
    diag_init(&diag);
    const bool good = plan_parse("plan.yaml", text, strlen(text), &plan, &diag) == STATUS_OK;
    if (good)
        plan_fini(&plan);
    diag_fini(&diag);
    return good;
}

static void print_plan(const char *text)
{
    struct diag diag;
    struct json json;
    if (!is_plan(text))
        return;
    diag_init(&diag);
    json_open(&json, stdout);
    if (yaml_write_json(text, strlen(text), &json, &diag) != STATUS_OK)
        abort(); /* the parser took it */
    diag_fini(&diag);
}

int main(int argc, char **argv)
{
    static const char mark[] = "---\n";
    for (int i = 1; i < argc; i++) {
        char *text = file_text(argv[i]);
        for (char *at = text, *next; at; at = next) {
            next = strstr(at, mark);
            if (next) {
                *next = '\0';
                next += strlen(mark);
            }
            print_plan(at);
        }
        free(text);
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
