#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Groups of ranks around a pipeline: who is in them, what their collectives cost, and the hangs between them.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

# plan NAME: a plan of rank programs, its keys from standard input
plan()
{
    { printf 'swplan: 1\nname: %s\n' "$1" && cat; } > "$dir/$1.yaml"
}

# takes NAME NS: its makespan
takes()
{
    total=$("$SWSIM" predict --json "$dir/$1.yaml" | field makespan_ns)
    [ "$total" = "$2" ] || { echo "$1: $total, expected $2"; false; }
}

# ---- who is in a group -------------------------------------------------------------------------

# group OF PARALLEL RANKS...: the groups over these dimensions, as --json prints them
group()
{
    printf 'parallel: {%s}\ngenerate: {schedule: gpipe, ranks: 2, microbatches: 1}\n' "$2" | plan group
    "$SWSIM" groups --json --of="$1" "$dir/group.yaml" | grep -qF "{\"$1\":$3}" ||
        { "$SWSIM" groups --json --of="$1" "$dir/group.yaml"; false; }
}

check "the first dimension of the order has neighbours" \
    group tp "tp: 2, dp: 2, order: tp-dp-pp" "[[0,1],[2,3],[4,5],[6,7]]"
check "the second is farther apart" group dp "tp: 2, dp: 2, order: tp-dp-pp" "[[0,2],[1,3],[4,6],[5,7]]"
check "pipelines first: they have neighbours" group pp "tp: 2, order: pp-tp" "[[0,1],[2,3]]"
check "a mesh names the fastest last" \
    group tp "tp: 2, dp: 2, mesh: [pp, dp, tp]" "[[0,1],[2,3],[4,5],[6,7]]"
check "and may have the data-parallel ranks next to each other" group dp "tp: 2, dp: 2, mesh: [pp, tp, dp]" "[[0,1],[2,3],[4,5],[6,7]]"
check "two dimensions together" group tp-pp "tp: 2, dp: 2" "[[0,1,4,5],[2,3,6,7]]"
check "experts divide data-parallel ranks" group ep "dp: 4, ep: 2" "[[0,1],[2,3],[4,5],[6,7]]"
check "and have replicas of their own" group expert-dp "dp: 4, ep: 2" "[[0,2],[1,3],[4,6],[5,7]]"
printf 'parallel: {dp: 2}\ngenerate: {schedule: 1f1b, ranks: 4, microbatches: 4}\n' | plan ends
check "an embedding group: first and last stage" \
    prints 0 "embedding.1  1 7" "$SWSIM" groups "$dir/ends.yaml"

# refused PARALLEL WORDS: is a plan with these groups refused, with these words?
refused()
{
    printf 'parallel: {%s}\ngenerate: {schedule: gpipe, ranks: 2, microbatches: 1}\n' "$1" | plan refused
    says "$2" "$SWSIM" verify "$dir/refused.yaml"
}

check "a world that is no product is refused" refused "tp: 2, world: 8" "found world 8, expected 4"
check "and another pp than the lists have" refused "tp: 2, pp: 4" "found pp 4, expected 2"
check "an order without a dimension that has ranks" refused "tp: 2, order: pp-dp" "every dimension"
check "a mesh beside an order is refused" refused "tp: 2, order: tp-pp, mesh: [pp, tp]" "mesh beside order"
check "a mesh that is no list" refused "tp: 2, mesh: tp" "the dimensions of a mesh"
check "a dimension twice" refused "tp: 2, order: pp-tp-pp" "each dimension once"
check "experts that do not divide the ranks" refused "dp: 3, ep: 2" "ep x expert_tp"
check "pipelines that would not be the same for experts" \
    refused "tp: 2, dp: 2, ep: 2, expert_tp: 1, order: tp-pp-ep-dp" "the same pipelines"
check "a rank that is not there" refused "dp: 2, ranks: {4: {grad_reduce: end}}" "expected ranks below 4"
check "a plan without groups has none to print" \
    says "found no \"parallel\"" "$SWSIM" groups "$plans/examples/gpipe.yaml"

# ---- what they cost ----------------------------------------------------------------------------

# costs PARALLEL NS: a forward and a backward pass on one rank of each pipeline
costs()
{
    case $1 in *between:*) nodes='p2p: {node: 2}' ;; *) nodes= ;; esac
    printf 'times: {F: 1ms, B: 2ms}\n%s\nparallel: {%s}\nprograms: ["0F0 0B0"]\n' "$nodes" "$1" | plan costs
    takes costs "$2"
}

check "a group of one rank has no collectives" costs "dp: 2, costs: {tp: {time: 1ms}}" 3000000
check "by default one behind a pass" costs "tp: 2, costs: {tp: {time: 1ms}}" 5000000
check "or as many as the plan says" costs "tp: 2, costs: {tp: {time: 1ms, F: 2, B: 0}}" 5000000
check "latency and bytes by bandwidth" \
    costs "tp: 2, costs: {tp: {latency: 1us, bytes: 1MB, bandwidth: 1GB/s}}" 5002000
check "other links between nodes" \
    costs "dp: 2, tp: 2, order: dp-tp, costs: {tp: {bandwidth: 1GB/s, bytes: 1MB, between: {latency: 1ms}}}" 7000000
check "sequence parallelism: two gathers, two scatters" \
    costs "tp: 2, costs: {tp: {time: 1ms, call: gather_scatter}}" 11000000
check "beside the pass: as long as the longer" \
    costs "tp: 2, costs: {tp: {time: 400us, call: gather_scatter, overlap: true}}" 3600000
check "a ring of four: three rounds, and four backward" \
    costs "cp: 4, costs: {cp: {time: 1ms, call: ring}}" 10000000
check "Ulysses: two exchanges in a pass" costs "cp: 2, costs: {cp: {time: 1ms, call: all_to_all}}" 7000000
check "a ring of experts is refused" refused "dp: 2, ep: 2, costs: {ep: {call: ring}}" "found call ring for group ep"
check "and a ring that reduces gradients" refused "dp: 2, costs: {dp-cp: {call: ring}}" "found a call in passes for group dp-cp"

# moves PARALLEL KEYS NS: F and B together, of a model of 4 layers: sbh = 8192
moves()
{
    printf 'model: {layers: 4, hidden: 64, heads: 4, sequence: 64, microbatch: 2%s}\nparallel: {%s}\nprograms: ["0F0 0B0"]\n' "$2" "$1" | plan moves
    takes moves "$3"
}
bytes='bandwidth: 1GB/s' # a nanosecond each
check "bytes of all-reduces: 2sbh, twice in each of four layers" moves "tp: 2, costs: {tp: {$bytes}}" "" 262144
check "of gathers and scatters: 2sbh, two of each" moves "tp: 2, costs: {tp: {$bytes}}" ", sequence_parallel: true" 524288
check "a latency each" moves "tp: 2, costs: {tp: {latency: 1ms}}" ", sequence_parallel: true" 32000000
check "as many as the plan counts" moves "tp: 2, costs: {tp: {$bytes, F: 1, B: 0}}" "" 16384
check "keys and values of the whole sequence" moves "cp: 2, costs: {cp: {$bytes}}" "" 262144
check "those of a rank in a ring of two" moves "cp: 2, costs: {cp: {$bytes, call: ring}}" "" 196608
check "queries, keys and values, and one answer" moves "cp: 2, costs: {cp: {$bytes, call: all_to_all}}" "" 262144
check "keys and values of half as many heads" moves "cp: 2, costs: {cp: {$bytes}}" ", kv_heads: 2" 131072
check "... in a ring" moves "cp: 2, costs: {cp: {$bytes, call: ring}}" ", kv_heads: 2" 98304
check "... exchanged: the queries are as many" moves "cp: 2, costs: {cp: {$bytes, call: all_to_all}}" ", kv_heads: 2" 196608

check "gradients at the end" costs "dp: 2, grad_reduce: end, costs: {dp-cp: {time: 1ms}}" 4000000
check "of experts, too" \
    costs "dp: 4, ep: 2, grad_reduce: end, costs: {dp-cp: {time: 1ms}, expert-dp: {time: 3ms}, ep: {time: 0ms}}" 7000000

two_stages='programs: ["0F0 1F0 1B0 0B0"]'
reduction()
{
    { printf 'times: {F: 1ms, B: 2ms}\nparallel: {dp: 2, grad_reduce: %s, costs: {dp-cp: {time: 2ms}}}\n' "$1"
      echo "$two_stages"; } | plan reduction
    takes reduction "$2"
}

check "two stages reduce one behind the other" reduction end 10000000
check "behind each stage: as long" reduction stage 10000000
check "beside the passes of the other stage" reduction overlap 8000000

# ---- hangs between them ------------------------------------------------------------------------

ring='parallel: {dp: 2, grad_reduce: end, embedding: last, ranks: {0: {embedding: first}, 3: {embedding: first}}}
generate: {schedule: 1f1b, ranks: 2, microbatches: 2}'
printf '%s\n' "$ring" | plan ring
"$SWSIM" verify --no-fix "$dir/ring.yaml" > "$dir/ring" 2>&1
check "two groups in two orders: a ring of four" grep -q "deadlock, always" "$dir/ring"
check "told with communicators, rows and ranks" \
    grep -q "REDUCE_EMBEDDING of communicator embedding.0 (row 1, column 9; ranks 0, 2), waits for rank 2" "$dir/ring"
# Messages are added in front of the second one.
plan columns <<'END'
times: {F: 1ms}
fragment: true
fsdp: {replicas: 2, bytes: 1MiB}
machine: {sm_slots: 1}
programs: ["0F0 0UNSHARD 0F1 0UNSHARD", "1F0 1UNSHARD 1F1 1UNSHARD"]
END
"$SWSIM" verify --no-fix "$dir/columns.yaml" >"$dir/columns" 2>&1
check "the column is that of the file" grep -q "1UNSHARD of communicator fsdp.1 (row 2, column 2; ranks 1, 3)" "$dir/columns"
printf '%s\n' "$ring" | sed 's/, 3: {embedding: first}//' | plan odd
check "one rank alone in another order hangs nobody" exits 0 "$SWSIM" verify -q "$dir/odd.yaml"
printf '%s\n' "$ring" | sed 's/grad_reduce: end/grad_reduce: overlap/' | plan beside
check "on a stream of its own the reduction hangs nobody, but races with what comes first" \
    says "race" "$SWSIM" verify -q --no-fix "$dir/beside.yaml"

own='parallel: {tp: 2, ranks: {1: {program: "0F1 0F0 0B0 0B1"}}}
programs: ["0F0 0F1 0B0 0B1"]'
printf '%s\n' "$own" | plan own
check "another list on one rank: other collectives at one place" \
    says "mismatch" "$SWSIM" verify -q --no-fix "$dir/own.yaml"
printf '%s\n' "$own" | sed 's/0F1 0F0 0B0/0F0 0F1 1B0/' | plan stage
check "a list of a stage that is elsewhere is refused" says "malformed schedule" "$SWSIM" verify "$dir/stage.yaml"
printf '%s\n' "$own" | sed 's/0F1 0F0 0B0 0B1/0F0 0F1 0B0/' | plan missing
check "a pass that one rank lacks is found" says "0B1" "$SWSIM" verify -q --no-fix "$dir/missing.yaml"

copies='parallel: {dp: 2, grad_reduce: end}
generate: {schedule: dualpipe, ranks: 2, microbatches: 4}'
printf '%s\n' "$copies" | plan copies
check "gradients of two copies of a model are refused" says "copies of the model" "$SWSIM" verify "$dir/copies.yaml"

# ---- everywhere --------------------------------------------------------------------------------

check "a certificate of eight ranks" exits 0 "$SWSIM" verify -q --certificate="$dir/c" "$plans/examples/groups.yaml"
check "which swcheck accepts" exits 0 "${SWCHECK:-./swcheck}" "$plans/examples/groups.yaml" "$dir/c"
check "every channel of messages" prints 0 "proved" "$SWSIM" verify --p2p=all "$plans/examples/groups.yaml"
printf 'parallel: {tp: 2, costs: {tp: {W: 1}}}\nprograms: ["0F0 0I0 0W0"]\n' | plan small
check "the full search says the same" exits 0 "$SWSIM" verify -q --no-reduction "$dir/small.yaml"
check "a run on the host device" exits 0 "${SWRUN:-./swrun}" -q --device host "$dir/odd.yaml"
done_testing
