/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - see processors.h. */
#include "processors.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

/* ---- control groups -------------------------------------------------------------------------- */

/* The first numbers in a file; how many there are. */
static int processors_read_numbers(const char *folder, const char *name, double *first,
                                   double *second)
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int count = fscanf(file, "%lf %lf", first, second);
    fclose(file);
    return count > 0 ? count : 0;
}

/* 0: no limit here. */
static double limit_of_group(const char *folder)
{
    double quota = 0, period = 0, unused;
    if (processors_read_numbers(folder, "cpu.max", &quota, &period) <
            2 && /* "max 100000" is none */
        (processors_read_numbers(folder, "cpu.cfs_quota_us", &quota, &unused) == 0 ||
         processors_read_numbers(folder, "cpu.cfs_period_us", &period, &unused) == 0))
        return 0;
    return quota > 0 && period > 0 ? quota / period : 0;
}

static void take_smaller(double *least, double limit)
{
    if (limit > 0 && (*least == 0 || limit < *least))
        *least = limit;
}

/* Of the group and of all above it, the root among them. */
static void processors_climb(const char *root, const char *group, double *least)
{
    char folder[MAX_PATH];
    const size_t top = strlen(root);
    const bool outside = strstr(group, "/..") != NULL;
    const int length = snprintf(folder, sizeof folder, "%s%s", root, outside ? "" : group);
    if (length < 0 || (size_t)length >= sizeof folder)
        return;
    for (;;) {
        take_smaller(least, limit_of_group(folder));
        char *slash = strrchr(folder + top, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

/* "cpu" among "cpu,cpuacct" */
static bool names_cpu(const char *controllers)
{
    const size_t length = strcspn(controllers, ",");
    return (length == 3 && strncmp(controllers, "cpu", 3) == 0) ||
           (controllers[length] && names_cpu(controllers + length + 1));
}

/* A line is NUMBER:CONTROLLERS:/GROUP; of version 2, "0::/GROUP". */
static void processors_add_line(char *line, const char *root, double *least)
{
    char cpu[MAX_PATH];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (controllers[1] == '\0')
        processors_climb(root, group, least);
    else if (names_cpu(controllers + 1) &&
             snprintf(cpu, sizeof cpu, "%s/cpu", root) < (int)sizeof cpu)
        processors_climb(cpu, group, least);
}

double processors_of_groups(const char *list, const char *root)
{
    char line[MAX_PATH];
    double least = 0;
    FILE *file = fopen(list, "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        processors_add_line(line, root, &least);
    fclose(file);
    return least;
}

/* ---- this process ---------------------------------------------------------------------------- */

int processors_online(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > INT_MAX ? INT_MAX : (int)count;
}

static int count_processors(void)
{
    cpu_set_t mine;
    int count = processors_online();
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) < count)
        count = CPU_COUNT(&mine);
    const double limit = processors_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    if (limit > 0 && limit < count)
        count = (int)limit;
    return count < 1 ? 1 : count;
}

int processors_count(void)
{
    static atomic_int known; /* 0: not asked for yet */
    int count = atomic_load_explicit(&known, memory_order_relaxed);
    if (count == 0) {
        count = count_processors();
        atomic_store_explicit(&known, count, memory_order_relaxed);
    }
    return count;
}

bool processors_are_all(void)
{
    return processors_count() >= processors_online();
}
