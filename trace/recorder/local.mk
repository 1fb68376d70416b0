# SPDX-License-Identifier: Apache-2.0
# trace/recorder: the library that `swsim record` puts before those of a CUDA program, and the format of its recordings.
libswrecord_so_SOURCES += \
    trace/recorder/batches.c \
    trace/recorder/boxes.c \
    trace/recorder/calls.c trace/recorder/calls.h \
    trace/recorder/counted.c trace/recorder/counted.h \
    trace/recorder/cuda.c \
    trace/recorder/cupti.h \
    trace/recorder/device_times.c trace/recorder/device_times.h \
    trace/recorder/doubt.c trace/recorder/doubt.h \
    trace/recorder/driver.c \
    trace/recorder/functions.c trace/recorder/functions.h \
    trace/recorder/launched.c trace/recorder/launched.h \
    trace/recorder/names.c trace/recorder/names.h \
    trace/recorder/nccl.c \
    trace/recorder/real.c trace/recorder/real.h \
    trace/recorder/recording.h \
    trace/recorder/symbols.c trace/recorder/symbols.h \
    trace/recorder/tape.c trace/recorder/tape.h \
    trace/recorder/threads.c trace/recorder/threads.h \
    trace/recorder/touch.c trace/recorder/touch.h \
    trace/recorder/unseen.c trace/recorder/unseen.h \
    trace/recorder/words.h
