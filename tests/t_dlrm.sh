#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The DLRM of the examples: its plans are proved, and with each of them 1, 2, 4 and 8 ranks, in one process and in
# several, have the losses of their serial run, bit for bit; the wrong plan is found out, and its losses differ.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/doc/examples/dlrm
dlrm=doc/examples/dlrm/dlrm

# losses FILE ARGUMENT...: the losses of a run.
losses()
{
    to=$1
    shift
    "$dlrm" --quiet --iterations 25 "$@" >"$to" 2>"$dir/err" || { cat "$dir/err"; return 1; }
}

for plan in sparse_dist fused; do
    check "$plan is proved" sh -c "'$SWSIM' verify --quiet '$plans/$plan.yaml' >'$dir/out' && grep -q proved '$dir/out'"
done
check "the wrong plan is not" prints 1 'race.*Lookup.*tables' "$SWSIM" verify --quiet --no-shorten "$plans/wrong.yaml"

for ranks in 1 2 4 8; do
    check "$ranks ranks run serially" losses "$dir/serial.$ranks" "$plans/sparse_dist.yaml" --ranks $ranks --serial
    for plan in sparse_dist fused; do
        check "$ranks ranks run $plan" losses "$dir/piped" "$plans/$plan.yaml" --ranks $ranks
        check "with the losses of the serial run" cmp "$dir/serial.$ranks" "$dir/piped"
    done
done

# Another number of ranks adds up in another order.
near()
{
    paste "$1" "$2" | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-4 * ($4 + 1e-3)) bad = 1 } END { exit bad || NR != 25 }'
}
for ranks in 2 4 8; do
    check "$ranks ranks have the losses of one but for rounding" near "$dir/serial.1" "$dir/serial.$ranks"
done
check "300 iterations run" losses "$dir/long" --iterations 300 "$plans/sparse_dist.yaml" --ranks 2
check "the model learns" awk 'NR <= 30 { first += $4 } NR > 270 { last += $4 } END { exit !(NR == 300 && last < .9 * first) }' "$dir/long"

# Processes that start by themselves, on a port that is free with luck.
processes()
{
    size=$1 port=$((20000 + $$ % 20000)) failed=0 pids=
    rank=1
    while [ $rank -lt "$size" ]; do
        losses "$dir/other.$rank" "$plans/sparse_dist.yaml" --ranks "$size" --rank $rank --address 127.0.0.1:$port &
        pids="$pids $!"
        rank=$((rank + 1))
    done
    losses "$dir/piped" "$plans/sparse_dist.yaml" --ranks "$size" --rank 0 --address 127.0.0.1:$port || failed=1
    for pid in $pids; do wait "$pid" || failed=1; done
    return $failed
}
for ranks in 2 4; do
    check "$ranks processes run" processes $ranks
    check "with the losses of the serial run in one" cmp "$dir/serial.$ranks" "$dir/piped"
done

# A sanitizer of races rightly complains of the wrong plan.
case ${INSTRUMENT_FLAGS-} in
*thread*) skip "the wrong plan has a race" ;;
*)
    check "the wrong plan runs" losses "$dir/wrong" "$plans/wrong.yaml" --ranks 2
    check "and does not have the losses of the serial run" sh -c "! cmp -s '$dir/serial.2' '$dir/wrong'"
    ;;
esac

printf '1\t5\t\t3\t%s\t1a2b\t\tff\n' "$(printf '2\t%.0s' 1 2 3 4 5 6 7 8 9)" >"$dir/clicks"
printf '0\t1\t2\t3\t%s\t77\tab\t01\n' "$(printf '4\t%.0s' 1 2 3 4 5 6 7 8 9)" >>"$dir/clicks"
check "lines as Criteo's are read" losses "$dir/file" "$plans/sparse_dist.yaml" --ranks 2 --data "$dir/clicks"
check "and trained on" awk 'NR == 1 { first = $4 } END { exit !($4 < first) }' "$dir/file"

# Profile, predict, run.
for how in "--serial" ""; do
    # shellcheck disable=SC2086
    check "a run is recorded $how" "$dlrm" "$plans/sparse_dist.yaml" --ranks 2 --iterations 30 --record "$dir/dlrm.db" $how
    # shellcheck disable=SC2086
    check "as the plan allows" sh -c "'$dlrm' '$plans/sparse_dist.yaml' --ranks 2 --iterations 30 --record '$dir/more.db' $how | grep -q 'as the plan allows'"
done
check "a prediction is made of its times" sh -c "'$SWSIM' predict --quiet --profile '$dir/dlrm.db' '$plans/sparse_dist.yaml' >'$dir/out'"
done_testing
