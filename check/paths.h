/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - from the number of a node to the steps that lead to it.
 *
 * The store keeps parents and choices, not the chains of free steps between them: these are found
 * again by replaying.
 */
#ifndef SWSIM_PATHS_H
#define SWSIM_PATHS_H

#include "search.h"
#include "states.h"

/* Replay `count` choices, each with the chain of free steps behind it; another chain comes before the
   first choice, and the last one ends after `last_chain` steps. The caller frees out->steps. */
enum status path_replay(const struct program *program, const struct search_options *options,
                        const struct transition *choices, size_t count, size_t last_chain,
                        struct search_path *out);

/* The path to node `id` (STATES_NONE: from before the first), then `choice` unless NULL, then up to
   `chain` free steps. */
enum status path_to(const struct program *program, const struct search_options *options,
                    const struct states *states, uint32_t id, const struct transition *choice,
                    size_t chain, struct search_path *out);

#endif
