#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# t_watch.sh - swsim watch: a run that goes on, one that is over, one that was killed, and stores without a run.
. "${srcdir:-.}/tests/tap.sh"

hello=$srcdir/plans/examples/hello.yaml
line='^at [0-9.]* m\{0,1\}s: [0-9]* of [0-9]* iterations'

# has_rows DB: a run in it has work that is written
has_rows()
{
    "$SWSIM" runs --json "$1" 2>"$dir/null" | grep -q '"spans":[1-9]'
}
# starts DB OPTION...: a run in the background that writes there; its process goes to `pid`
starts()
{
    db=$1
    shift
    "$SWRUN" -q --db="$db" "$@" "$hello" >"$dir/run.out" 2>&1 &
    pid=$!
    wait_until 100 has_rows "$db"
}

# ---- a run that goes on ---------------------------------------------------------------------------

starts "$dir/on.db" -n 900
check "a run that goes on: watched to its end" exits 0 "$SWSIM" watch "$dir/on.db"
ends_within 20 $pid
check "the run ends well beside it" test "$code" -eq 0
check "a line each second" grep -q "$line" "$dir/out"
check "with the streams" grep -q '; copy_in [0-9]*%, main [0-9]*%, copy_out [0-9]*%$' "$dir/out"
check "at its end the summary" grep -q '^hello, run 1, measured, finished after ' "$dir/out"
check "of all iterations" grep -q '^900 of 900 iterations, [0-9.]*/s; the last 900 took ' "$dir/out"
check "and of each stream" grep -q '^  main  *[0-9.]*%  #*\.*  Compute [0-9]*%$' "$dir/out"
check "the store is one plain file" test ! -e "$dir/on.db-wal"

starts "$dir/json.db" -n 600 --ranks=2
check "--json" exits 0 "$SWSIM" watch --json "$dir/json.db"
ends_within 20 $pid
check "the run ends well" test "$code" -eq 0
check "an object of the open run" grep -q '^{"schema":"swsim.look/1","run":1,"plan":"hello","kind":"measured","state":"open",.*}$' "$dir/out"
left_fits()
{
    python3 -c 'import json, sys
looks = [json.loads(line) for line in open(sys.argv[1])]
known = [o for o in looks if o["left_ns"] is not None]
sys.exit(not known or any(abs(o["left_ns"] - (o["iterations_wanted"] - o["iterations"]) / o["iterations_per_s"] * 1e9) > 2
                          for o in known))' "$1"
}
if command -v python3 >/dev/null; then
    check "the time left is what is wanted, at the rate" left_fits "$dir/out"
else
    skip "no python3 to read JSON"
fi
check "and of the finished one" grep -q '"state":"finished",.*"iterations":600,"iterations_wanted":600,' "$dir/out"
check "nothing else" test "$(grep -vc '^{"schema":"swsim.look/1","run":1,.*}$' "$dir/out")" -eq 0
check "streams of both ranks" grep -q '"rank":0,"stream":"main","busy":0\.[0-9]*,.*"rank":1,"stream":"main"' "$dir/out"

starts "$dir/int.db" -n 100000
"$SWSIM" watch --timeout=60s "$dir/int.db" >"$dir/watch.out" 2>&1 &
watching=$!
wait_until 50 grep -qs "$line" "$dir/watch.out"
kill -TERM $watching
ends_within 5 $watching
check "a signal ends the looking, undecided" test "$code" -eq 4
check "and not the run" runs $pid
rm "$dir/watch.out"
"$SWSIM" watch "$dir/int.db" >"$dir/watch.out" 2>&1 &
watching=$!
wait_until 50 grep -qs "$line" "$dir/watch.out"
kill -TERM $pid
ends_within 10 $watching
check "a run that is interrupted ends it, with 1" test "$code" -eq 1
check "and a summary" grep -q '^hello, run 1, measured, interrupted after ' "$dir/watch.out"
wait $pid

# A program has no iterations.
"$SWRUN" -q --db="$dir/program.db" "$srcdir/plans/bugs/nccl_send_send_fixed.yaml" >"$dir/null" 2>&1
check "a program of ranks" prints 0 '^  comm, rank 1  *[0-9.]*%' "$SWSIM" watch "$dir/program.db"
check "without a line of iterations" test "$(grep -c iterations "$dir/out")" -eq 0

# ---- on a terminal --------------------------------------------------------------------------------

on_terminal()
{
    TERM=xterm script -qc "stty cols 60 rows 24; '$SWSIM' watch '$1'" /dev/null </dev/null >"$dir/screen"
}
if script -qc true /dev/null </dev/null >"$dir/null" 2>&1; then
    starts "$dir/tty.db" -n 600
    check "on a terminal" on_terminal "$dir/tty.db"
    ends_within 20 $pid
    check "each look is written over the last one" grep -q "$(printf '\033')\[5A" "$dir/screen"
    check "no line is wider" test "$(tr -d '\r' <"$dir/screen" | sed "s/$(printf '\033')\[[0-9]*[A-Z]//g" | awk 'length > 59' | wc -l)" -eq 0
    # Hidden cursors, other screens and switched modes need somebody who sets them back.
    check "nothing is to be set back" test "$(grep -c "$(printf '\033')\[?" "$dir/screen")" -eq 0
else
    skip "no script(1) here"
fi

# ---- runs that are over ---------------------------------------------------------------------------

check "a finished run: its summary" prints 0 '^900 of 900 iterations' "$SWSIM" watch "$dir/on.db"
check "and that only" test "$(grep -c '^at ' "$dir/out")" -eq 0
"$SWSIM" predict -q --driver=clock --iterations=50 --db="$dir/on.db" "$hello" >"$dir/null" 2>&1
check "a predicted run: the newest is meant" prints 0 '^hello, run 2, simulated, finished after' "$SWSIM" watch "$dir/on.db"
check "another by its number" prints 0 '^hello, run 1, measured, finished after' "$SWSIM" watch --run=1 "$dir/on.db"
"$SWRUN" -q -n 20 --ranks=6 --db="$dir/ranks.db" "$hello" >"$dir/null" 2>&1
check "many ranks share rows" prints 0 '^  main, 6 ranks  *[0-9.]*%  [#.]*  [0-9]*% (rank [0-5]) to [0-9]*%$' "$SWSIM" watch "$dir/ranks.db"

starts "$dir/killed.db" -n 100000
kill -9 $pid
wait $pid 2>"$dir/null"
check "a killed run: given up" complains 1 'run 1 in .*killed.db: nothing was written for [0-9]* s: it was killed, or hangs' \
    "$SWSIM" watch --timeout=2s "$dir/killed.db"
sleep 2
check "at once when that is long ago" exits 1 timeout 3 "$SWSIM" watch --timeout=2s "$dir/killed.db"
check "with --json the reason is an object" prints 1 '^{"schema":"swsim.errors/1","errors":\[{.*nothing was written' \
    "$SWSIM" watch --json --timeout=2s "$dir/killed.db"

# ---- no run ---------------------------------------------------------------------------------------

check "no store" complains 2 'cannot open trace store .*none.db' "$SWSIM" watch "$dir/none.db"
: >"$dir/empty.db"
check "an empty file" complains 3 'is empty, not a swsim trace store' "$SWSIM" watch "$dir/empty.db"
check "another file" complains 3 'not a swsim trace store' "$SWSIM" watch "$hello"
"$SWSIM" verify -q --witness="$dir/witness.db" "$srcdir/plans/bugs/nccl_send_send_broken.yaml" >"$dir/null" 2>&1
check "a witness never ran" complains 3 'is a witness, which never ran' "$SWSIM" watch "$dir/witness.db"
check "no such run" complains 3 'has no run 7' "$SWSIM" watch --run=7 "$dir/on.db"
if command -v sqlite3 >"$dir/null"; then
    sqlite3 "$dir/ranks.db" 'PRAGMA foreign_keys = ON; DELETE FROM run'
    check "a store without a run" complains 3 'holds no run' "$SWSIM" watch "$dir/ranks.db"
else
    skip "no sqlite3 here"
fi

done_testing
