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
    grep -qE '^::error file=.*torchrec_cache_map_broken.yaml,line=[0-9]+,title=swsim race::.*Fix \(proved\)' "$dir/github"
check "github: an error of a plan has its line" grep -q '^::error file=.*wrong.yaml,line=4,title=swsim plan::' "$dir/github"
check "github: a deadlock has no line" grep -q '^::error file=[^,]*,title=swsim deadlock::' "$dir/github"
check "github: what is proved says nothing" lines '^::' github 3
mkdir "$dir/a,b%"
cp "$hang" "$dir/a,b%/hang.yaml"
check "github: commas and percent signs of a name are escaped" \
    prints 1 '^::error file=[^,]*a%2Cb%25/hang.yaml,title=' "$SWSIM" verify --format=github "$dir/a,b%/hang.yaml"
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
    check "junit: XML" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/junit"
else
    skip "no python3 to read the files"
fi
check "a plan that is violated as it expects is no error" exits 0 "$SWSIM" verify --expect --format=github "$race"
check "... and annotates nothing" test ! -s "$dir/out"
sed 's/^expect: .*/expect: {}/' "$race" >"$dir/other.yaml"
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
