/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c - see ends.h. */
#include "ends.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"

bool ends_add(struct ends *ends, int64_t at_ns)
{
    const struct end end = {at_ns, ends->total ? at_ns - ends->last_ns : 0};
    if (ends->total == 0) {
        ends->first_ns = at_ns;
        ends->every = 1;
    }
    if (ends->count == ENDS_MOST) {
        /* Only every second of those kept. */
        ends->count /= 2;
        for (size_t i = 0; i < ends->count; i++)
            ends->kept[i] = ends->kept[2 * i];
        ends->every *= 2;
    }
    if (ends->total % ends->every == 0) {
        if (!ARRAY_GROW(ends->kept, ends->count, ends->cap))
            return false;
        ends->kept[ends->count++] = end;
    }
    ends->last_ns = at_ns;
    ends->total++;
    return true;
}

/* The smallest value that at least `share` of all do not exceed. */
static double quantile(const int64_t *sorted, size_t count, double share)
{
    size_t at = (size_t)(share * (double)count);
    return (double)sorted[at < count ? at : count - 1];
}

bool ends_times(const struct ends *ends, int64_t depth, struct runtime_times *out)
{
    int64_t first = depth + ends->total / 10, last = ends->total > depth ? ends->total - depth : 0;
    if (last < first + 2) {
        first = 0;
        last = ends->total ? ends->total - 1 : 0;
    }
    if (last <= first)
        return true;
    assert(ends->count == (size_t)((ends->total + ends->every - 1) / ends->every));
    size_t low = (size_t)((first + ends->every - 1) / ends->every);
    size_t high = (size_t)(last / ends->every), count = high - low;
    int64_t *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = ends->kept[low + i + 1].dur_ns;
    out->mean_ns = (double)(ends->kept[high].at_ns - ends->kept[low].at_ns) /
                   ((double)count * (double)ends->every);
    sort_i64(sorted, count);
    out->p50_ns = quantile(sorted, count, 0.50);
    out->p95_ns = quantile(sorted, count, 0.95);
    out->p99_ns = quantile(sorted, count, 0.99);
    free(sorted);
    return true;
}

void ends_free(struct ends *ends)
{
    free(ends->kept);
    *ends = (struct ends){0};
}
