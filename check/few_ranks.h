/* SPDX-License-Identifier: Apache-2.0 */
/*
 * few_ranks.h - violations of many equal ranks, found with two.
 *
 * Where ranks are equal and all of them are members of every communicator, a run of two ranks is one of any number: those
 * behind the first do what the second does. States of two ranks are few, and their runs are short. What two ranks do not
 * violate is not proved for more.
 */
#ifndef SWSIM_FEW_RANKS_H
#define SWSIM_FEW_RANKS_H

#include "search.h"

/* Search the plan of `program` with two ranks, if that says something of its own, for `search->properties`. What a run of
   `program` itself then violates is added to out->found, out->witness, out->states and out->transitions. STATUS_SYSTEM:
   memory is exhausted. */
enum status few_ranks_find(const struct program *program, const struct search_options *search,
                           struct search_result *out, struct diag *diag);

#endif
