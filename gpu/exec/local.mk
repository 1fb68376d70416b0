# SPDX-License-Identifier: Apache-2.0
# gpu/exec: a run: its threads, pushes, drivers, ranks.
libgpu_a_SOURCES += \
    gpu/exec/called.c \
    gpu/exec/data.c \
    gpu/exec/drive.c \
    gpu/exec/graph.c gpu/exec/graph.h \
    gpu/exec/layers.c gpu/exec/layers.h \
    gpu/exec/pump.c \
    gpu/exec/push.c \
    gpu/exec/ranks.c gpu/exec/ranks.h \
    gpu/exec/run.c gpu/exec/run.h \
    gpu/exec/runtime.c gpu/exec/runtime.h \
    gpu/exec/watch.c \
    gpu/exec/work.c \
    gpu/exec/worker.c
