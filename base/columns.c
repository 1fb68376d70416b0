/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - see columns.h. */
#include "columns.h"

#include <locale.h>
#include <pthread.h>
#include <wchar.h>

#include "printable.h"

/* It knows all characters, and nothing of a language. Kept as long as the program; 0: there is none. */
static locale_t characters;

static void open_characters(void)
{
    characters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

int columns_of_character(unsigned code)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (code < 0x80)
        return 1;
    pthread_once(&once, open_characters);
    if (!characters)
        return 1;
    const locale_t before = uselocale(characters);
    const int columns = wcwidth((wchar_t)code);
    uselocale(before);
    return columns < 0 ? 1 : columns; /* one that is newer than the C library */
}

int columns_of(const char *text)
{
    int columns = 0;
    unsigned code;
    for (size_t bytes; *text; text += bytes) {
        bytes = printable_decode(text, &code);
        columns += columns_of_character(code);
    }
    return columns;
}

int columns_fill(const char *text, int width)
{
    const int columns = columns_of(text);
    return columns < width ? width - columns : 0;
}

void columns_widen(int *width, const char *text)
{
    const int columns = columns_of(text);
    if (*width < columns)
        *width = columns;
}

int columns_fit(const char *text, int width)
{
    int at = 0, columns = 0;
    unsigned code;
    while (text[at]) {
        const int bytes = (int)printable_decode(text + at, &code);
        columns += columns_of_character(code);
        if (code == 0 || columns > width)
            break;
        at += bytes;
    }
    return at;
}
