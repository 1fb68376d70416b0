#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim record --host-accesses on emulated CUDA: the host's first access to pinned memory behind each copy and kernel is
# seen, and the verdict names those that may not be.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
program=$PWD/tests/record/pinned
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

how= # an option of the import
record()
{
    rm -rf "$dir/run.swr"
    TSAN_OPTIONS="${TSAN_OPTIONS-} report_bugs=0" "$SWSIM" record --host-accesses -o "$dir/run.swr" -- "$program" "$@" >"$dir/log" 2>&1 &&
        "$SWSIM" import $how -o "$dir/run.yaml" "$dir/run.swr" 2>>"$dir/log" || { cat "$dir/log"; return 1; }
}
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 "race.*$2" "$SWSIM" verify --no-fix "$dir/run.yaml"; }
proves() { record "$1" fixed && prints 0 "${2:-proved  }" "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# but_for TEXT CASE [fixed]
but_for() { text=$1; shift; record "$@" && prints 0 "except $text  " "$SWSIM" verify --no-fix "$dir/run.yaml"; }

check "a read of what is still copied, and is copied on" finds copied_on 'copy of [^,]* accesses.*read pinned0'
check "a write behind a read, of what is still read" finds read_then_write 'copy of [^,]* accesses.*write pinned0'
check "a read of what rows are copied to" finds rows_out 'copy of [^,]* accesses.*read pinned0'
check "a write of what rows are copied from" finds rows_in 'copy of [^,]* accesses.*write pinned0'
check "a read of what a kernel writes" finds kernel_writes 'fill<float> accesses.*read pinned0'
check "a write of what a kernel reads" finds kernel_reads 'axpy accesses.*write pinned0'
for case in copied_on read_then_write rows_in kernel_writes kernel_reads; do
    check "$case, repaired" proves $case
done
check "rows_out, repaired" proves rows_out ', except extents of kernels: [^,]*  '
first='only the first behind each operation of a device is seen'
for fixed in '' fixed; do
    check "graphs ${fixed:-too early}: accesses behind them are told" but_for "the host's accesses to 1 allocation: behind graphs, collectives and messages they are not seen" graph $fixed
    check "two threads ${fixed:-too early}: those of the second one are told" but_for "other threads' accesses to 1 allocation: $first" two_threads $fixed
    check "parts ${fixed:-too early}: those of the second one are told" but_for "the host's accesses in parts to 1 allocation: $first" halves $fixed
done
for how in --repeat=never --repeat=like; do
    check "memory that is taken again while it is copied, $how" finds taken_again 'copy of [^,]* accesses.*write pinned0'
    check "... and when a query has said that it may be, $how" proves taken_again ', except other answers of .*'
    check "... by another thread, $how" finds taken_by_another 'copy of [^,]* accesses.*write pinned0'
    check "... and when its query has said that it may be, $how" proves taken_by_another 'proved .*, except'
done
how=
check "more allocations than are looked at are told" but_for "the host's accesses to 1 allocation: .*" many
done_testing
