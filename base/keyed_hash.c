/* SPDX-License-Identifier: Apache-2.0 */
/* keyed_hash.c - see keyed_hash.h. */
#include "keyed_hash.h"

#include <string.h>
#include <sys/auxv.h>

static inline uint64_t keyed_hash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* SipRound of the paper, section 2.1. */
static inline void keyed_hash_mix(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = keyed_hash_rotate(v[1], 13) ^ v[0], v[3] = keyed_hash_rotate(v[3], 16) ^ v[2];
    v[0] = keyed_hash_rotate(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = keyed_hash_rotate(v[1], 17) ^ v[2], v[3] = keyed_hash_rotate(v[3], 21) ^ v[0];
    v[2] = keyed_hash_rotate(v[2], 32);
}

static void compress(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    keyed_hash_mix(v);
    keyed_hash_mix(v);
    v[0] ^= word;
}

/* At most eight bytes, the first one lowest. */
static uint64_t keyed_hash_word_at(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = count; i-- > 0;)
        word = word << 8 | bytes[i];
    return word;
}

uint64_t keyed_hash_with(const uint64_t key[2], const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    size_t left = length;
    for (; left >= 8; bytes += 8, left -= 8)
        compress(v, keyed_hash_word_at(bytes, 8));
    compress(v, keyed_hash_word_at(bytes, left) | (uint64_t)(length & 0xff) << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        keyed_hash_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t keyed_hash(const void *data, size_t length)
{
    uint64_t key[2] = {0};
    const void *drawn = (const void *)getauxval(AT_RANDOM);
    if (drawn)
        memcpy(key, drawn, sizeof key);
    return keyed_hash_with(key, data, length);
}
