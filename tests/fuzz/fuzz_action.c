/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_action.c - the text of an action, in both dialects. An action that is read prints as a text that reads as the
 * same.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/actions.h"
#include "targets.h"

static void read_action(const char *text, size_t length, bool old_dialect)
{
    struct arena arena;
    struct action action, again;
    const char *what = NULL;
    size_t where = 0;
    char first[512], second[512];
    arena_init(&arena, 0);
    if (action_parse(text, length, old_dialect, &arena, &action, &what, &where)) {
        size_t printed = action_format(&action, first, sizeof first);
        FUZZ_EXPECT(printed < sizeof first);
        FUZZ_EXPECT(action_parse(first, printed, false, &arena, &again, &what, &where));
        FUZZ_EXPECT(action_format(&again, second, sizeof second) == printed &&
                    strcmp(first, second) == 0);
        action_print(&action, fuzz_sink());
    } else {
        FUZZ_EXPECT(what && *what && where <= length);
    }
    arena_fini(&arena);
}

void fuzz_action(const uint8_t *data, size_t size)
{
    read_action((const char *)data, size, false);
    read_action((const char *)data, size, true);
}
