/* formats.c - the first bytes of a file, and the first keys of JSON. */
#include "formats.h"

#include <string.h>

#include "json_reader.h"

/* An object with `traceEvents` is a trace, one with `entries` or `pg_config` a dump, an array a trace. */
static enum status recognise_json(struct bytes *bytes, enum format *out, struct diag *diag)
{
    struct json_reader reader;
    enum status status = json_reader_open(&reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    enum json_token token = json_next(&reader);
    *out = FORMAT_KINETO;
    if (token == JSON_OBJECT)
        while ((token = json_next(&reader)) == JSON_KEY && !json_text_is(&reader, "traceEvents")) {
            if (json_text_is(&reader, "entries") || json_text_is(&reader, "pg_config")) {
                *out = FORMAT_DUMP;
                break;
            }
            json_skip(&reader);
        }
    status = reader.status;
    json_reader_close(&reader);
    return status;
}

static bool begins_json(const char *head, size_t length)
{
    size_t i = 0;
    while (i < length && head[i] && strchr(" \t\r\n", head[i]))
        i++;
    return i < length && (head[i] == '{' || head[i] == '[');
}

static enum status recognise_head(const char *path, const char *head, size_t length,
                                  enum format *out, struct diag *diag)
{
    static const char sqlite[] = "SQLite format 3";
    if (length == 0)
        return diag_error(diag, STATUS_INPUT, "%s: the file is empty", path);
    if (length >= sizeof sqlite && memcmp(head, sqlite, sizeof sqlite) == 0) {
        *out = FORMAT_NSYS;
        return STATUS_OK;
    }
    *out = (unsigned char)head[0] == 0x80 ? FORMAT_DUMP_PICKLE : FORMAT_KINETO;
    if (*out == FORMAT_DUMP_PICKLE || begins_json(head, length))
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT, "%s: neither JSON nor SQLite nor pickle: no trace", path);
}

enum status format_recognise(const char *path, enum format *out, struct diag *diag)
{
    char head[64];
    size_t got = 0;
    struct bytes *bytes;
    enum format format = FORMAT_KINETO;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = bytes_read(bytes, head, sizeof head, &got, diag);
    bytes_close(bytes);
    if (status == STATUS_OK)
        status = recognise_head(path, head, got, &format, diag);
    if (status != STATUS_OK || format != FORMAT_KINETO) {
        *out = format;
        return status;
    }
    status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = recognise_json(bytes, out, diag);
    bytes_close(bytes);
    return status;
}
