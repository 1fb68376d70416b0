#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that ask whether work is done, recorded on emulated CUDA: a yes is a wait of the plan, and the verdict counts the
# answers that another run may have otherwise.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
program=$PWD/tests/record/queries
# A chunk of an older version
{ printf 'swsim recording\0\5\0\0\0\1\0\0\0'; head -c 262120 /dev/zero; } >"$dir/old.swr"
check "a recording of an older version" complains 3 'old.swr: a recording of version 5; this program reads version ' "$SWSIM" import "$dir/old.swr"
[ -x "$program" ] || { skip "built without CUDA's toolkit, which the emulation is compiled against"; done_testing; exit; }

# record CASE [fixed]: leaves $dir/CASE.swr. `how` is an option. A run that was too slow for the answer it is about is repeated.
record()
{
    left=30
    races=
    case "$*" in no_by_luck | decides) races=report_bugs=0 ;; esac # the program's own, which the thread sanitizer must not end it for
    while [ $((left -= 1)) -gt 0 ]; do
        rm -rf "$dir/$1.swr"
        TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record $how -o "$dir/$1.swr" -- "$program" "$@" >"$dir/log" 2>&1 && return
        grep -q 'exited with 3' "$dir/log" || break
    done
    cat "$dir/log"
    return 1
}
how=
# says CASE STATUS TEXT [OPTION...]: the verdict of an import.
says()
{
    case=$1 status=$2 text=$3
    shift 3
    "$SWSIM" import "$@" -o "$dir/run.yaml" "$dir/$case.swr" 2>"$dir/log" || { cat "$dir/log"; return 1; }
    prints "$status" "$text" joined "$SWSIM" verify --no-fix "$dir/run.yaml"
}
may_wait='where work is not done yet the program may go another way; if it asks until it is, import with --queries=wait'
may_be_done='where work is done by then the program may go another way'
give_up='the program may give up before the answer is yes; if it never does, import with --queries=loops'
# Of a program without a race: the queries of a verdict, the loops that ask until the answer is yes, and the queries where a yes
# is a wait. 0: it says nothing of them.
counts()
{
    check "$1 is recorded" record "$1"
    for way in seen loops wait; do
        count=$2 loops=0 why=$may_wait
        [ $way = seen ] && loops=$3
        [ $way != wait ] || { count=$4 why=$may_be_done; }
        text=
        case $count in 0) ;; 1) text=", other answers of 1 query: ${5-$why}" ;; *) text=", other answers of $count queries: ${5-$why}" ;; esac
        case $loops in 0) ;; 1) text="$text, 1 loop of queries: $give_up" ;; *) text="$text, $loops loops of queries: $give_up" ;; esac
        [ -n "$text" ] && text=", except${text#,}" || text='proved '
        check "$1: --queries=$way: $count, $loops" says "$1" 0 "$text  " --queries=$way
    done
}

counts loop 0 1 0
size() { [ "$(wc -c <"$1")" -le 524288 ] || { ls -l "$1"; return 1; }; }
check "20,000 answers fill no chunk" size "$dir/loop.swr"
counts loop_of_two 0 2 0
check "nor do 40,000 by turns" size "$dir/loop_of_two.swr"
counts loop_of_time 0 1 0
check "nor times that are not there" size "$dir/loop_of_time.swr"
counts loop_of_looks 1 0 0
check "locks in a loop are recorded" record loop_of_locks
check "... and change nothing of it" says loop_of_locks 0 "except 1 loop of queries: $give_up  "
counts loop_of_signals 1 0 0
counts loop_beside_pushes 1 0 0

# An event that a thread lists under a lock, another one finds there and asks for.
check "an event of a list is recorded" record listed_by_another fixed
check "... it had been recorded when it was found there" says listed_by_another 0 'except other orders of locks in [1-9][0-9]* place'
check "the same without asking is recorded" record listed_by_another
check "... and is a race" says listed_by_another 1 'race.*axpy.*fill'

# An answer by which the program decides: the verdict is of the way that it went.
counts yes_by_luck 1 0 0
counts record_by_luck 1 0 0
counts record_in_stream_by_luck 1 0 0
check "the other way is recorded" record no_by_luck
check "... and has a race" says no_by_luck 1 'race.*axpy.*fill'
check "... which is told to be of that answer" says no_by_luck 1 "other answers of 1 query: $may_be_done"
check "repaired" record no_by_luck fixed
check "... it has none, and another answer" says no_by_luck 0 "except other answers of 1 query: $may_be_done  "
counts waits_behind_no 1 0 1 "$may_be_done"
counts waits_for_all_behind_no 2 0 2 "$may_be_done"
counts goes_on 1 1 1 "$may_be_done"
counts records_again 1 1 1 "$may_be_done"
counts another_asks 1 1 1 "$may_be_done"

counts clear_answers 0 0 0
counts asks_again 0 1 0
counts heard_too_late 1 0 0
counts beside_host_function 1 0 0
counts by_host_function 0 0 0
counts clear_by_luck 1 0 0
check "in the order of their calls it is clear" says clear_by_luck 0 'proved  ' --order=seen
check "records of two threads are recorded" record recorded_twice
check "... and told, where nothing orders them" says recorded_twice 0 "except what orders threads in 1 place: "

# Work that a stream had waited for, before the host waited for that one; and what another thread knows
counts behind_wait 0 0 0
counts behind_two_waits 0 0 0
counts before_wait 1 0 0
counts older_record 1 0 0
counts more_than_record 1 0 0
counts by_legacy 0 0 0
counts beside_legacy 1 0 0
counts in_graph 1 0 0
counts another_waits 0 0 0
counts another_waits_unheard 1 0 0

# A yes to the first question looks like a decision, until the first answer is no.
counts poll_done 1 0 0
counts gives_up 1 0 0
counts decides 1 0 0
counts looks_after 4 0 0
how=--ask-twice
counts poll_done 0 1 0
counts gives_up 0 1 0
counts looks_after 0 4 0
counts loop 0 1 0
counts asks_again 0 1 0
check "the way of the no is recorded" record decides
check "... and has a race" says decides 1 'race.*axpy.*fill'
check "... repaired" record decides fixed
check "... it has none" says decides 0 "except other answers of 1 query: $may_be_done  "
# A no that contradicts what they know ends these.
for case in clear_answers behind_wait behind_two_waits by_legacy another_waits by_host_function; do
    counts $case 0 0 0
done
counts in_graph 1 0 0
counts yes_by_luck 1 0 0
how=

check "a plan says how it takes a yes" sh -c '"$1" import --queries=wait "$2" | grep -q "about: .*by --queries=wait 1 query was"' sh "$SWSIM" "$dir/loop.swr"
check "... and so of loops" sh -c '"$1" import --queries=loops "$2" | grep -q "about: .*by --queries=loops 1 query was"' sh "$SWSIM" "$dir/loop.swr"
check "no other way" complains 2 'queries' "$SWSIM" import --queries=never "$dir/loop.swr"
says loop 0 proved
check "JSON has it" prints 0 '"but_for":."1 loop of queries: the program may' "$SWSIM" verify --no-fix --json "$dir/run.yaml"
done_testing
