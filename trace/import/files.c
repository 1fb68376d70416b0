/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - see files.h. */
#include "files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_reader.h"

#include "base/input.h"
#include "base/system_words.h"
#include "trace/record/recorder/recording.h"
#include "base/array.h"
#include "base/sort.h"

/* The first bytes of a file, and the first keys of JSON. */

/* The format that a key of the outermost object belongs to; FORMAT_JSON: any. */
static enum format format_of_key(const struct json_reader *reader)
{
    if (json_text_is(reader, "traceEvents"))
        return FORMAT_KINETO;
    if (json_text_is(reader, "entries") || json_text_is(reader, "pg_config"))
        return FORMAT_DUMP;
    return json_text_is(reader, "nodes")                  ? FORMAT_EXECUTION
           : json_text_is(reader, "communicators")        ? FORMAT_RAS
           : json_text_is(reader, "header")               ? FORMAT_INSPECTOR
           : json_text_is(reader, "rocprofiler-sdk-tool") ? FORMAT_ROCPROF
                                                          : FORMAT_JSON;
}

/* An array of events is a trace, one of threads with `frames` stacks. */
static enum format format_of_list(struct json_reader *reader)
{
    enum format format = FORMAT_KINETO;
    if (json_next(reader) != JSON_OBJECT)
        return format;
    while (json_next(reader) == JSON_KEY && !json_text_is(reader, "ph")) {
        if (json_text_is(reader, "frames"))
            return FORMAT_STACK_JSON;
        json_skip(reader);
    }
    return format;
}

/* An object with `traceEvents` is a trace, one with `entries` or `pg_config` a dump, an array mostly a trace. */
static enum status recognise_json(struct bytes *bytes, enum format *out, struct diag *diag)
{
    struct json_reader reader;
    enum status status = json_reader_open(&reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    reader.end_is_optional = true; /* of a list of events */
    enum format format = json_next(&reader) == JSON_OBJECT ? FORMAT_JSON : format_of_list(&reader);
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

static bool files_begins_with(const char *head, size_t length, const char *bytes, size_t count)
{
    return length >= count && memcmp(head, bytes, count) == 0;
}

/* Stacks as text: "Process 7: python train.py" of py-spy, "[New LWP 7]", "Thread 1 (Thread 0x7f (LWP 7))" or "#0  0x7f in poll"
   of gdb. */
static bool begins_stack(const char *head, size_t length)
{
    static const char *const words[] = {"[New LWP ", "[Thread debugging", "Thread 1 (", "#0  "};
    if (files_begins_with(head, length, "Process ", 8) && length > 8 &&
        isdigit((unsigned char)head[8]))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t at = 0; at + strlen(words[i]) <= length; at++)
            if ((at == 0 || head[at - 1] == '\n') &&
                files_begins_with(head + at, length - at, words[i], strlen(words[i])))
                return true;
    return false;
}

/* The length of the first message, and in it the version: field 1, a short text that begins with a digit. */
static bool begins_chakra(const unsigned char *head, size_t length)
{
    enum { VERSION = 1 << 3 | 2, LONGEST = 15 };
    size_t at = 0;
    while (at < length && at < 5 && head[at] >= 0x80)
        at++;
    return at + 4 < length && head[at + 1] == VERSION && head[at + 2] > 0 &&
           head[at + 2] <= LONGEST && isdigit(head[at + 3]);
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
    if (begins_chakra((const unsigned char *)head, length))
        return FORMAT_CHAKRA;
    return begins_stack(head, length)  ? FORMAT_STACK
           : begins_json(head, length) ? FORMAT_JSON
                                       : FORMAT_OTHER;
}

/* What a file that is neither JSON, SQLite nor a pickle is, by its bytes and by its name. */
static enum format recognise_other(const char *path, const char *head, size_t length)
{
    enum { TAR_AT = 257 };
    const char *dot = strrchr(path, '.');
    if (length > TAR_AT && files_begins_with(head + TAR_AT, length - TAR_AT, "ustar", 5))
        return FORMAT_TAR;
    if (files_begins_with(head, length, "PK\3\4", 4))
        return FORMAT_ZIP;
    if (files_begins_with(head, length, "\x28\xb5\x2f\xfd", 4))
        return FORMAT_ZSTD;
    if (files_begins_with(head, length,
                          "\xfd"
                          "7zXZ",
                          5))
        return FORMAT_XZ;
    if (dot && (strcmp(dot, ".nsys-rep") == 0 || strcmp(dot, ".qdrep") == 0))
        return FORMAT_REPORT;
    return dot && strcmp(dot, ".pb") == 0 ? FORMAT_XPLANE : FORMAT_OTHER;
}

enum status format_recognise(const char *path, enum format *out, struct diag *diag)
{
    char head[512];
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
    if (*out == FORMAT_OTHER)
        *out = recognise_other(path, head, got);
    if (*out != FORMAT_JSON)
        return STATUS_OK;
    status = bytes_open(path, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = recognise_json(bytes, out, diag);
    bytes_close(bytes);
    return status;
}

/* What it is, and the one command that helps. */
static const char *refusal_words(enum format format)
{
    switch (format) {
    case FORMAT_EMPTY: return "the file is empty";
    case FORMAT_JSON: return "not a trace: it has no \"traceEvents\"";
    case FORMAT_ROCPROF:
        return "a trace of rocprofv3 in its own JSON, which is not read: profile with "
               "torch.profiler";
    case FORMAT_REPORT:
        return "a report of Nsight Systems in its own format: 'nsys export --type sqlite FILE' "
               "writes what is read";
    case FORMAT_XPLANE: return "a profile of XLA, which is not read";
    case FORMAT_TAR: return "an archive: unpack it with 'tar xf FILE', and import its folder";
    case FORMAT_ZIP: return "an archive: unpack it with 'unzip FILE', and import its folder";
    case FORMAT_ZSTD: return "compressed with zstd: 'unzstd FILE' writes what is read (or gzip)";
    case FORMAT_XZ: return "compressed with xz: 'unxz FILE' writes what is read (or gzip)";
    case FORMAT_NSYS:
    case FORMAT_KINETO:
    case FORMAT_EXECUTION:
    case FORMAT_DUMP:
    case FORMAT_DUMP_PICKLE:
    case FORMAT_STACK:
    case FORMAT_STACK_JSON:
    case FORMAT_RAS:
    case FORMAT_INSPECTOR:
    case FORMAT_RECORDING:
    case FORMAT_CHAKRA:
    case FORMAT_OTHER: break;
    }
    return "not a trace: the file is neither JSON, SQLite, a pickle nor a recording of swsim "
           "record";
}

enum status format_refuse(const char *path, enum format format, struct diag *diag)
{
    return diag_error(diag, STATUS_INPUT, "%s: %s", path, refusal_words(format));
}

struct files_listing {
    struct arena *arena;
    struct import_files files;
    struct diag *diag;
};

static enum status add_file(struct files_listing *listing, const char *path, enum format format)
{
    struct import_files *files = &listing->files;
    if (!ARENA_GROW(listing->arena, files->items, files->count, files->cap))
        return diag_no_memory(listing->diag);
    files->items[files->count++] = (struct import_file){path, format};
    return STATUS_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* The digits at `text` without zeros in front, and how many they are. */
static const char *files_digits(const char *text, size_t *count)
{
    while (*text == '0' && isdigit((unsigned char)text[1]))
        text++;
    *count = strspn(text, "0123456789");
    return text;
}

/* As strcmp, but runs of digits are numbers. */
static int files_compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t a_count, b_count;
            a = files_digits(a, &a_count);
            b = files_digits(b, &b_count);
            const int order = a_count == b_count  ? strncmp(a, b, a_count)
                              : a_count < b_count ? -1
                                                  : 1;
            if (order)
                return order;
            a += a_count;
            b += b_count;
        } else if (*a == *b) {
            a++;
            b++;
        } else {
            break;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int files_by_name(const void *left, const void *right)
{
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    return compare_then(files_compare_names(a, b), strcmp(a, b));
}

struct paths {
    const char **items;
    size_t count, cap;
};

/* The paths of the files of a folder, without hidden ones. */
static enum status list_folder(struct files_listing *listing, const char *folder, DIR *stream,
                               struct paths *out)
{
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(stream)); errno = 0) {
        if (entry->d_name[0] == '.')
            continue;
        const char *path = arena_printf(listing->arena, "%s/%s", folder, entry->d_name);
        if (!path || !ARENA_GROW(listing->arena, out->items, out->count, out->cap))
            return diag_no_memory(listing->diag);
        if (input_is_ordinary(path))
            out->items[out->count++] = path;
    }
    if (errno)
        return diag_error(listing->diag, STATUS_SYSTEM, "cannot read %s: %s", folder,
                          system_words(errno));
    SORT(out->items, out->count, files_by_name);
    return STATUS_OK;
}

static enum status add_from_folder(struct files_listing *listing, const char *folder,
                                   const struct paths *paths)
{
    const size_t before = listing->files.count;
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < paths->count; i++) {
        enum format format;
        status = format_recognise(paths->items[i], &format, listing->diag);
        if (status == STATUS_OK && format_is_usable(format))
            status = add_file(listing, paths->items[i], format);
    }
    const size_t used = listing->files.count - before;
    if (status != STATUS_OK)
        return status;
    if (used == 0)
        return diag_error(listing->diag, STATUS_INPUT,
                          "%s: no file in it is a trace, a dump or a recording", folder);
    if (used < paths->count)
        diag_note(listing->diag, "%s: %zu of %zu files are no traces, dumps or recordings", folder,
                  paths->count - used, paths->count);
    return STATUS_OK;
}

static enum status add_folder(struct files_listing *listing, const char *folder)
{
    struct paths paths = {0};
    DIR *stream = opendir(folder);
    if (!stream)
        return diag_error(listing->diag, STATUS_SYSTEM, "cannot open %s: %s", folder,
                          system_words(errno));
    enum status status = list_folder(listing, folder, stream, &paths);
    closedir(stream);
    return status == STATUS_OK ? add_from_folder(listing, folder, &paths) : status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool files_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static enum status add_named(struct files_listing *listing, const char *path)
{
    enum format format;
    if (access(path, F_OK) == 0 && !input_is_ordinary(path))
        return diag_error(listing->diag, STATUS_INPUT,
                          "%s: not an ordinary file: a trace is read twice", path);
    enum status status = format_recognise(path, &format, listing->diag);
    if (status == STATUS_OK && !format_is_usable(format))
        status = format_refuse(path, format, listing->diag);
    return status == STATUS_OK ? add_file(listing, path, format) : status;
}

static const char *files_kind_of(enum format format)
{
    return format_is_trace(format)      ? "trace"
           : format == FORMAT_RECORDING ? "recording"
           : format == FORMAT_CHAKRA    ? "trace of Chakra"
                                        : "dump";
}

static enum status files_check_kinds(const struct import_files *files, struct diag *diag)
{
    for (size_t i = 1; i < files->count; i++) {
        const char *first = files_kind_of(files->items[0].format),
                   *other = files_kind_of(files->items[i].format);
        if (strcmp(first, other) != 0)
            return diag_error(diag, STATUS_INPUT,
                              "%s and %s do not belong together: one is a %s, the other a %s",
                              files->items[0].path, files->items[i].path, first, other);
    }
    return STATUS_OK;
}

enum status files_list(const char *const *paths, size_t count, struct arena *arena,
                       struct import_files *out, struct diag *diag)
{
    struct files_listing listing = {.arena = arena, .diag = diag};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = files_is_folder(paths[i]) ? add_folder(&listing, paths[i])
                                           : add_named(&listing, paths[i]);
    if (status == STATUS_OK)
        status = files_check_kinds(&listing.files, diag);
    if (status == STATUS_OK)
        *out = listing.files;
    return status;
}
