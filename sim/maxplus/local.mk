# SPDX-License-Identifier: Apache-2.0
# sim/maxplus: event graphs: cycle ratio, steady state, slack.
libsim_a_SOURCES += \
    sim/maxplus/cycle_ratio.c sim/maxplus/cycle_ratio.h sim/maxplus/cycle_ratio.inc \
    sim/maxplus/enabling_steps.c sim/maxplus/enabling_steps.h \
    sim/maxplus/event_graph.c sim/maxplus/event_graph.h \
    sim/maxplus/observed_event_graph.c sim/maxplus/observed_event_graph.h \
    sim/maxplus/slack.c sim/maxplus/slack.h \
    sim/maxplus/steady.c sim/maxplus/steady.h
