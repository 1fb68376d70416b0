#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pipeline parallelism: what messages, passes and stages cost, and what a rank holds.
. "${srcdir:-.}/tests/tap.sh"

# plan NAME: a plan of rank programs, its keys from standard input
plan()
{
    { printf 'swplan: 1\nname: %s\n' "$1" && cat; } > "$dir/$1.yaml"
}

# total NAME: the makespan of a plan in nanoseconds
total()
{
    "$SWSIM" predict --json "$dir/$1.yaml" | field makespan_ns
}

# takes NAME NS
takes()
{
    [ "$(total "$1")" = "$2" ] || { echo "$1: $(total "$1"), expected $2"; false; }
}

# ---- messages ----------------------------------------------------------------------------------

one_message='programs: ["0F0 0SEND_F0", "1RECV_F0 1F0"]
fragment: true'

message()
{
    { echo 'times: {F: 1ms}'; printf '%s\n' "$1"; echo "$one_message"; } | plan message
    takes message "$2"
}

check "a message without a cost takes no time" message 'p2p: {bytes: 4MB}' 2000000
check "a message takes latency and bytes by bandwidth" \
    message 'p2p: {bytes: 4MB, latency: 5us, bandwidth: 1GB/s}' 6005000
check "of its direction, if that says something else" \
    message 'p2p: {bytes: 4MB, latency: 5us, bandwidth: 1GB/s, forward: {bytes: 1MB}}' 3005000
check "backward is another direction" \
    message 'p2p: {bytes: 4MB, bandwidth: 1GB/s, backward: {bytes: 1MB}}' 6000000
check "between nodes the link is another" \
    message 'p2p: {bytes: 4MB, latency: 5us, bandwidth: 1GB/s, node: 1, between: {bandwidth: 4GB/s}}' 3005000
check "on one node it is not" \
    message 'p2p: {bytes: 4MB, latency: 5us, bandwidth: 1GB/s, node: 2, between: {bandwidth: 4GB/s}}' 6005000
check "an edge goes before all" \
    message 'p2p: {bytes: 4MB, bandwidth: 1GB/s, node: 1, between: {latency: 1s}, edges: [{from: 0, to: 1, latency: 0us, bytes: 1MB}]}' 3000000
check "an edge is of one direction" \
    message 'p2p: {bytes: 4MB, bandwidth: 1GB/s, edges: [{from: 1, to: 0, bytes: 1MB}]}' 6000000
check "64 Gbit/s are 8 GB/s" message 'p2p: {bytes: 8MB, bandwidth: 64Gbit/s}' 3000000

for kind in SEND_F RECV_F; do
    echo "times: {F: 1ms, $kind: 3ms}
p2p: {latency: 7ms}
$one_message" | plan "time_$kind"
    check "$kind in times: is the time of the message" takes "time_$kind" 5000000
done

echo 'times: {F: 1ms}
p2p: {bytes: 1MB, bandwidth: 1GB/s, latency: 1us, batch: true}
fragment: true
programs: ["0F0 0F1 0SEND_F0 0SEND_F1", "1RECV_F0 1RECV_F1 1F0 1F1"]' | plan batch
check "the messages of a batch share a link" takes batch 6001000

prints_again()
{
    "$SWSIM" export "$1" > "$dir/once.yaml" && "$SWSIM" export "$dir/once.yaml" > "$dir/twice.yaml" &&
        cmp "$dir/once.yaml" "$dir/twice.yaml" && grep -q "$2" "$dir/once.yaml" &&
        "$SWSIM" export --as=json "$1" > "$dir/once.json" && "$SWSIM" export "$dir/once.json" | cmp - "$dir/once.yaml"
}
echo 'p2p: {fifo: rank, latency: 1us, bandwidth: 25GB/s, forward: {bytes: 2MiB}, backward: {latency: 2us}, node: 2, between: {bandwidth: 50Gbit/s}, edges: [{from: 0, to: 1, bytes: 3MiB}]}
generate: {schedule: 1f1b, ranks: 4, microbatches: 4}' | plan keys
check "keys of messages are printed and read again" prints_again "$dir/keys.yaml" 'edges: \[{from: 0'

wrong()
{
    { echo "$1"; echo 'generate: {schedule: 1f1b, ranks: 2, microbatches: 2}'; } | plan wrong
    complains 3 "$2" "$SWSIM" verify "$dir/wrong.yaml"
}
check "a rate has a unit" wrong 'p2p: {bandwidth: 25GB}' 'expected a unit: B/s'
check "a rate is above 0" wrong 'p2p: {bandwidth: 0GB/s}' 'expected a rate above 0'
check "an edge has two ends" wrong 'p2p: {edges: [{from: 1, to: 1}]}' 'to itself'
check "an edge is there once" wrong 'p2p: {edges: [{from: 0, to: 1}, {from: 0, to: 1}]}' 'second time'

# ---- stages and layers -------------------------------------------------------------------------

# value NAME KEY: a number of the prediction's JSON
value()
{
    "$SWSIM" predict --json "$dir/$1.yaml" | field "$2"
}
# values NAME KEY: all numbers of that key, one a rank
values()
{
    "$SWSIM" predict --json "$dir/$1.yaml" | grep -o "\"$2\":[0-9]*" | cut -d: -f2 | tr '\n' ' '
}
has()
{
    found=$(values "$1" "$2")
    [ "$found" = "$3 " ] || { echo "$1: $2 $found, expected $3"; false; }
}
one='generate: {schedule: gpipe, ranks: 2, microbatches: 1}'

echo "stages: {F: [1ms, 2ms], B: 4ms}
$one" | plan stages
check "each stage takes its own time" takes stages 11000000
echo "layers: {count: 5, F: [1ms, 1ms, 1ms, 1ms, 3ms], B: 0ms, embedding: {F: 1ms}, head: {F: 2ms}}
$one" | plan layers
check "layers are divided evenly" has layers busy_ns '3000000 7000000'
{ cat "$dir/layers.yaml"; echo 'balance: [4, 1]'; } > "$dir/listed.yaml"
check "or as the plan says" has listed busy_ns '5000000 5000000'
{ cat "$dir/layers.yaml"; echo 'balance: found'; } > "$dir/found.yaml"
check "or so that the slowest stage is as fast as can be" has found busy_ns '5000000 5000000'
echo "machine: {memory: 40KiB}
layers: {count: 8, F: 1ms, B: 0ms, activation: 2KiB, weights: 1KiB, head: {F: 1ms}}
balance: found
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}" | plan room
check "within the memory of a rank: the first stages hold more microbatches" has room busy_ns '24000000 24000000 8000000 16000000'
sed 's/40KiB/17KiB/' "$dir/room.yaml" > "$dir/tight.yaml"
check "a stage with less room gets fewer layers" has tight busy_ns '8000000 16000000 24000000 24000000'
{ cat "$dir/listed.yaml"; echo 'stages: {F: [1ms, 2ms]}'; } > "$dir/over.yaml"
check "stages: goes before its layers" has over busy_ns '1000000 2000000'
echo "stages: {F: 1ms, B: 2ms, optimizer: [3ms, 4ms]}
$one" | plan optimizer
# F + I + W of two microbatches, on one rank
for way in "1f1b F=1ms,I=1ms,W=1ms" "zb_h1 F=1ms,I=1ms,W=1ms" "1f1b F=1ms,B=2ms" "zb_h1 F=1ms,B=2ms"; do
    printf '%s\n' 'layers: {count: 4, F: 5ms, I: 5ms, W: 5ms}' "generate: {schedule: ${way% *}, ranks: 1, microbatches: 2}" | plan way
    check "--times goes before layers, in each half of a backward pass: $way" prints 0 '"makespan_ns":6000000[,.]' \
        "$SWSIM" predict --json "--times=${way#* }" "$dir/way.yaml"
done
check "the optimizer comes behind all else" takes optimizer 9000000
echo "stages: {F: 1ms, I: 1ms, W: 1ms}
checkpoint: except_last
generate: {schedule: zb_h1, ranks: 1, microbatches: 3}" | plan again
check "what is not kept is computed once more" takes again 11000000

echo 'layers: {count: 2, F: 1ms, B: 2ms}
balance: [2, 0]
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}' | plan none
check "a stage may be listed without layers" prints 0 'proved' "$SWSIM" verify -q "$dir/none.yaml"

for wrong_one in 'balance: even|without "layers"' \
    'layers: {count: 3}
balance: [1, 1]|found 2 layers in the stages, expected 3' \
    'layers: {count: 3}
balance: [1, 1, 1]|found the layers of 3 stages, expected those of 2' \
    'layers: {count: 3, F: [1ms, 2ms]}|found "F" of 2 layers' \
    'layers: {count: 1}|found 1 layers for 2 stages, expected one a stage at least' \
    'model: {layers: 1, hidden: 8, heads: 1, sequence: 8, microbatch: 1}|found 1 layers for 2 stages' \
    'model: {layers: 4, hidden: 8, heads: 3, sequence: 8, microbatch: 1, tensor: 2}|found heads 3, expected a multiple of tensor 2' \
    'model: {layers: 4, hidden: 8, heads: 2, sequence: 7, microbatch: 1, tensor: 2, sequence_parallel: true}|found sequence 7, expected a multiple of tensor 2' \
    'model: {layers: 4, hidden: 8, heads: 4, sequence: 8, microbatch: 1}
parallel: {tp: 3, dp: 2}|found heads 4, expected a multiple of tensor 3' \
    'stages: {F: [1ms, 2ms, 3ms]}|found "F" of 3 stages, expected one for all or 2' \
    'layers: {count: 3, head: {F: [1ms, 2ms]}}|found a list, expected one value' \
    'p2p: {edges: [{from: 0, to: 7}]}|found an edge of rank 7'; do
    check "refused: ${wrong_one#*|}" wrong "${wrong_one%|*}" "${wrong_one#*|}"
done

for model in 'layers: {count: 2, F: 1ms, head: {F: 3ms}}' 'layers: {count: 2}
balance: [2]' 'model: {layers: 2, hidden: 8, heads: 1, sequence: 8, microbatch: 1}'; do
    printf '%s\nprograms: [[]]\n' "$model" | plan empty
    check "layers need a pass: $model" complains 3 'found 2 layers and programs without a pass' "$SWSIM" verify "$dir/empty.yaml"
done

echo 'stages: {F: [1ms, 2ms], optimizer: 1ms, activation: [1GiB, 2GiB], left: 1MiB, input: 2MiB, weights: 3MiB, state: 4MiB}
layers: {count: 3, B: 1ms, embedding: {F: 1ms}, head: {W: 2ms, state: 1GiB}}
balance: [1, 2]
checkpoint: except_last
release: send
p2p: {bytes: 1KiB}
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}' | plan costs
check "costs are printed and read again" prints_again "$dir/costs.yaml" 'head: {W: 2ms, state: 1GiB}'

# ---- layers of experts -------------------------------------------------------------------------

# One pass waits for its all-to-alls; in a composite the other one computes meanwhile.
plan alone <<'PLAN'
stages: {F: 4ms, B: 8ms, dispatch: 1ms, combine: 2ms}
programs: [0F0 0B0]
PLAN
check "a pass alone waits for its all-to-alls" takes alone 18000000
plan together <<'PLAN'
stages: {F: 4ms, B: 8ms, dispatch: 1ms, combine: 2ms}
programs: ["0F0 0F1 0B0 (0F2;0B1)OVERLAP_F_B 0B2"]
PLAN
check "a pair hides them: 7 + 7 + 11 + 12 + 11" takes together 48000000
sed 's/dispatch: 1ms/dispatch: 6ms/' "$dir/together.yaml" >"$dir/waits.yaml"
check "but for what is longer: 12 + 12 + 16 + 18 + 16" takes waits 74000000
plan sum <<'PLAN'
stages: {F: 4ms, B: 8ms}
programs: ["0F0 0F1 0B0 (0F2;0B1)OVERLAP_F_B 0B2"]
PLAN
check "without all-to-alls a pair takes what its passes do" takes sum 36000000
plan again <<'PLAN'
checkpoint: always
stages: {F: 4ms, B: 8ms, dispatch: 1ms, combine: 2ms}
programs: [0F0 0B0]
PLAN
check "what is computed once more exchanges once more" takes again 25000000
check "Megatron's overlap is worth its warm-up" sh -c "for how in '' --moe-overlap; do
    { '$SWSIM' generate interleaved_1f1b -p4 -v2 -m16 \$how --brief; echo 'stages: {F: 4ms, B: 8ms, dispatch: 1ms, combine: 1ms}'; } |
        '$SWSIM' predict --json - | sed -E 's/.*\"total_ns\":([0-9]+).*/\1/'
    done | sort -n -c 2>'$dir/sorted'; test -s '$dir/sorted'"

# ---- what a rank holds -------------------------------------------------------------------------

zb_h1='stages: {F: 1ms, I: 1ms, W: 1ms, activation: 100B, left: 40B, weights: 1000B, state: 500B}
generate: {schedule: zb_h1, ranks: 4, microbatches: 12}'
echo "$zb_h1" | plan zb_h1
check "1F1B holds p - r microbatches" sh -c '
    sed "s/zb_h1/1f1b/" "$1/zb_h1.yaml" > "$1/1f1b.yaml"
    "$2" predict --json "$1/1f1b.yaml" | grep -o "most_activations_bytes\":[0-9]*" | cut -d: -f2 | tr "\n" " " | grep -x "400 300 200 100 "' \
    sh "$dir" "$SWSIM"
# Qi et al. 2023, table 2, counting the pass itself: (p - i + 1) M_B + (i - 1) M_W on worker i
check "ZB-H1 holds what the paper says" has zb_h1 most_activations_bytes '400 340 280 220'
check "weights and state are held all the time" has zb_h1 most_bytes '1900 1840 1780 1720'

fits()
{
    { echo "$zb_h1"; echo "machine: {memory: $2}"; } | plan fits
    prints "$1" "$3" "$SWSIM" verify --no-fix "$dir/fits.yaml"
}
check "memory: is a bound that is proved" fits 0 1900B 'proved'
check "and broken by one byte" fits 1 1899B \
    'rank 0 holds 1900 bytes at its action .* .weights and state 1500, activations 400, messages 0'
check "the ranks are named, how much is too much, and what of it is most" said '1 of 4 ranks do not fit: rank 0 by 1 B (weights and state 1.46 KiB)'
check "a prediction says so, too" prints 1 'does not fit, by 1 B' "$SWSIM" predict "$dir/fits.yaml"
check "memory: of each rank" fits 0 '[1900B, 1840B, 1780B, 1720B]' 'proved'
check "and broken by one byte on one of them" fits 1 '[1900B, 1840B, 1779B, 1720B]' \
    'rank 2 holds 1780 bytes at its action .*machine.memory allows 1779; 1 of 4 ranks do not fit: rank 2 by 1 B'
check "a prediction has each rank's, and names that one" sh -c '"$1" predict "$2" >"$3"; grep -q "^ *1 .* of 1.80 KiB$" "$3" &&
    grep -q "^ *2 .* of 1.74 KiB  does not fit, by 1 B$" "$3"' sh "$SWSIM" "$dir/fits.yaml" "$dir/out"
check "0 in the list is no bound" fits 0 '[0B, 0B, 0B, 1720B]' 'proved'
room()
{
    { echo "$zb_h1"; echo 'machine: {memory: [2000B, 1950B, 1783B, 1800B]}'; } | plan room
    prints 0 '"bytes":1900,"left_bytes":3}' "$SWSIM" tune -q --json --schedule=zb_h1 "$dir/room.yaml"
}
check "tune has the room of the rank with the least" room
{ echo "$zb_h1"; echo 'machine: {memory: [1900B, 1840B]}'; } | plan two
check "a list has one size for each rank" complains 3 'found a list of 2, expected one size for each of 4 ranks' \
    "$SWSIM" verify "$dir/two.yaml"

# Korthikanti et al. 2022: interleaving holds 1 + (p - 1)/(pv) of 1F1B's activations: 175B, t 8, tensor parallel alone
echo 'layers: {count: 96, activation: 534.75MiB}
generate: {schedule: interleaved_1f1b, ranks: 8, chunks: 3, microbatches: 64}' | plan gpt
check "interleaved 175B holds 64.76 GiB on rank 0" sh -c '
    test "$("$2" predict --json "$1/gpt.yaml" | grep -o "most_activations_bytes\":[0-9]*" | head -1 | cut -d: -f2)" = $((124 * 53475 * 1048576 / 100))' \
    sh "$dir" "$SWSIM"
echo 'p2p: {bytes: 10B}
generate: {schedule: 1f1b, ranks: 2, microbatches: 2}
stages: {activation: 100B}' | plan kept
check "an output is kept until its backward pass" has kept messages_bytes '30 20'
{ cat "$dir/kept.yaml"; echo 'release: send'; } > "$dir/released.yaml"
check "or until it is sent" has released messages_bytes '10 20'
echo 'stages: {F: 1ms, B: 1ms, activation: 100B, input: 1B}
checkpoint: always
generate: {schedule: gpipe, ranks: 1, microbatches: 4}' | plan checkpointed
check "where the rest is computed once more, inputs and one microbatch are held" \
    has checkpointed most_bytes 104

echo 'fsdp: {replicas: 2, bytes: 1MiB}
programs: [0UNSHARD 1UNSHARD 0UNSHARD 1UNSHARD]' | plan gathered
check "of lists without a pass each stage has its own parameters" has gathered most_bytes 2097152

# ---- what a rank waits for ---------------------------------------------------------------------

echo 'times: {F: 1ms, B: 2ms}
p2p: {fifo: edge, latency: 100us}
generate: {schedule: 1f1b, ranks: 2, microbatches: 1}' | plan waits
check "a rank waits for passes and for transfers" has waits pass '3100000 0'
check "for each by itself" has waits transfer '100000 0'
check "busy and idle time add up" sh -c '"$2" predict --json "$1" | grep -q "\"span_ns\":6200000,\"busy_ns\":3000000"' \
    sh "$dir/waits.yaml" "$SWSIM"

# ---- models ------------------------------------------------------------------------------------

# gib RANK_0_ACTIVATIONS WEIGHTS_AND_STATE MODEL GENERATE: exactly so many GiB
gib()
{
    printf 'model: {%s}\ngenerate: {%s}\n%s\n' "$3" "$4" "${5:-}" | plan model
    "$SWSIM" predict --json "$dir/model.yaml" > "$dir/model.json" || return 1
    awk -v a="$(field most_activations_bytes < "$dir/model.json")" -v w="$(field weights_and_state_bytes < "$dir/model.json")" \
        -v wa="$1" -v ww="$2" 'BEGIN { g = 2 ^ 30; print a / g, w / g; exit !(a == wa * g && w == ww * g) }'
}
# Korthikanti et al. 2022, figure 1
gpt22='layers: 48, hidden: 6144, heads: 64, sequence: 2048, microbatch: 4, tensor: 8'
gpt175='layers: 96, hidden: 12288, heads: 96, sequence: 2048, microbatch: 1, tensor: 8'
alone='schedule: gpipe, ranks: 1, microbatches: 1'
woven='schedule: interleaved_1f1b, ranks: 8, chunks: 3, microbatches: 64'
check "22B, tensor parallel" gib 59.25 45.5625 "$gpt22" "$alone"
check "22B, sequence parallel, selective" gib 9.5625 45.5625 "$gpt22, sequence_parallel: true, selective: true" "$alone"
check "175B, interleaved" gib 66.84375 45.5625 "$gpt175" "$woven"
check "175B, sequence parallel, selective" gib 12.3515625 45.5625 "$gpt175, sequence_parallel: true, selective: true" "$woven"
check "22B, all computed once more: 2sbh a layer, and a layer at a time" gib 5.734375 45.5625 "$gpt22" "$alone" 'checkpoint: always'
check "a distributed optimizer divides its state: 6 + 12/d bytes" gib 59.25 22.78125 \
    "$gpt22, data: 4, distributed_optimizer: true" "$alone"
check "experts are divided by expert parallelism" gib 59.25 75.9375 \
    "$gpt22, experts: 4, expert_parallel: 2" "$alone" 'layers: {count: 48, weights: 180MiB, state: 1440MiB}'

echo 'model: {layers: 4, hidden: 1000, heads: 10, sequence: 100, microbatch: 1, rate: 1TFLOPS}
generate: {schedule: gpipe, ranks: 2, microbatches: 1}' | plan rated
# 24bsh^2 + 4bs^2h: 2.44 GFLOP a layer; three times that with both halves of the backward pass
check "times by a rate" has rated busy_ns '14640000 14640000'
check "a message is 2sbh" sh -c '"$2" verify --no-fix - <<EOF | grep -q "messages 400000,"
$(cat "$1/rated.yaml")
machine: {memory: 1B}
EOF' sh "$dir" "$SWSIM"
echo 'model: {layers: 4, hidden: 1024, heads: 16, sequence: 128, microbatch: 2, ffn: 2048, vocab: 1000, tensor: 2, data: 2, experts: 4, top_k: 2, expert_parallel: 2, sequence_parallel: true, selective: true, tied: true, distributed_optimizer: true, rate: 1.5TFLOPS}
balance: [3, 1]
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}' | plan whole
check "a model is printed and read again" prints_again "$dir/whole.yaml" 'distributed_optimizer: true, rate: 1.5TFLOPS'
# Llama 2 without norms: 6,738,149,376 and 68,975,329,280 parameters of 18 bytes
llama7='layers: 32, hidden: 4096, heads: 32, sequence: 4096, microbatch: 1, ffn: 11008, gated: true, selective: true'
llama70='layers: 80, hidden: 8192, heads: 64, kv_heads: 8, sequence: 4096, microbatch: 1, ffn: 28672, gated: true, selective: true'
check "7B, gated MLP: sb(18h + 6f) a layer" gib 17.0625 108.5625 "$llama7" "$alone"
check "7B, with embedding and head" gib 17.628936767578125 112.95703125 "$llama7, vocab: 32000" "$alone"
check "70B, a key and a value for eight heads: sb(14.5h + 6f)" gib 88.75 1147.5 "$llama70" "$alone"
check "70B, with embedding and head" gib 89.394561767578125 1156.2890625 "$llama70, vocab: 32000" "$alone"
check "70B, tensor and sequence parallel" gib 11.09375 143.4375 "$llama70, tensor: 8, sequence_parallel: true" "$alone"
echo 'model: {layers: 1, hidden: 1000, heads: 10, kv_heads: 5, ffn: 3000, gated: true, sequence: 100, microbatch: 1, rate: 1TFLOPS}
generate: {schedule: gpipe, ranks: 1, microbatches: 1}' | plan gated
# 6bsh^2 + 6bshf + 4bs^2h: 2.44 GFLOP
check "times of a gated MLP and of fewer keys" has gated busy_ns 7320000
check "... printed and read again" prints_again "$dir/gated.yaml" 'kv_heads: 5, ffn: 3000, gated: true'
check "heads share keys in equal groups" wrong 'model: {layers: 4, hidden: 8, heads: 4, kv_heads: 3, sequence: 8, microbatch: 1}' \
    'found heads 4, expected a multiple of kv_heads 3'
check "keys are divided by ranks, too" wrong 'model: {layers: 4, hidden: 8, heads: 8, kv_heads: 2, tensor: 4, sequence: 8, microbatch: 1}' \
    'found kv_heads 2, expected a multiple of tensor 4'
check "a rate has a unit" wrong 'model: {layers: 4, hidden: 8, heads: 1, sequence: 8, microbatch: 1, rate: 5}' '150TFLOPS'

# ---- channels ----------------------------------------------------------------------------------

echo 'times: {F: 1ms, B: 1ms}
programs: [0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1, 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1]' | plan crossed
table()
{
    prints 1 '^[*] group  *deadlock  *hangs' "$SWSIM" "$@" --p2p=all "$dir/crossed.yaml" &&
        said '^  edge  *proved  *6.00 ms' && said '^  pair  *deadlock  *hangs'
}
echo 'times: {F: 1ms, B: 2ms}
p2p: {fifo: edge, latency: 1ms}
programs: [0F0 0B0, 1F0 1B0]
parallel: {dp: 2, grad_reduce: end, costs: {dp-cp: {time: 5ms}}}' | plan apart
check "total and span are said apart" prints 0 '^[*] edge  *proved  *13.0 ms  *8.00 ms  *62.50%' "$SWSIM" verify --p2p=all "$dir/apart.yaml"
check "verify --p2p=all says which channel hangs and what each costs" table verify
check "predict --p2p=all says the same" table predict
check "one channel can be tried" prints 0 'proved' "$SWSIM" verify --p2p=edge "$dir/crossed.yaml"
check "in a prediction, too" prints 0 'total  *6.00 ms' "$SWSIM" predict --p2p=edge "$dir/crossed.yaml"
check "the table as JSON" prints 1 '"fifo":"group","batch":false,"verdict":"violated","violated":"deadlock","hangs":true' \
    "$SWSIM" verify --json --p2p=all "$dir/crossed.yaml"
check "channels are those of rank programs" complains 2 'only rank programs have channels' \
    "$SWSIM" verify --p2p=all "$srcdir/plans/examples/hello.yaml"

# as_good CHANNEL FOUND RULE...: is the found schedule no longer than those of rules, in all and on a rank?
as_good()
{
    channel=$1
    for schedule; do
        [ "$schedule" = "$channel" ] && continue
        printf 'swplan: 1\nname: %s\np2p: {fifo: %s, latency: 500us}\ntimes: {F: 10ms, I: 10ms, W: 10ms}\ngenerate: {schedule: %s, ranks: 4, microbatches: 8}\n' \
            "$schedule" "$channel" "$schedule" > "$dir/good.yaml"
        "$SWSIM" predict --json "$dir/good.yaml" > "$dir/good"
        [ "$schedule" = "$2" ] && most=$(field makespan_ns < "$dir/good") && span=$(field span_ns < "$dir/good")
        [ "$(field makespan_ns < "$dir/good")" -ge "$most" ] && [ "$(field span_ns < "$dir/good")" -ge "$span" ] || return 1
    done
}
for channel in group pair edge direction; do
    check "found for $channel: as good as rules" as_good "$channel" zb_1p 1f1b zb_h1
done
printf 'swplan: 1\nname: again\ncheckpoint: always\np2p: {fifo: edge}\ntimes: {F: 10ms, I: 10ms, W: 10ms}\ngenerate: {schedule: zb_2p, ranks: 4, microbatches: 12}\n' > "$dir/again.yaml"
sed 's/checkpoint: always/checkpoint: never/; s/I: 10ms/I: 20ms/' "$dir/again.yaml" > "$dir/longer.yaml"
check "a found schedule knows that F is computed again" \
    test "$("$SWSIM" predict --json "$dir/again.yaml" | field makespan_ns)" = "$("$SWSIM" predict --json "$dir/longer.yaml" | field makespan_ns)"

# Messages by time: the second stage is slow, so the first one's forwards end before its backwards come.
printf 'swplan: 1\nname: slow\nstages: {F: [1ms, 9ms], B: [2ms, 9ms]}\nprograms: ["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"]\n' > "$dir/slow.yaml"
check "messages stand in the order of the stages' own times" prints 0 "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0" \
    "$SWSIM" export --comms=timed "$dir/slow.yaml"

# Data-flow: stages are ignored, and tickets follow dependences.
cat > "$dir/flow.yaml" <<'PLAN'
swplan: 1
name: flow
driver: dataflow
max_depth: 2
schedule:
  A: {stage: 0, stream: a, thread_group: a, time: 1ms, writes: [x]}
  B: {stage: 0, stream: b, thread_group: b, globally_ordered: true, time: 1ms, reads: [x], writes: [y]}
  C: {stage: 0, stream: c, thread_group: c, globally_ordered: true, time: 2ms, reads: [y]}
intra_iter_deps: [[B, A], [C, B]]
PLAN
flow() { "$SWSIM" predict --driver=dataflow --json "$1" | field makespan_ns; "$SWSIM" verify --driver=dataflow --no-fix "$1" | sed 's/  [^ ]* [mun]*s$//'; }
flow "$dir/flow.yaml" > "$dir/even"
for stages in "1 0 0" "2 1 0" "0 1 2" "0 0 1"; do
    set -- $stages
    sed "s/A: {stage: 0/A: {stage: $1/; s/B: {stage: 0/B: {stage: $2/; s/C: {stage: 0/C: {stage: $3/" "$dir/flow.yaml" > "$dir/staged.yaml"
    check "data-flow ignores the stages $stages" sh -c "cat > '$dir/uneven'; cmp '$dir/even' '$dir/uneven'" <<FIGURES
$(flow "$dir/staged.yaml")
FIGURES
done
sed 's/^max_depth/enqueue_order: [C, B, A]\n&/' "$dir/flow.yaml" > "$dir/listed.yaml"
check "tickets follow dependences against a list" prints 0 ' proved ' "$SWSIM" verify --no-fix --driver=dataflow "$dir/listed.yaml"
check "not under the clock" prints 1 'deadlock, always' "$SWSIM" verify --no-fix --driver=clock "$dir/listed.yaml"
sed 's/^max_depth/ranks: 2\n&/; s/, globally_ordered: true//; $a rank_overrides: {1: {schedule: {B: {globally_ordered: true}, C: {globally_ordered: true}}}}' "$dir/flow.yaml" > "$dir/lone.yaml"
check "each rank numbers its own ordered tasks" prints 0 ' proved ' "$SWSIM" verify --no-fix --driver=dataflow "$dir/lone.yaml"
done_testing
