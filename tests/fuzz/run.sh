#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - every fuzz target in turn with libFuzzer: executions, coverage and findings of each.
#
#     SECONDS_EACH=60   for each target
#     TARGETS='a b'     only these
#     FUZZ_CC=clang     a clang with libFuzzer; without one nothing is fuzzed, which is no failure
#
# Run in a build folder (`make fuzz SECONDS=60`); srcdir is the source. The instrumented build is in fuzz-build/, and so
# is the corpus, which grows from run to run: fuzz-build/corpus/NAME. The input of a target that failed is
# fuzz-build/findings/NAME-*. Exit status: 0 without a finding.
set -u
seconds=${SECONDS_EACH:-60}
cc=${FUZZ_CC:-clang}
srcdir=$(cd "${srcdir:-..}" && pwd)
work=$PWD/fuzz-build
log=$work/log
make=${MAKE:-make}

mkdir -p "$work/findings" || exit 1

has_libfuzzer()
{
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n; }' \
        >"$work/try.c"
    "$cc" -fsanitize=fuzzer,address,undefined -o "$work/try" "$work/try.c" >"$log" 2>&1 && rm "$work/try"
}

build()
{
    cd "$work" || return 1
    [ -f Makefile ] || "$srcdir/configure" CC="$cc" CFLAGS="-O2 -g" --enable-fuzzer >>"$log" 2>&1 || return 1
    $make -s -j"${JOBS:-2}" fuzz-programs >>"$log" 2>&1
}

# The inputs that a target starts from besides those it has found itself.
seeds()
{
    echo "$srcdir/tests/fuzz/corpus/$1"
    case $1 in plan | whole) echo "$srcdir/plans" ;; esac
}

figure()
{
    sed -n "s/^stat::$1: *//p" "$work/$2.log" | tail -n 1
}

fuzz()
{
    mkdir -p "$work/corpus/$1"
    # shellcheck disable=SC2046
    ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=4:${ASAN_OPTIONS-} \
    LSAN_OPTIONS=suppressions=$srcdir/tests/lsan.supp:print_suppressions=0 \
        nice -n 15 "tests/fuzz/run_$1" "$work/corpus/$1" $(seeds "$1") -max_total_time="$seconds" -entropic=0 \
        -artifact_prefix="$work/findings/$1-" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 >"$work/$1.log" 2>&1
    status=$?
    points=$(sed -n 's/.*DONE *cov: \([0-9]*\).*/\1/p; s/.*pulse *cov: \([0-9]*\).*/\1/p' "$work/$1.log" | tail -n 1)
    all=$(sed -n 's/.*inline 8-bit counters): \([0-9]*\).*/\1/p' "$work/$1.log" | head -n 1)
    found=$(find "$work/findings" -name "$1-*" | wc -l)
    printf '%-8s %12s %8s %8s of %-8s %8s\n' "$1" "$(figure number_of_executed_units "$1")" \
        "$(figure average_exec_per_sec "$1")" "${points:-?}" "${all:-?}" "$found"
    [ "$status" -eq 0 ] && [ "$found" -eq 0 ]
}

if ! has_libfuzzer; then
    echo "no libFuzzer: '$cc -fsanitize=fuzzer,address,undefined' does not link; nothing was fuzzed"
    exit 0
fi
if ! build; then
    tail -n 20 "$log"
    echo "the instrumented build failed: $log"
    exit 1
fi
failed=0
: "${TARGETS:=$(sed -n 's/^ *X(\([a-z]*\), [0-9].*/\1/p' "$srcdir/tests/fuzz/targets.h")}"
printf '%-8s %12s %8s %8s    %-8s %8s\n' target executions a-second points all findings
for target in $TARGETS; do
    fuzz "$target" || failed=1
done
exit $failed
