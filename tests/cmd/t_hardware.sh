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
check "it fits" says 0 'ranks 0..1: fits on h100-sxm; at the peak tensors take 70.0 GiB' h100-sxm
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
check "a figure that is missing has its name" says 3 "hardware odd: its figure 'kernel' is not known" "$dir/gpu.yaml"
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

# ---- times ------------------------------------------------------------------------------------------

# GPUs of round figures: 1 TB/s, 100 Tflop/s, NVLink of two with 100 GB/s, 10 GB/s between them.
round='name: round
bandwidth: 1TB/s
f16: 100TFLOPS
nvlink: 100GB/s
domain: 2
network: 10GB/s
copy: 20GB/s
launch: 1us
kernel: 2us'
# takes TIME OPERATIONS [SED]: a plan of rank 0 with these takes so long on the hardware, changed by SED.
takes()
{
    printf 'swplan: 1\ncomms: {two: [0, 1], %s}\nthreads: {%s}\n' "$others" "$2" >"$dir/plan.yaml"
    printf '%s\n' "$round" | sed "${3:-}" >"$dir/gpu.yaml"
    "$SWSIM" predict --hardware="$dir/gpu.yaml" ${4:-} "$dir/plan.yaml" >"$dir/out" 2>"$dir/err"
    cat "$dir/out" "$dir/err"
    grep -qE "^  total +$1 *( |\$)" "$dir/out"
}
others='all: [0, 1, 2, 3]'
# each RANKS OPERATION: threads that do it.
each()
{
    separator=
    for rank in $1; do
        printf '%s r%d.main: [%s]' "$separator" $rank "$2"
        separator=,
    done
}
moves='r0.main: [{launch: k, cost: {bytes: 100MB}}]'
check "a kernel takes what its bytes take, behind its launch" takes '101 us' "$moves"
check "... at another bandwidth" takes '201 us' "$moves" 's/^bandwidth.*/bandwidth: 500GB\/s/'
check "... and at a share of it" takes '201 us' "$moves" '$a\reached: 0.5'
check "... and behind a slower launch" takes '110 us' "$moves" 's/^launch.*/launch: 10us/'
check "or what its numbers take" takes '1.00 ms' 'r0.main: [{launch: k, cost: {bytes: 100MB, flops: 100000000000, numbers: f16}}]'
check "... at another rate" takes '501 us' 'r0.main: [{launch: k, cost: {flops: 100000000000, numbers: f16}}]' 's/100TF/200TF/'
check "or is the shortest" takes '3.00 us' 'r0.main: [{launch: k, cost: {bytes: 1KiB}}]'
check "... that there is" takes '8.00 us' 'r0.main: [{launch: k}]' 's/^kernel.*/kernel: 7us/'
check "a time that the plan has stays" takes '31.0 us' 'r0.main: [{launch: k, time: 30us, cost: {bytes: 100MB}}]'
check "a copy goes by its rate" takes '1.00 ms' 'r0.main: [{copy: h2d, bytes: 20MB}]'
check "... another one" takes '2.00 ms' 'r0.main: [{copy: h2d, bytes: 20MB}]' 's/^copy.*/copy: 10GB\/s/'
check "... and within the device reads and writes" takes '201 us' 'r0.main: [{copy: d2d, bytes: 100MB}]'
reduce='{collective: x, comm: two, bytes: 100MB}'
# 8.4 + 2 * 3.4 us and 2 * 100 MB / 2 by 100 GB/s, behind 1 us
check "an all-reduce of two is a ring over NVLink" takes '1.02 ms' "$(each '0 1' "$reduce")"
check "... of another rate" takes '2.02 ms' "$(each '0 1' "$reduce")" 's/^nvlink.*/nvlink: 50GB\/s/'
# 8.4 + 2 * 9.6 us and 100 MB by 10 GB/s
check "... or over the network, where NVLink joins none" takes '10.0 ms' "$(each '0 1' "$reduce")" 's/^domain.*/domain: 1/'
# 8.4 + 4 * 3.4 + 2 * 9.6 us and 2 * 3 / 4 * 100 MB by 2 ports of 10 GB/s
check "four in two domains share their ports" takes '7.54 ms' "$(each '0 1 2 3' '{collective: x, comm: all, bytes: 100MB}')"
check "... of another rate" takes '3.79 ms' "$(each '0 1 2 3' '{collective: x, comm: all, bytes: 100MB}')" 's/^network.*/network: 20GB\/s/'
# 3.6 + 2 * .47 us, behind 1 us
check "a small one takes its latencies" takes '5.54 us' "$(each '0 1' '{collective: x, comm: two, bytes: 4B}')"
check "an all-gather gets what each gives" takes '1.01 ms' "$(each '0 1' '{collective: x, op: all_gather, comm: two, bytes: 100MB}')"
# what all have stays 200 MB: 8.4 + 2 * 3.4 + 1 * 9.6 us and 3 / 4 of it by 20 GB/s
others='one: [0]'
check "... and has the same together where two stand for four" takes '7.53 ms' \
    "$(each '0 1' '{collective: x, op: all_gather, comm: two, bytes: 100MB}')" '' --ranks=4
grid='r0.main: [%s, %s], r1.main: [%s, %s], r2.main: [%s, %s], r3.main: [%s, %s]'
t='{collective: t, comm: t%d, bytes: 100MB}' d='{collective: d, comm: d%d, bytes: 4B}'
others='t0: [0, 1], t1: [2, 3], d0: [0, 2], d1: [1, 3]'
# shellcheck disable=SC2059
pairs=$(printf "$(printf "$grid" "$t" "$d" "$t" "$d" "$t" "$d" "$t" "$d")" 0 0 0 1 1 0 1 1)
# 1.02 ms and 3.6 + 2 * 2.7 us; of 256 in as many domains 4.4 + 2 * 8 * 5 us
check "pairs in a grid reduce" takes '1.03 ms' "$pairs"
check "... and stay pairs where there are more of them" takes '1.1. ms' "$pairs" '' --ranks=512
message="r0.main: [{group: [{send: x, peer: 1, bytes: 10MB}], comm: two}], r1.main: [{group: [{recv: x, peer: 0, bytes: 10MB}], comm: two}]"
check "a message goes over NVLink" takes '113 us' "$message"
check "... or the network" takes '1.02 ms' "$message" 's/^domain.*/domain: 1/'
refuses_ranks()
{
    printf 'swplan: 1\ncomms: {two: [0, 1]}\nthreads: {%s}\n' "$message" >"$dir/plan.yaml"
    "$SWSIM" predict -q --hardware="$dir/gpu.yaml" --ranks=8 "$dir/plan.yaml" 2>&1 | tee "$dir/out"
    grep -q 'its ranks cannot stand for 8: rank 0 sends to rank 1' "$dir/out"
}
check "ranks that send messages cannot stand for more" refuses_ranks
missing()
{
    takes '1 us' 'r0.main: [{launch: k, cost: {flops: 100, numbers: f8}}]' >/dev/null
    cat "$dir/err"
    grep -q "hardware round: its figure 'f8' is not known" "$dir/err"
}
check "a rate that is needed and missing has its name" missing

# ---- measured operators ---------------------------------------------------------------------------------

printf '%s\n' 'operator,shapes,device_us,host_us' 'aten::mm,f16[1024x1024] f16[1024x1024],50,5' 'aten::relu,f16[8x8],40' >"$dir/table.csv"
with="--operators=$dir/table.csv"
# product SHAPES: a product of matrices with these, of 2 * 1024^3 numbers.
product()
{
    printf "r0.main: [{launch: %s, cost: {bytes: 6MiB, flops: 2147483648, numbers: f16, shapes: '%s'}}]" "${2:-aten.mm}" "$1"
}
check "an operator of a table takes its time there, on the host, too" takes '55.0 us' "$(product 'f16[1024x1024] f16[1024x1024]')" '' "$with"
check "... with the name of any overload" takes '55.0 us' "$(product 'f16[1024x1024] f16[1024x1024]' aten.mm.out)" '' "$with"
check "... and without a time of the host takes a launch" takes '41.0 us' "$(product 'f16[8x8]' aten.relu)" '' "$with"
# both are at 2 * 2^30 flops by 100 Tflop/s, twice as many for two batches
check "a product with other shapes is as far above its roofline as the nearest" takes '101 us' "$(product 'f16[2048x1024] f16[1024x1024]')" '' "$with"
check "... which the report says" grep -F 'measured: the product of nearest shapes' "$dir/out"
check "... not one of another type" takes '22.5 us' "$(product 'bf16[1024x1024] bf16[1024x1024]')" '' "$with"
check "... or of wholly other shapes" takes '22.5 us' "$(product 'f16[64x64] f16[64x64]')" '' "$with"
cat >"$dir/trace.json" <<'EOF'
{"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 10,
 "args": {"Input Dims": [[1024, 1024], [1024, 1024], []], "Input type": ["c10::Half", "c10::Half", "Scalar"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args": {"correlation": 7}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 4, "dur": 1, "args": {"correlation": 8}},
{"ph": "X", "cat": "kernel", "name": "split", "pid": 0, "tid": 7, "ts": 20, "dur": 60, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 80, "dur": 20, "args": {"correlation": 8}},
{"ph": "X", "cat": "cpu_op", "name": "aten::_foreach_add_", "pid": 1, "tid": 1, "ts": 16, "dur": 3,
 "args": {"Input Dims": [[[8, 8], [4]], []], "Input type": ["TensorList", "Scalar"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 17, "dur": 1, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 120, "dur": 30, "args": {"correlation": 9}}
]}
EOF
trace="--operators=$dir/trace.json"
# two kernels, and 16 us up to the next operator
check "an operator of a trace takes its kernels, and what lies between it and the next one" takes '96.0 us' "$(product 'f16[1024x1024] f16[1024x1024]')" '' "$trace"
check "... one of lists, too" takes '33.0 us' "$(product '[8x8] [4]' aten._foreach_add_)" '' "$trace"
check "... and the share is told" grep -F 'times   100% from measured operators, the rest from the peak figures of round' "$dir/out"
# wrong STATUS TEXT LINE...: a table of these lines.
wrong()
{
    code=$1 text=$2
    shift 2
    printf '%s\n' "$@" >"$dir/wrong.csv"
    "$SWSIM" predict -q --hardware="$dir/gpu.yaml" --operators="$dir/wrong.csv" "$dir/plan.yaml" >"$dir/out" 2>&1
    test $? -eq $code && grep -qF -- "$text" "$dir/out"
}
check "a line of a table that is none has its place" wrong 3 "wrong.csv:2: found 'fast', expected microseconds" operator,shapes,device_us 'aten::mm,f16[2x2],fast'
check "... as has one with too few columns" wrong 3 'wrong.csv:3: expected operator,shapes,device_us[,host_us]' operator,shapes,device_us '' aten::mm
check "... or too many" wrong 3 'wrong.csv:2: found more than four columns' operator,shapes,device_us a,b,1,2,3
check "a trace without shapes says how to have them" wrong 3 'profile with record_shapes=True' '{"traceEvents": []}'
"$SWSIM" predict -q "$with" "$dir/plan.yaml" >"$dir/out" 2>&1
check "measured operators need hardware" grep -F 'found --operators without --hardware' "$dir/out"

steps='r0.main: [{launch: k, cost: {bytes: 100MB}}, {host: 0s, name: step}, {launch: k, cost: {bytes: 200MB}}, {host: 0s, name: step}, {launch: k, cost: {bytes: 300MB}}, {host: 0s, name: step}]'
step_is()
{
    takes '601 us' "$steps" && grep -F 'step    300 us, the median of 2 steps after the first; they take 200 us to 300 us' "$dir/out"
}
check "a step lasts from the work of one to that of the next" step_is
"$SWSIM" predict -q --hardware="$dir/gpu.yaml" --what-if='k=0.5x' "$dir/plan.yaml" >"$dir/out" 2>&1
check "beside what-if it is that of the plan as it is" grep -F 'step    300 us, the median of 2 steps' "$dir/out"
most()
{
    "$SWSIM" predict -q --hardware="$dir/gpu.yaml" --max-step=$1 "$dir/plan.yaml" >"$dir/out" 2>&1
    test $? -eq $2
}
check "... no longer than it may" most 301us 0
check "... or too long, which is an exit status" most 299us 1
check "a limit that is no time" most 3 2

# ---- what else it could be ------------------------------------------------------------------------------

# two NAME [WAIT]: two kernels of 100 us on two streams.
two()
{
    printf 'swplan: 1\nname: %s\nthreads: {r0.main: [%s]}\n' "$1" "{launch: k, stream: a, cost: {bytes: 100MB}, writes: [x]}, {record: e, stream: a},
        ${2:-} {launch: l, stream: b, cost: {bytes: 100MB}, writes: [${3:-y}]}" >"$dir/$1.yaml"
}
two waits '{wait: e, stream: b},'
two freely
two race '' x
tunes()
{
    "$SWSIM" tune -q --hardware="$dir/gpu.yaml" "$dir/waits.yaml" >"$dir/out" 2>&1
    cat "$dir/out"
    grep -q 'verdict           proved      proved' "$dir/out" && grep -qE 'total             20[0-9] us +10[0-9] us' "$dir/out"
}
check "a wait that orders nothing goes, which is proved" tunes
two needed '{wait: e, stream: b},' x
stays()
{
    "$SWSIM" tune -q --hardware="$dir/gpu.yaml" "$dir/needed.yaml" >"$dir/out" 2>&1
    cat "$dir/out"
    grep -qE 'total             (20[0-9] us) +\1' "$dir/out"
}
check "one that orders something stays" stays
chooses()
{
    "$SWSIM" tune -q --hardware="$dir/gpu.yaml" "$dir/waits.yaml" "$dir/race.yaml" "$dir/freely.yaml" >"$dir/out" 2>&1 || return
    cat "$dir/out"
    sed -n 2p "$dir/out" | grep -qE '^  proved .*10[0-9] us .*freely.yaml' && sed -n 3p "$dir/out" | grep -qE '^  proved .*20[0-9] us .*waits.yaml' &&
        sed -n 4p "$dir/out" | grep -qE '^  violated .*race.yaml'
}
check "of several recordings the fastest that is proved stands first" chooses
none_is_right()
{
    "$SWSIM" tune -q --hardware="$dir/gpu.yaml" "$dir/race.yaml" "$dir/race.yaml"
    test $? -eq 1
}
check "... and where none is proved, the status says so" none_is_right

done_testing
