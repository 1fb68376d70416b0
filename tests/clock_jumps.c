/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_jumps.c - a library to be preloaded: the time of day jumps by up to an hour, forward and back, every
 * few milliseconds. CLOCK_MONOTONIC goes on as it is.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { JUMP_MS = 7, FAR_S = 3600 };

static void real_clock(clockid_t clock, struct timespec *out)
{
    syscall(SYS_clock_gettime, clock, out);
}

static void jump(struct timespec *out)
{
    struct timespec now;
    real_clock(CLOCK_MONOTONIC, &now);
    unsigned long tick = (unsigned long)(now.tv_sec * 1000 + now.tv_nsec / 1000000) / JUMP_MS;
    tick = tick * 2654435761u % (2 * FAR_S + 1);
    out->tv_sec += (time_t)tick - FAR_S;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    real_clock(clock, out);
    if (clock == CLOCK_REALTIME)
        jump(out);
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
