/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proctime.c - `proctime RUNS LIMIT COMMAND...`: the process time of a command, user and system.
 *
 * Runs the command RUNS times, each for at most LIMIT seconds of process time, and prints the median
 * in seconds, the largest resident set in KiB, and how it ended: its exit status, or "limit". The
 * command's output is what it would be. One run that hits the limit ends the series.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS_MAX = 1000, CANNOT_EXECUTE = 127 };

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static void execute(char **command, long limit_s)
{
    struct rlimit limit = {(rlim_t)limit_s, (rlim_t)limit_s + 1};
    if (setrlimit(RLIMIT_CPU, &limit) == 0)
        execvp(command[0], command);
    fprintf(stderr, "proctime: %s: %s\n", command[0], strerror(errno));
    _exit(CANNOT_EXECUTE);
}

/* Returns the status of waitpid, or -1 with errno set. */
static int run_once(char **command, long limit_s, struct rusage *usage)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        execute(command, limit_s);
    return child < 0 || wait4(child, &status, 0, usage) < 0 ? -1 : status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(FILE *out, double *seconds, int runs, long max_rss_kb, int status)
{
    qsort(seconds, (size_t)runs, sizeof *seconds, ascending);
    fprintf(out, "%.6f %ld ", seconds[runs / 2], max_rss_kb);
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        fprintf(out, "limit\n");
    else
        fprintf(out, "%d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    long runs = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    long limit_s = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    const char *path = getenv("PROCTIME_OUT"); /* the command has standard output for itself */
    if (runs < 1 || runs > RUNS_MAX || limit_s < 1 || !path) {
        fputs("usage: PROCTIME_OUT=FILE proctime RUNS LIMIT COMMAND...\n", stderr);
        return 2;
    }
    double seconds[RUNS_MAX];
    long max_rss_kb = 0;
    int done = 0, status = 0;
    while (done < runs && !WIFSIGNALED(status)) {
        struct rusage usage;
        status = run_once(argv + 3, limit_s, &usage);
        if (status < 0) {
            perror("proctime");
            return 2;
        }
        seconds[done++] = seconds_of(&usage);
        max_rss_kb = usage.ru_maxrss > max_rss_kb ? usage.ru_maxrss : max_rss_kb;
    }
    if (WIFSIGNALED(status)) { /* what it took to no avail */
        seconds[0] = seconds[done - 1];
        done = 1;
    }
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        return 2;
    }
    report(out, seconds, done, max_rss_kb, status);
    return fclose(out) == 0 ? 0 : 2;
}
