/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused.h - malloc, calloc and realloc of a test and of the product in it, of which one call is refused. The test is linked
 * with --wrap=malloc,--wrap=calloc,--wrap=realloc; libraries keep their own. For one file of a program, any threads.
 */
#ifndef SWSIM_TESTS_REFUSED_H
#define SWSIM_TESTS_REFUSED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_long before_refusal = -1; /* allocations; negative: none is refused */

static bool refuse(void)
{
    return atomic_load(&before_refusal) >= 0 && atomic_fetch_sub(&before_refusal, 1) == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refuse() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return refuse() ? NULL : __real_realloc(memory, bytes);
}

#endif
