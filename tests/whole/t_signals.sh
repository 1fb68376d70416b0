#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# t_signals.sh - SIGINT, SIGTERM and SIGHUP: every long verb ends in order, says what it has, and leaves no run
# unfinished in a store.
. "${srcdir:-.}/tests/tap.sh"

hello=$srcdir/plans/examples/hello.yaml
# Many streams of their own pace: a search of more states than there is time for.
{
    echo 'swplan: 1'
    echo 'name: wide'
    echo 'schedule:'
    for i in 0 1 2 3 4 5 6 7; do
        echo "  T$i: {stage: 0, stream: s$i, thread_group: g$i, time: 1ms}"
    done
} >"$dir/wide.yaml"
"$SWRUN" -q --serial -n 200 --db="$dir/compare.db" "$hello" >/dev/null 2>&1
"$SWRUN" -q -n 200 --db="$dir/compare.db" "$hello" >/dev/null 2>&1

# ends SIGNAL CODE command...: the command gets the signal when it has been at work for some time, and ends with CODE
ends()
{
    signal=$1 want=$2
    shift 2
    env --default-signal=INT,HUP "$@" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    wait_until 200 catches $pid $signal && sleep 0.7
    kill -s $signal $pid
    ends_within 20 $pid
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat "$dir/out" "$dir/err"
    false
}

in_order()
{
    ! sqlite3 "$dir/$1.db" 'SELECT id FROM run WHERE finished = 0' | grep . &&
        test "$(sqlite3 "$dir/$1.db" 'PRAGMA integrity_check')" = ok
}

if ! env --default-signal=INT,HUP true 2>/dev/null; then
    skip_all "no env --default-signal here"
fi

for signal in INT TERM HUP; do
    check "$signal: predict" ends $signal 4 "$SWSIM" predict --iterations=90000000 "$hello"
    check "and says how far it came" grep -q 'interrupted after [0-9]* iterations' "$dir/err"
    check "$signal: predict with jitter" ends $signal 4 \
        "$SWSIM" predict --iterations=90000000 --jitter='*=uniform(half=0.1)' --driver=clock "$hello"
    check "and says how far it came" grep -q 'interrupted after [0-9]* iterations' "$dir/err"
    check "$signal: predict --replications" ends $signal 4 \
        "$SWSIM" predict --replications=10000 --iterations=20000 --threads=1 --driver=clock "$hello"
    check "with the figures of those that are complete" grep -q '^  iteration' "$dir/out"
    check "as a note says" grep -q 'the figures are of the first' "$dir/err"
    check "$signal: verify" ends $signal 4 "$SWSIM" verify --no-reduction "$dir/wide.yaml"
    check "$signal: compare" ends $signal 4 "$SWSIM" compare --replications=100000 "$dir/compare.db"
    check "$signal: swrun" ends $signal 1 "$SWRUN" -n 1000000 "$hello"
    check "with what it has" grep -q '^hello, clock driver, [0-9]* iterations' "$dir/out"
    check "$signal: swrun --processes" ends $signal 1 "$SWRUN" --processes --ranks=2 -n 1000000 "$hello"
    if command -v sqlite3 >/dev/null; then
        check "$signal: predict --db" ends $signal 4 \
            "$SWSIM" predict --db="$dir/$signal.db" --iterations=90000000 --driver=clock "$hello"
        check "$signal: swrun --db" ends $signal 1 "$SWRUN" --db="$dir/$signal.db" -n 1000000 "$hello"
        check "no unfinished run" in_order "$signal"
    else
        skip "no sqlite3 here"
    fi
done

# What takes long before there is a result hears a signal within a second, and --limit holds for every verb.
large=$dir/large.yaml
echo 'swplan: 1
generate: {schedule: gpipe, ranks: 4096, microbatches: 4096, chunks: 1}' >"$large"
{
    echo 'swplan: 1'
    echo 'threads:'
    echo '  r0.main:'
    seq -f '    - {launch: k, stream: s%.0f, time: 1us, host_time: 1us, reads: [], writes: []}' 1 20000
    seq 1 20000 | sed 's/.*/    - {record: e&, stream: s&}/'
} >"$dir/streams.yaml"
# barriers N: host threads that meet twice
barriers()
{
    echo 'swplan: 1'
    echo 'threads:'
    seq -f '  r0.t%.0f: [{host: 1us}, {barrier: b}, {host: 2us}, {barrier: b}]' 1 "$1"
}
barriers 2000 >"$dir/barriers.yaml"
# soon SIGNAL command...: ends within a second and what a busy machine adds
soon()
{
    signal=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    wait_until 100 catches $pid $signal && sleep 0.5
    kill -s $signal $pid
    ends_within 4 $pid || { echo "deaf for 4 s"; return 1; }
}
check "TERM: predict of a plan that is large" soon TERM "$SWSIM" predict "$large"
check "and says what it was at" grep -q 'interrupted while the program of this plan was built' "$dir/err"
check "TERM: tune of many streams" soon TERM "$SWSIM" tune "$dir/streams.yaml"
# limited CODE LIMIT command...: with the limit, within it and a little more
limited()
{
    want=$1 limit=$2
    shift 2
    "$@" --limit=$limit >"$dir/out" 2>"$dir/err" </dev/null &
    ends_within 5 $!
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat "$dir/err"
    false
}
for limit in time=1s mem=200MB; do
    for verb in verify predict lower "render -o $dir/large.svg" "generate gpipe -p4096 -m4096"; do
        case $verb in generate*) plan= ;; *) plan=$large ;; esac
        check "$limit: $verb" limited 4 $limit "$SWSIM" $verb $plan
        check "and says so" grep -qE 'limit|interrupted' "$dir/err"
    done
done
check "--limit in JSON" grep -q '"text":"the time limit of 1.00 s was reached before there was an answer"' <<END
$("$SWSIM" lower --json --limit=time=1s "$large" 2>&1)
END
check "a verb that ends in time does not hear of it" limited 0 time=20s,mem=4GB "$SWSIM" predict "$hello"
check "a barrier of 2,000 threads" limited 0 time=4s "$SWSIM" predict -q "$dir/barriers.yaml"
check "a limit in the search's own tables" limited 4 time=2s "$SWSIM" verify -q --no-reduction "$dir/barriers.yaml"
check "work on 20,000 streams" limited 0 time=4s "$SWSIM" verify -q "$dir/streams.yaml"

# nohup: a run goes on when its terminal is closed.
ignored()
{
    (
        trap '' HUP
        exec "$SWRUN" -n 400 "$hello"
    ) >"$dir/out" 2>&1 &
    pid=$!
    sleep 1
    kill -HUP $pid
    wait $pid
}
check "SIGHUP that is ignored stays so" ignored

done_testing
