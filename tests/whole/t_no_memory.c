/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_no_memory.c - the parser with too little memory: one allocation after the other is refused. It says so, gives back
 * what it has (which the leak sanitizer sees), and never takes half a plan for a plan.
 *
 * An arena asks for few large blocks; with --enable-checks for each piece, which makes this test thorough. Linked
 * with --wrap, so malloc of the product and of this test is __wrap_malloc here; libraries keep their own.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/text/csv.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "plan/text/spans.h"
#include "tests/harness.h"
#include "tests/refused.h"
#include "tests/tap.h"

enum { MOST_BYTES = 8192 };

/* Read and print with the allocation `refused` refused. Returns the status, in *reached whether it came to that. */
static enum status read_with(const char *name, const char *text, size_t size, long refused,
                             bool *reached, bool *told)
{
    struct plan plan;
    struct diag diag;
    char *printed = NULL;
    diag_init(&diag);
    before_refusal = refused;
    enum status status = plan_parse(name, text, size, &plan, &diag);
    bool parsed = status == STATUS_OK;
    if (parsed)
        status = plan_text(&plan, &printed, &diag);
    *reached = before_refusal < 0 && refused >= 0;
    before_refusal = -1;
    *told = status == STATUS_OK || diag.out_of_memory || diag.errors > 0;
    if (parsed)
        plan_fini(&plan);
    free(printed);
    diag_fini(&diag);
    return status;
}

/* Refuse each allocation in turn until there are no more. */
static void starve(const char *name, const char *text, size_t size)
{
    bool reached, told;
    long refused = 0, silent = 0, wrong = 0;
    const enum status fed = read_with(name, text, size, -1, &reached, &told);
    for (reached = true; reached; refused++) {
        enum status status = read_with(name, text, size, refused, &reached, &told);
        silent += !told;
        /* A message that finds no room may be the only loss. */
        wrong += status == STATUS_OK ? fed != STATUS_OK : status != STATUS_SYSTEM && status != fed;
    }
    tap_ok(silent == 0 && wrong == 0, "%s: %ld allocations refused, %ld silent, %ld wrong", name,
           refused - 1, silent, wrong);
}

static void starve_files(const char *pattern)
{
    glob_t files = files_source(pattern);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        static char text[MOST_BYTES];
        const char *slash = strrchr(files.gl_pathv[i], '/');
        FILE *file = fopen(files.gl_pathv[i], "rb");
        size_t size = file ? fread(text, 1, sizeof text, file) : 0;
        if (file)
            fclose(file);
        starve(slash ? slash + 1 : files.gl_pathv[i], text, size);
    }
    globfree(&files);
}

/* The places of a text are known, all of them, or memory is said to be exhausted. */
static void starve_spans(const char *what, const char *text)
{
    struct arena whole;
    arena_init(&whole, 0);
    const struct span_node *want = spans_parse(text, &whole);
    long refused = 0, silent = 0, other = 0;
    for (bool reached = true; reached; refused++) {
        struct arena arena;
        arena_init(&arena, 0);
        before_refusal = refused;
        const struct span_node *got = spans_parse(text, &arena);
        reached = before_refusal < 0;
        before_refusal = -1;
        silent += !got && !arena.failed;
        other += got && (arena.failed || !spans_equal(got, want));
        arena_fini(&arena);
    }
    tap_ok(want && refused > 1 && silent == 0 && other == 0,
           "places of %s: %ld allocations refused, %ld silent, %ld with other places", what,
           refused - 1, silent, other);
    arena_fini(&whole);
}

/* Texts that take more than the first block of an arena. */
static void starve_places(void)
{
    enum { LINES = 4000, WORD = 20000 };
    static char lines[LINES * 32], word[WORD + 1] = "name: ";
    size_t length = 0;
    for (int i = 0; i < LINES; i++)
        length += (size_t)sprintf(lines + length, "name%d: [a%d, {b: c}]\n", i, i);
    starve_spans("many lines", lines);
    memset(word + strlen(word), 'x', WORD - strlen(word));
    starve_spans("a long word", word);
}

int main(void)
{
    starve_files("tests/fuzz/corpus/plan/*");
    starve_files("tests/fuzz/corpus/csv/*");
    starve_files("plans/knobs/*.yaml");
    starve_places();
    return tap_done();
}
