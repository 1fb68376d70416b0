/* SPDX-License-Identifier: Apache-2.0 */
/* missing_nccl.c - the functions of NCCL that the device has no equal of: each ends the run by its name. */
#include "none.h"

/* A function that is written elsewhere takes the place of the one here. */
#define X(name)                                                                                    \
    int __attribute__((weak)) name(void);                                                          \
    int __attribute__((weak)) name(void)                                                           \
    {                                                                                              \
        none_missing(#name, NULL);                                                                 \
    }

/* All that the library has. */
/* clang-format off */
X(ncclAllGather) X(ncclAllReduce) X(ncclAlltoAll) X(ncclBcast) X(ncclBroadcast) X(ncclCommAbort)
X(ncclCommCount) X(ncclCommCuDevice) X(ncclCommDeregister) X(ncclCommDestroy) X(ncclCommFinalize)
X(ncclCommGetAsyncError) X(ncclCommGetUniqueId) X(ncclCommGrow) X(ncclCommInitAll)
X(ncclCommInitRank) X(ncclCommInitRankConfig) X(ncclCommInitRankScalable) X(ncclCommMemStats)
X(ncclCommQueryProperties) X(ncclCommRegister) X(ncclCommResume) X(ncclCommRevoke) X(ncclCommShrink)
X(ncclCommSplit) X(ncclCommSuspend) X(ncclCommUserRank) X(ncclCommWindowDeregister)
X(ncclCommWindowRegister) X(ncclDevCommCreate) X(ncclDevCommDestroy) X(ncclGather)
X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetLsaDevicePointer)
X(ncclGetLsaMultimemDevicePointer) X(ncclGetMultimemDevicePointer) X(ncclGetPeerDevicePointer)
X(ncclGetUniqueId) X(ncclGetVersion) X(ncclGinBarrierCreateRequirement)
X(ncclGinInboxA2ACreateRequirement) X(ncclGinOutboxCreateRequirement) X(ncclGroupEnd)
X(ncclGroupSimulateEnd) X(ncclGroupStart) X(ncclLLA2ACalcSlots) X(ncclLLA2ACreateRequirement)
X(ncclLsaBarrierCreateRequirement) X(ncclMemAlloc) X(ncclMemFree) X(ncclParamBind)
X(ncclParamDumpAll) X(ncclParamGet) X(ncclParamGetAllParameterKeys) X(ncclParamGetI16)
X(ncclParamGetI32) X(ncclParamGetI64) X(ncclParamGetI8) X(ncclParamGetParameter) X(ncclParamGetStr)
X(ncclParamGetU16) X(ncclParamGetU32) X(ncclParamGetU64) X(ncclParamGetU8) X(ncclPutSignal)
X(ncclRecv) X(ncclRedOpCreatePreMulSum) X(ncclRedOpDestroy) X(ncclReduce) X(ncclReduceScatter)
X(ncclResetDebugInit) X(ncclResetDebugInitInternal) X(ncclScatter) X(ncclSend) X(ncclSignal)
X(ncclTeamLsa) X(ncclTeamRail) X(ncclTeamRankToLsa) X(ncclTeamRankToWorld) X(ncclTeamWorld)
X(ncclWaitSignal) X(ncclWinGetUserPtr)
    /* clang-format on */
