/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_chart.h - a schedule as the data of a page (page.h): a lane for each rank, a box for each pass, what ranks hold.
 */
#ifndef SWSIM_PAGE_CHART_H
#define SWSIM_PAGE_CHART_H

#include "base/arena.h"
#include "base/json.h"
#include "chart.h"
#include "schedule_picture.h"

/* An object. False: out of memory. */
bool page_chart_write(const struct chart *chart, enum palette palette, struct arena *arena,
                      struct json *json);

#endif
