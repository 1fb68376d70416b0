/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swsim_impl.h - plans and results of libswsim; private to its files.
 */
#ifndef SWSIM_IMPL_H
#define SWSIM_IMPL_H

#include <stdatomic.h>

#include "machine/program.h"
#include "option_texts.h"
#include "base/json.h"
#include "plan/plan.h"
#include "base/text_stream.h"
#include "swsim.h"

struct predict_options;
struct verify_options;

struct swsim_plan {
    struct plan plan;
    bool has_plan;
    char *error;
    atomic_bool interrupted;
};

struct swsim_result {
    enum swsim_verdict verdict;
    char *text, *json, *better, *messages; /* NULL: "" */
    char error[1024];
};

/* A result in the making. */
struct asking {
    const struct swsim_plan *asked; /* NULL: no plan is asked */
    struct swsim_options options;
    struct arena arena;
    struct diag diag;
    struct text_stream text, lines;
    struct json json; /* to `lines` */
    struct swsim_result *result;
};

/* Asks the plan, writes to text and json and sets the verdict. */
typedef enum status asking_verb(struct asking *asking, const struct plan *plan,
                                const void *context);
enum swsim_status swsim_answer(const struct swsim_plan *plan, const struct swsim_options *options,
                               asking_verb *ask, const void *context, struct swsim_result **out);

/* The same where no plan is asked. */
typedef enum status making_verb(struct asking *asking, const void *context);
enum swsim_status swsim_make(const struct swsim_options *options, making_verb *make,
                             const void *context, struct swsim_result **out);

struct option_reader asking_reader(struct asking *asking);

/* STATUS_USAGE where iterations or a depth were given that have no effect on the plan. */
enum status asking_pipeline_options(struct asking *asking, const struct plan *plan);

/* The cores of the options, where they name some. */
void asking_set_cores(const struct asking *asking, struct plan *plan);
/* The plan with the channel, the times and the cores of the options, which shares its memory. *all: all channels are asked for. */
enum status asking_changed(struct asking *asking, const struct plan *plan, struct plan *out,
                           bool *all);
/* All channels in a table, as the result. */
enum status asking_channels(struct asking *asking, const struct plan *plan,
                            const struct verify_options *verify,
                            const struct predict_options *predict);

/* The worse of what it was and this. */
void asking_verdict(struct asking *asking, enum swsim_verdict verdict);

/* The drivers that are asked for: their number, at most two. DRIVER_NONE for the other forms. */
int asking_drivers(struct asking *asking, const struct plan *plan, bool both,
                   enum driver drivers[2]);

/* All messages, NULL: no memory. */
char *swsim_all_messages(struct diag *diag);
enum swsim_status swsim_translate(enum status status);

#endif
