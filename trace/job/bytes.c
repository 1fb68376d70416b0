/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - a file or a piece of memory, through zlib where it is compressed. */
#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/input.h"
#include "base/system_words.h"

enum { INPUT_BYTES = 256 * 1024, GZIP_WINDOW = 15 + 16 };

struct bytes {
    const char *name;
    int fd;                      /* -1: memory */
    const unsigned char *memory; /* what is left of it */
    size_t memory_left;
    bool compressed, member_open; /* member_open: the current member has not ended */
    bool raw_end;
    const unsigned char *raw; /* read, and not yet handed out or inflated */
    size_t raw_left;
    z_stream inflater;
    unsigned char input[INPUT_BYTES];
};

static enum status read_failed(const struct bytes *bytes, struct diag *diag)
{
    return diag_error(diag, STATUS_SYSTEM, "cannot read %s: %s", bytes->name, system_words(errno));
}

/* More raw bytes behind those that are left; the first two decide, so both must be there. */
static enum status fill_raw(struct bytes *bytes, size_t at_least, struct diag *diag)
{
    if (bytes->fd < 0) {
        if (bytes->raw_left == 0) {
            /* Take the next piece of memory: all of it at once. */
            bytes->raw = bytes->memory;
            bytes->raw_left = bytes->memory_left;
            bytes->memory_left = 0;
        }
        bytes->raw_end = true;
        return STATUS_OK;
    }
    if (bytes->raw_left > 0)
        memmove(bytes->input, bytes->raw, bytes->raw_left);
    bytes->raw = bytes->input;
    while (bytes->raw_left < at_least && !bytes->raw_end) {
        ssize_t got =
            read(bytes->fd, bytes->input + bytes->raw_left, INPUT_BYTES - bytes->raw_left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return read_failed(bytes, diag);
        bytes->raw_end = got == 0;
        bytes->raw_left += (size_t)got;
    }
    return STATUS_OK;
}

static bool starts_member(const struct bytes *bytes)
{
    return bytes->raw_left >= 2 && bytes->raw[0] == 0x1f && bytes->raw[1] == 0x8b;
}

/* Look at the first bytes and make the inflater ready where they ask for it. */
static enum status recognise(struct bytes *bytes, struct diag *diag)
{
    enum status status = fill_raw(bytes, 2, diag);
    if (status != STATUS_OK || !starts_member(bytes))
        return status;
    if (inflateInit2(&bytes->inflater, GZIP_WINDOW) != Z_OK)
        return diag_no_memory(diag);
    bytes->compressed = bytes->member_open = true;
    return STATUS_OK;
}

static enum status finish_open(struct bytes *bytes, struct bytes **out, struct diag *diag)
{
    enum status status = recognise(bytes, diag);
    if (status != STATUS_OK) {
        bytes_close(bytes);
        return status;
    }
    *out = bytes;
    return STATUS_OK;
}

static struct bytes *bytes_make(const char *name)
{
    struct bytes *bytes = calloc(1, sizeof *bytes);
    if (!bytes)
        return NULL;
    bytes->name = name;
    bytes->fd = -1;
    return bytes;
}

enum status bytes_open(const char *path, struct bytes **out, struct diag *diag)
{
    struct bytes *bytes = bytes_make(path);
    if (!bytes)
        return diag_no_memory(diag);
    bytes->fd = input_open(path, diag);
    if (bytes->fd < 0) {
        free(bytes);
        return STATUS_SYSTEM;
    }
    return finish_open(bytes, out, diag);
}

enum status bytes_open_memory(const char *name, const void *data, size_t length, struct bytes **out,
                              struct diag *diag)
{
    struct bytes *bytes = bytes_make(name);
    if (!bytes)
        return diag_no_memory(diag);
    bytes->memory = data;
    bytes->memory_left = length;
    return finish_open(bytes, out, diag);
}

static enum status read_plain(struct bytes *bytes, void *buffer, size_t cap, size_t *got,
                              struct diag *diag)
{
    if (bytes->raw_left == 0 && !bytes->raw_end) {
        enum status status = fill_raw(bytes, 1, diag);
        if (status != STATUS_OK)
            return status;
    }
    const size_t count = bytes->raw_left < cap ? bytes->raw_left : cap;
    if (count > 0)
        memcpy(buffer, bytes->raw, count);
    bytes->raw += count;
    bytes->raw_left -= count;
    *got = count;
    return STATUS_OK;
}

/* Another member may follow; anything else behind a member is padding, as gzip(1) treats it. */
static enum status begin_member(struct bytes *bytes, struct diag *diag)
{
    enum status status = fill_raw(bytes, 2, diag);
    if (status != STATUS_OK || !starts_member(bytes))
        return status;
    if (inflateReset(&bytes->inflater) != Z_OK)
        return diag_no_memory(diag);
    bytes->member_open = true;
    return STATUS_OK;
}

static enum status inflate_failed(const struct bytes *bytes, int result, struct diag *diag)
{
    if (result == Z_MEM_ERROR)
        return diag_no_memory(diag);
    if (result == Z_BUF_ERROR)
        return diag_error(diag, STATUS_INPUT,
                          "%s: the compressed file ends before its data do; it is truncated",
                          bytes->name);
    return diag_error(diag, STATUS_INPUT, "%s: the compressed data are damaged", bytes->name);
}

/* One call of inflate. zlib counts in unsigned int; more than 1 GiB waits for the next call. */
static int inflate_some(struct bytes *bytes, void *buffer, size_t cap, size_t *got)
{
    enum { MOST = 1 << 30 };
    z_stream *z = &bytes->inflater;
    const uInt in = (uInt)(bytes->raw_left < MOST ? bytes->raw_left : MOST);
    const uInt out = (uInt)(cap < MOST ? cap : MOST);
    z->next_in = (z_const Bytef *)(uintptr_t)bytes->raw;
    z->avail_in = in;
    z->next_out = buffer;
    z->avail_out = out;
    int result = inflate(z, Z_NO_FLUSH);
    bytes->raw += in - z->avail_in;
    bytes->raw_left -= in - z->avail_in;
    *got = out - z->avail_out;
    return result;
}

static enum status read_inflated(struct bytes *bytes, void *buffer, size_t cap, size_t *got,
                                 struct diag *diag)
{
    *got = 0;
    while (*got == 0) {
        enum status status = STATUS_OK;
        if (!bytes->member_open)
            status = begin_member(bytes, diag);
        else if (bytes->raw_left == 0 && !bytes->raw_end)
            status = fill_raw(bytes, 1, diag);
        if (status != STATUS_OK || !bytes->member_open)
            return status;
        int result = inflate_some(bytes, buffer, cap, got);
        if (result == Z_STREAM_END)
            bytes->member_open = false;
        else if (result == Z_BUF_ERROR && !bytes->raw_end)
            continue;
        else if (result != Z_OK)
            return inflate_failed(bytes, result, diag);
    }
    return STATUS_OK;
}

enum status bytes_read(struct bytes *bytes, void *buffer, size_t cap, size_t *got,
                       struct diag *diag)
{
    return (bytes->compressed ? read_inflated : read_plain)(bytes, buffer, cap, got, diag);
}

const char *bytes_name(const struct bytes *bytes)
{
    return bytes->name;
}

void bytes_close(struct bytes *bytes)
{
    if (!bytes)
        return;
    if (bytes->fd >= 0)
        close(bytes->fd);
    if (bytes->compressed)
        inflateEnd(&bytes->inflater);
    free(bytes);
}
