#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples of libswpipe run, and leave what they say.
. "${srcdir:-.}/tests/tap.sh"

says() # says FILE TEXT
{
    grep -qF -- "$2" "$1" || { cat "$1"; return 1; }
}

doc/examples/double_buffer >"$dir/out" 2>&1
check "double_buffer runs" test $? -eq 0
check "and adds up" says "$dir/out" "the sum of the squares is 385"

for driver in clock dataflow; do
    doc/examples/train_step "$srcdir/plans/reference/base.yaml" $driver >"$dir/out" 2>&1
    check "train_step runs with $driver" test $? -eq 0
    check "its function was called" says "$dir/out" "Forward was called"
    check "tasks have exposed times" says "$dir/out" "% baseline"
done
SWSIM=${SWSIM:-./swsim}
if [ -x "$SWSIM" ]; then
    for driver in clock dataflow; do
        doc/examples/train_step "$srcdir/plans/reference/base.yaml" $driver "$dir/trace.db" >"$dir/out" 2>&1
        check "train_step is recorded with $driver" test $? -eq 0
        check "its runs were legal" sh -c "test \$(grep -c 'as the plan allows' '$dir/out') -eq 2"
    done
    check "the store has them" sh -c "'$SWSIM' runs --json '$dir/trace.db' >'$dir/out' &&
        test \$(grep -c '\"state\":\"finished\"' '$dir/out') -eq 4"
    check "they can be drawn" sh -c "'$SWSIM' render '$dir/trace.db' -o '$dir/x.svg' && grep -q Forward '$dir/x.svg'"
    check "predicted from" sh -c "'$SWSIM' predict --quiet --profile '$dir/trace.db' '$srcdir/plans/reference/base.yaml' >'$dir/out'"
    check "and compared" sh -c "'$SWSIM' compare '$dir/trace.db' >'$dir/out' && grep -q 'of 2 runs' '$dir/out'"
else
    skip "no swsim here to look into the store"
fi
doc/examples/train_step /does/not/exist.yaml >"$dir/out" 2>&1
check "train_step without a plan fails" test $? -eq 1
check "and says why" says "$dir/out" "/does/not/exist.yaml"
doc/examples/split_forward >"$dir/out" 2>&1
check "split_forward runs" test $? -eq 0
check "all its plans are proved" sh -c "test \$(grep -c ' proved ' '$dir/out') -eq 3"
check "with one loss" says "$dir/out" "three forwards, the same losses"
doc/examples/phases >"$dir/out" 2>&1
check "phases runs" test $? -eq 0
check "both its plans are proved" sh -c "test \$(grep -c ' proved ' '$dir/out') -eq 2"
check "to the last batch" says "$dir/out" "16 batches, 6 of them in step; compiled: yes; the sum is 120"
doc/examples/staged >"$dir/out" 2>&1
check "staged runs" test $? -eq 0
check "and hands every batch out" says "$dir/out" "trained on 7 batches, the sum is 42"
doc/examples/policy >"$dir/out" 2>&1
check "policy runs" test $? -eq 0
check "its plan is proved for any policy" says "$dir/out" "proved for any policy"
check "to the last batch, with loads held back" says "$dir/out" "12 iterations, loads were held back: yes"
# Two ranks of a process, and a process for each: the losses of all four runs are one rank's or the other's.
doc/examples/exchange >"$dir/out" 2>&1
check "exchange runs" test $? -eq 0
check "its plan is proved" sh -c "test \$(grep -c ' proved ' '$dir/out') -eq 1"
losses() # losses RANK FILE...: of each run, once
{
    rank=$1
    shift
    sed -n "s/.*, rank $rank: //p" "$@" | sort -u
}
joined() # a port that is taken by another program is left for the next one
{
    for port in 17788 17789 17790 17791; do
        doc/examples/exchange 1 127.0.0.1:$port >"$dir/one" 2>&1 &
        doc/examples/exchange 0 127.0.0.1:$port >"$dir/zero" 2>&1
        zero=$?
        wait $! && test $zero -eq 0 && return
        grep -q 'in use' "$dir/zero" || break
    done
    cat "$dir/zero" "$dir/one"
    return 1
}
check "the ranks of two processes run" joined
for rank in 0 1; do
    check "rank $rank has the same losses in all" test "$(losses $rank "$dir/out" "$dir/zero" "$dir/one" | grep -c '^loss 1')" -eq 1
done
check "and each rank its own" test "$(losses 0 "$dir/out")" != "$(losses 1 "$dir/out")"
done_testing
