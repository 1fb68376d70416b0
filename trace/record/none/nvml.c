/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - libnvidia-ml.so.1: the GPUs that are not there, as tools see them. A handle is the number of the device, from 1. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

enum { NVML_NOT_SUPPORTED = 3, NVML_INVALID = 2, NVML_NOT_FOUND = 6 };

FACE(int, nvmlInit_v2, (void))
{
    return 0;
}
FACE(int, nvmlInitWithFlags, (unsigned flags))
{
    (void)flags;
    return 0;
}
FACE(int, nvmlShutdown, (void))
{
    return 0;
}
FACE(const char *, nvmlErrorString, (int error))
{
    return error == 0                    ? "Success"
           : error == NVML_NOT_SUPPORTED ? "Not Supported"
           : error == NVML_NOT_FOUND     ? "Not Found"
                                         : "Invalid Argument";
}
FACE(int, nvmlDeviceGetCount_v2, (unsigned *out))
{
    *out = (unsigned)none_devices();
    return 0;
}
static int nvml_place(unsigned number, void **out)
{
    *out = (void *)(uintptr_t)(number + 1);
    return (int)number < none_devices() ? 0 : NVML_INVALID;
}
FACE(int, nvmlDeviceGetHandleByIndex_v2, (unsigned number, void **out))
{
    return nvml_place(number, out);
}
FACE(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *text, void **out))
{
    unsigned bus = 0;
    return sscanf(text, "%*x:%x", &bus) == 1 && bus > 0 ? nvml_place(bus - 1, out) : NVML_NOT_FOUND;
}
FACE(int, nvmlDeviceGetIndex, (void *device, unsigned *out))
{
    *out = (unsigned)(uintptr_t)device - 1;
    return 0;
}
FACE(int, nvmlDeviceGetName, (void *device, char *out, unsigned room))
{
    (void)device;
    snprintf(out, room, "%s", none_model()->name);
    return 0;
}
FACE(int, nvmlDeviceGetUUID, (void *device, char *out, unsigned room))
{
    snprintf(out, room, "GPU-7377736d-6e6f-6e65-0000-%012x", (unsigned)(uintptr_t)device);
    return 0;
}
FACE(int, nvmlDeviceGetMemoryInfo, (void *device, unsigned long long *out))
{
    (void)device;
    out[0] = out[1] = none_model()->memory;
    out[2] = 0;
    return 0;
}
FACE(int, nvmlDeviceGetCudaComputeCapability, (void *device, int *major, int *minor))
{
    (void)device;
    *major = none_model()->major;
    *minor = none_model()->minor;
    return 0;
}
FACE(int, nvmlDeviceGetUtilizationRates, (void *device, unsigned *out))
{
    (void)device;
    out[0] = out[1] = 0;
    return 0;
}
FACE(int, nvmlDeviceGetComputeRunningProcesses, (void *device, unsigned *count, void *list))
{
    (void)device, (void)list;
    *count = 0;
    return 0;
}
FACE(int, nvmlSystemGetDriverVersion, (char *out, unsigned room))
{
    snprintf(out, room, "580.65.06");
    return 0;
}
FACE(int, nvmlSystemGetCudaDriverVersion_v2, (int *out))
{
    *out = 13000;
    return 0;
}
/* Between any two GPUs. */
FACE(int, nvmlDeviceGetP2PStatus, (void *a, void *b, int which, int *out))
{
    (void)a, (void)b, (void)which;
    *out = 0;
    return 0;
}
/* There are no links: who looks for them is told so, as on a machine with PCIe alone. */
FACE(int, nvmlDeviceGetNvLinkState, (void *device, unsigned link, int *out))
{
    (void)device, (void)link;
    *out = 0;
    return NVML_NOT_SUPPORTED;
}
FACE(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, (void *device, unsigned link, void *out))
{
    (void)device, (void)link, (void)out;
    return NVML_NOT_SUPPORTED;
}
FACE(int, nvmlDeviceGetNvLinkRemoteDeviceType, (void *device, unsigned link, int *out))
{
    (void)device, (void)link, (void)out;
    return NVML_NOT_SUPPORTED;
}
FACE(int, nvmlDeviceGetGpuFabricInfoV, (void *device, void *out))
{
    (void)device, (void)out;
    return NVML_NOT_SUPPORTED;
}
struct nvml_pci {
    char old_id[16];
    unsigned domain, bus, device, ids, subsystem;
    char id[32];
};
FACE(int, nvmlDeviceGetPciInfo_v3, (void *device, struct nvml_pci *out))
{
    memset(out, 0, sizeof *out);
    out->bus = (unsigned)(uintptr_t)device;
    snprintf(out->id, sizeof out->id, "00000000:%02X:00.0", out->bus);
    snprintf(out->old_id, sizeof out->old_id, "0000:%02X:00.0", out->bus);
    return 0;
}
