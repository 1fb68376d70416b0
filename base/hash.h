/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - a 64-bit hash of a block of bytes, the same on every machine and in every run.
 *
 * Eight bytes at a time, multiply and fold (the mixing step of MurmurHash3's finaliser, Appleby
 * 2011). Good enough for tables that compare the bytes as well; not for adversaries.
 */
#ifndef SWSIM_HASH_H
#define SWSIM_HASH_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static inline uint64_t hash_bytes(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ length;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | bytes[i];
        hash = hash_mix(hash ^ word);
    }
    uint64_t rest = 0;
    for (size_t i = length; i-- > 0;)
        rest = rest << 8 | bytes[i];
    return hash_mix(hash ^ rest);
}

/* The same for one word, or four, eight and so on: two of them are multiplied to 128 bits and folded, as Wang
   Yi's wyhash does. Its upper and its lower half are both good. `count` is a constant wherever it
   matters. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_four(const uint64_t *words, uint64_t seed)
{
    return hash_fold(words[0] ^ UINT64_C(0xe7037ed1a0b428db), words[1] ^ seed) ^
           hash_fold(words[2] ^ UINT64_C(0x8ebc6af09c88c6e3), words[3] ^ ~seed);
}

static inline uint64_t hash_words(const uint64_t *words, size_t count)
{
    uint64_t hash = UINT64_C(0xa0761d6478bd642f);
    assert(count == 1 || count % 4 == 0);
    if (count == 1)
        return hash_mix(words[0] ^ hash);
    for (size_t i = 0; i < count; i += 4)
        hash ^= hash_four(words + i, UINT64_C(0x589965cc75374cc3) + i);
    return hash_fold(hash, UINT64_C(0x1d8e4e27c47d124f));
}

static inline uint64_t hash_three(uint64_t seed, uint64_t a, uint64_t b)
{
    const uint64_t words[] = {seed, a, b};
    return hash_bytes(words, sizeof words);
}

#endif
