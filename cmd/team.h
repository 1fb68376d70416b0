/*
 * team.h - a command's processes under mpirun or srun: rank 0 leads, the others help it predict.
 *
 *     rank 0:  begin  ... results ...  begin  ... results ...  end
 *                 \   /                   \   /                  \
 *     rank 1:    begin                   begin                   close
 *
 * Every process reads the same arguments and the same plan and comes to the same predictions, one after
 * the other. Rank 0 says when one begins and when all is over; the others have no will of their own, so
 * whatever goes wrong anywhere ends on rank 0, which says so, and nobody waits for one who has left. What
 * a helper could not do, such as reading the plan, it tells when it is asked to help.
 *
 * A process that dies without a word, the launcher ends with all others.
 */
#ifndef SWSIM_TEAM_H
#define SWSIM_TEAM_H

#include "app.h"
#include "starter.h"

#include "sim/predict/spread.h"

struct team;

/*
 * Come together with the processes that were started with this one. *out is NULL where this process
 * works alone: nobody else was started, or (with a warning) there is no MPI that knows of them. Then
 * rank 0 works alone and the others have nothing to do: false.
 */
bool team_open(struct app *app, const struct starter *starter, struct team **out);

/* What this process was asked for and of which plan: all must agree on it. */
void team_agree(struct team *team, uint64_t digest);

/* For predict_options; NULL of no team. */
const struct spread *team_spread(struct team *team);

/* All is over, and how it ended here. Returns how it ended on rank 0. NULL is allowed. */
enum status team_close(struct team *team, struct app *app, enum status status);

#endif
