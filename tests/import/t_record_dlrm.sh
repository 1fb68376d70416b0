#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The DLRM of the examples on emulated CUDA, NCCL and cuBLAS as shared libraries, recorded from outside: one run of two
# processes that went well proves the plans that are right for every interleaving, and shows the race of the wrong one.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_EMULATED_GPUS=2 SWSIM_NCCL="$PWD/tests/cuda_emulation/libnccl.so.2"
export SWSIM_CUPTI="$PWD/tests/cuda_emulation/libcupti.so"
dlrm=$PWD/tests/dlrm_shared
[ -x "$dlrm" ] || skip_all "built without cuBLAS"
plans=$srcdir/doc/examples/dlrm

# A rank of RANKS for each process, on a port that is free with luck.
cat >"$dir/ranks" <<'END'
plan=$1 ranks=$2 port=$3 rank=1 failed=0 pids=
while [ $rank -lt "$ranks" ]; do
    "$0" "$plan" --quiet --iterations 4 --ranks "$ranks" --rank $rank --address "127.0.0.1:$port" & pids="$pids $!"
    rank=$((rank + 1))
done
"$0" "$plan" --quiet --iterations 4 --ranks "$ranks" --rank 0 --address "127.0.0.1:$port" || failed=1
for pid in $pids; do wait "$pid" || failed=1; done
exit $failed
END
# record PLAN RANKS [OPTION...]: leaves $dir/PLAN.yaml.
record()
{
    plan=$1 ranks=$2
    shift 2
    rm -rf "$dir/$plan.swr"
    "$SWSIM" record "$@" -o "$dir/$plan.swr" -- sh -c ". '$dir/ranks'" "$dlrm" "$plans/$plan.yaml" "$ranks" $((20000 + $$ % 20000)) >"$dir/losses" 2>"$dir/log" &&
        "$SWSIM" import -o "$dir/$plan.yaml" "$dir/$plan.swr" 2>>"$dir/log" || { cat "$dir/log"; return 1; }
}
logs() { grep -q -- "$1" "$dir/log" || { cat "$dir/log"; return 1; }; }
# A run of a slow host in which every query finds its work done has waits that the plan of the program has not: no proof
# without a word of it.
races()
{
    for run in 1 2 3; do
        verdict 1 "$1" "$2" && return
        verdict 0 'except .*\(other answers of [0-9]* queries: where work is not done yet\|loops* of queries\)' "$2" || return 1
        [ $run = 3 ] || record "$2" "$ranks" || return 1
    done
}
verdict() { prints "$1" "$2" joined "$SWSIM" verify --no-fix --no-shorten "$dir/$3.yaml"; }

for ranks in 1 2; do
    for plan in sparse_dist fused semi_sync; do
        check "$plan on $ranks ranks is recorded" record $plan $ranks
        check "and proved, but for what cuBLAS does" verdict 0 'except libcublas.so: the recorder does not see what it does' $plan
    done
    check "the wrong plan on $ranks ranks ends well" record wrong $ranks
    check "and is found out" races 'race, always: each<look_up, &look_up_one> accesses buffer device1, which each<adagrad, &adagrad_one> of .*stream5 writes without an order' wrong
    # Rows that are not the same are of one allocation.
    check "prefetch on $ranks ranks is recorded" record prefetch $ranks
    check "and its rows are taken for one memory" verdict 1 'race, always: .*move_row_one>.*without an order' prefetch
done
# What a struct points to may be written: a race of the wrong plan is one of a write, and by reads alone there is none.
check "structs are told" logs 'launches with structs may write all that these point to'
by_reads() { "$SWSIM" import --structs=read -o "$dir/reads.yaml" "$dir/wrong.swr" 2>"$dir/log" && prints 0 'except libcublas' "$SWSIM" verify "$dir/reads.yaml"; }
check "and can be taken for reads" by_reads
check "which is told, too" logs 'by --structs=read [0-9]* launches with structs write nothing'

check "the losses are those of a run without the recorder" sh -c '
    "$1" "$2" --quiet --iterations 4 --ranks 1 >"$3/alone" && sort "$3/alone" >"$3/a"' sh "$dlrm" "$plans/prefetch.yaml" "$dir"
check "of the same ranks" record prefetch 1
check "bit for bit" cmp "$dir/alone" "$dir/losses"

# The library's threads take the fault by which an access of the host to pinned memory is seen.
check "with the host's accesses" record fused 2 --host-accesses
# Where only the accesses of the host that nobody sees order two works in the run, the next run mostly has another order.
proved_with_host() { verdict 0 "$1" fused || { record fused 2 --host-accesses && verdict 0 "$1" fused; } || { record fused 2 --host-accesses && verdict 0 "$1" fused; }; }
check "which are proved, too" proved_with_host "except libcublas.so: the recorder does not see what it does, other threads' accesses to [0-9]* allocations: only the first [^,]*, the host's accesses in parts to [0-9]* allocations: only the first [^,]*, extents of kernels"

# Works of cuBLAS have times by CUPTI, and no call.
check "with times" record sparse_dist 2
check "the products are told apart" grep -q 'measured operations of .* belong to no recorded call' "$dir/log"
check "all but they have times" sh -c '! sed -n "/^threads:/,\$p" "$0" | grep launch: | grep -v time:' "$dir/sparse_dist.yaml"
check "and can be predicted" prints 0 'makespan_ns":[1-9]' "$SWSIM" predict --json "$dir/sparse_dist.yaml"
done_testing
