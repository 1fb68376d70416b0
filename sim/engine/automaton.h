/*
 * automaton.h - what the machine does is remembered, so that it need not be asked twice; private to
 * the event-driven engine.
 *
 * Without its clocks a simulation has few states: those of the machine, iteration numbers being
 * relative (machine_canonical), and who is busy. What follows when somebody's time is over depends
 * on nothing else. So the simulation is a finite automaton that is found on the way:
 *
 *     node   a state, as bytes
 *     edge   agent a's time is over: timers that start, streams that change what they do,
 *            iterations that begin or end, and the next node
 *
 * The first time an edge is taken the machine does the steps and a recording is made; from then on
 * it is done again as it was written down (reflex.h). Luck is in the durations alone, which are drawn in
 * either case. An edge is taken per event; of several events at one time all but the last lead to an open
 * node, where the instant has not been brought to its end.
 *
 * Whose time is over next is a question of luck, but mostly it is the one of last time. So a reflex
 * remembers which one followed it, and that is taken if it comes first, before anything is looked up.
 *
 * Where work slows other work down (sharing.h), how much is left of what only says when time is over, not
 * what follows. So it is no part of a state, and those accounts are kept beside it like the clocks.
 */
#ifndef SWSIM_AUTOMATON_H
#define SWSIM_AUTOMATON_H

#include "simulation.h"

/* Go on from the present instant, its end included, as long as that is faster than asking the
   machine, and at most until the end of the data comes in sight. */
void automaton_run(struct simulation *sim);

#endif
