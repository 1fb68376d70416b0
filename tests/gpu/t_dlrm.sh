#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The DLRM of the examples: its plans are proved, and with each of them 1, 2, 4 and 8 ranks, in one process and in
# several, have the losses of a loop without a pipeline, bit for bit; the wrong plan is found out, and its losses differ.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/doc/examples/dlrm
dlrm=doc/examples/dlrm/dlrm

# losses FILE PLAN|plain OPTION...: the losses of a run.
losses()
{
    to=$1 what=$2
    shift 2
    "$dlrm" "$what" --quiet --iterations 25 "$@" >"$to" 2>"$dir/err" || { cat "$dir/err"; return 1; }
}
differ() { ! cmp -s "$1" "$2"; }
# The loop that a plan stands for.
loop_of() { case $1 in semi_sync) echo "$dir/stale" ;; *) echo "$dir/plain" ;; esac; }

all="sparse_dist fused prefetch semi_sync"
for plan in $all; do
    check "$plan is proved" sh -c "'$SWSIM' verify --quiet '$plans/$plan.yaml' >'$dir/out' && grep -q proved '$dir/out'"
done
check "the wrong plan is not" prints 1 'race.*tables.*Lookup' "$SWSIM" verify --quiet --no-shorten "$plans/wrong.yaml"
sed '/^staleness/d' "$plans/semi_sync.yaml" >"$dir/unsaid.yaml"
check "nor semi_sync, where it does not say that reads are stale" prints 1 'serial.*Lookup.*tables' "$SWSIM" verify --quiet "$dir/unsaid.yaml"
sed '/\[Lookup, Update\]/d; s/  Lookup: {stage: 3,/  Lookup: {stage: 2, stream: lookup,/' "$plans/prefetch.yaml" >"$dir/early.yaml"
check "nor a prefetch whose lookup passes an update" prints 1 'race.*tables' "$SWSIM" verify --quiet --no-fix "$dir/early.yaml"

for ranks in 1 2 4 8; do
    check "$ranks ranks in a plain loop" losses "$dir/plain.$ranks" plain --ranks $ranks
    check "and with rows that miss an update" losses "$dir/stale.$ranks" plain --stale --ranks $ranks
    check "which is something else" differ "$dir/plain.$ranks" "$dir/stale.$ranks"
    for plan in $all; do
        check "$ranks ranks run $plan" losses "$dir/piped" "$plans/$plan.yaml" --ranks $ranks
        check "with the losses of their loop" cmp "$(loop_of $plan).$ranks" "$dir/piped"
        test $plan = semi_sync || check "$ranks ranks run $plan under data-flow" losses "$dir/fired" "$plans/$plan.yaml" --ranks $ranks --dataflow
        test $plan = semi_sync || check "with the losses of their loop" cmp "$dir/plain.$ranks" "$dir/fired"
        check "$ranks ranks run $plan serially" losses "$dir/serial" "$plans/$plan.yaml" --ranks $ranks --serial
        check "with those of the plain one" cmp "$dir/plain.$ranks" "$dir/serial"
    done
done

# Rows come and go.
check "100 iterations in a loop" losses "$dir/plain.100" plain --ranks 2 --iterations 100
check "100 iterations run prefetch" losses "$dir/prefetch.100" "$plans/prefetch.yaml" --ranks 2 --iterations 100
check "with the same losses" cmp "$dir/plain.100" "$dir/prefetch.100"

# Another number of ranks, and another sharding, add up in another order.
near()
{
    paste "$1" "$2" | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-4 * ($4 + 1e-3)) bad = 1 } END { exit bad || NR != 25 }'
}
for ranks in 2 4 8; do
    check "$ranks ranks have the losses of one but for rounding" near "$dir/plain.1" "$dir/plain.$ranks"
done
for shard in table row; do
    check "4 ranks own tables by $shard" losses "$dir/shard" plain --ranks 4 --shard $shard
    check "with the losses of one but for rounding" near "$dir/plain.1" "$dir/shard"
    check "and run prefetch" losses "$dir/piped" "$plans/prefetch.yaml" --ranks 4 --shard $shard
    check "with those of the loop" cmp "$dir/shard" "$dir/piped"
done
check "300 iterations run" losses "$dir/long" "$plans/sparse_dist.yaml" --ranks 2 --iterations 300
check "the model learns" awk 'NR <= 30 { first += $4 } NR > 270 { last += $4 } END { exit !(NR == 300 && last < .9 * first) }' "$dir/long"

if [ -x doc/examples/dlrm/dlrm_blas ]; then
    dlrm=doc/examples/dlrm/dlrm_blas
    check "BLAS in a loop" losses "$dir/blas" plain --ranks 2
    check "with the losses of plain C but for rounding" near "$dir/plain.2" "$dir/blas"
    check "BLAS in a pipeline" losses "$dir/piped" "$plans/fused.yaml" --ranks 2
    check "with the losses of its loop" cmp "$dir/blas" "$dir/piped"
    dlrm=doc/examples/dlrm/dlrm
else
    skip "no BLAS was asked for (configure --with-blas)"
fi

# processes RANKS PLAN: that start by themselves, on a port that is free with luck.
processes()
{
    size=$1 plan=$2 port=$((20000 + $$ % 20000)) failed=0 pids=
    rank=1
    while [ $rank -lt "$size" ]; do
        losses "$dir/other.$rank" "$plan" --ranks "$size" --rank $rank --address 127.0.0.1:$port &
        pids="$pids $!"
        rank=$((rank + 1))
    done
    losses "$dir/piped" "$plan" --ranks "$size" --rank 0 --address 127.0.0.1:$port || failed=1
    for pid in $pids; do wait "$pid" || failed=1; done
    return $failed
}
for ranks in 2 4 8; do
    for plan in sparse_dist prefetch semi_sync; do
        check "$ranks processes run $plan" processes $ranks "$plans/$plan.yaml"
        check "with the losses of the loop in one" cmp "$(loop_of $plan).$ranks" "$dir/piped"
    done
done

# The same under MPI, which starts the processes.
# mpi RANKS PLAN
mpi()
{
    mpirun -n "$1" "$dir/dlrm_mpi" "$2" --quiet --iterations 25 >"$dir/piped" 2>"$dir/err" || { cat "$dir/err"; return 1; }
}
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    sources=$(cd "$plans" && ls data.c dlrm.c model.c plain.c tables.c tasks.c device_host.c | sed "s|^|'$plans'/|" | tr '\n' ' ')
    libs="libswpipe.a $(sed -n 's/^YAML_LIBS = //p; s/^SQLITE_LIBS = //p; s/^CUDA_LIBS = //p; s/^LIBS = //p' Makefile | tr '\n' ' ')"
    check "the example is built with MPI" sh -c "mpicc -std=gnu11 -O2 ${INSTRUMENT_FLAGS-} -DDLRM_MPI -I'$srcdir/gpu/lib' -o '$dir/dlrm_mpi' $sources $libs -lm >'$dir/log' 2>&1 || { cat '$dir/log'; exit 1; }"
    for ranks in 2 4 8; do
        check "$ranks ranks of MPI run prefetch" mpi $ranks "$plans/prefetch.yaml"
        check "with the losses of the loop in one process" cmp "$dir/plain.$ranks" "$dir/piped"
    done
else
    skip "there is no MPI"
fi

# On one communicator the lengths of a batch come when the gradients of another are through, though their stream asks for
# them before. The end of a function's work may be known too late: once.
sed 's/comm: ids/comm: dp/' "$plans/sparse_dist.yaml" >"$dir/one_comm.yaml"
alone()
{
    "$dlrm" "$dir/one_comm.yaml" --quiet --ranks 2 --record "$dir/runs.db" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; return 1; }
    within=$(sqlite3 "$dir/runs.db" "
        SELECT count(*) FROM span AS x JOIN agent AS a ON a.id = x.agent, span AS y JOIN agent AS b ON b.id = y.agent
        WHERE x.kind = 'device' AND x.task = 'InputDistStart' AND y.kind = 'device' AND y.task = 'GradDist'
        AND a.rank = b.rank AND x.start_ns < y.start_ns AND x.end_ns > y.end_ns")
    echo "# $within exchanges of gradients within one of lengths"
    test "$within" -le 1
}
if command -v sqlite3 >/dev/null; then
    check "the lengths are stored behind the gradients that they waited for" alone
else
    skip "sqlite3 is not installed"
fi

# A sanitizer of races rightly complains of the wrong plan.
case ${INSTRUMENT_FLAGS-} in
*thread*) skip "the wrong plan has a race" ;;
*)
    check "the wrong plan runs" losses "$dir/wrong" "$plans/wrong.yaml" --ranks 2
    check "and does not have the losses of the loop" differ "$dir/plain.2" "$dir/wrong"
    ;;
esac

# ---- files ----

# line LABEL NUMBER CATEGORY: a line whose numbers and categories are all the same.
line()
{
    printf '%s' "$1"
    i=0
    while [ $i -lt 13 ]; do printf '\t%s' "$2"; i=$((i + 1)); done
    while [ $i -lt 39 ]; do printf '\t%s' "$3"; i=$((i + 1)); done
    printf '\n'
}
{ line 1 '' 68fd1e64; line 0 -2 ''; line 1 1382 e5ba7672; printf '%s' "$(line 0 0 0)"; } >"$dir/clicks"
check "lines as Criteo's are read" losses "$dir/file" plain --data "$dir/clicks"
check "and trained on" awk 'NR == 1 { first = $4 } END { exit !($4 < first) }' "$dir/file"
check "by a pipeline" losses "$dir/piped" "$plans/fused.yaml" --data "$dir/clicks"
check "with the same losses" cmp "$dir/file" "$dir/piped"

# bad PATTERN: the file in $dir/clicks is refused, with this.
bad() { prints 1 "^dlrm: .*$1" sh -c "'$dlrm' plain --data '$dir/clicks' 2>&1"; }
{ line 1 3 a; line 2 3 a; } >"$dir/clicks"
check "a label that is none" bad "clicks:2: column 1: found '2', expected 0 or 1"
line 1 3.5 a >"$dir/clicks"
check "a number that is not whole" bad "clicks:1: column 2: found '3.5', expected a whole number"
line 1 99999999999999999999 a >"$dir/clicks"
check "a number that is too large" bad "clicks:1: column 2: found '9*', expected a whole number"
line 1 3 xyz >"$dir/clicks"
check "a category that is none" bad "clicks:1: column 15: found 'xyz', expected a category"
line 1 3 123456789 >"$dir/clicks"
check "a category that is too long" bad "clicks:1: column 15: found '123456789', expected a category"
line 1 3 a | cut -f1-39 >"$dir/clicks"
check "a column less" bad 'clicks:1: found 39 columns, expected 40'
line 1 3 a | sed 's/$/\ta/' >"$dir/clicks"
check "a column more" bad 'clicks:1: found 41 columns, expected 40'
{ line 1 3 a; printf '1\t\000\n'; } >"$dir/clicks"
check "a zero byte" bad 'clicks:2: found a zero byte'
: >"$dir/clicks"
check "an empty file" bad 'clicks: there are no lines'
rm "$dir/clicks"
check "no file" bad 'clicks: No such file'
mkdir "$dir/clicks"
check "a folder" bad 'clicks: Is a directory'

# Options: refused with their reason before anything is opened.
refused() { pattern=$1; shift; prints 2 "^dlrm: $pattern" sh -c '"$@" 2>&1' sh "$dlrm" "$@"; }
check "ranks that do not divide the samples" refused '--ranks: the samples of an iteration cannot be divided' plain --ranks 3
check "too many ranks" refused "--ranks: found '16', expected a number from 1 to 8" plain --ranks 16
check "ranks that are no number" refused "--ranks: found '2x', expected a number" plain --ranks 2x
check "no iterations" refused "--iterations: found '0', expected a number" plain --iterations 0
check "a number that is none" refused "--iterations: found '', expected a number" plain --iterations ''
check "a rank without an address" refused '--rank needs --address' "$plans/fused.yaml" --ranks 2 --rank 0
check "an address without a rank" refused '--address needs --rank' "$plans/fused.yaml" --ranks 2 --address 127.0.0.1:29500
check "a rank that is too large" refused '--address needs --rank, a number below' "$plans/fused.yaml" --ranks 2 --rank 2 --address 127.0.0.1:29500
check "a plan with rows that miss an update" refused '--stale is for plain' "$plans/fused.yaml" --stale
check "a loop that is recorded" refused '.*are for a plan' plain --record "$dir/none.db"
check "an option in the place of a plan" prints 2 '^usage: dlrm PLAN' sh -c '"$0" --ranks 2 2>&1' "$dlrm"

# Profile, predict, run.
for plan in $all; do
    check "a serial run of $plan is recorded" sh -c "'$dlrm' '$plans/$plan.yaml' --ranks 2 --iterations 30 --serial --record '$dir/$plan.db' >'$dir/out'"
    check "and a pipelined one, as the plan allows" sh -c "'$dlrm' '$plans/$plan.yaml' --ranks 2 --iterations 30 --record '$dir/$plan.db' | grep -q 'as the plan allows'"
    check "a prediction is made of its times" sh -c "'$SWSIM' predict --quiet --profile '$dir/$plan.db:1' '$plans/$plan.yaml' >'$dir/out'"
done

# The gain on devices that sleep, in times so long that those of the machine do not matter: that of the prediction, within
# 5%, once in three tries.
# gains PLAN DRIVER
median() { sed 's/.*"iteration_ns":{"mean":[0-9.]*,"p50":\([0-9]*\).*/\1/' "$1"; }
gains()
{
    awk 'match($0, /time: [0-9]+us/) { $0 = substr($0, 1, RSTART + 5) 400 * substr($0, RSTART + 6, RLENGTH - 8) substr($0, RSTART + RLENGTH - 2) } 1' \
        "$plans/$1.yaml" >"$dir/slow.yaml"
    "$SWSIM" predict --json -q --driver="$2" -n 20 "$dir/slow.yaml" >"$dir/predicted" || return
    wanted=$(sed 's/.*"serial_ns":\([0-9]*\).*/\1/' "$dir/predicted")
    for try in 1 2 3; do
        "$SWRUN" --json -q --no-check --driver="$2" -n 12 "$dir/slow.yaml" >"$dir/piped" &&
            "$SWRUN" --json -q --no-check --serial -n 8 "$dir/slow.yaml" >"$dir/serial" || return
        echo "$wanted $(median "$dir/predicted") $(median "$dir/serial") $(median "$dir/piped")" |
            awk -v try=$try '{ r = $3 / $4 / ($1 / $2); print "# try " try ": measured " r " of the gain" } END { exit !(r > .95 && r < 1.05) }' && return
    done
    false
}
for plan in sparse_dist prefetch; do
    for driver in clock dataflow; do
        check "the gain of $plan under $driver is that of the prediction" gains $plan $driver
    done
done
done_testing
