#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tuning through the front door: what it finds is proved, no slower, within the limits, computes the
# same and is printed as a diff that applies; the same every time.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

# period PLAN [DRIVER]: exact, of the clock driver if none is named, in nanoseconds, as predict says.
period()
{
    "$SWSIM" predict --driver="${2:-clock}" --iterations=50 --json "$1" | field steady_exact_ns
}

# at_most A B: are both numbers, and is A no more?
at_most()
{
    echo "$1 against $2"
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }'
}

# is_proved PLAN: under both drivers, by the ordinary checker.
is_proved()
{
    "$SWSIM" verify --no-fix "$1"
}

# tuned PLAN OPTION...: the better plan goes to $dir/tuned.yaml, what is said to $dir/out.
tuned()
{
    plan=$1
    shift
    "$SWSIM" tune --budget=1500 -o "$dir/tuned.yaml" "$@" "$plan" >"$dir/out" 2>"$dir/err" || {
        cat "$dir/out" "$dir/err"
        return 1
    }
}

# ---- SparseDist without its stages ---------------------------------------------------------------

sed -e 's/stage: [0-9]*/stage: 0/' -e 's/^pipeline_depth.*/retire: device/' -e '/^max_depth/d' \
    "$plans/reference/sparse_dist.yaml" >"$dir/flat.yaml"
upstream=$(period "$plans/reference/sparse_dist.upstream.yaml")

check "all stages are 0" sh -c "! grep -q 'stage: [1-9]' '$dir/flat.yaml'"
check "which is slower than upstream" at_most "$upstream" "$(period "$dir/flat.yaml")"
check "SparseDist without stages is tuned" tuned "$dir/flat.yaml"
check "and it has a name of its own" grep -qx "name: TrainPipelineSparseDist_tuned" "$dir/tuned.yaml"
check "to no more than upstream takes" at_most "$(period "$dir/tuned.yaml")" "$upstream"
check "and proved" is_proved "$dir/tuned.yaml"
check "the table says what it was and is" grep -q 'iteration .*ms .*ms .*% less' "$dir/out"
check "the change is said in words" grep -q '^  stage of [A-Za-z]*: [0-9] instead of 0' "$dir/out"
check "and how many were tried" grep -q 'tried .*candidates: .*proved, .*predicted' "$dir/out"

# ---- every plan of TorchRec ----------------------------------------------------------------------

# The diff, applied to the canonical text, gives the tuned plan.
diff_applies()
{
    "$SWSIM" export "$1" >"$dir/patched.yaml" &&
        if grep -q '^@@' "$dir/out"; then
            sed -n '/^--- /,$p' "$dir/out" | patch -s "$dir/patched.yaml"
        fi && diff "$dir/patched.yaml" "$dir/tuned.yaml"
}

for plan in "$plans"/reference/*.yaml; do
    name=$(basename "$plan" .yaml)
    check "$name is tuned" tuned "$plan"
    check "$name is no slower" at_most "$(period "$dir/tuned.yaml")" "$(period "$plan")"
    check "$name is proved" is_proved "$dir/tuned.yaml"
    if command -v patch >/dev/null; then
        check "the diff of $name applies" diff_applies "$plan"
    else
        skip "no patch here"
    fi
    check "$name is tuned, data-flow" tuned "$plan" --driver=dataflow --budget=150
    check "$name is no slower, data-flow" \
        at_most "$(period "$dir/tuned.yaml" dataflow)" "$(period "$plan" dataflow)"
    check "$name is proved, data-flow" is_proved "$dir/tuned.yaml"
done

# ---- limits --------------------------------------------------------------------------------------

# 48 MiB are shared and 14 MiB belong to an iteration.
bytes_within()
{
    "$SWSIM" tune --budget=1500 --json "$@" "$dir/flat.yaml" >"$dir/json" &&
        at_most "$(sed 's/.*"after"//' "$dir/json" | field bytes)" "$limit"
}
limit=65011712
check "62 MiB have room for one iteration" bytes_within --memory=62MiB
check "and nothing faster was found" grep -q '"better":false' "$dir/json"
limit=79691776
check "76 MiB have room for two" bytes_within --memory=76MiB
check "and that is faster" grep -q '"better":true' "$dir/json"
check "no plan has room in 10 MiB" prints 1 'no candidate is proved and within the limits' \
    "$SWSIM" tune --budget=100 --memory=10MiB "$dir/flat.yaml"
sed 's/^pipeline_depth/retire: device\n&/' "$plans/reference/sparse_dist.yaml" >"$dir/device.yaml"
check "a budget that the given plan exceeds" tuned "$dir/device.yaml" --memory=76MiB
check "is kept" grep -q 'bytes of a rank  *90.0 MiB  *76.0 MiB' "$dir/out"
check "--max-depth is kept" prints 0 'depth  *1  *1$' \
    "$SWSIM" tune --budget=500 --max-depth=1 "$dir/flat.yaml"
check "--keep=stage leaves stages alone" tuned "$plans/reference/sparse_dist.yaml" --keep=stage,depth
check "all of them" sh -c "! grep -q 'stage of' '$dir/out'"
check "--keep of everything finds nothing" prints 0 'no candidate is better than the plan' \
    "$SWSIM" tune --keep=stage,stream,group,order,depth "$dir/flat.yaml"
check "--budget is kept" at_most "$("$SWSIM" tune --budget=300 --json "$dir/flat.yaml" |
    field candidates)" 345

# ---- what is computed ----------------------------------------------------------------------------

# Step reads what Update of the iteration before has written: 1 + 2 + 1 ms. If Update might be one
# iteration late, the exchange would run beside the next Step.
cat >"$dir/shared.yaml" <<'END'
swplan: 1
name: shared
retire: device
schedule:
  Step: {stage: 0, time: 1ms, reads: [weights], writes: [grads]}
  Exchange: {stage: 0, stream: exchange, time: 2ms, reads: [grads], writes: [sums]}
  Update: {stage: 0, time: 1ms, reads: [sums], writes: [weights]}
intra_iter_deps: [[Exchange, Step], [Update, Exchange]]
buffers: {weights: {scope: shared, bytes: 1MiB}}
END
sed -e 's/, weights//' -e 's/\[weights\]/[]/' -e '/^buffers/d' "$dir/shared.yaml" >"$dir/unnamed.yaml"
for plan in shared unnamed; do
    check "$plan: the order of reads and writes is kept" tuned "$dir/$plan.yaml"
    check "which takes its time" at_most 4000000 "$(period "$dir/tuned.yaml")"
    check "what is faster is told" grep -q 'faster one.* other results' "$dir/out"
    check "--allow-stale gives it up" tuned "$dir/$plan.yaml" --allow-stale
    check "and is faster" at_most "$(period "$dir/tuned.yaml")" 3000000
    check "and proved" is_proved "$dir/tuned.yaml"
done

# ---- data-flow, jitter ---------------------------------------------------------------------------

check "data-flow" tuned "$dir/flat.yaml" --driver=dataflow --budget=60
check "finds that more iterations in flight help" grep -q 'max_depth: [2-9] instead of 1' "$dir/out"
check "which is proved" is_proved "$dir/tuned.yaml"
check "without jitter periods are exact" sh -c "'$SWSIM' tune --driver=dataflow --budget=20 --json \
    '$dir/flat.yaml' | grep -q '\"exact\":true'"
check "what limits them is named" grep -q '^  limited by  *driver -> launch of H2D' "$dir/out"
sed 's/time: 4ms/&, jitter: normal(cv=0.2)/' "$dir/flat.yaml" >"$dir/jitter.yaml"
check "jitter" tuned "$dir/jitter.yaml" --budget=60
check "is simulated" grep -q 'iteration, about' "$dir/out"

# Every task a worker of its own: what happens is in one order, whatever the durations (by causes). A
# candidate whose order is luck would be dropped, so what is found is in such an order, too.
cat >"$dir/alone.yaml" <<'END'
swplan: 1
name: alone
max_depth: 1
schedule:
  Copy: {stage: 0, stream: memcpy, thread_group: copy, time: 3ms, host_time: 40us}
  Dist: {stage: 0, stream: dist, thread_group: dist, time: 2ms, host_time: 400us}
  Work: {stage: 0, thread_group: work, time: 4ms, host_time: 200us}
intra_iter_deps: [[Dist, Copy], [Work, Dist]]
END
way()
{
    "$SWSIM" predict --driver=dataflow --iterations=50 --json "$1" | grep -o '"steady_exact_way":"[a-z]*"'
}
check "workers of their own: one order" test "$(way "$dir/alone.yaml")" = '"steady_exact_way":"causes"'
check "are tuned" tuned "$dir/alone.yaml" --driver=dataflow --budget=150
check "to one order again" test "$(way "$dir/tuned.yaml")" = '"steady_exact_way":"causes"'
check "that is no slower" \
    at_most "$(period "$dir/tuned.yaml" dataflow)" "$(period "$dir/alone.yaml" dataflow)"

# ---- plans that are bad --------------------------------------------------------------------------

sed -e 's/H2D:/&\n    # copied too late/' -e 's/{stage: 0, stream: memcpy/{stage: 2, stream: memcpy/' \
    -e '/^pipeline_depth/d' "$plans/reference/sparse_dist.yaml" >"$dir/hang.yaml"
check "a plan that hangs has nothing to be compared with" complains 1 'hangs' \
    "$SWSIM" tune --budget=100 "$dir/hang.yaml"
check "--allow-stale tunes it all the same" tuned "$dir/hang.yaml" --allow-stale
check "towards a proved plan" is_proved "$dir/tuned.yaml"
check "saying that it was not" grep -q 'violated as given' "$dir/err"

# ---- host programs -------------------------------------------------------------------------------

cat >"$dir/loop.yaml" <<'END'
swplan: 1
name: loop
comms: {dp: [0, 1]}
threads:
  r*.main:
    - {copy: h2d, stream: copy, time: 2ms, writes: [batch]}
    - {sync: stream, stream: copy}
    - {host: 1ms, name: prepare, writes: [args]}
    - {launch: forward, stream: main, time: 3ms, reads: [batch], writes: [grad]}
    - {record: computed, stream: main}
    - {sync: event, event: computed}
    - {collective: reduce, comm: dp, stream: main, time: 1ms, reads: [grad], writes: [grad]}
    - {launch: other, stream: main, time: 2ms, reads: [batch], writes: [stats]}
    - {sync: device}
    - {compute: log, time: 1ms, reads: [grad, args, stats]}

expect: {}
END
total() { "$SWSIM" predict --json "$1" | sed 's/.*"makespan_ns":\([0-9]*\).*/\1/'; }
host_tuned() { "$SWSIM" tune -o "$dir/tuned.yaml" "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/out" "$dir/err"; false; }; }
check "a host program is tuned" host_tuned "$dir/loop.yaml"
check "it is faster than before" at_most "$(total "$dir/tuned.yaml")" $(($(total "$dir/loop.yaml") - 1000000))
check "and proved, one list for all ranks still" sh -c "'$SWSIM' verify --quiet --expect '$dir/tuned.yaml' && grep -q '^  r\*.main:' '$dir/tuned.yaml'"
check "the sync in front of what reads the results stays" grep -q "{sync: " "$dir/tuned.yaml"
check "its JSON says the whole time" prints 0 '"driver":"none",.*"better":true,.*"before":{"verdict":"proved","period_ns":10000000' \
    "$SWSIM" tune --json "$dir/loop.yaml"
check "--keep=stream,order leaves these" host_tuned "$dir/loop.yaml" --keep=stream,order
check "... streams wait in place of the threads" \
    found "every rank, thread main: streams wait in place of the thread, at sync copy" "$dir/out"
check "... and the waits are enough to be faster" at_most "$(total "$dir/tuned.yaml")" $(($(total "$dir/loop.yaml") - 900000))
check "the same seed gives the same plan" sh -c \
    "'$SWSIM' tune -o '$dir/one.yaml' --seed=7 '$dir/loop.yaml' >'$dir/out'; '$SWSIM' tune -o '$dir/two.yaml' --seed=7 '$dir/loop.yaml' >'$dir/out'; cmp '$dir/one.yaml' '$dir/two.yaml'"

# Two writes of one stream in the other order would be faster, and another program.
cat >"$dir/order.yaml" <<'END'
swplan: 1
name: order
threads:
  r0.main:
    - {launch: first, stream: s, time: 1ms, writes: [x]}
    - {launch: long, stream: s, time: 5ms, reads: [w], writes: [x]}
    - {launch: use, stream: s, time: 1ms, reads: [x], writes: [y]}
    - {sync: stream, stream: s}
    - {compute: end, time: 1ms, reads: [y]}
inputs: [w]
END
check "a plan without a faster order of the same results stays" says "no candidate is better than the plan" "$SWSIM" tune "$dir/order.yaml"
sed 's/, reads: \[batch\], writes: \[stats\]//' "$dir/loop.yaml" >"$dir/undeclared.yaml"
check "work that declares nothing is named" complains 1 "other.*declare" "$SWSIM" tune "$dir/undeclared.yaml"
check "a plan with branches is refused" complains 3 "found branches, expected none" "$SWSIM" tune "$plans/reality/event_poll_fixed.yaml"
sed 's/    - {sync: device}/    - {await: never}/' "$dir/loop.yaml" >"$dir/never.yaml"
check "a host program that hangs has nothing to be compared with" complains 1 "hangs" "$SWSIM" tune "$dir/never.yaml"
check "an option of pipelines is refused" complains 2 "found --max-depth, but it is for the pipeline form only" \
    "$SWSIM" tune --max-depth=2 "$dir/loop.yaml"

# The best order for a plan with host waits and all its collectives is the one of TorchRec's loop.
check "TorchRec's collectives in the order ready-first are tuned" tuned "$plans/torchrec/sparse_dist.ready_first.yaml"
check "to what TorchRec's loop takes" \
    at_most "$(period "$dir/tuned.yaml")" "$(period "$plans/torchrec/sparse_dist.yaml")"

# ---- measured times ------------------------------------------------------------------------------

# longest KEY FILE: the largest of these times in a plan, in nanoseconds.
longest()
{
    sed -n "s/.*[ {]$1: \([0-9.]*\)\([num]\{0,1\}\)s.*/\1 \2/p" "$2" |
        awk '{ ns = $1 * ($2 == "n" ? 1 : $2 == "u" ? 1e3 : $2 == "m" ? 1e6 : 1e9); if (ns > most) most = ns } END { printf "%d", most }'
}
# The copy really takes 3 ms, the plan says 1 us: what it should run beside shows only in the profile.
cat >"$dir/told.yaml" <<'PLAN'
swplan: 1
name: told
schedule:
  Copy: {stage: 0, stream: memcpy, time: 3ms, writes: [batch]}
  Work: {stage: 0, time: 2ms, reads: [batch], writes: [weights]}
intra_iter_deps: [[Work, Copy]]
buffers: {batch: {scope: iteration, bytes: 1MiB}, weights: {scope: shared, bytes: 1MiB}}
PLAN
sed 's/3ms/1us/' "$dir/told.yaml" >"$dir/wrong.yaml"
if "$SWRUN" --quiet --serial -n 20 --db "$dir/told.db" "$dir/told.yaml" >"$dir/out" 2>&1; then
    check "with measured times" tuned "$dir/wrong.yaml" --profile "$dir/told.db"
    check "the plan says what they are" test "$(longest time "$dir/tuned.yaml")" -ge 3000000
    # The serial run measures all of a CPU part: the work of 20 ms is in the 21 ms, and not added to them. However busy the
    # machine is, the 11 iterations that are measured do not take longer than the run of 12.
    printf 'swplan: 1\nname: load\nschedule: {Load: {stage: 0, host_time: 1ms, work: {host: 20ms}}}\n' \
        >"$dir/load.yaml"
    "$SWRUN" --quiet --serial -n 12 --db "$dir/load.db" "$dir/load.yaml" >"$dir/out" 2>&1
    check "measured host work" tuned "$dir/load.yaml" --profile "$dir/load.db"
    host_ns=$(longest host_time "$dir/tuned.yaml")
    run_ns=$("$SWSIM" runs --json "$dir/load.db" | sed -n 's/.*"duration_ns":\([0-9]*\).*/\1/p')
    check "counts once: $host_ns ns in a run of ${run_ns:=0} ns" \
        test "$host_ns" -ge 20000000 -a $((11 * host_ns)) -le "$run_ns"
    check "a run that is not there" complains 3 'no run 9' \
        "$SWSIM" tune --profile "$dir/told.db:9" "$dir/wrong.yaml"
else
    skip "no serial run here: $(tail -n 1 "$dir/out")"
fi

# ---- the end before the end ----------------------------------------------------------------------

# interrupted: SIGINT after a second; the best so far is printed and written.
interrupted()
{
    rm -f "$dir/early.yaml"
    "$SWSIM" tune --budget=10000000 --json -o "$dir/early.yaml" "$plans/reference/prefetch.yaml" \
        >"$dir/out" 2>"$dir/err" &
    search=$!
    wait_until 200 catches $search INT && sleep 1
    kill -INT "$search"
    wait "$search"
    code=$?
    test "$code" -eq 0 || { echo "exit code $code"; cat "$dir/err"; return 1; }
    grep -q '"interrupted":true' "$dir/out" && grep -q 'best candidate so far' "$dir/err"
}
# A shell's background jobs ignore SIGINT unless job control is on.
set -m
check "SIGINT ends the search" interrupted
set +m
check "with a proved plan" is_proved "$dir/early.yaml"

# ---- the same every time -------------------------------------------------------------------------

same_again()
{
    "$SWSIM" tune --budget=1000 "$@" >"$dir/one" && "$SWSIM" tune --budget=1000 "$@" >"$dir/two" &&
        cmp "$dir/one" "$dir/two"
}
check "one seed has one answer" same_again --seed=7 "$plans/reference/prefetch.yaml"
check "also as JSON" same_again --json "$plans/reference/prefetch.yaml"
"$SWSIM" tune --budget=1000 -o - "$dir/flat.yaml" >"$dir/again.yaml"
check "-o - prints the plan" is_proved "$dir/again.yaml"

# ---- wrong use -----------------------------------------------------------------------------------

check "no plan" complains 2 'missing' "$SWSIM" tune
check "a budget of 0" complains 2 'budget' "$SWSIM" tune --budget=0 "$dir/flat.yaml"
check "memory without a unit" complains 2 'memory.*expected a unit' \
    "$SWSIM" tune --memory=80 "$dir/flat.yaml"
check "an unknown knob" complains 2 "found 'colour', expected stage" \
    "$SWSIM" tune --keep=stage,colour "$dir/flat.yaml"
check "both drivers" complains 2 'driver' "$SWSIM" tune --driver=both "$dir/flat.yaml"
check "a plan that is not there" complains 2 'nowhere' "$SWSIM" tune "$dir/nowhere.yaml"
done_testing
