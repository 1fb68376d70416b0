/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c - see chart.h. */
#include "chart.h"

double chart_bubble(const struct chart *chart)
{
    int64_t longest_ns = 0, busy_ns = 0;
    for (int r = 0; r < chart->rank_count; r++) {
        const struct chart_rank *rank = &chart->ranks[r];
        int64_t span_ns =
            rank->count ? rank->passes[rank->count - 1].end_ns - rank->passes[0].start_ns : 0;
        if (span_ns <= longest_ns)
            continue;
        longest_ns = span_ns;
        busy_ns = 0;
        for (size_t i = 0; i < rank->count; i++)
            busy_ns += rank->passes[i].end_ns - rank->passes[i].start_ns;
    }
    return longest_ns ? 1 - (double)busy_ns / (double)longest_ns : 0;
}
