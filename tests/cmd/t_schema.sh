#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim schema: every object that a command prints with --json, of good plans and bad ones, is as doc/schema says, and
# every key of doc/schema is printed by a command; the tables of real stores are those that it prints.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3 to read JSON"
plans=$srcdir/plans
documents=$srcdir/doc/schema
hello=$plans/examples/hello.yaml
holder() { python3 "$srcdir/tests/schema.py" "$@"; }

# prints_objects CODE "KIND..." command...: it exits with CODE, and prints objects of these kinds and no others.
number=0
prints_objects()
{
    code=$1 kinds=$2
    shift 2
    "$@" >"$dir/now" 2>"$dir/err" </dev/null
    found=$?
    [ $found -eq "$code" ] || { echo "exit status $found"; head -n 5 "$dir/err"; return 1; }
    # shellcheck disable=SC2086
    holder objects "$documents" $kinds <"$dir/now"
}
# objects WHAT CODE "KIND..." command...
objects()
{
    what=$1
    shift
    check "$what" prints_objects "$@"
    number=$((number + 1))
    cp "$dir/now" "$dir/output.$number"
}

# ---- the documents themselves ----------------------------------------------------------------------

check "every key has a description" holder documents "$documents"
"$SWSIM" schema --json >"$dir/list"
names=$(tr ',' '\n' <"$dir/list" | sed -n 's/.*"name":"\([a-z_]*\)".*/\1/p')
check "the list has every document, and the store" sh -c \
    '[ "$(printf "%s\n" $1 | sort)" = "$( (ls "$2" | sed "s/\.json$//"; echo store) | sort)" ]' sh "$names" "$documents"
mkdir "$dir/printed" "$dir/lines"
for name in $names; do
    [ "$name" = store ] && continue
    "$SWSIM" schema "$name" >"$dir/printed/$name.json"
    "$SWSIM" schema --json "$name" >"$dir/lines/$name.json"
done
check "swsim schema prints each of them" diff -r "$dir/printed" "$documents"
check "... with --json on one line" sh -c 'test "$(cat "$1"/* | wc -l)" -eq "$(ls "$1" | wc -l)"' sh "$dir/lines"
check "... the same" python3 -c 'import json, os, sys
sys.exit(any(json.load(open(os.path.join(sys.argv[1], name))) != json.load(open(os.path.join(sys.argv[2], name)))
             for name in os.listdir(sys.argv[1])))' "$dir/lines" "$documents"
check "the list for people" prints 0 '^prediction  *1  swsim predict$' "$SWSIM" schema
check "an unknown name" complains 2 "no schema 'verdit'; did you mean 'verdict'" "$SWSIM" schema verdit
objects "the list is an object itself" 0 schemas "$SWSIM" schema --json
objects "so are the tables" 0 tables "$SWSIM" schema --json store

# ---- swsim: verdicts ---------------------------------------------------------------------------------

objects "proved, both drivers" 0 verdict "$SWSIM" verify --json --driver=both "$hello"
objects "proved, except something" 0 verdict "$SWSIM" verify --json --driver=clock --property=deadlock "$hello"
objects "violated, with a repair" 1 verdict "$SWSIM" verify --json "$plans/bugs/nccl_one_slot_same_order_broken.yaml"
objects "violated by rank programs" 1 verdict "$SWSIM" verify --json --no-fix "$plans/properties/message_broken.yaml"
objects "undecided" 4 verdict "$SWSIM" verify --json --limit=states=2 "$plans/bugs/nccl_one_slot_same_order_broken.yaml"
printf '%s\n' 'swplan: 1' 'name: odd' 'threads:' '  r0.main:' '    - {compute: work, time: 1ms}' \
    '    - {wait: never, stream: compute}' >"$dir/odd.yaml"
objects "with warnings" 0 verdict "$SWSIM" verify --json "$dir/odd.yaml"
"$SWSIM" generate 1f1b --ranks=2 --microbatches=4 --comms >"$dir/ranks.yaml"
cat >"$dir/crossed.yaml" <<END
swplan: 1
name: crossed
times: {F: 1ms, B: 2ms}
programs: [0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1, 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1]
END
objects "channels" 1 channels "$SWSIM" verify --json --p2p=all "$dir/crossed.yaml"
echo 'swplan: 1' >"$dir/bad.yaml"
objects "an error in the plan" 3 errors "$SWSIM" verify --json "$dir/bad.yaml"
objects "an error behind a verdict" 2 "errors verdict" "$SWSIM" verify --json --driver=clock "$hello" "$dir/none.yaml"
objects "one in the command line" 2 errors "$SWSIM" verify --json --bogus "$hello"

# ---- swsim: predictions ------------------------------------------------------------------------------

objects "a prediction" 0 prediction "$SWSIM" predict --json --db="$dir/runs.db" -n 50 "$hello"
objects "of two ranks, with a path" 0 prediction "$SWSIM" predict --json --critical-path -n 50 "$plans/torchrec/sparse_dist.yaml"
objects "a time limit that is exceeded" 1 prediction "$SWSIM" predict --json "$plans/reality/timeout_broken.yaml"
objects "of rank programs" 0 prediction "$SWSIM" predict --json "$dir/ranks.yaml"
objects "a sweep" 0 prediction "$SWSIM" predict --json -n 50 --driver=dataflow --sweep=max_depth=1..2 "$hello"
objects "a sweep of cores" 0 prediction "$SWSIM" predict --json -n 50 --driver=clock --sweep=cores=1..2 "$hello"
objects "a sweep of ranks" 0 prediction "$SWSIM" predict --json -n 50 --sweep=ranks=1..2 "$plans/torchrec/sparse_dist.yaml"
objects "what if, by a part of names" 0 prediction "$SWSIM" predict --json -n 50 --what-if='*omput*=0.5x' "$hello"
check "names that nothing matches" complains 2 "no task matches '\*omputt\*'; the tasks are CopyIn, Compute, CopyOut" \
    "$SWSIM" predict -n 50 --what-if='*omputt*=0.5x' "$hello"
objects "what if" 0 prediction "$SWSIM" predict --json -n 50 --what-if=Compute=0.5x "$hello"
objects "a bound that is not kept" 1 "errors prediction" "$SWSIM" predict --json -n 50 --max-iteration=1ms "$hello"
objects "a deadlock" 1 prediction "$SWSIM" predict --json "$plans/bugs/nccl_opposite_order_broken.yaml"
objects "tuned" 0 tuning "$SWSIM" tune --json --driver=clock --budget=20 "$hello"
objects "the frontier" 0 frontier "$SWSIM" tune --json -q --schedule=1f1b,zb_h1 "$dir/ranks.yaml"
printf 'swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\nintra_iter_deps: [[B, A]]\n' >"$dir/later.yaml"
cat >"$dir/stages.yaml" <<END
swplan: 1
name: stages
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
stages: {F: 1ms, B: 2ms, activation: 1MiB, weights: 2MiB}
END
objects "of bytes" 0 frontier "$SWSIM" tune --json -q --schedule=1f1b,zb_h1 --memory=4MiB --chunks=1 "$dir/stages.yaml"
objects "of a plan that hangs" 0 frontier "$SWSIM" tune --json -q --schedule=1f1b --p2p=group "$dir/crossed.yaml"
objects "memory over time" 0 prediction "$SWSIM" predict --json "$dir/stages.yaml"
objects "with warnings" 0 prediction "$SWSIM" predict --json "$dir/odd.yaml"
objects "work that shares the device" 0 prediction "$SWSIM" predict --json -n 20 "$plans/examples/shared_device.yaml"

# ---- swsim: tables of a plan -------------------------------------------------------------------------

objects "schedule" 0 schedule "$SWSIM" schedule --json "$hello"
objects "... with turns" 0 schedule "$SWSIM" schedule --json "$srcdir/plans/torchrec/sparse_dist.yaml"
objects "stages" 0 stages "$SWSIM" stages --json "$hello"
objects "stages, with a dependence on a later period" 0 stages "$SWSIM" stages --json "$dir/later.yaml"
objects "lower" 0 lowered "$SWSIM" lower --json "$hello"
objects "groups" 0 groups "$SWSIM" groups --json "$plans/examples/groups.yaml"
objects "a form that has no such table" 3 errors "$SWSIM" schedule --json "$dir/ranks.yaml"

# ---- traces and stores -------------------------------------------------------------------------------

objects "import" 0 import "$SWSIM" import --json --report --db="$dir/job.db" -o "$dir/job.yaml" "$plans/traces/recommender"
objects "import of dumps" 0 import "$SWSIM" import --json --report -o "$dir/hang.yaml" "$plans/traces/hang"
objects "its ledger" 0 ledger "$SWSIM" runs --json --run=1 "$dir/job.db"
objects "runs" 0 run "$SWSIM" runs --json "$dir/runs.db"
objects "no such store" 2 errors "$SWSIM" runs --json "$dir/none.db"
objects "a run" 0 "measured" "$SWRUN" --json -n 30 --ranks=2 --stats --db="$dir/host.db" "$hello"
objects "iterations as they end" 0 "measured progress" "$SWRUN" --json -n 3 --progress --db="$dir/host.db" "$hello"
objects "a serial run" 0 measured "$SWRUN" --json --serial -n 20 --ranks=2 --db="$dir/host.db" "$hello"
objects "exposed times" 0 exposure "$SWRUN" --json --profile -n 1 "$hello"
objects "predicted and measured" 0 comparison "$SWSIM" compare --json "$dir/host.db"
objects "two runs" 0 two_runs "$SWSIM" compare --json "$dir/host.db:1" "$dir/host.db:2"
objects "why it took so long" 0 why "$SWSIM" why --json "$dir/job.db"
objects "what a word means" 0 explanation "$SWSIM" explain --json race
objects "a run and a prediction" 0 two_runs "$SWSIM" compare --json "$dir/job.db:1" "$dir/job.yaml"
objects "a look at one that is over" 0 look "$SWSIM" watch --json "$dir/host.db"
printf '%s\n' 'swplan: 1' 'name: threads' 'threads:' '  r0.main:' '    - {compute: work, time: 1ms}' >"$dir/threads.yaml"
"$SWRUN" -q --db="$dir/threads.db" "$dir/threads.yaml" >"$dir/null"
objects "of threads" 0 look "$SWSIM" watch --json "$dir/threads.db"
objects "arithmetic" 0 measured "$SWRUN" --json "$plans/examples/arithmetic.yaml"
printf '%s\n' 'swplan: 1' 'name: late' 'arithmetic: {width: 4, batch: 2}' 'programs:' '  - 0F0 0RECV_B0 0SEND_F0 0B0' \
    '  - 1F0 1B0 1SEND_B0 1RECV_F0' >"$dir/late.yaml"
objects "arithmetic that differs" 1 "errors measured" "$SWRUN" --json "$dir/late.yaml"
objects "a hang" 1 "errors measured" "$SWRUN" --json --timeout=200ms "$plans/bugs/nccl_opposite_order_broken.yaml"
"$SWSIM" verify -q --witness="$dir/witness.db" "$plans/bugs/nccl_opposite_order_broken.yaml" >"$dir/null"
objects "a replay" 0 "replayed" "$SWRUN" --json --timeout=200ms --replay="$dir/witness.db"

objects "a race" 1 verdict "$SWSIM" verify --json "$plans/bugs/torchrec_lookup_without_wait_broken.yaml"

# ---- swcheck -----------------------------------------------------------------------------------------

"$SWSIM" verify --quiet --certificate="$dir/proof" "$hello" >"$dir/out" 2>&1
sed '/^task /d' "$dir/proof" >"$dir/not_proof"
objects "certificates that hold" 0 proof "$SWCHECK" --json "$hello" "$dir/proof"
objects "one that does not" 1 proof "$SWCHECK" --json "$hello" "$dir/not_proof"
objects "none at all" 1 proof "$SWCHECK" --json "$hello" /dev/null
objects "no file" 2 errors "$SWCHECK" --json "$hello" "$dir/none"
objects "no plan" 3 errors "$SWCHECK" --json "$dir/proof" "$dir/proof"
check "it says why" grep -q '"holds":false,"why":"line [0-9]*: expected' "$dir/output.$((number - 3))"
check "and what it proves" grep -q '"holds":true,"why":null,"proves":\["message","deadlock"' "$dir/output.$((number - 4))"

# ---- all of it ---------------------------------------------------------------------------------------

# Of a loss alone nothing differs here: gradients are compared first.
holder unseen "$documents" "$dir"/output.* | grep -v 'first_difference.microbatch$' >"$dir/unseen"
check "every key is printed by a command" sh -c 'cat "$1"; test ! -s "$1"' sh "$dir/unseen"
"$SWSIM" schema store >"$dir/store.sql"
check "the tables of stores are those of swsim schema store" \
    holder tables "$dir/store.sql" "$dir/runs.db" "$dir/job.db" "$dir/host.db" "$dir/witness.db"
check "which make an empty store" python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())' "$dir/empty.db" "$dir/store.sql"
check "that swsim takes" exits 0 "$SWSIM" runs "$dir/empty.db"

# ---- the test itself ---------------------------------------------------------------------------------

# finds PATTERN SED: an object changed so is wrong.
finds()
{
    sed "$2" "$dir/output.3" >"$dir/changed"
    holder objects "$documents" verdict <"$dir/changed" >"$dir/out"
    [ $? -eq 1 ] && grep "$1" "$dir/out"
}
check "an unknown key is found" finds 'unknown key new' 's/"plan":/"new":1,&/'
check "a missing one" finds 'no key driver$' 's/"driver":"[a-z]*",//'
check "one that stands twice" sh -c '! printf "%s\n" "{\"schema\":1,\"schema\":1}" | python3 "$1" objects "$2" 2>"$3"' sh \
    "$srcdir/tests/schema.py" "$documents" "$dir/err"
check "another type" finds 'expected' 's/"states":/&"x"/; s/"x"[0-9]*/"x"/'
check "another word" finds 'expected one of' 's/"verdict":"proved"/"verdict":"fine"/'
check "an older version" finds 'begins with its schema' 's,verdict/1,verdict/0,'
done_testing
