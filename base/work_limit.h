/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_limit.h - how much memory a long piece of building may take, and until when it may go on.
 *
 * Every arena that the work fills asks before it gets a block, so that what allocates needs no checks of its own: the
 * arena fails as if memory had run out, and work_limit_end says what really happened.
 */
#ifndef SWSIM_WORK_LIMIT_H
#define SWSIM_WORK_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "watch.h"

struct work_limit {
    size_t most_bytes, used_bytes;
    struct search_watch watch;
    bool out_of_room; /* a block was refused as most_bytes would have been exceeded */
};

/* Of most_bytes 0: half of this machine's memory, 1 GiB at least. `watch`: NULL, no end. */
void work_limit_init(struct work_limit *limit, size_t most_bytes, const struct search_watch *watch);

/* True if a block of so many bytes may be had. It is counted then, until it is given back. */
bool work_limit_take(struct work_limit *limit, size_t bytes);
void work_limit_give(struct work_limit *limit, size_t bytes);

/* The status of work that ended with `status`: where the limit ended it, STATUS_LIMIT and a message, in which `what` of
   `file` was to be built. */
enum status work_limit_end(const struct work_limit *limit, enum status status, const char *file,
                           const char *what, struct diag *diag);

#endif
