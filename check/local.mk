# SPDX-License-Identifier: Apache-2.0
# check: all possible behaviours: search, reduction, state store, structural proofs, stories; certificates written.
libcheck_a_SOURCES += \
    check/bitstate.c check/bitstate.h \
    check/budget.c check/budget.h \
    check/certify.c check/certify.h \
    check/certify_run.c \
    check/certify_states.c \
    check/certify_structure.c check/certify_structure.h \
    check/certify_traffic.c \
    check/chunked.c check/chunked.h \
    check/cycle.c check/cycle.h \
    check/dead_writes.c check/dead_writes.h \
    check/difference.c check/difference.h \
    check/early.c check/early.h \
    check/explain.c check/explain.h \
    check/explore.c check/explore.h \
    check/faults.c check/faults.h \
    check/gap_chains.c check/gap_chains.h check/gaps.c check/gaps.h \
    check/intern.c check/intern.h \
    check/leaves.c check/leaves.h \
    check/messages.c check/messages.h \
    check/one_run.c check/one_run.h \
    check/paths.c check/paths.h \
    check/reduce.c check/reduce.h \
    check/scout.c check/scout.h \
    check/few_ranks.c check/few_ranks.h \
    check/many_ranks.c check/many_ranks.h \
    check/many_times.c check/many_times.h \
    check/search.c check/search.h \
    check/shorten.c check/shorten.h \
    check/states.c check/states.h \
    check/structure.c check/structure.h \
    check/suspects.c check/suspects.h \
    check/traffic.c check/traffic.h \
    check/tree.c check/tree.h \
    check/verify.c check/verify.h
