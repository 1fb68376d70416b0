#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swcheck and `swsim verify --certificate` on the command line, with the plans of the project: the certificate of a
# plan that was mended does not pass for the broken one, not even with its hash, and no field of one may be changed at will.
. "${srcdir:-.}/tests/tap.sh"

plans=$srcdir/plans
good=$plans/examples/hello.yaml
rank=$plans/examples/one_f_one_b.yaml
searched=$plans/faults/lock_fixed.yaml

# fails CODE PATTERN COMMAND...
fails()
{
    code=$1 pattern=$2
    shift 2
    exits "$code" "$@" && says "$pattern" "$@"
}

# hash_of PLAN: as swcheck tells it.
hash_of()
{
    printf 'swcert 2\nplan x\n' | "$SWCHECK" "$1" - | sed 's/.* //'
}

# Each line of a certificate, left out.
each_line_counts()
{
    lines=$(grep -n '^end$' "$2" | head -n 1 | cut -d: -f1)
    n=1
    while [ "$n" -le "$lines" ]; do
        sed "${n}d" "$2" >"$dir/shorter"
        "$SWCHECK" -q "$1" "$dir/shorter" && echo "line $n is not needed" && return 1
        n=$((n + 1))
    done
}
# claims_nothing KIND DRIVER PLAN TEXT: a certificate that claims no property, by a kind of proof for other plans.
claims_nothing()
{
    printf 'swcert 2\nplan %s\noptions %s 0 0 -1\nproves\nby %s\n%s\nend\n' "$(hash_of "$3")" "$2" "$1" "$4" |
        "$SWCHECK" "$3" -
}
# claims_safety DRIVER PLAN: is it safe after faults by its structure alone?
claims_safety()
{
    printf 'swcert 2\nplan %s\noptions %s 0 0 -1\nproves faults\nby teams\nend\n' "$(hash_of "$2")" "$1" |
        "$SWCHECK" "$2" -
}

check "a pipeline has a certificate" exits 0 "$SWSIM" verify --quiet --certificate="$dir/hello" "$good"
check "swcheck says yes" prints 0 'yes: .*deadlock-free.*race-free.*any number of iterations, driver dataflow' \
    "$SWCHECK" "$good" "$dir/hello"
check "a rank program has one" exits 0 "$SWSIM" verify --quiet --certificate="$dir/rank" "$rank"
check "and swcheck says yes" prints 0 'yes: .*race-free.*written before they are read.*by run' "$SWCHECK" "$rank" "$dir/rank"
check "a searched plan has one" exits 0 "$SWSIM" verify --quiet --certificate="$dir/searched" "$searched"
check "swcheck closes its set of states" prints 0 'yes: .*by states' "$SWCHECK" "$searched" "$dir/searched"
cat >"$dir/alone.yaml" <<'END'
swplan: 1
name: alone
threads:
  r0.reader:
    - {host: 1ms, name: read}
    - {launch: train, stream: compute, time: 2ms}
    - {sync: stream, stream: compute}
END
check "safety after faults has one, by the plan" exits 0 \
    "$SWSIM" verify --quiet --certificate="$dir/safe" "$plans/faults/flag_fixed.yaml"
check "swcheck looks at the plan" prints 0 'yes: survives faults, 1 rank; by teams' \
    "$SWCHECK" "$plans/faults/flag_fixed.yaml" "$dir/safe"
check "or by states with each fault" exits 0 "$SWSIM" verify --quiet --faults --certificate="$dir/alone" "$dir/alone.yaml"
check "which swcheck closes" prints 0 'yes: survives faults, 1 rank; by faulty_states' "$SWCHECK" "$dir/alone.yaml" "$dir/alone"
check "every line of both counts" each_line_counts "$dir/alone.yaml" "$dir/alone"
check "reads that may lag have one" exits 0 "$SWSIM" verify --quiet --certificate="$dir/lag" "$plans/properties/staleness.yaml"
check "swcheck adds what they may" prints 0 "in serial order.*by structure" "$SWCHECK" "$plans/properties/staleness.yaml" "$dir/lag"
check "the order of a searched plan has one" exits 0 \
    "$SWSIM" verify --quiet --certificate="$dir/order" "$plans/reality/legacy_loader.yaml"
check "by states that count writes" prints 0 "in serial order; .*by states" "$SWCHECK" "$plans/reality/legacy_loader.yaml" "$dir/order"
check "a plan of too many states has a reduced set" exits 0 \
    "$SWSIM" verify --quiet --certificate="$dir/reduced" "$plans/reality/fsdp_residency_fixed.yaml"
check "which swcheck closes, too" prints 0 'yes: .*race-free.*before they are read.*by reduced_states' \
    "$SWCHECK" "$plans/reality/fsdp_residency_fixed.yaml" "$dir/reduced"
sed 's/^\(proves.*\) race/\1/' "$dir/reduced" >"$dir/unordered"
check "values of one ask for race" prints 1 'nothing proves that no accesses race' \
    "$SWCHECK" "$plans/reality/fsdp_residency_fixed.yaml" "$dir/unordered"
awk '/^reduced_states/ { at = NR } { if (at && NR == at + 40) $2 = $2 == 1 ? 2 : 1 } 1' "$dir/reduced" >"$dir/seed"
check "a set around another agent is another set" prints 1 "does not lead to\|no step is tried\|expected 'state'\|expected a number" \
    "$SWCHECK" "$plans/reality/fsdp_residency_fixed.yaml" "$dir/seed"
"$SWSIM" verify --quiet --certificate="$dir/residency" "$plans/bugs/torchrec_residency_fixed.yaml" >"$dir/out" 2>&1
check "every line of it counts" each_line_counts "$plans/bugs/torchrec_residency_fixed.yaml" "$dir/residency"
check "messages of a searched plan are counted" prints 0 'every message has a partner.*by reduced_states' \
    sh -c '"$1" verify --quiet --certificate="$4" "$3" >"$4.out" && "$2" "$3" "$4"' sh "$SWSIM" "$SWCHECK" \
    "$plans/properties/refill_fixed.yaml" "$dir/refill"
check "a wakened rank alone does not save its peers" prints 1 'not told to the other ranks' \
    claims_safety clock "$plans/faults/peer_wake.yaml"
check "nor do ranks that are told nothing" prints 1 'are not told' claims_safety none "$plans/faults/flag_broken.yaml"
check "several teams must not hang by themselves" prints 1 'nothing hangs' claims_safety clock "$plans/faults/idle_rank_wake.yaml"
check "a plan without tasks has none by structure" prints 1 'by structure proves nothing of this plan' \
    claims_nothing structure none "$searched" 'task 0'
check "a certificate that claims nothing proves nothing" prints 1 'it claims nothing' claims_nothing states none "$searched" 'states 1'
check "a pipeline has none by run" prints 1 'by run proves nothing of this plan' claims_nothing run clock "$good" ''
check "--quiet prints nothing" prints 0 '^$' sh -c '"$1" -q "$2" "$3" && echo' sh "$SWCHECK" "$good" "$dir/hello"
check "it reads standard input" prints 0 yes sh -c '"$1" "$2" - <"$3"' sh "$SWCHECK" "$good" "$dir/hello"
check "a certificate of another plan" prints 1 'another plan' "$SWCHECK" "$rank" "$dir/hello"
claims_many()
{
    printf 'swcert 2\nplan %s\noptions none 0 0 -1\nproves deadlock\nby states\nstates 1099511627776\nend\n' \
        "$(hash_of "$searched")" | "$SWCHECK" "$searched" -
}
check "a certificate of more states than it has" prints 1 'expected a number from 1 to\|fewer states than it says' claims_many
check "an empty certificate" prints 1 'empty' "$SWCHECK" "$good" /dev/null
check "no certificate" fails 2 'cannot open .*: No such file' "$SWCHECK" "$good" "$dir/none"
check "no plan" fails 2 'cannot' "$SWCHECK" "$dir/none" "$dir/hello"
check "a bad plan" fails 3 'expected' "$SWCHECK" "$dir/hello" "$dir/hello"
check "one argument" fails 2 'missing argument' "$SWCHECK" "$good"
check "an unknown option" fails 2 'unknown option' "$SWCHECK" --quite "$good" "$dir/hello"
check "--help" prints 0 'Usage: swcheck' "$SWCHECK" --help
check "--version" prints 0 '^swcheck ' "$SWCHECK" --version
check "a violated plan gets none" fails 1 'was not written' \
    "$SWSIM" verify --quiet --no-fix --certificate="$dir/none" "$plans/deadlocks/scenario1_broken.yaml"
check "and no file" test ! -e "$dir/none"
check "one plan at a time" fails 2 'found 2 plans' "$SWSIM" verify --certificate="$dir/none" "$good" "$rank"

# refused OPTION FIXED BROKEN: what was mended, for what was broken. Counts in $tried.
refused()
{
    rm -f "$dir/fixed"
    "$SWSIM" verify --quiet --no-fix $1 --limit=states=5000,time=2s --certificate="$dir/fixed" "$2" >/dev/null 2>&1
    [ -e "$dir/fixed" ] || return 0
    tried=$((tried + 1))
    sed "s/^plan .*/plan $(hash_of "$3")/" "$dir/fixed" >"$dir/patched"
    "$SWCHECK" -q "$3" "$dir/fixed" && echo "$3: accepted with another hash" && return 1
    "$SWCHECK" -q "$3" "$dir/patched" || return 0
    violated=$("$SWSIM" verify --quiet --no-fix $1 --json "$3" | tr ',' '\n' |
        sed -n 's/.*"\([a-z]*\)":"\(some\|always\)".*/\1/p' | sort -u)
    for property in $violated; do
        grep -q "^proves.* $property" "$dir/patched" && echo "$3, $1: $property" && return 1
    done
    return 0
}

mended_is_refused()
{
    failed=0 tried=0
    for fixed in "$plans"/*/*_fixed.yaml; do
        broken=${fixed%_fixed.yaml}_broken.yaml
        [ -e "$broken" ] || continue
        if ! grep -q '^schedule:' "$fixed"; then
            refused "" "$fixed" "$broken" || failed=1
            continue
        fi
        for driver in clock dataflow; do
            refused "--driver=$driver" "$fixed" "$broken" || failed=1
        done
    done
    [ "$failed" -eq 0 ] && [ "$tried" -gt 10 ]
}
# has_certificate PLAN: of every property that is proved. Counts in $tried.
has_certificate()
{
    rm -f "$dir/whole"
    "$SWSIM" verify --quiet --no-fix --certificate="$dir/whole" "$1" >"$dir/said" 2>&1 || return 0
    tried=$((tried + 1))
    grep -i 'certificate' "$dir/said" && return 1
    "$SWCHECK" -q "$1" "$dir/whole"
}

all_have()
{
    failed=0 tried=0
    for plan in "$plans"/*/*.yaml; do
        has_certificate "$plan" || { echo "$plan" && failed=1; }
    done
    echo "$tried proved plans"
    [ "$failed" -eq 0 ] && [ "$tried" -gt 100 ]
}
if [ -n "${SWSIM_LONG-}" ]; then
    check "every proved plan has a certificate of all that is proved" all_have
    all_have | sed 's/^/# /'
fi

check "the certificate of a mended plan is none of the broken one" mended_is_refused

# memory_counts TEXT: a plan whose memory is enough has a certificate of `bound`, which is none of the plan with a byte less.
memory_counts()
{
    printf 'swplan: 1\nname: held\n%s\nmachine: {memory: 2MiB}\n' "$1" >"$dir/fits.yaml"
    sed 's/2MiB}$/2097151B}/' "$dir/fits.yaml" >"$dir/less.yaml"
    "$SWSIM" verify --quiet --certificate="$dir/fits" "$dir/fits.yaml" || return 1
    "$SWCHECK" "$dir/fits.yaml" "$dir/fits" | grep -q 'within its bounds' || return 1
    sed "s/^plan .*/plan $(hash_of "$dir/less.yaml")/" "$dir/fits" >"$dir/less"
    exits 1 "$SWCHECK" "$dir/less.yaml" "$dir/less"
}
check "the memory of a rank program has a certificate" memory_counts \
    'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
stages: {activation: 1MiB}'
held='buffers: {x: {bytes: 2MiB}}
threads:
  r0.main:'
check "so has that of a host program" memory_counts "$held
    - {launch: a, stream: s, time: 1ms, writes: [x]}"
check "and of one that allocates" memory_counts "$held
    - {alloc: x, stream: s}
    - {launch: a, stream: s, time: 1ms, writes: [x]}"

# generated_has NAME: a schedule of one size has a certificate of all that is proved, which is none of another size.
generated_has()
{
    "$SWSIM" generate "$1" --ranks=4 --microbatches=8 >"$dir/sized.yaml" || return 1
    "$SWSIM" generate "$1" --ranks=4 --microbatches=12 >"$dir/other.yaml" || return 1
    "$SWSIM" verify --quiet --certificate="$dir/sized" "$dir/sized.yaml" >"$dir/said" 2>&1 || return 1
    grep -i certificate "$dir/said" && return 1
    "$SWCHECK" "$dir/sized.yaml" "$dir/sized" | grep -q 'race-free.*within its bounds.*by run' || return 1
    sed "s/^plan .*/plan $(hash_of "$dir/other.yaml")/" "$dir/sized" >"$dir/resized"
    exits 1 "$SWCHECK" "$dir/other.yaml" "$dir/resized"
}
for name in gpipe 1f1b interleaved_1f1b interleaved_zero_bubble zb_h1 zb_1p v_half zbv dualpipe looped_bfs forward_only; do
    check "a generated $name has a certificate" generated_has "$name"
done
"$SWSIM" generate 1f1b --ranks=2 --microbatches=2 >"$dir/small.yaml"
"$SWSIM" verify --quiet --certificate="$dir/small" "$dir/small.yaml" >"$dir/out" 2>&1
check "every line of a small one counts" each_line_counts "$dir/small.yaml" "$dir/small"

# Certificates with one number changed, in a place that has one right answer.
sed 's/^path \([1-9][0-9]*\) [0-9]*/path \1 0/' "$dir/small" >"$dir/astray"
check "a path by another wait is refused, with its line" prints 1 'no: line [0-9]*: wait 0 does not follow' \
    "$SWCHECK" "$dir/small.yaml" "$dir/astray"
awk '/^state / && NF > 1 && ++n == 20 { $2 = $2 == 0 ? 1 : 0 } 1' "$dir/searched" >"$dir/astray"
check "so is a step to another state" prints 1 'no: line [0-9]*: a step from state 19 does not lead to state' \
    "$SWCHECK" "$searched" "$dir/astray"
"$SWSIM" verify --quiet --certificate="$dir/mates" "$plans/properties/refill_fixed.yaml" >"$dir/out" 2>&1
awk '/^partner / && ++n == 1 { $2 = 0 } 1' "$dir/mates" >"$dir/astray"
check "so is a message to another receive" prints 1 'no: line [0-9]*: a message has no partner' \
    "$SWCHECK" "$plans/properties/refill_fixed.yaml" "$dir/astray"
awk '/^task / && ++n == 1 { $2++ } 1' "$dir/hello" >"$dir/astray"
check "so is another number of a task" prints 1 'no: line [0-9]*: ' "$SWCHECK" "$good" "$dir/astray"

stale=$plans/reference/semi_sync.yaml
check "an order that follows from the queues of data-flow has one" exits 0 \
    "$SWSIM" verify --quiet --driver=dataflow --certificate="$dir/stale" "$stale"
check "swcheck follows what fires what" prints 0 "in serial order.*driver dataflow.*by structure" "$SWCHECK" "$stale" "$dir/stale"
check "by the hop of firings" grep -q ' fired ' "$dir/stale"
check "every line of it counts" each_line_counts "$stale" "$dir/stale"
sed 's/ fired \([0-9]*\) 1 / fired \1 0 /' "$dir/stale" >"$dir/early"
check "a firing one iteration earlier is refused" prints 1 'may be fired before' "$SWCHECK" "$stale" "$dir/early"
sed '/ fired 6 /s/.*/path 1 fired 6 1 0 path 1 fired 5 1 0 path 1 fired 3 1 0 path 1 fired 2 1 0 path 1 fired 1 1/' \
    "$dir/stale" >"$dir/deep"
check "paths in paths have an end" prints 1 'nested too deep' "$SWCHECK" "$stale" "$dir/deep"
check "every line of a pipeline's certificate counts" each_line_counts "$good" "$dir/hello"
check "every line of a rank program's" each_line_counts "$rank" "$dir/rank"
check "every line of a searched plan's" each_line_counts "$searched" "$dir/searched"
# A wait for the whole device before each A: many orders, and no structure.
cat >"$dir/many.yaml" <<'EOF'
swplan: 1
max_depth: 3
slot_reset: submit
retired_dep: skip
schedule:
  B: {reads: [x]}
  D: {stream: s}
  A: {holds: [l], host_sync: device, writes: [y]}
intra_iter_deps:
  - [D, B]
  - [A, D]
buffers: {x: {scope: shared, bytes: 1MiB}}
EOF
check "the reasons why there is no certificate are told once each, to their end" complains 0 \
    'no certificate for deadlock: line [0-9]*: [^;]*; there are too many states to list$' \
    "$SWSIM" verify --driver=dataflow --property=deadlock --certificate="$dir/none" "$dir/many.yaml"
done_testing
