/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist.c - see dist.h: a recursive descent over
 *
 *     dist      := term [ "+" term ]                     at most one shape and one spike
 *     term      := word [ "(" [ argument { "," argument } ] ")" ]
 *     argument  := [ word "=" ] value
 *
 * Blanks are allowed between tokens. Printing gives the shortest decimals that read back equal.
 */
#include "dist.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/array.h"
#include "plan.h"

enum { MAX_VALUE_TEXT = 64 };

static const struct dist_shape {
    const char *key, *parameter;
} shapes[] = {
#define X(name, key, parameter) {key, parameter},
    DIST_LIST(X)
#undef X
};

enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

/* The limits of the parameter of a shape. */
static const struct dist_range {
    double low, high;
    const char *words;
} ranges[SHAPE_COUNT] = {
    [DIST_UNIFORM] = {0, 1, "a number from 0 to 1"},
    [DIST_NORMAL] = {0, 100, "a number from 0 to 100"},
    [DIST_LOGNORMAL] = {0, 100, "a number from 0 to 100"},
    [DIST_GAMMA] = {0, 100, "a number from 0 to 100"},
    [DIST_PARETO] = {1.0000001, 1e6, "a number above 1 (at 1 the mean is infinite) up to 1000000"},
    [DIST_EMPIRICAL] = {0, 1e9, "a factor from 0 to 1000000000"},
};

struct dist_scanner {
    const char *text, *at;
    struct arena *arena;
    const char **what;
    size_t *where;
};

static bool dist_fail_at(struct dist_scanner *scanner, const char *at, const char *expected)
{
    const char *what = *at ? arena_printf(scanner->arena, "found \"%s\", expected %s", at, expected)
                           : arena_printf(scanner->arena, "found the end, expected %s", expected);
    *scanner->what = what ? what : "out of memory";
    *scanner->where = (size_t)(at - scanner->text);
    return false;
}

static void skip_blanks(struct dist_scanner *scanner)
{
    while (*scanner->at == ' ')
        scanner->at++;
}

static bool dist_accept(struct dist_scanner *scanner, char wanted)
{
    skip_blanks(scanner);
    if (*scanner->at != wanted)
        return false;
    scanner->at++;
    return true;
}

static bool dist_expect(struct dist_scanner *scanner, char wanted)
{
    const char expected[] = {'"', wanted, '"', '\0'};
    return dist_accept(scanner, wanted) || dist_fail_at(scanner, scanner->at, expected);
}

/* True if the next token is `word`, which is then stepped over. If so, step over it. */
static bool accept_word(struct dist_scanner *scanner, const char *word)
{
    skip_blanks(scanner);
    size_t length = strlen(word);
    if (strncmp(scanner->at, word, length) != 0 || isalnum((unsigned char)scanner->at[length]))
        return false;
    scanner->at += length;
    return true;
}

static bool dist_parse_number(struct dist_scanner *scanner, const struct dist_range *range,
                              double *out)
{
    skip_blanks(scanner);
    char *end = NULL;
    bool plain = isdigit((unsigned char)*scanner->at) || *scanner->at == '.';
    bool hex = plain && (scanner->at[1] == 'x' || scanner->at[1] == 'X');
    double value = plain && !hex ? strtod(scanner->at, &end) : 0;
    if (!end || end == scanner->at || !(value >= range->low && value <= range->high))
        return dist_fail_at(scanner, scanner->at, range->words);
    scanner->at = end;
    *out = value;
    return true;
}

/* name "=" */
static bool parse_parameter_name(struct dist_scanner *scanner, const char *name)
{
    char expected[MAX_VALUE_TEXT];
    snprintf(expected, sizeof expected, "\"%s=\"", name);
    skip_blanks(scanner);
    const char *start = scanner->at;
    return (accept_word(scanner, name) && dist_accept(scanner, '=')) ||
           dist_fail_at(scanner, start, expected);
}

/* p "=" number [ "%" ] */
static bool parse_probability(struct dist_scanner *scanner, double *out)
{
    skip_blanks(scanner);
    const char *start = scanner->at;
    static const struct dist_range range = {0, 100,
                                            "a probability from 0 to 1, or from 0% to 100%"};
    double value;
    if (!dist_parse_number(scanner, &range, &value))
        return false;
    if (dist_accept(scanner, '%'))
        value /= 100;
    if (value > 1)
        return dist_fail_at(scanner, start, range.words);
    *out = value;
    return true;
}

static bool parse_duration(struct dist_scanner *scanner, int64_t *out)
{
    skip_blanks(scanner);
    char token[MAX_VALUE_TEXT];
    size_t length = strcspn(scanner->at, ",) ");
    const char *what = "a duration";
    if (length < sizeof token) {
        memcpy(token, scanner->at, length);
        token[length] = '\0';
        if (units_parse_time(token, out, &what)) {
            if (*out > PLAN_MOST_NS)
                return dist_fail_at(scanner, scanner->at, "a duration of at most 50000 s");
            scanner->at += length;
            return true;
        }
    }
    const char *prefix = "expected ";
    bool prefixed = strncmp(what, prefix, strlen(prefix)) == 0;
    return dist_fail_at(scanner, scanner->at, prefixed ? what + strlen(prefix) : what);
}

/* spike := "spike" "(" "p" "=" probability "," "add" "=" duration ")" */
static bool parse_spike(struct dist_scanner *scanner, struct dist *out)
{
    return dist_expect(scanner, '(') && parse_parameter_name(scanner, "p") &&
           parse_probability(scanner, &out->spike_probability) && dist_expect(scanner, ',') &&
           parse_parameter_name(scanner, "add") && parse_duration(scanner, &out->spike_add_ns) &&
           dist_expect(scanner, ')');
}

/* "(" number { "," number } ")" */
static bool parse_factors(struct dist_scanner *scanner, struct dist *out)
{
    double *factors = NULL;
    size_t count = 0, cap = 0;
    if (!dist_expect(scanner, '('))
        return false;
    do {
        if (count == DIST_MAX_FACTORS)
            return dist_fail_at(scanner, scanner->at, "at most 65536 factors");
        if (!ARENA_GROW(scanner->arena, factors, count, cap)) {
            *scanner->what = "out of memory";
            *scanner->where = (size_t)(scanner->at - scanner->text);
            return false;
        }
        if (!dist_parse_number(scanner, &ranges[DIST_EMPIRICAL], &factors[count]))
            return false;
        count++;
    } while (dist_accept(scanner, ','));
    out->factors = factors;
    out->factor_count = count;
    return dist_expect(scanner, ')');
}

static bool parse_shape(struct dist_scanner *scanner, struct dist *out)
{
    for (int kind = 0; kind < SHAPE_COUNT; kind++) {
        const struct dist_shape *shape = &shapes[kind];
        if (!accept_word(scanner, shape->key))
            continue;
        out->kind = (enum dist_kind)kind;
        if (kind == DIST_EMPIRICAL)
            return parse_factors(scanner, out);
        if (!shape->parameter)
            return true;
        return dist_expect(scanner, '(') && parse_parameter_name(scanner, shape->parameter) &&
               dist_parse_number(scanner, &ranges[kind], &out->parameter) &&
               dist_expect(scanner, ')');
    }
    return dist_fail_at(
        scanner, scanner->at,
        "constant, uniform, normal, lognormal, gamma, exponential, pareto, empirical "
        "or spike");
}

bool dist_parse(const char *text, struct arena *arena, struct dist *out, const char **what,
                size_t *where)
{
    struct dist_scanner scanner = {text, text, arena, what, where};
    struct dist dist = {0};
    bool spike = accept_word(&scanner, "spike");
    if (!spike) {
        if (!parse_shape(&scanner, &dist))
            return false;
        if (dist_accept(&scanner, '+')) {
            spike = accept_word(&scanner, "spike");
            if (!spike)
                return dist_fail_at(&scanner, scanner.at, "\"spike\"");
        }
    }
    if (spike && !parse_spike(&scanner, &dist))
        return false;
    skip_blanks(&scanner);
    if (*scanner.at)
        return dist_fail_at(&scanner, scanner.at, spike ? "the end" : "\"+\" or the end");
    *out = dist;
    return true;
}

/* The shortest decimal that reads back as `value`. */
static const char *number_text(double value, char buf[MAX_VALUE_TEXT])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, MAX_VALUE_TEXT, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    return buf;
}

static const char *print_factors(const struct dist *dist, struct arena *arena)
{
    size_t cap = dist->factor_count * 26 + sizeof "empirical()";
    char *text = arena_alloc(arena, cap);
    if (!text)
        return NULL;
    char buf[MAX_VALUE_TEXT];
    size_t length = (size_t)snprintf(text, cap, "empirical(");
    for (size_t i = 0; i < dist->factor_count; i++)
        length += (size_t)snprintf(text + length, cap - length, "%s%s", i ? ", " : "",
                                   number_text(dist->factors[i], buf));
    snprintf(text + length, cap - length, ")");
    return text;
}

static const char *print_shape(const struct dist *dist, struct arena *arena)
{
    const struct dist_shape *shape = &shapes[dist->kind];
    char buf[MAX_VALUE_TEXT];
    if (dist->kind == DIST_EMPIRICAL)
        return print_factors(dist, arena);
    if (!shape->parameter)
        return shape->key;
    return arena_printf(arena, "%s(%s=%s)", shape->key, shape->parameter,
                        number_text(dist->parameter, buf));
}

const char *dist_print(const struct dist *dist, struct arena *arena)
{
    const char *shape = print_shape(dist, arena);
    if (!shape || (dist->spike_probability == 0 && dist->spike_add_ns == 0))
        return shape;
    bool bare = dist->kind == DIST_CONSTANT;
    char probability[MAX_VALUE_TEXT], add[UNITS_TEXT];
    number_text(dist->spike_probability, probability);
    units_print_time(dist->spike_add_ns, add);
    return arena_printf(arena, "%s%sspike(p=%s, add=%s)", bare ? "" : shape, bare ? "" : " + ",
                        probability, add);
}
