#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A profiler sees the ranges and names of a run, by an injection library of our own.
. "${srcdir:-.}/tests/tap.sh"
. "$srcdir/tests/run_plans.sh"
: "${TEST_CPPFLAGS:=}"

if ! grep -q '^#define HAVE_NVTX 1' config.h; then
    skip_all "no NVTX in this build"
fi

cat >"$dir/two.yaml" <<'PLAN'
swplan: 1
name: two
schedule:
  Load: {stage: 0, stream: memcpy, thread_group: io, time: 50us, writes: [x], work: {copy: h2d, bytes: 4KiB}}
  Forward: {stage: 1, time: 50us, host_time: 20us, reads: [x]}
intra_iter_deps: [[Forward, Load]]
buffers: {x: {scope: iteration}}
PLAN

# shellcheck disable=SC2086
check "a profiler builds" $CC -std=c11 -D_GNU_SOURCE $TEST_CPPFLAGS -shared -fPIC -o "$dir/probe.so" \
    "$srcdir/tests/nvtx_probe.c"
NVTX_PROBE=$dir/seen
export NVTX_PROBE

# watched COMMAND...: under the profiler; its standard output goes to $dir/out
watched()
{
    rm -f "$dir/seen"
    NVTX_INJECTION64_PATH="$dir/probe.so" "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; false; }
}
# seen COUNT TEXT: so many ranges have this name
seen()
{
    count=$(grep -c " push $2\$" "$dir/seen")
    test "$count" -eq "$1" || { echo "found $count ranges '$2', expected $1"; cat "$dir/seen"; false; }
}
# Every pop is of the range pushed last on its thread, and none is left open.
balanced()
{
    awk '$2 == "push" { if ($3 ~ /^SWP(_serial)?\/[A-Z]/ && depth[$1]) bad = 1; depth[$1]++ }
         $2 == "pop" { if (--depth[$1] < 0) bad = 1 }
         END { for (t in depth) if (depth[t]) bad = 1; exit bad }' "$dir/seen"
}

for driver in clock dataflow; do
    check "swrun runs under it, $driver" watched "$SWRUN" --no-check -n 5 --driver=$driver "$dir/two.yaml"
    for i in 0 1 2 3 4; do
        check "$driver: Load of iteration $i" seen 1 "SWP/Load/iter$i"
        check "$driver: Forward of iteration $i" seen 1 "SWP/Forward/iter$i"
    done
    check "$driver: no range is left open" balanced
    check "$driver: tasks of two thread groups are on two threads" sh -c \
        'test "$(sed -n "s/ push SWP\/[LF].*//p" "$1" | sort -u | wc -l)" -eq 2' sh "$dir/seen"
done
check "threads of the device and workers have names" sh -c \
    'grep -q " name [0-9]* r0.device" "$1" && grep -q " name [0-9]* r0:io" "$1"' sh "$dir/seen"

check "serially" watched "$SWRUN" --no-check -n 3 --serial "$dir/two.yaml"
check "the names say so" seen 1 "SWP_serial/Forward/iter2"
check "and none that is not" seen 0 "SWP/Forward/iter2"
check "the serial reference of a checked run is serial" watched "$SWRUN" -n 3 "$dir/two.yaml"
check "and comes after the run" seen 1 "SWP_serial/Load/iter2"

if [ -x doc/examples/train_step ]; then
    check "the library's functions, too" watched doc/examples/train_step "$dir/two.yaml" clock
    check "pipelined" seen 1 "SWP/Forward/iter19"
    check "serial" grep -q "push SWP_serial/Load/iter19" "$dir/seen"
    check "short-cut tasks are marked" grep -q 'push SWP_serial/Load/iter[0-9]* \[skip\]' "$dir/seen"
fi

cat >"$dir/host.yaml" <<'PLAN'
swplan: 1
name: host
threads:
  r0.main: [{launch: k, stream: s, time: 10us}, {sync: device}]
PLAN
check "a host program" watched "$SWRUN" "$dir/host.yaml"
check "has a range a call" seen 1 "SWP/k"

mismatch_plan >"$dir/bad.yaml"
NVTX_INJECTION64_PATH="$dir/probe.so" "$SWRUN" "$dir/bad.yaml" >/dev/null 2>&1
check "a run that fails leaves no range open" balanced
check "without a profiler nothing is loaded" sh -c \
    'rm -f "$1/seen"; "$2" -n 2 "$1/two.yaml" >/dev/null && ! test -e "$1/seen"' sh "$dir" "$SWRUN"
done_testing
