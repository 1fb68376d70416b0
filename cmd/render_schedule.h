/*
 * render_schedule.h - `swsim render` of rank programs: predicted on the way, then drawn (trace/schedule_picture.h).
 */
#ifndef SWSIM_RENDER_SCHEDULE_H
#define SWSIM_RENDER_SCHEDULE_H

#include "app.h"

#include "trace/schedule_picture.h"

struct render_schedule {
    struct schedule_picture_options picture;
    const char *title; /* NULL: the plan's name */
    const char *path;
};

/* Without times F, I and W last 1 each, and B 2; without bytes memory is counted in activations. */
enum status render_schedule(struct app *app, const struct plan *plan,
                            const struct render_schedule *wanted);

#endif
