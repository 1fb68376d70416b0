#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A second reading of doc/semantics.md and swplan(5), in Python and without the program's code (tests/oracle), gives random
# plans the verdicts of swsim verify: each property's answer, and the length of the story shown. SWSIM_PLANS pipelines and half
# as many more host programs, the first from SWSIM_SEED; SWSIM_LONG=1: more of them, and larger ones.
. "${srcdir:-.}/tests/tap.sh"
python3 -c "import dataclasses" 2>/dev/null || skip_all "no python3 (3.7 or later) for the second reading"
PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only
export PYTHONDONTWRITEBYTECODE
given=${SWSIM_PLANS-}${SWSIM_SEED-}
limit=3000
if [ -n "${SWSIM_LONG-}" ]; then
    : "${SWSIM_PLANS:=1000}"
    limit=20000
fi
: "${SWSIM_PLANS:=200}" "${SWSIM_SEED:=1000}"
echo "# SWSIM_SEED=$SWSIM_SEED SWSIM_PLANS=$SWSIM_PLANS"

# oracle FORM PLANS [CHANGE]
oracle() { python3 "$srcdir/tests/oracle/compare.py" "$SWSIM" "$1" "$SWSIM_SEED" "$2" $limit ${3+"$3"}; }
# plans FORM: how many; host programs have more rules of their own, and fewer states.
plans() { [ "$1" = host ] && echo $((SWSIM_PLANS * 3 / 2)) || echo "$SWSIM_PLANS"; }
# agrees FORM: the figures are left in $dir/FORM.
agrees() { oracle "$1" "$(plans "$1")" >"$dir/$1" 2>&1 || { cat "$dir/$1"; false; }; }
# more LEAST FORM LINE: the figure behind "LINE:" is at least LEAST.
more()
{
    figure=$(sed -n "s/^$3: //p" "$dir/$2")
    [ "${figure:-0}" -ge "$1" ] || { cat "$dir/$2"; false; }
}
# sees FORM PROPERTY OLD NEW: where the program answers NEW for OLD, that is a disagreement about PROPERTY.
sees()
{
    oracle "$1" 40 "$2:$3:$4" >"$dir/changed" 2>&1
    [ $? -eq 1 ] || { cat "$dir/changed"; return 1; }
    found "^disagreement: .*$2: $4, expected .*$3" "$dir/changed"
}

# verdicts FORM "PROPERTY...": of that form.
verdicts()
{
    check "random plans, $1: the same verdicts" agrees "$1"
    sed 's/^/# /' "$dir/$1"
    if [ -n "$given" ]; then
        skip "each property violated somewhere: only with the test's own seed"
    else
        check "... most of them small enough to be judged" more $((SWSIM_PLANS / 2)) "$1" compared
        for property in $2; do
            check "... $property violated in one of them" more 1 "$1" "violated $property"
        done
        for answer in proved some always; do
            check "... $answer an answer" more 1 "$1" "answer $answer"
        done
        check "a wrong verdict is seen: always for proved" sees "$1" race proved always
        check "... proved for always" sees "$1" value always proved
    fi
}

verdicts host "message deadlock mismatch race lifetime value bound"
verdicts pipeline "message deadlock mismatch race value serial slot bound drain"

# Every operation of host programs must have been in one that was compared.
if [ -z "$given" ]; then
    for key in $(sed -n '/define HOST_OP_LIST/,/^$/s/^ *X([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$srcdir/plan/ops.h"); do
        check "... $key in one of the host programs" more 1 host "operation $key"
    done
    for key in "signal value" "signal add" "write value" "write add" "await at_least" "await equals" \
        "wait_flag at_least" "wait_flag equals" "acquire count" "flags scope" "flags value"; do
        check "... $key in one of them" more 1 host "operation $key"
    done
fi

done_testing
