# tap.sh - the Test Anything Protocol for our shell tests; sourced: `. "${srcdir:-.}/tests/tap.sh"`.
#
#   check "what is expected" command...   one case: passed when the command exits with 0;
#                                         its output appears as comments when it does not
#   skip "why"                            one case that could not be tried here
#   done_testing                          print the plan; the script ends with it
#
# For the commands of a check; $dir is a folder of the test's own:
#
#   exits CODE command...                 the command exits with CODE; its output goes to $dir/out, its
#                                         messages to $dir/err
#   prints CODE PATTERN command...        likewise, and a line of its output matches
#   complains CODE PATTERN command...     likewise, and a line of its messages matches
#   says PATTERN command...               whatever its exit code, a line of either matches
#
# A test with other needs defines functions of these names after it has sourced this file.

tap_cases=0
tap_failures=0

check()
{
    tap_what=$1
    shift
    tap_cases=$((tap_cases + 1))
    if tap_output=$("$@" 2>&1); then
        echo "ok $tap_cases - $tap_what"
    else
        tap_failures=$((tap_failures + 1))
        echo "not ok $tap_cases - $tap_what"
        printf '%s\n' "$tap_output" | sed 's/^/# /'
    fi
}

skip()
{
    tap_cases=$((tap_cases + 1))
    echo "ok $tap_cases # SKIP $1"
}

done_testing()
{
    echo "1..$tap_cases"
    test "$tap_cases" -gt 0 && test "$tap_failures" -eq 0
}

exits()
{
    want=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat "$dir/out" "$dir/err"
    false
}

prints()
{
    pattern=$2
    want=$1
    shift 2
    exits "$want" "$@" || return
    grep -q -e "$pattern" "$dir/out" && return
    echo "nothing like '$pattern' in:"
    cat "$dir/out"
    false
}

complains()
{
    pattern=$2
    want=$1
    shift 2
    exits "$want" "$@" || return
    grep -q -e "$pattern" "$dir/err" && return
    echo "nothing like '$pattern' in:"
    cat "$dir/err"
    false
}

says()
{
    pattern=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    grep -q -e "$pattern" "$dir/out" "$dir/err" && return
    echo "nothing like '$pattern' in:"
    cat "$dir/out" "$dir/err"
    false
}
