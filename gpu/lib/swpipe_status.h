/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_status.h - what the calls of swpipe.h return, and which library they are; part of swpipe.h.
 */
#ifndef SWPIPE_STATUS_H
#define SWPIPE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

enum swpipe_status {
    SWPIPE_OK,
    SWPIPE_END,     /* no iteration is left */
    SWPIPE_FAILED,  /* a task, its device work or the source failed */
    SWPIPE_TIMEOUT, /* something took longer than its limit */
    SWPIPE_USAGE,   /* a call that makes no sense now: fill twice, progress without fill, ... */
    SWPIPE_INPUT,   /* the plan, or what is said of its tasks, is wrong */
    SWPIPE_SYSTEM   /* memory, threads, files, the driver of the device */
};
/* "ok", "end", "failed", ... */
const char *swpipe_status_name(enum swpipe_status status);

/* The release, "0.1.0", and the number of its binary interface, that of the soname. A program that copies the layout of the
   structures, as bindings of other languages do, compares the number with that of the header it has copied. Later members of
   swpipe_config take the place of reserved ones, so that what was zero keeps its meaning. */
const char *swpipe_version(void);
int swpipe_abi(void);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
