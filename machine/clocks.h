/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clocks.h - knowledge of accesses beside a state, for one run of a program too big to keep it in states; private to
 * the machine.
 *
 * A row (machine_internal.h numbers them) is a vector clock: for each agent that accesses buffers, how many of its
 * accesses are known. An access is the next tick of its agent, and a race if the last tick of a conflicting one is
 * not known (FastTrack: Flanagan, Freund 2009). As in a state, but ticks are never numbered anew, so states with clocks
 * are never compared; and rows that are equal are kept once.
 *
 * Only programs without iterations have them. Memory that is refused is noted in `failed`.
 */
#ifndef SWSIM_CLOCKS_H
#define SWSIM_CLOCKS_H

#include "machine_internal.h"

struct clocks;

/* NULL when memory is exhausted. */
struct clocks *clocks_open(const struct program *program);
void clocks_close(struct clocks *clocks);
/* Nothing is known, nothing accessed. */
void clocks_reset(struct clocks *clocks);
/* While nothing is known: from now on a row knows of accesses of its own rank alone, or of all. Knowledge by way of another
   rank is left out then: a conflict may seem to lack an order that it has, but none that has none is missed. It saves
   most of a clock where a buffer is one rank's, and is not done where it may be of several. */
void clocks_limit(struct clocks *clocks, bool own_rank);
bool clocks_failed(const struct clocks *clocks);

/* As hb_join and the others of happens_before.h. */
void clocks_join(struct clocks *clocks, int to, int from);
void clocks_copy(struct clocks *clocks, int to, int from);
void clocks_clear(struct clocks *clocks, int row);
void clocks_shift(struct clocks *clocks, int first, int count);

/* Access number `record` of program->records is made by the agent of row `self`. Returns a conflicting access that it
   does not know, -1: none. */
int clocks_access(struct clocks *clocks, const struct buffer_desc *buffer, int record, int self);

/* True if any agent has written the buffer. */
bool clocks_written(const struct clocks *clocks, const struct buffer_desc *buffer);

/* Allocation number `record` is called, or takes effect, by the owner of row `self`. */
void clocks_allocate(struct clocks *clocks, int record, int self);
/* True if `record` has happened (clocks_is_made), or its last time is known in row `self`. */
bool clocks_is_made(const struct clocks *clocks, int record);
bool clocks_knows(const struct clocks *clocks, int record, int self);

/* A wait for the record at a position of a stream is pushed; the record takes effect; the wait does. Between the last
   two the knowledge of the record is kept. */
void clocks_expect(struct clocks *clocks, int stream, int position);
void clocks_reach(struct clocks *clocks, int stream, int position, int self);
void clocks_receive(struct clocks *clocks, int stream, int position, int self);

#endif
