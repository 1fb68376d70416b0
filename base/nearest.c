/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - see nearest.h. */
#include "nearest.h"

#include <stdbool.h>
#include <string.h>

#include "sort.h"

enum { MAX_WORD = 64, LETTERS_A_CHANGE = 3 };

/* MAX_WORD for long words. */
static int edit_distance(const char *a, const char *b)
{
    size_t rows = strlen(a), cols = strlen(b);
    if (rows >= MAX_WORD || cols >= MAX_WORD)
        return MAX_WORD;
    int cost[MAX_WORD][MAX_WORD];
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= cols; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = (int)(i + j);
                continue;
            }
            int replaced = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            cost[i][j] = min_int(replaced, min_int(cost[i - 1][j], cost[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = min_int(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[rows][cols];
}

/* True if `word` is the first or the last of the words of `name`, as "thread" is of "thread_group". */
static bool is_end_of_words(const char *word, const char *name)
{
    const size_t length = strlen(word), all = strlen(name);
    return length > LETTERS_A_CHANGE && length < all &&
           ((strncmp(word, name, length) == 0 && name[length] == '_') ||
            (strcmp(word, name + all - length) == 0 && name[all - length - 1] == '_'));
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
    int length = (int)strlen(nearest->found), distance = edit_distance(nearest->found, candidate);
    if (is_end_of_words(nearest->found, candidate))
        distance = 1;
    bool near = distance < length && distance <= 1 + length / LETTERS_A_CHANGE;
    if (near && (!nearest->best || distance < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = distance;
    }
}

const char *nearest_hint(const struct nearest *nearest, char quote, struct arena *arena)
{
    if (!nearest->best)
        return "";
    const char *hint = arena_printf(arena, "; did you mean %c%s%c?", quote, nearest->best, quote);
    return hint ? hint : "";
}
