/* SPDX-License-Identifier: Apache-2.0 */
/* t_processors.c - the limits of control groups, as files that the test makes; and what this process may use. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/processors.h"
#include "tests/harness.h"
#include "tests/tap.h"

/* A file with its folders, below the temporary one. */
static void write_file(const char *name, const char *text)
{
    char path[PATH_CAP];
    snprintf(path, sizeof path, "%s", path_temp(name));
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) == EOF || fclose(file))
        tap_ok(false, "%s is written", path);
}

/* The processors of a process in the groups of `list`. */
static double of(const char *root, const char *list)
{
    char folder[PATH_CAP];
    write_file("list", list);
    snprintf(folder, sizeof folder, "%s", path_temp(root));
    return processors_of_groups(path_temp("list"), folder);
}

static void test_version_2(void)
{
    write_file("two/pod/cpu.max", "400000 100000\n");
    write_file("two/pod/job/cpu.max", "max 100000\n");
    write_file("two/pod/job/step/cpu.max", "250000 100000\n");
    tap_ok(of("two", "0::/pod/job/step\n") == 2.5, "the group's own limit");
    tap_ok(of("two", "0::/pod/job\n") == 4, "no limit of its own: that of a group above");
    tap_ok(of("two", "0::/other\n") == 0, "another group: none");
    write_file("two/pod/cpu.max", "150000 100000\n");
    tap_ok(of("two", "0::/pod/job/step\n") == 1.5, "the smallest of all");
    tap_ok(of("two", "0::/../../pod\n") == 0, "a group outside of the container is not looked for");
    write_file("two/cpu.max", "50000 100000\n");
    tap_ok(of("two", "0::/../../pod\n") == .5, "but the container's own limit is");
    tap_ok(of("two", "0::/\n") == .5, "also where the group is the root");
}

static void test_version_1(void)
{
    write_file("one/cpu/docker/cpu.cfs_quota_us", "300000\n");
    write_file("one/cpu/docker/cpu.cfs_period_us", "100000\n");
    tap_ok(of("one", "5:memory:/docker\n4:cpu,cpuacct:/docker\n") == 3,
           "beside another controller");
    tap_ok(of("one", "4:cpuacct,cpu:/docker\n") == 3, "or behind it");
    tap_ok(of("one", "4:cpuset,cpuacct:/docker\n") == 0, "which is another one");
    write_file("one/cpu/docker/cpu.cfs_quota_us", "-1\n");
    tap_ok(of("one", "4:cpu:/docker\n") == 0, "no limit");
    write_file("one/cpu/cpu.cfs_quota_us", "200000\n");
    write_file("one/cpu/cpu.cfs_period_us", "100000\n");
    tap_ok(of("one", "4:cpu:/docker/of/the/host\n") == 2, "the container's root");
}

static void test_odd_files(void)
{
    write_file("odd/cpu.max", "100000 0\n");
    tap_ok(of("odd", "0::/\n") == 0, "a period of no time");
    write_file("odd/cpu.max", "");
    tap_ok(of("odd", "0::/\n") == 0, "an empty file");
    tap_ok(of("odd", "") == 0 && of("odd", ":\n0:\n0\n::\n") == 0, "lines that are none");
    tap_ok(processors_of_groups("/nowhere/list", "/nowhere") == 0, "no list");
}

static void test_process(void)
{
    cpu_set_t mine;
    const int count = processors_count();
    tap_ok(count >= 1 && count <= processors_online(), "some of the machine's: %d", count);
    tap_ok(sched_getaffinity(0, sizeof mine, &mine) || count <= CPU_COUNT(&mine),
           "no more than it is bound to");
    tap_ok(processors_are_all() == (count == processors_online()), "all, or not");
}

int main(void)
{
    test_version_2();
    test_version_1();
    test_odd_files();
    test_process();
    return tap_done();
}
