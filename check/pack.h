/*
 * pack.h - a canonical state as few bytes.
 *
 * A state is an array of 32-bit words, most of them zero or small. Each word becomes a
 * variable-length integer (seven bits a byte, zigzag for the sign); a run of zeros becomes a zero
 * byte and its length. Packing is exact: equal bytes mean equal states, and pack_expand gives the
 * state back.
 */
#ifndef SWSIM_PACK_H
#define SWSIM_PACK_H

#include "core/machine.h"

/* An upper bound on the packed size of a state of this program. */
size_t pack_bound(const struct program *program);
/* Pack into `out`; returns the number of bytes. */
size_t pack_state(const struct program *program, const struct state *state, unsigned char *out);
void pack_expand(const struct program *program, const unsigned char *packed, struct state *out);

#endif
