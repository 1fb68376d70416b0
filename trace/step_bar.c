/* SPDX-License-Identifier: Apache-2.0 */
/* step_bar.c - see step_bar.h. */
#include "step_bar.h"

#include <math.h>
#include <string.h>

#include "base/columns.h"
#include "base/printable.h"

static struct step_part *step_bar_find(struct step_bar *bar, const char *name)
{
    for (size_t i = 0; i < bar->count; i++)
        if (strcmp(bar->parts[i].name, name) == 0)
            return &bar->parts[i];
    return NULL;
}

void step_bar_add(struct step_bar *bar, const char *name, double share)
{
    struct step_part *part = step_bar_find(bar, name);
    if (!part && bar->count >= STEP_BAR_PARTS - 1) {
        name = "others";
        part = step_bar_find(bar, name);
    }
    if (!part) {
        part = &bar->parts[bar->count++];
        *part = (struct step_part){.name = name};
    }
    part->share += share;
}

void step_bar_scale(struct step_bar *bar, double share)
{
    double sum = 0;
    for (size_t i = 0; i < bar->count; i++)
        sum += bar->parts[i].share;
    for (size_t i = 0; i < bar->count && sum > 0; i++)
        bar->parts[i].share *= share / sum;
}

/* As much of a name as fits; what cannot be shown is '?'. Returns the cells. */
static int put_name(const char *name, int cells, FILE *out)
{
    int used = 0;
    for (const char *at = name; *at;) {
        unsigned code;
        size_t bytes = printable_decode(at, &code);
        bool seen = code != 0 && !printable_acts(code);
        int columns = seen ? columns_of_character(code) : 1;
        if (used + columns > cells)
            break;
        if (seen)
            fwrite(at, 1, bytes, out);
        else
            fputc('?', out);
        used += columns;
        at += bytes;
    }
    return used;
}

/* Pale grounds of the 256 colours, black on them. */
static void put_part(const struct step_part *part, size_t number, int cells, bool color, FILE *out)
{
    static const int grounds[] = {153, 223, 151, 218, 189, 229, 180};
    if (color)
        fprintf(out, "\033[38;5;16;48;5;%dm", grounds[number % (sizeof grounds / sizeof *grounds)]);
    else if (cells > 0)
        fputc('|', out);
    int left = color ? cells : cells - 1;
    for (left -= put_name(part->name, left, out); left > 0; left--)
        fputc(color ? ' ' : '-', out);
    if (color)
        fputs("\033[0m", out);
}

void step_bar_print(const struct step_bar *bar, bool color, FILE *out)
{
    double share = 0;
    int at = 0;
    for (size_t i = 0; i < bar->count; i++) {
        share += bar->parts[i].share;
        int end = (int)lround(fmin(fmax(share, 0), 1) * STEP_BAR_CELLS);
        if (end > at)
            put_part(&bar->parts[i], i, end - at, color, out);
        at = end > at ? end : at;
    }
    if (at > 0 && at < STEP_BAR_CELLS && !color) {
        fputc('|', out);
        at++;
    }
    for (; at < STEP_BAR_CELLS; at++)
        fputc('.', out);
}
