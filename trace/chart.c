/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c - see chart.h. */
#include "chart.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* Which messages wait for one another, by the word of `p2p: {fifo}`. */
static const char *channel_words(const char *channel)
{
    static const struct {
        const char *key, *words;
    } channels[] = {{"group", "all messages of a rank in one order"},
                    {"pair", "the messages of two ranks in one order"},
                    {"direction", "the messages of each direction in one order"},
                    {"edge", "the messages of each edge in one order"}};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        if (strcmp(channels[i].key, channel) == 0)
            return channels[i].words;
    return NULL;
}

const char *chart_caption(const struct chart *chart, char out[CHART_CAPTION])
{
    char step[UNITS_TEXT];
    const char *words = chart->channel ? channel_words(chart->channel) : NULL;
    if (chart->unit_ns)
        snprintf(step, sizeof step, "%.6g times F", (double)chart->end_ns / (double)chart->unit_ns);
    else
        units_show_time((double)chart->end_ns, step);
    int length = snprintf(out, CHART_CAPTION,
                          "%s%s%d ranks, %d microbatches, a step of %s, bubble %.1f%%",
                          chart->origin ? chart->origin : "", chart->origin ? ": " : "",
                          chart->rank_count, chart->microbatches, step, 100 * chart->bubble);
    if (chart->channel && length > 0 && length < CHART_CAPTION)
        snprintf(out + length, (size_t)(CHART_CAPTION - length), " with channel %s%s%s", chart->channel,
                 words ? ": " : "", words ? words : "");
    return out;
}

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
