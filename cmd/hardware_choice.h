/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_choice.h - the GPU of `--hardware` and the measured operators of `--operators`, as predict and tune take them.
 */
#ifndef SWSIM_HARDWARE_CHOICE_H
#define SWSIM_HARDWARE_CHOICE_H

#include "app.h"
#include "options.h"

#include "sim/predict/hardware_times.h"

struct hardware_choice {
    const char *name; /* NULL: no hardware is given */
    struct text_list operators;
    struct hardware hardware;
    struct operator_times measured;
};

#define HARDWARE_OPTIONS(choice, what)                                                             \
    {"hardware", 0, "NAME|FILE", (what), OPTION_TEXT, .value = &(choice)->name},                   \
    {                                                                                              \
        "operators", 0, "FILE",                                                                    \
            "with --hardware: measured times of operators, in a trace of PyTorch's profiler with " \
            "shapes, or a table (see swsim-predict(1)); may be repeated",                          \
            OPTION_LIST, .value = &(choice)->operators                                             \
    }

/* Reads what is given; texts live in the app's arena. */
enum status hardware_choice_read(struct app *app, struct hardware_choice *choice);

#endif
