#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare_builds.sh - do two builds of swsim print the same?
#
#     tools/compare_builds.sh [-s] [-w WORDS] OLD NEW [PLAN...]
#
# OLD and NEW are build folders. Each PLAN (default: every plan in plans/ and tests/) goes through every
# verb of both that prints results; exit codes and output must be equal byte for byte, except for the
# seconds and bytes that the program itself used. -s: leave out sentences (JSON strings with a space in
# them). -w: a sed script of renamed words, applied to what OLD prints. Prints each difference; exit
# status 1 if there is one. Runs two plans at a time.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
sentences= words=/dev/null
while getopts sw: option; do
    case $option in
    s) sentences='s/"([^"\\]|\\.)* ([^"\\]|\\.)*"/"..."/g' ;;
    w) words=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
old=$1 new=$2
shift 2

# Every verb that prints results, a line each. PLAN stands for the plan.
verbs='verify --json --limit=states=200000,mem=1GiB --fix-budget=300 PLAN
verify --json --no-reduction --limit=states=20000,mem=1GiB --no-fix PLAN
verify --json --no-reduction --iterations=2 --limit=states=20000,mem=1GiB --no-fix PLAN
verify --json --driver=dataflow --max-depth=4 --no-fix --limit=states=50000,mem=1GiB PLAN
predict --json --iterations=200 PLAN
predict --json --iterations=50 --replications=3 --seed=7 --jitter=*=gamma(cv=0.2) PLAN
predict --json --iterations=50 --critical-path PLAN
predict --iterations=50 PLAN
lower --json PLAN
schedule PLAN
stages PLAN
export --format=yaml PLAN'

# say BUILD PLAN: the output of all verbs.
say()
{
    echo "$verbs" | while read -r verb; do
        arguments=$(echo "$verb" | sed 's/ PLAN$//')
        case $verb in # only a pipeline has a number of them
        predict*) grep -q '^schedule:' "$2" || arguments=$(echo "$arguments" | sed 's/ --iterations=[0-9]*//') ;;
        esac
        echo "== swsim $verb"
        # shellcheck disable=SC2086
        (set -f; timeout 300 "$1/swsim" $arguments "$2" 2>&1 </dev/null; echo "exit code $?")
    done | sed -E -e 's/"(seconds|cpu_seconds|peak_bytes)":[-+0-9.e]+/"\1":0/g' -e 's/ simulated in .*/ simulated/' \
        -e 's/"engine":"[a-z]*",//' \
        -e "$sentences"
}

if [ "${COMPARE_ONE-}" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    say "$old" "$1" | sed -E -f "$words" >"$folder/old"
    say "$new" "$1" >"$folder/new"
    cmp -s "$folder/old" "$folder/new" && exit
    echo "--- $1"
    diff "$folder/old" "$folder/new" | cut -c 1-400 | head -n 20
    exit 1
fi

[ $# -gt 0 ] || set -- $(find "$here/plans" "$here/tests" -name '*.yaml' -o -name '*.csv' -o -name '*.json' | sort)
COMPARE_ONE=1
export COMPARE_ONE
printf '%s\n' "$@" | xargs -n 1 -P 2 "$0" ${sentences:+-s} -w "$words" "$old" "$new" && echo "$# plans: no difference"
