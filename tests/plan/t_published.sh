#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Published figures of pipeline schedules: spans, bubbles, memory. Closed forms stand here; tables of others are read where
# SWSIM_SHARED has them.
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

# ---- published rows ------------------------------------------------------------------------------------------

# Every row of the tables, with its figures: published_rows.py says which states there are. Of schedules that are found
# t_found.c has the lists, too.
shared=${SWSIM_SHARED:-$srcdir/../shared}/data
agrees()
{
    grep "/$1:" "$dir/rows" && grep -q "^[a-z-]*/$1: [1-9][0-9]* rows" "$dir/rows" && ! grep "^$1:[0-9]* WRONG" "$dir/rows"
}
if ! command -v python3 > "$dir/python"; then
    skip "no python3"
elif ! [ -r "$shared/schedules/cases.csv" ]; then
    skip "no published rows in $shared"
else
    python3 "$srcdir/tests/published_rows.py" "$SWSIM" "$shared" > "$dir/rows" 2>&1
    grep -v '^[a-z]*.csv:[0-9]* equal' "$dir/rows" | sed 's/^/# /'
    check "targets.csv: every row is equal, or found better" agrees targets.csv
    check "cases.csv: every row is equal, found better, or explained" agrees cases.csv
fi

done_testing
