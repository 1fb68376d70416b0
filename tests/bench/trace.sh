#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cost of a trace to a run: the same plan with --db and without, in turns, medians.
#
#     SWRUN=./swrun sh tests/bench/trace.sh [ROUNDS]
#
#   DEVICE=host|cuda    which device (default host)
#   ITERATIONS=N        of the first plan (default 300); the second, whose tasks are short, has 13 times as many
#   JSON=yes            figures as one object: per plan nanoseconds an iteration, bare and kept, and the share
#
# Tasks take time without computing (the host device sleeps, a GPU spins), so that a machine with few cores
# shows what the trace costs and not how its threads compete. Two plans: iterations of 10 ms, and tasks of 50 us.
set -u
: "${SWRUN:=./swrun}"
: "${DEVICE:=host}"
: "${ITERATIONS:=300}"
: "${JSON:=}"
rounds=${1:-9}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

plan() # plan NAME H2D DIST FORWARD BACKWARD
{
    cat >"$dir/$1.yaml" <<PLAN
swplan: 1
name: $1
max_depth: 3
schedule:
  H2D: {stage: 0, stream: memcpy, thread_group: io, time: $2}
  Dist: {stage: 1, stream: dist, time: $3}
  Forward: {stage: 2, time: $4}
  Backward: {stage: 2, time: $5}
intra_iter_deps: [[Dist, H2D], [Forward, Dist], [Backward, Forward]]
PLAN
}
plan iterations 2ms 3ms 4ms 6ms
plan tasks 50us 50us 50us 50us

# iteration PLAN N [OPTION...]: mean nanoseconds of an iteration, steady state
iteration()
{
    name=$1
    n=$2
    shift 2
    rm -f "$dir/t.db"
    "$SWRUN" --json -n "$n" --device="$DEVICE" --driver=dataflow --no-check "$@" "$dir/$name.yaml" >"$dir/out" || return
    sed 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/' "$dir/out"
}
median()
{
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# measure PLAN N: the medians, in $bare and $kept
measure()
{
    : >"$dir/bare"
    : >"$dir/kept"
    i=0
    while [ $i -lt "$rounds" ]; do
        iteration "$1" "$2" >>"$dir/bare" || exit 1
        iteration "$1" "$2" --db="$dir/t.db" >>"$dir/kept" || exit 1
        i=$((i + 1))
    done
    bare=$(median "$dir/bare")
    kept=$(median "$dir/kept")
}

[ -n "$JSON" ] || printf '%-12s %14s %14s %9s\n' plan 'bare (us)' '--db (us)' overhead
objects=
for name in iterations tasks; do
    n=$ITERATIONS
    [ $name = iterations ] || n=$((13 * n))
    measure $name "$n"
    if [ -n "$JSON" ]; then
        objects=$objects${objects:+,}$(awk -v name=$name -v bare="$bare" -v kept="$kept" 'BEGIN {
            printf "\"%s\":{\"bare_ns\":%.0f,\"kept_ns\":%.0f,\"share\":%.5f}", name, bare, kept, kept / bare - 1 }')
    else
        awk -v name=$name -v bare="$bare" -v kept="$kept" 'BEGIN {
            printf "%-12s %14.1f %14.1f %8.2f%%\n", name, bare / 1000, kept / 1000, 100 * (kept / bare - 1) }'
    fi
done
[ -z "$JSON" ] || echo "{$objects}"
