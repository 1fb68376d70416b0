#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every bench-* of the Makefile runs to its end and prints its rows, with inputs as small as they can be. No time is looked at.
: "${srcdir:=.}" "${MAKE:=make}" "${INSTRUMENT_FLAGS:=}"
. "$srcdir/tests/tap.sh"

test -f Makefile || skip_all "there is no Makefile here, which has the benchmarks"
test -z "$INSTRUMENT_FLAGS" || skip_all "benchmarks are for builds without $INSTRUMENT_FLAGS"

# bench NAME PATTERN [VARIABLE=VALUE]...: `make bench-NAME` prints a line that matches
bench()
{
    name=$1 pattern=$2
    shift 2
    check "bench-$name" bench_prints "$name" "$pattern" "$@"
}

# The jobs of the `make` around this test are not those of this one.
bench_prints()
{
    name=$1 pattern=$2
    shift 2
    exits 0 env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS "$@" "$MAKE" "bench-$name" && grep -Eq -e "$pattern" "$dir/out" && return
    cat "$dir/out" "$dir/err"
    return 1
}

# with COMMAND NAME PATTERN...: bench-NAME, where COMMAND is installed
with()
{
    command=$1
    shift
    if command -v "$command" >/dev/null; then
        bench "$@"
    else
        skip "bench-$1: $command is not installed"
    fi
}

plan=$(cd "$srcdir" && pwd)/plans/reference/sparse_dist.yaml
bench collective 'all_to_all' ROUNDS=1
bench compare 'median error' ITERATIONS=12 PLANS="$plan"
bench dlrm ' 64 +1  sparse_dist +[0-9.]+ +[0-9.]+ +[0-9.]+ ' SAMPLES=64 RANKS=1 PLANS=sparse_dist ITERATIONS=20 ROUNDS=1
bench graph 'us' ARGS='20 1'
bench hand 'streams .* us an iteration' ARGS='--rounds=1 --ns=0 --iterations=20 futex streams'
printf "{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1, \"dur\": 2}]}" | gzip >"$dir/trace.json.gz"
bench json "MB/s" ARGS="$dir/trace.json.gz"
bench large '1F1B, .*predict .*passes' ARGS=2x4
bench load 'tasks' ARGS=tasks
bench overhead 'tasks' ARGS=--iterations=100 ITERATIONS=4 ROUNDS=1
bench plans 'two-phase ' PLANS="$plan" ITERATIONS=50 ROUNDS=1
with spin spin '^base +1 ' SWSIM_BENCH_ROWS=base SWSIM_BENCH_RUNS=1
done_testing
