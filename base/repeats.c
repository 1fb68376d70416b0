/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - see repeats.h. */
#include "repeats.h"

#include <stdlib.h>

#include "hash.h"
#include "sort.h"

uint64_t repeats_key(const char *text, uint64_t seed)
{
    uint64_t key = seed;
    for (; *text; text++)
        if (*text < '0' || *text > '9')
            key = hash_mix(key ^ (unsigned char)*text);
    return key;
}

/* The number of times that the stretch at `first` comes in a row: a list with a period is equal to itself, moved by that. */
static size_t repeats_times_of(const uint64_t *keys, size_t count, size_t first, size_t length)
{
    size_t same = 0;
    while (first + length + same < count && keys[first + same] == keys[first + length + same])
        same++;
    return 1 + same / length;
}

size_t repeats_find(const uint64_t *keys, size_t count, size_t least, struct stretch *out)
{
    size_t found = 0;
    for (size_t i = 0; i < count;) {
        struct stretch best = {.first = i, .length = 1, .times = 1};
        for (size_t length = 1; length <= REPEATS_LONGEST && i + 2 * length <= count; length++) {
            size_t times = repeats_times_of(keys, count, i, length);
            if ((times - 1) * length > (best.times - 1) * best.length)
                best = (struct stretch){i, length, times};
        }
        if ((best.times - 1) * best.length >= least && best.times > 1) {
            out[found++] = best;
            i += best.times * best.length;
        } else {
            i++;
        }
    }
    return found;
}

/* ---- the loop of a program ------------------------------------------------------------------------- */

enum { REPEATS_TRIED = 16 }; /* lengths, for each width of windows */

/* A window and the place of its last item; or how often windows come again after so many items. */
struct repeats_window {
    uint64_t hash;
    size_t at;
};

static int compare_windows(const void *left, const void *right)
{
    const struct repeats_window *a = left, *b = right;
    return compare_then(compare_u64(a->hash, b->hash), compare_size(a->at, b->at));
}

/* Windows that are equal stand behind each other, in order. */
static void list_windows(const uint64_t *keys, size_t count, size_t width,
                         struct repeats_window *windows)
{
    const uint64_t base = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t gone = 1, hash = 0;
    for (size_t i = 0; i < width; i++)
        gone *= base;
    for (size_t i = 0; i < count; i++) {
        hash = hash * base + keys[i] - (i >= width ? keys[i - width] * gone : 0);
        windows[i] = (struct repeats_window){hash, i};
    }
    SORT(windows, count, compare_windows);
}

static void try_length(const uint64_t *keys, size_t count, size_t length, size_t least,
                       struct stretch *best)
{
    for (size_t i = 0, same = 0; i + length < count; i++) {
        same = keys[i] == keys[i + length] ? same + 1 : 0;
        const size_t times = 1 + same / length, saved = (times - 1) * length;
        if (times >= least && saved > (best->times > 0 ? (best->times - 1) * best->length : 0))
            *best = (struct stretch){i + 1 - same, length, times};
    }
}

static void try_width(const uint64_t *keys, size_t count, size_t width, size_t least,
                      struct repeats_window *windows, size_t *lengths, struct stretch *best)
{
    size_t found = 0, kept = 0;
    list_windows(keys, count, width, windows);
    for (size_t i = 1; i < count; i++)
        if (windows[i].hash == windows[i - 1].hash)
            lengths[found++] = windows[i].at - windows[i - 1].at;
    sort_size(lengths, found);
    for (size_t i = 0; i < found; i++) {
        if (i == 0 || lengths[i] != lengths[i - 1])
            windows[kept++] = (struct repeats_window){0, lengths[i]};
        windows[kept - 1].hash++;
    }
    SORT(windows, kept, compare_windows);
    for (size_t i = 0; i < kept && i < REPEATS_TRIED; i++)
        try_length(keys, count, windows[kept - 1 - i].at, least, best);
}

bool repeats_most(const uint64_t *keys, size_t count, size_t least, struct stretch *out)
{
    struct repeats_window *windows = malloc((count + 1) * sizeof *windows);
    size_t *lengths = malloc((count + 1) * sizeof *lengths);
    const bool good = windows && lengths;
    *out = (struct stretch){0};
    for (size_t width = 1; good && width <= 16; width *= 4)
        try_width(keys, count, width, least, windows, lengths, out);
    free(windows);
    free(lengths);
    return good;
}
