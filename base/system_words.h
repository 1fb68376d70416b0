/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_words.h - the system's words for what went wrong, in English as all messages are: also in a program that has
 * called setlocale, on any of its threads.
 */
#ifndef SWSIM_SYSTEM_WORDS_H
#define SWSIM_SYSTEM_WORDS_H

#include <dlfcn.h>
#include <locale.h>
#include <netdb.h>
#include <string.h>

#include "c_locale.h"

/* Of errno, or of what a function of threads returned. */
static inline const char *system_words(int error)
{
    locale_t before = c_locale_begin();
    const char *words = strerror(error);
    c_locale_end(before);
    return words;
}

/* Of getaddrinfo. */
static inline const char *system_address_words(int error)
{
    locale_t before = c_locale_begin();
    const char *words = gai_strerror(error);
    c_locale_end(before);
    return words;
}

/* Of dlopen and dlsym; never NULL. */
static inline const char *system_loader_words(void)
{
    locale_t before = c_locale_begin();
    const char *words = dlerror();
    c_locale_end(before);
    return words ? words : "";
}

static inline const char *system_signal_words(int signal)
{
    locale_t before = c_locale_begin();
    const char *words = strsignal(signal);
    c_locale_end(before);
    return words;
}

#endif
