# SPDX-License-Identifier: Apache-2.0
# machine: the meaning of plans: programs, states, steps, drivers, conflicts.
libmachine_a_SOURCES += \
    machine/canonical.c \
    machine/clock.c \
    machine/clocks.c machine/clocks.h \
    machine/conflicts.c machine/conflicts.h machine/fixed_order.c machine/fixed_order.h \
    machine/dataflow.c \
    machine/driver.c machine/driver.h \
    machine/enablers.c \
    machine/failure.c machine/failure.h \
    machine/happens_before.c machine/happens_before.h \
    machine/machine.c machine/machine.h \
    machine/machine_internal.h \
    machine/memory.c machine/memory.h \
    machine/policy.c machine/policy.h \
    machine/program.h \
    machine/program_words.c \
    machine/ready.c machine/ready.h \
    machine/snapshot.c machine/snapshot.h \
    machine/straight.h \
    machine/uses.c machine/uses.h \
    machine/violation_words.c \
    machine/why.c \
    machine/words.c
