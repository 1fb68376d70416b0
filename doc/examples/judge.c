/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - libswsim: a plan is proved or refuted, repaired, predicted, tuned and drawn; stored runs are listed and drawn.
 *
 *     cc judge.c $(pkg-config --cflags --libs libswsim) -o judge
 *     ./judge verify|predict|tune PLAN [--json] [--OPTION=VALUE ...]
 *     ./judge repair|better PLAN [--OPTION=VALUE ...]      the repaired plan; the tuned one
 *     ./judge draw PLAN FILE.svg [--OPTION=VALUE ...]
 *     ./judge runs STORE [--json]
 *     ./judge ledger STORE RUN [--json]
 *     ./judge draw-run STORE RUN FILE.svg
 *
 * The exit code is 0 for a plan that is proved, 1 for one that is violated, 2 where that is not known or nothing
 * could be said.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swsim.h>

/* ---- the command line ------------------------------------------------------------------------ */

struct line {
    const char *words[3]; /* behind the verb, without options */
    int count, json;
    struct swsim_options options;
};

/* Options that are texts, and numbers. */
#define TEXT(name)                                                                                 \
    {                                                                                              \
        "--" #name "=", offsetof(struct swsim_options, name)                                       \
    }
static const struct {
    const char *option;
    size_t at;
} texts[] = {TEXT(properties), TEXT(jitter), TEXT(profile), TEXT(times),
             TEXT(p2p),        TEXT(keep),   TEXT(axes),    TEXT(title)},
  numbers[] = {TEXT(iterations), TEXT(seed), TEXT(limit_states), TEXT(memory_bytes)};

static int take_option(struct swsim_options *options, const char *word)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strncmp(word, texts[i].option, strlen(texts[i].option)) == 0) {
            *(const char **)((char *)options + texts[i].at) = strchr(word, '=') + 1;
            return 1;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strncmp(word, numbers[i].option, strlen(numbers[i].option)) == 0) {
            *(int64_t *)((char *)options + numbers[i].at) = atoll(strchr(word, '=') + 1);
            return 1;
        }
    if (strncmp(word, "--cores=", 8) == 0) {
        options->cores = atoi(word + 8);
        return 1;
    }
    return 0;
}

static int read_line(struct line *line, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            line->json = 1;
        else if (argv[i][0] != '-' && line->count < 3)
            line->words[line->count++] = argv[i];
        else if (!take_option(&line->options, argv[i]))
            return 0;
    return line->count > 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

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

static const char *output(const struct line *line, const struct swsim_result *result)
{
    return line->json ? swsim_json(result) : swsim_text(result);
}

/* ---- plans ----------------------------------------------------------------------------------- */

typedef enum swsim_status question(const struct swsim_plan *plan,
                                   const struct swsim_options *options, struct swsim_result **out);

static const struct {
    const char *verb;
    question *ask;
    int better; /* the better plan is the answer */
} questions[] = {{"verify", swsim_verify, 0},
                 {"predict", swsim_predict, 0},
                 {"tune", swsim_tune, 0},
                 {"repair", swsim_verify, 1},
                 {"better", swsim_tune, 1}};

static int ask_plan(const struct swsim_plan *plan, const char *verb, const struct line *line)
{
    struct swsim_result *result;
    enum swsim_status status;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(verb, questions[i].verb) == 0) {
            status = questions[i].ask(plan, &line->options, &result);
            return show(status, result,
                        questions[i].better ? swsim_better_plan(result) : output(line, result));
        }
    status = swsim_render(plan, &line->options, line->words[1], &result);
    return show(status, result, "");
}

static int ask_file(const char *verb, const struct line *line)
{
    struct swsim_plan *plan;
    int code = 2;
    if (swsim_read(line->words[0], &plan) == SWSIM_OK)
        code = ask_plan(plan, verb, line);
    else
        fputs(swsim_plan_error(plan), stderr);
    swsim_close(plan);
    return code;
}

/* ---- stores ---------------------------------------------------------------------------------- */

static int ask_runs(struct swsim_store *store, const char *verb, const struct line *line)
{
    struct swsim_result *result;
    enum swsim_status status;
    int64_t run = line->count > 1 ? atoll(line->words[1]) : SWSIM_LATEST;
    if (strcmp(verb, "runs") == 0)
        status = swsim_runs(store, &result);
    else if (strcmp(verb, "ledger") == 0)
        status = swsim_ledger(store, run, &result);
    else
        status = swsim_draw_run(store, run, &line->options, line->words[2], &result);
    return show(status, result, output(line, result));
}

static int ask_store(const char *verb, const struct line *line)
{
    struct swsim_store *store;
    int code = 2;
    if (swsim_store_open(line->words[0], &store) == SWSIM_OK)
        code = ask_runs(store, verb, line);
    else
        fputs(swsim_store_error(store), stderr);
    swsim_store_close(store);
    return code;
}

int main(int argc, char **argv)
{
    struct line line = {0};
    if (argc < 3 || !read_line(&line, argc, argv)) {
        fprintf(stderr,
                "usage: %s verify|predict|tune|repair|better|draw PLAN [FILE] [--json] "
                "[--OPTION=VALUE ...]\n"
                "       %s runs|ledger|draw-run STORE [RUN] [FILE] [--json]\n",
                argv[0], argv[0]);
        return 2;
    }
    int stored = strcmp(argv[1], "runs") == 0 || strcmp(argv[1], "ledger") == 0 ||
                 strcmp(argv[1], "draw-run") == 0;
    return stored ? ask_store(argv[1], &line) : ask_file(argv[1], &line);
}
