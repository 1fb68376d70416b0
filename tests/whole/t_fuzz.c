/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fuzz.c - every fuzz target (tests/fuzz/targets.h) over its corpus, and over some mutations of it.
 *
 *     SWSIM_PLANS=N    mutations of each input; else 3, 100 with SWSIM_LONG
 *     SWSIM_SEED=N     their seed; else 1
 *
 * The corpus of a target is tests/fuzz/corpus/NAME/ and, where it reads plans, plans/. An input that ends this
 * program is kept in t_fuzz.NAME in the folder where the test runs.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { MOST_BYTES = 16384, MOST_SECONDS = 60 /* of an input: milliseconds, where nothing hangs */ };

static const struct target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
    size_t most_bytes;
    bool words;
    const char *what;
} targets[] = {
#define X(name, bytes, words, what) {#name, fuzz_##name, bytes, words, what},
    FUZZ_LIST(X)
#undef X
};

/* The input being tried, for the handler of signals. */
static struct trial {
    const char *target;
    const uint8_t *data;
    size_t size;
} now;

static void keep_input(int signal_number)
{
    char path[64] = "t_fuzz.";
    static const char said[] = "# the input is kept in t_fuzz.NAME\n";
    strncat(path, now.target, sizeof path - 8);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t written = file >= 0 ? write(file, now.data, now.size) : -1;
    written += write(STDOUT_FILENO, said, sizeof said - 1);
    (void)written;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void try(const struct target *target, const uint8_t *data, size_t size)
{
    now = (struct trial){target->name, data, size};
    alarm(MOST_SECONDS);
    target->run(data, size);
}

/* The input and its mutations. Returns how many were tried. */
static long try_near(const struct target *target, const char *text, size_t size, int mutations,
                     uint64_t seed)
{
    static uint8_t data[MOST_BYTES];
    size_t most = target->most_bytes < sizeof data ? target->most_bytes : sizeof data;
    size = size < most ? size : most;
    memcpy(data, text, size);
    try(target, data, size);
    long tried = 1;
    for (int i = 0; i < mutations && target->words; i++) {
        size_t changed = size;
        memcpy(data, text, size);
        for (int rounds = 1 + i % 3; rounds > 0; rounds--)
            changed =
                mutate_text(data, changed, most, (uint32_t)(seed * 1000003 + (uint64_t)tried));
        try(target, data, changed);
        tried++;
    }
    return tried;
}

/* The file's bytes; NULL where it cannot be read. The caller frees them. */
static char *file_bytes(const char *path, size_t *size)
{
    char *data = malloc(MOST_BYTES);
    FILE *file = fopen(path, "rb");
    *size = data && file ? fread(data, 1, MOST_BYTES, file) : 0;
    if (file)
        fclose(file);
    else
        tap_ok(false, "%s can be read", path);
    return data;
}

static long try_files(const struct target *target, const char *pattern, int mutations)
{
    long tried = 0;
    glob_t files;
    if (glob(path_source(pattern), 0, NULL, &files) != 0)
        return 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        size_t size;
        char *text = file_bytes(files.gl_pathv[i], &size);
        if (text)
            tried += try_near(target, text, size, mutations, env_number("SWSIM_SEED", 1) + i);
        free(text);
    }
    globfree(&files);
    return tried;
}

static bool reads_plans(const struct target *target)
{
    return strcmp(target->name, "plan") == 0 || strcmp(target->name, "whole") == 0;
}

int main(void)
{
    const int mutations = env_plans(3, 100);
    signal(SIGABRT, keep_input);
    signal(SIGSEGV, keep_input);
    signal(SIGALRM, keep_input);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "tests/fuzz/corpus/%s/*", targets[i].name);
        long tried = try_files(&targets[i], pattern, mutations);
        tap_ok(tried > 0, "%s: %s: the corpus, %ld inputs", targets[i].name, targets[i].what,
               tried);
        if (reads_plans(&targets[i]))
            tap_ok(try_files(&targets[i], "plans/*/*.yaml", mutations / 3) > 0, "%s: plans/",
                   targets[i].name);
    }
    alarm(0);
    return tap_done();
}
