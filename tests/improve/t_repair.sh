#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Repairs through the front door: the fix an expert would make of a dozen broken plans, written with
# --fix and proved, the JSON, the options, honest failure.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

# silent TEXT COMMAND...: its output does not have the text.
silent()
{
    text=$1
    shift
    "$@" >"$dir/out" 2>&1
    ! grep -q -- "$text" "$dir/out" || { cat "$dir/out"; echo "not expected: $text"; return 1; }
}

# fixed PLAN TEXT [TITLE]: the fix has the text, and what --fix writes is proved and expects so.
fixed()
{
    check "$1: $2" says "^  ${3:-Fix} (proved.*): .*$2" "$SWSIM" verify --fix="$dir/fixed.yaml" "$plans/$1.yaml"
    check "$1: the repaired plan is proved" exits 0 "$SWSIM" verify --no-fix "$dir/fixed.yaml"
    check "$1: as it expects" exits 0 "$SWSIM" verify --expect "$dir/fixed.yaml"
}

fixed deadlocks/scenario1_broken "enqueue_order: ready-first instead of stage-ascending"
fixed deadlocks/scenario3_broken "stage of Publish: 1 instead of 2"
fixed deadlocks/pqra "stage of R: 1 instead of 0"
fixed deadlocks/modes_d_dep "stage of OptimizerStep: 1 instead of 2"
fixed deadlocks/modes_b_race "add the dependence \[Forward, OptimizerStep\] between iterations"
# Two repairs cost the same here; which is found depends on which counterexample comes first.
check "deadlocks/eval_as_written: two dependences for one driver" says "Fix (proved.*): .*add the dependence" \
    "$SWSIM" verify --fix="$dir/fixed.yaml" "$plans/deadlocks/eval_as_written.yaml"
check "deadlocks/eval_as_written: the repaired plan is proved under it" exits 0 \
    "$SWSIM" verify --no-fix --driver=clock "$dir/fixed.yaml"
fixed knobs/batches_broken "batches: 3 on every rank"
sed 's/^batches: .*/batches: [0, 4]/' "$plans/knobs/batches_broken.yaml" >"$dir/none.yaml"
without_work() { "$SWSIM" verify "$dir/none.yaml" >"$dir/said" 2>&1; ! grep 'batches: 0' "$dir/said"; }
check "a plan without work is no repair" without_work
fixed knobs/num_slots_broken "num_slots: the default"
fixed knobs/forget_done_broken "forget_done: false"
fixed knobs/ticket_at_broken "ticket_at: pipelined"
fixed knobs/retired_dep_broken "retired_dep: wait instead of skip"
fixed faults/task_none "on_failure: wake instead of none"
fixed faults/flag_broken "on_failure: wake instead of none"
fixed faults/store_broken "on_failure: abort instead of wake"
fixed bugs/torchrec_cache_map_broken "add the dependence \[InputDist, EmbPrefetch\] between iterations"
fixed bugs/deepspeed_bucket_overwrite_broken \
    "thread backward: launch refill_bucket waits for launch reduce_bucket: an event"
fixed bugs/lmcache_gil_callback_broken "thread main: lock driver before lock gil"
fixed bugs/megatron_event_on_wrong_stream_broken "record reloaded on stream h2d instead of d2h"
fixed bugs/nccl_one_slot_opposite_order_broken "sm_slots: 2 instead of 1" "No fix of the program found; with another machine"
check "in JSON" says '"of_machine":true' "$SWSIM" verify --json "$plans/bugs/nccl_one_slot_opposite_order_broken.yaml"
fixed bugs/nccl_one_slot_same_order_broken "on every rank, thread train: collective activations waits"
fixed bugs/nccl_opposite_order_broken "rank 1 thread train: collective grads before"
fixed bugs/nccl_send_send_broken "on every rank, thread train: one group of send x0 and recv x1"
fixed bugs/nccl_two_launch_threads_broken 'on every rank, thread reduce waits before its .collective grads. until'
fixed bugs/pytorch_aliased_streams_broken "launch make_activation on a stream of its own"
fixed bugs/sglang_wait_before_record_broken 'thread consumer waits before its .wait ready. until'
fixed bugs/torchrec_eager_cliff_broken "on every rank, thread trainer: one group of send"
fixed reality/non_blocking_read_broken "thread main: sync stream main before host log"
fixed reality/pinned_refill_broken "thread loader: sync stream memcpy before host fill"
cat >"$dir/read.yaml" <<'PLAN'
swplan: 1
schedule:
  Copy: {stage: 0, stream: copies, writes: [result], work: {copy: d2h, bytes: 1KiB}}
  Read: {stage: 0, thread_group: other, reads: [result], work: {host: 1us}}
buffers: {result: {scope: iteration, bytes: 1KiB}}
intra_iter_deps: [[Read, Copy]]
PLAN
check "a task's CPU work waits for its stream" says "Fix (proved under both drivers): host_sync of Read: stream" \
    "$SWSIM" verify "$dir/read.yaml"

# loop NAME TEXT: the fix of a plan with a repeat (from standard input), proved and applied.
loop()
{
    cat >"$dir/loop.yaml"
    check "$1" says "^  Fix (proved): .*$2" "$SWSIM" verify --fix="$dir/fixed.yaml" "$dir/loop.yaml"
    check "$1: still a repeat" grep -q 'repeat: 3' "$dir/fixed.yaml"
    check "$1: the repaired plan is proved" says ' proved .*every interleaving of 3 or more iterations' "$SWSIM" verify --no-fix "$dir/fixed.yaml"
}

loop "the host refills what the last iteration still reads" "sync stream s before compute fill" <<'PLAN'
swplan: 1
threads:
  r0.w:
    - repeat: 3
      body:
        - {compute: fill, writes: [pin]}
        - {launch: upload, stream: s, reads: [pin], writes: [x]}
PLAN
loop "the same with an event that is there" "sync event uploaded before compute fill" <<'PLAN'
swplan: 1
threads:
  r0.w:
    - repeat: 3
      body:
        - {compute: fill, writes: [pin]}
        - {launch: upload, stream: s, reads: [pin], writes: [x]}
        - {record: uploaded, stream: s}
        - {launch: other, stream: s, reads: [x]}
PLAN
loop "a stream writes what another still reads" "launch fill waits for launch use: an event" <<'PLAN'
swplan: 1
threads:
  r0.w:
    - repeat: 3
      body:
        - {launch: fill, stream: a, writes: [buf]}
        - {record: filled, stream: a}
        - {wait: filled, stream: b}
        - {launch: use, stream: b, reads: [buf], writes: [x]}
PLAN
loop "the same with an event that is there" "launch fill waits for event used, which is recorded already" <<'PLAN'
swplan: 1
threads:
  r0.w:
    - repeat: 3
      body:
        - {launch: fill, stream: a, writes: [buf]}
        - {record: filled, stream: a}
        - {wait: filled, stream: b}
        - {launch: use, stream: b, reads: [buf], writes: [x]}
        - {record: used, stream: b}
PLAN
loop "two sends meet" "on every rank, thread main: one group of send a and recv b" <<'PLAN'
swplan: 1
comms: {pair: [0, 1]}
threads:
  r0.main:
    - repeat: 3
      body:
        - {group: [{send: a, peer: 1}], comm: pair, stream: s}
        - {group: [{recv: b, peer: 1}], comm: pair, stream: s}
  r1.main:
    - repeat: 3
      body:
        - {group: [{send: b, peer: 0}], comm: pair, stream: s}
        - {group: [{recv: a, peer: 0}], comm: pair, stream: s}
PLAN
loop "two collectives in another order" "rank 1 thread main: collective b after collective a" <<'PLAN'
swplan: 1
comms: {world: [0, 1]}
threads:
  r0.main:
    - {launch: setup, stream: s}
    - repeat: 3
      body:
        - {collective: a, comm: world, stream: s, op: all_gather}
        - {launch: k, stream: s}
        - {collective: b, comm: world, stream: s}
    - {launch: teardown, stream: s}
  r1.main:
    - {launch: setup, stream: s}
    - repeat: 3
      body:
        - {collective: b, comm: world, stream: s}
        - {launch: k, stream: s}
        - {collective: a, comm: world, stream: s, op: all_gather}
    - {launch: teardown, stream: s}
PLAN

cat >"$dir/device.yaml" <<'PLAN'
swplan: 1
inputs: [block]
threads:
  r0.main:
    - {copy: d2h, name: save, stream: copies, reads: [block], writes: [saved]}
    - {signal: free_to_write}
    - {sync: device}
  r1.main:
    - {await: free_to_write}
    - {launch: put, stream: s, writes: [r0.block]}
PLAN
check "a sync of the device stays in its place" says "Fix (proved): rank 0 thread main: sync stream copies before signal" \
    "$SWSIM" verify "$dir/device.yaml"

# A word that each rank clears and its peer sets: it is set after it was cleared, and both ranks do the same.
cat >"$dir/word.yaml" <<'PLAN'
swplan: 1
comms: {world: [0, 1]}
threads:
  r*.main:
    - {collective: meet, op: barrier, comm: world, stream: s}
    - {launch: clear, stream: s, writes: [word]}
    - {launch: put, stream: s, writes: [r+1.word]}
PLAN
check "no value is lost" says "Fix (proved): on every rank, thread main: launch clear before collective meet" "$SWSIM" verify "$dir/word.yaml"
cat >"$dir/late.yaml" <<'PLAN'
swplan: 1
threads:
  r0.main:
    - {launch: clear, stream: a, writes: [word]}
    - {launch: put, stream: b, writes: [word]}
    - {launch: look, stream: b, reads: [word]}
PLAN
check "a write is not put before the one that it is to follow" says "Fix (proved): thread main: launch put waits for launch clear" \
    "$SWSIM" verify "$dir/late.yaml"

check "an order that is given up is said to be a loss" says "This gives up something the plan had" \
    "$SWSIM" verify "$plans/bugs/megatron_barrier_before_recv_broken.yaml"

# Calls that differ between ranks: the one rank follows the two.
three()
{
    echo 'swplan: 1'
    echo 'comms: {g: [0, 1, 2], h: [0, 1, 2]}'
    echo 'threads:'
    for rank in 0 1 2; do
        echo "  r$rank.main:"
        echo '    - {collective: a, comm: g, stream: g, bytes: 4KiB}'
        test $rank -eq "$1" && echo "$2" || echo '    - {collective: b, comm: g, stream: g, bytes: 8KiB}'
        echo '    - {collective: c, comm: h, stream: h, bytes: 4KiB}'
        echo '    - {collective: d, comm: g, stream: g, bytes: 4KiB}'
    done
}
three 1 '' >"$dir/left_out.yaml"
check "a call that one rank leaves out is added there" \
    says "Fix (proved): rank 1 thread main: add collective b of g (8192 bytes) before collective" "$SWSIM" verify "$dir/left_out.yaml"
three 2 '    - {collective: b, comm: g, stream: g, bytes: 2KiB}' >"$dir/size.yaml"
check "one of another size becomes as the others" \
    says "rank 2 thread main: collective b of g (8192 bytes), as rank 0 has it, instead of collective b of g (2048 bytes)" \
    "$SWSIM" verify "$dir/size.yaml"
three 0 '    - {collective: b, comm: h, stream: h, bytes: 8KiB}' >"$dir/comm.yaml"
check "one on another communicator, too" \
    says "rank 0 thread main: collective b of g (8192 bytes), as rank 1 has it, instead of collective b of h" "$SWSIM" verify "$dir/comm.yaml"
three 1 '    - {collective: b, comm: g, stream: g, bytes: 8KiB, op: all_gather}' >"$dir/kind.yaml"
check "one of another kind, too" says "rank 1 thread main: collective b of g" "$SWSIM" verify "$dir/kind.yaml"
cat >"$dir/receive.yaml" <<'PLAN'
swplan: 1
comms: {g: [0, 1]}
threads:
  r0.main:
    - {group: [{send: p2p, peer: 1, bytes: 4KiB}], comm: g, stream: s}
    - {collective: a, comm: g, stream: s}
  r1.main:
    - {collective: a, comm: g, stream: s}
PLAN
check "a receive that is left out is added" says "rank 1 thread main: add recv p2p of g (4096 bytes)" "$SWSIM" verify "$dir/receive.yaml"

# A receive that is missing: messages on credit would only hide it.
"$SWSIM" generate 1f1b -p 2 -m 4 --comms | sed '0,/ 0RECV_B2/s///' >"$dir/forgotten.yaml"
check "a missing receive: messages on credit are no fix" silent eager_messages "$SWSIM" verify "$dir/forgotten.yaml"
cat >"$dir/forgotten2.yaml" <<'END'
swplan: 1
comms: {A: [0, 1]}
threads:
  r0.main:
    - {group: [{send: a, peer: 1}], comm: A, stream: s}
  r1.main:
    - {launch: work, stream: s}
END
check "likewise in a host program" silent eager_messages "$SWSIM" verify "$dir/forgotten2.yaml"

cat >"$dir/exchange.yaml" <<'END'
swplan: 1
name: exchange
programs:
  - 0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
  - 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
END
check "rank programs: an action is moved" says "Fix (proved): rank [01]: .* before " \
    "$SWSIM" verify "$dir/exchange.yaml"

# list TEXT ROW...: the repair of two rows of actions.
list()
{
    printf '%s\n' 'swplan: 1' 'name: list' 'p2p: {fifo: edge}' 'programs:' "  - $2" "  - $3" >"$dir/list.yaml"
    says "Fix (proved): $1" "$SWSIM" verify --fix="$dir/fixed.yaml" "$dir/list.yaml" &&
        exits 0 "$SWSIM" verify --no-fix "$dir/fixed.yaml"
}
check "rank programs: a receive is added" list 'rank 1: add 1RECV_F1 before 1F1' \
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1" "1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1"
check "a send is added" list 'rank 1: add 1SEND_B1 behind 1B1' \
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1" "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1"
check "both ends are added" list 'rank 1: add 1RECV_F1 before 1F1; rank 0: add 0SEND_F1 before 0RECV_B0' \
    "0F0 0SEND_F0 0F1 0RECV_B0 0B0 0RECV_B1 0B1" "1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1"
check "and those of a backward pass" list 'rank 0: add 0RECV_B1 before 0I1; rank 1: add 1SEND_B1 before 1W1' \
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0W0 0I1 0W1" "1RECV_F0 1F0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1I1 1W1"
check "one too many is removed" list 'rank 0: 0SEND_F0 (number 3 of its list) only once' \
    "0F0 0SEND_F0 0SEND_F0 0RECV_B0 0B0" "1RECV_F0 1F0 1B0 1SEND_B0"
check "a rank does as its kin" says 'Fix (proved): parallel: {ranks}: rank [03] does as the other ranks' \
    "$SWSIM" verify "$plans/reality/groups_embedding_broken.yaml"

broken=$plans/bugs/nccl_opposite_order_broken.yaml
check "the story ends with a diff" says "^    +    - {collective: activations, comm: tp, stream: comm}" \
    "$SWSIM" verify "$broken"
for key in fix change edits proved both_drivers weakens diff; do
    check "JSON has \"$key\"" says "\"$key\":" "$SWSIM" verify --json "$broken"
done
check "JSON: the diff is of the file" says '"of_file": *true' "$SWSIM" verify --json "$broken"
check "JSON without a search has none" says '"fix": *null' "$SWSIM" verify --json --no-fix "$broken"
check "a proved plan has none either" says '"fix": *null' \
    "$SWSIM" verify --json "$plans/examples/hello.yaml"
check "--no-fix leaves it out" silent "Fix" "$SWSIM" verify --no-fix "$broken"
check "--expect does" silent "Fix" "$SWSIM" verify --expect "$broken"
check "--quiet does" silent "Fix" "$SWSIM" verify --quiet "$broken"
# only_changes FILE LINES: against the plan it was made of, so many lines are other ones.
only_changes()
{
    diff "$2" "$1" >"$dir/diff"
    cat "$dir/diff"
    test "$(grep -c '^[<>]' "$dir/diff")" -le "$3"
}
# not_fixed WHAT CODE TEXT FILE: --fix says why not and leaves the file as it is.
not_fixed()
{
    cp "$4" "$dir/as_it_was"
    complains "$2" "$3" "$SWSIM" verify --fix "$4" && cmp "$4" "$dir/as_it_was"
}

cp "$broken" "$dir/own.yaml"
chmod 640 "$dir/own.yaml"
ln -s own.yaml "$dir/link.yaml"
check "--fix tells what it did" complains 1 "link.yaml: fixed: rank 1 thread train: collective grads before" \
    "$SWSIM" verify --fix "$dir/link.yaml"
check "... and that it is proved" says "own2.yaml: fixed: .* (proved)$" sh -c "cp '$broken' '$dir/own2.yaml'; '$SWSIM' verify -q --fix '$dir/own2.yaml' 2>&1"
check "in the file itself: a line moves, and the expectation goes" only_changes "$dir/own.yaml" "$broken" 4
check "which is proved" exits 0 "$SWSIM" verify --expect "$dir/own.yaml"
check "with its permissions" test "$(stat -c %a "$dir/own.yaml")" = 640
check "the link stays one" test -L "$dir/link.yaml"
check "nothing is left beside it" sh -c "! ls '$dir' | grep 'own.yaml.'"
check "a second time there is nothing to repair" complains 0 "was not changed: there is nothing to repair" \
    "$SWSIM" verify --fix "$dir/own.yaml"
check "standard input" complains 2 "standard input cannot be changed" sh -c "'$SWSIM' verify --fix - <'$broken'"
printf '0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n' >"$dir/own.csv"
check "a schedule in CSV" not_fixed csv 2 "was not changed: the fix cannot be written as edits" "$dir/own.csv"
"$SWSIM" export --format=json "$broken" >"$dir/own.json"
check "a plan in JSON" complains 1 "own.json: fixed" "$SWSIM" verify --fix "$dir/own.json"
check "stays JSON" sh -c "'$SWSIM' verify --expect '$dir/own.json' && ! grep -n '^ *[a-z-]' '$dir/own.json'"
check "and all plans are edited in their own text" sh -c "
    for plan in '$plans'/bugs/*_broken.yaml '$plans'/deadlocks/scenario*_broken.yaml '$plans'/knobs/num_slots_broken.yaml; do
        '$SWSIM' verify --json \$plan | grep '\"of_file\":false' && exit 1
    done; true"
check "a violated plan stays violated" exits 1 "$SWSIM" verify "$broken"
check "too small a budget: none found, and it says so" says \
    "No fix found: 1 change of up to three edits was tried, and none could be proved (the budget" \
    "$SWSIM" verify --fix-budget=1 "$plans/bugs/torchrec_out_of_data_broken.yaml"
rm -f "$dir/none.yaml"
check "then --fix writes nothing and says so" says "was not written: no fix was found" \
    "$SWSIM" verify --fix-budget=1 --fix="$dir/none.yaml" "$plans/bugs/torchrec_out_of_data_broken.yaml"
check "indeed" test ! -e "$dir/none.yaml"
check "nor for a plan that holds" says "was not written: there is nothing to repair" \
    "$SWSIM" verify --fix="$dir/none.yaml" "$plans/examples/hello.yaml"
check "--fix takes one plan" exits 2 "$SWSIM" verify --fix="$dir/none.yaml" "$broken" "$broken"
check "--fix into a folder that is not there" exits 2 "$SWSIM" verify --fix="$dir/no/fix.yaml" "$broken"
"$SWSIM" verify --json "$broken" | grep -v seconds >"$dir/one"
"$SWSIM" verify --json "$broken" | grep -v seconds >"$dir/two"
check "twice the same answer" diff "$dir/one" "$dir/two"
done_testing
