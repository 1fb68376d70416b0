/* SPDX-License-Identifier: Apache-2.0 */
/* t_locale.c - a program that writes 1,5 for 1.5: both libraries read and write as ever, and leave it so. */
#include <errno.h>
#include <libintl.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/swsim.h"
#include "gpu/lib/swpipe.h"
#include "base/system_words.h"
#include "tests/harness.h"
#include "tests/tap.h"

static const char plan[] =
    "swplan: 1\n"
    "name: comma\n"
    "schedule:\n"
    "  Load: {stage: 0, stream: s, time: 1.5ms, jitter: \"lognormal(cv=0.3)\", writes: [x]}\n"
    "  Train: {stage: 1, time: 2.25ms, reads: [x]}\n"
    "intra_iter_deps: [[Train, Load]]\n"
    "buffers: {x: {scope: iteration, bytes: 1.5MiB}}\n";

/* The system's own, or one made for the test. */
static bool find_comma(void)
{
    char command[1024];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s' >/dev/null 2>&1",
             path_temp("de_DE.UTF-8"));
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", path_temp(""), 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

static void writes_comma(const char *what)
{
    char text[16];
    snprintf(text, sizeof text, "%.1f", 1.5);
    tap_is_str(text, "1,5", "%s: the program's numbers are as it wants them", what);
}

/* Without what differs from run to run: how long the simulation took. */
static void put_timeless(const char *text, FILE *out)
{
    static const char *const times[] = {"simulated in ", "seconds\":"};
    while (*text) {
        size_t skipped = 0;
        for (int i = 0; i < 2; i++)
            if (strncmp(text, times[i], strlen(times[i])) == 0)
                skipped = strlen(times[i]) + strcspn(text + strlen(times[i]), "\n}");
        if (skipped == 0)
            fputc(*text++, out);
        text += skipped;
    }
}

/* The answer to a question with the locale that is set. */
static char *answers(void)
{
    const struct swsim_options options = {
        .iterations = 50, .driver = SWSIM_DRIVER_CLOCK, .jitter = "Train=lognormal(cv=0.5)"};
    struct swsim_plan *asked;
    struct swsim_result *result;
    int status;
    char *all = NULL;
    size_t bytes;
    FILE *out = open_memstream(&all, &bytes);
    status = (int)swsim_parse("comma.yaml", plan, &asked);
    tap_is_int(status, SWSIM_OK, "read: %s", swsim_plan_error(asked));
    status = (int)swsim_predict(asked, &options, &result);
    tap_is_int(status, SWSIM_OK, "predicted: %s", swsim_error(result));
    put_timeless(swsim_text(result), out);
    put_timeless(swsim_json(result), out);
    swsim_free(result);
    status = (int)swsim_render(asked, NULL, path_temp("comma.svg"), &result);
    tap_is_int(status, SWSIM_OK, "drawn: %s", swsim_error(result));
    swsim_free(result);
    swsim_close(asked);
    fclose(out);
    return all;
}

static int next(void *arg, int rank, void **batch)
{
    int *left = arg;
    (void)rank;
    *batch = NULL;
    return (*left)-- > 0;
}

static void record(const char *file)
{
    int left = 10;
    const struct swpipe_source source = {next, &left};
    const struct swpipe_config config = {.plan_text = plan};
    struct swpipe *pipe;
    int status = (int)swpipe_open(&config, &pipe);
    tap_is_int(status, SWPIPE_OK, "opened: %s", swpipe_error(pipe));
    tap_is_int(swpipe_record(pipe, file), SWPIPE_OK, "recorded");
    status = (int)swpipe_run(pipe, &source, NULL);
    tap_is_int(status, SWPIPE_OK, "run: %s", swpipe_error(pipe));
    char *stats = swpipe_format_stats(pipe);
    tap_ok(stats && strchr(stats, '.') && !strchr(stats, ','), "figures with points:\n%s",
           stats ? stats : "");
    free(stats);
    swpipe_close(pipe);
}

/* The plan of the store is read again for it. */
static void draw(const char *file)
{
    struct swsim_store *store;
    struct swsim_result *result;
    int status = (int)swsim_store_open(file, &store);
    tap_is_int(status, SWSIM_OK, "the store: %s", swsim_store_error(store));
    status = (int)swsim_draw_run(store, SWSIM_LATEST, NULL, path_temp("run.svg"), &result);
    tap_is_int(status, SWSIM_OK, "the run is drawn: %s", swsim_error(result));
    swsim_free(result);
    swsim_store_close(store);
}

static void build(void)
{
    struct swpipe_plan *made = swpipe_plan_new("built");
    swpipe_plan_task(made, "A", "stage", "0");
    swpipe_plan_task(made, "A", "time", "0.0015ms");
    swpipe_plan_task(made, "A", "jitter", "lognormal(cv=0.3)");
    char *text = swpipe_plan_print(made);
    tap_ok(text && strstr(text, "1.5us") && strstr(text, "0.3"), "a plan is built: %s%s",
           text ? text : "", swpipe_plan_error(made));
    free(text);
    swpipe_plan_free(made);
}

/* ---- the system's words ---------------------------------------------------------------------- */

/* A catalogue of the C library for this test: it has one message, in words that no other has. */
static bool translate(void)
{
    static const char from[] = "No such file or directory", to[] = "Datei fehlt";
    static const char head[] = "Content-Type: text/plain; charset=UTF-8\n";
    enum { TABLES = 28, TEXTS = TABLES + 32 };
    const uint32_t words[] = {0x950412de,
                              0,
                              2,
                              TABLES,
                              TABLES + 16,
                              0,
                              TEXTS,
                              0,
                              TEXTS,
                              sizeof from - 1,
                              TEXTS + 1,
                              sizeof head - 1,
                              TEXTS + 1 + sizeof from,
                              sizeof to - 1,
                              TEXTS + 1 + sizeof from + sizeof head};
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s", path_temp(""));
    snprintf(path, sizeof path, "mkdir -p '%sde/LC_MESSAGES'", folder);
    if (system(path) != 0)
        return false;
    snprintf(path, sizeof path, "%sde/LC_MESSAGES/libc.mo", folder);
    FILE *out = fopen(path, "wb");
    if (!out)
        return false;
    fwrite(words, sizeof words, 1, out);
    fwrite("", 1, 1, out);
    fwrite(from, sizeof from, 1, out);
    fwrite(head, sizeof head, 1, out);
    fwrite(to, sizeof to, 1, out);
    unsetenv("LANGUAGE");
    return fclose(out) == 0 && bindtextdomain("libc", folder) &&
           strcmp(strerror(ENOENT), "Datei fehlt") == 0;
}

static void is_english(const char *text, const char *what)
{
    tap_ok(strstr(text, "No such file or directory") && !strstr(text, "fehlt"), "%s: %s", what,
           text);
}

static void tell_missing(void)
{
    const struct swpipe_config config = {.plan_file = "/does/not/exist.yaml"};
    const struct swpipe_config good = {.plan_text = plan};
    struct swsim_plan *asked;
    struct swsim_store *store;
    struct swpipe *pipe;
    (void)swsim_read("/does/not/exist.yaml", &asked);
    is_english(swsim_plan_error(asked), "a plan");
    swsim_close(asked);
    (void)swsim_store_open("/does/not/exist.db", &store);
    is_english(swsim_store_error(store), "a store");
    swsim_store_close(store);
    (void)swpipe_open(&config, &pipe);
    is_english(swpipe_error(pipe), "the plan of a pipeline");
    swpipe_close(pipe);
    int left = 1;
    const struct swpipe_source source = {next, &left};
    (void)swpipe_open(&good, &pipe);
    (void)swpipe_record(pipe, "/does/not/exist/run.db");
    (void)swpipe_run(pipe, &source, NULL);
    is_english(swpipe_error(pipe), "the store of a pipeline");
    swpipe_close(pipe);
    is_english(system_words(ENOENT), "of a thread of the library");
    tap_is_str(strerror(ENOENT), "Datei fehlt", "the program's own are as it wants them");
}

int main(void)
{
    char *with_points = answers();
    if (!find_comma()) {
        tap_skip("no locale with a decimal comma, and none can be made");
        free(with_points);
        return tap_done();
    }
    writes_comma("before");
    char *with_commas = answers();
    tap_is_str(with_commas, with_points, "answers are the same");
    writes_comma("after questions");
    record(path_temp("comma.db"));
    writes_comma("after a run");
    draw(path_temp("comma.db"));
    build();
    writes_comma("at the end");
    if (translate())
        tell_missing();
    else
        tap_skip("the C library takes no words from a catalogue of ours");
    free(with_points);
    free(with_commas);
    return tap_done();
}
