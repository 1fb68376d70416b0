# SPDX-License-Identifier: Apache-2.0
# tap.sh - the Test Anything Protocol for our shell tests, and what they share; sourced first of all:
# `. "${srcdir:-.}/tests/tap.sh"`. Sets srcdir, SWSIM, SWRUN and CC where they are not set, and `dir`, a folder
# that is removed when the test exits.
#
#   check "what is expected" command...   one case: passed when the command exits with 0;
#                                         its output appears as comments when it does not
#   skip "why"                            one case that could not be tried here
#   skip_all "why"                        likewise, and the test ends
#   done_testing                          print the plan; the script ends with it
#
# For the commands of a check:
#
#   exits CODE command...                 the command exits with CODE; its output goes to $dir/out, its
#                                         messages to $dir/err
#   prints CODE PATTERN command...        likewise, and a line of its output matches
#   complains CODE PATTERN command...     likewise, and a line of its messages matches
#   says PATTERN command...               whatever its exit code, a line of either matches
#   said PATTERN                          a line of the last command's output or messages matches
#
# For commands in the background:
#
#   wait_until TRIES command...           try the command every 0.1 s until it succeeds; fails after TRIES
#   ends_within SECONDS PID               wait for the end of a child; its exit code goes to `code`, 137 if it
#                                         had to be killed
#   catches PID SIGNAL                    the process has a handler for INT, TERM or HUP
#   children PID                          the processes that a process started
#   runs PID                              the process is there, and no zombie
#
#   field KEY                             the number after "KEY": in standard input, the first
#
# About the source:
#
#   source_folders                        the folders of the program's source below srcdir, from the table of rooms in
#                                         doc/architecture.md; builds, tarballs and clones beside them are not source
#
# A test with other needs defines functions of these names after it has sourced this file.
set -u
: "${srcdir:=.}" "${SWSIM:=./swsim}" "${SWRUN:=./swrun}" "${CC:=cc}"

dir=$(mktemp -d) || exit 99
trap 'chmod -R u+rwx "$dir"; rm -rf "$dir"' EXIT

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

skip_all()
{
    skip "$1"
    done_testing
    exit
}

# found PATTERN FILE...: fails with the whole text when no line matches.
found()
{
    pattern=$1
    shift
    grep -q -e "$pattern" "$@" && return
    echo "nothing like '$pattern' in:"
    cat "$@"
    false
}

said()
{
    found "$1" "$dir/out" "$dir/err"
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
    tap_want=$1 tap_pattern=$2
    shift 2
    exits "$tap_want" "$@" && found "$tap_pattern" "$dir/out"
}

# joined COMMAND...: what it prints, but the exceptions of a verdict stand in its line, however long that is.
joined()
{
    "$@" >"$dir/joined"
    tap_code=$?
    awk '
        function flush() { if (head != "") print head list tail; head = list = "" }
        /except what the next lines say/ {
            flush(); at = index($0, "what the next lines say")
            head = substr($0, 1, at - 1); tail = substr($0, at + 23); next
        }
        head != "" && /^  except / { list = list (list == "" ? "" : ", ") substr($0, 10); next }
        { flush(); print }
        END { flush() }' "$dir/joined"
    return $tap_code
}

complains()
{
    tap_want=$1 tap_pattern=$2
    shift 2
    exits "$tap_want" "$@" && found "$tap_pattern" "$dir/err"
}

says()
{
    tap_pattern=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    said "$tap_pattern"
}

wait_until()
{
    tap_tries=$1
    shift
    until "$@"; do
        tap_tries=$((tap_tries - 1))
        test "$tap_tries" -gt 0 || return
        sleep 0.1
    done
}

catches()
{
    case $2 in HUP) tap_bit=0x1 ;; INT) tap_bit=0x2 ;; TERM) tap_bit=0x4000 ;; esac
    tap_mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    test $((0x${tap_mask:-0} & tap_bit)) -ne 0
}

ends_within()
{
    (sleep "$1"; kill -s KILL "$2") >/dev/null 2>&1 &
    tap_guard=$!
    wait "$2" 2>/dev/null
    code=$?
    kill $tap_guard 2>/dev/null
    wait $tap_guard 2>/dev/null
    test "$code" -ne 137
}

children()
{
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        rest=${line##*) }
        rest=${rest#* }
        test "${rest%% *}" = "$1" && echo "${line%% *}"
    done 2>/dev/null
}

runs()
{
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    rest=${line##*) }
    case $rest in [ZX]*) return 1 ;; esac
}

field()
{
    grep -o "\"$1\":[-0-9.e+]*" | head -n 1 | cut -d: -f2
}

source_folders()
{
    sed -n 's/^| `\([a-z]*\)[a-z/]*\/` |[^|]*|.*|$/\1/p' "$srcdir/doc/architecture.md" | sort -u
}
