#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swrun from the outside: what it prints and returns, that it ends when it is told to, and what is in
# the trace store after a run that ended well, badly, or not at all.
. "${srcdir:-.}/tests/tap.sh"
. "$srcdir/tests/run_plans.sh"

quick_plan 2 4KiB >"$dir/quick.yaml"
stuck_plan >"$dir/stuck.yaml"
mismatch_plan >"$dir/mismatch.yaml"

# interrupted SIGNAL... -- COMMAND...: the command gets the signals, 0.3 s after it has a handler and 0.1 s
# after each other, and then ends by itself. Returns its exit code.
interrupted()
{
    signals=
    while [ "$1" != -- ]; do
        signals="$signals $1"
        shift
    done
    shift
    "$@" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    wait_until 200 catches $pid INT && sleep 0.3
    for signal in $signals; do
        kill -s "$signal" $pid 2>/dev/null
        sleep 0.1
    done
    ends_within 30 $pid
    return $code
}
ends_with()
{
    want=$1
    shift
    interrupted "$@"
    code=$?
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat "$dir/out" "$dir/err"
    false
}

check "a run is legal and right" \
    prints 0 '"legal":true,"results_match_serial":true' "$SWRUN" -n 20 --json "$dir/quick.yaml"
check "all keys of the contract are there" sh -c '
    for key in plan driver device run iterations seconds iteration_ns mean p50 p95 p99 throughput_per_s \
               fill_ns drain_ns streams busy legal results_match_serial; do
        grep -q "\"$key\":" "$1" || { echo "no $key"; exit 1; }
    done' sh "$dir/out"
check "data-flow as well" \
    prints 0 '"legal":true,"results_match_serial":true' \
    "$SWRUN" -n 20 --json --driver=dataflow "$dir/quick.yaml"
# Three launches in a row, each awaited: 20 ms each for the way and 1 ms for the work.
printf 'swplan: 1\nmachine: {launch_latency: 20ms}\nthreads:\n  r0.t:\n' >"$dir/far.yaml"
for k in a b c; do printf '  - {launch: %s, stream: s, time: 1ms}\n  - {sync: device}\n' $k; done >>"$dir/far.yaml"
takes_the_latency()
{
    "$SWRUN" --json "$dir/far.yaml" >"$dir/far" || return
    cat "$dir/far"
    [ "$(field makespan_ns <"$dir/far" | cut -d. -f1)" -ge 63000000 ]
}
check "a launch takes its time to the device" takes_the_latency
check "serially" prints 0 'legal  *yes' "$SWRUN" -n 5 --serial "$dir/quick.yaml"
printf 'swplan: 1\nranks: 2\nbatches: [0, 3]\nschedule: {A: {time: 1ms}}\n' >"$dir/uneven.yaml"
check "ranks with more and with less data" prints 0 ', 2 ranks, 0 to 3 iterations, on' "$SWRUN" --driver=clock "$dir/uneven.yaml"
check "no iterations at all" prints 0 '"iterations":0' "$SWRUN" -n 0 --json "$dir/quick.yaml"
check "other numbers of ranks" prints 0 '"legal":true' "$SWRUN" -n 5 --ranks 3 --json "$dir/quick.yaml"
check "text says how fast" prints 0 'throughput' "$SWRUN" -n 20 "$dir/quick.yaml"
check "unchecked runs say nothing about legality" \
    prints 0 '"legal":null,"results_match_serial":null' "$SWRUN" -n 5 --no-check --json "$dir/quick.yaml"
check "a plan from standard input" sh -c '"$1" -n 5 - <"$2" >/dev/null' sh "$SWRUN" "$dir/quick.yaml"
check "a bad plan" exits 3 "$SWRUN" /dev/null
check "a plan that is not there" exits 2 "$SWRUN" "$dir/none.yaml"
check "--stats: a row a task" prints 0 '^Copy  *40  ' "$SWRUN" -n 20 --stats "$dir/quick.yaml"
check "CPU work on buffers takes its time" \
    prints 0 '^pack  *2  *0.000  *0.000  *[2-9]' "$SWRUN" --stats "$srcdir/plans/properties/cpu_race_fixed.yaml"
check "and its races are seen" \
    prints 1 'race  *[a-z]* accesses buffer pinned, which [a-z ]* \(reads\|writes\)' \
    "$SWRUN" "$srcdir/plans/properties/cpu_race_broken.yaml"
check "results that differ from a serial run are a failure" \
    exits 1 "$SWRUN" --driver dataflow -n 30 "$srcdir/plans/properties/serial_broken.yaml"
cat >"$dir/sums.yaml" <<'PLAN'
swplan: 1
buffers: {sum: {scope: shared}}
schedule:
  A: {stage: 0, reads: [sum], writes: [sum]}
  B: {stage: 1, reads: [sum], writes: [sum]}
intra_iter_deps: [[B, A]]
PLAN
check "also of what is added to a buffer" prints 1 "results  *DIFFERENT" "$SWRUN" --driver=clock -n 8 "$dir/sums.yaml"
cat >"$dir/exchange.yaml" <<'PLAN'
swplan: 1
ranks: 2
schedule:
  Send: {stream: n, work: {send: x, peer: 1, comm: pp, bytes: 1KiB}}
  Recv: {stream: n, work: {recv: y, peer: 1, comm: pp, bytes: 1KiB}}
rank_overrides:
  1:
    schedule: {Send: {work: {send: y, peer: 0, comm: pp, bytes: 1KiB}}, Recv: {work: {recv: x, peer: 0, comm: pp, bytes: 1KiB}}}
    enqueue_order: [Recv, Send]
enqueue_order: [Send, Recv]
PLAN
check "without a serial run that ends nothing is compared, which is said" \
    complains 0 "results are not compared: a serial run, .* hangs" "$SWRUN" -n 3 "$dir/exchange.yaml"
check "and not where the plan may be stale" \
    prints 0 'DIFFERENT from .*: reads were stale, as the plan allows' "$SWRUN" -n 20 "$srcdir/plans/properties/staleness.yaml"
sed "s/Lookup: {stage: 0/Lookup: {stage: 1/; s/Update, 2/Update/" "$srcdir/plans/properties/staleness.yaml" >"$dir/fresh.yaml"
check "though no read may be" prints 0 '"results_match_serial":true,"stale_reads":false' "$SWRUN" --json -n 20 "$dir/fresh.yaml"
sed 's/stage: 1/stage: 2/; s/\[Lookup, Update, 2\]/[Lookup, Update, 3]/' "$srcdir/plans/properties/staleness.yaml" >"$dir/late.yaml"
check "reads that are staler than it allows" prints 1 'reads buffer table 2 iterations old' "$SWRUN" -n 20 "$dir/late.yaml"
sed 's/{table: 1}/{table: 2}/' "$dir/late.yaml" >"$dir/later.yaml"
check "which the plan may allow" exits 0 "$SWRUN" -n 20 "$dir/later.yaml"
check "also in JSON" prints 0 '"stats":{"Copy":{"calls":40,"device_ns":[1-9]' "$SWRUN" -n 20 --stats --json "$dir/quick.yaml"
check "only if asked for" sh -c '"$1" -n 2 --json "$2" >"$3" && ! grep -q "\"stats\"" "$3"' sh "$SWRUN" "$dir/quick.yaml" "$dir/out"
if [ -x "$SWSIM" ]; then
    "$SWSIM" generate zbv --ranks=2 --microbatches=4 >"$dir/pp.yaml"
    check "rank programs: kinds of actions" prints 0 '^forward_chunk  *16 ' "$SWRUN" --stats "$dir/pp.yaml"
    printf '%s\n' 'swplan: 1' 'name: kinds' 'arithmetic: {width: 16, batch: 2}' 'p2p: {metadata: each}' \
        'generate: {schedule: 1f1b, ranks: 4, microbatches: 8, megatron: batch}' >"$dir/kinds.yaml"
    kinds() { "$SWRUN" --stats "$dir/kinds.yaml" | sed '1,/^----/d; s/ .*//' | tr '\n' ' '; }
    check "a row for each kind, as CudaTimer of hfai has them" test "$(kinds)" = \
        "backward_chunk forward_chunk recv recv_meta send send_meta sendrecv sendrecv_meta wait_recv_b wait_recv_f wait_send_b wait_send_f "
    check "split backward, messages" sh -c 'for name in backward_input backward_weight send recv; do
        grep -q "^$name  *[1-9]" "$1" || { cat "$1"; exit 1; }; done' sh "$dir/out"
else
    skip "no swsim here to generate rank programs"
fi
check "also from processes" prints 0 '^Copy  *10  ' "$SWRUN" -n 5 --processes --stats "$dir/quick.yaml"
for driver in clock dataflow; do
    check "--shortcut: a legal run without the task, $driver" \
        prints 0 '"legal":true,"results_match_serial":null' \
        "$SWRUN" -n 10 --driver=$driver --shortcut Copy --json "$dir/quick.yaml"
    check "a collective is short-cut, too, $driver" \
        prints 0 '"legal":true' "$SWRUN" -n 10 --driver=$driver --shortcut Meet --shortcut Copy --json "$dir/quick.yaml"
done
check "serially" prints 0 '"iterations":7,.*"legal":true' "$SWRUN" -n 7 --serial --shortcut Meet --json "$dir/quick.yaml"
check "and stored" prints 0 'stored      run 1 in' "$SWRUN" -n 5 --shortcut Meet --db "$dir/short.db" "$dir/quick.yaml"
check "it says on what" prints 0 "on host: threads" "$SWRUN" -n 5 --shortcut Meet "$dir/quick.yaml"
check "and can be interrupted" ends_with 1 INT -- "$SWRUN" -n 1000000 --shortcut Meet "$dir/quick.yaml"
check "a misspelt task" complains 2 "did you mean 'Copy'" "$SWRUN" --shortcut Cpoy "$dir/quick.yaml"
check "short-cuts are of one process" complains 2 'one process' "$SWRUN" --processes --shortcut Copy "$dir/quick.yaml"
check "--profile tells exposed times" prints 0 'Copy  .* ms .*%' "$SWRUN" -n 3 --profile "$dir/quick.yaml"
check "also in JSON" prints 0 '"exposed_ns":{"Copy":[0-9].*"Meet":' "$SWRUN" -n 3 --profile --json "$dir/quick.yaml"
check "--profile is serial" complains 2 'together with --driver' "$SWRUN" --profile --driver=clock "$dir/quick.yaml"
check "--profile needs tasks" complains 3 'pipeline form' "$SWRUN" --profile "$dir/stuck.yaml"
check "--graph: periods by one launch each" \
    prints 0 'graphs  *3[0-9] of 42 periods by one launch each, 4 graphs' "$SWRUN" -n 20 --graph=require "$dir/quick.yaml"
check "also in JSON, and of ranks that are processes" \
    prints 0 '"periods":42,"graph_launches":3[0-9],"graphs":4,.*"legal":true,"results_match_serial":true' \
    "$SWRUN" -n 20 --graph --processes --json "$dir/quick.yaml"
check "data-flow does without, and says so" complains 0 'no graphs: the data-flow driver has no periods' \
    "$SWRUN" -n 20 --graph --driver=dataflow "$dir/quick.yaml"
check "or is refused" complains 2 'no graphs: the data-flow' \
    "$SWRUN" -n 20 --graph=require --driver=dataflow "$dir/quick.yaml"
check "a serial run has no graphs" complains 2 'a serial run' "$SWRUN" --graph --serial "$dir/quick.yaml"
check "--graph: auto or require" complains 2 "found 'maybe', expected auto or require" \
    "$SWRUN" --graph=maybe "$dir/quick.yaml"
check "a host program has no driver" exits 2 "$SWRUN" --driver=clock "$dir/stuck.yaml"

check "a hang is found" complains 1 'hangs' "$SWRUN" --timeout=300ms "$dir/stuck.yaml"
check "and who waits for whom" grep -q 'rank 0 stream s is in send x to rank 1' "$dir/out"
printf 'swplan: 1\nschedule: {A: {stage: 0, work: {host: 300ms}}}\n' >"$dir/slow.yaml"
check "what is slow is no hang, however long the time-out" exits 0 "$SWRUN" -n 2 --timeout=9223372036854775807ns "$dir/slow.yaml"
check "also where ranks are processes" exits 0 "$SWRUN" -n 2 --ranks=2 --processes --timeout=9223372036854775807ns "$dir/slow.yaml"
check "also in JSON" prints 1 '"blocked":\[{"rank":0' "$SWRUN" --timeout=300ms --json "$dir/stuck.yaml"
check "also unchecked" prints 1 "rank 0 thread train" "$SWRUN" --timeout=300ms --no-check "$dir/stuck.yaml"
check "a mismatch fails the run" complains 1 'mismatch' "$SWRUN" "$dir/mismatch.yaml"

check "SIGINT: in flight finishes" \
    ends_with 1 INT -- "$SWRUN" -n 1000000 --db "$dir/int.db" "$dir/quick.yaml"
check "and says so" grep -q 'what was in flight has finished' "$dir/err"
check "SIGTERM, too" ends_with 1 TERM -- "$SWRUN" -n 1000000 "$dir/quick.yaml"
check "a second SIGINT stops at once" \
    ends_with 1 INT INT -- "$SWRUN" --timeout=20s "$dir/stuck.yaml"
check "a stuck run ends with one, too" ends_with 1 INT -- "$SWRUN" --timeout=20s "$dir/stuck.yaml"
# has_iterations STORE: of its run at least one has finished.
has_iterations()
{
    "$SWSIM" runs --json "$1" 2>/dev/null | grep -q '"iterations":[1-9]'
}
# Killed when its store knows of an iteration, and at the latest after ten seconds.
killed()
{
    "$SWRUN" -n 1000000 --db "$dir/kill.db" "$dir/quick.yaml" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    wait_until 100 has_iterations "$dir/kill.db"
    kill -s KILL $pid
    wait $pid 2>/dev/null
    test $? -eq 137
}
check "a killed run" killed

if [ -x "$SWSIM" ]; then
    check "the store knows of the interruption" prints 0 '"state":"interrupted"' "$SWSIM" runs --json "$dir/int.db"
    check "the killed run is readable" prints 0 '"state":"open"' "$SWSIM" runs --json "$dir/kill.db"
    check "with iterations that had finished" \
        sh -c '! grep -q "\"iterations\":0," "$1"' sh "$dir/out"
else
    skip "no swsim here to look into the store"
fi

check "--progress names iterations in order, in text" sh -c \
    '"$1" -n 5 --progress --db="$2/told.db" "$2/quick.yaml" | grep "^iteration [0-9]" | tr -d "\n" |
     grep -qx "iteration 0iteration 1iteration 2iteration 3iteration 4"' sh "$SWRUN" "$dir"
check "and in JSON, with ranks as processes and a durable store" sh -c \
    'test "$("$1" -n 5 --progress --json --processes --durable --db="$2/told.db" "$2/quick.yaml" |
             grep -c "^{\"schema\":\"swsim.progress/1\",\"iteration\":[0-4]}$")" -eq 5' sh "$SWRUN" "$dir"
check "no depth under the clock driver" complains 2 'only data-flow has it' "$SWRUN" --max-depth=2 "$dir/quick.yaml"
check "no rendezvous without ranks that meet" complains 2 'is for ranks that mpirun or srun has started' "$SWRUN" --rendezvous=r "$dir/quick.yaml"
for option in --max-depth=2 --iterations=3 --progress; do
    check "nor $option of host programs" complains 2 "found ${option%=*}, but only plans of the pipeline form" \
        "$SWRUN" $option "$srcdir/plans/bugs/deepspeed_bucket_overwrite_fixed.yaml"
done
check "--durable needs a store" complains 2 '--durable needs a store' "$SWRUN" --durable -n 5 "$dir/quick.yaml"

check "a store that cannot be made" \
    complains 2 'cannot open trace store' "$SWRUN" -n 5 --db /nonexistent/x.db "$dir/quick.yaml"
check "a store that is something else" complains 3 'not a' "$SWRUN" -n 5 --db "$dir/quick.yaml" "$dir/quick.yaml"
# The file may not grow beyond 200 blocks: as a full disk, but for the name of the error.
check "a store that cannot grow ends the run" \
    sh -c 'trap "" XFSZ; ulimit -f 200; "$1" -n 1000000 --db "$2/full.db" "$2/quick.yaml" >"$2/out" 2>"$2/err"
           code=$?; cat "$2/err"; test $code -eq 2 && grep -q "cannot write to trace store" "$2/err"' \
    sh "$SWRUN" "$dir"
# Memory that follows from the plan alone: lists, and buffers that no operation allocates.
printf '%s\n' 'swplan: 1' 'name: lists' 'machine: {memory: 1KiB}' 'p2p: {bytes: 64KiB}' \
    'generate: {schedule: gpipe, ranks: 2, microbatches: 4}' 'times: {F: 10us, B: 10us}' >"$dir/lists.yaml"
printf '%s\n' 'swplan: 1' 'name: host' 'machine: {memory: 1KiB}' 'buffers: {x: {bytes: 64KiB}}' \
    'threads: {r0.t: [{launch: k, stream: s, writes: [x]}]}' >"$dir/host.yaml"
for plan in lists host; do
    check "$plan: more memory than a rank may hold" prints 1 'machine.memory allows 1024' "$SWRUN" "$dir/$plan.yaml"
    check "... in JSON" prints 1 '"bound"' "$SWRUN" --json "$dir/$plan.yaml"
    sed 's/1KiB/1MiB/' "$dir/$plan.yaml" >"$dir/room.yaml"
    check "... and no more than that" exits 0 "$SWRUN" "$dir/room.yaml"
done
# The summary of a run on 64 ranks is as long as that of one on two.
"$SWRUN" -n 4 --ranks=64 --timeout=120s "$dir/quick.yaml" >"$dir/out"
check "64 ranks are some rows" sh -c "grep -c '%  [#.]*$' '$dir/out' | grep -qxE '[2-9]|1[0-9]|2[0-4]'"
check "with a step in one line" grep -qE '^  step        [|.].{59}  [a-z]+, mean of the ranks$' "$dir/out"
check "... which --quiet leaves out" sh -c "! '$SWRUN' -q -n 4 '$dir/quick.yaml' | grep -q '^  step'"

done_testing
