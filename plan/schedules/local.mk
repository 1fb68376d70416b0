# SPDX-License-Identifier: Apache-2.0
# plan/schedules: pipeline-parallel schedules: generators, lists, costs, memory, parallel groups.
libplan_a_SOURCES += \
    plan/schedules/actions.c plan/schedules/actions.h \
    plan/schedules/arithmetic.c plan/schedules/arithmetic.h \
    plan/schedules/comms.c plan/schedules/comms.h \
    plan/schedules/complete_lists.c plan/schedules/complete_lists.h \
    plan/schedules/costs.c plan/schedules/costs.h \
    plan/schedules/generate.c plan/schedules/generate.h \
    plan/schedules/generate_internal.h \
    plan/schedules/generate_megatron.c \
    plan/schedules/listed.c plan/schedules/listed.h \
    plan/schedules/model.c plan/schedules/model.h \
    plan/schedules/parallel.c plan/schedules/parallel.h \
    plan/schedules/pass_time.c plan/schedules/pass_time.h \
    plan/schedules/pytorch.c plan/schedules/pytorch.h \
    plan/schedules/rank_memory.c plan/schedules/rank_memory.h \
    plan/schedules/tensors.c plan/schedules/tensors.h
