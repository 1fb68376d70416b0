/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - see random.h. The counter and the key:
 *
 *     counter  iteration | replication | rank, part | block number       words: that of the iteration's block
 *     key      seed xor the task's name
 *
 * Streams and words never share a counter: those of streams have block numbers below WORDS.
 *
 * The vector code is the ten rounds of the paper with a block in each 64-bit lane; what is above the
 * lower 32 bits of a lane is never looked at. The library is the reference it is tested against.
 */
#include "random.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* the loops over vectors are to be unrolled */
#endif

#include <math.h>
#include <stdbool.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

/* A row is BESIDE blocks, which hold the words of ROW iterations; a run is ROWS rows. */
enum {
    BLOCK_WORDS = 4,
    ROUNDS = 10,
    BESIDE = 8,
    ROW = BESIDE * BLOCK_WORDS,
    ROWS = RANDOM_RUN / ROW
};
_Static_assert(ROWS *ROW == RANDOM_RUN, "a run is whole rows");
static const uint32_t WORDS = UINT32_C(1) << 31; /* first block number of words */

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    philox4x32_ctr_t c = {{counter[0], counter[1], counter[2], counter[3]}};
    philox4x32_key_t k = {{key[0], key[1]}};
    philox4x32_ctr_t block = philox4x32(c, k);
    for (int i = 0; i < BLOCK_WORDS; i++)
        out[i] = block.v[i];
}

/* The finaliser of SplitMix64 (Steele et al. 2014): every bit of the input reaches every bit. */
static uint64_t random_mix(uint64_t x)
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
    return random_mix(hash);
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

/* ---- words ----------------------------------------------------------------------------------- */

/*
 * A run is four rows of eight blocks, and a block has four words:
 *
 *     row 0    word 0 of iterations 0 .. 7, word 1: 8 .. 15, word 2: 16 .. 23, word 3: 24 .. 31
 *     row 1    iterations 32 .. 39, 40 .. 47, ...
 *
 * Blocks beside each other have counters from first[0] on.
 */
struct grid {
    uint32_t first[4], key[2];
};

typedef void draw_grid(const struct grid *grid, uint32_t *out);

/* One block of the grid by the library: where there are no vectors, and for single words. */
static void one_block(const struct grid *grid, uint32_t number, uint32_t block[BLOCK_WORDS])
{
    const uint32_t counter[] = {grid->first[0] + number, grid->first[1], grid->first[2],
                                grid->first[3]};
    random_philox(counter, grid->key, block);
}

#if !defined __x86_64__
static void draw_plain(const struct grid *grid, uint32_t *out)
{
    for (uint32_t i = 0; i < ROWS * BESIDE; i++) {
        uint32_t block[BLOCK_WORDS];
        one_block(grid, i, block);
        for (uint32_t w = 0; w < BLOCK_WORDS; w++)
            out[i / BESIDE * ROW + w * BESIDE + i % BESIDE] = block[w];
    }
}
#else
static const uint64_t numbers[BESIDE] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t MUL0 = 0xd2511f53u, MUL1 = 0xcd9e8d57u;
static const uint32_t WEYL0 = 0x9e3779b9u,
                      WEYL1 = 0xbb67ae85u; /* what is added to the key a round */

/* TOGETHER vectors are under way at once, to hide how long a multiplication takes. */
#define DEFINE_DRAW(NAME, TARGET, WIDTH, TOGETHER, MULTIPLY, VECTOR)                               \
    __attribute__((target(TARGET))) static void NAME(const struct grid *grid, uint32_t *out)       \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));                           \
        typedef uint32_t narrow __attribute__((vector_size(4 * WIDTH)));                           \
        const vector zero = {0}, mul0 = zero + MUL0, mul1 = zero + MUL1;                           \
        const uint32_t key0 = grid->key[0], key1 = grid->key[1];                                   \
        vector lane, c0[TOGETHER], c1[TOGETHER], c2[TOGETHER], c3[TOGETHER];                       \
        memcpy(&lane, numbers, sizeof lane);                                                       \
        for (int at = 0; at < ROWS * BESIDE; at += WIDTH * TOGETHER) {                             \
            for (int t = 0; t < TOGETHER; t++) {                                                   \
                c0[t] = lane + (grid->first[0] + (uint32_t)(at + t * WIDTH));                      \
                c1[t] = zero + grid->first[1];                                                     \
                c2[t] = zero + grid->first[2];                                                     \
                c3[t] = zero + grid->first[3];                                                     \
            }                                                                                      \
            _Pragma("GCC unroll 10") for (uint32_t r = 0; r < ROUNDS; r++)                         \
            {                                                                                      \
                const vector k0 = zero + (uint32_t)(key0 + r * WEYL0),                             \
                             k1 = zero + (uint32_t)(key1 + r * WEYL1);                             \
                for (int t = 0; t < TOGETHER; t++) {                                               \
                    vector first = (vector)MULTIPLY((VECTOR)c0[t], (VECTOR)mul0);                  \
                    vector second = (vector)MULTIPLY((VECTOR)c2[t], (VECTOR)mul1);                 \
                    c0[t] = (second >> 32) ^ c1[t] ^ k0;                                           \
                    c2[t] = (first >> 32) ^ c3[t] ^ k1;                                            \
                    c1[t] = second;                                                                \
                    c3[t] = first;                                                                 \
                }                                                                                  \
            }                                                                                      \
            for (int t = 0; t < TOGETHER; t++) {                                                   \
                const int block = at + t * WIDTH;                                                  \
                const narrow words[] = {__builtin_convertvector(c0[t], narrow),                    \
                                        __builtin_convertvector(c1[t], narrow),                    \
                                        __builtin_convertvector(c2[t], narrow),                    \
                                        __builtin_convertvector(c3[t], narrow)};                   \
                for (int w = 0; w < BLOCK_WORDS; w++)                                              \
                    memcpy(out + block / BESIDE * ROW + w * BESIDE + block % BESIDE, &words[w],    \
                           sizeof(narrow));                                                        \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_DRAW(draw_sse2, "sse2", 2, 4, _mm_mul_epu32, __m128i)
DEFINE_DRAW(draw_avx2, "avx2", 4, 4, _mm256_mul_epu32, __m256i)
DEFINE_DRAW(draw_avx512, "avx512f", 8, 4, _mm512_mul_epu32, __m512i)
#endif

static draw_grid *best_draw(void)
{
#if defined __x86_64__
    return __builtin_cpu_supports("avx512f") ? draw_avx512
           : __builtin_cpu_supports("avx2")  ? draw_avx2
                                             : draw_sse2;
#else
    return draw_plain;
#endif
}

/* The blocks from those of an iteration's row on. */
static struct grid grid_of(const struct random_subject *subject, uint32_t iteration, uint32_t use)
{
    uint64_t key = subject->seed ^ subject->task;
    return (struct grid){
        .first = {iteration / ROW * BESIDE, subject->replication,
                  (uint32_t)subject->rank << 8 | (uint32_t)subject->part, WORDS + use},
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
    };
}

uint32_t random_word(const struct random_subject *subject, uint32_t use)
{
    struct grid grid = grid_of(subject, subject->iteration, use);
    uint32_t block[BLOCK_WORDS];
    one_block(&grid, subject->iteration % BESIDE, block);
    return block[subject->iteration % ROW / BESIDE];
}

void random_words(const struct random_subject *subject, uint32_t use, uint32_t out[RANDOM_RUN])
{
    struct grid grid = grid_of(subject, subject->iteration / RANDOM_RUN * RANDOM_RUN, use);
    best_draw()(&grid, out);
}
