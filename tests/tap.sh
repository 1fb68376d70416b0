# tap.sh - the Test Anything Protocol for our shell tests; sourced: `. "${srcdir:-.}/tests/tap.sh"`.
#
#   check "what is expected" command...   one case: passed when the command exits with 0;
#                                         its output appears as comments when it does not
#   skip "why"                            one case that could not be tried here
#   done_testing                          print the plan; the script ends with it

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
