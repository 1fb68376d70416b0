#!/bin/sh
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

done_testing
