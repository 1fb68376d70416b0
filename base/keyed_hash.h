/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyed_hash.h - a 64-bit hash of names that come from outside, under a key that each process gets.
 *
 * SipHash-2-4 (Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012): without the key nobody can choose names
 * that all fall on one place of a table and make it slow. The key is the 16 random bytes that the kernel gives each program
 * that it starts (getauxval(3), AT_RANDOM); a process and its children by fork have the same. For everything else, and where two runs must agree: hash.h.
 */
#ifndef SWSIM_KEYED_HASH_H
#define SWSIM_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Under the key of this process; hashes are not shown outside of it. */
uint64_t keyed_hash(const void *data, size_t length);

/* Under this one. */
uint64_t keyed_hash_with(const uint64_t key[2], const void *data, size_t length);

#endif
