/* SPDX-License-Identifier: Apache-2.0 */
/* t_units.c - durations, sizes and distributions: parse, print, and the words of a refusal. */
#include <stdio.h>
#include <string.h>

#include "plan/dist.h"
#include "base/units.h"
#include "tests/tap.h"

/* ---- durations and sizes --------------------------------------------------------------------- */

static void test_times(void)
{
    static const struct {
        const char *text;
        int64_t ns;
        const char *printed;
    } cases[] = {
        {"0s", 0, "0s"},
        {"0.000ms", 0, "0s"},
        {"1ns", 1, "1ns"},
        {"0.2ms", 200000, "0.2ms"},
        {"1.5e3us", 1500000, "1.5ms"},
        {"25e-1ms", 2500000, "2.5ms"},
        {"1e+2ns", 100, "0.1us"},
        {"0.001E9us", 1000000000, "1s"},
        {"2e-3ns", 0, "0s"},
        {"200us", 200000, "0.2ms"},
        {"30us", 30000, "30us"},
        {"1.5us", 1500, "1.5us"},
        {"1 s", 1000000000, "1s"},
        {"0.1s", 100000000, "0.1s"},
        {"1.0000000004s", 1000000000, "1s"},
        {"0.6ns", 1, "1ns"},
        {"123456789ns", 123456789, "123456789ns"},
        {"9223372036.854775807s", INT64_MAX, "9223372036.854775807s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -1;
        const char *what = NULL;
        char printed[UNITS_TEXT];
        tap_ok(units_parse_time(cases[i].text, &ns, &what), "%s parses", cases[i].text);
        tap_is_int(ns, cases[i].ns, "%s in ns", cases[i].text);
        units_print_time(ns, printed);
        tap_is_str(printed, cases[i].printed, "%s printed", cases[i].text);
    }
}

static void test_bytes(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
        const char *printed;
    } cases[] = {
        {"0B", 0, "0B"},
        {"64MiB", INT64_C(64) << 20, "64MiB"},
        {"1kB", 1000, "1kB"},
        {"1000B", 1000, "1kB"},
        {"1.5GiB", INT64_C(3) << 29, "1.5GiB"},
        {"1023B", 1023, "1023B"},
        {"2TB", INT64_C(2000000000000), "2TB"},
        {"512KiB", 512 << 10, "0.5MiB"},
        {"8191.999TiB", INT64_C(9007198155229364), "9007198155229364B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t bytes = -1;
        const char *what = NULL;
        char printed[UNITS_TEXT];
        tap_ok(units_parse_bytes(cases[i].text, &bytes, &what), "%s parses", cases[i].text);
        tap_is_int(bytes, cases[i].bytes, "%s in bytes", cases[i].text);
        units_print_bytes(bytes, printed);
        tap_is_str(printed, cases[i].printed, "%s printed", cases[i].text);
    }
}

static void test_refused_units(void)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"", "expected a decimal number and a unit"},
        {"ms", "expected a decimal number and a unit"},
        {"1", "expected a unit: ns, us, ms or s"},
        {"0", "expected a unit: 0ns, 0us, 0ms or 0s"},
        {"0.0", "expected a unit: 0ns, 0us, 0ms or 0s"},
        {"0x", "expected a unit: ns, us, ms or s"},
        {"1.", "expected a decimal number and a unit"},
        {".5ms", "expected a decimal number and a unit"},
        {"1e100ms", "expected a decimal number and a unit"},
        {"1ems", "expected a decimal number and a unit"},
        {"1e30ms", "expected a number that fits in 63 bits"},
        {"0x1ms", "expected a unit: ns, us, ms or s"},
        {"1m", "expected a unit: ns, us, ms or s"},
        {"1ms ", "expected a unit: ns, us, ms or s"},
        {" 1ms", "expected a decimal number and a unit"},
        {"-1ms", "expected a number that is not negative"},
        {"+1ms", "expected a decimal number and a unit"},
        {"inf", "expected a decimal number and a unit"},
        {"9223372036.854775808s", "expected a number that fits in 63 bits"},
        {"99999999999999999999ns", "expected a number that fits in 63 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = 42;
        const char *what = "";
        tap_ok(!units_parse_time(cases[i].text, &ns, &what), "\"%s\" is refused", cases[i].text);
        tap_is_str(what, cases[i].what, "\"%s\": what was expected", cases[i].text);
        tap_is_int(ns, 42, "\"%s\": nothing is set", cases[i].text);
    }
}

/* Printing and parsing are inverse, for numbers of every size. */
static void test_round_trip(void)
{
    uint64_t seed = 1;
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t value = (int64_t)(seed >> 1 >> (i % 62));
        if (i % 3 == 0)
            value -= value % 1000;
        int64_t time = -1, bytes = -1;
        const char *what;
        char text[UNITS_TEXT];
        units_print_time(value, text);
        bad += !units_parse_time(text, &time, &what) || time != value;
        units_print_bytes(value, text);
        bad += !units_parse_bytes(text, &bytes, &what) || bytes != value;
    }
    tap_is_int(bad, 0, "20000 values come back, seed 1");
}

static void test_shares(void)
{
    static const char *const refused[] = {"",     ".",         ".5",   "0.",  "1.000001",
                                          "2",    "0.1234567", "-0.1", "60%", "+1",
                                          "00.5", "0.5 ",      "1e-1", "0,5"};
    static const struct {
        const char *text, *printed;
        int millionths;
    } cases[] = {
        {"0", "0", 0},           {"1", "1", 1000000},         {"1.000000", "1", 1000000},
        {"0.60", "0.6", 600000}, {"0.000001", "0.000001", 1}, {"0.999999", "0.999999", 999999}};
    char text[UNITS_TEXT];
    int millionths = 42, bad = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        tap_ok(!units_parse_share(refused[i], &millionths) && millionths == 42,
               "\"%s\" is no share", refused[i]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tap_ok(units_parse_share(cases[i].text, &millionths) && millionths == cases[i].millionths,
               "%s is a share", cases[i].text);
        units_print_share(millionths, text);
        tap_is_str(text, cases[i].printed, "%s printed", cases[i].text);
    }
    for (int value = 0; value <= 1000000; value++) {
        units_print_share(value, text);
        bad += !units_parse_share(text, &millionths) || millionths != value;
    }
    tap_is_int(bad, 0, "every share comes back");
}

static void test_shown(void)
{
    static const struct {
        double value;
        const char *time, *bytes;
    } cases[] = {
        {0, "0 ns", "0 B"},
        {5, "5 ns", "5 B"},
        {0.25, "0.25 ns", "0.25 B"},
        {999.4, "999 ns", "999 B"},
        {999.6, "1.00 us", "1000 B"},
        {1234567, "1.23 ms", "1.18 MiB"},
        {99950, "100 us", "97.6 KiB"},
        {9995, "10.0 us", "9.76 KiB"},
        {1e13, "10000 s", "9.09 TiB"},
        {-1500, "-1.50 us", "-1.46 KiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[UNITS_TEXT];
        units_show_time(cases[i].value, text);
        tap_is_str(text, cases[i].time, "%g ns for people", cases[i].value);
        units_show_bytes(cases[i].value, text);
        tap_is_str(text, cases[i].bytes, "%g bytes for people", cases[i].value);
    }
}

/* ---- distributions --------------------------------------------------------------------------- */

static void test_distributions(void)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"constant", "constant"},
        {"uniform(half=0.2)", "uniform(half=0.2)"},
        {" normal ( cv = 0.30 ) ", "normal(cv=0.3)"},
        {"lognormal(cv=0.3)", "lognormal(cv=0.3)"},
        {"gamma(cv=1)", "gamma(cv=1)"},
        {"exponential", "exponential"},
        {"pareto(alpha=2.5)", "pareto(alpha=2.5)"},
        {"empirical(0.9, 1.0,1.3)", "empirical(0.9, 1, 1.3)"},
        {"empirical(0.1234567890123456)", "empirical(0.1234567890123456)"},
        {"spike(p=1%, add=5ms)", "spike(p=0.01, add=5ms)"},
        {"constant + spike(p=0.01, add=5ms)", "spike(p=0.01, add=5ms)"},
        {"gamma(cv=0.3)+spike(p=0.5,add=10us)", "gamma(cv=0.3) + spike(p=0.5, add=10us)"},
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dist dist;
        const char *what = "";
        size_t where = 0;
        bool ok = dist_parse(cases[i].text, &arena, &dist, &what, &where);
        tap_ok(ok, "%s parses", cases[i].text);
        if (!ok)
            continue;
        const char *printed = dist_print(&dist, &arena);
        tap_is_str(printed, cases[i].printed, "%s printed", cases[i].text);
        tap_ok(printed && dist_parse(printed, &arena, &dist, &what, &where), "%s parses again",
               cases[i].printed);
    }
    arena_fini(&arena);
}

static void test_refused_distributions(void)
{
    static const struct {
        const char *text;
        size_t where;
        const char *what; /* its beginning */
    } cases[] = {
        {"", 0, "found the end, expected constant, uniform"},
        {"gauss(cv=1)", 0, "found \"gauss(cv=1)\", expected constant"},
        {"constantly", 0, "found \"constantly\", expected constant"},
        {"gamma", 5, "found the end, expected \"(\""},
        {"gamma(0.3)", 6, "found \"0.3)\", expected \"cv=\""},
        {"gamma(cv=-1)", 9, "found \"-1)\", expected a number from 0 to 100"},
        {"gamma(cv=0x1)", 9, "found \"0x1)\", expected a number from 0 to 100"},
        {"gamma(cv=nan)", 9, "found \"nan)\", expected a number from 0 to 100"},
        {"uniform(half=1.5)", 13, "found \"1.5)\", expected a number from 0 to 1"},
        {"pareto(alpha=1)", 13, "found \"1)\", expected a number above 1"},
        {"empirical()", 10, "found \")\", expected a factor"},
        {"empirical(1,)", 12, "found \")\", expected a factor"},
        {"gamma(cv=0.3", 12, "found the end, expected \")\""},
        {"gamma(cv=0.3) spike", 14, "found \"spike\", expected \"+\" or the end"},
        {"gamma(cv=0.3) + normal(cv=1)", 16, "found \"normal(cv=1)\", expected \"spike\""},
        {"spike(p=2, add=1ms)", 8, "found \"2, add=1ms)\", expected a probability"},
        {"spike(p=101%, add=1ms)", 8, "found \"101%, add=1ms)\", expected a probability"},
        {"spike(p=0.1, add=1)", 17, "found \"1)\", expected a unit: ns, us, ms or s"},
        {"spike(p=0.1, add=1ms) x", 22, "found \"x\", expected the end"},
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dist dist;
        const char *what = "";
        size_t where = 0;
        tap_ok(!dist_parse(cases[i].text, &arena, &dist, &what, &where), "\"%s\" is refused",
               cases[i].text);
        char start[512];
        snprintf(start, sizeof start, "%.*s", (int)strlen(cases[i].what), what);
        tap_is_str(start, cases[i].what, "\"%s\": what was expected", cases[i].text);
        tap_is_int((long long)where, (long long)cases[i].where, "\"%s\": where", cases[i].text);
    }
    arena_fini(&arena);
}

int main(void)
{
    test_times();
    test_bytes();
    test_refused_units();
    test_round_trip();
    test_shares();
    test_shown();
    test_distributions();
    test_refused_distributions();
    return tap_done();
}
