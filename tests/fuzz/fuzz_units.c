/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_units.c - the small texts of a plan. A value that is read prints as a text that reads as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/dist.h"
#include "base/units.h"
#include "targets.h"

static void read_time(const char *text)
{
    int64_t ns, again;
    const char *what = NULL;
    char printed[UNITS_TEXT];
    if (!units_parse_time(text, &ns, &what)) {
        FUZZ_EXPECT(what && *what);
        return;
    }
    units_print_time(ns, printed);
    FUZZ_EXPECT(ns >= 0 && units_parse_time(printed, &again, &what) && again == ns);
    units_show_time((double)ns, printed);
}

static void read_bytes(const char *text)
{
    int64_t bytes, again;
    const char *what = NULL;
    char printed[UNITS_TEXT];
    if (!units_parse_bytes(text, &bytes, &what)) {
        FUZZ_EXPECT(what && *what);
        return;
    }
    units_print_bytes(bytes, printed);
    FUZZ_EXPECT(bytes >= 0 && units_parse_bytes(printed, &again, &what) && again == bytes);
    units_show_bytes((double)bytes, printed);
}

static void read_share(const char *text)
{
    int millionths, again;
    char printed[UNITS_TEXT];
    if (!units_parse_share(text, &millionths))
        return;
    units_print_share(millionths, printed);
    FUZZ_EXPECT(units_parse_share(printed, &again) && again == millionths);
}

static void read_dist(const char *text)
{
    struct arena arena;
    struct dist dist, again;
    const char *what = NULL;
    size_t where = 0;
    arena_init(&arena, 0);
    if (dist_parse(text, &arena, &dist, &what, &where)) {
        const char *printed = dist_print(&dist, &arena);
        FUZZ_EXPECT(printed && dist_parse(printed, &arena, &again, &what, &where));
        FUZZ_EXPECT(strcmp(dist_print(&again, &arena), printed) == 0);
    } else {
        FUZZ_EXPECT(what && *what && where <= strlen(text));
    }
    arena_fini(&arena);
}

void fuzz_units(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    read_time(text);
    read_bytes(text);
    read_share(text);
    read_dist(text);
    free(text);
}
