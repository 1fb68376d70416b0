/* SPDX-License-Identifier: Apache-2.0 */
/* t_json.c - the JSON writer: what it writes, byte for byte, and that it reports failed writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/tap.h"

/* A writer into memory, and what came out of it. */
struct sink {
    struct json json;
    struct diag diag;
    FILE *file;
    char *text;
    size_t length;
};

static struct json *sink_open(struct sink *sink)
{
    diag_init(&sink->diag);
    sink->file = open_memstream(&sink->text, &sink->length);
    if (!sink->file) {
        perror("open_memstream");
        exit(1);
    }
    json_open(&sink->json, sink->file);
    return &sink->json;
}

static void sink_is(struct sink *sink, const char *want, const char *what)
{
    tap_is_int(json_close(&sink->json, &sink->diag), STATUS_OK, "%s: written", what);
    fclose(sink->file);
    tap_is_str(sink->text, want, "%s", what);
    free(sink->text);
    diag_fini(&sink->diag);
}

static void test_nesting(void)
{
    struct sink sink;
    struct json *json = sink_open(&sink);
    json_begin_object(json);
    json_put_string(json, "plan", "a.yaml");
    json_key(json, "list");
    json_begin_array(json);
    json_int(json, 1);
    json_begin_array(json);
    json_end_array(json);
    json_begin_object(json);
    json_end_object(json);
    json_null(json);
    json_bool(json, false);
    json_end_array(json);
    json_put_bool(json, "yes", true);
    json_put_int(json, "least", INT64_MIN);
    json_put_string(json, "none", NULL);
    json_put_thousandths(json, "us", -1005);
    json_put_thousandths(json, "whole", 2000);
    json_put_thousandths(json, "part", -5);
    json_end_object(json);
    json_begin_array(json);
    json_end_array(json);
    json_int(json, 7);
    sink_is(&sink,
            "{\"plan\":\"a.yaml\",\"list\":[1,[],{},null,false],\"yes\":true,"
            "\"least\":-9223372036854775808,\"none\":null,\"us\":-1.005,\"whole\":2,\"part\":-0."
            "005}\n[]\n7\n",
            "objects, arrays and one line for each value at the top");
}

static void string_is(const char *text, const char *want, const char *what)
{
    struct sink sink;
    json_string(sink_open(&sink), text);
    sink_is(&sink, want, what);
}

static void test_strings(void)
{
    string_is("", "\"\"\n", "the empty string");
    string_is("a\"b\\c/", "\"a\\\"b\\\\c/\"\n", "quote and backslash");
    string_is("\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"\n",
              "control characters");
    string_is("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"\n",
              "valid UTF-8 stays");
    string_is("a\xFF"
              "b",
              "\"a\xEF\xBF\xBD"
              "b\"\n",
              "a byte that is never UTF-8");
    string_is("\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n", "an overlong form");
    string_is("\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n", "a surrogate");
    string_is("\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n", "a sequence cut short");
    string_is("\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n",
              "beyond U+10FFFF");
}

static void double_is(double value, const char *want)
{
    char text[JSON_DOUBLE_TEXT];
    json_print_double(value, text);
    tap_is_str(text, want, "the double %s", want);
}

/* Every bit pattern that is a number reads back as itself. */
static void test_round_trip(void)
{
    uint64_t bits = 0x9E3779B97F4A7C15u;
    int wrong = 0;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char text[JSON_DOUBLE_TEXT];
        json_print_double(value, text);
        back = strtod(text, NULL);
        wrong += memcmp(&back, &value, sizeof back) != 0;
    }
    tap_is_int(wrong, 0, "20000 bit patterns read back as themselves");
}

static void test_doubles(void)
{
    double_is(0, "0");
    double_is(-0.0, "-0");
    double_is(0.1, "0.1");
    double_is(1.0 / 3.0, "0.3333333333333333");
    double_is(1000000, "1000000");
    double_is(1e300, "1e+300");
    double_is(5e-324, "5e-324");
    double_is(1.7976931348623157e308, "1.7976931348623157e+308");
    double_is(NAN, "null");
    double_is(-INFINITY, "null");
    test_round_trip();
}

static void test_full_disk(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        tap_skip("no /dev/full here");
        return;
    }
    struct diag diag;
    struct json json;
    diag_init(&diag);
    json_open(&json, full);
    json_string(&json, "lost");
    tap_is_int(json_close(&json, &diag), STATUS_SYSTEM, "a full disk is reported");
    tap_is_int((long long)diag.errors, 1, "with one message");
    fclose(full);
    diag_fini(&diag);
}

int main(void)
{
    test_nesting();
    test_strings();
    test_doubles();
    test_full_disk();
    return tap_done();
}
