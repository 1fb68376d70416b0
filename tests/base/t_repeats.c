/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches that come several times in a row: what is found is equal, apart and in order, and nothing is lost. */
#include "base/repeats.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { MOST = 64 };

/* "3(abc)d": as a story would tell it. */
static void tell(const char *text, size_t least, char out[4 * MOST])
{
    uint64_t keys[MOST] = {0};
    struct stretch found[MOST / 2 + 1];
    size_t count = strlen(text), at = 0, next = 0;
    for (size_t i = 0; i < count; i++)
        keys[i] = (uint64_t)text[i];
    size_t stretches = repeats_find(keys, count, least, found);
    *out = '\0';
    for (; at < count; at++) {
        char *end = out + strlen(out);
        if (next < stretches && found[next].first == at) {
            sprintf(end, "%zu(%.*s)", found[next].times, (int)found[next].length, text + at);
            at += found[next].times * found[next].length - 1;
            next++;
        } else {
            sprintf(end, "%c", text[at]);
        }
    }
}

static bool tells(const char *text, size_t least, const char *wanted)
{
    char out[4 * MOST];
    tell(text, least, out);
    if (strcmp(out, wanted) != 0)
        printf("# %s: found %s, expected %s\n", text, out, wanted);
    return strcmp(out, wanted) == 0;
}

/* Folded lists unfold to what they were. */
static bool unfold_random_lists(void)
{
    srand(7);
    for (int trial = 0; trial < 2000; trial++) {
        char text[MOST], out[4 * MOST], back[MOST + 1] = "";
        size_t count = (size_t)(rand() % (MOST - 1)), length = 0;
        for (size_t i = 0; i < count; i++)
            text[i] = (char)('a' + rand() % 2);
        text[count] = '\0';
        tell(text, (size_t)(1 + rand() % 4), out);
        for (const char *c = out; *c;) {
            char *open;
            size_t times = strtoul(c, &open, 10);
            const char *first = open == c ? c : open + 1;
            size_t span = open == c ? 1 : strcspn(first, ")");
            for (size_t k = 0; k < (open == c ? 1 : times); k++, length += span)
                memcpy(back + length, first, span);
            c = first + span + (open != c);
        }
        back[length] = '\0';
        if (strcmp(back, text) != 0) {
            printf("# %s: found %s\n", text, out);
            return false;
        }
    }
    return true;
}

/* Two items of its own, then `times` iterations of `layers` times a layer of five equal to one another, and a rest. */
static bool finds_loop(size_t layers, size_t times)
{
    enum { LAYER = 5, ITEMS = 5000 };
    static uint64_t keys[ITEMS];
    const size_t length = 3 + LAYER * layers;
    size_t count = 0;
    struct stretch found;
    keys[count++] = 100;
    keys[count++] = 101;
    for (size_t i = 0; i < times * length + length / 2; i++)
        keys[count++] = i % length < 3 ? 10 + i % length : (i % length - 3) % LAYER;
    return repeats_most(keys, count, 3, &found) && found.first == 2 && found.length == length &&
           found.times == times;
}

int main(void)
{
    struct stretch none;
    tap_ok(tells("", 1, "") && tells("a", 1, "a") && tells("abcd", 1, "abcd"), "nothing repeated");
    tap_ok(tells("xabcabcabcy", 3, "x3(abc)y"), "a stretch of three");
    tap_ok(tells("aaaa", 3, "4(a)") && tells("aaaa", 4, "aaaa"), "as few as are worth it");
    tap_ok(tells("abab", 2, "2(ab)") && tells("ababa", 2, "2(ab)a"),
           "the end that does not repeat");
    tap_ok(tells("aabaabccc", 2, "2(aab)3(c)"), "two behind one another, the longer one first");
    tap_ok(unfold_random_lists(), "two thousand random lists unfold to what they were");
    tap_ok(repeats_key("rank 0 pushes A(3)", 1) == repeats_key("rank 12 pushes A(40)", 1) &&
               repeats_key("rank 0 pushes A", 1) != repeats_key("rank 0 pushes B", 1) &&
               repeats_key("A", 1) != repeats_key("A", 2),
           "keys leave numbers out");
    tap_ok(finds_loop(0, 3) && finds_loop(1, 3) && finds_loop(4, 4) && finds_loop(40, 20),
           "the loop of a program, with loops in it");
    tap_ok(repeats_most((const uint64_t[]){1, 2, 3, 1, 2, 4, 1, 2}, 8, 3, &none) &&
               none.times == 0 && repeats_most(NULL, 0, 3, &none) && none.times == 0,
           "no loop");
    return tap_done();
}
