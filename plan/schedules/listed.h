/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listed.h - the actions that a lowered rank program was made of, in sentences.
 */
#ifndef SWSIM_LISTED_H
#define SWSIM_LISTED_H

#include <stddef.h>

#include "plan/plan.h"

enum { LISTED_PLACE = 48 }; /* bytes of a place */

/* "1B2"; the end of a list is "row 3". Returns buf. */
const char *listed_name(const struct listed_action *listed, char *buf, size_t cap);

/* " (row 3, column 5)", the column of the file where that has the list; nothing for the end of a list. Returns buf. */
const char *listed_place(const struct listed_action *listed, char *buf, size_t cap);

/* The other end of a send or receive: "0RECV_B2" of 1SEND_B2. Returns buf. */
const char *listed_partner(const struct listed_action *listed, char *buf, size_t cap);

/* Of the action listed at index `first`, or the parts of a composite that begins there: the one that reads the
   tensor; the first where none does. */
const struct listed_action *listed_reader(const struct plan *lowered, size_t first,
                                          const struct tensor *tensor);

/* The action that would bring a tensor to the rank of this row, as the lists of the plan make it. Returns buf. */
const char *listed_provider(const struct plan *lowered, const struct tensor *tensor, int row,
                            char *buf, size_t cap);

#endif
