/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - what the preloaded library and the program that drives it share: the kinds of calls that can be made
 * to fail, and the counters of a run.
 *
 * The library counts the calls of each kind, in all processes of a command together, and lets the n-th of one kind
 * fail as the system would. Its environment:
 *
 *     SWSIM_INJECT=KIND:N      the N-th call of KIND fails
 *     SWSIM_INJECT=KIND:N+     the N-th and all later ones
 *     SWSIM_INJECT=count       none; at its end every process prints the counts so far on standard error
 *     SWSIM_INJECT_FROM=NAME   only calls count that come, through any others, from this function or this library: the
 *                              name of an exported function, or the beginning of a file's name
 *     SWSIM_INJECT_COUNTS=F    count in file F, of sizeof(struct inject_counts), which several processes may share
 *     SWSIM_INJECT_TRACE=F     append the calling functions of the first call that fails to file F
 *     SWSIM_INJECT_STACKS=F    append a struct inject_stack for each call to file F
 *
 * Calls before main are not counted, nor writes to descriptor 2, whose failure nothing could report, nor reads and
 * writes of what has no disk: pipes, sockets, eventfds.
 */
#ifndef SWSIM_TESTS_INJECT_H
#define SWSIM_TESTS_INJECT_H

#include <stdatomic.h>
#include <stdint.h>

/*    name     fails with */
#define INJECT_LIST(X)                                                                             \
    X(memory, ENOMEM)                                                                              \
    X(open, EMFILE)                                                                                \
    X(read, EIO)                                                                                   \
    X(write, ENOSPC)                                                                               \
    X(sync, EIO)                                                                                   \
    X(rename, EIO)                                                                                 \
    X(map, ENOMEM)                                                                                 \
    X(process, EAGAIN)                                                                             \
    X(thread, EAGAIN)                                                                              \
    X(socket, ENOBUFS)

enum inject_kind {
#define X(name, error) INJECT_##name,
    INJECT_LIST(X)
#undef X
        INJECT_KINDS
};

/* Two calls of one process with the same number have the same calling functions, up to INJECT_FRAMES of them. */
enum { INJECT_FRAMES = 48 };
struct inject_stack {
    uint64_t kind, call, callers;
};

struct inject_counts {
    _Atomic uint64_t calls[INJECT_KINDS];
    _Atomic uint64_t failed;
};

#endif
