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

enum { BLOCK_WORDS = 4, ROUNDS = 10, BESIDE = RANDOM_ROWS / BLOCK_WORDS };
_Static_assert((int)BESIDE == (int)RANDOM_LANES, "as many iterations side by side as replications");
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

/* ---- words ----------------------------------------------------------------------------------- */

/*
 * A grid is eight rows of eight blocks, or fewer rows, and a block has four words. In a row of a run are
 * the blocks of RANDOM_ROWS iterations; across, those of eight replications:
 *
 *              run: 32 words a row                              across: 8 words a row
 *     row 0    word 0 of iterations 0 .. 7, word 1: 8 .. 15,    word 0 of iteration 0, lanes 0 .. 7
 *              word 2: 16 .. 23, word 3: 24 .. 31
 *     row 1    iterations 32 .. 39, 40 .. 47, ...               word 0 of iteration 1
 *     ...                                                       ... 7; then word 1: iterations 8 .. 15
 *
 * Blocks beside each other have counters from first[0] on (a run), or from first[1] on (across).
 */
struct grid {
    uint32_t first[4], key[2];
};

enum {
    RUN_ROW = RANDOM_ROWS, /* where the next row is, and the next word */
    RUN_WORD = BESIDE,
    ACROSS_ROW = RANDOM_LANES,
    ACROSS_WORD = BESIDE * RANDOM_LANES
};

typedef void run_grid(const struct grid *grid, int rows, uint32_t *out);

/* One block of the grid by the library: where there are no vectors, and for single words. */
static void one_block(const struct grid *grid, uint32_t iterations, uint32_t replications,
                      uint32_t block[BLOCK_WORDS])
{
    const uint32_t counter[] = {grid->first[0] + iterations, grid->first[1] + replications,
                                grid->first[2], grid->first[3]};
    random_philox(counter, grid->key, block);
}

#if !defined __x86_64__
static void run_plain(const struct grid *grid, int rows, uint32_t *out)
{
    for (uint32_t i = 0; i < (uint32_t)rows * BESIDE; i++) {
        uint32_t block[BLOCK_WORDS];
        one_block(grid, i, 0, block);
        for (uint32_t w = 0; w < BLOCK_WORDS; w++)
            out[i / BESIDE * RUN_ROW + w * RUN_WORD + i % BESIDE] = block[w];
    }
}

static void across_plain(const struct grid *grid, int rows, uint32_t *out)
{
    for (uint32_t i = 0; i < (uint32_t)rows * RANDOM_LANES; i++) {
        uint32_t block[BLOCK_WORDS];
        one_block(grid, i / RANDOM_LANES, i % RANDOM_LANES, block);
        for (uint32_t w = 0; w < BLOCK_WORDS; w++)
            out[i + w * ACROSS_WORD] = block[w];
    }
}
#else
static const uint64_t numbers[RANDOM_LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t MUL0 = 0xd2511f53u, MUL1 = 0xcd9e8d57u;
static const uint32_t WEYL0 = 0x9e3779b9u,
                      WEYL1 = 0xbb67ae85u; /* what is added to the key a round */

/* Rounds `from` to the last of TOGETHER vectors, which are under way at once to hide how long a
   multiplication takes; then their words are stored, the grid's blocks from `at` on. */
#define LAST_ROUNDS(from, WIDTH, TOGETHER, MULTIPLY, VECTOR, ROW, WORD)                            \
    _Pragma("GCC unroll 10") for (uint32_t r = (from); r < ROUNDS; r++)                            \
    {                                                                                              \
        const vector k0 = zero + (uint32_t)(key0 + r * WEYL0),                                     \
                     k1 = zero + (uint32_t)(key1 + r * WEYL1);                                     \
        for (int t = 0; t < TOGETHER; t++) {                                                       \
            vector first = (vector)MULTIPLY((VECTOR)c0[t], (VECTOR)mul0);                          \
            vector second = (vector)MULTIPLY((VECTOR)c2[t], (VECTOR)mul1);                         \
            c0[t] = (second >> 32) ^ c1[t] ^ k0;                                                   \
            c2[t] = (first >> 32) ^ c3[t] ^ k1;                                                    \
            c1[t] = second;                                                                        \
            c3[t] = first;                                                                         \
        }                                                                                          \
    }                                                                                              \
    for (int t = 0; t < TOGETHER; t++) {                                                           \
        const int block = at + t * WIDTH;                                                          \
        const narrow words[] = {                                                                   \
            __builtin_convertvector(c0[t], narrow), __builtin_convertvector(c1[t], narrow),        \
            __builtin_convertvector(c2[t], narrow), __builtin_convertvector(c3[t], narrow)};       \
        for (int w = 0; w < BLOCK_WORDS; w++)                                                      \
            memcpy(out + block / BESIDE * ROW + w * WORD + block % BESIDE, &words[w],              \
                   sizeof(narrow));                                                                \
    }

#define DEFINE_RUN(NAME, TARGET, WIDTH, TOGETHER, MULTIPLY, VECTOR)                                \
    __attribute__((target(TARGET))) static void NAME(const struct grid *grid, int rows,            \
                                                     uint32_t *out)                                \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));                           \
        typedef uint32_t narrow __attribute__((vector_size(4 * WIDTH)));                           \
        const vector zero = {0}, mul0 = zero + MUL0, mul1 = zero + MUL1;                           \
        const uint32_t key0 = grid->key[0], key1 = grid->key[1];                                   \
        vector lane, c0[TOGETHER], c1[TOGETHER], c2[TOGETHER], c3[TOGETHER];                       \
        memcpy(&lane, numbers, sizeof lane);                                                       \
        for (int at = 0; at < rows * RANDOM_LANES; at += WIDTH * TOGETHER) {                       \
            for (int t = 0; t < TOGETHER; t++) {                                                   \
                c0[t] = lane + (grid->first[0] + (uint32_t)(at + t * WIDTH));                      \
                c1[t] = zero + grid->first[1];                                                     \
                c2[t] = zero + grid->first[2];                                                     \
                c3[t] = zero + grid->first[3];                                                     \
            }                                                                                      \
            LAST_ROUNDS(0, WIDTH, TOGETHER, MULTIPLY, VECTOR, RUN_ROW, RUN_WORD)                   \
        }                                                                                          \
    }

/* Three rounds are done here where only one number differs between the lanes, and another between the
   rows: most of what they multiply is the same for all lanes of a row, or for all rows of a lane. */
#define DEFINE_ACROSS(NAME, TARGET, WIDTH, TOGETHER, MULTIPLY, VECTOR)                             \
    __attribute__((target(TARGET))) static void NAME(const struct grid *grid, int rows,            \
                                                     uint32_t *out)                                \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));                           \
        typedef uint32_t narrow __attribute__((vector_size(4 * WIDTH)));                           \
        const vector zero = {0}, mul0 = zero + MUL0, mul1 = zero + MUL1;                           \
        const uint32_t key0 = grid->key[0], key1 = grid->key[1];                                   \
        const uint64_t same = (uint64_t)grid->first[2] * MUL1; /* in round 0 */                    \
        vector lane, by_lane[RANDOM_LANES / WIDTH];            /* in round 1 */                    \
        vector c0[TOGETHER], c1[TOGETHER], c2[TOGETHER], c3[TOGETHER];                             \
        for (int i = 0; i < RANDOM_LANES / WIDTH; i++) {                                           \
            memcpy(&lane, numbers + i * WIDTH, sizeof lane);                                       \
            lane = (lane + grid->first[1]) ^ (zero + ((same >> 32) ^ key0));                       \
            by_lane[i] = (vector)MULTIPLY((VECTOR)lane, (VECTOR)mul0);                             \
        }                                                                                          \
        for (int at = 0; at < rows * RANDOM_LANES; at += WIDTH * TOGETHER) {                       \
            for (int t = 0; t < TOGETHER; t++) {                                                   \
                const uint32_t row = (uint32_t)(at + t * WIDTH) / RANDOM_LANES;                    \
                const vector beside = by_lane[t % (RANDOM_LANES / WIDTH)];                         \
                const uint64_t first = (uint64_t)(uint32_t)(grid->first[0] + row) * MUL0;          \
                const uint32_t third = (uint32_t)(first >> 32) ^ grid->first[3] ^ key1;            \
                const uint64_t second = (uint64_t)third * MUL1;                                    \
                const uint32_t zeroth =                                                            \
                    (uint32_t)(second >> 32) ^ (uint32_t)same ^ (key0 + WEYL0);                    \
                const uint64_t last = (uint64_t)zeroth * MUL0;                                     \
                c2[t] = (beside >> 32) ^ (zero + ((uint32_t)first ^ (key1 + WEYL1)));              \
                c1[t] = (vector)MULTIPLY((VECTOR)c2[t], (VECTOR)mul1);                             \
                c0[t] = (c1[t] >> 32) ^ (zero + ((uint32_t)second ^ (key0 + 2 * WEYL0)));          \
                c2[t] = beside ^ (zero + ((last >> 32) ^ (uint32_t)(key1 + 2 * WEYL1)));           \
                c3[t] = zero + (uint32_t)last;                                                     \
            }                                                                                      \
            LAST_ROUNDS(3, WIDTH, TOGETHER, MULTIPLY, VECTOR, ACROSS_ROW, ACROSS_WORD)             \
        }                                                                                          \
    }

DEFINE_RUN(run_sse2, "sse2", 2, 4, _mm_mul_epu32, __m128i)
DEFINE_RUN(run_avx2, "avx2", 4, 4, _mm256_mul_epu32, __m256i)
DEFINE_RUN(run_avx512, "avx512f", 8, 4, _mm512_mul_epu32, __m512i)
DEFINE_ACROSS(across_sse2, "sse2", 2, 4, _mm_mul_epu32, __m128i)
DEFINE_ACROSS(across_avx2, "avx2", 4, 4, _mm256_mul_epu32, __m256i)
DEFINE_ACROSS(across_avx512, "avx512f", 8, 4, _mm512_mul_epu32, __m512i)
#endif

static run_grid *best_run(bool across)
{
#if defined __x86_64__
    return __builtin_cpu_supports("avx512f") ? (across ? across_avx512 : run_avx512)
           : __builtin_cpu_supports("avx2")  ? (across ? across_avx2 : run_avx2)
           : across                          ? across_sse2
                                             : run_sse2;
#else
    return across ? across_plain : run_plain;
#endif
}

/* The blocks from those of an iteration's RANDOM_ROWS on. */
static struct grid grid_of(const struct random_subject *subject, uint32_t iteration, uint32_t use)
{
    uint64_t key = subject->seed ^ subject->task;
    return (struct grid){
        .first = {iteration / RANDOM_ROWS * BESIDE, subject->replication,
                  (uint32_t)subject->rank << 8 | (uint32_t)subject->part, WORDS + use},
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
    };
}

uint32_t random_word(const struct random_subject *subject, uint32_t use)
{
    struct grid grid = grid_of(subject, subject->iteration, use);
    uint32_t block[BLOCK_WORDS];
    one_block(&grid, subject->iteration % BESIDE, 0, block);
    return block[subject->iteration % RANDOM_ROWS / BESIDE];
}

void random_words(const struct random_subject *subject, uint32_t use, uint32_t out[RANDOM_RUN])
{
    struct grid grid = grid_of(subject, subject->iteration / RANDOM_RUN * RANDOM_RUN, use);
    best_run(false)(&grid, RANDOM_RUN / RANDOM_ROWS, out);
}

void random_words_across(const struct random_subject *subject, uint32_t use,
                         uint32_t out[RANDOM_ROWS][RANDOM_LANES])
{
    struct grid grid = grid_of(subject, subject->iteration, use);
    best_run(true)(&grid, BESIDE, out[0]);
}
