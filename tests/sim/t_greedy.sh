#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Greedy kernels take the residency slots that they find, more as others end, and keep them: times to the nanosecond.
. "${srcdir:-.}/tests/tap.sh"

# takes NS PLAN: the makespan of the prediction.
takes()
{
    "$SWSIM" predict --json "$2" >"$dir/out" 2>&1
    found "\"makespan_ns\":$1[,.]" "$dir/out" || { grep -oE '"makespan_ns":[^,]*' "$dir/out"; cat "$2"; false; }
}
# plan THREADS: of one rank with 4 slots
plan() { printf 'swplan: 1\nmachine: {sm_slots: 4}\nthreads:\n%s\n' "$1" >"$dir/plan.yaml"; }

reality=$srcdir/plans/reality
check "a product in front of a collective takes all SMs" takes 8000000 "$reality/gemm_order_broken.yaml"
check "... behind it those that are left, and more when it ends" takes 6242424 "$reality/gemm_order_fixed.yaml"

plan '  r0.a: [{launch: k, stream: s, sm: 4, greedy: true, time: 4ms}]'
check "alone it takes its time" takes 4000000 "$dir/plan.yaml"
plan '  r0.a: [{launch: x, stream: s, sm: 3, time: 2ms}, {launch: k, stream: t, sm: 4, greedy: true, time: 4ms}]'
check "a fourth of the slots for 2 ms, then all: 2 ms and 3.5 ms" takes 5500000 "$dir/plan.yaml"
plan '  r0.a: [{launch: k, stream: s, sm: 4, greedy: true, time: 4ms}, {launch: x, stream: t, sm: 1, time: 1ms}]'
check "what comes behind waits to its end" takes 5000000 "$dir/plan.yaml"
plan '  r0.a: [{launch: k, stream: s, sm: 3, greedy: true, time: 4ms}, {launch: x, stream: t, sm: 1, time: 1ms}]'
check "it takes no more than its most" takes 4000000 "$dir/plan.yaml"
plan '  r0.a: [{launch: x, stream: s, sm: 2, time: 2ms}, {launch: k, stream: t, sm: 4, greedy: true, time: 3ms},
         {launch: y, stream: u, sm: 2, time: 1ms}]'
check "slots that become free go to it before what waits" takes 5000000 "$dir/plan.yaml"
plan '  r0.a: [{launch: x, stream: s, sm: 3, time: 2ms}, {launch: k, stream: t, sm: 4, greedy: true, time: 4ms},
         {launch: l, stream: u, sm: 4, greedy: true, time: 4ms}]'
check "two: one behind the other" takes 9500000 "$dir/plan.yaml"
cat >"$dir/plan.yaml" <<END
swplan: 1
ranks: 2
machine: {sm_slots: 2, share_device: [[0, 1]]}
comms: {all: [0, 1]}
threads:
  r0.a: [{collective: c, comm: all, stream: s, sm: 1, time: 2ms}]
  r1.a: [{collective: c, comm: all, stream: s, sm: 1, time: 2ms}, {launch: k, stream: s, sm: 2, greedy: true, time: 3ms}]
END
check "behind a collective of two ranks on one device it finds all slots" takes 5000000 "$dir/plan.yaml"
printf 'swplan: 1\nmachine: {sm_slots: 4}\nbatches: [3]\nschedule: {A: {stream: s, sm: 3, time: 2ms}, B: {stream: t, sm: 4, greedy: true, time: 4ms}}\n' >"$dir/plan.yaml"
"$SWSIM" predict --json --driver=clock "$dir/plan.yaml" >"$dir/a" 2>&1
"$SWSIM" predict --json --driver=clock "$dir/plan.yaml" >"$dir/b" 2>&1
check "a pipeline too, and the same each time" sh -c "grep -o '\"makespan_ns\":[0-9.]*' '$dir/a' >'$dir/c'; grep -o '\"makespan_ns\":[0-9.]*' '$dir/b' | cmp - '$dir/c' && test -s '$dir/c'"
done_testing
