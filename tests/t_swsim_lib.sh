#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libswsim says what swsim says: the example asks the library, and its output is that of the command.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

# What each run measures of itself.
same() # same FILE: without it
{
    sed -E 's/"(seconds|cpu_seconds|peak_bytes)":[^,}]*//g; s/  [0-9.]+ (ns|us|ms|s)$//; s/(steps|in) [0-9.]+ (ns|us|ms|s).*//' "$1"
}

alike() # alike VERB PLAN CODE [json]
{
    doc/examples/judge "$1" "$2" ${4+json} >"$dir/library" 2>"$dir/messages"
    code=$?
    "$SWSIM" "$1" ${4+--json} "$2" >"$dir/command" 2>/dev/null
    same "$dir/library" >"$dir/a" && same "$dir/command" >"$dir/b"
    [ $code -eq "$3" ] && [ -s "$dir/a" ] && diff "$dir/a" "$dir/b"
}

schedule=$dir/zb_h1.yaml
"$SWSIM" generate zb_h1 -p4 -m8 >"$schedule"
while read -r verb plan code; do
    case $plan in zb_h1) file=$schedule ;; *) file=$plans/$plan.yaml ;; esac
    check "$verb of $plan, as text" alike "$verb" "$file" "$code"
    check "and as JSON" alike "$verb" "$file" "$code" json
done <<'END'
verify examples/hello 0
verify torchrec/sparse_dist 0
verify deadlocks/scenario2_broken 1
verify deadlocks/modes_b_race 1
verify bugs/nccl_send_send_broken 1
predict examples/hello 0
predict torchrec/prefetch 0
verify zb_h1 0
predict zb_h1 0
tune examples/hello 0
END

broken=$plans/bugs/nccl_send_send_broken.yaml
doc/examples/judge repair "$broken" >"$dir/repaired.yaml" 2>"$dir/messages"
check "a repaired plan" "$SWSIM" verify --quiet "$dir/repaired.yaml"
check "is the author's text" sh -c "diff '$broken' '$dir/repaired.yaml' | grep -c '^[<>]' | grep -qx '[1-9]'"

if "$SWSIM" render "$plans/examples/hello.yaml" -o "$dir/x.svg" >"$dir/log" 2>&1; then
    check "a picture" doc/examples/judge draw "$plans/examples/hello.yaml" "$dir/y.svg"
    check "is the command's" cmp "$dir/x.svg" "$dir/y.svg"
    check "of a schedule, too" doc/examples/judge draw "$schedule" "$dir/z.svg"
else
    skip "no Graphviz here to draw with"
fi

echo 'swplan: 1
tasks: [' >"$dir/bad.yaml"
check "a bad plan is described" sh -c "doc/examples/judge verify '$dir/bad.yaml' 2>&1 | grep -q 'bad.yaml:[0-9]*:[0-9]*: error:'"
check "and so is a question without an answer" sh -c \
    "doc/examples/judge tune '$schedule' 2>&1 | grep -q '^input: '"
done_testing
