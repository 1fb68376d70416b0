/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.h - a test that is several processes: each runs a function with its number and says how it came out.
 *
 * They are forked one after the other, before the test has threads of its own.
 */
#ifndef SWSIM_TEST_PROCESSES_H
#define SWSIM_TEST_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

enum { PROCESSES_MOST = 16, SAID_CAP = 600 };

struct outcome {
    int status;          /* what the function made of it */
    int count;           /* of what it counts */
    double value;        /* of what it computes */
    char said[SAID_CAP]; /* its reason, "" */
};

struct process {
    int number, count;
    const char *address; /* 127.0.0.1 and a port that was free */
    const void *arg;
    int from_first, to_others[PROCESSES_MOST]; /* a broadcast of the first, by pipes */
};

/* Returns false when they did not all end in `seconds`: then they are killed. ended[i]: that one came to its
   end, out[i] is its outcome; one that was killed has none. */
bool processes_run(int count, void (*body)(const struct process *self, struct outcome *out),
                   const void *arg, int seconds, struct outcome *out, bool *ended);

/* NCCL refuses two ranks on a GPU of one machine: give this process a machine of its own. */
void processes_share_gpu(const struct process *self);

/* The same with threads of this process, without a time limit and without a broadcast. */
bool threads_run(int count, void (*body)(const struct process *self, struct outcome *out),
                 const void *arg, struct outcome *out);

/* As swpipe_join wants it; arg: the process. */
int processes_broadcast(void *arg, void *data, size_t bytes);

#endif
