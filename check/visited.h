/*
 * visited.h - the states seen so far: exact, append-only, within a memory limit.
 *
 *     table (open addressing)        nodes                      bytes (chunks, never moved)
 *     +------+                       +----------------------+   +--------------------------+
 *     | id+1 | --------------------> | at, length, hash     |-->| packed states            |
 *     |  0   |                       | parent, transition   |   +--------------------------+
 *     +------+                       +----------------------+
 *
 * Node numbers count from 0 in the order of insertion, so the nodes are also the queue of a
 * breadth-first search. Parents are kept for counterexamples; the steps between two nodes are found
 * again by replaying.
 */
#ifndef SWSIM_VISITED_H
#define SWSIM_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/machine.h"
#include "core/status.h"

enum { VISITED_NONE = UINT32_MAX };

struct visited;

/* A set that may use about `limit_bytes`. NULL when memory is exhausted. */
struct visited *visited_open(size_t limit_bytes);
void visited_close(struct visited *visited);

/* Insert a packed state. *id is its number; returns whether it is new. STATUS_LIMIT: the memory
   limit is reached, STATUS_SYSTEM: memory is exhausted; then nothing is inserted. */
enum status visited_insert(struct visited *visited, const unsigned char *packed, size_t length,
                           uint32_t parent, struct transition by, uint32_t *id, bool *is_new);

uint32_t visited_count(const struct visited *visited);
size_t visited_bytes(const struct visited *visited);
const unsigned char *visited_state(const struct visited *visited, uint32_t id);
uint32_t visited_parent(const struct visited *visited, uint32_t id);
struct transition visited_transition(const struct visited *visited, uint32_t id);

#endif
