#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim compare DB:RUN`: runs held against runs and predictions, and what got slower and why.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/traces.sh"

# trace STREAM EXCHANGE LATE: two steps; `compute` on stream 7 waits for `exchange` on another stream, which takes
# EXCHANGE us; the launch of `update` is LATE us later than it could be: the
# thread is in `load`.
trace()
{
    echo '{"schemaVersion": 1, "traceEvents": [{"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}}'
    at=1000
    for step in 1 2; do
        id=$((step * 10)) end=$((at + 12 + $2)) update=$((at + 12 + $2 + 304 + $3))
        echo ",{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#$step\",\"pid\":7,\"tid\":1,\"ts\":$at,\"dur\":$((update + 106 - at)),\"args\":{}}"
        call cudaLaunchKernel 1 $((at + 2)) 5 $((id + 1))
        work kernel exchange $1 $((at + 12)) $2 $((id + 1))
        call cudaStreamWaitEvent 1 $((at + 8)) 1 $((id + 2))
        call cudaLaunchKernel 1 $((at + 10)) 5 $((id + 3))
        work kernel compute 7 $((end + 2)) 300 $((id + 3))
        [ $3 = 0 ] || echo ",{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"load\",\"pid\":7,\"tid\":1,\"ts\":$((update - 2 - $3)),\"dur\":$3,\"args\":{}}"
        call cudaLaunchKernel 1 $((update - 2)) 2 $((id + 4))
        work kernel update 7 $((update + 4)) 100 $((id + 4))
        at=$((update + 106))
    done
    echo ']}'
}
trace 20 200 0 >"$dir/before.json"
trace 24 350 50 >"$dir/after.json"
trace 20 200 0 | sed 's/compute/a/; s/update/b/; s/exchange/c/' >"$dir/unrelated.json"

two_tasks >"$dir/plan.yaml"
sed 's/800us/1100us/' "$dir/plan.yaml" >"$dir/slow.yaml"

compare="$SWSIM compare"
db=$dir/runs.db
# sums FILE: the changes of the main stream and what is left are the whole difference, which is not nothing.
sums()
{
    python3 - "$1" <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
rows = d["streams"][0]["rows"]
assert abs(d["change_ns"] - (d["second"]["step_ns"] - d["first"]["step_ns"])) < 1
assert abs(sum(r["change_ns"] for r in rows) + d["left_ns"] - d["change_ns"]) < 1, d
assert abs(d["left_ns"]) < 1, d["left_ns"]
sizes = [abs(r["change_ns"]) for r in rows]
assert sizes == sorted(sizes, reverse=True)
for s in d["streams"]:
    for side in "first", "second":
        if s[side]:
            whole = sum(r[side + "_ns"] for r in s["rows"])
            assert abs(whole - d[side]["step_ns"]) < 1, (s[side], whole)
PYTHON
}
adds_up()
{
    $compare --json "$@" >"$dir/json" || return
    if command -v python3 >/dev/null; then sums "$dir/json"; fi
}

# ---- two imports ---------------------------------------------------------------------------------

for name in before after unrelated; do
    check "import of $name" exits 0 "$SWSIM" import --db "$db" -o "$dir/$name.plan" "$dir/$name.json"
done
check "steps" prints 0 '^a step takes 622 us in the first, 822 us in the second (+32.2%)$' $compare "$db:1" "$db:2"
check "a stream under another name" prints 0 'stream s20 / s24, busy$' $compare "$db:1" "$db:2"
check "a task" prints 0 '200 us  *350 us  *+150 us  *exchange$' $compare "$db:1" "$db:2"
check "a cause" prints 0 'us  *+150 us  *idle: exchange on s20' $compare "$db:1" "$db:2"
check "what got slower" prints 0 '^a step of the second takes 200 us longer. Stream s7' $compare --diff "$db:1" "$db:2"
check "why, the greatest part first" prints 0 \
    '^ *+150 us *75%  it waits 150 us longer for exchange on s20 (an event, by the order of calls) .*; exchange itself takes 150 us longer$' \
    $compare --diff "$db:1" "$db:2"
check "then the host, and where it was" prints 0 \
    '^ *+50.0 us *25%  it waits 50.0 us longer for its launch by the host, which is in load (50.0 us, was 0 ns)$' \
    $compare --diff "$db:1" "$db:2"
check "nothing is left" prints 0 'in all: the whole difference$' $compare --diff "$db:1" "$db:2"
check "beside it" prints 0 's20 / s24: exchange takes 150 us longer' $compare --diff "$db:1" "$db:2"
check "the other way round" prints 0 'takes 200 us less' $compare --diff "$db:2" "$db:1"
check "a step of it is drawn" exits 0 "$SWSIM" render --run 2 --from 2 --to 2 -o "$dir/run.svg" "$db"
check "... with the place of its host" grep -q 'waits for its launch by the host, which is in load' "$dir/run.svg"
check "... and alone" sh -c "grep -q 'iterations 2 to 2' '$dir/run.svg' && ! grep -q 'compute 1;' '$dir/run.svg'"
check "a run and itself" prints 0 'about as long' $compare --diff "$db:1" "$db:1"
check "it adds up" adds_up "$db:1" "$db:2"
check "in JSON: what the task waited for changed itself" \
    grep -q '"waits_for":"exchange",[^{}]*"waited_for_change_ns":150000[,}]' "$dir/json"
check "a store alone is its latest run" prints 0 '^second  run 3 of' $compare --limit-error=10 "$db:3" "$db"
check "an import and the prediction of its plan" prints 0 '^second  prediction of before' $compare "$db:1"
check "... which is right" exits 0 $compare --limit-error 1% "$db:1"
check "an import and the prediction of another plan" prints 0 '+300 us  *exchange' $compare "$db:1" "$dir/after.plan"
check "... adds up" adds_up "$db:1" "$dir/after.plan"
check "a difference above the limit" complains 1 'the runs differ by 32.2%, expected at most 5.0%' \
    $compare --limit-error 5% "$db:1" "$db:2"

# ---- runs and predictions ------------------------------------------------------------------------

for plan in plan slow; do
    check "a pipelined run of $plan" exits 0 "$SWRUN" --quiet -n 12 --driver clock --db "$dir/own.db" "$dir/$plan.yaml"
done
for plan in plan slow; do
    check "a prediction of $plan" exits 0 "$SWSIM" predict -n 12 --driver clock --db "$dir/own.db" "$dir/$plan.yaml"
done
check "two runs" prints 0 'Work takes [0-9.]* [mun]*s \(longer\|less\)' $compare --diff "$dir/own.db:1" "$dir/own.db:2"
check "... add up" adds_up "$dir/own.db:1" "$dir/own.db:2"
check "a run and a stored prediction" prints 0 '^second  run 3 of .*two_tasks, simulated, 11 steps' $compare "$dir/own.db:1" "$dir/own.db:3"
check "... add up" adds_up "$dir/own.db:1" "$dir/own.db:3"
check "two stored predictions" prints 0 '^ *+300 us *100%  Work takes 300 us longer (1.10 ms, was 800 us)$' \
    $compare --diff "$dir/own.db:3" "$dir/own.db:4"
check "... add up" adds_up "$dir/own.db:3" "$dir/own.db:4"
check "a stored prediction and that of another plan" prints 0 '^ *+300 us *100%  Work' $compare --diff "$dir/own.db:3" "$dir/slow.yaml"
check "a run and its own plan" prints 0 '^second  prediction of two_tasks, 11 steps' $compare "$dir/own.db:1"

sed "s/time: 800us/&, jitter: 'gamma(cv=0.3)'/" "$dir/plan.yaml" >"$dir/varies.yaml"
check "the mean of several predictions" prints 0 '^second  prediction of two_tasks, 11 steps, mean of 4 replications$' \
    $compare --replications=4 "$dir/own.db:1" "$dir/varies.yaml"
check "... adds up" adds_up --replications=4 "$dir/own.db:1" "$dir/varies.yaml"
check "... where nothing varies of one" prints 0 '^second  prediction of two_tasks, 11 steps$' \
    $compare --replications=4 "$dir/own.db:1" "$dir/plan.yaml"

# ---- what is wrong -------------------------------------------------------------------------------

check "no such run" complains 3 'has no run 9' $compare "$db:1" "$db:9"
check "unrelated runs" complains 3 'for only 0% of their work: they are of unrelated plans' $compare "$db:1" "$db:3"
check "an unrelated plan" complains 3 'unrelated plans' $compare "$db:1" "$dir/plan.yaml"
check "--run and a run" complains 2 'two runs are named DB:RUN each' $compare --run 1 "$db:1"
check "a trace, too" prints 0 'second  .*before.json, measured' $compare "$db:1" "$dir/before.json"
check "a plan is no store" complains 3 'plan.yaml' $compare --diff "$dir/plan.yaml" "$db:1"
check "no file" complains 2 'cannot open' $compare "$db:1" "$dir/none.yaml"
if command -v python3 >/dev/null; then
    cp "$db" "$dir/old.db"
    python3 -c "import sqlite3,sys
sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read() + 'drop table ledger; pragma user_version = 2')" \
        "$dir/old.db" "$srcdir/tests/older_store.sql"
    check "an older store" complains 0 'older schema, without ledgers' $compare --diff "$dir/old.db:1" "$db:2"
    check "... times of tasks are known, causes not" prints 0 'for which the runs. records have no cause' \
        $compare --diff "$dir/old.db:1" "$db:2"
    check "... adds up" adds_up "$dir/old.db:1" "$db:2"
else
    skip "python3 makes older stores, and is not here"
fi

# Passes: numbers are left out of too many names; streams without work belong together by their names.
cat >"$dir/passes.yaml" <<'END'
swplan: 1
name: passes
times: {F: 1ms, B: 2ms}
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}
END
check "runs of passes" sh -c "'$SWSIM' predict -q --db='$dir/passes.db' '$dir/passes.yaml' &&
    '$SWSIM' predict -q --times=F=2ms,B=2ms --db='$dir/passes.db' '$dir/passes.yaml'"
check "are compared by kind" sh -c "$compare '$dir/passes.db:1' '$dir/passes.db:2' >'$dir/out' &&
    grep -qE '^ +8.00 ms +16.0 ms +\+8.00 ms +\*F\*$' '$dir/out' && ! grep -qE ' (0F[0-9]|[0-9]+ others)$' '$dir/out'"
check "... on one stream each" sh -c "! grep -qE '(first|second) only' '$dir/out' && grep -q 'stream p2p, busy' '$dir/out'"

# ---- why ------------------------------------------------------------------------------------------

traces=$srcdir/plans/traces/recommender
check "why: the longest stalls of a job, with their gains" prints 0 " 7.29 ms  *4.50 ms  s24 .*backward on s7" "$SWSIM" why "$traces"
check "... at most ten" sh -c "[ \$('$SWSIM' why '$traces' | grep -c ' s[0-9]* ') -le 10 ]"
check "... as JSON" prints 0 '"schema":"swsim.why/1".*"waits_for":"backward","idle_ns":729' "$SWSIM" why --json "$traces"
"$SWSIM" import -q --db="$dir/why.db" "$traces" 2>/dev/null
check "... of a run of a store" prints 0 " 7.29 ms  *4.50 ms  s24 .*backward on s7" "$SWSIM" why "$dir/why.db"
mkdir "$dir/slower"
for rank in 0 1; do
    python3 - "$traces/rank$rank.json" >"$dir/slower/rank$rank.json" <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
for event in trace["traceEvents"]:
    if event.get("cat") == "kernel" and "dense_forward" in event["name"]:
        event["name"] = event["name"].replace("dense_forward", "renamed_forward")
json.dump(trace, sys.stdout)
END
done
check "why: two jobs, in sentences" prints 0 "^the whole run takes\|^a step takes" "$SWSIM" why "$traces" "$dir/slower"
check "... by their files" prints 0 "^first   .*recommender: .*, measured, profiler, 2 ranks" "$SWSIM" why "$traces" "$dir/slower"
check "why: a dump has no run" complains 3 "it has no measured run" "$SWSIM" why "$srcdir/plans/traces/hang"
done_testing
