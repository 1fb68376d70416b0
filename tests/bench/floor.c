/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor.c - the floor of the prediction benchmark: the recurrence of this one pipeline, written out by
 * hand, with its durations drawn and nothing else: no account of stalls, no quantiles. A general tool
 * cannot well be faster.
 */
#include "pipeline.h"

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t run(const struct bench_pipeline *pipeline, int64_t iterations)
{
    int64_t ns[PIPELINE_TASKS][PIPELINE_RUN];
    int64_t copied = 0, exchanged = 0, trained = 0; /* when each stream is through */
    int64_t over[PIPELINE_DEPTH] = {0};             /* when the last iterations were over */
    for (int64_t i = 0; i < iterations; i++) {
        int j = (int)(i % PIPELINE_RUN);
        for (int t = 0; j == 0 && t < PIPELINE_TASKS; t++)
            pipeline_draw(pipeline, t, i, ns[t]);
        copied = max(copied, over[0]) + ns[PIPELINE_H2D][j];
        exchanged = max(max(exchanged, copied), over[1]) + ns[PIPELINE_START][j];
        exchanged += ns[PIPELINE_WAIT][j];
        trained = max(trained, over[2]) + ns[PIPELINE_ZERO][j];
        trained = max(trained, exchanged) + ns[PIPELINE_BATCH][j];
        trained += ns[PIPELINE_FORWARD][j] + ns[PIPELINE_BACKWARD][j] + ns[PIPELINE_OPTIMIZER][j];
        over[0] = over[1];
        over[1] = over[2];
        over[2] = trained;
    }
    return over[2];
}

int main(int argc, char **argv)
{
    return pipeline_main(argc, argv, run);
}
