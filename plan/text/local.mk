# SPDX-License-Identifier: Apache-2.0
# plan/text: plans as text: parser, printer, edits, warnings.
libplan_a_SOURCES += \
    plan/text/copy.c plan/text/copy.h \
    plan/text/csv.c plan/text/csv.h \
    plan/text/edge_warnings.c plan/text/edge_warnings.h \
    plan/text/flow_lines.c plan/text/flow_lines.h \
    plan/text/list_warnings.c plan/text/list_warnings.h \
    plan/text/parse.c plan/text/parse.h \
    plan/text/parse_costs.c \
    plan/text/parse_devices.c \
    plan/text/parse_effects.c \
    plan/text/parse_fields.c \
    plan/text/parse_graphs.c \
    plan/text/parse_internal.h \
    plan/text/parse_machine.c \
    plan/text/parse_parallel.c \
    plan/text/parse_pipeline.c \
    plan/text/parse_programs.c \
    plan/text/parse_repeat.c \
    plan/text/parse_streams.c \
    plan/text/parse_threads.c \
    plan/text/parse_yaml.c \
    plan/text/print.c plan/text/print.h \
    plan/text/print_costs.c \
    plan/text/print_emit.c \
    plan/text/print_internal.h \
    plan/text/print_parallel.c \
    plan/text/print_pipeline.c \
    plan/text/print_programs.c \
    plan/text/print_threads.c \
    plan/text/rewrite.c plan/text/rewrite.h \
    plan/text/spans.c plan/text/spans.h \
    plan/text/warnings.c plan/text/warnings.h
