#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim record of the calls that real programs use, on emulated CUDA: memory in the order of streams, rectangles and boxes,
# graphs, communicators made of others; calls that nothing models are told, and every function of the libraries is known.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}"
program=$PWD/tests/record/calls

# Every function of CUDA's libraries and NCCL is modelled, told or harmless.
recorder=$PWD/libswrecord.so
exported() { nm -D --defined-only "$1" 2>/dev/null | awk '{ sub(/@.*/, "", $3); print $3 }' | grep -E '^((__)?cuda|cu|nccl)[A-Z]' | sort -u; }
# knows LIBRARY: prints the functions that the recorder has nothing to say of.
knows()
{
    exported "$1" >"$dir/theirs"
    [ -s "$dir/theirs" ] || return 1
    { exported "$recorder"; sed -n '/^\[harmless\]/,/^\[/p' "$srcdir/trace/record/recorder/functions.txt" | tr ' ' '\n'; } >"$dir/ours"
    sed -E 's/_pt[sd][zs]$//; s/_v[234]$//' "$dir/theirs" | paste - "$dir/theirs" |
        awk 'NR == FNR { known[$1] = 1; next } !($1 in known) && !($2 in known) { print $2; found = 1 } END { exit found }' "$dir/ours" -
}
for library in libcudart.so stubs/libcuda.so libnccl.so; do
    found=
    for folder in "${CUDA_DIR:-/usr/local/cuda}"/lib64 /usr/local/cuda-*/lib64; do
        [ ! -f "$folder/$library" ] || found=$folder/$library
    done
    if [ -n "$found" ] && [ -f "$recorder" ] && command -v nm >/dev/null; then
        check "the functions of $library" knows "$found"
    else
        skip "no $library here"
    fi
done
if [ ! -x "$program" ]; then
    skip "built without CUDA's toolkit, which the emulation is compiled against"
    done_testing; exit
fi

export SWSIM_EMULATED_GPUS=4 SWSIM_RECORD_TIMES=0
how=
record()
{
    races=report_bugs=0 # the program's own, which the thread sanitizer must not end it for
    [ "${2-}" = fixed ] && races=
    rm -rf "$dir/$1.swr"
    TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record $how -o "$dir/$1.swr" -- "$program" "$@" >"$dir/log" 2>&1
    ended=$?
    "$SWSIM" import -o "$dir/$1.yaml" "$dir/$1.swr" >>"$dir/log" 2>&1 || cat "$dir/log"
    return $ended
}
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
hangs() { record "$1"; prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
# Nothing is left out but what `$2` names.
proves()
{
    record "$1" fixed && prints 0 'proved' "$SWSIM" verify --no-fix "$dir/$1.yaml" &&
        ! awk '/^unrecorded:/ { on = 1; next } /^[^ ]/ { on = 0 } on' "$dir/$1.yaml" |
            grep -v "extents of kernels${2:+\\|$2}"
}
but_for() { record "$1" && prints 0 "except .*$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }

# The recorder's constructors run once in a process, also where it looks at all libraries at the end.
begins_once()
{
    LD_DEBUG=files LD_DEBUG_OUTPUT="$dir/loader" "$SWSIM" record -o "$dir/once.swr" -- "$program" pool_free >/dev/null 2>&1
    cat "$dir"/loader.* >"$dir/begun"
    grep -c 'calling init: .*/libswrecord.so' "$dir/begun" | grep -qx 1
}
check "the recorder begins once" begins_once

check "a free in a stream that does not wait for another's access" finds pool_free 'race.*axpy.*free device3'
check "memory that another stream uses before it is allocated" finds pool_owner 'lifetime.*fill.*without an order behind its allocation'
check "cudaFree does not wait for memory of a pool" finds pool_freed_now 'race.*fill.*free device3'
check "cudaFreeAsync of memory of cudaMalloc" finds freed_in_stream 'race.*fill.*free device3'
check "a pool of the program's own, and the thread's stream" finds pool_of_own 'race.*axpy.*fill'
check "a device that is reset under a kernel" finds reset 'race.*fill.*free device0'
check "columns that two streams write" finds columns 'race.*memset.*copy'
check "columns that nothing has written" finds unwritten_columns 'value.*copy of [^,]* reads buffer device3.64'
check "boxes that overlap" finds boxes 'race.*copy.*memset'
check "a copy of a box on the device keeps nobody waiting" finds box_to_host 'race.*memset'
check "a box for another device" finds peer_box 'race.*copy.*fill'
check "nobody looks at a time between events" finds elapsed 'race.*axpy.*fill'
for case in pool_free pool_owner pool_freed_now freed_in_stream pool_of_own reset unwritten_columns boxes box_to_host peer_box; do
    check "$case, repaired" proves $case
done
check "elapsed, repaired: it asks for the time until it is there" proves elapsed '\(other answers of 1 query\|1 loop of queries\)'
check "columns, repaired" proves columns "the host's accesses"
check "rows that are not looked at one by one" but_for many_rows 'rows of 2 copies or fills: more than 64'
if grep -q 'cudaStreamBeginCaptureToGraph' "$program"; then
    check "an executable that becomes another graph's" finds graphs 'race.*axpy.*fill'
    check "... repaired" proves graphs
else
    skip "CUDA before 12.3 has no captures into graphs"
fi
check "an event that a graph records too early" finds external_record 'race.*axpy.*fill\|race.*fill.*axpy'
check "a graph that waits for an event that is not recorded yet" finds external_wait 'race.*axpy.*fill\|race.*fill.*axpy'
check "external_record, repaired" proves external_record
check "external_wait, repaired" proves external_wait

check "memory that a graph frees under a kernel" finds graph_memory 'race.*axpy.*free device3\|race.*free device3.*axpy'
check "... that it uses before it is allocated" finds graph_memory_owner 'race.*fill.*alloc device3\|race.*alloc device3.*fill'
check "... that is read outside, too early" finds graph_memory_outside 'race.*axpy.*alloc device3\|race.*fill.*axpy'
for case in graph_memory graph_memory_owner graph_memory_outside; do
    check "$case, repaired" proves $case 'values in 1 allocation of graphs: a launch that reads them before it writes them is not found'
done

check "a half of the ranks: one of them sums fewer" hangs split 'mismatch.*all_reduce'
check "divided in a group: a race" finds split_in_group 'race.*all_reduce.*all_reduce'
check "divided without blocking: a race" finds split_later 'race.*axpy.*all_reduce'
check "all GPUs of a process" finds all_gpus 'race.*axpy accesses buffer r1.*all_reduce'
check "GPUs of a process, made in a group" finds gpus_in_group 'race.*axpy accesses buffer r1.*all_reduce'
for case in split split_in_group split_later all_gpus gpus_in_group; do
    check "$case, repaired" proves $case
done
if grep -q ncclCommShrink "$program"; then
    check "shrunk: a message that nobody receives" hangs shrunk 'deadlock\|message'
    check "... repaired" proves shrunk
fi
if grep -q ncclGroupSimulateEnd "$program"; then
    check "a simulated group does nothing: the next one hangs" hangs simulated 'mismatch'
    check "... repaired" proves simulated
fi

check "a launch that may begin early" but_for attributes '1 call of cudaLaunchKernelExC with programmatic stream serialization: the recording does not model it'
check "one that records an event" but_for attributes '1 call of cudaLaunchKernelExC with a programmatic event: the recording does not model it'

# What nothing models is told: by calls, by functions that are newer than the recorder, by libraries.
if grep -q cudaMemcpyBatchAsync "$program"; then
    check "a batch of copies, of which another stream reads the second" finds batch 'race.*axpy.*copy\|race.*copy.*axpy'
    check "... writes what the first one reads" finds batch_reads 'race.*fill.*copy\|race.*copy.*fill'
    check "... repaired" proves batch
    check "... repaired" proves batch_reads
    how=--host-accesses
    check "the host reads what a batch copies for it, too early" finds batch_to_host 'race.*read pinned\|race.*copy'
    check "... repaired" proves batch_to_host
    how=
    check "copies of a batch that depend on each other" but_for batch_depends '1 call of cudaMemcpyBatchAsync with copies that depend on each other: the recording does not model it'
    check "calls that nothing models" but_for batch_in_call "3 calls of cudaMemcpyBatchAsync that reads out of the stream.s order: the recording does not model them"
    check "more copies than an item can say, and as many" but_for batch_of_many '1 call of cudaMemcpyBatchAsync of more than 170 copies: the recording does not model it'
else
    skip "CUDA before 13 has other batches"
fi
not_captured='a graph: it was not captured'
says_of_nodes() { but_for graph_nodes "1 call of $1: the recording does not model it" && but_for graph_nodes "$not_captured"; }
check "memory that nodes of a graph allocate" says_of_nodes cudaGraphAddMemAllocNode
check "... and free" says_of_nodes cudaGraphAddMemFreeNode
for call in cudaMallocArray cudaCreateTextureObject cudaCreateSurfaceObject; do
    check "textures and surfaces: $call" but_for textures "1 call of $call: the recording does not model it"
done
echo 'int cudaOfTomorrow(void); int cudaOfTomorrow(void) { return 0; }' >"$dir/tomorrow.c"
if "$CC" -shared -fPIC -Wl,-soname,libcudart.so.tomorrow -o "$dir/libcudart.so.tomorrow" "$dir/tomorrow.c" 2>/dev/null; then
    linked() { export LD_PRELOAD="$dir/libcudart.so.tomorrow"; record tomorrow; ended=$?; unset LD_PRELOAD; return $ended; }
    told() { linked && prints 0 'except cudaOfTomorrow: the recorder does not see what it does' "$SWSIM" verify --no-fix "$dir/tomorrow.yaml"; }
    check "a function that is newer than the recorder" told
    asks() { export LD_LIBRARY_PATH="$dir:${LD_LIBRARY_PATH-}"; but_for asks_for_tomorrow 'cudaOfTomorrow: the recorder does not see what it does'; }
    check "one that is asked for by name" asks
else
    skip "no compiler that makes shared libraries"
fi
if [ -f tests/cuda_emulation/libcublas.so ]; then
    unseen() { export LD_PRELOAD="$PWD/tests/cuda_emulation/libcublas.so"; record leaves; unset LD_PRELOAD; prints 0 'except libcublas.so' "$SWSIM" verify --no-fix "$dir/leaves.yaml"; }
    check "a library that is not seen, of a program that leaves by _exit" unseen
else
    skip "built without cuBLAS"
fi
done_testing
