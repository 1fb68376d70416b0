#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh TEST [ARGUMENT...] - run a test of this folder in the Python environments of SWSIM_PARTNERS (default:
# partners/ in the folder of the build): in the main one, and in each of the others that has what versions.txt installs
# there. Their cases are numbered in one sequence. Without an environment the test skips.
partners=${SWSIM_PARTNERS:-partners}
if ! test -x "$partners/bin/python"; then
    echo "ok 1 # SKIP no partners in $partners: make check-partners installs them"
    echo "1..1"
    exit
fi

run_all()
{
    for python in "$partners"/bin/python "$partners"/*/bin/python; do
        test -x "$python" || continue
        echo "# $python"
        test "$python" = "$partners/bin/python" || export SWSIM_PARTNERS_PLACE="$python"
        PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore "$@" || echo "# exit status $?"
        echo "# end"
    done
}

# Line by line, since some tests take minutes.
renumber()
{
    cases=0 planned=
    while IFS= read -r line; do
        case $line in
        1..[0-9]*) planned=1 ;;
        "not ok "* | "ok "*)
            cases=$((cases + 1))
            rest=${line#*ok }
            echo "${line%%ok*}ok $cases ${rest#* }"
            ;;
        "# end")
            test -n "$planned" || { cases=$((cases + 1)) && echo "not ok $cases - the test ended early"; }
            planned=
            ;;
        *) echo "$line" ;;
        esac
    done
    echo "1..$cases"
}

run_all "$@" | renumber
