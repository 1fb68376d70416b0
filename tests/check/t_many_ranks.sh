#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# verify --ranks of a host program: what its ranks prove for more of them, and why some cannot stand for others. Random programs
# are compared with all choices of their ranks, written out.
. "${srcdir:-.}/tests/tap.sh"

# plan COMMS THREADS
plan()
{
    printf 'swplan: 1\nname: many\ncomms: {%s}\nthreads: {%s}\n' "$1" "$2" >"$dir/plan.yaml"
}
# says STATUS TEXT RANKS
says()
{
    "$SWSIM" verify --no-fix --ranks="$3" "$dir/plan.yaml" >"$dir/out" 2>&1
    code=$?
    cat "$dir/out"
    test $code -eq "$1" && grep -qF -- "$2" "$dir/out"
}
json()
{
    "$SWSIM" verify --json --ranks=512 "$dir/plan.yaml" | grep '"ranks":"unbounded"' |
        grep -q '"parts":"512 ranks, each of which does what one of the 2 of the plan does: '
}

sum='{collective: x, comm: all, stream: s}'
sync='{sync: stream, stream: s}'
plan 'all: [0, 1]' "r0.main: [$sum, $sync], r1.main: [$sum, $sync]"
check "two equal ranks stand for 512" says 0 '512 ranks, each of which does what one of the 2 of the plan does: 5 parts' 512
check "... for any number" says 0 'and any number of ranks' 3
check "... in JSON, too" json
check "not for fewer" says 2 'found --ranks 1' 1
"$SWSIM" verify --faults --ranks=8 "$dir/plan.yaml" >"$dir/out" 2>&1
check "not after failures" grep -F 'failure safety is asked of the ranks of the plan, not of 8' "$dir/out"
plan 'all: [0]' "r0.main: [$sum, $sync]"
check "one rank does" says 0 '2 parts' 512
plan 'all: [0, 1]' "r0.main: [{launch: k, stream: s}, $sum, $sync], r1.main: [$sum, {launch: j, stream: s}, $sync]"
check "ranks that differ in their own work" says 0 '5 parts' 4
race='{launch: k, stream: s, writes: [b]}, {launch: j, stream: t, reads: [b]}'
plan 'all: [0, 1]' "r0.main: [$race, $sum], r1.main: [$sum]"
check "a race of one rank is one" says 1 'race' 512
plan 'all: [0, 1]' "r0.main: [{group: [{send: x, peer: 1, bytes: 8B}], comm: all, stream: s}], r1.main: [{group: [{recv: x, peer: 0, bytes: 8B}], comm: all, stream: s}]"
check "to whom 512 would send is not known" says 3 'its ranks cannot stand for 512: rank 0 sends to rank 1' 512
plan 'all: [0, 1]' "r0.main: [{signal: f}], r1.main: [{await: f}]"
check "nor who would share a flag" says 3 'f is used by several of its ranks' 512
plan 'pair: [0, 1], all: [0, 1, 2]' "r0.main: [$sum], r1.main: [$sum], r2.main: [$sum]"
check "nor who else would be in a part of the ranks" says 3 'communicator pair has 2 of its 3 ranks' 512

tensor='{collective: t, comm: tp%d, stream: s}'
data='{collective: d, comm: dp%d, stream: s}'
each()
{
    # shellcheck disable=SC2059
    printf "r%d.main: [$tensor, $data, $sync], " 0 "$1" "$3" 1 "$1" "$4" 2 "$2" "$3" 3 "$2" "$4"
}
plan 'tp0: [0, 1], tp1: [2, 3], dp0: [0, 2], dp1: [1, 3]' "$(each 0 1 0 1)"
check "tensor-parallel pairs stand for more of them" says 0 'in groups of 2' 512
check "... which are whole" says 2 'expected a multiple of 2' 511
plan 'tp0: [0, 2], tp1: [1, 3], dp0: [0, 1], dp1: [2, 3]' "r0.main: [{group: [{send: x, peer: 2, bytes: 8B}], comm: tp0, stream: s}, {collective: d, comm: dp0, stream: s}],
    r2.main: [{group: [{recv: x, peer: 0, bytes: 8B}], comm: tp0, stream: s}, {collective: d, comm: dp1, stream: s}],
    r1.main: [{group: [{send: x, peer: 3, bytes: 8B}], comm: tp1, stream: s}, {collective: d, comm: dp0, stream: s}],
    r3.main: [{group: [{recv: x, peer: 1, bytes: 8B}], comm: tp1, stream: s}, {collective: d, comm: dp1, stream: s}]"
check "pipelines of ranks that are no neighbours do" says 0 'in groups of 2' 8

two='{collective: a, comm: all, stream: s}, {collective: b, comm: other, stream: t}'
turned='{collective: b, comm: other, stream: s}, {collective: a, comm: all, stream: s}'
plan 'all: [0, 1], other: [0, 1]' "r0.main: [$two], r1.main: [$turned]"
check "a rank with streams of its own makes up for another's order" says 0 'any number' 8
exchange='{group: [{send: x, peer: 0, bytes: %dB}, {recv: x, peer: 0, bytes: %dB}, {send: x, peer: 1, bytes: %dB}, {recv: x, peer: 1, bytes: %dB}], comm: all, stream: s}'
# shellcheck disable=SC2059
plan 'all: [0, 1]' "r0.main: [$(printf "$exchange" 8 8 4 6)], r1.main: [$(printf "$exchange" 6 4 2 2)]"
check "all send to all, to their own kind what they send to themselves" says 0 '5 parts' 16
# shellcheck disable=SC2059
plan 'all: [0, 1]' "r0.main: [$(printf "$exchange" 8 8 4 6)], r1.main: [$(printf "$exchange" 6 4 2 2), $sync, $sum]"
check "... and no rank may come to less" says 1 'deadlock' 16
# Two ranks may be of one kind where the plan has one of each: thread side calls the collectives of `all` in either order with main.
plan 'all: [0, 1]' "r0.main: [{collective: a, comm: all, stream: s, bytes: 8B}], r0.side: [{collective: b, comm: all, stream: t, bytes: 4B}], r1.main: [{collective: a, comm: all, stream: s, bytes: 8B}, {collective: b, comm: all, stream: t, bytes: 4B}]"
check "calls without an order are a mismatch" says 1 'mismatch' 8
call()
{
    printf '{collective: %s, comm: %s, stream: %s}' "$1" "$1" "$2"
}
both="{choose: x, then: [$(call a s), $(call b s)], else: [$(call b s), $(call a s)]}"
plan 'a: [0, 1], b: [0, 1]' "r0.main: [$both], r1.main: [$(call a s), $(call b t)]"
check "one rank that chooses is right beside one that takes all" says 0 proved 2
check "... two are not" says 4 'for 8 ranks: ranks that do what 0, 0 do, together: deadlock' 8
# Each has two of three at hand, and of any two the same one; three may have none in common.
three="{choose: x, then: [$(call a s), $(call b t), $(call c t)], else: [{choose: y, then: [$(call b s), $(call c t), $(call a t)], else: [$(call c s), $(call a t), $(call b t)]}]}"
plan 'a: [0, 1], b: [0, 1], c: [0, 1]' "r0.main: [$three], r1.main: [$three]"
check "two that choose among three are right" says 0 proved 2
check "... three are not" says 4 'ranks that do what 0, 0, 0 do, together: deadlock' 3

# ---- random programs -----------------------------------------------------------------------------

seed=${SWSIM_SEED:-1}
plans=${SWSIM_PLANS:-$(test "${SWSIM_LONG:-}" && echo 1000 || echo 25)}
# Lists of two ranks over communicators a, b, c, and plans of all choices of four of them.
write_random()
{
    awk -v seed="$1" -v out="$dir/random" '
    function below(n) { return int(rand() * n) }
    function list(kind, r,   i, order, main, side, item, moved) {
        for (i = 1; i <= calls; i++) order[i] = i
        if (below(6) == 0 && calls > 1) { i = 1 + below(calls - 1); order[i] = i + 1; order[i + 1] = i }
        moved = below(3) == 0 ? 1 + below(calls) : 0
        for (i = 1; i <= calls; i++) {
            item = "{collective: x" order[i] ", comm: " comm[order[i]] ", bytes: " bytes[order[i]] "B, stream: s" (below(4) ? 0 : 1) (below(6) ? "" : ", writes: [b" below(2) "]") "}, "
            if (below(4) == 0) item = item "{sync: stream, stream: s" below(2) "}, "
            if (below(4) == 0) item = item "{record: e, stream: s0}, {wait: e, stream: s1}, "
            if (below(5) == 0) item = item "{launch: k, stream: s0, reads: [b0]}, "
            if (i == moved) side = side (below(2) ? "{await: f" kind "}, " : "") item
            else if (below(3) == 0 && i > 1 && i != moved + 1) main = "{choose: c, then: [" main item "], else: [" item main "]}, "
            else main = main item
            if (i == 1 && moved) main = main "{signal: f" kind "}, "
        }
        lists[kind, "main"] = main; lists[kind, "side"] = side
    }
    function write(file, choice, n,   r, k, c) {
        printf "swplan: 1\nname: random\ncomms: {" >file
        for (c = 0; c < comms; c++) { printf "%s: [", substr("abc", c + 1, 1) >file; for (r = 0; r < n; r++) printf "%s%d", r ? ", " : "", r >file; printf "], " >file }
        printf "}\nthreads:\n" >file
        for (r = 0; r < n; r++) {
            k = substr(choice, r + 1, 1)
            main = lists[k, "main"]; side = lists[k, "side"]
            gsub("f" k "}", "f" k r "}", main); gsub("f" k "}", "f" k r "}", side)
            printf "  r%d.main: [%s]\n", r, main >file
            if (side) printf "  r%d.side: [%s]\n", r, side >file
        }
        close(file)
    }
    BEGIN {
        srand(seed); comms = 1 + below(3); calls = 1 + below(4)
        for (i = 1; i <= calls; i++) { comm[i] = substr("abc", 1 + below(comms), 1); bytes[i] = below(6) ? 8 : 4 }
        list(0); list(1)
        write(out ".yaml", "01", 2)
        for (i = 0; i < 5; i++) write(out "." i ".yaml", substr("00001111", i + 1, 4), 4)
    }'
}
# What is proved for 4 is proved of each choice of 4; where it is not, and the two are, some choice is refuted.
holds_for_four()
{
    n=0 proved=0 open=0
    while [ $n -lt "$plans" ]; do
        n=$((n + 1))
        write_random $((seed + n))
        "$SWSIM" verify --no-fix --ranks=4 "$dir/random.yaml" >"$dir/out" 2>/dev/null
        "$SWSIM" verify --no-fix "$dir/random".[0-4].yaml >"$dir/all" 2>/dev/null
        if grep -q ' proved ' "$dir/out"; then
            proved=$((proved + 1))
            grep -E ' (violated|undecided) ' "$dir/all" && echo "seed $((seed + n))" && return 1
        elif grep -q ' undecided ' "$dir/out"; then
            open=$((open + 1))
            grep -q 'without the others' "$dir/out" || grep -q ' violated ' "$dir/all" ||
                { cat "$dir/out" && echo "seed $((seed + n)): nothing is wrong" && return 1; }
        fi
    done
    echo "# $n plans, $proved proved, $open left open, from seed $seed"
    test $proved -gt 0
}
check "random programs agree with their ranks written out" holds_for_four

done_testing
