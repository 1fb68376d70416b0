/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - durations, sizes and shares as people write them: "0.2ms", "30us", "64MiB", "0.6".
 *
 * Durations and sizes have a unit; numbers are not negative and may have an exponent, "1.5e3us". Times: ns us ms s. Sizes: B KiB MiB GiB TiB and
 * kB MB GB TB (powers of 1000). Rates: those a second, "25GB/s", and Gbit/s. Values round to the nearest nanosecond or byte.
 */
#ifndef SWSIM_UNITS_H
#define SWSIM_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNITS_TEXT = 32 };

/* Parse the whole of `text`. On failure *what is a static sentence ("expected a unit: ns, us, ms or s"). */
bool units_parse_time(const char *text, int64_t *out_ns, const char **what);
bool units_parse_bytes(const char *text, int64_t *out_bytes, const char **what);
/* Bytes a second. */
bool units_parse_rate(const char *text, int64_t *out_bytes_per_s, const char **what);
/* Operations a second: "150TFLOPS". */
bool units_parse_flops(const char *text, int64_t *out_per_s, const char **what);

/* A part of a whole, from 0 to 1, in millionths. */
bool units_parse_share(const char *text, int *out_millionths);

/* The shortest exact text: units_print_time(200000) is "0.2ms"; parses back to the same value. */
void units_print_time(int64_t ns, char out[UNITS_TEXT]);
void units_print_bytes(int64_t bytes, char out[UNITS_TEXT]);
void units_print_rate(int64_t bytes_per_s, char out[UNITS_TEXT]);
void units_print_flops(int64_t per_s, char out[UNITS_TEXT]);

void units_print_share(int millionths, char out[UNITS_TEXT]);

/* For people: three significant digits, "1.23 ms". */
void units_show_time(double ns, char out[UNITS_TEXT]);
void units_show_bytes(double bytes, char out[UNITS_TEXT]);
/* The ending of the noun behind a number: "1 rank", "2 ranks". */
static inline const char *units_plural(size_t count)
{
    return count == 1 ? "" : "s";
}

#endif
