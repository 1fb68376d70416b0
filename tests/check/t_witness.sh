#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counterexamples in files: as runs of a trace store that are listed, drawn and, on the host device, made
# to happen: what hangs in the checker really hangs, and where it says; what it forbids really happens.
. "${srcdir:-.}/tests/tap.sh"

plans=$srcdir/plans
db=$dir/all.db

# Violated plans: a plan, its driver, the property.
cat >"$dir/wanted" <<'LIST'
lmcache_gil_callback_broken none deadlock
megatron_barrier_before_recv_broken none deadlock
nccl_one_slot_opposite_order_broken none deadlock
nccl_one_slot_same_order_broken none deadlock
nccl_send_send_broken none deadlock
nccl_two_launch_threads_broken none deadlock
pytorch_deferred_recv_broken none deadlock
torchcomms_lazy_load_broken none deadlock
sglang_wait_before_record_broken none race
torchrec_lookup_without_wait_broken none race
scenario1_broken clock deadlock
scenario2_broken clock deadlock
scenario3_broken clock deadlock
pqra clock deadlock
modes_d_dep clock deadlock
ordered_pair_one_thread dataflow deadlock
modes_b_race clock race
modes_b_race dataflow race
batches_broken clock drain
batches_broken dataflow drain
forget_done_broken dataflow deadlock
num_slots_broken clock deadlock
num_slots_broken clock slot
num_slots_broken dataflow deadlock
num_slots_broken dataflow slot
max_in_flight_broken clock bound
max_in_flight_broken dataflow bound
slot_reset_broken clock slot
ticket_at_broken dataflow mismatch
LIST

# The folder of a plan.
path_of()
{
    ls "$plans"/*/"$1".yaml
}

paths=$(cut -d ' ' -f 1 "$dir/wanted" | uniq | while read -r name; do path_of "$name"; done)
check "counterexamples go to a store" exits 1 "$SWSIM" verify --quiet --witness="$db" $paths
"$SWSIM" runs --json "$db" | tr '{' '\n' |
    sed -n 's/.*"plan":"\([^"]*\)","kind":"witness","driver":"\([^"]*\)".*"note":"\([a-z]*\):.*/\1 \2 \3/p' >"$dir/stored"
check "all of them, one run a violated property" diff "$dir/wanted" "$dir/stored"
check "'runs' counts their steps and says what is wrong" \
    prints 0 '6 steps .* nccl_send_send_broken, deadlock: no step is possible' "$SWSIM" runs "$db"

# ---- pictures -------------------------------------------------------------------------------------

draws()
{
    exits 0 "$SWSIM" render --run="$1" --output="$dir/picture.$2" "$db"
}
well_formed()
{
    draws "$1" svg || return
    if command -v xmllint >/dev/null; then
        xmllint --noout "$dir/picture.svg"
    else
        grep -q '</svg>' "$dir/picture.svg"
    fi
}
holds()
{
    grep -qF -e "$1" "$dir/picture.svg" || { head -c 3000 "$dir/picture.svg"; return 1; }
}
count=$(wc -l <"$dir/wanted")
run=0
while [ $run -lt "$count" ]; do
    run=$((run + 1))
    check "the picture of witness $run, $(sed -n "${run}p" "$dir/wanted")" well_formed $run
done
check "the picture of a hang" well_formed 4
check "says that it shows steps" holds 'steps, not time'
check "what is violated" holds 'deadlock: no step is possible and work remains'
check "that no agent can go on" holds 'no agent can go on'
check "and goes round in red" holds 'stroke="#c0392b" stroke-width="1.4"'
check "a picture as DOT" draws 4 dot
check "a witness is drawn as a whole" complains 2 'as a whole' "$SWSIM" render --run=11 --from=0 -o "$dir/x.svg" "$db"
check "the same picture without a store" exits 1 "$SWSIM" verify --quiet --witness="$dir/direct.svg" \
    "$(path_of nccl_one_slot_same_order_broken)"
check "is the same picture" cmp "$dir/direct.svg" "$dir/picture.svg"

# ---- what really happens --------------------------------------------------------------------------
#
# A hang takes as long as the time limit: a handful at a time then. Other runs go on to their
# end, however slow the machine.

replay()
{
    limit=2s
    case $2 in race | bound | mismatch) limit=60s ;; esac
    "$SWRUN" --replay="$db" --run="$1" --timeout=$limit --json >"$dir/out.$1" 2>"$dir/err.$1"
    echo $? >"$dir/code.$1"
}
run=0
while read -r plan driver property; do
    run=$((run + 1))
    replay $run "$property" &
    [ $((run % 8)) -ne 0 ] || wait
done <"$dir/wanted"
wait

# RUN PROPERTY: the watchdog finds a hang, and it is the witness's; other violations are in the trace,
# and the device reports a mismatch itself. Behind the witness of a slot hazard the run goes on freely,
# and may hang then.
happened()
{
    hangs=no
    grep -q "\"agent\"" "$dir/out.$1" && hangs=yes
    case $hangs-$2 in
    yes-slot) what='(happened|same_hang)' ;;
    yes-* | *-deadlock | *-drain) what=same_hang ;;
    *) what=happened ;;
    esac
    test "$(cat "$dir/code.$1")" -eq 0 && grep -qE "\"outcome\":\"$what\",\"confirmed\":true" "$dir/out.$1" &&
        case $what-$2 in
        *same_hang*-*) grep -q 'note: the run hangs: no progress for 2' "$dir/err.$1" ;;
        happened-mismatch) grep -q 'note: collective mismatch' "$dir/err.$1" ;;
        *) ! grep -q error "$dir/err.$1" ;;
        esac && return
    cat "$dir/code.$1" "$dir/out.$1" "$dir/err.$1"
    false
}
run=0
while read -r plan driver property; do
    run=$((run + 1))
    check "$plan, $driver: the $property really happens" happened $run "$property"
done <"$dir/wanted"
check "a race gives other results" grep -q '"results_match_serial":false' "$dir/out.17"

check "in words" prints 0 'hangs as the witness says' "$SWRUN" --replay="$db" --run=4 --timeout=300ms
check "with who waits for whom" grep -q '\* *rank 0 stream dp_comm *is in grads of communicator dp' "$dir/out"
check "and the device's own words" grep -q 'waits for 1 residency slot, 0 are free' "$dir/err"
check "a race in words" prints 0 'really happened, and the trace shows' "$SWRUN" --replay="$db" --run=9
check "the latest witness is the default" prints 0 'witness 29 of' "$SWRUN" --replay="$db"
check "the trace of a replay can be stored" exits 0 "$SWRUN" --replay="$db" --run=9 --db="$dir/trace.db"
check "and is a run like others" prints 0 'measured .* (host\(, interrupted\)\?)$' "$SWSIM" runs "$dir/trace.db"

# The second interrupt ends it at once, also while somebody waits for his turn.
ends()
{
    "$SWRUN" --replay="$db" --run=19 --timeout=60s >"$dir/out" 2>"$dir/err" &
    pid=$!
    wait_until 200 catches $pid INT && sleep 0.4
    kill -s INT $pid
    sleep 0.1
    kill -s INT $pid
    ends_within 30 $pid
    test $code -eq 1 && grep -q interrupted "$dir/out" && return
    echo "exit code $code"
    cat "$dir/out" "$dir/err"
    false
}
check "a replay can be interrupted" ends

# ---- what cannot be -------------------------------------------------------------------------------

check "a plan with a knob that the device does not imitate" \
    exits 1 "$SWSIM" verify --quiet --witness="$dir/eager.db" "$plans/bugs/torchrec_eager_cliff_broken.yaml"
check "is refused, and the knob is named" \
    complains 2 'machine.eager_messages, which the host device does not imitate' "$SWRUN" --replay="$dir/eager.db"
check "a plan that does not survive a fault" \
    exits 1 "$SWSIM" verify --quiet --witness="$dir/faults.db" "$plans/faults/task_none.yaml"
check "can be drawn" exits 0 "$SWSIM" render --output="$dir/faults.svg" "$dir/faults.db"
check "but not be made to happen" complains 2 "witness of 'faults' cannot be replayed" \
    "$SWRUN" --replay="$dir/faults.db"
check "a store without a witness" complains 3 'holds no witness' "$SWRUN" --replay="$dir/trace.db"
check "a run that is no witness" complains 3 'is not a witness' "$SWRUN" --replay="$dir/trace.db" --run=1
check "a run that is not there" complains 3 'has no run 99' "$SWRUN" --replay="$db" --run=99
check "a store that is not there" complains 2 'cannot open' "$SWRUN" --replay="$dir/none.db"
check "a text that is no store" complains 3 'not a swsim trace store' "$SWRUN" --replay="$dir/wanted"
head -c 20000 "$db" >"$dir/cut.db"
check "half a store" complains 3 'damaged' "$SWRUN" --replay="$dir/cut.db"
check "a plan beside the witness's" complains 2 'but a witness contains its plan' \
    "$SWRUN" --replay="$db" "$(path_of pqra)"
check "a driver beside the witness's" complains 2 "witness's own" "$SWRUN" --replay="$db" --driver=clock
check "a run of no store" complains 2 'needs a store' "$SWRUN" --run=1 "$(path_of pqra)"
check "another device" complains 2 'on the host device only' "$SWRUN" --replay="$db" --device=cuda

# Another program may have been at the store.
if command -v sqlite3 >/dev/null; then
    changed()
    {
        cp "$db" "$dir/changed.db" && sqlite3 "$dir/changed.db" "$1"
    }
    changed "UPDATE move SET agent = 2 WHERE run = 4 AND seq = 0"
    check "steps that are no run of the plan" complains 3 'no run of .* step' \
        "$SWRUN" --replay="$dir/changed.db" --run=4
    changed "UPDATE run SET plan_text = 'swplan: 1' WHERE id = 4"
    check "a plan that is none" complains 3 'changed.db, run 4' "$SWRUN" --replay="$dir/changed.db" --run=4
    changed "UPDATE blocked SET waits_for = 'waits for spring' WHERE run = 4 AND seq = 1"
    check "a hang that is not the witness's is told apart" prints 1 'hangs, but NOT as the witness says' \
        "$SWRUN" --replay="$dir/changed.db" --run=4 --timeout=300ms
    check "and is an error" grep -q 'error: .* did not do what witness 4 says' "$dir/err"
    # Rank 1 starts the other collective: the one that rank 0 is in.
    changed "UPDATE move SET agent = agent - 1 WHERE run = 4 AND seq = 5"
    check "a run that should hang and does not" prints 1 'DOES NOT HANG, but the witness says so' \
        "$SWRUN" --replay="$dir/changed.db" --run=4
    check "and that is an error, too" grep -q 'error: .* did not do what witness 4 says' "$dir/err"
    changed "UPDATE witness SET property = 'lifetime' WHERE run = 9"
    check "a violation that is not in the trace" prints 1 'DOES NOT show' "$SWRUN" --replay="$dir/changed.db" --run=9
else
    skip "no sqlite3 here to change a store with"
fi
# A race: both accesses are named, and an arrow leads from one to the other.
check "a race names both accesses" says "Forward(1) of stream compute reads without an order" \
    "$SWSIM" verify --no-fix --driver=clock --witness="$dir/race.dot" "${srcdir:-.}/plans/deadlocks/modes_b_race.yaml"
check "and its picture has one red arrow" test "$(grep -c -- '->' "$dir/race.dot")" -eq 1

cat >"$dir/fields.yaml" <<'PLAN'
swplan: 1
comms: {A: [0, 1]}
threads:
  r0.main:
    - {launch: a, stream: t}
    - {launch: b, stream: t}
    - {record: e, stream: t}
    - {wait: e, stream: s}
    - {collective: x, comm: A, stream: s, bytes: 1MiB}
  r1.main:
    - {collective: y, comm: A, stream: s, bytes: 2MiB, op: all_gather}
PLAN
check "a mismatch names the fields that differ" \
    says "they differ in tag (y, x), kind (all_gather, all_reduce), bytes (2.00 MiB, 1.00 MiB)" \
    "$SWSIM" verify --no-fix "$dir/fields.yaml"
check "pushes in a row are one line" \
    said "1-5  rank 0 thread main  pushes to stream t: a, b, record event e; to stream s: wait for event e, x"

# Long stories begin where all was well for the last time, and the end is whole; --full and JSON have every step.
long=$plans/reality/groups_residency_broken.yaml
"$SWSIM" verify --no-fix "$long" >"$dir/out"
check "a long story is cut" sh -c "grep -qE '^ +1-99 +earlier steps, which violate nothing; --full shows all\$' '$dir/out'"
check "... its end is not" sh -c "sed -n '/violated/,\$p' '$dir/out' | grep -B 10 '^  blocked agents' | grep -cE '^ +[0-9-]+  [a-z]' | grep -qx 10"
check "--full tells each step" sh -c "'$SWSIM' verify --no-fix --full '$long' | sed -n '/violated/,\$p' >'$dir/out'
    grep -cE '^ +[0-9]+  [a-z]' '$dir/out' | grep -qx 130 && ! grep -q 'the same' '$dir/out'"
check "JSON has each step" sh -c "'$SWSIM' verify --no-fix --json '$long' | grep -o '\"step\":[0-9]*' | sort -u | wc -l | grep -qx 130"

# Its picture: a column for the stretch; the accesses of a race are in none, and an arrow leads from one to the other.
"$SWSIM" verify -q --no-fix --witness="$dir/long.db" "$long" >"$dir/out"
cat >"$dir/race.yaml" <<'PLAN'
swplan: 1
name: race
buffers: {x: {scope: shared}, y: {scope: shared}}
threads:
  r0.main:
    - {launch: first, stream: t, writes: [x]}
    - {repeat: 20, body: [{launch: a, stream: s, writes: [y]}, {launch: b, stream: s, reads: [y]}]}
    - {launch: last, stream: s, reads: [x]}
PLAN
"$SWSIM" verify -q --no-fix --witness="$dir/race.db" "$dir/race.yaml" >"$dir/out"
if "$SWSIM" render -o "$dir/long.svg" "$dir/long.db" 2>"$dir/err"; then
    check "a long storyboard is folded" sh -c "grep -qE '>21(-|&#45;)80<' '$dir/long.svg' && grep -q '>the same 20<' '$dir/long.svg' &&
        ! grep -q '>50<' '$dir/long.svg'"
    check "... its end is not" sh -c "for step in 121 122 123 124 125 126 127 128 129 130; do grep -q \">\$step<\" '$dir/long.svg' || exit 1; done"
    check "steps of one thread in a row are one column" sh -c "'$SWSIM' verify -q --no-fix --driver=clock \
        --witness='$dir/runs.svg' '$plans/knobs/batches_broken.yaml' >'$dir/out' || grep -qE '>5(-|&#45;)21<' '$dir/runs.svg' &&
        grep -q '>17 steps, the<' '$dir/runs.svg'"
    # Rank 0's row of memcpy is in both bands, rank 1's only in the second, where its copies are.
    check "a band has the rows in which something happens" sh -c "grep -c '>memcpy<' '$dir/runs.svg' | grep -qx 3"
    check "of what is still long the middle is left out" sh -c "'$SWSIM' verify -q --no-fix --witness='$dir/left.svg' \
        '$plans/reality/groups_reduce_broken.yaml' >'$dir/out' || grep -q 'steps left out' '$dir/left.svg' &&
        grep -q '>844<' '$dir/left.svg' && ! grep -q '>600<' '$dir/left.svg'"
    check "so is that of a long race" sh -c "'$SWSIM' render -o '$dir/race.svg' '$dir/race.db' && grep -q '>the same' '$dir/race.svg'"
    check "... with both accesses and the arrow" sh -c "grep -q '>43<' '$dir/race.svg' && grep -q '>124<' '$dir/race.svg' &&
        grep -q '<path[^>]*stroke=\"#c0392b\"' '$dir/race.svg'"
    # The culprit is red; the other two are as in a run's picture.
    cat >"$dir/toy.yaml" <<'PLAN'
swplan: 1
name: toy
driver: clock
schedule:
  CopyIn: {stage: 0, stream: memcpy, time: 1ms, writes: [ids]}
  Sort: {stage: 1, stream: sort, time: 1ms, reads: [ids], writes: [mine]}
  Train: {stage: 2, time: 1ms, reads: [mine]}
intra_iter_deps: [[Sort, CopyIn]]
PLAN
    color_of() # color_of FILE TASK: of the first box with this label
    {
        grep -B 1 ">$2 0<" "$1" | sed -n 's/.*<polygon fill="\([^"]*\)".*/\1/p' | head -n 1
    }
    "$SWSIM" verify -q --no-fix --witness="$dir/toy.svg" "$dir/toy.yaml" >"$dir/out"
    "$SWSIM" predict -q --iterations=4 --db="$dir/toy.db" "$dir/toy.yaml" >"$dir/out" 2>"$dir/err"
    "$SWSIM" render -o "$dir/run.svg" "$dir/toy.db"
    for task in CopyIn Sort; do
        check "$task has the colour of a run's picture" sh -c 'test -n "$1" && test "$1" = "$2"' sh \
            "$(color_of "$dir/toy.svg" $task)" "$(color_of "$dir/run.svg" $task)"
    done
fi

# Sixty-four ranks with 75 collectives, of which rank 37 lacks the last one: thousands of steps.
python3 - "$dir/long.yaml" <<'END'
import sys
calls = [f"  - {{collective: c{i}, comm: world, stream: s}}" for i in range(75)]
with open(sys.argv[1], "w") as file:
    file.write(f"swplan: 1\nname: long\ncomms: {{world: {list(range(64))}}}\nthreads:\n")
    for rank in range(64):
        file.write("\n".join([f"  r{rank}.main:"] + (calls[:-1] if rank == 37 else calls)) + "\n")
END
check "a story of thousands of steps is drawn" exits 1 "$SWSIM" verify -q --no-fix --witness="$dir/long.svg" "$dir/long.yaml"
check "... with its middle left out" found "steps left out" "$dir/long.svg"
check "... ranks that do the same once" found "rank 1, [0-9]* alike" "$dir/long.svg"
check "... and those that are blocked alike" found "and so 62 more ranks" "$dir/long.svg"

# What is wrong without any step: a message that nobody receives, more memory than there is.
cat >"$dir/lone.yaml" <<'PLAN'
swplan: 1
name: lone
programs:
  - [0F0, 0SEND_F0, 0F1, 0SEND_F1]
  - [1RECV_F0, 1F0, 1F1]
PLAN
cat >"$dir/large.yaml" <<'PLAN'
swplan: 1
name: large
machine: {memory: 1KiB}
buffers: {b: {bytes: 4KiB}}
threads:
  r0.main:
  - {launch: K, stream: s, writes: [b]}
PLAN
for file in lone.db lone.txt lone.json large.db large.txt large.json; do
    check "a violation without steps: $file" exits 1 "$SWSIM" verify -q --no-fix \
        --witness="$dir/$file" "$dir/${file%.*}.yaml"
done
check "... a message is in the store" prints 0 "message: 0SEND_F1" "$SWSIM" runs "$dir/lone.db"
check "... memory, too" prints 0 "holds 4096 bytes" "$SWSIM" runs "$dir/large.db"
check "... there is nothing to draw" complains 3 "the witness has no steps" \
    "$SWSIM" render -o "$dir/none.svg" "$dir/lone.db:1"

# An order that a serial run does not have; a rank that hangs without the other, which goes on freely and hangs as well.
cat >"$dir/order.yaml" <<'PLAN'
swplan: 1
name: order
driver: dataflow
max_depth: 2
buffers: {w: {scope: shared}}
schedule:
  T0: {stage: 0, stream: s0, thread_group: g0, time: 1us, writes: [w]}
  T1: {stage: 0, stream: s0, thread_group: g0, time: 1us, reads: [w]}
intra_iter_deps: [[T1, T0]]
PLAN
cat >"$dir/alone.yaml" <<'PLAN'
swplan: 1
name: alone
driver: clock
ranks: 2
schedule:
  T0: {stage: 1, thread_group: g, time: 1us}
  T1: {stage: 0, thread_group: g, time: 1us}
intra_iter_deps: [[T1, T0]]
PLAN
for case in "order serial 60s" "alone deadlock 2s"; do
    set -- $case
    check "a witness of $1" exits 1 "$SWSIM" verify -q --no-fix --property=$2 --witness="$dir/$1.db" "$dir/$1.yaml"
    check "... is of $2" prints 0 " $2: " "$SWSIM" runs "$dir/$1.db"
    check "... and happens" exits 0 "$SWRUN" -q --timeout=$3 --replay="$dir/$1.db"
done

done_testing
