# SPDX-License-Identifier: Apache-2.0
# gpu/device/host: the host device.
libgpu_a_SOURCES += \
    gpu/device/host/device_host.c \
    gpu/device/host/host.h \
    gpu/device/host/host_collective.c \
    gpu/device/host/host_comm.c gpu/device/host/host_comm.h \
    gpu/device/host/host_desk.c \
    gpu/device/host/host_gemm.inc \
    gpu/device/host/host_graph.c \
    gpu/device/host/host_link.c \
    gpu/device/host/host_server.c \
    gpu/device/host/host_stream.c \
    gpu/device/host/host_wait.c \
    gpu/device/host/host_work.c \
    gpu/device/host/link_message.h
