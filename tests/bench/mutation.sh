#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mutation.sh - the mutation score of a file of the checker (doc/trust.md): lines drawn from it are changed one at a time, and
# each of these tests in turn is asked whether it notices. The sources stay as they are.
#
#     ../tests/bench/mutation.sh [FILE [COUNT [SEED]]]     in a build folder; machine/machine.c, 20, 1
#
# A change: == and !=, < and >=, && and ||, + and -, true and false, ++ and -- take each other's place, the first that a line has.
# Prints the test that noticed it, or "nobody", and the score. Changes that are not compiled do not count.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
file=${1-machine/machine.c} count=${2-20} seed=${3-1}
object=${file%.c}.o tests="tests/machine/t_machine tests/check/t_reduce tests/machine/t_ops tests/check/t_random_plans tests/check/t_quantifiers tests/sim/t_predict tests/check/t_faults"
make -s swsim $tests || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"; rm -f "$object"; make -s swsim $tests' EXIT
compile=$(make -n "$object" -W "$top/$file" | grep -o '[^ ]*cc .*' | sed 's/ \(-MT .* \)\?-c -o .*//' | head -1)

changed() # changed LINE: the file with the line changed
{
    awk -v at="$1" '
        function swap(a, b) { if (!done && (i = index($0, a))) { $0 = substr($0, 1, i - 1) b substr($0, i + length(a)); done = 1 } }
        NR == at {
            swap(" == ", " != "); swap(" != ", " == "); swap(" && ", " || "); swap(" || ", " \\&\\& "); swap(" < ", " >= ")
            swap(" >= ", " < "); swap(" > ", " <= "); swap(" + ", " - "); swap(" - ", " + "); swap("true", "false"); swap("false", "true")
            swap("++", "--"); swap("--", "++")
        }
        { print }' "$top/$file"
}
noticed()
{
    for test in $tests; do # a change may make one endless: then it was noticed
        SWSIM_PLANS=100 SWSIM_SEED=1 timeout 300 "$test" >"$work/out" 2>&1 || { echo "$test"; return; }
    done
    timeout 300 ./swsim verify -q --expect "$top"/plans/*/*.yaml >"$work/out" 2>&1 || echo "verify --expect plans"
}

by=$(srcdir=$top noticed)
[ -z "$by" ] || { echo "$by fails without a change" >&2; exit 2; }
killed=0 all=0
for line in $(grep -nE ' (==|!=|&&|\|\||<|>=|>|\+|-) |true|false|\+\+|--' "$top/$file" | grep -vE '^[0-9]+:( *(/\*|\*|//|   )[^;]*$|#)|assert|^[0-9]+:[^;{}]*\*/' |
    cut -d: -f1 | awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand(), $1 }' | sort -n | cut -d' ' -f2); do
    [ $all -lt "$count" ] || break
    changed "$line" >"$work/$(basename "$file")"
    $compile -I"$top/$(dirname "$file")" -c -o "$object" "$work/$(basename "$file")" 2>/dev/null || continue
    make -s swsim $tests >/dev/null 2>&1 || continue
    all=$((all + 1))
    by=$(srcdir=$top noticed)
    [ -z "$by" ] || killed=$((killed + 1))
    printf '%s:%s: %s\n' "$file" "$line" "${by:-nobody}: $(sed -n "${line}s/^ *//p" "$top/$file")"
done
echo "$killed of $all changes of $file noticed, seed $seed"
