#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# predict --hardware: whether recorded memory fits on a GPU, by name or from a file, and what is wrong with a file.
. "${srcdir:-.}/tests/tap.sh"

# memory ENTRY: a plan whose rank 0 has it.
memory()
{
    printf 'swplan: 1\nthreads: {r0.main: [{launch: k}], r1.main: [{launch: k}]}\nmemory: [%s]\n' "$1" >"$dir/plan.yaml"
}
# says STATUS TEXT HARDWARE
says()
{
    "$SWSIM" predict -q --hardware="$3" "$dir/plan.yaml" >"$dir/out" 2>&1
    code=$?
    cat "$dir/out"
    test $code -eq "$1" && grep -qF -- "$2" "$dir/out"
}

memory '{rank: 0, peak: 70GiB, reserved: 71GiB, device: 71GiB}, {rank: 1, peak: 70GiB, reserved: 71GiB, device: 71GiB}'
check "it fits" says 0 'ranks 0..1: fits on h100-sxm; tensors take 70.0 GiB' h100-sxm
check "... on what is called by its memory" says 0 'fits on h100-sxm' h100-80
check "... not on a smaller one" says 1 'does not fit on v100-sxm2-16' v100-sxm2-16
memory '{rank: 0, peak: 70GiB, reserved: 79GiB, device: 79GiB}'
check "the allocator gives back what is more" says 0 'fits only just on h100-sxm' h100-sxm
memory '{rank: 0, peak: 78.5GiB, reserved: 78.5GiB, device: 78.5GiB}'
check "CUDA and NCCL have a part" says 1 'does not fit' h100-sxm
check "... which is not known of each" says 0 'not known and not counted' a100-80
memory '{rank: 0, peak: 10GiB, reserved: 10GiB, device: 75GiB}'
check "memory without tensors counts" says 0 'fits on' h100-sxm
memory '{rank: 0, peak: 20GiB, reserved: 20GiB, device: 85GiB}'
check "... as much as that of tensors" says 1 'does not fit' h100-sxm
memory '{rank: 0, peak: 1GiB, device: 1GiB, refused: 2GiB, at: "train.py:7"}'
check "an allocation that failed" says 1 'did not fit on the recorded device' h100-sxm

# file TEXT
file()
{
    printf '%s\n' "$1" >"$dir/gpu.yaml"
}
memory '{rank: 0, peak: 70GiB, reserved: 70GiB, device: 70GiB}'
file 'base: h100-sxm
memory: 60GiB'
check "a file has other figures" says 1 "does not fit on $dir/gpu.yaml" "$dir/gpu.yaml"
file 'base: h100-sxm
name: big
memory: 90GiB
outside: 10GiB'
check "... and a name" says 0 'fits on big' "$dir/gpu.yaml"
file 'bandwidth: 1TB/s
name: odd'
check "a figure that is missing has its name" says 3 "hardware odd: its figure 'memory' is not known" "$dir/gpu.yaml"
file 'base: h300'
check "an unknown base has its place" says 3 'gpu.yaml:1:7: error: found "h300", expected one of v100-sxm2-16 ' "$dir/gpu.yaml"
file 'base: h100-sxm
bandwith: 1TB/s'
check "an unknown key, too" says 3 'gpu.yaml:2:1: error: found unknown key "bandwith"' "$dir/gpu.yaml"
file 'f16: 3'
check "a wrong unit, too" says 3 'gpu.yaml:1:6: error: found "3", expected operations a second such as 150TFLOPS' "$dir/gpu.yaml"
check "a file that is not there" says 2 'none.yaml' "$dir/none.yaml"
check "an unknown name" says 3 "found no hardware 'h100-sxn'; did you mean 'h100-sxm'?" h100-sxn
printf 'swplan: 1\nthreads: {r0.main: [{launch: k}]}\n' >"$dir/plan.yaml"
"$SWSIM" predict --hardware=h100-sxm "$dir/plan.yaml" >"$dir/out" 2>&1
check "no memory was recorded" grep -F 'no memory was recorded' "$dir/out"

done_testing
