/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.c - how long a collective of the host device takes: all_reduce and all_to_all of f32 on memory of the
 * user's own, back to back.
 *
 *     collective [--ranks=N] [--rounds=N] [--bytes=N]... [threads|processes]...
 *
 *     threads     all ranks in this process
 *     processes   a process a rank, which join by address
 *
 * A task calls the collective CALLS times and waits for all of them; TASKS one after the other, so that the memory that the
 * first ones make counts for little. The sizes in turns, so many rounds; medians of microseconds a call, at rank 0.
 * collective_mpi.c does the same with MPI (tests/bench/collective.sh compares them).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/lib/swpipe.h"

enum { CALLS = 64, TASKS = 32, MOST_RANKS = 16, MOST_ROUNDS = 101, MOST_SIZES = 8 };

static const char plan[] = "swplan: 1\nname: collective\nschedule:\n"
                           "  Meet: {stage: 0, globally_ordered: true, work: {collective: "
                           "all_to_all, comm: dp, bytes: 4KiB}}\n";

struct run {
    bool all_to_all;
    size_t bytes;
    int ranks, left[MOST_RANKS];
    char *send[MOST_RANKS], *recv[MOST_RANKS];
};

static int meet(struct swpipe_context *context, void *arg)
{
    const struct run *run = arg;
    int rank = swpipe_rank(context), failed = 0;
    size_t count = run->bytes / sizeof(float);
    for (int i = 0; i < CALLS && !failed; i++)
        failed = run->all_to_all
                     ? swpipe_all_to_all(context, NULL, run->send[rank], run->recv[rank],
                                         count / (size_t)run->ranks, SWPIPE_F32)
                     : swpipe_all_reduce(context, NULL, run->send[rank], run->recv[rank], count,
                                         SWPIPE_F32);
    return failed ? failed : swpipe_sync(context);
}

static int next_batch(void *arg, int rank, void **batch)
{
    struct run *run = arg;
    *batch = NULL;
    return run->left[rank]-- > 0;
}

/* Microseconds a call; negative: it failed. */
static double time_run(struct run *run, struct swpipe_group *group)
{
    struct swpipe_task task = {"Meet", meet, run, NULL, 0};
    const struct swpipe_config config = {.plan_text = plan,
                                         .plan_file = "collective",
                                         .tasks = &task,
                                         .task_count = 1,
                                         .driver = SWPIPE_DATAFLOW,
                                         .ranks = run->ranks,
                                         .group = group};
    const struct swpipe_source source = {next_batch, run};
    struct swpipe *pipe;
    double seconds = -1;
    for (int rank = 0; rank < run->ranks; rank++) {
        run->left[rank] = TASKS;
        run->send[rank] = calloc(1, run->bytes);
        run->recv[rank] = calloc(1, run->bytes);
    }
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, &seconds);
    if (status != SWPIPE_OK)
        fprintf(stderr, "collective: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    for (int rank = 0; rank < run->ranks; rank++) {
        free(run->send[rank]);
        free(run->recv[rank]);
    }
    return status == SWPIPE_OK ? seconds * 1e6 / TASKS / CALLS : -1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct choice {
    int ranks, rounds, size_count;
    size_t sizes[MOST_SIZES];
};

/* All sizes of one way, on every rank; rank 0 prints. */
static bool time_all(const struct choice *choice, struct swpipe_group *group, bool prints,
                     const char *way)
{
    for (int s = 0; s < choice->size_count; s++)
        for (int kind = 0; kind < 2; kind++) {
            double us[MOST_ROUNDS];
            struct run run = {
                .all_to_all = kind, .bytes = choice->sizes[s], .ranks = choice->ranks};
            for (int round = 0; round < choice->rounds; round++)
                if ((us[round] = time_run(&run, group)) < 0)
                    return false;
            qsort(us, (size_t)choice->rounds, sizeof *us, by_value);
            if (prints)
                printf("%-10s %-10s %8zu bytes %2d ranks %10.2f us\n", way,
                       kind ? "all_to_all" : "all_reduce", run.bytes, run.ranks,
                       us[choice->rounds / 2]);
        }
    return true;
}

static int be_rank(const struct choice *choice, int rank, const char *address)
{
    struct swpipe_group *group;
    const struct swpipe_join join = {.rank = rank, .size = choice->ranks, .address = address};
    bool good =
        swpipe_join(&join, &group) == SWPIPE_OK && time_all(choice, group, rank == 0, "processes");
    swpipe_leave(group);
    return good ? 0 : 1;
}

/* A port without a listener at this moment; 0: none. */
static int free_port(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int found = socket(AF_INET, SOCK_STREAM, 0), port = 0;
    if (found < 0)
        return 0;
    if (bind(found, (struct sockaddr *)&name, sizeof name) == 0 &&
        getsockname(found, (struct sockaddr *)&name, &length) == 0)
        port = ntohs(name.sin_port);
    close(found);
    return port;
}

static bool time_processes(const struct choice *choice)
{
    char address[64];
    bool good = true;
    int started = 0, port = free_port();
    if (port == 0) {
        fprintf(stderr, "collective: no port is free\n");
        return false;
    }
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    fflush(stdout);
    for (; started < choice->ranks; started++) {
        pid_t child = fork();
        if (child == 0)
            exit(be_rank(choice, started, address));
        if (child < 0)
            return false;
    }
    for (int status; started > 0 && wait(&status) > 0; started--)
        good = good && status == 0;
    return good;
}

int main(int argc, char **argv)
{
    struct choice choice = {.ranks = 2, .rounds = 5};
    bool threads = false, processes = false, good = true;
    for (int i = 1; i < argc && good; i++) {
        if (strncmp(argv[i], "--ranks=", 8) == 0)
            choice.ranks = atoi(argv[i] + 8);
        else if (strncmp(argv[i], "--rounds=", 9) == 0)
            choice.rounds = atoi(argv[i] + 9);
        else if (strncmp(argv[i], "--bytes=", 8) == 0 && choice.size_count < MOST_SIZES)
            choice.sizes[choice.size_count++] = (size_t)atoll(argv[i] + 8);
        else if (strcmp(argv[i], "threads") == 0)
            threads = true;
        else if (strcmp(argv[i], "processes") == 0)
            processes = true;
        else
            good = false;
    }
    if (!good || choice.ranks < 2 || choice.ranks > MOST_RANKS || choice.rounds < 1 ||
        choice.rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: collective [--ranks=N] [--rounds=N] [--bytes=N]... "
                        "[threads|processes]...\n");
        return 2;
    }
    if (choice.size_count == 0) {
        choice.sizes[choice.size_count++] = 4096;
        choice.sizes[choice.size_count++] = 1 << 20;
    }
    if (threads || !processes)
        good = time_all(&choice, NULL, true, "threads");
    if (good && (processes || !threads))
        good = time_processes(&choice);
    return good ? 0 : 1;
}
