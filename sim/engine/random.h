/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - random numbers that depend on their subject, not on the time of asking.
 *
 * A number is a pure function of (seed, replication, task, rank, part, iteration, index):
 * Philox4x32-10 (Salmon et al. 2011) on a counter made of these. So any number of threads, two
 * drivers, and two plans that name a task alike see the same numbers. No state, nothing to own.
 */
#ifndef SWSIM_RANDOM_H
#define SWSIM_RANDOM_H

#include <stdint.h>

enum random_part { RANDOM_HOST, RANDOM_DEVICE, RANDOM_OTHER };

/* The subject of a number. */
struct random_subject {
    uint64_t seed;
    uint64_t task; /* random_name of its name */
    uint32_t replication;
    uint32_t iteration;
    uint16_t rank;
    enum random_part part;
};

/* The numbers of one subject, in order. */
struct random_stream {
    uint32_t key[2], counter[4];
    uint32_t block[4];
    int used; /* words of `block` handed out */
};

/* Words drawn at once: for so many iterations. */
enum { RANDOM_RUN = 128 };

/* A name's number: FNV-1a, mixed. */
uint64_t random_name(const char *name);

struct random_stream random_open(const struct random_subject *subject);

/* Uniform 64 bits; uniform in the open interval (0, 1), 53 bits; standard normal (Box-Muller). */
uint64_t random_bits(struct random_stream *stream);
double random_uniform(struct random_stream *stream);
double random_normal(struct random_stream *stream);

/*
 * The word of a subject: 32 bits in one go, for durations. `use` tells apart the words of one subject.
 * A block of Philox holds the words of four iterations, 8 apart. random_words makes those of a run of
 * iterations, which begins at the subject's rounded down to a multiple of RANDOM_RUN; it takes vector
 * instructions where there are any.
 */
uint32_t random_word(const struct random_subject *subject, uint32_t use);
void random_words(const struct random_subject *subject, uint32_t use, uint32_t out[RANDOM_RUN]);

/* One block of Philox4x32-10, for the known-answer test. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
