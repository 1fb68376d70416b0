/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h - the recorder's functions for those who ask for CUDA's by name.
 */
#ifndef SWSIM_SYMBOLS_H
#define SWSIM_SYMBOLS_H

#include <stdbool.h>

/* The recorder's function of this name, in whose place `theirs` is called; `theirs` where there is none, or where the
   caller, an address of code, is in a library of NVIDIA's. */
void *symbols_ours(const char *name, void *theirs, const void *caller);

/* True if it is the address of a function of the recorder. */
bool symbols_is_ours(const void *address);

/* True if this is no name of CUDA or NCCL, or that of a function that the recorder knows. */
bool symbols_are_known(const char *name);
/* Code that asks for a function of the driver, past dlsym: is told where the recorder does not know the function. */
void symbols_note_unknown(const char *name, const void *theirs, const void *caller);

/* True if a library has been opened with RTLD_DEEPBIND. */
bool symbols_bound_deeply(void);

#endif
