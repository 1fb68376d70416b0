/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json.c - any JSON, compressed or not, as readers of traces see it: token by token, with values passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/import/json_reader.h"
#include "targets.h"

/* Every key whose length is a multiple of `skipped` has its value passed over; 0: none. */
static enum json_token read_tokens(struct json_reader *reader, size_t skipped)
{
    enum json_token token;
    int64_t number;
    while ((token = json_next(reader)) > JSON_DONE) {
        if (token == JSON_NUMBER)
            (void)decimal_scaled(reader->text, reader->length, 3, &number);
        if (token == JSON_KEY && skipped && reader->length % skipped == 0 && !json_skip(reader))
            return JSON_FAILED;
    }
    return token;
}

static enum json_token read_with(const uint8_t *data, size_t size, size_t skipped)
{
    struct diag diag;
    struct bytes *bytes;
    struct json_reader reader;
    enum json_token last = JSON_FAILED;
    fuzz_diag_begin(&diag);
    if (bytes_open_memory("fuzz.json", data, size, &bytes, &diag) == STATUS_OK) {
        if (json_reader_open(&reader, bytes, &diag) == STATUS_OK) {
            last = read_tokens(&reader, skipped);
            FUZZ_EXPECT((last == JSON_DONE) == (reader.status == STATUS_OK));
            json_reader_close(&reader);
        }
        bytes_close(bytes);
    }
    fuzz_diag_end(&diag, last == JSON_DONE);
    return last;
}

/* Skipped values are checked like those that are read. */
void fuzz_json(const uint8_t *data, size_t size)
{
    enum json_token whole = read_with(data, size, 0);
    FUZZ_EXPECT(read_with(data, size, 1) == whole);
    FUZZ_EXPECT(read_with(data, size, 2) == whole);
}
