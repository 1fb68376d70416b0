/* SPDX-License-Identifier: Apache-2.0 */
/* case_file.c - see case_file.h. */
#include "case_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "tap.h"

enum { MOST_EXPECTED = sizeof((struct text_case *)0)->expected / sizeof(char[512]) };

static bool begins(const char *line, const char *mark)
{
    return strncmp(line, mark, strlen(mark)) == 0;
}

/* false: it has no room for the line. */
static bool take_line(struct text_case *test, const char *line, int number)
{
    size_t length = strlen(line), bare = strcspn(line, "\n");
    if (begins(line, "--- ")) {
        test->line = number;
        return snprintf(test->title, sizeof test->title, "%.*s", (int)bare - 4, line + 4) <
               (int)sizeof test->title;
    }
    if (begins(line, "=== "))
        return test->expected_count < MOST_EXPECTED &&
               snprintf(test->expected[test->expected_count++], sizeof test->expected[0], "%.*s",
                        (int)bare - 4, line + 4) < (int)sizeof test->expected[0];
    if (!test->title[0])
        return true;
    if (test->length + length >= sizeof test->text)
        return false;
    memcpy(test->text + test->length, line, length + 1);
    test->length += length;
    return true;
}

void case_file_run(const char *name, void (*run)(const struct text_case *test))
{
    static struct text_case test;
    char path[256], line[1024];
    int number = 0, cases = 0;
    snprintf(path, sizeof path, "tests/cases/%s", name);
    FILE *file = fopen(path_source(path), "r");
    const char *base = strrchr(path, '/') + 1;
    test = (struct text_case){.file = base};
    while (file && fgets(line, sizeof line, file)) {
        number++;
        if (test.expected_count && !begins(line, "=== ")) { /* the case is complete */
            run(&test);
            cases++;
            test = (struct text_case){.file = base};
        }
        if (!take_line(&test, line, number))
            tap_ok(0, "%s:%d: the case has room for this line", base, number);
    }
    if (test.expected_count) {
        run(&test);
        cases++;
    }
    tap_ok(cases > 0, "%s: %d cases", base, cases);
    if (file)
        fclose(file);
}
