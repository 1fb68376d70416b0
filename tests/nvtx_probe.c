/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_probe.c - a profiler in sixty lines, for t_nvtx.sh: an injection library of NVTX that writes a line
 * for each range pushed and popped and each thread named to the file that NVTX_PROBE names.
 *
 *     THREAD push NAME
 *     THREAD pop
 *     THREAD name OS-THREAD NAME
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

static FILE *out;
static _Thread_local int level;

static long thread(void)
{
    return syscall(SYS_gettid);
}

static int push(const char *name)
{
    fprintf(out, "%ld push %s\n", thread(), name);
    fflush(out);
    return level++;
}

static int pop(void)
{
    fprintf(out, "%ld pop\n", thread());
    fflush(out);
    return --level;
}

static void name_thread(uint32_t id, const char *name)
{
    fprintf(out, "%ld name %u %s\n", thread(), id, name);
    fflush(out);
}

/* The symbol that NVTX looks for; 1: it is to be used. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const char *path = getenv("NVTX_PROBE");
    unsigned int size = 0;
    NvtxFunctionTable table = NULL;
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    out = path ? fopen(path, "w") : NULL;
    if (!out || !callbacks ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) ||
        size <= NVTX_CBID_CORE_NameOsThreadA)
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE_NameOsThreadA] = (NvtxFunctionPointer)name_thread;
    return 1;
}
