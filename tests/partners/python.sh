#!/bin/sh
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

run_all "$@" | awk '
    /^1\.\.[0-9]+$/ { planned = 1; next }
    /^(not )?ok / { number = /^not/ ? 3 : 2; $number = ++cases }
    /^# end$/ && !planned { print "not ok", ++cases, "- the test ended early" }
    /^# end$/ { planned = 0; next }
    { print; fflush() }
    END { print "1.." cases + 0 }'
