#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Failure safety through the front door: `verify --faults`, its story, its JSON, who asks for it.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

check "TorchRec's pipelines survive every fault, under both drivers" \
    exits 0 "$SWSIM" verify --faults "$plans"/reference/*.yaml
check "also with all their collectives, under the clock driver" \
    exits 0 "$SWSIM" verify --faults "$plans"/torchrec/*.yaml
check "a plan that says so under expect: is asked without --faults" \
    exits 1 "$SWSIM" verify "$plans/faults/task_none.yaml"
check "other plans are not" \
    says '"faults": *"undecided"' "$SWSIM" verify --json "$plans/examples/host_program.yaml"
check "and hold as before" exits 0 "$SWSIM" verify "$plans/examples/host_program.yaml"
check "with --faults they are" \
    says "thread loader fails at read_batch0, and thread trainer is never woken" \
    "$SWSIM" verify --faults "$plans/examples/host_program.yaml"
check "--property faults asks as well" \
    exits 1 "$SWSIM" verify --property faults "$plans/examples/host_program.yaml"
check "a plan that hangs anyway is not judged" \
    says '"faults": *"undecided"' "$SWSIM" verify --faults --json "$plans/deadlocks/scenario1_broken.yaml"

broken=$plans/faults/lock_broken.yaml
check "the story shows the fault" says "fault  *thread saver fails at write_checkpoint" \
    "$SWSIM" verify "$broken"
check "and who waits for what" says "waits for lock weights, held by thread saver" \
    "$SWSIM" verify "$broken"
check "JSON has the violation" says '"violation": *"faults"' "$SWSIM" verify --json "$broken"
for suffix in txt json dot svg; do
    check "a witness as .$suffix" exits 1 "$SWSIM" verify --witness="$dir/w.$suffix" "$broken"
    check "is there" test -s "$dir/w.$suffix"
done
check "the fault of a long story is shown, wherever it is" \
    says "fault  *thread main of rank 0 fails" "$SWSIM" verify --faults "$plans/examples/gpipe.yaml"

for plan in task_wake data_abort lock_fixed store_fixed; do
    check "$plan: a search of everything agrees with the structure" \
        exits 0 "$SWSIM" verify --no-reduction --faults "$plans/faults/$plan.yaml"
done
check "a limit leaves it undecided" says "limit reached: states" \
    "$SWSIM" verify --no-reduction --faults --limit=states=30 "$plans/faults/peer_abort.yaml"

sed 's/^on_failure: .*/on_failure: panic/' "$broken" >"$dir/bad.yaml"
echo 'on_failure: panic' >>"$dir/bad.yaml"
check "a rule that is none is refused" exits 3 "$SWSIM" verify "$dir/bad.yaml"
check "and the words there are are named" says "none, wake, abort or group_abort" "$SWSIM" verify "$dir/bad.yaml"
check "the rule is printed where it is not the default" \
    says "on_failure: wake" "$SWSIM" export "$plans/faults/lock_fixed.yaml"
check "and only there" \
    sh -c "! \"$SWSIM\" export '$plans/examples/hello.yaml' | grep -q on_failure"
done_testing
