# SPDX-License-Identifier: Apache-2.0
# gpu/device: the interface of a device, and the common part of all devices.
libgpu_a_SOURCES += \
    gpu/device/cores.c gpu/device/cores.h \
    gpu/device/dense.h \
    gpu/device/device.c gpu/device/device.h \
    gpu/device/device_check.c \
    gpu/device/device_impl.h \
    gpu/device/gate.c gpu/device/gate.h \
    gpu/device/numbers.h \
    gpu/device/nvtx.c gpu/device/nvtx.h
