#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh - the lines of the parsers that their tests and the fuzz corpora run, and those that none of them runs.
#
# Run in a build folder (`make parser-coverage`) with its libraries built; CC, CPPFLAGS_ALL and LIBS_ALL are the
# build's. Only plan/ is compiled again, for gcov, in coverage-build/. The output names files, covered and all lines,
# and at the end the lines that nothing runs.
set -u
srcdir=$(cd "${srcdir:-..}" && pwd)
build=$PWD
work=$build/coverage-build
tests='t_parse t_no_memory t_csv t_units t_print t_programs t_fuzz'
parsers='parse fields symbols keys_plan keys_machine keys_pipeline keys_programs keys_costs keys_parallel keys_threads
    parse_graphs parse_repeat parse_yaml csv actions
    units dist diag'

rm -rf "$work"
mkdir -p "$work" && cd "$work" || exit 1

echo "compiling base/ and plan/ for gcov"
for source in "$srcdir"/base/*.c "$srcdir"/plan/*.c "$srcdir"/plan/*/*.c; do
    # shellcheck disable=SC2086
    $CC $CPPFLAGS_ALL -std=c11 -O0 -g --coverage -DSWSIM_CHECKS=1 -c "$source" || exit 1
done
ar cr libplan.a ./*.o || exit 1

wrapping()
{
    [ "$1" != t_no_memory ] || echo "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
}

for test in $tests; do
    # shellcheck disable=SC2086
    $CC --coverage $(wrapping "$test") -o "$test" "$build/tests/$test.o" "$build"/tests/libtests.a "$build"/tests/fuzz/libfuzz.a \
        $(cd "$build" && ls lib*.a | grep -v -e libplan -e libswpipe | sed "s|^|$build/|") \
        -Wl,--start-group "$build"/libgpu.a "$build"/libnet.a "$build"/libsim.a "$build"/libtrace.a \
        "$build"/libmachine.a "$work"/libplan.a -Wl,--end-group $LIBS_ALL || exit 1
    echo "running $test"
    srcdir=$srcdir ./"$test" >"$test.log" 2>&1 || { grep '^not ok' "$test.log"; tail -n 3 "$test.log"; }
done

echo
for name in $parsers; do
    gcov -o . "$name.gcno" >"$name.gcov.log" 2>&1
    awk -v name="$name.c" -F: '
        $1 ~ /#####|=====/ { missed++; all++; next }
        $1 !~ /-/ { all++ }
        END { printf "%-26s %5d of %5d  %5.1f%%\n", name, all - missed, all, all ? 100 * (all - missed) / all : 0 }' \
        "$name.c.gcov"
done | awk '{ print; covered += $2; all += $4 } END { printf "%-26s %5d of %5d  %5.1f%%\n", "all", covered, all, 100 * covered / all }'
echo
echo "lines that nothing runs:"
for name in $parsers; do
    awk -v name="$name.c" -F: '$1 ~ /#####/ { line = $2; sub(/^[^:]*:[^:]*:/, ""); printf "%s:%d: %s\n", name, line, $0 }' \
        "$name.c.gcov"
done
