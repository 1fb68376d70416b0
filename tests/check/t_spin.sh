#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A second opinion: SPIN explores Promela models of a plan and must find a deadlock or a mismatch
# exactly where `swsim verify` does. A pipeline is compared over three iterations, under each driver.
# A plain pipeline has two models, the general one and the lean one of tests/spin/lean.h, and
# both are compared; an exact lean model must also have as many states as the machine when
# neither side reduces anything.
#
# Compiling SPIN's analyser takes most of the time: without SWSIM_LONG=1 only a few plans are tried.
# With it so are SWSIM_PLANS random plans of each form and driver, 500 in all, the first of them from
# SWSIM_SEED.
. "${srcdir:-.}/tests/tap.sh"
: "${SWSIM_LONG:=}"
: "${SWSIM_SHARED:=$srcdir/../shared}"
: "${SWSIM_SEED:=1}"
: "${SWSIM_PLANS:=125}"
: "${PRINT_MODEL:=tests/spin/print_model}"
: "${PRINT_RANDOM_PLAN:=tests/print_random_plan}"

case $SWSIM in */*) SWSIM=$(cd "$(dirname "$SWSIM")" && pwd)/$(basename "$SWSIM") ;; esac
case $PRINT_MODEL in /*) ;; *) PRINT_MODEL=$(pwd)/$PRINT_MODEL ;; esac
case $PRINT_RANDOM_PLAN in /*) ;; *) PRINT_RANDOM_PLAN=$(pwd)/$PRINT_RANDOM_PLAN ;; esac
srcdir=$(cd "$srcdir" && pwd)
iterations=3
depth=100000 # of SPIN's search
limit=300    # of its time, in seconds; 20 for the general model where the lean one has a verdict

# of_pipeline PLAN DRIVER: the options that only a pipeline has.
of_pipeline()
{
    ! grep -q '^schedule:' "$1" || echo "--driver=$2 --iterations=$iterations"
}

# our_verdict PLAN DRIVER: "hangs|runs mismatch|match" as swsim verify says it. SPIN does not tell
# whether a run hangs before or after the end of the data.
our_verdict()
{
    "$SWSIM" verify --json $(of_pipeline "$@") --property=deadlock,mismatch,drain "$1" >"$dir/ours"
    test $? -le 1 || return 1
    tr -d '\n' <"$dir/ours" | sed -n 's/.*"properties":{\([^}]*\)}.*/\1/p' >"$dir/properties"
    grep -qE '"(deadlock|drain)":"(some|always)"' "$dir/properties" && echo hangs || echo runs
    grep -qE '"mismatch":"(some|always)"' "$dir/properties" && echo mismatch || echo match
}

# build_pan FLAG...: SPIN's analyser for $dir/model.pml.
build_pan()
{
    (cd "$dir" && $CC -w -O0 -DSAFETY -DVECTORSZ=65536 -DMEMLIM=4000 "$@" -o pan pan.c >>spin 2>&1)
}

# explore OPTION...: run the analyser; -q, if the model says so, accepts ends with items in a queue. Fails
# with 2 when it neither finished nor found anything.
explore()
{
    grep -q 'pan -q' "$dir/model.pml" && set -- -q "$@"
    (cd "$dir" && timeout "$seconds" ./pan -m$depth -w20 -n "$@" >spin 2>&1) # it leaves a trail
    grep -q 'errors: [1-9]' "$dir/spin" && return
    grep -q 'errors: 0' "$dir/spin" && ! grep -qi 'too small\|not completed' "$dir/spin" && return
    return 2
}

# spin_verdict: our_verdict's words for $dir/model.pml. -A leaves assertions out, -E end states.
spin_verdict()
{
    (cd "$dir" && spin -a model.pml >spin 2>&1) && build_pan || return 1
    explore || return
    if grep -q 'errors: 0' "$dir/spin"; then
        echo runs
        echo match
        return
    fi
    explore -A || return
    grep -q 'pan:.*invalid end state' "$dir/spin" && echo hangs || echo runs
    explore -E || return
    grep -q 'pan:.*assertion violated' "$dir/spin" && echo mismatch || echo match
}

# model_agrees MODEL: does SPIN's verdict on $dir/model.pml equal $ours? Prints both outputs where they
# differ; fails with 2 when SPIN has none.
model_agrees()
{
    spins=$(spin_verdict) || { code=$?; cat "$dir/spin"; return $code; }
    test "$ours" = "$spins" && return
    echo "swsim verify: $ours" | tr '\n' ' '
    cat "$dir/ours"
    echo "SPIN, $1 model: $spins" | tr '\n' ' '
    cat "$dir/spin"
    false
}

# agree PLAN DRIVER: all models agree with swsim verify. Fails with 2 when SPIN finishes none of them.
agree()
{
    ours=$(our_verdict "$1" "$2") || { cat "$dir/ours"; return 1; }
    seconds=$limit
    "$PRINT_MODEL" "$1" "$2" $iterations 0 >"$dir/model.pml"
    case $? in
    0) model_agrees lean; lean=$? ;;
    3) lean=2 ;;
    *) return 1 ;;
    esac
    test $lean -ne 1 || return 1
    test $lean -ne 0 || seconds=20
    "$PRINT_MODEL" "$1" "$2" $iterations 0 general >"$dir/model.pml" || return 1
    model_agrees general
    code=$?
    test $code -ne 2 || return $lean
    return $code
}

# same_states PLAN DRIVER N: the same number of states, unreduced, on one rank. Buffers are left out:
# knowledge of accesses is part of our states and not of SPIN's. Fails with 2 for a plan that is
# not plain or too big.
same_states()
{
    "$SWSIM" export "$1" | sed '/^ *\(reads\|writes\): \[/d' >"$dir/bare.yaml"
    "$PRINT_MODEL" "$dir/bare.yaml" "$2" "$3" 1 exact >"$dir/model.pml" 2>"$dir/spin"
    case $? in 0) ;; 3) return 2 ;; *) return 1 ;; esac
    (cd "$dir" && spin -a -o3 model.pml >spin 2>&1) && build_pan -DNOREDUCE || return 1
    seconds=$limit
    explore -c0 -E -A || return
    "$SWSIM" verify --json --no-reduction --driver="$2" --iterations="$3" --ranks=1 \
        --property=deadlock,mismatch,drain "$dir/bare.yaml" >"$dir/ours"
    test $? -le 1 || return 2
    theirs=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$dir/spin")
    tr -d '\n' <"$dir/ours" | grep -q "\"states\": *$theirs," && return
    echo "SPIN: $theirs states"
    cat "$dir/ours"
    false
}

# said CODE TEXT: the text, with an exit status.
said()
{
    printf '%s\n' "$2"
    return "$1"
}

# one NAME PLAN DRIVER: a case; skipped where SPIN did not finish.
one()
{
    text=$(agree "$2" "$3" 2>&1)
    code=$?
    if test $code -eq 2; then
        skip "$1: SPIN needs more memory or time than it has here"
    else
        check "$1" said $code "$text"
    fi
}

# compare PLAN...: a plan without stages has no driver.
compare()
{
    for plan; do
        name=${plan##*/}
        if ! grep -q '^schedule:' "$plan"; then
            one "$name" "$plan" clock
            continue
        fi
        one "$name, clock" "$plan" clock
        one "$name, data-flow" "$plan" dataflow
    done
}

# compare_random FORM DRIVER: plans that are too big for SPIN are passed over, but not all of them.
# The states of plain pipelines are counted, too.
compare_random()
{
    limit=20
    compared=0
    counted=0
    seed=$SWSIM_SEED
    while test "$seed" -lt $((SWSIM_SEED + SWSIM_PLANS)); do
        plan=$dir/random.yaml
        "$PRINT_RANDOM_PLAN" "$seed" "$1" >"$plan" || return
        agree "$plan" "$2" >"$dir/difference"
        case $? in
        0) compared=$((compared + 1)) ;;
        2) ;;
        *) echo "seed $seed:"; cat "$plan" "$dir/difference"; return 1 ;;
        esac
        if test "$1" = pipeline; then
            same_states "$plan" "$2" 2 >"$dir/difference"
            case $? in
            0) counted=$((counted + 1)) ;;
            2) ;;
            *) echo "seed $seed:"; cat "$plan" "$dir/difference"; return 1 ;;
            esac
        fi
        seed=$((seed + 1))
    done
    echo "$compared compared, $counted counted"
    test "$compared" -gt 0
    test "$1" != pipeline || test "$counted" -gt 0
}

if ! command -v spin >/dev/null 2>&1; then
    skip_all "SPIN is not installed (Debian package spin)"
fi

cat >"$dir/crossed.yaml" <<'PLAN'
swplan: 1
name: crossed
comms: {A: [0, 1]}
threads:
  r0.main:
    - {collective: x, comm: A, stream: s}
    - {collective: y, comm: A, stream: s}
  r1.main:
    - {collective: y, comm: A, stream: s}
    - {collective: x, comm: A, stream: s}
PLAN
cat >"$dir/wrong_message.yaml" <<'PLAN'
swplan: 1
name: wrong_message
comms: {A: [0, 1]}
threads:
  r0.main:
    - {group: [{send: x, peer: 1, bytes: 1KiB}], comm: A, stream: s}
    - {group: [{send: y, peer: 1, bytes: 2KiB}], comm: A, stream: s}
  r1.main:
    - {group: [{recv: x, peer: 0, bytes: 1KiB}], comm: A, stream: s}
    - {group: [{recv: y, peer: 0, bytes: 3KiB}], comm: A, stream: s}
PLAN

cat >"$dir/crossed_tasks.yaml" <<'PLAN'
swplan: 1
name: crossed_tasks
ranks: 2
schedule:
  A: {stage: 0, work: {collective: all_reduce, comm: dp, bytes: 1KiB}}
rank_overrides:
  1: {schedule: {A: {work: {collective: all_reduce, comm: dp, bytes: 2KiB}}}}
PLAN

# Turns that are a condition to fire: round r has A(r) and B(r - 1).
cat >"$dir/turns.yaml" <<'PLAN'
swplan: 1
name: turns
max_depth: 2
schedule:
  A: {stage: 0, stream: a, globally_ordered: true, thread_group: x}
  U: {stage: 0, stream: a, thread_group: x}
  B: {stage: 1, stream: b, globally_ordered: true, thread_group: y}
intra_iter_deps: [[U, A], [B, U]]
PLAN

# device PLAN: with the rule of retiring that has fewer states, and pinned memory: the lean model's threads choose nothing
device()
{
    sed -e '/^retire:/d' -e 's/^schedule:/retire: device\n&/' -e 's/, pageable: true//' "$1" >"$dir/device.yaml"
}

compare "$dir/crossed.yaml" "$dir/wrong_message.yaml" "$dir/crossed_tasks.yaml"
cd "$srcdir/plans" || exit 99
if test -z "$SWSIM_LONG"; then
    compare bugs/nccl_send_send_broken.yaml bugs/nccl_one_slot_same_order_broken.yaml \
        bugs/nccl_one_slot_same_order_fixed.yaml bugs/torchcomms_lazy_load_broken.yaml \
        bugs/lmcache_gil_callback_broken.yaml bugs/torchrec_eager_cliff_fixed.yaml \
        reality/send_to_self_broken.yaml reality/device_wait_broken.yaml \
        reality/group_communicators_fixed.yaml reality/launch_lock_fixed.yaml \
        reality/queue_empty_broken.yaml reality/queue_empty_fixed.yaml \
        reality/work_poll_broken.yaml reality/skipped_step_fixed.yaml
    check "scenario1_broken.yaml, clock" agree deadlocks/scenario1_broken.yaml clock
    check "turns that are a condition to fire, data-flow" agree "$dir/turns.yaml" dataflow
    check "ordered_pair_one_thread.yaml, data-flow" agree \
        deadlocks/ordered_pair_one_thread.yaml dataflow
    device reference/sparse_dist.yaml
    check "the same states: sparse_dist.yaml, clock" same_states "$dir/device.yaml" clock 2
    check "the same states: base.yaml, data-flow" same_states reference/base.yaml dataflow 2
else
    for plan in reference/*.yaml; do
        case $plan in *.upstream.yaml) continue ;; esac
        device "$plan"
        for driver in clock dataflow; do
            check "the same states: ${plan##*/}, $driver" same_states "$dir/device.yaml" $driver 2
        done
    done
    compare bugs/*.yaml examples/host_program.yaml examples/hello.yaml
    # SPIN cannot finish the two that are left out within the memory of a small machine.
    for plan in deadlocks/*.yaml; do
        case $plan in */eval_as_written.yaml | */scenario2_broken.yaml) ;; *) compare "$plan" ;; esac
    done
    if test -d "$SWSIM_SHARED/zoo"; then
        compare "$SWSIM_SHARED"/zoo/*.yaml
    else
        skip "no further plans in \$SWSIM_SHARED"
    fi
    for form in "threads clock" "programs clock" "pipeline clock" "pipeline dataflow"; do
        if test -x "$PRINT_RANDOM_PLAN"; then
            # shellcheck disable=SC2086
            check "$SWSIM_PLANS random plans from seed $SWSIM_SEED: $form" compare_random $form
        else
            skip "no $PRINT_RANDOM_PLAN"
        fi
    done
fi
done_testing
