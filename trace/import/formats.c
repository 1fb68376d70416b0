/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c - the first bytes of a file, and the first keys of JSON. */
#include "formats.h"

#include <string.h>

#include "json_reader.h"
#include "trace/record/recorder/recording.h"

/* The format that a key of the outermost object belongs to; FORMAT_JSON: any. */
static enum format format_of_key(const struct json_reader *reader)
{
    if (json_text_is(reader, "traceEvents"))
        return FORMAT_KINETO;
    return json_text_is(reader, "entries") || json_text_is(reader, "pg_config") ? FORMAT_DUMP
                                                                                : FORMAT_JSON;
}

/* An object with `traceEvents` is a trace, one with `entries` or `pg_config` a dump, an array a trace. */
static enum status recognise_json(struct bytes *bytes, enum format *out, struct diag *diag)
{
    struct json_reader reader;
    enum status status = json_reader_open(&reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    enum format format = json_next(&reader) == JSON_OBJECT ? FORMAT_JSON : FORMAT_KINETO;
    while (format == FORMAT_JSON && json_next(&reader) == JSON_KEY) {
        format = format_of_key(&reader);
        if (format == FORMAT_JSON)
            json_skip(&reader);
    }
    status = reader.status;
    json_reader_close(&reader);
    *out = format;
    return status;
}

static bool begins_json(const char *head, size_t length)
{
    size_t i = json_mark_length(head, length);
    while (i < length && head[i] && strchr(" \t\r\n", head[i]))
        i++;
    return i < length && (head[i] == '{' || head[i] == '[');
}

static enum format recognise_head(const char *head, size_t length)
{
    static const char sqlite[] = "SQLite format 3";
    if (length == 0)
        return FORMAT_EMPTY;
    if (length >= sizeof sqlite && memcmp(head, sqlite, sizeof sqlite) == 0)
        return FORMAT_NSYS;
    if (length >= sizeof RECORDING_MAGIC &&
        memcmp(head, RECORDING_MAGIC, sizeof RECORDING_MAGIC) == 0)
        return FORMAT_RECORDING;
    if ((unsigned char)head[0] == 0x80)
        return FORMAT_DUMP_PICKLE;
    return begins_json(head, length) ? FORMAT_JSON : FORMAT_OTHER;
}

enum status format_recognise(const char *path, enum format *out, struct diag *diag)
{
    char head[64];
    size_t got = 0;
    struct bytes *bytes;
    enum status status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = bytes_read(bytes, head, sizeof head, &got, diag);
    bytes_close(bytes);
    if (status != STATUS_OK)
        return status;
    *out = recognise_head(head, got);
    if (*out != FORMAT_JSON)
        return STATUS_OK;
    status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = recognise_json(bytes, out, diag);
    bytes_close(bytes);
    return status;
}

enum status format_refuse(const char *path, enum format format, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT, "%s: %s", path,
                      format == FORMAT_EMPTY ? "the file is empty"
                      : format == FORMAT_JSON
                          ? "it has no \"traceEvents\": no trace"
                          : "neither JSON nor SQLite nor pickle nor a recording: no trace");
}
