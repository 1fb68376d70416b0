/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranges.h - reads and writes told to the thread sanitizer a range at a time.
 *
 * A kernel reads each number of a matrix hundreds of times, and the sanitizer would look at every one of these
 * reads. A function marked RANGES_TOLD is not looked into; its caller names the ranges that it reads and
 * writes, so that a race on any of their bytes is still seen. Without --enable-tsan all of this is nothing.
 */
#ifndef SWSIM_RANGES_H
#define SWSIM_RANGES_H

#include <stddef.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)

/* The sanitizer's own functions, which compilers call; no header declares them. */
void __tsan_read_range(void *from, unsigned long bytes);
void __tsan_write_range(void *to, unsigned long bytes);

#define RANGES_TOLD              __attribute__((no_sanitize("thread"), noinline))
#define range_read(from, bytes)  __tsan_read_range((void *)(from), bytes)
#define range_written(to, bytes) __tsan_write_range(to, bytes)

#else

#define RANGES_TOLD
#define range_read(from, bytes)  ((void)(from), (void)(bytes))
#define range_written(to, bytes) ((void)(to), (void)(bytes))

#endif

#endif
