#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A second reading of doc/semantics.md, section 8, in Python and without the program's code (tests/oracle/times.py), simulates
# random plans without jitter and compares with swsim predict: the whole time, each piece of work, each iteration.
# Jitter is tested by itself, with Kolmogorov-Smirnov statistics (tests/oracle/compare_jitter.py).
# SWSIM_PLANS plans of a form, the first from SWSIM_SEED; SWSIM_LONG=1: more of them.
. "${srcdir:-.}/tests/tap.sh"
python3 -c "import dataclasses, sqlite3" 2>/dev/null || skip_all "no python3 (3.7 or later, with sqlite3) for the second reading"
PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only
export PYTHONDONTWRITEBYTECODE
given=${SWSIM_PLANS-}${SWSIM_SEED-}
[ -z "${SWSIM_LONG-}" ] || : "${SWSIM_PLANS:=3000}"
: "${SWSIM_PLANS:=120}" "${SWSIM_SEED:=1000}"
echo "# SWSIM_SEED=$SWSIM_SEED SWSIM_PLANS=$SWSIM_PLANS"

# compare FORM PLANS [CHANGE]
compare() { python3 "$srcdir/tests/oracle/compare_times.py" "$SWSIM" "$1" "$SWSIM_SEED" "$2" ${3+"$3"}; }
# agrees FORM: the figures are left in $dir/FORM.
agrees() { compare "$1" "$SWSIM_PLANS" >"$dir/$1" 2>&1 || { cat "$dir/$1"; false; }; }
# more LEAST FORM LINE: the figure behind "LINE:" is at least LEAST.
more()
{
    figure=$(sed -n "s/^$3: //p" "$dir/$2")
    [ "${figure:-0}" -ge "$1" ] || { cat "$dir/$2"; false; }
}
# sees FORM WHAT: where the program's WHAT ends one nanosecond later, that is a disagreement.
sees()
{
    compare "$1" 5 "$2" >"$dir/changed" 2>&1
    [ $? -eq 1 ] || { cat "$dir/changed"; return 1; }
    found "^disagreement: .*$2: " "$dir/changed"
}

for form in host pipeline; do
    check "random plans, $form: the same times" agrees $form
    sed 's/^/# /' "$dir/$form"
    if [ -n "$given" ]; then
        skip "enough that ends: only with the test's own seed"
    else
        check "... most of them come to their end" more $((SWSIM_PLANS / 2)) $form ended
        [ $form = pipeline ] || check "... some exceed a time limit" more 1 $form timeouts
        check "... with much work" more $((4 * SWSIM_PLANS)) $form "pieces of work"
    fi
    for what in "the whole time" "work" "CPU work"; do
        check "$form: $what a nanosecond later is seen" sees $form "$what"
    done
done
if [ -z "$given" ]; then
    for cause in "collective peer" dependence head-of-line "host launch" "host waits in sync" "no more data" resource; do
        check "... idle for $cause in one of the host programs" more 1 host "idle for $cause"
    done
    for cause in back-pressure "collective peer" dependence head-of-line "host launch" "no more data" "period clock" resource; do
        check "... idle for $cause in one of the pipelines" more 1 pipeline "idle for $cause"
    done
fi
for form in host pipeline; do
    check "$form: another cause of idle time is seen" sees $form "idle"
done
check "pipeline: an iteration that is over a nanosecond later is seen" sees pipeline iterations

# jitter [CHANGE]: of 1200 iterations, whose seed is that of the random plans.
jitter() { python3 "$srcdir/tests/oracle/compare_jitter.py" "$SWSIM" "$SWSIM_SEED" 1200 ${1+"$1"} >"$dir/jitter" 2>&1; }
# sees_jitter NAME: that the distribution is another one.
sees_jitter()
{
    jitter "$1"
    [ $? -eq 1 ] || { cat "$dir/jitter"; return 1; }
    found "^disagreement: $1: " "$dir/jitter"
}
check "durations vary by the distributions of swplan(5)" jitter
sed -n 's/^compared/# &/p' "$dir/jitter"
check "another distribution is seen" sees_jitter "gamma(cv=0.5)"

done_testing
