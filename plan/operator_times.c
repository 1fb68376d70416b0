/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_times.c - see operator_times.h.
 *
 * An operator and its shapes are one text, "aten::mm f32[2x3] f32[3x4]", which is the key. The device that is not there has
 * cuDNN switched off, so PyTorch's own operators stand in for cuDNN's, whose arguments are the same three tensors first, in
 * another order: the key of these has the three alone, sorted.
 */
#include "operator_times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/input.h"
#include "base/sort.h"
#include "base/system_words.h"

#include <errno.h>

enum { OPERATOR_KEY = OPERATOR_NAME + OPERATOR_SHAPES + 2, STANDS_FOR = 3, LINE = 1024 };

static const struct {
    const char *own, *other;
} operator_twins[] = {
    {"aten::native_batch_norm", "aten::cudnn_batch_norm"},
    {"aten::native_batch_norm_backward", "aten::cudnn_batch_norm_backward"},
    {"aten::convolution_backward", "aten::cudnn_convolution_backward"},
};

/* "aten.add_.Tensor" and "aten::add_.Tensor" are aten::add_. */
static void operator_name(const char *name, char out[OPERATOR_NAME])
{
    const char *colon = strstr(name, "::"), *dot = strchr(name, '.');
    const char *base = colon ? colon + 2 : dot ? dot + 1 : name;
    const int space = colon ? (int)(colon - name) : dot ? (int)(dot - name) : 0;
    snprintf(out, OPERATOR_NAME, "%.*s%s%.*s", space, name, space ? "::" : "",
             (int)strcspn(base, "."), base);
}

static int compare_shapes(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void operator_key(const char *name, const char *shapes, char key[OPERATOR_KEY])
{
    char plain[OPERATOR_NAME], parts[STANDS_FOR][OPERATOR_SHAPES + 1];
    int count = 0;
    operator_name(name, plain);
    for (size_t i = 0; i < sizeof operator_twins / sizeof *operator_twins; i++) {
        if (strcmp(plain, operator_twins[i].own) != 0 &&
            strcmp(plain, operator_twins[i].other) != 0)
            continue;
        for (const char *at = shapes; *at && count < STANDS_FOR; at += *at == ' ') {
            const size_t length = strcspn(at, " ");
            snprintf(parts[count++], sizeof parts[0], "%.*s", (int)length, at);
            at += length;
        }
        qsort(parts, (size_t)count, sizeof parts[0], compare_shapes);
        int used = snprintf(key, OPERATOR_KEY, "%s", operator_twins[i].own);
        for (int p = 0; p < count && used < OPERATOR_KEY; p++)
            used += snprintf(key + used, OPERATOR_KEY - (size_t)used, " %s", parts[p]);
        return;
    }
    snprintf(key, OPERATOR_KEY, "%s %.*s", plain, OPERATOR_SHAPES, shapes);
}

static uint32_t operator_find(const struct operator_times *times, const char *key)
{
    return TABLE_FIND(&times->table, table_hash_name(key), i,
                      strcmp(times->items[i].name, key) == 0);
}

bool operator_times_add(struct operator_times *times, struct arena *arena, const char *name,
                        const char *shapes, double device_ns, double host_ns)
{
    char key[OPERATOR_KEY];
    operator_key(name, shapes, key);
    uint32_t found = operator_find(times, key);
    if (found == TABLE_NONE) {
        const char *kept = arena_strdup(arena, key);
        if (!kept || !ARENA_GROW(arena, times->items, times->count, times->cap) ||
            !table_add_in(&times->table, arena, table_hash_name(key), times->count))
            return false;
        found = (uint32_t)times->count;
        times->items[times->count++] =
            (struct operator_time){.name = kept, .shapes = strchr(kept, ' ') + 1};
    }
    struct operator_time *item = &times->items[found];
    item->device_ns += device_ns;
    item->count++;
    if (host_ns >= 0) {
        item->host_ns += host_ns;
        item->host_count++;
    }
    return true;
}

const struct operator_time *operator_times_find(const struct operator_times *times,
                                                const char *name, const char *shapes)
{
    char key[OPERATOR_KEY];
    operator_key(name, shapes, key);
    const uint32_t found = operator_find(times, key);
    return found == TABLE_NONE ? NULL : &times->items[found];
}

/* ---- products of matrices ---------------------------------------------------------------------- */

/* "f32[2x3x4]": three sizes, and where it ends; 0: it is no such text. */
static int shape_sizes(const char **at, char type[8], double sizes[3])
{
    int count = 0;
    const size_t length = strcspn(*at, "[");
    if (length == 0 || length > 7 || (*at)[length] != '[')
        return 0;
    snprintf(type, 8, "%.*s", (int)length, *at);
    const char *digits = *at + length;
    do {
        char *end;
        const double size = strtod(digits + 1, &end);
        if (end == digits + 1 || count == 3 || size < 1)
            return 0;
        sizes[count++] = size;
        digits = end;
    } while (*digits == 'x');
    if (*digits != ']')
        return 0;
    *at = digits + 1 + (digits[1] == ' ');
    return count;
}

bool operator_product_of(const char *name, const char *shapes, struct operator_product *out)
{
    char plain[OPERATOR_NAME], type[8];
    double a[3], b[3];
    const char *key = strchr(name, ' '); /* a name of the table has its shapes behind it */
    snprintf(plain, sizeof plain, "%.*s", (int)(key ? (size_t)(key - name) : strlen(name)), name);
    char short_name[OPERATOR_NAME];
    operator_name(plain, short_name);
    const bool adds =
        strcmp(short_name, "aten::addmm") == 0 || strcmp(short_name, "aten::baddbmm") == 0;
    if (!adds && strcmp(short_name, "aten::mm") != 0 && strcmp(short_name, "aten::bmm") != 0)
        return false;
    if (adds && shape_sizes(&shapes, type, a) == 0)
        return false;
    const int left = shape_sizes(&shapes, out->type, a), right = shape_sizes(&shapes, type, b);
    if (left < 2 || left != right || strcmp(type, out->type) != 0)
        return false;
    const int first = left - 2;
    out->batch = first ? a[0] : 1;
    out->m = a[first];
    out->k = a[first + 1];
    out->n = b[first + 1];
    return true;
}

/* ---- a table ----------------------------------------------------------------------------------- */

static enum status operator_line(const char *path, size_t number, char *line, struct arena *arena,
                                 struct operator_times *times, struct diag *diag)
{
    char *columns[4] = {line};
    size_t count = 1;
    double us[2] = {-1, -1};
    for (char *at = line; *at; at++)
        if (*at == ',') {
            *at = 0;
            if (count == 4)
                return diag_error(diag, STATUS_INPUT, "%s:%zu: found more than four columns", path,
                                  number);
            columns[count++] = at + 1;
        }
    for (size_t i = 2; i < count; i++) {
        char *end;
        if (i == 3 && !*columns[i])
            continue;
        us[i - 2] = strtod(columns[i], &end);
        if (end == columns[i] || *end || !(us[i - 2] >= 0 && us[i - 2] < 1e12))
            return diag_error(diag, STATUS_INPUT, "%s:%zu: found '%s', expected microseconds", path,
                              number, columns[i]);
    }
    if (count < 3 || !*columns[0])
        return diag_error(diag, STATUS_INPUT,
                          "%s:%zu: expected operator,shapes,device_us[,host_us]", path, number);
    return operator_times_add(times, arena, columns[0], columns[1], 1e3 * us[0],
                              us[1] < 0 ? -1 : 1e3 * us[1])
               ? STATUS_OK
               : diag_no_memory(diag);
}

enum status operator_times_read(const char *path, struct arena *arena, struct operator_times *times,
                                struct diag *diag)
{
    char line[LINE];
    size_t number = 0;
    enum status status = STATUS_OK;
    FILE *file = input_open_stream(path, diag);
    if (!file)
        return STATUS_SYSTEM;
    while (status == STATUS_OK && fgets(line, sizeof line, file)) {
        const size_t length = strcspn(line, "\r\n");
        number++;
        if (length == sizeof line - 1)
            status = diag_error(diag, STATUS_INPUT, "%s:%zu: the line is too long", path, number);
        line[length] = 0;
        if (status == STATUS_OK && length > 0 && number > 1) /* the first has the columns' names */
            status = operator_line(path, number, line, arena, times, diag);
    }
    if (status == STATUS_OK && ferror(file))
        status = diag_error(diag, STATUS_SYSTEM, "cannot read %s: %s", path, system_words(errno));
    fclose(file);
    return status;
}
