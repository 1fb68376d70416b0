/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - kernels by their handles: the name, and which arguments hold addresses.
 *
 * The type of each argument is that of the mangled name, where the C++ library is there to read it; the size is
 * CUDA's answer. `float const *` is read, `float *` may be written, and so may all that a struct points to.
 */
#ifndef SWSIM_NAMES_H
#define SWSIM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program registers a kernel, which `function` stands for. */
void names_register(const void *function, const char *mangled);
/* Another handle of the same kernel. */
void names_alias(const void *handle, const void *function);

/* The words of a launch's item behind the stream: the kernel and the addresses among its arguments. `driver`: the
   handle is a CUfunction. */
size_t names_launch(const void *handle, void **args, bool driver, uint64_t *words, size_t most);

#endif
