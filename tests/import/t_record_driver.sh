#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of the CUDA driver, recorded on emulated CUDA: memory that is mapped to reserved addresses, rectangles and boxes,
# launches with attributes, and functions that are asked for by name and version.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0 SWSIM_EMULATED_GPUS=2
program=$PWD/tests/record/driver_calls
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# record CASE [fixed]: leaves $dir/CASE.yaml.
record()
{
    races=report_bugs=0 # the program's own, which the thread sanitizer must not end it for
    [ "${2-}" = fixed ] && races=
    rm -rf "$dir/$1.swr"
    TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record -o "$dir/$1.swr" -- "$program" "$@" >"$dir/log" 2>&1 &&
        "$SWSIM" import -o "$dir/$1.yaml" "$dir/$1.swr" >>"$dir/log" 2>&1 || { cat "$dir/log"; return 1; }
}
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
# Nothing is left out but the extents of kernels.
proves() { record "$1" fixed && prints 0 '\(proved \|, except extents of kernels[^,]*\)  ' "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
but_for() { record "$1" && prints 0 "except .*$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }

check "a missing wait for mapped memory" finds mapped 'race.*fill<float> accesses.*axpy.*reads'
check "an array over the border of two mappings" finds over_border 'race.*memset accesses buffer device3.0.*fill.*writes'
check "half an array that nothing has written" finds kernel_over_border 'value.*copy of [^,]* reads buffer device3.*, which nothing has written'
check "memory that is unmapped under a kernel" finds unmapped_early 'race.*fill.*free device2'
check "other memory at the same addresses" finds mapped_anew 'value.*copy of [^,]* reads buffer device4.*, which nothing has written'
for case in mapped over_border kernel_over_border unmapped_early mapped_anew; do
    check "$case, repaired" proves $case
done
check "one memory at two addresses" but_for mapped_twice '1 call of cuMemMap of memory that was mapped before: the recording does not model it'
check "... and one after the other" but_for handle_kept '1 call of cuMemMap of memory that was mapped before'

# Streams that wait for each other by values in memory.
check "a value that no stream waits for" finds value 'race.*axpy.*fill\|race.*fill.*axpy'
check "a counter that is waited for too early" finds counter 'race.*axpy.*fill\|race.*fill.*axpy'
check "values of a batch that no stream waits for" finds batch 'race.*axpy.*fill\|race.*fill.*axpy'
values() { record "$1" fixed && prints 0 "except \(extents of kernels[^,]*, \)\{0,1\}values at $2 in memory: taken to be too small for the streams that wait, until a stream writes it  " joined "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
check "... repaired" values value '1 place'
check "the counter, repaired" values counter '1 place'
check "the batch, repaired" values batch '2 places'
check "a value that is set back" but_for value_falls '1 call of cuStreamWaitValue: the recording does not model it'
check "a value that two streams write" but_for two_writers '1 call of cuStreamWaitValue: the recording does not model it'
check "waits that no write ends" but_for other_waits '5 calls of cuStreamWaitValue: the recording does not model them'

check "rectangles that overlap by a column" finds columns 'race.*copy.*buffer device0.*copy'
check "... by a row" finds rows 'race.*copy.*buffer device0.2048.*copy'
check "boxes that overlap by a slice" finds slices 'race.*copy.*buffer device0.2048.*copy'
check "a rectangle for the host, too early" finds to_host 'race.*copy.*fill'
check "a launch with attributes, not waited for" finds launched 'race.*fill<float> accesses.*axpy'
check "a wait of CUDA 13 that is not there" finds newer_wait 'race.*fill<float> accesses.*axpy'
check "a graph of CUDA 11's function, not waited for" finds older_graph 'race.*axpy.*fill\|race.*fill.*axpy'
check "a driver that nobody asks" finds asked 'race.*fill<float> accesses.*axpy'
for case in columns rows slices to_host launched newer_wait older_graph; do
    check "$case, repaired" proves $case
done
check "CUDA does not promise that it keeps the host waiting" sh -c '! sed -n "/copy:/,\$p" "$0" | sed -n 2p | grep "sync: stream"' "$dir/to_host.yaml"
check "but it may" sh -c 'test "$(grep -c "pageable: true" "$0")" -ge 1' "$dir/to_host.yaml"
but_for_fixed() { record "$1" fixed && prints 0 "except .*$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
check "a driver that is asked until it is done" but_for_fixed asked '\(other answers of [12] quer\|[12] loops* of quer\)'
wait_for_it() { "$SWSIM" import --queries=wait -o "$dir/asked.yaml" "$dir/asked.swr" 2>"$dir/log" && prints 0 '\(proved \|, except extents[^,]*\)  ' "$SWSIM" verify --no-fix "$dir/asked.yaml"; }
check "... which is a wait" wait_for_it

for what in "programmatic stream serialization" "a programmatic event" "an attribute that is not known"; do
    check "a launch with $what" but_for attributes "1 call of cuLaunchKernelEx with $what: the recording does not model it"
done
check "a launch with packed arguments" but_for packed '1 call of cuLaunchKernel with packed arguments'
check "a wait for another context" but_for other_context '1 call of cuCtxSynchronize_v2 with another context'

if grep -q older_copies "$program"; then
    for case in copies older_copies; do
        check "$case of a batch, of which another stream writes what the second reads" finds $case 'race.*fill.*copy\|race.*copy.*fill'
        check "... repaired" proves $case
    done
else
    skip "CUDA before 13 has other batches"
fi

# The names that programs get have the functions of the recorder, of the version that the driver would have given.
cat >"$dir/versions" <<'END'
cuCtxCreate 3020 0: cuCtxCreate_v2
cuCtxCreate 11040 0: cuCtxCreate_v3
cuCtxCreate 12050 0: cuCtxCreate_v4
cuCtxSynchronize 12000 0: cuCtxSynchronize
cuCtxSynchronize 13000 0: cuCtxSynchronize_v2
cuEventElapsedTime 12000 0: cuEventElapsedTime
cuEventElapsedTime 12080 0: cuEventElapsedTime_v2
cuGraphExecUpdate 10020 0: cuGraphExecUpdate
cuGraphExecUpdate 12000 0: cuGraphExecUpdate_v2
cuGraphInstantiate 10000 0: cuGraphInstantiate
cuGraphInstantiate 11030 0: cuGraphInstantiate_v2
cuGraphInstantiate 12000 0: cuGraphInstantiateWithFlags
cuLaunchKernel 12000 0: cuLaunchKernel
cuLaunchKernel 12000 2: cuLaunchKernel_ptsz
cuMemAlloc 12000 0: cuMemAlloc_v2
cuMemAlloc 12000 2: cuMemAlloc_v2
cuMemcpyDtoDAsync 12000 2: cuMemcpyDtoDAsync_v2_ptsz
END
# gives DRIVER: the functions, by a driver of that version.
gives() { SWSIM_EMULATED_DRIVER=$1 "$SWSIM" record -o "$dir/none.swr" -- "$program" versions >"$dir/given" 2>"$dir/log"; diff "$dir/versions" "$dir/given"; }
check "the functions of each version" gives 13000
sed 's/_v4$/_v3/; s/^\(cuCtxSynchronize.*\)_v2$/\1/; s/^\(cuEventElapsedTime.*\)_v2$/\1/' "$dir/versions" >"$dir/older"
mv "$dir/older" "$dir/versions"
check "... by a driver that is older" gives 12040
done_testing
