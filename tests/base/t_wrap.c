/* SPDX-License-Identifier: Apache-2.0 */
/* Lines are broken at spaces where they are wider than the terminal, and only then. */
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "base/wrap.h"

#include "tests/tap.h"

/* What a terminal of 40 columns shows of `text`, which is written in pieces of `piece` bytes; freed by the caller. */
static char *wrapped(const char *text, size_t piece)
{
    struct text_stream below;
    if (!text_open(&below))
        return NULL;
    FILE *kept = below.out, *stream = wrap_open(kept, 40);
    if (!stream)
        return NULL;
    for (size_t at = 0; at < strlen(text); at += piece) {
        fwrite(text + at, 1, strlen(text + at) < piece ? strlen(text + at) : piece, stream);
        fflush(stream);
    }
    if (fclose(stream) != 0)
        return NULL;
    return below.text; /* the stream below is closed, its text is not */
}

static void shows(const char *what, const char *text, const char *want)
{
    for (size_t piece = 1; piece < 100; piece += 98) {
        char *got = wrapped(text, piece);
        tap_is_str(got, want, "%s, in pieces of %zu", what, piece);
        free(got);
    }
}

int main(void)
{
    shows("a line that fits", "name  proved for every interleaving\n", "name  proved for every interleaving\n");
    shows("40 columns fit", "0123456789 0123456789 0123456789 0123456\n",
          "0123456789 0123456789 0123456789 0123456\n");
    shows("a sentence", "  race: two accesses to a buffer without an order between\n",
          "  race: two accesses to a buffer without\n      an order between\n");
    shows("behind a column", "  main  waits for the event of Upload in iteration 0\n",
          "  main  waits for the event of Upload in\n        iteration 0\n");
    shows("colours take no column", "\033[1;31mname\033[0m  proved for every interleaving\n",
          "\033[1;31mname\033[0m  proved for every interleaving\n");
    shows("letters of two bytes", "äöüäöüäöüä äöüäöüäöüä äöüäöüäöüä äöüäöüä\n",
          "äöüäöüäöüä äöüäöüäöüä äöüäöüäöüä äöüäöüä\n");
    shows("a word that is too long", "01234567890123456789012345678901234567890123456789 and more\n",
          "01234567890123456789012345678901234567890123456789\n    and more\n");
    shows("JSON", "{\"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4, \"e\": 5, \"f\": 6}\n",
          "{\"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4, \"e\": 5, \"f\": 6}\n");
    shows("a line of a diff", "    + R: {stage: 1, stream: x, time: 1ms, host_time: 20us}\n",
          "    + R: {stage: 1, stream: x, time: 1ms, host_time: 20us}\n");
    shows("no newline at the end", "  race: two accesses to a buffer without an order",
          "  race: two accesses to a buffer without\n      an order");
    return tap_done();
}
