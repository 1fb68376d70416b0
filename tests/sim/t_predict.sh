#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim predict`: what it prints and writes, its options, its exit codes.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/plan.yaml" <<'PLAN'
swplan: 1
name: three_streams
retire: device
schedule:
  Copy: {stage: 0, stream: memcpy, time: 1ms, writes: [batch]}
  Work: {stage: 1, time: 2ms, host_time: 10us, reads: [batch], writes: [result]}
  Back: {stage: 2, stream: back, time: 1ms, reads: [result]}
intra_iter_deps:
  - [Work, Copy]
  - [Back, Work]
buffers: {batch: {scope: iteration, bytes: 4MiB}, result: {scope: iteration, bytes: 1MiB}}
PLAN
cat >"$dir/stuck.yaml" <<'PLAN'
swplan: 1
name: stuck
enqueue_order: [A, B]
schedule:
  A: {stage: 0, time: 1ms}
  B: {stage: 1, time: 1ms}
inter_iter_deps: [[A, B]]
PLAN
cat >"$dir/threads.yaml" <<'PLAN'
swplan: 1
name: two_kernels
threads:
  r0.main:
    - {launch: a, stream: s, time: 1ms}
    - {launch: b, stream: s, time: 2ms}
PLAN

cat >"$dir/crossed.yaml" <<'PLAN'
swplan: 1
name: crossed
comms: {A: [0, 1]}
threads:
  r0.main:
    - {collective: x, comm: A, stream: s, time: 1ms}
  r1.main:
    - {collective: y, comm: A, stream: s, time: 1ms}
PLAN
cat >"$dir/drain.yaml" <<'PLAN'
swplan: 1
name: drain
schedule:
  Sum: {stage: 0, stream: a, time: 1ms, work: {collective: all_reduce, comm: dp}}
ranks: 2
batches: [20, 30]
PLAN

cat >"$dir/credit.yaml" <<'PLAN'
swplan: 1
ranks: 2
schedule:
  Input: {time: 1ms, sync_after: stream, work: {recv: m, peer: 1, comm: pp}}
rank_overrides:
  1: {schedule: {Input: {work: {send: m, peer: 0, comm: pp}}}}
machine: {eager_bytes: {pp: 2MiB}}
PLAN

echo 0F0,0B0 >"$dir/threads.csv"

# prints TEXT COMMAND...: exits with 0 and TEXT is in its output.
prints()
{
    text=$1
    shift
    exits 0 "$@" || return
    grep -qF -- "$text" "$dir/out" && return
    echo "expected: $text"
    cat "$dir/out"
    false
}

# says CODE TEXT COMMAND...: exits with CODE and TEXT is in its messages.
says()
{
    want=$1
    text=$2
    shift 2
    exits "$want" "$@" || return
    grep -qF -- "$text" "$dir/err" && return
    echo "expected: $text"
    cat "$dir/err"
    false
}

predict="$SWSIM predict"

# ---- text ----------------------------------------------------------------------------------------

check "both drivers by default" prints "dataflow driver" $predict "$dir/plan.yaml"
check "and the clock first" grep -q "^three_streams, clock driver, 1000 iterations" "$dir/out"
check "a stream's work" grep -q "main  *99\.[0-9]%" "$dir/out"
check "a stream's idleness" grep -q "% *period clock" "$dir/out"
check "exposed times" grep -q "^  Work  *2.00 ms" "$dir/out"
check "one driver" prints "clock driver" $predict --driver=clock "$dir/plan.yaml"
check "is one" sh -c "! grep -q dataflow '$dir/out'"
check "a host program has no driver" prints "two_kernels" $predict "$dir/threads.yaml"
check "it takes 3 ms" grep -q "total *3.00 ms" "$dir/out"

# ---- JSON ----------------------------------------------------------------------------------------

check "JSON" exits 0 $predict --json "$dir/plan.yaml"
check "one object a driver" test "$(grep -c '^{.*}$' "$dir/out")" -eq 2
for key in plan driver seed iterations replications tasks_simulated seconds iteration_ns mean p50 \
    p95 p99 ci95 throughput_per_s fill_ns drain_ns steady_exact_ns critical_cycle bubble streams \
    busy stall dependence clock backpressure host head_of_line peer resource no_more_data \
    exposed_ns in_flight_bytes_max in_flight; do
    check "key $key" test "$(grep -c "\"$key\":" "$dir/out")" -eq 2
done
check "tasks are counted once" grep -q '"tasks_simulated":3000,' "$dir/out"
check "bytes in flight: 3 iterations of 5 MiB" grep -q '"in_flight_bytes_max":15728640' "$dir/out"
check "in flight over time: it fills" \
    grep -q '"in_flight":\[{"time_ns":0,"iterations":[123],"bytes":' "$dir/out"
check "and at the end is empty" sh -c \
    "$predict --json -n 10 --driver clock '$dir/plan.yaml' | grep -q '\"iterations\":0,\"bytes\":0}\]'"
check "CPU work on buffers takes its time" \
    prints '"makespan_ns":6000000,' $predict --json "$srcdir/plans/properties/cpu_race_fixed.yaml"
cat >"$dir/load.yaml" <<'PLAN'
swplan: 1
schedule: {Load: {stage: 0, host_time: 500us, work: {host: 2ms}}}
PLAN
check "host_time and host work are both CPU time" \
    prints '"steady_exact_ns":2500000' $predict --json --driver=clock "$dir/load.yaml"
# Of two streams that could take the last residency slot, the plan's first gets it.
cat >"$dir/slot.yaml" <<'PLAN'
swplan: 1
machine: {sm_slots: 1}
schedule:
  First: {stage: 0, stream: z, time: 1ms, sm: 1}
  Second: {stage: 0, stream: a, time: 2ms, sm: 1}
PLAN
check "streams are numbered as the plan uses them" prints "driver -> First -> Second" $predict --driver=dataflow "$dir/slot.yaml"
check "JSON of a host program" prints '"makespan_ns":3000000,' $predict --json "$dir/threads.yaml"

# ---- determinism ---------------------------------------------------------------------------------

timeless()
{
    sed 's/"[a-z_]*seconds":[^,]*,//g' "$dir/out"
}
exits 0 $predict --json --jitter '*=exponential' --replications 5 --threads 1 "$dir/plan.yaml"
first=$(timeless)
exits 0 $predict --json --jitter '*=exponential' --replications 5 --threads 3 "$dir/plan.yaml"
check "one seed, one result, whatever the number of threads" test "$(timeless)" = "$first"
exits 0 $predict --json --jitter '*=exponential' --replications 5 --seed 2 "$dir/plan.yaml"
check "another seed, another result" test "$(timeless)" != "$first"

# ---- options -------------------------------------------------------------------------------------

check "jitter of one task" prints "seed 1" $predict --jitter 'Copy=lognormal(cv=0.5)' "$dir/plan.yaml"
check "jitter of nobody" says 2 "'Nobody'" $predict --jitter Nobody=exponential "$dir/plan.yaml"
check "jitter without a distribution" says 2 "expected TASK=DISTRIBUTION" \
    $predict --jitter Copy "$dir/plan.yaml"
check "jitter of an unknown kind" says 2 "--jitter Copy" $predict --jitter Copy=odd "$dir/plan.yaml"
check "a sweep" prints "max_depth" $predict --sweep max_depth=1..4 "$dir/plan.yaml"
check "has a line for each value" test "$(grep -c '^ *[1-4] .*ms' "$dir/out")" -eq 4
check "a sweep in JSON" prints '"swept":{"max_depth":2}' $predict --json --sweep max_depth=1..3 "$dir/plan.yaml"
check "a sweep of the clock's max_depth" says 2 "only data-flow" \
    $predict --driver clock --sweep max_depth=1..3 "$dir/plan.yaml"
check "a sweep of something else" says 2 "expected max_depth, ranks or cores" \
    $predict --sweep colour=1..3 "$dir/plan.yaml"
check "a sweep without an end" says 2 "expected KEY=FROM..TO" \
    $predict --sweep max_depth=1 "$dir/plan.yaml"
check "a driver for a host program" says 2 "only plans of the pipeline form" \
    $predict --driver clock "$dir/threads.yaml"
check "no profile" says 2 "cannot open" $predict --profile "$dir/none.db" "$dir/plan.yaml"
check "too many iterations" says 2 "--iterations" $predict -n 1073741825 "$dir/plan.yaml"
check "times of actions" sh -c "'$SWSIM' generate gpipe --ranks=2 --microbatches=2 |
    $predict --times=F=1ms,B=2ms - | grep 'total *9.00 ms'"
# Costs whose sums 64 bits do not hold.
huge()
{
    printf 'swplan: 1\nname: huge\n%s\ngenerate: {schedule: gpipe, ranks: 2, microbatches: 4}\n' "$2" >"$dir/huge.yaml"
    complains 3 "$1" "$SWSIM" predict "$dir/huge.yaml" && complains 3 "$1" "$SWSIM" tune "$dir/huge.yaml"
}
check "a pass of centuries" huge '3:13: error: found "4000000000s", expected at most 50000 s' 'stages: {F: 4000000000s}'
check "layers that are one together" huge 'found F of stage 0 of 80000 s, expected' 'layers: {count: 4, F: 40000s}'
check "an action" huge '3:17: error: found "3000000000s", expected at most 50000 s' 'times: {SEND_F: 3000000000s}'
check "a message's bytes" huge 'found a message of 8000 TiB, expected at most 64.0 TiB' 'p2p: {bytes: 8000TiB, bandwidth: 1B/s}'
check "its time" huge '3:15: error: found a message of 100000 s' \
    'p2p: {edges: [{from: 0, to: 1, bytes: 100kB}], bandwidth: 1B/s}'
check "bytes of a stage" huge 'found weights of 8000000 TiB' 'stages: {weights: 8000000TiB}'
check "a model" huge 'found F of more than 64 bits hold' \
    'model: {layers: 8, hidden: 16777216, heads: 1, sequence: 16777216, microbatch: 1, rate: 1FLOPS}'
check "a time of the machine" huge '3:27: error: found "9000000000s", expected at most 50000 s' 'machine: {launch_latency: 9000000000s}'
printf 'swplan: 1\nschedule: {A: {stage: 0, time: 50000s}}\n' >"$dir/huge.yaml"
check "times that add up to more than the clock holds" complains 3 'times that add up to [0-9.e+]* years, expected less than 146' \
    "$SWSIM" predict -n 1000000 "$dir/huge.yaml"
printf 'swplan: 1\nschedule: {A: {stage: 0, time: 50001s}}\n' >"$dir/huge.yaml"
check "a time that is too long" complains 3 '2:32: error: found "50001s", expected at most 50000 s' "$SWSIM" verify "$dir/huge.yaml"
printf 'swplan: 1\nschedule: {A: {stage: 0, time: 1s, jitter: "spike(p=.1, add=50001s)"}}\n' >"$dir/huge.yaml"
check "one of a distribution" complains 3 '2:61: error: .*expected a duration of at most 50000 s' "$SWSIM" verify "$dir/huge.yaml"

check "times of no action" says 2 "--times: found 'Q'" $predict --times=Q=1ms "$dir/threads.csv"
check "times for a plan without actions" says 2 "only rank programs" \
    $predict --times=F=1ms "$dir/plan.yaml"
printf '%s\n' 'swplan: 1' 'machine: {memory: 1KiB}' 'buffers: {x: {bytes: 64KiB}}' \
    'threads: {r0.t: [{launch: k, stream: s, writes: [x]}]}' >"$dir/held.yaml"
check "buffers of a host program beyond the memory" exits 1 $predict --json "$dir/held.yaml"
check "... by the name of the bound" grep -q '"violations":\["bound"\],"deadlock":false' "$dir/out"
check "no depth under the clock driver" complains 2 'only data-flow has it' $predict --driver=clock --max-depth=2 "$dir/plan.yaml"
for option in --max-depth=2 --iterations=3; do
    check "no ${option%=*} of host programs" complains 2 "found ${option%=*}, but only plans of the pipeline form" \
        $predict $option "$srcdir/plans/bugs/deepspeed_bucket_overwrite_fixed.yaml"
done
printf '%s\n' 'swplan: 1' 'times: {F: 1ms, B: 2ms}' 'generate: {schedule: gpipe, ranks: 2, microbatches: 2}' >"$dir/lists.yaml"
for program in "$predict" "$SWRUN"; do
    check "nor of rank programs, ${program##*/}" complains 2 "found --iterations, but only plans of the pipeline form" \
        $program -n 3 "$dir/lists.yaml"
done
for option in --critical-path --exposed --sweep=max_depth=1..2 "--db=$dir/x.db"; do
    check "no ${option%%=*} beside --p2p=all" complains 2 "found --p2p=all together with ${option%%=*}" \
        $predict --p2p=all $option "$dir/plan.yaml"
done
$predict -n 50 "$dir/plan.yaml" >"$dir/out"
check "a step in one line of sixty cells" sh -c "sed -n 's/^  step        //p' '$dir/out' | head -n 1 | grep -qE '^\|[^ ]{59}  [a-z]'"
check "without colours in a file" sh -c "! grep -q '\[0m' '$dir/out'"
check "with them where they are asked for" sh -c "$predict -n 50 --color=always '$dir/plan.yaml' | grep -q 'step .*48;5;.*\[0m'"
check "passes have letters" sh -c "'$SWSIM' generate zb_h1 -p4 -m8 | $predict --times=F=1ms,I=1ms,W=1ms,B=2ms - | grep -qE '^  step +\|F-+\|I-+\|W-+\|\.+  compute, mean of the ranks'"
printf '%s\n' 'swplan: 1' 'name: c' schedule: '  A: {stage: 1, time: 1ms}' '  B: {stage: 0, time: 1ms}' 'intra_iter_deps: [[B, A]]' >"$dir/corollary.yaml"
check "a plan that hangs has its times" sh -c "$predict '$dir/corollary.yaml' | grep -q '^  total .*: a deadlock'"
check "ranks" prints "4 ranks" $predict --ranks 4 -n 50 "$dir/plan.yaml"

# The table of tasks has the same columns whether slack is known or not.
# columns PLAN SLACK [LEGEND]: the table of the plan, where a task has this slack
columns() {
    $predict -n 50 --exposed --driver=clock "$dir/$1.yaml" >"$dir/out" || return
    cat "$dir/out"
    grep -qE '^  task +device +exposed +serial +slack$' "$dir/out" && grep -qF "${3:-on average}" "$dir/out" &&
        grep -qE "^  Copy( +[0-9.-]+ [num]?s){3} +$2\$" "$dir/out"
}
check "slack where it is known" columns plan '[0-9.]+ [num]?s'
sed 's/^retire:.*/&\nmachine: {sm_slots: 1}/; s/Copy: {/&sm: 1, /; s/Work: {/&sm: 1, /' "$dir/plan.yaml" >"$dir/unknown.yaml"
check "a dash where it is not" columns unknown - 'the iteration (-: not known)'

# Two collectives on two streams share a communicator: the second waits for the first.
cat >"$dir/comm.yaml" <<END
swplan: 1
name: comm
driver: clock
ranks: 2
schedule:
  First: {globally_ordered: true, time: 3ms, work: {collective: all_to_all, comm: dp, bytes: 1KiB}}
  Second: {globally_ordered: true, stream: nccl, time: 1ms, work: {collective: all_reduce, comm: dp, bytes: 1KiB}}
END
check "the communicator that is waited for is named" prints 'resource, communicator dp' $predict -n 50 "$dir/comm.yaml"
check "... and so does a stored run" sh -c "$predict -n 50 --db='$dir/comm.db' '$dir/comm.yaml' >/dev/null &&
    '$SWSIM' render '$dir/comm.db' -o - --format=json | grep -q 'resource, communicator dp'"

# Every other resource has a name, too: in tables, JSON, stores and comparisons.
# lacks NAME SHARE WHAT, the plan below `name:` on standard input
lacks() {
    { printf 'swplan: 1\nname: %s\n' "$1"; cat; } >"$dir/$1.yaml"
    check "$1: the table says '$3'" prints "$2.0%  resource, $3" $predict "$dir/$1.yaml"
    check "$1: so does JSON" sh -c "$predict --json '$dir/$1.yaml' | grep -q '\"resource_on\":{[^}]*\"$3\":0.${2%0}'"
}
lacks slots 75 "residency slots, held by stream a" <<END
driver: clock
machine: {sm_slots: 1}
retire: device
schedule:
  A: {stage: 0, stream: a, time: 3ms, sm: 1}
  B: {stage: 0, stream: b, time: 1ms, sm: 1}
END
lacks queue 75 "hardware queue, behind stream a" <<END
driver: dataflow
machine: {hw_queues: 1}
retire: device
schedule:
  A: {stage: 0, stream: a, time: 3ms}
  B: {stage: 0, stream: b, time: 1ms}
END
lacks lock 60 "lock gil" <<END
threads:
  r0.first: [{lock: gil}, {compute: c, time: 3ms}, {unlock: gil}]
  r0.second: [{lock: gil}, {launch: k, stream: s, time: 2ms}, {unlock: gil}]
END
lacks full 50 "room in stream a" <<END
machine: {launch_queue: 2}
threads:
  r0.main:
    - {launch: one, stream: a, time: 3ms}
    - {launch: two, stream: a, time: 3ms}
    - {record: e, stream: a}
    - {launch: three, stream: b, time: 1ms}
END
lacks issue 75 "order of issue, behind stream a" <<END
machine: {launch_order_implicit: true}
ranks: 1
comms: {x: [0], y: [0]}
threads:
  r0.main:
    - {launch: k, stream: a, time: 3ms}
    - {collective: one, comm: x, stream: a}
    - {collective: two, comm: y, stream: b, time: 1ms}
END
# Of several holders the one with most slots is named, the later one of two with as many; it may be on another rank.
sharers() { # NAME SHARE WHAT
    lacks "$1" "$2" "$3" <<END
ranks: 3
machine: {sm_slots: 4, share_device: [[0, 1, 2]]}
threads:
  r0.main: [{launch: k, stream: a, time: 4ms, sm: 2}]
  r1.main: [{host: 2ms}, {launch: k, stream: b, time: 1ms, sm: 2}]
  r2.main: [{host: 1ms}, {launch: k, stream: c, time: 1ms, sm: 3}]
END
}
sharers sharer 40 "residency slots, held by rank 0 stream a"
sharers sharer 20 "residency slots, held by rank 1 stream b"
$predict --db="$dir/lock.db" "$dir/lock.yaml" >"$dir/out"
check "a stored run names the lock" prints '"cause":"resource","word":"model","waits_for":"lock gil","words":"resource, lock gil"' \
    "$SWSIM" runs --json --run 1 "$dir/lock.db"
check "... in its picture, too" prints 'resource, lock gil' "$SWSIM" render "$dir/lock.db" -o - --format=json
sed 's/time: 3ms/time: 4ms/' "$dir/lock.yaml" >"$dir/longer.yaml"
$predict --db="$dir/lock.db" "$dir/longer.yaml" >"$dir/out"
check "a comparison says which lock" prints 'it waits 1.00 ms longer for a resource, lock gil' \
    "$SWSIM" compare --diff "$dir/lock.db:1" "$dir/lock.db:2"

# A loader's CPU time is exposed where nothing hides it, that is one iteration at a time.
cat >"$dir/loader.yaml" <<END
swplan: 1
name: loader
driver: clock
schedule:
  Load: {stage: 0, thread_group: loader, work: {host: 300us}}
  Work: {stage: 1, time: 1ms}
intra_iter_deps: [[Work, Load]]
END
check "CPU time of a task is exposed, too" sh -c \
    "$predict -n 50 '$dir/loader.yaml' | grep -qE '^  Load +- +0 ns +300 us( |\$)'"

# ---- critical paths ------------------------------------------------------------------------------

check "exposed times are left out" prints '"exposed_ns":null' $predict --json -n 50 --exposed=never "$dir/plan.yaml"
check "or not" says 2 "--exposed: found 'no', expected never" $predict -n 50 --exposed=no "$dir/plan.yaml"
check "a critical path" prints "critical path of iteration 25, " $predict -n 50 -q --critical-path "$dir/plan.yaml"
check "of one iteration" prints "critical path of iteration 7, " $predict -n 50 -q --critical-path=7 "$dir/plan.yaml"
check "in JSON" prints '"waited":"dependence"' $predict --json -n 50 --critical-path=slowest "$dir/plan.yaml"
check "with what adds up" prints '"shares":[{"task":"' $predict --json -n 50 --critical-path "$dir/plan.yaml"
check "stored at the same time" exits 0 $predict -n 30 --driver clock --critical-path --db "$dir/path.db" "$dir/plan.yaml"
check "of a host program" prints "critical path, 3.00 ms" $predict --critical-path "$dir/threads.yaml"
check "a deadlock has none" exits 1 $predict -n 50 --critical-path=9 --driver clock "$dir/stuck.yaml"
check "and says so" grep -q "no critical path" "$dir/out"
check "an iteration there is not" says 2 "--critical-path" $predict -n 50 --critical-path=50 "$dir/plan.yaml"
check "a word that is none" says 2 "--critical-path" $predict -n 50 --critical-path=longest "$dir/plan.yaml"
check "not with a sweep" says 2 "together with --sweep" $predict --critical-path --sweep max_depth=1..2 "$dir/plan.yaml"
check "data-flow has an exact time" prints "exact       2.00 ms" $predict -n 50 -q --driver dataflow "$dir/plan.yaml"
check "also with few iterations" prints "exact       2.00 ms" $predict -n 5 -q --driver dataflow "$dir/plan.yaml"
check "messages on credit without a bound but the data have no exact time" \
    prints "exact       not known: only the end of the data bounds the messages on credit" \
    $predict -n 4 -q --driver clock "$dir/credit.yaml"

# ---- exit codes ----------------------------------------------------------------------------------

check "a deadlock is violated" exits 1 $predict --driver clock "$dir/stuck.yaml"
check "and told" grep -q "waits for the CPU signal of B(0)" "$dir/out"
check "in JSON too" exits 1 $predict --json --driver clock "$dir/stuck.yaml"
check "with who waits" grep -q '"deadlock":true,"blocked":\[{"rank":0,' "$dir/out"
check "a host program has no interval" prints '"p50":null,"p95":null,"p99":null,"ci95":[null,null],"p50_ci95":[null,null]' \
    $predict --json "$dir/threads.yaml"
check "-q is only quiet" prints '"slack_ns":{"Copy":' $predict --json -q -n 50 "$dir/plan.yaml"
check "a mismatch is violated" exits 1 $predict "$dir/crossed.yaml"
check "and told" grep -q "VIOLATED    mismatch" "$dir/out"
check "in JSON too" exits 1 $predict --json "$dir/crossed.yaml"
check "by its name" grep -q '"violations":\["mismatch"\],"deadlock":false' "$dir/out"
check "a deadlock in the drain is violated" exits 1 $predict --json --driver clock -n 50 "$dir/drain.yaml"
check "and has no exact period" grep -q '"steady_exact_ns":null.*the run ends in a deadlock' "$dir/out"
check "no plan" exits 2 $predict
check "a missing plan" exits 2 $predict "$dir/none.yaml"

# ---- the store -----------------------------------------------------------------------------------

check "a trace is stored" exits 0 $predict -n 30 --driver clock --db "$dir/runs.db" "$dir/plan.yaml"
check "as a simulated run" prints "simulated" "$SWSIM" runs "$dir/runs.db"
check "and can be drawn" exits 0 "$SWSIM" render "$dir/runs.db" -o "$dir/run.svg"
check "with its waits" grep -q "period clock" "$dir/run.svg"
check "a store that cannot be" exits 2 $predict --db "$dir/no/runs.db" "$dir/plan.yaml"

# The times of messages count.
"$SWSIM" generate 1f1b -p 2 -m 4 --comms | sed 's/^programs:/times: {F: 1ms, B: 2ms}\nprograms:/' >"$dir/passes.yaml"
sed 's/B: 2ms/B: 2ms, SEND_F: 601us, RECV_F: 601us/' "$dir/passes.yaml" >"$dir/messages.yaml"
total() { "$SWSIM" predict --json "$1" | field makespan_ns; }
slower() { [ "$(total "$dir/messages.yaml")" -gt "$(total "$dir/passes.yaml")" ]; }
check "messages take the time that is given for them" slower
# Ranks may have data for different numbers of iterations, and for none.
sed 's/^batches.*/batches: [0, 0]/' "$dir/drain.yaml" >"$dir/no_data.yaml"
says_no_data()
{
    "$SWSIM" predict "$dir/no_data.yaml" >"$dir/out" && "$SWSIM" predict --json "$dir/no_data.yaml" >"$dir/json" &&
        grep -q 'total .*: no rank has data for an iteration$' "$dir/out" && ! grep -q 'has a time' "$dir/out" &&
        grep -q '"untimed":false' "$dir/json"
}
check "a plan without data has times all the same" says_no_data
# A critical cycle of several iterations says its turn once, and what is behind the last whole turn.
cat >"$dir/turns.yaml" <<'PLAN'
swplan: 1
name: turns
schedule:
  Decode: {stage: 0, thread_group: decoder, work: {host: 3ms}, writes: [batch]}
  Upload: {stage: 1, stream: h2d, time: 1.5ms, reads: [batch], writes: [dev]}
  Train: {stage: 2, time: 5ms, reads: [dev]}
  Log: {stage: 2, thread_group: logger, work: {host: 1ms}}
intra_iter_deps: [[Upload, Decode], [Train, Upload], [Log, Train]]
buffers: {batch: {scope: iteration}, dev: {scope: iteration}}
PLAN
check "a cycle is said once, with its rest" sh -c "'$SWSIM' predict -q -n 12 --driver=clock '$dir/turns.yaml' |
    grep 'limited by Train -> Upload, 5 times and Train, over 10 iterations\$'"
done_testing
