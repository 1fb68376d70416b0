/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfuzzer.c - one target for libFuzzer of clang, compiled with -DFUZZ_TARGET=name.
 *
 * https://llvm.org/docs/LibFuzzer.html
 */
#include "mutate.h"
#include "targets.h"

#define PASTE(a, b)      a##b
#define OF(prefix, name) PASTE(prefix, name)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t most = OF(FUZZ_MOST_, FUZZ_TARGET);
    OF(fuzz_, FUZZ_TARGET)(data, size < most ? size : most);
    return 0;
}

/* Bytes now and then where words are understood, and always elsewhere. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    size_t mutated = 0;
    if (OF(FUZZ_WORDS_, FUZZ_TARGET) && seed % 8)
        mutated = mutate_text(data, size, most, seed);
    return mutated ? mutated : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed)
{
    return mutate_mix(a, a_size, b, b_size, out, most, seed);
}
