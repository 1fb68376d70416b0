#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim compare` and `swsim predict --profile`: from runs to errors, and what is no basis for them.
. "${srcdir:-.}/tests/tap.sh"

# Tasks without work of their own: they sleep.
cat >"$dir/plan.yaml" <<'PLAN'
swplan: 1
name: three_streams
retire: device
schedule:
  Copy: {stage: 0, stream: memcpy, time: 400us, host_time: 50us, writes: [batch]}
  Work: {stage: 1, time: 800us, host_time: 50us, reads: [batch], writes: [result]}
  Back: {stage: 2, stream: back, time: 300us, host_time: 200us, reads: [result]}
intra_iter_deps:
  - [Work, Copy]
  - [Back, Work]
buffers: {batch: {scope: iteration, bytes: 4KiB}, result: {scope: iteration, bytes: 1KiB}}
PLAN
cat >"$dir/ranks.yaml" <<'PLAN'
swplan: 1
name: two_ranks
ranks: 2
schedule:
  Copy: {stage: 0, stream: memcpy, time: 400us}
  Sum: {stage: 1, time: 300us, work: {collective: all_reduce, comm: all, bytes: 1KiB}}
intra_iter_deps:
  - [Sum, Copy]
comms: {all: all}
PLAN
sed 's/^name: .*/name: another/' "$dir/plan.yaml" >"$dir/another.yaml"
sed 's/^  Back:/  Late: {stage: 2, stream: back, time: 2ms}\n&/' "$dir/plan.yaml" >"$dir/more.yaml"
sed 's/800us/900us/' "$dir/plan.yaml" >"$dir/edited.yaml"
printf 'swplan: 1\nname: two_kernels\nthreads: {r0.main: [{launch: a, time: 1ms}]}\n' >"$dir/threads.yaml"

run()
{
    exits 0 "$SWRUN" --quiet -n 12 "$@"
}

# keys KEY...: the JSON of a comparison has these keys.
keys()
{
    exits 0 "$SWSIM" compare --json "$dir/runs.db" || return
    for key in "$@"; do
        grep -q "\"$key\":" "$dir/out" || { echo "no $key"; return 1; }
    done
}

# same COMMAND...: the command says the same twice.
same()
{
    "$@" >"$dir/first" 2>&1 && "$@" >"$dir/second" 2>&1 && cmp "$dir/first" "$dir/second"
}

compare="$SWSIM compare"
predict="$SWSIM predict"

# ---- runs ----------------------------------------------------------------------------------------

check "a pipelined run" run --db "$dir/runs.db" "$dir/plan.yaml"
check "alone it cannot be predicted" complains 3 'left out: no serial run of this plan' $compare "$dir/runs.db"
check "the run is named" complains 3 'run 1, three_streams: left out: no serial run' $compare "$dir/runs.db"
check "nor is it a profile" complains 3 'no finished serial run of three_streams, only runs in which' \
    $predict --profile "$dir/runs.db" "$dir/plan.yaml"
check "nor by its number" complains 3 'run 1 of three_streams is not serial' \
    $predict --profile "$dir/runs.db:1" "$dir/plan.yaml"
check "a serial run" run --serial --db "$dir/runs.db" "$dir/plan.yaml"
check "a data-flow run of depth 2" run --driver dataflow --max-depth 2 --db "$dir/runs.db" "$dir/plan.yaml"
check "two ranks" run --db "$dir/runs.db" "$dir/ranks.yaml"
check "two ranks, serial" run --serial --db "$dir/runs.db" "$dir/ranks.yaml"
check "no steps" run --no-check --db "$dir/runs.db" "$dir/plan.yaml"

# ---- compare -------------------------------------------------------------------------------------

check "runs are compared" prints 0 ' 1  three_streams  *clock  *3  *1  *[0-9.]* [mun]*s  *[0-9.]* [mun]*s  *[-+][0-9.]*%' \
    $compare "$dir/runs.db"
check "with driver and depth" prints 0 ' 3  three_streams  *dataflow  *2  *1' $compare "$dir/runs.db"
check "with the times of tasks" prints 0 '^  *[0-9.]* [mun]*s  *[0-9.]* [mun]*s  Copy$' $compare "$dir/runs.db"
check "... of a step, as JSON" prints 0 '"tasks_by_steps":true,.*"tasks":{"[A-Za-z]*":{"measured_ns":[0-9.]*,"predicted_ns":[0-9.]*,' \
    $compare --json "$dir/runs.db"
check "with two ranks" prints 0 ' 4  two_ranks  *clock  *2  *2' $compare "$dir/runs.db"
check "with accounts" prints 0 'memcpy  *busy  *[0-9.]*%  *[0-9.]*%' $compare "$dir/runs.db"
check "without steps there is only a predicted one" prints 0 'memcpy  *busy  *-  *[0-9.]*%' \
    $compare --run 6 "$dir/runs.db"
check "the last line sums up" prints 0 '^median error [0-9.]*%, worst [0-9.]*%, of 4 runs$' $compare "$dir/runs.db"
check "--quiet leaves out the streams" exits 0 $compare --quiet "$dir/runs.db"
check "indeed" sh -c '! grep -q memcpy "$1"' sh "$dir/out"
check "--run takes one" prints 0 'of 1 run$' $compare --run 3 "$dir/runs.db"
check "a plan takes its own" prints 0 'of 1 run$' $compare "$dir/runs.db" "$dir/ranks.yaml"
check "one seed, one answer" same $compare --json "$dir/runs.db"
check "JSON has its keys" keys runs run serial_run plan driver device depth ranks iterations profiled_iterations \
    warm_up_iterations parts_not_measured cores measured_ns predicted_ns error streams measured predicted busy stall \
    dependence clock backpressure host head_of_line peer resource no_more_data runs_without_serial median_error \
    worst_error
check "with figures where there are some" sh -c '! grep -qE "\"(error|median_error|worst_error)\":null" "$1"' sh "$dir/out"
check "an error below the limit" exits 0 $compare --limit-error 100000% "$dir/runs.db"
check "an error above it" complains 1 'the worst error is .*, expected at most 0.0%' $compare --limit-error 0 "$dir/runs.db"

# ---- predict --profile ---------------------------------------------------------------------------

check "predict says where its times are from" complains 0 'times from run 2 of .*runs.db, serial, on host.*: 10 iterations, after 2 that' \
    $predict --profile "$dir/runs.db" "$dir/plan.yaml"
check "they vary" prints 0 'seed 1$' $predict --profile "$dir/runs.db" "$dir/plan.yaml"
check "a run by its number" complains 0 'times from run 5' $predict --profile "$dir/runs.db:5" --driver clock "$dir/ranks.yaml"
check "more ranks than measured" exits 0 $predict --profile "$dir/runs.db" --ranks 4 -n 20 "$dir/ranks.yaml"
check "also one after another" exits 0 $predict --profile "$dir/runs.db" --sweep ranks=1..3 -n 20 "$dir/ranks.yaml"
check "a task that was not measured keeps its time" complains 0 'not measured: the device part of Late on rank 0' \
    $predict --profile "$dir/runs.db" "$dir/more.yaml"
check "--quiet does not say it" $predict --quiet --profile "$dir/runs.db" "$dir/more.yaml"
check "jitter is measured" complains 2 'found --profile together with --jitter' \
    $predict --profile "$dir/runs.db" --jitter '*=exponential' "$dir/plan.yaml"

# ---- the cores of the run's machine --------------------------------------------------------------

# Work without a time: it is computed, and shares the cores.
cat >"$dir/computed.yaml" <<'PLAN'
swplan: 1
name: computed
schedule:
  Copy: {stage: 0, stream: memcpy, work: {copy: h2d, bytes: 256KiB}}
  Work: {stage: 1, work: {gemm: {m: 64, n: 64, k: 64}}}
  Rest: {stage: 1, stream: rest, time: 100us}
PLAN
count=$(unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc)
[ "$count" = 1 ] && ending=" of the run's machine carries" || ending="s of the run's machine carry"
check "work that computes, serial" run --serial --db "$dir/cores.db" "$dir/computed.yaml"
check "and pipelined" run --db "$dir/cores.db" "$dir/computed.yaml"
check "the cores are those of the machine" prints 0 "^      $count core$ending the work of all ranks$" \
    $compare "$dir/cores.db"
check "... as JSON" prints 0 "\"cores\":$count,\"measured_ns\"" $compare --json "$dir/cores.db"
check "others can be asked for" prints 0 '^      1 core carries the work of all ranks$' $compare --cores=1 "$dir/cores.db"
check "... not for two runs" complains 2 'found --cores, but neither of two runs' \
    $compare --cores=1 "$dir/cores.db:1" "$dir/cores.db:2"
check "predict takes them from there" complains 0 "note: $count core$ending the work of all ranks" \
    $predict --profile "$dir/cores.db" "$dir/computed.yaml"
check "... and has them" prints 0 "\"cores\":$count," $predict --json --driver clock --profile "$dir/cores.db" "$dir/computed.yaml"
check "... unless it is told others" prints 0 '"cores":7,' \
    $predict --json --driver clock --cores=7 --profile "$dir/cores.db" "$dir/computed.yaml"
check "tune writes them down" prints 0 "^machine: {cores: $count}\$" \
    "$SWSIM" tune -q --budget=1 -o - --profile "$dir/cores.db" "$dir/computed.yaml"
check "... and that a task slept" found 'shares: {core: 0}' "$dir/out"
check "what sleeps shares none" prints 0 '"cores":null,"measured_ns"' $compare --json --run 1 "$dir/runs.db"
sed 's/^name:.*/name: apart/; 2s/$/\nranks: 2/' "$dir/computed.yaml" >"$dir/apart.yaml"
if [ "$count" = "$(getconf _NPROCESSORS_ONLN)" ]; then
    check "processes, serial" run --processes --serial --db "$dir/apart.db" "$dir/apart.yaml"
    check "... share the cores of the machine" complains 0 "note: $count core$ending the work of all ranks" \
        $predict --profile "$dir/apart.db" "$dir/apart.yaml"
else
    skip "processes that may not use all cores do not know which the others use"
fi
if command -v taskset >/dev/null && [ "$count" -gt 1 ]; then
    first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
    check "a run that is bound to a core" exits 0 taskset -c "$first" "$SWRUN" -q -n 12 --db "$dir/cores.db" "$dir/computed.yaml"
    check "... is predicted with one" prints 0 "^      1 core of the run's machine carries" $compare --run 3 "$dir/cores.db"
    check "processes that are bound" exits 0 taskset -c "$first" "$SWRUN" -q -n 12 --processes --serial --db "$dir/bound.db" \
        "$dir/apart.yaml"
    check "... do not know which cores the others have" prints 0 '"cores":null,' \
        $predict --json --driver clock --profile "$dir/bound.db" "$dir/apart.yaml"
    check "two ranks, serial, on one core" exits 0 taskset -c "$first" "$SWRUN" -q -n 12 --serial --db "$dir/bound.db" \
        "$dir/apart.yaml"
    check "... whose times have waits for it" complains 0 'note: 2 ranks shared it in the serial run already' \
        $predict --profile "$dir/bound.db" "$dir/apart.yaml"
else
    skip "taskset binds a run to one of several cores, and one of them is not here"
fi

# ---- the picture of a measured run ---------------------------------------------------------------

check "a measured run is drawn" exits 0 "$SWSIM" render --run 1 --all -o "$dir/run.svg" "$dir/runs.db"
check "with what its streams lacked" grep -q 'waits for period clock; rank 0 stream memcpy' "$dir/run.svg"
# waits_in_some_iteration WORDS: on a busy machine an iteration may take so long that short waits in it are too narrow to be drawn.
waits_in_some_iteration()
{
    for iteration in 2 3 4 5 6 7 8 9; do
        exits 0 "$SWSIM" render --run 1 --iterations="$iteration" -o "$dir/one.svg" "$dir/runs.db" || return
        grep -q "$1" "$dir/one.svg" && return
    done
    false
}
check "also what the device did not log" waits_in_some_iteration 'waits for host launch.*; rank 0 stream back'
check "a serial run is drawn as well" exits 0 "$SWSIM" render --run 2 -o "$dir/run.svg" "$dir/runs.db"
check "and one without steps" exits 0 "$SWSIM" render --run 6 -o "$dir/run.svg" "$dir/runs.db"

# ---- what is wrong -------------------------------------------------------------------------------

check "no such run" complains 3 'run 9 is no finished, measured run' $compare --run 9 "$dir/runs.db"
check "another plan" complains 3 'found no finished, measured run with this plan' \
    $compare "$dir/runs.db" "$dir/another.yaml"
check "an edited plan is another" complains 3 'with this plan' $compare "$dir/runs.db" "$dir/edited.yaml"
check "no profile of another plan" complains 3 'no finished serial run of another' \
    $predict --profile "$dir/runs.db" "$dir/another.yaml"
check "no profile in a run that is not there" complains 3 'no run 77' $predict --profile "$dir/runs.db:77" "$dir/plan.yaml"
check "no profile for a plan without tasks" complains 3 'was not imported from a trace' \
    $predict --profile "$dir/runs.db:2" "$dir/threads.yaml"
check "a simulated run is not measured" exits 0 $predict -n 20 --driver clock --db "$dir/simulated.db" "$dir/plan.yaml"
check "so there is nothing to compare" complains 3 'found no finished, measured run' $compare "$dir/simulated.db"
check "one iteration" run -n 1 --db "$dir/runs.db" "$dir/plan.yaml"
check "has no time between two" prints 0 '^no error' $compare --quiet --run 7 "$dir/runs.db"
check "no limit" complains 2 'expected a share' $compare --limit-error few "$dir/runs.db"
check "no store" exits 2 $compare "$dir/none.db"
cp "$dir/plan.yaml" "$dir/plan.db"
check "no store either" complains 3 'plan.db' $compare "$dir/plan.db"
check "no profile in it" complains 3 'plan.db' $predict --profile "$dir/plan.db" "$dir/plan.yaml"

if command -v python3 >/dev/null; then
    # damaged SQL [STORE]: the store after something else has been at it.
    damaged()
    {
        cp "$dir/${2:-runs.db}" "$dir/damaged.db"
        python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(sys.argv[2])
db.commit()' "$dir/damaged.db" "$1"
    }
    damaged "UPDATE step_word SET agent = 'nobody' WHERE run = 1 AND number = 5"
    check "a step of nobody" complains 3 'run 1: the plan cannot take its step' $compare "$dir/damaged.db"
    damaged "UPDATE step_block SET numbers = json_remove(numbers, '\$[3]') WHERE run = 1 AND seq = 0"
    check "a step is missing" complains 3 'run 1: the plan cannot take its step' $compare "$dir/damaged.db"
    damaged "UPDATE run SET plan_text = 'swplan: 1' WHERE plan_name = 'three_streams'"
    check "no plan" complains 3 'plan of run 1' $compare "$dir/damaged.db"
    damaged "UPDATE span SET end_ns = start_ns + 200 * (end_ns - start_ns) WHERE run = 2 AND kind = 'device'"
    check "tasks that were slower in the serial run are told" \
        prints 0 'tasks took 0\.[0-9]* times as long as in serial run 2' $compare --run 1 "$dir/damaged.db"
    damaged "DELETE FROM iteration WHERE run = 1 AND number = 3"
    check "an iteration is missing" complains 3 'run 1: found iteration 4' $compare "$dir/damaged.db"
    damaged "UPDATE stat SET value = -3 WHERE key = 'depth'"
    check "a depth that cannot be" complains 3 'found depth -3' $compare "$dir/damaged.db"
    damaged "UPDATE stat SET value = 0 WHERE key = 'cores' AND run = 2" cores.db
    check "no cores" complains 3 'run 2: found 0 cores, expected 1 to 65536' $compare --run 2 "$dir/damaged.db"
    damaged "UPDATE run SET ranks = 0"
    check "no ranks" complains 3 'ranks' $compare "$dir/damaged.db"
    damaged "UPDATE run SET iterations_wanted = -1"
    check "no number of iterations" complains 3 'found -1 iterations' $compare "$dir/damaged.db"
    damaged "UPDATE span SET kind = 'nothing' WHERE run = 2"
    check "spans of no kind" complains 3 'damaged' $compare "$dir/damaged.db"
    damaged "DELETE FROM span WHERE run = 2"
    check "a serial run without spans" complains 3 'run 2 measured none of the tasks' $compare "$dir/damaged.db"
    damaged "DELETE FROM span WHERE run = 2 AND task = 'Work'"
    check "a task was not measured" complains 0 'not measured: the device part of Work' \
        $predict --profile "$dir/damaged.db" "$dir/plan.yaml"
    check "and that is counted" prints 0 '"parts_not_measured":1' $compare --json "$dir/damaged.db"
    damaged "DELETE FROM step_block WHERE run = 2"
    check "a serial run without steps will do" prints 0 'of 5 runs$' $compare "$dir/damaged.db"
    damaged "UPDATE run SET finished = 2 WHERE id = 2"
    check "a serial run that was interrupted" complains 3 'no serial run of this plan' $compare --run 1 "$dir/damaged.db"
else
    skip "python3 damages stores, and is not here"
fi

# ---- imports --------------------------------------------------------------------------------------

check "an import as host programs" exits 0 "$SWSIM" import -q --db="$dir/imports.db" -o "$dir/host.yaml" \
    "$srcdir/plans/traces/recommender"
check "... is compared with its own plan's prediction" prints 0 ' none .* [0-9.]* ms *[0-9.]* ms *[+-]0\.[0-9]%' \
    $compare --limit-error=1% "$dir/imports.db"
check "... whose idle causes were not measured so" found 'host launch  *-  ' "$dir/out"
check "... as JSON" prints 0 '"serial_run":1,.*"driver":"none",.*"stall":{"dependence":null,' $compare --json "$dir/imports.db"
check "... and by its plan" exits 0 $compare "$dir/imports.db" "$dir/host.yaml"

done_testing
