/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - the system's words for an error, in English whatever locale the recorded program has. */
#ifndef SWSIM_RECORDER_WORDS_H
#define SWSIM_RECORDER_WORDS_H

#include <dlfcn.h>
#include <locale.h>
#include <string.h>

static inline const char *words_own_words_of(int error)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library */
    return c ? strerror_l(error, c) : strerror(error);
}

/* Of dlopen; never NULL. */
static inline const char *words_of_loader(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    const char *words = dlerror();
    if (before)
        uselocale(before);
    return words ? words : "";
}

#endif
