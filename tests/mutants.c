/* SPDX-License-Identifier: Apache-2.0 */
/* mutants.c - see mutants.h. */
#include "mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

bool mutants_check(const struct plan *plan, const char *text, struct proof_result *result,
                   unsigned *proves, struct diag *diag)
{
    size_t length = strlen(text), left = length;
    *proves = 0;
    *result = (struct proof_result){0};
    while (left > 0) {
        if (proof_check(plan, text + (length - left), &left, result, diag) != STATUS_OK ||
            !result->good)
            return false;
        *proves |= result->proves;
    }
    return length > 0;
}

/* The n-th word of a text. */
static const char *find_word(const char *text, size_t n, size_t *length)
{
    for (;; n--) {
        text += strspn(text, " \n");
        *length = strcspn(text, " \n");
        if (n == 0 || *length == 0)
            return text;
        text += *length;
    }
}

static size_t count_words(const char *text)
{
    size_t words = 0, length;
    for (; *(text = find_word(text, 0, &length)); text += length)
        words++;
    return words;
}

enum mutation { LEAVE_OUT, DOUBLE, CUT_OFF, CHANGE, MUTATIONS };

/* A certificate of which word n is not what it was; the caller frees it. */
static char *mutate(const char *text, size_t n, enum mutation mutation, uint64_t random)
{
    static const char *const others[] = {
        "0",    "1",   "-1",   "7", "1099511627776", "9223372036854775808", "path",
        "none", "end", "race", "x"};
    size_t length, size;
    const char *word = find_word(text, n, &length);
    char *out = NULL;
    FILE *file = open_memstream(&out, &size);
    if (!file)
        return NULL;
    fwrite(text, 1, (size_t)(word - text), file);
    if (mutation == DOUBLE)
        fprintf(file, "%.*s %.*s", (int)length, word, (int)length, word);
    if (mutation == CHANGE && random % 2 == 0 && strspn(word, "-0123456789") == length)
        fprintf(file, "%lld", strtoll(word, NULL, 10) + (random % 4 ? 1 : -1));
    else if (mutation == CHANGE)
        fputs(others[random / 2 % (sizeof others / sizeof *others)], file);
    if (mutation != CUT_OFF)
        fputs(word + length, file);
    fclose(file);
    return out;
}

bool mutants_try(const struct plan *plan, const char *text, unsigned covers,
                 struct mutants *mutants, struct diag *diag)
{
    size_t words = count_words(text);
    for (int i = 0; i < mutants->count; i++) {
        uint64_t random = hash_mix(mutants->seed * (uint64_t)mutants->count + (uint64_t)i + 1);
        enum mutation mutation = (enum mutation)(random % MUTATIONS);
        char *mutant = mutate(text, (size_t)(random / MUTATIONS % words), mutation, random >> 32);
        struct proof_result result;
        unsigned proves;
        if (!mutant)
            continue;
        bool good = mutants_check(plan, mutant, &result, &proves, diag);
        bool same = strcmp(mutant, text) == 0; /* a word changed to itself */
        mutants->accepted += good;
        mutants->refused += !good;
        if (good && !same && mutation != CHANGE && proves == covers && !mutants->wrong)
            mutants->wrong = mutant;
        else
            free(mutant);
    }
    return !mutants->wrong;
}
