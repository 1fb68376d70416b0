/* SPDX-License-Identifier: Apache-2.0 */
/* pass_names.c - see pass_names.h. */
#include "pass_names.h"

#include <string.h>

#include "actions.h"
#include "comms.h"

static bool is_pass(const struct action *part)
{
    return comms_is_pass(part) && part->stage >= 0 && part->stage < PASS_MOST_STAGES &&
           part->microbatch >= 0;
}

static bool read_action(const char *name, struct arena *arena, struct action *out)
{
    const char *what;
    size_t where;
    const struct action *parts;
    struct action action = {0};
    if (!strpbrk(name, "FBIW") || !strpbrk(name, "0123456789") ||
        !action_parse(name, strlen(name), false, arena, &action, &what, &where))
        return false;
    size_t count = comms_parts(&action, &parts);
    for (size_t i = 0; i < count; i++)
        if (!is_pass(&parts[i]))
            return false;
    *out = action;
    return count == 1 || count == 2;
}

/* The number behind `word`, as the action of no stage. */
static bool read_numbered(const char *name, const char *word, enum action_kind kind,
                          struct action *out)
{
    enum { MOST_DIGITS = 8 };
    int number = 0;
    size_t length = strlen(word);
    if (strncmp(name, word, length) != 0)
        return false;
    const char *digits = name + length;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > MOST_DIGITS || digits[count])
        return false;
    for (size_t i = 0; i < count; i++)
        number = 10 * number + (digits[i] - '0');
    *out = (struct action){.kind = kind, .stage = PASS_STAGE_UNNAMED, .microbatch = number};
    return true;
}

bool pass_name_read(const char *name, struct arena *arena, struct action *out)
{
    static const char prefix[] = "PP:";
    size_t skip = strncmp(name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    return read_numbered(name, "Forward ", ACTION_F, out) ||
           read_numbered(name, "Backward ", ACTION_B, out) || read_action(name + skip, arena, out);
}
