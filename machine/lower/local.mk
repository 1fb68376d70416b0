# SPDX-License-Identifier: Apache-2.0
# machine/lower: the lowering: plans become programs.
libmachine_a_SOURCES += \
    machine/lower/derive.c \
    machine/lower/lower.c machine/lower/lower.h \
    machine/lower/lower_group.c \
    machine/lower/lower_pipeline.c \
    machine/lower/lower_threads.c \
    machine/lower/program.c \
    machine/lower/rank_collectives.c \
    machine/lower/rank_groups.c \
    machine/lower/rank_internal.h \
    machine/lower/rank_programs.c machine/lower/rank_programs.h \
    machine/lower/rank_steps.c \
    machine/lower/rank_straight.c \
    machine/lower/rank_tensors.c
