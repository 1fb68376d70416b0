/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert_index.h - asserts that a number is one of so many places.
 *
 * In a build with --enable-checks alone: the places stand in the innermost loops of the machine.
 */
#ifndef SWSIM_ASSERT_INDEX_H
#define SWSIM_ASSERT_INDEX_H

#include <assert.h>
#include <stddef.h>

#ifdef SWSIM_CHECKS
#define ASSERT_INDEX(index, count)                                                                 \
    assert((size_t)(index) < (size_t)(count)) /* not a negative one */
#else
#define ASSERT_INDEX(index, count) ((void)(index), (void)(count))
#endif

#endif
