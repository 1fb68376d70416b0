#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sentences of stories, where a short one could be wrong: a step that breaks two properties, messages of large
# groups, roots, work that nothing waits for, slots that a device does not have.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/both.yaml" <<'EOF'
swplan: 1
comms: {A: [0]}
threads:
  r0.a:
    - {group: [{recv: in, peer: 0}, {send: out, peer: 0}], comm: A, stream: t, reads: [x]}
    - {launch: fill, stream: s, writes: [x]}
EOF
check "a step that races and mismatches: the race has its own other access" \
    says "race.*accesses buffer x, which fill of stream s writes" \
    "$SWSIM" verify --no-fix --no-reduction --property=race,mismatch "$dir/both.yaml"
check "and the mismatch its own two messages" \
    said "mismatch.*send out to rank 0 meets receive in from rank 0 .*tag (out, in)"

# One hardware queue: fill starts before k, and nothing says so to k.
cat >"$dir/life.yaml" <<'EOF'
swplan: 1
machine: {hw_queues: 1}
threads:
  r0.a:
    - {alloc: m, stream: s}
    - {launch: fill, stream: u, writes: [x]}
    - {launch: k, stream: t, reads: [m], writes: [x]}
EOF
check "a step that races and uses memory too early: the race names its buffer" \
    says "race.*k accesses buffer x, which fill of stream u writes" "$SWSIM" verify --no-fix --no-reduction "$dir/life.yaml"
check "and the use the one that was allocated" said "lifetime.*k uses buffer m without an order behind"

cat >"$dir/parts.yaml" <<'EOF'
swplan: 1
comms: {A: [0, 1]}
threads:
  r0.a:
    - {group: [{send: one, peer: 1}, {send: two, peer: 1}], comm: A}
  r1.a:
    - {group: [{recv: one, peer: 0}, {recv: three, peer: 0}], comm: A}
EOF
check "two groups that disagree: the messages that met are named, not the first ones" \
    says "receive three from rank 0 meets send two to rank 1 .*tag (three, two)" \
    "$SWSIM" verify --no-fix "$dir/parts.yaml"

cat >"$dir/root.yaml" <<'EOF'
swplan: 1
comms: {A: [0, 1]}
threads:
  r0.a: [{collective: seed, op: broadcast, comm: A, root: 1}]
  r1.a: [{collective: seed, op: broadcast, comm: A}]
EOF
check "two roots of one broadcast are told" \
    says "they differ in root (0, 1)" "$SWSIM" verify --no-fix "$dir/root.yaml"

cat >"$dir/slots.yaml" <<'EOF'
swplan: 1
machine: {sm_slots: 1}
threads:
  r0.a: [{launch: wide, sm: 2}]
EOF
check "more residency slots than a device has: held by no other work" \
    says "can never start wide: it needs 2 residency slots, a device has 1" \
    "$SWSIM" verify --no-fix "$dir/slots.yaml"

# C(i) is not handed out before its iteration is retired, and then never is; all threads come to their end.
cat >"$dir/left.yaml" <<'EOF'
swplan: 1
retire: last-task
schedule:
  A: {stage: 1}
  B: {stream: s}
  C: {stage: 1}
  D: {stream: s}
intra_iter_deps:
  - [C, A]
  - [C, B]
enqueue_order: [D, B, A, C]
EOF
check "work that was never handed out is named, though no thread waits for it" \
    says "driver .*has retired iteration 0, of which C was never handed out" \
    "$SWSIM" verify --no-fix --driver=dataflow --property=drain -n 1 "$dir/left.yaml"
check "and none says that the iteration is not retired" said "drain.*no step is possible and work remains"
# Rank 0 comes to C behind B, rank 1 at once. The hang at the end takes a long search to shorten.
cat >"$dir/short.yaml" <<'EOF'
swplan: 1
ranks: 2
batches: [1, 2]
inputs: []
schedule:
  E: {globally_ordered: true, host_time: 1ms, sm: 2, reads: [x]}
  B: {globally_ordered: true, writes: [x]}
  C: {globally_ordered: true, thread_group: g, host_time: 1ms, reads: [y], writes: [y], work: {send: m, peer: 1, comm: dp}}
intra_iter_deps:
  - [E, C]
  - [E, B]
rank_overrides:
  1:
    schedule: {B: {stage: 1}, C: {work: {recv: m, peer: 0, comm: dp}}}
    enqueue_order: [C, E, B]
EOF
check "of two violations the story that is shown is the shortest, whatever the other one takes" \
    says "violated *in 6 steps" "$SWSIM" verify --no-fix --driver=clock "$dir/short.yaml"
# The first iteration waits for none before it, neither the thread nor the stream: two steps, in different words.
cat >"$dir/first.yaml" <<'EOF'
swplan: 1
driver: clock
name: first
schedule:
  Sort: {stage: 0, stream: sort, thread_group: sort, writes: [mine]}
  Train: {stage: 1, thread_group: train, reads: [mine]}
inter_iter_deps: [[Train, Train]]
EOF
check "a thread has no signal of an iteration before the first" says \
    "thread train  goes on without waiting: Train has no iteration -1" "$SWSIM" verify --no-fix "$dir/first.yaml"
check "and its stream no event" said "thread train  makes stream main wait for nothing: Train has no iteration -1"

# ---- what a story names ---------------------------------------------------------------------------

cat >"$dir/two.yaml" <<'PLAN'
swplan: 1
threads:
  r0.w:
    - repeat: 3
      body:
        - {launch: fill, stream: a, writes: [buf]}
        - {record: filled, stream: a}
        - {wait: filled, stream: b}
        - {copy: d2h, stream: b, reads: [buf], writes: [x]}
PLAN
check "a race names the copy by what it copies" says 'race, always: copy of buf to x(0) accesses buffer buf, which fill(1) of stream a' \
    "$SWSIM" verify --no-fix "$dir/two.yaml"
check "its stream, who pushed it, and the line" said '    copy of buf to x(0): on stream b, pushed by thread w, line 9'
check "and the other's" said '    fill(1): on stream a, pushed by thread w, line 6'
check "in JSON" prints 1 '"operations":\[{"operation":"copy of buf to x(0)","agent":"stream b","pushed_by":"thread w","line":9,"column":11},{"operation":"fill(1)"' \
    "$SWSIM" verify --no-fix --json "$dir/two.yaml"
check "no operation is a copy of its name" sh -c "'$SWSIM' verify --no-fix '$dir/two.yaml' | grep -c 'copy copy' | grep -qx 0"
check "a lifetime names both" says '    alloc of next_logits: on stream compute, pushed by thread train, line 15' \
    "$SWSIM" verify --no-fix "$srcdir/plans/properties/lifetime_broken.yaml"
check "and who still uses the memory" said '    copy of logits: on stream d2h, pushed by thread train, line 13'
check "the iteration of a message is no part of the rank" says 'send a to rank 1, iteration 0' sh -c \
    "printf 'swplan: 1\ncomms: {p: [0, 1]}\nthreads:\n  r*.m: [{repeat: 2, body: [{group: [{send: a, peer: rank+1}], comm: p}, {group: [{recv: a, peer: rank+1}], comm: p}]}]\n' |
     '$SWSIM' verify --no-fix -"
cat >"$dir/kernel.yaml" <<'PLAN'
swplan: 1
threads:
  r0.main: [{launch: waiter, stream: s, body: [{compute: a, time: 1us}, {await: never}]}, {sync: device}]
PLAN
check "a kernel with steps is a kernel" says 'stream s  *runs kernel waiter' "$SWSIM" verify --no-fix "$dir/kernel.yaml"
check "and so are its steps" said 'kernel on stream s  *is at operation 2, waits for never'
check "no callback" sh -c "'$SWSIM' verify --no-fix '$dir/kernel.yaml' | grep -c callback | grep -qx 0"

# A long story begins where an agent takes its last step.
{
    printf 'swplan: 1\ncomms: {p: [0, 1]}\nthreads:\n  r*.m:\n    - {repeat: 20, body: [{collective: c, comm: p, stream: s}, {sync: stream, stream: s}]}\n'
    printf '    - {group: [{send: a, peer: rank+1}], comm: p, stream: s}\n    - {group: [{recv: a, peer: rank+1}], comm: p, stream: s}\n'
} >"$dir/long.yaml"
check "a long story begins late" says '^ *1-[0-9]*  earlier steps, which violate nothing; --full shows all' "$SWSIM" verify --no-fix "$dir/long.yaml"
check "it is short" test "$(wc -l <"$dir/out")" -lt 30
check "--full shows all of it" sh -c "'$SWSIM' verify --no-fix --full '$dir/long.yaml' | grep -c 'which violate nothing' | grep -qx 0"

# A long story of a host program tells what has a part in it: not what other streams, threads and ranks do besides.
{
    printf 'swplan: 1\nthreads:\n  r0.main:\n    - {launch: fill, stream: a, writes: [x]}\n    - {record: filled, stream: a}\n'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        printf '    - {signal: f%d}\n    - {launch: other%d, stream: c, writes: [y]}\n    - {await: g%d}\n' $i $i $i
    done
    printf '    - {wait: filled, stream: c}\n    - {launch: use, stream: b, reads: [x]}\n  r0.w:\n'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        printf '    - {await: f%d}\n    - {signal: g%d}\n' $i $i
    done
} >"$dir/parts.yaml"
check "a long story leaves out what has no part in it" says '  [0-9]* steps in between that play no part; --full shows all' \
    "$SWSIM" verify --no-fix --property=race "$dir/parts.yaml"
check "no step of a flag or of another stream" sh -c "! grep -q 'sets \|passes \|other[0-9]' '$dir/out'"
check "but what the streams of both record" said 'pushes to stream a: fill, record event filled'
check "--full has them" says 'thread main  *sets f12' "$SWSIM" verify --no-fix --full --property=race "$dir/parts.yaml"

# What every story begins with takes few lines: data and the period that they allow; all that a worker pushes.
sed '/- \[Compute, CopyIn\]/d' "$srcdir/plans/examples/hello.yaml" >"$dir/unordered.yaml"
check "data are told with the driver's step" says '^ *1-2  driver  *enqueues period 0$' "$SWSIM" verify --no-fix --driver=clock "$dir/unordered.yaml"
check "what a worker pushes is one line, though it has not submitted all" said \
    '^  5-13  thread default  pushes to stream copy_in: copy CopyIn(0); to stream main: Compute(0)$'
check "--full has each step" says '^ *11  thread default  *takes Compute(0) from its queue$' "$SWSIM" verify --no-fix --full --driver=clock "$dir/unordered.yaml"

# The verdict stands there while a repair is looked for: here of a plan that three edits do not mend.
{
    printf 'swplan: 1\nthreads:\n  r0.main:\n'
    awk 'BEGIN { for (i = 0; i < 20000; i++) printf "    - {launch: k%d, stream: s%d, writes: [x]}\n", i, i % 2 }'
} >"$dir/many.yaml"
told_first()
{
    "$SWSIM" verify "$dir/many.yaml" >"$dir/told" 2>&1 &
    wait_until 300 grep -q 'race, always' "$dir/told" && ! grep -q 'fix' "$dir/told" && kill -TERM $! && ends_within 20 $! && [ "$code" = 1 ]
}
check "the verdict is told first, and a signal ends the search" told_first
check "which says so" grep -q 'No fix found.*it was interrupted' "$dir/told"

done_testing
