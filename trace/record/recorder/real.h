/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.h - the functions of CUDA and NCCL behind those of the recorder.
 *
 * They are in the program's libraries, which it may have opened itself: then nobody finds them by name, and they
 * are looked for in all that is loaded.
 */
#ifndef SWSIM_REAL_H
#define SWSIM_REAL_H

#include <stdbool.h>

enum { REAL_MISSING = 3 }; /* cudaErrorInitializationError, ncclInternalError */

/* Sets *function, if it is NULL. False: there is no such function. */
bool real_find(void *function, const char *name);
/* The same of a library that begins with these words, which may be one that only some other one has opened, as Python opens
   those of C++. */
bool real_find_in(void *function, const char *name, const char *library);

/* True if the address is in a library of CUDA's runtime, its driver or NCCL. */
bool real_is_cuda(const void *address);

/* The program has been given the recorder's function in place of this one. */
void real_remember(const char *name, void *function);

/* dlsym of the C library. */
typedef void *dlsym_function(void *library, const char *name);
dlsym_function *real_dlsym(void);

/* Defines `real`, a pointer to the function of this name and these parameters, or returns from the caller. */
#define REAL(name, PARAMS)                                                                         \
    static int(*real) PARAMS;                                                                      \
    if (!real_find(&real, #name))                                                                  \
        return REAL_MISSING;

#endif
