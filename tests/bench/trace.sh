#!/bin/sh
# What keeping a trace costs a run: the same plan with --db and without, in turns, medians.
#
#     SWRUN=./swrun sh tests/bench/trace.sh [ROUNDS]
#
# Tasks take time without computing (the host device sleeps), so that a machine with few cores shows what
# the trace costs and not how its threads compete. Two plans: iterations of 10 ms, and tasks of 50 us.
set -u
: "${SWRUN:=./swrun}"
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

iteration() # iteration PLAN N [OPTION...]: mean nanoseconds of an iteration, steady state
{
    name=$1
    n=$2
    shift 2
    rm -f "$dir/t.db"
    "$SWRUN" --json -n "$n" --driver=dataflow "$@" "$dir/$name.yaml" |
        sed 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/'
}
median()
{
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%-12s %14s %14s %9s\n' plan 'bare (us)' '--db (us)' overhead
for which in iterations:300 tasks:4000; do
    name=${which%:*}
    n=${which#*:}
    : >"$dir/bare"
    : >"$dir/kept"
    i=0
    while [ $i -lt "$rounds" ]; do
        iteration "$name" "$n" --no-check >>"$dir/bare"
        iteration "$name" "$n" --no-check --db="$dir/t.db" >>"$dir/kept"
        i=$((i + 1))
    done
    awk -v name="$name" -v bare="$(median "$dir/bare")" -v kept="$(median "$dir/kept")" 'BEGIN {
        printf "%-12s %14.1f %14.1f %8.2f%%\n", name, bare / 1000, kept / 1000, 100 * (kept / bare - 1) }'
done
