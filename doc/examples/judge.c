/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - libswsim: a plan is proved or refuted, repaired, predicted, tuned and drawn.
 *
 *     cc judge.c $(pkg-config --cflags --libs libswsim) && ./a.out verify|predict|tune PLAN [json]
 *     ./a.out repair PLAN                 the repaired plan
 *     ./a.out draw PLAN FILE.svg
 *
 * The exit code is 0 for a plan that is proved, 1 for one that is violated, 2 where that is not known or nothing
 * could be said.
 */
#include <stdio.h>
#include <string.h>
#include <swsim.h>

typedef enum swsim_status question(const struct swsim_plan *plan,
                                   const struct swsim_options *options, struct swsim_result **out);

static const struct {
    const char *verb;
    question *ask;
} questions[] = {{"verify", swsim_verify}, {"predict", swsim_predict}, {"tune", swsim_tune}};

static int show(enum swsim_status status, struct swsim_result *result, const char *text)
{
    static const int codes[] = {[SWSIM_PROVED] = 0, [SWSIM_VIOLATED] = 1, [SWSIM_UNDECIDED] = 2};
    int code = 2;
    if (status == SWSIM_OK) {
        code = codes[swsim_verdict(result)];
        fputs(text, stdout);
        fputs(swsim_messages(result), stderr);
    } else {
        fprintf(stderr, "%s: %s\n", swsim_status_name(status), swsim_error(result));
    }
    swsim_free(result);
    return code;
}

static int answer(const struct swsim_plan *plan, const char *verb, const char *how)
{
    struct swsim_result *result;
    enum swsim_status status;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(verb, questions[i].verb) == 0) {
            status = questions[i].ask(plan, NULL, &result);
            return show(status, result, *how ? swsim_json(result) : swsim_text(result));
        }
    if (strcmp(verb, "draw") == 0) {
        status = swsim_render(plan, NULL, how, &result);
        return show(status, result, "");
    }
    status = swsim_verify(plan, NULL, &result);
    return show(status, result, swsim_better_plan(result));
}

int main(int argc, char **argv)
{
    struct swsim_plan *plan;
    int code = 2;
    if (argc < 3) {
        fprintf(stderr, "usage: %s verify|predict|tune|repair|draw PLAN [json|FILE]\n", argv[0]);
        return 2;
    }
    if (swsim_read(argv[2], &plan) == SWSIM_OK)
        code = answer(plan, argv[1], argc > 3 ? argv[3] : "");
    else
        fputs(swsim_plan_error(plan), stderr);
    swsim_close(plan);
    return code;
}
