/* SPDX-License-Identifier: Apache-2.0 */
/* work_limit.c - see work_limit.h. */
#include "work_limit.h"

#include <assert.h>
#include <unistd.h>

#include "units.h"

static size_t half_of_memory(void)
{
    const size_t least = (size_t)1 << 30;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t half = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : 0;
    return half > least ? half : least;
}

void work_limit_init(struct work_limit *limit, size_t most_bytes, const struct search_watch *watch)
{
    *limit = (struct work_limit){.most_bytes = most_bytes ? most_bytes : half_of_memory()};
    if (watch)
        limit->watch =
            (struct search_watch){.until_ns = watch->until_ns, .interrupted = watch->interrupted};
}

bool work_limit_take(struct work_limit *limit, size_t bytes)
{
    limit->out_of_room |= bytes > limit->most_bytes - limit->used_bytes;
    if (limit->out_of_room || watch_own_watch_look(&limit->watch))
        return false;
    limit->used_bytes += bytes;
    return true;
}

void work_limit_give(struct work_limit *limit, size_t bytes)
{
    assert(bytes <= limit->used_bytes);
    limit->used_bytes -= bytes;
}

enum status work_limit_end(const struct work_limit *limit, enum status status, const char *file,
                           const char *what, struct diag *diag)
{
    const bool over = watch_over(&limit->watch);
    if (status != STATUS_SYSTEM || !(limit->out_of_room || over))
        return status;
    char most[UNITS_TEXT];
    units_show_bytes((double)limit->most_bytes, most);
    diag->out_of_memory = false; /* said better */
    if (!over)
        return diag_error(diag, STATUS_LIMIT,
                          "%s: %s takes more than the %s of memory that are its limit", file, what,
                          most);
    return diag_error(diag, STATUS_LIMIT, "%s: %s while %s was built", file,
                      watch_interrupted(&limit->watch) ? "interrupted" : "the time limit passed",
                      what);
}
