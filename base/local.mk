# SPDX-License-Identifier: Apache-2.0
# base: what every program needs: memory, messages, JSON, files, units.
libplan_a_SOURCES += \
    base/arena.c base/arena.h base/assert_index.h \
    base/array.h \
    base/c_locale.h \
    base/columns.c base/columns.h \
    base/diag.c base/diag.h \
    base/documents.h \
    base/dynamic_library.h \
    base/hash.h \
    base/input.c base/input.h \
    base/integers.h \
    base/json.c base/json.h \
    base/keyed_hash.c base/keyed_hash.h \
    base/large_pages.c base/large_pages.h \
    base/list_key.h \
    base/nearest.c base/nearest.h \
    base/ordered.c base/ordered.h \
    base/output.c base/output.h \
    base/printable.c base/printable.h \
    base/processors.c base/processors.h \
    base/quiet_thread.c base/quiet_thread.h \
    base/repeats.c base/repeats.h \
    base/sort.h \
    base/status.h \
    base/stopwatch.h \
    base/system_words.h \
    base/table.h \
    base/text_stream.c base/text_stream.h \
    base/units.c base/units.h \
    base/watch.h \
    base/work_limit.c base/work_limit.h \
    base/wrap.c base/wrap.h
