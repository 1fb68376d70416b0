#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Published figures of pipeline schedules: spans, bubbles, memory.
. "${srcdir:-.}/tests/tap.sh"

# predicted SCHEDULE RANKS MICROBATCHES F I W [KEYS]: nanoseconds of passes; the prediction is in $dir/row.json
predicted()
{
    echo "swplan: 1
times: {F: $4ns, I: $5ns, W: $6ns}
generate: {schedule: $1, ranks: $2, microbatches: $3${chunks:+, chunks: $chunks}}
${7:-}" > "$dir/row.yaml"
    "$SWSIM" predict --json "$dir/row.yaml" > "$dir/row.json"
}

# is KEY NUMBER
is()
{
    [ "$(field "$1" < "$dir/row.json")" = "$2" ] || { echo "$1 $(field "$1" < "$dir/row.json"), expected $2"; false; }
}

# every KEY NUMBER: of each rank
every()
{
    grep -o "\"$1\":[0-9]*" "$dir/row.json" > "$dir/found"
    ! grep -v ":$2\$" "$dir/found"
}

# ---- closed forms: every pass takes as long, or B twice as long, and messages nothing -----------------------

free='p2p: {fifo: edge}'
activations='stages: {activation: 2MiB, left: 1MiB}'
mib=$((1024 * 1024))

makespan()
{
    predicted "$1" "$2" "$3" 1000 1000 1000 "$free" && is makespan_ns "${4}000"
}
for row in "1f1b 4 8 33" "1f1b 8 24 93" "1f1b 64 256 957" "zb_h1 4 12 39" "zb_h1 8 24 79" \
    "zbv 4 8 51" "zbv 4 12 75" "zbv 8 16 103" "zbv 8 24 151" "dualpipe 8 20 66"; do
    # shellcheck disable=SC2086
    check "makespan: $row" makespan $row
done

# A rank holds as many activations as 1F1B's, of two chunks of half the size.
zbv()
{
    predicted zbv "$1" "$2" 1000 1000 1000 "$free
$activations" && is span_ns "$((6 * $2))000" && every most_bytes $((2 * $1 * 2 * mib))
}
for size in "4 8" "4 12" "8 16" "8 24"; do
    # shellcheck disable=SC2086
    check "zbv $size has no bubble, and activations of 2p chunks" zbv $size
done

# controlled SCHEDULE RANKS MICROBATCHES MOST BUBBLE: activations of microbatches, the bubble in passes of 1F1B's
controlled()
{
    predicted "$1" "$2" "$3" 1000 1000 1000 "$free
$activations" || return 1
    peak=$(values most_bytes)
    [ "$peak" -le $(($4 * 4 * mib)) ] || { echo "$1 $2 $3 holds $peak bytes"; return 1; }
    [ "$(field span_ns < "$dir/row.json")" -le $((1000 * (6 * $3 + $5))) ]
}
values()
{
    grep -o "\"$1\":[0-9]*" "$dir/row.json" | cut -d: -f2 | sort -n | tail -1
}
for size in "4 12" "8 24"; do
    p=${size% *}
    # shellcheck disable=SC2086
    check "zbv_auto $size: no bubble with p" controlled zbv_auto $size "$p" 0
    # shellcheck disable=SC2086
    check "v_half $size: half the bubble" controlled v_half $size $(((p + 2) / 2)) $((3 * (p - 1)))
    # shellcheck disable=SC2086
    check "v_min $size: two thirds" controlled v_min $size $(((p + 4) / 3)) $((4 * (p - 1)))
done

chunks=2
check "interleaved zero bubble, 2 ranks 4 stages: makespan 49" makespan interleaved_zero_bubble 2 8 49
chunks=

# ---- with the costs of real models ----------------------------------------------------------------------------

# 1F1B p m F I W C: the name of the schedule and its costs as ours; `costs` says whether they are of a chunk
ours()
{
    name=$1 p=$2 m=$3 f=$4 b=$5 w=$6 c=$7
    case $name in
    1F1B) name=1f1b ;;
    1F1B-I) name=interleaved_1f1b ;;
    ZB-H1) name=zb_h1 ;;
    ZB-H2) name=zb_h2 ;;
    ZB-1p) name=zb_1p ;;
    ZB-2p) name=zb_2p ;;
    ZB-V) name=zbv_auto ;;
    esac
    work=$((m * (f + b + w)))
    [ "$costs" = chunk ] && work=$((2 * work))
    if [ "$costs" = chunk ] && [ $name != zbv_auto ]; then
        f=$((2 * f)) b=$((2 * b)) w=$((2 * w))
    fi
}

span()
{
    part=${chunks:-1}
    predicted "$name" "$p" "$m" $((f * 1000 / part)) $((b * 1000 / part)) $((w * 1000 / part)) \
        "p2p: {fifo: edge, latency: ${c}us}" || return 1
    got=$(field span_ns < "$dir/row.json")
}

# Of schedules by rule. Those that are found are compared in t_found.c.
targets="${SWSIM_SHARED:-}/data/zero-bubble/targets.csv"
same_spans()
{
    grep -E ',(1F1B|ZB-H1|ZB-H2),' "$targets" | tr -d '\r' > "$dir/rows"
    while IFS=, read -r family p m f b w c schedule limit makespan work rate; do
        costs=stage
        [ "$family" = vshape ] && costs=chunk
        ours "$schedule" "$p" "$m" "$f" "$b" "$w" "$c"
        span || return 1
        [ "$got" = "${makespan}000" ] ||
            { echo "$schedule $p $m: $got, expected ${makespan}000, $rate (limit $limit)"; return 1; }
    done < "$dir/rows"
}

# number KEY: of "p=8 m=24 T_F=18522" in $inputs
number()
{
    echo "$inputs" | sed -nE "s/.*(^|[ \"])$1=([0-9]+).*/\\2/p"
}

# Of interleaved 1F1B the published model lets only the first microbatch of a group wait where it comes from the last
# rank to the first. All wait for their input, which takes up to p messages more.
is_rate()
{
    awk -v t="$got" -v work="$work" -v rate="$rate" -v name="$name" -v pc="$((p * c))" 'BEGIN {
        t /= 1000; got = 1 - work / t; least = 1 - work / (t - pc * 1.1); near = .00005001
        if (name == "interleaved_1f1b") ok = rate <= got + near && rate >= least - near
        else ok = got <= rate + near
        if (!ok) printf "%s: rate %.6f, published %s\n", name, got, rate
        exit !ok }'
}

cases="${SWSIM_SHARED:-}/data/schedules/cases.csv"
# Those by rule with one stage a rank have the same rows above.
same_rates()
{
    tr -d '\r' < "$cases" | sed -nE 's/.*,(1F1B-I|ZB-1p|ZB-2p|ZB-V),"?(p=.*T_comm=.*)/\1 \2/p' > "$dir/rows"
    while read -r schedule inputs; do
        costs=stage chunks= rate=$(echo "$inputs" | sed -nE 's/.*bubble_rate=([.0-9]+).*/\1/p')
        case $inputs in *per-chunk*) costs=chunk ;; esac
        ours "$schedule" "$(number p)" "$(number m)" "$(number T_F)" "$(number T_B)" "$(number T_W)" "$(number T_comm)"
        if [ "$schedule" = 1F1B-I ]; then
            # One layer a chunk; embedding and head are a layer each.
            layers=$(echo "$inputs" | sed -nE 's/.* ([0-9]+) layers.*/\1/p')
            chunks=$((layers ? (layers + 2) / p : 2))
        fi
        span || return 1
        is_rate || { echo "$schedule $inputs"; return 1; }
    done < "$dir/rows"
    rows=$(wc -l < "$dir/rows")
    [ "$rows" -gt 20 ] || { echo "$rows rows"; return 1; }
}

if [ -r "$targets" ]; then
    check "spans of schedules by rule are the published ones" same_spans
else
    skip "no published spans here (SWSIM_SHARED)"
fi
if [ -r "$cases" ]; then
    check "bubbles are the published ones to four digits; none that is found is larger" same_rates
else
    skip "no published bubbles here (SWSIM_SHARED)"
fi

done_testing
