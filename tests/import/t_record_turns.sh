#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Threads that let each other go on more than once, recorded on emulated CUDA: one that goes on after the first time comes
# after no more than that, even where the other thread is ahead in the run; where several threads let it go on, the verdict
# says that their order is the run's.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
program=$PWD/tests/record/turns
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# record CASE [fixed]: leaves $dir/run.yaml. A run in which the other thread was not ahead is repeated.
record()
{
    left=30
    while [ $((left -= 1)) -gt 0 ]; do
        rm -rf "$dir/run.swr"
        TSAN_OPTIONS="${TSAN_OPTIONS-} report_bugs=0" "$SWSIM" record -o "$dir/run.swr" -- "$program" "$@" >"$dir/log" 2>&1 &&
            { "$SWSIM" import -o "$dir/run.yaml" "$dir/run.swr" 2>>"$dir/log" || cat "$dir/log"; return; }
        grep -q 'exited with 3' "$dir/log" || break
    done
    cat "$dir/log"
    return 1
}
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 'race.*fill' "$SWSIM" verify --no-fix "$dir/run.yaml"; }
proves() { record "$1" fixed && prints 0 'proved  ' "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# but_for CASE [fixed]
but_for() { record "$@" && prints 0 'except other orders of locks in [0-9]* places\{0,1\}: threads take them as in the run  ' "$SWSIM" verify --no-fix "$dir/run.yaml"; }

for case in sem_twice sem_of_one sem_again sem_many barrier_twice; do
    check "$case: too early" finds $case
    check "$case: in time" proves $case
done
for case in sem_of_two cond_twice; do
    check "$case: too early, in an order that is luck" but_for $case
    check "$case: in time" but_for $case fixed
done
check "a semaphore as a lock: its order is luck" but_for sem_as_lock
check "... but for a thread that was joined" proves sem_as_lock
done_testing
