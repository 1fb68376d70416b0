/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_time.c - what a period costs the host, with and without graphs: processor time of the threads that
 * decide and submit (driver and workers), and of those that are the device, by `make bench-graph`.
 *
 *     host_time PLAN [ITERATIONS [ROUNDS]]      interleaved rounds, then medians
 *
 * The plan should have no times of its own, so that all there is to see is overhead. The kernel counts a
 * thread's processor time in /proc/self/task/ID/schedstat; a sampler reads it every few milliseconds, because
 * it is gone with the thread. Threads of the host are named rank:thread, those of the device rank.stream.
 */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/text/parse.h"
#include "gpu/exec/runtime.h"

enum { MOST_THREADS = 256, MOST_ROUNDS = 99 };

struct seen {
    int id;
    char kind; /* ':' host, '.' device */
    int64_t cpu_ns;
};

struct sampler {
    atomic_bool stop;
    struct seen seen[MOST_THREADS];
    int count;
};

static bool read_line(const char *id, const char *file, char out[128])
{
    char path[128];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", id, file);
    FILE *in = fopen(path, "r");
    bool got = in && fgets(out, 128, in);
    if (in)
        fclose(in);
    return got;
}

static void look_at(struct sampler *sampler, const char *id)
{
    char name[128], times[128];
    if (!read_line(id, "comm", name) || !read_line(id, "schedstat", times) || name[0] != 'r')
        return;
    size_t digits = strspn(name + 1, "0123456789");
    char kind = name[1 + digits];
    if (digits == 0 || (kind != ':' && kind != '.'))
        return;
    int k = 0, number = atoi(id);
    while (k < sampler->count && sampler->seen[k].id != number)
        k++;
    if (k == MOST_THREADS)
        return;
    sampler->count += k == sampler->count;
    sampler->seen[k] = (struct seen){number, kind, strtoll(times, NULL, 10)};
}

static void *sample(void *arg)
{
    struct sampler *sampler = arg;
    while (!atomic_load(&sampler->stop)) {
        DIR *dir = opendir("/proc/self/task");
        for (struct dirent *entry; dir && (entry = readdir(dir));)
            if (entry->d_name[0] != '.')
                look_at(sampler, entry->d_name);
        if (dir)
            closedir(dir);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return NULL;
}

struct figures {
    double host_us, device_us, wall_us; /* a period */
};

static struct figures measure(const struct plan *plan, enum runtime_graph graph, int64_t iterations)
{
    struct sampler sampler = {.count = 0};
    struct runtime_options options = {
        .driver = DRIVER_CLOCK, .iterations = iterations, .graph = graph};
    struct runtime_result result;
    struct figures figures = {0, 0, 0};
    struct diag diag;
    pthread_t thread;
    diag_init(&diag);
    if (pthread_create(&thread, NULL, sample, &sampler))
        exit(1);
    enum status status = runtime_run(plan, &options, &result, &diag);
    atomic_store(&sampler.stop, true);
    pthread_join(thread, NULL);
    if (status) {
        fprintf(stderr, "%s\n", diag.count ? diag.messages[0].text : "the run failed");
        exit(1);
    }
    for (int k = 0; k < sampler.count; k++)
        *(sampler.seen[k].kind == ':' ? &figures.host_us : &figures.device_us) +=
            1e-3 * (double)sampler.seen[k].cpu_ns / (double)iterations;
    figures.wall_us = 1e-3 * result.iteration.mean_ns;
    runtime_result_fini(&result);
    diag_fini(&diag);
    return figures;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct figures *rounds, int count, size_t offset)
{
    double values[MOST_ROUNDS];
    for (int i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof(double));
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static struct figures rounds[2][MOST_ROUNDS];
    int64_t iterations = argc > 2 ? strtoll(argv[2], NULL, 10) : 20000;
    int count = argc > 3 ? atoi(argv[3]) : 9;
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    if (argc < 2 || iterations < 10 || count < 1 || count > MOST_ROUNDS) {
        fprintf(stderr, "usage: host_time PLAN [ITERATIONS [ROUNDS]]\n");
        return 2;
    }
    if (plan_read(argv[1], &plan, &diag)) {
        fprintf(stderr, "%s\n", diag.count ? diag.messages[0].text : argv[1]);
        return 3;
    }
    for (int i = 0; i < count; i++)
        for (int graph = 0; graph < 2; graph++)
            rounds[graph][i] =
                measure(&plan, graph ? RUNTIME_GRAPH_REQUIRE : RUNTIME_GRAPH_OFF, iterations);
    printf("%-16s %14s %14s %14s\n", "us a period", "host", "device", "wall");
    for (int graph = 0; graph < 2; graph++)
        printf("%-16s %14.2f %14.2f %14.2f\n", graph ? "one launch" : "pushes",
               median(rounds[graph], count, offsetof(struct figures, host_us)),
               median(rounds[graph], count, offsetof(struct figures, device_us)),
               median(rounds[graph], count, offsetof(struct figures, wall_us)));
    plan_fini(&plan);
    diag_fini(&diag);
    return 0;
}
