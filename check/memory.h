/*
 * memory.h - the bytes that host and rank programs hold, against `machine: {memory}`.
 *
 * A host program holds the buffers that it uses and never allocates all the time; those that it allocates are counted
 * by the machine, at each alloc. A rank program holds a result or a message from the action that brings it to the last
 * one that uses it, in the order of its list: a caching allocator gives and takes memory when calls are made. So the
 * most it holds follows from the list, in every run.
 */
#ifndef SWSIM_MEMORY_H
#define SWSIM_MEMORY_H

#include "machine/program.h"
#include "plan/diag.h"

/* The most bytes that a rank holds, and that rank: of a rank program from its list, of a host program without what it
   allocates. Programs with iterations: 0. */
enum status memory_most(const struct program *program, int64_t *bytes, int *rank,
                        struct diag *diag);

#endif
