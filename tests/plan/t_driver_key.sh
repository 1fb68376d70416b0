#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A plan that names its driver: verify judges that one and says so, the other commands take it, --driver overrides it.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/named.yaml" <<'PLAN'
swplan: 1
name: named
driver: dataflow
schedule:
  Load: {stage: 0, stream: copy, time: 1ms, writes: [batch]}
  Use: {stage: 1, stream: compute, time: 2ms, reads: [batch]}
intra_iter_deps: [[Use, Load]]
PLAN

# drivers WANT COMMAND...: the drivers that its JSON names, in order, and exit status 0.
drivers()
{
    named=$1
    shift
    exits 0 "$@" || return
    got=$(grep -o '"driver": *"[a-z]*"' "$dir/out" | grep -o '[a-z]*"$' | tr -d '"' | tr '\n' ' ')
    test "$got" = "$named " && return
    echo "drivers: $got"
    false
}
# overrides COMMAND...: a note says that --driver overrides the plan.
overrides()
{
    exits 0 "$@" && grep -q 'the plan names driver dataflow; --driver=[a-z]* overrides it' "$dir/err"
}

says_whose()
{
    exits 0 "$SWSIM" verify "$dir/named.yaml" && grep -q "under the plan's driver" "$dir/out" &&
        test "$(wc -l <"$dir/out")" -eq 1
}

check "verify judges the plan's driver" drivers dataflow "$SWSIM" verify --json "$dir/named.yaml"
check "verify says whose driver it is" says_whose
check "verify --driver=both judges both" drivers "clock dataflow" "$SWSIM" verify --json --driver=both "$dir/named.yaml"
check "and a note says so" overrides "$SWSIM" verify --driver=both "$dir/named.yaml"
check "predict takes it" drivers dataflow "$SWSIM" predict --json -n 20 "$dir/named.yaml"
check "predict --driver=clock overrides it" overrides "$SWSIM" predict --driver=clock -n 20 "$dir/named.yaml"
check "lower takes it" drivers dataflow "$SWSIM" lower --json "$dir/named.yaml"
check "tune takes it" drivers dataflow "$SWSIM" tune --json --budget=20 "$dir/named.yaml"
check "swrun takes it" drivers dataflow "$SWRUN" --json -n 5 "$dir/named.yaml"
check "swrun --driver=clock overrides it" overrides "$SWRUN" --driver=clock -n 5 "$dir/named.yaml"
check "the same driver overrides nothing" drivers dataflow "$SWSIM" verify --json --driver=dataflow "$dir/named.yaml"

done_testing
