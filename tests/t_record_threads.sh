#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A result that one thread gives to another, recorded on emulated CUDA: in every way of the C library that the recorder sees
# the right program is proved, and the one that gives too early is found out. Other ways are told.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
program=$PWD/tests/record/threads
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# record CASE [fixed]: leaves $dir/run.yaml.
record()
{
    rm -rf "$dir/run.swr"
    "$SWSIM" record -o "$dir/run.swr" -- "$program" "$@" >"$dir/log" 2>&1 &&
        "$SWSIM" import -o "$dir/run.yaml" "$dir/run.swr" 2>>"$dir/log" || { cat "$dir/log"; return 1; }
}
finds() { record "$1" && prints 1 'race.*fill' "$SWSIM" verify --no-fix "$dir/run.yaml"; }
proves() { record "$1" fixed && prints 0 'proved  ' "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# A race, and in the same breath that unseen means may order the threads; the order of time has none.
tells()
{
    record "$1" fixed && prints 1 'the plan does not have: what orders threads in 2 places: .*--order=seen' "$SWSIM" verify --no-fix "$dir/run.yaml" &&
        prints 1 '"but_for":."what orders threads' "$SWSIM" verify --no-fix --json "$dir/run.yaml" &&
        "$SWSIM" import --order=seen -o "$dir/run.yaml" "$dir/run.swr" && prints 0 'proved  ' "$SWSIM" verify "$dir/run.yaml"
}
unseen=' pipe socket eventfd signal futex atomic '

for case in $("$program"); do
    check "$case: given too early" finds "$case"
    case $unseen in *" $case "*) check "$case: in order, which is not seen" tells "$case"; continue ;; esac
    check "$case: in order" proves "$case"
done
done_testing
