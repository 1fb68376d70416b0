/* SPDX-License-Identifier: Apache-2.0 */
/* t_json_reader.c - JSON in pieces: tokens, hard texts, windows, decimals, compressed bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "trace/import/json_reader.h"
#include "base/json.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { WINDOW = 256 * 1024 };

static const char *const token_words[] = {
    [JSON_FAILED] = "!", [JSON_DONE] = ".",      [JSON_OBJECT] = "{", [JSON_OBJECT_END] = "}",
    [JSON_ARRAY] = "[",  [JSON_ARRAY_END] = "]", [JSON_KEY] = "k",    [JSON_STRING] = "s",
    [JSON_NUMBER] = "n", [JSON_TRUE] = "t",      [JSON_FALSE] = "f",  [JSON_NULL] = "0"};

static bool end_is_optional; /* of what is read next */

/* All tokens of a text as one line; the caller frees it. */
static char *read_all(struct bytes *bytes, struct diag *diag)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    struct json_reader reader;
    enum json_token token = JSON_FAILED;
    if (json_reader_open(&reader, bytes, diag) == STATUS_OK) {
        reader.end_is_optional = end_is_optional;
        do {
            token = json_next(&reader);
            fprintf(out, "%s", token_words[token]);
            if (token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER)
                fprintf(out, "<%.*s>", (int)reader.length, reader.text);
        } while (token > JSON_DONE);
        json_reader_close(&reader);
    }
    fclose(out);
    return text;
}

static char *read_memory(const char *text, size_t length, struct diag *diag)
{
    struct bytes *bytes;
    if (bytes_open_memory("text", text, length, &bytes, diag) != STATUS_OK)
        return strdup("cannot open");
    char *tokens = read_all(bytes, diag);
    bytes_close(bytes);
    return tokens;
}

static void reads(const char *text, const char *want)
{
    struct diag diag;
    diag_init(&diag);
    char *got = read_memory(text, strlen(text), &diag);
    tap_is_str(got, want, "%.60s", text);
    tap_ok(diag.errors == (strchr(want, '!') ? 1 : 0), "... with one message if it is wrong");
    free(got);
    diag_fini(&diag);
}

static void good_texts(void)
{
    reads("{}", "{}.");
    reads(" [ ] \n", "[].");
    reads("0", "n<0>.");
    reads("[-0.5e+10,1E5,12]", "[n<-0.5e+10>n<1E5>n<12>].");
    reads("{\"a\" :\t1,\"b\":[true,false,null]}", "{k<a>n<1>k<b>[tf0]}.");
    reads("[NaN,Infinity,-Infinity,-1]", "[000n<-1>].");
    reads("\"\"", "s<>.");
    reads("[\"a\\\"b\\\\\",\"\\/\\n\"]", "[s<a\"b\\>s</\n>].");
    reads("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "s<A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>.");
    reads("\"raw \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 is kept\"",
          "s<raw \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 is kept>.");
    reads("\"a\nb\"", "s<a\nb>.");
    reads("{\"\\u006bey\":{\"x\":{}}}", "{k<key>{k<x>{}}}.");
}

/* Bytes that are no UTF-8, and halves of pairs: a '?' each. */
static void bad_characters(void)
{
    reads("\"\xff|\xc0\x80|\xc3|\"", "s<?|"
                                     "??"
                                     "|?|>.");
    reads("\"\xed\xa0\x80\"", "s<?\?\?>.");
    reads("\"\xf4\x90\x80\x80\xf0\x80\x80\x80\"", "s<?\?\?\?\?\?\?\?>.");
    reads("\"\\ud83d\\u0041\\ude00\\ud83d\"", "s<?A?\?>.");
}

static void marks(void)
{
    reads("\xef\xbb\xbf[1]", "[n<1>].");
    reads("\xef\xbb\xbf\n{}", "{}.");
    reads("\xef\xbb\xbf", "!");
    reads("\xef\xbb", "!");
    reads("\xef\xbb\xbf\xef\xbb\xbf[]", "!");
    reads(" \xef\xbb\xbf[]", "!");
    reads("[\xef\xbb\xbf]", "[!");
}

/* The ']' of an outermost array may be missing, that of another one or a '}' not. */
static void missing_ends(void)
{
    end_is_optional = true;
    reads("[1,{}", "[n<1>{}].");
    reads("[{}]", "[{}].");
    reads("[{},\n", "[{}].");
    reads("[[1],", "[[n<1>]].");
    reads("[{},,", "[{}!");
    reads("[{},]", "[{}!");
    reads("[{\"a\":1", "[{k<a>n<1>!");
    reads("[{},\"a", "[{}!");
    reads("[[1,", "[[n<1>!");
    reads("{\"a\":[1", "{k<a>[n<1>!");
    reads("{\"a\":1", "{k<a>n<1>!");
    reads("{\"a\":1,", "{k<a>n<1>!");
    reads("[{}] ]", "[{}]!");
    reads("[", "[!");
    end_is_optional = false;
}

static void bad_texts(void)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "[1,",
                                        "[1 2]",
                                        "[1,]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{1:2}",
                                        "[}",
                                        "{]",
                                        "tru",
                                        "nul",
                                        "01",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "+1",
                                        "--1",
                                        "1-2",
                                        "\"",
                                        "\"\\x\"",
                                        "\"\\u12g4\"",
                                        "\"\\",
                                        "[] []",
                                        "{}x",
                                        "'a'",
                                        "[\"a\":1]",
                                        "{\"a\" 1}",
                                        "{\"a\":1 \"b\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct diag diag;
        diag_init(&diag);
        char *got = read_memory(texts[i], strlen(texts[i]), &diag);
        tap_ok(strchr(got, '!') && diag.errors == 1, "refused: %s (%s)", texts[i],
               diag.errors ? diag.messages[0].text : "nothing said");
        free(got);
        diag_fini(&diag);
    }
    struct diag diag;
    diag_init(&diag);
    char *got = read_memory("[1,\0,2]", 7, &diag);
    tap_is_str(got, "[n<1>!", "a byte of zero is no value");
    free(got);
    diag_fini(&diag);
}

static void nesting(void)
{
    char text[2 * JSON_MAX_NESTING + 3];
    for (int deep = JSON_MAX_NESTING; deep <= JSON_MAX_NESTING + 1; deep++) {
        memset(text, '[', (size_t)deep);
        memset(text + deep, ']', (size_t)deep);
        struct diag diag;
        diag_init(&diag);
        char *got = read_memory(text, (size_t)deep * 2, &diag);
        tap_ok((strchr(got, '!') != NULL) == (deep > JSON_MAX_NESTING), "%d levels", deep);
        free(got);
        diag_fini(&diag);
    }
}

/* The same tokens wherever a window ends: spaces in front move the text across the end of the first one. */
static void windows(void)
{
    static const char text[] =
        "{\"key\\u0041\" : [true,-12.5e3,\"a\\\\\xc3\xa9\\ud83d\\ude00z\",-Infinity],"
        "\"other\":null}";
    static const char want[] = "{k<keyA>[tn<-12.5e3>s<a\\\xc3\xa9\xf0\x9f\x98\x80z>0]k<other>0}.";
    const size_t length = sizeof text - 1;
    char *padded = malloc(WINDOW + length);
    int wrong = 0;
    memset(padded, ' ', WINDOW);
    for (size_t before = WINDOW - length; before <= WINDOW; before++) {
        struct diag diag;
        diag_init(&diag);
        memcpy(padded + before, text, length);
        char *got = read_memory(padded, before + length, &diag);
        wrong += strcmp(got, want) != 0;
        free(got);
        diag_fini(&diag);
        memset(padded + before, ' ', length);
    }
    free(padded);
    tap_is_int(wrong, 0, "a window may end at any byte");
}

/* Strings larger than the window; the buffer grows up to its limit. */
static void long_strings(void)
{
    for (int over = 0; over < 2; over++) {
        const size_t length = over ? (size_t)JSON_MAX_TOKEN + WINDOW : 3 * WINDOW;
        char *text = malloc(length);
        struct diag diag;
        diag_init(&diag);
        memset(text, 'x', length);
        text[0] = text[length - 1] = '"';
        char *got = read_memory(text, length, &diag);
        if (over)
            tap_is_str(got, "!", "a string beyond the limit is refused");
        else
            tap_is_int((long long)strlen(got), (long long)length - 2 + 4,
                       "a string of three windows");
        free(got);
        free(text);
        diag_fini(&diag);
    }
}

static void skipping(void)
{
    static const char text[] = "{\"a\":{\"x\":[1,{\"y\":2}]},\"b\":7,\"c\":[[],[]]}";
    struct diag diag;
    struct bytes *bytes;
    struct json_reader reader;
    int64_t b = 0;
    diag_init(&diag);
    bytes_open_memory("text", text, sizeof text - 1, &bytes, &diag);
    json_reader_open(&reader, bytes, &diag);
    enum json_token token = json_next(&reader);
    for (token = json_next(&reader); token == JSON_KEY; token = json_next(&reader)) {
        if (!json_text_is(&reader, "b"))
            json_skip(&reader);
        else if (json_next(&reader) == JSON_NUMBER)
            decimal_scaled(reader.text, reader.length, 0, &b);
    }
    tap_ok(token == JSON_OBJECT_END && b == 7, "values are passed over");
    tap_ok(json_next(&reader) == JSON_DONE && json_next(&reader) == JSON_DONE,
           "the end stays the end");
    json_reader_close(&reader);
    bytes_close(bytes);
    diag_fini(&diag);
}

static void decimals(void)
{
    static const struct {
        const char *text;
        int places;
        bool good;
        int64_t value;
    } cases[] = {
        {"1661203462598738.123", 3, true, INT64_C(1661203462598738123)},
        {"0.0005", 3, true, 1},
        {"0.0004999", 3, true, 0},
        {"-0.0005", 3, true, -1},
        {"1.5", 3, true, 1500},
        {"7", 3, true, 7000},
        {"1.6612034625987381e15", 3, true, INT64_C(1661203462598738100)},
        {"25E-1", 0, true, 3},
        {"9223372036854775807", 0, true, INT64_MAX},
        {"9223372036854775808", 0, false, 0},
        {"9223372036854775.8079", 3, false, 0},
        {"1e400", 0, false, 0},
        {"1e-400", 3, true, 0},
        {"0e999999999999", 3, true, 0},
        {"0", 3, true, 0},
        {"", 3, false, 0},
        {"1a", 3, false, 0},
        {"0x10", 3, false, 0},
        {"-", 3, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        bool good = decimal_scaled(cases[i].text, strlen(cases[i].text), cases[i].places, &value);
        tap_ok(good == cases[i].good && value == cases[i].value, "'%s' with %d places",
               cases[i].text, cases[i].places);
    }
}

/* ---- compressed bytes ------------------------------------------------------------------------ */

/* One member of gzip with this text; returns its length. */
static size_t compress_text(const char *text, size_t length, unsigned char *out, size_t cap)
{
    z_stream z = {0};
    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (z_const Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)length;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return cap - z.avail_out;
}

static void reads_packed(const unsigned char *data, size_t length, const char *want,
                         const char *what)
{
    struct diag diag;
    diag_init(&diag);
    char *got = read_memory((const char *)data, length, &diag);
    tap_is_str(got, want, "%s: %s", what, diag.errors ? diag.messages[0].text : "read");
    tap_ok(diag.errors == (strchr(want, '!') ? 1 : 0), "... with one message if it is wrong");
    free(got);
    diag_fini(&diag);
}

static void compressed(void)
{
    unsigned char data[1024];
    size_t first = compress_text("[1,", 3, data, sizeof data);
    size_t both = first + compress_text("2]", 2, data + first, sizeof data - first);
    reads_packed(data, both, "[n<1>n<2>].", "two members are one text");
    memset(data + both, 0, 16);
    reads_packed(data, both + 16, "[n<1>n<2>].", "padding behind them is passed over");
    reads_packed(data, both - 4, "[n<1>n<2>]!", "a truncated file");
    reads_packed(data, 10, "!", "hardly a beginning");
    size_t cut = compress_text("{\"a\":1 ,", 8, data, sizeof data);
    reads_packed(data, cut - 4, "{k<a>n<1>!", "a truncated file, in front of a key");
    first = compress_text("[1,", 3, data, sizeof data);
    both = first + compress_text("2]", 2, data + first, sizeof data - first);
    data[first + 12] ^= 0xff;
    reads_packed(data, both, "[n<1>!", "damaged data");
}

/* From a file, with the same result. */
static void files(void)
{
    char path[] = "/tmp/t_json_reader.XXXXXX";
    unsigned char data[256];
    size_t length = compress_text("{\"a\":[]}", 8, data, sizeof data);
    int fd = mkstemp(path);
    struct diag diag;
    struct bytes *bytes;
    diag_init(&diag);
    tap_ok(fd >= 0 && write(fd, data, length) == (ssize_t)length, "a file is written");
    close(fd);
    if (bytes_open(path, &bytes, &diag) == STATUS_OK) {
        char *got = read_all(bytes, &diag);
        tap_is_str(got, "{k<a>[]}.", "and read");
        free(got);
        bytes_close(bytes);
    }
    unlink(path);
    tap_ok(bytes_open(path, &bytes, &diag) == STATUS_SYSTEM,
           "a missing file is an error of the system");
    diag_fini(&diag);
}

/* ---- at random ------------------------------------------------------------------------------- */

static void write_random(struct json *json, struct random *draw, int depth)
{
    const int kind = below(draw, depth < 6 ? 6 : 4);
    if (kind == 0) {
        json_int(json, below(draw, 1000000) - 500000);
    } else if (kind == 1) {
        char text[12];
        for (size_t i = 0; i < sizeof text - 1; i++)
            text[i] = (char)(1 + below(draw, 126));
        text[below(draw, (int)sizeof text - 1)] = 0;
        text[sizeof text - 1] = 0;
        json_string(json, text);
    } else if (kind < 4) {
        json_bool(json, kind == 2);
    } else if (kind == 4) {
        json_begin_array(json);
        for (int n = below(draw, 5); n > 0; n--)
            write_random(json, draw, depth + 1);
        json_end_array(json);
    } else {
        json_begin_object(json);
        for (int n = below(draw, 5); n > 0; n--) {
            json_key(json, "a \"key\"");
            write_random(json, draw, depth + 1);
        }
        json_end_object(json);
    }
}

/* Output of our writer is read; with a byte changed it is read or refused with one message. */
static void random_texts(void)
{
    int unread = 0, unsaid = 0;
    for (unsigned seed = 0; seed < 2000; seed++) {
        struct random draw = {.seed = seed};
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        struct json json;
        struct diag diag;
        diag_init(&diag);
        json_open(&json, out);
        write_random(&json, &draw, 0);
        json_close(&json, &diag);
        fclose(out);
        char *got = read_memory(text, length, &diag);
        unread += diag.errors != 0;
        free(got);
        text[below(&draw, (int)length)] = (char)below(&draw, 256);
        got =
            read_memory(text, below(&draw, 2) ? length : (size_t)below(&draw, (int)length), &diag);
        unsaid += (strchr(got, '!') == NULL) != (diag.errors == 0) && !strchr(text, '!');
        free(got);
        free(text);
        diag_fini(&diag);
    }
    tap_is_int(unread, 0, "what our writer writes is read");
    tap_is_int(unsaid, 0, "a changed text is read, or refused with a message");
}

int main(void)
{
    good_texts();
    bad_characters();
    marks();
    missing_ends();
    bad_texts();
    nesting();
    windows();
    long_strings();
    skipping();
    decimals();
    compressed();
    files();
    random_texts();
    return tap_done();
}
