#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# spin.sh - SPIN and `swsim verify` side by side; `make bench-spin` runs it.
#
# Four tables: both at their best on the same plans; both without any reduction, at the same grain; and
# swsim alone on TorchRec's plans and on data-flow in depth. SPIN gets lean models
# (tests/spin/lean.h). Times are process times (user and system), SPIN's without its compilation.
#
#   SWSIM_BENCH_LIMIT   seconds for one run (60); a ratio against SPIN at its limit is "> x"
#   SWSIM_BENCH_MEMORY  MiB for SPIN's states (8000); beyond them it is tried with -DCOLLAPSE
#   SWSIM_BENCH_RUNS    runs of swsim for a median (5)
#   SWSIM_BENCH_ROWS    only rows whose name holds this
#   SWSIM_BENCH_JSON    a file for all figures, one JSON object a line
#
# A row of SPIN's: NAME PLAN GROUPS RETIRE DRIVER N RANKS W. GROUPS is the number of thread groups,
# W SPIN's hash table (-w), big enough for the states; behind it a model in place of the lean one. The plans are plans/reference/PLAN.yaml with
# these two keys changed (`variant`).
set -eu
: "${srcdir:=.}"
: "${SWSIM:=./swsim}"
: "${PRINT_MODEL:=tests/spin/print_model}"
: "${PROCTIME:=tests/bench/proctime}"
: "${CC:=cc}"
: "${SWSIM_BENCH_LIMIT:=60}"
: "${SWSIM_BENCH_MEMORY:=8000}"
: "${SWSIM_BENCH_RUNS:=5}"
: "${SWSIM_BENCH_ROWS:=}"
: "${SWSIM_BENCH_JSON:=/dev/null}"

absolute() { case $1 in /*) echo "$1" ;; *) echo "$(pwd)/$1" ;; esac; }
SWSIM=$(absolute "$SWSIM")
PRINT_MODEL=$(absolute "$PRINT_MODEL")
PROCTIME=$(absolute "$PROCTIME")
plans=$(absolute "$srcdir")/plans/reference
json=$(absolute "$SWSIM_BENCH_JSON")
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
export PROCTIME_OUT="$dir/time"
same="--property=deadlock,mismatch,drain" # what SPIN is asked, too

: >"$json"

# variant PLAN GROUPS RETIRE: the plan on standard output. With two groups copies have a thread of
# their own, with three the exchange of sparse ids as well.
variant()
{
    case $2 in
    1) set -- "$1" NONE "$3" ;;
    2) set -- "$1" memcpy "$3" ;;
    3) set -- "$1" '[a-z_]*' "$3" ;;
    esac
    sed -e "s/^swplan: 1/&\nretire: $3/" -e "s/stream: \($2\),/&\ thread_group: \1,/" \
        "$plans/$1.yaml"
}

# process_time RUNS COMMAND...: sets seconds and ended (an exit status, or limit); output in $dir/out.
process_time()
{
    runs=$1
    shift
    "$PROCTIME" "$runs" "$SWSIM_BENCH_LIMIT" "$@" >"$dir/out" 2>&1 </dev/null
    read -r seconds _ ended <"$dir/time"
}

calc() { awk "BEGIN { printf \"$1\", $2 }"; }
ms() { calc "%.2f" "1000 * $1"; }

# build_pan FLAG...: SPIN's analyser for $dir/model.pml.
build_pan()
{
    (cd "$dir" && $CC -w -O2 -DSAFETY -DVECTORSZ=4096 "-DMEMLIM=$SWSIM_BENCH_MEMORY" "$@" -o pan pan.c)
}

# run_pan W: sets spin_states, spin_seconds, vector, state_bytes; ended is 0, limit or memory.
run_pan()
{
    (cd "$dir" && "$PROCTIME" 1 "$SWSIM_BENCH_LIMIT" ./pan -q -m1000000 "-w$1" -n >pan.out 2>&1)
    read -r spin_seconds _ ended <"$dir/time"
    spin_states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/pan.out")
    vector=$(sed -n 's/^State-vector \([0-9]*\).*/\1/p' "$dir/pan.out")
    state_bytes=$(awk '/actual memory usage for states/ { print $1 * 1048576; exit }' "$dir/pan.out")
    if test -z "$spin_states"; then # stopped: what it had reached when it last said
        spin_states=$(sed -n 's/.*States= *\([0-9.e+]*\) .*/\1/p' "$dir/pan.out" | tail -1)
        : "${spin_states:=0}"
        vector=0
        state_bytes=0
    fi
    ! grep -q 'memory limit\|out of memory' "$dir/pan.out" || ended=memory
    if grep -q 'errors: [1-9]' "$dir/pan.out"; then # the rows are plans that hold
        cat "$dir/pan.out" >&2
        exit 1
    fi
}

our_field() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" "$dir/out" | head -1; }

# ours RUNS OPTION...: swsim verify on $dir/plan.yaml; sets seconds, ended, our_states, our_bytes.
ours()
{
    runs=$1
    shift
    process_time "$runs" "$SWSIM" verify --quiet --json "$@" "$dir/plan.yaml"
    our_states=$(our_field states)
    our_bytes=$(our_field peak_bytes)
    case $ended in 0 | 1 | limit) ;; *) head -c 2000 "$dir/out" >&2; exit 1 ;; esac
}

shown() { case $1 in *"$SWSIM_BENCH_ROWS"*) ;; *) return 1 ;; esac; }

# ---- each as good as it can ------------------------------------------------------------------------

best_row()
{
    name=$1 driver=$5 n=$6 ranks=$7
    shown "$name" || return 0
    variant "$2" "$3" "$4" >"$dir/plan.yaml"
    if test "${9-}"; then
        cp "$9" "$dir/model.pml"
    else
        "$PRINT_MODEL" "$dir/plan.yaml" "$driver" "$n" "$ranks" >"$dir/model.pml"
    fi
    (cd "$dir" && spin -a model.pml)
    mode=plain
    build_pan
    run_pan "$8"
    if test "$ended" = memory; then
        mode=collapse
        build_pan -DCOLLAPSE
        run_pan "$8"
    fi
    spin_ended=$ended
    more=
    test "$spin_ended" = 0 || more='> '
    ours "$SWSIM_BENCH_RUNS" "$same" "--driver=$driver" "--ranks=$ranks" "--iterations=$n"
    same_n=$seconds same_states=$our_states
    ours "$SWSIM_BENCH_RUNS" "$same" "--driver=$driver" "--ranks=$ranks"
    open=$seconds
    ours 1 "--driver=$driver" "--ranks=$ranks"
    all=$(ms "$seconds")
    case $ended in 1) all="$all !" ;; limit) all="> $all" ;; esac
    ratio=$(calc %.0f "$spin_seconds / $same_n")
    printf '%-30s %-9s %-6s %2d %1d %11s %9.2f %8s %-8s %6s %8s %8s %9s %9s\n' "$name" "$driver" "$4" \
        "$n" "$ranks" "$spin_states" "$spin_seconds" \
        "$(calc %.2f "$spin_states / ($spin_seconds + 1e-6) / 1e6")" "$mode" "$same_states" \
        "$(ms "$same_n")" "$(ms "$open")" "$all" "$more$ratio"
    printf '{"table":"best","plan":"%s","driver":"%s","retire":"%s","iterations":%d,"ranks":%d,"spin_states":%s,"spin_seconds":%s,"spin_mode":"%s","spin_ended":"%s","spin_vector_bytes":%s,"states":%s,"seconds":%s,"seconds_unbounded":%s,"ratio":%s}\n' \
        "$name" "$driver" "$4" "$n" "$ranks" "$(calc %.0f "$spin_states")" "$spin_seconds" "$mode" \
        "$spin_ended" "$vector" "${same_states:-0}" "$same_n" "$open" "$ratio" >>"$json"
}

best()
{
    echo "SPIN's best mode (partial-order reduction, -O2 -DSAFETY) and swsim verify: deadlock and mismatch"
    echo "over N iterations; 'any N': swsim for any number of iterations; 'all': all properties, any number;"
    echo "'!': one of them is violated (with retire: submit the bound), shown with a shortest counterexample"
    printf '%-30s %-9s %-6s %2s %1s %11s %9s %8s %-8s %6s %8s %8s %9s %9s\n' plan driver retire N R \
        'SPIN states' 'SPIN s' 'M/s' mode states 'ms' 'any N ms' 'all ms' ratio
    best_row "SparseDist" sparse_dist 1 device clock 8 1 18
    best_row "FusedSparseDist" fused_sparse_dist 1 device clock 8 1 18
    best_row "SparseDist 3 groups" sparse_dist 3 device clock 8 1 22
    best_row "SparseDist" sparse_dist 1 submit clock 8 1 22
    best_row "SparseDist, model by hand" sparse_dist 1 submit clock 8 1 22 "$plans/../../tests/bench/hand.pml"
    best_row "FusedSparseDist" fused_sparse_dist 1 submit clock 8 1 23
    best_row "Prefetch" prefetch 1 submit clock 8 1 24
    best_row "SparseDist 3 groups" sparse_dist 3 submit clock 8 1 26
    best_row "SparseDist" sparse_dist 1 submit dataflow 3 1 21
    best_row "FusedSparseDist" fused_sparse_dist 1 submit dataflow 3 1 22
    best_row "Base 2 ranks" base 1 submit clock 2 2 24
    best_row "SparseDist 2 ranks" sparse_dist 1 submit clock 1 2 20
}

# ---- without reduction, at the same grain ----------------------------------------------------------

middle() { sort -g | sed -n 2p; }

unreduced_row()
{
    name=$1 driver=$5 n=$6 ranks=$7
    shown "$name" || return 0
    # Without buffers: knowledge of accesses is part of our states and not of SPIN's.
    variant "$2" "$3" "$4" >"$dir/with_buffers.yaml"
    "$SWSIM" export "$dir/with_buffers.yaml" | sed '/^ *\(reads\|writes\): \[/d' >"$dir/plan.yaml"
    "$PRINT_MODEL" "$dir/plan.yaml" "$driver" "$n" "$ranks" exact >"$dir/model.pml"
    (cd "$dir" && spin -a -o3 model.pml)
    build_pan -DNOREDUCE
    : >"$dir/a"
    : >"$dir/b"
    for _ in 1 2 3; do
        run_pan "$8"
        echo "$spin_seconds" >>"$dir/a"
        ours 1 "$same" --no-reduction "--driver=$driver" "--ranks=$ranks" "--iterations=$n" \
            --limit=mem=8GiB
        echo "$seconds" >>"$dir/b"
    done
    theirs=$(middle <"$dir/a") mine=$(middle <"$dir/b")
    printf '%-30s %-9s %-6s %2d %1d %11s %11s %9.3f %9.3f %8.2f %8.2f %7s %7.0f\n' "$name" "$driver" "$4" \
        "$n" "$ranks" "$spin_states" "$our_states" "$theirs" "$mine" \
        "$(calc %.2f "$spin_states / $theirs / 1e6")" "$(calc %.2f "$our_states / $mine / 1e6")" \
        "$(calc %.0f "$state_bytes / $spin_states")" "$(calc %.0f "$our_bytes / $our_states")"
    printf '{"table":"unreduced","plan":"%s","driver":"%s","retire":"%s","iterations":%d,"ranks":%d,"spin_states":%s,"states":%s,"spin_seconds":%s,"seconds":%s,"spin_bytes":%s,"bytes":%s}\n' \
        "$name" "$driver" "$4" "$n" "$ranks" "$(calc %.0f "$spin_states")" "$our_states" "$theirs" \
        "$mine" "$(calc %.0f "$state_bytes")" "$our_bytes" >>"$json"
}

unreduced()
{
    echo "without reduction, at the same grain: states, process time, states a second, bytes a state"
    printf '%-30s %-9s %-6s %2s %1s %11s %11s %9s %9s %8s %8s %7s %7s\n' plan driver retire N R \
        'SPIN states' states 'SPIN s' s 'SPIN M/s' 'M/s' 'SPIN B' B
    unreduced_row "SparseDist" sparse_dist 1 device clock 8 1 18
    unreduced_row "FusedSparseDist" fused_sparse_dist 1 device clock 8 1 18
    unreduced_row "SparseDist" sparse_dist 1 submit clock 4 1 19
    unreduced_row "SparseDist" sparse_dist 1 device dataflow 2 1 18
    unreduced_row "SparseDistLite 2 ranks" sparse_dist_lite 1 device clock 1 2 21
}

# ---- swsim alone -----------------------------------------------------------------------------------

torchrec()
{
    echo "swsim verify, any number of iterations, all properties: process time"
    printf '%-30s %10s %8s %10s %8s\n' plan 'clock ms' states 'dataflow' states
    for plan in "$plans"/*.yaml; do
        case $plan in *.upstream.yaml) continue ;; esac
        name=$(basename "$plan" .yaml)
        shown "$name" || continue
        cp "$plan" "$dir/plan.yaml"
        ours "$SWSIM_BENCH_RUNS" --driver=clock
        clock=$seconds clock_states=$our_states
        ours "$SWSIM_BENCH_RUNS" --driver=dataflow
        printf '%-30s %10s %8s %10s %8s\n' "$name" "$(ms "$clock")" "${clock_states:--}" \
            "$(ms "$seconds")" "${our_states:--}"
        printf '{"table":"torchrec","plan":"%s","clock_seconds":%s,"clock_states":%s,"dataflow_seconds":%s,"dataflow_states":%s}\n' \
            "$name" "$clock" "${clock_states:-0}" "$seconds" "${our_states:-0}" >>"$json"
    done
}

depths()
{
    echo "data-flow, any number of iterations, all properties: process time in ms by max_depth"
    printf '%-30s %6s' plan groups
    for depth in 2 3 4 5 6 7 8; do printf ' %8d' $depth; done
    echo
    for plan in base sparse_dist fused_sparse_dist prefetch semi_sync; do
        for groups in 1 2 3; do
            shown "$plan" || continue
            variant $plan $groups device >"$dir/plan.yaml"
            printf '%-30s %6d' $plan $groups
            for depth in 2 3 4 5 6 7 8; do
                ours "$SWSIM_BENCH_RUNS" --driver=dataflow --max-depth=$depth
                case $ended in 0 | 1) printf ' %8s' "$(ms "$seconds")" ;; *) printf ' %8s' 'limit' ;; esac
                printf '{"table":"depth","plan":"%s","groups":%d,"max_depth":%d,"seconds":%s,"ended":"%s"}\n' \
                    $plan $groups $depth "$seconds" "$ended" >>"$json"
            done
            echo
        done
    done
}

if command -v spin >/dev/null 2>&1; then
    best
    echo
    unreduced
    echo
else
    echo "SPIN is not installed (Debian package spin): swsim alone"
fi
torchrec
echo
depths
