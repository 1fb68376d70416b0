/*
 * random.c - see random.h. The counter and the key:
 *
 *     counter  iteration | replication | rank, part | block number
 *     key      seed xor the task's name
 */
#include "sim/random.h"

#include <math.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

enum { BLOCK_WORDS = 4 };

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    philox4x32_ctr_t c = {{counter[0], counter[1], counter[2], counter[3]}};
    philox4x32_key_t k = {{key[0], key[1]}};
    philox4x32_ctr_t block = philox4x32(c, k);
    for (int i = 0; i < BLOCK_WORDS; i++)
        out[i] = block.v[i];
}

/* The finaliser of SplitMix64 (Steele et al. 2014): every bit of the input reaches every bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t random_name(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return mix(hash);
}

struct random_stream random_open(const struct random_subject *subject)
{
    uint64_t key = subject->seed ^ subject->task;
    return (struct random_stream){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {subject->iteration, subject->replication,
                    (uint32_t)subject->rank << 8 | (uint32_t)subject->part, 0},
        .used = BLOCK_WORDS,
    };
}

static uint32_t next_word(struct random_stream *stream)
{
    if (stream->used == BLOCK_WORDS) {
        random_philox(stream->counter, stream->key, stream->block);
        stream->counter[3]++;
        stream->used = 0;
    }
    return stream->block[stream->used++];
}

uint64_t random_bits(struct random_stream *stream)
{
    uint64_t high = next_word(stream);
    return high << 32 | next_word(stream);
}

double random_uniform(struct random_stream *stream)
{
    return ((double)(random_bits(stream) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(struct random_stream *stream)
{
    double radius = sqrt(-2 * log(random_uniform(stream)));
    return radius * cos(2 * 3.14159265358979323846 * random_uniform(stream));
}
