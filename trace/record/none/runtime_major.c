/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_major.c - which libcudart.so this is: NONE_MAJOR, 12 or 13, is the compiler's option. */
#include "runtime.h"

const int runtime_major = NONE_MAJOR;
