#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim render`: each option with each kind of picture has an effect, or is refused with a sentence.
. "${srcdir:-.}/tests/tap.sh"
"$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/probe.dot" 2>/dev/null || skip_all "no Graphviz"

"$SWSIM" predict -q -n 20 --db="$dir/r.db" "$srcdir/plans/torchrec/sparse_dist.yaml" >"$dir/out"
"$SWSIM" predict -q -n 40 --db="$dir/r.db" "$srcdir/plans/torchrec/sparse_dist.yaml" >"$dir/out"
"$SWSIM" verify -q --witness="$dir/w.db" "$srcdir"/plans/*/nccl_send_send_broken.yaml \
    "$srcdir"/plans/*/torchrec_lookup_without_wait_broken.yaml >"$dir/out"
cat >"$dir/p.yaml" <<'END'
swplan: 1
name: passes
times: {F: 4ms, B: 8ms}
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}
END
"$SWSIM" predict -q --db="$dir/s.db" "$dir/p.yaml" >"$dir/out"
"$SWSIM" predict -q --times=F=1ms,B=2ms --db="$dir/s.db" "$dir/p.yaml" >"$dir/out"

# The subject and the suffix of each kind.
subject()
{
    case $1 in
    timeline) echo "$dir/r.db svg" ;;
    witness) echo "$dir/w.db svg" ;;
    page) echo "$dir/r.db html" ;;
    run_page) echo "$dir/s.db html" ;;
    plan_page) echo "$dir/p.yaml html" ;;
    witness_page) echo "$dir/w.db html" ;;
    graph_page) echo "$srcdir/plans/examples/hello.yaml html" ;;
    JSON) echo "$dir/r.db json" ;;
    run) echo "$dir/s.db svg" ;;
    plan) echo "$dir/p.yaml svg" ;;
    graph) echo "$srcdir/plans/examples/hello.yaml svg" ;;
    esac
}

# has_effect KIND OPTION: another file, or a refusal that names the option.
has_effect()
{
    set -- "$1" "$2" $(subject "$1")
    if "$SWSIM" render "$2" -o "$dir/x.$4" "$3" >"$dir/log" 2>&1; then
        ! cmp -s "$dir/$1.$4" "$dir/x.$4"
    else
        grep -q -e "found ${2%%=*}[=,]" -e 'drawn as a whole' -e 'no such iterations' -e 'no time to choose' \
            -e 'is named as a pass' "$dir/log"
    fi
}

for kind in timeline witness page JSON run plan graph run_page plan_page witness_page graph_page; do
    set -- $(subject $kind)
    check "$kind" exits 0 "$SWSIM" render -o "$dir/$kind.$2" "$1"
    check "$kind, twice the same" sh -c "'$SWSIM' render -o '$dir/x.$2' '$1' && cmp '$dir/x.$2' '$dir/$kind.$2'"
    for option in --run=1 --rank=1 '--stream=mem*' --time=0ms..20ms --iterations=1..1 --from=1 --to=1 --arrows=none \
        --width=700 --font-size=12 --theme=dark --bw --as=schedule --as=timeline --times=F=3ms,B=3ms --p2p=edge \
        --palette=dualpipe --title=Other --no-threads; do
        case $kind$option in
        timeline--as=timeline | page--as=timeline | run_page--as=schedule | plan_page--as=schedule | run--as=schedule | plan--as=schedule | timeline--rank=1 | page--rank=1 | JSON--rank=1) continue ;;
        esac
        check "$kind, $option" has_effect $kind "$option"
    done
done

check "a rank of two" sh -c "'$SWSIM' predict -q --ranks=2 -n 3 --db='$dir/two.db' '$srcdir/plans/torchrec/sparse_dist.yaml' >'$dir/out' &&
    '$SWSIM' render -o '$dir/x.html' '$dir/two.db' && '$SWSIM' render --rank=1 -o '$dir/y.html' '$dir/two.db' && ! cmp -s '$dir/x.html' '$dir/y.html'"
check "a run that is named twice" complains 2 'names its run: expected no --run' "$SWSIM" render --run=1 -o "$dir/x.svg" "$dir/r.db:2"
check "a plan has no streams in time" complains 2 'found --as=timeline, but' "$SWSIM" render --as=timeline -o "$dir/x.svg" "$dir/p.yaml"
{
    printf 'swplan: 1\nname: many\nschedule:\n'
    awk 'BEGIN { for (i = 0; i < 1000; i++) printf "  T%d: {stage: 0, stream: s%d, time: 1us}\n", i, i }'
} >"$dir/many.yaml"
timeout 3 "$SWSIM" render "$dir/many.yaml" -o "$dir/many.svg" 2>"$dir/log"
check "a graph of many boxes announces the wait, before it is drawn" grep -q 'Graphviz places 1000 boxes.*--format=dot' "$dir/log"
check "which .dot does not have" prints 0 '^$' sh -c '"$1" render "$2.yaml" -o "$2.dot" && echo' sh "$SWSIM" "$dir/many"

# A long host program: what follows on a stream is one box, a repeat is drawn once, what has an arrow is a box of its own.
{
    printf 'swplan: 1\nname: steps\nthreads:\n  r0.t:\n  - repeat: 4\n    body:\n'
    for k in $(seq 20); do printf '    - {launch: k%d, stream: main, time: 10us}\n    - {host: 1us}\n' "$k"; done
    printf '    - {record: done, stream: main}\n    - {wait: done, stream: comm}\n'
    for k in 1 2 3; do printf '    - {copy: d2h, bytes: 1KiB, stream: comm, time: 5us}\n'; done
    printf '  - {sync: device}\n'
} >"$dir/steps.yaml"
"$SWSIM" render -o "$dir/steps.dot" "$dir/steps.yaml"
check "a long host program is folded" sh -c 'grep -q "20 launches.*main.*200 us" "$1" && grep -q "3 copies.*comm.*15.0 us" "$1"' sh "$dir/steps.dot"
check "its repeat is drawn once, with its number" sh -c 'test "$(grep -c "label=\"\?4 times" "$1")" = 1 && test "$(grep -c "record done" "$1")" = 1' \
    sh "$dir/steps.dot"
"$SWSIM" render --all -o "$dir/steps.dot" "$dir/steps.yaml"
check "which a pipeline's graph has no use for" complains 2 'found --all, which has no effect' "$SWSIM" render --all -o "$dir/x.dot" "$srcdir/plans/examples/hello.yaml"
check "--all draws each operation of each iteration" sh -c 'test "$(grep -c "record done" "$1")" = 4 && test "$(grep -c "launch k7" "$1")" = 4' \
    sh "$dir/steps.dot"
# The variable that limits a drawing is a number of seconds.
for seconds in abc '' 0 12x 99999999999999999999 "$(printf '\033[31m')"; do
    check "SWSIM_DRAW_SECONDS=$(printf %s "$seconds" | tr -d '\033') is refused" \
        complains 2 'variable SWSIM_DRAW_SECONDS: found .*, expected seconds from 1 to 86400' \
        env "SWSIM_DRAW_SECONDS=$seconds" "$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/x.svg"
done
check "up to a day is not" env SWSIM_DRAW_SECONDS=86400 "$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/x.svg"

done_testing
