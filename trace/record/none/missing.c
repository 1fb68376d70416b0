/* SPDX-License-Identifier: Apache-2.0 */
/* missing.c - the functions of a library that the device has no equal of: each ends the run by its name. It is compiled for
 * each library, with MISSING, the list of its functions. */
#include "none.h"

#define X(name)                                                                                    \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        none_missing(#name, NULL);                                                                 \
    }
#include MISSING
