/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - see nvtx.h. */
#include "nvtx.h"

#ifdef HAVE_NVTX

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

enum { NAME = 256 };

/* NVTX sets itself up in the first call, and threads that call it then read pointers without a lock while one of
   them writes these. So all calls come after one that has set it up. */
static void set_up(void)
{
    nvtxInitialize(NULL);
}

void nvtx_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
}

/* NVTX has no question for this, but a push without a tool has no level. */
bool nvtx_open(void)
{
    nvtx_ready();
    return nvtxRangePushA("SWP/open") >= 0;
}

void nvtx_begin(bool serial, const char *task, int64_t iteration, bool skipped)
{
    char name[NAME], number[32] = "";
    if (iteration >= 0)
        snprintf(number, sizeof number, "/iter%" PRId64, iteration);
    snprintf(name, sizeof name, "SWP%s/%s%s%s", serial ? "_serial" : "", task, number,
             skipped ? " [skip]" : "");
    nvtxRangePushA(name);
}

void nvtx_end(void)
{
    nvtxRangePop();
}

void nvtx_name_thread(const char *name)
{
    nvtx_ready();
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

#else

void nvtx_ready(void)
{
}

bool nvtx_open(void)
{
    return false;
}

void nvtx_begin(bool serial, const char *task, int64_t iteration, bool skipped)
{
    (void)serial;
    (void)task;
    (void)iteration;
    (void)skipped;
}

void nvtx_end(void)
{
}

void nvtx_name_thread(const char *name)
{
    (void)name;
}

#endif
