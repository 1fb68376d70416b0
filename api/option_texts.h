/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_texts.h - options with a grammar of their own, for the commands and libswsim alike.
 *
 * Texts that are made live in the arena of `reader`. A text that cannot be read is STATUS_USAGE, and the message names the
 * option as the command has it: "--property: unknown property 'rase' (did you mean 'race'?)".
 */
#ifndef SWSIM_OPTION_TEXTS_H
#define SWSIM_OPTION_TEXTS_H

#include "base/arena.h"
#include "base/diag.h"
#include "plan/plan.h"

struct axis_values;
struct jitter_rule;

struct option_reader {
    struct arena *arena;
    struct diag *diag;
};

/* Hand each item of "ITEM,ITEM,..." to `use`, until one fails. `value` is the text behind the item's '='; NULL: it has
   none. */
typedef enum status option_use(struct option_reader reader, const char *item, const char *value,
                               void *context);
enum status option_each(struct option_reader reader, const char *list, option_use *use,
                        void *context);

/* A whole number from min to max, as the value of `what`. */
enum status option_number(struct option_reader reader, const char *what, const char *text,
                          int64_t min, int64_t max, int64_t *out);

/* "deadlock,race": a set of enum property. */
enum status option_properties(struct option_reader reader, const char *text, unsigned *out);
/* "TASK=DISTRIBUTION". */
enum status option_jitter(struct option_reader reader, const char *text, struct jitter_rule *out);
/* "F=1ms,B=2ms": durations of actions instead of the plan's own. STATUS_USAGE for a plan of another form, too. */
enum status option_times(struct option_reader reader, const char *text, struct plan *plan);
/* "stream,group": a set of enum tune_knob. */
enum status option_kept(struct option_reader reader, const char *text, unsigned *out);
/* "gpipe,1f1b", "2,4", "all": values of an axis of a frontier, an enum axis. */
enum status option_axis(struct option_reader reader, int axis, const char *text,
                        struct axis_values *out);

/* "FILE[:RUN]" of a trace store: *out_path lives in the arena or is `spec`; *out_run is STORE_LATEST where none is
   named. A name with a colon in it is a name if such a file is there. */
bool option_has_run(const char *spec);
enum status option_run(struct option_reader reader, const char *option, const char *spec,
                       const char **out_path, int64_t *out_run);

#endif
