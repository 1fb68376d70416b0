#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libswsim says what swsim says: the example asks the library, and its output is that of the command.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

# Without the figures that each run measures of itself.
same() # same FILE: without it
{
    sed -E 's/"(seconds|cpu_seconds|peak_bytes)":[^,}]*//g; s/  [0-9.]+ (ns|us|ms|s)$//; s/(steps|in) [0-9.]+ (ns|us|ms|s).*//' "$1"
}

# alike_for CODE "WORDS OF THE LIBRARY" "WORDS OF THE COMMAND" [--json]
alike_for()
{
    # shellcheck disable=SC2086
    doc/examples/judge $2 ${4-} >"$dir/library" 2>"$dir/messages"
    code=$?
    # shellcheck disable=SC2086
    "$SWSIM" $3 ${4-} >"$dir/command" 2>/dev/null
    same "$dir/library" >"$dir/a" && same "$dir/command" >"$dir/b"
    [ $code -eq "$1" ] && [ -s "$dir/a" ] && diff "$dir/a" "$dir/b"
}
alike() { alike_for "$3" "$1 $2" "$1 $2" ${4+--json}; } # alike VERB PLAN CODE [json]

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

# Options: words of the library, of the command, the exit code.
hello=$plans/examples/hello.yaml
sparse=$plans/torchrec/sparse_dist.yaml
"$SWSIM" generate 1f1b -p2 -m4 --times=F=1ms,I=1ms,W=1ms >"$dir/1f1b.yaml" 2>"$dir/log"
check "a serial run to take times from" ./swrun --serial --iterations=40 --db "$dir/runs.db" "$hello"
while IFS='|' read -r library command code; do
    check "$library" alike_for "$code" "$library" "$command"
    check "and as JSON" alike_for "$code" "$library" "$command" --json
done <<END
verify $sparse --properties=race,deadlock|verify $sparse --property=race,deadlock|0
verify $plans/deadlocks/modes_b_race.yaml --properties=deadlock|verify $plans/deadlocks/modes_b_race.yaml --property=deadlock|0
verify $schedule --p2p=edge|verify $schedule --p2p=edge|0
verify $schedule --p2p=all|verify $schedule --p2p=all|0
predict $schedule --p2p=pair --times=F=1ms,I=1ms,W=1ms|predict $schedule --p2p=pair --times=F=1ms,I=1ms,W=1ms|0
predict $schedule --p2p=all --times=F=1ms,I=1ms,W=1ms|predict $schedule --p2p=all --times=F=1ms,I=1ms,W=1ms|0
predict $hello --jitter=Compute=lognormal(cv=0.3);*=gamma(cv=0.2) --seed=7|predict $hello --jitter=Compute=lognormal(cv=0.3) --jitter=*=gamma(cv=0.2) --seed=7|0
predict $hello --profile=$dir/runs.db|predict $hello --profile=$dir/runs.db|0
predict $hello --cores=1|predict $hello --cores=1|0
predict $hello --profile=$dir/runs.db --cores=1|predict $hello --profile=$dir/runs.db --cores=1|0
tune $hello --cores=1|tune $hello --cores=1|0
tune $hello --cores=1 --profile=$dir/runs.db:1|tune $hello --cores=1 --profile=$dir/runs.db:1|0
tune $hello --profile=$dir/runs.db:1|tune $hello --profile=$dir/runs.db:1|0
tune $hello --keep=stream,group,order,stage|tune $hello --keep=stream,group,order,stage|0
tune $dir/1f1b.yaml|tune $dir/1f1b.yaml|0
tune $schedule --axes=schedule=1f1b,zb_h1;microbatches=8,16|tune $schedule --schedule=1f1b,zb_h1 --microbatches=8,16|0
tune $dir/1f1b.yaml --times=F=2ms --axes=schedule=all;p2p=pair,edge|tune $dir/1f1b.yaml --times=F=2ms --schedule=all --p2p=pair,edge|0
runs $dir/runs.db|runs $dir/runs.db|0
END
check "a plan is not changed by its measured times" sh -c "doc/examples/judge better '$hello' --profile='$dir/runs.db' >'$dir/better.yaml' && '$SWSIM' verify --quiet '$dir/better.yaml'"
check "the fastest schedule is a plan" sh -c "doc/examples/judge better '$dir/1f1b.yaml' --axes=schedule=all >'$dir/better.yaml' 2>'$dir/log' && '$SWSIM' verify --quiet '$dir/better.yaml'"
check "the command's" sh -c "'$SWSIM' tune '$dir/1f1b.yaml' --schedule=all -o '$dir/best.yaml' >'$dir/log' 2>&1; cmp '$dir/best.yaml' '$dir/better.yaml'"

# A fault of an option is told as the command tells it.
wrong()
{
    # shellcheck disable=SC2086
    "$SWSIM" $2 2>&1 | sed -n 's/^swsim[a-z ]*: error: //p' | head -n 1 >"$dir/a"
    # shellcheck disable=SC2086
    doc/examples/judge $1 2>&1 | sed -n 's/^usage: //p' >"$dir/b"
    [ -s "$dir/a" ] && diff "$dir/a" "$dir/b"
}
while IFS='|' read -r library command; do
    check "wrong: $library" wrong "$library" "$command"
done <<END
verify $hello --properties=rase|verify $hello --property=rase
predict $hello --jitter=Compute|predict $hello --jitter=Compute
predict $hello --times=F=1ms|predict $hello --times=F=1ms
predict $schedule --times=X=1ms|predict $schedule --times=X=1ms
verify $hello --p2p=pair|verify $hello --p2p=pair
tune $hello --keep=stage,tea|tune $hello --keep=stage,tea
tune $schedule --axes=schedule=1f2b|tune $schedule --schedule=1f2b
tune $schedule --keep=stage|tune $schedule --keep=stage
tune $hello --times=F=1ms|tune $hello --times=F=1ms
END

# Runs with steps and a ledger.
check "a run to ask for" ./swrun --iterations=20 --db "$dir/runs.db" "$hello"
check "its ledger" alike_for 0 "ledger $dir/runs.db 2" "runs --run=2 $dir/runs.db"
check "and as JSON" alike_for 0 "ledger $dir/runs.db 2" "runs --run=2 $dir/runs.db" --json
"$SWSIM" verify -q --no-fix --witness="$dir/runs.db" "$srcdir/plans/bugs/nccl_send_send_broken.yaml" >"$dir/log"
check "the latest ledger is not asked of a witness" alike_for 0 "ledger $dir/runs.db" "runs --run=2 $dir/runs.db"
"$SWSIM" verify -q --no-fix --witness="$dir/story.db" "$srcdir/plans/bugs/nccl_send_send_broken.yaml" >"$dir/log"
check "where no run has one" sh -c "doc/examples/judge ledger '$dir/story.db' 2>&1 | grep -q 'no run has a ledger'"
check "a run that is not there" sh -c "doc/examples/judge ledger '$dir/runs.db' 77 2>&1 | grep -q '77'"
check "a store that is none" sh -c "doc/examples/judge runs '$hello' 2>&1 | grep -q 'hello.yaml'"
for suffix in json html svg; do
    if [ $suffix = json ] || "$SWSIM" render "$dir/runs.db" -o "$dir/run.$suffix" >"$dir/log" 2>&1; then
        check "a run as .$suffix" doc/examples/judge draw-run "$dir/runs.db" 2 "$dir/own.$suffix"
        check "is the command's" sh -c "'$SWSIM' render '$dir/runs.db:2' -o '$dir/run.$suffix' && cmp '$dir/run.$suffix' '$dir/own.$suffix'"
    else
        skip "no Graphviz here to draw with"
    fi
done

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
    "doc/examples/judge tune '$plans/deadlocks/scenario2_broken.yaml' 2>&1 | grep -q '^input: '"
done_testing
