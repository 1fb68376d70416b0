# SPDX-License-Identifier: Apache-2.0
# check/spin: programs as Promela models.
libcheck_a_SOURCES += \
    check/spin/export_promela.c check/spin/export_promela.h \
    check/spin/promela.h \
    check/spin/promela_drivers.c \
    check/spin/promela_ops.c
