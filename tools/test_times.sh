#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_times.sh COUNT FILE.trs... - the times of tests, the COUNT slowest first: seconds elapsed, seconds of CPU,
# name. The last line is the sum of all.
set -u
count=$1
shift
awk '
    FNR == 1 { name = FILENAME; sub(/.*\//, "", name); sub(/\.trs$/, "", name) }
    /^:seconds: / { print $2, $3, name }
    ' "$@" /dev/null | sort -rn | awk -v count="$count" '
    NR == 1 { print " elapsed      CPU" }
    NR <= count { printf "%7.1fs %7.1fs  %s\n", $1, $2, $3 }
    { elapsed += $1; cpu += $2 }
    END { if (NR) printf "%7.1fs %7.1fs  %d tests in all\n", elapsed, cpu, NR }'
