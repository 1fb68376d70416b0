/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certificate.h - a certificate as a sequence of words and numbers; doc/certificate.md has the format.
 *
 * The text comes from anybody: whatever it holds, reading ends, and the first thing that does not fit is kept
 * with its line. Every function returns false from then on, so a caller may look once, at the end.
 */
#ifndef SWSIM_CERTIFICATE_H
#define SWSIM_CERTIFICATE_H

#include <stdint.h>

#include "base/arena.h"

/* No number is larger, so sums and products of a few of them fit. */
#define CERTIFICATE_MOST (INT64_C(1) << 40)

struct certificate {
    const char *at, *end; /* of the text, which the caller owns */
    int64_t line;
    struct arena arena; /* all memory of its check; failed: it could not be looked at */
    unsigned before;    /* bits of the properties that certificates in front of it prove */
    bool refused;
    char why[240]; /* one sentence */
};

/* The next word is this one; it is passed. */
bool certificate_expect(struct certificate *c, const char *word);
/* The same, where another word, which stays, is no reason to refuse. */
bool certificate_accept(struct certificate *c, const char *word);
/* The next word is a whole number from `least` to `most`, behind `word` unless that is NULL. */
bool certificate_number(struct certificate *c, const char *word, int64_t least, int64_t most,
                        int64_t *out);
/* The same for an index: 0 .. count - 1. */
bool certificate_index(struct certificate *c, const char *word, int64_t count, int *out);

/* Refuse for this reason, in front of which its line is told, unless there is an earlier one. False. */
bool certificate_refuse(struct certificate *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
