# SPDX-License-Identifier: Apache-2.0
# trace/import: traces of real jobs and dumps of hangs, read into a job; evidence for the order of a job; the job as a plan.
libimport_a_SOURCES += \
    trace/import/chakra.c trace/import/chakra.h \
    trace/import/evidence.c trace/import/evidence.h \
    trace/import/execution.c trace/import/execution.h \
    trace/import/files.c trace/import/files.h \
    trace/import/flight.c trace/import/flight.h \
    trace/import/flight_calls.c trace/import/flight_calls.h \
    trace/import/fold.c trace/import/fold.h \
    trace/import/host_calls.c trace/import/host_calls.h \
    trace/import/host_work.c trace/import/host_work.h \
    trace/import/import.c trace/import/import.h \
    trace/import/innermost.c trace/import/innermost.h \
    trace/import/json_reader.c trace/import/json_reader.h \
    trace/import/kineto.c trace/import/kineto.h \
    trace/import/kineto_operators.c trace/import/kineto_operators.h \
    trace/import/meetings.c trace/import/meetings.h \
    trace/import/nsys.c trace/import/nsys.h \
    trace/import/piece_cuts.c \
    trace/import/piece_deps.c \
    trace/import/pieces.c trace/import/pieces.h \
    trace/import/pieces_internal.h \
    trace/import/pipeline_accesses.c \
    trace/import/pipeline_form.c trace/import/pipeline_form.h \
    trace/import/pipeline_internal.h \
    trace/import/processes.c trace/import/processes.h \
    trace/import/record.c trace/import/record.h \
    trace/import/report.c \
    trace/import/sections.c trace/import/sections.h \
    trace/import/standstill.c trace/import/standstill.h \
    trace/import/steps.c trace/import/steps.h \
    trace/import/turns.c trace/import/turns.h \
    trace/import/value.c trace/import/value.h
