/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.h - the functions of CUDA and NCCL that have no item of their own in a recording.
 *
 * Of each function that libcudart 11.8, 12.9, 13.0 and 13.5, libcuda of CUDA 13.0 and NCCL 2.28 and 2.32 export one of three
 * things is true: cuda.c, driver.c or nccl.c has it; or it orders work, or touches memory, in a way that no item says, and
 * functions.c has it, so that each call is an item UNMODELLED; or it does neither and is harmless. One that is none of
 * these is newer than the recorder, and is told by its name.
 */
#ifndef SWSIM_FUNCTIONS_H
#define SWSIM_FUNCTIONS_H

#include <stdbool.h>

/* It neither orders work nor touches memory of devices: queries, attributes, code that is loaded, hints, what gives back
   an object whose maker is told. Of the name the version and the variant do not count. */
bool functions_harmless(const char *name);

/* True if it is a name as CUDA's runtime, its driver and NCCL have them. */
bool functions_is_name(const char *name);

#endif
