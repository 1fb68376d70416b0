#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim verify --format: annotations of GitHub, SARIF, JUnit's XML. The files that CI systems read are well-formed.
. "${srcdir:-.}/tests/tap.sh"

race=$srcdir/plans/bugs/torchrec_cache_map_broken.yaml
hello=$srcdir/plans/examples/hello.yaml
hang=$srcdir/plans/bugs/nccl_send_send_broken.yaml
printf 'swplan: 1\nname: "a, b: 100%%"\nschedule:\n  A: {stag: 1}\n' >"$dir/wrong.yaml"

verified() { "$SWSIM" verify --format="$1" "$race" "$hello" "$dir/wrong.yaml" "$hang" >"$dir/$1" 2>"$dir/err"; test $? -eq 3; }
lines() { test "$(grep -c "$1" "$dir/$2")" -eq "$3"; }

check "github: the worst exit code of all plans" verified github
check "github: a race has its line and its repair" \
    grep -qE '^::error file=.*torchrec_cache_map_broken.yaml,line=17,col=3,title=swsim race::.*Fix \(proved\)' "$dir/github"
check "github: an error of a plan has its line" grep -q '^::error file=.*wrong.yaml,line=4,col=7,title=swsim plan::' "$dir/github"
check "github: a deadlock has the line of a send that waits, and says for whom" \
    grep -q '^::error file=[^,]*,line=10,col=7,title=swsim deadlock::.* in send x0 .* waits for rank 1 stream comm' "$dir/github"
check "github: what is proved says nothing" lines '^::' github 3
mkdir "$dir/a,b%"
cp "$hang" "$dir/a,b%/hang.yaml"
check "github: commas and percent signs of a name are escaped" \
    prints 1 '^::error file=[^,]*a%2Cb%25/hang.yaml,line=' "$SWSIM" verify --format=github "$dir/a,b%/hang.yaml"
check "sarif: written" verified sarif
check "junit: written" verified junit
check "junit: a case for each plan and driver" lines '<testcase' junit 5
check "junit: three of them failed" test "$(grep -cE '<(failure|error) ' "$dir/junit")" -eq 3
if command -v python3 >/dev/null; then
    check "sarif: a log with three results" python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
rules = [result["ruleId"] for result in run["results"]]
assert rules == ["race", "plan", "deadlock"], rules
assert all(result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1 for result in run["results"])' "$dir/sarif"
    check "sarif: the other operation of a race, and of a hang, is related" python3 -c '
import json, sys
results = json.load(open(sys.argv[1]))["runs"][0]["results"]
regions = [[place["physicalLocation"]["region"] for place in result.get("relatedLocations", [])] for result in results]
assert regions[0] == [{"startLine": 14, "startColumn": 3}] and regions[2] == [{"startLine": 13, "startColumn": 7}], regions
assert not regions[1], regions' "$dir/sarif"
    check "junit: XML" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/junit"
else
    skip "no python3 to read the files"
fi
check "a plan that is violated as it expects is no error" exits 0 "$SWSIM" verify --expect --format=github "$race"
check "... and annotates nothing" test ! -s "$dir/out"
sed 's/^expect: .*/expect: {}/' "$race" >"$dir/other.yaml"
check "--expect keeps the repair in --json" \
    sh -c '"$0" verify --expect --json "$1" | grep -q "\"fix\":{\"change\":\"add the dependence"' "$SWSIM" "$race"
"$SWSIM" verify --json --no-fix "$hang" >"$dir/json"
check "json: operations, steps and blocked agents of a hang have lines and columns" sh -c '
    grep -q "\"operations\":\[{[^}]*\"line\":10,\"column\":7},{[^}]*\"line\":13,\"column\":7}\]" "$0" &&
    grep -q "\"witness\":\[.*\"line\":10,\"column\":7}" "$0" && grep -q "\"in_cycle\":true,\"line\":13" "$0"' "$dir/json"
sed 's/^expect: .*/expect: {race: some}/' "$hello" >"$dir/better.yaml"
check "a proof that the plan does not expect is an error at its expectation" prints 1 \
    '^::error file=.*better.yaml,line=[0-9]*,col=[0-9]*,title=swsim expect::.*race is proved, the plan expects some' \
    "$SWSIM" verify --expect --format=github "$dir/better.yaml"
sed 's/^expect: .*/expect: {coverage: all, iteration: "<4ms"}/' "$hello" >"$dir/slow.yaml"
check "a bound of the time is judged by verify, with its line" prints 1 \
    'slow.yaml,line=[0-9]*,col=[0-9]*,title=swsim expect::.*clock driver: an iteration takes 4.00 ms, expected less than 4ms' \
    "$SWSIM" verify --expect --format=github "$dir/slow.yaml"
check "... only with --expect" exits 0 "$SWSIM" verify -q "$dir/slow.yaml"
check "... and by predict" complains 1 'slow.yaml:[0-9]*:[0-9]*: error: clock driver: an iteration takes 4.00 ms' \
    "$SWSIM" predict -q --driver=clock --expect "$dir/slow.yaml"
sed 's/<4ms/<4.1ms/' "$dir/slow.yaml" >"$dir/fast.yaml"
check "a bound that is kept" exits 0 "$SWSIM" verify -q --expect "$dir/fast.yaml"
check "a bound is printed as it was" prints 0 'iteration: "*<4.1ms' "$SWSIM" export "$dir/fast.yaml"
check "--max-iteration is the longest that is allowed" exits 0 "$SWSIM" predict -q --max-iteration=4ms "$hello"
check "... and not longer" complains 1 'driver clock: an iteration takes 4.00 ms, --max-iteration is 3999us' \
    "$SWSIM" predict -q --max-iteration=3999us "$hello"
check "json: whether it is kept" prints 1 '"within":false' "$SWSIM" predict --json --max-iteration=1ms "$hello"
check "without --max-iteration there is nothing to keep" sh -c '! "$0" predict --json "$1" | grep -q within' "$SWSIM" "$hello"
check "a plan without times keeps no bound" complains 1 'no work of the plan has a time' \
    "$SWSIM" predict -q --max-iteration=1s "$srcdir/plans/bugs/nccl_opposite_order_fixed.yaml"
check "nor does one that hangs" complains 1 'does not come to its end' "$SWSIM" predict -q --max-iteration=1s "$hang"
check "rank programs are judged by their whole time" complains 1 'the run takes' \
    "$SWSIM" predict -q --max-iteration=1ns "$srcdir/plans/examples/one_f_one_b.yaml"
check "a wrong time" complains 2 "found '11', expected a time such as 11ms" "$SWSIM" predict --max-iteration=11 "$hello"
check "not with changes" complains 2 'what-if' "$SWSIM" predict --max-iteration=1ms --what-if=Compute=2x "$hello"
sed 's/<4ms/11ms/' "$dir/slow.yaml" >"$dir/no_bound.yaml"
check "a wrong bound" complains 3 'found "11ms", expected a bound of the predicted time' "$SWSIM" verify "$dir/no_bound.yaml"
check "one that is not as it expects is" prints 1 '^::error file=.*other.yaml' "$SWSIM" verify --expect --format=github "$dir/other.yaml"
check "an undecided plan is a warning" prints 4 '^::warning .*swsim undecided' \
    "$SWSIM" verify --format=github --no-reduction --limit=states=3 --driver=clock "$srcdir/plans/torchrec/sparse_dist.yaml"
check "two formats are one too many" complains 2 'found --json' "$SWSIM" verify --format=junit --json "$hello"
check "nor has the table of all channels one" complains 2 'found --p2p=all' \
    "$SWSIM" verify --format=sarif --p2p=all "$srcdir/plans/examples/one_f_one_b.yaml"
long=$(printf 'x%.0s' $(seq 180))
sed "s/EmbPrefetch/EmbPrefetch$long/g; s/InputDist/InputDist$long/g" "$race" >"$dir/long.yaml"
check "a long text is not cut" sh -c '"$0" verify --format=github "$1" | grep -q "of the iteration before$"' "$SWSIM" "$dir/long.yaml"
check "a full disk is told" sh -c '"$0" verify --format=junit "$1" >/dev/full 2>"$2"; test $? -eq 2 && grep -q "standard output" "$2"' \
    "$SWSIM" "$hello" "$dir/err"

done_testing
