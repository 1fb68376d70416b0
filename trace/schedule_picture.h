/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule_picture.h - the picture of a pipeline-parallel schedule: a row for each rank, memory over time beneath.
 *
 * Widths are to scale. A box is a pass, coloured by its kind, shaded by its chunk, with the microbatch in it; bubbles
 * are hatched; an overlapped pair has a thick border and two numbers. Passes that are too narrow to be seen are merged
 * into blocks that show each kind's share of the time and the range of the microbatches. Messages are thin arrows, where
 * there is room for them. The curves beneath are what ranks hold, with the peak and the limit.
 * Palettes: PyTorch's schedule visualiser, the figures of DualPipe, those of the zero-bubble papers, greys.
 */
#ifndef SWSIM_SCHEDULE_PICTURE_H
#define SWSIM_SCHEDULE_PICTURE_H

#include "chart.h"
#include "draw.h"

#include "base/diag.h"
#include "base/status.h"

#define PALETTE_LIST(X)                                                                            \
    X(PYTORCH, "pytorch") X(DUALPIPE, "dualpipe") X(ZERO_BUBBLE, "zero-bubble") X(GREY, "grey")
enum palette {
#define X(name, key) PALETTE_##name,
    PALETTE_LIST(X)
#undef X
        PALETTES
};

struct schedule_picture_options {
    enum palette palette;
    bool no_messages;
    double width_pt; /* of the sheet; 0: as wide as passes need to be read */
};

/* One above the other on one time axis. STATUS_USAGE for an unknown extension, STATUS_SYSTEM when the file cannot be written or Graphviz fails. */
enum status schedule_picture_render(const struct chart *charts, size_t count,
                                    const struct schedule_picture_options *options,
                                    const struct draw_target *target, struct diag *diag);

#endif
