/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c - see repeats.h. */
#include "repeats.h"

#include "hash.h"

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
