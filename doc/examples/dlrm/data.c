/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - samples in the shape of Criteo's click logs: a label, 13 numbers, 26 categories.
 *
 * Without a file they come out of the air, by a rule that can be learned. A file has a line a sample: the label, 0 or
 * 1, 13 whole numbers and 26 categories of at most 8 hexadecimal digits, between tabs; numbers and categories may be
 * missing. All of it is read at once. A number n becomes log(1 + n), a category the row of its table.
 */
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 1 + DENSE + CATEGORIES, INVENTED_IDS = 3, DIGITS = 8 };

struct line {
    float label, dense[DENSE];
    int64_t categories[CATEGORIES]; /* -1: missing */
};

struct data {
    struct line *lines; /* NULL: out of the air */
    size_t count, room;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Each of these takes a field: 1, or 0 if it is none. */
static int take_label(const char *field, struct line *line)
{
    line->label = field[0] == '1' ? 1.0F : 0.0F;
    return strcmp(field, "0") == 0 || strcmp(field, "1") == 0;
}

static int take_number(const char *field, float *out)
{
    char *end;
    errno = 0;
    long number = strtol(field, &end, 10);
    *out = log1pf(number > 0 ? (float)number : 0);
    return strspn(field, "-0123456789") == strlen(field) && *end == '\0' && errno == 0 &&
           strcmp(field, "-") != 0;
}

static int take_category(const char *field, int64_t *out)
{
    size_t length = strlen(field);
    *out = length == 0 ? -1 : (int64_t)strtoll(field, NULL, 16);
    return length <= DIGITS && strspn(field, "0123456789abcdefABCDEF") == length;
}

static int take_field(const char *field, int column, struct line *line, const char **expected)
{
    *expected = column == 0 ? "0 or 1" : column <= DENSE ? "a whole number" : "a category";
    if (column == 0)
        return take_label(field, line);
    return column <= DENSE ? take_number(field, &line->dense[column - 1])
                           : take_category(field, &line->categories[column - 1 - DENSE]);
}

/* 0; -1: it is no line, and `why` says where. */
static int parse(char *text, struct line *line, char why[256])
{
    const char *expected;
    int column = 0;
    for (char *field; (field = strsep(&text, "\t")); column++) {
        if (column >= COLUMNS || take_field(field, column, line, &expected))
            continue;
        snprintf(why, 256, "column %d: found '%.32s', expected %s", column + 1, field, expected);
        return -1;
    }
    if (column == COLUMNS)
        return 0;
    snprintf(why, 256, "found %d columns, expected %d", column, COLUMNS);
    return -1;
}

static struct line *next_line(struct data *data)
{
    if (data->count == data->room) {
        size_t room = 2 * data->room + 1024;
        struct line *lines = realloc(data->lines, room * sizeof *lines);
        if (!lines)
            return NULL;
        data->lines = lines;
        data->room = room;
    }
    return &data->lines[data->count++];
}

static int take_line(struct data *data, char *text, size_t length, char why[256])
{
    struct line *line = next_line(data);
    if (length != strlen(text)) {
        snprintf(why, 256, "found a zero byte");
        return -1;
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (line)
        return parse(text, line, why);
    snprintf(why, 256, "out of memory");
    return -1;
}

static int read_lines(struct data *data, FILE *in, const char *file, char why[512])
{
    char *text = NULL, of_line[256];
    size_t bytes = 0;
    int failed = 0;
    for (ssize_t length; !failed && (length = getline(&text, &bytes, in)) >= 0;) {
        failed = take_line(data, text, (size_t)length, of_line);
        if (failed)
            snprintf(why, 512, "%.200s:%zu: %s", file, data->count, of_line);
    }
    if (!failed && ferror(in)) {
        snprintf(why, 512, "%.200s: %s", file, strerror(errno));
        failed = -1;
    } else if (!failed && data->count == 0) {
        snprintf(why, 512, "%.200s: there are no lines", file);
        failed = -1;
    }
    free(text);
    return failed;
}

static int read_file(struct data *data, const char *file, char why[512])
{
    FILE *in = fopen(file, "r");
    if (!in) {
        snprintf(why, 512, "%.200s: %s", file, strerror(errno));
        return -1;
    }
    int failed = read_lines(data, in, file, why);
    fclose(in);
    return failed;
}

int data_open(const char *file, struct data **out, char why[512])
{
    struct data *data = calloc(1, sizeof *data);
    if (!data) {
        snprintf(why, 512, "out of memory");
        return -1;
    }
    if (file && read_file(data, file, why) != 0) {
        data_close(data);
        return -1;
    }
    *out = data;
    return 0;
}

void data_close(struct data *data)
{
    if (data)
        free(data->lines);
    free(data);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A sample before its ids have their places in the batch. */
struct sample {
    int lengths[TABLES];
    int64_t ids[TABLES][MOST_IDS];
};

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void invent(uint64_t number, float dense[DENSE], float *label, struct sample *out)
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 12345;
    float sum = 0;
    draw(&state);
    for (int i = 0; i < DENSE; i++) {
        dense[i] = (float)(draw(&state) % 1000) / 1000.0F;
        sum += (i % 2 ? 1.0F : -1.0F) * dense[i];
    }
    for (int t = 0; t < TABLES; t++) {
        out->lengths[t] = (int)(draw(&state) % (INVENTED_IDS + 1));
        for (int i = 0; i < out->lengths[t]; i++) {
            uint32_t a = draw(&state) % ROWS, b = draw(&state) % ROWS;
            out->ids[t][i] = a < b ? a : b; /* some rows are more frequent */
            sum += out->ids[t][i] % 3 == 0 ? 0.5F : -0.2F;
        }
    }
    *label = sum > 0 ? 1.0F : 0.0F;
}

static void take(const struct line *line, float dense[DENSE], float *label, struct sample *out)
{
    memcpy(dense, line->dense, sizeof line->dense);
    *label = line->label;
    memset(out->lengths, 0, sizeof out->lengths);
    for (int c = 0; c < CATEGORIES; c++) {
        int t = c % TABLES;
        if (line->categories[c] >= 0)
            out->ids[t][out->lengths[t]++] = line->categories[c] % ROWS;
    }
}

void data_fill(const struct data *data, int64_t iteration, int first, int count, struct batch *out)
{
    struct sample samples[GLOBAL_BATCH];
    int64_t *id = out->ids;
    out->count = count;
    for (int s = 0; s < count; s++) {
        uint64_t at = (uint64_t)(iteration * GLOBAL_BATCH + first + s);
        if (data->lines)
            take(&data->lines[at % data->count], out->dense[s], &out->labels[s], &samples[s]);
        else
            invent(at, out->dense[s], &out->labels[s], &samples[s]);
    }
    for (int t = 0; t < TABLES; t++)
        for (int s = 0; s < count; s++) {
            int length = out->lengths[t * count + s] = samples[s].lengths[t];
            memcpy(id, samples[s].ids[t], (size_t)length * sizeof *id);
            id += length;
        }
}
