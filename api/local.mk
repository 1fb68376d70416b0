# SPDX-License-Identifier: Apache-2.0
# api: libswsim, and what it shares with the commands: what is found out about a plan, in words and as JSON.
libapi_a_SOURCES += \
    api/channels.c api/channels.h \
    api/driver_choice.c api/driver_choice.h \
    api/finding.c api/finding.h \
    api/frontier_picture.c \
    api/frontier_report.c api/frontier_report.h \
    api/option_texts.c api/option_texts.h \
    api/profiled.c api/profiled.h \
    api/quick_proof.c api/quick_proof.h \
    api/render.c api/render.h \
    api/run_list.c api/run_list.h \
    api/swsim.c api/swsim.h \
    api/swsim_impl.h \
    api/swsim_calls.c \
    api/swsim_store.c \
    api/telling.c api/telling.h \
    api/tuning.c api/tuning.h \
    api/unexplained.c api/unexplained.h \
    api/verdict.c api/verdict.h
