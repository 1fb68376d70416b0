# SPDX-License-Identifier: Apache-2.0
# run_plans.sh - small plans for tests of runs, on standard output, and their ranks at work; sourced after tap.sh.

# quick_plan RANKS BYTES: a pipeline of a copy and an all-to-all of so many bytes. It ends well.
quick_plan()
{
    cat <<PLAN
swplan: 1
name: quick
ranks: $1
schedule:
  Copy: {stage: 0, stream: memcpy, time: 100us, writes: [x], work: {copy: h2d, bytes: 4KiB}}
  Meet: {stage: 1, time: 100us, reads: [x], writes: [y], globally_ordered: true,
         work: {collective: all_to_all, comm: dp, bytes: $2}}
intra_iter_deps: [[Meet, Copy]]
buffers: {x: {scope: iteration}, y: {scope: shared}}
PLAN
}

# stuck_plan: two ranks send, and none receives.
stuck_plan()
{
    cat <<PLAN
swplan: 1
name: stuck
comms: {pair: [0, 1]}
threads:
  r0.train: [{group: [{send: x, peer: 1}], comm: pair, stream: s}, {sync: device}]
  r1.train: [{group: [{send: y, peer: 0}], comm: pair, stream: s}, {sync: device}]
PLAN
}

# mismatch_plan: two ranks call different collectives.
mismatch_plan()
{
    cat <<PLAN
swplan: 1
name: mismatch
comms: {A: [0, 1]}
threads:
  r0.main: [{collective: x, comm: A, stream: s, bytes: 1KiB}]
  r1.main: [{collective: y, comm: A, stream: s, bytes: 1KiB}]
PLAN
}

# are_at_work PID: three ranks of swrun, each with threads of its own.
are_at_work()
{
    ranks=$(children $1)
    test "$(echo "$ranks" | wc -w)" -eq 3 || return
    for rank in $ranks; do
        test "$(ls "/proc/$rank/task" | wc -l)" -ge 3 || return
    done
}
