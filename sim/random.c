/*
 * random.c - see random.h. The counter and the key:
 *
 *     counter  iteration | replication | rank, part | block number
 *     key      seed xor the task's name
 *
 * Streams and words never share a counter: those of streams have block numbers below WORDS.
 *
 * The vector code is the ten rounds of the paper with a block in each 64-bit lane; what is above the
 * lower 32 bits of a lane is never looked at. The library is the reference it is tested against.
 */
#include "sim/random.h"

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

enum { BLOCK_WORDS = 4, ROUNDS = 10, ROWS = RANDOM_RUN / 2 / RANDOM_LANES };
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

/* Blocks beside each other have counters from first[0] on (a run), or from first[1] on (across). */
struct grid {
    uint32_t first[4], key[2];
};

/* Rows of RANDOM_LANES blocks: their first words, and their second ones. */
typedef void run_grid(const struct grid *grid, int rows, uint64_t *low, uint64_t *high);

/* One block of the grid by the library: where there are no vectors, and for single words. */
static void one_block(const struct grid *grid, uint32_t iterations, uint32_t replications,
                      uint64_t *low, uint64_t *high)
{
    uint32_t block[BLOCK_WORDS];
    const uint32_t counter[] = {grid->first[0] + iterations, grid->first[1] + replications,
                                grid->first[2], grid->first[3]};
    random_philox(counter, grid->key, block);
    *low = (uint64_t)block[0] << 32 | block[1];
    *high = (uint64_t)block[2] << 32 | block[3];
}

#if !defined __x86_64__
static void run_plain(const struct grid *grid, int rows, uint64_t *low, uint64_t *high)
{
    for (uint32_t i = 0; i < (uint32_t)rows * RANDOM_LANES; i++)
        one_block(grid, i, 0, low + i, high + i);
}

static void across_plain(const struct grid *grid, int rows, uint64_t *low, uint64_t *high)
{
    for (uint32_t i = 0; i < (uint32_t)rows * RANDOM_LANES; i++)
        one_block(grid, i / RANDOM_LANES, i % RANDOM_LANES, low + i, high + i);
}
#else
static const uint64_t numbers[RANDOM_LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t MUL0 = 0xd2511f53u, MUL1 = 0xcd9e8d57u;
static const uint32_t WEYL0 = 0x9e3779b9u,
                      WEYL1 = 0xbb67ae85u; /* what is added to the key a round */

/* Rounds `from` to the last of TOGETHER vectors, which are under way at once to hide how long a
   multiplication takes; then their words are stored from `at` on. */
#define LAST_ROUNDS(from, WIDTH, TOGETHER, MULTIPLY, VECTOR)                                       \
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
        const vector words[] = {c0[t] << 32 | (c1[t] & lower), c2[t] << 32 | (c3[t] & lower)};     \
        memcpy(low + at + t * WIDTH, &words[0], sizeof(vector));                                   \
        memcpy(high + at + t * WIDTH, &words[1], sizeof(vector));                                  \
    }

#define DEFINE_RUN(NAME, TARGET, WIDTH, TOGETHER, MULTIPLY, VECTOR)                                \
    __attribute__((target(TARGET))) static void NAME(const struct grid *grid, int rows,            \
                                                     uint64_t *low, uint64_t *high)                \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));                           \
        const vector zero = {0}, mul0 = zero + MUL0, mul1 = zero + MUL1;                           \
        const vector lower = zero + 0xffffffffu;                                                   \
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
            LAST_ROUNDS(0, WIDTH, TOGETHER, MULTIPLY, VECTOR)                                      \
        }                                                                                          \
    }

/* Three rounds are done here where only one number differs between the lanes, and another between the
   rows: most of what they multiply is the same for all lanes of a row, or for all rows of a lane. */
#define DEFINE_ACROSS(NAME, TARGET, WIDTH, TOGETHER, MULTIPLY, VECTOR)                             \
    __attribute__((target(TARGET))) static void NAME(const struct grid *grid, int rows,            \
                                                     uint64_t *low, uint64_t *high)                \
    {                                                                                              \
        typedef uint64_t vector __attribute__((vector_size(8 * WIDTH)));                           \
        const vector zero = {0}, mul0 = zero + MUL0, mul1 = zero + MUL1;                           \
        const vector lower = zero + 0xffffffffu;                                                   \
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
            LAST_ROUNDS(3, WIDTH, TOGETHER, MULTIPLY, VECTOR)                                      \
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

/* Which block of a run the word of an iteration is in, and in which half of it. */
static struct grid grid_of(const struct random_subject *subject, uint32_t use)
{
    uint64_t key = subject->seed ^ subject->task;
    return (struct grid){
        .first = {subject->iteration / RANDOM_RUN * (RANDOM_RUN / 2), subject->replication,
                  (uint32_t)subject->rank << 8 | (uint32_t)subject->part, WORDS + use},
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
    };
}

uint64_t random_word(const struct random_subject *subject, uint32_t use)
{
    struct grid grid = grid_of(subject, use);
    uint64_t low, high;
    one_block(&grid, subject->iteration % (RANDOM_RUN / 2), 0, &low, &high);
    return subject->iteration % RANDOM_RUN < RANDOM_RUN / 2 ? low : high;
}

void random_words(const struct random_subject *subject, uint32_t use, uint64_t out[RANDOM_RUN])
{
    struct grid grid = grid_of(subject, use);
    best_run(false)(&grid, ROWS, out, out + RANDOM_RUN / 2);
}

void random_words_across(const struct random_subject *subject, uint32_t use, int part,
                         uint64_t low[RANDOM_ROWS][RANDOM_LANES],
                         uint64_t high[RANDOM_ROWS][RANDOM_LANES])
{
    struct grid grid = grid_of(subject, use);
    grid.first[0] += (uint32_t)(part * RANDOM_ROWS);
    best_run(true)(&grid, RANDOM_ROWS, low[0], high[0]);
}
