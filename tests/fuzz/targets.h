/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets.h - what is fuzzed: functions that take any bytes, as a reader of foreign files does.
 *
 * A target returns for every input, in order: no crash, no leak, no exit, no hang. It aborts, with FUZZ_EXPECT, where
 * the product contradicts itself: a canonical text that does not read back as itself, a proof that a simulation
 * refutes. tests/fuzz/libfuzzer.c runs a target with libFuzzer (`make fuzz`), tests/whole/t_fuzz.c runs all of them over the
 * corpus and over some mutations of it (`make check`).
 *
 * Inputs stay in memory, and sizes that they choose stay small, so that an execution takes microseconds.
 */
#ifndef SWSIM_FUZZ_TARGETS_H
#define SWSIM_FUZZ_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*    name     most bytes, words, what it is given */
#define FUZZ_LIST(X)                                                                               \
    X(units, 64, true, "times, sizes, shares and distributions")                                   \
    X(action, 128, true, "the text of an action")                                                  \
    X(csv, 4096, true, "a CSV schedule")                                                           \
    X(plan, 8192, true, "the text of a plan: parsed, printed, converted, edited")                  \
    X(whole, 2048, true, "a small plan: lowered, verified, predicted")                             \
    X(store, 4096, true, "a trace store with changed rows: listed, loaded, compared, drawn")       \
    X(records, 2048, false, "what ranks send of their runs and predictions")                       \
    X(mail, 1024, false, "mail between ranks and their broker")                                    \
    X(certificate, 4096, true, "a certificate of a plan, right or wrong")                          \
    X(json, 4096, true, "JSON of traces, compressed or not")                                       \
    X(dump, 4096, false, "a dump of the flight recorder as pickle, made a plan")                   \
    X(stand, 4096, true, "stacks, counts and logs of a job that hangs: a plan")                    \
    X(recording, 4096, true, "recordings of CUDA programs, as lines or bytes: a plan")             \
    X(kineto, 8192, true, "traces of PyTorch's profiler, as ranks: a plan")                        \
    X(chakra, 4096, false, "an execution trace of Chakra: a plan")                                 \
    X(nsys, 4096, true, "an export of Nsight Systems with changed rows: a plan")

/* The most bytes of a target's input; longer ones are cut off. */
enum {
#define X(name, bytes, words, what) FUZZ_MOST_##name = (bytes),
    FUZZ_LIST(X)
#undef X
};

/* Is it mutated by words and lines? Else by bytes. */
enum {
#define X(name, bytes, words, what) FUZZ_WORDS_##name = (words),
    FUZZ_LIST(X)
#undef X
};

#define X(name, bytes, words, what) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_LIST(X)
#undef X

/* A copy of the input with a NUL behind it; the caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Where texts for people are written: nowhere. */
FILE *fuzz_sink(void);

/* An empty message list, and its end: a failure has said why, a success has no error. */
struct diag;
void fuzz_diag_begin(struct diag *diag);
void fuzz_diag_end(struct diag *diag, bool success);

/* A plan prints as a text that reads back as itself. */
struct plan;
void fuzz_print_again(const struct plan *plan);

/* A rank asks its broker for a value, and whether a rank is gone: both must return. */
struct rendezvous;
void fuzz_ask(struct rendezvous *member);

#define FUZZ_EXPECT(condition)                                                                     \
    ((condition) ? (void)0 : fuzz_contradiction(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_contradiction(const char *condition, const char *file, int line);

#endif
