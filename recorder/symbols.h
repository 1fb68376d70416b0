/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h - the recorder's functions for those who ask for CUDA's by name.
 */
#ifndef SWSIM_SYMBOLS_H
#define SWSIM_SYMBOLS_H

/* The recorder's function of this name, in whose place `theirs` is called; `theirs` where there is none, or where the
   caller, an address of code, is in a library of NVIDIA's. */
void *symbols_ours(const char *name, void *theirs, const void *caller);

/* Has a library been opened with RTLD_DEEPBIND? */
bool symbols_bound_deeply(void);

#endif
