/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - see processes.h. */
#include "processes.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int free_port(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof where;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    bind(probe, (struct sockaddr *)&where, sizeof where);
    getsockname(probe, (struct sockaddr *)&where, &length);
    close(probe);
    return ntohs(where.sin_port);
}

void processes_share_gpu(const struct process *self)
{
    char host[32];
    snprintf(host, sizeof host, "test-rank-%d", self->number);
    setenv("NCCL_HOSTID", host, 1);
    setenv("NCCL_NET", "Socket", 0);
    setenv("NCCL_P2P_DISABLE", "1", 0);
    setenv("NCCL_SHM_DISABLE", "1", 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

static void write_all(int to, const void *data, size_t bytes)
{
    if (write(to, data, bytes) != (ssize_t)bytes)
        _exit(3);
}

/* The whole of it before `until`; false: it has ended, or is late. */
static bool read_all(int from, void *data, size_t bytes, time_t until)
{
    for (size_t have = 0; have < bytes;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int64_t left_s = until - time(NULL);
        if (left_s <= 0 || poll(&ready, 1, (int)left_s * 1000) <= 0)
            return false;
        ssize_t got = read(from, (char *)data + have, bytes - have);
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

static pid_t start(struct process self, void (*body)(const struct process *, struct outcome *),
                   int to)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct outcome out;
    memset(&out, 0, sizeof out);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    body(&self, &out);
    write_all(to, &out, sizeof out);
    fflush(NULL);
    _exit(0);
}

bool processes_run(int count, void (*body)(const struct process *self, struct outcome *out),
                   const void *arg, int seconds, struct outcome *out, bool *ended)
{
    char address[32];
    pid_t pids[PROCESSES_MOST];
    int results[PROCESSES_MOST], first[PROCESSES_MOST][2];
    struct process self = {.count = count, .address = address, .arg = arg};
    time_t until = time(NULL) + seconds;
    bool in_time = true;
    snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    for (int i = 0; i < count; i++) {
        if (pipe(first[i]) != 0)
            return false;
        self.to_others[i] = first[i][1];
    }
    for (int i = 0; i < count; i++) {
        int ends[2];
        if (pipe(ends) != 0)
            return false;
        self.number = i;
        self.from_first = first[i][0];
        results[i] = ends[0];
        pids[i] = start(self, body, ends[1]);
        close(ends[1]);
    }
    for (int i = 0; i < count; i++) {
        ended[i] = read_all(results[i], &out[i], sizeof out[i], until);
        in_time = in_time && (ended[i] || time(NULL) < until);
        close(results[i]);
    }
    for (int i = 0; i < count; i++) {
        if (!in_time)
            kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        close(first[i][0]);
        close(first[i][1]);
    }
    return in_time;
}

struct actor {
    struct process self;
    void (*body)(const struct process *self, struct outcome *out);
    struct outcome *out;
    pthread_t id;
};

static void *act(void *arg)
{
    struct actor *actor = arg;
    memset(actor->out, 0, sizeof *actor->out);
    actor->body(&actor->self, actor->out);
    return NULL;
}

bool threads_run(int count, void (*body)(const struct process *self, struct outcome *out),
                 const void *arg, struct outcome *out)
{
    static struct actor actors[PROCESSES_MOST];
    char address[32];
    int started = 0;
    snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    for (; started < count; started++) {
        struct actor *actor = &actors[started];
        *actor = (struct actor){{.number = started, .count = count, .address = address, .arg = arg},
                                body,
                                &out[started],
                                0};
        if (pthread_create(&actor->id, NULL, act, actor) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(actors[i].id, NULL);
    return started == count;
}

int processes_broadcast(void *arg, void *data, size_t bytes)
{
    const struct process *self = arg;
    if (self->number > 0)
        return read_all(self->from_first, data, bytes, time(NULL) + 30) ? 0 : -1;
    for (int i = 1; i < self->count; i++)
        write_all(self->to_others[i], data, bytes);
    return 0;
}
