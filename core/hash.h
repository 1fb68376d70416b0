/*
 * hash.h - a 64-bit hash of a block of bytes, the same on every machine and in every run.
 *
 * Eight bytes at a time, multiply and fold (the mixing step of MurmurHash3's finaliser, Appleby
 * 2011). Good enough for tables that compare the bytes as well; not for adversaries.
 */
#ifndef SWSIM_HASH_H
#define SWSIM_HASH_H

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

#endif
