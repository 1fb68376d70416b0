/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c_locale.h - numbers are read and written with a point, also in a program that has called setlocale.
 *
 *     locale_t before = c_locale_begin();    "1.5" on this thread
 *     ...
 *     c_locale_end(before);                  "1,5" again, where that is the program's
 *
 * The commands set no locale and need none of this; the libraries begin so what reads a plan or writes a text.
 */
#ifndef SWSIM_C_LOCALE_H
#define SWSIM_C_LOCALE_H

#include <locale.h>

static inline locale_t c_locale_begin(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library */
    return c ? uselocale(c) : (locale_t)0;
}

static inline void c_locale_end(locale_t before)
{
    locale_t c = before ? uselocale(before) : (locale_t)0;
    if (c)
        freelocale(c);
}

#endif
