/* SPDX-License-Identifier: Apache-2.0 */
/* t_columns.c - the columns of a terminal that a text takes, in any locale of the program (base/columns.h). */
#include <locale.h>
#include <stddef.h>

#include "base/columns.h"
#include "tests/tap.h"

static const struct {
    const char *what, *text;
    int columns;
} texts[] = {{"nothing", "", 0},
             {"ASCII", "Forward", 7},
             {"Latin", "\u00e9change", 7},
             {"Greek", "\u03c3\u03c5\u03bd", 3},
             {"an accent that joins the letter before it", "e\u0301change", 7},
             {"several accents", "o\u0302\u0323", 1},
             {"Chinese", "\u590d\u5236\u8f93\u5165", 8},
             {"Korean", "\ubcf5\uc0ac", 4},
             {"full width", "\uff21\uff22", 4},
             {"half width", "\uff71\uff72", 2},
             {"a picture", "\U0001f680", 2},
             {"pictures that are joined", "\U0001f469\u200d\U0001f680", 4},
             {"a character that is not assigned", "\u0378", 1},
             {"a byte that is no UTF-8",
              "a\xff"
              "b",
              3}};

static void test_columns(void)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tap_is_int(columns_of(texts[i].text), texts[i].columns, "%s", texts[i].what);
        tap_is_int(columns_fill(texts[i].text, 10), 10 - texts[i].columns, "... fills a column");
        tap_is_int(columns_fill(texts[i].text, -1), 0, "... of which there is enough");
    }
}

static void test_fit(void)
{
    int width = 3;
    tap_is_int(columns_fit("Forward", 3), 3, "the beginning of a name");
    tap_is_int(columns_fit("\u590d\u5236", 3), 3, "half of a wide character does not fit");
    tap_is_int(columns_fit("\u590d\u5236", 4), 6, "two wide ones");
    tap_is_int(columns_fit("e\u0301change", 1), 3, "an accent goes with its letter");
    tap_is_int(columns_fit("ab\xff", 9), 2, "the end of UTF-8");
    columns_widen(&width, "ab");
    tap_is_int(width, 3, "a column stays as wide as it is");
    columns_widen(&width, "\u590d\u5236");
    tap_is_int(width, 4, "or gets as wide as a name");
}

int main(void)
{
    test_columns();
    test_fit();
    if (setlocale(LC_ALL, "POSIX")) /* as a program may have it */
        test_columns();
    return tap_done();
}
