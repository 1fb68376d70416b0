# SPDX-License-Identifier: Apache-2.0
# gpu/record: the record of a run: journal, trace writer, replay.
libgpu_a_SOURCES += \
    gpu/record/ends.c gpu/record/ends.h \
    gpu/record/journal.c gpu/record/journal.h \
    gpu/record/journal_impl.h \
    gpu/record/journal_pass.c \
    gpu/record/journal_replay.c \
    gpu/record/journal_wire.c \
    gpu/record/op_stats.c gpu/record/op_stats.h \
    gpu/record/rank_report.h \
    gpu/record/replay.c gpu/record/replay.h \
    gpu/record/result.h \
    gpu/record/trace_writer.c gpu/record/trace_writer.h
