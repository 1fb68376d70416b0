#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rank programs with `arithmetic:`: every schedule gives the gradients of a serial run in every bit, on threads, in
# processes, under mpirun and on emulated CUDA (not a GPU); a wrong list does not.
. "${srcdir:-.}/tests/tap.sh"

# plan SCHEDULE RANKS MICROBATCHES CHUNKS ARITHMETIC [LINES]: as $dir/plan.yaml.
plan()
{
    chunks=
    test "$4" = - || chunks=", chunks: $4"
    cat >"$dir/plan.yaml" <<PLAN
swplan: 1
name: $1
arithmetic: {$5}
${6:-}
generate: {schedule: $1, ranks: $2, microbatches: $3$chunks}
PLAN
}

# equal VALUES ARGUMENT...: a run of the plan has so many gradients, and they are the serial ones.
equal()
{
    values=$1
    shift
    prints 0 "^  gradients   equal the serial ones, bit for bit ($values values, $((values * 4)) bytes)" "$SWRUN" "$@" "$dir/plan.yaml" &&
        said '^  legal       yes'
}

# ---- every schedule --------------------------------------------------------------------------------

small='width: 12, batch: 3, layers_per_stage: 2'
layer=$((12 * 12 + 12))
while read -r schedule ranks microbatches chunks stages; do
    plan "$schedule" "$ranks" "$microbatches" "$chunks" "$small"
    check "$schedule, $ranks ranks, $microbatches microbatches" equal $((stages * 2 * layer))
done <<'TABLE'
gpipe 4 6 - 4
gpipe_reverse 4 6 - 4
1f1b 2 5 - 2
1f1b 4 8 - 4
1f1b 7 9 - 7
interleaved_1f1b 4 8 2 8
interleaved_1f1b 3 6 3 9
looped_bfs 4 6 2 8
interleaved_zero_bubble 4 8 2 8
zb_h1 4 8 - 4
zb_h2 4 8 - 4
zb_1p 4 8 - 4
zb_2p 3 8 - 3
zbv 4 8 - 8
zbv_auto 3 6 - 6
v_half 4 8 - 8
v_min 4 8 - 8
dualpipe_v 4 8 - 8
dualpipe 4 8 - 8
TABLE
plan forward_only 4 6 - "$small"
check "forwards alone: the losses" prints 0 '^  losses      equal the serial ones, bit for bit (6 values, 24 bytes)' "$SWRUN" "$dir/plan.yaml"

# ---- keys ------------------------------------------------------------------------------------------

# loss TEXT: of a run of the plan.
loss() { prints 0 "^  loss        $1, the mean of 6 microbatches" "$SWRUN" "$dir/plan.yaml" && said 'equal the serial ones'; }
plan 1f1b 3 6 - "$small, activation: gelu"
check "gelu" equal $((6 * layer))
plan 1f1b 3 6 - "$small, loss: cross_entropy, activation: gelu, seed: 7"
check "cross entropy" equal $((6 * layer))
plan 1f1b 3 6 - "$small, activation: none"
check "linear layers" equal $((6 * layer))
for checkpoint in always except_last; do
    for schedule in 1f1b zb_h1 gpipe_reverse; do
        plan $schedule 3 6 - "$small" "checkpoint: $checkpoint"
        check "$schedule, checkpoint: $checkpoint" equal $((6 * layer))
    done
done
plan interleaved_1f1b 4 8 2 "$small" 'p2p: {batch: true}'
check "messages in batches" equal $((16 * layer))
for fifo in pair edge direction; do
    plan 1f1b 4 8 - "$small" "p2p: {fifo: $fifo}"
    check "fifo: $fifo" equal $((8 * layer))
done
# The same model, however it is divided: the loss tells.
plan 1f1b 3 6 - 'width: 12, batch: 3' 'layers: {count: 6}'
whole=$("$SWRUN" "$dir/plan.yaml" | sed -n 's/^  loss        \([^,]*\),.*/\1/p')
for balance in '[1, 2, 3]' '[4, 1, 1]'; do
    plan 1f1b 3 6 - 'width: 12, batch: 3' "layers: {count: 6}
balance: $balance"
    check "balance: $balance" equal $((6 * layer))
    check "... is the same model" loss "$whole"
done
plan zbv 3 6 - 'width: 12, batch: 3, layers_per_stage: 1'
check "as zbv, too" loss "$whole"
plan 1f1b 3 6 - 'width: 12, batch: 3, layers_per_stage: 2, seed: 1'
check "another seed is another model" sh -c '! "$1" "$2" | grep -q "  loss        $3,"' sh "$SWRUN" "$dir/plan.yaml" "$whole"

# ---- replicas --------------------------------------------------------------------------------------

while read -r schedule ranks microbatches chunks stages replicas reduce; do
    plan "$schedule" "$ranks" "$microbatches" "$chunks" "$small" "parallel: {dp: $replicas, grad_reduce: $reduce}"
    check "$schedule, $replicas replicas, grad_reduce: $reduce" equal $((replicas * stages * 2 * layer))
done <<'TABLE'
1f1b 2 4 - 2 2 end
1f1b 2 5 - 2 3 overlap
zb_h1 3 6 - 3 4 stage
interleaved_1f1b 2 4 2 4 3 overlap
zbv 2 4 - 4 3 end
TABLE
plan 1f1b 2 4 - "$small" 'parallel: {dp: 3, grad_reduce: end}'
check "the losses are those of all microbatches" prints 0 '^  loss        .*, the mean of 12 microbatches' "$SWRUN" "$dir/plan.yaml"
each_loss() # N: so many numbers, whose mean is the loss
{
    "$SWRUN" --json $2 "$dir/plan.yaml" | sed 's/.*"loss":\([^,]*\),"each_loss":\[\([^]]*\)\].*/\1,\2/' |
        awk -F, -v n="$1" '{ for (i = 2; i <= NF; i++) sum += $i; mean = sum / (NF - 1); exit !(NF - 1 == n && mean - $1 < 1e-6 && $1 - mean < 1e-6) }'
}
check "each of them is told" each_loss 12
check "also by ranks that are processes" each_loss 12 --processes
check "6 processes" equal $((6 * 2 * layer)) --processes
plan 1f1b 2 4 - "$small" 'parallel: {dp: 3, grad_reduce: end, order: pp-dp}'
check "pipelines of neighbouring ranks" equal $((6 * 2 * layer))
plan 1f1b 2 4 - "$small" 'parallel: {dp: 3, grad_reduce: none}'
check "gradients that are not reduced: each replica by itself" equal $((6 * 2 * layer))

# replicated RANK...: lists of two replicas.
replicated()
{
    lists "$@"
    echo 'parallel: {dp: 2, grad_reduce: none}' >>"$dir/plan.yaml"
}

# ---- ranks -----------------------------------------------------------------------------------------

plan 1f1b 16 16 - 'width: 8, batch: 2'
check "16 ranks" equal $((16 * 72))
check "16 processes" equal $((16 * 72)) --processes
plan zbv 5 10 - "$small"
check "5 processes, in V shape" equal $((20 * layer)) --processes
plan dualpipe 2 4 - "$small"
check "2 processes, two copies" equal $((8 * layer)) --processes
plan forward_only 3 4 - "$small"
check "3 processes, forwards alone" prints 0 '^  losses      equal the serial ones' "$SWRUN" --processes "$dir/plan.yaml"

OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
if mpirun --oversubscribe -n 2 true 2>/dev/null; then
    plan interleaved_1f1b 4 8 2 "$small"
    check "4 ranks by mpirun" prints 0 '^  gradients   equal the serial ones, bit for bit (2496 values' \
        mpirun --oversubscribe -n 4 "$SWRUN" "$dir/plan.yaml"
else
    skip "4 ranks by mpirun: mpirun does not work here"
fi

emulated=$PWD/tests/swrun_emulated
if [ -x "$emulated" ]; then
    plan zb_h1 2 4 - "$small, activation: gelu, loss: cross_entropy"
    host=$("$SWRUN" "$dir/plan.yaml" | grep '^  loss')
    check "emulated CUDA (not a GPU)" env SWSIM_NCCL="$PWD/tests/cuda_emulation/libnccl.so.2" sh -c '
        "$1" --device=cuda "$2" >"$3" && grep -q "equal the serial ones, bit for bit" "$3" &&
        test "$(grep "^  loss" "$3")" = "$4"' sh "$emulated" "$dir/plan.yaml" "$dir/out" "$host"
    plan 1f1b 2 4 - "$small" 'parallel: {dp: 3, grad_reduce: overlap}'
    check "... replicas" env SWSIM_NCCL="$PWD/tests/cuda_emulation/libnccl.so.2" sh -c '
        "$1" --device=cuda "$2" | grep -q "equal the serial ones, bit for bit (1872 values"' sh "$emulated" "$dir/plan.yaml"
else
    skip "emulated CUDA: built without CUDA's toolkit"
fi

# ---- hfai's table ----------------------------------------------------------------------------------

# counts NAME NCALLS...: of the last run with --stats; the time of recv has that of recv_meta in it.
counts()
{
    while [ $# -gt 0 ]; do
        grep -qE "^$1 +$2 +[0-9]+\.[0-9]{3} +[0-9.]+ +[0-9.]+$" "$dir/out" || return
        shift 2
    done
    awk '$1 == "recv" { whole = $3 } $1 == "recv_meta" { part = $3 } END { exit !(whole >= part) }' "$dir/out"
}
plan 1f1b 4 8 - "$small" 'p2p: {fifo: pair, metadata: each}'
check "metadata before each message" prints 0 '^name  *ncalls  *time (ms)  *mean (ms)  *host (ms)$' "$SWRUN" --stats "$dir/plan.yaml"
check "... as often as messages" counts backward_chunk 32 forward_chunk 32 recv 48 recv_meta 48 send 48 send_meta 48
check "... on top of the gradients" said 'equal the serial ones, bit for bit'
check "... in processes" prints 0 '"send_meta":{"calls":48,' "$SWRUN" --processes --stats --json "$dir/plan.yaml"
plan 1f1b 4 8 - "$small" 'p2p: {metadata: first}'
check "metadata before the first message of a stage" prints 0 '^legal\|  legal       yes' "$SWRUN" --stats "$dir/plan.yaml"
check "... once in a direction" counts recv 48 recv_meta 6 send 48 send_meta 6
plan 1f1b 2 4 - "$small" 'p2p: {fifo: pair, batch: true, metadata: each}'
check "two ranks with other batches of the same messages hang, and verify says so" \
    prints 1 'deadlock, always' "$SWSIM" verify --no-fix "$dir/plan.yaml"
plan 1f1b 2 4 - "$small" 'p2p: {fifo: direction, batch: true, metadata: each}'
check "a direction each: they do not" equal $((4 * layer)) --stats
plan dualpipe_v 2 4 - "$small"
check "overlapped passes have a row" prints 0 '^overlap_f_b  *[1-9]' "$SWRUN" --stats "$dir/plan.yaml"

# ---- wrong lists -----------------------------------------------------------------------------------

# lists RANK...: a plan of these.
lists()
{
    printf 'swplan: 1\nname: lists\narithmetic: {width: 4, batch: 2}\nprograms:\n' >"$dir/plan.yaml"
    for list in "$@"; do printf '  - %s\n' "$list"; done >>"$dir/plan.yaml"
}
# differs PATTERN: the run says where, and fails.
differs()
{
    prints 1 '^  gradients   DIFFERENT from the serial ones: ' "$SWRUN" "$dir/plan.yaml" &&
        said "^              $1" && said '^swrun: error: lists: the results differ from those of a serial run'
}
# The message comes late in every order of the threads: behind others that wait for the pass.
lists '0F0 0B0 0F1 0SEND_F1 0SEND_F0 0RECV_B0 0RECV_B1 0B1' '1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1'
check "a backward pass ahead of its gradient" differs 'rank 0, stage 0, layer 0, weight 0, 0: nan, serial '
lists '0B0 0F0'
check "a backward pass ahead of the forward pass" differs 'rank 0, stage 0, layer 0, weight 0, 0: nan, serial '
lists '0F0 0W0 0I0'
check "W ahead of I" differs 'rank 0, stage 0, layer 0, weight 0, 0: nan, serial '
lists '0F0 0F1 0B0'
check "a missing backward pass" differs 'rank 0, stage 0, layer 0, weight 0, 0: [-0-9.e]*, serial [-0-9.e]*$'
lists '0F0 0RECV_B0 0SEND_F0 0B0' '1F0 1B0 1SEND_B0 1RECV_F0'
check "a forward pass ahead of its input: the losses, too" prints 1 '"losses":1,"loss":null' "$SWRUN" --json "$dir/plan.yaml"
check "... in JSON" said '"arithmetic":{"equal":false,"gradients":40,"bytes":160,.*"first_difference":{"rank":0,"stage":0,"layer":0,"of":"weight","row":0,"column":0,"found":null,"serial":-*0'
replicated '0F0 0F1 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0B1'
check "a reduction ahead of the last backward pass" differs 'rank 0, stage 0, layer 0, weight 0, 0: [-0-9.e]*, serial [-0-9.e]*$'
replicated '0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD' '1RECV_F0 1F0 1B0 1SEND_B0'
check "a reduction that one stage has not" differs 'rank [0-9], stage 1, layer 0, weight 0, 0: 0, serial [-0-9.e]*$'
check "unchecked, it is not compared" exits 0 sh -c '! "$1" --no-check "$2" | grep -q serial' sh "$SWRUN" "$dir/plan.yaml"

# ---- refused ---------------------------------------------------------------------------------------

# refused PATTERN KEYS [LINES]
refused() { plan 1f1b 2 4 - "$2" "${3:-}"; complains 3 "$1" "$SWRUN" "$dir/plan.yaml"; }
check "another activation" refused 'found "tanh", expected relu, gelu or none' 'activation: tanh'
check "too wide" refused 'found "5000", expected .*4096' 'width: 5000'
check "too much work" refused 'found 100 layers of 1073741824 multiplications in stage 0, expected at most 1073741824 multiplications in a pass' \
    'width: 4096, batch: 64, layers_per_stage: 100'
check "too much memory" refused 'the layers take [0-9]* MiB in this process, expected at most 2048' 'width: 4096, batch: 1, layers_per_stage: 64'
check "replicas with sharded parameters" refused 'found "arithmetic" with 2 replicas of sharded parameters, expected one, or "parallel: {dp: 2}"' \
    "$small" 'fsdp: {replicas: 2}'
check "tensor parallelism" refused 'found "arithmetic" with tp: 2, expected data parallelism alone' "$small" 'parallel: {tp: 2}'
check "a stage without layers" refused 'found no layer in stage 0' 'width: 4' 'layers: {count: 2}
balance: [0, 2]'

done_testing
