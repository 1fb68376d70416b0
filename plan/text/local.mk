# SPDX-License-Identifier: Apache-2.0
# plan/text: plans as text: parser, printer, edits, warnings.
libplan_a_SOURCES += \
    plan/text/chakra.c plan/text/chakra.h \
    plan/text/csv.c plan/text/csv.h \
    plan/text/fields.c \
    plan/text/flow_lines.c plan/text/flow_lines.h \
    plan/text/keys_costs.c \
    plan/text/keys_hardware.c \
    plan/text/keys_machine.c \
    plan/text/keys_parallel.c \
    plan/text/keys_pipeline.c \
    plan/text/keys_plan.c \
    plan/text/keys_programs.c \
    plan/text/keys_threads.c \
    plan/text/list_warnings.c plan/text/list_warnings.h \
    plan/text/parse.c plan/text/parse.h \
    plan/text/parse_devices.c \
    plan/text/parse_effects.c \
    plan/text/parse_graphs.c \
    plan/text/parse_relative.c \
    plan/text/parse_repeat.c \
    plan/text/parse_yaml.c \
    plan/text/plan_schema.c plan/text/plan_schema.h \
    plan/text/print.c plan/text/print.h \
    plan/text/rewrite.c plan/text/rewrite.h \
    plan/text/spans.c plan/text/spans.h \
    plan/text/symbols.c \
    plan/text/text_internal.h \
    plan/text/warnings.c plan/text/warnings.h
