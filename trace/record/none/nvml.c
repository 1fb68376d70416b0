/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - libnvidia-ml.so.1: the GPUs that are not there, as tools see them. A handle is the number of the device, from 1. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

enum { NVML_NOT_SUPPORTED = 3, NVML_INVALID = 2, NVML_NOT_FOUND = 6 };

VALUE(int, nvmlInit_v2, (void), 0)
VALUE(int, nvmlInitWithFlags, (unsigned flags), 0)
VALUE(int, nvmlShutdown, (void), 0)
VALUE(const char *, nvmlErrorString, (int error),
      error == 0                    ? "Success"
      : error == NVML_NOT_SUPPORTED ? "Not Supported"
      : error == NVML_NOT_FOUND     ? "Not Found"
                                    : "Invalid Argument")
VALUE(int, nvmlDeviceGetCount_v2, (unsigned *out), (*out = (unsigned)none_devices(), 0))
static int nvml_place(unsigned number, void **out)
{
    *out = (void *)(uintptr_t)(number + 1);
    return (int)number < none_devices() ? 0 : NVML_INVALID;
}
VALUE(int, nvmlDeviceGetHandleByIndex_v2, (unsigned number, void **out), nvml_place(number, out))
FACE(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *text, void **out))
{
    unsigned bus = 0;
    return sscanf(text, "%*x:%x", &bus) == 1 && bus > 0 ? nvml_place(bus - 1, out) : NVML_NOT_FOUND;
}
VALUE(int, nvmlDeviceGetIndex, (void *device, unsigned *out),
      (*out = (unsigned)(uintptr_t)device - 1, 0))
VALUE(int, nvmlDeviceGetName, (void *device, char *out, unsigned room),
      (snprintf(out, room, "%s", none_model()->name), 0))
VALUE(int, nvmlDeviceGetUUID, (void *device, char *out, unsigned room),
      (snprintf(out, room, "GPU-7377736d-6e6f-6e65-0000-%012x", (unsigned)(uintptr_t)device), 0))
VALUE(int, nvmlDeviceGetMemoryInfo, (void *device, unsigned long long *out),
      (out[0] = out[1] = none_model()->memory, out[2] = 0, 0))
VALUE(int, nvmlDeviceGetCudaComputeCapability, (void *device, int *major, int *minor),
      (*major = none_model()->major, *minor = none_model()->minor, 0))
VALUE(int, nvmlDeviceGetUtilizationRates, (void *device, unsigned *out), (out[0] = out[1] = 0, 0))
VALUE(int, nvmlDeviceGetComputeRunningProcesses, (void *device, unsigned *count, void *list),
      (*count = 0, 0))
VALUE(int, nvmlSystemGetDriverVersion, (char *out, unsigned room),
      (snprintf(out, room, "580.65.06"), 0))
VALUE(int, nvmlSystemGetCudaDriverVersion_v2, (int *out), (*out = 13000, 0))
/* Between any two GPUs. */
VALUE(int, nvmlDeviceGetP2PStatus, (void *a, void *b, int which, int *out), (*out = 0, 0))
/* There are no links: who looks for them is told so, as on a machine with PCIe alone. */
VALUE(int, nvmlDeviceGetNvLinkState, (void *device, unsigned link, int *out),
      (*out = 0, NVML_NOT_SUPPORTED))
VALUE(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, (void *device, unsigned link, void *out),
      NVML_NOT_SUPPORTED)
VALUE(int, nvmlDeviceGetNvLinkRemoteDeviceType, (void *device, unsigned link, int *out),
      NVML_NOT_SUPPORTED)
VALUE(int, nvmlDeviceGetGpuFabricInfoV, (void *device, void *out), NVML_NOT_SUPPORTED)
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
