#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh - what tests run of the source: lines, and branches of which both ways are taken, of each room.
#
#     make coverage [COVERAGE_TESTS='tests/plan/t_parse ...'] [ROOM=plan]      in a build folder
#
# Compiles everything for gcov in coverage-build/, with the options of this build, and runs the tests there: the programs in C
# if none are named, "all" for the whole suite. With ROOM it names the files of the room, and the lines that nothing runs.
# A branch is a way that a condition may go: `if (a && b)` has four.
set -u
srcdir=$(cd "${srcdir:-..}" && pwd)
options=$(./config.status --config)
mkdir -p coverage-build && cd coverage-build || exit 1

[ -f Makefile ] || eval "\"$srcdir/configure\" -q $options --enable-coverage CFLAGS='-O0 -g'" >configure.log 2>&1 ||
    { tail -n 5 configure.log; exit 1; }
tests=${COVERAGE_TESTS:-$(make -s list-tests | grep -v '\.sh$')}
[ "$tests" != all ] || tests=$(make -s list-tests)
programs=$(make -s list-tests | grep -v '\.sh$')
case ${COVERAGE_TESTS:-all} in
*.sh* | all) ;;
*) programs=$COVERAGE_TESTS ;;
esac
echo "building for gcov in coverage-build/"
make -j"$(nproc)" all $programs >build.log 2>&1 || { tail -n 20 build.log; exit 1; }
find . -name '*.gcda' -delete
make -k check TESTS="$(echo $tests)" check_PROGRAMS="$(echo $programs)" >check.log 2>&1 || grep '^FAIL:\|^ERROR:' check.log | head

# FILE LINES_RUN LINES BRANCHES_TAKEN BRANCHES, of each file of a room; a header, compiled into many, as its best reader has it.
find base plan machine trace sim check improve api gpu cmd -name '*.gcno' -exec gcov -n -b -r -s "$srcdir" {} + 2>/dev/null |
    awk -v top="$srcdir/" '
        function put() {
            if (file == "") return
            if (!(file in lines) || run > best[file]) { best[file] = run; lines[file] = all; taken[file] = both; ways[file] = branches }
            file = ""
        }
        /^File / { put(); file = substr($0, 7, length($0) - 7); sub("^" top, "", file); sub("^([.][.]/)+", "", file); sub("^" substr(top, 2), "", file)
                   if (file ~ /^\// || file ~ /^tests/) file = ""; run = all = both = branches = 0 }
        /^Lines executed:/ { if (all) put() # the sum of all files
                             split($0, part, /[:% ]+/); all = part[5]; run = int(part[3] * all / 100 + .5) }
        /^Taken at least once:/ { split($0, part, /[:% ]+/); branches = part[7]; both = int(part[5] * branches / 100 + .5) }
        END { put(); for (file in lines) print file, best[file], lines[file], taken[file], ways[file] }' | sort >files.txt

show='{ printf "%-34s %6d of %6d lines %5.1f%%  %6d of %6d branches %5.1f%%\n", $1, $2, $3, $3 ? 100 * $2 / $3 : 0, $4, $5, $5 ? 100 * $4 / $5 : 0 }'
[ -z "${ROOM-}" ] || grep "^$ROOM/" files.txt | awk "$show"
awk '{ room = $1; sub("/.*", "", room); for (i = 2; i <= 5; i++) { sum[room, i] += $i; sum["all", i] += $i }; rooms[room] = rooms["all"] = 1 }
     END { for (room in rooms) print room, sum[room, 2], sum[room, 3], sum[room, 4], sum[room, 5] }' files.txt | sort | awk "$show"

[ -n "${ROOM-}" ] || exit 0
echo "lines that nothing runs:"
rm -f ./*.gcov
find "$ROOM" -name '*.gcno' -exec gcov -r -s "$srcdir" {} + >/dev/null 2>&1
grep -H '#####' ./*.gcov | awk -F: '{ name = $1; sub("^./", "", name); sub("[.]gcov$", "", name); line = $3 + 0; sub(/^[^:]*:[^:]*:[^:]*:/, ""); printf "%s:%d: %s\n", name, line, $0 }'
