# SPDX-License-Identifier: Apache-2.0
# trace/job: the one form of an import: what is known of a job, whatever its files are.
libimport_a_SOURCES += \
    trace/job/bytes.c trace/job/bytes.h \
    trace/job/call_names.c trace/job/call_names.h \
    trace/job/host_form.c trace/job/host_form.h \
    trace/job/job.c trace/job/job.h \
    trace/job/repeated.c trace/job/repeated.h
