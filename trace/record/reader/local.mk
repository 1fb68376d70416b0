# SPDX-License-Identifier: Apache-2.0
# trace/record/reader: recordings of `swsim record` as the threads of a job.
libimport_a_SOURCES += \
    trace/record/reader/recorded.c trace/record/reader/recorded.h \
    trace/record/reader/recorded_calls.c \
    trace/record/reader/recorded_clock.c \
    trace/record/reader/recorded_comms.c \
    trace/record/reader/recorded_copies.c \
    trace/record/reader/recorded_fold.c \
    trace/record/reader/recorded_form.c \
    trace/record/reader/recorded_internal.h \
    trace/record/reader/recorded_memory.c \
    trace/record/reader/recorded_order.c \
    trace/record/reader/recorded_queries.c \
    trace/record/reader/recorded_tenants.c \
    trace/record/reader/recorded_tensors.c \
    trace/record/reader/recorded_values.c \
    trace/record/reader/tapes.c trace/record/reader/tapes.h
