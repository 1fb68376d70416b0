# SPDX-License-Identifier: Apache-2.0
# gpu/device/cuda: the CUDA device. Of all files only dense.cu and kernels.cu need nvcc.
if CUDA
libgpu_a_SOURCES += \
    gpu/device/cuda/cuda_alone.c \
    gpu/device/cuda/cuda_comm.c \
    gpu/device/cuda/cuda_event.c \
    gpu/device/cuda/cuda_graph.c \
    gpu/device/cuda/cuda_impl.h \
    gpu/device/cuda/cuda_memory.c \
    gpu/device/cuda/cuda_stream.c \
    gpu/device/cuda/dense.cu \
    gpu/device/cuda/device_cuda.c \
    gpu/device/cuda/kernels.cu gpu/device/cuda/kernels.h \
    gpu/device/cuda/nccl_load.c gpu/device/cuda/nccl_load.h
endif
