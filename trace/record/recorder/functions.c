/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c - see functions.h. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "calls.h"

/* ---- calls that no item says ------------------------------------------------------------------- */

/* Whatever its arguments are: six words are in registers, and no function has more than ten on the stack. */
#define X(name)                                                                                    \
    AROUND(name, LEGACY,                                                                           \
           (word a, word b, word c, word d, word e, word f, word g, word h, word i, word j,        \
            word k, word l, word m, word n, word o, word p),                                       \
           (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), UNMODELLED, NOTHING,                  \
           calls_end_unmodelled(&call, result, #name))
#include "trace/record/recorder/unmodelled.inc"
#undef X

/* ---- calls that need none ---------------------------------------------------------------------- */

/* Sorted. */
static const char *const harmless[] = {
#define X(name) #name,
#include "trace/record/recorder/harmless.inc"
#undef X
};

static int functions_compare(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

static bool functions_cut(char *name, const char *end)
{
    const size_t length = strlen(name), size = strlen(end);
    if (length <= size || strcmp(name + length - size, end) != 0)
        return false;
    name[length - size] = '\0';
    return true;
}

bool functions_harmless(const char *name)
{
    char base[128];
    if (strlen(name) >= sizeof base)
        return false;
    strcpy(base, name);
    if (!functions_cut(base, "_ptsz"))
        functions_cut(base, "_ptds");
    if (!functions_cut(base, "_v2") && !functions_cut(base, "_v3"))
        functions_cut(base, "_v4");
    return bsearch(base, harmless, sizeof harmless / sizeof *harmless, sizeof *harmless,
                   functions_compare) != NULL;
}

bool functions_is_name(const char *name)
{
    static const char *const begins[] = {"__cuda", "cuda", "cu", "nccl", "pnccl"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t length = strlen(begins[i]);
        if (strncmp(name, begins[i], length) == 0 && name[length] >= 'A' && name[length] <= 'Z')
            return true;
    }
    return false;
}
