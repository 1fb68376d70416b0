#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sharing at the front door: what a plan may say, what predict shows of it, and who else reckons with it.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/plan.yaml" <<'PLAN'
swplan: 1
name: shared
schedule:
  A: {stage: 0, stream: a, time: 2ms, shares: {sm: 0.75}}
  B: {stage: 0, stream: b, time: 2ms, shares: {sm: 0.75}}
retire: device
PLAN
cat >"$dir/one_stream.yaml" <<'PLAN'
swplan: 1
name: one_stream
schedule:
  A: {stage: 0, time: 2ms, shares: {sm: 0.75}}
  B: {stage: 0, time: 2ms, shares: {sm: 0.75}}
PLAN

# with CHANGE COMMAND...: the command, with the plan so changed (sed) as its standard input
with()
{
    change=$1
    shift
    sed "$change" "$dir/plan.yaml" | "$@"
}

# same TEXT COMMAND...: all the command prints
same()
{
    want=$1
    shift
    got=$("$@" 2>&1)
    [ "$got" = "$want" ] && return
    printf 'expected:\n%s\nfound:\n%s\n' "$want" "$got"
    false
}

# refuses CHANGE MESSAGE: a plan so changed is bad, exit status 3, and that is said
refuses()
{
    complains 3 "$2" with "$1" "$SWSIM" predict -
}

share='expected a share from 0 to 1 with at most six decimals, such as 0.6'
check "more than the whole" refuses '4s/0.75/1.5/' ":4:52: error: found \"1.5\", $share"
check "less than nothing" refuses '4s/0.75/-0.5/' "found \"-0.5\", $share"
check "too fine" refuses '4s/0.75/0.1234567/' "found \"0.1234567\", $share"
check "a percentage" refuses '4s/0.75/60%/' "found \"60%\", $share"
check "a text" refuses '4s/0.75/"0.5"/' 'found the text "0.5", .*, without quotes'
check "no number" refuses '4s/0.75/[]/' "found an empty list, $share"
check "no mapping" refuses '4s/{sm: 0.75}/0.75/' 'found "0.75", expected shares of the device, such as {sm: 0.6, link: 0.5}'
check "an unknown resource" refuses '4s/sm:/lnk:/' 'unknown key "lnk" in "shares", expected sm, link or core'
check "an unknown kind of work" refuses '2s/$/\nmachine: {shares: {copies: {sm: 1}}}/' \
    'unknown key "copies" in "shares", expected kernel, copy, collective or p2p'
check "too many engines" refuses '2s/$/\nmachine: {copy_engines: 65}/' 'found "65", expected a whole number from 0 to 64'

check "what a plan says is printed" prints 0 '^machine: {copy_engines: 2, shares: {p2p: {link: 0.5}}}$' \
    with '2s/$/\nmachine: {shares: {p2p: {link: 0.50}}, copy_engines: 2}/' "$SWSIM" export -
"$SWSIM" export "$dir/plan.yaml" >"$dir/once.yaml"
check "and printed again is the same" same "$(cat "$dir/once.yaml")" "$SWSIM" export "$dir/once.yaml"

check "predict: the iteration" prints 0 'iteration   3.00 ms' "$SWSIM" predict --driver clock "$dir/plan.yaml"
check "a column of its own" prints 0 '^  a  *[0-9.]*%   33.3%  ####' "$SWSIM" predict --driver clock "$dir/plan.yaml"
check "who was slowed by what" prints 0 '^  A  *2.00 ms  *3.00 ms  1.00 ms by the SMs$' \
    "$SWSIM" predict --driver clock "$dir/plan.yaml"
check "no exact steady state" prints 0 'exact  *not known: streams share the SMs' "$SWSIM" predict --driver clock "$dir/plan.yaml"
check "JSON: in nanoseconds" \
    prints 0 '"slowed":{"A":{"runs":10,"alone_ns":20000000,"sm":10000000,"link":0,"copy_engine":0,"core":0},"B":{' \
    "$SWSIM" predict --json --driver clock -n 10 "$dir/plan.yaml"
check "JSON: why there is no exact figure" prints 0 '"steady_exact_ns":null,.*"steady_exact_why":"streams share the SMs' \
    "$SWSIM" predict --json --driver clock "$dir/plan.yaml"
check "where all fits nothing is slowed" prints 0 '"slowed":null' \
    with 's/0.75/0.5/' "$SWSIM" predict --json --driver clock -
check "and the iteration is that without shares" prints 0 'exact  *2.00 ms' \
    with 's/0.75/0.5/' "$SWSIM" predict --driver clock -
check "--what-if" prints 0 '^  A=0.5x  *2.50 ms  *-500 us' "$SWSIM" predict --driver clock --what-if A=0.5x "$dir/plan.yaml"
check "--sweep" prints 0 '^  *2  *3.00 ms' "$SWSIM" predict --driver dataflow --sweep max_depth=1..2 "$dir/plan.yaml"
check "a run is stored" exits 0 "$SWSIM" predict --driver clock -n 5 --db "$dir/run.db" "$dir/plan.yaml"
check "and drawn" exits 0 "$SWSIM" render "$dir/run.db" -o "$dir/run.svg"
check "with what slowed whom" grep -q 'A 0, slowed 1.00 ms by the SMs; rank 0 stream a; 0 ns to 3 ms' "$dir/run.svg"

check "a stream more is worth what sharing leaves of it" prints 0 'iteration, about  *4.00 ms  *3.00 ms' \
    "$SWSIM" tune --driver clock "$dir/one_stream.yaml"
# ---- cores ---------------------------------------------------------------------------------------

cat >"$dir/cores.yaml" <<'PLAN'
swplan: 1
name: cores
ranks: 2
schedule:
  A: {stage: 0, stream: a, time: 2ms}
  B: {stage: 0, stream: b, time: 2ms}
retire: device
PLAN
cores="$SWSIM predict --driver clock"
whole='expected a whole number from 1 to 65536'
for count in 0 -1 65537 99999999999999999999 2.5 two; do
    check "--cores=$count" complains 2 "\-\-cores: found '$count', $whole" $cores --cores=$count "$dir/cores.yaml"
done
for count in 0 -1 65537 99999999999999999999 2.5 two '[]'; do
    sed "2s/\$/\nmachine: {cores: $count}/" "$dir/cores.yaml" >"$dir/bad.yaml"
    check "cores: $count" complains 3 ":3:18: error: found .*, $whole" $cores "$dir/bad.yaml"
done
check "a core more than the whole" refuses '4s/sm: 0.75/core: 1.5/' "found \"1.5\", $share"

check "as many cores as are wanted: nothing is slowed" prints 0 'exact  *2.00 ms' $cores "$dir/cores.yaml"
check "a core for each stream: nothing is slowed" prints 0 '"cores":4,.*"slowed":null' \
    $cores --json --cores=4 "$dir/cores.yaml"
figures='s/"seconds":[^,]*,"cpu_seconds":[^,]*/S/; s/"ranks":.*"slowed"/"slowed"/' # the ranks, which are equal, are told once or each
$cores --json "$dir/cores.yaml" | sed "$figures; s/\"cores\":null/C/" >"$dir/any.json"
$cores --json --cores=4 "$dir/cores.yaml" | sed "$figures; s/\"cores\":4/C/" >"$dir/four.json"
check "and the same figures" cmp "$dir/any.json" "$dir/four.json"
check "four streams of two ranks on three cores" prints 0 'iteration   2.67 ms' $cores --cores=3 "$dir/cores.yaml"
check "... by the cores" prints 0 '^  A  *2.00 ms  *2.67 ms  667 us by the cores$' $cores --cores=3 "$dir/cores.yaml"
check "... which a line tells" prints 0 '^  cores       3 carry the work of all ranks$' $cores --cores=3 "$dir/cores.yaml"
check "... and one core" prints 0 '^  cores       1 carries the work of all ranks$' $cores --cores=1 "$dir/cores.yaml"
check "... why there is no exact figure" prints 0 'not known: streams share the cores' $cores --cores=3 "$dir/cores.yaml"
check "... in JSON" prints 0 '"cores":1,.*"A":{"runs":20,"alone_ns":40000000,"sm":0,"link":0,"copy_engine":0,"core":120000000}' \
    $cores --json -n 10 --cores=1 "$dir/cores.yaml"
sed '2s/$/\nmachine: {cores: 3}/' "$dir/cores.yaml" >"$dir/three.yaml"
check "the plan may say so" prints 0 'iteration   2.67 ms' $cores "$dir/three.yaml"
check "--cores is instead of that" prints 0 'iteration   8.00 ms' $cores --cores=1 "$dir/three.yaml"
check "without an effect on a verdict" exits 0 "$SWSIM" verify "$dir/three.yaml"
check "or on a run, which a note says" complains 0 'note: machine.cores is for predictions' "$SWRUN" -n 2 "$dir/three.yaml"
check "it is printed" prints 0 '^machine: {cores: 3}$' "$SWSIM" export "$dir/three.yaml"
"$SWSIM" predict --driver clock --sweep cores=1..4 "$dir/three.yaml" >"$dir/sweep"
for row in '1     8.00' '2     4.00' '3     2.67' '4     2.00'; do
    check "--sweep: $row" grep -q "^  *$row ms" "$dir/sweep"
done
check "--sweep in JSON" prints 0 '"swept":{"cores":2}.*"cores":2,' $cores --json --sweep cores=1..2 "$dir/cores.yaml"
check "--sweep from nothing" complains 2 "found '0', $whole" $cores --sweep cores=0..2 "$dir/cores.yaml"
check "--sweep to too many" complains 2 "found '65537', expected a whole number from 1 to 65536" \
    $cores --sweep cores=1..65537 "$dir/cores.yaml"
check "--what-if" prints 0 '^  A=0.5x  *3.00 ms  *-1.00 ms' $cores --cores=2 --what-if A=0.5x "$dir/cores.yaml"
check "a run is stored" exits 0 $cores -n 5 --cores=2 --db "$dir/cores.db" "$dir/cores.yaml"
check "and drawn" exits 0 "$SWSIM" render "$dir/cores.db" -o "$dir/cores.svg"
check "with what slowed whom" grep -q 'A 0, slowed 2.00 ms by the cores; rank 0 stream a' "$dir/cores.svg"
printf 'swplan: 1\nname: one_stream\nschedule:\n  A: {stage: 0, time: 2ms}\n  B: {stage: 0, time: 2ms}\n' >"$dir/tuned.yaml"
sed 's/time: 2ms/host_time: 1ms, thread_group: @/; s/A:\(.*\)@/A:\1p/; s/B:\(.*\)@/B:\1q/' "$dir/cores.yaml" >"$dir/cpu.yaml"
check "CPU parts share them as well" prints 0 'iteration   2.00 ms' $cores --cores=2 "$dir/cpu.yaml"
check "... in rows of their own" prints 0 '^  CPU part of A  *1.00 ms  *2.00 ms  1.00 ms by the cores$' $cores --cores=2 "$dir/cpu.yaml"
check "... and a core for each is enough" prints 0 '"cores":8,.*"slowed":null' $cores --json --cores=8 "$dir/cpu.yaml"
check "tune: with a core a stream more is worth nothing" prints 0 'iteration, about  *4.00 ms  *4.00 ms' \
    "$SWSIM" tune --driver clock --cores=1 "$dir/tuned.yaml"
check "with two it is, and they are as good as any" prints 0 'iteration  *4.00 ms  *2.00 ms' \
    "$SWSIM" tune --driver clock --cores=2 "$dir/tuned.yaml"
check "the written plan has them" prints 0 '^machine: {cores: 2}$' "$SWSIM" tune --driver clock --cores=2 -o - "$dir/tuned.yaml"
check "tune --cores=0" complains 2 "found '0', $whole" "$SWSIM" tune --cores=0 "$dir/tuned.yaml"
printf 'swplan: 1\nname: passes\nstages: {F: 1ms, B: 1ms}\ngenerate: {schedule: gpipe, ranks: 2, microbatches: 4}\n' >"$dir/passes.yaml"
check "rank programs share them too" prints 0 '"slowed":{.*"core":[1-9]' "$SWSIM" predict --json --cores=1 "$dir/passes.yaml"

check "copy engines are nothing to warn of" exits 0 with '2s/$/\nmachine: {copy_engines: 1}/' "$SWSIM" verify -
check "and no warning is given" test ! -s "$dir/err"
done_testing
