#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory, as Valgrind sees it: each verb at the front door, on plans that hold, plans that do not, and plans that
# cannot be read, touches no memory that is not its own, reads nothing uninitialised and loses nothing.
# Pictures are drawn as DOT here: the libraries behind SVG lose some of their own memory.
. "${srcdir:-.}/tests/tap.sh"

obstacle()
{
    command -v valgrind >/dev/null || { echo "valgrind is not installed" && return; }
    test -z "${INSTRUMENT_FLAGS-}" || echo "built with $INSTRUMENT_FLAGS"
}
why=$(obstacle)
test -z "$why" || skip_all "$why"

# clean CODE PROGRAM ARGUMENT...: the exit code is as without Valgrind, and Valgrind found nothing.
clean()
{
    want=$1
    shift
    valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
        --log-file="$dir/valgrind" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat "$dir/valgrind" "$dir/err"
    false
}
plans=$srcdir/plans

check "verify: proved by structure" clean 0 "$SWSIM" verify "$plans/torchrec/sparse_dist.yaml"
check "verify: a schedule of ranks" clean 0 "$SWSIM" verify "$plans/examples/one_f_one_b.yaml"
check "verify: searched, a story and its repair" clean 1 "$SWSIM" verify --driver=clock "$plans/deadlocks/scenario1_broken.yaml"
check "verify: a race, as JSON" clean 1 "$SWSIM" verify --json "$plans/bugs/torchrec_lookup_without_wait_broken.yaml"
check "verify: a witness in a store" clean 1 "$SWSIM" verify --witness="$dir/w.db" "$plans/bugs/nccl_send_send_broken.yaml"
check "render: the witness" clean 0 "$SWSIM" render "$dir/w.db" -o "$dir/w.dot"
{
    printf '%s\n' 'swplan: 1' 'machine: {memory: 1MiB}' 'buffers:'
    for letter in a b c d e f g h; do
        printf '  %s: {bytes: 4KiB}\n' "${letter}0" "${letter}1" "${letter}2" "${letter}3"
    done
    echo 'threads:'
    echo '  r0.t: [{launch: one, time: 1us, stream: s, writes: [a0, h3]}, {sync: stream, stream: s}]'
} >"$dir/bounded.yaml"
check "verify: a bound of memory, and no operation that allocates" clean 0 "$SWSIM" verify "$dir/bounded.yaml"
check "predict: into a store" clean 0 "$SWSIM" predict -n 20 --db="$dir/p.db" "$plans/examples/two_ranks.yaml"
check "predict: a pipeline of TorchRec" clean 0 "$SWSIM" predict -n 20 "$plans/torchrec/base.yaml"
check "render: the run" clean 0 "$SWSIM" render "$dir/p.db" -o "$dir/p.dot"
check "runs" clean 0 "$SWSIM" runs "$dir/p.db"
check "compare: refused where there is nothing measured" clean 3 "$SWSIM" compare "$dir/p.db"
check "schedule" clean 0 "$SWSIM" schedule "$plans/examples/hello.yaml"
check "stages" clean 0 "$SWSIM" stages "$plans/examples/hello.yaml"
check "lower" clean 0 "$SWSIM" lower "$plans/examples/hello.yaml"
check "generate" clean 0 "$SWSIM" generate -p 4 -m 8 --comms 1f1b
check "tune" clean 0 "$SWSIM" tune --budget=3 "$plans/examples/hello.yaml"
check "swrun: two ranks, a store" clean 0 "$SWRUN" -n 5 --db="$dir/r.db" "$plans/examples/two_ranks.yaml"
check "swrun: a replayed witness" clean 0 "$SWRUN" --replay="$dir/w.db"

# Broken text: each cut of a plan after some lines, which leaves things half built.
printf '%s\n' 'swplan: 1' 'ranks: 2' 'comms: {dp: [0, 0, 7]}' 'programs: {0: [0F0, 0F0], 0: [0F0], -0: [x]}' \
    'threads: {r0.t: [{send: a}, {nothing: 1}], r0.t: [' >"$dir/broken.yaml"
for lines in 2 3 4 5; do
    head -n "$lines" "$dir/broken.yaml" >"$dir/cut.yaml"
    check "a broken plan of $lines lines" clean 3 "$SWSIM" verify "$dir/cut.yaml"
done
printf '0F0,0F0,1B\n,,\nUNSHARD,9W9,-1F0\n' >"$dir/broken.csv"
check "a broken schedule" clean 3 "$SWSIM" verify "$dir/broken.csv"
echo "no store" >"$dir/no.db"
check "a file that is no store" clean 3 "$SWSIM" runs "$dir/no.db"
done_testing
