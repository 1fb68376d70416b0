# SPDX-License-Identifier: Apache-2.0
# improve: better plans: edits, proved repairs, tuning.
libimprove_a_SOURCES += \
    improve/bubble.c improve/bubble.h \
    improve/bubble_channel.c \
    improve/bubble_search.c \
    improve/diff.c improve/diff.h \
    improve/edits.c improve/edits.h \
    improve/edits_calls.c \
    improve/edits_host.c \
    improve/edits_internal.h \
    improve/edits_pipeline.c \
    improve/edits_programs.c \
    improve/found.c improve/found.h \
    improve/frontier.c improve/frontier.h \
    improve/frontier_costs.c improve/frontier_costs.h \
    improve/repair.c improve/repair.h \
    improve/tune.c improve/tune.h \
    improve/tune_host.c improve/tune_host.h \
    improve/tune_result.c \
    improve/tune_search.c \
    improve/tune_view.c improve/tune_view.h
