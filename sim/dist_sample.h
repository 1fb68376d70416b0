/*
 * dist_sample.h - durations drawn from the distributions of core/dist.h.
 *
 * Every shape has mean 1 and multiplies the mean duration; a spike adds to it. The normal is
 * truncated at zero and rescaled, so that its mean is 1 whatever its cv; `cv` is that of the
 * untruncated one.
 */
#ifndef SWSIM_DIST_SAMPLE_H
#define SWSIM_DIST_SAMPLE_H

#include "core/dist.h"
#include "sim/random.h"

/* Longest duration that is drawn, about 104 days: heavier tails are cut there. */
#define DIST_LONGEST_NS INT64_C(9007199254740992)

/* One factor of the shape, without spike. */
double dist_factor(const struct dist *dist, struct random_stream *luck);

/* A duration around `mean_ns`, rounded to a nanosecond. */
int64_t dist_sample(const struct dist *dist, int64_t mean_ns, struct random_stream *luck);

/* Does the distribution always give exactly the mean? */
bool dist_is_constant(const struct dist *dist);

#endif
