/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_picture.h - the candidates of a frontier as points: memory to the right, time of a microbatch upwards.
 *
 * The frontier is a staircase: below and left of it there is nothing.
 */
#ifndef SWSIM_FRONTIER_PICTURE_H
#define SWSIM_FRONTIER_PICTURE_H

#include "improve/frontier.h"

/* Of a sorted frontier, in the format of the path's extension (trace/draw.h). Without a proved candidate it is
   an empty sheet. */
enum status frontier_draw(const struct frontier *frontier, const char *path, struct diag *diag);

#endif
