/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - samples in the shape of Criteo's click logs: a label, 13 numbers, categories. Without a file they come out
 * of the air, by a rule that can be learned; a file has lines of label, 13 integers and 26 hexadecimal
 * categories between tabs, of which some may be empty; it is read from its beginning again when it ends.
 */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    float label, dense[DENSE];
    uint32_t categories[26];
};

struct data {
    struct line *lines; /* NULL: out of the air */
    size_t count;
};

/* The next field of a line, ended at its tab. */
static char *cut(char **rest)
{
    char *field = *rest, *end = field + strcspn(field, "\t\n");
    *rest = *end == '\t' ? end + 1 : end;
    *end = '\0';
    return field;
}

static void parse(char *text, struct line *line)
{
    line->label = strtof(cut(&text), NULL);
    for (int i = 0; i < DENSE; i++)
        line->dense[i] = log1pf(fmaxf(strtof(cut(&text), NULL), 0));
    for (int i = 0; i < 26; i++)
        line->categories[i] = (uint32_t)strtoul(cut(&text), NULL, 16);
}

static int read_lines(struct data *data, FILE *in)
{
    char text[4096];
    while (fgets(text, sizeof text, in)) {
        if (data->count % 1024 == 0) {
            struct line *more = realloc(data->lines, (data->count + 1024) * sizeof *more);
            if (!more)
                return -1;
            data->lines = more;
        }
        parse(text, &data->lines[data->count++]);
    }
    return data->count ? 0 : -1;
}

struct data *data_open(const char *file)
{
    struct data *data = calloc(1, sizeof *data);
    FILE *in = file ? fopen(file, "r") : NULL;
    int failed = !data || (file && !in) || (in && read_lines(data, in));
    if (in)
        fclose(in);
    if (!failed)
        return data;
    data_close(data);
    return NULL;
}

void data_close(struct data *data)
{
    if (data)
        free(data->lines);
    free(data);
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void invent(uint64_t number, struct batch *out, int sample, int64_t ids[TABLES][MOST_IDS])
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 12345;
    float sum = 0;
    draw(&state);
    for (int i = 0; i < DENSE; i++) {
        out->dense[sample][i] = (float)(draw(&state) % 1000) / 1000.0F;
        sum += (i % 2 ? 1.0F : -1.0F) * out->dense[sample][i];
    }
    for (int t = 0; t < TABLES; t++) {
        int *length = &out->lengths[t * out->count + sample];
        *length = (int)(draw(&state) % (MOST_IDS + 1));
        for (int i = 0; i < *length; i++) {
            uint32_t a = draw(&state) % ROWS, b = draw(&state) % ROWS;
            ids[t][i] = a < b ? a : b; /* some rows are more frequent */
            sum += ids[t][i] % 3 == 0 ? 0.5F : -0.2F;
        }
    }
    out->labels[sample] = sum > 0 ? 1.0F : 0.0F;
}

static void take(const struct line *line, struct batch *out, int sample,
                 int64_t ids[TABLES][MOST_IDS])
{
    memcpy(out->dense[sample], line->dense, sizeof line->dense);
    out->labels[sample] = line->label;
    for (int t = 0; t < TABLES; t++) {
        int *length = &out->lengths[t * out->count + sample];
        *length = 0;
        for (int i = t; i < 26 && *length < MOST_IDS; i += TABLES)
            if (line->categories[i])
                ids[t][(*length)++] = line->categories[i] % ROWS;
    }
}

void data_fill(const struct data *data, int64_t number, int first, int count, struct batch *out)
{
    int64_t(*ids)[TABLES][MOST_IDS] = calloc((size_t)count, sizeof *ids);
    int64_t *id = out->ids;
    if (!ids)
        abort(); /* a few kilobytes */
    out->count = count;
    for (int s = 0; s < count; s++) {
        uint64_t at = (uint64_t)(number * GLOBAL_BATCH + first + s);
        if (data->lines)
            take(&data->lines[at % data->count], out, s, ids[s]);
        else
            invent(at, out, s, ids[s]);
    }
    for (int t = 0; t < TABLES; t++)
        for (int s = 0; s < count; s++)
            for (int i = 0; i < out->lengths[t * count + s]; i++)
                *id++ = ids[s][t][i];
    free(ids);
}
