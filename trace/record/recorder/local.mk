# SPDX-License-Identifier: Apache-2.0
# trace/record/recorder: the library that `swsim record` puts before those of a CUDA program, and the format of its recordings.
libswrecord_so_SOURCES += \
    trace/record/recorder/boxes.c \
    trace/record/recorder/calls.c trace/record/recorder/calls.h \
    trace/record/recorder/counted.c trace/record/recorder/counted.h \
    trace/record/recorder/cuda.c \
    trace/record/recorder/cupti.h \
    trace/record/recorder/device_times.c trace/record/recorder/device_times.h \
    trace/record/recorder/doubt.c trace/record/recorder/doubt.h \
    trace/record/recorder/driver.c \
    trace/record/recorder/functions.c trace/record/recorder/functions.h \
    trace/record/recorder/launched.c trace/record/recorder/launched.h \
    trace/record/recorder/names.c trace/record/recorder/names.h \
    trace/record/recorder/nccl.c \
    trace/record/recorder/ops.c trace/record/recorder/ops.h \
    trace/record/recorder/real.c trace/record/recorder/real.h \
    trace/record/recorder/recording.h \
    trace/record/recorder/swsim_ops.h \
    trace/record/recorder/symbols.c trace/record/recorder/symbols.h \
    trace/record/recorder/tape.c trace/record/recorder/tape.h \
    trace/record/recorder/threads.c trace/record/recorder/threads.h \
    trace/record/recorder/touch.c trace/record/recorder/touch.h \
    trace/record/recorder/unseen.c trace/record/recorder/unseen.h \
    trace/record/recorder/words.h

# The names of a section of functions.txt, each as X(name).
recorder_lists = unmodelled harmless missing_runtime missing_driver missing_blas missing_blas_lt missing_nccl
recorder_list_files = $(recorder_lists:%=trace/record/recorder/%.inc)
MOSTLYCLEANFILES += $(recorder_list_files)
trace/record/recorder/libswrecord_so-functions.$(OBJEXT): trace/record/recorder/unmodelled.inc trace/record/recorder/harmless.inc
$(recorder_list_files): trace/record/recorder/functions.txt
	$(AM_V_GEN)$(MKDIR_P) trace/record/recorder && awk -v section=`basename $@ .inc` '/^#/ { next } /^\[/ { on = $$0 == "[" section "]"; next } \
	    on { for (i = 1; i <= NF; i++) print "X(" $$i ")" }' $(srcdir)/trace/record/recorder/functions.txt >$@.new && mv $@.new $@
