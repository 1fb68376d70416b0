#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dlrm.sh - doc/examples/dlrm, serial, predicted from its serial run, and pipelined, in turns. `make bench-dlrm` runs it.
#
#   SAMPLES=LIST     an iteration's, for each a program is compiled (default "64 256 1024")
#   RANKS=LIST       in one process (default "1 2")
#   PLANS=LIST       default "sparse_dist fused prefetch semi_sync"
#   ITERATIONS=N     of a run (default 150); the first eighth warms up
#   ROUNDS=N         a round runs every row once; figures are medians of the rounds (default 5)
#   FIRST=COMMAND    in front of each run, such as "chrt -r 1"
#   DLRM_FLAGS, DLRM_LIBS: how to compile and link against the library; set by make
#
# A ratio is the median of the ratios of the rounds. Needs sqlite3.
set -eu
: "${srcdir:=.}" "${SWSIM:=./swsim}" "${CC:=cc}" "${DLRM_FLAGS:=}" "${DLRM_LIBS:=-lswpipe}"
: "${SAMPLES:=64 256 1024}" "${RANKS:=1 2}" "${PLANS:=sparse_dist fused prefetch semi_sync}"
: "${ITERATIONS:=150}" "${ROUNDS:=5}" "${FIRST:=}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
example=$srcdir/doc/examples/dlrm
command -v sqlite3 >/dev/null || { echo "dlrm.sh: found no sqlite3, which reads the stores" >&2; exit 1; }

# compile SAMPLES
compile()
{
    # shellcheck disable=SC2086
    $CC -std=c11 $DLRM_FLAGS "-DDLRM_BATCH=$1" "$example"/*.c $DLRM_LIBS -o "$dir/dlrm$1"
}

# mean RUN: nanoseconds an iteration of a run in the store, behind its first eighth.
mean()
{
    sqlite3 "$dir/runs.db" "
        WITH ends AS (SELECT number, max(retire_ns) AS ns FROM iteration WHERE run = $1 GROUP BY number)
        SELECT (max(ns) - min(ns)) / (count(*) - 1.0) FROM ends WHERE number >= $ITERATIONS / 8"
}

# run PROGRAM PLAN RANKS OPTION...
run()
{
    program=$1 plan=$2 ranks=$3
    shift 3
    # shellcheck disable=SC2086
    $FIRST "$program" "$plan" --ranks "$ranks" --iterations "$ITERATIONS" --quiet --record "$dir/runs.db" "$@" \
        >"$dir/out" 2>&1 || { cat "$dir/out" >&2; exit 1; }
}

# row SAMPLES RANKS PLAN: "serial predicted measured", in nanoseconds, of one round.
row()
{
    rm -f "$dir/runs.db"
    run "$dir/dlrm$1" "$example/$3.yaml" "$2" --serial
    run "$dir/dlrm$1" "$example/$3.yaml" "$2"
    "$SWSIM" compare --json --quiet "$dir/runs.db" >"$dir/json"
    predicted=$(sed -n 's/.*"predicted_ns":\([0-9.e+]*\),"error".*/\1/p' "$dir/json")
    echo "$(mean 1) $predicted $(mean 2)" >>"$dir/$1.$2.$3"
}

# for_rows COMMAND: with the arguments of each row.
for_rows()
{
    for samples in $SAMPLES; do
        for ranks in $RANKS; do
            for plan in $PLANS; do "$1" "$samples" "$ranks" "$plan"; done
        done
    done
}

median='function median(v, n,   i, k, t) {
    for (i = 2; i <= n; i++) for (k = i; k > 1 && v[k] < v[k - 1]; k--) { t = v[k]; v[k] = v[k - 1]; v[k - 1] = t }
    return v[int((n + 1) / 2)]
}'

# print SAMPLES RANKS PLAN
print()
{
    awk -v what="$1 $2 $3" "$median"'
        NF == 3 {
            n++
            serial[n] = $1; predicted[n] = $2; measured[n] = $3
            wanted[n] = $1 / $2; gained[n] = $1 / $3; off[n] = $3 / $2
        }
        END {
            split(what, row, " ")
            if (n == 0) exit 1
            m = median(off, n)
            printf "%7d %5d  %-12s %8.3f %9.3f %8.3f %9.2f %9.2f   %.2f (%.2f to %.2f)\n", row[1], row[2], row[3],
                median(serial, n) / 1e6, median(predicted, n) / 1e6, median(measured, n) / 1e6,
                median(wanted, n), median(gained, n), m, off[1], off[n]
        }' "$dir/$1.$2.$3"
}

for samples in $SAMPLES; do compile "$samples"; done
echo "$ROUNDS rounds of $ITERATIONS iterations, $(getconf _NPROCESSORS_ONLN) cores, load $(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo unknown)"
round=0
while [ "$round" -lt "$ROUNDS" ]; do
    for_rows row
    round=$((round + 1))
done
echo '                            serial predicted measured      gain      gain   measured'
echo 'samples ranks  plan             ms        ms       ms predicted  measured   of predicted'
for_rows print
