#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# predict.sh - task executions a second of `swsim predict` beside two simulators and the floor, all on
# TorchRec's SparseDist (one rank, 8 tasks, 3 streams, device times vary): $ITERATIONS iterations,
# $ROUNDS rounds in which each takes its turn, medians of processor time. A program that is not installed is left out and named:
# Debian has libsimgrid-dev and libns3-dev.
#
# Environment: SWSIM, srcdir, CC, CXX, CFLAGS_BENCH and LIBS_BENCH (how to compile and link against the
# sources; in the build folder); ITERATIONS (default 100000), ROUNDS (5).
set -eu
: "${srcdir:=.}" "${SWSIM:=./swsim}" "${CC:=gcc}" "${CXX:=g++}"
: "${CFLAGS_BENCH:=-I$srcdir}" "${LIBS_BENCH:=}" "${ITERATIONS:=100000}" "${ROUNDS:=5}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# The peers let an iteration retire when its device work is done.
both=$dir/both.yaml
sed 's/^swplan: 1/&\nretire: device/' "$srcdir/plans/reference/sparse_dist.yaml" >"$both"
sed 's/, host_time: [0-9]*us//' "$both" >"$dir/device.yaml"

# ---- the peers ----------------------------------------------------------------------------------

compile()
{
    # shellcheck disable=SC2086
    $CC -std=c11 -O2 $CFLAGS_BENCH -c "$srcdir/tests/bench/pipeline.c" -o "$dir/pipeline.o"
    # shellcheck disable=SC2086
    $CC -std=c11 -O2 $CFLAGS_BENCH "$srcdir/tests/bench/floor.c" "$dir/pipeline.o" \
        $LIBS_BENCH -o "$dir/floor"
}

# peer NAME PACKAGE LIBRARIES...: compile it, or say that it is left out.
peer()
{
    name=$1 package=$2
    shift 2
    # shellcheck disable=SC2086
    if $CXX -std=c++17 -O2 -I"$srcdir/tests/bench" "$srcdir/tests/bench/$name.cpp" "$dir/pipeline.o" \
        "$@" $LIBS_BENCH -o "$dir/$name" \
        2>"$dir/$name.log"; then
        peers="$peers $name"
    else
        echo "left out: $name ($package is not installed, or does not compile: $(grep -m1 error "$dir/$name.log"))"
    fi
}

# ---- runs: each prints "makespan_ns tasks seconds" -----------------------------------------------

field()
{
    sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$dir/json"
}

# swsim PLAN REPLICATIONS OPTION...
swsim()
{
    plan=$1 replications=$2
    shift 2
    "$SWSIM" predict --json --quiet --ranks 1 --threads 1 -n "$ITERATIONS" --jitter '*=normal(cv=0.3)' \
        --replications "$replications" "$@" "$plan" >"$dir/json"
    echo "$(field makespan_ns) $(field tasks_simulated) $(field cpu_seconds)"
}

run()
{
    case $1 in
        clock) swsim "$dir/device.yaml" 1 --driver clock ;;
        two-phase) swsim "$both" 1 --driver clock ;;
        data-flow) swsim "$dir/device.yaml" 1 --driver dataflow ;;
        replications) swsim "$dir/device.yaml" 16 --driver clock ;;
        *) "$dir/$1" "$dir/device.yaml" "$ITERATIONS" ;;
    esac
}

median()
{
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

peers=
compile
peer simgrid libsimgrid-dev -lsimgrid
peer ns3 libns3-dev -lns3-core
all="clock two-phase data-flow replications floor$peers"
round=0
while [ "$round" -lt "$ROUNDS" ]; do
    for name in $all; do
        run "$name" | tee "$dir/$name.last" | awk '{ print $2 / $3 }' >>"$dir/$name.rates"
    done
    round=$((round + 1))
done

# ---- the table ----------------------------------------------------------------------------------

rate_of()
{
    if [ -f "$dir/$1.rates" ]; then median <"$dir/$1.rates"; else echo 0; fi
}

floor=$(rate_of floor) simgrid=$(rate_of simgrid)
printf '%-14s %14s %12s %12s %16s\n' what tasks/s 'x simgrid' 'of floor' 'makespan ns'
for name in $all; do
    rate_of "$name" | awk -v name="$name" -v floor="$floor" -v simgrid="$simgrid" \
        -v makespan="$(cut -d' ' -f1 "$dir/$name.last")" '{
        printf "%-14s %14.4g %12s %12.3f %16.0f\n", name, $1,
            (simgrid > 0 ? sprintf("%.1f", $1 / simgrid) : "-"), $1 / floor, makespan }'
done

# The same pipeline, or the comparison means nothing. SimGrid's clock is a floating point number.
status=0
want=$(cut -d' ' -f1 "$dir/clock.last")
for name in floor$peers; do
    got=$(cut -d' ' -f1 "$dir/$name.last")
    awk -v a="$want" -v b="$got" -v name="$name" 'BEGIN {
        off = a > b ? a - b : b - a
        if (off > (name == "simgrid" ? 1e-7 * a : 0)) {
            print name ": another makespan, " b " instead of " a; exit 1 } }' || status=1
done
exit $status
