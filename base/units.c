/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.c - see units.h.
 *
 * Parsing is exact for the integer part and rounds the fraction once, behind the exponent; no signs, no
 * locale. Printing tries every unit in which the value has a finite short decimal and keeps the
 * shortest text, the larger unit where two are equally short.
 */
#include "units.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DECIMALS = 12, MAX_DIGITS = 10000 };

struct unit {
    const char *name;
    int64_t size;
};

/* Largest first. */
static const struct unit time_units[] = {
    {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}, {NULL, 0},
};

static const struct unit byte_units[] = {
    {"TiB", INT64_C(1) << 40}, {"TB", INT64_C(1000000000000)},
    {"GiB", INT64_C(1) << 30}, {"GB", INT64_C(1000000000)},
    {"MiB", INT64_C(1) << 20}, {"MB", INT64_C(1000000)},
    {"KiB", INT64_C(1) << 10}, {"kB", INT64_C(1000)},
    {"B", INT64_C(1)},         {NULL, 0},
};

static const struct unit rate_units[] = {
    {"TB/s", INT64_C(1000000000000)}, {"GiB/s", INT64_C(1) << 30}, {"GB/s", INT64_C(1000000000)},
    {"Gbit/s", INT64_C(125000000)},   {"MiB/s", INT64_C(1) << 20}, {"MB/s", INT64_C(1000000)},
    {"kB/s", INT64_C(1000)},          {"B/s", INT64_C(1)},         {NULL, 0},
};

static const struct unit flops_units[] = {
    {"PFLOPS", INT64_C(1000000000000000)},
    {"TFLOPS", INT64_C(1000000000000)},
    {"GFLOPS", INT64_C(1000000000)},
    {"MFLOPS", INT64_C(1000000)},
    {"FLOPS", INT64_C(1)},
    {NULL, 0},
};

static const struct unit *find_unit(const struct unit *units, const char *name)
{
    for (; units->name; units++)
        if (strcmp(units->name, name) == 0)
            return units;
    return NULL;
}

/* A decimal number in a text: its digits, and how many stand in front of the point once it is moved by the exponent. */
struct units_decimal {
    const char *text;
    int written, digits,
        whole; /* digits in front of the point as written, of all, of the whole part */
};

/* The i-th digit, 0 beyond them. */
static int digit_at(const struct units_decimal *number, int i)
{
    if (i < 0 || i >= number->digits)
        return 0;
    return number->text[i < number->written ? i : i + 1] - '0';
}

/* [ "e" [ "+" | "-" ] digit [ digit ] ]. Returns its end, or NULL. */
static const char *scan_exponent(const char *text, int *exponent)
{
    *exponent = 0;
    if (*text != 'e' && *text != 'E')
        return text;
    const char *at = text + 1;
    bool negative = *at == '-';
    at += negative || *at == '+';
    size_t digits = strspn(at, "0123456789");
    if (digits < 1 || digits > 2)
        return NULL;
    *exponent = atoi(at) * (negative ? -1 : 1);
    return at + digits;
}

/* digit+ [ "." digit+ ] and an exponent. Returns its end, or NULL. */
static const char *scan_decimal(const char *text, struct units_decimal *out)
{
    size_t written = strspn(text, "0123456789"), more = 0;
    const char *at = text + written;
    int exponent;
    if (*at == '.')
        more = strspn(at + 1, "0123456789");
    if (written == 0 || (*at == '.' && more == 0) || written + more > MAX_DIGITS)
        return NULL;
    at = scan_exponent(more ? at + 1 + more : at, &exponent);
    *out =
        (struct units_decimal){text, (int)written, (int)(written + more), (int)written + exponent};
    return at;
}

/* A whole part too big for int64_t becomes -1. */
static const char *units_scan_number(const char *text, int64_t *whole, long double *fraction)
{
    struct units_decimal number = {0};
    const char *end = scan_decimal(text, &number);
    *whole = 0;
    *fraction = 0;
    for (int i = 0; end && i < number.whole; i++)
        if (*whole >= 0 && (__builtin_mul_overflow(*whole, 10, whole) ||
                            __builtin_add_overflow(*whole, digit_at(&number, i), whole)))
            *whole = -1;
    for (int i = end ? number.digits : 0; i-- > number.whole;)
        *fraction = (*fraction + digit_at(&number, i)) / 10;
    return end;
}

/* whole.fraction times `size`, to the nearest; false when it does not fit. */
static bool units_scale(int64_t whole, long double fraction, int64_t size, int64_t *out)
{
    int64_t value;
    return whole >= 0 && !__builtin_mul_overflow(whole, size, &value) &&
           !__builtin_add_overflow(value, (int64_t)llroundl(fraction * (long double)size), out);
}

/* The sentences about a number without a unit; `of_zero`: about 0, which has one like any other. */
struct unit_words {
    const char *wanted, *of_zero;
};

static bool units_parse(const char *text, const struct unit *units, struct unit_words words,
                        int64_t *out, const char **what)
{
    int64_t whole, value;
    long double fraction;
    if (*text == '-') {
        *what = "expected a number that is not negative";
        return false;
    }
    const char *name = units_scan_number(text, &whole, &fraction);
    if (!name) {
        *what = "expected a decimal number and a unit";
        return false;
    }
    while (*name == ' ')
        name++;
    const struct unit *unit = find_unit(units, name);
    if (!unit) {
        *what = *name == '\0' && whole == 0 && fraction == 0 ? words.of_zero : words.wanted;
        return false;
    }
    if (!units_scale(whole, fraction, unit->size, &value)) {
        *what = "expected a number that fits in 63 bits";
        return false;
    }
    *out = value;
    return true;
}

bool units_parse_time(const char *text, int64_t *out_ns, const char **what)
{
    static const struct unit_words words = {"expected a unit: ns, us, ms or s",
                                            "expected a unit: 0ns, 0us, 0ms or 0s"};
    return units_parse(text, time_units, words, out_ns, what);
}

bool units_parse_bytes(const char *text, int64_t *out_bytes, const char **what)
{
    static const struct unit_words words = {
        "expected a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB", "expected a unit: 0B"};
    return units_parse(text, byte_units, words, out_bytes, what);
}

bool units_parse_rate(const char *text, int64_t *out_bytes_per_s, const char **what)
{
    static const char wanted[] =
        "expected a unit: B/s, kB/s, MB/s, MiB/s, GB/s, GiB/s, Gbit/s or TB/s";
    return units_parse(text, rate_units, (struct unit_words){wanted, wanted}, out_bytes_per_s,
                       what);
}

bool units_parse_flops(const char *text, int64_t *out_per_s, const char **what)
{
    static const char wanted[] = "expected a unit: FLOPS, MFLOPS, GFLOPS, TFLOPS or PFLOPS";
    return units_parse(text, flops_units, (struct unit_words){wanted, wanted}, out_per_s, what);
}

/* `value` in `unit` as a finite decimal. False when it needs more than MAX_DECIMALS places. */
static bool print_in_unit(uint64_t value, const struct unit *unit, char out[UNITS_TEXT])
{
    uint64_t size = (uint64_t)unit->size;
    uint64_t rest = value % size;
    int length = snprintf(out, UNITS_TEXT, "%" PRIu64, value / size);
    if (rest)
        out[length++] = '.';
    for (int place = 0; rest; place++) {
        if (place == MAX_DECIMALS || length + 4 >= UNITS_TEXT)
            return false;
        rest *= 10;
        out[length++] = (char)('0' + rest / size);
        rest %= size;
    }
    snprintf(out + length, UNITS_TEXT - (size_t)length, "%s", unit->name);
    return true;
}

static void units_print(int64_t value, const struct unit *units, char out[UNITS_TEXT])
{
    char candidate[UNITS_TEXT];
    uint64_t magnitude = value < 0 ? 0 : (uint64_t)value; /* negative values do not occur */
    out[0] = '\0';
    for (; units->name; units++)
        if (print_in_unit(magnitude, units, candidate) &&
            (out[0] == '\0' || strlen(candidate) < strlen(out)))
            memcpy(out, candidate, UNITS_TEXT);
}

void units_print_time(int64_t ns, char out[UNITS_TEXT])
{
    units_print(ns, time_units, out);
}

void units_print_bytes(int64_t bytes, char out[UNITS_TEXT])
{
    units_print(bytes, byte_units, out);
}

void units_print_rate(int64_t bytes_per_s, char out[UNITS_TEXT])
{
    units_print(bytes_per_s, rate_units, out);
}

void units_print_flops(int64_t per_s, char out[UNITS_TEXT])
{
    units_print(per_s, flops_units, out);
}

/* Three significant digits in the largest unit that keeps the rounded number at 1 or more. `step`
   is the factor between units; smallest unit first. */
static void units_show(double value, const char *const *names, int count, double step,
                       char out[UNITS_TEXT])
{
    double magnitude = fabs(value);
    int unit = 0;
    while (unit + 1 < count && magnitude >= step - 0.5) {
        magnitude /= step;
        unit++;
    }
    bool whole = magnitude >= 99.95 || (unit == 0 && magnitude == floor(magnitude));
    int decimals = whole ? 0 : magnitude >= 9.995 ? 1 : 2;
    snprintf(out, UNITS_TEXT, "%s%.*f %s", value < 0 ? "-" : "", decimals, fmin(magnitude, 1e15),
             names[unit]);
}

void units_show_time(double ns, char out[UNITS_TEXT])
{
    static const char *const names[] = {"ns", "us", "ms", "s"};
    units_show(ns, names, 4, 1000, out);
}

void units_show_bytes(double bytes, char out[UNITS_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    units_show(bytes, names, 5, 1024, out);
}

/* ---- shares ---------------------------------------------------------------------------------- */

enum { SHARE_DECIMALS = 6, SHARE_WHOLE_MILLIONTHS = 1000 * 1000 };

/* share := ( "0" | "1" ) [ "." digit+ ], not above 1 */
bool units_parse_share(const char *text, int *out_millionths)
{
    if ((text[0] != '0' && text[0] != '1') || (text[1] != '\0' && text[1] != '.'))
        return false;
    int value = text[0] - '0', decimals = 0;
    const char *at = text[1] == '.' ? text + 2 : text + 1;
    if (text[1] == '.' && !*at)
        return false;
    for (; isdigit((unsigned char)*at) && decimals < SHARE_DECIMALS; at++, decimals++)
        value = 10 * value + (*at - '0');
    for (; decimals < SHARE_DECIMALS; decimals++)
        value *= 10;
    if (*at || value > SHARE_WHOLE_MILLIONTHS)
        return false;
    *out_millionths = value;
    return true;
}

void units_print_share(int millionths, char out[UNITS_TEXT])
{
    int length = snprintf(out, UNITS_TEXT, "%d.%06d", millionths / SHARE_WHOLE_MILLIONTHS,
                          millionths % SHARE_WHOLE_MILLIONTHS);
    while (out[length - 1] == '0')
        out[--length] = '\0';
    if (out[length - 1] == '.')
        out[--length] = '\0';
}
