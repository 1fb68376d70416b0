/* SPDX-License-Identifier: Apache-2.0 */
/* dense.c - see dense.h. */
#include "dense.h"

#include <stddef.h>

void dense_compute(const struct dense *of, const atomic_bool *stop)
{
    const int64_t numbers = dense_numbers(of), piece = 256; /* between two looks at *stop */
    for (int64_t at = 0; at < numbers && !(stop && atomic_load(stop)); at += piece)
        for (int64_t i = at; i < numbers && i < at + piece; i++)
            dense_element(of, i);
}
