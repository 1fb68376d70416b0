# SPDX-License-Identifier: Apache-2.0
# plan: plans as data: the plan, its operations and words, the order of a period.
libplan_a_SOURCES += \
    plan/coverage.c plan/coverage.h \
    plan/blocks.c plan/blocks.h \
    plan/crossing.c plan/crossing.h \
    plan/dist.c plan/dist.h \
    plan/group_names.c plan/group_names.h \
    plan/hang.c plan/hang.h \
    plan/hardware.c plan/hardware.h \
    plan/operator_times.c plan/operator_times.h \
    plan/host_op.h \
    plan/keywords.c plan/keywords.h \
    plan/machine_rules.h \
    plan/ops.c plan/ops.h \
    plan/order.c plan/order.h \
    plan/pipeline.h \
    plan/plan.c plan/plan.h \
    plan/programs.h \
    plan/schedule.c plan/schedule.h \
    plan/strip_device_rules.c plan/strip_device_rules.h \
    plan/work.h
