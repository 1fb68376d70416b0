#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plans in plans/torchrec behave as their heads say of TorchRec's pipelines: which is faster, by what, and which
# dependence is needed.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans/torchrec

# ns NAME: the period of a plan, exact.
ns()
{
    "$SWSIM" predict -q --json "$plans/$1.yaml" 2>/dev/null | sed -n 's/.*"steady_exact_ns":\([0-9]*\).*/\1/p'
}

# longer A B US [MOST]: an iteration of A takes at least US longer than one of B, and at most MOST.
longer()
{
    first=$(ns "$1") second=$(ns "$2")
    echo "# $1 $first ns, $2 $second ns"
    test -n "$first" && test -n "$second" && test $((first - second)) -ge $(($3 * 1000)) &&
        test $((first - second)) -le $((${4:-1000000} * 1000))
}

# tells PLAN: the time that the plan says an iteration takes is the predicted one.
tells()
{
    said=$(sed '/^swplan/,$d; s/^# *//' "$1" | tr '\n' ' ' |
        grep -oE "takes (the same |SparseDist's )?[0-9]+\.[0-9]+ ms|[0-9]+\.[0-9]+ ms (each|an iteration)" |
        head -n 1 | grep -oE '[0-9]+\.[0-9]+')
    name=$(basename "$1" .yaml)
    is=$(ns "$name")
    echo "# says ${said:-nothing}, is $is ns"
    test -z "$said" || test "$(echo "$said" | awk '{ printf "%d", $1 * 1000000 + 0.5 }')" = "$is"
}
for plan in "$plans"/*.yaml; do
    check "$(basename "$plan" .yaml) takes what it says" tells "$plan"
done
check "the order ready-first is slower" longer sparse_dist.ready_first sparse_dist 400
check "the copy after Forward makes no difference" longer sparse_dist sparse_dist.after_forward 0 50
check "Lite exposes the 2.6 ms of the exchange" longer sparse_dist_lite sparse_dist 2550
check "PT2 is slower still" longer pt2 sparse_dist_lite 3000
check "Fused looks up beside the optimizer" longer sparse_dist fused_sparse_dist 100
check "... on a stream of its own as well" longer fused_sparse_dist fused_sparse_dist.new 0 50
check "... on main not at all" longer sparse_dist fused_sparse_dist.current 0 0
check "... and ready-first makes it wait for the next exchange" longer fused_sparse_dist.ready_first fused_sparse_dist 2000
check "SemiSync's ready-first delays its optimizer" longer semi_sync.ready_first semi_sync 1500
check "... its first batches do not hide OutputDist" longer semi_sync.start semi_sync 700
check "a compiled backward hides GradDist" longer sparse_dist comp_autograd 750
check "evaluation needs half of that" longer sparse_dist eval_sparse_dist 5000

# One iteration at a time: the loop's order is no order for the tickets of a single iteration.
serial()
{
    ns=$("$SWSIM" predict --json "$plans/$1.yaml" 2>/dev/null | sed -n 's/.*"serial_ns":\([0-9]*\).*/\1/p')
    echo "# $ns ns"
    test -n "$ns" && test "$ns" -ge "$(($2 * 1000))"
}
check "one iteration at a time takes the sum of the tasks" serial sparse_dist 16000
check "... of Fused as well" serial fused_sparse_dist 16000
check "... and with two process groups" serial sparse_dist.two_groups 17000

# The thread comes to the two collectives in the order of their names, whatever order the dependences are written in.
turned()
{
    for order in "GradDist, AllReduce" "AllReduce, GradDist"; do
        cat >"$dir/turned.yaml" <<END
swplan: 1
name: turned
ranks: 2
schedule:
  Backward: {time: 4ms}
  GradDist: {globally_ordered: true, time: 1ms, work: {collective: all_to_all, comm: dp, bytes: 1KiB}}
  AllReduce: {globally_ordered: true, stream: nccl, time: 1ms, work: {collective: all_reduce, comm: dp, bytes: 1KiB}}
intra_iter_deps: [[${order%,*}, Backward], [${order#*, }, Backward]]
END
        "$SWSIM" predict --json "$dir/turned.yaml" 2>/dev/null | grep -q '"serial_ns":6000000,' || return
    done
}
check "... and in whatever order dependences are written" turned

# needs NAME DEPENDENCE PROPERTY: without the dependence the plan violates the property.
needs()
{
    grep -v -F -- "- [$2]" "$plans/$1.yaml" >"$dir/without.yaml"
    test "$(diff "$plans/$1.yaml" "$dir/without.yaml" | grep -c '^<')" = 1 || return
    "$SWSIM" verify --no-fix "$dir/without.yaml" >"$dir/out" 2>&1
    test $? = 1 && grep -q "^  $3, " "$dir/out"
}
check "the lookup waits for the ids" needs sparse_dist "EmbLookup, InputDistWait" race
apart()
{
    sed -e '/EmbUpdate:/{n;s/stream: data_dist, //;}' -e '/\[EmbLookup, EmbUpdate\]/d' "$plans/fused_sparse_dist.yaml" >"$dir/apart.yaml"
    prints 1 '^  race, ' "$SWSIM" verify --no-fix "$dir/apart.yaml"
}
check "an update of the tables on another stream than the lookup's races with it" apart
check "the optimizer waits for the all-reduce" needs sparse_dist "OptimizerStep, AllReduce" race
check "Forward of SemiSync waits for the embeddings" needs semi_sync "Forward, OutputDist" race
check "the prefetch waits for the ids" needs prefetch "EmbPrefetch, InputDistWait" race

# All are proved by structure, that is at once; two groups need a search.
by_structure()
{
    "$SWSIM" verify "$@" >"$dir/out" 2>&1 && ! grep -v 'two_groups' "$dir/out" | grep -q ' states\? '
}
check "no plan but two_groups needs a search" by_structure "$plans"/*.yaml

# Data-flow: every plan is proved by structure, takes no longer than under the clock by more than 2%, and a run on threads has
# the results of a serial one (SemiSync's: but for reads that may be stale).
dataflow_proved()
{
    "$SWSIM" verify -q --no-fix --driver=dataflow "$1" >"$dir/out" 2>&1 && grep -q ' proved .* by structure ' "$dir/out"
}
# mean DRIVER [OPTION] <PLAN: of an iteration, in ns.
mean() { "$SWSIM" predict -q --json -n 300 --driver="$@" - 2>/dev/null | sed -n 's/.*"iteration_ns":{"mean":\([0-9]*\).*/\1/p'; }
as_fast()
{
    clock=$(mean clock <"$1") dataflow=$(mean dataflow <"$1")
    echo "# clock ${clock:-none}, data-flow ${dataflow:-none} ns"
    test -n "$clock" && test -n "$dataflow" && test $((dataflow * 50)) -le $((clock * 51))
}
runs()
{
    "$SWRUN" --device host --driver=dataflow -n 6 "$1" >"$dir/out" 2>&1 && grep -q 'legal  *yes' "$dir/out" &&
        grep -q 'results  *\(the same\|DIFFERENT .* stale, as the plan allows\)' "$dir/out"
}
for plan in "$plans"/*.yaml; do
    name=$(basename "$plan" .yaml)
    check "$name under data-flow is proved" dataflow_proved "$plan"
    check "... and as fast as under the clock" as_fast "$plan"
    check "... and runs, with the results of a serial run" runs "$plan"
done

# Where retiring waits for the device, the clock hands the jitter of a copy on to the iterations; data-flow absorbs it.
absorbs()
{
    sed 's/^schedule:/retire: device\n&/' "$plans/sparse_dist.yaml" >"$dir/device.yaml"
    still=$(mean dataflow <"$dir/device.yaml")
    for driver in clock dataflow; do
        mean $driver --jitter='H2D=gamma(cv=0.5)' <"$dir/device.yaml" >"$dir/$driver" || return
    done
    echo "# still $still, clock $(cat "$dir/clock"), data-flow $(cat "$dir/dataflow") ns"
    test $(($(cat "$dir/dataflow") * 200)) -le $((still * 201)) && test $(($(cat "$dir/clock") * 100)) -ge $((still * 101))
}
check "data-flow absorbs the jitter of the copy" absorbs
# Which are ahead, and how far, is printed.
turns() { "$SWSIM" schedule --driver=dataflow "$plans/sparse_dist.yaml" | grep -q '^  InputDistStart(i + 1), OutputDist(i), InputDistWait(i + 1), GradDist(i), AllReduce(i)$'; }
check "the order of its collectives is printed" turns
# The reference's sequencer, which keeps a thread waiting.
sequencer()
{
    sed 's/^schedule:/ticket_at: iteration\n&/' "$plans/sparse_dist.ready_first.yaml" |
        "$SWSIM" predict --driver=dataflow - 2>/dev/null | grep -q deadlock
}
check "ticket_at: iteration deadlocks under data-flow" sequencer
done_testing
