# SPDX-License-Identifier: Apache-2.0
# sim/engine: a run with clocks: events, stall account, sharing, durations.
libsim_a_SOURCES += \
    sim/engine/account.c \
    sim/engine/events.c sim/engine/events.h \
    sim/engine/idle_cause.c \
    sim/engine/in_flight.c sim/engine/in_flight.h \
    sim/engine/iterations.c sim/engine/iterations.h \
    sim/engine/lone_ranks.c sim/engine/lone_ranks.h \
    sim/engine/memo.c sim/engine/memo.h \
    sim/engine/observe.c sim/engine/observe.h \
    sim/engine/prepare.c \
    sim/engine/quantile.c sim/engine/quantile.h \
    sim/engine/random.c sim/engine/random.h \
    sim/engine/sharing.c sim/engine/sharing.h \
    sim/engine/simulate.c sim/engine/simulate.h \
    sim/engine/simulation.h \
    sim/engine/statistics.c sim/engine/statistics.h \
    sim/engine/timing.c sim/engine/timing.h
