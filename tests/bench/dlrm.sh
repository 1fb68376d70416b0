#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dlrm.sh - doc/examples/dlrm, serial, predicted from a recorded serial run, and pipelined, in turns. `make bench-dlrm` runs it.
#
#   SAMPLES=LIST     an iteration's, for each a program is compiled (default "64 256 1024")
#   RANKS=LIST       in one process (default "1 2")
#   PLANS=LIST       default "sparse_dist fused prefetch semi_sync"
#   ITERATIONS=N     of a run (default 400)
#   ROUNDS=N         a round runs every row once; figures are medians of the rounds (default 5)
#   FIRST=COMMAND    in front of each run, such as "chrt -r 1"
#   DLRM_FLAGS, DLRM_LIBS: how to compile and link against the library; set by make
#
# The runs that are compared store nothing. A ratio is the median of the ratios of the rounds.
set -eu
: "${srcdir:=.}" "${SWSIM:=./swsim}" "${CC:=cc}" "${DLRM_FLAGS:=}" "${DLRM_LIBS:=-lswpipe}"
: "${SAMPLES:=64 256 1024}" "${RANKS:=1 2}" "${PLANS:=sparse_dist fused prefetch semi_sync}"
: "${ITERATIONS:=400}" "${ROUNDS:=5}" "${FIRST:=}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
example=$srcdir/doc/examples/dlrm

# compile SAMPLES
compile()
{
    # shellcheck disable=SC2086
    $CC -std=c11 $DLRM_FLAGS "-DDLRM_BATCH=$1" "$example"/*.c $DLRM_LIBS -o "$dir/dlrm$1"
}

# run PROGRAM PLAN RANKS OPTION...: milliseconds an iteration, on standard output.
run()
{
    program=$1 plan=$2 ranks=$3
    shift 3
    # shellcheck disable=SC2086
    $FIRST "$program" "$plan" --ranks "$ranks" --iterations "$ITERATIONS" "$@" >"$dir/out" 2>"$dir/err" ||
        { cat "$dir/err" >&2; exit 1; }
    sed -n 's/^.*: \([0-9.]*\) ms an iteration$/\1/p' "$dir/out"
}

# predicted PLAN RANKS: milliseconds an iteration, by the times of the recorded run.
predicted()
{
    "$SWSIM" predict --json --profile "$dir/runs.db" --ranks "$2" "$1" 2>"$dir/err" >"$dir/json" ||
        { cat "$dir/err" >&2; exit 1; }
    sed -n 's/.*"iteration_ns":{"mean":\([0-9.e+]*\),.*/\1/p' "$dir/json" | awk '{ print $1 / 1e6 }'
}

# row SAMPLES RANKS PLAN: "serial predicted measured" of one round.
row()
{
    plan=$example/$3.yaml
    rm -f "$dir/runs.db"
    run "$dir/dlrm$1" "$plan" "$2" --serial --record "$dir/runs.db" >"$dir/recorded"
    serial=$(run "$dir/dlrm$1" "$plan" "$2" --serial)
    wanted=$(predicted "$plan" "$2")
    measured=$(run "$dir/dlrm$1" "$plan" "$2")
    echo "$serial $wanted $measured" >>"$dir/$1.$2.$3"
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
                median(serial, n), median(predicted, n), median(measured, n),
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
