/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - a call of CUDA or NCCL that must succeed, in the programs that `swsim record` is tried on. */
#ifndef SWSIM_RECORD_CHECK_H
#define SWSIM_RECORD_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "%s: %d\n", #call, result_);                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
