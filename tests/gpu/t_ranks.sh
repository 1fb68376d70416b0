#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks as processes: the same results as in one process, one trace store, and an end within the time
# limit whoever dies, stops or is interrupted. Nothing is left behind: no process, no socket, no file.
. "${srcdir:-.}/tests/tap.sh"
. "$srcdir/tests/run_plans.sh"

quick_plan 3 6KiB >"$dir/quick.yaml"
stuck_plan >"$dir/stuck.yaml"
mismatch_plan >"$dir/mismatch.yaml"
cat >"$dir/unfit.yaml" <<'PLAN'
swplan: 1
name: unfit
comms: {pair: [0, 1]}
threads:
  r0.main: [{group: [{send: x, peer: 1}], comm: pair, stream: s}]
  r1.main: [{group: [{recv: y, peer: 0}], comm: pair, stream: s}]
PLAN
cat >"$dir/shared.yaml" <<'PLAN'
swplan: 1
name: shared
queues: {go: 1}
threads:
  r0.main: [{put: go}]
  r1.main: [{get: go}]
PLAN

# start ARGUMENT...: swrun with three ranks that would run long, in the background. Sets pid; rank0,
# rank1 and rank2 when all are at work.
start()
{
    "$SWRUN" --processes -n 50000000 "$@" "$dir/quick.yaml" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    wait_until 200 are_at_work $pid && sleep 0.5
    set -- $(children $pid | sort -n)
    rank0=${1:-0} rank1=${2:-0} rank2=${3:-0}
}
# await: waits up to 20 s for swrun to end, and says in `code` and `left` how, and who of its ranks is still
# there. Not within a check, which is a process of its own.
await()
{
    ends_within 20 $pid
    left=
    for rank in $rank0 $rank1 $rank2; do
        runs "$rank" && left="$left $rank" && kill -s KILL "$rank"
    done
}
# ended CODE: it ended with this code, and its ranks with it.
ended()
{
    test -z "$left" || { echo "still there:$left"; cat "$dir/out" "$dir/err"; false; } || return
    test "$code" -eq "$1" || { echo "exit code $code, expected $1"; cat "$dir/out" "$dir/err"; false; }
}

good='"legal":true,"results_match_serial":true'
check "three processes: legal and right" prints 0 "$good" "$SWRUN" --processes -n 20 --json "$dir/quick.yaml"
check "they are processes" grep -q '"device_name":"host: processes' "$dir/out"
check "five of them" prints 0 "$good" "$SWRUN" --processes -n 10 --ranks 5 --json "$dir/quick.yaml"
check "one is enough" prints 0 "$good" "$SWRUN" --processes -n 10 --ranks 1 --json "$dir/quick.yaml"
check "data-flow as well" prints 0 "$good" "$SWRUN" --processes --driver dataflow -n 10 --json "$dir/quick.yaml"
check "both drivers" prints 0 'dataflow driver' "$SWRUN" --processes --driver both -n 5 "$dir/quick.yaml"
check "serially" prints 0 'legal  *yes' "$SWRUN" --processes --serial -n 5 "$dir/quick.yaml"
check "a pipeline of TorchRec" prints 0 "$good" \
    "$SWRUN" --processes -n 8 --json "$srcdir/plans/reference/sparse_dist.yaml"
check "pipeline-parallel ranks, which send and receive" prints 0 '"legal":true' \
    "$SWRUN" --processes --json "$srcdir/plans/examples/one_f_one_b.yaml"
check "without checks" prints 0 '"legal":null,"results_match_serial":null' \
    "$SWRUN" --processes --no-check -n 5 --json "$dir/quick.yaml"
check "one or the other" complains 2 'found --processes together with --one-process' "$SWRUN" --processes --one-process "$dir/quick.yaml"
check "what ranks share keeps them in one process" complains 2 "'go' is shared by ranks 0 and 1" \
    "$SWRUN" --processes "$dir/shared.yaml"
cat >"$dir/first.yaml" <<'PLAN'
swplan: 1
name: first
ranks: 2
machine: {first_use_blocks: true}
schedule:
  Sum: {stage: 0, work: {collective: all_reduce, comm: world, bytes: 1KiB}, time: 1us}
PLAN
check "a first use that blocks, too" complains 2 "'first collective of world by rank 1' is shared" \
    "$SWRUN" --processes -n 3 "$dir/first.yaml"
check "... which threads imitate" prints 0 "$good" "$SWRUN" --one-process -n 3 --json "$dir/first.yaml"
check "a bad plan is said once" sh -c '"$1" --processes /dev/null 2>"$2"; test $? -eq 3 && test "$(wc -l <"$2")" -ge 1' \
    sh "$SWRUN" "$dir/err"

check "one store has all ranks" prints 0 '"run":1' "$SWRUN" --processes -n 10 --json --db "$dir/a.db" "$dir/quick.yaml"
if [ -x "$SWSIM" ]; then
    check "and can be drawn" exits 0 "$SWSIM" render "$dir/a.db" -o "$dir/a.dot"
    check "with the third rank" grep -q 'rank 2' "$dir/a.dot"
else
    skip "no swsim here to look into the store"
fi

check "a hang is found" complains 1 'the run hangs' "$SWRUN" --processes --timeout=300ms "$dir/stuck.yaml"
check "who waits for whom, in the words of the machine" said 'rank 1 stream s is in send y to rank 0'
check "a mismatch fails all" complains 1 'mismatch' "$SWRUN" --processes "$dir/mismatch.yaml"
check "with both tags" said "rank 1 has all_reduce 'y'\|rank 0 has all_reduce 'x'"
check "so does a message that does not fit" complains 1 "sends 'x'.*receives 'y'" "$SWRUN" --processes "$dir/unfit.yaml"

start --timeout 5s
kill -s KILL $rank2
await
check "one rank is killed: all end" ended 1
check "which one, and by what" said 'rank 2: its process was killed by signal 9'
# A rank that was told of the end of a collective may be one ahead of the other: then it waits for both.
check "rank 0 waited for it" said "rank 0, stream main: all_to_all 'Meet' on communicator dp waits for.* rank \(1, \)\?2 "
check "rank 1, too" said "rank 1, stream main: all_to_all 'Meet' on communicator dp waits for.* rank \(0, \)\?2 "
check "and every report names what is waited for" sh -c '! grep "waits for  *at position" "$1/out" "$1/err"' sh "$dir"
check "what could not be checked is said" said 'not replayed'

start --timeout 5s --db "$dir/killed.db"
kill -s KILL $rank0
await
check "rank 0 is none but one of them" ended 1
check "the launcher names it" said 'rank 0: its process was killed by signal 9'
check "so does a peer" said 'rank 0 is gone'

start --timeout 500ms
kill -s STOP $rank1
await
check "one rank stops: the others report a hang" ended 1
check "which waits for it" said "rank 0, stream main: all_to_all 'Meet' on communicator dp waits for.* rank 1"
check "of which nothing was heard" said 'rank 1: its process has not been heard of'
check "and which is ended" said 'rank 1: its process did not end, and was killed'

start
kill -s INT $pid
await
check "SIGINT: all ranks end after the same iteration" ended 1
check "and say so" said 'what was in flight has finished'
check "which is legal" said 'legal  *yes'

"$SWRUN" --processes --timeout=20s "$dir/stuck.yaml" >"$dir/out" 2>"$dir/err" </dev/null &
pid=$! rank0=0 rank1=0 rank2=0
wait_until 200 catches $pid INT && sleep 0.5
kill -s INT $pid
sleep 0.2
kill -s INT $pid
await
check "a second one stops a stuck run at once" ended 1

start
kill -s STOP $rank1
kill -s KILL $pid
sleep 0.3
await
check "nobody outlives the launcher" ended 137

# As mpirun starts them: each process is told its number.
started_by()
{
    "$SWRUN" -n 10 --json --rendezvous "t_ranks.$$" "$dir/quick.yaml" >"$dir/out.$1" 2>"$dir/err.$1" </dev/null
    echo $? >"$dir/code.$1"
}
for rank in 1 2 0; do
    (PMI_RANK=$rank PMI_SIZE=3 started_by $rank) &
    eval "rank$rank=$!"
done
wait $rank0 $rank1 $rank2
check "ranks that others started meet" grep -q "$good" "$dir/out.0"
check "and only rank 0 speaks" test ! -s "$dir/out.1" -a ! -s "$dir/err.1" -a ! -s "$dir/out.2"
check "all end well" sh -c 'cat "$1"/code.? | tr -d "\n" | grep -qx 000' sh "$dir"
check "no socket is left" sh -c '! grep "t_ranks.$1" /proc/net/unix' sh $$
check "another number of ranks than processes" \
    sh -c 'PMI_RANK=0 PMI_SIZE=2 "$1" --ranks 3 -n 2 "$2" 2>&1 | grep -q "3 ranks, but 2 processes"' \
    sh "$SWRUN" "$dir/quick.yaml"
check "ranks that never come are not waited for, and named" \
    complains 1 'did not come together in time: ranks 1-2 are missing' \
    env PMI_RANK=0 PMI_SIZE=3 "$SWRUN" -n 10 --timeout 200ms --rendezvous "t_ranks.$$" "$dir/quick.yaml"
check "nor is a rank 0 that never comes" complains 4 'rank 0 did not open the rendezvous' \
    timeout 30 env PMI_RANK=1 PMI_SIZE=3 "$SWRUN" -n 10 --timeout 200ms --rendezvous "t_ranks.$$" "$dir/quick.yaml"

# Rank 0 prints the messages of all. Where it is killed, the others say so themselves.
for rank in 1 2 0; do
    (PMI_RANK=$rank PMI_SIZE=3 exec "$SWRUN" -n 100000 --timeout 5s --rendezvous "t_ranks.k$$" "$dir/quick.yaml" \
        >"$dir/out.$rank" 2>"$dir/err.$rank" </dev/null) &
    eval "rank$rank=$!"
done
sleep 2
kill -s KILL $rank0
wait $rank1 $rank2
check "rank 0 is killed: the others end, and name it" \
    sh -c 'grep "rank 0.* is gone" "$1/err.1" && grep "rank 0.* is gone" "$1/err.2" && ! grep defect "$1"/err.?' sh "$dir"

# As few descriptors as the run itself needs: the launcher asks the system for no more places than those.
few_descriptors()
(
    ulimit -n 16
    timeout 20 "$SWRUN" -n 2 --processes "$srcdir/tests/faults/ranks.yaml"
)
check "ranks meet with few descriptors" exits 0 few_descriptors

# inject.so makes the n-th call of a kind fail, of all processes together. A rank that fails while the ranks meet or open
# their buffers ends the run: the others need not be killed two seconds later, or after the time limit of 30 s.
none_is_called_illegal() { none_is_killed "$@" && ! grep -q 'not legal' "$dir/errs"; }
none_is_killed()
{
    : >"$dir/errs"
    for fault in "$@"; do
        LD_PRELOAD=$PWD/tests/faults/inject.so SWSIM_INJECT=$fault SWSIM_INJECT_COUNTS="$dir/counts" \
            timeout 25 "$SWRUN" -n 3 --processes "$srcdir/tests/faults/ranks.yaml" >"$dir/out" 2>"$dir/err"
        code=$?
        cat "$dir/err" >>"$dir/errs"
        test $code -le 2 && ! grep 'did not end' "$dir/err" || { echo "# $fault: exit code $code" >&2; return 1; }
        dd if=/dev/zero of="$dir/counts" bs=88 count=1 2>/dev/null
    done
}
if [ -n "${INSTRUMENT_FLAGS-}" ] || [ ! -e "$PWD/tests/faults/inject.so" ]; then
    skip "a sanitizer's allocator cannot be made to fail: faults of one rank"
else
    dd if=/dev/zero of="$dir/counts" bs=88 count=1 2>/dev/null
    check "a rank that cannot meet the others ends them" none_is_killed $(seq -f 'socket:%.0f' 1 40)
    check "so does a launcher whose sockets fail for good" none_is_killed $(seq -f 'socket:%.0f+' 2 3 44)
    check "a launcher without memory ends its ranks" none_is_killed $(seq -f 'memory:%.0f+' 450 9 640)
    # Steps that a rank cannot note for want of memory are missing; a replay without them would be no verdict.
    check "steps that are lost make no run illegal" none_is_called_illegal $(seq -f 'memory:%.0f' 780 2 850) $(seq -f 'socket:%.0f' 41 60)
    check "a rank without memory ends the others" none_is_killed $(seq -f 'map:%.0f' 50 5 115)
fi
done_testing
