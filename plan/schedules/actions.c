/* SPDX-License-Identifier: Apache-2.0 */
/* actions.c - see actions.h: one function a grammar rule. */
#include "actions.h"

#include <ctype.h>
#include <string.h>

#include "plan/plan.h"

#include "comms.h"

enum { MAX_WORD = 20 };

struct actions_scanner {
    const char *start, *at, *end;
    bool old_dialect;
    struct arena *arena;
    const char **what;
    size_t *where;
};

static bool actions_fail_at(struct actions_scanner *scanner, const char *at, const char *expected)
{
    int length = scanner->end - at > 32 ? 32 : (int)(scanner->end - at);
    const char *what =
        length ? arena_printf(scanner->arena, "found \"%.*s\", expected %s", length, at, expected)
               : arena_printf(scanner->arena, "found the end, expected %s", expected);
    *scanner->what = what ? what : "out of memory";
    *scanner->where = (size_t)(at - scanner->start);
    return false;
}

static bool actions_accept(struct actions_scanner *scanner, const char *wanted)
{
    size_t length = strlen(wanted);
    if ((size_t)(scanner->end - scanner->at) < length || memcmp(scanner->at, wanted, length) != 0)
        return false;
    scanner->at += length;
    return true;
}

static bool actions_expect(struct actions_scanner *scanner, const char *wanted,
                           const char *expected)
{
    return actions_accept(scanner, wanted) || actions_fail_at(scanner, scanner->at, expected);
}

/* digit+, below `limit` */
static bool actions_parse_number(struct actions_scanner *scanner, int limit, const char *expected,
                                 int *out)
{
    const char *start = scanner->at;
    int value = 0;
    while (scanner->at < scanner->end && isdigit((unsigned char)*scanner->at)) {
        value = 10 * value + (*scanner->at++ - '0');
        if (value >= limit)
            return actions_fail_at(scanner, start, expected);
    }
    if (scanner->at == start)
        return actions_fail_at(scanner, start, expected);
    *out = value;
    return true;
}

static bool actions_find_kind(const char *word, enum action_kind *out)
{
    for (enum action_kind kind = 0; kind < ACTION_OVERLAP_F_B; kind++) {
        if (strcmp(word, action_text(kind)) == 0) {
            *out = kind;
            return true;
        }
    }
    return false;
}

static bool find_old_kind(const char *word, enum action_kind *out)
{
    if (strcmp(word, "B") == 0)
        *out = ACTION_I;
    else if (strcmp(word, "BW") == 0)
        *out = ACTION_B;
    else
        return strcmp(word, "I") != 0 && actions_find_kind(word, out);
    return true;
}

/* operation := (upper | "_")+ */
static bool actions_parse_kind(struct actions_scanner *scanner, enum action_kind *out)
{
    const char *start = scanner->at;
    char word[MAX_WORD] = "";
    size_t length = 0;
    while (scanner->at < scanner->end && length + 1 < sizeof word &&
           (isupper((unsigned char)*scanner->at) || *scanner->at == '_'))
        word[length++] = *scanner->at++;
    if (scanner->old_dialect)
        return find_old_kind(word, out) ||
               actions_fail_at(scanner, start,
                               "F, B, W, BW or another operation of the old dialect");
    return actions_find_kind(word, out) ||
           actions_fail_at(
               scanner, start,
               "F, I, W, B, UNSHARD, RESHARD, REDUCE_GRAD, SEND_F, RECV_F, SEND_B, RECV_B, "
               "WAIT_SEND_F, WAIT_SEND_B, WAIT_RECV_F, WAIT_RECV_B, WAIT_REDUCE_GRAD or "
               "REDUCE_EMBEDDING");
}

/* stage operation [ microbatch ] */
static bool parse_simple(struct actions_scanner *scanner, struct action *out)
{
    *out = (struct action){.microbatch = -1};
    return actions_parse_number(scanner, PLAN_MAX_MODEL_STAGES, "a stage from 0 to 65535",
                                &out->stage) &&
           actions_parse_kind(scanner, &out->kind) &&
           (!action_has_microbatch(out->kind) ||
            actions_parse_number(scanner, PLAN_MAX_MICROBATCHES, "a microbatch from 0 to 65535",
                                 &out->microbatch));
}

/* The parts of an overlap: a forward, then a backward. */
static bool actions_parse_part(struct actions_scanner *scanner, bool forward, struct action *out)
{
    const char *start = scanner->at;
    if (!parse_simple(scanner, out))
        return false;
    if (forward && out->kind != ACTION_F)
        return actions_fail_at(scanner, start, "a forward, such as 0F7");
    if (!forward && out->kind != ACTION_B && out->kind != ACTION_I)
        return actions_fail_at(scanner, start, "a backward, such as 7B3");
    return true;
}

/* "(" forward ";" backward ")" "OVERLAP_F_B", after the parenthesis */
static bool parse_overlap(struct actions_scanner *scanner, struct action *out)
{
    struct action *parts = ARENA_ARRAY(scanner->arena, ACTION_PARTS, struct action);
    if (!parts) {
        *scanner->what = "out of memory";
        *scanner->where = 0;
        return false;
    }
    *out = (struct action){.kind = ACTION_OVERLAP_F_B, .microbatch = -1, .parts = parts};
    if (!actions_parse_part(scanner, true, &parts[0]) || !actions_expect(scanner, ";", "\";\"") ||
        !actions_parse_part(scanner, false, &parts[1]) || !actions_expect(scanner, ")", "\")\""))
        return false;
    out->stage = parts[0].stage;
    return actions_expect(scanner, action_text(ACTION_OVERLAP_F_B), "OVERLAP_F_B");
}

bool action_parse(const char *text, size_t length, bool old_dialect, struct arena *arena,
                  struct action *out, const char **what, size_t *where)
{
    struct actions_scanner scanner = {text, text, text + length, old_dialect, arena, what, where};
    struct action action;
    bool ok = actions_accept(&scanner, "(") ? parse_overlap(&scanner, &action)
                                            : parse_simple(&scanner, &action);
    if (!ok)
        return false;
    if (scanner.at != scanner.end)
        return actions_fail_at(&scanner, scanner.at, "the end of the action");
    *out = action;
    return true;
}

static size_t format_simple(const struct action *action, char *buf, size_t cap)
{
    const char *word = action_text(action->kind);
    if (action->kind == ACTION_IDLE)
        return (size_t)snprintf(buf, cap, "%s", word);
    if (!action_has_microbatch(action->kind))
        return (size_t)snprintf(buf, cap, "%d%s", action->stage, word);
    return (size_t)snprintf(buf, cap, "%d%s%d", action->stage, word, action->microbatch);
}

size_t action_format(const struct action *action, char *buf, size_t cap)
{
    if (action->kind != ACTION_OVERLAP_F_B)
        return format_simple(action, buf, cap);
    size_t length = 0;
    for (size_t i = 0; i < ACTION_PARTS; i++) {
        char part[64];
        format_simple(&action->parts[i], part, sizeof part);
        bool room = length < cap;
        length += (size_t)snprintf(room ? buf + length : NULL, room ? cap - length : 0, "%s%s",
                                   i ? ";" : "(", part);
    }
    bool room = length < cap;
    return length + (size_t)snprintf(room ? buf + length : NULL, room ? cap - length : 0, ")%s",
                                     action_text(action->kind));
}

void action_print(const struct action *action, FILE *out)
{
    char text[160];
    action_format(action, text, sizeof text);
    fputs(text, out);
}

/* ---- names of passes ------------------------------------------------------------------------- */

static bool actions_is_pass(const struct action *part)
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
        if (!actions_is_pass(&parts[i]))
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
