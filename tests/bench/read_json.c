/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_json.c - `read_json FILE`: how fast JSON is read here, compressed or not.
 *
 * Prints the bytes of the text, and MB/s of process time, inflation included: of our reader's tokens, and of a bare
 * scan that inflates and counts the bytes which are structure. The best of five rounds, one of each in turn.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "trace/import/json_reader.h"

enum { ROUNDS = 5, CHUNK = 256 * 1024 };

/* The bytes of a text, and its tokens, or those bytes that are structure. */
struct counted {
    size_t bytes, items;
};

static double process_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static enum status read_tokens(struct bytes *bytes, struct counted *out, struct diag *diag)
{
    struct json_reader reader;
    enum status status = json_reader_open(&reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    enum json_token token = JSON_NULL;
    for (*out = (struct counted){0}; token != JSON_DONE && token != JSON_FAILED; out->items++)
        token = json_next(&reader);
    status = reader.status;
    json_reader_close(&reader);
    return status;
}

static enum status scan(struct bytes *bytes, struct counted *out, struct diag *diag)
{
    static const unsigned char structure[256] = {
        ['{'] = 1, ['}'] = 1, ['['] = 1, [']'] = 1, [','] = 1, [':'] = 1, ['"'] = 1, ['\\'] = 1};
    static unsigned char buffer[CHUNK];
    size_t got = 1;
    enum status status = STATUS_OK;
    for (*out = (struct counted){0}; status == STATUS_OK && got > 0; out->bytes += got) {
        got = 0;
        status = bytes_read(bytes, buffer, CHUNK, &got, diag);
        for (size_t i = 0; i < got; i++)
            out->items += structure[buffer[i]];
    }
    return status;
}

typedef enum status reading(struct bytes *bytes, struct counted *out, struct diag *diag);

/* *best_s: the least time so far. */
static enum status time_reading(const char *path, reading *read, struct counted *out,
                                double *best_s, struct diag *diag)
{
    struct bytes *bytes;
    const double begin = process_seconds();
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = read(bytes, out, diag);
    bytes_close(bytes);
    const double took = process_seconds() - begin;
    *best_s = took < *best_s ? took : *best_s;
    return status;
}

int main(int argc, char **argv)
{
    struct diag diag;
    struct counted structure = {0}, tokens = {0};
    double scan_s = 1e9, tokens_s = 1e9;
    enum status status = argc == 2 ? STATUS_OK : STATUS_USAGE;
    diag_init(&diag);
    for (int i = 0; status == STATUS_OK && i < ROUNDS; i++) {
        status = time_reading(argv[1], scan, &structure, &scan_s, &diag);
        if (status == STATUS_OK)
            status = time_reading(argv[1], read_tokens, &tokens, &tokens_s, &diag);
    }
    diag_print(&diag, "read_json", false, stderr);
    diag_fini(&diag);
    if (status != STATUS_OK)
        return 1;
    printf("%zu bytes, %zu of them structure, %zu tokens\n", structure.bytes, structure.items,
           tokens.items);
    printf("%-24s %6.0f MB/s\n", "a bare scan", (double)structure.bytes / scan_s / 1e6);
    printf("%-24s %6.0f MB/s\n", "swsim's reader", (double)structure.bytes / tokens_s / 1e6);
    return 0;
}
