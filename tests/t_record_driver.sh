#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of the CUDA driver, recorded on emulated CUDA: memory that is mapped to reserved addresses.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
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
finds() { record "$1" && prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
# Nothing is left out but the extents of kernels.
proves() { record "$1" fixed && prints 0 'proved \(but for extents of kernels[^,]*\)\{0,1\}  ' "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
but_for() { record "$1" && prints 0 "proved but for .*$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }

check "a missing wait for mapped memory" finds mapped 'race.*fill<float> accesses.*axpy.*reads'
check "an array over the border of two mappings" finds over_border 'race.*memset accesses buffer device3.0.*fill.*writes'
check "half an array that nothing has written" finds kernel_over_border 'value.*copy reads buffer device3.*, which nothing has written'
check "memory that is unmapped under a kernel" finds unmapped_early 'race.*fill.*free device2'
check "other memory at the same addresses" finds mapped_anew 'value.*copy reads buffer device4.*, which nothing has written'
for case in mapped over_border kernel_over_border unmapped_early mapped_anew; do
    check "$case, repaired" proves $case
done
check "one memory at two addresses" but_for mapped_twice '1 call of cuMemMap of memory that was mapped before: the recording does not model it'
check "... and one after the other" but_for handle_kept '1 call of cuMemMap of memory that was mapped before'
done_testing
