#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plain search through the front door: threads, bitstate, limits, the end of memory, SIGINT.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans
# about 94,000 states without reduction on one rank
big=$dir/big.yaml
sed 's/^pipeline_depth/retire: device\n&/' "$plans/reference/sparse_dist.yaml" >"$big"

# answers CODE PATTERN COMMAND...: exits with CODE, and a line of its output or messages matches.
answers()
{
    answer=$2 want=$1
    shift 2
    exits "$want" "$@" && said "$answer"
}

# figures OPTION...: verdict, states and transitions of a search for a deadlock.
figures()
{
    "$SWSIM" verify --json --no-reduction --driver=clock --ranks=1 --property=deadlock,drain \
        "$@" "$big" >"$dir/json"
    sed -n 's/.*\("verdict":"[a-z]*"\).*\("states":[0-9]*,"transitions":[0-9]*\).*/\1 \2/p' \
        "$dir/json"
}

same_with_threads()
{
    one=$(figures --threads=1 "$@")
    two=$(figures --threads=2 "$@")
    echo "one thread: $one; two: $two"
    test -n "$one" && test "$one" = "$two"
}

# At most 32 bytes a state is a matter of ten million states; here are few, and all tables are counted.
within_memory()
{
    figures --limit=mem=3MiB >"$dir/figures"
    peak=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' "$dir/json")
    grep '"limit":"memory"' "$dir/json" && test "$peak" -le 3145728 && test "$peak" -gt 2000000
}

check "two threads: the same verdict, states and steps" same_with_threads
check "cut short, they are cut at the same state" same_with_threads --limit=states=30000
check "at least one thread" answers 2 "expected a whole number from 1" \
    "$SWSIM" verify --threads=0 "$big"

check "bitstate finds a deadlock" answers 1 "cycle: " \
    "$SWSIM" verify --bitstate=1MiB "$plans/bugs/nccl_one_slot_same_order_broken.yaml"
check "bitstate proves nothing" answers 4 "undecided *bitstate: about .*% coverage" \
    "$SWSIM" verify --bitstate --limit=mem=32MiB --no-reduction --driver=clock --ranks=1 "$big"
check "nor any single property" answers 4 '"deadlock":"undecided"' \
    "$SWSIM" verify --json --bitstate=1MiB --no-reduction --driver=clock --ranks=1 \
    --property=deadlock "$big"
check "a filter too small says what part it covered" answers 4 "about [0-9.]*% coverage" \
    "$SWSIM" verify --bitstate=8KiB --no-reduction --driver=clock --ranks=1 --property=deadlock "$big"
check "a filter needs a size with a unit" answers 2 "--bitstate: found '5'" \
    "$SWSIM" verify --bitstate=5 "$big"
check "a bitstate search proves no repair" answers 2 "found --fix together with --bitstate: a repair is written only if it is proved" \
    "$SWSIM" verify --bitstate --fix="$dir/fixed.yaml" "$big"
check "bitstate has one thread" answers 2 "--bitstate searches with one thread" \
    "$SWSIM" verify --bitstate --threads=2 "$big"

check "a memory limit is kept, tables and all" within_memory
check "a memory limit ends with undecided" answers 4 "limit reached: memory" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=mem=3MiB "$big"
check "even one that leaves no room to begin" answers 4 "limit reached: memory" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=mem=1KiB "$big"
check "so does a time limit" answers 4 "limit reached: time" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=time=50ms "$big"

# The time is that of each driver: what the first one has used up, the second has again.
second_has_its_time()
{
    "$SWSIM" verify --json --no-reduction --limit=time=200ms "$big" >"$dir/json"
    test $? -eq 4 || return 1
    test "$(grep -c '"limit":"time"' "$dir/json")" -eq 2 || return 1
    states=$(sed -n 2p "$dir/json" | sed 's/.*"states":\([0-9]*\).*/\1/')
    echo "$states states"
    test "$states" -gt 1000
}
check "each driver has the whole of a time limit" second_has_its_time

# One communicator whose collectives take turns: under data-flow they come in another order than their
# turns, and there are many ways to get there.
cat >"$dir/turns.yaml" <<'EOF'
swplan: 1
name: turns
ranks: 2
max_depth: 3
ticket_at: iteration
buffers: {state: {scope: shared}}
schedule:
  Read: {stage: 0, stream: copy, writes: [batch], work: {copy: h2d, bytes: 1MiB}}
  Sizes: {stage: 1, stream: exchange, globally_ordered: true, reads: [batch], writes: [sizes],
          work: {collective: all_to_all, comm: all, bytes: 1KiB}}
  Look: {stage: 1, stream: exchange, reads: [sizes], host_sync: stream}
  Data: {stage: 1, stream: exchange, globally_ordered: true, reads: [batch], writes: [rows],
         work: {collective: all_to_all, comm: all, bytes: 1MiB}}
  Step: {stage: 2, reads: [rows, state], writes: [out]}
  Sum: {stage: 2, globally_ordered: true, reads: [out], writes: [state],
        work: {collective: all_reduce, comm: all, bytes: 1MiB}}
intra_iter_deps: [[Sizes, Read], [Look, Sizes], [Data, Look], [Step, Data], [Sum, Step]]
inter_iter_deps: [[Step, Sum]]
EOF
steps_of()
{
    "$SWSIM" verify --json --no-fix "$@" --driver=dataflow "$dir/turns.yaml" >"$dir/json"
    test $? -eq 1 || return 1
    grep -o '"step":' "$dir/json" | wc -l
}
told_first()
{
    "$SWSIM" verify --no-fix --driver=dataflow "$dir/turns.yaml" >"$dir/out"
    test $? -eq 1 || return 1
    cat "$dir/out"
    test "$(grep -n "found a violation in" "$dir/out" | cut -d: -f1)" -eq 1 &&
        grep -q "dataflow  *violated" "$dir/out" && test "$(grep -c "deadlock" "$dir/out")" -ge 2
}
told_once()
{
    "$SWSIM" verify --no-fix "$@" >"$dir/out"
    test $? -eq 1 && ! grep "found a violation in" "$dir/out"
}
no_longer() { long=$(steps_of --no-shorten) && short=$(steps_of) && echo "$long $short" && test "$short" -le "$long"; }
check "a violation with much work behind it is told first" told_first
check "one with little behind it is told once" told_once "$srcdir/plans/deadlocks/scenario1_broken.yaml"
check "a counterexample is made shorter, or left as it is" no_longer

# Less memory than the search wants and than its limit allows. Sanitizers need more to begin with.
if (ulimit -v 100000 && "$SWSIM" --version) >/dev/null 2>&1; then
    out_of_memory()
    {
        (ulimit -v 100000 && "$SWSIM" verify --no-reduction --limit=mem=1TiB --driver=clock "$big")
    }
    check "the end of memory is a message" answers 2 "out of memory" out_of_memory
    check "and what is known is said" grep -q "undecided.*no more memory.*states" "$dir/out"
else
    skip "no address space limit with this build"
    skip "no address space limit with this build"
fi

interrupted()
{
    "$SWSIM" verify --no-reduction "$@" --driver=clock "$big" "$big" >"$dir/out" 2>"$dir/err" &
    pid=$!
    wait_until 200 catches $pid INT && sleep 1
    kill -INT "$pid"
    wait "$pid"
    test $? -eq 4 && grep -q "undecided.*limit reached: interrupted.*states" "$dir/out" &&
        test "$(wc -l <"$dir/out")" -eq 2 # the heads of the columns, too
}
# A shell without job control starts what is in the background with SIGINT ignored.
if env --default-signal=INT true 2>/dev/null; then
    SWSIM_PLAIN=$SWSIM
    SWSIM="$dir/swsim"
    printf '#!/bin/sh\nexec env --default-signal=INT "%s" "$@"\n' "$SWSIM_PLAIN" >"$SWSIM"
    chmod +x "$SWSIM"
fi
check "SIGINT: what is known so far, undecided, and no further plan" interrupted
check "SIGINT with two threads" interrupted --threads=2
"$SWSIM" generate 1f1b -p64 -m64 >"$dir/schedule.yaml"
# answer TEXT OPTION...: of the schedule, which one run decides.
answer()
{
    text=$1
    shift
    "$SWSIM" verify --json --no-fix "$@" "$dir/schedule.yaml" >"$dir/json"
    grep -o "$text" "$dir/json"
}
# What is large is built within the limits, too: 4,096 ranks of as many microbatches in 82 bytes.
echo 'swplan: 1
generate: {schedule: gpipe, ranks: 4096, microbatches: 4096, chunks: 1}' >"$dir/large.yaml"
check "a program that is too large for the memory limit" answers 4 \
    "large.yaml: the program of this plan takes more than the 200 MiB of memory that are its limit" \
    "$SWSIM" verify --limit=mem=200MiB "$dir/large.yaml"
check "and for the time limit" answers 4 \
    "large.yaml: the time limit passed while the program of this plan was built" \
    "$SWSIM" verify --limit=time=1s "$dir/large.yaml"
check "one run that is every interleaving proves" answer '"verdict":"proved"'
check "and claims no safety that was not asked for" answer '"faults":"undecided"'
check "which is said" answer '"not_asked":\["serial","faults"\]'
check "which takes no time of the search" answer '"verdict":"proved"' --limit=time=1ns
done_testing
