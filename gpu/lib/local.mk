# SPDX-License-Identifier: Apache-2.0
# gpu/lib: libswpipe, the public library.
libgpu_a_SOURCES += \
    gpu/lib/build.c \
    gpu/lib/collectives.c \
    gpu/lib/configure.c \
    gpu/lib/context.c \
    gpu/lib/engine.c gpu/lib/engine.h \
    gpu/lib/exposed.c \
    gpu/lib/group.c gpu/lib/group.h \
    gpu/lib/in_task.c \
    gpu/lib/own.c \
    gpu/lib/proof_at_open.c \
    gpu/lib/recording.c \
    gpu/lib/shortcut.c \
    gpu/lib/swpipe.c gpu/lib/swpipe.h \
    gpu/lib/swpipe_build.h \
    gpu/lib/swpipe_collectives.h \
    gpu/lib/swpipe_group.h \
    gpu/lib/swpipe_impl.h \
    gpu/lib/swpipe_mpi.h \
    gpu/lib/swpipe_own.h \
    gpu/lib/swpipe_policy.h \
    gpu/lib/swpipe_status.h \
    gpu/lib/tables.c \
    gpu/lib/turns.c
