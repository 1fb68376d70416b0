/*
 * passes.h - do the lists of rank programs have the passes that each pass needs, before it?
 *
 * It is what the action text means (s a stage, m a microbatch):
 *
 *     F       the activation of stage s - 1: its F on the same rank, or RECV_F
 *     B, I    F of the stage, and the gradient of stage s + 1: its B or I on the same rank, or RECV_B
 *     W       what I left; B is both
 *     SEND_F  F;  SEND_B  B or I
 *
 * and every stage has each of these passes for every microbatch, unless the plan says `fragment: true`. The lists decide
 * that, whatever the order in which ranks and streams run.
 */
#ifndef SWSIM_PASSES_H
#define SWSIM_PASSES_H

#include "plan/plan.h"

/* *sentence: the first pass that lacks another, in `arena`; NULL: there is none. The plan is one of
   FORM_PROGRAMS. Errors as rank_programs_complete. */
enum status passes_check(const struct plan *plan, struct arena *arena, const char **sentence,
                         struct diag *diag);

#endif
