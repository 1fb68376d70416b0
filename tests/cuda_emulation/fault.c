/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - emulated CUDA: not a GPU. Failures on request.
 *
 *     SWSIM_EMULATION_FAULT=FAULT[,FAULT]...
 *     FAULT: WHAT=N[:CODE][@HOST]
 *
 * WHAT is `work`: the N-th kernel or copy of this process accesses an illegal address, which ends the
 * context; or `nccl`: the N-th operation of NCCL meets an error on the wire; or `activity`, see cupti.c; or the name of a function of
 * CUDA: its N-th call returns CODE (2, out of memory, by default) without an effect; at the N-th
 * ncclCommInitRankConfig the process dies. N counts from 1. HOST is a
 * value of NCCL_HOSTID: only the process with this value is affected.
 */
#include "emulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FAULTS = 16, NAME = 64 };

struct fault {
    char what[NAME], host[NAME];
    int number, code;
    atomic_int seen;
};

static struct {
    pthread_once_t once;
    int count;
    struct fault faults[MAX_FAULTS];
} plan = {.once = PTHREAD_ONCE_INIT};

static void parse(const char *text, size_t length)
{
    char copy[2 * NAME + 32];
    struct fault *fault = &plan.faults[plan.count];
    if (plan.count == MAX_FAULTS || length >= sizeof copy)
        emulation_misuse("SWSIM_EMULATION_FAULT is too long");
    memcpy(copy, text, length);
    copy[length] = '\0';
    fault->code = cudaErrorMemoryAllocation;
    char *at = strchr(copy, '@');
    if (at) {
        snprintf(fault->host, sizeof fault->host, "%s", at + 1);
        *at = '\0';
    }
    if (sscanf(copy, "%63[A-Za-z]=%d:%d", fault->what, &fault->number, &fault->code) < 2 ||
        fault->number < 1)
        emulation_misuse("SWSIM_EMULATION_FAULT: '%s', expected WHAT=N[:CODE][@HOST]", copy);
    plan.count++;
}

static void read_plan(void)
{
    const char *text = getenv("SWSIM_EMULATION_FAULT");
    while (text && *text) {
        size_t length = strcspn(text, ",");
        parse(text, length);
        text += length + (text[length] == ',');
    }
}

static const struct fault *due(const char *what)
{
    pthread_once(&plan.once, read_plan);
    for (int i = 0; i < plan.count; i++) {
        struct fault *fault = &plan.faults[i];
        if (strcmp(fault->what, what) != 0)
            continue;
        const char *host = fault->host[0] ? getenv("NCCL_HOSTID") : "";
        if (host && strcmp(fault->host, host) == 0 &&
            atomic_fetch_add(&fault->seen, 1) + 1 == fault->number)
            return fault;
    }
    return NULL;
}

/* Asked for at each call: a test sets it when it wants. */
static void be_slow(const char *function)
{
    const char *slow = getenv("SWSIM_EMULATION_SLOW");
    const size_t length = strlen(function);
    if (slow && strncmp(slow, function, length) == 0 && slow[length] == ':')
        usleep((useconds_t)atoi(slow + length + 1) * 1000);
}

cudaError_t fault_call(const char *function)
{
    be_slow(function);
    const struct fault *fault = due(function);
    return fault ? (cudaError_t)fault->code : cudaSuccess;
}

bool fault_work(void)
{
    return due("work") != NULL;
}

bool fault_activity(void)
{
    return due("activity") != NULL;
}

bool fault_nccl(void)
{
    return due("nccl") != NULL;
}
