#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One list for all ranks, and anchors: the same plan as with the lists written out, in verdicts, repairs and errors.
. "${srcdir:-.}/tests/tap.sh"

# plan FILE: from standard input.
plan()
{
    { echo "swplan: 1"; cat; } >"$dir/$1"
}

# same A B: one canonical text but for the names, once what is said for all ranks is written out.
same()
{
    "$SWSIM" lower "$dir/$1" >"$dir/a" && "$SWSIM" lower "$dir/$2" >"$dir/b" && cmp "$dir/a" "$dir/b"
}

# canonical FILE: the canonical text is a fixed point with one list.
canonical()
{
    "$SWSIM" export "$dir/$1" >"$dir/once.yaml" && "$SWSIM" export "$dir/once.yaml" >"$dir/twice.yaml" &&
        cmp "$dir/once.yaml" "$dir/twice.yaml" && grep -q 'r\*[.]main:' "$dir/once.yaml"
}

plan ring.yaml <<'PLAN'
name: ring
ranks: 3
comms: {ring: [0, 1, 2]}
threads:
  r*.main:
    - {launch: k, stream: s, reads: [r+1.x], writes: [y]}
    - {record: e, stream: s}
    - {signal: r+1.ready}
    - {await: r.ready}
    - repeat: 2
      body:
        - {group: [{send: a, peer: rank+1}], comm: ring, stream: t} # to the next one
        - {group: [{recv: a, peer: rank-1}], comm: ring, stream: t}
    - {collective: c, comm: ring, stream: t, op: broadcast, root: 0}
PLAN
plan lists.yaml <<'PLAN'
name: ring
comms: {ring: [0, 1, 2]}
threads:
  r0.main:
    - {launch: k, stream: s, reads: [r1.x], writes: [y]}
    - {record: e, stream: s}
    - {signal: r1.ready}
    - {await: r0.ready}
    - {repeat: 2, body: [{group: [{send: a, peer: 1}], comm: ring, stream: t}, {group: [{recv: a, peer: 2}], comm: ring, stream: t}]}
    - {collective: c, comm: ring, stream: t, op: broadcast, root: 0}
  r1.main:
    - {launch: k, stream: s, reads: [r2.x], writes: [y]}
    - {record: e, stream: s}
    - {signal: r2.ready}
    - {await: r1.ready}
    - {repeat: 2, body: [{group: [{send: a, peer: 2}], comm: ring, stream: t}, {group: [{recv: a, peer: 0}], comm: ring, stream: t}]}
    - {collective: c, comm: ring, stream: t, op: broadcast, root: 0}
  r2.main:
    - {launch: k, stream: s, reads: [r0.x], writes: [y]}
    - {record: e, stream: s}
    - {signal: r0.ready}
    - {await: r2.ready}
    - {repeat: 2, body: [{group: [{send: a, peer: 0}], comm: ring, stream: t}, {group: [{recv: a, peer: 1}], comm: ring, stream: t}]}
    - {collective: c, comm: ring, stream: t, op: broadcast, root: 0}
PLAN
check "the lists written out" same ring.yaml lists.yaml
check "canonical text has one list" canonical ring.yaml
check "with ranks counted from its own" grep -q 'peer: rank-1' "$dir/once.yaml"
check "and names" grep -q 'signal: r+1.ready' "$dir/once.yaml"
check "what all ranks share is not counted" grep -q 'root: 0}' "$dir/once.yaml"
check "the same verdict" prints 1 'deadlock, always' "$SWSIM" verify --no-fix "$dir/ring.yaml"
check "one repair of the one list" says 'Fix (proved): on every rank, thread main: one group of send a and recv a' \
    "$SWSIM" verify --fix="$dir/fixed.yaml" "$dir/ring.yaml"
check "of the author's text" grep -q '{group: \[{send: a, peer: rank+1}, {recv: a, peer: rank-1}\]' "$dir/fixed.yaml"
check "still one list" grep -q 'r\*[.]main:' "$dir/fixed.yaml"
check "it is proved" says ' proved ' "$SWSIM" verify --no-fix "$dir/fixed.yaml"

plan own.yaml <<'PLAN'
comms: {all: [0, 1, 2]}
threads:
  r1.main:
    - {launch: slow, stream: s}
    - {collective: c, comm: all, stream: s}
  r*.main:
    - {collective: c, comm: all, stream: s}
PLAN
check "a rank with a list of its own" prints 0 'proved' "$SWSIM" verify "$dir/own.yaml"
check "its list is kept" canonical own.yaml
check "beside the one of the others" grep -q 'r1.main:' "$dir/once.yaml"

plan wrong.yaml <<'PLAN'
comms: {all: [0, 1, 2]}
threads:
  r*.main:
    - {launch: k, stream: s, wites: [x]}
PLAN
check "a mistake is told once" complains 3 'wrong.yaml:5:30: error: found unknown key "wites"' "$SWSIM" verify "$dir/wrong.yaml"
check "no more than once" test "$(grep -c ': error: ' "$dir/err")" -eq 1
check "a peer that is none" complains 3 'found "rank\*2", expected' sh -c \
    "printf 'swplan: 1\ncomms: {a: [0, 1]}\nthreads: {\"r*.m\": [{group: [{send: x, peer: rank*2}], comm: a}]}\n' | '$SWSIM' verify -"

# What only one rank does differently stands in a list of its own.
plan odd.yaml <<'PLAN'
comms: {pair: [0, 1]}
threads:
  r*.main:
    - {group: [{send: a, peer: rank+1}], comm: pair, stream: s}
    - {launch: k, stream: s}
    - {group: [{recv: a, peer: rank+1}], comm: pair, stream: s}
PLAN
check "a repair that tells ranks apart" says 'Fix (proved): rank . thread main: ' "$SWSIM" verify --fix="$dir/fixed.yaml" "$dir/odd.yaml"
check "is proved as it is written" says ' proved ' "$SWSIM" verify --no-fix "$dir/fixed.yaml"
check "and has one list of its own" test "$(grep -c '^ *r[01]*[.]main' "$dir/fixed.yaml")" -eq 1

# ---- anchors -------------------------------------------------------------------------------------

plan anchors.yaml <<'PLAN'
name: lists
comms: {pair: [0, 1]}
threads:
  r0.main: &main
    - &k {launch: k, stream: s, writes: [x]}
    - {<<: *k, stream: t}
    - {launch: l, <<: *k, time: 1ms}
    - {<<: [{launch: m, time: 2ms}, *k]}
    - {group: [{send: a, peer: rank+1}, {recv: a, peer: rank+1}], comm: pair, stream: s}
  r1.main: *main
PLAN
plan without.yaml <<'PLAN'
name: lists
comms: {pair: [0, 1]}
threads:
  r*.main:
    - {launch: k, stream: s, writes: [x]}
    - {launch: k, stream: t, writes: [x]}
    - {launch: l, stream: s, time: 1ms, writes: [x]}
    - {launch: m, stream: s, time: 2ms, writes: [x]}
    - {group: [{send: a, peer: rank+1}, {recv: a, peer: rank+1}], comm: pair, stream: s}
PLAN
check "aliases and merge keys are copies" same anchors.yaml without.yaml
check "a mistake is one of the anchor's text" complains 3 'anchors.yaml:6:' sh -c \
    "sed -i 's/stream: s, writes/stream: s, wites/' '$dir/anchors.yaml'; '$SWSIM' verify '$dir/anchors.yaml'"
check "an alias without an anchor" complains 3 'found the alias "\*q", expected an anchor "&q" before it' \
    sh -c "printf 'swplan: 1\nthreads: {r0.a: *q}\n' | '$SWSIM' verify -"
check "an alias of what is around it" complains 3 'within what it stands for' \
    sh -c "printf 'swplan: 1\nthreads: {r0.a: &q [*q]}\n' | '$SWSIM' verify -"
check "no mapping to merge" complains 3 'to merge, expected a mapping' \
    sh -c "printf 'swplan: 1\nthreads: {r0.a: [{<<: 3, launch: k}]}\n' | '$SWSIM' verify -"
{
    printf 'swplan: 1\nthreads:\n  r0.a0: &a0 [{host: 1us}, {host: 1us}]\n'
    for i in 1 2 3 4 5 6 7 8 9; do
        printf '  r0.a%d: &a%d [' $i $i
        for _ in 1 2 3 4 5 6 7 8; do printf '*a%d, ' $((i - 1)); done
        printf '*a%d]\n' $((i - 1))
    done
} >"$dir/bomb.yaml"
check "a bomb is refused" complains 3 'found aliases for more than 4194304 keys, values and items' "$SWSIM" verify "$dir/bomb.yaml"

done_testing
